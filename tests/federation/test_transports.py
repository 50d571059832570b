"""One suite for every way to run a federation: what happens in one process happens over every kind of socket.

Each federation of the table is run by the in-process runner, which is the reference, and then in every other way.
Digest, times and losses must be the same. A federation that leaks must be found out by that very comparison.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from hashlib import shake_128
from pathlib import Path
from typing import Any

import pytest

from tests.federation.transports import join_asyncio, join_in_crews, make_certificate, nothing_left, run_over_sockets
from worldline import (
    MS,
    EmergencyStop,
    Federation,
    Network,
    Participant,
    Program,
    Rule,
    clock,
    hold,
    link,
    partition,
    run,
    uniform,
)
from worldline.federation.environment import SHAKE
from worldline.federation.inprocess.strand import THREADS
from worldline.federation.outcome import FederationOutcome
from worldline.model import BrokenPromise

# --- The federations. All of simulated time is below 200 ms, so that running at a pace takes no time to speak of. ---


def stepping() -> Federation:
    """Everybody steps, tells the others, and takes what they told into account."""

    def walker(self: Participant) -> None:
        heard = 0
        while self.now < 60 * MS:
            self.publish("step", f"{self.name} has heard {heard}".encode())
            heard = heard * 31 % 1009 + len(self.advance(by=(3 + len(self.name)) * MS))

    programs = {name: Program(walker, subscribes=["step"]) for name in ("a", "bb", "ccc")}
    return Federation(programs, network=Network(default=link("2ms")))


def ping_pong() -> Federation:
    """Case 2 of the lock: 19 messages, at 5, 10, ... 95 ms."""

    def player(self: Participant) -> None:
        if self.name == "a":
            self.publish("ball", b"0")
        for ball in self.messages(until="100ms"):
            self.publish("ball", str(int(ball.payload) + 1).encode())

    programs = {name: Program(player, publishes=["ball"], subscribes=["ball"]) for name in ("a", "b")}
    return Federation(programs, network=Network(default=link("5ms")))


def bad_network() -> Federation:
    """Losses at both ends, duplicates, overtaking; replies depend on what came through."""

    def sender(self: Participant) -> None:
        whims = self.stream("whims")
        while self.now < 50 * MS:
            self.publish("news", whims.randbytes(whims.randrange(20)))
            for answer in self.advance(by=whims.randrange(1, 4) * MS):
                self.publish("news", answer.payload[::-1])

    def replier(self: Participant) -> None:
        for news in self.messages(until="80ms"):
            self.publish("answer", news.payload + bytes([news.sequence % 256, news.copy]))

    lossy = link(uniform("1ms", "20ms"), loss=0.2, loss_at_sender=0.1, duplication=0.2)
    programs = {
        "s1": Program(sender, publishes=["news"], subscribes=["answer"]),
        "s2": Program(sender, publishes=["news"], subscribes=["answer"]),
        "r1": Program(replier, publishes=["answer"], subscribes=["news"]),
        "r2": Program(replier, publishes=["answer"], subscribes=["news"]),
    }
    return Federation(programs, network=Network(default=lossy), seed=7)


def outages() -> Federation:
    """A partition and a hold, on links that keep the order and have a bandwidth."""

    def chatter(self: Participant) -> None:
        while self.now < 100 * MS:
            self.publish("chat", bytes(self.now // MS % 50))
            self.advance(by="2ms")

    def listener(self: Participant) -> None:
        self.advance(to="60ms")
        self.advance(to="160ms")

    slow = link(uniform("1ms", "9ms"), fifo=True, bandwidth=20_000)
    network = Network(
        default=slow,
        outages=(*partition(["a"], ["x"], start="20ms", repair="40ms"), *hold(["b"], ["x"], "50ms", "90ms")),
    )
    programs = {
        "a": Program(chatter, publishes=["chat"]),
        "b": Program(chatter, publishes=["chat"]),
        "x": Program(listener, publishes=[], subscribes=["chat"]),
    }
    return Federation(programs, network=network, seed=11)


def buffers() -> Federation:
    """Case 5 of the lock, with all buffers at once."""

    def sender(self: Participant) -> None:
        for topic in ("all", "one", "two", "first", "none"):
            for number in range(12):
                self.publish(topic, bytes([number]), at=number * MS)

    def reader(self: Participant) -> None:
        for _ in range(4):
            self.advance(by="6ms")

    kept = {"all": "unbounded", "one": "mailbox", "two": "newest(2)", "first": "oldest(2)", "none": "discard"}
    programs = {"s": Program(sender), "r": Program(reader, publishes=[], subscribes=kept)}
    return Federation(programs)


def late_subscriptions() -> Federation:
    """Case 4 of the lock, to the nanosecond; and topics that are left again."""

    def sender(self: Participant) -> None:
        while self.now < 50 * MS:
            self.publish("tick", str(self.now // MS).encode())
            self.advance(by="5ms")

    def reader(late_ns: int) -> Callable[[Participant], None]:
        def read(self: Participant) -> None:
            self.advance(to=10 * MS + late_ns)
            self.subscribe("tick", "newest(3)")
            self.advance(to="31ms")
            self.unsubscribe("tick")
            self.advance(to="40ms")
            self.subscribe("tick")
            self.next(until="100ms")
            self.unsubscribe("tick")
            self.next(until="100ms")

        return read

    programs = {f"late-{late}": Program(reader(late), publishes=[]) for late in (0, 1, 5 * MS)}
    programs["s"] = Program(sender, publishes=["tick"])
    return Federation(programs, network=Network(default=link("10ms")))


def promises() -> Federation:
    """A promise that is kept, and one that is broken: the program is told, nothing is sent, and it goes on."""

    def promising(self: Participant) -> None:
        for beginning in range(0, 90 * MS, 30 * MS):
            self.promise(until=beginning + 20 * MS)
            self.advance(to=beginning + 10 * MS)
            with pytest.raises(BrokenPromise, match="breaks its promise"):
                self.publish("news", b"too early")
            self.publish("news", b"in time", at=beginning + 20 * MS)
            self.advance(to=beginning + 30 * MS)

    def reader(self: Participant) -> None:
        for _ in self.messages(until="95ms"):
            self.publish("echo", str(self.now).encode())

    programs = {"p": Program(promising, subscribes=["echo"]), "r": Program(reader, subscribes=["news"])}
    return Federation(programs)


def period() -> Federation:
    """A plant with a period and a least latency, and a controller that answers."""

    def plant(self: Participant) -> None:
        state = 100
        while self.now < 80 * MS:
            self.publish("state", str(state).encode())
            for command in self.advance(by="10ms"):
                state += int(command.payload)

    def controller(self: Participant) -> None:
        for state in self.messages(until="85ms"):
            self.publish("command", str(-int(state.payload) // 3).encode())

    programs = {
        "plant": Program(plant, publishes=["state"], subscribes=["command"], period="10ms"),
        "controller": Program(controller, publishes=["command"], subscribes=["state"], latency_least="4ms"),
    }
    return Federation(programs)


def guests() -> Federation:
    """A guest who comes, one who brings another, and one whom nobody invites."""

    def host(self: Participant) -> None:
        self.advance(to="5ms")
        self.invite("early", at="20ms")
        for word in self.messages(until="100ms"):
            self.publish("talk", b"host: " + word.payload[:40])

    def early(self: Participant) -> None:
        assert self.now == 20 * MS
        self.invite("later", at="50ms")
        self.publish("talk", b"here")
        for word in self.messages(until="90ms"):
            self.publish("talk", b"early: " + word.payload[:40])

    def later(self: Participant) -> None:
        self.publish("talk", b"me too")
        self.next(until="70ms")

    def never(self: Participant) -> None:
        raise AssertionError

    programs = {
        "host": Program(host, subscribes=["talk"], controls=True),
        "early": Program(early, subscribes=["talk"], controls=True, guest=True),
        "later": Program(later, subscribes=["talk"], guest=True),
        "never": Program(never, guest=True),
    }
    return Federation(programs, network=Network(default=link(uniform("8ms", "12ms"))), seed=2)


def stop() -> Federation:
    """Case 9 of the lock: everybody ends at the earliest stop exactly, however far it might have gone."""

    def endless(self: Participant) -> None:
        while True:
            self.publish("tick", b"")
            self.advance(by="7ms")

    def guard(self: Participant) -> None:
        for number, _ in enumerate(self.messages()):
            if number == 4:
                self.stop(at=self.now + (10 if self.name == "g1" else 11) * MS)

    programs = {
        "t": Program(endless, publishes=["tick"]),
        "g1": Program(guard, publishes=[], subscribes=["tick"], controls=True),
        "g2": Program(guard, publishes=[], subscribes=["tick"], controls=True),
    }
    return Federation(programs, network=Network(default=link("2ms")))


def fixed_end() -> Federation:
    """A run with an end: programs that would go on for ever are ended by it."""

    def endless(self: Participant) -> None:
        while True:
            self.publish("tick", self.stream("noise").randbytes(4))
            self.advance(by="3ms")

    def reader(self: Participant) -> None:
        while True:
            self.next()

    programs = {"e": Program(endless, publishes=["tick"]), "r": Program(reader, publishes=[], subscribes=["tick"])}
    return Federation(programs, until="50ms", seed=3)


def clocks() -> Federation:
    """Everybody's clock is off in a way of its own, and everybody waits, promises and sends in its time."""

    def ticker(self: Participant) -> None:
        self.advance(to=0, clock="local")  # One of them is slow to begin with.
        while self.clock.now < 70 * MS and not self.ended:
            self.publish("tick", str((self.clock.now, self.now)).encode())
            self.promise(self.clock.now + 10 * MS, clock="local")
            self.advance(by="10ms", clock="local")

    def listener(self: Participant) -> None:
        self.peek(until="1ms", clock="local")
        while self.clock.now < 60 * MS:
            for tick in self.next(until=self.clock.now + 3 * MS, clock="local"):
                self.publish("echo", str(self.clock.local(tick.arrival)).encode(), self.clock.now + MS, clock="local")

    programs = {
        "fast": Program(ticker, period="10ms", subscribes=["echo"], clock=clock(drift="1234567ppb")),
        "slow": Program(ticker, period="10ms", subscribes=["echo"], clock=clock(offset="-3ms", drift="-12.345%")),
        "drunk": Program(
            ticker, period="5ms", subscribes=["echo"], clock=clock(wander="walk(3%, every=700us, within=40%)")
        ),
        "set": Program(
            listener,
            subscribes=["tick"],
            clock=clock(jumps=[{"at": "20ms", "by": "-7ms"}, {"at": "40ms", "by": "9ms"}]),
        ),
    }
    return Federation(programs, network=Network(default=link(uniform("1ms", "3ms"))), seed=3)


