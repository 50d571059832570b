"""The host's end of a trunk: ordinary sessions over one connection, whatever comes over it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, invariant, rule
from msgspec import msgpack

from tests.federation.test_host import JOIN, LEAVE, HostedRun, finish, hosted_runs, publish, running
from tests.lock.worlds import World
from tests.wire.peers import BEAT, House, Peer
from tests.wire.trunks import CircuitPeer, TrunkPeer
from worldline.federation.server.limits import Limits
from worldline.federation.server.operating import Milestones, activities_of
from worldline.federation.server.session import Session
from worldline.lock import OPERATOR, Abort, State
from worldline.model import MS, InternalError, LossError, PeerError
from worldline.model.frames import Cutter, frame
from worldline.wire.codec import HEARTBEAT, decode_answer
from worldline.wire.handshake import HELLO_MAX
from worldline.wire.trunk import PIECE_MAX


def started(house: House, *names: str) -> list[CircuitPeer]:
    """Let everybody join over one trunk, and start."""
    circuits = TrunkPeer(house).join(*names or house.host.arbiter.plan.roster)
    for circuit in circuits:
        assert circuit.read()[0][0] == "start"
    return circuits


# --- A connection like any other ---


def conversation(house: House, a: Peer, b: Peer) -> None:
    """Have two participants say the same things, wherever they are."""
    for peer, name in ((a, "a"), (b, "b")):
        peer.greet(name)
        peer.say(JOIN)
    a.say(["publish", "t", b"x", 0], ["advance", 3 * MS])
    b.say(["next", 2 * MS])
    b.say(["publish", "t", bytes(3 * PIECE_MAX), MS], ["advance", 9 * MS])
    a.say(["next", 8 * MS])
    a.say(["fail", "no more"])


def test_what_is_said_on_a_circuit_is_what_is_said_on_a_connection_byte_by_byte() -> None:
    house = House("a", "b")
    peers = [house.connect(), house.connect()]
    conversation(house, *peers)
    apart = [bytes(peer.session.out) for peer in peers]
    other = House("a", "b")
    trunk = TrunkPeer(other)
    circuits = [trunk.circuit(5), trunk.circuit(6)]
    conversation(other, *circuits)
    together = [circuit.stream() for circuit in circuits]
    # The proofs in the welcomes are for other nonces.
    assert [list(Cutter().feed(each))[1:] for each in together] == [list(Cutter().feed(each))[1:] for each in apart]
    assert len(together[0]) > 3 * PIECE_MAX
    assert str(house.host.failure) == str(other.host.failure)
    assert [circuit.gone for circuit in circuits] == [peer.session.closing for peer in peers]


def test_one_write_is_enough_for_all() -> None:
    house = House("a", "b", "c")
    circuits = TrunkPeer(house).join("a", "b", "c")
    trunk = circuits[0].trunk
    for circuit in circuits:
        circuit.read()
    trunk.send(b"".join(circuit.piece(frame(msgpack.encode([["next", 5 * MS]]))) for circuit in circuits))
    assert not trunk.session.out
    for session in house.host.dirty:
        session.owner.write()
    assert house.host.dirty.count(trunk.session) == 1
    trunk.pump()
    assert [circuit.read()[0][0] for circuit in circuits] == ["grant"] * 3


def test_some_may_have_a_trunk_and_others_connections_of_their_own() -> None:
    house = House("a", "b", "c")
    a, b = TrunkPeer(house).join("a", "b")
    c = house.join("c", None, [["t"]])
    assert [peer.read()[0][0] for peer in (a, b, c)] == ["start"] * 3
    finish(house, a, b, c)


def test_a_circuit_that_ends_ends_for_its_participant_alone() -> None:
    house = House("a", "b", "c")
    a, b, c = started(house)
    a.say(LEAVE)
    a.hang_up()
    assert not house.host.over
    assert "a" not in house.host.sessions
    b.say(["next", 5 * MS])
    c.hang_up()
    assert isinstance(house.host.failure, LossError)
    assert house.host.failure.participant == "c"
    assert b.read()[-1][:4] == ["abort", "b", "its connection was closed, and it hadn't left", "c"]


def test_one_that_goes_before_the_start_may_come_again_on_the_same_trunk() -> None:
    house = House("a", "b")
    trunk = TrunkPeer(house)
    (first,) = trunk.join("a")
    first.hang_up()
    assert house.host.missing() == ["a", "b"]
    second, third = trunk.circuit(7), trunk.circuit(8)
    for circuit, name in ((second, "a"), (third, "b")):
        circuit.greet(name)
        circuit.say(JOIN)
    assert [circuit.read()[-1][0] for circuit in (second, third)] == ["start", "start"]


# --- Strangers ---


def test_a_trunk_is_a_stranger_until_somebody_is_admitted_on_it() -> None:
    house = House("a", "b", token=b"secret", limits=Limits(strangers_max=2))
    trunk = TrunkPeer(house)
    house.pass_time(11.0)
    trunk.pump()
    assert trunk.words[-1] == ["refused", "protocol", "it didn't say who it was in time"]
    assert trunk.gone
    trunk = TrunkPeer(house)
    trunk.admit("a")
    house.pass_time(60.0)
    assert not trunk.gone


@pytest.mark.parametrize("strangers", [1, 4])
def test_the_trunk_that_makes_room_is_never_that_of_the_circuit_for_which_it_is_made(strangers: int) -> None:
    house = House("a", "b", token=b"secret", limits=Limits(strangers_max=strangers))
    trunk = TrunkPeer(house)
    idle = [house.connect() for _ in range(strangers - 1)]
    refused = trunk.circuit(0)
    refused.greet("a", token=b"guess")
    assert refused.read()[0][:2] == ["refused", "token"]
    trunk.circuit(1).greet("a")
    trunk.circuit(2).greet("b")
    assert [trunk.circuit(number).read()[0][0] for number in (1, 2)] == ["welcome", "welcome"]
    assert [peer.session.closing for peer in idle] == [False] * len(idle)
    assert house.host._strangers == [peer.session for peer in idle]
    assert not house.host.over


def test_an_operator_on_the_first_circuit_of_a_trunk_doesnt_vouch_for_it() -> None:
    house = House("a", "b", operator_token=b"operators")
    desk = SimpleNamespace(turn=lambda: False, fill=lambda: None, keep_time=lambda: None, give_up=list)
    house.host.owner.desk = lambda _: desk  # type: ignore[assignment, return-value]
    trunk = TrunkPeer(house)
    trunk.circuit(0).greet(OPERATOR, token=b"operators")
    assert trunk.circuit(0).read()[0][0] == "welcome"
    assert house.host._strangers == [trunk.session]
    house.pass_time(11.0)
    trunk.pump()
    assert trunk.gone
    assert not house.host.over


def test_a_trunk_on_which_everybody_is_refused_stays_a_stranger() -> None:
    house = House("a", "b", token=b"secret", limits=Limits(strangers_max=2))
    trunk = TrunkPeer(house)
    for number in range(5):
        house.pass_time(2.1)
        trunk.circuit(number).greet("a", token=b"guess")
    assert house.host._strangers == []
    trunk.pump()
    assert trunk.words[-1] == ["refused", "protocol", "it didn't say who it was in time"]


def test_a_stranger_learns_nothing_and_has_one_circuit_at_a_time() -> None:
    house = House("a", "b", token=b"secret", federation="cell")
    trunk = TrunkPeer(house)
    first, second = trunk.circuit(0), trunk.circuit(1)
    first.greet("nobody", "other", token=b"guess")
    assert first.read() == [["refused", "token", "the token is wrong, or missing"]]
    assert first.gone
    second.greet("a", token=b"guess")
    assert second.read() == [["refused", "token", "the token is wrong, or missing"]]
    half = trunk.circuit(2)
    half.send(frame(msgpack.encode(half.hello("a")))[:5])
    trunk.circuit(3).greet("b")
    assert trunk.words == [
        ["refused", "protocol", "there can't be a second circuit before a participant has been admitted on the first"]
    ]
    assert trunk.gone
    assert house.host.failure is None


def test_a_proof_holds_for_the_trunk_that_it_was_made_for() -> None:
    house = House("a", "b", token=b"secret")
    hello = frame(msgpack.encode(TrunkPeer(house).circuit(0).hello("a")))
    other = TrunkPeer(house).circuit(0)
    other.send(hello)
    assert other.read()[0][:2] == ["refused", "token"]


def test_another_version_is_refused_in_clear_words() -> None:
    house = House()
    peer = house.connect()
    peer.send(frame(msgpack.encode(["trunk", 2])))
    assert peer.read() == [["refused", "version", "this server speaks version 1, not 2"]]


def hello(circuit: CircuitPeer, name: str) -> bytes:
    return circuit.piece(frame(msgpack.encode(circuit.hello(name))))


MISDEEDS: dict[str, tuple[Callable[[TrunkPeer], bytes], str]] = {
    "half a number": (lambda _: frame(b"\0\0"), "a frame of 2 bytes is too short to be a piece of any circuit"),
    "a word": (
        lambda _: frame(msgpack.encode(["trunk", 1])),
        "a frame of 8 bytes can't be read: Expected `array` of at least length 3, got 2",
    ),
    "too long": (
        lambda _: (PIECE_MAX + 5).to_bytes(4, "big"),
        f"a frame of {PIECE_MAX + 5:,} bytes is too long (the limit is {PIECE_MAX + 4:,})",
    ),
    "too many": (
        lambda trunk: hello(trunk.circuit(7), "x"),
        "3 circuits are more than there are participants",
    ),
}


@pytest.mark.parametrize(("misdeed", "problem"), MISDEEDS.values(), ids=MISDEEDS)
def test_who_breaks_a_trunk_loses_all_that_it_carries(misdeed: Callable[[TrunkPeer], bytes], problem: str) -> None:
    house = House("a", "b")
    a, b = started(house)
    a.say(["next", 5 * MS])
    trunk = a.trunk
    trunk.send(misdeed(trunk))
    trunk.pump()
    assert trunk.words == [["refused", "protocol", problem]]
    assert trunk.gone
    assert isinstance(house.host.failure, PeerError)
    assert house.host.failure.participant is None
    assert house.host.over
    for circuit in (a, b):
        assert ["refused", "protocol", problem] in circuit.read()
        assert circuit.gone


def test_a_misdeed_on_a_circuit_is_that_of_its_participant() -> None:
    house = House("a", "b", "c")
    a, b, c = started(house)
    b.send(frame(b"\xc1"))
    assert b.read()[-1][0] == "refused"
    assert b.gone
    assert [peer.read()[-1][3] for peer in (a, c)] == ["b", "b"]
    assert not a.trunk.gone


def test_a_name_is_taken_on_a_trunk_too_and_nobody_is_disturbed() -> None:
    house = House("a", "b", "c")
    trunk = TrunkPeer(house)
    a, b = trunk.join("a", "b")
    other = trunk.circuit(2)
    other.greet("a")
    assert other.read() == [["refused", "taken", "participant 'a' is already connected"]]
    assert other.gone
    other.say(JOIN)  # It is forgotten: nobody is there any more.
    last = trunk.circuit(3)
    last.greet("c")
    last.say(JOIN)
    assert [circuit.read()[-1][0] for circuit in (a, b, last)] == ["start"] * 3


def test_a_circuit_isnt_a_trunk() -> None:
    house = House("a", "b")
    circuit = TrunkPeer(house).circuit(0)
    circuit.send(frame(msgpack.encode(["trunk", 1])))
    assert circuit.read() == [["refused", "protocol", "it can't be a trunk: it is part of one"]]


def test_a_number_isnt_used_twice() -> None:
    house = House("a", "b")
    trunk = TrunkPeer(house)
    trunk.admit("a")
    trunk.circuit(0).hang_up()
    again = trunk.circuit(0)
    again.greet("a")
    assert again.read() == []
    assert house.host.missing() == ["a", "b"]
    assert "a" not in house.host.sessions


# --- Loss ---


def test_of_those_that_are_lost_together_one_that_computes_is_named() -> None:
    house = House("a", "b", "c")
    a, _, c = started(house)
    a.say(["next", 5 * MS])
    c.say(["next", 5 * MS])
    a.trunk.hang_up("its connection broke")
    assert isinstance(house.host.failure, LossError)
    assert (house.host.failure.participant, house.host.failure.problem) == ("b", "its connection broke")
    assert house.host.over


def test_of_those_that_are_lost_together_the_one_that_ran_is_named() -> None:
    house = House("a", "b", "c")
    started(house)[0].trunk.hang_up("its connection broke")
    assert (house.host.failure or LossError("")).participant == "a"
    house = House("a", "b", "c")
    house.host.owner.runner = lambda _: "b"
    started(house)[0].trunk.hang_up("its connection broke")
    assert (house.host.failure or LossError("")).participant == "b"


def test_those_who_have_left_arent_lost() -> None:
    house = House("a", "b", "c")
    trunk = TrunkPeer(house)
    a, b = trunk.join("a", "b")
    c = house.join("c", None, [["t"]])
    for circuit in (a, b):
        circuit.read()
        circuit.say(LEAVE)
    trunk.hang_up()
    assert not house.host.over
    c.say(LEAVE)
    assert house.host.digest is not None


def test_silence_is_that_of_the_trunk() -> None:
    house = House("a", "b", limits=Limits(silence_s=8.0))
    a, _ = started(house)
    for _ in range(30):
        house.pass_time(1.0)
        a.trunk.send(HEARTBEAT)
    assert not house.host.over
    house.pass_time(10.0)
    assert "nothing was heard from it for" in str(house.host.failure)


def test_those_who_wait_hear_a_heartbeat() -> None:
    house = House("a", "b", limits=Limits(silence_s=8.0))
    a, b = started(house)
    a.say(["next", 5 * MS])
    house.pass_time(3.0)
    assert a.read() == [BEAT]
    assert b.read() == []


def test_a_process_that_is_stopped_is_that_of_all() -> None:
    house = House("a", "b")
    a, _ = started(house)
    a.trunk.session.stopped = True
    house.pass_time(1.0)
    assert house.host.remarks() == ["a is stopped", "b is stopped"]


def test_one_that_computes_for_long_is_named_and_not_those_who_wait_for_it() -> None:
    house = House("a", "b", "c")
    a, b, c = started(house)
    a.trunk.send(frame(msgpack.encode(["running", 1, 3])))
    assert house.host.remarks() == ["b has been running for 3 s, and keeps 2 more in its process waiting"]
    a.trunk.send(frame(msgpack.encode(["running", 7, 3])))
    assert house.host.remarks() == []
    a.trunk.send(frame(msgpack.encode(["running", 1, 4])))
    b.say(LEAVE)
    assert house.host.remarks() == []
    finish(house, a, c)


def test_an_operator_is_told_who_runs_and_who_has_to_wait_in_its_process() -> None:
    house = House("a", "b", "c")
    a, _, c = started(house)
    c.say(["next", 5 * MS])
    a.trunk.send(frame(msgpack.encode(["running", 1, 7])))
    house.clock += 2.0
    found = activities_of(house.host, Milestones(), house.clock)
    assert {activity.process for name, activity in found.items() if name != "c"} == {17}
    assert found["a"].remark == "b, in the same process, has been running for 7 s"
    assert (found["b"].remark, found["b"].seconds) == ("", 9.0)
    assert found["c"].remark == ""  # It waits, whoever runs.


@pytest.mark.parametrize("is_told", [True, False], ids=["by the worker", "by the launcher"])
def test_a_status_names_the_one_that_runs_and_not_another_in_its_process(is_told: bool) -> None:
    house = House("a", "b", "c")
    a, _, c = started(house)
    c.say(["next", 5 * MS])
    if is_told:
        a.trunk.send(frame(msgpack.encode(["running", 1, 7])))
    else:
        house.host.owner.runner = lambda _: "b"
    (wait,) = house.host.status().waits
    assert (wait.who, wait.holder) == ("c", "b")
    assert wait.why.startswith("it is running, and a, in the same process, can't meanwhile; c at 0s waits for")


# --- Those who are held ---


def ahead(house: House) -> tuple[CircuitPeer, CircuitPeer]:
    """Let one run far ahead of the other, until it isn't to be read any more."""
    a, b = started(house)
    b.say(["promise", 10_000 * MS])
    a.say(["advance", 100 * MS])
    a.say(*(publish(number) for number in range(100, 120)))
    assert house.host.flow.ahead() == ["a"]
    a.trunk.pump()
    assert a.trunk.words == [["hold", 0]]
    return a, b


