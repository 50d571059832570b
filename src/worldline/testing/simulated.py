"""Simulated tests: an ordinary test function on a computer of its own, hosts as fixtures, one seed after the other.

A host is a fixture: its value is a `SimulatedHost`, which says what runs there. The test function runs on a computer
called `test`, for which no fault is drawn; when it returns, the run ends. For each seed, all programs are started anew.
What the process has once, modules and objects that fixtures made, is the same for all seeds and hosts: state that is
kept there makes runs differ, and that is said if it shows.
"""

from __future__ import annotations

import inspect
import mmap
import os
import select
import signal
import sys
import threading
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from functools import partial, update_wrapper
from pathlib import Path
from types import TracebackType
from typing import Any, NoReturn, TypedDict, Unpack

from msgspec import Struct, msgpack, structs

from worldline.federation.inprocess.trial import FederationTrial, shrink_federation
from worldline.federation.participant.participant import Participant
from worldline.federation.participant.program import Federation
from worldline.lock import RunEnded
from worldline.model.blame import own_line
from worldline.model.draws.distributions import DrawnValue
from worldline.model.errors import (
    ConfigurationError,
    InternalError,
    ModelError,
    Stuck,
    UsageError,
    WorldlineError,
    nearest,
    shown,
)
from worldline.model.faults import parse_fault_kinds
from worldline.model.latency import Latency
from worldline.model.links import Link, Network
from worldline.model.links import link as as_link
from worldline.model.reading import as_time
from worldline.model.text import counted
from worldline.model.time import TimeLike, format_time
from worldline.programs.machine import Machine
from worldline.programs.reals import here
from worldline.search.day import USUAL_DAY
from worldline.search.properties import Happening, Property, story_lines
from worldline.search.schedules import as_schedules
from worldline.search.searching import SECONDS_MAX, Report, TrialOutcome, search_seeds
from worldline.search.shrinking import Shrunk
from worldline.testing.plugin import SEED, SEEDS, WORKERS

TEST = "test"
"""The name of the computer on which a test function runs."""

_SEEDS = 100
_UNTIL = "60s"
_LINK = "uniform(1ms, 10ms)"

Function = Callable[..., Any]


# --- Hosts ---


@dataclass(frozen=True)
class SimulatedHost:
    """A computer in a simulated test. Its name is the fixture's; other hosts, and the test, connect to it by that."""

    name: str
    make: Callable[[], Machine] = field(repr=False)

    def __str__(self) -> str:
        return self.name


def host(
    what: Function | str | Path | None = None,
    *arguments: str,
    module: bool = False,
    folder: str | Path | None = None,
    volatile: bool = False,
    allow: Sequence[str] = (),
) -> Any:
    """Make a fixture that is a host, and runs something: an async function, a function, or a script with arguments.

    It decorates a function, whose parameters are fixtures as well; or it is called with a script's file, relative to
    the file that calls it, or with ``module=True`` and the name of a module, as for ``python -m``. The fixture's name
    is the host's. Other keywords are those of a `Machine`: `folder`, `volatile` and `allow`; with them alone, it
    returns what decorates a function.
    """
    __tracebackhide__ = True
    directory = Path(sys._getframe(1).f_code.co_filename).parent
    machine = partial(Machine, module=module, directory=directory, folder=folder, volatile=volatile, allow=allow)
    if what is None:
        return partial(_fixture, machine)
    if callable(what) and (arguments or module):
        raise ConfigurationError(f"the host {_name(what)} takes no arguments", advice="its parameters are fixtures")
    return _fixture(machine, what, *arguments)


def _fixture(machine: Callable[..., Machine], what: Function | str | Path, *arguments: str) -> Any:
    pytest = _pytest()
    parameters = _parameters(what) if callable(what) else ()

    def made(request: Any, **values: Any) -> SimulatedHost:
        program = partial(what, **values) if callable(what) else what
        found = SimulatedHost(request.fixturename, lambda: machine(program, *arguments))
        request.node.stash.setdefault(_HOSTS, []).append(found)
        return found

    made.__name__ = made.__qualname__ = _name(what) if callable(what) else "host"
    made.__doc__ = getattr(what, "__doc__", None)
    made.__module__ = getattr(what, "__module__", made.__module__)
    _take_fixtures(made, parameters)
    return pytest.fixture(made)


# --- Tests ---


class TestOptions(TypedDict, total=False):
    """The keywords of `test`."""

    seeds: int
    faults: str | None
    link: Link | Latency | TimeLike
    until: TimeLike
    schedules: str | None
    properties: Sequence[Property]
    seconds_max: float


