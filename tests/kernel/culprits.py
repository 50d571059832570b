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
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar

from tests.liveness import is_running
from worldline.kernel import Entity, Simulation, process, receive
from worldline.model import MS, SECOND, US, ModelError, Network, UsageError, link

Waiting = Iterator[Any]


class Gossip(Entity):
    """Leaks: all of its kind in one process share what they hear, and act on it."""

    heard: ClassVar[list[str]] = []

    def start(self) -> None:
        self.heard.clear()
        self.schedule("listen", delay=US)
        self.schedule("tell", delay=2 * US)

    def on_listen(self, _: None) -> None:
        self.heard.append(self.name)

    def on_tell(self, _: None) -> None:
        self.send("a", "news", len(self.heard))

    def on_news(self, _: int) -> None:
        pass


def gossips() -> Simulation:
    """A model that isn't deterministic: what happens depends on who shares a process."""
    simulation = Simulation(network=Network(default=link("1us")))
    for name in "abc":
        simulation.add(name, Gossip())
    return simulation


class Hasty(Entity):
    """Cancels one timer after the other, and has a last event soon."""

    def start(self) -> None:
        for number in range(800):
            self.cancel(self.schedule("late", delay=SECOND + number))
        self.schedule("early", delay=US)

    def on_late(self, _: None) -> None:
        raise AssertionError("it was canceled")

    def on_early(self, _: None) -> None:
        self.record("early", self.now)


def hasty() -> Simulation:
    """More canceled events than one worker keeps."""
    simulation = Simulation(network=Network(default=link("1us")))
    simulation.add("a", Hasty())
    simulation.add("b", Hasty())
    return simulation


def leave_note(me: Entity, folder: str, name: str = "") -> None:
    """Write down in which process an entity is."""
    written = Path(folder, f"{name or me.name}.part")
    written.write_text(str(os.getpid()))
    written.rename(Path(folder, name or me.name))  # So that a note that is there is whole.


class Peer(Entity):
    """Plays ball with another, for ever if nobody stops it, and leaves a note which process it was in."""

    def __init__(self, other: str, folder: str = "") -> None:
        self.other = other
        self.folder = folder
        self.caught = 0

    def start(self) -> None:
        if self.folder:
            leave_note(self, self.folder)
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

    def on_fall(self, _: None) -> None:
        raise ValueError("pushed from outside")


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


class OwnEnd(BaseException):
    """What no handler of exceptions catches."""


def _exit_later() -> Waiting:
    yield 5 * US
    sys.exit("enough")


def _interrupted_later() -> Waiting:
    yield 5 * US
    raise KeyboardInterrupt


def _create(me: Accident) -> None:
    me.create(Accident("divide", me.now + US), "child")


def _processed(me: Accident) -> None:
    me.process(_sleep_and_raise(me))


ACCIDENTS: dict[str, Callable[[Accident], Any]] = {
    "divide": _divide,
    "unpicklable error": lambda _: _raise(Unprintable()),
    "error without words": lambda _: _raise(Silent()),
    "odd usage": lambda _: _raise(UsageError("used in an odd way", advice="don't", lock=threading.Lock())),
    "error with a lock in it": lambda _: _raise(ModelError("it went wrong", lock=threading.Lock())),
    "child": _create,
    "process": _processed,
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
    "itself as receiver": lambda me: me.send(me, "ball"),
    # What ends a process.
    "exit": lambda me: sys.exit(3),
    "exit without a word": lambda me: sys.exit(),
    "interrupt": lambda me: _raise(KeyboardInterrupt()),
    "end of a generator": lambda me: _raise(GeneratorExit()),
    "an exception of its own": lambda me: _raise(OwnEnd("of its own")),
    "exit in a process": lambda me: me.process(_exit_later()),
    "interrupt in a process": lambda me: me.process(_interrupted_later()),
    "_exit": lambda me: os._exit(7),
    "_exit with 0": lambda me: os._exit(0),
    "kill": lambda me: os.kill(os.getpid(), signal.SIGKILL),
    "abort": lambda me: os.abort(),
    # What makes one more of it.
    "fork": lambda me: _fork(),
    "fork that exits": lambda me: _fork(lambda: os._exit(0)),
    "fork that exits as programs do": lambda me: _fork(lambda: sys.exit(3), 3),
    "fork that raises": lambda me: _fork(lambda: 1 / 0, 1),
    # What keeps a process from ending.
    "spin": lambda me: _spin(me),
    "stop": lambda me: _stop(me),
}


def _say(word: str) -> None:
    """Say something, in one piece with its line's end, whoever else is talking."""
    os.write(1, f"{word} {os.getpid()}\n".encode())


