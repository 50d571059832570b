"""The search: the same model on many seeds, on several processes, for the first one on which it fails.

The first is the one with the smallest seed, whichever process was faster: seeds are handed out in blocks, and a failure
counts when all blocks before its own are done. So the report depends on the seeds alone.
"""

from __future__ import annotations

import io
import math
import signal
import threading
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from pathlib import Path
from types import FrameType
from typing import Protocol, Self, TypeVar

import msgspec
from msgspec import Struct, json

from worldline.files.saving import save
from worldline.history.outcome import Outcome
from worldline.model.errors import ConfigurationError, Stuck, UsageError, WorldlineError
from worldline.processes.failures import BreakOff
from worldline.processes.supervision import WorkerFarm
from worldline.search.day import Day
from worldline.search.properties import Property

# A trial: one run with everything that it depends on, so that it can be had again; and what comes of it.

_MANY = 4  # A fourth of the faults.


class Tried(Protocol):
    """What a search tries, whichever room it is of."""

    @property
    def seed(self) -> int: ...

    @property
    def day(self) -> Day | None: ...

    @property
    def properties(self) -> Sequence[Property]: ...

    def with_seed(self, seed: int) -> Self:
        """Return it with another seed, and on the day which that seed draws unless it has one."""

    def each_schedule(self) -> Iterator[Self]:
        """Yield what is to be run of it, one after the other: itself, or one trial for each of several schedules."""

    def run(self) -> TrialOutcome:
        """Run it; a failure of the model is an outcome, too."""

    def measured(self) -> tuple[TrialOutcome, int]:
        """Run it; return as well how many lines tell what happens, up to the failure: what a reader has to read."""


@dataclass(frozen=True, kw_only=True)
class TrialOutcome(Outcome):
    """The outcome of a trial.

    `faults` is how many happened, `faults_in_vain` how many of them when nothing was left to do, as far as that is
    known: of nodes, inline, if they don't fail. `schedules` is how many were tried: one, or all that were asked for.
    `unseen` are properties that weren't checked. `day` is what of the
    kind of day made a difference, if that is known.
    """

    seed: int
    faults: int
    faults_in_vain: int = 0
    schedules: int = 1
    unseen: tuple[str, ...] = ()
    day: Day | None = field(default=None, compare=False)

    @classmethod
    def failed(cls, seed: int, failure: WorldlineError) -> TrialOutcome:
        """Return the outcome of a trial of which only the failure is known."""
        return cls(digest=b"", now=failure.at or 0, events=0, failure=failure, is_cut=True, seed=seed, faults=0)

    def remarks(self) -> list[str]:
        found = []
        if self.unseen:
            found.append(f"not checked, since that needs the inline executor: {'; '.join(self.unseen)}")
        return found + remarks_on(self.faults, self.faults_in_vain)


def remarks_on(faults: int, in_vain: int) -> list[str]:
    """Say that faults came too late to show anything, if it is a good part of them."""
    if not in_vain or _MANY * in_vain < faults:
        return []
    told = f"{in_vain:,} of {faults:,} fault{'' if faults == 1 else 's'} came when nothing was left to do"
    return [f"{told}: to try more, end the run earlier (--until)"]


# A limit for code that may never come back: a loop without an end in a user's program.

SECONDS_MAX = 60.0
"""How long a run may take unless the caller says otherwise."""


_AGAIN_S = 1.0  # An alarm that rings where Python swallows exceptions, in a destructor, has to ring again.


class Expired(BreakOff):
    """Time is up. Not an `Exception`: code that goes on whatever happens would go on."""

    def stuck(self) -> Stuck:
        """Return the error that says so."""
        return Stuck(
            str(self),
            advice="is there an endless loop? If it needs longer, raise --seconds-max, or seconds_max",
            is_expired=True,
        )


