"""Names on the public LCM: read back as they were written, and refused before the run if LCM can't carry them."""

from __future__ import annotations

import pytest

from worldline.metasim.public.tcpq import (
    CHANNEL_BYTES_MAX,
    PublicName,
    check_channel,
    check_participant,
    check_public_names,
    parse_public_name,
)
from worldline.model.errors import ConfigurationError


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (PublicName("STATE", "plant"), "STATE/plant"),
        (PublicName("STATE", "plant", "controller"), "STATE/plant>controller"),
        (PublicName("arm/left>x", "plant", "viewer"), "arm/left>x/plant>viewer"),
    ],
)
def test_a_name_is_read_back(name: PublicName, text: str) -> None:
    assert str(name) == text
    assert parse_public_name(text) == name


@pytest.mark.parametrize("text", ["STATE", "/plant", "STATE/", "STATE/>plant", "STATE/plant>", "WORLDLINE_TIME"])
def test_what_is_no_public_name_is_refused(text: str) -> None:
    with pytest.raises(ConfigurationError, match="isn't a channel of the public LCM"):
        parse_public_name(text)


@pytest.mark.parametrize("name", ["", "a\0b", "\ud800", "a" * 64, "ä" * 32])
def test_channels_that_lcm_refuses_are_refused(name: str) -> None:
    with pytest.raises(ConfigurationError, match="can't name an LCM channel"):
        check_channel(name)


def test_the_longest_name_is_allowed() -> None:
    assert check_channel("ä" * 31 + "a")


@pytest.mark.parametrize("name", ["a/b", "a>b"])
def test_participants_have_no_separators(name: str) -> None:
    with pytest.raises(ConfigurationError, match="can't name a participant on a public LCM"):
        check_participant(name)


def test_a_path_whose_name_is_too_long_is_refused_with_its_name() -> None:
    channel = "C" * (CHANNEL_BYTES_MAX - len("/plant>controller") + 1)
    check_public_names({"plant": [channel]}, {"viewer": [channel]})
    with pytest.raises(ConfigurationError, match=f"{channel}/plant>controller.* has 64 bytes") as refused:
        check_public_names({"plant": [channel]}, {"controller": [channel], "viewer": [channel]})
    assert refused.value.participant == "plant"


def test_nobody_is_its_own_receiver() -> None:
    name = "p" * 25
    check_public_names({name: ["C" * 20]}, {name: ["C" * 20]})
