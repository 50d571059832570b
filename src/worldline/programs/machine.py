"""A participant that is a computer with one program: a script, a module or a function, as it is."""

from __future__ import annotations

import asyncio
import inspect
import sys
import types
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from importlib import util
from pathlib import Path
from typing import Any, Unpack

from worldline.federation.participant.declaration import Declared
from worldline.federation.participant.participant import Participant
from worldline.federation.participant.program import Program, is_normal_end
from worldline.federation.participant.sometimes import draw_for
from worldline.model.errors import ConfigurationError, UsageError, shown
from worldline.programs import disk, escapes, loop, standins, threads, tls, workspace
from worldline.programs.belongings import vacate
from worldline.programs.computer import Computer, ProgramKilled, ThreadEnding, Unwinding
from worldline.programs.entries import MachineEntry, checked_escapes, script_of, topics_of
from worldline.programs.workspace import Workspace, hide_output, show_output


@dataclass(frozen=True)
class Software:
    """What a machine runs: a script's file, a module's name, or a function; with arguments.

    It can write to a copy of `folder`, made at the start of a run, in which it runs; if that is `volatile`, a crash may
    take back what wasn't synced. `allow` are the escapes that it is allowed.
    """

    what: Path | str | Callable[[], Any]
    arguments: tuple[str, ...]
    directory: Path
    folder: Path | None = None
    allow: tuple[str, ...] = ()
    volatile: bool = False

    @property
    def words(self) -> tuple[str, ...]:
        """What its user would write to start it; of a function, its arguments alone."""
        return self.arguments if callable(self.what) else (str(self.what), *self.arguments)

    def __str__(self) -> str:
        what = getattr(self.what, "__name__", None) or str(self.what)
        return " ".join((what, *self.arguments))

    def run(self) -> None:
        """Run it to its end, in the surroundings that are in place."""
        if isinstance(self.what, Path):
            _run_script(self.what)
        elif isinstance(self.what, str):
            _run_module(self.what)
        elif inspect.iscoroutine(found := self.what()):
            asyncio.run(found)


@cache
def _code(file: Path, _changed_ns: int) -> types.CodeType:
    return compile(file.read_bytes(), str(file), "exec", dont_inherit=True)


def _run_script(file: Path) -> None:
    code = _code(file, file.stat().st_mtime_ns)
    main = _workspace().main(__file__=str(file), __spec__=None, __package__=None, __loader__=None)
    exec(code, main.__dict__)


def _run_module(name: str) -> None:
    spec = util.find_spec(name)
    if spec is not None and spec.submodule_search_locations is not None:
        spec = util.find_spec(f"{name}.__main__")
    loader: Any = None if spec is None else spec.loader
    if spec is None or loader is None or (code := loader.get_code(spec.name)) is None:
        raise UsageError(f"there is no module {name} that can be run")
    sys.argv[0] = spec.origin or name
    main = _workspace().main(
        __file__=spec.origin, __spec__=spec, __package__=spec.parent, __loader__=loader, __cached__=spec.cached
    )
    exec(code, main.__dict__)


def _workspace() -> Workspace:
    from worldline.programs.reals import here

    found: Workspace = here.computer.workspace
    return found


@dataclass(frozen=True)
class MachineRun:
    """A machine's part in a run: what a `Program` runs."""

    software: Software
    names: tuple[str, ...] = ()

    def __call__(self, participant: Participant) -> None:
        install()
        participant.has_surroundings = True
        computer = Computer(participant, self.names or (participant.name,), loop.turns_of(participant))
        draw_for(computer)
        threads.appear(computer)
        standins.swaps.put_in_place()
        show_output()
        try:
            _live(computer, self.software)
        except Unwinding as over:
            raise over.failure.with_traceback(over.__traceback__) from over.failure.__cause__
        finally:
            computer.abandon()
            threads.disappear(computer)
            hide_output()
            standins.swaps.take_away()
            if not participant.is_crashed:
                disk.give_back(participant)


def _live(computer: Computer, software: Software) -> None:
    """Run a program on its computer, again if it is killed and started again, and then the computer without it."""
    own = None if software.folder is None else disk.take(computer.participant, software.folder, software.volatile)
    if own is not None:  # After a crash, if there was one.
        cut = computer.participant.stream("disk").randint
        own.recover(partial(computer.sometimes, chance=0.5), partial(cut, 0))
    while True:
        computer.workspace = Workspace(
            software.directory,
            [str(software.what), *software.arguments],
            [str(software.directory), *(each for each in sys.path if each not in ("", str(software.directory)))],
            own,
            software.allow,
            computer.name,
        )
        computer.enter()
        try:
            killed = _run(computer, software)
            if killed is None:
                computer.serve_on()
            computer.outlive(killed)
        finally:
            computer.finish_output()
            computer.leave()
            vacate()
            computer.workspace.discard()


