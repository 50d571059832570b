"""Agents that go wrong, each in one way; here and not beside their tests because workers load them."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from worldline.model.errors import UsageError
from worldline.spacetime import (
    Agent,
    AgentWrapper,
    Boundary,
    Channel,
    ForwardSimulation,
    LambdaField,
    Minkowski,
    below,
    current,
)


class UnsendableError(Exception):
    """An error with something in it that can't leave the process."""

    def __init__(self) -> None:
        super().__init__("there is a lock in me")
        self.lock = threading.Lock()


class TwoPartsError(Exception):
    """An error that pickle can't make again: it is made of two things, and keeps one."""

    def __init__(self, one: str, other: str) -> None:
        super().__init__(f"{one} and {other}")


class MuteError(Exception):
    """An error whose text can't be had."""

    def __str__(self) -> str:
        raise RuntimeError("that is broken too")


def _divide(_: Agent) -> None:
    print(1 // 0)


def _raise(error: BaseException) -> Callable[[Agent], None]:
    def fail(_: Agent) -> None:
        raise error

    return fail


def _send_too_late(agent: Agent) -> None:
    channel = Channel(agent, agent)
    channel.close()
    channel.send("hear")


def _spin() -> None:
    os.write(1, b"spins\n")
    while True:
        pass


def _stop() -> None:
    os.write(1, b"stops\n")
    os.kill(os.getpid(), signal.SIGSTOP)


ACCIDENTS: dict[str, Callable[[Agent], Any]] = {
    "divide": _divide,
    "assert": _raise(AssertionError()),
    "odd usage": _raise(UsageError("this is odd", what=threading.Lock())),
    "unsendable": lambda agent: _raise(UnsendableError())(agent),
    "two parts": lambda agent: _raise(TwoPartsError("one", "other"))(agent),
    "mute": lambda agent: _raise(MuteError())(agent),
    "exit": lambda _: sys.exit(3),
    "exit with a word": lambda _: sys.exit("enough"),
    "interrupt": lambda agent: _raise(KeyboardInterrupt())(agent),
    "end of a generator": lambda agent: _raise(GeneratorExit())(agent),
    "closed channel": _send_too_late,
    "superluminal": lambda agent: setattr(agent, "velocity", (2.0, 3.0)),
    "into the past": lambda agent: agent.jump_to((0.0, 0.0)),
    "unknown method": lambda agent: agent.nothing_like_that(),  # type: ignore[attr-defined]
    "itself": lambda agent: agent.other.send("hear", agent),  # type: ignore[attr-defined]
    "_exit": lambda _: os._exit(7),
    "_exit with 0": lambda _: os._exit(0),
    "kill": lambda _: os.kill(os.getpid(), signal.SIGKILL),
    "spin": lambda _: _spin(),
    "stop": lambda _: _stop(),
}


class Person(Agent):
    """Talks to the other one for ever, and may have an accident at some time."""

    other: Channel
    heard = 0

    def hear(self, _: Any = None) -> None:
        self.heard += 1
        if self.other.is_open:
            self.other.send(Person.hear)

    def has(self, what: str) -> None:
        ACCIDENTS[what](self)

    def leave_note(self, folder: str) -> None:
        """Write down in which process this is."""
        written = Path(folder, f"{self.name}.part")
        written.write_text(str(os.getpid()))
        written.rename(Path(folder, self.name))  # So that a note that is there is whole.


def people(
    executor: Any = "inline", *, count: int = 4, folder: Path | None = None, far: float = 1.0, seed: int = 0
) -> tuple[ForwardSimulation, list[Person]]:
    """Return a simulation of people in a row, each of whom talks to the next one."""
    simulation = ForwardSimulation(Minkowski(2), LambdaField(R=(0.5, 0.0)), executor=executor, seed=seed)
    with simulation:
        row = [Person() for _ in range(count)]
        for place, person in enumerate(row):
            person.name = "abcdefgh"[place]
            person.jump_to((0.0, far * place))
        for person, other in zip(row, [*row[1:], row[0]], strict=True):
            person.other = Channel(person, other)
            person.other.send("hear")
            if folder is not None:
                person.after(0.125, "leave_note", str(folder))
    return simulation, row


def accident(
    *accidents: tuple[str, str, float], executor: Any = "inline", folder: Path | None = None
) -> ForwardSimulation:
    """Return a simulation in which each (name, what, when) happens."""
    simulation, row = people(executor, folder=folder)
    with simulation:
        for name, what, when in accidents:
            row["abcdefgh".index(name)].after(when, "has", what)
    return simulation


class Endless(Agent):
    """Is busy for ever, in lots of small events; or has nothing to do."""

    def work(self, folder: str, is_first: bool = True) -> None:
        if is_first:
            Person.leave_note(self, folder)  # type: ignore[arg-type]
        self.after(1e-6, "work", folder, False)


def endless(folder: str, executor: Any = "processes(2)") -> ForwardSimulation:
    """Return a simulation that takes days: two that don't know each other are busy."""
    simulation = ForwardSimulation(Minkowski(2), LambdaField(R=(0.5, 0.0)), executor=executor)
    with simulation:
        for place, name in enumerate("ab"):
            agent = Endless()
            agent.name = name
            agent.jump_to((0.0, float(place)))
            agent.after(0.1, "work", folder)
    return simulation


# -- Waiting for each other


class Walker(Agent):
    """Goes to meet another one."""

    to: Channel


def circle(executor: Any, count: int = 3) -> ForwardSimulation:
    """Return a simulation in which agents meet at a point, and lambdas between them take no time."""
    simulation = ForwardSimulation(Minkowski(3), LambdaField(), executor=executor)
    with simulation:
        walkers = [Walker() for _ in range(count)]
        places = ((1.0, 0.0), (-1.0, 0.0), (0.0, 1.0), (0.0, -1.0))
        for walker, (x, y) in zip(walkers, places, strict=False):
            walker.jump_to((0.0, x, y))
            walker.velocity = simulation.space.velocity(-x / 2, -y / 2)
        for walker, other in zip(walkers, [*walkers[1:], walkers[0]], strict=True):
            walker.to = Channel(walker, other, blind=True)
    return simulation


# -- States


class Holder(Agent):
    """Has an attribute of some kind."""

    thing: Any

    def swap(self) -> None:
        self.thing = {"now": self.position.t, "in": [1, (2, 3)]}
        self.late = "new"
        del self.early

    def gather(self) -> None:
        """Get hold of things that can't leave the process, and of others."""
        self.plain = [1, 2]
        self.lock = threading.Lock()
        self.function = lambda: 0


class Slotted(Agent):
    """Has slots, and a dict beside them."""

    __slots__ = ("count", "unset")

    def __init__(self) -> None:
        self.count = 1

    def grow(self) -> None:
        self.count += 1
        self.more = "yes"


class Mother(Agent):
    """Makes children in events, and sends them away."""

    def bear(self, number: int) -> None:
        for place in range(number):
            child = Child()
            child.name = f"child {place}"
            child.velocity = self.space.velocity(0.1 * place)
            child.to_mother = Channel(child, self)
            child.after(1.0, "grow")
        self.children = number

    def hear(self, what: str) -> None:
        self.heard = [*getattr(self, "heard", []), what]


class Child(Agent):
    to_mother: Channel
    age = 0

    def grow(self) -> None:
        self.age += 1
        self.to_mother.send("hear", self.name)
        if self.age < 3:
            self.after(1.0, "grow")


class Counter:
    """An object that knows nothing of agents; its agent is a wrapper."""

    def __init__(self) -> None:
        self.count = 0

    def add(self, number: int) -> None:
        self.count += number
        current().after(1.0, "add", number)


def counters(executor: Any) -> tuple[ForwardSimulation, list[Counter], list[AgentWrapper]]:
    simulation = ForwardSimulation(Minkowski(2), executor=executor)
    with simulation:
        wrapped = [Counter(), Counter()]
        wrappers = [AgentWrapper(counter) for counter in wrapped]
        for place, wrapper in enumerate(wrappers):
            wrapper.jump_to((0.0, float(place)))
            wrapper.after(1.0, Counter.add, place + 1)
    return simulation, wrapped, wrappers


# -- Boundaries


def fails_there(agent: Person, boundary: Boundary) -> None:
    raise ValueError(f"{agent.name} is at {boundary}")


def wall(action: Any, executor: Any) -> ForwardSimulation:
    """Return a simulation in which somebody runs into a wall that does something of its own."""
    simulation = ForwardSimulation(Minkowski(2), LambdaField(R=(0.5, 0.0)), below(2, 1, 2.0, action), executor)
    with simulation:
        for name, speed in (("a", 0.5), ("b", 0.0)):
            person = Person()
            person.name = name
            person.velocity = simulation.space.velocity(speed)
            person.after(1.0, "hear")
            person.other = Channel(person, person)
    return simulation
