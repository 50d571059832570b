"""An operator over real sockets: it looks, pauses, steps and ends, and none of that shows in a result."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event

import pytest

from tests.federation.test_rejoin import kill
from tests.federation.transports import (
    PATIENCE_S,
    ServerClock,
    Strand,
    brief,
    eventually,
    held_up,
    make_certificate,
    nothing_left,
    run_over_sockets,
    states,
)
from worldline import Federation, Network, Participant, Program, Server, connect, link
from worldline.federation import operator as operator_module
from worldline.federation import peer_process
from worldline.federation.operator import Operator
from worldline.federation.peer_process import is_another_users
from worldline.federation.server import operating as desk_module
from worldline.federation.server import server as server_module
from worldline.federation.server.operating import OPERATORS_MAX, look_at
from worldline.lock import Cause
from worldline.lock.why.reasons import Situation
from worldline.lock.why.words import holds, in_words
from worldline.model import FOREVER, MS, ConfigurationError, LossError, PeerError, UsageError, plan
from worldline.model.frames import frame
from worldline.wire.operator import AskSituation, RunOver, SituationTold, StepRun, operator_frame

NETWORK = Network(default=link("5ms"))


def ticking(self: Participant) -> None:
    while True:
        self.advance(by="7ms")
        self.publish("tick", str(self.now).encode())


def answering(self: Participant) -> None:
    for message in self.messages():
        self.publish("tock", message.payload)


def listening(self: Participant) -> None:
    for _ in self.messages():
        pass


FEDERATION = Federation(
    {
        "clock": Program(ticking, publishes=["tick"], subscribes=["tock"]),
        "echo": Program(answering, publishes=["tock"], subscribes=["tick"]),
        "ear": Program(listening, publishes=[], subscribes=["tick", "tock"]),
    },
    network=NETWORK,
    until="300ms",
)


@contextmanager
def playing(server: Server, federation: Federation = FEDERATION) -> Iterator[list[Strand[None]]]:
    def live(name: str) -> Callable[[], None]:
        def act() -> None:
            program = federation.programs[name]
            with connect(server, name, publishes=program.publishes, subscribes=program.subscribes) as me:
                program.run(me)

        return act

    strands = [Strand(live(name), name) for name in federation.programs]
    yield strands
    for strand in strands:
        strand.result()


@pytest.fixture(autouse=True)
def _brief(monkeypatch: pytest.MonkeyPatch) -> None:
    brief(monkeypatch)


@pytest.fixture(scope="module")
def digest() -> bytes:
    return run_over_sockets(FEDERATION).digest


def seen(operator: Operator) -> Situation:
    situation = operator.situation()
    assert isinstance(situation, Situation)
    return situation


def begun(server: Server) -> None:
    """Wait for the start of the run."""
    eventually(lambda: not set(states(server).values()) & {"expected", "joined"})


# --- Looking ---


def test_whoever_only_publishes_has_computed_since_its_last_word() -> None:
    clock, go = ServerClock(), [Event(), Event()]

    def talks() -> None:
        with connect(server, "talks", publishes=["x"]) as me:
            for each in go:
                each.wait(PATIENCE_S)
                me.advance(by="1ms")
                me.publish("x", b"")
                me.promise("2ms")

    def waiting() -> None:
        with connect(server, "waits", publishes=[], subscribes=["x"]) as me:
            me.advance(to="1s")

    def computes_for() -> float:
        (talker,) = (each for each in server.ask(lambda: look_at(server)).standings if each.name == "talks")
        assert talker.activity.seconds is not None
        return talker.activity.seconds

    with nothing_left(), Server(plan(["talks", "waits"], network=NETWORK), clock=clock) as server:
        strands = [Strand(talks), Strand(waiting)]
        eventually(lambda: states(server) == {"talks": "computing", "waits": "advancing"})
        clock.skip(server, 100.0)
        assert computes_for() > 90.0
        go[0].set()
        eventually(lambda: computes_for() < 90.0)
        go[1].set()
        server.wait(PATIENCE_S)
        for strand in strands:
            strand.result()


def test_one_that_was_lost_is_said_to_be_by_the_run_too() -> None:
    def waiting() -> None:
        with connect(server, "waits", publishes=[], subscribes=["x"]) as me:
            me.advance(to="1s")

    with nothing_left(), Server(plan(["lost", "waits"], network=NETWORK), on_loss="rejoin") as server:
        strand = Strand(waiting)
        first = connect(server, "lost", publishes=["x"])
        first.__enter__()
        eventually(lambda: states(server) == {"lost": "computing", "waits": "advancing"})
        kill(first)
        eventually(lambda: bool(server.ask(server.host.lost)))
        situation = server.ask(lambda: look_at(server))
        assert "lost was lost, and holds waits: 1 participant waits for it" in "\n".join(in_words(situation))
        (wait,) = server.ask(lambda: server.host.status().waits)
        assert (wait.holder, wait.why[:12]) == ("lost", "it was lost ")
        with connect(server, "lost", publishes=["x"]):
            pass
        strand.result()
        server.wait(PATIENCE_S)


def test_one_that_computes_is_named_with_its_process_and_for_how_long() -> None:
    clock, go = ServerClock(), Event()

    def slow() -> None:
        with connect(server, "slow", publishes=["x"]):
            go.wait(PATIENCE_S)

    def waiting() -> None:
        with connect(server, "waits", publishes=[], subscribes=["x"]) as me:
            me.advance(to="1s")

    with nothing_left(), Server(plan(["slow", "waits"], network=NETWORK), federation="cell", clock=clock) as server:
        strands = [Strand(slow), Strand(waiting)]
        eventually(lambda: states(server) == {"slow": "computing", "waits": "advancing"})
        clock.skip(server, 20.0)
        with Operator(server.address) as operator:
            situation = seen(operator)
        assert situation.name == "cell"
        (hold,) = holds(situation)
        assert (hold.root, hold.held) == ("slow", ("waits",))
        slow_one, waits = situation.standings
        assert slow_one.activity.process == os.getpid()
        assert slow_one.activity.condition in ("running", "sleeping")
        for standing in (slow_one, waits):
            assert standing.activity.seconds is not None
            assert 15.0 < standing.activity.seconds < 40.0
        go.set()
        server.wait(PATIENCE_S)
        for strand in strands:
            strand.result()


def test_a_process_that_is_stopped_is_found_at_once() -> None:
    program = (
        "import sys; from worldline import connect\n"
        "with connect(sys.argv[1], 'asleep', publishes=['x']) as me:\n    print('in', flush=True); sys.stdin.read()"
    )
    with Server(plan(["asleep", "waits"], network=NETWORK)) as server:

        def waiting() -> None:
            with connect(server, "waits", publishes=[], subscribes=["x"]) as me:
                me.advance(to="1s")

        strand = Strand(waiting)
        command = [sys.executable, "-c", program, str(server.address)]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
            assert child.stdout is not None
            assert child.stdout.readline() == b"in\n"
            eventually(lambda: states(server)["waits"] == "advancing")
            os.kill(child.pid, signal.SIGSTOP)
            try:
                with Operator(server.address) as operator:
                    eventually(lambda: seen(operator).standings[0].activity.condition == "stopped")
                    situation = seen(operator)
            finally:
                os.kill(child.pid, signal.SIGCONT)
            assert holds(situation)[0].root == "asleep"
            assert situation.standings[0].activity.process == child.pid
        server.wait(PATIENCE_S)
        strand.result()


def test_who_is_missing_is_said_before_the_start() -> None:
    with Server(plan(["a", "b"]), "tcp://127.0.0.1:0") as server, Operator(server.address) as operator:
        situation = seen(operator)
        assert (situation.missing, holds(situation)[0].cause) == (("a", "b"), Cause.ROSTER)
        with pytest.raises(UsageError, match="the run hasn't begun"):
            operator.step()
        with pytest.raises(UsageError, match="--now"):
            operator.end()
        operator.end(now=True)
        over = operator.last_word(PATIENCE_S)
        assert over == RunOver(None, "an operator ended the run")


def test_looking_changes_nothing(digest: bytes) -> None:
    with Server(FEDERATION.plan()) as server:
        with playing(server), Operator(server.address) as operator:
            while isinstance(operator.situation(links=True), Situation):
                pass
        assert server.outcome().digest == digest


def test_the_end_is_told_to_one_who_asks_and_to_one_who_waits(digest: bytes) -> None:
    with Server(FEDERATION.plan()) as server, Operator(server.address) as asking, Operator(server.address) as waiting:
        with playing(server):
            over = waiting.last_word(PATIENCE_S)
            eventually(lambda: isinstance(asking.situation(), RunOver))
        assert over == RunOver(digest.hex(), None)
        assert asking.situation() == over


def test_an_operator_that_only_looks_on_doesnt_hold_up_the_end(digest: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_module, "_LINGER_S", 3600.0)
    with Server(FEDERATION.plan()) as server, Operator(server.address) as operator:
        seen(operator)
        with playing(server):
            pass
        assert server.wait(PATIENCE_S).digest == digest
        assert operator.situation() == RunOver(digest.hex(), None)


# --- Operating ---


def test_pausing_and_stepping_dont_show_in_the_result(digest: bytes) -> None:
    with Server(FEDERATION.plan()) as server, Operator(server.address) as operator:
        assert operator.pause() == 0
        with playing(server):
            begun(server)
            assert operator.step(by=20 * MS) == 20 * MS
            assert all(standing.now <= 25 * MS for standing in seen(operator).standings)
            assert seen(operator).paused == 20 * MS
            assert server.remarks() == ["an operator holds it at 20ms"]
            assert operator.step() == 21 * MS  # The clock ticks.
            assert operator.step() == 24 * MS + 1  # The answer to its last tick arrives: all of that moment is known.
            assert operator.step(to=100 * MS) == 100 * MS
            assert holds(seen(operator))[0].cause is Cause.BARRIER
            with pytest.raises(UsageError, match="time doesn't run backwards"):
                operator.step(to=50 * MS)
            assert operator.resume() is None
        assert server.outcome().digest == digest


def test_a_pause_holds_everybody_where_they_are(digest: bytes) -> None:
    with Server(FEDERATION.plan()) as server, Operator(server.address) as operator:
        server.hold_at("50ms")  # So that the pause can't come after the end, however fast the run is.
        with playing(server):
            eventually(lambda: server.rest_at("50ms", within_s=0.1))
            held = operator.pause()
            server.hold_at(None)
            eventually(server.host.arbiter.rests)
            before = seen(operator)
            assert {each.state.value for each in before.standings} <= {"advancing", "awaiting"}
            assert isinstance(held, int)
            assert before.time <= held < 60 * MS
            operator.resume()
        assert server.outcome().digest == digest


def test_an_operator_and_the_owner_hold_a_run_side_by_side(digest: bytes) -> None:
    with Server(FEDERATION.plan()) as server, Operator(server.address) as operator:
        server.hold_at("50ms")
        with playing(server):
            eventually(lambda: server.rest_at("50ms", within_s=0.1))
            operator.pause()
            operator.resume()
            assert server.ask(lambda: server.host.arbiter.barrier) == 50 * MS  # The owner's stays.
            held = operator.pause()
            server.hold_at(None)
            assert server.ask(lambda: server.host.arbiter.barrier) == held  # The operator's stays.
            operator.resume()
            assert server.ask(lambda: server.host.arbiter.barrier) == FOREVER
        assert server.outcome().digest == digest


def test_a_run_that_is_ended_has_the_result_of_one_that_was_to_end_there() -> None:
    with Server(FEDERATION.plan()) as server, Operator(server.address) as operator:
        operator.pause()
        with playing(server):
            begun(server)
            operator.step(to=100 * MS)
            assert operator.end(at=150 * MS) == 150 * MS
            over = operator.last_word(PATIENCE_S)
    shorter = Federation(FEDERATION.programs, network=NETWORK, until="150ms")
    assert over == RunOver(run_over_sockets(shorter).digest.hex(), None)


def test_a_run_ends_as_soon_as_possible_and_not_in_the_past() -> None:
    with Server(FEDERATION.plan()) as server, Operator(server.address) as operator:
        operator.pause()
        with playing(server):
            begun(server)
            operator.step(to=100 * MS)
            with pytest.raises(UsageError, match="a participant has passed 10ms already"):
                operator.end(at=10 * MS)
            assert operator.end() == 100 * MS
            operator.last_word(PATIENCE_S)
        assert server.outcome().now == 100 * MS


def test_where_somebody_may_go_on_forever_only_breaking_off_ends_it() -> None:
    go = Event()

    def free() -> None:
        with connect(server, "free", publishes=["x"]) as me:
            me.advance(to="1s")
            go.wait(PATIENCE_S)

    with Server(plan(["free"])) as server, Operator(server.address) as operator:
        strand = Strand(free)
        eventually(lambda: server.ask(server.host.arbiter.farthest) >= FOREVER)
        with pytest.raises(UsageError, match="since no other can reach it"):
            operator.end()
        operator.end(now=True)
        go.set()
        assert isinstance(strand.failure(), LossError)


# --- Who may ---


@pytest.mark.parametrize("token", [None, "secret", {"a": "secret"}], ids=["none", "shared", "each"])
@pytest.mark.parametrize("address", ["tcp://127.0.0.1:0", "unix://{}/run"], ids=["tcp", "unix"])
def test_only_the_operators_own_token_makes_an_operator(
    token: str | dict[str, str | None] | None, address: str, tmp_path: Path
) -> None:
    with Server(plan(["a"]), address.format(tmp_path), token=token) as server:
        for known in ("secret", "", None):
            with unregistered(), pytest.raises(UsageError, match="an operator needs the operator's token"):
                Operator(server.address, token=known)
        with Operator(server.address, token=server.operator_token) as operator:
            assert seen(operator).missing == ("a",)
        with Operator(server.address) as operator:  # Found in the entry that only this user can read.
            assert seen(operator).missing == ("a",)


def test_the_operators_token_is_no_participants() -> None:
    with Server(plan(["a"]), token="shared", operator_token="operators") as server:
        with pytest.raises(UsageError, match="the token is wrong, or missing"):
            connect(server.address, "a", token="operators").close()
        with Operator(server.address, token="operators") as operator:
            assert seen(operator).missing == ("a",)
    for shared in ("same", {"a": "same"}):
        with pytest.raises(ConfigurationError, match="the operator's token is also a participant's"):
            Server(plan(["a"]), token=shared, operator_token="same")


@contextmanager
def unregistered() -> Iterator[None]:
    """Hide the entries of runs, as from another user or on another machine."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(operator_module, "token_at", lambda _: None)
        yield


