"""How far a run is, as somebody who prints it sees it."""

from __future__ import annotations

from worldline.history import Status


def test_a_status_shows_how_far_it_is_and_nothing_of_how_it_is_made() -> None:
    assert repr(Status(5, 10, 3)) == "Status(time=5, end=10, events=3)"
