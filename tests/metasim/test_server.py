"""The server looks like a simulator and is in charge of everybody's time. Its clients here are plain Python."""

from __future__ import annotations

import contextlib
import re
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.federation.transports import Strand, eventually
from tests.metasim.simulators import Counter
from worldline import MS, Federation, Network, Program, connect, link, run
from worldline.history.observer import LOG, Observer
from worldline.metasim import MetasimServer, drive
from worldline.metasim.driving import Send
from worldline.metasim.public import PublicLcm, TcpqBroker
from worldline.model import ConfigurationError, LossError, UsageError, WorldlineError
from worldline.model.links import Rule
from worldline.model.time import SECOND
from worldline.recording import Condition, Recording

pytestmark = [pytest.mark.timeout(50), pytest.mark.usefixtures("tidy")]


def counters(blind: bool = False) -> dict[str, Counter]:
    return {"a": Counter("A", 10 * MS, blind=blind), "b": Counter("B", 20 * MS, blind=blind)}


def take_part(server: MetasimServer, name: str, counter: Counter) -> None:
    mine, theirs = ("A", "B") if name == "a" else ("B", "A")
    with connect(server.server, name, publishes=[mine], subscribes=[theirs]) as me:
        drive(me, counter)


@contextlib.contextmanager
def served(simulators: dict[str, Counter], clients: Any = ("a", "b"), **given: Any) -> Iterator[MetasimServer]:
    """Serve with a delay of 10 ms, and all clients in threads of this process; see that they end well."""
    with MetasimServer(clients, 0.01, **given) as server:
        strands = [Strand(partial(take_part, server, name, each), name) for name, each in simulators.items()]
        yield server
    for strand in strands:
        strand.result()


def failing(
    simulators: dict[str, Counter],
    act: Callable[[MetasimServer], object],
    clients: Any = ("a", "b"),
    before: Callable[[], object] = lambda: None,
    **given: Any,
) -> tuple[BaseException, dict[str, BaseException]]:
    """Do something that fails with a server and its clients; return what it raised, and what they did."""
    server = MetasimServer(clients, 0.01, **given)
    before()
    server.open()
    strands = {name: Strand(partial(take_part, server, name, each), name) for name, each in simulators.items()}
    with pytest.raises(Exception) as caught, server:  # noqa: PT011
        act(server)
    return caught.value, {name: strand.failure() for name, strand in strands.items()}


def in_one_process(until: str, blind: bool = False, **given: Any) -> tuple[bytes, dict[str, Counter]]:
    simulators = counters(blind)
    programs = {
        "a": Program(lambda me: drive(me, simulators["a"]), publishes=["A"], subscribes=["B"]),
        "b": Program(lambda me: drive(me, simulators["b"]), publishes=["B"], subscribes=["A"]),
    }
    network = given.pop("network", Network(default=link("10ms")))
    return run(Federation(programs, network=network, **given), until).digest, simulators


def finished(server: MetasimServer) -> bytes:
    assert server.outcome is not None
    return server.outcome.digest


# --- Its time ---


@pytest.mark.parametrize("blind", [False, True])
@pytest.mark.parametrize("stops", [[0.1], [0.05, 0.1], [0.0, 0.013, 0.0271, 0.1], [0.1, 0.1]], ids=str)
def test_where_it_stops_changes_nothing(stops: list[float], blind: bool) -> None:
    expected, reference = in_one_process("100ms", blind)
    simulators = counters(blind)
    with served(simulators) as server:
        for stop in stops:
            server.advance_to(stop)
            assert server.get_time() == stop
    assert finished(server) == expected
    assert [each.noted for each in simulators.values()] == [each.noted for each in reference.values()]


