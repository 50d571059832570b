"""A participant written from the protocol's page alone takes part like any other, and gets the same history."""

from __future__ import annotations

import ast
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.federation.foreign import Foreign
from worldline import Federation, Network, Participant, Program, Rule, link, run
from worldline.federation.participant.client import connect
from worldline.federation.server.server import Server
from worldline.history.journal import run_digest
from worldline.model import MS, ModelError, WorldlineError, plan

SECOND = 1000 * MS
NETWORK = Network(
    default=link("uniform(1ms, 3ms)", loss=0.1, duplication=0.1), rules=(Rule(topic="late", link=link("7ms")),)
)
PATIENCE_S = 60.0


class Elsewhere:
    """A program in a thread of its own, whose exceptions aren't lost."""

    def __init__(self, work: Callable[[], None]) -> None:
        self._work = work
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._live, daemon=True)
        self._thread.start()

    def _live(self) -> None:
        try:
            self._work()
        except BaseException as error:  # Raised where somebody waits for it.
            self._error = error

    def wait(self) -> None:
        self._thread.join(PATIENCE_S)
        assert not self._thread.is_alive()
        if self._error is not None:
            raise self._error


def test_it_knows_nothing_of_worldline() -> None:
    path = Path(__file__).with_name("foreign.py")
    found = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Import | ast.ImportFrom)]
    names = [alias.name for node in found for alias in node.names] + [
        node.module or "" for node in found if isinstance(node, ast.ImportFrom)
    ]
    assert not [name for name in names if "worldline" in name]


# --- Ping-pong ---


def ping(self: Participant) -> None:
    self.publish("ping", b"0")
    for message in self.messages(until="200ms"):
        self.publish("ping", b"%d" % (int(message.payload) + 1))
        if self.now % (5 * MS) < MS:
            self.publish("ping", b"1000")  # Another ball.


def pong(self: Participant) -> None:
    for message in self.messages(until="200ms"):
        self.publish("pong", b"%d" % (int(message.payload) + 1))


def foreign_pong(server: Server, seen: list[Foreign]) -> None:
    me = Foreign("127.0.0.1", server.address.port, "pong", "x", publishes=["pong"], subscribes=[["ping"]])
    seen.append(me)
    while me.now < 200 * MS and (batch := me.next(200 * MS)):
        for message in batch:
            me.publish("pong", b"%d" % (int(message[6]) + 1))
    me.leave()


def test_ping_pong_with_a_foreign_client_has_the_digest_of_the_run_in_one_process() -> None:
    alone = run(
        Federation(
            {
                "ping": Program(run=ping, publishes=["ping"], subscribes=["pong"]),
                "pong": Program(run=pong, publishes=["pong"], subscribes=["ping"]),
            },
            network=NETWORK,
            seed=7,
        )
    )
    foreign: list[Foreign] = []
    with Server(plan(["ping", "pong"], network=NETWORK, seed=7), token="x") as server:
        other = Elsewhere(lambda: foreign_pong(server, foreign))
        with connect(str(server.address), "ping", token="x", publishes=["ping"], subscribes=["pong"]) as me:
            ping(me)
        other.wait()
        outcome = server.wait(PATIENCE_S)
    assert outcome.digest == alone.digest
    assert outcome.times == alone.times == {"ping": 200 * MS, "pong": 200 * MS}
    (theirs,) = foreign
    assert outcome.digest == run_digest([("ping", 200 * MS, me.digest), ("pong", 200 * MS, theirs.digest())])
    assert theirs.seed == 7


# --- Everything else on the page ---


def source(self: Participant) -> None:
    for step in range(1, 60):
        self.publish("fast", b"%d" % step)
        if step % 7 == 0:
            self.publish("late", b"late %d" % step)
        self.advance(to=step * MS)


def listener(self: Participant) -> None:
    """What the foreign one does below, by ours."""
    self.advance(to=10 * MS)
    self.next(until=12 * MS)
    self.subscribe("late")
    self.publish("echo", b"subscribed")
    while self.now < 40 * MS:
        for message in self.next(until=40 * MS):
            self.publish("echo", message.payload)
    self.unsubscribe("late")
    while not self.ended:
        for message in self.advance(by=3 * MS):
            if not self.ended:
                self.publish("echo", message.payload)


def foreign_listener(me: Foreign) -> None:
    me.advance(10 * MS)
    me.next(12 * MS)
    me.subscribe("late")
    me.publish("echo", b"subscribed")
    me.tell()
    while me.now < 40 * MS:
        for message in me.next(40 * MS):
            me.publish("echo", message[6])
    me.unsubscribe("late")
    while not me.ended:
        for message in me.advance(me.now + 3 * MS):
            if not me.ended:
                me.publish("echo", message[6])


