"""`worldline info` and `worldline digest`: what they print, and which errors they end in."""

from __future__ import annotations

from pathlib import Path

import pytest

from worldline.cli.info import digest, info
from worldline.model import LossError, ModelError, UsageError, plan
from worldline.recording import Recorder


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "run.mcap"


def record(path: Path) -> Recorder:
    recorder = Recorder(path, plan(["anna", "bert"], guests=["gast"], seed=42, until="1s"), federation="[bold]tennis")
    for name in ("anna", "bert", "gast"):
        recorder.began(name, 0)
    for sequence in range(3):
        recorder.sent("anna", sequence, "ball", sequence, b"12345", 100)
        recorder.arrives("anna", sequence, "bert", 50 + sequence, 0, "into the net" if sequence == 2 else None)
    recorder.passed(200)
    return recorder


def finish(recorder: Recorder) -> None:
    for name in ("anna", "bert", "gast"):
        recorder.ended(name, 10**9, name.encode())
    recorder.close(dropped={("bert", "ball", "dropped by its buffer"): 1_234})


def test_info_tells_all_that_matters(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    finish(record(path))
    info(path)
    out = " ".join(capsys.readouterr().out.split())
    for words in (
        "name [bold]tennis",
        "seed 42",
        "end 1s",
        "times 2ns to 52ns",
        "computes floats as this machine does",
        f"anna 0s 1s {b'anna'.hex()}",
        f"gast (guest) 0s 1s {b'gast'.hex()}",
        "ball 3 2 15",
        "bert ball into the net 1",
        "bert ball dropped by its buffer 1,234",
        "intact: the file matches its certificate",
    ):
        assert words in out, words


def test_digest_prints_the_digest_alone(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    finish(record(path))
    digest(path)
    printed = capsys.readouterr().out
    assert len(printed) == 33
    info(path)
    assert f"digest       {printed}" in capsys.readouterr().out


def test_a_run_broken_off_has_no_digest_and_info_says_why(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    record(path).abandon("its process was killed", participant="bert", at=60)
    with pytest.raises(LossError, match="broken off: bert at 60ns: its process was killed"):
        digest(path)
    assert capsys.readouterr().out == ""
    info(path)
    out = capsys.readouterr().out
    assert "broken off: bert at 60ns: its process was killed; everything sent before 200ns is there" in out
    assert "still there" in out


def test_a_file_cut_off_has_no_digest_and_info_shows_what_is_there(
    path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    finish(record(path))
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(LossError, match="cut off: everything sent before 2ns is there"):
        digest(path)
    info(path)
    assert "cut off: everything sent before 2ns is there" in capsys.readouterr().out


def test_a_file_cut_before_its_messages_shows_its_header(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    recorder = record(path)
    info(path)
    recorder.abandon("enough seen")
    out = capsys.readouterr().out
    assert "no messages" in out
    assert "gast (guest)" in out
    assert "cut off: the file ends before its first whole chunk of messages" in out


def test_an_altered_file_is_another_error(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    finish(record(path))
    data = path.read_bytes()
    place = data.index(b"complete")
    path.write_bytes(data[:place] + b"COMPLETE" + data[place + 8 :])
    with pytest.raises(ModelError, match="altered"):
        digest(path)
    info(path)
    assert "altered" in capsys.readouterr().out


@pytest.mark.parametrize("command", [info, digest])
def test_what_isnt_a_recording_is_a_mistake_of_the_caller(command, path: Path) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(UsageError, match="there is no file"):
        command(path)
    path.write_bytes(b"")
    with pytest.raises(UsageError, match="is empty"):
        command(path)
