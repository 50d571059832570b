"""The queue of the uncompiled engine, beside a list that is sorted whenever something is taken from it."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from worldline.kernel.queue import BucketQueue, Entry
from worldline.model import FOREVER, HOUR, MS, SECOND, TIME_MAX

DELAYS = st.one_of(
    st.integers(0, 3),
    st.integers(0, 2 * MS),
    st.sampled_from([0, MS, 2**20, 2**20 - 1, SECOND, HOUR, 10**6 * HOUR]),
)


class Twins(RuleBasedStateMachine):
    """Whatever is done to the queue is done to a list too."""

    def __init__(self) -> None:
        super().__init__()
        self.queue, self.listed = BucketQueue(), list[Entry]()
        self.now = self.order = 0
        self.random = Random(0)

    def push(self, delay: int) -> None:
        self.order += 1
        rank = (self.random.randrange(3), self.random.choice(["", "a", "b"]))
        entry = (min(self.now + delay, TIME_MAX), self.now, rank, self.order, self.random.random() < 0.5)
        self.queue.push(entry)
        self.listed.append(entry)

    @rule(delays=st.lists(DELAYS, min_size=1, max_size=5))
    def push_some(self, delays: list[int]) -> None:
        for delay in delays:
            self.push(delay)

    @rule(width=st.sampled_from([1, 50, MS, HOUR]), count=st.integers(1, 300), seed=st.integers(0, 9))
    def push_many(self, width: int, count: int, seed: int) -> None:
        draws = Random(seed)
        for _ in range(count):
            self.push(draws.randrange(width))

    @precondition(lambda self: self.listed)
    @rule(limit=st.integers(1, 200), ahead=DELAYS, more=st.lists(DELAYS, max_size=3))
    def take(self, limit: int, ahead: int, more: list[int]) -> None:
        """Take so many, as far as they aren't too far ahead; others are pushed while that is under way."""
        self.queue._turns = 3  # So that it adapts under way.
        self.listed.sort()
        end = self.listed[0][0] + ahead
        taken = self.queue.until(end)
        for _ in range(limit):
            self.listed.sort()
            expected = self.listed.pop(0) if self.listed and self.listed[0][0] < end else None
            assert next(taken, None) == expected
            if expected is None:
                return
            self.now = expected[0]
            if more:
                self.push(more.pop())

    @rule()
    def purge(self) -> None:
        assert self.queue.purge(lambda what, _: what) == []
        self.listed = [entry for entry in self.listed if not entry[4]]

    @invariant()
    def they_agree(self) -> None:
        assert len(self.queue) == len(self.listed)
        assert self.queue.next_time() == (min(self.listed)[0] if self.listed else FOREVER)


TestTwins = Twins.TestCase
TestTwins.settings = settings(max_examples=20, stateful_step_count=15, deadline=None)


class Watched(BucketQueue):
    """Counts the turns off the fast path: what sorting and spreading take depends on these."""

    __slots__ = ("turns",)

    def __init__(self) -> None:
        super().__init__()
        self.turns = 0

    def _count_turn(self, now: int) -> None:
        self.turns += 1
        super()._count_turn(now)


def turns(queue: Watched, waiting: int, delay: Callable[[Random], int], events: int) -> int:
    """Take so many events, and push another one for each; return how many turns weren't fast."""
    draws = Random(1)
    for number in range(waiting):
        queue.push((delay(draws), 0, (0, ""), number, ""))
    for number, entry in zip(range(events), queue.until(FOREVER), strict=False):
        queue.push((entry[0] + delay(draws), entry[0], (0, ""), waiting + number, ""))
    return queue.turns


@pytest.mark.parametrize("scale", [1, 1_000, MS, SECOND, HOUR])
def test_buckets_become_as_wide_as_events_need_it(scale: int) -> None:
    delays = range(1_000 * scale, 10_000 * scale)
    assert turns(Watched(), 5_000, lambda draws: draws.choice(delays), 20_000) < 4_000


def test_far_timers_do_not_make_near_buckets_wide() -> None:
    queue = Watched()
    for number in range(10_000):
        queue.push((HOUR + number * SECOND, 0, (1, ""), number, ""))
    assert turns(queue, 2_000, lambda draws: draws.randrange(2_000, 4_000), 20_000) < 4_000


def test_a_model_that_slows_down_gets_wider_buckets() -> None:
    queue = Watched()
    before = turns(queue, 1_000, lambda draws: draws.randrange(1_000, 2_000), 20_000)
    assert turns(queue, 0, lambda draws: draws.randrange(HOUR, 2 * HOUR), 20_000) - before < 4_000


def test_a_bucket_beyond_the_end_is_not_reached() -> None:
    # Otherwise all that comes before it would be late.
    queue = Watched()
    queue.push((HOUR, 0, (0, ""), 0, ""))
    assert list(queue.until(SECOND)) == []
    queue.push((2 * SECOND, 0, (0, ""), 1, ""))
    assert queue.next_time() == 2 * SECOND
    assert queue.turns == 0
    assert [entry[0] for entry in queue.until(FOREVER)] == [2 * SECOND, HOUR]
    assert queue.turns == 2