def test(function: Function | None = None, **options: Unpack[TestOptions]) -> Any:  # noqa: PT028 - it is no test
    """Let a test function run in a simulation, on many seeds; its parameters are fixtures, among them hosts.

    `seeds` is how many are tried. `faults` are drawn for the hosts, such as ``"crash=1,hang=1"``. `link` is what all
    messages travel over, by default for 1 to 10 ms, without loss. A test that hasn't returned by `until` has failed.
    `schedules` lets event loops choose between tasks: ``"random"``, ``"pct:3"`` or ``"delays:2"``. `properties` must
    hold as in a search. A run that takes more than `seconds_max` seconds has no end.
    """
    __tracebackhide__ = True  # A mistake is in the line that calls it.
    for name in options:
        if name not in TestOptions.__annotations__:
            advice = nearest(name, TestOptions.__annotations__) or f"it takes {', '.join(TestOptions.__annotations__)}"
            raise ConfigurationError(f"@worldline.test has no {name}", advice=advice)
    if function is None:
        return partial(test, **options)
    if not callable(function):
        raise ConfigurationError(f"{shown(function)} isn't a test function", advice="write @worldline.test(seeds=200)")
    try:
        chosen = _Chosen.of(options)
    except WorldlineError as error:
        raise error.with_traceback(None) from None
    parameters = _parameters(function)
    takes_request = any(each.name == "request" for each in parameters)

    def simulated(*instance: Any, request: Any, **values: Any) -> None:
        __tracebackhide__ = _hides
        if takes_request:
            values["request"] = request
        hosts = {each.name: each for each in request.node.stash.get(_HOSTS, ())}
        try:
            trial = chosen.trial(partial(function, *instance, **values), hosts)
            trial.make()
        except ConfigurationError as error:  # A script that isn't there, say.
            raise _pytest().fail.Exception(str(error), pytrace=False) from None
        alone = request.config.getoption(SEED, default=None)
        if alone is not None:
            _run_alone(trial.with_seed(alone))
            return
        number = request.config.getoption(SEEDS, default=None) or chosen.seeds
        workers = request.config.getoption(WORKERS, default=1)
        tried = _search(trial, number, workers, chosen.seconds_max, f"pytest {shown_id(request.node.nodeid)}")
        request.node.user_properties.append(("worldline", tried))

    update_wrapper(simulated, function)  # Marks among them; and pytest finds where it is defined.
    _take_fixtures(simulated, parameters)
    return simulated


test.__test__ = False  # type: ignore[attr-defined] # pytest would take it for a test itself.


@dataclass(frozen=True, kw_only=True)
class _Chosen:
    """What a test says of how it is run, checked."""

    seeds: int = _SEEDS
    kinds: Mapping[str, float] = field(default_factory=dict)
    link: Link
    until: int
    schedules: str | None = None
    properties: tuple[Property, ...] = ()
    seconds_max: float = SECONDS_MAX

    @classmethod
    def of(cls, options: TestOptions) -> _Chosen:
        faults, given, schedules = options.get("faults"), options.get("link", _LINK), options.get("schedules")
        is_exhaustive = schedules is not None and as_schedules(schedules).way == "delays"
        seeds = options.get("seeds", 1 if is_exhaustive else _SEEDS)
        if type(seeds) is not int or seeds < 1:
            raise ConfigurationError(f"a test can't be run on {shown(seeds)} seeds", advice="use at least 1")
        return cls(
            seeds=seeds,
            kinds={} if faults is None else parse_fault_kinds(faults),
            link=given if isinstance(given, Link) else as_link(given),
            until=as_time(options.get("until", _UNTIL), "a time by which a test ends"),
            schedules=schedules,
            properties=tuple(options.get("properties", ())),
            seconds_max=options.get("seconds_max", SECONDS_MAX),
        )

    def trial(self, function: Function, hosts: Mapping[str, SimulatedHost]) -> FederationTrial:
        """Return the trial of a test that has the values of its fixtures, on seed 0."""
        if TEST in hosts:
            raise ConfigurationError(f"a host can't be called {TEST}", advice="that is where the test function runs")
        network = Network(default=self.link, control_latency=self.link.latency.minimum)

        def make() -> Federation:
            tested = Machine(_Tested(function, network.control_latency, self.until), controls=True)
            programs = {TEST: tested, **{name: each.make() for name, each in hosts.items()}}
            return Federation(programs, network=network, until=self.until)

        return FederationTrial(
            make=make,
            properties=self.properties,
            kinds=self.kinds if hosts else {},
            spared=frozenset([TEST]),
            schedules=None if self.schedules is None else as_schedules(self.schedules),
        ).with_choices()


