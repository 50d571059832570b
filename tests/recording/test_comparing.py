"""Recordings that are compared: whole, cut off, broken off, and read as fast as can be."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from random import Random

import pytest

from tests.recording.stage import recorded, write_script
from worldline.history.account import Sending
from worldline.model import UsageError, link, plan
from worldline.model.links import Network
from worldline.recording import Arrival, Loss, Recorder, Recording, Unheard
from worldline.recording.comparing import compare_recordings
from worldline.recording.scan import equal_chunks, sendings

Write = Callable[[Recorder], None]


def record(
    path: Path,
    change: Callable[[int], bytes] = lambda number: b'{"v":%d}' % number,
    *,
    count: int = 200,
    names: tuple[str, ...] = ("ann", "bob", "cat"),
    seed: int = 1,
    finish: Write = lambda recorder: recorder.close(),
) -> Path:
    """Record messages that ann sends to bob, which bob tells cat; `change` says what is in them."""
    recorder = Recorder(path, plan(names, seed=seed), chunk_size=1000)
    for name in names:
        recorder.began(name, 0)
    for number in range(count):
        at = 1000 * number + 1
        recorder.sent("ann", number, "v", at, change(number), at + 100)
        recorder.arrives("ann", number, "bob", at + 100, 0, None)
        recorder.sent("bob", number, "told", at + 200, change(number) + b" ", at + 300)
        recorder.arrives("bob", number, "cat", at + 300, 0, None)
        recorder.passed(at + 150)
    recorder.passed(1000 * count)
    for name in names:
        recorder.ended(name, 1000 * count, b"")
    finish(recorder)
    return path


def text(a: Path, b: Path, **options: str) -> str:
    return "\n".join(compare_recordings(a, b, **options).lines()) + "\n"


@pytest.fixture
def whole(tmp_path: Path) -> Path:
    return record(tmp_path / "whole.mcap")


def test_a_recording_against_itself(whole: Path) -> None:
    difference = compare_recordings(whole, whole)
    assert difference.is_same
    assert difference.lines()[-1] == "no difference"
    assert difference.as_json()["same"] is True


def test_the_first_cause_and_the_chain(whole: Path, tmp_path: Path) -> None:
    other = record(tmp_path / "other.mcap", lambda number: b'{"v":%d}' % (number + (number == 150)))
    assert equal_chunks(Recording(whole).scan, Recording(other).scan) > 5
    shown = text(whole, other)
    assert shown.splitlines()[2:7] == [
        "first differences, of 3 members:",
        "  150.001us  ann  sends v                 v: 150 → 151",
        "  150.101us  bob  receives v from ann     v: 150 → 151",
        "  150.301us  cat  receives told from bob  v: 150 → 151",
        "without a difference: 0 members",
    ]
    assert "first cause: ann at 150.001us, sends v\n" in shown
    assert "of the next 23 on this topic, 23 are the same in both" in shown
    assert [line.split()[:3] for line in shown.partition("from there to cat:\n")[2].splitlines()] == [
        ["150.001us", "ann", "sends"],
        ["150.101us", "bob", "receives"],
        ["150.201us", "bob", "sends"],
        ["150.301us", "cat", "receives"],
    ]
    assert "from there to bob:" in text(whole, other, to="bob")
    with pytest.raises(UsageError, match="'zoe' doesn't differ"):
        compare_recordings(whole, other, to="zoe")


def test_a_name_is_refused_only_if_something_differs(whole: Path, tmp_path: Path) -> None:
    same = compare_recordings(whole, whole, to="zoe")
    assert same.lines()[2:] == ["no difference"]
    assert (same.as_json()["to"], same.as_json()["chain"]) == (None, [])
    cut = tmp_path / "cut.mcap"
    cut.write_bytes(whole.read_bytes()[:-2000])
    with pytest.raises(UsageError, match="'zoe' doesn't differ"):  # It differs in its end only.
        compare_recordings(whole, cut, to="zoe")


def hidden(path: Path, chain: bytes, told: bytes) -> Path:
    """Record that ann sends bob what is recorded alike, whatever its history's hash, and bob tells cat of it."""
    names = ("ann", "bob", "cat")
    recorder = Recorder(path, plan(names))
    for name in names:
        recorder.began(name, 0)
    for at, sender, receiver, payload in (
        (1, "cat", "bob", b"hi"),
        (2, "ann", "bob", b"thing"),
        (9, "bob", "cat", told),
    ):
        recorder.sent(sender, 0, "x", at, payload, at + 3)
        recorder.arrives(sender, 0, receiver, at + 3, 0, None)
    for name in names:
        recorder.ended(name, 20, chain if name == "ann" else b"")
    recorder.close()
    return path


