"""Paths that have no channel of their own: what is put into an envelope is read back as if it had none."""

from __future__ import annotations

import io
from pathlib import Path as File
from random import Random

import pytest

from tests.recording import stage
from worldline.model import UsageError
from worldline.recording import Condition, Recorder, Recording, writer
from worldline.recording.scan import Damaged, RecordedPath, Scan, put_in, sendings, take_out

PATH = RecordedPath("x", "ann", "bob", 1)


@pytest.mark.parametrize(
    ("payload", "written"),
    [
        (b'{"a":[1]}', b'{"sender":"ann","receiver":"bob","copy":1,"payload":{"a":[1]}}'),
        (b"null", b'{"sender":"ann","receiver":"bob","copy":1,"payload":null}'),
        (b"\xff\x00", b'{"sender":"ann","receiver":"bob","copy":1,"base64":"/wA="}'),
        (b"", b'{"sender":"ann","receiver":"bob","copy":1,"base64":""}'),
        (b" 1 ", b'{"sender":"ann","receiver":"bob","copy":1,"base64":"IDEg"}'),
        (b'1,"receiver":"eve"', b'{"sender":"ann","receiver":"bob","copy":1,"base64":"MSwicmVjZWl2ZXIiOiJldmUi"}'),
    ],
)
def test_json_stands_in_it_as_it_is_and_everything_comes_out_as_it_was(payload: bytes, written: bytes) -> None:
    assert put_in(PATH, payload) == written
    assert take_out("x", written) == (PATH, payload)


def test_who_noted_something_has_no_receiver() -> None:
    assert put_in(RecordedPath("x", "ann", "", 0), b"1") == b'{"sender":"ann","payload":1}'
    assert take_out("x", b'{"sender":"ann","payload":1}') == (RecordedPath("x", "ann", "", 0), b"1")


@pytest.mark.parametrize("data", [b"", b"{}", b'{"sender":"a"}', b'{"sender":1,"payload":1}', b"\xff"])
def test_what_is_no_envelope_is_damage(data: bytes) -> None:
    with pytest.raises(Damaged):
        take_out("x", data)


@pytest.mark.parametrize("paths_max", [0, 1, 3])
@pytest.mark.parametrize("seed", range(5))
def test_a_crowded_recording_reads_as_any_other(
    seed: int, paths_max: int, tmp_path: File, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = stage.write_script(Random(seed), acts=60)
    found = []
    for limit in (65_000, paths_max):
        monkeypatch.setattr(writer, "PATHS_MAX", limit)
        path = tmp_path / f"{limit}.mcap"
        path.write_bytes(stage.recorded(script, 1))
        recording = Recording(path)
        assert recording.verify().condition is Condition.INTACT
        assert recording.outcome is not None
        told = (list(recording.arrivals()), list(recording.unheard()), list(recording.losses()))
        some = list(recording.arrivals(topics=["x"], receivers=["bob"]))
        facts = (recording.outcome.certificate, recording.counts(), recording.loss_counts())
        found.append((told, some, facts, list(sendings(Scan(path)))))
    assert found[0] == found[1]
    assert found[0][0][0]


@pytest.mark.long
def test_more_paths_than_mcap_has_channels() -> None:
    file = io.BytesIO()
    recorder = Recorder(file, stage.Script({"a": []}).plan(), encoding="json")
    for number in range(66_000):
        recorder.noted(f"entity {number}", "timer", number, b"1")
    recorder.close()


def test_too_many_topics_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "PATHS_MAX", 2)
    monkeypatch.setattr(writer, "CHANNELS_MAX", 4)
    recorder = Recorder(io.BytesIO(), stage.Script({"a": []}).plan())
    for number in range(5):
        recorder.noted("a", f"topic {number}", number, b"")
    with pytest.raises(UsageError, match="more topics than an MCAP file can hold besides 2 paths"):
        recorder.close()
