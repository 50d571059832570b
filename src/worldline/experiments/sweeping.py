"""Sweeps: the same model with many parameters and seeds, on all cores, into one table.

A run depends on its target, its parameters and its seed alone, so the table does, too: workers only decide when a row
comes in. Runs are handed out in small blocks, as many as take about a twentieth of a second. If a worker dies, the runs
of its block are tried one by one, so that exactly the one that kills its process is a row with that error.
"""

from __future__ import annotations

import csv
import pickle
import shlex
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from hashlib import blake2b
from importlib.metadata import version
from inspect import getsourcefile, isfunction
from itertools import product
from math import isfinite, prod
from pathlib import Path
from typing import Any, NamedTuple

from msgspec import Struct, json
from msgspec.structs import replace

from worldline.experiments.measures import MSER5, FieldMonitors, WarmUp, measured, own_numbers
from worldline.experiments.statistics import load_scipy, mean_of, runs_wanted
from worldline.experiments.table import SUFFIX, Cell, Row, SweepFile, SweepTable, read_sweep
from worldline.files.loading import pairs
from worldline.files.saving import file_named
from worldline.model.errors import ConfigurationError, Interrupted, LossError, Stuck, UsageError, WorldlineError, shown
from worldline.model.randomness import Stream
from worldline.model.reading import as_time
from worldline.model.time import format_time
from worldline.processes.executor import Executor, Kind, as_executor
from worldline.processes.ranks import RankGroup, gathered
from worldline.processes.supervision import WorkerFarm
from worldline.search.searching import SECONDS_MAX, deadline, quietly
from worldline.targets import Ready, RunOptions, look_again, prepare
from worldline.targets.ready import TOML, WORLDS, parts_of

# --- The design of a sweep: which combinations of parameters are run ---
#
# A parameter has levels, ``doctors=2,3,4``, or a range, ``rate=0.5..2``. All combinations of levels are run, unless a
# design says otherwise: ``latin:40`` and ``random:40`` take 40 points, in which a parameter's values are spread over
# its levels or its range, evenly in every single parameter (a Latin hypercube), or drawn independently of each other.
# A file, ``FILE.csv``, has a point in each line. What is drawn depends on the first seed and the parameter's name
# alone.

RUNS_MAX = 1_000_000
"""How many runs a sweep may have."""

_GRID = "grid"
_OPENING, _CLOSING = "([{", ")]}"
_FORM = "write latin:40, random:40 or FILE.csv"


class Design(Struct, frozen=True):
    """The parameters' names, and the points: their values as they are written, in the order of the names."""

    parameters: tuple[str, ...]
    points: tuple[tuple[str, ...], ...]

    def settings(self, point: int) -> tuple[str, ...]:
        """Return a point as `--set` takes it."""
        return tuple(f"{name}={value}" for name, value in zip(self.parameters, self.points[point], strict=True))

    def cells(self, point: int) -> tuple[Cell, ...]:
        """Return a point as its row has it: numbers are numbers."""
        return tuple(map(as_cell, self.points[point]))


def made_design(settings: Sequence[str], kind: str = _GRID, seed: int = 0, seeds: int = 1) -> Design:
    """Make the design of settings such as ``doctors=2,3,4``, for so many seeds at each point."""
    given = _levels(settings)
    if kind == _GRID:
        _check_count(prod(map(len, given.values())) * seeds)
        for name, levels in given.items():
            if len(levels) == 1 and _ends(levels[0]):
                raise UsageError(
                    f"--set {name}={levels[0]} is a range, which has no levels to combine",
                    advice=f"list them: {name}=1,2,3; or draw some: --design latin:40",
                )
        return Design(tuple(given), tuple(product(*given.values())))
    word, colon, number = kind.partition(":")
    if colon and word in ("latin", "random"):
        return _drawn(given, word, _number(kind, number), seed, seeds)
    if kind.endswith(".csv"):
        return _from_file(Path(kind), given, seeds)
    raise UsageError(f"there is no design {shown(kind)}", advice=_FORM)


def as_cell(text: str) -> Cell:
    """Return a value as a number, if it is one. A table has only finite ones: others stay words."""
    for kind in (int, float):
        try:
            number = kind(text)
        except ValueError:
            continue
        return number if isfinite(number) else text
    return text