class _Tested:
    """A test function as the program of a computer: when it has returned, the run is stopped."""

    def __init__(self, function: Function, latency: int, until: int) -> None:
        self._function = function
        self._latency = latency
        self._until = until
        self.__name__ = _name(function)

    def __call__(self) -> Any:
        if inspect.iscoroutinefunction(_unwrapped(self._function)):
            return self._awaited()
        with self._unfinished():
            self._function()
        return self._stop()

    async def _awaited(self) -> None:
        with self._unfinished():
            await self._function()
        self._stop()

    @contextmanager
    def _unfinished(self) -> Iterator[None]:
        """Say that the test hasn't returned, if it is the end of the run that ends it."""
        line = None
        try:
            yield
        except BaseException as error:
            line = own_line(error)
            raise
        finally:
            computer = here.computer
            if computer is not None and computer.over is not None and isinstance(computer.over.error, RunEnded):
                where = "" if line is None else f" in {line},"
                end = format_time(self._until)
                problem = f"the test was still waiting{where} when {end} of simulated time were over"
                computer.end(TestUnfinished(problem, advice="let it wait less, or say until="))

    def _stop(self) -> None:
        computer = here.computer
        participant: Participant = computer.participant
        computer.leave()
        try:
            participant.stop(participant.now + self._latency)
        finally:
            computer.enter()


class TestUnfinished(ModelError):  # noqa: N818 - named for what it is, like the other errors.
    """A test function hasn't returned by the end of its run."""

    __test__ = False


# --- What comes of it ---


def _run_alone(trial: FederationTrial) -> None:
    """Run one seed as it is, with its output, for a debugger."""
    __tracebackhide__ = _hides
    for single in trial.each_schedule():
        outcome, happenings = single.told(quiet=False)
        if outcome.failure is not None:
            _raise(outcome.failure, [f"seed {trial.seed} fails", *_story(happenings, None)])


_OUTLIVES = "something outlives a run, a variable of a module or what a fixture has made"


def _search(trial: FederationTrial, number: int, workers: int, seconds_max: float, command: str) -> str:
    """Try so many seeds, and say how much that was; or shrink what fails, and raise it."""
    __tracebackhide__ = _hides

    def fails(seed: int) -> bool:
        return search_seeds(trial, [seed], recipe=_no_recipe, seconds_max=seconds_max).failure is not None

    # What other processes have tried fails here first.
    aside = _set_aside(fails, seconds_max) if number > 1 and workers == 1 else nullcontext(lambda _: True)
    with aside as fails_alone:
        report = _tried(trial, number, workers, seconds_max)
        is_alone = report.failure is None or report.failure.seed == 0 or fails_alone(report.failure.seed)
    if report.failure is None or report.failure.failure is None:
        _look_for_leaks(trial.with_seed(0))
        schedules = f", {trial.schedules.words()}" if trial.schedules is not None else ""
        return f"{counted(report.tried, 'seed')}, {counted(report.events, 'event')}{schedules}"
    failing = trial.with_seed(report.failure.seed)
    lines = [_headline(report, failing), *_of_day(failing, report.failure)]
    failure: WorldlineError = report.failure.failure
    if not is_alone:
        lines.append(f"it doesn't fail without the seeds before it: {_OUTLIVES}")
        _raise(failure, [*lines, "to repeat it, after these:", f"  {command} {SEEDS} {failing.seed + 1}"])
    again = ["to repeat it:", f"  {command} {SEED} {failing.seed}"]
    if isinstance(failure, Stuck):  # What has no end has no short form either.
        _raise(failure, [*lines, *again])
    try:
        shrunk = shrink_federation(failing, seconds_max=seconds_max)
    except UsageError as error:
        if "doesn't fail" not in error.problem:
            raise
        lines.append(f"it didn't fail when it was repeated: {_OUTLIVES}")
        _raise(failure, [*lines, *again])
    return _raise(shrunk.failure, [*lines, *_of_shrunk(shrunk), *again])


def _tried(trial: FederationTrial, number: int, workers: int, seconds_max: float) -> Report:
    """Try seeds until one fails: here, or in other processes, and then the one that fails here."""

    def tried(seeds: Sequence[int]) -> Report:
        return search_seeds(trial, seeds, recipe=_no_recipe, seconds_max=seconds_max)

    if workers == 1:
        return tried(range(number))

    def attempt(seed: int) -> tuple[bool, int]:
        report = tried([seed])
        return report.failure is not None, report.events

    failing, events = first_failing(attempt, number, workers)
    if failing is None:
        return structs.replace(tried([0]), tried=number, events=events)
    report = structs.replace(tried([failing]), tried=failing + 1)
    if report.failure is None:
        problem = f"seed {failing} failed in a process of its own, and doesn't fail here: something outlives a run"
        raise _pytest().fail.Exception(problem, pytrace=False)
    return report


