"""Looks after the environments of a program: gives them seeds, runs them in pieces, and tells what processes do.

What is told: each Environment is a member, whose chain stands for all that happens in it, and so is each process, by
the name of its function and a number: `customer/3` is the third process of that name. So two runs can be compared
process by process, though one more process would renumber all events.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple
from weakref import WeakValueDictionary

from worldline.history.journal import run_digest
from worldline.history.monitor import Monitors
from worldline.history.observer import MEASURE, Observer
from worldline.history.outcome import End, Outcome, Watch
from worldline.history.plain import encoded, plain
from worldline.model.blame import SourceLine, described, said_of
from worldline.model.errors import ModelError, ObserverFailure, UsageError, WorldlineError
from worldline.model.time import FOREVER
from worldline.processes.status_timer import looks
from worldline.simpy.border import ENVIRONMENT, chain_bytes, check_tellable, nanoseconds, unit_of
from worldline.simpy.engine import (
    INVALID_YIELD,
    URGENT,
    Environment,
    Event,
    Process,
    StopSimulation,
    failed_in,
    look_after,
    run_events,
    set_host,
    settle,
)

# --- Which process has ended a run, and where in its author's code ---

_ADVICE = "a process yields events, such as env.timeout(5)"


class ProcessFailure(NamedTuple):
    """What has ended a run, in words, and the process that it was; None if it was none."""

    process: Process | None
    said: str
    advice: str | None = None


def failure_in(env: Environment, error: BaseException) -> ProcessFailure | None:
    """Return what an environment's run has ended with; None if nothing has failed there."""
    failed = failed_in(env)
    if failed is None:
        return None
    if not isinstance(failed, Process):
        return ProcessFailure(
            None,
            f"an event failed, {type(failed).__name__}, and no process has dealt with it: {said_of(first_of(error))}",
        )
    return _invalid_yield(error, failed) or ProcessFailure(failed, said_of(first_of(error)))


def first_of(error: BaseException) -> BaseException:
    """Return what was raised first: those who wait for a process, and the run, are given copies of its failure."""
    while type(error.__cause__) is type(error):
        error = error.__cause__
    return error


def _invalid_yield(error: BaseException, process: Process) -> ProcessFailure | None:
    """Say what a process has yielded that isn't an event, and where: SimPy's text has that on several lines."""
    lines = str(error).splitlines()
    frame = getattr(process._generator, "gi_frame", None)
    if not isinstance(error, RuntimeError) or not lines or not lines[-1].startswith(INVALID_YIELD) or frame is None:
        return None
    place = SourceLine(frame.f_code.co_filename, frame.f_lineno, "")
    return ProcessFailure(process, f"{lines[-1]}, in {place}", _ADVICE)


# --- The environments of a program, looked after ---

PROCESS = "worldline/process"
"""The topic of notes of what processes do."""

_PASSES_AFTER = 1_000  # Events, until an observer is told what is final.


class ProcessTeller:
    """Tells an observer what the processes of one environment do."""

    def __init__(self, env: Environment, name: str) -> None:
        self.observer: Observer | None = None
        self._env = env
        self._before = "" if name == ENVIRONMENT else f"{name}/"
        self._unit = unit_of(env)
        self._numbers: dict[str, int] = {}
        self._names: dict[Process, str] = {}

    @property
    def now(self) -> int:
        check_tellable(self._env.now, self._unit)
        return nanoseconds(self._env.now, self._unit)

    def observed_by(self, observer: Observer) -> None:
        """Tell from now on, and first who is there already."""
        self.observer = observer
        for name in self._names.values():
            observer.began(name, self.now)

    def name_of(self, process: Process) -> str:
        return self._names.get(process, process.name)

    def began(self, process: Process) -> None:
        kind = getattr(process, "name", "") or "process"
        number = self._numbers[kind] = self._numbers.get(kind, 0) + 1
        name = self._names[process] = f"{self._before}{kind}/{number}"
        if self.observer is not None:
            self.observer.began(name, self.now)

    def resumed(self, process: Process, event: Event | None) -> None:
        if self.observer is not None:
            told: dict[str, Any] = {"time": plain(self._env.now), "event": _kind_of(event)}
            if event is not None and event.value is not None:
                told["value"] = _plain_value(event.value)
            self._note(process, told)

    def ended(self, process: Process, error: BaseException | None) -> None:
        if self.observer is not None and process in self._names:
            if error is not None:
                self._note(process, {"time": plain(self._env.now), "raised": described(error)})
            self.observer.ended(self._names[process], self.now, b"")
            if error is None:  # Otherwise it may yet be asked whose failure it was.
                del self._names[process]

    def conclude(self) -> None:
        """Tell that the run is over for those who are still there."""
        if self.observer is not None:
            for process, name in self._names.items():
                if process.is_alive:
                    self.observer.ended(name, self.now, b"")

    def _note(self, process: Process, told: Mapping[str, Any]) -> None:
        if self.observer is not None and process in self._names:
            self.observer.noted(self._names[process], PROCESS, self.now, encoded(told))


def _kind_of(event: Event | None) -> str:
    return "Initialize" if event is None else type(event).__name__


def _plain_value(value: Any) -> Any:
    """Return a value for the record: of exceptions and events, what they are."""
    if isinstance(value, BaseException):
        return described(value)
    if isinstance(value, (int, float, str, tuple, list, dict)):
        return plain(value)
    return type(value).__name__


