"""A sweep's file: one table, whose rows are runs, in SQLite.

SQLite comes with Python, every tool reads it, and rows can be added one by one: a process that is killed leaves a file
that is whole. (A Parquet file can't be read before its end is written, and can't be added to.) While a sweep goes on,
rows come in as runs end. When it is finished, the file is written anew, in one order, and takes the place of the old
one: so it has the same bytes, however many workers there were and however often they were stopped.

The table `runs` has a row for each run, by `point` (which combination of parameters) and `replicate`:

    point  replicate  seed  PARAMETERS...  MEASURES...  digest  error  command

A run that has failed has no digest and no measures, but an error and the command that repeats it. The table `sweep`
says what was run, by key: what is there must fit what is to be added.
"""

from __future__ import annotations

import fcntl
import os
import sqlite3
import time
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from math import fsum
from pathlib import Path
from typing import Any, Self

from msgspec import Struct, json

from worldline.files.saving import destination
from worldline.model.errors import LossError, UsageError, nearest, shown
from worldline.model.text import facts_html, table_html

SUFFIX = ".sweep"
Cell = int | float | str | None
Point = tuple[Cell, ...]

_APPLICATION = 0x574C5357  # "WLSW": how a sweep's file is known from other databases.
_FORMAT = 1
_FIRST, _LAST = ("point", "replicate", "seed"), ("digest", "error", "command")
_COLUMNS_MAX = 1_900  # SQLite's own limit is 2,000.
_COMMIT_EVERY_S = 1.0
_INTEGER_MAX = 2**63
_CODE = "code"
_SHOWN_MAX = 6  # Measures that a notebook shows.


class Row(Struct, frozen=True):
    """One run: which it is, and what has come of it."""

    point: int
    replicate: int
    seed: int | None
    parameters: Point
    measures: dict[str, Cell] = {}
    digest: str | None = None
    error: str | None = None
    command: str | None = None


class SweepTable:
    """A sweep's table, read. `parameters` and `measures` are names of columns; `columns` are all of them.

    `rows` have their cells in the order of `columns`. `facts` say what was run.
    """

    def __init__(
        self, path: Path, facts: Mapping[str, str], columns: Sequence[str], rows: list[tuple[Cell, ...]]
    ) -> None:
        self.path = path
        self.facts = facts
        self.columns = tuple(columns)
        self.rows = rows
        self.parameters: tuple[str, ...] = tuple(json.decode(facts["parameters"]))
        outer = (*_FIRST, *self.parameters, *_LAST)
        self.measures = tuple(name for name in columns if name not in outer)

    def __len__(self) -> int:
        return len(self.rows)

    def __repr__(self) -> str:
        return f"<SweepTable {self.path}: {len(self)} runs of {self.facts['target']}>"

    def _repr_html_(self) -> str:
        """Show it in a notebook: for each point its parameters, how many runs it has, and the means of its measures."""
        shown = [name for name in self.measures if name.endswith(".mean")] or list(self.measures)
        shown = shown[:_SHOWN_MAX]
        samples = {name: self.samples(name) for name in shown}
        counts = Counter(row[0] for row in self.rows)
        rows = (
            (*cells, counts[point], *(_mean(samples[name][point].values()) for name in shown))
            for point, cells in self.points().items()
        )
        failed = len(self.failures())
        facts = [("table", self.path), ("target", self.facts["target"]), ("runs", f"{len(self):,}")]
        facts += [("failed", f"{failed:,}")] if failed else []
        return facts_html("Sweep", facts) + table_html((*self.parameters, "runs", *shown), rows)

    @property
    def is_finished(self) -> bool:
        """Whether all runs are there that were asked for last."""
        return self.facts.get("finished") == "yes"

    @property
    def is_common(self) -> bool:
        """Whether all points have the same draws, so that their runs are pairs."""
        return self.facts.get("common") == "yes"

    @property
    def is_antithetic(self) -> bool:
        """Whether every other run has the draws of the one before it, mirrored."""
        return self.facts.get("antithetic") == "yes"

    def place(self, name: str) -> int:
        """Return where in a row a column is."""
        if name not in self.columns:
            raise UsageError(
                f"{self.path} has no column {shown(name)}",
                advice=nearest(name, self.columns) or f"it has {', '.join(self.columns)}",
            )
        return self.columns.index(name)

    def column(self, name: str) -> list[Cell]:
        """Return the cells of a column, in the order of the rows."""
        place = self.place(name)
        return [row[place] for row in self.rows]

    def records(self) -> Iterator[dict[str, Cell]]:
        """Yield rows as dicts."""
        return (dict(zip(self.columns, row, strict=True)) for row in self.rows)

    def points(self) -> dict[int, Point]:
        """Return the parameters of each point, by number, in order."""
        first, last = len(_FIRST), len(_FIRST) + len(self.parameters)
        return {row[0]: row[first:last] for row in self.rows}  # type: ignore[misc]

    def samples(self, measure: str) -> dict[int, dict[int, float]]:
        """Return a measure of the runs that have it, by point and replicate."""
        place = self.place(measure)
        found: dict[int, dict[int, float]] = {point: {} for point in self.points()}
        for row in self.rows:
            if isinstance(row[place], int | float):
                found[row[0]][row[1]] = row[place]  # type: ignore[index,assignment]
        return found

    def failures(self) -> list[dict[str, Cell]]:
        """Return the rows of the runs that have failed."""
        place = self.columns.index("error")
        return [dict(zip(self.columns, row, strict=True)) for row in self.rows if row[place] is not None]


