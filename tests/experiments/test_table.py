"""A sweep's file: the same bytes in whichever order rows came, whole whatever happens."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from itertools import count
from pathlib import Path
from random import Random

import pytest

from worldline.errors import LossError, UsageError
from worldline.experiments import read_sweep
from worldline.experiments import table as tables
from worldline.experiments.table import Row, SweepFile

FACTS = {"target": "shop.py", "code": '{"shop.py":"1"}', "common": "no"}
PARAMETERS = ["doctors"]


def row(number: int) -> Row:
    """Return a row whose measures come in another order every other time, of which some have one more."""
    point, replicate = divmod(number, 5)
    measures = {"wait.mean": number / 7, "wait.count": number, "a": None if number % 3 else 2**70}
    if number % 2:
        measures = dict(reversed(measures.items()))
    if number == 7:
        return Row(point, replicate, number, (point,), error="it broke", command="worldline run shop.py")
    return Row(point, replicate, number, (point,), measures, "abc")


def write(path: Path, numbers: list[int], *, finishes: bool = True) -> None:
    with SweepFile(path, FACTS, PARAMETERS) as file:
        done = file.done()
        for number in numbers:
            if divmod(number, 5) not in done:
                file.add(row(number))
        if finishes:
            file.finish()


def add_for_ever(file: SweepFile) -> None:
    for number in count(20):
        file.add(row(number))
        file.commit()


def test_bytes_dont_tell_the_order_or_the_interruptions(tmp_path: Path) -> None:
    numbers = list(range(400))
    write(tmp_path / "straight.sweep", numbers)
    Random(1).shuffle(numbers)
    crooked = tmp_path / "crooked.sweep"
    write(crooked, numbers[:100], finishes=False)
    write(crooked, numbers[:250], finishes=True)
    write(crooked, numbers)
    assert crooked.read_bytes() == (tmp_path / "straight.sweep").read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["crooked.sweep", "straight.sweep"]


def test_rows_are_read_in_order_with_their_columns(tmp_path: Path) -> None:
    path = tmp_path / "shop.sweep"
    write(path, [3, 7, 1, 0], finishes=False)
    for _ in range(2):  # While it goes on, and finished.
        table = read_sweep(path)
        assert table.columns == (
            *("point", "replicate", "seed", "doctors", "a", "wait.count", "wait.mean"),
            *("digest", "error", "command"),
        )
        assert (table.parameters, table.measures) == (("doctors",), ("a", "wait.count", "wait.mean"))
        assert table.column("seed") == [0, 1, 3, 7]
        assert table.column("a") == [2.0**70, None, 2.0**70, None]
        assert table.samples("wait.count") == {0: {0: 0, 1: 1, 3: 3}, 1: {}}
        assert [failure["error"] for failure in table.failures()] == ["it broke"]
        write(path, [])
    assert table.is_finished
    with pytest.raises(UsageError, match=r"no column 'wait.men' \(did you mean 'wait.mean'"):
        table.column("wait.men")


@pytest.mark.parametrize(
    ("facts", "parameters", "said"),
    [
        ({**FACTS, "target": "ward.py"}, PARAMETERS, "is a sweep of shop.py"),
        ({**FACTS, "code": '{"shop.py":"2"}'}, PARAMETERS, "shop.py has changed since"),
        ({**FACTS, "common": "yes"}, PARAMETERS, "common draws"),
        (FACTS, ["nurses"], "has the parameters"),
    ],
)
def test_rows_of_another_sweep_arent_mixed_in(
    tmp_path: Path, facts: dict[str, str], parameters: list[str], said: str
) -> None:
    path = tmp_path / "shop.sweep"
    write(path, [0, 1])
    before = path.read_bytes()
    with pytest.raises(UsageError, match=said):
        SweepFile(path, facts, parameters)
    assert path.read_bytes() == before
    SweepFile(path, facts, parameters, replaces=True).close()
    assert len(read_sweep(path)) == 0


def test_what_isnt_a_sweep_stays(tmp_path: Path) -> None:
    path = tmp_path / "notes.sweep"
    path.write_text("my notes")
    for replaces in (False, True):
        with pytest.raises(UsageError, match="isn't a sweep's file"):
            SweepFile(path, FACTS, PARAMETERS, replaces=replaces)
    assert path.read_text() == "my notes"
    with pytest.raises(UsageError, match="isn't a sweep's file"):
        read_sweep(path)
    with pytest.raises(UsageError, match="there is no file"):
        read_sweep(tmp_path / "none.sweep")


def test_a_damaged_file_is_said_to_be(tmp_path: Path) -> None:
    path = tmp_path / "shop.sweep"
    write(path, list(range(300)))
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(UsageError, match="is damaged"):
        read_sweep(path)


def test_one_sweep_at_a_time(tmp_path: Path) -> None:
    path = tmp_path / "shop.sweep"
    with SweepFile(path, FACTS, PARAMETERS), pytest.raises(UsageError, match="being written by another"):
        SweepFile(path, FACTS, PARAMETERS)


def test_a_full_disk_leaves_the_rows_that_were_written(tmp_path: Path) -> None:
    path = tmp_path / "shop.sweep"
    write(path, list(range(20)), finishes=False)
    with SweepFile(path, FACTS, PARAMETERS) as file:
        file._database.execute("PRAGMA max_page_count = 4")  # type: ignore[union-attr]
        with pytest.raises(LossError, match=r"full \(rows up to here are kept; the same command goes on"):
            add_for_ever(file)
    kept = len(read_sweep(path))
    assert kept >= 20
    numbers = list(range(400))
    write(path, numbers)
    write(tmp_path / "straight.sweep", numbers)
    assert len(read_sweep(path)) == 400


def test_too_many_columns_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "_COLUMNS_MAX", 50)
    with SweepFile(tmp_path / "shop.sweep", FACTS, PARAMETERS) as file:
        with pytest.raises(UsageError, match="more than 50 columns"):
            file.add(Row(0, 0, 0, (1,), {f"m{each}": each for each in range(60)}, "abc"))
        with pytest.raises(UsageError, match="a measure can't be called 'doctors'"):
            file.add(Row(0, 0, 0, (1,), {"doctors": 3}, "abc"))


def test_every_tool_that_reads_sqlite_reads_it(tmp_path: Path) -> None:
    path = tmp_path / "shop.sweep"
    write(path, list(range(10)))
    with closing(sqlite3.connect(path)) as database:
        found = database.execute('SELECT doctors, count(*), max("wait.count") FROM runs GROUP BY doctors').fetchall()
    assert found == [(0, 5, 4), (1, 5, 9)]