def test_what_they_are_is_said() -> None:
    server = MetasimServer(["a", "b"], 0.01)
    with pytest.raises(TypeError, match="unexpected keyword argument 'recrod'"):
        MetasimServer(["a", "b"], 0.01, recrod="run.mcap")  # type: ignore[call-arg]
    assert re.fullmatch(r"<MetasimServer at tcp://\S+, incomplete, at 0s>", repr(server))
    assert repr(PublicLcm("run.lcmlog")) == "<PublicLcm to run.lcmlog>"
    assert repr(TcpqBroker("127.0.0.1:7700")) == "<TcpqBroker at tcpq://127.0.0.1:7700, open, 0 subscribers>"


def test_times_may_be_texts() -> None:
    with served(counters()) as server:
        server.advance_to("100ms")
        assert server.get_time() == 0.1
    assert finished(server) == in_one_process("100ms")[0]


def test_a_count_of_clients_instead_of_names() -> None:
    with served(counters(), clients=2) as server:
        server.advance_to(0.1)
    assert finished(server) == in_one_process("100ms")[0]


def test_delays_by_sender_and_receiver() -> None:
    links = {("b", "a"): "3ms", ("b", None): link("5ms")}
    rules = (Rule(link=link("3ms"), sender="b", receiver="a"), Rule(link=link("5ms"), sender="b"))
    expected, _ = in_one_process("100ms", network=Network(default=link("10ms"), rules=rules), seed=3)
    with served(counters(), links=links, seed=3) as server:
        server.advance_to(0.1)
    assert finished(server) == expected != in_one_process("100ms")[0]


def test_it_initializes_at_time_0() -> None:
    simulators = counters()
    with served(simulators) as server:
        assert server.get_time() == 0.0
        server.initialize()
        assert server.get_time() == 0.0
        assert simulators["a"].count == simulators["b"].count == 1
        with pytest.raises(UsageError, match="it is initialized already"):
            server.initialize()
        server.advance_to(0.02)


@pytest.mark.parametrize("blind", [False, True])
def test_it_may_finish_at_time_0(blind: bool) -> None:
    simulators = counters(blind)
    with served(simulators) as server:
        server.initialize()
    assert server.outcome is not None
    assert server.outcome.now == 0
    assert [each.count for each in simulators.values()] == [1, 1]


def test_what_is_published_at_the_time_of_a_stop_has_been() -> None:
    last: dict[str, int] = {}

    class Noting(Observer):
        def sent(
            self, who: str, number: int, topic: str, at: int, payload: bytes, until: int, detail: Any = None
        ) -> None:
            last[who] = at

    with served(counters(), observer=Noting()) as server:
        server.advance_to(0.05)
        assert last == {"a": 50 * MS, "b": 40 * MS}


def test_where_those_stand_of_whom_nobody_knows_when_they_send() -> None:
    with served(counters(blind=True), links={("a", None): "3.7ms", ("b", None): "3.7ms"}) as server:
        for stop, least in ((100, 96), (110, 106), (300, 296)):
            server.advance_to(f"{stop}ms")
            reached = server.server.ask(lambda: server.server.host.arbiter.participants())
            assert all(least * MS <= at <= stop * MS for _, at in reached.values())


def test_it_cant_go_back_or_be_reset() -> None:
    with served(counters()) as server:
        server.advance_to(0.05)
        with pytest.raises(UsageError, match="it can't go back to 10ms from 50ms"):
            server.advance_to(0.01)
        with pytest.raises(UsageError, match=r"a metasimulator can't be reset: .* \(make a new MetasimServer"):
            server.reset()
        with pytest.raises(UsageError, match=r"a time to advance to of 1 may be meant in seconds .*write 1\.0"):
            server.advance_to(1)  # type: ignore[arg-type]
        server.advance_to(0.06)
    assert finished(server) == in_one_process("60ms")[0]


# --- Its monitor ---


def test_a_monitor_is_told_once_in_a_period() -> None:
    told: list[float] = []
    with served(counters()) as server:
        server.set_monitor(told.append, 0.02)
        server.advance_to(0.05)
        server.advance_to(0.1)
    assert told == [0.02, 0.04, 0.06, 0.08, 0.1]
    assert finished(server) == in_one_process("100ms")[0]


