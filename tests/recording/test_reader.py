"""Recordings are read whole, cut off anywhere, or refused, and what was altered is found out."""

from __future__ import annotations

import io
import os
import struct
from pathlib import Path
from random import Random
from typing import Any

import pytest
from mcap.exceptions import McapError
from mcap.reader import make_reader
from mcap.records import Message
from mcap.stream_reader import StreamReader
from mcap.writer import CompressionType, Writer

from tests.recording.stage import recorded, truth, write_script
from worldline.model import ModelError, UsageError, format_time, plan
from worldline.recording import Condition, LossCount, Recorder, Recording
from worldline.recording.comparing import compare_recordings
from worldline.recording.reader import intact, recorded_account
from worldline.recording.scan import sendings

SCRIPT = write_script(Random(11), participants=4, acts=20)
DATA = recorded(SCRIPT, 1)
ARRIVALS, UNHEARD, LOSSES = truth(SCRIPT)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    file = tmp_path / "run.mcap"
    file.write_bytes(DATA)
    return file


def test_arrivals_are_selected_by_topic_receiver_and_time(path: Path) -> None:
    recording = Recording(path)
    middle = ARRIVALS[len(ARRIVALS) // 2].at
    assert list(recording.arrivals(topics=["x"])) == [each for each in ARRIVALS if each.topic == "x"]
    assert list(recording.arrivals(receivers=["ann"])) == [each for each in ARRIVALS if each.receiver == "ann"]
    assert list(recording.arrivals(start=middle)) == [each for each in ARRIVALS if each.at >= middle]
    assert list(recording.arrivals(end=f"{middle}ns")) == [each for each in ARRIVALS if each.at < middle]
    with pytest.raises(UsageError, match="must be lists"):
        recording.arrivals(topics="x")


def test_counts_are_those_of_the_outcome(path: Path) -> None:
    recording = Recording(path)
    assert recording.outcome is not None
    assert recording.counts() == recording.outcome.topics
    assert sum(count.arrivals for count in recording.counts().values()) == len(ARRIVALS)
    assert LossCount("ann", "x", "dropped by its buffer", 2) in recording.loss_counts()
    lost = sum(each.count for each in recording.loss_counts() if each.reason == "lost on stage")
    assert lost == len(LOSSES)
    times = [each.at for each in (*ARRIVALS, *LOSSES)] + [each.sent for each in UNHEARD]
    assert recording.span() == (min(times), max(times))


# --- What others read ---


def test_the_mcap_library_reads_it_by_its_index_in_the_order_of_log_times() -> None:
    reader = make_reader(io.BytesIO(DATA), validate_crcs=True)
    summary = reader.get_summary()
    assert summary is not None
    assert summary.statistics is not None
    assert summary.statistics.chunk_count == len(summary.chunk_indexes) > 3
    assert summary.statistics.message_count == len(ARRIVALS) + len(UNHEARD) + len(LOSSES)
    found = [(channel, message) for _, channel, message in reader.iter_messages()]
    times = [message.log_time for _, message in found]
    assert times == sorted(times)
    assert (summary.statistics.message_start_time, summary.statistics.message_end_time) == (times[0], times[-1])
    for number, count in summary.statistics.channel_message_counts.items():
        assert count == sum(message.channel_id == number for _, message in found)
    heard = sorted(
        (m.log_time, m.publish_time, c.metadata["sender"], m.sequence, c.metadata["receiver"], c.topic, m.data)
        for c, m in found
        if c.metadata.get("receiver")
    )
    assert heard == sorted((*each[:5], *each[6:]) for each in ARRIVALS)
    part = [message.log_time for _, _, message in reader.iter_messages(topics=["x"], starting_at=20, ending_before=50)]
    assert part == [m.log_time for c, m in found if c.topic == "x" and 20 <= m.log_time < 50]
    assert [metadata.name for metadata in reader.iter_metadata()] == ["worldline", "worldline.outcome"]


def test_losses_have_a_schema() -> None:
    reader = make_reader(io.BytesIO(DATA))
    found = list(reader.iter_messages(topics=["worldline/lost"]))
    assert len(found) == len(LOSSES)
    schema, channel, message = found[0]
    assert schema is not None
    assert (schema.name, schema.encoding, channel.message_encoding) == ("worldline.Lost", "jsonschema", "json")
    assert b'"reason":"lost on stage"' in message.data
    assert b"copy" not in message.data


def test_a_users_topic_may_be_called_like_ours(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path / "run.mcap", plan(["a", "b"]))
    recorder.sent("a", 0, "worldline/lost", 1, b"mine", 5)
    recorder.arrives("a", 0, "b", 3, 0, None)
    recorder.sent("a", 1, "worldline/lost", 2, b"gone", 5)
    recorder.arrives("a", 1, "b", 4, 0, "reason")
    recorder.close()
    recording = Recording(tmp_path / "run.mcap")
    assert [arrival.payload for arrival in recording.arrivals()] == [b"mine"]
    assert [loss.topic for loss in recording.losses()] == ["worldline/lost"]
    assert recording.verify().condition is Condition.INTACT


# --- What was cut off ---


def header_end() -> int:
    """Return where the first chunk begins."""
    summary = make_reader(io.BytesIO(DATA)).get_summary()
    assert summary is not None
    return summary.chunk_indexes[0].chunk_start_offset


def test_a_file_that_is_cut_anywhere_is_read_to_its_last_whole_chunk(path: Path) -> None:
    before, start = 0, header_end()
    for size in range(start, len(DATA), 29):
        path.write_bytes(DATA[:size])
        recording = Recording(path)
        verdict = recording.verify()
        assert verdict.condition is Condition.CUT_OFF, (size, verdict)
        found = list(recording.arrivals())
        assert found == sorted(found)
        assert len(found) >= before
        before = len(found)
        assert verdict.until is not None
        missing = [each for each in ARRIVALS if each not in found]
        assert all(each.sent >= verdict.until for each in missing)
        assert all(each in ARRIVALS for each in found)
    assert before == len(ARRIVALS)


def test_the_mcap_library_reads_the_whole_chunks_of_a_file_that_is_cut(path: Path) -> None:
    cut = DATA[: len(DATA) // 2]
    path.write_bytes(cut)
    found = []
    with pytest.raises((McapError, struct.error)):  # noqa: PT012 - it raises where the file ends, after what it gave.
        for record in StreamReader(io.BytesIO(cut)).records:
            if isinstance(record, Message):
                found.append(record.data)  # noqa: PERF401
    recording = Recording(path)
    ours = (*recording.arrivals(), *recording.unheard())
    assert len(ours) + len(list(recording.losses())) == len(found) > 0
    assert {each.payload for each in ours} <= set(found)


def test_a_file_that_is_cut_within_its_header_is_refused(path: Path) -> None:
    for size in range(1, header_end(), 7):
        path.write_bytes(DATA[:size])
        with pytest.raises(UsageError, match="is cut off within its header"):
            Recording(path)


# --- What was altered ---


def test_no_byte_can_be_changed_unnoticed(path: Path) -> None:
    for place in range(header_end(), len(DATA), 41):
        path.write_bytes(DATA[:place] + bytes([DATA[place] ^ 0x41]) + DATA[place + 1 :])
        verdict = Recording(path).verify()
        # A change in the very last bytes can't be told from the end of a file that wasn't finished.
        assert verdict.condition is Condition.ALTERED or place >= len(DATA) - 8, (place, verdict)
        assert verdict.condition is not Condition.INTACT


def test_a_changed_header_is_noticed_or_refused(path: Path) -> None:
    for place in range(0, header_end(), 5):
        path.write_bytes(DATA[:place] + bytes([DATA[place] ^ 0x41]) + DATA[place + 1 :])
        try:
            verdict = Recording(path).verify()
        except UsageError:
            continue
        assert verdict.condition is Condition.ALTERED, place


def test_what_was_altered_is_located(path: Path) -> None:
    chunk = Recording(path).scan.chunks[1]

    def verdict(place: int) -> str:
        path.write_bytes(DATA[:place] + bytes([DATA[place] ^ 1]) + DATA[place + 1 :])
        return Recording(path).verify().text

    times = f"from {format_time(chunk.earliest)} to {format_time(chunk.latest)}"
    damaged = f"the chunk at byte {chunk.offset:,} is damaged, with what arrived {times}"
    assert verdict(chunk.offset + chunk.length - 1) == damaged
    # Behind a chunk, there is the index of its messages.
    assert verdict(chunk.offset + chunk.length + 12).endswith("so it is one of its indexes")
    assert "so it is its header, its outcome" in verdict(DATA.index(b"CPython") + 9)


def rewritten(change, *, by_arrival: bool = False, header_last: bool = False, **options: object) -> bytes:  # type: ignore[no-untyped-def]
    """Write the file anew with the MCAP library, all checksums right, with each record as `change` returns it."""
    output = io.BytesIO()
    library = str(options.pop("library", ""))
    writer = Writer(output, **{"enable_data_crcs": True, **options})  # type: ignore[arg-type]
    writer.start(library=library)
    reader = make_reader(io.BytesIO(DATA))
    metadata = {each.name: each.metadata for each in reader.iter_metadata()}
    if not header_last:
        writer.add_metadata("worldline", change("header", metadata["worldline"]))
    summary = reader.get_summary()
    assert summary is not None
    for schema in summary.schemas.values():
        writer.register_schema(schema.name, schema.encoding, schema.data)
    for channel in summary.channels.values():
        writer.register_channel(channel.topic, channel.message_encoding, channel.schema_id, channel.metadata)
    for _, _, message in reader.iter_messages(log_time_order=by_arrival):
        kept = change("message", message)
        if kept is not None:
            writer.add_message(kept.channel_id, kept.log_time, kept.data, kept.publish_time, kept.sequence)
    writer.flush()
    writer.add_metadata("worldline.outcome", change("outcome", metadata["worldline.outcome"]))
    if header_last:
        writer.add_metadata("worldline", change("header", metadata["worldline"]))
    writer.finish()
    return output.getvalue()


@pytest.mark.parametrize(
    "options",
    [
        {"chunk_size": 3_000},
        {"chunk_size": 3_000, "compression": CompressionType.LZ4},
        {"compression": CompressionType.NONE},
        {"use_chunking": False},
        {"enable_data_crcs": False},  # As the library does by default.
        {"enable_data_crcs": False, "by_arrival": True},  # As its readers yield messages by default.
        {"enable_data_crcs": False, "by_arrival": True, "header_last": True, "chunk_size": 300},
        {"enable_data_crcs": False, "enable_crcs": False, "repeat_channels": False, "use_chunking": False},
    ],
    ids=str,
)
def test_a_file_packed_anew_by_another_tool_still_fits_its_certificate(path: Path, options: dict[str, Any]) -> None:
    path.write_bytes(rewritten(lambda _, record: record, **options))
    recording = Recording(path)
    assert recording.verify().condition is Condition.INTACT
    assert list(recording.arrivals()) == ARRIVALS
    assert [*recording.unheard()] == UNHEARD
    assert [*recording.losses()] == LOSSES
    original = path.with_name("original.mcap")
    original.write_bytes(DATA)
    assert recording.counts() == Recording(original).counts()
    assert compare_recordings(original, path).is_same
    assert list(sendings(recording.scan)) == list(sendings(Recording(original).scan))


def test_of_a_file_packed_anew_and_cut_off_nothing_is_certain(path: Path) -> None:
    data = rewritten(lambda _, record: record, by_arrival=True, chunk_size=300)
    path.write_bytes(data[: len(data) // 2])
    assert Recording(path).verify()[::2] == (Condition.CUT_OFF, 0)


def test_what_claims_to_be_as_it_was_recorded_and_is_in_another_order_is_altered(path: Path) -> None:
    path.write_bytes(rewritten(lambda _, record: record, by_arrival=True, library="worldline 1"))
    with pytest.raises(UsageError, match="stands behind what was sent later"):
        list(recorded_account(intact(Recording(path))).sendings)
    assert Recording(path).verify().condition is Condition.ALTERED


def drop_one(kind: str, record):  # type: ignore[no-untyped-def]
    return None if kind == "message" and record.log_time == ARRIVALS[5].at else record


def change_seed(kind: str, record):  # type: ignore[no-untyped-def]
    return {**record, "seed": "8"} if kind == "header" else record


def change_digest(kind: str, record):  # type: ignore[no-untyped-def]
    return {**record, "digest": "00" * 16} if kind == "outcome" else record


def change_payload(kind: str, record):  # type: ignore[no-untyped-def]
    if kind == "message" and record.log_time == ARRIVALS[5].at:
        record.data += b"!"
    return record


def change_payload_for_one_receiver(kind: str, record):  # type: ignore[no-untyped-def]
    place = ("message", TWICE.at, TWICE.sent, TWICE.sequence)
    if kind == "message" and place == (kind, record.log_time, record.publish_time, record.sequence):
        record.data += b"!"
    return record


# The later of two arrivals of one message: the payload of the first is as it was.
TWICE = next(
    later
    for later in ARRIVALS
    if any(first.at < later.at and first[1:4] == later[1:4] for first in ARRIVALS)
    and sum(each.at == later.at for each in ARRIVALS) == 1
)


@pytest.mark.parametrize("options", [{}, {"enable_data_crcs": False, "by_arrival": True}], ids=str)
@pytest.mark.parametrize(
    "change", [drop_one, change_seed, change_digest, change_payload, change_payload_for_one_receiver]
)
def test_a_forged_file_with_right_checksums_doesnt_fit_its_certificate(path: Path, change, options) -> None:  # type: ignore[no-untyped-def]
    path.write_bytes(rewritten(change, **options))
    verdict = Recording(path).verify()
    assert verdict.condition is Condition.ALTERED
    assert any(words in verdict.text for words in ("certificate", "two payloads", "isn't there", "digest")), verdict


def test_reading_what_was_altered_is_an_error_and_no_traceback_of_others(path: Path) -> None:
    place = header_end() + 80
    path.write_bytes(DATA[:place] + bytes([DATA[place] ^ 0x41]) + DATA[place + 1 :])
    with pytest.raises(ModelError, match="was altered: the chunk at byte"):
        list(Recording(path).arrivals())


# --- What isn't a recording ---


def foreign() -> bytes:
    output = io.BytesIO()
    writer = Writer(output)
    writer.start()
    writer.add_metadata("somebody", {"else": "s"})
    writer.finish()
    return output.getvalue()


def of_format(number: str) -> bytes:
    return rewritten(lambda kind, record: {**record, "format": number} if kind == "header" else record)


def without_roster() -> bytes:
    return rewritten(
        lambda kind, record: {k: v for k, v in record.items() if k != "roster"} if kind == "header" else record
    )


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "is empty"),
        (b"#!/bin/sh\necho hello\n", "isn't an MCAP file"),
        (foreign(), "not a recording that Worldline made"),
        (DATA[:8] + bytes(range(256)) * 4, "cut off within its header|not a recording"),
        (of_format("2"), "has format 2, and this version of Worldline reads format 1"),
        (without_roster(), "its header doesn't say roster"),
    ],
)
def test_what_isnt_a_recording_is_refused(path: Path, data: bytes, words: str) -> None:
    path.write_bytes(data)
    with pytest.raises(UsageError, match=words):
        Recording(path)


def test_another_kind_of_file_leads_to_the_command_that_takes_it(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text("# no recording")
    with pytest.raises(UsageError, match=r"isn't an MCAP file \(worldline run .*model.py runs it\)"):
        Recording(tmp_path / "model.py")


def test_what_isnt_there_or_isnt_a_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is no file"):
        Recording(tmp_path / "missing.mcap")
    os.mkfifo(tmp_path / "pipe")  # To open it would wait for whoever writes to it.
    with pytest.raises(UsageError, match="is a directory"):
        Recording(tmp_path)
    for path in (tmp_path / "pipe", Path("/dev/zero")):
        with pytest.raises(UsageError, match="can't be read: it isn't a plain file"):
            Recording(path)


def test_a_topic_or_a_receiver_that_isnt_there_is_refused_with_the_nearest(path: Path) -> None:
    recording = Recording(path)
    with pytest.raises(UsageError, match=r"has no topic 'z' \(its topics are x, y\)"):
        recording.arrivals(topics=["x", "z"])
    with pytest.raises(UsageError, match=r"has no receiver 'anne' \(did you mean 'ann'\?\)"):
        recording.arrivals(receivers=["anne"])
