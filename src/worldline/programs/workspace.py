"""What a program has for itself in a process that it shares: its modules, arguments, search path and output.

Modules below the program's directory are its own: each computer, and each start of its program, loads them anew.
Libraries are shared by all computers of a process, since many can't be loaded twice; what a library draws at random
while it is loaded is drawn by its name, so that it doesn't matter whose program was the first to need it.
"""

from __future__ import annotations

import importlib
import io
import os
import sys
import sysconfig
import tempfile
import types
from collections.abc import Callable, MutableMapping
from importlib import _bootstrap
from pathlib import Path
from typing import Any

from worldline.programs.reals import EPOCH_NS, REAL, here, real_path
from worldline.programs.surroundings import FileAges

_libraries = tuple({sysconfig.get_path(name) + os.sep for name in ("stdlib", "platstdlib", "purelib", "platlib")})


class Workspace:
    """The surroundings of one program, put in place while it runs.

    `disk` is the folder that it may write to, and `written` are the times of what is written there; `allowed` names the
    escapes from the simulation that it may take.
    """

    def __init__(
        self,
        directory: Path,
        arguments: list[str],
        path: list[str],
        disk: Path | None = None,
        allowed: tuple[str, ...] = (),
        written: MutableMapping[str, int] | None = None,
    ) -> None:
        self.disk = disk
        self.allowed = allowed
        self.place = str(disk or directory)  # Where relative paths begin,
        process = REAL["os.getcwd"]()
        self.came_from = process if process != self.place else None  # and where the process's own do, if elsewhere.
        self._prefix = str(directory) + os.sep
        self._own: dict[str, types.ModuleType] = {}  # Its modules, while another program runs.
        self._names: dict[str, None] = {"__main__": None}
        self._arguments = arguments
        self._path = path
        self._others: dict[str, types.ModuleType] = {}
        self.ages = FileAges(EPOCH_NS, {} if written is None else written)
        self._temporary: tempfile.TemporaryDirectory[str] | None = None

    def is_own(self, file: str | None) -> bool:
        """Whether a module's file is the program's own."""
        return (
            file is not None
            and file.startswith(self._prefix)
            and not file.startswith(_libraries)
            and "site-packages" not in file
        )

    def may_write(self, file: str) -> bool:
        """Whether the program may change a file: one on its own disk."""
        temporary = None if self._temporary is None else real_path(self._temporary.name)
        whole, folders = self._whole(file), (self.disk, temporary)
        return any(folder is not None and f"{whole}{os.sep}".startswith(f"{folder}{os.sep}") for folder in folders)

    def _whole(self, file: Any) -> str:
        path = os.path.join(self.place, os.fsdecode(file))  # noqa: PTH118 - a path object takes ten times as long
        return real_path(path)

    def temporary_folder(self) -> str:
        """Return the folder for the program's temporary files, which is gone with the program."""
        if self._temporary is None:
            computer, here.computer = here.computer, None  # It is a real folder.
            try:
                self._temporary = tempfile.TemporaryDirectory(prefix="worldline-temporary-", ignore_cleanup_errors=True)
            finally:
                here.computer = computer
        return self._temporary.name

    def discard(self) -> None:
        """Remove what is the program's alone."""
        if self._temporary is not None:
            self._temporary.cleanup()

    def note_write(self, file: Any, now: int) -> None:
        """Note that the program opens a file to write, so that it is no older than that."""
        self.ages.note_write(self._whole(file), EPOCH_NS + now)

    def note_time(self, file: Any, time_ns: int) -> None:
        """Note that the program has said how old a file is."""
        self.ages.note_write(self._whole(file), time_ns)

    def note_rename(self, file: Any, to: Any) -> None:
        self.ages.note_rename(self._whole(file), self._whole(to))

    def claim(self, name: str) -> None:
        """Take a module for the program's own that is about to be loaded."""
        self._names[name] = None

    def main(self, **named: Any) -> types.ModuleType:
        """Return a new main module."""
        made = types.ModuleType("__main__")
        made.__dict__.update(named, __builtins__=__builtins__)
        sys.modules["__main__"] = made
        return made

    def put_in_place(self) -> None:
        """Let the process's modules and arguments be this program's."""
        modules = sys.modules
        if not self._others:
            for name, module in list(modules.items()):
                if self.is_own(getattr(module, "__file__", None)) and not name.startswith("worldline"):
                    self._names[name] = None
        for name in self._names:
            if name in modules:
                self._others[name] = modules.pop(name)
        modules.update(self._own)
        modules.setdefault("__main__", types.ModuleType("__main__"))  # A function has none of its own.
        self._arguments, sys.argv = sys.argv, self._arguments
        self._path, sys.path = sys.path, self._path

    def take_away(self) -> None:
        """Let them be as they were before."""
        modules = sys.modules
        self._own = {name: modules.pop(name) for name in self._names if name in modules}
        modules.update(self._others)
        self._arguments, sys.argv = sys.argv, self._arguments
        self._path, sys.path = sys.path, self._path


