"""A conversation that is written down by one and read by another: in order, whole, and in no more room than needed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from worldline.launch import twins
from worldline.launch.twins import HEARD, SAID, TranscriptReader, TranscriptWriter, end_transcript


@pytest.fixture(autouse=True)
def small_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(twins, "_FULL", 100)


def test_what_is_read_is_what_was_written(tmp_path: Path) -> None:
    writer = TranscriptWriter(tmp_path)
    pieces = [(SAID, b"hello"), (HEARD, b""), (HEARD, bytes(250)), *((SAID, b"%d" % number) for number in range(60))]
    for piece in pieces:
        writer.note(*piece)
    writer.flush()
    end_transcript(tmp_path)
    assert list(TranscriptReader(tmp_path).pieces()) == pieces


def test_what_has_been_read_takes_no_room(tmp_path: Path) -> None:
    writer = TranscriptWriter(tmp_path)
    reader = TranscriptReader(tmp_path).pieces()
    for number in range(100):
        writer.note(SAID, b"%d" % number)
        writer.flush()
        assert next(reader) == (SAID, b"%d" % number)
        assert len(list(tmp_path.iterdir())) <= 2


def test_much_is_written_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now, writes = [10.0], list[int]()
    monkeypatch.setattr(twins.time, "monotonic", lambda: now[0])  # type: ignore[attr-defined]
    writer = TranscriptWriter(tmp_path)
    writer.note(SAID, b"first")
    write = os.write
    monkeypatch.setattr(os, "write", lambda file, data: writes.append(len(data)) or write(file, data))
    for _ in range(100):
        writer.note(SAID, bytes(5))
    writer.rest()
    assert writes == []
    now[0] += 1.0
    writer.rest()
    writer.rest()
    assert writes == [1000]
    writer.note(SAID, bytes(2**17))
    assert writes == [1000, 2**17 + 5]


def test_a_reader_may_come_first_and_sees_pieces_that_come_in_parts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    acts = [
        lambda: (tmp_path / "script.0").write_bytes(b"s\0\0"),
        lambda: _append(tmp_path / "script.0", b"\0\3ab"),
        lambda: _append(tmp_path / "script.0", b"ch\0\0\0\1"),
        lambda: _append(tmp_path / "script.0", b"d"),
        lambda: end_transcript(tmp_path),
    ]
    monkeypatch.setattr(twins.time, "sleep", lambda _: acts.pop(0)())  # type: ignore[attr-defined]
    assert list(TranscriptReader(tmp_path).pieces()) == [(SAID, b"abc"), (HEARD, b"d")]


def test_a_script_that_nobody_has_begun_has_an_end(tmp_path: Path) -> None:
    end_transcript(tmp_path)
    assert list(TranscriptReader(tmp_path).pieces()) == []


@pytest.mark.parametrize("written", [OSError("no room"), 3])
def test_a_full_disk_harms_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, written: OSError | int) -> None:
    writer = TranscriptWriter(tmp_path)
    writer.note(SAID, b"one")
    writer.flush()

    def full(*_: object) -> int:
        if isinstance(written, OSError):
            raise written
        return written

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", full)
        writer.note(SAID, b"two")
        writer.flush()
    writer.note(SAID, b"three")  # Not after a gap.
    writer.flush()
    end_transcript(tmp_path)
    assert list(TranscriptReader(tmp_path).pieces()) == [(SAID, b"one")]


def _append(file: Path, data: bytes) -> None:
    with file.open("ab") as opened:
        opened.write(data)