def _mean(values: Collection[float]) -> str:
    return f"{fsum(values) / len(values):.4g}" if values else ""


def is_sweep(path: Path) -> bool:
    """Whether a file looks like a sweep's, by its beginning."""
    try:
        with path.open("rb") as file:
            head = file.read(72)
    except OSError:
        return False
    return head.startswith(b"SQLite format 3\0") and head[68:72] == _APPLICATION.to_bytes(4, "big")


def read_sweep(path: str | os.PathLike[str]) -> SweepTable:
    """Read a sweep's table, also while the sweep goes on. If its writer was killed, SQLite tidies up first."""
    path = Path(path)
    if not path.is_file():
        raise UsageError(f"there is no file {path}", advice="`worldline sweep` writes one")
    if not is_sweep(path):
        raise UsageError(f"{path} isn't a sweep's file", advice="`worldline sweep` writes one")
    with _speaking_of(path), closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=rw", uri=True)) as database:
        _check_format(database, path)
        facts = dict(database.execute("SELECT key, value FROM sweep"))
        columns = _columns(database)
        rows = database.execute("SELECT * FROM runs").fetchall()
    place = [columns.index(name) for name in _ordered(columns, json.decode(facts["parameters"]))]
    if place != list(range(len(columns))):
        rows = [tuple(row[each] for each in place) for row in rows]
    return SweepTable(path, facts, [columns[each] for each in place], rows)


def _ordered(columns: Iterable[str], parameters: Sequence[str]) -> list[str]:
    """Put columns into the one order that they have in the end; while rows come in, new ones are at the end."""
    outer = {*_FIRST, *_LAST, *parameters}
    return [*_FIRST, *parameters, *sorted((name for name in columns if name not in outer), key=_place_of), *_LAST]


def _place_of(name: str) -> tuple[str, int, str]:
    from worldline.experiments.measures import DEFAULTS

    series, _, statistic = name.rpartition(".")
    return (series, DEFAULTS.index(statistic), "") if statistic in DEFAULTS else (name, len(DEFAULTS), "")