def test_without_a_token_another_users_process_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("worldline.federation.server.connection.is_another_users", lambda _: True)
    with Server(plan(["a", "b"]), token={"a": None, "b": "secret"}) as server:
        with pytest.raises(UsageError, match="only processes of the server's own user are admitted"):
            connect(server.address, "a").close()
        connect(server.address, "b", token="secret").close()  # What it knows is enough.
        with unregistered(), pytest.raises(UsageError, match="an operator needs the operator's token"):
            Operator(server.address)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells")
def test_the_user_at_the_other_end_is_known() -> None:
    told = subprocess.run([sys.executable, "-c", USERS], capture_output=True, text=True, check=True, timeout=PATIENCE_S)
    own, others = told.stdout.split()
    assert own == "False"
    assert others == ("True" if os.getuid() == 0 else "unknown")  # Only root can be somebody else.


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells")
@pytest.mark.parametrize(
    ("listening", "dialed"),
    [("127.0.0.1", "127.0.0.1"), ("127.0.0.1", "127.0.0.2"), ("::1", "::1"), ("::", "127.0.0.1")],
)
def test_the_tables_tell_where_a_socket_cant_be_asked_about(
    listening: str, dialed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other end is told apart from sockets with the same ports and other addresses."""
    family = socket.AF_INET6 if ":" in listening else socket.AF_INET
    with socket.socket(family) as listener:
        listener.bind((listening if dialed != "127.0.0.2" else "0.0.0.0", 0))
        listener.listen()
        with socket.create_connection((dialed, listener.getsockname()[1])) as client, listener.accept()[0] as accepted:
            row = peer_process._row_of_other_end(accepted)
            assert row is not None
            assert row[9] == str(os.fstat(client.fileno()).st_ino)
            monkeypatch.setattr(peer_process, "_user_of", refuse)
            assert not is_another_users(accepted)
            monkeypatch.setattr(peer_process, "_user_in_table", lambda _: os.getuid() + 1)
            assert is_another_users(accepted)


def refuse(_: object) -> int:
    raise PermissionError


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells")
@pytest.mark.parametrize("silent", [refuse, lambda _: None])
def test_if_nothing_tells_whose_the_other_end_is_it_counts_as_anothers(
    silent: Callable[[object], int | None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(peer_process, "_user_of", silent)
    monkeypatch.setattr(peer_process, "_user_in_table", silent)
    with (
        socket.create_server(("127.0.0.1", 0)) as listener,
        socket.create_connection(listener.getsockname()),
        listener.accept()[0] as accepted,
    ):
        assert is_another_users(accepted)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells")
def test_one_that_has_closed_its_socket_isnt_taken_for_root() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        socket.create_connection(listener.getsockname()).close()
        with listener.accept()[0] as accepted:
            assert is_another_users(accepted)


USERS = """
import os, socket
from worldline.federation.peer_process import is_another_users

with socket.create_server(("127.0.0.1", 0)) as listener:
    for user in (os.getuid(), 12345):
        if user != os.getuid() and os.getuid():
            print("unknown")
            continue
        if not (child := os.fork()):
            os.setuid(user)
            client = socket.socket()
            client.connect(listener.getsockname())
            client.recv(1)
            os._exit(0)
        connection, _ = listener.accept()
        print(is_another_users(connection), flush=True)
        connection.close()
        os.waitpid(child, 0)
"""


def test_over_tls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    certificate, key = make_certificate(tmp_path)
    with Server(plan(["a"]), "tls://127.0.0.1:0", certificate=certificate, key=key) as server:
        with Operator(server.address, authority=certificate) as operator:
            assert seen(operator).missing == ("a",)
        with pytest.raises(LossError, match="no trusted connection"):
            Operator(server.address)
        monkeypatch.setattr(operator_module, "_ANSWER_S", 0.1)
        with pytest.raises(LossError, match=r"perhaps it speaks TLS: tls://127\.0\.0\.1:"):
            Operator(str(server.address).replace("tls", "tcp"))


def test_there_are_only_so_many_operators_at_a_time() -> None:
    with Server(plan(["a"])) as server:
        operators = [Operator(server.address) for _ in range(OPERATORS_MAX)]
        with pytest.raises(UsageError, match="too many operators are connected"):
            Operator(server.address)
        operators.pop().__exit__(None, None, None)
        eventually(lambda: len(server.ask(lambda: server.host._trunks)) < OPERATORS_MAX)
        operators.append(Operator(server.address))
        for each in operators:
            each.__exit__(None, None, None)


@pytest.mark.parametrize("said", [frame(b"\xc1"), frame(b"\x91\xa4fire"), b"\xff\xff\xff\xff", frame(bytes(4000))])
def test_whoever_talks_nonsense_is_cut_off_and_the_run_goes_on(said: bytes, digest: bytes) -> None:
    with Server(FEDERATION.plan()) as server:
        with Operator(server.address) as operator:
            operator._socket.sendall(said)
            with pytest.raises(PeerError, match="the server refused to go on"):
                operator.last_word(PATIENCE_S)
        with playing(server):
            pass
        assert server.outcome().digest == digest


def test_an_operator_who_asks_much_is_heard_in_turns_with_others(monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[int] = []
    heard_after: list[int] = []

    def look(server: Server, *, with_links: bool = False) -> Situation:
        looks.append(0)
        if len(looks) == 10:
            server.order(lambda: heard_after.append(len(looks)))
        return look_at(server, with_links=with_links)

    monkeypatch.setattr(desk_module, "look_at", look)
    with Server(plan(["a"])) as server, Operator(server.address) as operator:
        operator._socket.sendall(operator_frame(AskSituation()) * 500)
        eventually(lambda: heard_after)
        assert heard_after[0] <= 12
        eventually(lambda: len(looks) == 500)


def test_an_operator_who_doesnt_read_isnt_read_until_it_does() -> None:
    asked = 1500
    with Server(plan([f"p{number}" for number in range(100)])) as server, Operator(server.address) as operator:
        operator._socket.sendall(operator_frame(AskSituation()) * asked)
        (session,) = (connection.session for connection in server.ask(lambda: list(server._connections.opened)))
        eventually(lambda: session.paused)
        assert len(session.out) < 2**17
        with Operator(server.address) as other:
            assert len(seen(other).missing) == 100
        for _ in range(asked):
            assert isinstance(operator_module.decode_operator_answer(operator._body(None, None)), SituationTold)


def test_an_operator_has_one_step_under_way() -> None:
    with Server(plan(["a", "b"], network=NETWORK)) as server, Operator(server.address) as operator:
        operator.pause()
        go = Event()

        def computing() -> None:
            with connect(server, "a", publishes=["x"], subscribes=["y"]):
                go.wait(PATIENCE_S)

        def waiting() -> None:
            with connect(server, "b", publishes=["y"], subscribes=["x"]) as me:
                me.advance(to="1ms")

        strands = [Strand(computing), Strand(waiting)]
        begun(server)
        for _ in range(50):
            operator._socket.sendall(operator_frame(StepRun(to=MS)))
        seen(operator)  # All of that was heard.
        assert len(server.ask(lambda: server._hold.resting)) == 1
        operator.__exit__(None, None, None)
        eventually(lambda: not server.ask(lambda: server._hold.resting))
        server.ask(lambda: server.pause_at(FOREVER))
        go.set()
        for strand in strands:
            strand.result()


def test_what_is_answered_too_late_isnt_taken_for_another_answer() -> None:
    go = Event()

    def slow() -> None:
        with connect(server, "slow", publishes=["x"], subscribes=["y"]) as me:
            go.wait(PATIENCE_S)
            me.advance(to="50ms")

    def waiting() -> None:
        with connect(server, "waits", publishes=["y"], subscribes=["x"]) as me:
            me.advance(to="50ms")

    with Server(plan(["slow", "waits"], network=NETWORK)) as server, Operator(server.address) as operator:
        operator.pause()
        strands = [Strand(slow), Strand(waiting)]
        begun(server)
        with pytest.raises(LossError, match="hasn't answered"):
            operator.step(to=20 * MS, within_s=0.01)
        go.set()
        eventually(lambda: states(server) == {"slow": "advancing", "waits": "advancing"})
        for _ in range(3):
            assert seen(operator).barrier == 20 * MS
        assert operator.step(to=40 * MS) == 40 * MS
        operator.resume()
        for strand in strands:
            strand.result()


def test_an_operator_who_hangs_up_leaves_the_run_as_it_is(digest: bytes) -> None:
    with Server(FEDERATION.plan()) as server:
        operator = Operator(server.address)
        operator._socket.sendall(operator_frame(operator_module.StepRun(by=1)))
        operator.__exit__(None, None, None)
        with playing(server), Operator(server.address) as other:
            other.resume()
        assert server.outcome().digest == digest


def test_a_server_that_doesnt_answer_is_said_to_be_what_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(operator_module, "_WAKE_S", 0.05)
    told = rf"hasn't answered for 0 seconds: its process {os.getpid()} is "
    with Server(plan(["a"])) as server, Operator(server.address) as operator, held_up(server):
        assert re.search(told, str(Strand(lambda: operator._answer(0.1)).failure()))


def test_nothing_listens_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(operator_module, "_DIAL_S", 0.1)
    with pytest.raises(LossError, match="nothing listens on"):
        Operator("unix:///nowhere/at/all")


def test_a_resident_is_in_the_servers_process() -> None:
    server = Server(plan(["here", "there"], network=NETWORK))

    def there() -> None:
        with connect(str(server.address), "there", publishes=["x"]) as me:
            me.advance(to="10ms")

    server.open()
    strand = Strand(there)
    with server.resident("here", subscribes=["x"]) as me:
        situation = look_at(server)
        assert {standing.name: standing.activity.process for standing in situation.standings}["here"] == os.getpid()
        me.advance(to="10ms")
    strand.result()
