"""SQLite for a program: what its SQL asks of the clock, or at random, is its computer's; so is the time that it waits.

SQLite takes both from the operating system, below Python. So each connection of a program has functions of its own for
them: they put the computer's time in the place of ``'now'``, and let SQLite's do the rest. And where SQLite would wait
in real time for another connection, whose thread can't go on meanwhile, it is asked again and again in simulated time.
"""

from __future__ import annotations

import _sqlite3
import atexit
import os
import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from functools import cache, partial
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, quote, urlsplit

from worldline.programs.escapes import database_file, may_change, refuse_to_write
from worldline.programs.reals import here, really

_BEGIN = datetime(1970, 1, 1, tzinfo=UTC)
_OF_TIME = {"date": 0, "time": 0, "datetime": 0, "julianday": 0, "unixepoch": 0, "strftime": 1}  # Where the time is.
_HAS_TIMEDIFF = tuple(map(int, _sqlite3.sqlite_version.split("."))) >= (3, 43)
_NOW = {"current_date": "date", "current_time": "time", "current_timestamp": "datetime"}
_PARAMETERS = (
    "timeout",
    "detect_types",
    "isolation_level",
    "check_same_thread",
    "factory",
    "cached_statements",
    "uri",
)
_ASK_AGAIN_NS = 10_000_000
_LEGACY = -1  # How transactions are begun, unless a connection says otherwise (sqlite3.LEGACY_TRANSACTION_CONTROL).
_COMMENTS = r"(?:\s|--[^\n]*(?:\n|$)|/\*.*?\*/)*"
_SETS_PATIENCE = re.compile(rf"{_COMMENTS}PRAGMA\b{_COMMENTS}(?:\w+\s*\.\s*)?busy_timeout\b", re.IGNORECASE | re.DOTALL)
_ZONES = ("localtime", "utc")  # A computer's local time is UTC.


def connected(real: Callable[..., Any], _computer: Any, database: Any, *given: Any, **named: Any) -> Any:
    """Return a connection whose functions are a computer's, and which waits in its time."""
    named |= zip(_PARAMETERS, given, strict=False)
    patience_s, kind = named.pop("timeout", 5.0), named.pop("factory", _sqlite3.Connection)
    file = database_file(database)
    foreign = None if file is None or may_change(file) else file
    if foreign is not None:
        uri = _for_reading(os.fsdecode(database), named.get("uri", False))
        database = f"{uri}&immutable=1" if _has_idle_log(foreign) else uri
        named["uri"] = True
    made = real(database, timeout=0.0, factory=_patient(kind, _PatientConnection), **named)
    made._patience_ns = round(patience_s * 1e9)
    made._is_read_only = foreign is not None
    made.set_authorizer(made._guard.own)
    plain = _plain(real)
    for name, place in _OF_TIME.items():
        made.create_function(name, -1, _of_time(plain, name, place), deterministic=True)
    if _HAS_TIMEDIFF:
        made.create_function("timediff", 2, _difference(plain), deterministic=True)
    for name, other in _NOW.items():
        made.create_function(name, 0, _of_time(plain, other, 0), deterministic=True)
    made.create_function("random", 0, lambda: here.computer.draws.entropy().getrandbits(64) - 2**63)
    made.create_function("randomblob", 1, lambda size: here.computer.draws.entropy().randbytes(max(size, 1)))
    return made


# --- Files that aren't the program's own ---


def _for_reading(name: str, is_uri: bool) -> str:
    """Return the URI by which a database can only be read; where a mode is named twice, the last counts."""
    if is_uri and name.startswith("file:"):
        uri = name.partition("#")[0]
    else:
        uri = f"{'file://' if name.startswith(os.sep) else 'file:'}{quote(os.fsencode(name))}"
    return f"{uri}{'&' if '?' in uri else '?'}mode=ro"


