"""Workers that do pieces of work: what each gives comes back by its number, and what goes wrong is said."""

from __future__ import annotations

from typing import Any

import pytest

from tests.processes.jobs import begin, doubled
from tests.soaking import later
from worldline.model import ConfigurationError, LossError, WorldlineError
from worldline.model.errors import InternalError, Stuck
from worldline.processes.supervision import WorkerFarm


def done(*pieces: Any, workers: int = 2, given: Any = 2, replaces: bool = False) -> dict[int, Any]:
    """Let workers do some pieces; return what came of them."""
    came: dict[int, Any] = {}
    waiting = list(enumerate(pieces))
    patience = (lambda piece: 0.5 if piece == "hang" else 60.0) if replaces else None
    with WorkerFarm(workers, begin, (given,), doubled, lambda piece: f"the piece {piece}", patience) as farm:
        while len(came) < len(pieces):
            while waiting and farm.has_room:
                farm.give(*waiting.pop(0))
            came.update(farm.take())
    return came


def test_pieces_come_back_by_their_numbers() -> None:
    assert done(*range(20), workers=3) == {number: 2 * number for number in range(20)}


def test_an_error_comes_back_in_place_of_what_was_done() -> None:
    came = done(1, "refuse", 3)
    assert (came[0], came[2]) == (2, 6)
    assert isinstance(came[1], WorldlineError)
    assert str(came[1]) == "'refuse' can't be doubled"


@pytest.mark.parametrize("_attempt", [0, *later(range(1, 4))])
def test_a_worker_that_cannot_begin_says_why(_attempt: int) -> None:
    """Even if it is gone by the time that it is given something."""
    with pytest.raises(ConfigurationError, match="nothing can be begun with it"):
        done(1, 2, 3, 4, given="nothing")


def test_a_bug_is_a_breakdown_with_its_trace() -> None:
    with pytest.raises(InternalError, match=r"worker 0 broke down: Traceback[^§]*KeyError: 'a bug'"):
        done("break", workers=1)


def test_a_worker_that_is_lost_is_described() -> None:
    with pytest.raises(LossError) as lost:
        done(1, "die", workers=1)
    text = "worker 0, with the piece die, was killed by SIGKILL (was it killed, or out of memory?)"
    assert str(lost.value) == text
    assert lost.value.facts == {"worker": 0, "exit_code": -9}


def test_a_worker_that_is_lost_is_replaced_and_only_its_piece_is() -> None:
    came = done(1, "die", 3, "die", 5, workers=1, replaces=True)
    assert [came[each] for each in (0, 2, 4)] == [2, 6, 10]
    for each in (1, 3):
        assert isinstance(came[each], LossError)
        assert str(came[each]) == "its process was killed by SIGKILL (was it killed, or out of memory?)"


def test_a_worker_that_takes_too_long_is_replaced() -> None:
    came = done("hang", 2, workers=1, replaces=True)
    assert isinstance(came[0], Stuck)
    assert str(came[0]) == "it has taken more than 0.5 seconds"
    assert came[1] == 4
