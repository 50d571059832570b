"""What is said of a run before it begins, and what is ready to begin."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from worldline.files.loading import Definition
from worldline.history.observer import Observer
from worldline.history.outcome import Outcome, Watch
from worldline.model.errors import ConfigurationError, Interrupted, UsageError, shown
from worldline.model.plan import Plan
from worldline.model.reading import as_time
from worldline.processes.executor import Executor

if TYPE_CHECKING:
    from worldline.recording.facts import Provenance
    from worldline.recording.output import RecordingTarget
    from worldline.recording.writer import Recorder

# How targets are written.

TOML, PYTHON = ".toml", ".py"
WORLDS = (".sdf", ".world")

_WHOLES = {TOML: "a federation", **dict.fromkeys(WORLDS, "a world")}


@lru_cache(maxsize=64)
def parts_of(target: str) -> tuple[Path, str]:
    """Take FILE.py:NAME apart."""
    before, _, name = target.rpartition(":")
    kind = Path(before).suffix
    if kind in _WHOLES:
        raise UsageError(f"{before} is {_WHOLES[kind]} as a whole", advice=f"write {before}, without :{name}")
    return (Path(before), name) if kind == PYTHON else (Path(target), "")


class FederationOptions(Struct, frozen=True, kw_only=True):
    """How a federation is run, besides what it is: no other kind of run has any of these.

    At most `realtime` simulated seconds pass in a second. With `shake`, a number, the order in which things happen to
    be done is drawn. `listen` is where participants in processes connect. Others start the participants `without`, and
    present the `token`; the one of `debug` has the terminal, each of `twin` a twin. With a `journal`, the run can be
    taken up again if this process is killed. Its `timing` is noted; a participant that holds all others for longer
    than a `patience`, in seconds, is named. What is sent appears on the LCMs `lcm`, and at an endpoint `lcm_serve`.
    """

    realtime: float | None = None
    shake: int | None = None
    listen: str | None = None
    without: tuple[str, ...] = ()
    token: str | None = None
    debug: tuple[str, ...] = ()
    twin: tuple[str, ...] = ()
    timing: bool = False
    patience: float | None = None
    journal: Path | None = None
    lcm: tuple[str, ...] = ()
    lcm_serve: str | None = None

    def given(self) -> list[str]:
        """Return the options that differ from what is usual, as they are written."""
        usual = FederationOptions()
        if self == usual:
            return []
        changed = (name for name in self.__struct_fields__ if getattr(self, name) != getattr(usual, name))
        return [f"--{name.replace('_', '-')}" for name in changed]


class RunOptions(Struct, frozen=True, kw_only=True):
    """What is wanted of a run, as it was written; what isn't said is as the target has it.

    `settings` are of the form NAME=VALUE. `draws` is a table of draws, or a function that replaces some. `faults` of
    participants come in addition to those of the target, `drawn_faults` are kinds such as ``crash=1,hang=2``, and
    `only_faults`, if any are given, replace all of these. `properties` must hold, besides those of the target.
    """

    seed: int | None = None
    until: str | None = None
    executor: str | None = None
    settings: tuple[str, ...] = ()
    draws: str | None = None
    faults: tuple[str, ...] = ()
    drawn_faults: str | None = None
    only_faults: tuple[str, ...] | None = None
    properties: tuple[str, ...] = ()
    federation: FederationOptions = FederationOptions()

    @property
    def changes_faults(self) -> bool:
        return bool(self.faults or self.drawn_faults is not None or self.only_faults is not None)

    def words(self) -> list[str]:
        """Return the options that say what happens, as they are written on a command line."""
        given = [("--seed", self.seed), ("--until", self.until), ("--executor", self.executor)]
        given += [("--set", each) for each in self.settings]
        given += [("--fault", each) for each in self.faults]
        given += [("--faults", self.drawn_faults), ("--draws", self.draws)]
        given += [("--property", each) for each in self.properties]
        return [str(word) for option in given if option[1] is not None for word in option]

    def refuse_for(self, name: str, kind: str) -> None:
        """Refuse for another kind of run what only federations have."""
        given = self.federation.given()
        given += [] if self.draws is None else ["--draws"]
        given += ["--fault"] if self.changes_faults else []
        given += ["--property"] if self.properties else []
        for option in given:
            raise UsageError(f"{option} is for federations, and {name} is of the kind {kind}")


def end_of(options: RunOptions) -> int | None:
    """Return when a run is to end, where that is a time; None if the options don't say."""
    return None if options.until is None else as_time(options.until, "a time for --until")