@contextmanager
def deadline(seconds: float | None) -> Iterator[None]:
    """End what runs here with `Stuck` if it takes longer; only in a main thread, where the system allows it."""
    is_possible = hasattr(signal, "setitimer") and threading.current_thread() is threading.main_thread()
    if seconds is None or seconds == math.inf or not is_possible:
        yield
        return

    def ring(_number: int, _frame: FrameType | None) -> None:
        raise Expired(f"it has taken more than {seconds:g} second{'' if seconds == 1 else 's'} of real time")

    before = signal.signal(signal.SIGALRM, ring)
    began = time.monotonic()
    left, interval = signal.setitimer(signal.ITIMER_REAL, seconds, _AGAIN_S)
    try:
        yield
    except Expired as expired:
        raise expired.stuck() from None
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        if left:  # The caller's own alarm is still to ring: when it would have, or at once.
            signal.setitimer(signal.ITIMER_REAL, max(left - (time.monotonic() - began), 1e-6), interval)


# Silence for what is run many times over.


@contextmanager
def quietly() -> Iterator[None]:
    """Swallow what programs print: a thousand times over, it is in the way."""
    with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
        yield


_BLOCK_MAX = 32
_BLOCKS_PER_WORKER = 8  # So many at least, lest one worker has nothing left to do for long.
_AHEAD = 3  # Blocks handed out per worker before the first has come back.


class Report(Struct, frozen=True, kw_only=True):
    """What a search found. `digest` covers the histories of all seeds that were tried."""

    tried: int
    events: int
    faults: int
    faults_in_vain: int  # Of those, how many came when nothing was left to do.
    failed: int  # How many seeds; 1 at the most, unless it kept going.
    failure: TrialOutcome | None  # The first of them.
    digest: str
    schedules: int = 0  # As many as seeds, or more.


Recipe = Callable[[], Tried]
"""How another process makes the trial: a `partial` of a module's function, which can be sent there."""


_Block = list[TrialOutcome]
"""What came of some seeds: of all, or those up to the first that fails."""


