"""Events, as nodes get them and as traces write them."""

from __future__ import annotations

import pytest

from worldline.nodes import (
    LinkDown,
    LinkUp,
    Meta,
    NeighborAdded,
    NeighborRemoved,
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
