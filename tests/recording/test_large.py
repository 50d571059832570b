"""Recordings of large messages: chunks of more than a reader would unpack stand in the file as they are."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from mcap.reader import make_reader
from mcap.records import Chunk
from mcap.stream_reader import StreamReader

from worldline.cli import main
from worldline.model import plan
from worldline.recording import Condition, Recorder, Recording, chunks, scan, writer
from worldline.recording.writer import SHOW_EVERY_S

PLAN = plan(["a", "b"])
UNPACKED_MAX = 2**18
LARGE = bytes(range(256)) * 2**12  # 1 MiB
PAYLOADS = [b"small", LARGE, b"small again", LARGE[1:]]


@pytest.fixture(autouse=True)
def _small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (chunks, scan):
        monkeypatch.setattr(module, "CHUNK_MAX", UNPACKED_MAX)
    monkeypatch.setattr(scan, "_CHUNK_HEAD_MAX", 2**10)


def record(path: Path, payloads: list[bytes] = PAYLOADS) -> Path:
    recorder = Recorder(path, PLAN)
    for name in ("a", "b"):
        recorder.began(name, 0)
    for number, payload in enumerate(payloads):
        recorder.sent("a", number, "t", number, payload, 10 + number)
        recorder.arrives("a", number, "b", 10 + number, 0, None)
    recorder.passed(100)
    for name in ("a", "b"):
        recorder.ended(name, 1000, name.encode())
    recorder.close()
    return path


def command(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setattr("sys.argv", ["worldline", *arguments])
    with pytest.raises(SystemExit) as exit_:
        main()
    return int(exit_.value.code or 0)


def test_large_messages_are_read_again_by_us_and_by_others(tmp_path: Path) -> None:
    path = record(tmp_path / "run.mcap")
    found = Recording(path)
    assert found.verify().condition is Condition.INTACT
    assert [arrival.payload for arrival in found.arrivals()] == PAYLOADS
    with path.open("rb") as file:
        assert [message.data for _, _, message in make_reader(file).iter_messages()] == PAYLOADS
    records = StreamReader(io.BytesIO(path.read_bytes()), emit_chunks=True).records
    packings = [record.compression for record in records if isinstance(record, Chunk)]
    assert packings == ["", ""]  # What is small goes with the large one that follows it.


def test_chunks_that_are_small_enough_are_packed_as_ever(tmp_path: Path) -> None:
    path = record(tmp_path / "run.mcap", [bytes(UNPACKED_MAX - 1000)])
    records = StreamReader(io.BytesIO(path.read_bytes()), emit_chunks=True).records
    assert [record.compression for record in records if isinstance(record, Chunk)] == ["zstd"]


@pytest.mark.long
def test_info_and_diff_take_large_messages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    changed = [*PAYLOADS[:3], PAYLOADS[3][:-1] + b"?"]
    one, same, other = (
        str(record(tmp_path / f"{name}.mcap", payloads))
        for name, payloads in (("one", PAYLOADS), ("same", PAYLOADS), ("other", changed))
    )
    assert command(monkeypatch, "info", one) == 0
    assert "intact: the file matches its certificate" in capsys.readouterr().out
    assert command(monkeypatch, "diff", one, same) == 0
    capsys.readouterr()
    assert command(monkeypatch, "diff", one, other) == 1
    assert "ff at byte 1048566 of 1,048,575" in capsys.readouterr().out


def test_a_byte_changed_within_a_large_message_is_found(tmp_path: Path) -> None:
    path = record(tmp_path / "run.mcap")
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    assert Recording(path).verify().condition is Condition.ALTERED


def test_a_file_that_is_cut_within_a_large_message_says_how_far_it_goes(tmp_path: Path) -> None:
    path = record(tmp_path / "run.mcap")
    data = path.read_bytes()
    path.write_bytes(data[: 3 * len(data) // 4])
    found = Recording(path)
    assert found.verify().condition is Condition.CUT_OFF
    assert [arrival.payload for arrival in found.arrivals()] == PAYLOADS[:2]


def test_a_large_message_that_is_in_no_chunk_yet_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr(writer, "monotonic", lambda: now)
    path = tmp_path / "run.mcap"
    recorder = Recorder(path, PLAN, chunk_size=2**23)
    recorder.sent("a", 0, "t", 0, LARGE, 5)
    recorder.arrives("a", 0, "b", 5, 0, None)
    now += SHOW_EVERY_S
    recorder.passed(100)
    found = Recording(path)
    assert found.verify().condition is Condition.CUT_OFF
    assert [arrival.payload for arrival in found.arrivals()] == [LARGE]
    recorder.close()


def test_a_chunk_that_isnt_packed_is_bounded_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = record(tmp_path / "run.mcap")
    monkeypatch.setattr(scan, "PLAIN_MAX", 2**19)
    verdict = Recording(path).verify()
    assert verdict.condition is Condition.ALTERED
    assert "claims 1,0" in verdict.text
