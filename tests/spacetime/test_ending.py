"""When a run on several workers is over: never while something is under way, and always at last."""

from __future__ import annotations

from collections import deque
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from worldline.spacetime.worker import IdleReport, Order, conclusion


def idle(sent: tuple[int, ...], received: tuple[int, ...], *, alive: bool = False, swept: bool = False) -> IdleReport:
    return IdleReport(sent, received, alive, swept)


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ([], "finish"),
        ([idle((0,), (0,))], "finish"),
        ([idle((0,), (0,), alive=True)], "sweep"),
        ([idle((0,), (0,), alive=True, swept=True)], "finish"),  # It is stuck, and the run says so.
        ([None, idle((0, 0), (0, 0))], None),
        ([idle((0, 0), (0, 0)), None], None),
        ([idle((0, 3), (2, 0)), idle((2, 0), (3, 0))], None),  # Who tells itself anything has miscounted.
        ([idle((0, 3), (0, 2)), idle((2, 0), (3, 0))], "finish"),
        ([idle((0, 3), (0, 2)), idle((2, 0), (2, 0))], None),  # One is under way to the second.
        ([idle((0, 3), (0, 1)), idle((2, 0), (3, 0))], None),  # One is under way to the first.
        ([idle((0, 3), (0, 2), swept=True), idle((2, 0), (3, 0), alive=True)], "sweep"),
        ([idle((0, 3), (0, 2)), idle((2, 0), (3, 0), alive=True, swept=True)], "sweep"),
        ([idle((0, 3), (0, 2), swept=True), idle((2, 0), (3, 0), alive=True, swept=True)], "finish"),
    ],
)
def test_what_follows_from_what_was_said(said: list[IdleReport | None], expected: Order | None) -> None:
    assert conclusion(said) == expected


class Crowd:
    """Workers that send each other tidings as long as they have any, over lines that keep their order."""

    def __init__(self, count: int, tidings: int, random: Random) -> None:
        self.count = count
        self.random = random
        self.left = tidings
        self.busy = [True] * count
        self.sent = [[0] * count for _ in range(count)]
        self.received = [[0] * count for _ in range(count)]
        self.lines: dict[tuple[int, int], deque[IdleReport | None]] = {
            (one, other): deque() for one in range(count) for other in range(count) if one != other
        }
        self.said: list[IdleReport | None] = [None] * count

    def act(self) -> Order | None:
        """Let something happen that can; return what the leader makes of it."""
        deeds = [("work", each, each) for each in range(self.count) if self.busy[each]]
        deeds += [("hear", one, other) for (one, other), line in self.lines.items() if line]
        deed, one, other = self.random.choice(deeds)
        if deed == "work":
            return self.work(one)
        frame = self.lines[one, other].popleft()
        if frame is not None:
            self.said[one] = frame
            return self.concluded()
        self.received[other][one] += 1
        self.busy[other] = True
        return None

    def work(self, one: int) -> Order | None:
        """Send somebody something, or be idle and say so."""
        if one == 0:
            self.said[0] = None
        if self.left and self.random.random() < 0.7 and self.count > 1:
            self.left -= 1
            other = self.random.choice([each for each in range(self.count) if each != one])
            self.sent[one][other] += 1
            self.lines[one, other].append(None)
            return None
        self.busy[one] = False
        said = idle(tuple(self.sent[one]), tuple(self.received[one]))
        if one:
            self.lines[one, 0].append(said)
            return None
        self.said[0] = said
        return self.concluded()

    def concluded(self) -> Order | None:
        """As the leader does: what it has said itself must be so still."""
        if self.busy[0]:
            return None
        return conclusion(self.said)

    @property
    def is_over(self) -> bool:
        return not any(self.busy) and not any(None in line for line in self.lines.values())


@given(st.integers(1, 4), st.integers(0, 30), st.integers(0, 2**32))
def test_it_is_over_when_nothing_is_under_way_and_not_before(count: int, tidings: int, seed: int) -> None:
    crowd = Crowd(count, tidings, Random(seed))
    order = None
    while order is None:
        assert crowd.is_over is False or any(crowd.lines.values()) or count == 1
        order = crowd.act()
    assert order == "finish"
    assert crowd.is_over
