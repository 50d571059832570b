"""Federations, ready to run: from their file in processes, or in this one; from Python in this one.

To find out that a target is no federation doesn't take what runs one: that is loaded where it is used.
"""

from __future__ import annotations

import csv
import json
import sys
import tomllib
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace as replace_fields

from worldline.files.loading import Definition
from worldline.files.saving import file_named
from worldline.history.observer import LOG, MEASURE, Observer
from worldline.history.outcome import Outcome, Watch
from worldline.lock.arbiter import DROPPED_BY_BUFFER
from worldline.model.draws.table import DrawInputs, Drawn, DrawRow, functions_in, read_draws
from worldline.model.errors import ConfigurationError, Interrupted, UsageError, WorldlineError, shown
from worldline.model.faults import (
    DeclaredTopics,
    ParticipantFault,
    as_faults,
    draw_participant_faults,
    parse_fault_kinds,
    said_of_drawn,
    said_of_undrawn,
)
from worldline.model.payload import PAYLOAD_MAX
from worldline.model.plan import Plan, check_own_draws, check_plan, check_topics
from worldline.model.time import rounded_time
from worldline.processes.executor import Executor, Kind, as_executor, readable_executor
from worldline.targets.ready import FederationOptions, Ready, RunOptions, end_of, parts_of

if TYPE_CHECKING:
    from worldline.federation.outcome import FederationOutcome
    from worldline.federation.participant.program import Federation, Program
    from worldline.launch.file.setup import ParticipantSetup, Setup, Starts
    from worldline.launch.file.topics import Topic
    from worldline.launch.launcher import Launch, LaunchOptions, SpecialRoles
    from worldline.lock.arbiter import Arbiter
    from worldline.recording.output import RecordingTarget
    from worldline.recording.writer import Recorder
    from worldline.search.properties import Property


# Reads the table of draws that a command is given: a file, or a function that replaces draws.

_COLUMNS = ["name", "value"]
_FORM = "give FILE.toml, FILE.json, FILE.csv or module:function"


def read_draws_given(text: str, folder: Path) -> DrawInputs:
    """Read what `--draws` says. The modules of functions are looked for in this folder first, as entries are."""
    file = Path(text)
    read = _READERS.get(file.suffix)
    if read is None:
        if ":" not in text:
            raise UsageError(f"--draws {text}: that is neither a table nor a function", advice=_FORM)
        return _with_functions([DrawRow("*", function=text)], folder)
    try:
        given = read(file)
        return _with_functions(read_draws(given).rows, folder)
    except OSError as error:
        raise UsageError(f"{text} can't be read: {error.strerror or error}") from error
    except (ValueError, RecursionError, csv.Error) as error:
        raise UsageError(f"{text} can't be read: {error}") from error
    except WorldlineError as error:
        raise UsageError(f"{text}: {error.problem}", advice=error.advice) from error


def is_table_file(text: str) -> bool:
    """Whether what `--draws` says is a file, and not a function."""
    return Path(text).suffix in _READERS


def _with_functions(rows: Sequence[DrawRow], folder: Path) -> DrawInputs:
    """Return rows along with the functions that they name, which are looked for in this folder first."""
    given = DrawInputs(tuple(rows))
    if not functions_in(rows):
        return given
    from worldline.federation.participant.declaration import with_functions  # Here, since few tables have any.

    if str(folder.resolve()) not in sys.path:
        sys.path.insert(0, str(folder.resolve()))
    return with_functions(given)


def _from_toml(file: Path) -> dict[str, Any]:
    return tomllib.loads(file.read_text(encoding="utf-8"))


def _from_json(file: Path) -> dict[str, Any]:
    found = json.loads(file.read_text(encoding="utf-8"))
    if not isinstance(found, dict):
        raise ConfigurationError(f"it holds {shown(found)}", advice='write {"latency/image": "5ms"}')
    return found