def end_in(found: Definition) -> int | None:
    """Return when a file says that its run ends; a bare number there is hardly meant in nanoseconds."""
    said = found.until
    if isinstance(said, int | float) and not isinstance(said, bool):
        raise ConfigurationError(
            f"{found.where}: UNTIL = {shown(said)} has no unit",
            advice=f'write a text: UNTIL = "{shown(said)}s", or another unit: ns, us, ms, s, min, h, d',
        )
    return None if said is None else as_time(said, f"the UNTIL of {found.where}")


class Ready(ABC):
    """A run with all that it depends on. Whatever could be refused has been.

    `kind` is the room that runs it: federation, kernel, nodes, spacetime or world. `members` is what one who takes part
    is called there, and several; `event` is what is counted there, if anything is, and `has_messages` whether messages
    can get lost; of the reasons for that, `losses_named` are said even if none was.
    `target` and `options` are what it was made from, as they were written.
    """

    kind: str
    members: tuple[str, str]
    event = "event"
    has_messages = True
    losses_named: tuple[str, ...] = ()

    name: str
    seed: int
    chosen: Executor
    target: str = ""
    options: RunOptions = RunOptions()
    own_measures: Callable[[Outcome], Any] = staticmethod(lambda _: {})
    """What the `measures` function of a user's file says of an outcome: numbers by their names."""

    @property
    def executor(self) -> str:
        """What executes it, as one writes it."""
        return str(self.chosen)

    @property
    def is_main(self) -> bool:
        """Whether this process is the one that speaks: under MPI, one of them is."""
        return self.chosen.is_main

    @abstractmethod
    def plan(self) -> Plan:
        """Return what a recording says of the run before it has begun."""

    def recorder(self, target: RecordingTarget) -> Recorder:
        """Return what records it, about to begin: rooms other than federations encode what they tell as JSON."""
        from worldline.recording.writer import Recorder  # Here, since many runs aren't recorded.

        return Recorder(
            target,
            self.plan(),
            federation=self.name,
            encoding="json",
            provenance=self.provenance(),
            overwrite=True,
        )

    def provenance(self) -> Provenance:
        """Return what a recording says of the code that is run, by which it can be run again."""
        from worldline.files.loading import sources_of
        from worldline.recording.facts import Provenance

        file, name = parts_of(self.target)
        sources = sources_of(self.files(), file.parent)
        return Provenance(
            target=f"{file.name}:{name}" if name else file.name,
            settings=self.telling_settings(),
            code=sources.code,
            libraries=sources.libraries,
        )

    def telling_settings(self) -> tuple[str, ...]:
        """Return the settings that the result depends on: all, in most rooms."""
        return self.options.settings

    def files(self) -> list[Path]:
        """Return the files in which the code begins that is run. What comes with Worldline is known by its version."""
        file, _ = parts_of(self.target)
        return [file] if file.is_file() else []

    @abstractmethod
    def run(self, observer: Observer | None = None, watch: Watch | None = None) -> Outcome:
        """Run it, once. What ends it before its time is raised, or the outcome's failure."""

    def interrupt(self, error: Interrupted) -> None:
        """End a run before its time, in good order. Called from a signal's handler."""
        raise KeyboardInterrupt(error.problem)  # No code takes that for a failure of the model.

    def hurry(self) -> None:
        """Wait for no process any more, when a run that was interrupted doesn't end. Called from a signal's handler."""
        return  # There is none: what runs in this thread has been interrupted.

    def taking_part(self, outcome: Outcome) -> str:
        """Say how many took part."""
        count = len(outcome.names)
        return f"{count:,} {self.members[count != 1]}"

    @abstractmethod
    def extent(self, outcome: Outcome) -> str:
        """Say how much time was simulated."""

    @abstractmethod
    def verify(self, outcome: Outcome) -> list[str]:
        """Refuse what may not come of it; return what there is to say of it, besides what can be said of any run."""