def test_a_monitor_without_a_period_is_told_of_each_advance() -> None:
    told: list[float] = []
    with served(counters()) as server:
        server.set_monitor(told.append)
        server.advance_to(0.03)
        server.advance_to(0.1)
        server.set_monitor(None)
        server.advance_to(0.11)
    assert told == [0.03, 0.1]


def test_a_monitor_stops_it() -> None:
    with served(counters()) as server:
        server.set_monitor(lambda now: now >= 0.06, 0.02)
        server.advance_to(0.1)
        assert server.get_time() == 0.06
    assert finished(server) == in_one_process("60ms")[0]


def test_a_monitor_that_fails_ends_the_run() -> None:
    def fail(now: float) -> None:
        raise ValueError(f"at {now}")

    def act(server: MetasimServer) -> None:
        server.set_monitor(fail, 0.02)
        server.advance_to(0.1)

    raised, told = failing(counters(), act)
    assert isinstance(raised, ValueError)
    for each in told.values():
        assert "the server was closed: at 0.02" in str(each)


@pytest.mark.parametrize("period", [0.0, -1.0, 1, float("nan")], ids=str)
def test_periods_that_a_monitor_cant_have(period: Any) -> None:
    with pytest.raises(UsageError, match="monitor's period"):
        MetasimServer(["a"], 0.01).set_monitor(lambda _: None, period)


# --- Real time ---


def test_at_most_as_fast_as_asked() -> None:
    began = time.monotonic()
    with served(counters()) as server:
        server.set_target_realtime_rate(2.0)
        assert server.get_target_realtime_rate() == 2.0
        server.advance_to(0.2)
        assert time.monotonic() - began >= 0.1 - 0.01
        assert 0 < server.get_actual_realtime_rate() <= 2.2
        server.set_target_realtime_rate(0.0)
        server.advance_to(10.0)  # As fast as it goes.
    assert finished(server) == in_one_process("10s")[0]


@pytest.mark.parametrize("rate", [-1.0, float("nan"), float("inf")])
def test_rates_that_arent_possible(rate: float) -> None:
    with pytest.raises(ConfigurationError, match=r"a pace of .* isn't possible"):
        MetasimServer(["a"], 0.01).set_target_realtime_rate(rate)


def test_no_rate_before_anything_has_happened() -> None:
    assert MetasimServer(["a"], 0.01).get_actual_realtime_rate() == 0.0


# --- Whoever looks on ---


class Nosy(Observer):
    """Can't stand the first it hears of."""

    def began(self, who: str, at: int) -> None:
        raise LossError("the disk is full")


def test_an_observer_that_fails_at_the_start_ends_the_run() -> None:
    raised, told = failing(counters(), MetasimServer.initialize, observer=Nosy())
    assert str(raised) == "the disk is full"
    for each in told.values():
        assert "the disk is full" in str(each)


def test_a_recording_that_cant_be_opened_ends_the_run(tmp_path: Path) -> None:
    shelf = tmp_path / "shelf"
    shelf.mkdir()
    raised, told = failing(counters(), MetasimServer.initialize, 2, shelf.rmdir, record=shelf / "run.mcap")
    for each in (raised, *told.values()):
        assert "can't be written: there is no folder" in str(each)


def test_a_name_that_the_public_lcm_cant_show_ends_the_run(tmp_path: Path) -> None:
    simulators = {"a/b": Counter("A", 10 * MS)}
    raised, told = failing(simulators, MetasimServer.initialize, 1, public=str(tmp_path / "public.lcmlog"))
    for each in (raised, told["a/b"]):
        assert "a/b" in str(each)


def test_what_isnt_an_observer_is_refused_before_the_run() -> None:
    with pytest.raises(UsageError, match="has no method began"):
        MetasimServer(["a"], 0.01, observer=object())  # type: ignore[arg-type]