def _from_csv(file: Path) -> dict[str, Any]:
    """Read two columns. A value is taken as JSON would, and as text if it isn't any: 5ms."""
    found: dict[str, Any] = {}
    with file.open(encoding="utf-8", newline="") as lines:
        reader = csv.reader(lines)
        if [title.strip() for title in next(reader, [])] != _COLUMNS:
            raise ConfigurationError("its first line isn't name,value", advice="it says what the columns are")
        for row in reader:
            if not row:
                continue
            if len(row) != len(_COLUMNS):
                raise ConfigurationError(f"line {reader.line_num} has {len(row)} columns", advice="write name,value")
            name, value = (cell.strip() for cell in row)
            if name in found:
                raise ConfigurationError(f"line {reader.line_num}: draw {name} is there twice")
            try:
                found[name] = json.loads(value)
            except ValueError:
                found[name] = value
    return found


_READERS: dict[str, Callable[[Path], dict[str, Any]]] = {".toml": _from_toml, ".json": _from_json, ".csv": _from_csv}


_OPTIONS = {"seed": "--seed", "until": "--until"}
EXECUTORS: tuple[Kind, ...] = ("in-process", "tcp", "unix", "processes")
"""What federations run on."""


@dataclass(kw_only=True)
class ReadyFederation(Ready):
    """A federation that can be run. `setup` is what its file says, and `federation` its programs, if they are here.

    `encoding` says how payloads are encoded on topics of which its file says nothing. `draws` replaces some draws of
    the run, and `draws_heard` hears those of streams, in one process. `fault_remarks` say which faults were drawn from
    the seed, and which couldn't be. `roles` says which participants aren't started like the rest.
    """

    kind = "federation"
    members = ("participant", "participants")
    event = ""
    losses_named = (DROPPED_BY_BUFFER,)

    name: str
    made_plan: Plan
    chosen: Executor
    setup: Setup | None = None
    federation: Federation | None = None
    encoding: str = ""
    target: str = ""
    options: RunOptions = field(default_factory=RunOptions)
    draws: DrawInputs = field(default_factory=DrawInputs)
    fault_remarks: tuple[str, ...] = ()
    draws_heard: Callable[[Drawn], None] | None = None
    roles: SpecialRoles | None = None
    seed: int = field(init=False)
    _launch: Launch | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        self.seed = self.made_plan.seed
        if self.draws.rows != self.made_plan.draws:
            self.made_plan = replace_fields(self.made_plan, draws=self.draws.rows)
            check_plan(self.made_plan)
            self._check_own_draws()
            if self.setup is not None:
                self.setup = replace(self.setup, plan=self.made_plan)
        self._check_options()

    def _check_options(self) -> None:
        """Refuse how it is to be run before anything is touched; where it listens may say what executes it."""
        wanted = self.options.federation
        if self.federation is not None:
            _refuse_without_processes(wanted)
            return
        if self.setup is not None and (wanted.without or wanted.debug or wanted.twin):
            from worldline.launch.launcher import SpecialRoles

            if len(wanted.debug) > 1:
                raise UsageError("--debug is given twice", advice="one participant at a time can have the terminal")
            debugged = wanted.debug[0] if wanted.debug else None
            self.roles = SpecialRoles(
                awaited=wanted.without, token=wanted.token, debugged=debugged, twinned=wanted.twin
            )
            self.roles.check(self.setup)
        if wanted.listen is not None:
            self._check_address(wanted.listen)

    def _check_address(self, listen: str) -> None:
        from worldline.federation.address import parse_address

        address = parse_address(listen)
        kind = address.kind
        if kind == "unix" and (path := Path(address.place)).exists() and not path.is_socket():
            raise UsageError(f"--listen {listen}: {path} exists, and isn't a socket", advice="choose another path")
        if kind == "tls":
            raise UsageError("the participants of `worldline run` are on this machine and need no TLS")
        if self.chosen.kind == "processes":
            return
        if self.options.executor not in (None, "processes") and kind != self.executor:
            raise UsageError(f"--listen {listen} isn't for {self.executor}", advice=f"use --executor {kind}")
        self.chosen = as_executor(kind)

    @property
    def names(self) -> tuple[str, ...]:
        """The participants, as far as their names are known here."""
        if self.setup is not None:
            return tuple(self.setup.parts)
        return self.made_plan.roster if self.federation is None else tuple(sorted(self.federation.programs))

    @property
    def lcm(self) -> tuple[str, ...]:
        """The LCMs that show it."""
        return (*(() if self.setup is None else self.setup.lcm), *self.options.federation.lcm)

    @property
    def lcm_serve(self) -> str | None:
        """The endpoint at which LCM programs can look on."""
        return self.options.federation.lcm_serve or (None if self.setup is None else self.setup.lcm_serve)

    @property
    def topics(self) -> dict[str, Topic]:
        return {} if self.setup is None else self.setup.topics

    def _check_own_draws(self) -> None:
        """Refuse replaced draws that are out of what participants declare, as far as that is known here."""
        from worldline.federation.participant.declaration import Declaration, own_draws_of
        from worldline.launch.file.setup import stated_by

        declared: Mapping[str, Declaration] = {}
        if self.federation is not None:
            declared = self.federation.programs
        elif self.setup is not None:
            declared = {name: Declaration(**stated_by(part)) for name, part in self.setup.parts.items()}
        own = own_draws_of(declared)
        if self.federation is None:  # What the file doesn't say, the programs may declare themselves.
            own = {start: drawn for start, drawn in own.items() if drawn is not None}
        check_own_draws(self.draws.rows, own)
        topics = [each.publishes for each in declared.values()]
        if topics and not self.made_plan.vacancies and None not in topics:
            check_topics(self.draws.rows, {topic for each in topics for topic in each or ()})

    @property
    def payload_max(self) -> int:
        """The largest payload of a message."""
        if self.setup is not None:
            return self.setup.limits.payload_max
        return PAYLOAD_MAX if self.federation is None else self.federation.payload_max

    def declared_topics(self) -> tuple[dict[str, tuple[str, ...]], dict[str, tuple[str, ...]]]:
        """Return what each participant publishes and what it subscribes to, by name, as far as that is known here."""
        parts: Mapping[str, ParticipantSetup | Program] = {}
        if self.setup is not None:
            parts = self.setup.parts
        elif self.federation is not None:
            parts = self.federation.programs
        silent = dict.fromkeys(self.names, ())
        return (
            {**silent, **{name: tuple(part.publishes or ()) for name, part in parts.items()}},
            {**silent, **{name: tuple(part.subscribes) for name, part in parts.items()}},
        )

    @property
    def recording(self) -> str:
        """Where it is recorded unless the command says otherwise."""
        return file_named(self.name, ".mcap")

    def plan(self) -> Plan:
        return self.made_plan

    def properties(self) -> tuple[Property, ...]:
        """Load what must hold: what its file names, and what the command does."""
        named = dict.fromkeys((*(() if self.setup is None else self.setup.properties), *self.options.properties))
        if not named:
            return ()
        from worldline.targets.judging import load_property  # Here, since few runs are judged.

        folder = parts_of(self.target)[0].resolve().parent
        return tuple(
            load_property(name, folder, "--property" if name in self.options.properties else "properties")
            for name in named
        )

    def recorder(self, target: RecordingTarget) -> Recorder:
        """Return what records it, with how the payloads on its topics are to be read."""
        from worldline.recording.writer import Recorder, Schema

        topics = {name: topic.loaded() for name, topic in self.topics.items()}
        return Recorder(
            target,
            self.plan(),
            federation=self.name,
            encoding=self.encoding,
            encodings={LOG: "json", MEASURE: "json", **{name: topic.encoding for name, topic in topics.items()}},
            schemas={
                name: Schema(topic.schema_name, topic.schema_encoding, topic.schema)
                for name, topic in topics.items()
                if topic.schema_encoding
            },
            provenance=self.provenance(),
            overwrite=True,
        )

    def files(self) -> list[Path]:
        """Return where the code of its participants begins: modules of entries, and files that commands name."""
        from worldline.launch.file.startable import files_named, files_of

        if self.setup is not None:
            parts = self.setup.parts.values()
            return [file for part in parts for file in files_of(part.entry, part.command, part.directory)]
        programs = [] if self.federation is None else self.federation.programs.values()
        machines = [program.run.software for program in programs if program.is_machine]  # type: ignore[attr-defined]
        return super().files() + [file for each in machines for file in files_named(each.words, each.directory)]

    @cached_property
    def launching(self) -> LaunchOptions:
        """How it is launched in processes; a command adds what hears of it."""
        from worldline.launch.launcher import LaunchOptions, SpecialRoles

        wanted = self.options.federation
        return LaunchOptions(
            address=wanted.listen or ("tcp://127.0.0.1:0" if self.chosen.kind == "tcp" else None),
            pace=wanted.realtime,
            shake=wanted.shake,
            workers=self.chosen.count if self.chosen.kind == "processes" else None,
            roles=self.roles or SpecialRoles(),
            journal=wanted.journal,
        )

    def warm_up(self) -> None:
        """Start what will start its processes, if it has any: that takes a moment to be ready itself."""
        if self.federation is None and self.setup is not None:
            from worldline.launch.processes import keeper_for

            keeping = keeper_for(self.setup.parts.values())
            self.launching.keeping = keeping

    def answering(self) -> Federation:
        """Return its programs, for this process: what they raise is their author's, as on every executor."""
        from worldline.federation.participant.program import with_blamed_programs

        assert self.federation is not None
        return with_blamed_programs(self.federation)

    def run(self, observer: Observer | None = None, watch: Watch | None = None) -> FederationOutcome:
        if self.federation is not None:
            from worldline.federation.inprocess.checker import SampledSchedule
            from worldline.federation.inprocess.run import run as run_in_process

            shake = self.options.federation.shake
            return run_in_process(
                self.answering(),
                observer=observer,
                watch=watch,
                schedule=None if shake is None else SampledSchedule(shake),
                draws=self.draws,
                draws_heard=self.draws_heard,
            )
        from worldline.launch.launcher import Launch

        assert self.setup is not None
        self.launching.observer = observer
        self._launch = Launch(self.setup, self.launching)
        self.name_functions(self._launch.server.host.arbiter)
        return self._launch.run(watch)

    def name_functions(self, arbiter: Arbiter) -> None:
        """Say to the arbiter of a server where the functions are that the table of draws names."""
        if arbiter.router.draws is not None:
            arbiter.router.draws.load = self.draws.functions.__getitem__

    def interrupt(self, error: Interrupted) -> None:
        if self.federation is not None:
            super().interrupt(error)
        elif self._launch is None:  # No participant has been started.
            raise error
        else:
            self._launch.interrupt(error)

    def hurry(self) -> None:
        if self._launch is not None:
            self._launch.hurry()

    def time_of(self, name: str) -> int:
        """Return how far a participant has come, for lines that don't say when they were printed."""
        return 0 if self._launch is None else self._launch.server.host.arbiter.time_of(name)

    def remarks(self) -> list[str]:
        """Say what else there is to be said of how it goes."""
        return [] if self._launch is None else self._launch.server.remarks()

    @property
    def waits_for_people(self) -> bool:
        """Whether others start some of the participants."""
        return self.roles is not None and bool(self.roles.awaited)

    def notices(self) -> list[str]:
        """Say once who has come, was refused, or has gone before the start, since the last time."""
        notices = deque[str]() if self._launch is None else self._launch.server.host.owner.notices
        return [notices.popleft() for _ in range(len(notices))]

    def extent(self, outcome: Outcome) -> str:
        return rounded_time(max(outcome.times.values(), default=0))

    def verify(self, outcome: Outcome) -> list[str]:
        if self._launch is not None:
            self._launch.check_ends(outcome)
        return []


