"""Federations, ready to run: from their file in processes, or in this one; from Python in this one.

Who asks whether something is a federation, and it isn't, doesn't need what runs one: that is loaded where it is used.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from worldline.loading.definition import MODEL, Definition, definition_in, unfit
from worldline.model.errors import UsageError
from worldline.model.plan import Plan
from worldline.model.time import format_time
from worldline.targets.ready import Options
from worldline.targets.texts import parts_of
from worldline.workers.executor import Executor, InProcess, Tcp, Unix, as_executor

if TYPE_CHECKING:
    from worldline.federation.checker import FederationLike
    from worldline.federation.outcome import FederationOutcome
    from worldline.federation.program import Federation
    from worldline.launch.setup import Setup
    from worldline.launch.topics import Topic

FORM = "write model = Federation({...}), or a function that returns one"
EXECUTORS = (InProcess, Tcp, Unix)
"""What federations run on."""


@dataclass(frozen=True, kw_only=True)
class ReadyFederation:
    """A federation that can be run. `setup` is what its file says, and `federation` its programs, if they are here.

    It has no `run` that needs nothing else, as other targets have: its programs have voices, and may be processes.
    """

    name: str
    made_plan: Plan
    chosen: Executor
    names: tuple[str, ...]
    setup: Setup | None = None
    federation: Federation | None = None

    kind = "federation"
    members = ("participant", "participants")
    is_main = True

    @property
    def seed(self) -> int:
        return self.made_plan.seed

    @property
    def executor(self) -> str:
        return str(self.chosen)

    @property
    def topics(self) -> dict[str, Topic]:
        return {} if self.setup is None else self.setup.topics

    @property
    def recording(self) -> str:
        """Where it is recorded if nobody says otherwise."""
        return f"{self.name.replace('/', '-')}.mcap"

    def plan(self) -> Plan:
        return self.made_plan

    def extent(self, outcome: FederationOutcome) -> str:
        return format_time(max(outcome.times.values(), default=0))


def from_file(file: Path, options: Options, *, startable: bool = True) -> ReadyFederation:
    """Read a federation's file, with what is to be changed; unless `startable`, others start its participants."""
    from worldline.launch.launcher import check_startable, federation_of
    from worldline.launch.setup import read_setup

    setup = read_setup(file, changes=_changes(options), startable=startable)
    chosen = as_executor(options.executor or "tcp", EXECUTORS)
    federation = None
    if isinstance(chosen, InProcess):
        federation = federation_of(setup)
    elif startable:
        check_startable(setup)
    return ReadyFederation(
        name=setup.name,
        made_plan=setup.plan,
        chosen=chosen,
        names=tuple(setup.parts),
        setup=setup,
        federation=federation,
    )


def from_python(found: Definition, federation: Federation, options: Options) -> ReadyFederation:
    """Take a federation that a Python file has made."""
    chosen = as_executor(options.executor or "in-process", EXECUTORS)
    if not isinstance(chosen, InProcess):
        raise UsageError(
            f"{found.where}: a federation from a Python file runs in-process, not over {chosen}",
            advice="processes are started from a FILE.toml that names its programs",
        )
    if options.seed is not None:
        federation = replace(federation, seed=options.seed)
    if options.until is not None:
        federation = replace(federation, end=options.until)
    return ReadyFederation(
        name=found.name,
        made_plan=federation.plan(),
        chosen=chosen,
        names=tuple(sorted(federation.programs)),
        federation=federation,
    )


def _changes(options: Options) -> Iterable[str]:
    words = list(options.settings)
    if options.seed is not None:
        words.append(f"seed={options.seed}")
    if options.until is not None:
        words.append(f"end={options.until}")
    return words


def federation_like(target: str) -> FederationLike:
    """Return the federation that a target means, or, if it is a function's, what makes it anew for every run."""
    from worldline.federation.program import Federation

    file, name = parts_of(target)
    if file.suffix == ".toml":
        from worldline.launch.launcher import federation_of
        from worldline.launch.setup import read_setup

        return federation_of(read_setup(file))
    found = definition_in(file, name or MODEL, (Federation,), FORM)

    def made() -> Federation:
        federation = found.maker.make({}, {})
        if not isinstance(federation, Federation):
            raise unfit(found.where, "what its model returns", federation, FORM)
        return federation

    made().plan()
    return made