def test_one_that_is_held_back_is_told_so_and_keeps_nobody_else_from_being_read() -> None:
    house = House("a", "b", limits=Limits(memory_max=40_000))
    a, b = ahead(house)
    a.say(*(publish(number) for number in range(120, 130)))  # It was under way.
    a.say(["advance", 130 * MS])
    assert house.host.arbiter.members["a"].now == 100 * MS
    b.say(["advance", 90 * MS])
    assert house.host.arbiter.members["b"].now == 90 * MS
    assert house.host.flow.ahead() == ["a"]
    b.say(["advance", 200 * MS])
    assert a.trunk.words == [["hold", 0], ["resume", 0]]
    assert house.host.arbiter.members["a"].now == 130 * MS
    assert a.read()[-1][0] == "grant"


def test_one_that_doesnt_heed_that_is_lost_before_it_fills_the_memory() -> None:
    house = House("a", "b", limits=Limits(memory_max=40_000, unread_max=100_000, payload_max=1000))
    a, b = ahead(house)
    for number in range(130, 240):
        a.say(publish(number))
        if house.host.over:
            break
    assert "it has sent 10" in str(house.host.failure)
    assert "bytes more while it was held back" in str(house.host.failure)
    assert b.read()[-1][3] == "a"


def test_what_one_had_said_that_was_held_back_counts_when_the_trunk_ends() -> None:
    house = House("a", "b", limits=Limits(memory_max=40_000))
    a, b = ahead(house)
    a.say(["leave", 100 * MS])
    b.say(LEAVE)
    a.trunk.hang_up()
    assert house.host.digest is not None