def _fork(act: Callable[[], Any] | None = None, code: int = 0) -> None:
    """Fork, and wait for the child if it doesn't come back."""
    child = os.fork()
    if child == 0 and act is not None:
        act()
    if child and act is not None:
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == code


def _spin(_: Accident) -> None:
    _say("spins")
    while True:
        pass


def _stop(_: Accident) -> None:
    _say("stops")
    os.kill(os.getpid(), signal.SIGSTOP)


def iter_of(*values: Any) -> Waiting:
    yield from values


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


class Parent(Entity):
    """Its child says two things at once to somebody else."""

    def start(self) -> None:
        self.create(Child(), "child")


class Child(Entity):
    def start(self) -> None:
        for word in ("first", "second", "third"):
            self.send("listener", "word", word)


class Listener(Entity):
    def __init__(self) -> None:
        self.heard: list[str] = []

    def on_word(self, word: str) -> None:
        self.heard.append(word)


def family() -> Simulation:
    """Several messages of one created entity arrive at one moment: they must keep their order."""
    simulation = Simulation()
    for name in ("p", "q", "r"):
        simulation.add(name, Parent())
    simulation.add("listener", Listener())
    return simulation


def from_outside() -> Simulation:
    """Two fail at one moment: one by its own timer, one by a message from outside, which comes after all others."""
    simulation = accidents(("a", "nothing", 0, 0), ("z", "divide", 5 * MS, 0))
    simulation.send("a", "fall", at=5 * MS)
    return simulation


class Faller(Entity):
    """Falls in an event of its own without a delay, at the start or when it is pushed."""

    def __init__(self, *, pushed: bool) -> None:
        self.pushed = pushed

    def start(self) -> None:
        if not self.pushed:
            self.on_push(None)

    def on_push(self, _: None) -> None:
        self.schedule("fall", delay=0)

    def on_fall(self, _: None) -> None:
        raise ValueError("fallen")


def from_outside_at_once() -> Simulation:
    """As before, but at time 0, and each needs one more event to fail: the first by name is the last to do so."""
    simulation = Simulation(declared_only=True)
    simulation.add("a", Faller(pushed=True))
    simulation.add("z", Faller(pushed=False))
    simulation.send("a", "push", at=0)
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


class Homebound:
    """Can be pickled, and back again where it comes from, but nowhere else."""

    def __reduce__(self) -> Any:
        return _come_home, (os.getpid(),)


def _come_home(pid: int) -> Homebound:
    if os.getpid() != pid:
        raise ImportError("this isn't home")
    return Homebound()


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
    leave_note(me, folder)
    yield receive()


def linger(me: Entity, folder: str) -> Waiting:
    """Be busy, in a worker that hardly ever looks up."""
    leave_note(me, folder)
    while True:
        yield US


def idle_and_busy(folder: str) -> Simulation:
    """One waits for a message, the other works for ever; they are far apart."""
    simulation = Simulation(network=Network(default=link("1s")))
    simulation.add("idle", process(await_for_ever, folder))
    simulation.add("busy", process(linger, folder))
    return simulation


class Witness(Entity):
    """Sees a worker die, in three roles; see `slow_parent`."""

    def __init__(self, role: str, folder: str, parent: int) -> None:
        self.role = role
        self.folder = folder
        self.parent = parent

    def start(self) -> None:
        # This worker won't say how far it is: its first word to the parent is its last.
        import_module("worldline.processes.status_timer").LOOK_EVERY_S = 1e9  # type: ignore[attr-defined]
        leave_note(self, self.folder)
        self.schedule("act", at=MS if self.role == "busy" else 600 * MS)
        self.schedule("act", at=700 * MS)

    def on_act(self, _: None) -> None:
        if self.role == "victim":
            os.kill(self.parent, signal.SIGSTOP)
            os.kill(os.getpid(), signal.SIGKILL)
        if self.role == "busy" and self.now == MS:
            for _ in range(1_000):  # Not for ever: the other one may well wait until the parent lets it go.
                if self.has_gone("b"):
                    break
                time.sleep(0.001)
            leave_note(self, self.folder, "a, after all")  # In this very event: before the next one it looks up.

    def has_gone(self, name: str) -> bool:
        note = Path(self.folder, name)
        return note.exists() and not is_running(int(note.read_text()))


def slow_parent(folder: str) -> Simulation:
    """Worker 2 dies, worker 1 notices and ends; worker 0 looks up only then, and sees that both are gone.

    The parent is stopped meanwhile, as if it had a slow day. Whoever started it has to wake it, once worker 0 is gone.
    """
    simulation = Simulation(network=Network(default=link("1s")))
    for name, role in (("a", "busy"), ("b", "idle"), ("c", "victim")):
        simulation.add(name, Witness(role, folder, os.getpid()))
    return simulation
