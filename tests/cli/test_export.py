"""`worldline export` and `recording.frame`: what other tools get to read."""

from __future__ import annotations

import csv
import json
import os
import re
import struct
import sys
from errno import ENOSPC
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.cli.conftest import Command
from worldline.experiments.table import Row, SweepFile
from worldline.extras import installing
from worldline.model import plan
from worldline.model.errors import UsageError
from worldline.recording import Recorder, Recording
from worldline.recording.tables import RecordedTable

TOML = """
name = "pair"
seed = 2
until = "40ms"
link.latency = "uniform(1ms, 3ms)"
link.loss = 0.2

[[participants]]
name = "ping"
entry = "pair:ping"
publishes = ["ball"]
subscribes = ["back"]

[[participants]]
name = "pong"
entry = "pair:pong"
publishes = ["back"]
subscribes = ["ball"]
"""
PYTHON = """
def ping(me):
    for number in range(8):
        me.publish("ball", b"%d" % number)
        me.advance(by="4ms")
    me.log("done")

def pong(me):
    for message in me.messages():
        me.publish("back", b"\\xff" + message.payload)
"""


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    """Write a recording of messages of many kinds."""
    path = tmp_path / "run.mcap"
    recorder = Recorder(path, plan(["ann", "bob"]), federation="kinds")
    for name in ("ann", "bob"):
        recorder.began(name, 0)
    payloads = (
        b'{"x":1,"at":{"y":2.5,"tags":[1,2]},"sent":7}',
        b'{"x":null,"z":"a,\\"b\\""}',
        b"\xff\x00",
        b"plain text",
    )
    for number, payload in enumerate(payloads):
        recorder.sent("ann", number, "thing", number * 1000 + 1, payload, number * 1000 + 500)
    recorder.arrives("ann", 0, "bob", 100, 0, None)
    recorder.arrives("ann", 0, "bob", 120, 1, None)
    recorder.arrives("ann", 1, "bob", 1200, 0, "lost on the way")
    recorder.noted("bob", "worldline/log", 5, b'{"text":"hello"}')
    for name in ("ann", "bob"):
        recorder.ended(name, 5000, b"")
    recorder.close()
    return path


def test_a_topic_as_csv_has_a_column_for_each_field(worldline: Command, recording: Path) -> None:
    written = worldline("export", "run.mcap", "thing.csv", "--topic", "thing")
    assert written == (0, "", "written to thing.csv\n")
    with Path("thing.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == [
        *("sent", "arrival", "sender", "receiver", "sequence", "copy", "lost"),
        *("x", "at.y", "at.tags[0]", "at.tags[1]", "sent_", "z", "payload"),
    ]
    assert [(row["sent"], row["arrival"], row["copy"], row["lost"]) for row in rows] == [
        *(("1", "100", "0", ""), ("1", "120", "1", ""), ("1001", "1200", "0", "lost on the way")),
        *(("2001", "", "", ""), ("3001", "", "", "")),
    ]
    assert [
        (row["x"], row["at.y"], row["at.tags[0]"], row["at.tags[1]"], row["sent_"], row["z"], row["payload"])
        for row in rows
    ] == [
        ("1", "2.5", "1", "2", "7", "", ""),
        ("1", "2.5", "1", "2", "7", "", ""),
        ("", "", "", "", "", 'a,"b"', ""),
        ("", "", "", "", "", "", "ff00"),
        ("", "", "", "", "", "", "plain text"),
    ]


def test_everything_as_csv(worldline: Command, recording: Path) -> None:
    assert worldline("export", "run.mcap", "--to", "csv")[0] == 0
    with Path("run.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(row["sender"], row["receiver"], row["topic"]) for row in rows][:3] == [
        ("ann", "bob", "thing"),
        ("ann", "bob", "thing"),
        ("bob", "", "worldline/log"),
    ]
    assert (rows[2]["worldline/log.text"], rows[2]["thing.x"]) == ("hello", "")
    assert (rows[0]["thing.x"], rows[0]["thing.at.tags[1]"], rows[0]["thing.sent"]) == ("1", "2", "7")
    assert [row["thing"] for row in rows if row["thing"]] == ["ff00", "plain text"]


