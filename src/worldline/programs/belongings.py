"""What a process has one of, and each program that shares it has for itself: it is exchanged whenever one waits.

Modules and where they are looked for, arguments, environment variables, the event loop that runs, hooks, handlers of
logs, the time zone and the folder where relative paths begin.
"""

from __future__ import annotations

import asyncio
import logging
import os
import sys
import sysconfig
import threading
import time
import types
from pathlib import Path
from typing import TYPE_CHECKING, Any

from worldline.federation.participant.participant import surroundings
from worldline.programs.escapes import is_refused
from worldline.programs.reals import REAL, really

if TYPE_CHECKING:
    import worldline.uncompiled as cython
else:
    try:
        import cython
    except ImportError:
        import worldline.uncompiled as cython

_environ: Any = os.environ
_environb: Any = os.environb
_events: Any = asyncio.events
_handlers: Any = logging._handlers  # type: ignore[attr-defined]
_all_handlers: list[Any] = logging._handlerList  # type: ignore[attr-defined]
_variables: dict[bytes, bytes] = _environ._data  # The process's own.
_chdir = REAL["os.chdir"]
_ident = threading.get_ident
_tzset, _putenv, _unsetenv = time.tzset, os.putenv, os.unsetenv
_running_loop, _run_loop = asyncio._get_running_loop, asyncio._set_running_loop

if not cython.compiled:  # Otherwise `belongings.pxd` imports those in C, which aren't audited.
    asyncgen_hooks, set_asyncgen_hooks = sys.get_asyncgen_hooks, sys.set_asyncgen_hooks


class WorkingFolder:
    """Where a program's relative paths begin. The process's own begin where they did, whenever the program waits."""

    def __init__(self, path: str) -> None:
        self._process = REAL["os.getcwd"]()
        self.path = path
        self._came_from: str | None = None  # Where the process's begin, if elsewhere.
        self._open: int | None = None  # A descriptor of a folder that it has changed to: it may remove that.
        self._settle_in(path)

    def enter(self) -> None:
        if self._came_from is not None:
            _chdir(self.path if self._open is None else self._open)

    def leave(self) -> None:
        if self._came_from is not None:
            _chdir(self._came_from)

    def change(self, folder: Any) -> None:
        """Let relative paths begin elsewhere, also after other programs have run."""
        _chdir(folder)
        self._settle_in(REAL["os.getcwd"]())
        self.close()
        with really():
            self._open = os.open(".", getattr(os, "O_PATH", os.O_RDONLY))

    def close(self) -> None:
        if self._open is not None:
            REAL["os.close"](self._open)
            self._open = None

    def _settle_in(self, path: str) -> None:
        self.path = path
        self._came_from = self._process if self._process != path else None


class OwnModules:
    """The modules that a program has for itself: `__main__`, and those below its directory."""

    def __init__(self, directory: Path) -> None:
        self._prefix = str(directory) + os.sep
        self._names: dict[str, None] = {"__main__": None}
        self._elsewhere: dict[str, Any] | None = None  # Its modules, or the process's while it runs.

    def owns(self, file: str | None) -> bool:
        """Whether a module of this file is the program's own."""
        return (
            file is not None
            and file.startswith(self._prefix)
            and not file.startswith(_libraries)
            and "site-packages" not in file
        )

    def claim(self, name: str) -> None:
        """Take a module for the program's own that is about to be loaded."""
        self._names[name] = None

    def exchange(self) -> None:
        """Let the process's modules be this program's; or, if they are, what they were before."""
        if self._elsewhere is None:
            self._elsewhere = self._set_apart()
        modules, elsewhere = sys.modules, self._elsewhere
        for name in self._names:
            there, own = modules.pop(name, None), elsewhere.pop(name, None)
            if own is not None:
                modules[name] = own
            if there is not None:
                elsewhere[name] = there

    def _set_apart(self) -> dict[str, Any]:
        """Claim those of the process that are to be the program's own; return those that it has to begin with."""
        libraries = _known_libraries.setdefault(self._prefix, {})
        for name, module in list(sys.modules.items()):
            if libraries.get(name) is module:
                continue
            is_own = self.owns(getattr(module, "__file__", None)) and not name.startswith("worldline")
            if is_own or is_refused(name):  # What the process has loaded, the program can't.
                self.claim(name)
            else:
                libraries[name] = module
        return {"__main__": types.ModuleType("__main__")}  # A function has none of its own.


_libraries = tuple({sysconfig.get_path(name) + os.sep for name in ("stdlib", "platstdlib", "purelib", "platlib")})
# The modules of the process that aren't those of programs below a directory: there are a thousand, at each start.
_known_libraries: dict[str, dict[str, types.ModuleType]] = {}