def nobody_can_come() -> Federation:
    """Case 8 of the lock: everybody waits, nothing is under way, so each is told that nothing will come."""

    def sender(self: Participant) -> None:
        self.publish("news", b"only")
        self.next(until="30ms")
        self.next()

    def reader(self: Participant) -> None:
        for _ in self.messages():
            self.publish("echo", b"heard")

    programs = {
        "s": Program(sender, subscribes=["echo"]),
        "r1": Program(reader, subscribes=["news"]),
        "r2": Program(reader, subscribes=["news", "echo"]),
    }
    return Federation(programs, network=Network(default=link("4ms")))


def leaving_early() -> Federation:
    """Some leave at once, some in the middle; what they sent still arrives, what they were sent doesn't."""

    def at_once(self: Participant) -> None:
        self.publish("news", b"goodbye", at="15ms")

    def midway(self: Participant) -> None:
        self.next(until="30ms")
        self.leave()

    def staying(self: Participant) -> None:
        while self.now < 60 * MS:
            self.publish("news", b"still here")
            self.advance(by="6ms")

    programs = {
        "a": Program(at_once),
        "m": Program(midway, subscribes=["news"]),
        "s": Program(staying, subscribes=["news"]),
    }
    return Federation(programs)


def large_payloads() -> Federation:
    """A megabyte each way: many reads and writes for one frame."""

    def sender(self: Participant) -> None:
        self.publish("picture", shake_128(b"picture").digest(2**20))
        self.publish("picture", bytes(2**20), at="3ms")
        for thumbnail in self.messages(until="30ms"):
            self.publish("picture", thumbnail.payload * 2)

    def reader(self: Participant) -> None:
        for picture in self.advance(to="10ms"):
            self.publish("thumbnail", picture.payload[: 2**19])

    programs = {"s": Program(sender, subscribes=["thumbnail"]), "r": Program(reader, subscribes=["picture"])}
    return Federation(programs)