class UnsteadyTest(UserWarning):
    """Two runs of a simulated test on one seed differ."""


def _look_for_leaks(trial: FederationTrial) -> None:
    """Warn if two runs of a test that passes differ: what fails one day may then not be repeated."""
    one, other = trial.run(), trial.run()
    if one.digest != other.digest:
        unsteady = [name for name, end in one.members.items() if end != other.members.get(name)]
        warnings.warn(
            f"two runs on seed {trial.seed} differ for {' and '.join(unsteady) or TEST}: something outlives a run, or"
            " comes from outside of it",
            UnsteadyTest,
            stacklevel=2,
        )


def _no_recipe() -> Any:
    raise AssertionError("one process tries all seeds of a test")


def _headline(report: Report, failing: FederationTrial) -> str:
    schedules = f", {counted(report.schedules, 'schedule')}" if report.schedules > report.tried else ""
    return f"seed {failing.seed} fails, after {counted(report.tried - 1, 'seed')} that passed{schedules}"


def _of_day(failing: FederationTrial, outcome: TrialOutcome) -> Iterator[str]:
    words = (outcome.day or failing.day or USUAL_DAY).words()
    if words:
        yield f"on this day: {words}"


def _of_shrunk(shrunk: Shrunk[FederationTrial]) -> Iterator[str]:
    if shrunk.trial.written is None:
        yield f"shrunk in {counted(shrunk.runs, 'run')}; it takes all that the seed draws"
    else:
        left = shrunk.left + len(shrunk.trial.faults or ())
        drawn = shrunk.drawn + shrunk.faults_before
        yield f"shrunk in {counted(shrunk.runs, 'run')}, from {counted(drawn, 'draw')} to {left}:"
    yield from shrunk.lines
    yield from _story(shrunk.records, shrunk.trial.written)


def _story(happenings: Sequence[Happening], draws: Mapping[str, DrawnValue] | None) -> list[str]:
    lines = story_lines(happenings, draws, with_idle=False)
    return ["---", *lines] if lines else []


def _raise(failure: WorldlineError, lines: Sequence[str]) -> NoReturn:
    """Raise what the test, or a host, has raised itself, with the story as notes; or say what is wrong."""
    __tracebackhide__ = _hides
    error = failure.__cause__
    if error is None:
        raise _pytest().fail.Exception("\n".join((str(failure), *lines)), pytrace=False)
    where = "" if failure.participant is None else f"on {failure.participant}, at {format_time(failure.at or 0)}: "
    for note in ("", f"{where}{lines[0]}", *lines[1:]):
        error.add_note(note)
    raise error.with_traceback(_own_part(error.__traceback__))


def _hides(raised: Any) -> bool:
    """Whether pytest leaves our lines out: not if there would be no other."""
    return not raised.errisinstance(_pytest().fail.Exception)


_NOT_THEIRS = (str(Path(__file__).parent.parent), str(Path(inspect.getfile(inspect)).parent / "asyncio"))


def _own_part(trace: TracebackType | None) -> TracebackType | None:
    """Return a traceback from the first line that isn't ours or asyncio's, if there is one."""
    found = trace
    while found is not None and found.tb_frame.f_code.co_filename.startswith(_NOT_THEIRS):
        found = found.tb_next
    return found or trace


def shown_id(nodeid: str) -> str:
    """Write a test's name for a shell."""
    return f"'{nodeid}'" if set(nodeid) & set(' []()$&;|<>*?!"`\\') else nodeid


# --- Functions and their parameters ---


def _parameters(function: Function) -> list[inspect.Parameter]:
    """Return the parameters of a function that are fixtures: all without a default."""
    found = inspect.signature(function).parameters.values()
    return [each for each in found if each.default is each.empty and each.kind is each.POSITIONAL_OR_KEYWORD]


