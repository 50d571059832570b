"""Recordings get their names: only what is a recording is replaced, and it is said what became of it."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from worldline.model import UsageError, plan
from worldline.recording import Recorder, Recording, Shelf
from worldline.recording.timing import Timing, TimingWriter

PLAN = plan(["a", "b"])


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def record(name: str, *, force: bool = False, federation: str = "it") -> str:
    shelf = Shelf(name, force=force)
    Recorder(shelf.target, PLAN, federation=federation, overwrite=True).close()
    note = shelf.put()
    assert shelf.kept is not None
    assert Recording(shelf.kept).header.federation == federation
    return note


def names() -> set[str]:
    return {path.name for path in Path().iterdir()}


def test_the_recording_before_is_kept_and_that_is_said() -> None:
    assert record("x.mcap", federation="one\x1b[2J") == ""
    assert record("x.mcap") == r"x.mcap was a recording of one\x1b[2J; it is now x.previous.mcap"
    assert record("x.mcap") == "x.mcap was a recording of it; it is now x.previous.mcap"
    assert names() == {"x.mcap", "x.previous.mcap"}
    assert Recording("x.previous.mcap").header.federation == "it"


def test_a_timing_goes_with_its_recording() -> None:
    def timing(name: str) -> str:
        return Timing(Path(name)).header.name

    record("x.mcap")
    TimingWriter(Path("x.timing"), "first", PLAN).close()
    TimingWriter(Path("x.timing"), "second", PLAN).close()
    assert (timing("x.previous.timing"), timing("x.timing")) == ("first", "second")
    shelf = Shelf("x.mcap")
    shelf.is_timed = True  # The second run, which has noted one.
    Recorder(shelf.target, PLAN, overwrite=True).close()
    shelf.put()
    assert timing("x.timing") == "second"
    record("x.mcap")  # The third, which hasn't.
    assert timing("x.previous.timing") == "second"
    assert not Path("x.timing").exists()
    Path("x.timing").write_text("my notes")
    record("x.mcap")
    assert Path("x.timing").read_text() == "my notes"


def test_nothing_is_touched_before_the_recording_is_finished() -> None:
    record("x.mcap")
    before = Path("x.mcap").read_bytes()
    shelf = Shelf("x.mcap")
    assert names() == {"x.mcap"}
    recorder = Recorder(shelf.target, PLAN, federation="second")
    assert names() == {"x.mcap", f"x.unfinished-{os.getpid()}.mcap"}
    recorder.close()
    shelf.clear()
    assert names() == {"x.mcap"}
    assert Path("x.mcap").read_bytes() == before


def test_what_a_killed_run_has_left_unfinished_is_removed_once_the_next_one_is_whole() -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as gone:
        gone.wait()
    left = f"x.unfinished-{gone.pid}.mcap"
    for name in (left, f"x.unfinished-{os.getppid()}.mcap", f"y.unfinished-{gone.pid}.mcap", "x.unfinished-it.mcap"):
        Recorder(Path(name), PLAN).close()
    Path(f"x.unfinished-{gone.pid}.txt").write_text("my notes")
    Path(f"z.unfinished-{gone.pid}.mcap").write_text("my notes")
    before = names()
    shelf = Shelf("x.mcap")
    Recorder(shelf.target, PLAN).close()
    assert Path(left).exists()
    assert shelf.put() == f"{left}, of a run that was killed, is removed"
    record("z.mcap")
    assert names() == (before - {left}) | {"x.mcap", "z.mcap"}


@pytest.mark.parametrize("content", [b"my notes", b"\x89MCAP0\r\n and more", b"\0"])
def test_a_file_that_isnt_a_recording_is_only_replaced_by_force(content: bytes) -> None:
    Path("notes.txt").write_bytes(content)
    with pytest.raises(UsageError, match=r"notes\.txt isn't a recording and would be replaced \(use --force"):
        Shelf("notes.txt")
    assert (
        record("notes.txt", force=True)
        == "notes.txt was something other than a recording; it is now notes.previous.txt"
    )
    assert Path("notes.previous.txt").read_bytes() == content


def test_nor_is_one_that_has_the_name_of_the_recording_before() -> None:
    record("x.mcap")
    Path("x.previous.mcap").write_bytes(b"mine")
    with pytest.raises(UsageError, match=r"x\.previous\.mcap isn't a recording"):
        Shelf("x.mcap")
    record("x.mcap", force=True)
    assert Recording("x.previous.mcap").header.federation == "it"


def test_what_has_that_name_and_isnt_a_plain_file_is_never_replaced() -> None:
    record("x.mcap")
    previous = Path("x.previous.mcap")
    previous.symlink_to("elsewhere")
    with pytest.raises(UsageError, match="is in the way"):
        Shelf("x.mcap", force=True)
    previous.unlink()
    previous.mkdir()
    with pytest.raises(UsageError, match="is in the way"):
        Shelf("x.mcap", force=True)
    previous.rmdir()
    os.mkfifo(previous)
    with pytest.raises(UsageError, match="is in the way"):
        Shelf("x.mcap", force=True)


def test_an_empty_file_is_nobodys() -> None:
    Path("x.mcap").touch()
    assert record("x.mcap") == ""
    assert names() == {"x.mcap"}


def test_what_is_left_of_a_recording_is_one() -> None:
    record("x.mcap")
    whole = Path("x.mcap").read_bytes()
    Path("x.mcap").write_bytes(whole[:-50])
    assert "was a recording of it" in record("x.mcap")


def test_a_link_stays_and_all_happens_where_it_leads() -> None:
    Path("far").mkdir()
    Path("x.mcap").symlink_to("far/run.mcap")
    record("x.mcap")
    assert record("x.mcap").startswith("x.mcap was a recording of it; it is now ")
    assert Path("x.mcap").is_symlink()
    assert {path.name for path in Path("far").iterdir()} == {"run.mcap", "run.previous.mcap"}
    assert names() == {"far", "x.mcap"}


def test_devices_and_pipes_have_no_previous_one() -> None:
    for force in (False, True):
        shelf = Shelf("/dev/null", force=force)
        Recorder(shelf.target, PLAN, overwrite=True).close()
        shelf.clear()
        assert (shelf.put(), shelf.kept) == ("", Path("/dev/null"))
    os.mkfifo("pipe")
    assert Shelf("pipe").waits
    assert not Shelf("/dev/null").waits
    assert Shelf("/dev/stdout").is_standard_output
    assert names() == {"pipe"}


def test_what_cant_be_written_is_refused_even_by_force() -> None:
    Path("folder").mkdir()
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("socket")
        for name, words in (("folder", "a folder"), ("socket", "a socket"), ("none/x.mcap", "there is no folder none")):
            with pytest.raises(UsageError, match=words):
                Shelf(name, force=True)


def test_what_appears_during_the_run_isnt_replaced_either() -> None:
    shelf = Shelf("x.mcap")
    Recorder(shelf.target, PLAN).close()
    Path("x.mcap").write_bytes(b"somebody's")
    note = shelf.put()
    assert shelf.kept == shelf.target
    assert "x.mcap isn't a recording" in note
    assert Path("x.mcap").read_bytes() == b"somebody's"
    assert Recording(shelf.target).header.federation == ""
