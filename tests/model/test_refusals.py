"""What can't be meant is refused with a line that says what to write instead."""

from __future__ import annotations

from typing import Any

import pytest

from worldline.model import ConfigurationError, ModelError, Network, Rule, UsageError, link, plan
from worldline.model.payload import from_json, from_msgpack, to_json, to_msgpack

NETWORKS: list[tuple[Any, str]] = [
    ("fast", "'fast' isn't a network"),
    (Network(default="5ms"), "'5ms' isn't a Link"),  # type: ignore[arg-type]
    (Network(rules=Rule(topic="image", link=link("5ms"))), "isn't a tuple"),  # type: ignore[arg-type]
    (Network(rules=("image",)), "'image' isn't a Rule"),  # type: ignore[arg-type]
    (Network(rules=(Rule(topic="image", link="5ms"),)), "'5ms' isn't a link"),  # type: ignore[arg-type]
    (Network(default=link("1ms"), estop=0), "an emergency stop can't be told within 0"),
]


@pytest.mark.parametrize(("network", "problem"), NETWORKS, ids=[problem for _, problem in NETWORKS])
def test_what_isnt_a_network_is_refused(network: Any, problem: str) -> None:
    with pytest.raises(ConfigurationError, match=problem) as refused:
        plan(["a", "b"], network=network)
    assert refused.value.advice


@pytest.mark.parametrize("encode", [to_json, to_msgpack])
def test_what_cant_be_encoded_is_the_callers_mistake(encode: Any) -> None:
    with pytest.raises(UsageError, match="can't be a payload"):
        encode(object())


@pytest.mark.parametrize(("decode", "payload"), [(from_json, b"{"), (from_msgpack, b"\xc1")])
def test_what_cant_be_decoded_is_the_models(decode: Any, payload: bytes) -> None:
    with pytest.raises(ModelError, match="isn't what was expected"):
        decode(payload)
    with pytest.raises(ModelError, match="isn't what was expected"):
        decode(to_json([1]) if decode is from_json else to_msgpack([1]), dict[str, int])