class SweepFile:
    """A sweep's file while rows are added. What there is of another sweep is refused, unless it `replaces` it.

    `facts` are those that have to be the same for rows to be added to; `done` are the runs that are there.
    """

    def __init__(
        self, path: Path, facts: Mapping[str, str], parameters: Sequence[str], *, replaces: bool = False
    ) -> None:
        self.path = path
        self.parameters = tuple(parameters)
        self._facts = {**facts, "parameters": json.encode(self.parameters).decode()}
        to = destination(path)
        if to.is_stream:
            raise UsageError(f"{path} can't hold a sweep: it is no file", advice="choose another place")
        if replaces and not to.is_new:
            self._check_ours_to_replace()
        self._file, self._is_new = to.file, to.is_new
        self._lock = os.open(to.file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        self._database: sqlite3.Connection | None = None
        self._committed = time.monotonic()
        self._rows: list[tuple[Cell, ...]] = []  # Since the last commit; all of them have
        self._measures: tuple[str, ...] = ()  # these measures.
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if replaces:
                self._clear()
            self._open()
        except BlockingIOError as error:
            os.close(self._lock)
            raise UsageError(f"{path} is being written by another sweep", advice="wait, or choose another") from error
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Keep what there is; a file that was begun, and has no rows, goes."""
        if self._database is not None:
            is_needless = False
            with suppress(sqlite3.Error):  # A disk that is full was told of already.
                self._write()
                self._database.commit()
                is_needless = self._is_new and self._database.execute("SELECT 1 FROM runs").fetchone() is None
            self._database.close()
            self._database = None
            if is_needless:
                self._file.unlink(missing_ok=True)
        if self._lock >= 0:  # After SQLite's: to close a file gives up all locks that a process has on it.
            os.close(self._lock)
            self._lock = -1

    def _check_ours_to_replace(self) -> None:
        if self.path.stat().st_size and not is_sweep(self.path):
            raise UsageError(f"{self.path} isn't a sweep's file, and isn't replaced", advice="choose another name")

    def _clear(self) -> None:
        os.ftruncate(self._lock, 0)
        for ending in ("-journal", "-wal", "-shm"):
            Path(f"{self._file}{ending}").unlink(missing_ok=True)

    def _open(self) -> None:
        is_new = os.fstat(self._lock).st_size == 0
        if not is_new and not is_sweep(self._file) and not Path(f"{self._file}-journal").exists():
            raise UsageError(f"{self.path} isn't a sweep's file", advice="choose another name")
        with _speaking_of(self.path):
            self._database = database = sqlite3.connect(self._file, isolation_level=None)
            database.execute("PRAGMA synchronous = NORMAL")
            is_empty = not database.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0]
            if is_empty:
                _create(database, (*_FIRST, *self.parameters, *_LAST), self._facts)
            else:
                _check_format(database, self.path)
                _check_facts(self.path, dict(database.execute("SELECT key, value FROM sweep")), self._facts)
                database.execute("DELETE FROM sweep WHERE key = 'finished'")
            self._columns = _columns(database)
            database.execute("BEGIN")

    def done(self, wanted: Sequence[str] = (), *, but_failures: bool = False) -> dict[tuple[int, int], dict[str, Cell]]:
        """Return the runs that are there, with those of their measures that are wanted."""
        assert self._database is not None
        self._write()
        places = [(name, place) for place, name in enumerate(self._columns) if name in wanted]
        error = self._columns.index("error")
        return {
            (row[0], row[1]): {name: row[place] for name, place in places}
            for row in self._database.execute("SELECT * FROM runs")
            if row[error] is None or not but_failures
        }

    def add(self, row: Row) -> None:
        """Add a row, or replace that of a run that failed before. It is safe on the disk within a second."""
        assert self._database is not None
        with _speaking_of(self.path):
            measures = tuple(row.measures)
            if measures != self._measures:
                self._write()
                self._make_room(measures)
                self._measures = measures
            cells = (row.point, row.replicate, row.seed, *row.parameters, *row.measures.values())
            self._rows.append((*map(_storable, cells), row.digest, row.error, row.command))
            if time.monotonic() - self._committed >= _COMMIT_EVERY_S:
                self.commit()

    def commit(self) -> None:
        """Have all rows safe on the disk."""
        assert self._database is not None
        with _speaking_of(self.path):
            self._write()
            self._database.execute("COMMIT")
            self._database.execute("BEGIN")
        self._committed = time.monotonic()

    def _write(self) -> None:
        """Give SQLite the rows since the last time, which have the same measures."""
        if self._rows:
            assert self._database is not None
            names = (*_FIRST, *self.parameters, *self._measures, *_LAST)
            marks = ", ".join("?" * len(names))
            into = f"INSERT OR REPLACE INTO runs ({', '.join(map(_quoted, names))}) VALUES ({marks})"
            self._database.executemany(into, self._rows)
            self._rows = []

    def _make_room(self, measures: Iterable[str]) -> None:
        assert self._database is not None
        outer = {*_FIRST, *_LAST, *self.parameters}
        for name in measures:
            if name in outer:
                raise UsageError(f"a measure can't be called {shown(name)}, as another column is", advice="rename it")
            if name not in self._columns:
                if len(self._columns) >= _COLUMNS_MAX:
                    raise UsageError(
                        f"runs measure more than {_COLUMNS_MAX:,} columns", advice="name those that you want: --measure"
                    )
                self._database.execute(f"ALTER TABLE runs ADD COLUMN {_quoted(name)}")
                self._columns.append(name)

    def finish(self) -> None:
        """Write it anew in its one order, and let that take its place."""
        assert self._database is not None
        with _speaking_of(self.path):
            self._write()
            self._database.execute("COMMIT")
            ordered = _ordered(self._columns, self.parameters)
            beside = self._file.with_name(f".{self._file.name}.part")
            beside.unlink(missing_ok=True)
            try:
                with closing(sqlite3.connect(beside, isolation_level=None)) as whole:
                    whole.execute("PRAGMA synchronous = OFF")
                    whole.execute("PRAGMA journal_mode = OFF")  # None is left beside it if this process is killed.
                    _create(whole, ordered, {**self._facts, "finished": "yes"})
                    rows = self._database.execute(f"SELECT {', '.join(map(_quoted, ordered))} FROM runs")
                    whole.execute("BEGIN")
                    whole.executemany(f"INSERT INTO runs VALUES ({', '.join('?' * len(ordered))})", rows)
                    whole.execute("COMMIT")
                descriptor = os.open(beside, os.O_RDONLY | os.O_CLOEXEC)
                try:
                    os.fsync(descriptor)
                finally:
                    os.close(descriptor)
                self._database.close()
                self._database = None
                beside.replace(self._file)
            finally:
                beside.unlink(missing_ok=True)
        self.close()


def _create(database: sqlite3.Connection, columns: Iterable[str], facts: Mapping[str, str]) -> None:
    """Make the tables, in one transaction: a file that was created halfway is empty."""
    database.execute("BEGIN")
    database.execute(f"PRAGMA application_id = {_APPLICATION}")
    database.execute(f"PRAGMA user_version = {_FORMAT}")
    database.execute("CREATE TABLE sweep (key TEXT PRIMARY KEY, value TEXT) WITHOUT ROWID")
    names = ", ".join(map(_quoted, columns))
    database.execute(f"CREATE TABLE runs ({names}, PRIMARY KEY (point, replicate)) WITHOUT ROWID")
    database.executemany("INSERT INTO sweep VALUES (?, ?)", sorted(facts.items()))
    database.execute("COMMIT")


def _columns(database: sqlite3.Connection) -> list[str]:
    return [row[1] for row in database.execute("PRAGMA table_info(runs)")]


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _storable(cell: Cell) -> Cell:
    return float(cell) if isinstance(cell, int) and not -_INTEGER_MAX <= cell < _INTEGER_MAX else cell


def _check_format(database: sqlite3.Connection, path: Path) -> None:
    number = database.execute("PRAGMA user_version").fetchone()[0]
    if number != _FORMAT:
        raise UsageError(f"{path} has the format {number}", advice=f"this version reads {_FORMAT}")


_DIFFERENCES = {
    "target": "is a sweep of {there}",
    "parameters": "has the parameters {there}",
    "design": "has other levels of its parameters",
    "worldline": "was written by Worldline {there}",
    "until": "has runs until {there}",
    "options": "has runs with the options {there}",
    "measures": "has the measures {there}",
    "fields": "has the fields {there}",
    "warm_up": "has the warm-up {there}",
    "seed": "begins with the seed {there}",
    "common": "{not_}has common draws",
    "antithetic": "{not_}has antithetic pairs",
}


def _check_facts(path: Path, there: Mapping[str, str], wanted: Mapping[str, str]) -> None:
    """Refuse to mix rows of different sweeps."""
    for key, said in wanted.items():
        found = there.get(key, "")
        if found == said:
            continue
        if key == _CODE:
            problem = f"has runs of other code: {', '.join(_changed(found, said))} has changed since"
        else:
            negated = "" if found == "yes" else "hasn't, but this one "
            problem = _DIFFERENCES.get(key, f"has another {key}").format(there=found or "none", not_=negated)
        raise UsageError(
            f"{path} {problem}", advice="save this one elsewhere: --save FILE.sweep; or begin anew: --force"
        )


def _changed(found: str, said: str) -> list[str]:
    before, now = (json.decode(each or "{}", type=dict[str, Any]) for each in (found, said))
    return [name for name in sorted({*before, *now}) if before.get(name) != now.get(name)] or ["it"]


@contextmanager
def _speaking_of(path: Path) -> Iterator[None]:
    """Say what SQLite can't do with a file."""
    try:
        yield
    except sqlite3.Error as error:
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
            raise UsageError(f"{path} is damaged: {error}", advice="begin anew: --force") from error
        raise LossError(
            f"{path} can't be written: {error}", advice="rows up to here are kept; the same command goes on from there"
        ) from error
    except OSError as error:
        raise LossError(f"{path} can't be written: {error.strerror or error}") from error
