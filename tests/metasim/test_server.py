"""The server looks like a simulator and is in charge of everybody's time. Its clients here are plain Python."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest

from tests.federation.transports import Strand, eventually, nothing_left
from tests.metasim.simulators import Counter
from worldline import MS, Federation, Network, Program, connect, link, run
from worldline.metasim import MetasimServer, drive
from worldline.model import ConfigurationError, LossError, UsageError, WorldlineError
from worldline.model.links import Rule

pytestmark = pytest.mark.timeout(50)


@pytest.fixture(autouse=True)
def _tidy() -> Iterator[None]:
    with nothing_left():
        yield


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
    simulators: dict[str, Counter], act: Callable[[MetasimServer], object]
) -> tuple[BaseException, dict[str, BaseException]]:
    """Do something that fails with a server and its clients; return what it raised, and what they did."""
    server = MetasimServer(["a", "b"], 0.01)
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
    with served(counters()) as server:
        server.advance_to(0.05)
        reached = server.server.ask(lambda: server.server.host.arbiter.participants())
        assert {name: at for name, (_, at) in reached.items()} == {"a": 50 * MS, "b": 40 * MS}


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


# --- Who takes part ---


def test_a_late_client_is_refused() -> None:
    with served(counters()) as server:
        server.initialize()
        for name, reason in {"a": "participant 'a' is already connected", "c": "nobody expects 'c'"}.items():
            with pytest.raises(UsageError, match=reason):
                take_part(server, name, Counter("A", 10 * MS))
        server.advance_to(0.1)
    assert finished(server) == in_one_process("100ms")[0]


def test_a_late_client_is_refused_where_any_name_would_have_done() -> None:
    with served(counters(), clients=2) as server:
        server.initialize()
        with pytest.raises(UsageError, match="nobody expects 'c'; expected: nobody: the run has started"):
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


def test_those_who_dont_come_are_named() -> None:
    def act(server: MetasimServer) -> None:
        eventually(lambda: server.missing() == ["b"])
        server.initialize(patience_s=0.1)

    raised, told = failing({"a": Counter("A", 10 * MS)}, act)
    assert isinstance(raised, LossError)
    assert str(raised) == "b didn't connect within 0.1 seconds"
    assert "b didn't connect" in str(told["a"])


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


def test_when_all_clients_have_left() -> None:
    def leave(server: MetasimServer) -> None:
        with connect(server.server, "a") as me:
            me.advance("20ms")

    with MetasimServer(["a"], 0.01) as server:
        strand = Strand(partial(leave, server))
        with pytest.raises(UsageError, match="the run is over: all clients have left before 50ms"):
            server.advance_to(0.05)
        strand.result()
    assert finished(server)


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
        == "Drake isn't installed (pip install '.[drake]' in the clone of Worldline, on Python 3.12 or newer)\n"
    )