def _run(computer: Computer, software: Software) -> ProgramKilled | None:
    """Run a program to its end; return what has killed it, if that is how it ended."""
    interrupted: ProgramKilled | None = None
    trace = sys.gettrace()
    try:
        try:
            software.run()
        except SystemExit as error:
            if not is_normal_end(error):
                raise
        except KeyboardInterrupt as error:
            if not computer.signals.has_raised(error):
                raise
            interrupted = ProgramKilled("SIGINT")
        computer.wait_for_threads(threads.is_awaited)
        computer.workspace.finish()
    except BaseException:
        if computer.over is None:
            raise
        try:
            sys.settrace(trace)
        except ThreadEnding:
            sys.settrace(trace)
    if computer.over is None:
        return interrupted
    if isinstance(computer.over.error, ProgramKilled):
        return computer.over.error
    raise computer.over.as_raised_first()


def install() -> None:
    """Put everything in place that programs need, if it isn't."""
    if not _installed:
        _installed.append(True)
        standins.install()
        loop.install()
        threads.install()
        escapes.install()
        tls.install()
        workspace.install()


_installed: list[bool] = []


class Machine(Program):
    """A participant that is a computer, with a program that needn't know of it.

    `what` is a script's file, relative to `directory`; with ``module=True`` the name of a module, as for ``python -m``;
    or a function without parameters, which may be a coroutine function. It may write to a copy of `folder`, which is
    its disk: the copy is made at the start of a run, outlives crashes, and is where the program runs. If it is
    `volatile`, a crash may take back what wasn't synced. `allow` are names of what it may do though that gets out of
    the simulation: ``"files"``, ``"processes"``, ``"tls"``. The program finds the other participants by their names, as
    hosts. Other keywords are those of a `Program`.
    """

    def __init__(
        self,
        what: str | Path | Callable[[], Any],
        *arguments: str,
        module: bool = False,
        directory: str | Path = ".",
        folder: str | Path | None = None,
        volatile: bool = False,
        allow: Sequence[str] = (),
        guest: bool = False,
        **declared: Unpack[Declared],
    ) -> None:
        place = Path(directory).resolve()
        found, own = _found(what, module, place), _folder(folder, place)
        if volatile and own is None:
            raise ConfigurationError("it has no disk that could be volatile", advice="give it a folder")
        software = Software(found, _texts(arguments), place, own, checked_escapes(allow), volatile)
        super().__init__(MachineRun(software), guest=guest, is_machine=True, **declared)

    def among(self, name: str, names: Sequence[str]) -> Program:
        """Return its program as that of a certain participant, which knows the others' names."""
        assert isinstance(self.run, MachineRun)
        assert isinstance(self.subscribes, dict)
        said = {**self.as_plain(), "subscribes": {**self.subscribes, **dict.fromkeys(topics_of(name), "unbounded")}}
        return Program(replace(self.run, names=tuple(sorted(names))), guest=self.guest, is_machine=True, **said)


def program_of(entry: MachineEntry, directory: Path, *, guest: bool = False, **declared: Any) -> Program:
    """Return the program of a machine as a federation's file names it."""
    what = script_of(entry, directory) or entry.words[0]
    software = Software(
        what.resolve() if isinstance(what, Path) else what,
        entry.words[1:],
        directory.resolve(),
        None if entry.folder is None else Path(entry.folder),
        entry.allow,
        entry.volatile,
    )
    return Program(MachineRun(software, entry.names), guest=guest, is_machine=True, **declared)


def _found(what: Any, module: bool, directory: Path) -> Path | str | Callable[[], Any]:
    if callable(what):
        return what  # type: ignore[no-any-return]
    if not isinstance(what, str | Path):
        raise ConfigurationError(f"{shown(what)} is neither a script nor a function")
    if module:
        return str(what)
    file = directory / what
    if not file.is_file():
        raise ConfigurationError(f"there is no script {file}", advice="say in which directory it is")
    return file.resolve()


def _folder(given: str | Path | None, directory: Path) -> Path | None:
    folder = None if given is None else directory / given
    if folder is not None and not folder.is_dir():
        raise ConfigurationError(f"there is no folder {folder}", advice="make it, even if it is empty")
    return folder


def _texts(arguments: Sequence[Any]) -> tuple[str, ...]:
    for each in arguments:
        if not isinstance(each, str):
            raise ConfigurationError(f"a program's arguments are texts, not {shown(each)}", advice=f'write "{each}"')
    return tuple(arguments)
