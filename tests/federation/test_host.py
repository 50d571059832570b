"""The host without sockets: who is let in, what becomes of misbehavior, and that little memory locks nobody up."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, initialize, invariant, rule
from msgspec import msgpack, structs

from tests.lock.harness import Driver, Harness
from tests.lock.worlds import World, make_world
from tests.wire.peers import BEAT, House, Peer
from tests.wire.strategies import events
from worldline.federation.server.admission import NOT_OPERATORS
from worldline.federation.server.host import FlowControl, Host
from worldline.federation.server.limits import Limits
from worldline.federation.server.session import Session
from worldline.history.journal import run_digest
from worldline.lock import Abort, Action, Arbiter, Event, Join, Log, Promise, State
from worldline.lock.member import Member
from worldline.model import (
    FOREVER,
    MS,
    TIME_MAX,
    ConfigurationError,
    InternalError,
    LossError,
    ModelError,
    PeerError,
    Rule,
    UsageError,
    link,
)
from worldline.model.frames import frame
from worldline.wire.codec import FRAME_MAX, HEARTBEAT, Frames, decode_answer, encode_events
from worldline.wire.handshake import HELLO_MAX

JOIN: list[object] = ["join", None, [["t"]], 0, False]
BAD_JOIN: list[object] = ["join", None, [["t"], ["t"]], 0, False]
LEAVE: list[object] = ["leave", 0]
NEXT: list[object] = ["next", FOREVER]


def running(house: House, *names: str) -> list[Peer]:
    """Let everybody join and start; return their connections."""
    peers = [house.join(name, None, [["t"]]) for name in names or house.host.arbiter.plan.roster]
    for peer in peers:
        assert peer.read()[0][0] == "start"
    return peers


def refused(peer: Peer) -> tuple[str, str]:
    """Return code and reason of the refusal that a peer has got last, and see that it was hung up on."""
    *_, (kind, code, reason) = peer.read()
    assert kind == "refused"
    assert peer.gone
    return code, reason


# --- Admission ---


def test_everybody_is_welcomed_and_all_start_together() -> None:
    house = House("a", "b")
    assert house.host.waiting() == "waiting for a, b"
    a = house.join("a")
    assert a.read() == []
    assert house.host.waiting() == "waiting for b"
    b = house.join("b")
    assert a.read() == [["start", "a", 0, 0, MS, FOREVER]]
    assert b.read() == [["start", "b", 0, 0, MS, FOREVER]]


def test_a_challenge_comes_first_with_a_nonce_of_its_own() -> None:
    house = House()
    first, second = house.connect(), house.connect()
    assert first.first[:3] == second.first[:3] == ["challenge", "worldline", 1]
    assert len(first.nonce) == 16
    assert first.nonce != second.nonce


def test_the_welcome_says_how_often_to_beat_and_how_long_frames_may_be() -> None:
    house = House(limits=Limits(silence_s=8.0))
    peer = house.connect()
    peer.greet("a")
    ((kind, proof, heartbeat, longest),) = peer.read()
    assert (kind, len(proof), heartbeat, longest) == ("welcome", 32, 2_000_000_000, FRAME_MAX)


Greet = Callable[[House], Peer]


def greeted(house: House, name: str, federation: str = "", **wrong: Any) -> Peer:
    peer = house.connect()
    peer.greet(name, federation, **wrong)
    return peer


def left_and_back(house: House) -> Peer:
    a, _ = running(house)
    a.say(LEAVE)
    a.hang_up()
    return greeted(house, "a")


def after_the_end(house: House) -> Peer:
    for peer in running(house):
        peer.say(LEAVE)
    assert house.host.over
    return greeted(house, "a")


REFUSALS: dict[str, tuple[Greet, str, str]] = {
    "not on the roster": (
        lambda house: greeted(house, "x"),
        "unexpected",
        "unexpected participant 'x'; expected: a, b",
    ),
    "no name": (lambda house: greeted(house, ""), "token", NOT_OPERATORS),
    "not on the roster, all there": (
        lambda house: (running(house), greeted(house, "x"))[1],
        "unexpected",
        "unexpected participant 'x': the run has started without it",
    ),
    "second of the same name": (
        lambda house: house.admit("a") and greeted(house, "a"),
        "taken",
        "participant 'a' is already connected",
    ),
    "left and back": (left_and_back, "taken", "participant 'a' has been here already"),
    "wrong token": (lambda house: greeted(house, "a", token=b"guess"), "token", "the token is wrong, or missing"),
    "no token": (lambda house: greeted(house, "a", token=b""), "token", "the token is wrong, or missing"),
    "a proof of nothing": (lambda house: greeted(house, "a", proof=b"\x00"), "token", "the token is wrong, or missing"),
    "wrong version": (lambda house: greeted(house, "a", version=2), "version", "this server speaks version 1, not 2"),
    "wrong federation": (
        lambda house: greeted(house, "a", "other"),
        "federation",
        "this is federation 'cell', not 'other'",
    ),
    "run over": (after_the_end, "over", "the run is over"),
}


@pytest.mark.parametrize(("greet", "code", "reason"), REFUSALS.values(), ids=REFUSALS)
def test_each_refusal_has_its_own_code_and_reason(greet: Greet, code: str, reason: str) -> None:
    house = House("a", "b", token=b"secret", federation="cell")
    assert refused(greet(house)) == (code, reason)
    assert house.host.failure is None


def test_a_token_where_none_is_used_is_refused_with_a_reason_of_its_own() -> None:
    assert refused(greeted(House(), "a", token=b"x")) == ("token", "this server uses no token")


def test_a_federation_may_be_left_open() -> None:
    house = House("a", "b", federation="cell")
    house.admit("a")
    named = house.connect()
    named.greet("b", "cell")
    assert named.read()[0][0] == "welcome"


AGREED = {"world": "ab12", "physics": "mujoco"}
DISAGREEMENTS: dict[str, tuple[dict[str, str] | None, str]] = {
    "another value": ({**AGREED, "world": "cd34"}, "world is cd34, the server's is ab12"),
    "nothing": (None, "world isn't stated, the server's is ab12"),
    "nothing in so many words": ({}, "world isn't stated, the server's is ab12"),
    "too little": ({"world": "ab12"}, "physics isn't stated, the server's is mujoco"),
    "too much": ({**AGREED, "step": "1ms"}, "step is 1ms, and the server states none"),
    "long": ({**AGREED, "world": "c" * 2_000}, f"world is {'c' * 117}..., the server's is ab12"),
    "unprintable": ({**AGREED, "world": "\x1b[2J"}, "world is \\x1b[2J, the server's is ab12"),
}


@pytest.mark.parametrize(("claimed", "reason"), DISAGREEMENTS.values(), ids=DISAGREEMENTS)
def test_who_states_another_agreement_is_refused_and_nobody_is_disturbed(
    claimed: dict[str, str] | None, reason: str
) -> None:
    house = House(vacancies=2, token=b"secret", agreement=AGREED)
    for name in ("a", "b"):
        assert refused(greeted(house, name, agreement=claimed)) == ("agreement", reason)
    assert house.host.missing() == ["2 more"]
    peers = [greeted(house, name, agreement=dict(reversed(AGREED.items()))) for name in ("a", "b")]
    for peer in peers:
        assert peer.read()[0][0] == "welcome"
        peer.say(JOIN)
    assert [peer.read()[0][0] for peer in peers] == ["start", "start"]
    assert house.host.failure is None


def test_an_agreement_where_the_server_states_none_is_refused() -> None:
    house = House()
    assert refused(greeted(house, "a", agreement={"world": "ab12"})) == (
        "agreement",
        "world is ab12, and the server states none",
    )
    assert greeted(house, "a", agreement={}).read()[0][0] == "welcome"


def test_an_agreement_that_was_altered_on_the_way_is_no_proof() -> None:
    house = House(token=b"secret", agreement=AGREED)
    peer = house.connect()
    hello = peer.hello("a", agreement={"world": "cd34"})
    peer.send(frame(msgpack.encode([*hello[:-1], AGREED])))
    assert refused(peer) == ("token", "the token is wrong, or missing")


def test_who_doesnt_know_the_token_isnt_told_the_agreement() -> None:
    house = House(token=b"secret", agreement=AGREED)
    assert refused(greeted(house, "a", token=b"?", agreement={"world": "?"}))[0] == "token"


@pytest.mark.parametrize(
    ("planned", "declared", "words", "ability"),
    [
        ({"faults": ["1ms hang a 2ms"]}, {}, "a has a boot time, faults or an emergency stop, and", "life"),
        ({"estop": MS}, {}, "a has a boot time, faults or an emergency stop, and", "life"),
        ({}, {"boot": "3ms"}, "a has a boot time, faults or an emergency stop, and", "life"),
        ({}, {"clock": {"drift": "40ppm"}}, "a has a local clock, and", "clock"),
    ],
)
def test_a_client_that_would_ignore_what_it_is_to_act_out_is_refused(
    planned: Any, declared: Any, words: str, ability: str
) -> None:
    house = House("a", declared={"a": declared}, **planned)
    code, reason = refused(greeted(house, "a"))
    assert (code, reason.partition(" its client")[0]) == ("unable", words)
    peer = house.connect()
    peer.send(frame(msgpack.encode([*peer.hello("a", agreement={}), "", [ability]])))
    assert peer.read()[0][0] == "welcome"


@pytest.mark.parametrize(
    "claimed",
    [["world"], "world", 7, {"world": 7}, {7: "ab12"}, {"world": None}, {"world": {"deep": "er"}}, {b"world": b"ab12"}],
    ids=str,
)
def test_an_agreement_that_is_none_ends_its_connection_alone(claimed: object) -> None:
    house = House(agreement=AGREED)
    code, reason = refused(greeted(house, "a", proof=b"?", agreement=claimed))
    assert code == "protocol"
    assert "can't be read" in reason
    assert house.host.failure is None
    assert greeted(house, "a", agreement=AGREED).read()[0][0] == "welcome"


@pytest.mark.parametrize("place", range(3))
def test_who_leaves_counts_from_0(place: int) -> None:
    a, _ = running(House())
    counts: list[Any] = [{}, None, [], {}, {}]
    counts[(0, 3, 4)[place]] = {"x": -1}
    a.say(["leave", 0, b"", False, *counts])
    assert refused(a)[0] == "protocol"


def test_an_agreement_is_no_longer_than_a_hello() -> None:
    house = House(agreement=AGREED)
    code, reason = refused(greeted(house, "a", agreement={**AGREED, "world": "c" * HELLO_MAX}))
    assert code == "protocol"
    assert "is too long" in reason


@pytest.mark.parametrize(
    "greet",
    [
        lambda house: greeted(house, "x", token=b"?"),
        lambda house: greeted(house, "a", token=b"?"),
        lambda house: greeted(house, "b", token=b"?"),
        lambda house: greeted(house, "b", "other", token=b"?"),
        lambda house: (running(house), greeted(house, "a", token=b"?"))[1],
        lambda house: (left_and_back(house), greeted(house, "a", token=b"?"))[1],
        lambda house: (after_the_end(house), greeted(house, "a", token=b"?"))[1],
    ],
    ids=["unknown", "free", "taken", "elsewhere", "running", "left", "over"],
)
def test_who_doesnt_know_the_token_learns_nothing_about_the_run(greet: Greet) -> None:
    house = House("a", "b", token=b"secret", federation="cell")
    assert refused(greet(house)) == ("token", "the token is wrong, or missing")


def test_version_is_judged_before_the_token() -> None:
    house = House(token=b"secret")
    assert refused(greeted(house, "x", version=9, token=b"?"))[0] == "version"


def test_a_proof_that_was_overheard_doesnt_serve_again() -> None:
    house = House(token=b"secret")
    first = house.connect()
    overheard = frame(msgpack.encode(first.hello("a")))
    first.send(overheard)
    first.hang_up()
    thief = house.connect()
    thief.send(overheard)
    assert refused(thief) == ("token", "the token is wrong, or missing")


def test_a_refused_name_is_shown_shortened() -> None:
    house = House()
    code, reason = refused(greeted(house, "x" * 3_000))
    assert code == "unexpected"
    assert len(reason) < 500


def test_among_too_many_strangers_the_oldest_makes_room() -> None:
    house = House(limits=Limits(strangers_max=3))
    oldest, *others = [house.connect() for _ in range(3)]
    assert house.connect().first[0] == "challenge"
    assert oldest.read()[-1] == ["refused", "crowded", "too many connections are waiting to be admitted"]
    assert oldest.gone
    others[0].greet("a")  # Who has been admitted makes room too.
    assert house.connect().first[0] == "challenge"
    assert not others[1].gone


def test_who_doesnt_say_who_it_is_in_time_is_sent_away() -> None:
    house = House(limits=Limits(handshake_s=5.0))
    slow = house.connect()
    house.pass_time(5.0)
    assert slow.read() == []
    slow.send(b"\x00")  # Dripping bytes doesn't help.
    house.pass_time(1.0)
    assert refused(slow) == ("protocol", "it didn't say who it was in time")
    assert running(house)


def test_who_hasnt_joined_yet_may_come_again() -> None:
    house = House()
    for _ in range(3):
        house.admit("a").hang_up()
    assert running(house)


# --- Guests ---


def test_a_guest_waits_until_it_is_invited() -> None:
    house = House("a", guests=["g"])
    guest = house.join("g")
    a = house.join("a", controls=True)
    assert a.read()[0][0] == "start"
    assert guest.read() == []
    a.say(["invite", "g", 5 * MS], ["advance", 10 * MS])
    assert guest.read() == [["start", "g", 5 * MS, 0, MS, MS]]
    guest.say(["publish", "t", b"x", 5 * MS], ["leave", 5 * MS])
    assert a.read()[0][:3] == ["grant", "a", FOREVER]
    a.say(["leave", 10 * MS])
    assert house.host.digest == run_digest([("a", 10 * MS, b""), ("g", 5 * MS, b"")])


def test_a_guest_that_joins_after_its_invitation_starts_too() -> None:
    house = House("a", guests=["g"])
    a = house.join("a", controls=True)
    a.say(["invite", "g", 5 * MS], ["advance", 5 * MS])
    assert house.join("g").read() == [["start", "g", 5 * MS, 0, MS, MS]]


def test_a_guest_that_nobody_has_named_is_admitted_once_it_is_invited() -> None:
    house = House("a")
    a = house.join("a", controls=True)
    assert refused(greeted(house, "g"))[0] == "unexpected"
    a.say(["invite", "g", 5 * MS], ["advance", 5 * MS])
    assert house.join("g").read()[0][0] == "start"


def test_guests_that_nobody_invited_are_told_that_the_run_is_over() -> None:
    house = House("a", guests=["g"], end=9 * MS)
    guest = house.join("g")
    (a,) = running(house, "a")
    a.say(LEAVE)
    assert guest.read() == [["grant", "g", 9 * MS, [], True]]
    assert house.host.digest == run_digest([("a", 0, b"")])


def test_a_guest_may_go_and_come_again_before_it_is_invited() -> None:
    house = House("a", guests=["g"])
    house.join("g").hang_up()
    guest = house.join("g")
    a = house.join("a", controls=True)
    a.say(["invite", "g", 5 * MS], ["advance", 10 * MS])
    assert guest.read()[0][0] == "start"


def test_a_guests_bad_join_doesnt_harm_who_invites_it() -> None:
    house = House("a", guests=["g"])
    guest = house.admit("g")
    guest.say(BAD_JOIN)
    a = house.join("a", controls=True)
    a.read()
    a.say(["invite", "g", 5 * MS])
    assert a.read() == []
    assert refused(guest)[0] == "protocol"
    assert not house.host.over  # It may come again: nobody passes 5ms until it does.


@pytest.mark.parametrize("joined", [True, False], ids=["joined", "welcomed"])
def test_guests_are_told_of_the_end_of_a_run_that_is_broken_off(joined: bool) -> None:
    house = House("a", "b", guests=["g"])
    guest = house.join("g") if joined else house.admit("g")
    a, _ = running(house)
    a.hang_up("its cable was cut")
    assert guest.read() == [["abort", "g", "its cable was cut", "a", 0]]


def test_a_guest_joins_once() -> None:
    house = House("a", guests=["g"])
    guest = house.join("g")
    guest.say(JOIN)
    assert refused(guest)[0] == "protocol"


# --- Misbehavior ---

TOO_LONG = (FRAME_MAX + 1).to_bytes(4, "big")
MISDEEDS: dict[str, tuple[bytes, str]] = {
    "too long": (TOO_LONG, "a frame of 16,842,753 bytes is too long"),
    "garbage": (frame(b"\xc1\xff\x00"), "a frame of 3 bytes can't be read"),
    "no MessagePack at all": (frame(b"GET / HTTP/1.1"), "a frame of 14 bytes can't be read"),
    "deep nesting": (frame(b"\x91" * 100_000), "a frame of 100,000 bytes can't be read"),
    "a join too many": (frame(msgpack.encode([JOIN])), "Join isn't possible while it is computing"),
    "a server's word": (frame(msgpack.encode([["start", "a", 0, 0, 0]])), "can't be read"),
    "an operator's word": (frame(msgpack.encode([["barrier", 5]])), "can't be read"),
    "a hello too many": (frame(msgpack.encode(["hello", 1, "", "a", b"", b""])), "can't be read"),
    "a time in the past": (frame(msgpack.encode([["promise", 5], ["publish", "t", b"", 3]])), "breaks its promise"),
    "a time before all times": (frame(msgpack.encode([["publish", "t", b"", -1]])), "breaks its promise"),
    "a time after all times": (frame(msgpack.encode([["publish", "t", b"", 2**61]])), "isn't a send time"),
    "a number beyond all numbers": (
        frame(msgpack.encode([["publish", "t", b"", 2**63]])),
        "can't be read: Expected `int`",
    ),
    "a time it wasn't granted": (frame(msgpack.encode([["reached", 10 * MS]])), "it can't be at 10ms"),
    "something after its request": (frame(msgpack.encode([NEXT, ["promise", 7]])), "isn't possible while"),
    "a bad name": (frame(msgpack.encode([["publish", "\n", b"", 1]])), "can't name a topic"),
    "a buffer of less than none": (
        frame(msgpack.encode([["subscribe", ["u", {"limit": -1}], 0, 0]])),
        "a buffer of -1 messages isn't possible",
    ),
    "control without leave to": (frame(msgpack.encode([["stop", 10 * MS]])), "it may not stop"),
}


@pytest.mark.parametrize(("data", "problem"), MISDEEDS.values(), ids=MISDEEDS)
def test_a_participants_misdeed_ends_the_run_and_everybody_is_told_by_whom(data: bytes, problem: str) -> None:
    house = House("a", "b", "c")
    a, b, c = running(house)
    b.say(NEXT)
    a.send(data)
    code, reason = refused(a)
    assert code == "protocol"
    assert problem in reason
    for name, other in (("b", b), ("c", c)):
        (abort,) = other.read()
        assert (abort[0], abort[1], abort[3], abort[4]) == ("abort", name, "a", 0)
        assert abort[2].startswith("it was cut off: ")
        assert problem in abort[2]
    assert house.host.over
    assert house.host.digest is None
    assert isinstance(house.host.failure, Exception)
    assert problem in str(house.host.failure)
    stays_usable(house, b)


def stays_usable(house: House, survivor: Peer) -> None:
    """See that a host whose run is over goes on answering."""
    survivor.say(["publish", "t", b"", 1])
    survivor.hang_up()
    assert refused(greeted(house, "a"))[0] == "over"
    house.pass_time(30.0)


STRANGE: dict[str, tuple[bytes, str]] = {
    "too long": ((HELLO_MAX + 1).to_bytes(4, "big"), "a frame of 4,097 bytes is too long"),
    "much too long": (b"\xff\xff\xff\xff", "a frame of 4,294,967,295 bytes is too long"),
    "garbage": (frame(b"\xc1\xff\x00"), "a frame of 3 bytes can't be read"),
    "a web browser": (b"GET / HTTP/1.1\r\n\r\n", "that is an HTTP request"),
    "a participant's word": (frame(msgpack.encode([JOIN])), "can't be read"),
    "half a hello": (frame(msgpack.encode(["hello", 1, "", "a"])), "can't be read"),
    "a server's word": (frame(msgpack.encode(["welcome", b"", 1, 1])), "can't be read"),
    "deep nesting": (frame(b"\x91" * 4_000), "can't be read"),
}


@pytest.mark.parametrize(("data", "problem"), STRANGE.values(), ids=STRANGE)
def test_a_strangers_misdeed_ends_its_connection_and_the_run_goes_on(data: bytes, problem: str) -> None:
    house = House()
    stranger = house.connect()
    stranger.send(data)
    code, reason = refused(stranger)
    assert code == "protocol"
    assert problem in reason
    a, b = running(house)
    other = house.connect()
    other.send(data)
    assert refused(other)[0] == "protocol"
    finish(house, a, b)


def finish(house: House, *peers: Peer) -> None:
    for peer in peers:
        assert peer.read() == []
        peer.say(LEAVE)
    assert house.host.digest is not None
    assert house.host.failure is None


def test_a_stranger_that_hangs_up_in_the_middle_of_a_frame_harms_nobody() -> None:
    house = House()
    a, b = running(house)
    stranger = house.connect()
    stranger.send(b"\x00\x00\x00\x10half")
    stranger.hang_up()
    finish(house, a, b)


@pytest.mark.parametrize(
    ("sent", "said"),
    [
        (b"", "its connection was closed"),
        (b"\x00\x00", "its connection was closed, in the middle of a frame"),
        (frame(msgpack.encode([["publish", "t", b"never", 0], LEAVE]))[:-1], ", in the middle of a frame"),
    ],
    ids=["between frames", "in a length", "in a body"],
)
def test_a_participant_that_vanishes_ends_the_run(sent: bytes, said: str) -> None:
    house = House()
    a, b = running(house)
    b.say(["promise", 5], ["advance", 10])
    b.read()
    a.send(sent)
    a.hang_up()
    ((kind, to, cause, participant, at),) = b.read()
    assert (kind, to, participant, at) == ("abort", "b", "a", 0)
    assert cause.endswith(said)
    assert isinstance(house.host.failure, LossError)
    assert house.host.failure.participant == "a"
    stays_usable(house, b)


def test_an_abort_says_how_far_the_culprit_was() -> None:
    house = House()
    a, b = running(house)
    a.say(["advance", MS])
    assert a.read()[0][0] == "grant"
    a.hang_up("gone")
    assert b.read() == [["abort", "b", "gone", "a", MS]]
    assert str(house.host.failure) == "a at 1ms: gone"


def test_a_participant_that_fails_says_why_and_so_everybody_knows() -> None:
    house = House()
    a, b = running(house)
    a.say(["publish", "t", b"last", 0], ["fail", "its program raised ValueError: no"])
    cause = "its program raised ValueError: no"
    assert b.read() == [["abort", "b", cause, "a", 0]]
    assert a.read() == [["abort", "a", cause, "a", 0]]
    assert a.gone
    assert isinstance(house.host.failure, ModelError | LossError)
    assert str(house.host.failure) == f"a at 0s: {cause}"
    stays_usable(house, b)


def test_one_that_has_left_may_vanish_misbehave_or_fail() -> None:
    for last_words in (b"", TOO_LONG, frame(b"\xc1"), frame(msgpack.encode([["fail", "too late"]]))):
        house = House()
        a, b = running(house)
        a.say(LEAVE)
        a.send(last_words)
        a.hang_up()
        finish(house, b)


@pytest.mark.parametrize("last_words", [b"", TOO_LONG, frame(b"\xc1"), frame(msgpack.encode([["fail", "no"]]))])
def test_one_that_hasnt_joined_yet_may_vanish_misbehave_or_fail_and_come_again(last_words: bytes) -> None:
    house = House()
    first = house.admit("a")
    first.send(last_words)
    first.read()
    first.hang_up()
    assert running(house)


@pytest.mark.parametrize("last_words", [b"", TOO_LONG, frame(b"\xc1"), frame(msgpack.encode([["fail", "no"]])), None])
def test_one_that_goes_before_the_start_is_expected_again(last_words: bytes | None) -> None:
    house = House("a", "b", limits=Limits(silence_s=8.0))
    a = house.join("a")
    if last_words is None:
        house.pass_time(9.0)  # It was stopped.
        assert a.read()[-1][0] == "abort"
    else:
        a.send(last_words)
        a.hang_up("gone")
    assert house.host.waiting() == "waiting for a, b"
    assert running(house)
    assert house.host.failure is None


def test_a_guest_that_goes_between_its_invitation_and_its_start_is_expected_again() -> None:
    house = House("a", "b", guests=["g"])
    a, b = house.join("a", controls=True), house.join("b", controls=True)
    guest = house.join("g")
    a.read(), b.read()
    a.say(["invite", "g", 5 * MS], ["advance", 10 * MS])
    assert guest.read() == []  # b may still invite it for an earlier time.
    guest.hang_up("gone")
    b.say(["advance", 10 * MS])
    assert not house.host.over
    assert house.join("g").read() == [["start", "g", 5 * MS, 0, MS, MS]]


def test_the_first_word_is_join() -> None:
    house = House()
    a = house.admit("a")
    a.say(["publish", "t", b"", 0])
    assert refused(a) == ("protocol", "a: Publish isn't possible before joining")
    assert running(house)


def test_a_join_that_is_refused_may_be_tried_again() -> None:
    house = House()
    a = house.admit("a")
    a.say(BAD_JOIN)
    assert refused(a)[0] == "protocol"
    assert running(house)


def test_what_comes_after_the_end_of_a_connection_is_ignored() -> None:
    house = House()
    first = house.admit("a")
    first.send(frame(b"\xc1"))
    second = house.join("a")  # Its successor, while the first one's refusal is still under way.
    first.send(TOO_LONG + b"more")
    first.send(frame(msgpack.encode([JOIN])))
    first.read()
    b = house.join("b")
    assert second.read()[0][0] == "start"
    assert b.read()[0][0] == "start"


def test_nothing_follows_an_abort() -> None:
    house = House("a", "b")
    a, b = running(house)
    b.say(NEXT)
    a.say(["publish", "t", b"x", 0], ["promise", 9 * MS], ["promise", 5 * MS])
    assert b.read()[-1][0] == "abort"


@pytest.mark.parametrize("last_words", [["publish", "t", b"", 0], JOIN], ids=lambda said: said[0])
def test_leaving_counts_whatever_its_frame_says_after_it(last_words: list[object]) -> None:
    house = House("a", "b")
    a, b = running(house)
    b.say(NEXT)
    a.say(LEAVE, last_words)
    assert b.read() == [["grant", "b", FOREVER, [], True]]
    b.say(LEAVE, last_words)
    assert house.host.digest is not None
    assert house.host.failure is None


def test_a_bug_of_ours_ends_the_run_in_good_order() -> None:
    class BrokenArbiter(Arbiter):
        def hear(self, who: str, events: list[Event]) -> list[Action]:
            if any(isinstance(event, Promise) for event in events):
                raise ZeroDivisionError("oops")
            return super().hear(who, events)

    house = House()
    house.host.arbiter = BrokenArbiter(house.host.arbiter.plan)
    a, b = running(house)
    a.say(["promise", 5])
    assert isinstance(house.host.failure, InternalError)
    assert "ZeroDivisionError: oops (this is a bug in Worldline" in b.read()[0][2]
    assert [answer[0] for answer in a.read()] == ["abort", "refused"]
    stays_usable(house, b)


def test_a_payload_that_is_too_large_is_its_senders_fault() -> None:
    house = House(limits=Limits(payload_max=1000))
    a, b = running(house)
    a.say(["publish", "t", bytes(1000), 0])
    a.say(["publish", "t", bytes(1001), 0])
    assert "a payload of 1,001 bytes is too large (the limit is 1,000; send it in parts, or raise" in refused(a)[1]
    assert b.read()[0][3] == "a"


@pytest.mark.parametrize("word", ["fail", "x" * 1_000_000], ids=["a cause", "an unknown kind"])
def test_what_others_are_told_doesnt_grow_with_what_was_said(word: str) -> None:
    house = House()
    a, b = running(house)
    a.say([word, "x" * 1_000_000])
    assert len(a.session.out) < 10_000
    assert len(b.session.out) < 10_000
    assert b.read()[0][3] == "a"


def test_a_join_with_very_many_topics_takes_no_longer_than_reading_it() -> None:
    class Counted(str):
        __slots__ = ()
        compared = 0

        def __eq__(self, other: object) -> bool:
            Counted.compared += 1
            return str.__eq__(self, other)

        __hash__ = str.__hash__

    from worldline.lock import Join, Subscription

    many = tuple(Subscription(Counted(number)) for number in range(300))
    House("a").host.arbiter.handle("a", Join(None, many))
    assert Counted.compared < 10 * len(many)


def test_a_message_sent_at_the_last_moment_doesnt_harm_its_receiver() -> None:
    house = House("a", "b")
    a, b = running(house)
    b.say(NEXT)
    a.say(["publish", "t", b"", TIME_MAX], LEAVE)
    ((_, _, _, messages, _),) = b.read()
    b.say(["leave", messages[0][0] if messages else 0])
    assert b.read() == []
    assert house.host.digest is not None


# --- The heart ---


def test_those_who_wait_hear_a_heartbeat_and_those_who_compute_dont() -> None:
    house = House("a", "b", limits=Limits(silence_s=8.0))
    a, b = running(house)
    a.say(NEXT)
    for _ in range(9):
        house.pass_time(1.0)
        a.beat()
        b.beat()
        a_heard, b_heard = a.read(), b.read()
        assert b_heard == []
        assert a_heard in ([], [BEAT])
    house.pass_time(3.0)
    assert a.read() == [BEAT]


def test_heartbeats_come_four_times_as_often_as_patience_ends() -> None:
    house = House("a", "b", limits=Limits(silence_s=8.0))
    a = house.join("a")  # It waits for the start.
    heard = []
    for _ in range(30):
        house.pass_time(1.0)
        a.beat()
        heard += a.read()
    assert heard == [BEAT] * 10  # The first second after 2 s, each time.


def test_silence_is_a_loss() -> None:
    house = House(limits=Limits(silence_s=8.0))
    a, b = running(house)
    house.pass_time(5.0)
    b.beat()
    house.pass_time(3.0)
    assert not house.host.over
    house.pass_time(1.0)
    cause = "nothing was heard from it for 9 seconds"
    assert b.read()[0] == ["abort", "b", cause, "a", 0]
    assert a.read() == [["abort", "a", cause, "a", 0]]
    assert str(house.host.failure) == f"a at 0s: {cause}"


def test_half_a_frame_is_a_sign_of_life() -> None:
    house = House("a", "b", limits=Limits(silence_s=8.0))
    a, b = running(house)
    for byte in b"\x00\x00\x01\x00" + bytes(20):
        a.send(bytes([byte]))
        b.beat()
        house.pass_time(1.0)
    assert not house.host.over


def test_silence_before_joining_costs_the_connection_only() -> None:
    house = House(limits=Limits(silence_s=8.0))
    silent = house.admit("a")
    house.pass_time(9.0)
    assert silent.read()[-1][0] == "abort"
    assert silent.gone
    assert running(house)


def test_silence_is_no_loss_unless_there_is_a_limit() -> None:
    house = House()
    a, b = running(house)
    house.pass_time(3600.0)
    assert not house.host.over
    assert (a.read(), b.read()) == ([], [])


def test_one_that_is_known_to_run_isnt_lost_for_its_silence() -> None:
    house = House(limits=Limits(silence_s=8.0))
    a, b = running(house)
    a.session.stopped = b.session.stopped = False  # As whoever has the sockets finds out.
    house.pass_time(3600.0)
    assert not house.host.over
    a.session.stopped = True
    assert house.host.remarks() == ["a is stopped"]
    house.pass_time(1.0)
    assert "a at 0s: nothing was heard from it for 3601 seconds: its process is stopped" in str(house.host.failure)


def test_time_in_which_a_resident_computes_is_nobodys_silence_however_short_it_is_each_time() -> None:
    house = House(limits=Limits(silence_s=8.0, handshake_s=8.0, join_s=8.0), guests=["guest"])
    a, b = (house.join(name, controls=True) for name in ("a", "b"))
    for peer in (a, b):
        peer.say(["invite", "guest", MS], ["advance", 2 * MS])
    stranger = house.connect()
    for _ in range(30):
        house.clock += 1.5
        house.host.tick(house.clock, absent_s=1.4)
    assert not house.host.over
    assert not stranger.gone
    assert stranger.read() == []
    for _ in range(9):
        house.clock += 1.5
        house.host.tick(house.clock)
    assert house.host.over


@pytest.mark.parametrize("stop_s", [20.0, 3600.0])
def test_time_in_which_the_host_itself_stood_still_is_nobodys_silence(stop_s: float) -> None:
    house = House(limits=Limits(silence_s=8.0))
    running(house)
    stranger = house.connect()
    house.pass_time(1.0)
    house.clock += stop_s
    house.host.tick(house.clock)  # Nobody has been heard meanwhile: they may have been stopped with it.
    assert not house.host.over
    assert not stranger.read()
    house.pass_time(9.0)  # Who says nothing now is silent.
    assert house.host.over


def test_one_that_doesnt_read_is_named_and_not_lost() -> None:
    house = House("a", "b", limits=Limits(silence_s=8.0))
    a, b = running(house)
    a.say(["advance", 5 * MS])
    b.say(["publish", "t", bytes(1000), 0], ["advance", 5 * MS])
    assert house.host.slow() == [("a", len(a.session.out)), ("b", len(b.session.out))]
    b.read()
    for _ in range(30):
        house.pass_time(1.0)
        a.beat()
        b.beat()
        b.read()
    assert not house.host.over
    assert house.host.slow() == [("a", len(a.session.out))]


def test_one_that_asks_and_doesnt_read_is_lost_before_it_fills_the_memory() -> None:
    house = House("a", "b", limits=Limits(unread_max=10_000))
    a, b = running(house)
    b.say(["promise", 1000 * MS])
    for step in range(1, 900):
        a.say(["advance", step * MS])
        if house.host.over:
            break
        assert len(a.session.out) < 20_000
    assert house.host.over
    assert house.host.failure is not None
    assert house.host.failure.participant == "a"


def test_when_one_falls_silent_the_others_are_told_once() -> None:
    house = House("a", "b", limits=Limits(silence_s=8.0))
    _, b = running(house)
    for _ in range(9):  # Both compute, so nothing is sent to either; b alone is alive.
        b.beat()
        house.pass_time(1.0)
    assert b.read() == [["abort", "b", "nothing was heard from it for 9 seconds", "a", 0]]
    assert not b.gone


# --- Those who run ahead ---


def publish(number: int, size: int = 1000) -> list[object]:
    return ["publish", "u", bytes(size), number * MS]


def test_a_source_that_runs_ahead_is_paused_and_goes_on_when_others_have_caught_up() -> None:
    house = House("a", "b", limits=Limits(memory_max=40_000))
    a, b = running(house)
    b.say(["promise", 10_000 * MS])
    a.say(["advance", 100 * MS])
    a.say(*(publish(number) for number in range(100, 120)))
    assert house.host.flow.ahead() == ["a"]
    assert a.session.paused
    assert a.session in house.host.dirty
    b.say(["advance", 90 * MS])
    assert house.host.flow.ahead() == ["a"]
    b.say(["advance", 200 * MS])
    assert house.host.flow.ahead() == []
    assert not a.session.paused


def test_the_one_furthest_behind_is_never_paused() -> None:
    house = House("a", "b", limits=Limits(memory_max=10_000))
    a, _ = running(house)
    a.say(*(publish(number) for number in range(100)))
    assert house.host.flow.ahead() == []


def test_one_that_is_paused_doesnt_count_as_silent() -> None:
    house = House("a", "b", limits=Limits(memory_max=10_000, silence_s=8.0))
    a, b = running(house)
    b.say(["promise", 1000 * MS])
    a.say(["advance", 100 * MS])
    a.say(*(publish(number) for number in range(100, 120)))
    a.read()
    heard = b""
    for _ in range(30):
        house.pass_time(1.0)
        heard += bytes(a.session.out)
        a.read()
        b.beat()
    assert house.host.flow.ahead() == ["a"]
    assert not house.host.over
    assert HEARTBEAT in heard  # So it knows that it is waited with, not forgotten.


def test_one_that_was_paused_is_given_time_to_be_heard_again() -> None:
    house = House("a", "b", limits=Limits(memory_max=10_000, silence_s=8.0))
    a, b = running(house)
    b.say(["promise", 1000 * MS])
    a.say(["advance", 100 * MS])
    a.say(*(publish(number) for number in range(100, 120)))
    a.read()
    for _ in range(30):
        house.pass_time(1.0)
        a.read()
        b.beat()
    b.say(["advance", 200 * MS])
    assert house.host.flow.ahead() == []
    house.host.tick(house.clock)  # The server's second is over just now.
    assert not house.host.over


# --- Those whom everybody waits for ---

LINKS = {"long": "10s", "drawn": "exponential(1ms, 500ms)"}


@pytest.mark.parametrize("latency", LINKS.values(), ids=LINKS)
@pytest.mark.parametrize("listens", [True, False], ids=["heard", "unheard"])
@pytest.mark.parametrize("alone", [True, False], ids=["alone", "watched"])
def test_a_sender_that_goes_on_isnt_lost_however_much_is_under_way(latency: str, listens: bool, alone: bool) -> None:
    """600 pictures every 33 ms, a thousand times smaller than real ones, and so is the memory."""
    others = {} if alone else {"b": [["t"]] if listens else []}
    house = House("a", *others, limits=Limits(memory_max=2**16, flood_max=2**16, under_way_max=2**21), latency=latency)
    a = house.join("a", ["t"])
    peers = {name: house.join(name, [], subscribes) for name, subscribes in others.items()}
    for peer in peers.values():
        peer.read()
        peer.say(["next", TIME_MAX])
    a.read()
    received = 0
    most = 0
    for number in range(600):
        a.say(["publish", "t", bytes(1000), number * 33 * MS], ["advance", (number + 1) * 33 * MS])
        for peer in peers.values():
            for _, _, _, messages, _ in peer.read():
                received += len(messages)
                if messages:  # Otherwise it has nothing to wait for, and is at the end of all times.
                    peer.say(["next", TIME_MAX])
        assert a.read()[-1][0] == "grant"
        assert not house.host.over
        most = max(most, house.host.arbiter.members["a"].outstanding)
    assert bool(received) == (listens and not alone)
    # Of 600 kB, so much is really under way: what is drawn takes half a second, and who waits for 10 s is 10 s ahead.
    assert most < 2**17


def test_what_one_waits_for_at_once_counts_as_under_way() -> None:
    house = House("a", "b", limits=Limits(memory_max=2**16, under_way_max=2**18))
    a, b = running(house)
    b.say(["advance", 3_600_000 * MS])
    for number in range(1_000):
        a.say(["publish", "t", bytes(1000), number * MS], ["advance", (number + 1) * MS])
        if house.host.over:
            break
    told = str(house.host.failure)
    assert "a at " in told
    assert "bytes are under way, sent and not yet received (a 2" in told
    assert told.endswith("raise limits.under_way")
    assert 200 < number < 300


def test_one_that_floods_and_never_goes_on_is_lost() -> None:
    house = House("a", "b", limits=Limits(memory_max=2**16, flood_max=2**18))
    a, _ = running(house)
    said = 0
    while not house.host.over and said < 1_000:
        a.say(["publish", "t", bytes(1000), 0])
        said += 1
    assert "without going on, and they can't be delivered before it does (limits.flood is 262,144)" in str(
        house.host.failure
    )
    assert 200 < said < 500


def test_a_flood_is_noticed_below_its_share_of_the_memory_too() -> None:
    house = House("a", "b", limits=Limits(flood_max=2**16))
    a, _ = running(house)
    said = 0
    while not house.host.over and said < 1_000:
        a.say(["publish", "t", bytes(1000), 0])
        said += 1
    assert "(limits.flood is 65,536)" in str(house.host.failure)
    assert said < 250


def test_one_that_promises_goes_on() -> None:
    house = House("a", "b", limits=Limits(memory_max=2**14, flood_max=2**15))
    a, b = running(house)
    b.say(["next", 1_000 * MS])
    for number in range(1, 200):
        a.say(["publish", "t", bytes(1000), number * MS], ["promise", number * MS])
        if b.read():
            b.say(["next", 1_000 * MS])
    assert not house.host.over


# --- Turns ---


def busy(house: House, peer: Peer, *events: list[object]) -> None:
    """Have a host receive a frame, without the turns that a peer gives it."""
    house.host.receive(peer.session, frame(msgpack.encode(events)), house.clock)


def test_one_that_says_very_much_at_once_takes_turns_with_the_others() -> None:
    house = House("a", "b", "c")
    a, b, c = running(house)
    busy(house, a, *(["publish", "u", b"", number] for number in range(1_000)), ["advance", MS])
    assert a.session.busy
    turns = 0
    while a.session.busy:
        b.session.sent = 0
        busy(house, b, ["reached", 0])
        busy(house, c, ["reached", 0])
        handled = house.host.arbiter.events
        house.host.work()
        assert house.host.arbiter.events - handled <= 64
        turns += 1
    assert turns > 12
    assert a.read()[-1][0] == "grant"


def test_many_small_frames_take_turns_too_and_a_long_one_may_be_bad_at_its_end() -> None:
    house = House("a", "b")
    a, b = running(house)
    house.host.receive(a.session, frame(msgpack.encode([["reached", 0]])) * 100 + HEARTBEAT * 100, house.clock)
    assert a.session.busy
    assert house.host.arbiter.events < 68
    busy(house, b, *([["reached", 0]] * 150), ["stop", 5])
    while house.host.busy:
        house.host.work()
    assert refused(b)[0] == "protocol"
    assert a.read()[-1][0] == "abort"


def test_what_came_in_before_a_connection_ended_is_heard() -> None:
    house = House("a", "b")
    a, b = running(house)
    b.say(NEXT)
    busy(house, a, *([["reached", 0]] * 200), LEAVE)
    assert a.session.busy
    a.hang_up("reset")
    assert b.read() == [["grant", "b", FOREVER, [], True]]


def test_a_frame_of_too_many_events_is_refused_before_they_are_read() -> None:
    house = House("a", "b", limits=Limits(events_max=100))
    a, _ = running(house)
    a.say(*([["reached", 0]] * 101))
    code, reason = refused(a)
    assert (code, reason) == ("protocol", "a: a frame of 101 events is too long (the limit is 100)")


def test_one_that_sends_frames_without_end_isnt_read_for_the_rest_of_the_second() -> None:
    house = House("a", "b", limits=Limits(frames_max=50, silence_s=10.0))
    a, _ = running(house)
    house.pass_time(1.0)
    a.send(HEARTBEAT * 40)
    assert not a.session.paused
    a.send(HEARTBEAT * 40)
    assert a.session.paused
    assert house.host.remarks() == ["a sends too many frames, and is slowed down"]
    assert a.session in house.host.dirty
    house.pass_time(1.0)
    assert not a.session.paused
    assert house.host.remarks() == []
    house.pass_time(30.0)
    assert "nothing was heard from it" in str(house.host.failure)


# --- Joining in time ---


def test_who_doesnt_join_in_time_is_named_to_everybody() -> None:
    house = House("a", "b", "c", limits=Limits(join_s=60.0, silence_s=1000.0))
    a = house.join("a")
    house.pass_time(60.0)
    assert not house.host.over
    house.pass_time(1.0)
    assert "b, c didn't join within 60 seconds" in a.read()[-1][2]
    assert isinstance(house.host.failure, LossError)
    assert house.host.failure.exit_code == 3


def test_who_comes_again_in_time_is_waited_for_anew() -> None:
    house = House("a", "b", limits=Limits(join_s=60.0, silence_s=1000.0))
    house.pass_time(50.0)
    a = house.join("a")
    house.pass_time(5.0)
    a.hang_up()
    house.join("b")
    house.pass_time(50.0)
    assert not house.host.over
    house.pass_time(20.0)
    assert "a didn't join within " in str(house.host.failure)


def test_a_server_that_has_slept_hasnt_waited() -> None:
    house = House("a", limits=Limits(join_s=60.0, silence_s=10.0))
    house.pass_time(5.0)
    house.clock += 3600.0  # It was stopped.
    house.host.tick(house.clock)
    assert not house.host.over


def test_a_guest_is_late_only_when_everybody_has_come_as_far_as_its_start() -> None:
    house = House("a", guests=["g"], limits=Limits(join_s=60.0, silence_s=1000.0))
    a = house.join("a", controls=True)
    a.read()
    a.say(["invite", "g", 5 * MS], ["advance", 4 * MS])
    house.pass_time(100.0)
    assert not house.host.over
    a.say(["advance", 6 * MS])
    house.pass_time(100.0)
    assert "g didn't join within 60 seconds" in str(house.host.failure)


def test_one_that_logs_without_end_is_lost() -> None:
    house = House(limits=Limits(flood_max=10_000))
    a, _ = running(house)
    a.say(["log", "x" * 6_000], ["advance", MS])
    a.say(["log", "x" * 6_000])  # At another time.
    assert not house.host.over
    a.say(["log", "x" * 6_000])
    assert "a at 1ms: it has logged 12,200 bytes without going on (limits.flood is 10,000)" in refused(a)[1]


def test_a_line_longer_than_a_message_may_be() -> None:
    house = House("a")
    house.host.arbiter.handle("a", Join((), ()))
    house.host.arbiter.payload_max = 1000
    with pytest.raises(UsageError, match="a payload of 1,001 bytes is too large"):
        house.host.arbiter.handle("a", Log("x" * 1001))


# --- Places for any name ---


def test_the_place_of_one_that_goes_before_the_start_is_vacant_again() -> None:
    house = House(vacancies=2)
    house.join("a").hang_up()
    assert house.host.missing() == ["2 more"]
    b = house.join("b")
    assert house.host.missing() == ["1 more"]
    c = house.join("c")
    assert [peer.read()[0][0] for peer in (b, c)] == ["start", "start"]
    assert house.host.arbiter.plan.roster == ("b", "c")


def test_one_that_cant_join_as_it_wants_to_takes_no_place() -> None:
    house = House(vacancies=1)
    bad = house.admit("a")
    bad.say(BAD_JOIN)
    assert refused(bad)[0] == "protocol"
    assert house.host.missing() == ["1 more"]
    assert house.join("b").read()[0][0] == "start"


def test_a_rule_for_a_name_that_nobody_took_ends_the_run() -> None:
    house = House(vacancies=2, rules=(Rule(link=link("5ms"), sender="plnat"),))
    peers = [house.join("plant"), house.join("pilot")]
    for peer in peers:
        assert "there is no participant 'plnat' (the roster is pilot, plant)" in peer.read()[-1][2]
    assert isinstance(house.host.failure, ConfigurationError)


def test_the_wait_for_any_name_goes_on_when_one_comes() -> None:
    house = House(vacancies=2, limits=Limits(join_s=60.0, silence_s=1000.0))
    house.pass_time(50.0)
    a = house.join("a")
    house.pass_time(11.0)
    assert "1 more didn't join within 60 seconds" in a.read()[-1][2]


def test_names_that_dont_join_are_bounded_as_strangers_are() -> None:
    house = House("a", vacancies=2, limits=Limits(strangers_max=3))
    expected, oldest = house.admit("a"), house.admit("x0")
    others = [house.admit(f"x{number}") for number in range(1, 4)]
    assert refused(oldest) == ("crowded", "too many connections are waiting to join")
    assert not any(peer.gone for peer in (expected, *others))
    assert not house.admit("x0").gone


# --- Topics and frames ---


def test_topics_are_counted_by_participant() -> None:
    house = House("a", "b", limits=Limits(topics_max=20))
    a, _ = running(house)
    a.say(*(["publish", f"p{number}", b"", 0] for number in range(10)))
    a.say(*(["subscribe", [f"s{number}"], 0, 0] for number in range(9)))
    a.say(["unsubscribe", "s0", 0, 0], ["subscribe", ["s0"], 0, 0])
    assert not house.host.over
    a.say(["publish", "one too many", b"", 0])
    assert "it has to do with more than 20 topics (use fewer topics, or raise limits.topics)" in refused(a)[1]


def test_a_join_with_too_many_topics_may_be_tried_again() -> None:
    house = House("a", "b", limits=Limits(topics_max=20))
    a = house.admit("a")
    a.say(["join", [f"p{number}" for number in range(21)]])
    assert refused(a)[0] == "protocol"
    assert running(house)


def test_the_servers_longest_frame_is_told_and_kept_to() -> None:
    house = House("a", "b", limits=Limits(frame_max=2**17))
    peer = house.connect()
    peer.greet("a")
    assert peer.read()[0][3] == 2**17
    peer.say(["join", None, []])
    b = house.join("b", None, [["t"]])
    peer.read(), b.read()
    for _ in range(4):
        peer.say(["publish", "t", bytes(2**16), 0])
    peer.say(["advance", 9 * MS])
    b.say(["advance", 5 * MS])
    kinds = [answer[0] for answer in b.read()]
    assert kinds[-1] == "grant"
    assert kinds.count("deliver") >= 2  # They don't fit into one frame here, and would elsewhere.
    peer.send((2**17 + 1).to_bytes(4, "big"))
    assert "a frame of 131,073 bytes is too long" in refused(peer)[1]


class HostedRun:
    """A random world whose participants speak to a host in bytes; who is paused isn't heard."""

    def __init__(self, world: World, random: Random, memory_max: int, seen: Counter[str]) -> None:
        guests = tuple(name for name in world.members if name not in world.plan.roster)
        plan = structs.replace(world.plan, guests=guests)
        self.random = random
        self.seen = seen
        self.house = House("unused")
        self.house.host = Host(plan, limits=Limits(memory_max=memory_max), entropy=bytes)
        self.host = self.house.host
        self.drivers = {name: Driver(name, world, random, Counter()) for name in world.members}
        self.sessions: dict[str, Session] = {}
        self.frames = {name: Frames() for name in world.members}
        self.barred = random.random() < 0.3

    def run(self) -> bytes | None:
        host, random = self.host, self.random
        for name in random.sample(sorted(self.drivers), len(self.drivers)):
            self.sessions[name] = self.admit(name)
        while host.digest is None:
            able = [
                name
                for name, driver in self.drivers.items()
                if driver.frames and not self.sessions[name].paused and self.comes(name)
            ]
            if not able and host.busy:
                host.work()
                self.settled()
                continue
            barrier_is_up = host.arbiter.barrier < FOREVER
            if self.barred and (random.random() < 0.1 if able else barrier_is_up):
                self.move_barrier(free=not able)
                continue
            assert able, f"stuck: {host.waiting()}; not read: {host.flow.ahead()}"
            name = random.choice(able)
            self.say(name, encode_events(self.drivers[name].frames.pop(0)))
            if random.random() < 0.5:
                self.host.work()
                self.settled()
        return host.digest

    def admit(self, name: str) -> Session:
        return self.house.admit(name).session

    def comes(self, name: str) -> bool:
        """Whether a guest is there at all yet; half of them come early."""
        return self.random.random() < 0.5 or name in self.host.arbiter.members

    def say(self, name: str, data: bytes) -> None:
        cut = self.random.randrange(len(data)) if self.random.random() < 0.1 else 0
        for piece in (data[:cut], data[cut:]):
            self.host.receive(self.sessions[name], piece, 0.0)
        self.settled()

    def settled(self) -> None:
        assert self.host.failure is None, self.host.failure
        self.seen["times that somebody had more to say"] += len(self.host.busy)
        self.check()
        self.hand_out()

    def check(self) -> None:
        floor = self.host.arbiter.floor()
        for name in self.host.flow.ahead():
            self.seen["times that somebody wasn't read"] += 1
            member = self.sessions[name].member
            assert member is not None
            assert member.base > floor, f"{name} is furthest behind and isn't read"
        self.host.arbiter.check_invariants()

    def hand_out(self) -> None:
        for name, session in self.sessions.items():
            bodies = list(self.frames[name].feed(bytes(session.out)))
            session.out.clear()
            for body in bodies:
                answer = decode_answer(body)
                assert not isinstance(answer, Abort)
                if self.drivers[name].ledger.state is not State.LEFT and body[1:6] != b"\xa7welc":
                    self.drivers[name].answer(answer)  # type: ignore[arg-type]

    def move_barrier(self, *, free: bool) -> None:
        times = [now for _, now in self.host.arbiter.participants().values()]
        until = max(times) + 30 if free else min(times) + self.random.randint(0, 30)
        if free and self.random.random() < 0.3:
            until = FOREVER
        self.host.hold_at(until)
        self.hand_out()