def test_one_that_sends_frames_without_end_is_held_for_the_rest_of_the_second() -> None:
    house = House("a", "b", limits=Limits(frames_max=10))
    a, b = started(house)
    house.pass_time(1.0)
    a.send(HEARTBEAT * 30)
    assert a.trunk.words == [["hold", 0]]
    b.say(["advance", MS])
    assert b.read()[-1][0] == "grant"
    house.pass_time(1.0)
    a.trunk.pump()
    assert a.trunk.words == [["hold", 0], ["resume", 0]]


def test_one_that_says_very_much_takes_turns_with_others_on_its_trunk() -> None:
    house = House("a", "b")
    a, b = started(house)
    much = frame(msgpack.encode([["publish", "t", b"", number] for number in range(400)]))
    trunk = a.trunk
    house.host.receive(
        trunk.session,
        a.piece(much)
        + a.piece(frame(msgpack.encode([["advance", MS]])))
        + b.piece(frame(msgpack.encode([["next", 1]]))),
        0.0,
    )
    assert trunk.session.busy  # Until all of it is heard, the trunk isn't read.
    assert b.read()[-1][0] == "grant"
    rounds = 0
    while house.host.busy:
        house.host.work()
        rounds += 1
    assert rounds > 3
    assert not trunk.session.busy
    assert a.read()[-1][0] == "grant"


