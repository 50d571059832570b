"""Fields have one name everywhere: in tables, plots and differences, of whatever encoding."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.launch.test_lcm_types import generate
from worldline.history.fields import ELEMENTS_MAX, fields_of, getter, is_missing, joined, value_differences, way_to
from worldline.kernel import Entity, Simulation
from worldline.launch.file.topics import definition, fingerprint, lcm_topic
from worldline.model import plan
from worldline.model.errors import UsageError
from worldline.recording import Recorder, Recording
from worldline.recording.signals import field_names, lcm_reader, told_in
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


# LCM messages are read by their definition as the classes of lcm-gen read them.


DEFINITION = """
/* Kinds of all sorts; int32_t not_this; */
package lab;

struct inner_t {
    int16_t pair[2];  // Two of them.
    string name;
}

struct all_t
{
    const int32_t ROWS = 2, COLUMNS=3;
    int8_t a; int16_t b; int32_t c;
    int64_t d;
    byte raw[c];
    float f;
    double g[ROWS][COLUMNS];
    boolean h;
    string texts[c];
    inner_t inner;
    lab.inner_t inners[c];
}
"""


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return generate(DEFINITION, tmp_path_factory.mktemp("lcm") / "types", "lab")


def message(lab: Any) -> Any:
    def inner(number: int) -> Any:
        made = lab.inner_t()
        made.pair, made.name = [number, -number], f"nämed {number}"
        return made

    made = lab.all_t()
    made.a, made.b, made.c, made.d = -1, 300, 2, 2**40
    made.raw, made.f, made.g, made.h = b"\x00\xff", 0.5, [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], True
    made.texts, made.inner, made.inners = ["", "two"], inner(7), [inner(8), inner(9)]
    return made


EXPECTED = {
    "a": -1,
    "b": 300,
    "c": 2,
    "d": 2**40,
    "raw": [0, 255],
    "f": 0.5,
    "g": [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]],
    "h": True,
    "texts": ["", "two"],
    "inner": {"pair": [7, -7], "name": "nämed 7"},
    "inners": [{"pair": [8, -8], "name": "nämed 8"}, {"pair": [9, -9], "name": "nämed 9"}],
}


def test_all_kinds_of_fields_are_read(lab: Any) -> None:
    assert lcm_reader("lab.all_t", DEFINITION)(message(lab).encode()) == EXPECTED


def test_the_definition_in_a_recording_is_enough(lab: Any) -> None:
    topic = lcm_topic(lab.all_t)
    assert lcm_reader(topic.schema_name, topic.schema.decode())(message(lab).encode()) == EXPECTED
    assert "struct inner_t" in definition(lab.all_t)


def test_what_isnt_such_a_message_is_refused(lab: Any) -> None:
    topic = lcm_topic(lab.all_t)
    read = lcm_reader(topic.schema_name, topic.schema.decode())
    whole = message(lab).encode()
    for payload in (
        b"",
        whole[:-1],
        whole + b"\0",
        lab.inner_t().encode(),
        whole[:11] + b"\x7f\xff\xff\xff" + whole[15:],
    ):
        with pytest.raises(ValueError, match=r"^it is"):
            read(payload)
    with pytest.raises(ValueError, match="no struct lab"):
        lcm_reader("lab.other_t", DEFINITION)


def test_any_bytes_are_read_or_refused(lab: Any) -> None:
    read = lcm_reader("lab.all_t", DEFINITION)
    whole = message(lab).encode()
    for place in range(len(whole)):
        for value in (0, 127, 255):
            try:
                read(whole[:place] + bytes([value]) + whole[place + 1 :])
            except ValueError:
                continue


def test_a_type_in_itself_is_read_without_a_loop(tmp_path: Path) -> None:
    module = generate("package tree;\nstruct t {\n int32_t n;\n tree.t parts[n];\n}\n", tmp_path / "tree", "tree")
    leaf, root = module.t(), module.t()
    root.n, root.parts = 2, [leaf, leaf]
    topic = lcm_topic(module.t)
    assert topic.schema.startswith(b"// fingerprint 0x" + fingerprint(module.t).hex().encode())
    empty = {"n": 0, "parts": []}
    assert lcm_reader("tree.t", topic.schema.decode())(root.encode()) == {"n": 2, "parts": [empty, empty]}
