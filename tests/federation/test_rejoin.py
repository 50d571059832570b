"""Participants and servers that are lost, over real sockets: everybody comes back, and the digest is the same."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import socket
import threading
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import worldline
from tests.wire.peers import House, journaled_host
from worldline import Network, Server, link, plan
from worldline.federation.participant.call import PATIENCE_S
from worldline.federation.participant.client import Client
from worldline.federation.server.host import Host
from worldline.federation.server.limits import Limits
from worldline.federation.server.rejoining import Rejoining
from worldline.history.observer import Observer
from worldline.model import LossError, ModelError, NonDeterminism, PeerError, UsageError
from worldline.model.errors import BrokenOff, ConfigurationError
from worldline.model.payload import from_json, to_json
from worldline.wire.handshake import TAKEN, UNEXPECTED

PLAN = plan(["ann", "bob"], network=Network(default=link("2ms")), until="60ms", seed=3)
TOPICS = ["ann", "bob"]
MS = 10**6

Program = Callable[[Client, int | None], None]


class Killed(BaseException):
    """Ends a program as if its process had been killed."""


class ServerKilled(BaseException):
    """Ends a server as if its process had been killed."""


def step(me: Client, killed_at: int | None = None, *, shift: int | None = None) -> None:
    """Publish what is drawn, and how much was received, every millisecond."""
    heard = 0
    while not me.ended:
        at_odds = shift is not None and me.now >= shift * MS
        me.publish(me.name, to_json({"draw": me.random.random(), "heard": heard + at_odds}))
        if killed_at is not None and me.now >= killed_at * MS:
            raise Killed
        for message in me.advance(by="1ms"):
            heard += from_json(message.payload)["heard"] % 7 + 1


def kill(client: Client) -> None:
    """Take its connection away from a participant, without a word."""
    client._done.set()
    wire: Any = client._wire
    with contextlib.suppress(OSError):  # Its server was quicker.
        getattr(wire, "_connection", wire).queued.plain.shutdown(socket.SHUT_RDWR)
    client.close()


def come_back(address: Any, name: str, patience_s: float = PATIENCE_S) -> Client:
    """Connect, as soon as the server has noticed that the connection before this one is gone."""
    while True:
        try:
            return worldline.connect(address, name, patience_s=patience_s, subscribes=TOPICS)
        except UsageError as error:
            if error.facts.get("code") != TAKEN or "already connected" not in str(error):
                raise


def live(
    address: Any,
    name: str,
    deaths: Sequence[int | None] = (None,),
    program: Program = step,
    patience_s: float = PATIENCE_S,
) -> None:
    """Be a participant that is killed at these times, and started again each time; None: it lives to the end."""
    for death in deaths:
        client = come_back(address, name, patience_s)
        try:
            with client as me:
                try:
                    program(me, death)
                except Killed:
                    kill(client)
                    raise
        except Killed:
            continue


def together(*lives: Callable[[], object]) -> None:
    """Run these side by side, and raise what the first of them raises."""
    failures: list[BaseException | None] = [None] * len(lives)

    def guarded(number: int) -> None:
        try:
            lives[number]()
        except BaseException as error:
            failures[number] = error

    threads = [threading.Thread(target=guarded, args=[number], daemon=True) for number in range(len(lives))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
        assert not thread.is_alive()
    met = [failure for failure in failures if failure is not None]
    for other in met[1:]:
        met[0].add_note(f"and {other!r}")
    if met:
        raise met[0]


@pytest.fixture(scope="module")
def undisturbed() -> bytes:
    with Server(PLAN) as server:
        together(*(partial(live, server.address, name) for name in TOPICS))
        return server.wait(60).digest


# --- Participants ---


@pytest.mark.parametrize("deaths", [[0], [10], [10, 20, 30], [30, 10, 50]])
def test_a_participant_that_is_killed_goes_on_where_it_was(deaths: list[int], undisturbed: bytes) -> None:
    with Server(PLAN, on_loss="rejoin") as server:
        together(partial(live, server.address, "ann", [*deaths, None]), partial(live, server.address, "bob", [7, None]))
        assert server.wait(60).digest == undisturbed


def test_who_only_knocks_before_it_comes_back_isnt_lost_again(undisturbed: bytes) -> None:
    """As `worldline join` does."""
    with Server(PLAN, on_loss="rejoin") as server:

        def dies_and_knocks() -> None:
            live(server.address, "ann", [10])
            come_back(server.address, "ann").close()
            live(server.address, "ann")

        together(dies_and_knocks, partial(live, server.address, "bob"))
        assert server.wait(60).digest == undisturbed
        assert sum("was lost" in notice for notice in server.host.owner.notices) == 1


def test_without_the_policy_a_loss_ends_the_run() -> None:
    with Server(PLAN) as server, pytest.raises(BrokenOff, match="ann"):
        together(partial(live, server.address, "bob"), partial(live, server.address, "ann", [10]))


def test_a_program_that_does_otherwise_ends_the_run_with_the_first_difference() -> None:
    def changes_its_mind(me: Client, killed_at: int | None) -> None:
        step(me, killed_at, shift=None if killed_at is not None else 6)

    with Server(PLAN, on_loss="rejoin") as server:
        with pytest.raises(PeerError, match="the server refused to go on: ann at 6ms: run again"):
            together(
                partial(live, server.address, "ann", [10, None], changes_its_mind),
                partial(live, server.address, "bob"),
            )
        with pytest.raises(NonDeterminism, match=r"ann at 6ms: .*message 6 on ann: heard: \d+ → \d+") as caught:
            server.wait(60)
    assert caught.value.facts["message"] == 6
    assert caught.value.facts["field"] == "heard"


def test_one_that_dies_twice_at_the_same_message_ends_the_run_and_the_message_is_shown() -> None:
    with Server(PLAN, on_loss="rejoin") as server:
        # The server may hear less of its last words the first time, and then takes the second for a later place. When
        # the run is over there is no server to wait for.
        ann = partial(live, server.address, "ann", [10, 10, 10, 10], patience_s=0)
        with pytest.raises(BrokenOff, match="ann"):
            together(partial(live, server.address, "bob"), ann)
        with pytest.raises(ModelError, match=r"lost twice at the same message.*given message \d+ of bob on bob"):
            server.wait(60)


def test_one_that_doesnt_come_back_in_time_ends_the_run() -> None:
    clock = [0.0]
    limits = Limits(rejoin_s=5)

    with Server(PLAN, on_loss="rejoin", limits=limits, clock=lambda: clock[0]) as server:

        def wait_for_ann() -> None:
            client = worldline.connect(server.address, "ann", subscribes=TOPICS)
            client.join()
            client.advance(to="10ms")
            kill(client)
            while not server.ask(lambda: server.host.lost()):
                pass
            while not server.host.over:
                clock[0] += 1.0
                server.ask(lambda: server.host.tick(clock[0]))

        with pytest.raises(BrokenOff, match="ann at 10ms"):
            together(partial(live, server.address, "bob"), wait_for_ann)
        with pytest.raises(LossError, match=r"ann at 10ms: .* didn't come back within 5 seconds \(limits.rejoin"):
            server.wait(60)


def test_a_policy_must_be_one() -> None:
    with pytest.raises(ConfigurationError, match="'retry' isn't a policy for losses"):
        Server(PLAN, on_loss="retry")  # type: ignore[arg-type]


def test_a_server_may_need_a_moment_to_notice_that_a_process_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever comes back at once isn't told that it is there already."""
    with Server(plan(["ann"]), on_loss="rejoin") as server:
        first = worldline.connect(server.address, "ann")
        first.join()
        sleep, deaths = time.sleep, [first]

        def dies_meanwhile(seconds: float) -> None:
            for client in deaths:
                kill(client)
            deaths.clear()
            sleep(seconds)

        monkeypatch.setattr("worldline.federation.participant.client.time.sleep", dies_meanwhile)
        with worldline.connect(server.address, "ann"):
            assert not deaths
        server.wait(60)