def test_what_isnt_read_is_counted_by_participant() -> None:
    house = House("a", "b", limits=Limits(unread_max=PIECE_MAX))
    a, b = started(house)
    a.say(["publish", "t", bytes(8 * PIECE_MAX), 0], ["advance", 3 * MS])
    trunk = a.trunk
    trunk.send(b.piece(frame(msgpack.encode([["next", 2 * MS]]))))
    for session in house.host.dirty:
        session.owner.write()
    assert trunk.session.trunk is not None
    trunk.session.trunk.fill()
    put_out = len(trunk.session.out)
    trunk.session.trunk.fill()
    assert len(trunk.session.out) == put_out  # There is enough for the system to do.
    ((name, left),) = house.host.slow()
    assert name == "b"
    assert 4 * PIECE_MAX < left < 5 * PIECE_MAX
    assert b.read()[-1][0] == "grant"
    assert house.host.slow() == []


# --- Any bytes, in any order ---


@given(st.lists(st.tuples(st.integers(0, 3), st.binary(max_size=40)), max_size=12), st.booleans())
def test_bytes_of_strangers_never_touch_a_run(pieces: list[tuple[int, bytes]], framed: bool) -> None:
    house = House(token=b"secret")
    a, b = running(house)
    strangers = [TrunkPeer(house) for _ in range(4)]
    for place, data in pieces:
        strangers[place].send(frame(b"\0\0\0" + bytes([place]) + data) if framed else data)
    for stranger in strangers:
        stranger.pump()
        if not stranger.gone:
            stranger.hang_up()
    finish(house, a, b)