def from_file(file: Path, options: RunOptions, *, starts: Starts | None = None) -> ReadyFederation:
    """Read a federation's file, with what is to be changed; `starts` says whom we start, if not all but `without`."""
    from worldline.launch.file.setup import check_startable, read_setup

    def is_here(name: str) -> bool:
        return name not in options.federation.without

    starts = starts or is_here

    given = {"seed": options.seed, "until": options.until}
    changes = [*options.settings, *(f"{key}={value}" for key, value in given.items() if value is not None)]
    setup = read_setup(
        file,
        changes=changes,
        options={key: _OPTIONS[key] for key, value in given.items() if value is not None},
        starts=starts,
    )
    fault_remarks: tuple[str, ...] = ()
    if options.changes_faults:
        lasting = [name for name, part in setup.parts.items() if part.entry is None]
        faults, fault_remarks = _faults_of(setup.faults, setup.parts, lasting, setup.plan, options)
        setup = setup.with_faults(faults)
    chosen = as_executor("processes" if options.executor is None else options.executor, EXECUTORS)
    federation = None
    if chosen.kind == "in-process":
        from worldline.launch.launcher import federation_of

        federation = federation_of(setup)
    else:
        check_startable(setup, starts)
    return ReadyFederation(
        name=setup.name,
        made_plan=setup.plan,
        chosen=chosen,
        setup=setup,
        federation=federation,
        target=str(file),
        options=options,
        draws=_draws(options, file.parent),
        fault_remarks=fault_remarks,
    )