# --- Whoever else would come back ---


@pytest.mark.long
def test_nobody_else_takes_the_place_of_one_that_is_away(undisturbed: bytes) -> None:
    with Server(PLAN, on_loss="rejoin") as server:
        client = worldline.connect(server.address, "ann", subscribes=TOPICS)
        bob = threading.Thread(target=live, args=[server.address, "bob"])
        bob.start()
        client.join()
        with pytest.raises(UsageError, match="participant 'ann' is already connected"):
            worldline.connect(server.address, "ann")
        client.advance(to="10ms")
        kill(client)
        while not server.ask(lambda: server.host.lost()):
            pass
        with pytest.raises(UsageError, match=r"unexpected participant 'anna'.*waiting for ann to come back"):
            worldline.connect(server.address, "anna")
        with worldline.connect(server.address, "ann", subscribes=TOPICS) as back:
            with pytest.raises(UsageError, match="participant 'ann' is already connected"):
                worldline.connect(server.address, "ann")
            back.advance(to="10ms")
            back.advance(to="60ms")
        bob.join(60)
        assert server.wait(60)


# --- The server ---


class Watcher(Observer):
    """Calls somebody when something is sent at a time."""

    act: Callable[[], None]

    def __init__(self, at: int) -> None:
        self._at = at

    def sent(self, who: str, number: int, topic: str, at: int, *_: object) -> None:
        if at >= self._at:
            self._at = 10**18
            self.act()