def equal_arrivals() -> Federation:
    """Case 3 of the lock: order by send time, then name, then number."""

    def sender(delay_ms: int) -> Callable[[Participant], None]:
        def send(self: Participant) -> None:
            for beginning in range(0, 40 * MS, 10 * MS):
                self.advance(to=beginning + delay_ms * MS)
                self.publish("t", f"{self.name} first".encode())
                self.publish("t", f"{self.name} second".encode())

        return send

    def reader(self: Participant) -> None:
        for batch in iter(lambda: self.next(until="60ms"), []):
            self.publish("order", b", ".join(message.payload for message in batch))

    programs = {name: Program(sender(delay), publishes=["t"]) for name, delay in (("z", 0), ("y", 2), ("x", 2))}
    programs["r"] = Program(reader, publishes=["order"], subscribes=["t"])
    network = Network(default=link("3ms"), rules=(Rule(sender="z", link=link("5ms")),))
    return Federation(programs, network=network)


def sent_later() -> Federation:
    """Messages that are said now and sent later, out of order, beyond what is granted and beyond the end."""

    def sender(self: Participant) -> None:
        for later in (30, 10, 20, 10, 200):
            self.publish("t", str(later).encode(), at=self.now + later * MS)
        for _ in self.messages(until="40ms"):
            self.publish("t", b"again", at=self.now + 5 * MS)

    def reader(self: Participant) -> None:
        for message in self.messages():
            self.publish("u", message.payload, at=self.now + MS)

    programs = {"s": Program(sender, subscribes=["u"]), "r": Program(reader, subscribes=["t"])}
    return Federation(programs, until="100ms")


