"""Network roles, as they are written."""

from __future__ import annotations

import pytest

from worldline.model.errors import ConfigurationError
from worldline.world.discovery import PeerRole
from worldline.world.secondary import ROLE_VARIABLE, SECONDARIES_VARIABLE, network_part


@pytest.mark.parametrize("text", ["primary", "PRIMARY", "Primary", " pRiMaRy "])
def test_capitals_dont_matter(text: str) -> None:
    assert network_part(text, 2, {}) == (PeerRole.PRIMARY, 2, ())


def test_a_secondary_has_no_count_and_without_a_role_there_is_no_network() -> None:
    assert network_part("SeCoNdArY", None, {}) == (PeerRole.SECONDARY, 0, ())
    assert network_part(None, None, {}) == (None, 0, ())


@pytest.mark.parametrize(
    ("role", "count", "problem"),
    [
        ("primary", 0, "a primary can't do with 0 secondaries"),
        ("primary", -3, "a primary can't do with -3 secondaries"),
        ("primary", None, "a primary has to know how many secondaries to wait for"),
        ("secondary", 2, "a secondary doesn't decide how many secondaries there are"),
        (None, 2, "only a primary decides how many secondaries there are"),
        ("tertiary", None, "there is no network role 'tertiary'"),
        ("", None, "there is no network role ''"),
        ("primry", 1, r"\(did you mean 'primary'\?\)"),
    ],
)
def test_what_cant_be_is_refused(role: str | None, count: int | None, problem: str) -> None:
    with pytest.raises(ConfigurationError, match=problem):
        network_part(role, count, {})


def test_variables_still_work_and_warn() -> None:
    variables = {ROLE_VARIABLE: "PRIMARY", SECONDARIES_VARIABLE: "3"}
    assert network_part(None, None, variables) == (
        PeerRole.PRIMARY,
        3,
        (
            "WORLDLINE_NETWORK_ROLE is deprecated: use --network-role=primary",
            "WORLDLINE_NETWORK_SECONDARIES is deprecated: use --network-secondaries=3",
        ),
    )
    assert network_part(None, None, {ROLE_VARIABLE: "secondary"})[0] is PeerRole.SECONDARY


def test_options_come_before_variables() -> None:
    variables = {ROLE_VARIABLE: "PRIMARY", SECONDARIES_VARIABLE: "many"}
    assert network_part("secondary", None, variables) == (PeerRole.SECONDARY, 0, ())
    assert network_part("primary", 1, variables) == (PeerRole.PRIMARY, 1, ())
    with pytest.raises(ConfigurationError, match="WORLDLINE_NETWORK_SECONDARIES is 'many'"):
        network_part("primary", None, variables)