class MortalServer(Server):
    """A server that can be killed: all its connections are gone, without a word."""

    is_dead = False

    def kill(self) -> None:
        self.order(self._die)

    def _die(self) -> None:
        self.is_dead = True
        raise ServerKilled

    def break_off(self, error: BaseException) -> None:
        if not self.is_dead:
            super().break_off(error)

    def finish(self) -> None:
        if not self.is_dead:
            super().finish()
            return
        self.disown()
        if self.host.journal is not None:
            self.host.journal.close()  # As the system does.


def serve(deaths: Sequence[int], journal: Path | None, address: str, *, is_last: bool = False, **options: Any) -> bytes:
    """Be a server that is killed at these times, and started again each time; return the digest."""
    for death in (*deaths, None):
        watcher = None if death is None else Watcher(death * MS)
        server = MortalServer(PLAN, address, journal=journal, observer=watcher, **options)
        if watcher is not None:
            watcher.act = server.kill
        try:
            server.serve()
        except ServerKilled:
            if journal is None or is_last:
                raise
            continue
        return server.outcome().digest
    raise AssertionError


@pytest.fixture
def address(tmp_path: Path) -> str:
    return f"unix://{tmp_path}/run"


@pytest.mark.parametrize("deaths", [[0], [30], [10, 20, 40]])
def test_a_server_that_is_killed_goes_on_from_its_journal(
    deaths: list[int], undisturbed: bytes, tmp_path: Path, address: str
) -> None:
    digests: list[bytes] = []
    journal = tmp_path / "run.journal"
    together(
        lambda: digests.append(serve(deaths, journal, address)),
        partial(live, address, "ann"),
        partial(live, address, "bob"),
    )
    assert digests == [undisturbed]
    assert not journal.exists()


def test_both_may_be_killed(undisturbed: bytes, tmp_path: Path, address: str) -> None:
    digests: list[bytes] = []
    together(
        lambda: digests.append(serve([5, 25], tmp_path / "run.journal", address, on_loss="rejoin")),
        partial(live, address, "ann", [10, 30, None]),
        partial(live, address, "bob", [20, None]),
    )
    assert digests == [undisturbed]


def test_one_that_has_left_goes_only_when_the_server_knows(tmp_path: Path, address: str) -> None:
    """A server that is killed before it has heard the last words needs them again."""
    run = plan(["ann"], until="20ms")
    server = MortalServer(run, address, journal=tmp_path / "run.journal")
    holds, is_said, is_taken_up = threading.Event(), threading.Event(), threading.Event()

    def hold() -> None:
        holds.set()
        assert is_said.wait(60)
        server._die()

    def serve_both() -> None:
        with pytest.raises(ServerKilled):
            server.serve()
        again = Server(run, address, journal=tmp_path / "run.journal", limits=Limits(rejoin_s=5))
        is_taken_up.set()
        again.serve()

    def leave() -> None:
        with worldline.connect(address, "ann") as me:
            me.advance(to="10ms")
            server.order(hold)
            assert holds.wait(60)
            me.publish("ann", b"last words")
            me.leave()
            is_said.set()
        assert is_taken_up.is_set()

    together(serve_both, leave)


