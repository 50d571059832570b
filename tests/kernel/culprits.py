"""Models that go wrong, each in one way.

They are here and not beside their tests because every worker loads the module that a model comes from.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from worldline.kernel import Entity, Simulation, process, receive
from worldline.model import MS, SECOND, US, ModelError, Network, link

Waiting = Iterator[Any]


class Peer(Entity):
    """Plays ball with another, for ever if nobody stops it, and leaves a note which process it was in."""

    def __init__(self, other: str, folder: str = "") -> None:
        self.other = other
        self.folder = folder
        self.caught = 0

    def start(self) -> None:
        if self.folder:
            written = Path(self.folder, f"{self.name}.part")
            written.write_text(str(os.getpid()))
            written.rename(Path(self.folder, self.name))  # So that a note that is there is whole.
        if self.name < self.other:
            self.send(self.other, "ball")

    def on_ball(self, _: None) -> None:
        self.caught += 1
        self.send(self.other, "ball")


def players(folder: str = "", pairs: int = 1, network: Network | None = None) -> Simulation:
    """Play for ever: a0 with b0, a1 with b1, and so on."""
    simulation = Simulation(network=network or Network(default=link("1us")))
    for number in range(pairs):
        simulation.add(f"a{number}", Peer(f"b{number}", folder))
        simulation.add(f"b{number}", Peer(f"a{number}", folder))
    return simulation


class Accident(Entity):
    """Does something at a time: calls a function by its name, with itself."""

    def __init__(self, what: str, at: int, busy: int = 0) -> None:
        self.what = what
        self.at = at
        self.busy = busy

    def start(self) -> None:
        self.schedule("go", at=self.at)
        for number in range(self.busy):  # Work that comes before, and takes real time.
            self.schedule("work", number, at=self.at * number // self.busy)

    def on_work(self, _: int) -> None:
        pass

    def on_ball(self, _: None) -> None:
        pass

    def on_go(self, _: None) -> None:
        ACCIDENTS[self.what](self)


class Unprintable(Exception):  # noqa: N818
    """What a model raises needn't be able to travel: this one holds a lock."""

    def __init__(self) -> None:
        super().__init__("it can't be pickled")
        self.lock = threading.Lock()


class Silent(Exception):  # noqa: N818
    """It can't even be written down."""

    def __str__(self) -> str:
        raise RuntimeError("no words")


def _divide(_: Accident) -> None:
    1 / 0  # noqa: B018


def _raise(error: BaseException) -> None:
    raise error


def _sleep_and_raise(me: Accident) -> Waiting:
    yield 5 * US
    raise KeyError(me.name)


def _create(me: Accident) -> None:
    me.create(Accident("divide", me.now + US), "child")


def _processed(me: Accident) -> None:
    me.process(_sleep_and_raise(me))


class Entangled:
    """Can be encoded as text, as far as msgpack sees, but not pickled."""

    def __reduce__(self) -> Any:
        raise TypeError("entangled things stay together")


ACCIDENTS: dict[str, Callable[[Accident], Any]] = {
    "divide": _divide,
    "unpicklable error": lambda _: _raise(Unprintable()),
    "error without words": lambda _: _raise(Silent()),
    "error with a lock in it": lambda _: _raise(ModelError("it went wrong", lock=threading.Lock())),
    "child": _create,
    "process": _processed,
    "generator": _sleep_and_raise,
    "assert": lambda me: _raise(AssertionError("nobody may be here")),
    "nothing": lambda me: None,
    # What a model may not do.
    "negative delay": lambda me: me.schedule("x", delay=-1),
    "past": lambda me: me.schedule("x", at=me.now - US),
    "no delay": lambda me: me.send("b", "ball", delay=0),
    "into the past": lambda me: me.send("b", "ball", delay=-5),
    "below the minimum": lambda me: me.send("b", "ball", delay="999ns"),
    "below the minimum of the link": lambda me: me.send("c", "ball", delay=4 * MS),
    "unknown": lambda me: me.send("bb", "ball"),
    "unknown child": lambda me: me.send("b/7", "ball"),
    "unknown child of a child": lambda me: me.send("b/7/1", "ball"),
    "no handler": lambda me: me.send("b", "racket"),
    "own topic without handler": lambda me: me.schedule("racket", delay=0),
    "after the last time": lambda me: me.send("b", "ball", delay=2**60 - 1),
    "float delay": lambda me: me.send("b", "ball", delay=0.5),
    "lambda": lambda me: me.send("b", "ball", lambda: None),
    "lock": lambda me: me.send("b", "ball", threading.Lock()),
    "set with a lock": lambda me: me.send("b", "ball", [threading.Lock()]),
    "itself as payload": lambda me: me.send("b", "ball", me),
    "recorded lock": lambda me: me.record("x", threading.Lock()),
    "two children of one name": lambda me: [me.create(Peer("b"), "kid"), me.create(Peer("b"), "kid")],
    "not an entity": lambda me: me.create(object()),
    "odd yield": lambda me: me.process(iter_of(0.5)),
    "burst": lambda me: me.process(forever()),
    # What ends a process.
    "exit": lambda me: sys.exit(3),
    "interrupt": lambda me: _raise(KeyboardInterrupt()),
    "_exit": lambda me: os._exit(7),
    "_exit with 0": lambda me: os._exit(0),
    "kill": lambda me: os.kill(os.getpid(), signal.SIGKILL),
    "abort": lambda me: os.abort(),
}


