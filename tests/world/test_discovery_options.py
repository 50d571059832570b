"""The options of discovery: what is used where, and what can't be."""

from __future__ import annotations

import json
from typing import Any

import pytest

from worldline.model.errors import ConfigurationError
from worldline.world.discovery import MEETING_POINT, DiscoveryOptions
from worldline.world.zenoh_network import _config

OWN = "tcp/127.0.0.1:0"


@pytest.mark.parametrize(
    ("given", "meets_at", "listens_at", "uses_multicast", "said"),
    [
        ({}, MEETING_POINT, OWN, False, f"at {MEETING_POINT}"),
        ({"meeting_point": "tcp/127.0.0.1:1"}, "tcp/127.0.0.1:1", OWN, False, "at tcp/127.0.0.1:1"),
        ({"interface": "lo"}, MEETING_POINT, OWN, False, f"at {MEETING_POINT}"),
        ({"interface": "eth0"}, "", "tcp/0.0.0.0:0#iface=eth0", True, "by multicast on eth0"),
        (
            {"interface": "eth0", "multicast": False, "connect": ["tcp/h:1"]},
            "",
            "tcp/0.0.0.0:0#iface=eth0",
            False,
            "at tcp/h:1",
        ),
        ({"listen": ["tcp/h:1"]}, "", "tcp/h:1", False, "at tcp/h:1"),
        (
            {"listen": ["tcp/h:1"], "multicast": True},
            "",
            "tcp/h:1",
            True,
            "at tcp/h:1 and by multicast on any interface",
        ),
    ],
)
def test_ways_to_meet(given: dict[str, Any], meets_at: str, listens_at: str, uses_multicast: bool, said: str) -> None:
    options = DiscoveryOptions(**given)
    assert (options.meets_at, options.listens_at) == (meets_at, (listens_at,))
    assert (options.uses_multicast, str(options)) == (uses_multicast, said)


def test_nothing_but_loopback_is_used_unless_asked_for() -> None:
    config = _config(DiscoveryOptions(), [OWN], [MEETING_POINT])
    assert json.loads(config.get_json("scouting/multicast/enabled")) is False
    assert json.loads(config.get_json("listen/endpoints")) == [OWN]
    config = _config(DiscoveryOptions(interface="eth0"), [OWN], [])
    assert json.loads(config.get_json("scouting/multicast/enabled")) is True
    assert json.loads(config.get_json("scouting/multicast/interface")) == "eth0"


@pytest.mark.parametrize("stale_s", [0.5, 2.0, 60.0])
def test_zenoh_is_never_the_judge_of_silence(stale_s: float) -> None:
    config = _config(DiscoveryOptions(stale_s=stale_s), [OWN], [])
    assert json.loads(config.get_json("transport/link/tx/lease")) >= 5000 * stale_s


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"listen": "tcp/127.0.0.1:1"}, "listen is a list of endpoints"),
        ({"connect": ["127.0.0.1:1"]}, "'127.0.0.1:1' isn't an endpoint"),
        ({"connect": ["tcp://127.0.0.1:1"]}, "'tcp://127.0.0.1:1' isn't an endpoint"),
        ({"meeting_point": "here"}, "'here' isn't an endpoint"),
        ({"connect": [7]}, "7 isn't an endpoint"),
        ({"heartbeat_s": 0}, "heartbeat_s is 0"),
        ({"stale_s": float("inf")}, "stale_s is inf"),
        ({"stale_s": 0.2}, "missed after 0.2 s, though it speaks only every 0.1 s"),
    ],
)
def test_options_that_can_t_be(given: dict[str, Any], told: str) -> None:
    with pytest.raises(ConfigurationError, match=told):
        DiscoveryOptions(**given)