def _take_fixtures(function: Any, parameters: Sequence[inspect.Parameter]) -> None:
    """Let pytest find these parameters, besides the request; a method has its instance before them."""
    request = inspect.Parameter("request", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    instance = [each for each in parameters[:1] if each.name == "self"]
    others = [each for each in parameters if each.name not in ("request", "self")]
    function.__signature__ = inspect.Signature([*instance, request, *others])


def _unwrapped(function: Function) -> Function:
    while isinstance(function, partial):
        function = function.func
    return function


def _name(function: Function) -> str:
    return getattr(_unwrapped(function), "__name__", type(function).__name__)


def _pytest() -> Any:
    try:
        import pytest
    except ImportError:
        problem = "simulated tests are tests of pytest, which isn't installed"
        raise ConfigurationError(problem, advice="pip install pytest") from None
    return pytest


_HOSTS: Any = _pytest().StashKey()


# Tries the seeds of a simulated test in several processes.
#
# A test is made of fixtures, which can't be sent elsewhere, so the processes are forked. All that they say is which
# seed failed first: its failure is had by running that seed again, here.

# A process is also set aside before the first run, to be asked whether a seed fails there, too. If it doesn't, it has
# failed because of what the seeds before it have left behind.

Try = Callable[[int], tuple[bool, int]]
"""Tries a seed; returns whether it failed, and how much has happened."""


class Share(Struct, frozen=True):
    """What came of the seeds of one process: how much happened, and which one failed; or why it couldn't go on."""

    events: int = 0
    failed: int | None = None
    trouble: str = ""


def first_failing(attempt: Try, number: int, workers: int) -> tuple[int | None, int]:
    """Return the first of so many seeds that fails, if one does, and how much has happened."""
    if workers < 1 or not hasattr(os, "fork"):
        raise ConfigurationError(f"there can't be {workers} workers", advice="use 1 or more, on a system that can fork")
    # The lowest seed that is known to fail, for all processes. One that misses it only tries more than it has to.
    lowest = memoryview(mmap.mmap(-1, 8)).cast("Q")
    lowest[0] = number
    children: dict[int, int] = {}
    try:
        for place in range(min(workers, number)):
            children.update([_forked(partial(_share, attempt, range(place, number, workers), lowest))])
        shares = [_read(reading) for reading in children.values()]
    except BaseException:
        for child in children:
            with suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
        raise
    finally:
        for child in children:
            os.waitpid(child, 0)
    for share in shares:
        if share.trouble:
            raise InternalError(f"a process that tried seeds has ended: {share.trouble}")
    failed = [share.failed for share in shares if share.failed is not None]
    return min(failed, default=None), sum(share.events for share in shares)


@contextmanager
def _set_aside(fails: Callable[[int], bool], seconds_max: float) -> Iterator[Callable[[int], bool]]:
    """Keep a process as it is now, and give what asks there, once, whether a seed fails. What can't be asked, does.

    The process only waits, so a test that passes takes no longer. One with other threads can't be forked safely.
    """
    if not hasattr(os, "fork") or threading.active_count() > 1:
        yield lambda _: True
        return
    asked, asking = os.pipe()

    def live() -> Share:
        os.close(asking)
        seed = int(os.read(asked, 20))
        return Share(failed=seed if fails(seed) else None)

    child, reading = _forked(live)
    os.close(asked)
    with os.fdopen(reading, "rb") as answer:

        def fails_there(seed: int) -> bool:
            os.write(asking, b"%d" % seed)
            if not select.select([answer], [], [], 2 * seconds_max)[0]:
                return True
            share = _decoded(answer.read())
            return share.failed is not None or bool(share.trouble)

        try:
            yield fails_there
        finally:
            os.close(asking)
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)


def _share(attempt: Try, seeds: range, lowest: memoryview[int]) -> Share:
    events = 0
    for seed in seeds:
        if seed > lowest[0]:
            break
        has_failed, happened = attempt(seed)
        events += happened
        if has_failed:
            lowest[0] = min(seed, lowest[0])
            return Share(events, seed)
    return Share(events)


def _forked(live: Callable[[], Share]) -> tuple[int, int]:
    """Start a process; return its number, and where it is read what it returns."""
    reading, writing = os.pipe()
    sys.stdout.flush()
    sys.stderr.flush()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # pytest-xdist has a thread that no child needs.
        child = os.fork()
    if child:
        os.close(writing)
        return child, reading
    try:
        try:
            share = live()
        except BaseException as error:  # It is told there.
            share = Share(trouble="".join(traceback.format_exception_only(error)).strip())
        os.write(writing, msgpack.encode(share))
    finally:
        os._exit(0)  # Without what pytest would do at the end.


def _read(reading: int) -> Share:
    with open(reading, "rb") as file:
        return _decoded(file.read())


def _decoded(said: bytes) -> Share:
    return msgpack.decode(said, type=Share) if said else Share(trouble="it was killed")
