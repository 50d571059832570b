"""What a program finds around it besides time and network: a host, a processor, files, alarms.

All of that would differ from run to run or from machine to machine: a program that has as many threads as there are
cores, that lists a folder, or that sends how old a file is. So a computer has one core that is never busy, its folders
are sorted, its files are as old as the run unless the program has written to them, and alarms ring in simulated time.
"""

from __future__ import annotations

import ctypes.util
import errno
import gc
import math
import os
import platform
import resource
import signal
import socket
import ssl
import stat
import tempfile
import time
from collections.abc import Callable, Iterator, MutableMapping
from contextlib import suppress
from functools import partial
from itertools import count
from typing import Any

from worldline.programs.endpoints import PipeEnd
from worldline.programs.escapes import audit, check_read
from worldline.programs.reals import REAL, for_programs, here, in_folder, real_path, really


def _constant(value: Any) -> Callable[..., Any]:
    return lambda *_: value


# --- The processor ---

# Computing takes no time, but for looking at a clock again and again.

_OF_PROCESSOR = (time.CLOCK_PROCESS_CPUTIME_ID, time.CLOCK_THREAD_CPUTIME_ID)


def _clock_gettime_ns(computer: Any, clock: int) -> int:
    if clock in _OF_PROCESSOR:
        return int(computer.processor_ns())
    return int(computer.time_ns() if clock == time.CLOCK_REALTIME else computer.monotonic_ns())


def _times(computer: Any) -> Any:
    return os.times_result((computer.processor_ns() / 1e9, 0.0, 0.0, 0.0, computer.stack.now / 1e9))


def _getrusage(computer: Any, _: int) -> Any:
    return resource.struct_rusage((computer.processor_ns() / 1e9, 0.0, *(0,) * 14))


# --- The host ---


def _collect_garbage(_: Any, *given: int, **named: int) -> int:
    """Collect it, and don't say how much it was: other programs of the process have some, too."""
    REAL["gc.collect"](*given, **named)
    return 0