def test_a_trunk_may_be_split_anyhow() -> None:
    found = []
    for size in (1, 2, 3, 7, 1000):
        house = House("a", "b")
        a, b = started(house)
        inner = frame(msgpack.encode([["publish", "t", b"x", 0], ["advance", 3 * MS]]))
        said = a.piece(inner[:5]) + b.piece(frame(msgpack.encode([["next", 2 * MS]]))) + a.piece(inner[5:]) + HEARTBEAT
        for start in range(0, len(said), size):
            a.trunk.send(said[start : start + size])
        found.append((a.read(), b.read()))
        assert found[-1][1][0][3] == [[MS, 0, "a", 0, 0, "t", b"x"]]
    assert all(each == found[0] for each in found)


class AnyTrunk(RuleBasedStateMachine):
    """Trunks that do whatever they like: nothing comes out of the host but bytes."""

    trunks = Bundle("trunks")

    @initialize()
    def begin(self) -> None:
        self.house = House(
            "a", "b", "c", token=b"x", limits=Limits(memory_max=3_000, strangers_max=4, unread_max=9_000)
        )
        self.spoiled = False
        self.house.join("c")

    @rule(target=trunks)
    def open(self) -> TrunkPeer:
        return TrunkPeer(self.house)

    @rule(
        trunk=trunks,
        number=st.integers(0, 4),
        name=st.sampled_from("abcx"),
        token=st.sampled_from((b"x", b"x", b"y")),
        joins=st.booleans(),
    )
    def greet(self, trunk: TrunkPeer, number: int, name: str, token: bytes, joins: bool) -> None:
        circuit = trunk.circuit(number)
        said = frame(msgpack.encode(circuit.hello(name, token=token)))
        self.talk(trunk, circuit.piece(said + frame(msgpack.encode([JOIN])) * joins))

    @rule(trunk=trunks, number=st.integers(0, 5), data=st.binary(max_size=30), framed=st.booleans())
    def anything(self, trunk: TrunkPeer, number: int, data: bytes, framed: bool) -> None:
        self.talk(trunk, trunk.circuit(number).piece(frame(data) if framed else data))

    @rule(trunk=trunks, data=st.binary(max_size=12))
    def nonsense(self, trunk: TrunkPeer, data: bytes) -> None:
        self.talk(trunk, data)

    @rule(
        trunk=trunks,
        number=st.integers(0, 4),
        said=st.lists(
            st.sampled_from(
                (
                    ["publish", "t", b"x" * 700, 3],
                    ["promise", 2],
                    ["advance", 5],
                    ["advance", 2 * MS],
                    ["next", 7],
                    ["stop", 2 * MS],
                    LEAVE,
                    ["fail", "no"],
                    JOIN,
                )
            ),
            max_size=4,
        ),
    )
    def plausible(self, trunk: TrunkPeer, number: int, said: list[Any]) -> None:
        self.talk(trunk, trunk.circuit(number).piece(frame(msgpack.encode(said))))

    @rule(trunk=trunks, length=st.sampled_from((HELLO_MAX + 9, PIECE_MAX + 5, 2**32 - 1)))
    def too_long(self, trunk: TrunkPeer, length: int) -> None:
        self.talk(trunk, length.to_bytes(4, "big"))

    @rule(trunk=trunks)
    def hang_up(self, trunk: TrunkPeer) -> None:
        self.spoiled = self.spoiled or self.is_trusted(trunk)
        if not trunk.gone:
            trunk.hang_up()

    @rule(trunk=trunks)
    def read(self, trunk: TrunkPeer) -> None:
        trunk.pump()

    @rule(seconds=st.sampled_from((1.0, 11.0)))
    def time_passes(self, seconds: float) -> None:
        self.spoiled = self.spoiled or seconds > 10
        self.house.pass_time(seconds)

    def talk(self, trunk: TrunkPeer, data: bytes) -> None:
        if trunk.gone:
            return
        trunk.send(data)
        self.spoiled = self.spoiled or self.is_trusted(trunk)

    def is_trusted(self, trunk: TrunkPeer) -> bool:
        return trunk.session not in self.house.host._strangers

    @invariant()
    def the_host_is_sound(self) -> None:
        host = self.house.host
        assert not isinstance(host.failure, InternalError), host.failure
        assert host.failure is None or self.spoiled, "a stranger has broken the run off"
        assert len(host._strangers) <= 4
        for name, session in host.sessions.items():
            assert session.name == name
            assert not session.closing
        if not host.over:
            host.arbiter.check_invariants()