def as_settings(given: Mapping[str, Any]) -> tuple[str, ...]:
    """Return parameters as `--set` takes them; each has one value, or a list of them."""
    found = []
    for name, values in given.items():
        several = values if isinstance(values, list | tuple | range) else [values]
        if not several:
            raise UsageError(f"{name} has no values")
        found.append(f"{name}={','.join(_as_text(each) for each in several)}")
    return tuple(found)


def _as_text(value: Any) -> str:
    return "yes" if value is True else "no" if value is False else str(value)


def _levels(settings: Sequence[str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for setting in settings:
        ((name, text),) = pairs([setting]).items()
        if name in found:
            raise UsageError(f"--set {name} is given twice", advice=f"list its values: --set {name}=1,2,3")
        found[name] = split_levels(text)
        if "" in found[name]:
            raise UsageError(f"--set {setting} has an empty value", advice=f"write --set {name}=1,2,3")
        twice = [each for each in found[name] if found[name].count(each) > 1]
        if twice:
            raise UsageError(f"--set {setting} has {twice[0]} twice", advice="repeat runs with --seeds")
    return found


def split_levels(text: str) -> list[str]:
    """Split a text at its commas, but for those in brackets: ``uniform(1ms, 5ms)`` is one value."""
    parts, depth = [""], 0
    for letter in text:
        depth += (letter in _OPENING) - (letter in _CLOSING)
        if letter == "," and depth <= 0:
            parts.append("")
        else:
            parts[-1] += letter
    return [part.strip() for part in parts]


def _check_count(runs: int) -> None:
    if runs > RUNS_MAX:
        raise UsageError(
            f"that makes {runs:,} runs, and a sweep has at most {RUNS_MAX:,}",
            advice="take fewer values or seeds, or draw some points: --design latin:1000",
        )


def _number(kind: str, text: str) -> int:
    if not text.isascii() or not text.isdecimal() or not int(text):
        raise UsageError(f"--design {kind} has no number of points", advice=_FORM)
    return int(text)


# -- Drawn points


def _ends(text: str) -> tuple[str, str] | None:
    low, dots, high = text.partition("..")
    return (low.strip(), high.strip()) if dots and low.strip() and high.strip() else None


def _drawn(given: Mapping[str, list[str]], word: str, count: int, seed: int, seeds: int) -> Design:
    if not given:
        raise UsageError("a design needs parameters", advice="--set rate=0.5..2")
    _check_count(count * seeds)
    columns = []
    for name, levels in given.items():
        stream = Stream(seed, "design", name)
        places = list(range(count))
        stream.shuffle(places)
        shares = [(place + stream.random()) / count if word == "latin" else stream.random() for place in places]
        columns.append(_spread(name, levels, shares))
    return Design(tuple(given), tuple(zip(*columns, strict=True)))


def _spread(name: str, levels: Sequence[str], shares: Sequence[float]) -> list[str]:
    """Return the values at these shares of a range, or of a list of levels."""
    ends = _ends(levels[0]) if len(levels) == 1 else None
    if ends is None:
        return [levels[int(share * len(levels))] for share in shares]
    low, high = (_as_number(name, levels[0], end) for end in ends)
    is_time = isinstance(as_cell(ends[0]), str)
    if not low < high:
        raise UsageError(f"--set {name}={levels[0]} is no range", advice="its first number is the smaller one")
    if isinstance(low, int) and isinstance(high, int) and not is_time:
        return [str(low + int(share * (high - low + 1))) for share in shares]
    values = [low + share * (high - low) for share in shares]
    return [format_time(round(value)) if is_time else repr(value) for value in values]


def _as_number(name: str, text: str, end: str) -> int | float:
    cell = as_cell(end)
    if not isinstance(cell, str) and cell is not None:
        return cell
    try:
        return as_time(end)
    except WorldlineError as error:
        raise UsageError(
            f"--set {name}={text} is no range of numbers or times", advice="list its values: a,b,c"
        ) from error


# -- A file of points


def _from_file(file: Path, given: Mapping[str, list[str]], seeds: int) -> Design:
    """Read a point from each line; parameters that are given besides have one value each."""
    for name, levels in given.items():
        if len(levels) > 1:
            raise UsageError(f"--set {name} has several values, and {file} has the points", advice="put it in there")
    try:
        with file.open(encoding="utf-8-sig", newline="") as lines:
            rows = [(number, row) for number, row in enumerate(csv.reader(lines), 1) if any(map(str.strip, row))]
    except OSError as error:
        raise UsageError(f"{file} can't be read: {error.strerror or error}") from error
    except (UnicodeDecodeError, csv.Error) as error:
        raise UsageError(f"{file} can't be read: {error}") from error
    if len(rows) < 2:
        raise ConfigurationError(
            f"{file} has no points", advice="its first line names the parameters, each other is one"
        )
    names = [name.strip() for name in rows[0][1]]
    if "" in names or len({*names}) < len(names) or {*names} & {*given}:
        raise ConfigurationError(f"{file}: its first line doesn't name each parameter once", advice="doctors,arrival")
    for number, row in rows[1:]:
        if len(row) != len(names):
            raise ConfigurationError(f"{file}: line {number} has {len(row)} values for {len(names)} parameters")
    _check_count((len(rows) - 1) * seeds)
    fixed = tuple(levels[0] for levels in given.values())
    points = tuple((*(cell.strip() for cell in row), *fixed) for _, row in rows[1:])
    return Design((*names, *given), points)


# --- The runs of a sweep ---


EXECUTORS: tuple[Kind, ...] = ("inline", "processes", "mpi")
"""What sweeps run on. Each single run is inline."""

_BLOCK_S = 0.05
_BLOCK_MAX = 64
_GRACE_S = 10.0  # Beyond the limit of a run, before its process is killed: it should have ended itself.
_CHECKED_S = 2.0
_FAILING_MIN = 3  # So many points are tried in any case, if the models of all fail.
_SEED_MAX = 2**62
_SEEDS, _SEEDS_PRECISE = 10, 1_000  # Unless it is said how many.

Done = Mapping[tuple[int, int], Mapping[str, Cell]]
"""The runs that are there, by point and replicate, with what is needed of their measures."""

Progress = Callable[[int, int], None]
"""Told how many runs are there, and of how many."""


class SweepRequest(Struct, frozen=True, kw_only=True):
    """What is swept: all that rows depend on. It can be sent to other processes.

    `options` are those of every run, but for the seed and the settings, which `design` has. `first` is the first seed;
    None: the target has no seeds. Columns are `measures`, or all there are; `fields` of topics are measured, too.
    """

    target: str
    design: Design
    first: int | None
    options: RunOptions = RunOptions()
    measures: tuple[str, ...] = ()
    fields: tuple[str, ...] = ()
    warm_up: WarmUp = 0
    common: bool = False
    antithetic: bool = False
    seconds_max: float = SECONDS_MAX

    def seed(self, point: int, replicate: int) -> int | None:
        """Return the seed of a run: one of its own, or with common draws, the same at all points.

        Antithetic runs come in pairs: the second has the mirrored draws of the first, those of seed -1 - n.
        """
        if self.first is None:
            return None
        number = replicate // 2 if self.antithetic else replicate
        seed = self.first + (number if self.common else number * len(self.design.points) + point)
        return -1 - seed if self.antithetic and replicate % 2 else seed

    def run_options(self, point: int, replicate: int) -> RunOptions:
        return replace(self.options, seed=self.seed(point, replicate), settings=self.design.settings(point))

    def command(self, point: int, replicate: int) -> str:
        """Return the command that repeats a run."""
        words = self.run_options(point, replicate).words()
        joined = [f"{word}={words[place + 1]}" if word == "--seed" else word for place, word in enumerate(words)]
        kept = [word for place, word in enumerate(joined) if not place or words[place - 1] != "--seed"]
        return shlex.join(["worldline", "run", self.target, *kept])

    def facts(self, ready: Ready) -> dict[str, str]:
        """Return what has to be the same for rows to be of one table."""
        points = blake2b(json.encode(self.design.points), digest_size=8).hexdigest()
        return {
            "target": self.target,
            "code": json.encode(ready.provenance().code).decode(),
            "worldline": version("worldline"),
            "design": points,
            "until": self.options.until or "",
            "options": " ".join(replace(self.options, until=None, executor=None).words()),
            "measures": ", ".join(self.measures),
            "fields": ", ".join(self.fields),
            "warm_up": str(self.warm_up),
            "seed": str(self.first),
            "common": "yes" if self.common else "no",
            "antithetic": "yes" if self.antithetic else "no",
        }


class PlannedRun(NamedTuple):
    """Which run: at which point, and the how manieth there."""

    point: int
    replicate: int


Result = tuple[Row, WorldlineError | None]
"""A row; and that it lacks a measure which was asked for, if it does."""


# -- One run


def run_one(request: SweepRequest, run: PlannedRun) -> Result:
    """Run it, and return its row; a failure is a row, too."""
    try:
        with deadline(request.seconds_max), quietly():
            ready = prepare(request.target, request.run_options(*run))
            fields = FieldMonitors(request.fields, encodings_of(ready)) if request.fields else None
            outcome = ready.run(fields)
            if outcome.failure is not None:
                raise outcome.failure
            ready.verify(outcome)
            own = own_numbers(ready.own_measures(outcome), ready.name)
    except Interrupted:
        raise
    except WorldlineError as error:
        return failed_row(request, run, error), None
    found = measured(outcome, fields, own, request.warm_up)
    unknown: WorldlineError | None = None if fields is None else fields.missing()
    columns: dict[str, Cell] = {}
    for name in request.measures or ("",):
        try:
            columns.update(found.columns([name] if name else ()))
        except UsageError as error:
            if "measure" not in error.facts:
                raise
            unknown = unknown or error
    return replace(_row(request, run), measures=columns, digest=outcome.digest.hex()), unknown


def failed_row(request: SweepRequest, run: PlannedRun, error: WorldlineError) -> Row:
    return replace(_row(request, run), error=str(error), command=request.command(*run))


def _row(request: SweepRequest, run: PlannedRun) -> Row:
    return Row(run.point, run.replicate, request.seed(*run), request.design.cells(run.point))


def encodings_of(ready: Ready) -> dict[str, str]:
    """Return how payloads are encoded, by topic, where a federation's file says so."""
    topics = getattr(ready, "topics", {})
    return {name: topic.encoding for name, topic in topics.items()}


# -- Many runs, on an executor


def _rows_inline(request: SweepRequest, runs: Sequence[PlannedRun]) -> Iterator[Result]:
    for run in runs:
        yield run_one(request, run)


def _begin(request: SweepRequest) -> SweepRequest:
    return request


def _work(request: SweepRequest, block: Sequence[PlannedRun]) -> tuple[list[Result], float]:
    began = time.monotonic()
    return [run_one(request, run) for run in block], time.monotonic() - began


def _described(block: Sequence[PlannedRun]) -> str:
    return f"run {block[0].replicate} of point {block[0].point}"


def _rows_of_workers(request: SweepRequest, runs: Sequence[PlannedRun], workers: int) -> Iterator[Result]:
    """Yield rows as they come in. Blocks grow with how quick the runs are, and shrink towards the end."""
    waiting, under_way = list(reversed(runs)), dict[int, list[PlannedRun]]()
    alone: list[PlannedRun] = []  # Those of blocks whose worker has died: one by one.
    number, each_s = 0, _BLOCK_S

    def patience_s(block: Sequence[PlannedRun]) -> float:
        return request.seconds_max * len(block) + _GRACE_S

    with WorkerFarm(workers, _begin, (request,), _work, _described, patience_s) as farm:
        while waiting or alone or under_way:
            while (waiting or alone) and farm.has_room:
                size = max(1, min(_BLOCK_MAX, int(_BLOCK_S / each_s), len(waiting) // (4 * workers)))
                block = [alone.pop()] if alone else [waiting.pop() for _ in range(min(size, len(waiting)))]
                under_way[number] = block
                farm.give(number, block)
                number += 1
            for place, done in farm.take():
                block = under_way.pop(place)
                if not isinstance(done, WorldlineError):
                    results, took_s = done
                    each_s = max(1e-6, took_s / len(block))
                    yield from results
                elif not isinstance(done, LossError | Stuck):
                    raise done
                elif len(block) > 1:
                    alone += reversed(block)
                else:
                    yield failed_row(request, block[0], done), None


def _run_on_ranks(
    request: SweepRequest, runs: Sequence[PlannedRun] | None, take: Callable[[Result], None], patience_s: float
) -> bool:
    """Do this rank's share of the runs, which rank 0 knows, and which takes all rows; return whether there were any."""
    failure: WorldlineError | None = None

    def took(*results: Result) -> int:
        nonlocal failure
        for result in results:
            try:
                if failure is None:
                    take(result)
            except WorldlineError as error:  # The other ranks know nothing of it, and go on to the end of their share.
                failure = error
        return len(results)

    def work(ranks: RankGroup) -> bool:
        planned = ranks.exchanged(runs)[0]
        if planned is None:
            return False
        heard = 0
        for run in planned[ranks.rank :: ranks.count]:
            result = run_one(request, run)
            if ranks.rank:
                ranks.peers.post(0, pickle.dumps(result))
            else:
                heard += took(result, *(pickle.loads(frame) for _, frame in ranks.peers.poll()))
        while not ranks.rank and heard < len(planned):
            heard += took(*(pickle.loads(frame) for _, frame in ranks.peers.wait()))
        return True

    is_more = gathered(work, patience_s)[0] is True
    if failure is not None:
        raise failure
    return is_more


def run_all(
    request: SweepRequest, runs: Sequence[PlannedRun], executor: Executor, take: Callable[[Result], None]
) -> None:
    """Run them; give the rows to `take` as they come in, in any order."""
    if executor.kind == "mpi":
        _run_on_ranks(request, runs, take, executor.patience_s)
        return
    workers = min(executor.count, len(runs))
    is_inline = executor.kind == "inline"
    for result in _rows_inline(request, runs) if is_inline else _rows_of_workers(request, runs, workers):
        take(result)


# -- A sweep


def independent(sample: Mapping[int, Cell], antithetic: bool) -> dict[int, float]:
    """Return the values of a sample that don't depend on each other, by number: of antithetic pairs, the means."""
    values = {each: value for each, value in sample.items() if isinstance(value, int | float)}
    if not antithetic:
        return values
    whole = [each for each in values if each % 2 == 0 and each + 1 in values]
    return {each // 2: mean_of((values[each], values[each + 1])) for each in whole}


class Sweep:
    """A sweep that is ready to go: what is run, how often, and where its rows go."""

    def __init__(
        self, request: SweepRequest, path: Path, facts: Mapping[str, str], *, seeds: int, precise: float | None = None
    ) -> None:
        """There are `seeds` runs at each point, or only as many as it takes for the measures to be `precise`."""
        self.request = request
        self.seeds = seeds
        self._precise = precise
        self.path = path
        self._facts = facts
        self.done = 0

    def run(
        self,
        executor: Executor,
        *,
        replaces: bool = False,
        retries: bool = False,
        progress: Progress = lambda _done, _total: None,
    ) -> SweepTable | None:
        """Run what isn't there yet, and return the table; None on ranks of MPI other than the first."""
        if not executor.is_main:
            while _run_on_ranks(self.request, None, lambda _: None, executor.patience_s):
                pass
            return None
        try:
            with SweepFile(self.path, self._facts, self.request.design.parameters, replaces=replaces) as file:
                self._fill(file, executor, retries, progress)
                file.finish()
        finally:
            if executor.kind == "mpi":  # The others wait for what is next: nothing.
                _run_on_ranks(self.request, None, lambda _: None, executor.patience_s)
        return read_sweep(self.path)

    def _fill(self, file: SweepFile, executor: Executor, retries: bool, progress: Progress) -> None:
        needed = () if self._precise is None else self.request.measures
        done = file.done(needed, but_failures=retries)
        wanted: list[PlannedRun] = []
        doubtful: list[Row] = []  # What the first run doesn't measure either is refused, and leaves no file.

        def take(result: Result) -> None:
            row, unknown = result
            if unknown is not None and (0, 0) not in done:
                if (row.point, row.replicate) == (0, 0):
                    raise unknown
                doubtful.append(row)
                return
            keep(row)
            while doubtful and (0, 0) in done:
                keep(doubtful.pop(0))

        def keep(row: Row) -> None:
            file.add(row)
            done[row.point, row.replicate] = {name: row.measures.get(name) for name in needed}
            self.done += 1
            progress(self.done, len(wanted))

        while True:
            wanted = self._wanted(done)
            missing = [run for run in wanted if run not in done]
            self.done = len(wanted) - len(missing)
            progress(self.done, len(wanted))
            if not missing:
                return
            run_all(self.request, missing, executor, take)

    def _wanted(self, done: Done) -> list[PlannedRun]:
        """Return all runs that are wanted as far as it is known; those that are there included."""
        points = range(len(self.request.design.points))
        counts = [self._count(done, point) for point in points]
        most = max(counts, default=0)
        return [PlannedRun(point, each) for each in range(most) for point in points if each < counts[point]]

    def _count(self, done: Done, point: int) -> int:
        request = self.request
        if self._precise is None:
            return self.seeds

        def samples(count: int) -> list[list[float]] | None:
            if any((point, each) not in done for each in range(count)):
                return None
            found = ({each: done[point, each].get(name) for each in range(count)} for name in request.measures)
            return [list(independent(each, request.antithetic).values()) for each in found]

        return runs_wanted(samples, self._precise, self.seeds)


def prepared_sweep(
    target: str,
    settings: Sequence[str],
    *,
    options: RunOptions,
    design: str = "grid",
    seeds: int | None = None,
    precise: float | None = None,
    path: Path | None = None,
    **asked: Any,
) -> Sweep:
    """Look at what is asked for, refuse what can't be done, and return the sweep; `asked` are more of the request."""
    target = str(Path(target))  # ./shop.py is shop.py.
    look_again()
    seeds = _usual_seeds(target, precise) if seeds is None else seeds
    if options.executor is not None:
        raise UsageError("the executor is the sweep's", advice="each run of it is inline")
    if precise is not None:
        _check_precise(precise, asked.get("measures", ()))
    first_point = made_design(settings, design, options.seed or 0, seeds)
    own = _ready_point(target, options, first_point)
    options = replace(options, executor=own.options.executor)
    first = own.seed if own.kind != "world" else None
    if first is None and seeds > 1:
        raise UsageError(f"{target}: a world draws nothing, so all its runs are the same", advice="leave --seeds out")
    if asked.get("antithetic"):
        _check_antithetic(first, seeds)
    if first is not None and not -_SEED_MAX < first + seeds * len(first_point.points) < _SEED_MAX:
        raise UsageError(f"seeds from {first} on are too large", advice="begin with a smaller --seed")
    planned = made_design(settings, design, first or 0, seeds)
    request = SweepRequest(
        target=target,
        design=planned,
        first=first,
        options=replace(options, seed=None, settings=()),
        **{**asked, "warm_up": as_warm_up(asked.get("warm_up", 0))},
    )
    _check_points(request, seeds)
    where = Path(file_named(own.name, SUFFIX)) if path is None else path
    return Sweep(request, where, request.facts(own), seeds=seeds, precise=precise)


def _usual_seeds(target: str, precise: float | None) -> int:
    if parts_of(target)[0].suffix in WORLDS:
        return 1
    return _SEEDS if precise is None else _SEEDS_PRECISE


def _ready_point(target: str, options: RunOptions, design: Design) -> Ready:
    """Make the first run ready, or if its model can't be made, that of another point: it is to be a row like others.

    If no model can be made, the first failure says so; where that takes long, after the first few.
    """
    failure: WorldlineError | None = None
    began = time.monotonic()
    for number in range(len(design.points)):
        try:
            return _run_executor(target, replace(options, settings=design.settings(number)))
        except WorldlineError as error:
            if "maker" not in error.facts:
                raise
            failure = failure or error
        if number + 1 >= _FAILING_MIN and time.monotonic() - began > _CHECKED_S:
            break
    assert failure is not None
    raise failure


def _run_executor(target: str, options: RunOptions) -> Ready:
    """Make the first run ready: a federation's file in this process, if its programs can be."""
    if parts_of(target)[0].suffix != TOML:
        return prepare(target, options)
    try:
        return prepare(target, replace(options, executor="in-process"))
    except UsageError as refused:
        try:
            return prepare(target, options)  # Its participants are commands, which need processes of their own.
        except UsageError:
            raise refused from None


def _check_precise(precise: float, measures: Sequence[str]) -> None:
    if not 0 < precise < 1:
        raise UsageError(f"{precise:g} isn't a precision", advice="write 2%, or 0.02: a share of the mean")
    if not measures:
        raise UsageError("it has to be said what is to be precise", advice="--measure wait.mean")
    load_scipy()


def _check_antithetic(first: int | None, seeds: int) -> None:
    if first is None or first < 0:
        raise UsageError("antithetic pairs need seeds from 0 on", advice="--seed 0")
    if seeds % 2:
        raise UsageError(f"{seeds} runs aren't pairs", advice=f"--seeds {seeds + 1}")


def _check_points(request: SweepRequest, seeds: int) -> None:
    """Refuse values that the target refuses before anything is run: a point for each value, as long as it is quick.

    The last seed shows whether the target takes one. What its model raises is no refusal, but a row.
    """
    seen: set[tuple[str, str]] = set()
    began = time.monotonic()
    for number, point in enumerate(request.design.points):
        values = {*zip(request.design.parameters, point, strict=True)}
        if number == 0 or not values <= seen:
            seen |= values
            try:
                with quietly():
                    prepare(request.target, request.run_options(number, seeds - 1))
            except WorldlineError as error:
                if "maker" not in error.facts:
                    raise
            if time.monotonic() - began > _CHECKED_S:
                return


def as_warm_up(given: Any) -> WarmUp:
    """Take a time, or the word for one that is found."""
    return MSER5 if given == MSER5 else as_time(given, f"a warm-up (or {MSER5})")


def as_sweep_executor(given: Executor | str | None) -> Executor:
    """Take an executor or its text; all cores, if none is given."""
    return as_executor("workers" if given in (None, "processes") else given, EXECUTORS)


# -- From Python


def sweep(
    target: Any,
    settings: Mapping[str, Any] | None = None,
    *,
    seeds: int | None = None,
    design: str = "grid",
    path: str | Path | None = None,
    executor: Executor | str | None = None,
    until: str | None = None,
    seed: int | None = None,
    **more: Any,
) -> SweepTable:
    """Run a model with many parameters and seeds, and return the table of what its runs measure.

    The target is a file, or a function at the top level of one: ``sweep(model, {"doctors": [2, 3]}, seeds=100)``.
    The rows go to `path`, by default NAME.sweep; what is there already isn't run again. More are `measures`, `fields`,
    `warm_up`, `common`, `antithetic`, `seconds_max`, `until_precise`, as `worldline sweep` has them; `replaces` begins
    anew, `retries` runs again what has failed, and `progress(done, total)` is told how far it is.
    """
    how = {name: more.pop(name) for name in ("replaces", "retries", "progress") if name in more}
    precise = more.pop("until_precise", None)
    known = {"measures", "fields", "warm_up", "common", "antithetic", "seconds_max"}
    for name in more:
        if name not in known:
            from worldline.model.errors import nearest

            raise UsageError(f"a sweep takes no {shown(name)}", advice=nearest(name, known))
    made = prepared_sweep(
        target if isinstance(target, str) else str(target) if isinstance(target, Path) else _named(target),
        as_settings(settings or {}),
        options=RunOptions(seed=seed, until=until),
        design=str(design),
        seeds=seeds,
        precise=precise,
        path=None if path is None else Path(path),
        **{name: tuple(value) if isinstance(value, list) else value for name, value in more.items()},
    )
    table = made.run(as_sweep_executor(executor), **how)
    return read_sweep(made.path) if table is None else table


def _named(target: Any) -> str:
    """Return where a function is defined, as a target: workers load it from there."""
    file = getsourcefile(target) if isfunction(target) else None
    if file is None or not Path(file).is_file() or "." in target.__qualname__:
        raise UsageError(
            f"{shown(target)} can't be swept",
            advice="give a file, or a function at the top level of one: workers load it from there",
        )
    return f"{file}:{target.__qualname__}"