_RELEASE, _VERSION = "6.1.0", "#1 SMP"  # Of its Linux.
_MEMORY = 1 << 33
_SYSTEM = {
    **dict.fromkeys(("SC_NPROCESSORS_CONF", "SC_NPROCESSORS_ONLN"), 1),
    **dict.fromkeys(("SC_PHYS_PAGES", "SC_AVPHYS_PAGES"), _MEMORY // resource.getpagesize()),
}
"""What it says of its processor and memory, by the names of `os.sysconf`."""


def _sysconf(_: Any, name: Any) -> int:
    names = {os.sysconf_names[each]: value for each, value in _SYSTEM.items() if each in os.sysconf_names}
    known: int | None = names.get(os.sysconf_names.get(name, name))
    return REAL["os.sysconf"](name) if known is None else known


def _uname(computer: Any) -> Any:
    real = REAL["os.uname"]()
    return os.uname_result((real.sysname, computer.name, _RELEASE, _VERSION, real.machine))


def _platform_uname(computer: Any) -> Any:
    real = REAL["platform.uname"]()
    made = platform.uname_result(real.system, computer.name, _RELEASE, _VERSION, real.machine)
    made.__dict__["processor"] = ""  # Otherwise a process is started to ask for it.
    return made


def _find_library(_: Any, name: str) -> Any:
    if name == "pthread":  # It crashes when it is given the number of a thread that isn't real.
        return None
    with really():  # It asks other programs.
        return REAL["ctypes.util.find_library"](name)


def _getrandom(computer: Any, size: int, *_: int) -> bytes:
    return bytes(computer.draws.entropy().randbytes(size))


# --- Files ---


_FILE_SYSTEM = os.statvfs_result((4_096, 4_096, *(1 << 25, 1 << 24, 1 << 24) * 2, 0, 255, 0))  # Half of it is free.
_FOLDER_SIZE = 4_096  # Whatever file system it is on.


def _stat(name: str) -> Callable[..., Any]:
    def shown(computer: Any, file: Any, *given: Any, **named: Any) -> Any:
        if isinstance(file, int) and computer.stack.has(file):
            kind = stat.S_IFIFO if isinstance(computer.stack.endpoint(file), PipeEnd) else stat.S_IFSOCK
            return os.stat_result((kind | 0o600, file, 0, 1, 0, 0, 0, 0, 0, 0))
        check_read(file)
        real = REAL[f"os.{name}"](file, *given, **named)
        return computer.workspace.ages.shown(in_folder(file, _descriptor(named.get("dir_fd"))), real)

    return shown


def _open(real: Callable[..., int]) -> Callable[..., int]:
    """Stand in for `os.open`, since Python doesn't tell of the folder in which a path begins."""

    def opened(_: Any, path: Any, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        if dir_fd is None:
            return real(path, flags, mode)
        audit("open", (in_folder(os.fspath(path), dir_fd), None, flags))
        with really():
            return real(path, flags, mode, dir_fd=dir_fd)

    return opened


def _descriptor(dir_fd: int | None) -> int:
    return -1 if dir_fd is None else dir_fd


class FileAges:
    """How old files are for a program: as old as the run, but for those that it has opened to write since.

    `written` has the times of these, by path; it lasts as long as the disk. Files and devices are numbered in the order
    in which the program looks at them: a new file has a new number, whether or not the file system gives it the place
    of one that was removed.
    """

    def __init__(self, start_ns: int, written: MutableMapping[str, int]) -> None:
        self._start_ns = start_ns
        self._written = written
        self._devices = _Numbers()
        self._files = _Numbers()
        self._removed: set[tuple[int, ...]] = set()

    def note_write(self, file: str, time_ns: int) -> None:
        self._written[file] = time_ns

    def note_rename(self, file: str, to: str) -> None:
        if file in self._written:
            self._written[to] = self._written.pop(file)

    def shown(self, file: Any, real: os.stat_result) -> os.stat_result:
        """Return what is known of a file, a path or a descriptor, with the times that the program is to see."""
        nanoseconds = self._written.get(_path_of(file), self._start_ns) if self._written else self._start_ns
        times = {f"st_{kind}time": nanoseconds / 1e9 for kind in "amc"}
        times |= {f"st_{kind}time_ns": nanoseconds for kind in "amc"}
        size = _FOLDER_SIZE if stat.S_ISDIR(real.st_mode) else real.st_size
        rest = {"st_blksize": 4_096, "st_blocks": -(-size // 512), "st_rdev": real.st_rdev}
        numbers = self._number(real), self._devices[(real.st_dev,)]
        whole = nanoseconds // 1_000_000_000
        plain = (real.st_mode, *numbers, real.st_nlink, real.st_uid, real.st_gid, size, whole, whole, whole)
        return os.stat_result(plain, {**rest, **times})

    def note_removal(self, path: Any) -> None:
        """Note that the program is about to remove the last link to a file, or a folder."""
        with suppress(OSError), really():
            real = os.lstat(path)
            if real.st_nlink == 1 or stat.S_ISDIR(real.st_mode):
                self._removed.add((real.st_dev, real.st_ino))

    def _number(self, real: os.stat_result) -> int:
        place = real.st_dev, real.st_ino
        if place in self._removed and real.st_nlink:  # Otherwise it is the one that was removed, and is still open.
            self._removed.remove(place)
            self._files.pop(place, None)
        return self._files[place]


class _Numbers(dict[tuple[int, ...], int]):
    """Numbers what it is asked for, from 1 on."""

    def __init__(self) -> None:
        super().__init__()
        self._next = count(1)

    def __missing__(self, key: tuple[int, ...]) -> int:
        number = self[key] = next(self._next)
        return number


def _path_of(file: Any) -> str:
    return real_path(f"/proc/self/fd/{file}" if isinstance(file, int) else os.fsdecode(file))


def _listdir(_: Any, path: Any = ".") -> list[Any]:
    return sorted(REAL["os.listdir"](path))


def _readlink(_: Any, path: Any, **named: Any) -> Any:
    check_read(path)
    return REAL["os.readlink"](path, **named)


def _fsync(name: str) -> Callable[..., Any]:
    def sync(computer: Any, fd: Any) -> None:
        descriptor = fd if isinstance(fd, int) else fd.fileno()
        if computer.stack.has(descriptor):
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
        REAL["os.fstat"](descriptor)  # It says if there is none.
        if "files" in computer.workspace.allowed:
            REAL[f"os.{name}"](descriptor)
        computer.workspace.sync(descriptor)

    return sync


def _sync(computer: Any) -> None:
    if computer.workspace.disk is not None:
        computer.workspace.disk.sync_all()


class _Entry:
    """What `os.scandir` says of a file, whose times are those that the program is to see."""

    def __init__(self, real: Any) -> None:
        self._real = real

    def __fspath__(self) -> Any:
        return self._real.path

    def __repr__(self) -> str:
        return repr(self._real)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    def inode(self) -> int:
        return self.stat(follow_symlinks=False).st_ino

    def stat(self, *, follow_symlinks: bool = True) -> os.stat_result:
        real: os.stat_result = self._real.stat(follow_symlinks=follow_symlinks)
        if here.computer is None:
            return real
        ages: FileAges = here.computer.workspace.ages
        return ages.shown(self._real.path, real)


class _Entries:
    """What `os.scandir` returns, in the order of the names."""

    def __init__(self, path: Any) -> None:
        with REAL["os.scandir"](path) as found:
            self._entries = iter([_Entry(each) for each in sorted(found, key=lambda entry: entry.name)])

    def __iter__(self) -> Iterator[Any]:
        return self._entries

    def __next__(self) -> Any:
        return next(self._entries)

    def __enter__(self) -> _Entries:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._entries = iter(())


def _candidate_names(computer: Any) -> Iterator[str]:
    """Return names for temporary files."""
    return iter(lambda: f"{computer.draws.entropy().getrandbits(40):010x}", "")


# --- Alarms ---


def _setitimer(computer: Any, which: int, seconds: float, interval: float = 0.0) -> tuple[float, float]:
    if which != signal.ITIMER_REAL:
        return 0.0, 0.0  # It counts processor time, which doesn't pass.
    if seconds < 0 or interval < 0:
        raise signal.ItimerError(22, "Invalid argument")
    before = _getitimer(computer, which)
    computer.signals.set_alarm(computer.stack.now, round(seconds * 1e9), round(interval * 1e9))
    return before


def _getitimer(computer: Any, which: int) -> tuple[float, float]:
    if which != signal.ITIMER_REAL:
        return 0.0, 0.0
    left, every = computer.signals.alarm(computer.stack.now)
    return left / 1e9, every / 1e9


def _alarm(computer: Any, seconds: int) -> int:
    left, _ = _setitimer(computer, signal.ITIMER_REAL, seconds)
    return math.ceil(left)


def _pause(computer: Any) -> None:
    before = computer.signals.delivered
    computer.wait(lambda: None if computer.signals.delivered == before else True)


def _sigtimedwait(computer: Any, mask: Any, timeout: float | None) -> Any:
    if timeout is not None and timeout < 0:
        raise ValueError("timeout must be non-negative")
    wanted = dict.fromkeys(map(int, mask))
    deadline = None if timeout is None else computer.stack.now + round(timeout * 1e9)
    found = computer.wait(lambda: computer.signals.take(wanted), deadline)
    return None if found is None else signal.struct_siginfo((found, 0, 0, computer.pid, os.getuid(), 0, 0))


def stand_ins() -> dict[Any, dict[str, Any]]:
    """Return what stands in for which names of which modules."""
    simulated: dict[Any, dict[str, Callable[..., Any]]] = {
        time: {
            **dict.fromkeys(("process_time", "thread_time"), lambda computer: computer.processor_ns() / 1e9),
            **dict.fromkeys(("process_time_ns", "thread_time_ns"), lambda computer: computer.processor_ns()),
            "clock_gettime": lambda computer, clock: _clock_gettime_ns(computer, clock) / 1e9,
            "clock_gettime_ns": _clock_gettime_ns,
        },
        resource: {"getrusage": _getrusage},
        gc: {
            "collect": _collect_garbage,
            "get_count": _constant((0, 0, 0)),
            "get_stats": lambda _: [{"collections": 0, "collected": 0, "uncollectable": 0} for _ in range(3)],
        },
        ssl: {"RAND_bytes": _getrandom},
        ctypes.util: {"find_library": _find_library},
        platform: {"node": lambda computer: computer.name, "uname": _platform_uname},
        socket: {"if_nameindex": _constant([(1, "lo"), (2, "eth0")])},
        os: {
            "times": _times,
            "getloadavg": _constant((0.0, 0.0, 0.0)),
            "cpu_count": _constant(1),
            "process_cpu_count": _constant(1),
            "sched_getaffinity": _constant({0}),
            "getppid": _constant(1),
            **dict.fromkeys(("getpgrp", "getpgid", "getsid"), lambda computer, *_: computer.pid),
            "chdir": lambda computer, path: computer.workspace.belongings.folder.change(path),
            "fchdir": lambda computer, fd: computer.workspace.belongings.folder.change(fd),
            "uname": _uname,
            "sysconf": _sysconf,
            "getrandom": _getrandom,
            "open": _open(os.open),
            **{name: _stat(name) for name in ("stat", "lstat", "fstat")},
            "listdir": _listdir,
            "readlink": _readlink,
            **{name: _fsync(name) for name in ("fsync", "fdatasync") if hasattr(os, name)},
            "sync": _sync,
            **dict.fromkeys(("statvfs", "fstatvfs"), _constant(_FILE_SYSTEM)),
            "scandir": lambda _, path=".": _Entries(path),
        },
        tempfile: {
            "gettempdir": lambda computer: computer.workspace.temporary_folder(),
            "_get_candidate_names": _candidate_names,
        },
        signal: {
            "alarm": _alarm,
            "setitimer": _setitimer,
            "getitimer": _getitimer,
            "pause": _pause,
            "sigwait": lambda computer, mask: signal.Signals(_sigtimedwait(computer, mask, None).si_signo),
            "sigwaitinfo": lambda computer, mask: _sigtimedwait(computer, mask, None),
            "sigtimedwait": _sigtimedwait,
        },
    }
    with suppress(ImportError):  # Some builds of Python are without it.
        import _sqlite3

        from worldline.programs.databases import connected

        simulated[_sqlite3] = {"connect": partial(connected, _sqlite3.connect)}
    made = {
        module: {
            name: for_programs(getattr(module, name), simulates)
            for name, simulates in names.items()
            if hasattr(module, name)  # Some came with later versions of Python.
        }
        for module, names in simulated.items()
    }
    for able in (os.supports_fd, os.supports_dir_fd, os.supports_follow_symlinks):
        able.update({each for name, each in made[os].items() if getattr(os, name) in able})
    return made