_occupant: Workspace | None = None


def occupy(workspace: Workspace | None) -> None:
    """Let a program have its surroundings; None: let the process have its own again."""
    global _occupant
    if workspace is not _occupant:
        if _occupant is not None:
            _occupant.take_away()
        if workspace is not None:
            workspace.put_in_place()
        _occupant = workspace


# --- Loading ---

bootstrap: Any = _bootstrap
_load: Callable[[Any], Any] = bootstrap._load_unlocked


def _loaded(spec: Any) -> Any:
    computer = here.computer
    if computer is None:
        return _load(spec)
    if computer.workspace.is_own(spec.origin):
        computer.workspace.claim(spec.name)
        return _load(spec)
    computer.draws.importing.append(spec.name)
    try:
        return _load(spec)
    finally:
        computer.draws.importing.pop()


# --- Output ---


class ProgramOutput(io.TextIOBase):
    """Standard output, or standard error, of whichever program runs; each line is one of its computer's log."""

    def __init__(self, real: Any) -> None:
        self.real = real

    encoding = "utf-8"
    errors = "backslashreplace"

    def write(self, text: str) -> int:
        computer = here.computer
        if computer is None:
            return int(self.real.write(text))
        if computer.over is None:  # Otherwise it is about the end of the run, which its author knows nothing of.
            computer.output.write(text, self.real)
        return len(text)

    def writable(self) -> bool:
        return True

    def flush(self) -> None:
        if here.computer is None:
            self.real.flush()

    def close(self) -> None:
        """Leave it open: it isn't the program's to close."""

    def isatty(self) -> bool:
        return here.computer is None and bool(self.real.isatty())

    def fileno(self) -> int:
        return int(self.real.fileno())

    @property
    def buffer(self) -> Any:
        return self.real.buffer if here.computer is None else _Bytes(self)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.real, name)


class _Bytes(io.RawIOBase):
    def __init__(self, text: ProgramOutput) -> None:
        self._text = text

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self._text.write(bytes(data).decode("utf-8", "backslashreplace"))
        return len(data)


class LineLog:
    """What a program prints, line by line: to be shown, and to be logged."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._unshown: list[tuple[Any, str]] = []
        self._rest = ""

    def write(self, text: str, shown_on: Any) -> None:
        *whole, self._rest = (self._rest + text).split("\n")
        self.lines += whole
        self._unshown += [(shown_on, f"{line}\n") for line in whole]
        if whole and here.thread is None:
            self.show()

    def show(self) -> None:
        """Show what was printed, in the program's main thread: what shows it may look whose that is."""
        unshown, self._unshown = self._unshown, []
        computer, here.computer = here.computer, None  # It is real, with real locks.
        try:
            for shown_on, line in unshown:
                shown_on.write(line)
        finally:
            here.computer = computer

    def finish(self, shown_on: Any) -> None:
        """Take what has no end yet for a line."""
        if self._rest:
            self.write("\n", shown_on)
        self.show()


_shown = 0  # For how many computers.


def show_output() -> None:
    """Let what programs print be lines of their logs."""
    global _shown
    _shown += 1
    for name in ("stdout", "stderr"):
        if not isinstance(getattr(sys, name), ProgramOutput):
            setattr(sys, name, ProgramOutput(getattr(sys, name)))


def hide_output() -> None:
    """Let output be the process's own again, if no other computer needs it."""
    global _shown
    _shown -= 1
    if _shown:
        return
    for name in ("stdout", "stderr"):
        if isinstance(shown := getattr(sys, name), ProgramOutput):
            setattr(sys, name, shown.real)


# --- A stand-in for uvloop, which has sockets of its own ---


def _uvloop() -> types.ModuleType:
    import asyncio

    made = types.ModuleType("uvloop")
    made.__dict__.update(
        Loop=asyncio.SelectorEventLoop,
        EventLoopPolicy=asyncio.DefaultEventLoopPolicy,
        new_event_loop=asyncio.SelectorEventLoop,
        install=lambda: None,
        run=asyncio.run,
        __version__="0",
    )
    return made


class _UvloopFinder:
    """Finds a stand-in for uvloop where a computer's program asks for it."""

    def find_spec(self, name: str, _path: Any = None, _target: Any = None) -> Any:
        if name != "uvloop" or here.computer is None:
            return None
        return importlib.machinery.ModuleSpec(name, self)  # type: ignore[arg-type]

    def create_module(self, _: Any) -> types.ModuleType:
        return _uvloop()

    def exec_module(self, _: types.ModuleType) -> None:
        """It is complete."""


def install() -> None:
    """Take part in how modules are loaded."""
    bootstrap._load_unlocked = _loaded
    sys.meta_path.insert(0, _UvloopFinder())