def _has_idle_log(file: str) -> bool:
    """Whether a database has a write-ahead log that nothing is in: to read it, SQLite would make files beside it."""
    if Path(f"{file}-wal").exists() or not Path(file).is_file() or not os.access(file, os.R_OK):
        return False
    with Path(file).open("rb") as opened:
        return opened.read(20)[18:] == b"\2\2"


class _Guard:
    """Authorizes what SQL does: it attaches what the program may change; what else it may do, the program says."""

    def __init__(self) -> None:
        self.own: Callable[..., int] | None = None
        self.given: Any = ()  # The parameters of what is executed: one of them may be the name of a file.
        self.refused: str | None = None

    def __call__(self, action: int, what: str | None, *rest: Any) -> int:
        if action == _sqlite3.SQLITE_ATTACH and here.computer is not None:
            values = self.given.values() if isinstance(self.given, dict) else self.given
            names = [what] if what is not None else [each for each in values if isinstance(each, str | bytes)]
            if not all(map(_may_attach, names or [os.sep])):
                self.refused = "a database that it attaches" if what is None else database_file(what)
                return _sqlite3.SQLITE_DENY
            for file in filter(None, map(database_file, names)):
                here.computer.workspace.note_database(file)
        return _sqlite3.SQLITE_OK if self.own is None else self.own(action, what, *rest)


def _may_attach(name: str | bytes) -> bool:
    file = database_file(name)
    return file is None or may_change(file) or dict(parse_qsl(urlsplit(os.fsdecode(name)).query)).get("mode") == "ro"


# --- Waiting for other connections ---


def _patiently(connection: Any, ask: Callable[[], Any]) -> Any:
    """Return what SQLite answers, once no other connection is in the way; or have its error when patience is up."""
    computer, until = here.computer, None
    if computer is not None and computer.over is not None:
        computer.over.raise_again()
    while True:
        try:
            return ask()
        except _sqlite3.DatabaseError as error:
            code = getattr(error, "sqlite_errorcode", _sqlite3.SQLITE_OK) & 0xFF
            if computer is not None and connection._is_read_only and code == _sqlite3.SQLITE_READONLY:
                refuse_to_write("a database")
            if computer is not None and connection._guard.refused is not None:
                refuse_to_write(connection._guard.refused)
            if computer is None or code != _sqlite3.SQLITE_BUSY:
                raise
            until = computer.stack.now + connection._patience_ns if until is None else until
            if computer.stack.now >= until:
                raise
            computer.wait(lambda: None, min(computer.stack.now + _ASK_AGAIN_NS, until))


def _setting_patience(connection: Any, ask: Callable[[], Any]) -> Any:
    """Let a PRAGMA see and set the patience as SQLite's own, which would wait in real time; then take it away again."""
    cursor = _usual_cursor(connection)
    cursor.execute(f"PRAGMA busy_timeout = {min(connection._patience_ns // 1_000_000, 2**31 - 1)}")
    try:
        return ask()
    finally:
        connection._patience_ns = cursor.execute("PRAGMA busy_timeout").fetchone()[0] * 1_000_000
        cursor.execute("PRAGMA busy_timeout = 0")


def _usual_cursor(connection: Any) -> _sqlite3.Cursor:
    made = _sqlite3.Cursor(connection)
    made.row_factory = None
    return made


def _statements(script: str) -> Iterator[str]:
    start = end = 0
    while end := script.find(";", end) + 1:
        if _sqlite3.complete_statement(script[start:end]):
            yield script[start:end]
            start = end
    yield script[start:]


def _do(connection: Any, statement: str) -> None:
    """Do a statement of a script."""
    cursor = _usual_cursor(connection)
    if _SETS_PATIENCE.match(statement):
        _setting_patience(connection, lambda: cursor.execute(statement))
    elif connection.in_transaction:  # There a script would commit first;
        cursor.execute(statement).fetchall()
    else:  # and here a statement by itself would begin a transaction.
        cursor.executescript(statement)