def test_who_has_sent_what_isnt_recorded_comes_before_the_first_who_is_seen_to_part(tmp_path: Path) -> None:
    paths = hidden(tmp_path / "a.mcap", b"1", b"1"), hidden(tmp_path / "b.mcap", b"2", b"2")
    shown = text(*paths)
    assert "first cause, perhaps: ann, in what isn't recorded; bob had received from there\n" in shown
    assert "\nfirst that is recorded: bob at 9ns, sends x\n" in shown
    assert compare_recordings(*paths, to="ann").as_json()["unseen_before"] == ["ann"]
    alike = hidden(tmp_path / "c.mcap", b"1", b"2")
    assert "\nfirst cause: bob at 9ns, sends x\n" in text(paths[0], alike)


def relayed(path: Path, chain: bytes, told: bytes) -> Path:
    """Record that ann sends to bob, bob to cat, and cat to dan; bob has answered ann."""
    names = ("ann", "bob", "cat", "dan")
    recorder = Recorder(path, plan(names))
    for name in names:
        recorder.began(name, 0)
    for at, sender, receiver, payload in (
        (2, "ann", "bob", b"x"),
        (6, "bob", "ann", b"x"),
        (9, "bob", "cat", b"x"),
        (15, "cat", "dan", told),
    ):
        recorder.sent(sender, at, "x", at, payload, at + 3)
        recorder.arrives(sender, at, receiver, at + 3, 0, None)
    for name in names:
        recorder.ended(name, 20, chain if name in ("ann", "bob") else b"")
    recorder.close()
    return path


def test_of_those_who_differ_in_what_isnt_recorded_the_first_is_named(tmp_path: Path) -> None:
    """Bob only passed it on: the hash of its history differs because ann's message had another number."""
    shown = text(relayed(tmp_path / "a.mcap", b"1", b"1"), relayed(tmp_path / "b.mcap", b"2", b"2"))
    assert "first cause, perhaps: ann, in what isn't recorded; cat had received from there\n" in shown


def test_json_says_the_same(whole: Path, tmp_path: Path) -> None:
    other = record(tmp_path / "other.mcap", lambda number: b'{"v":%d}' % (number + (number == 150)))
    found = compare_recordings(whole, other).as_json()
    assert (found["same"], found["members"], found["to"]) == (False, 3, "cat")
    assert [(each["member"], each["at"]) for each in found["differences"]] == [
        ("ann", 150_001),
        ("bob", 150_101),
        ("cat", 150_301),
    ]
    (cause,) = found["causes"]
    assert (cause["origin"], cause["member"], cause["fields"]) == ("itself", "ann", [{"path": "v", "a": 150, "b": 151}])
    assert len(found["chain"]) == 4


def test_who_is_in_one_only_is_said_first(whole: Path, tmp_path: Path) -> None:
    other = record(tmp_path / "other.mcap", names=("ann", "bob", "cat", "dan"))
    lines = compare_recordings(whole, other).lines()
    assert lines[2] == "only in B: dan"
    assert "without a difference: 3 members" in lines


def test_headers_that_differ_are_said_up_front(whole: Path, tmp_path: Path) -> None:
    other = record(tmp_path / "other.mcap", seed=2)
    difference = compare_recordings(whole, other)
    assert difference.is_same  # Whatever the seed was for, the same happened.
    assert difference.lines()[2:] == ["the headers differ:", "  seed: 1 → 2", "no difference"]


@pytest.mark.parametrize("share", [0.2, 0.5, 0.9])
def test_a_file_that_was_cut_off_is_the_same_up_to_there(whole: Path, tmp_path: Path, share: float) -> None:
    cut = tmp_path / "cut.mcap"
    cut.write_bytes(whole.read_bytes()[: int(whole.stat().st_size * share)])
    difference = compare_recordings(whole, cut)
    assert not difference.is_same
    verdict = Recording(cut).verify()
    assert verdict.until is not None
    assert difference.partings.until == verdict.until > 0
    assert difference.lines()[-2] == f"B is {verdict}"
    assert difference.lines()[-1].startswith("the same up to ")
    assert difference.lines()[-1].endswith(", then B ends")
    assert compare_recordings(cut, whole).lines()[-1].endswith(", then A ends")
    assert compare_recordings(cut, cut).is_same
    assert compare_recordings(cut, cut).lines()[-1].endswith("where both end")