def _faults_of(
    own: Iterable[ParticipantFault | str],
    parts: Mapping[str, DeclaredTopics],
    lasting: Sequence[str],
    plan: Plan,
    options: RunOptions,
) -> tuple[tuple[ParticipantFault, ...], tuple[str, ...]]:
    """Return the faults of a run's participants, with those that the options add, and what is said of drawn ones.

    The `lasting` can't crash.
    """
    if options.only_faults is not None:
        return as_faults(options.only_faults), ()
    given = as_faults((*own, *options.faults))
    kinds = {} if options.drawn_faults is None else parse_fault_kinds(options.drawn_faults)
    drawn = draw_participant_faults(kinds, parts, plan.end, plan.seed, given=given, lasting=lasting) if kinds else ()
    return as_faults((*given, *drawn)), (*said_of_drawn(drawn), *said_of_undrawn(kinds, drawn))


def from_python(found: Definition, federation: Federation, options: RunOptions) -> ReadyFederation:
    """Take a federation that a Python file has made."""
    chosen = as_executor("in-process") if options.executor is None else readable_executor(options.executor)
    if chosen is None or chosen.kind != "in-process":
        raise UsageError(
            f"{found.where}: a federation from a Python file runs in-process, and not on {shown(options.executor)}",
            advice="leave --executor out; processes are started from a FILE.toml that names its programs",
        )
    if options.seed is not None:
        federation = replace(federation, seed=options.seed)
    if options.until is not None:
        federation = replace(federation, until=end_of(options))
    fault_remarks: tuple[str, ...] = ()
    if options.changes_faults:
        faults, fault_remarks = _faults_of(federation.faults, federation.programs, (), federation.plan(), options)
        federation = replace(federation, faults=faults)
    return ReadyFederation(
        name=found.name,
        made_plan=federation.plan(),
        chosen=chosen,
        federation=federation,
        options=options,
        draws=_draws(options, Path(found.module.__file__ or "").parent),
        fault_remarks=fault_remarks,
    )


def _refuse_without_processes(wanted: FederationOptions) -> None:
    needs_processes = {"--journal", "--realtime", "--without", "--twin"}
    for option in wanted.given():
        if option in needs_processes:
            raise UsageError(f"{option} needs processes")
    if wanted.listen is not None:
        raise UsageError("--listen needs processes: in-process, no program connects", advice="leave it out")
    if wanted.timing:
        raise UsageError("--timing needs processes", advice="in one process, no participant waits for another")
    if wanted.debug:
        raise UsageError("--debug needs processes", advice="in one process, breakpoint() has the terminal anyway")


def _draws(options: RunOptions, folder: Path) -> DrawInputs:
    return DrawInputs() if options.draws is None else read_draws_given(options.draws, folder)