class _PatientCursor(_sqlite3.Cursor):
    def execute(self, *given: Any) -> Any:
        def ask() -> Any:
            return super(_PatientCursor, self).execute(*given)

        if given and isinstance(given[0], str) and _SETS_PATIENCE.match(given[0]):
            return _setting_patience(self.connection, ask)
        connection: Any = self.connection
        guard = connection._guard
        guard.given = given[1] if len(given) > 1 else ()
        try:
            return _patiently(self.connection, ask)
        finally:
            guard.given = ()

    def executemany(self, *given: Any) -> Any:
        return _patiently(self.connection, lambda: super(_PatientCursor, self).executemany(*given))

    def executescript(self, script: Any, /) -> Any:
        """Do each statement on its own: a script that SQLite has broken off can't be done again from its beginning."""
        connection = self.connection
        if not isinstance(script, str):
            return super().executescript(script)
        if getattr(connection, "autocommit", _LEGACY) == _LEGACY:
            _patiently(connection, lambda: _sqlite3.Connection.commit(connection))
        for each in _statements(script):
            _patiently(connection, partial(_do, connection, each))
        return self


class _PatientConnection(_sqlite3.Connection):
    _patience_ns = 0
    _is_read_only = False
    _guard: _Guard

    def __new__(cls, *_: Any, **__: Any) -> Any:
        made = super().__new__(cls)
        made._guard = _Guard()
        return made

    def set_authorizer(self, authorizer_callback: Callable[..., int] | None) -> None:
        self._guard.own = authorizer_callback
        super().set_authorizer(self._guard)

    def cursor(self, factory: Any = _sqlite3.Cursor) -> Any:
        if isinstance(factory, type) and issubclass(factory, _sqlite3.Cursor):
            factory = _patient(factory, _PatientCursor)
        return super().cursor(factory)

    def execute(self, *given: Any) -> Any:
        return self.cursor().execute(*given)

    def executemany(self, *given: Any) -> Any:
        return self.cursor().executemany(*given)

    def executescript(self, *given: Any) -> Any:
        return self.cursor().executescript(*given)

    def commit(self) -> None:
        _patiently(self, super().commit)

    def __exit__(self, kind: Any, error: Any, trace: Any) -> Any:
        try:
            (self.commit if kind is None else self.rollback)()
        except BaseException:
            self.rollback()
            raise


@cache
def _patient(kind: Any, patient: Any) -> Any:
    """Return a class as a program's own, for which what is patient stands in the place of SQLite's."""
    if issubclass(kind, patient):
        return kind
    bases = (patient,) if issubclass(patient, kind) else (kind, patient)
    return type(kind.__name__, bases, {"__qualname__": kind.__qualname__, "__module__": kind.__module__})


# --- Functions ---


@cache
def _plain(real: Callable[..., Any]) -> Any:
    """Return a connection whose functions are SQLite's own."""
    with really():
        made = real(":memory:", check_same_thread=False)
    with really():
        atexit.register(made.close)
    return made


def _now() -> str:
    now = _BEGIN + timedelta(microseconds=here.computer.time_ns() // 1_000)
    return now.strftime("%Y-%m-%d %H:%M:%S.%f")[:-3]


def _of_time(plain: Any, name: str, place: int) -> Callable[..., Any]:
    def call(*given: Any) -> Any:
        words = list(given)
        if len(words) == place:
            words.append("now")
        if len(words) > place and str(words[place]).lower() == "now":
            words[place] = _now()
        words = [each for each in words if str(each).lower() not in _ZONES]
        marks = ", ".join("?" * len(words))
        return plain.execute(f"SELECT {name}({marks})", words).fetchone()[0]

    return call


def _difference(plain: Any) -> Callable[..., Any]:
    def call(*given: Any) -> Any:
        words = [_now() if str(each).lower() == "now" else each for each in given]
        return plain.execute("SELECT timediff(?, ?)", words).fetchone()[0]

    return call