def test_a_chrome_trace_has_rows_and_arrows(worldline: Command, recording: Path) -> None:
    assert worldline("export", "run.mcap", "--to", "chrome-trace")[0] == 0
    trace = json.loads(Path("run.trace.json").read_text())
    events: list[dict[str, Any]] = trace["traceEvents"]
    rows = {event["args"]["name"]: event["tid"] for event in events if event["name"] == "thread_name"}
    assert sorted(rows) == ["ann", "bob"]
    starts = [event for event in events if event["ph"] == "s"]
    ends = {event["id"]: event for event in events if event["ph"] == "f"}
    arrows = [(each["tid"], each["ts"], ends[each["id"]]["tid"], ends[each["id"]]["ts"]) for each in starts]
    assert arrows == [(rows["ann"], 0.001, rows["bob"], 0.1), (rows["ann"], 0.001, rows["bob"], 0.12)]
    slices = {(event["name"], event["tid"], event["ts"]) for event in events if event["ph"] == "X"}
    assert ("send thing", rows["ann"], 0.001) in slices  # What an arrow is tied to.
    assert ("receive thing", rows["bob"], 0.12) in slices
    instants = [(event["name"], event["ts"]) for event in events if event["ph"] == "i"]
    assert instants == [("logs", 0.005), ("lost thing", 1.2)]


def test_an_lcm_log_is_the_one_that_the_run_would_have_written(worldline: Command, tmp_path: Path) -> None:
    (tmp_path / "pair.toml").write_text(TOML)
    (tmp_path / "pair.py").write_text(PYTHON)
    assert worldline("run", "pair.toml", "--executor", "in-process", "-q", "--lcm", "live.log")[0] == 0
    assert worldline("export", "pair.mcap", "--to", "lcm")[0] == 0
    live = Path("live.log").read_bytes()
    assert len(live) > 500
    assert Path("pair.log").read_bytes() == live
    assert worldline("replay", "pair.mcap", "--speed", "max", "--lcm", "played.log", "-q") == (0, "", "")
    assert Path("played.log").read_bytes() == live


@pytest.mark.parametrize("command", [("export", "pair.mcap", "kept.log"), ("replay", "pair.mcap", "--lcm", "kept.log")])
def test_a_log_stays_if_there_is_nothing_to_put_in_its_place(
    worldline: Command, tmp_path: Path, command: tuple[str, ...]
) -> None:
    (tmp_path / "pair.toml").write_text(TOML.replace('"ping"', '"ping/left"'))
    (tmp_path / "pair.py").write_text(PYTHON)
    assert worldline("run", "pair.toml", "--executor", "in-process", "-q")[0] == 0
    before = struct.pack(">I", 0xEDA1DA01)
    Path("kept.log").write_bytes(before)
    code, _, errors = worldline(*command)
    assert (code, "'ping/left' can't name a participant on a public LCM" in errors) == (2, True)
    assert Path("kept.log").read_bytes() == before


def test_a_log_that_isnt_whole_is_told_whoever_asked_for_silence(
    worldline: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_descriptor: int, _data: bytes) -> None:
        raise OSError(ENOSPC, os.strerror(ENOSPC))

    (tmp_path / "pair.toml").write_text(TOML)
    (tmp_path / "pair.py").write_text(PYTHON)
    monkeypatch.setattr("worldline.metasim.public.mirror.write_all", full)
    code, _, errors = worldline("run", "pair.toml", "--executor", "in-process", "-q", "--lcm", "run.log")
    assert code == 0  # The run has its result; it is the log that isn't whole.
    assert re.search(r"^warning: public LCM run.log: 0 messages, \d+ lost: No space left on device$", errors, re.M)
    played = ("replay", "pair.mcap", "-q", "--speed=max", "--lcm=pair.log")
    for command in (("export", "pair.mcap", "pair.log"), played):
        code, _, errors = worldline(*command)
        assert code == 3
        assert "the LCM log can't be written: No space left on device (it has what there was room for)" in errors


def test_a_frame_has_exact_times_and_all_fields(recording: Path) -> None:
    pandas = pytest.importorskip("pandas")
    frame: Any = Recording(recording).frame("thing")
    columns = RecordedTable(Recording(recording).tellings, ["thing"]).columns()
    for name, values in columns.items():
        assert [None if each is None or each is pandas.NA or each != each else each for each in frame[name]] == values
    assert str(frame["arrival"].dtype) == "Int64"
    assert list(frame.columns) == list(columns)