TestAnyTrunk = AnyTrunk.TestCase
TestAnyTrunk.settings = settings(max_examples=15, stateful_step_count=25)


@pytest.mark.soak
class TestSoakAnyTrunk(AnyTrunk.TestCase):
    settings = settings(max_examples=500, stateful_step_count=50)


# --- Random federations ---


class _Careless:
    """A circuit's session as a worker sees it that may still have something under way when it is told to hold it."""

    def __init__(self, session: Session, random: Random) -> None:
        self._session = session
        self._random = random

    def __getattr__(self, name: str) -> Any:
        return getattr(self._session, name)

    @property
    def paused(self) -> bool:
        return self._session.paused and self._random.random() < 0.7


class TrunkedRun(HostedRun):
    """A random world whose participants share trunks."""

    def __init__(self, world: World, random: Random, memory_max: int, seen: Counter[str]) -> None:
        super().__init__(world, random, memory_max, seen)
        self.trunks = [TrunkPeer(self.house) for _ in range(random.randint(1, 3))]
        self.circuits: dict[str, CircuitPeer] = {}

    def admit(self, name: str) -> Any:
        number = len(self.circuits)
        self.circuits[name] = circuit = self.trunks[number % len(self.trunks)].circuit(number)
        circuit.greet(name)
        assert circuit.read()[0][0] == "welcome"
        return _Careless(self.host.sessions[name], self.random)

    def say(self, name: str, data: bytes) -> None:
        circuit = self.circuits[name]
        cut = self.random.randrange(len(data)) if self.random.random() < 0.1 else 0
        for part in filter(None, (data[:cut], data[cut:])):
            self.host.receive(circuit.trunk.session, circuit.piece(part), 0.0)
        self.settled()

    def hand_out(self) -> None:
        for name, circuit in self.circuits.items():
            self.seen["words about circuits"] += len(circuit.trunk.words)
            circuit.trunk.words.clear()
            for body in self.frames[name].feed(circuit.stream()):
                answer = decode_answer(body)
                assert not isinstance(answer, Abort)
                if self.drivers[name].ledger.state is not State.LEFT:
                    self.drivers[name].answer(answer)  # type: ignore[arg-type]


@pytest.mark.parametrize("turn", [16, 1])
def test_random_federations_over_trunks_end_as_they_would_anywhere(turn: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("worldline.federation.server.host._TURN", turn)
    seen = hosted_runs(range(turn, turn + 40), TrunkedRun)
    assert seen["words about circuits"] > 40
    assert turn > 1 or seen["times that somebody had more to say"] > 400


@pytest.mark.soak
@pytest.mark.parametrize("start", range(0, 10_000, 1_000))
def test_long_search_for_a_run_over_trunks_that_locks_up(
    start: int, record_property: Callable[[str, object], None]
) -> None:
    record_property("summary", dict(hosted_runs(range(start, start + 1_000), TrunkedRun)))
