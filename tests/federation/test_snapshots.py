"""Participants that offer snapshots: whoever is lost goes on from its last one, and the history is the same."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import worldline
from tests.federation.test_rejoin import MS, PLAN, TOPICS, Killed, kill, serve, together, undisturbed
from tests.federation.test_rejoin import live as live_anew
from tests.wire.peers import House, Peer, journaled_host
from worldline import Federation, Participant, Program, Server, connect_async, run
from worldline.federation.server.limits import Limits
from worldline.model import NonDeterminism, PeerError, UsageError
from worldline.model.payload import from_json, to_json
from worldline.wire.handshake import TAKEN

__all__ = ["undisturbed"]  # A fixture: the digest of the same steps without snapshots and without kills.


def step(
    me: Participant,
    killed_at: int | None = None,
    *,
    began: list[int] | None = None,
    every: int = 5,
    lacks: bool = False,
) -> None:
    """Do as `test_rejoin.step`, and offer a snapshot every few milliseconds."""
    state = from_json(me.restored) if me.restored is not None else {"heard": 0}
    if began is not None:
        began.append(me.now)
    heard = state["heard"]
    while not me.ended:
        if me.now % (every * MS) == 0:
            me.snapshot(to_json({"heard": 0 if lacks else heard}))
        me.publish(me.name, to_json({"draw": me.random.random(), "heard": heard}))
        if killed_at is not None and me.now >= killed_at * MS:
            raise Killed
        for message in me.advance(by="1ms"):
            heard += from_json(message.payload)["heard"] % 7 + 1


def live(address: Any, name: str, deaths: Sequence[int | None], began: list[int]) -> None:
    live_anew(address, name, deaths, partial(step, began=began))


def test_whoever_is_killed_goes_on_from_its_last_snapshot(undisturbed: bytes) -> None:
    began: list[int] = []
    with Server(PLAN, on_loss="rejoin") as server:
        together(
            partial(live, server.address, "ann", [12, 27, 38, None], began),
            partial(live, server.address, "bob", [0, 49, None], []),
        )
        assert server.wait(60).digest == undisturbed
    assert began == [0, 10 * MS, 25 * MS, 35 * MS]


def test_so_does_everybody_when_the_server_was_killed_with_them(tmp_path: Path, undisturbed: bytes) -> None:
    began: list[int] = []
    digests: list[bytes] = []
    together(
        lambda: digests.append(
            serve([5, 25], tmp_path / "run.journal", f"unix://{tmp_path}/run", on_loss="rejoin"),
        ),
        partial(live, f"unix://{tmp_path}/run", "ann", [12, 33, None], began),
        partial(live, f"unix://{tmp_path}/run", "bob", [30, None], []),
    )
    assert digests == [undisturbed]
    assert began == [0, 10 * MS, 30 * MS]


def test_a_program_that_doesnt_read_them_begins_at_the_beginning(undisturbed: bytes) -> None:
    def live_otherwise(address: Any) -> None:
        client = worldline.connect(address, "ann", subscribes=TOPICS)
        client.join()
        with pytest.raises(Killed):
            step(client, 12)
        kill(client)
        live_anew(address, "ann")

    with Server(PLAN, on_loss="rejoin") as server:
        together(partial(live_otherwise, server.address), partial(live_anew, server.address, "bob"))
        assert server.wait(60).digest == undisturbed


def test_asyncio_programs_offer_and_read_them(undisturbed: bytes) -> None:
    began: list[int] = []

    async def walk(address: Any, killed_at: int | None) -> None:
        while True:
            try:
                participant = await connect_async(address, "ann", subscribes=TOPICS)
                break
            except UsageError as error:  # The server hasn't noticed yet that it was killed.
                if error.facts.get("code") != TAKEN:
                    raise
        async with participant as me:
            heard = int(me.restored or b"0")
            began.append(me.now)
            while not me.ended:
                if me.now % (5 * MS) == 0:
                    me.snapshot(b"%d" % heard)
                me.publish(me.name, to_json({"draw": me.random.random(), "heard": heard}))
                if killed_at is not None and me.now >= killed_at * MS:
                    assert participant._wire._transport is not None
                    participant._wire._transport.abort()  # Without a word.
                    raise Killed
                for message in await me.advance(by="1ms"):
                    heard += from_json(message.payload)["heard"] % 7 + 1

    def live_async(address: Any) -> None:
        with pytest.raises(Killed):
            asyncio.run(walk(address, 12))
        asyncio.run(walk(address, None))

    with Server(PLAN, on_loss="rejoin") as server:
        together(partial(live_async, server.address), partial(live_anew, server.address, "bob"))
        assert server.wait(60).digest == undisturbed
    assert began == [0, 10 * MS]


# --- Where nobody can be restored ---


def test_elsewhere_they_change_nothing(undisturbed: bytes) -> None:
    """In one process and over a connection whose server keeps none."""
    programs = {name: Program(step, subscribes=TOPICS) for name in TOPICS}
    assert run(Federation(programs, network=PLAN.network, seed=PLAN.seed, until=PLAN.end)).digest == undisturbed
    with Server(PLAN) as server:
        together(*(partial(live, server.address, name, [None], []) for name in TOPICS))
        assert server.wait(60).digest == undisturbed


# --- What is wrong with one ---


def test_one_that_lacks_something_is_found_out_by_the_first_difference() -> None:
    program = partial(step, every=20, lacks=True)
    with Server(PLAN, on_loss="rejoin") as server:
        with pytest.raises(PeerError, match="the server refused to go on: ann at 20ms"):
            together(  # At 30 ms, what it sent at 20 ms is known: nobody gets further ahead of the server's answers.
                partial(live_anew, server.address, "ann", [30, None], program),
                partial(live_anew, server.address, "bob"),
            )
        restored = r"ann at 20ms: .*message 20 on ann: heard: \d+ → 0 \(it was restored from its snapshot at 20ms"
        with pytest.raises(NonDeterminism, match=restored) as caught:
            server.wait(60)
    assert caught.value.facts["message"] == 20


@pytest.mark.parametrize(
    ("offered", "problem"),
    [
        ("text", r"ann at .*: a snapshot is bytes, not str"),
        (bytearray(3), r"a snapshot is bytes, not bytearray"),
        (bytes(1001), r"a snapshot of 1,001 bytes is too large \(the limit is 1,000; raise limits.payload\)"),
    ],
)
@pytest.mark.parametrize("kept", [True, False])
def test_what_cant_be_one_is_refused(offered: Any, problem: str, kept: bool) -> None:
    limits = Limits(payload_max=1000)
    with Server(PLAN, on_loss="rejoin" if kept else "abort", limits=limits) as server:

        def offer() -> None:
            with worldline.connect(server.address, "ann", subscribes=TOPICS) as me:
                assert me.restored is None
                with pytest.raises(UsageError, match=problem):
                    me.snapshot(offered)
                me.advance(to="60ms")

        together(offer, partial(live_anew, server.address, "bob"))
        server.wait(60)


def test_whoever_offers_them_must_read_them_first() -> None:
    def offers_only(me: Participant) -> None:
        with pytest.raises(UsageError, match=r"offers a snapshot and never reads one.*read `restored` before anything"):
            me.snapshot(b"")

    def draws_first(me: Participant) -> None:
        me.random.random()
        with pytest.raises(UsageError, match="`restored` was read too late"):
            _ = me.restored

    def asks_first(me: Participant) -> None:
        me.advance(by="1ms")
        with pytest.raises(UsageError, match="`restored` was read too late"):
            _ = me.restored

    def reads_twice(me: Participant) -> None:
        assert me.restored is None
        me.advance(by="1ms")
        assert me.restored is None

    for program in (offers_only, draws_first, asks_first, reads_twice):
        run(Federation({"ann": Program(program)}))


# --- What a client of another make may say ---


@pytest.fixture
def house() -> Iterator[House]:
    made = House("a", "b")
    made.host = journaled_host(made.host.arbiter.plan, None, rejoins=True)
    yield made
    made.host.let_go()


def started(house: House) -> tuple[Peer, Peer]:
    peers = house.join("a", None, [["x"]]), house.join("b", None, [["x"]])
    for peer in peers:
        assert peer.read()[0][0] == "start"
    return peers


def come_again(house: House, peer: Peer) -> Peer:
    house.host.closed(peer.session, "killed")
    again = house.admit("a")
    again.say(["join", None, [["x"]]])
    assert again.read()[0][0] == "start"
    return again


def test_it_recalls_its_last_snapshot_and_goes_on_from_there(house: House) -> None:
    peer, other = started(house)
    peer.say(["publish", "x", b"1", 0], ["snapshot", b"first"], ["advance", 1000])
    other.say(["advance", 1000])
    assert peer.read()[0][0] == "grant"
    peer.say(["publish", "x", b"2", 1000], ["snapshot", b"last"], ["publish", "x", b"3", 1000])
    again = come_again(house, peer)
    again.say(["recall"])
    assert again.read() == [["recalled", 2, 1, b"last"]]
    again.say(["restore", 2, 1], ["publish", "x", b"3", 1000], ["advance", 2000])
    other.say(["advance", 2000])
    assert again.read()[0][0] == "grant"
    assert house.host.arbiter.members["a"].sequence == 3


@pytest.mark.parametrize(
    ("said", "problem"),
    [
        ([["publish", "x", b"1", 0], ["recall"]], "it can't be restored: it has said something since its start"),
        ([["restore", 1, 7]], "it can't be restored: that isn't the place of its last snapshot"),
    ],
)
def test_it_can_be_restored_only_at_its_start_and_only_from_its_last_snapshot(
    house: House, said: list[Any], problem: str
) -> None:
    peer, _ = started(house)
    peer.say(["publish", "x", b"1", 0], ["snapshot", b"state"], ["advance", 1000])
    again = come_again(house, peer)
    again.say(*said)
    ((kind, code, reason),) = again.read()
    assert (kind, code) == ("refused", "protocol")
    assert problem in reason
    assert house.host.failure is None  # It may come again.


@pytest.mark.parametrize(("keeps", "said"), [(False, ["snapshot", b""]), (False, ["recall"]), (True, ["recall"])])
def test_where_there_are_none_they_are_refused(house: House, keeps: bool, said: list[Any]) -> None:
    peer, _ = started(house if keeps else House("a", "b"))
    peer.say(said)
    assert peer.read()[0][:2] == ["refused", "protocol"]


def test_one_that_waits_cant_offer_any(house: House) -> None:
    peer, _ = started(house)
    peer.say(["advance", 5 * MS], ["snapshot", b""])
    ((kind, _, reason),) = peer.read()
    assert kind == "refused"
    assert "Snapshot isn't possible while it is advancing" in reason