class Belongings:
    """Those of one program, which begins in a folder; its own modules are below a directory."""

    def __init__(self, folder: str, directory: Path, arguments: list[str], path: list[str]) -> None:
        self.folder = WorkingFolder(folder)
        self.modules = OwnModules(directory)
        self._arguments = arguments
        self._path = path
        self.zone: str | None = "UTC"
        self._variables = {name: value for name, value in _variables.items() if name != b"TZ"}
        self._exported: dict[bytes, bytes | None] = {}
        self._policy: Any = None
        self._hook: Any = threading.__excepthook__
        self._handler_names: dict[str, Any] = {}
        self._handlers: list[Any] = []
        self._loop: Any = None  # Which runs, while another program does.
        self._hooks: tuple[Any, ...] = (None, None)  # That loop's.

    def enter(self) -> None:
        """Let what a process has one of be this program's; its relative paths begin where the program's do."""
        if _occupant is not self:
            _occupy(self)
        self.folder.enter()

    def leave(self) -> None:
        """Let relative paths begin where they did before; all else stays until another comes."""
        self._loop, self._hooks = _running_loop(), asyncgen_hooks()
        self.folder.leave()

    def _exchange_settings(self, before: Belongings) -> None:
        """Let what a process has one of, and a program may change, be this program's; `before` keeps its own.

        Each has the process's while the other's are in place. It is written out, since it is done at each wait.
        """
        own, self._arguments, before._arguments = self._arguments, before._arguments, sys.argv
        sys.argv = own
        paths, self._path, before._path = self._path, before._path, sys.path
        sys.path = paths
        variables, self._variables, before._variables = self._variables, before._variables, _environ._data
        _environ._data = _environb._data = variables
        policy, self._policy, before._policy = self._policy, before._policy, _events._event_loop_policy
        _events._event_loop_policy = policy
        hook, self._hook, before._hook = self._hook, before._hook, threading.excepthook
        threading.excepthook = hook
        names, self._handler_names, before._handler_names = self._handler_names, before._handler_names, _handlers.data
        _handlers.data = names
        if self._handlers or before._handlers or _all_handlers:
            handlers, self._handlers, before._handlers = self._handlers, before._handlers, _all_handlers[:]
            _all_handlers[:] = handlers

    def export(self, name: bytes, value: bytes | None) -> None:
        """Let C code and other processes see a variable too, or that there is none, while the program runs."""
        if name != b"TZ":  # See `change_zone`.
            self._exported[name] = value
            _export(name, value)

    def _exchange_exported(self, is_entering: bool) -> None:
        """Let C code see the program's variables, or the process's again."""
        for name, value in self._exported.items():
            _export(name, value if is_entering else _variables.get(name))

    def change_zone(self, zone: str) -> None:
        """Let the program's local time be another zone's."""
        self.zone = zone
        _change_zone(zone)


_occupant: Belongings | None = None
_process_loop: tuple[Any, Any, int] = None, (None, None), 0  # What ran before, with its hooks, in which thread.
_process_zone: str | None = None  # The time zone of the process's own,
_zone: str | None = None  # and the one that is in place.


def _occupy(own: Belongings) -> None:
    """Let a program have what is its own, after another's or the process's."""
    global _occupant
    before, _occupant = _occupant, own
    if before is None:
        _note_process()
    else:
        before.modules.exchange()
        before._exchange_exported(False)
    own.modules.exchange()
    own._exchange_exported(True)
    own._exchange_settings(own if before is None else before)
    _run_loop(own._loop)
    first, last = own._hooks
    set_asyncgen_hooks(first, last)
    if own.zone != _zone:
        _change_zone(own.zone)


def vacate() -> None:
    """Let the process have its own again."""
    global _occupant
    before = _occupant
    if before is None:
        return
    _occupant = surroundings.give_back = None
    before.modules.exchange()
    before._exchange_exported(False)
    before._exchange_settings(before)
    loop, hooks, thread = _process_loop
    if thread == _ident():  # Where strands are threads, each has its own.
        _run_loop(loop)
        first, last = hooks
        set_asyncgen_hooks(first, last)
    if _process_zone != _zone:
        _change_zone(_process_zone)


def _note_process() -> None:
    global _process_loop, _process_zone, _zone
    _process_loop = _running_loop(), asyncgen_hooks(), _ident()
    _process_zone = _zone = os.environ.get("TZ")
    surroundings.give_back = vacate


def _change_zone(zone: str | None) -> None:
    """Let the process's local time be that of a zone."""
    global _zone
    _zone = zone
    _export(b"TZ", None if zone is None else os.fsencode(zone))
    _tzset()


def _export(name: bytes, value: bytes | None) -> None:
    if value is None:
        _unsetenv(name)
    else:
        _putenv(name, value)