def test_buffers_late_subscriptions_steps_and_the_end_give_the_same_history() -> None:
    fast: dict[str, Any] = {"publishes": ["echo"], "subscribes": {"fast": "newest(2)"}}
    alone = run(
        Federation(
            {
                "listener": Program(run=listener, **fast),
                "source": Program(run=source, publishes=["fast", "late"], subscribes=["echo"]),
            },
            network=NETWORK,
            seed=3,
            until="52ms",
        )
    )
    foreign: list[Foreign] = []

    def elsewhere() -> None:
        me = Foreign(
            "127.0.0.1",
            server.address.port,
            "listener",
            "x",
            publishes=["echo"],
            subscribes=[["fast", {"limit": 2, "oldest": False}]],
        )
        foreign.append(me)
        foreign_listener(me)
        me.leave()

    with Server(plan(["listener", "source"], network=NETWORK, seed=3, until="52ms"), token="x") as server:
        other = Elsewhere(elsewhere)
        with connect(str(server.address), "source", token="x", publishes=["fast", "late"], subscribes=["echo"]) as me:
            source(me)
        other.wait()
        outcome = server.wait(PATIENCE_S)
    assert outcome.digest == alone.digest
    assert outcome.times == alone.times
    assert outcome.dropped == alone.dropped
    assert foreign[0].dropped["fast"] > 0


# --- Peeking ---


def runner(self: Participant) -> None:
    """Runs ahead as far as it can see, and sends on the way."""
    while not self.ended:
        known = self.peek(until=self.now + 5 * MS)
        for sent in range(self.now, known, MS // 2):
            self.publish("echo", b"%d" % known, at=sent)
        if not self.ended:
            self.next(until=known + 1)


def foreign_runner(me: Foreign) -> None:
    while not me.ended:
        known = me.peek(me.now + 5 * MS)
        for sent in range(me.now, known, MS // 2):
            me.publish("echo", b"%d" % known, sent)
        if not me.ended:
            me.next(known + 1)


def test_a_foreign_client_that_peeks_sees_what_ours_sees() -> None:
    declared: dict[str, Any] = {"publishes": ["echo"], "subscribes": ["fast", "late"]}
    alone = run(
        Federation(
            {
                "runner": Program(run=runner, **declared),
                "source": Program(run=source, publishes=["fast", "late"], subscribes=["echo"]),
            },
            network=NETWORK,
            seed=3,
            until="52ms",
        )
    )

    def elsewhere() -> None:
        me = Foreign(
            "127.0.0.1", server.address.port, "runner", "x", publishes=["echo"], subscribes=[["fast"], ["late"]]
        )
        assert me.reach == MS
        foreign_runner(me)
        me.leave()

    with Server(plan(["runner", "source"], network=NETWORK, seed=3, until="52ms"), token="x") as server:
        other = Elsewhere(elsewhere)
        with connect(str(server.address), "source", token="x", publishes=["fast", "late"], subscribes=["echo"]) as me:
            source(me)
        other.wait()
        outcome = server.wait(PATIENCE_S)
    assert outcome.digest == alone.digest
    assert outcome.times == alone.times == {"runner": 52 * MS, "source": 52 * MS}


def test_what_was_granted_ahead_needs_no_further_request() -> None:
    def fast_forward() -> None:
        me = Foreign("127.0.0.1", server.address.port, "b", "x", publishes=[], subscribes=[["t"]])
        for step in range(100):
            me.advance((step + 1) * MS)
        requests.append(me.requests)
        me.leave()

    requests: list[int] = []
    with Server(plan(["a", "b"], network=Network(default=link("100ms"))), token="x") as server:
        other = Elsewhere(fast_forward)
        with connect(str(server.address), "a", token="x", publishes=["t"]) as me:
            me.advance(to=SECOND)
            me.publish("t", b"")
        other.wait()
        server.wait(PATIENCE_S)
    assert requests == [2]  # Its join and one more.


def test_the_others_are_told_why_a_foreign_client_failed() -> None:
    def failing() -> None:
        me = Foreign("127.0.0.1", server.address.port, "b", "x", publishes=["t"], subscribes=[])
        me.advance(5 * MS)
        me.fail("the model diverged")

    with Server(plan(["a", "b"]), token="x") as server:
        other = Elsewhere(failing)
        with (
            pytest.raises(WorldlineError, match="b at 5ms: the run was broken off: the model diverged"),
            connect(str(server.address), "a", token="x", subscribes=["t"]) as me,
        ):
            me.advance(to=SECOND)
        other.wait()
        with pytest.raises((ModelError, WorldlineError), match="b at 5ms: the model diverged"):
            server.wait(PATIENCE_S)


def test_a_foreign_client_with_the_wrong_token_is_told_so() -> None:
    with Server(plan(["a"]), token="x") as server:
        with pytest.raises(ConnectionError, match=r"\['refused', 'token', 'the token is wrong, or missing'\]"):
            Foreign("127.0.0.1", server.address.port, "a", "guess", publishes=[], subscribes=[])
        Elsewhere(
            lambda: Foreign("127.0.0.1", server.address.port, "a", "x", publishes=[], subscribes=[]).leave()
        ).wait()
        assert server.wait(PATIENCE_S).times == {"a": 0}
