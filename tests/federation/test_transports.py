"""One suite for every way to run a federation: what happens in one process happens over every kind of socket.

Each federation of the table is run by the in-process runner, which is the reference, and then in every other way.
Digest, times and losses must be the same. A federation that leaks must be found out by that very comparison.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tests.federation.test_inprocess_strands import acting
from tests.federation.transports import join_asyncio, join_in_crews, make_certificate, nothing_left, run_over_sockets
from tests.lock.worlds import make_world
from worldline import (
    MS,
    EmergencyStop,
    Federation,
    Network,
    Participant,
    Program,
    clock,
    link,
    run,
    uniform,
)
from worldline.federation.environment import SHAKE
from worldline.federation.inprocess.strand import THREADS
from worldline.federation.outcome import FederationOutcome

# --- The federations. All of simulated time is below 200 ms, so that running at a pace takes no time to speak of. ---


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


def drawn(seed: int) -> Federation:
    """Return one that the lock's own tests draw: all operations, kinds of links and buffers, guests, stops, ends."""
    world = make_world(Random(seed))
    programs = {name: acting(world, name) for name in world.members}
    return Federation(programs, network=world.plan.network, seed=world.plan.seed, until=world.plan.end)


SEEDS = (12, 63, 65, 68, 83, 103, 106, 112, 151, 158, 179, 182)  # Much happens there, and every guest is invited.
FEDERATIONS: dict[str, Callable[[], Federation]] = {
    **{each.__name__: each for each in (period, guests, faulty, emergency, far_ahead, running_ahead, clocks)},
    **{f"drawn-{seed}": partial(drawn, seed) for seed in SEEDS},
}

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
def reference(federation: str) -> FederationOutcome:
    outcome = run(FEDERATIONS[federation](), keep_journals=True)
    assert sum(map(len, outcome.journals.values())) > 4, "nothing happens in it"
    return outcome


def cases() -> Iterator[Any]:
    """Yield all pairs: for each federation a fifth of the ways, in turn, and the rest for `make soak`."""
    for place, federation in enumerate(FEDERATIONS):
        for number, name in enumerate(WAYS):
            mark = pytest.mark.soak if (place + number) % 5 else pytest.mark.long
            yield pytest.param(federation, name, marks=mark)


@pytest.mark.parametrize(("federation", "name"), list(cases()))
def test_a_federation_is_the_same_in_every_way(
    federation: str, name: str, tmp_path: Path, certificate: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    if name.endswith("shaken"):
        monkeypatch.setenv(SHAKE, "5")
    if name.endswith("of-threads"):
        monkeypatch.setenv(THREADS, "1")
    found, expected = WAYS[name](FEDERATIONS[federation](), tmp_path, certificate), reference(federation)
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
