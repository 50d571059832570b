"""When an event was, from looks now and then."""

from __future__ import annotations

from worldline.federation.server.operating import Milestones
from worldline.model import SECOND


def test_an_event_was_by_the_first_look_after_it() -> None:
    passed = Milestones()
    for wall in range(10):
        passed.note(10 * wall, float(wall), wall * SECOND)
    assert passed.when(0) == 1.0  # The first event has the number 0: after the first look there were none.
    assert passed.when(9) == 1.0
    assert passed.when(10) == 2.0
    assert passed.when(90) is None


def test_looks_at_which_nothing_was_new_or_that_follow_at_once_arent_kept() -> None:
    passed = Milestones()
    passed.note(5, 1.0, 0)
    passed.note(5, 9.0, 0)
    passed.note(6, 9.5, 0)
    passed.note(7, 9.51, 0)
    assert passed.when(4) == 1.0
    assert passed.when(5) == 9.5
    assert passed.when(6) is None


def test_of_what_is_long_past_less_is_kept_and_nothing_becomes_too_early() -> None:
    passed = Milestones()
    for look in range(100_000):
        passed.note(look + 1, look * 0.1, 0)
    assert len(passed._passed) <= 257
    for event in (0, 500, 50_000, 99_990, 99_999):
        found = passed.when(event)
        assert found is not None
        assert found >= event * 0.1 - 1e-6
    assert passed.when(99_990) == 99_990 * 0.1


def test_the_pace_is_that_of_the_last_two_seconds() -> None:
    passed = Milestones()
    assert passed.pace(0, 0.0, 0) == (None, None)
    passed.note(1000, 1.0, 5 * SECOND)
    passed.note(2000, 8.5, 8 * SECOND)
    assert passed.pace(2100, 10.5, 9 * SECOND) == (0.5, 50.0)
    passed.note(3000, 60.0, 10 * SECOND)  # It had stood still in between.
    assert passed.pace(3500, 61.0, 12 * SECOND) == (2.0, 500.0)