def heavy(me: Client, killed_at: int | None = None) -> None:
    """Publish much, and little, and say how much was received."""
    heard = 0
    while not me.ended:
        me.publish(me.name, me.random.randbytes(70_000) + b"%d" % heard)
        me.publish(me.name, b"and this")
        if killed_at is not None and me.now >= killed_at * MS:
            raise Killed
        heard += sum(sum(message.payload[-100:]) for message in me.advance(by="2ms"))


@pytest.mark.long
def test_large_payloads_are_given_again_and_are_in_the_journal_once(tmp_path: Path, address: str) -> None:
    with Server(PLAN, on_loss="rejoin") as server:
        together(*(partial(live, server.address, name, program=heavy) for name in TOPICS))
        undisturbed = server.wait(60).digest
        assert server.host.journal is not None
        published = 2 * 30 * 70_000
        assert published < server.host.journal.size < 1.1 * published
    digests: list[bytes] = []
    together(
        lambda: digests.append(serve([5, 25], tmp_path / "run.journal", address, on_loss="rejoin")),
        partial(live, address, "ann", [10, 30, None], heavy),
        partial(live, address, "bob", [20, None], heavy),
    )
    assert digests == [undisturbed]


def loud(me: Client, _: int | None) -> None:
    """Send so much that a journal has to grow."""
    while not me.ended:
        me.publish(me.name, me.random.randbytes(20_000))
        me.advance(by="1ms")


