"""Payloads that are longer than a frame: the same over every transport, in recordings, and within limits."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from hashlib import shake_128
from pathlib import Path
from typing import Any

import pytest
from msgspec import msgpack

from tests.federation.transports import (
    Strand,
    join_asyncio,
    join_blocking,
    join_in_crews,
    make_certificate,
    nothing_left,
    run_over_sockets,
)
from tests.wire.peers import BEAT, House, Peer
from worldline import MS, Federation, Network, Participant, Program, Server, connect, link, plan, run
from worldline.federation.server.limits import Limits
from worldline.model import UsageError
from worldline.model.frames import frames
from worldline.recording import Condition, Recorder, Recording
from worldline.wire.codec import HEARTBEAT

SMALL = Limits(frame_max=2**17)  # So that what takes several frames needn't be large.


@pytest.fixture(autouse=True)
def _tidy() -> Iterator[None]:
    with nothing_left():
        yield


def pictures(*sizes: int) -> Federation:
    """One sends payloads of these sizes, the other sends them back."""

    def sender(self: Participant) -> None:
        for number, size in enumerate(sizes):
            self.publish("picture", shake_128(bytes([number])).digest(size), at=number // 2 * MS)
        came = self.advance(to="1s")
        assert [len(message.payload) for message in came] == [*sizes]

    def mirror(self: Participant) -> None:
        for picture in self.messages(until="500ms"):
            self.publish("reflection", picture.payload)

    programs = {
        "s": Program(sender, publishes=["picture"], subscribes=["reflection"]),
        "m": Program(mirror, publishes=["reflection"], subscribes=["picture"]),
    }
    return Federation(programs, network=Network(default=link("1ms")))


AROUND = pictures(2**16, 2**17 - 100, 2**17 - 20, 2**17, 5 * 2**17 - 30, 2**20, 0, 1)

WAYS: dict[str, dict[str, Any]] = {
    "unix": {"address": "unix://{}/s"},
    "paired": {"paired": True},
    "asyncio": {"client": join_asyncio},
    "two crews": {"client": join_in_crews(2)},
    "tls": {"address": "tls://127.0.0.1:0"},
}


@pytest.mark.parametrize("way", WAYS)
def test_what_takes_several_frames_arrives_the_same_in_every_way(way: str, tmp_path: Path) -> None:
    options = dict(WAYS[way])
    if "address" in options:
        options["address"] = options["address"].format(tmp_path)
    if "tls" in way:
        options["certificate"] = make_certificate(tmp_path)
    outcome = run_over_sockets(AROUND, **options, limits=SMALL)
    assert outcome.digest == run(AROUND).digest


def test_a_resident_sends_and_receives_what_takes_several_frames() -> None:
    programs = AROUND.programs
    server = Server(AROUND.plan(), limits=SMALL)

    def mirror() -> None:
        with connect(server, "m", publishes=["reflection"], subscribes=["picture"]) as me:
            programs["m"].run(me)

    server.open()
    other = Strand(mirror)
    with server.resident("s", publishes=["picture"], subscribes=["reflection"]) as me:
        programs["s"].run(me)
    other.result()
    assert me.outcome().digest == run(AROUND).digest


@pytest.mark.long
def test_forty_megabytes_arrive_over_a_socket_and_in_one_process_and_are_recorded(tmp_path: Path) -> None:
    federation = pictures(40_000_000)
    recorders = [Recorder(tmp_path / name, federation.plan()) for name in ("one.mcap", "other.mcap")]
    digests = set()
    for recorder, each in zip(recorders, (run, recorded_over_unix(tmp_path)), strict=True):
        outcome = each(federation, observer=recorder)
        recorder.close()
        digests.add(outcome.digest)
    assert len(digests) == 1
    one, other = (tmp_path / name for name in ("one.mcap", "other.mcap"))
    assert one.read_bytes() == other.read_bytes()
    found = Recording(one)
    assert found.verify().condition is Condition.INTACT
    assert {len(arrival.payload) for arrival in found.arrivals()} == {40_000_000}


def recorded_over_unix(directory: Path) -> Callable[..., Any]:
    def played(federation: Federation, observer: Recorder) -> Any:
        with Server(federation.plan(), f"unix://{directory}/s", observer=observer) as server:
            strands = join_blocking(str(server.address), federation.programs, None, None)
            outcome = server.wait(60)
            for strand in strands:
                strand.result()
        return outcome

    return played


# --- Limits ---


def test_the_largest_payload_is_told_by_the_server_and_kept_to_by_its_clients() -> None:
    with Server(plan(["a"]), limits=Limits(payload_max=1000)) as server:
        with connect(server, "a") as me:
            me.publish("t", bytes(1000))
            with pytest.raises(UsageError, match=r"a payload of 1,001 bytes is too large \(the limit is 1,000"):
                me.publish("t", bytes(1001))
        server.wait(60)


def test_the_largest_payload_of_a_federation_in_one_process() -> None:
    def sender(self: Participant) -> None:
        self.publish("t", bytes(self.now + 1001))

    with pytest.raises(UsageError, match=r"a payload of 1,001 bytes is too large.*\(the limit is 1,000"):
        run(Federation({"a": Program(sender)}, payload_max=1000))
    run(Federation({"a": Program(sender)}, payload_max=1001))


# --- What hostile participants send ---

GOES_ON = 2**31


def piece(size: int, goes_on: bool = True) -> bytes:
    return (size | (GOES_ON if goes_on else 0)).to_bytes(4, "big") + bytes(size)


def running(limits: Limits) -> tuple[House, Peer, Peer]:
    house = House(limits=limits)
    peers = [house.join(name, None, [["t"]]) for name in ("a", "b")]
    for peer in peers:
        assert peer.read()[0][0] == "start"
    return house, peers[0], peers[1]


def in_pieces(*events: list[object]) -> bytes:
    return frames(msgpack.encode(events), 2**17)


HOSTILE: dict[str, tuple[bytes, str]] = {
    "pieces that never end": (piece(2**17) * 10, "393,216 bytes in several frames are too many (the limit is 365,536"),
    "pieces of nothing": (piece(0) * 10, "a frame of 0 bytes that goes on in the next one is too short"),
    "pieces of next to nothing": (piece(1) * 10, "a frame of 1 bytes that goes on in the next one is too short"),
    "then nothing": (piece(2**17) + piece(0), "a frame of 0 bytes that goes on in the next one is too short"),
    "a piece that is too long": (piece(2**17 + 1), "a frame of 131,073 bytes is too long"),
    "more than the limit": (
        in_pieces(["publish", "t", bytes(300_001), 0]),
        "a payload of 300,001 bytes is too large (the limit is 300,000",
    ),
    "something else after pieces": (
        piece(2**17) + frames(msgpack.encode([["advance", 5]]), 2**17),
        "a frame of 131,083 bytes can't be read",
    ),
    "pieces of no events": (in_pieces(["publish", "t", bytes(200_000)]), "can't be read"),
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_participant_that_sends_nonsense_in_pieces_is_told_and_lost(kind: str) -> None:
    said, complaint = HOSTILE[kind]
    house, a, b = running(Limits(frame_max=2**17, payload_max=300_000))
    for start in range(0, len(said), 2**16):
        a.send(said[start : start + 2**16])
    *_, (word, code, reason) = a.read()
    assert (word, code) == ("refused", "protocol")
    assert complaint in reason
    assert b.read()[-1][0] == "abort"
    assert house.host.over


def test_pieces_of_several_participants_dont_mix_and_hearts_beat_between_them() -> None:
    _, a, b = running(SMALL)
    ours, theirs = (in_pieces(["publish", "t", bytes([n]) * 300_000, 0], ["advance", 9 * MS]) for n in (1, 2))
    size = 4 + 2**17
    for start in range(0, len(ours), size):
        a.send(ours[start : start + size] + HEARTBEAT * (start < size))
        b.send(theirs[start : start + size] + HEARTBEAT * (start < size))
    for peer, sent in ((a, 2), (b, 1)):
        messages: list[Any] = []
        for answer in peer.read():
            messages += answer[1] if answer[0] == "deliver" else answer[3] if answer != BEAT else []
        assert [message[-1] for message in messages] == [bytes([sent]) * 300_000]


def test_too_many_unfinished_payloads_at_once_are_refused_with_who_has_sent_what() -> None:
    house, a, b = running(Limits(frame_max=2**17, payload_max=2**20, under_way_max=2**20))
    a.send(piece(2**17) * 5)
    assert house.host.arbiter.members["a"].outstanding == 0
    assert not house.host.over
    b.send(piece(2**17) * 4)
    assert "1,179,648 bytes are under way, sent and not yet received (a 655,360, b 524,288)" in b.read()[-1][2]
    assert "raise limits.under_way" in a.read()[-1][2]
    assert house.host.over


def test_a_payload_that_is_whole_counts_only_as_long_as_somebody_may_get_it() -> None:
    house, a, b = running(Limits(frame_max=2**17, payload_max=2**20, under_way_max=2**20))
    for step in range(5):
        a.send(in_pieces(["publish", "t", bytes(900_000), 2 * step * MS], ["advance", 2 * (step + 1) * MS]))
        assert a.session.frames.gathered() == 0
        b.say(["advance", 2 * (step + 1) * MS])
        a.read(), b.read()
    assert not house.host.over


def test_who_hangs_up_within_a_payload_has_sent_nothing_of_it() -> None:
    house, a, b = running(SMALL)
    a.send(piece(2**17))
    house.host.closed(a.session, "it went")
    assert "it went, in the middle of a frame" in b.read()[-1][2]


def test_nobody_sends_pieces_before_it_has_joined() -> None:
    house = House(limits=SMALL)
    peer = house.admit("a")
    peer.send(piece(2**17))
    assert "a frame of 2,147,614,720 bytes is too long" in peer.read()[-1][2]
