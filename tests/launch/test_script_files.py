"""A conversation that is written down by one and read by another: in order, whole, and in no more room than needed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from worldline.launch import script_files
from worldline.launch.script_files import HEARD, SAID, ScriptReader, ScriptWriter, end_script


@pytest.fixture(autouse=True)
def small_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(script_files, "_FULL", 100)


def test_what_is_read_is_what_was_written(tmp_path: Path) -> None:
    writer = ScriptWriter(tmp_path)
    pieces = [(SAID, b"hello"), (HEARD, b""), (HEARD, bytes(250)), *((SAID, b"%d" % number) for number in range(60))]
    for piece in pieces:
        writer.note(*piece)
    end_script(tmp_path)
    assert list(ScriptReader(tmp_path).pieces()) == pieces


def test_what_has_been_read_takes_no_room(tmp_path: Path) -> None:
    writer = ScriptWriter(tmp_path)
    reader = ScriptReader(tmp_path).pieces()
    for number in range(100):
        writer.note(SAID, b"%d" % number)
        assert next(reader) == (SAID, b"%d" % number)
        assert len(list(tmp_path.iterdir())) <= 2


def test_a_reader_may_come_first_and_sees_pieces_that_come_in_parts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    acts = [
        lambda: (tmp_path / "script.0").write_bytes(b"s\0\0"),
        lambda: _append(tmp_path / "script.0", b"\0\3ab"),
        lambda: _append(tmp_path / "script.0", b"ch\0\0\0\1"),
        lambda: _append(tmp_path / "script.0", b"d"),
        lambda: end_script(tmp_path),
    ]
    monkeypatch.setattr(script_files.time, "sleep", lambda _: acts.pop(0)())  # type: ignore[attr-defined]
    assert list(ScriptReader(tmp_path).pieces()) == [(SAID, b"abc"), (HEARD, b"d")]


def test_a_script_that_nobody_has_begun_has_an_end(tmp_path: Path) -> None:
    end_script(tmp_path)
    assert list(ScriptReader(tmp_path).pieces()) == []


@pytest.mark.parametrize("written", [OSError("no room"), 3])
def test_a_full_disk_harms_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, written: OSError | int) -> None:
    writer = ScriptWriter(tmp_path)
    writer.note(SAID, b"one")

    def full(*_: object) -> int:
        if isinstance(written, OSError):
            raise written
        return written

    with monkeypatch.context() as patch:
        patch.setattr(os, "writev", full)
        writer.note(SAID, b"two")
    writer.note(SAID, b"three")  # Not after a gap.
    end_script(tmp_path)
    assert list(ScriptReader(tmp_path).pieces()) == [(SAID, b"one")]


def _append(file: Path, data: bytes) -> None:
    with file.open("ab") as opened:
        opened.write(data)
