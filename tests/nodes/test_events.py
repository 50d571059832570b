"""Events, as nodes get them and as traces write them."""

from __future__ import annotations

import pytest

from worldline.nodes import (
    LinkDown,
    LinkUp,
    Meta,
    NeighborAdded,
    NeighborRemoved,
    Protocol,
    Recover,
    Start,
    Timer,
)


@pytest.mark.parametrize(
    ("event", "text"),
    [
        (Start(), "Start"),
        (Recover(), "Recover"),
        (LinkDown(2), "Link down 2"),
        (LinkUp(0), "Link up 0"),
        (NeighborAdded(3), "Neighbor added 3"),
        (NeighborRemoved(3), "Neighbor removed 3"),
        (Timer("election"), "Timer election"),
        (Timer(""), "Timer"),
    ],
)
def test_meta_events_have_a_text(event: Meta, text: str) -> None:
    assert str(event) == text


def test_events_are_values() -> None:
    assert LinkDown(1) == LinkDown(1) != LinkUp(1)
    assert Protocol("x", 1) == Protocol("x", 1)
    with pytest.raises(AttributeError):
        LinkDown(1).link = 2  # type: ignore[misc]


def test_events_match_as_patterns() -> None:
    match Protocol(("a", 5), 3):
        case Protocol((name, number), link):
            assert (name, number, link) == ("a", 5, 3)
        case _:
            pytest.fail("it doesn't match")
    assert isinstance(Start(), Meta)
    assert not isinstance(Protocol(1, 1), Meta)
