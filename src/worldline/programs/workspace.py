"""What a program has for itself in a process that it shares: its modules, arguments, search path and output.

Modules below the program's directory are its own: each computer, and each start of its program, loads them anew.
Libraries are shared by all computers of a process, since many can't be loaded twice; what a library draws at random
while it is loaded is drawn by its name, so that it doesn't matter whose program was the first to need it.
"""

from __future__ import annotations

import asyncio
import importlib
import io
import logging
import os
import sys
import traceback
import types
from collections.abc import Callable
from importlib import _bootstrap
from pathlib import Path
from typing import Any

from worldline.programs.belongings import Belongings
from worldline.programs.disk import Disk, give_back_folder, take_folder
from worldline.programs.escapes import check_library
from worldline.programs.reals import EPOCH_NS, here, real_path, really
from worldline.programs.surroundings import FileAges


class Workspace:
    """The surroundings of one program, put in place while it runs.

    `disk` is what it may write to; `allowed` names the escapes from the simulation that it may take.
    """

    def __init__(
        self,
        directory: Path,
        arguments: list[str],
        path: list[str],
        disk: Disk | None = None,
        allowed: tuple[str, ...] = (),
        owner: str = "",
    ) -> None:
        self.belongings = Belongings(str(directory if disk is None else disk.folder), directory, arguments, path)
        self.disk = disk
        self.allowed = allowed
        self.ages = FileAges(EPOCH_NS, {} if disk is None else disk.stable)
        self._temporary: str | None = None
        self._owner = owner, directory
        self.loggers: dict[Any, dict[str, Any]] = {}  # Their states, by attribute.
        self.at_exit: list[tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]] = []
        self.socket_timeout: float | None = None

    def may_write(self, file: str) -> bool:
        """Whether the program may change a file: one on its own disk."""
        whole = self._whole(file)
        if self.disk is not None and self.disk.has(whole):
            return True
        return self._temporary is not None and f"{whole}{os.sep}".startswith(f"{self._temporary}{os.sep}")

    def place_of(self, path: str) -> str | None:
        """Return where a path leads, if that is on the program's own disk."""
        return self._whole(path) if path and path[0] != "\0" and self.may_write(path) else None

    def _whole(self, file: Any) -> str:
        path = os.path.join(self.belongings.folder.path, os.fsdecode(file))  # noqa: PTH118 - a path object takes ten times as long
        return real_path(path)

    def _name(self, file: Any) -> str:
        """Return where a name itself is: if it is a symbolic link's, not what that leads to."""
        place = self.belongings.folder.path
        above, name = os.path.split(os.path.join(place, os.fsdecode(file)).rstrip(os.sep))  # noqa: PTH118
        return os.path.join(real_path(above), name)  # noqa: PTH118

    def temporary_folder(self) -> str:
        """Return the folder for the program's temporary files, which is gone with the program."""
        if self._temporary is None:
            self._temporary = take_folder(self._owner[0], "temporary", self._owner[1])
        return self._temporary

    def discard(self) -> None:
        """Remove what is the program's alone."""
        self.belongings.folder.close()
        if self._temporary is not None:
            give_back_folder(self._temporary)

    def note_write(self, file: Any, now: int, *, is_synced: bool = False) -> None:
        """Note that the program is about to change a file, so that it is no older than that."""
        whole = self._whole(file)
        self.ages.note_write(whole, EPOCH_NS + now)
        if self.disk is not None and not is_synced:
            self.disk.change(whole)

    def note_time(self, file: Any, time_ns: int) -> None:
        """Note that the program has said how old a file is."""
        self.ages.note_write(self._whole(file), time_ns)

    def note_rename(self, file: Any, to: Any) -> None:
        one, other = self._name(file), self._name(to)
        self.ages.note_rename(one, other)
        self.ages.note_removal(to)
        if self.disk is not None:
            self.disk.rename(one, other)

    def note_removal(self, file: Any) -> None:
        self.ages.note_removal(file)
        if self.disk is not None:
            self.disk.remove(self._name(file))

    def note_link(self, file: Any, to: Any) -> None:
        if self.disk is not None:
            self.disk.link(self._name(file), self._name(to))

    def note_making(self, file: Any) -> None:
        """Note that a folder or a symbolic link is about to be made."""
        if self.disk is not None:
            self.disk.make(self._name(file))

    def note_database(self, file: str) -> None:
        if self.disk is not None:
            self.disk.forget(self._whole(file))

    def sync(self, descriptor: int) -> None:
        """Let what the program has written to a file, or the names in a folder, outlive any crash."""
        if self.disk is not None:
            self.disk.sync(real_path(f"/proc/self/fd/{descriptor}"))

    def main(self, **named: Any) -> types.ModuleType:
        """Return a new main module."""
        made = types.ModuleType("__main__")
        made.__dict__.update(named, __builtins__=__builtins__)
        sys.modules["__main__"] = made
        return made

    def finish(self) -> None:
        """Do what Python does at the end of a process, last said first done."""
        while self.at_exit:
            function, given, named = self.at_exit.pop()
            try:
                function(*given, **named)
            except Exception:
                traceback.print_exc()
        logging.shutdown(_all_handlers)


_all_handlers: list[Any] = logging._handlerList  # type: ignore[attr-defined]


# --- Loading ---

bootstrap: Any = _bootstrap
_load: Callable[[Any], Any] = bootstrap._load_unlocked


def _loaded(spec: Any) -> Any:
    computer = here.computer
    if computer is None:
        return _load(spec)
    check_library(spec.name)
    modules = computer.workspace.belongings.modules
    if modules.owns(spec.origin):
        modules.claim(spec.name)
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
        self._rest_shown_on: Any = None

    def write(self, text: str, shown_on: Any) -> None:
        *whole, self._rest = (self._rest + text).split("\n")
        self._rest_shown_on = shown_on
        self.lines += whole
        self._unshown += [(shown_on, f"{line}\n") for line in whole]
        if whole and here.thread is None:
            self.show()

    def show(self) -> None:
        """Show what was printed, in the program's main thread: what shows it may look whose that is."""
        unshown, self._unshown = self._unshown, []
        with really():  # With real locks.
            for shown_on, line in unshown:
                shown_on.write(line)

    def finish(self) -> None:
        """Take what has no end yet for a line."""
        if self._rest:
            self.write("\n", self._rest_shown_on)
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
