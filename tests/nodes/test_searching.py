"""The search: the smallest seed that fails, however many processes look for it and whichever is faster."""

from __future__ import annotations

import os
import re
import signal
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from worldline.model.errors import ConfigurationError, LossError, Stuck, UsageError, WorldlineError
from worldline.nodes import Node, at_end
from worldline.nodes.algorithm import Algorithm
from worldline.nodes.algorithms import find
from worldline.nodes.node import Event, Send, Start
from worldline.nodes.scheduler import Scheduler
from worldline.nodes.trial import Trial, load_file, search
from worldline.search import searching
from worldline.search.searching import Report

# What a seed does is told by parameters, as lists of seeds, so that one file is enough for all.
SOURCE = """
import os, signal, time
from worldline.nodes import Node, Start, at_end
from worldline.nodes.algorithm import Algorithm

class Moody(Node):
    '''Does to each seed what it is told.'''

    def __init__(self, num_nodes, id, num_neighbors, send, *, bad: str = "", kills: str = "", loops: str = "",
                 raises: str = "", sleeps: str = ""):
        super().__init__(num_nodes, id, num_neighbors, send)
        self.moods = {"bad": bad, "kills": kills, "loops": loops, "raises": raises, "sleeps": sleeps}

    def execute(self, event):
        if isinstance(event, Start) and self.id == 1:
            self.broadcast(self.random.random())

@at_end("the seed is good")
def good(run):
    mood = next((mood for mood, seeds in run.node(1).moods.items() if str(run.seed) in seeds.split()), "")
    if mood == "kills":
        os.kill(os.getpid(), signal.SIGKILL)
    if mood == "sleeps":
        time.sleep(100)
    if mood == "raises":
        raise ZeroDivisionError("by nought")
    while mood == "loops":
        pass
    return mood != "bad"

model = Algorithm(name="moody", node=Moody, topology="line:2", properties=(good,))
"""


class Listed(Node):
    """Knows the seeds that are to fail."""

    def __init__(self, num_nodes: int, id: int, num_neighbors: int, send: Send, *, bad: tuple[int, ...] = ()) -> None:  # noqa: A002
        super().__init__(num_nodes, id, num_neighbors, send)
        self.bad = bad

    def execute(self, event: Event) -> None:
        if isinstance(event, Start):
            self.broadcast(self.random.random())


@at_end("the seed isn't listed")
def not_listed(run: Scheduler) -> bool:
    return run.seed not in run.node(0).bad


LISTED = Algorithm(name="listed", node=Listed, topology="line:2", properties=(not_listed,))


class Waits(Node):
    """Takes as long as a test asks for, when it starts."""

    forever = False

    def execute(self, event: Event) -> None:
        if isinstance(event, Start) and self.id == 1:
            while type(self).forever:
                pass


class Raises(Node):
    """Raises what users' nodes raise."""

    def execute(self, _: Event) -> None:
        if self.id == 1:
            raise KeyError("no such thing")


