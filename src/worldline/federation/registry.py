"""Which runs are going on here: each has an entry in a folder that only this user can open, as long as it runs.

An entry says where the run's server listens, and has the token that an operator needs. A run that is killed leaves its
entry behind; the next run that is entered, or the next operator, notices that the process is gone, or another one by
now, and removes it. No run fails because it can't be entered: it just isn't found.
"""

from __future__ import annotations

import ipaddress
import os
import socket
import stat
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from tempfile import gettempdir

import msgspec
from msgspec import Struct

from worldline.federation.address import LOOPBACK, Address, parse_address
from worldline.federation.peer_process import birth_of
from worldline.model.errors import UsageError

_PRIVATE = 0o700
_ENTRY = ".run"
_ATTEMPTS = 3
_LOCALHOST = "localhost"


class RunEntry(Struct, frozen=True, kw_only=True):
    """One run: its name, where its server listens, and in which process, which began at `born` by the system's count.

    `token` is what an operator proves to know. A run without a name is found by its address alone.
    """

    name: str
    address: str
    token: str | None
    process: int
    born: str


def runtime_folder() -> Path:
    """Return where entries are: in the user's own runtime folder, where the system provides one."""
    given = os.environ.get("XDG_RUNTIME_DIR")
    if given and Path(given).is_dir():
        return Path(given) / "worldline"
    return Path(gettempdir()) / f"worldline-{os.getuid()}"


def enter(name: str, address: str, token: str | None) -> Callable[[], None]:
    """Enter a run of this process, and remove the entries of those that are gone; return what takes it back."""
    with suppress(OSError, UsageError):
        _entries()
    process = os.getpid()
    entry = RunEntry(name=name, address=address, token=token, process=process, born=birth_of(process))
    path: Path | None = None
    for _ in range(_ATTEMPTS):  # The last one to leave takes the folder away, perhaps just now.
        with suppress(OSError, UsageError):
            path = _written(opened_folder(runtime_folder()), entry)
            break

    def leave() -> None:
        if path is not None:
            with suppress(OSError):
                path.unlink()
                path.parent.rmdir()  # Unless others have entries there.

    return leave


def running(name: str | None = None) -> list[RunEntry]:
    """Return the runs of this name, or all that have one; those that are gone are forgotten."""
    return sorted(
        (entry for entry in _entries() if entry.name and name in (None, entry.name)),
        key=lambda each: (each.name, each.process),
    )


def token_at(address: Address) -> str | None:
    """Return what an operator needs for the run that listens there, if it is one of this user's on this machine."""
    with suppress(OSError, UsageError):  # What the folder says can't be trusted.
        tokens = {_normal(parse_address(entry.address)): entry.token for entry in _entries()}
        for listening in _reached_by(_normal(address)):
            if listening in tokens:
                return tokens[listening]
    return None


def _normal(address: Address) -> Address:
    """Return the one way to write an address that can be written in several."""
    place = address.place
    if address.kind == "unix":
        return replace(address, place=os.path.realpath(place))
    with suppress(ValueError):  # It is a name.
        place = str(ipaddress.ip_address(place))
    return replace(address, place=place)


def _reached_by(meant: Address) -> list[Address]:
    """Return where a server may listen that is reached by an address, in the order in which they are tried.

    Several may listen on one port, each on a loopback address of its own. One that listens everywhere does so on
    loopback as well. Any other name may be another machine's, which is told nothing.
    """
    if meant.kind == "unix" or not meant.is_local:
        return [meant]
    tried = [meant.place]
    if meant.place == _LOCALHOST:
        tried = [str(found[4][0]) for found in socket.getaddrinfo(_LOCALHOST, meant.port, type=socket.SOCK_STREAM)]
    places: list[str] = []
    for place in tried:
        own = [place, _LOCALHOST] if place == LOOPBACK else [place]  # Servers take the name for that one.
        places += [*own, "::"] if ":" in place else [*own, "0.0.0.0", "::"]
    return [replace(meant, place=place) for place in places]


def _entries() -> list[RunEntry]:
    """Return the entries of all runs that go on, and remove those of others."""
    folder = runtime_folder()
    if not folder.exists():
        return []
    try:
        paths = sorted(path for path in opened_folder(folder).iterdir() if path.suffix == _ENTRY)
    except OSError:
        return []
    return [entry for path in paths if (entry := _read(path)) is not None]


def opened_folder(folder: Path) -> Path:
    """Return the folder, made if need be, if no other user can have written into it."""
    folder.mkdir(mode=_PRIVATE, exist_ok=True)
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or stat.S_IMODE(found.st_mode) & 0o077:
        raise UsageError(
            f"{folder} isn't a folder that only you can open, so what it says of runs can't be trusted",
            advice="remove it, or name the run by its address",
        )
    return folder


def _written(folder: Path, entry: RunEntry) -> Path:
    number = 0
    while (path := folder / f"{entry.process}-{number}{_ENTRY}").exists():
        number += 1
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(msgspec.json.encode(entry))
    return path


def _read(path: Path) -> RunEntry | None:
    """Read an entry. One that is of a process that is gone is removed, and so is one that was never finished."""
    try:
        entry = msgspec.json.decode(path.read_bytes(), type=RunEntry)
    except OSError:
        return None
    except msgspec.MsgspecError:
        process = path.name.partition("-")[0]
        if process.isdecimal() and not birth_of(int(process)):
            path.unlink(missing_ok=True)
        return None
    if birth_of(entry.process) == entry.born:
        return entry
    path.unlink(missing_ok=True)
    return None