@pytest.mark.long
def test_a_full_disk_ends_the_run_and_it_goes_on_when_there_is_room(
    tmp_path: Path, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = tmp_path / "run.journal"
    take_room, taken = os.posix_fallocate, [0]

    def full(descriptor: int, start: int, size: int) -> None:
        taken[0] += size
        if taken[0] > 2_000_000:
            raise OSError(errno.ENOSPC, "No space left on device")
        take_room(descriptor, start, size)

    with monkeypatch.context() as limited:
        limited.setattr("worldline.federation.server.run_journal.os.posix_fallocate", full)
        with pytest.raises(LossError, match=r"run\.journal can't be written: No space left on device \(make room"):
            together(
                partial(serve, [], journal, address),
                partial(live, address, "ann", program=loud),
                partial(live, address, "bob", program=loud),
            )
    digests: list[bytes] = []
    for place in (journal, None):
        together(
            lambda place=place: digests.append(serve([], place, address)),
            partial(live, address, "ann", program=loud),
            partial(live, address, "bob", program=loud),
        )
    assert digests[0] == digests[1]


def test_a_participant_that_knows_more_than_a_journal_that_was_cut_off_has_to_begin_anew(
    tmp_path: Path, address: str, undisturbed: bytes
) -> None:
    """Others rely on what it did then; a fresh process does that again, and an old one can't take it back."""
    journal = tmp_path / "run.journal"
    digests: list[bytes] = []

    def serve_cut_off() -> None:
        with pytest.raises(ServerKilled):
            serve([30], journal, address, is_last=True)
        host = Server(PLAN, journal=journal).host
        assert host.journal is not None
        place = host.journal.places("ann")[20]
        host.journal.close()
        os.truncate(journal, place + 5)
        with pytest.raises(UsageError, match="ends in the middle of record") as caught:
            Server(PLAN, journal=journal)
        advice = re.search(r"truncate -s (\d+)", str(caught.value))
        assert advice is not None
        assert int(advice[1]) == place
        os.truncate(journal, place)
        digests.append(serve([], journal, address, on_loss="rejoin"))

    def live_twice(name: str) -> None:
        with pytest.raises(UsageError, match="its end is missing; start this participant anew"):
            live(address, name)
        live(address, name)

    together(serve_cut_off, partial(live_twice, "ann"), partial(live_twice, "bob"))
    assert digests == [undisturbed]


@pytest.mark.parametrize("word", [["resume", -1], ["resume", -9], ["restore", -1, 0], ["restore", 1, -1]])
@pytest.mark.parametrize("steps", [0, 3])
def test_one_that_says_to_have_been_given_less_than_nothing_is_turned_away(word: list[object], steps: int) -> None:
    house = House("a", "b", end=10 * MS)
    house.host.rejoining = Rejoining(house.host, None, rejoins=True)
    peers = house.join("a"), house.join("b")
    for step in range(steps):
        for peer in peers:
            peer.say(["advance", (step + 1) * MS])
    peers[0].hang_up()
    back = house.admit("a")
    back.say(word)
    assert [answer[:2] for answer in back.read() if answer[0] == "refused"] == [["refused", UNEXPECTED]]
    assert house.host.lost().keys() == {"a"}
    assert not house.host.over
    house.host.rejoining.journal.close()


@pytest.mark.parametrize(("pace", "then"), [(1.0, None), (0.5, 2.0), (None, 1.0)])
@pytest.mark.parametrize("death", [0, 30])
def test_a_run_goes_on_at_the_pace_of_the_server_that_took_it_over(
    pace: float | None, then: float | None, death: int, undisturbed: bytes, tmp_path: Path, address: str
) -> None:
    """The journal has the barrier at which the clock of the server before held all participants."""
    digests: list[bytes] = []
    journal = tmp_path / "run.journal"

    def serve_both() -> None:
        with pytest.raises(ServerKilled):
            serve([death], journal, address, is_last=True, pace=pace)
        digests.append(serve([], journal, address, pace=then))

    together(serve_both, partial(live, address, "ann"), partial(live, address, "bob"))
    assert digests == [undisturbed]


def test_a_run_that_was_paused_goes_on_when_it_is_taken_up(undisturbed: bytes, tmp_path: Path, address: str) -> None:
    digests: list[bytes] = []
    journal = tmp_path / "run.journal"

    def serve_both() -> None:
        watcher = Watcher(20 * MS)
        server = MortalServer(PLAN, address, journal=journal, observer=watcher)

        def act() -> None:
            server.order(lambda: server.pause_at(30 * MS))
            server.kill()

        watcher.act = act
        with pytest.raises(ServerKilled):
            server.serve()
        digests.append(serve([], journal, address))

    together(serve_both, partial(live, address, "ann"), partial(live, address, "bob"))
    assert digests == [undisturbed]


def test_without_a_journal_everybody_ends_at_once(address: str) -> None:
    def serve_briefly() -> None:
        with pytest.raises(ServerKilled):
            serve([10], None, address)

    with pytest.raises(LossError, match=r"the server closed the connection|connection to the server broke"):
        together(serve_briefly, partial(live, address, "ann"), partial(live, address, "bob"))


def test_a_server_that_may_choose_its_port_keeps_it(tmp_path: Path) -> None:
    journal = tmp_path / "run.journal"
    addresses = []
    for _ in range(2):
        server = MortalServer(PLAN, journal=journal)
        addresses.append(server.open())
        server.is_dead = True
        server.finish()
    assert addresses[0] == addresses[1]
    with socket.create_server((addresses[0].place, addresses[0].port)):
        server = Server(PLAN, journal=journal)
        assert server.open() != addresses[0]
        server.close()
        server.host.let_go()


def test_a_participant_says_that_its_server_was_lost_and_didnt_come_back(tmp_path: Path, address: str) -> None:
    def serve_once() -> None:
        with pytest.raises(ServerKilled):
            serve([10], tmp_path / "run.journal", address, is_last=True, limits=Limits(rejoin_s=0.1))

    problem = r"ann: the .*, and it didn't come back within 0\.1 seconds: .*start this participant"
    with pytest.raises(LossError, match=problem):
        together(serve_once, partial(live, address, "ann"), partial(live, address, "bob"))


@pytest.mark.parametrize(
    "last",
    [
        [["fail", "out of ideas"]],
        [["advance", 1 * MS], ["advance", 2 * MS]],
        [["publish", "x", b"", 0], ["advance", 1 * MS], ["publish", "x", b"", 0]],
    ],
    ids=["it fails", "it asks twice", "it publishes while it waits"],
)
def test_a_journal_leaves_out_what_has_broken_the_run_off(tmp_path: Path, last: list[list[Any]]) -> None:
    """Once the program is mended, the run can be taken up from what was before."""

    def started() -> Host:
        return journaled_host(PLAN, tmp_path / "run.journal", rejoins=False)

    house = House("unused")
    house.host = host = started()
    ann, bob = house.join("ann"), house.join("bob")
    bob.say(["advance", 1 * MS])
    assert host.journal is not None
    before = host.journal.size
    ann.say(*last)
    assert host.failure is not None
    assert host.journal.size == before
    host.let_go()
    again = started()
    assert list(again.lost()) == ["ann", "bob"]
    again.let_go()