def hosted_runs(seeds: range, kind: type[HostedRun] = HostedRun) -> Counter[str]:
    """Run random worlds with hardly any memory: each must end, and as it would have without a host."""
    seen: Counter[str] = Counter()
    for seed in seeds:
        random = Random(seed)
        world = make_world(random)
        plain = Harness(world, Random(0), Counter(), check=False, barriers=False)
        plain.run()
        memory_max = random.choice((0, 0, 1_000, 3_000))
        run = kind(world, random, memory_max, seen)
        try:
            assert run.run() == plain.digest
        except AssertionError as error:
            error.add_note(f"hosted_runs(range({seed}, {seed + 1}), {kind.__name__})")
            raise
        seen["runs"] += 1
    return seen


@pytest.mark.long
@pytest.mark.parametrize("turn", [16, 1])
def test_with_hardly_any_memory_and_short_turns_every_run_still_ends_and_ends_the_same(
    turn: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("worldline.federation.server.host._TURN", turn)
    seen = hosted_runs(range(turn, turn + 200))
    assert seen["times that somebody wasn't read"] > 300
    assert turn > 1 or seen["times that somebody had more to say"] > 1_000


def test_the_search_notices_a_host_that_locks_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """The twin that must fail: a host that goes by memory alone, and looks at nobody's time."""

    class FlowByMemory(FlowControl):
        def weigh(self, session: Session, member: Member) -> None:
            if not session.paused:
                session.paused = True
                self.paused.append(session)

        def resume(self) -> None:
            for session in list(self.paused):
                relieve = self._host.arbiter.router.relieve
                if session.member is not None and relieve(session.member) <= self.share // 2:
                    session.paused = False
                    self.paused.remove(session)

    usual = Host

    def host_by_memory(*arguments: Any, **options: Any) -> Host:
        host = usual(*arguments, **options)
        host.flow = FlowByMemory(host)
        return host

    monkeypatch.setattr(f"{__name__}.Host", host_by_memory)
    monkeypatch.setattr(HostedRun, "check", lambda self: None)  # What it would say at once has to show by itself.
    with pytest.raises(AssertionError, match=r"stuck: .*not read: \["):
        hosted_runs(range(100))


@pytest.mark.soak
@pytest.mark.parametrize("start", range(0, 20_000, 1_000))
def test_long_search_for_a_run_that_locks_up(start: int, record_property: Callable[[str, object], None]) -> None:
    record_property("summary", dict(hosted_runs(range(start, start + 1_000))))


# --- Operating ---


def test_a_barrier_holds_everybody_and_lets_go() -> None:
    house = House("a", "b")
    a, b = running(house)
    house.host.hold_at(2 * MS)
    a.say(["advance", 3 * MS])
    b.say(["advance", 3 * MS])
    assert a.read() == b.read() == []
    assert "a at 0s" in house.host.waiting() or "a " in house.host.waiting()
    house.host.hold_at(4 * MS)
    assert a.read() == [["grant", "a", 4 * MS, [], False]]
    house.host.hold_at(FOREVER)
    assert b.read()[0][0] == "grant"


def test_the_end_by_order_is_told_to_everybody_with_the_reason() -> None:
    house = House("a", "b")
    a, b = running(house)
    house.host.end(LossError("somebody pressed the button"))
    assert a.read() == [["abort", "a", "somebody pressed the button", None, None]]
    assert b.read() == [["abort", "b", "somebody pressed the button", None, None]]
    house.host.end(LossError("again"))
    house.host.hold_at(5)
    assert str(house.host.failure) == "somebody pressed the button"
    stays_usable(house, a)


def test_the_first_failure_is_the_one_that_is_reported() -> None:
    house = House("a", "b")
    a, b = running(house)
    a.hang_up("gone")
    b.hang_up("gone too")
    assert str(house.host.failure) == "a at 0s: gone"


# --- Any bytes, in any order ---


class Anybody(RuleBasedStateMachine):
    """Connections that do whatever they like: nothing comes out of the host but bytes, and c's run is its own."""

    peers = Bundle("peers")
    admitted = Bundle("admitted")

    @initialize()
    def begin(self) -> None:
        self.house = House("a", "b", "c", guests=["g"], token=b"x", limits=Limits(memory_max=3_000, strangers_max=4))
        self.spoiled = False  # Whether a participant has misbehaved, so that the run may be broken off.

        self.house.join("c")

    @rule(target=peers)
    def connect(self) -> Peer:
        return self.house.connect()

    @rule(target=admitted, name=st.sampled_from("abg"))
    def come(self, name: str) -> Peer:
        peer = self.house.connect()
        peer.greet(name)
        self.talk(peer, frame(msgpack.encode([JOIN])))
        return peer

    @rule(target=admitted, peer=consumes(peers), name=st.sampled_from("abcgx"), token=st.sampled_from((b"x", b"y")))
    def greet(self, peer: Peer, name: str, token: bytes) -> Peer:
        peer.greet(name, token=token)
        return peer

    @rule(target=admitted, peer=admitted)
    def join(self, peer: Peer) -> Peer:
        self.talk(peer, frame(msgpack.encode([JOIN])))
        return peer

    @rule(peer=st.one_of(peers, admitted), data=st.binary(max_size=30))
    def anything(self, peer: Peer, data: bytes) -> None:
        self.talk(peer, data)

    @rule(peer=st.one_of(peers, admitted), said=st.lists(events, max_size=3))
    def any_events(self, peer: Peer, said: list[Any]) -> None:
        self.talk(peer, frame(msgpack.encode(said)))

    @rule(
        peer=admitted,
        said=st.lists(
            st.sampled_from(
                (
                    ["publish", "t", b"x" * 500, 3],
                    ["publish", "t", b"", FOREVER],
                    ["promise", 2],
                    ["advance", 5],
                    ["advance", 2 * MS],
                    NEXT,
                    ["next", 7, 0],
                    ["peek", 2],
                    ["peek", MS, 1],
                    ["reached", 1],
                    ["subscribe", ["u"], 0, 0],
                    ["unsubscribe", "t", 0, 0],
                    ["unsubscribe", "t", 0, 1],
                    ["invite", "g", MS],
                    ["stop", 2 * MS],
                    LEAVE,
                    ["fail", "no"],
                    JOIN,
                    BAD_JOIN,
                )
            ),
            max_size=4,
        ),
    )
    def plausible_events(self, peer: Peer, said: list[list[object]]) -> None:
        self.talk(peer, frame(msgpack.encode(said)))

    @rule(peer=st.one_of(peers, admitted), length=st.sampled_from((HELLO_MAX + 1, FRAME_MAX + 1, 2**32 - 1)))
    def too_long(self, peer: Peer, length: int) -> None:
        self.talk(peer, length.to_bytes(4, "big"))

    @rule(peer=st.one_of(peers, admitted))
    def hang_up(self, peer: Peer) -> None:
        self.spoiled = self.spoiled or bool(peer.session.name)
        peer.hang_up()

    @rule(peer=st.one_of(peers, admitted))
    def read(self, peer: Peer) -> None:
        peer.read()

    @rule(seconds=st.sampled_from((1.0, 11.0)))
    def time_passes(self, seconds: float) -> None:
        self.spoiled = self.spoiled or seconds > 10
        self.house.pass_time(seconds)

    @rule(until=st.sampled_from((0, 5, FOREVER)))
    def barrier(self, until: int) -> None:
        self.house.host.hold_at(until)

    def talk(self, peer: Peer, data: bytes) -> None:
        self.spoiled = self.spoiled or bool(peer.session.name)
        peer.send(data)

    @invariant()
    def the_host_is_sound(self) -> None:
        host = self.house.host
        assert not isinstance(host.failure, InternalError), host.failure
        assert host.failure is None or self.spoiled, "a stranger has broken the run off"
        assert len(host._strangers) <= 4
        for name, session in host.sessions.items():
            assert session.name == name
            assert not session.closing
        floor = host.arbiter.floor()
        for name in host.flow.ahead():
            member = host.sessions[name].member
            assert member is not None
            assert member.base > floor or host.over
        if not host.over:
            host.arbiter.check_invariants()


TestAnybody = Anybody.TestCase
TestAnybody.settings = settings(max_examples=30, stateful_step_count=25)


@pytest.mark.soak
class TestSoakAnybody(Anybody.TestCase):
    settings = settings(max_examples=500, stateful_step_count=50)


@given(st.lists(st.tuples(st.integers(0, 3), st.binary(max_size=40)), max_size=12))
def test_bytes_of_strangers_never_touch_a_run(pieces: list[tuple[int, bytes]]) -> None:
    house = House(token=b"secret")
    a, b = running(house)
    strangers = [house.connect() for _ in range(4)]
    for place, data in pieces:
        strangers[place].send(data)
    for stranger in strangers:
        stranger.read()
        stranger.hang_up()
    finish(house, a, b)


def test_frames_of_a_participant_may_be_split_anyhow() -> None:
    digests = []
    for size in (1, 2, 3, 7, 1000):
        house = House("a", "b")
        a, b = running(house)
        said = frame(msgpack.encode([["publish", "t", b"x", 0], ["advance", 3 * MS]])) + HEARTBEAT
        for start in range(0, len(said), size):
            a.send(said[start : start + size])
        b.say(["next", 2 * MS])
        digests.append((b.read(), a.read()))
        assert digests[-1][0][0][3] == [[MS, 0, "a", 0, 0, "t", b"x"]]
    assert all(found == digests[0] for found in digests)


def test_errors_of_peers_keep_their_class() -> None:
    house = House()
    a, _ = running(house)
    a.send(frame(b"\xc1"))
    assert isinstance(house.host.failure, PeerError)