@pytest.mark.parametrize("number", [30, 150])
def test_a_difference_before_the_cut_is_found_and_none_after_it(whole: Path, tmp_path: Path, number: int) -> None:
    other = record(tmp_path / "other.mcap", lambda each: b'{"v":%d}' % (each + (each >= number)))
    cut = tmp_path / "cut.mcap"
    cut.write_bytes(other.read_bytes()[: other.stat().st_size // 3])
    causes = compare_recordings(whole, cut).causes.first
    assert causes == (["ann"] if number == 30 else [])


def test_broken_off_runs(whole: Path, tmp_path: Path) -> None:
    def broken(name: str, count: int, cause: str = "the arm fell off") -> Path:
        path = tmp_path / name
        return record(path, count=count, finish=lambda each: each.abandon(cause, participant="bob", at=90))

    one, other = broken("one.mcap", 100), broken("other.mcap", 120)
    third = broken("third.mcap", 100, "the arm stuck")
    difference = compare_recordings(whole, one)
    assert not difference.is_same
    assert "B is broken off: bob at 90ns: the arm fell off" in difference.lines()[-2]
    assert difference.lines()[-1] == "the same up to 100us, then B ends"
    assert compare_recordings(one, other).is_same  # Where exactly a run breaks off is luck.
    assert compare_recordings(one, other).lines()[-1] == "no difference up to 100us, where both end"
    assert not compare_recordings(one, third).is_same


def test_bad_files_are_the_usual_errors(whole: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is no file"):
        compare_recordings(whole, tmp_path / "nothing.mcap")
    damaged = tmp_path / "damaged.mcap"
    data = bytearray(whole.read_bytes())
    data[len(data) // 2] ^= 1
    damaged.write_bytes(data)
    with pytest.raises(UsageError, match=r"damaged\.mcap was altered"):
        compare_recordings(whole, damaged)


def test_a_network_that_did_otherwise(tmp_path: Path) -> None:
    paths = []
    for name, latency, lost in (("a", "1us", None), ("b", "2us", "the cable")):
        recorder = Recorder(tmp_path / name, plan(["ann", "bob"], network=Network(default=link(latency))))
        for member in ("ann", "bob"):
            recorder.began(member, 0)
        recorder.sent("ann", 0, "v", 5, b"1", 3000)
        recorder.arrives("ann", 0, "bob", 1005, 0, lost)
        for member in ("ann", "bob"):
            recorder.ended(member, 9000, b"")
        recorder.close()
        paths.append(tmp_path / name)
    shown = text(paths[0], paths[1])
    assert "  network.default.latency" in shown
    assert "first cause: bob at 1.005us, receives v from ann\n" in shown
    assert "  ann sent the same at 5ns, but in B it is lost: the cable\n" in shown
    assert "  the networks of the two plans differ\n" in shown


# --- The fast reader ---


def told(recording: Recording) -> list[object]:
    """Return all that happened, as read by what puts it into the order of arrivals."""
    return sorted([*recording.arrivals(), *recording.unheard(), *recording.losses()], key=repr)


def retold(everything: Iterable[Sending]) -> list[object]:
    """Return the same from what was sent."""
    found: list[object] = []
    for sent, sender, topic, payload, fates, number in everything:
        assert payload is not None
        for at, receiver, copy, lost in fates:
            if lost is None:
                found.append(Arrival(at, sent, sender, number, receiver, copy, topic, payload))
            else:
                found.append(Loss(at, sent, sender, number, receiver, copy, topic, lost))
        if all(lost is not None for _, _, _, lost in fates):
            found.append(Unheard(sent, sender, number, topic, payload))
    return sorted(found, key=repr)


@pytest.mark.parametrize("seed", range(20))
def test_what_was_sent_is_what_arrived_or_didnt(tmp_path: Path, seed: int) -> None:
    path = tmp_path / "stage.mcap"
    path.write_bytes(recorded(write_script(Random(seed), participants=4, acts=40), seed))
    recording = Recording(path)
    everything = list(sendings(recording.scan))
    assert retold(everything) == told(recording)
    assert [each[:2] for each in everything] == sorted(each[:2] for each in everything)


@pytest.mark.parametrize("seed", range(20))
def test_chunks_that_are_left_out_change_nothing(tmp_path: Path, seed: int) -> None:
    """Whatever is left out at the beginning of a file is the same as what stands in front of the rest."""
    path = tmp_path / "stage.mcap"
    path.write_bytes(recorded(write_script(Random(seed), participants=4, acts=40), seed, chunk_size=300))
    scan = Recording(path).scan
    everything = list(sendings(scan))
    for skip in range(len(scan.chunks)):
        rest = list(sendings(scan, skip))
        # The first may be the rest of one that had begun.
        assert rest[1:] == everything[len(everything) - len(rest) + 1 :]
        if rest:
            assert rest[0][:3] == everything[-len(rest)][:3]
            assert rest[0][4] == everything[-len(rest)][4][-len(rest[0][4]) or len(everything[-len(rest)][4]) :]