def iter_of(*values: Any) -> Waiting:
    yield from values


def forever() -> Waiting:
    while True:
        yield 0


def accident(what: str, at: int = 3 * MS, busy: int = 0) -> Simulation:
    """Something happens to a; b and c are there, on links of 1us and 5ms."""
    simulation = Simulation(network=Network(default=link("1us")))
    simulation.add("a", Accident(what, at, busy))
    simulation.add("b", Accident("nothing", 0))
    simulation.add("c", Accident("nothing", SECOND))
    simulation.connect("a", "c", "5ms")
    return simulation


def unlinked(sender: str = "a", receiver: str = "c") -> Simulation:
    """Two talk although no link is declared between them."""
    simulation = Simulation(declared_only=True)
    for name in ("a", "b", "c"):
        simulation.add(name, Talker(receiver if name == sender else ""))
    simulation.connect("a", "b", "1us")
    simulation.connect("b", "c", "1us")
    return simulation


class Talker(Entity):
    def __init__(self, to: str) -> None:
        self.to = to

    def start(self) -> Waiting:
        yield 7 * US
        if self.to:
            self.send(self.to, "ball")


def accidents(*planned: tuple[str, str, int, int]) -> Simulation:
    """Several things happen, on islands: each is (name, what, when, how much is done before it)."""
    simulation = Simulation(declared_only=True)
    for name, what, at, busy in planned:
        simulation.add(name, Accident(what, at, busy))
    return simulation


class Holder(Entity):
    """Has an attribute."""

    def __init__(self, thing: Any, folder: str = "") -> None:
        self.thing = thing
        self.folder = folder

    def start(self) -> None:
        if self.folder:
            Path(self.folder, "started").touch()


class Trap:
    """Can be pickled, but not back again."""

    def __reduce__(self) -> Any:
        return _spring, ()


def _spring() -> None:
    raise ValueError("the trap has sprung")


class Gatherer(Entity):
    """Gets hold of things in the run that can't leave their process."""

    def start(self) -> None:
        self.lock = threading.Lock()
        self.plain = [1, 2]
        self.function = lambda: None
        self.timer = self.schedule("done", delay=5)

    def on_done(self, _: None) -> None:
        self.plain.append(self.now)


def await_for_ever(me: Entity, folder: str) -> Waiting:
    """Be idle, in a worker that waits for the others."""
    Path(folder, me.name).write_text(str(os.getpid()))
    yield receive()


def linger(me: Entity, folder: str) -> Waiting:
    """Be busy, in a worker that hardly ever looks up."""
    Path(folder, me.name).write_text(str(os.getpid()))
    while True:
        yield US


def idle_and_busy(folder: str) -> Simulation:
    """One waits for a message, the other works for ever; they are far apart."""
    simulation = Simulation(network=Network(default=link("1s")))
    simulation.add("idle", process(await_for_ever, folder))
    simulation.add("busy", process(linger, folder))
    return simulation


def busy_for(seconds: float) -> None:
    """Take real time, without sleeping through a signal."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pass