# --- Who takes part ---


def test_a_late_client_is_refused() -> None:
    with served(counters()) as server:
        server.initialize()
        for name, reason in {"a": "participant 'a' is already connected", "c": "unexpected participant 'c'"}.items():
            with pytest.raises(UsageError, match=reason):
                take_part(server, name, Counter("A", 10 * MS))
        server.advance_to(0.1)
    assert finished(server) == in_one_process("100ms")[0]


def test_a_late_client_is_refused_where_any_name_would_have_done() -> None:
    with served(counters(), clients=2) as server:
        server.initialize()
        with pytest.raises(UsageError, match="unexpected participant 'c': the run has started without it"):
            take_part(server, "c", Counter("A", 10 * MS))


def test_two_of_one_name() -> None:
    simulators = counters()
    with MetasimServer(2, 0.01) as server:
        first = Strand(partial(take_part, server, "a", simulators["a"]))
        eventually(lambda: server.missing() != [] and len(server.server.host.sessions) == 1)
        with pytest.raises(UsageError, match="participant 'a' is already connected"):
            take_part(server, "a", Counter("A", 10 * MS))
        second = Strand(partial(take_part, server, "b", simulators["b"]))
        server.advance_to(0.1)
    first.result()
    second.result()
    assert finished(server) == in_one_process("100ms")[0]


@pytest.mark.parametrize("wait", [MetasimServer.initialize, lambda server, **given: server.advance_to(1.0, **given)])
def test_those_who_dont_come_are_named(wait: Callable[..., None]) -> None:
    def act(server: MetasimServer) -> None:
        eventually(lambda: server.missing() == ["b"])
        wait(server, patience_s=0.1)

    raised, told = failing({"a": Counter("A", 10 * MS)}, act)
    assert isinstance(raised, LossError)
    assert str(raised) == "b didn't connect within 0.1 seconds"
    assert "b didn't connect" in str(told["a"])


