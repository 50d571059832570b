"""Fields have one name everywhere: in tables, plots and differences, of whatever encoding."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from worldline.history.fields import ELEMENTS_MAX, fields_of, getter, is_missing, joined, value_differences, way_to
from worldline.kernel import Entity, Simulation
from worldline.model import plan
from worldline.model.errors import UsageError
from worldline.recording import Recorder, Recording
from worldline.recording.signals import field_names, told_in
from worldline.recording.tables import RecordedTable

plain = st.recursive(
    st.none() | st.booleans() | st.integers(-100, 100) | st.floats(allow_nan=False) | st.text(max_size=3),
    lambda parts: st.lists(parts, max_size=3) | st.dictionaries(st.text("ab.[]0 ", max_size=3), parts, max_size=3),
    max_leaves=8,
)


@given(plain)
def test_every_field_is_found_by_its_name(value: Any) -> None:
    fields = fields_of(value)
    names = [name for name, _ in fields]
    for name in names:
        assert way_to(value, name) is not None or is_missing(getter(name)(value))
    if all(key.isalnum() for key in _keys(value)):  # Keys that look like a way of their own may be ambiguous.
        assert len(set(names)) == len(names)
        assert [(name, getter(name)(value)) for name in names] == fields


def _keys(value: Any) -> list[str]:
    if isinstance(value, dict):
        return [*value, *(key for each in value.values() for key in _keys(each))]
    return [key for each in value for key in _keys(each)] if isinstance(value, list) else []


def test_names_are_those_of_diff() -> None:
    a, b = {"at": {"y": 1, "tags": [1, [2]]}}, {"at": {"y": 2, "tags": [0, [3]]}}
    assert [each.path for each in value_differences(a, b)] == [name for name, _ in fields_of(a)]
    assert [joined("pose", name) for name, _ in fields_of(a)] == ["pose.at.y", "pose.at.tags[0]", "pose.at.tags[1][0]"]
    assert (joined("pose", ""), joined("pose", "[0]")) == ("pose", "pose[0]")


def test_long_lists_are_one_field() -> None:
    assert len(fields_of([0] * ELEMENTS_MAX)) == ELEMENTS_MAX
    assert fields_of({"image": [0] * (ELEMENTS_MAX + 1)}) == [("image", [0] * (ELEMENTS_MAX + 1))]


@pytest.fixture
def recording(tmp_path: Path) -> Recording:
    """Record two members that tell the same topic, in MessagePack and in JSON, to two receivers."""
    path = tmp_path / "run.mcap"
    recorder = Recorder(path, plan(["ann", "bob", "cat"]), encodings={"packed": "msgpack"})
    for name in ("ann", "bob", "cat"):
        recorder.began(name, 0)
    for number in range(5):
        at = number * 1000
        for sender in ("ann", "bob"):
            told = {"x": number + 0.5, "at": [number, -number], "mode": "on" if number % 2 else "off"}
            recorder.sent(sender, 2 * number, "state", at, msgspec.json.encode(told), at + 500)
            for receiver in ("bob" if sender == "ann" else "ann", "cat"):
                recorder.arrives(sender, 2 * number, receiver, at + 100, 0, None)
            recorder.sent(sender, 2 * number + 1, "packed", at, msgspec.msgpack.encode(number), at + 500)
    recorder.noted("cat", "worldline/measure", 7, b'{"wait":3}')
    for name in ("ann", "bob", "cat"):
        recorder.ended(name, 9000, b"")
    recorder.close()
    return Recording(path)


def test_signals_are_told_once_for_each_message_and_sender(recording: Recording) -> None:
    found = recording.signals("state.x", "bob/state.at[1]", "packed")
    assert [(signal.asked, signal.sender, signal.name) for signal in found] == [
        *((0, "ann", "state.x"), (0, "bob", "state.x"), (1, "bob", "state.at[1]")),
        *((2, "ann", "packed"), (2, "bob", "packed")),
    ]
    assert found[0].times == [0, 1000, 2000, 3000, 4000]
    assert (found[0].values, found[2].values, found[3].values) == (
        [0.5, 1.5, 2.5, 3.5, 4.5],
        [0, -1, -2, -3, -4],
        [0, 1, 2, 3, 4],
    )


def test_a_name_means_all_fields_below_it(recording: Recording) -> None:
    assert [signal.name for signal in recording.signals("ann/state")] == [
        *("state.x", "state.at[0]", "state.at[1]", "state.mode"),
    ]
    assert {signal.name for signal in recording.signals("state.*[0]", "*.mode")} == {"state.at[0]", "state.mode"}


def test_measures_are_topics_of_their_own(recording: Recording) -> None:
    (wait,) = recording.signals("wait")
    assert (wait.sender, wait.times, wait.values) == ("cat", [7], [3])
    assert recording.signals("cat/wait") == [wait]
    assert recording.signals("worldline/measure")[0].name == "worldline/measure.wait"


def test_times_and_members_are_chosen(recording: Recording) -> None:
    (signal,) = recording.signals("state.x", senders=["bob"], start=1000, end=3000)
    assert (signal.sender, signal.times) == ("bob", [1000, 2000])
    with pytest.raises(UsageError, match=r"no member 'bo' .did you mean 'bob'"):
        recording.signals("state.x", senders=["bo"])


def test_what_is_quick_is_what_is_thorough(recording: Recording) -> None:
    """Values that are read chunk by chunk are those that the whole account of the run has."""
    for name, get in (("state.x", getter("x")), ("state.at[1]", getter("at[1]")), ("state.mode", getter("mode"))):
        told: dict[str, list[Any]] = {}
        for _, sender, _, value, _, _ in told_in(recording.tellings, lambda _, topic: topic == "state"):
            told.setdefault(sender, []).append(get(value))
        assert {signal.sender: signal.values for signal in recording.signals(name)} == told


@given(st.lists(st.one_of(plain.map(msgspec.json.encode), st.binary(max_size=4)), min_size=1, max_size=6))
def test_payloads_are_decoded_one_by_one_or_all_at_once(payloads: list[bytes]) -> None:
    from worldline.recording.signals import _decoded, read

    assert repr(_decoded(payloads, read)) == repr([read(payload) for payload in payloads])


def test_names_that_nothing_has(recording: Recording) -> None:
    for name, words in (
        ("state.y", "has no field 'state.y'"),
        ("stat.x", "did you mean 'state.x'?"),
        ("ann/stat.x", "did you mean 'ann/state.x'?"),
        ("ann/wait", "did you mean"),
    ):
        with pytest.raises(UsageError) as raised:
            recording.signals(name)
        assert words in str(raised.value)
    assert field_names(recording.tellings)["state.at[0]"] == {"ann", "bob"}


def test_a_recording_that_was_cut_off_has_what_is_there(recording: Recording) -> None:
    data = recording.path.read_bytes()
    recording.path.write_bytes(data[:-300])
    found = Recording(recording.path).signals("state.x")
    assert found[0].values == [0.5, 1.5, 2.5, 3.5][: len(found[0].values)]
    assert len(found[0].values) >= 3


def test_monitors_of_the_kernel(tmp_path: Path) -> None:
    class Desk(Entity):
        def start(self) -> Any:
            for number in range(4):
                self.record("queue", {"length": number, "at": [self.now, number]})
                yield "1s"

    simulation = Simulation()
    simulation.add("a", Desk())
    simulation.add("b", Desk())
    recorder = Recorder(tmp_path / "desk.mcap", simulation.plan())
    outcome = simulation.run(until="10s", observer=recorder)
    recorder.close(dropped=outcome.dropped)
    recording = Recording(tmp_path / "desk.mcap")
    found = recording.signals("queue.length", "b/queue.at[1]")
    assert [(signal.sender, signal.name, signal.values) for signal in found] == [
        ("a", "queue.length", [0, 1, 2, 3]),
        ("b", "queue.length", [0, 1, 2, 3]),
        ("b", "queue.at[1]", [0, 1, 2, 3]),
    ]
    columns = RecordedTable(recording.tellings, ["queue"]).columns()
    assert (columns["sender"], columns["length"]) == (["a", "b"] * 4, [0, 0, 1, 1, 2, 2, 3, 3])