def far_ahead() -> Federation:
    """Case 14 of the lock: long latencies, short steps, so most steps need no answer from the server."""

    def stepper(self: Participant) -> None:
        total = 0
        while self.now < 150 * MS:
            if self.now % (10 * MS) == 0:
                self.publish("t", str(total).encode())
            total = total * 17 % 9973 + sum(len(message.payload) for message in self.advance(by="1ms"))

    programs = {name: Program(stepper, subscribes=["t"]) for name in ("a", "b")}
    return Federation(programs, network=Network(default=link("40ms")))


def running_ahead() -> Federation:
    """Those who find out what they send only by running: as far as they can see. One of them has a period."""

    def run_ahead(self: Participant) -> None:
        level = 100
        while True:
            known = self.peek(until=self.now + 7 * MS)
            if known == self.now:
                level += sum(int(message.payload) for message in self.next())
                continue
            first = -(-self.now // (2 * MS)) * 2 * MS
            for moment in range(first, known, 2 * MS):
                level = level * 31 % 1009
                if level % 3:
                    self.publish(self.name, str(level).encode(), at=moment)
            self.advance(to=known)

    def answer(self: Participant) -> None:
        for number, message in enumerate(self.messages()):
            self.publish("answer", str(int(message.payload) % 11).encode())
            if number == 40:
                self.stop(at=self.now + 20 * MS)

    heard = ["plain", "periodic", "answer"]
    programs = {
        "plain": Program(run_ahead, publishes=["plain"], subscribes=heard),
        "periodic": Program(run_ahead, publishes=["periodic"], subscribes=heard, period="2ms"),
        "answers": Program(answer, publishes=["answer"], subscribes=heard, controls=True),
    }
    return Federation(programs, network=Network(default=link(uniform("2ms", "6ms")), control_latency=3 * MS), seed=4)


def faulty() -> Federation:
    """Late boots, crashes, hangs, slowness and corruption, at times and after events."""

    def camera(self: Participant) -> None:
        for number in range(1, 30):
            self.advance(to=number * 5 * MS)
            self.publish("image", bytes([self.incarnation, number, 0, 0]))

    def planner(self: Participant) -> None:
        count = self.stable.get("count", 0)
        self.subscribe("echo")
        while not self.ended:
            for message in self.next():
                count += 1
                self.stable["count"] = count
                self.publish("go", message.payload + bytes([count % 256]))

    def arm(self: Participant) -> None:
        while not self.ended:
            batch = self.advance(by="10ms")
            self.publish("echo", b"".join(message.payload for message in batch))

    programs = {
        "camera": Program(camera, publishes=["image"], boot=uniform("1ms", "9ms")),
        "planner": Program(planner, publishes=["go"], subscribes={"image": "newest(3)"}, durable=["image"]),
        "arm": Program(arm, publishes=["echo"], subscribes=["go"], period="10ms"),
    }
    faults = (
        "30ms crash camera 20ms",
        "planner sends go 4: crash planner 15ms",
        "70ms hang planner 20ms",
        "95ms slow planner 3ms 20ms",
        "arm receives go 9: hang arm 13ms",
        "60ms dropout arm 20ms",
        "130ms crash camera",
    )
    network = Network(default=link("2ms", corruption=0.2))
    return Federation(programs, network=network, seed=5, until="150ms", faults=faults)


def emergency() -> Federation:
    """One calls an emergency stop; one goes on, one ends, one is down at that time, and one hangs."""

    def guard(self: Participant) -> None:
        self.advance(to="41ms")
        self.estop("gate open")
        self.advance(to="90ms")

    def careful(self: Participant) -> None:
        try:
            while True:
                self.publish("tick", b"")
                self.advance(by="7ms")
        except EmergencyStop as stopped:
            self.estop_done(f"brakes on because of {stopped.reason}")
            self.publish("braking", str(stopped.at).encode())
            self.advance(to="80ms")

    def careless(self: Participant) -> None:
        for _ in self.messages():
            self.publish("tock", b"")

    programs = {
        "guard": Program(guard, publishes=[], subscribes=["tick", "braking"]),
        "careful": Program(careful, publishes=["tick", "braking"], subscribes=["tock"]),
        "careless": Program(careless, publishes=["tock"], subscribes=["tick"]),
        "down": Program(careless, subscribes=["tick"]),
        "hung": Program(careful, subscribes=["tock"]),
    }
    faults = ("38ms crash down 20ms", "40ms hang hung 15ms")
    return Federation(programs, until="100ms", faults=faults, estop="6ms")


FEDERATIONS = (
    stepping,
    ping_pong,
    bad_network,
    outages,
    buffers,
    late_subscriptions,
    promises,
    period,
    guests,
    stop,
    faulty,
    emergency,
    fixed_end,
    nobody_can_come,
    leaving_early,
    large_payloads,
    equal_arrivals,
    sent_later,
    far_ahead,
    running_ahead,
    clocks,
)

# --- The ways ---

Way = Callable[[Federation, Path, tuple[Path, Path]], FederationOutcome]


def way(**settings: Any) -> Way:
    return lambda federation, _, __: run_over_sockets(federation, **settings)


def tls(**settings: Any) -> Way:
    return lambda federation, _, certificate: run_over_sockets(
        federation, "tls://127.0.0.1:0", certificate=certificate, **settings
    )


def unix(**settings: Any) -> Way:
    return lambda federation, folder, _: run_over_sockets(federation, f"unix://{folder}/socket", **settings)


WAYS: dict[str, Way] = {
    "tcp": way(token="secret"),
    "unix": unix(),
    "pair": way(paired=True),
    "tls": tls(),
    "asyncio-tcp": way(client=join_asyncio, token="secret"),
    "asyncio-unix": unix(client=join_asyncio),
    "asyncio-pair": way(client=join_asyncio, paired=True),
    "asyncio-tls": tls(client=join_asyncio),
    "crew-tcp": way(client=join_in_crews(1), token="secret"),
    "crew-tls": tls(client=join_in_crews(2)),
    "crew-pair-shaken": way(client=join_in_crews(2), paired=True, order=2),
    "crew-unix-of-threads": unix(client=join_in_crews(2)),
    "crew-in-small-steps": way(client=join_in_crews(3), steps=700_000),
    "another-order": way(order=1),
    "shaken": way(order=2, paired=True),
    "in-small-steps": way(steps=700_000, paired=True),
    "at-a-pace": way(pace=5.0),
}


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return make_certificate(tmp_path_factory.mktemp("certificate"))


@pytest.fixture(scope="module", autouse=True)
def _tidy() -> Iterator[None]:
    with nothing_left():
        yield


@cache
def reference(make: Callable[[], Federation]) -> FederationOutcome:
    outcome = run(make(), keep_journals=True)
    assert sum(map(len, outcome.journals.values())) > 4, "nothing happens in it"
    return outcome


def cases() -> Iterator[Any]:
    """Yield all pairs: for each federation a third of the ways, in turn, and the rest for `make soak`."""
    for place, make in enumerate(FEDERATIONS):
        for number, name in enumerate(WAYS):
            mark = pytest.mark.soak if (place + number) % 3 else pytest.mark.long
            yield pytest.param(make, name, id=f"{make.__name__}-{name}", marks=mark)


@pytest.mark.parametrize(("make", "name"), list(cases()))
def test_a_federation_is_the_same_in_every_way(
    make: Callable[[], Federation],
    name: str,
    tmp_path: Path,
    certificate: tuple[Path, Path],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if name.endswith("shaken"):
        monkeypatch.setenv(SHAKE, "5")
    if name.endswith("of-threads"):
        monkeypatch.setenv(THREADS, "1")
    found, expected = WAYS[name](make(), tmp_path, certificate), reference(make)
    assert found.times == expected.times
    assert found.dropped == expected.dropped
    assert found.digest == expected.digest


# --- The twin that must fail ---


def leaky() -> Federation:
    """Two workers take numbers from a counter that they share behind Worldline's back."""
    taken: list[str] = []

    def worker(self: Participant) -> None:
        for _ in range(6):
            taken.append(self.name)
            self.publish("job", str(len(taken)).encode())
            self.advance(by="10ms")

    programs = {name: Program(worker, publishes=["job"], subscribes=["job"]) for name in ("left", "right")}
    return Federation(programs)


def test_a_federation_that_leaks_is_found_out_by_its_digests(monkeypatch: pytest.MonkeyPatch) -> None:
    digests = set[bytes]()
    for shake in range(40):
        monkeypatch.setenv(SHAKE, str(shake))
        digests.add(run_over_sockets(leaky(), paired=True, order=shake).digest)
        if len(digests) > 1:
            return
    pytest.fail("40 runs under random delays gave one digest")