class _Parquet(ModuleType):
    @staticmethod
    def write_table(table: dict[str, list[Any]], file: Any) -> None:
        file.write(repr(table).encode())


class _Arrow(ModuleType):
    ArrowInvalid = type("ArrowInvalid", (ValueError,), {})
    ArrowTypeError = type("ArrowTypeError", (TypeError,), {})
    table = dict

    def array(self, values: list[Any]) -> list[Any]:
        kinds = {type(each) for each in values if each is not None}
        if len(kinds) > 1:
            raise self.ArrowInvalid("mixed")
        return values


def test_parquet_has_texts_where_kinds_are_mixed(
    worldline: Command, recording: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", _Arrow("pyarrow"))
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", _Parquet("pyarrow.parquet"))
    recorder = Recorder("mixed.mcap", plan(["ann"]))
    recorder.began("ann", 0)
    for number, payload in enumerate((b'{"v":1}', b'{"v":"one"}', b"{}")):
        recorder.sent("ann", number, "t", number, payload, number)
    recorder.ended("ann", 10, b"")
    recorder.close()
    assert worldline("export", "mixed.mcap", "--to", "parquet", "--topic", "t")[0] == 0
    assert "'v': ['1', 'one', None]" in Path("mixed.parquet").read_text()
    assert worldline("export", "run.mcap", "all.parquet")[0] == 0
    assert "'topic': ['thing', 'thing', 'worldline/log'" in Path("all.parquet").read_text()


@pytest.mark.parametrize("missing", ["pandas", "pyarrow"])
def test_what_isnt_installed_is_named(
    worldline: Command, recording: Path, monkeypatch: pytest.MonkeyPatch, missing: str
) -> None:
    monkeypatch.setitem(sys.modules, missing, None)
    if missing == "pandas":
        with pytest.raises(UsageError, match="a frame needs pandas, which isn't installed"):
            Recording(recording).frame("thing")
    else:
        code, _, errors = worldline("export", "run.mcap", "--to", "parquet")
        assert (code, errors) == (
            2,
            f"worldline: Parquet needs pyarrow, which isn't installed ({installing('tables')})\n",
        )
        assert not Path("run.parquet").exists()


def test_names_of_columns_that_are_taken(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path / "taken.mcap", plan(["ann"]))
    recorder.began("ann", 0)
    for number, payload in enumerate((b'{"a":{"b":{"c":1}},"a.b":{"c":2}}', b'{"payload":3}', b"\xff")):
        recorder.sent("ann", number, "t", number, payload, number)
    recorder.ended("ann", 10, b"")
    recorder.close()
    found = RecordedTable(Recording(tmp_path / "taken.mcap").tellings, ["t"]).columns()
    assert (found["a.b.c"], found["a.b.c_"]) == ([1, None, None], [2, None, None])
    assert (found["payload_"], found["payload"]) == ([None, 3, None], [None, None, b"\xff"])


def test_the_recording_itself_isnt_written_over(worldline: Command, recording: Path) -> None:
    before = recording.read_bytes()
    Path("link.csv").symlink_to("run.mcap")
    for output in ("run.mcap", "link.csv", "./run.mcap"):
        code, _, errors = worldline("export", "run.mcap", output, "--to", "csv")
        assert code == 2
        assert "is the recording itself, which would be lost" in errors
    assert recording.read_bytes() == before


def test_standard_output_has_the_table_and_nothing_else(
    worldline: Command, recording: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert worldline("export", "run.mcap", "/dev/null", "--to", "csv") == (0, "", "written to /dev/null\n")
    with Path("caught.csv").open("w+b") as file:
        monkeypatch.setattr("worldline.cli.info._STANDARD", Path(f"/dev/fd/{file.fileno()}"))
        assert worldline("export", "run.mcap", "-", "--to", "csv") == (0, "", "")
    worldline("export", "run.mcap", "all.csv")
    assert Path("caught.csv").read_bytes() == Path("all.csv").read_bytes()


def test_a_recording_that_was_cut_off_is_warned_of(worldline: Command, recording: Path) -> None:
    recording.write_bytes(recording.read_bytes()[:-300])
    code, output, errors = worldline("export", "run.mcap", "all.csv")
    assert (code, output) == (0, "")
    assert errors.startswith("warning: run.mcap is cut off: ")
    assert errors.endswith("\nwritten to all.csv\n")


def test_bad_input(worldline: Command, recording: Path) -> None:
    for arguments, problem in (
        (("run.mcap",), "nothing says what to write (--to csv, parquet, lcm, chrome-trace, html)"),
        (("run.mcap", "a.txt"), "nothing says what to write"),
        (("run.mcap", "a.csv", "--topic", "thin"), "has no field 'thin' (did you mean 'thing'?)"),
        (("run.mcap", "no/a.csv"), "there is no folder no"),
        (("run.mcap", "a.log", "--topic", "thing"), "an LCM log has all topics"),
        (("gone.mcap", "a.csv"), "gone.mcap"),
    ):
        code, _, errors = worldline("export", *arguments)
        assert code == 2
        assert problem in errors
    assert not Path("a.csv").exists()


def test_a_file_that_was_altered_leaves_nothing_behind(worldline: Command, recording: Path) -> None:
    chunk = Recording(recording).scan.chunks[0]
    data = bytearray(recording.read_bytes())
    data[chunk.offset + chunk.length // 2] ^= 1
    recording.write_bytes(data)
    before = sorted(path.name for path in Path().iterdir())
    for form in ("csv", "chrome-trace"):
        code, _, errors = worldline("export", "run.mcap", "--to", form)
        assert code == 2
        assert "run.mcap was altered" in errors
    assert sorted(path.name for path in Path().iterdir()) == before


def test_real_frames_and_parquet_say_the_same_as_csv(worldline: Command, recording: Path) -> None:
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    frame = Recording(recording).frame("thing")
    assert list(frame["arrival"].fillna(-1)) == [100, 120, 1200, -1, -1]
    assert str(frame["arrival"].dtype) == "Int64"
    everything = Recording(recording).frame("thing.x", "thing.at.tags[1]", "worldline/log")
    assert list(everything.columns[-4:]) == ["topic", "thing.x", "thing.at.tags[1]", "worldline/log.text"]
    assert worldline("export", "run.mcap", "thing.parquet", "--topic", "thing")[0] == 0
    assert worldline("export", "run.mcap", "thing.csv", "--topic", "thing")[0] == 0
    written = pandas.read_parquet("thing.parquet")
    assert list(written.columns) == Path("thing.csv").read_text().splitlines()[0].split(",")
    assert list(written["at.tags[1]"].dropna()) == [2, 2]
    assert worldline("export", "run.mcap", "all.parquet")[0] == 0
    assert "thing.at.y" in pandas.read_parquet("all.parquet").columns


def test_a_sweeps_table_is_written_as_csv_and_parquet(worldline: Command, tmp_path: Path) -> None:
    path = tmp_path / "shop.sweep"
    with SweepFile(path, {"target": "shop.py"}, ["doctors", "arrival"]) as table:
        table.add(Row(0, 0, 1, (2, "4min"), {"wait.mean": 1.5}, "ab"))
        table.add(Row(0, 1, 2, (2, "4min"), {}, None, 'it "failed", badly', "worldline run shop.py --seed=2"))
        table.finish()
    file = str(path)
    assert worldline("export", file, "--to", "csv")[0] == 0
    assert path.with_suffix(".csv").read_text().splitlines() == [
        "point,replicate,seed,doctors,arrival,wait.mean,digest,error,command",
        "0,0,1,2,4min,1.5,ab,,",
        '0,1,2,2,4min,,,"it ""failed"", badly",worldline run shop.py --seed=2',
    ]
    refusals = {
        ("--to", "lcm"): "a sweep's table can't be written as lcm (use csv or parquet)",
        ("--to", "csv", "--topic", "a"): "a sweep's table has no topics (leave out --topic)",
    }
    for words, said in refusals.items():
        assert said in worldline("export", file, "-", *words)[2]
    assert "is the sweep's table itself" in worldline("export", file, file, "--to", "csv")[2]
    parquet = pytest.importorskip("pyarrow.parquet")
    assert worldline("export", file, "--to", "parquet")[0] == 0
    assert parquet.read_table(tmp_path / "shop.parquet").column("wait.mean").to_pylist() == [1.5, None]