class Luck:
    """Takes the place of the processes: every block gets done at a time of its own choice, by that of the tests."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)
        self._waiting: list[tuple[int, Any]] = []
        self._room = 0

    def __call__(
        self, workers: int, begin: Callable[..., Any], given_: tuple[Any, ...], work: Callable[..., Any], _: Any
    ) -> Luck:
        self._room = 2 * workers
        self._work = partial(work, begin(*given_))
        return self

    def __enter__(self) -> Luck:
        return self

    def __exit__(self, *_: object) -> None:
        self._waiting.clear()

    @property
    def has_room(self) -> bool:
        return (len(self._waiting) < self._room and self._random.random() < 0.9) or not self._waiting

    def give(self, number: int, piece: Any) -> None:
        self._waiting.append((number, piece))
        self._random.shuffle(self._waiting)

    def take(self) -> list[tuple[int, Any]]:
        count = self._random.randint(1, len(self._waiting))
        taken, self._waiting = self._waiting[:count], self._waiting[count:]
        return [(number, self._done_with(piece)) for number, piece in taken]

    def _done_with(self, piece: Any) -> Any:
        try:
            return self._work(piece)
        except WorldlineError as error:
            return error


@pytest.fixture
def moody(tmp_path: Path) -> tuple[Algorithm, Path]:
    file = tmp_path / "moody.py"
    file.write_text(SOURCE)
    return load_file(file), file


def listed(*bad: int) -> Trial:
    return Trial(algorithm=LISTED, parameters={"bad": bad})


def facts(report: Report) -> tuple[Any, ...]:
    """Return all that a report says, so that it can be compared."""
    failure = report.failure
    assert failure is None or failure.failure is not None
    found = failure and (failure.seed, str(failure.failure), failure.now, failure.events, failure.digest)
    return report.tried, report.events, report.digest, found


def processes_trying() -> list[int]:
    """Return the processes that try seeds: children of the server of forks, which itself stays."""
    parents = {int(each.name): _parent(each) for each in Path("/proc").iterdir() if each.name.isdecimal()}
    return [process for process, parent in parents.items() if parent and parents.get(parent) == os.getpid()]


def _parent(process: Path) -> int | None:
    try:
        state, parent = (process / "stat").read_text().rpartition(")")[2].split()[:2]
    except (FileNotFoundError, ProcessLookupError):
        return None
    return None if state == "Z" else int(parent)


@pytest.fixture
def nobody_left() -> Iterator[None]:
    yield
    end = time.monotonic() + 20
    while processes_trying() and time.monotonic() < end:
        time.sleep(0.01)
    assert processes_trying() == []


# --- One report ---


@settings(max_examples=20)
@given(
    count=st.integers(1, 70),
    first=st.integers(-5, 1_000),
    bad=st.lists(st.integers(0, 69), max_size=4),
    workers=st.integers(2, 5),
    luck=st.integers(0, 1_000),
)
def test_the_report_follows_from_the_seeds_alone(
    count: int, first: int, bad: list[int], workers: int, luck: int
) -> None:
    trial = listed(*(first + each for each in bad))
    seeds = range(first, first + count)
    alone = search(trial, seeds)
    failing = sorted(first + each for each in bad if each < count)
    assert (alone.failure and alone.failure.seed) == (failing[0] if failing else None)
    assert alone.tried == (failing[0] - first + 1 if failing else count)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(searching, "WorkerFarm", Luck(luck))
        assert facts(search(trial, seeds, workers=workers)) == facts(alone)


def test_seeds_may_come_in_any_order() -> None:
    report = search(listed(3, 8), [9, 8, 3, 1])
    assert report.failure is not None
    assert (report.failure.seed, report.tried) == (8, 2)


def test_no_seeds_are_no_failure() -> None:
    report = search(listed(), range(0))
    assert facts(report)[0::3] == (0, None)


def test_the_events_and_the_digest_are_those_of_all_that_were_tried() -> None:
    trial = listed()
    outcomes = [structs.replace(trial, seed=seed).run() for seed in range(4)]
    report = search(trial, range(4))
    assert report.events == sum(outcome.events for outcome in outcomes)
    assert report.digest != search(trial, range(1, 5)).digest
    assert report.digest != search(trial, range(3)).digest


def test_real_processes_report_the_same(moody: tuple[Algorithm, Path], nobody_left: None) -> None:
    algorithm, file = moody
    trial = Trial(algorithm=algorithm, parameters={"bad": "141 142 155 190"})
    done: dict[int, list[int]] = {1: [], 2: [], 3: []}
    reports = {
        workers: facts(search(trial, range(100, 200), workers=workers, file=file, progress=done[workers].append))
        for workers in (1, 2, 3)
    }
    assert reports[1] == reports[2] == reports[3]
    assert reports[1][3][0] == 141
    assert reports[1][3][1].endswith(": property failed: the seed is good")
    for counted in done.values():
        assert counted == sorted(counted)
        assert counted[-1] == 42


def test_a_slow_block_before_a_failure_is_waited_for(moody: tuple[Algorithm, Path], nobody_left: None) -> None:
    algorithm, file = moody
    trial = Trial(algorithm=algorithm, parameters={"loops": "0", "bad": "17"})
    report = search(trial, range(32), workers=2, file=file, seconds_max=0.3)
    assert report.failure is not None
    assert report.failure.seed == 0
    assert isinstance(report.failure.failure, Stuck)


# --- What users' nodes do ---


def test_what_a_node_raises_is_a_failure_of_its_seed() -> None:
    report = search(Trial(algorithm=Algorithm(name="raises", node=Raises, topology="line:2")), range(5, 9))
    assert report.failure is not None
    assert report.failure.seed == 5
    text = str(report.failure.failure)
    assert text.startswith("node 1 at 0s: on Start it raised KeyError: 'no such thing', in test_searching.py, line ")


class Ends(Node):
    """Raises what no handler of exceptions catches."""

    def __init__(self, num_nodes: int, id: int, num_neighbors: int, send: Send, *, what: str = "") -> None:  # noqa: A002
        super().__init__(num_nodes, id, num_neighbors, send)
        self.what = what

    def execute(self, _: Event) -> None:
        if self.id == 1:
            raise {"exit": SystemExit, "interrupt": KeyboardInterrupt, "close": GeneratorExit}[self.what]


@pytest.mark.parametrize(
    ("what", "kind"), [("exit", "SystemExit"), ("interrupt", "KeyboardInterrupt"), ("close", "Gen")]
)
def test_an_exit_of_a_node_is_a_failure_of_its_seed(what: str, kind: str) -> None:
    algorithm = Algorithm(name="ends", node=Ends, topology="line:2")
    report = search(Trial(algorithm=algorithm, parameters={"what": what}), range(3))
    assert report.failure is not None
    assert str(report.failure.failure).startswith(f"node 1 at 0s: on Start it raised {kind}")


def test_control_c_interrupts_a_node(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Raises, "execute", lambda *_: signal.raise_signal(signal.SIGINT))
    with pytest.raises(KeyboardInterrupt):
        search(Trial(algorithm=Algorithm(name="raises", node=Raises, topology="line:2")), range(3))


def test_what_a_check_raises_is_a_failure_of_its_seed(moody: tuple[Algorithm, Path]) -> None:
    report = search(Trial(algorithm=moody[0], parameters={"raises": "1"}), range(3))
    assert report.failure is not None
    assert report.failure.seed == 1
    assert "ZeroDivisionError: by nought" in str(report.failure.failure)
    assert "the seed is good" in str(report.failure.failure)


def test_a_loop_without_an_end_is_a_failure_that_names_the_node(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Waits, "forever", True)
    report = search(Trial(algorithm=Algorithm(name="waits", node=Waits, topology="line:2")), range(3), seconds_max=0.05)
    assert report.failure is not None
    assert report.tried == 1
    assert isinstance(report.failure.failure, Stuck)
    assert str(report.failure.failure).startswith("node 1 at 0s: it has taken more than 0.05 seconds of real time")


# The alarm may ring in a callback of the garbage collector, where Python swallows exceptions; then it rings again.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_patience_also_ends_with_the_preparations() -> None:
    trial = Trial(algorithm=find("flooding"), topology="clique:150")
    report = search(trial, range(20), seconds_max=0.01)
    assert report.failure is not None
    assert isinstance(report.failure.failure, Stuck)


def test_without_patience_there_is_no_limit() -> None:
    before = signal.getsignal(signal.SIGALRM)
    assert search(listed(), range(3), seconds_max=None).tried == 3
    assert search(listed(), range(3), seconds_max=5).tried == 3
    assert signal.getsignal(signal.SIGALRM) == before


def test_every_seed_has_the_whole_patience() -> None:
    class Naps(Node):
        def execute(self, event: Event) -> None:
            if isinstance(event, Start) and self.id == 0:
                time.sleep(0.1)

    naps = Trial(algorithm=Algorithm(name="naps", node=Naps, topology="line:2"))
    assert search(naps, range(12), seconds_max=1.0).failure is None


# --- What goes wrong with the search itself ---


@pytest.mark.parametrize("workers", [0, -1])
def test_somebody_has_to_do_it(workers: int) -> None:
    with pytest.raises(UsageError, match=r"there can't be -?\d+ workers \(use at least 1\)"):
        search(listed(), range(3), workers=workers)


def test_what_cannot_be_sent_is_refused_in_plain_words(nobody_left: None) -> None:
    class Local(Node):
        pass

    trial = Trial(algorithm=Algorithm(name="local", node=Local, topology="line:2"))
    with pytest.raises(UsageError, match=r"can't be sent to other processes: .*Local.*\(put it into a file"):
        search(trial, range(3), workers=2)


@pytest.mark.parametrize("workers", [1, 2])
def test_what_cannot_be_run_is_refused_and_is_no_failure_of_a_seed(
    workers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(searching, "WorkerFarm", Luck(0))
    with pytest.raises(ConfigurationError, match="isn't a latency"):
        search(structs.replace(listed(), latency="soon"), range(9), workers=workers)


def test_a_file_may_have_checks_without_a_name(tmp_path: Path, nobody_left: None) -> None:
    (tmp_path / "nameless.py").write_text(SOURCE.replace("(good,)", "(at_end('late')(lambda run: run.seed < 3),)"))
    algorithm = load_file(tmp_path / "nameless.py")
    report = search(Trial(algorithm=algorithm), range(5), workers=2, file=tmp_path / "nameless.py")
    assert report.failure is not None
    assert report.failure.seed == 3


def test_a_process_that_dies_is_a_loss_and_takes_the_others_with_it(
    moody: tuple[Algorithm, Path], nobody_left: None
) -> None:
    algorithm, file = moody
    trial = Trial(algorithm=algorithm, parameters={"kills": "5"})
    with pytest.raises(LossError) as lost:
        search(trial, range(40), workers=2, file=file)
    assert re.fullmatch(
        r"worker \d, with seeds 4 to 5, was killed by SIGKILL \(was it killed, or out of memory\?\)",
        str(lost.value),
    )


def test_a_failure_is_told_at_once(moody: tuple[Algorithm, Path], nobody_left: None) -> None:
    algorithm, file = moody
    trial = Trial(algorithm=algorithm, parameters={"bad": "0", "sleeps": "1 2"})
    begin = time.monotonic()
    report = search(trial, range(16), workers=2, file=file)
    assert report.failure is not None
    assert time.monotonic() - begin < 60


def test_an_interruption_leaves_nobody_behind(moody: tuple[Algorithm, Path], nobody_left: None) -> None:
    algorithm, file = moody

    def interrupt(_: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        search(Trial(algorithm=algorithm), range(400), workers=2, file=file, progress=interrupt)


def test_it_takes_no_memory_for_seeds_that_are_not_tried() -> None:
    assert search(listed(2), range(10**12)).tried == 3


def test_what_is_no_trial_is_not_searched() -> None:
    with pytest.raises(UsageError, match="isn't a trial"):
        search(find("raft"), range(3))  # type: ignore[arg-type]


@pytest.mark.parametrize("workers", [1, 2])
def test_all_that_fail_are_counted(workers: int, moody: tuple[Algorithm, Path], nobody_left: None) -> None:
    algorithm, file = moody
    trial = Trial(algorithm=algorithm, parameters={"bad": "3 5 17 40"})
    report = search(trial, range(50), workers=workers, file=file, keeps_going=True)
    assert (report.tried, report.failed) == (50, 4)
    assert report.failure is not None
    assert report.failure.seed == 3