def test_without_patience_those_who_dont_come_are_named_once_on_stderr(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("worldline.metasim.server._SILENCE_S", 0.0)
    simulators = counters()
    with MetasimServer(["a", "b"], 0.01) as server:
        strands = [Strand(partial(take_part, server, "a", simulators["a"]))]
        said: list[str] = []

        def join_late() -> None:
            eventually(lambda: said.append(capsys.readouterr().err) or "b didn't connect" in said[-1])  # type: ignore[func-returns-value]
            take_part(server, "b", simulators["b"])

        eventually(lambda: server.missing() == ["b"])
        strands.append(Strand(join_late))
        server.advance_to(0.1)
    for strand in strands:
        strand.result()
    assert "".join(said) == f"worldline: b didn't connect within 0 seconds to {server.address}; still waiting\n"


def test_one_that_gets_nowhere_is_named() -> None:
    stuck = threading.Event()

    class Stuck(Counter):
        def advance_to(self, time: int) -> None:
            if time == 30 * MS:
                stuck.wait(20)
            super().advance_to(time)

    def act(server: MetasimServer) -> None:
        try:
            server.advance_to(1.0, patience_s=0.3)
        finally:
            stuck.set()

    raised, _ = failing({"a": Stuck("A", 10 * MS), "b": Counter("B", 10 * MS)}, act)
    assert re.fullmatch(
        r"no client has got any farther for 0\.3 seconds \(they wait: b at \d+ms waits for its next message until \d+ms"
        r": a \(computing\) may still send from 30ms on, so everything is known only before 40ms; "
        r"via a → b \(A, 10ms\)\)",
        str(raised),
    )


def test_closed_before_it_began() -> None:
    with pytest.raises(LossError, match="the server was closed before the run began"), MetasimServer(["a"], 0.01):
        pass


def test_an_error_of_its_owner_reaches_everybody() -> None:
    def act(server: MetasimServer) -> None:
        server.advance_to(0.05)
        raise KeyError("the owner's")

    raised, told = failing(counters(), act)
    assert isinstance(raised, KeyError)
    for each in told.values():
        assert isinstance(each, WorldlineError)
        assert "the owner's" in str(each)


def test_when_all_clients_have_left(tmp_path: Path) -> None:
    def leave(server: MetasimServer) -> None:
        with connect(server.server, "a") as me:
            me.advance("20ms")

    path = tmp_path / "run.mcap"
    with MetasimServer(["a"], 0.01, record=path) as server:
        strand = Strand(partial(leave, server))
        server.advance_to(0.05)
        assert server.get_time() == 0.02
        assert server.outcome is not None
        assert Recording(path).verify().condition is Condition.INTACT
        with pytest.raises(UsageError, match="the run is over"):
            server.advance_to(0.1)
        strand.result()


def test_a_client_that_fails_is_named_to_everybody() -> None:
    class Broken(Counter):
        def advance_to(self, time: int) -> None:
            if time == 30 * MS:
                raise ValueError("it broke")
            super().advance_to(time)

    raised, told = failing(
        {"a": Broken("A", 10 * MS), "b": Counter("B", 20 * MS)}, lambda server: server.advance_to(0.1)
    )
    assert isinstance(told["a"], ValueError)
    for each in (raised, told["b"]):
        assert "a at 30ms" in str(each)
        assert "ValueError: it broke, in test_server.py" in str(each)


def test_a_client_that_fails_before_anybody_looks() -> None:
    class Hopeless(Counter):
        def begin(self, now: int, send: Send) -> None:
            raise ValueError("my diagram is wrong")

    def act(server: MetasimServer) -> None:
        eventually(lambda: server.server.host.over)
        server.initialize()

    raised, _ = failing({"a": Hopeless("A", 10 * MS), "b": Counter("B", 20 * MS)}, act)
    assert "my diagram is wrong" in str(raised)


def interrupt(server: MetasimServer) -> None:
    """Interrupt its owner while everybody is on the way to a time far away."""

    def interrupted(until: int) -> bool:
        server.server.hold_at(until)
        eventually(lambda: server.server.ask(lambda: server.server.host.arbiter.floor()) > 50 * MS)
        raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(server.server, "rest_at", interrupted)
        with pytest.raises(KeyboardInterrupt):
            server.advance_to(5000.0)


def test_finishing_after_an_interruption() -> None:
    with served(counters()) as server:
        server.advance_to(0.01)
        interrupt(server)
        assert server.get_time() > 0.05
        eventually(lambda: server.get_time() == server._allowed / SECOND)
    assert server.outcome is not None
    assert 50 * MS < server.outcome.now < 5000 * SECOND
    assert finished(server) == in_one_process(f"{server.outcome.now}ns")[0]


def test_going_on_after_an_interruption() -> None:
    with served(counters()) as server:
        server.initialize()
        interrupt(server)
        with pytest.raises(UsageError, match="it can't go back to 10ms from "):
            server.advance_to(0.01)
        on = server._allowed + 25 * MS
        server.advance_to(f"{on}ns")
        assert server.get_time() == on / SECOND
    assert finished(server) == in_one_process(f"{on}ns")[0]


def test_interrupted_while_it_finishes(tmp_path: Path) -> None:
    path = tmp_path / "run.mcap"
    server = MetasimServer(["a", "b"], 0.01, record=path)
    server.open()
    strands = [Strand(partial(take_part, server, name, each), name) for name, each in counters().items()]
    server.advance_to(0.1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(server.server, "stop_at", raise_interrupt)
        with pytest.raises(KeyboardInterrupt):
            server.finish()
    for strand in strands:
        assert "the server was closed: KeyboardInterrupt" in str(strand.failure())
    written = path.read_bytes()
    with pytest.raises(LossError, match="the server was closed: KeyboardInterrupt"):
        server.finish()
    assert path.read_bytes() == written


def raise_interrupt(_: object) -> None:
    raise KeyboardInterrupt


def test_an_address_in_use_leaves_nothing_open() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        server = MetasimServer(["a"], 0.01, address=f"tcp://127.0.0.1:{port}", serve_lcm="127.0.0.1:0")
        with pytest.raises(UsageError, match="in use"):
            server.open()
        assert server.public is not None
        assert server.public.url is not None
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", int(server.public.url.rpartition(":")[2])))


def test_finishing_by_hand() -> None:
    simulators = counters()
    server = MetasimServer(["a", "b"], 0.01)
    address = server.open()
    assert server.open() == address == server.address
    strands = [Strand(partial(take_part, server, name, each), name) for name, each in simulators.items()]
    server.advance_to(0.1)
    outcome = server.finish()
    assert server.finish() is outcome
    assert outcome.digest == in_one_process("100ms")[0]
    assert outcome.now == 100 * MS
    for strand in strands:
        strand.result()
    with pytest.raises(UsageError, match="the run is over"):
        server.advance_to(0.2)
    with pytest.raises(UsageError, match=r"the run is over \(make a new MetasimServer\)"):
        server.open()


@pytest.mark.parametrize(
    ("clients", "delay", "problem"),
    [
        (["a"], 0.0, "the delay of 0 isn't possible"),
        (["a"], "0ms", "latency"),
        (["a"], 1, "may be meant in seconds"),
        (["a"], -0.1, "isn't possible"),
        (["a"], float("nan"), "isn't possible"),
        ("ab", 0.01, "'ab' is neither a list of names nor a count"),
        (2.0, 0.01, "2.0 is neither a list of names nor a count"),
        (None, 0.01, "None is neither a list of names nor a count"),
        (0, 0.01, ""),
        (-1, 0.01, ""),
        ([], 0.01, ""),
        (["a", "a"], 0.01, "a"),
        (["a b\n"], 0.01, "a participant"),
    ],
    ids=str,
)
def test_servers_that_arent_possible(clients: Any, delay: Any, problem: str) -> None:
    with pytest.raises(UsageError) as caught:
        MetasimServer(clients, delay)
    assert problem in str(caught.value)


def test_a_delay_of_0_between_two() -> None:
    with pytest.raises(UsageError, match=r"the delay of a → b of 0 isn't possible .* only if messages take time"):
        MetasimServer(["a", "b"], 0.01, links={("a", "b"): 0.0})


@pytest.mark.parametrize("pair", ["a", "ab", ("a",), ("a", "b", "c"), None], ids=repr)
def test_links_are_between_two(pair: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"isn't a sender and a receiver \(write links="):
        MetasimServer(["a", "b"], 0.01, links={pair: 0.1})


def test_what_clients_log_is_recorded_as_text(tmp_path: Path) -> None:
    def log(server: MetasimServer) -> None:
        with connect(server.server, "a", publishes=["A"]) as me:
            me.log("here I am")
            me.publish("A", b"")
            me.advance("10ms")

    path = tmp_path / "run.mcap"
    with MetasimServer(["a"], 0.01, record=path) as server:
        strand = Strand(partial(log, server))
        server.advance_to(0.05)
        strand.result()
    channels = Recording(path).channels.values()
    assert {each.topic: each.message_encoding for each in channels}[LOG] == "json"


def test_without_drake() -> None:
    """Everything else is there, and the client says what is missing."""
    script = """
import sys
sys.modules["pydrake"] = None
from worldline.metasim import MetasimServer, drive
from worldline.model import UsageError
import worldline.metasim
try:
    worldline.metasim.MetasimClient
except UsageError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True)
    assert (
        done.stdout
        == "Drake isn't installed (make extras WITH=drake in the clone of Worldline, on Python 3.12 or newer)\n"
    )