class EnvironmentHost:
    """All environments of a program, as long as it `hosts`."""

    def __init__(self, seed: int, unit: Any = "1s") -> None:
        self._seed = seed
        self.unit = unit
        self._tellers: dict[str, ProcessTeller] = {}
        self._there: WeakValueDictionary[str, Environment] = WeakValueDictionary()
        self._ends: dict[str, tuple[End, int, int]] = {}
        self._count = 0
        self._monitors = Monitors()
        self._observer: Observer | None = None
        self._watch: Watch | None = None
        self._until: Any = None
        self._is_running = False

    def __enter__(self) -> EnvironmentHost:
        set_host(self)
        return self

    def __exit__(self, *_: object) -> None:
        set_host(None)

    def adopt(self, env: Environment, seed: int | None, unit: Any) -> None:
        """Look after an environment that has just been made, perhaps with a seed and a unit of its own."""
        self._count += 1
        name = ENVIRONMENT if self._count == 1 else f"{ENVIRONMENT}/{self._count}"
        settle(env, self._seed if seed is None else seed, unit or self.unit)
        self._there[name] = env
        if self._is_running and self._observer is None:
            look_after(env, self, None)
            return
        teller = self._tellers[name] = ProcessTeller(env, name)
        look_after(env, self, teller)
        if self._observer is not None:
            self._observer.began(name, teller.now)
            teller.observed_by(self._observer)

    def begin(self, until: Any, observer: Observer | None, watch: Watch | None) -> None:
        """Take up what is said of a run before it begins."""
        self._until, self._observer, self._watch = until, observer, watch
        self._is_running = True
        for name, env in list(self._there.items()):
            if observer is None:
                look_after(env, self, None)
            else:
                observer.began(name, self._tellers[name].now)
                self._tellers[name].observed_by(observer)
        if observer is None:
            self._tellers.clear()

    def run(self, env: Environment) -> None:
        """Run an environment until something ends it, which is raised; called by its own `run`."""
        name = self._name_of(env)
        unit = unit_of(env)
        if self._until is not None:
            if env.now >= self._until:
                raise StopSimulation(None)
            _stop_at(env, self._until)
        look = looks(self._watch, FOREVER if self._until is None else nanoseconds(self._until, unit))
        events_before = env.events_processed
        piece = 1
        try:
            while True:
                if self._observer is not None:
                    piece = min(piece, _PASSES_AFTER)
                run_events(env, piece)
                piece = look(nanoseconds(env.now, unit), env.events_processed - events_before)
                if self._observer is not None:
                    self._observer.passed(nanoseconds(env.now, unit))
        finally:
            self._note_end(name, env)

    def measured(self, env: Environment, what: str, value: float) -> None:
        """Keep a number that a process of an environment has measured; called by its own `measure`."""
        name, now = self._name_of(env), nanoseconds(env.now, unit_of(env))
        if self._observer is not None:
            self._observer.noted(name, MEASURE, now, encoded({what: value}))
        self._monitors.of(name, what).record(now, value)

    def _name_of(self, env: Environment) -> str:
        return next(name for name, each in self._there.items() if each is env)

    def _note_end(self, name: str, env: Environment) -> None:
        at = nanoseconds(env.now, unit_of(env))
        self._ends[name] = End(at, chain_bytes(env)), env.events_processed, env.processes_started

    def blame(self, error: BaseException) -> WorldlineError:
        """Return what a run has ended with as an error that says which process it was."""
        ours = error if isinstance(error, WorldlineError) else None
        if ours is not None and (isinstance(ours, ObserverFailure) or not isinstance(ours, ModelError | UsageError)):
            return ours
        for name, env in reversed(list(self._there.items())):
            found = failure_in(env, error)
            if found is not None:
                teller = self._tellers.get(name)
                who = None if found.process is None else found.process.name
                if found.process is not None and teller is not None:
                    who = teller.name_of(found.process)
                return ModelError(
                    found.said, participant=who, at=nanoseconds(env.now, unit_of(env)), advice=found.advice
                )
        return ours or ModelError(said_of(first_of(error)))

    def conclude(self, failure: WorldlineError | None = None) -> SimpyOutcome:
        """Tell the end, and return what has come of all environments."""
        for name, env in list(self._there.items()):
            self._note_end(name, env)
        now = max((end.at for end, _, _ in self._ends.values()), default=0)
        for (name, _), monitor in self._monitors.items():
            monitor.end = self._ends[name][0].at
        if self._observer is not None:
            for teller in self._tellers.values():
                teller.conclude()
            for name, (end, _, _) in sorted(self._ends.items()):
                self._observer.ended(name, *end)
            self._observer.passed(now)
        return SimpyOutcome(
            digest=run_digest((name, *end) for name, (end, _, _) in self._ends.items()),
            now=now,
            events=sum(events for _, events, _ in self._ends.values()),
            members={name: end for name, (end, _, _) in self._ends.items()},
            monitors=self._monitors,
            failure=failure,
            is_cut=failure is not None,
            processes=sum(processes for _, _, processes in self._ends.values()),
        )


@dataclass(frozen=True, kw_only=True)
class SimpyOutcome(Outcome):
    """What the environments of a program have come to, with how many processes were started in them."""

    processes: int = 0


def _stop_at(env: Environment, time: Any) -> None:
    """Stop a run at a time, before what happens then, as `run(until=time)` does."""
    stop = Event(env)
    stop._ok = True
    stop._value = None
    stop.callbacks.append(StopSimulation.callback)
    env.schedule(stop, URGENT, time - env.now)