def search_seeds(
    trial: Tried,
    seeds: Sequence[int],
    *,
    workers: int = 1,
    recipe: Callable[[], Recipe],
    seconds_max: float | None = SECONDS_MAX,
    keeps_going: bool = False,
    progress: Callable[[int], None] | None = None,
) -> Report:
    """Try seeds in order until one fails; the `recipe` is asked for where there are other processes.

    With `keeps_going`, the other seeds are tried too, and failures are counted.

    A seed that takes more than `seconds_max` seconds of real time counts as a failure: it probably never ends.
    """
    if workers < 1:
        raise UsageError(f"there can't be {workers} workers", advice="use at least 1")
    size = max(1, min(_BLOCK_MAX, len(seeds) // (workers * _BLOCKS_PER_WORKER)))
    blocks = (seeds[start : start + size] for start in range(0, len(seeds), size))
    tried = events = faults = schedules = in_vain = failed = 0
    hashed = blake2b(digest_size=16)
    failure: TrialOutcome | None = None
    limits = seconds_max, keeps_going
    results = (
        (_try_block(trial, block, *limits) for block in blocks)
        if workers == 1
        else _tried_elsewhere(recipe(), blocks, workers, limits)
    )
    with closing(results):
        for block in results:
            tried += len(block)
            for outcome in block:
                events += outcome.events
                faults += outcome.faults
                schedules += outcome.schedules
                in_vain += outcome.faults_in_vain
                hashed.update(outcome.digest)
                if outcome.failure is not None:
                    failed += 1
                    failure = failure or outcome
            if progress is not None:
                progress(tried)
            if failure is not None and not keeps_going:
                break
    return Report(
        tried=tried,
        events=events,
        faults=faults,
        schedules=schedules,
        faults_in_vain=in_vain,
        failed=failed,
        failure=failure,
        digest=hashed.hexdigest(),
    )


def _try_block(trial: Tried, seeds: Sequence[int], seconds_max: float | None, keeps_going: bool) -> _Block:
    block: _Block = []
    for seed in seeds:
        block.append(_tried_all(trial.with_seed(seed), seconds_max))
        if block[-1].failure is not None and not keeps_going:
            break
    return block


def _tried_all(trial: Tried, seconds_max: float | None) -> TrialOutcome:
    """Try all schedules of a seed, until one fails."""
    events = faults = number = 0
    hashed = blake2b(digest_size=16)
    for single in trial.each_schedule():
        outcome = _tried(single, seconds_max)
        events, faults, number = events + outcome.events, faults + outcome.faults, number + 1
        hashed.update(outcome.digest)
        if outcome.failure is not None:
            break
    if number == 1:
        return outcome
    return replace(outcome, events=events, faults=faults, schedules=number, digest=hashed.digest())


def _tried(trial: Tried, seconds_max: float | None) -> TrialOutcome:
    try:
        with deadline(seconds_max):
            return trial.run()
    except Stuck as stuck:  # It took too long already to set it up.
        return TrialOutcome.failed(trial.seed, stuck)


# -- In other processes


_Limits = tuple[float | None, bool]


def _begin(recipe: Recipe, limits: _Limits) -> tuple[Tried, _Limits]:
    """Make a process ready."""
    return recipe(), limits


def _try_there(given: tuple[Tried, _Limits], seeds: Sequence[int]) -> _Block:
    trial, limits = given
    return _try_block(trial, seeds, *limits)


def _tried_elsewhere(
    recipe: Recipe, blocks: Iterator[Sequence[int]], workers: int, limits: _Limits
) -> Generator[_Block]:
    with WorkerFarm(workers, _begin, (recipe, limits), _try_there, _described) as farm:
        yield from _in_order(blocks, farm, workers * _AHEAD)


def _in_order(
    blocks: Iterator[Sequence[int]], farm: WorkerFarm[Sequence[int], _Block], ahead_max: int
) -> Iterator[_Block]:
    """Hand blocks out, so many ahead of what was yielded, and yield what came of them in their order."""
    numbered = enumerate(blocks)
    done: dict[int, _Block | WorldlineError] = {}
    given = yielded = 0
    is_more = True
    while True:
        while is_more and farm.has_room and given < yielded + ahead_max:
            piece = next(numbered, None)
            if piece is None:
                is_more = False
            else:
                farm.give(*piece)
                given += 1
        if yielded == given:
            return
        done.update(farm.take())
        while yielded in done:
            block = done.pop(yielded)
            if isinstance(block, WorldlineError):
                raise block
            yielded += 1
            yield block


def _described(seeds: Sequence[int]) -> str:
    return f"seed {seeds[0]}" if len(seeds) == 1 else f"seeds {seeds[0]} to {seeds[-1]}"


# -- Saved failures: a trial that is written down whole, to be run again elsewhere

SAVED_FORMAT = 1

S = TypeVar("S", bound=Struct)


def write_saved(path: Path, saved: Struct) -> None:
    """Write a trial as JSON that people can read, with the number of its format first."""
    facts = {"format": SAVED_FORMAT, **msgspec.to_builtins(saved)}
    save(path, json.format(json.encode(facts), indent=1) + b"\n")


def read_saved(path: Path, kind: type[S], what: str, advice: str | None = None) -> S:
    """Read a trial of this kind, which has a `format`; `what` is what such a file is called."""
    try:
        saved = json.decode(path.read_bytes(), type=kind)
    except OSError as error:
        raise ConfigurationError(f"{path} can't be read: {error.strerror or error}") from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{path} isn't {what}: {error}", advice=advice) from error
    number: int = saved.format  # type: ignore[attr-defined] # Every kind has it.
    if number != SAVED_FORMAT:
        raise ConfigurationError(f"{path} has the format {number}", advice=f"this version reads {SAVED_FORMAT}")
    return saved
