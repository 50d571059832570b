"""What goes wrong in a worker: it is said who, where and why, as if there were one process; and nothing of it stays."""

from __future__ import annotations

import re
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.federation.transports import eventually
from tests.soaking import later
from tests.spacetime.culprits import (
    ACCIDENTS,
    Child,
    Counter,
    Holder,
    Mother,
    Person,
    Slotted,
    accident,
    circle,
    counters,
    endless,
    fails_there,
    people,
    wall,
)
from worldline.kernel import processes
from worldline.kernel.model import LeftBehind
from worldline.model import ConfigurationError, ModelError, UsageError, WorldlineError
from worldline.model.errors import Stuck
from worldline.spacetime import Agent, AgentWrapper, Channel, ForwardSimulation, LambdaField, Minkowski

pytestmark = pytest.mark.once

DEADLY = ("_exit", "_exit with 0", "kill", "spin", "stop")
UNTIL = 8.0


def failure_of(simulation: ForwardSimulation, until: float = UNTIL) -> WorldlineError:
    with pytest.raises(WorldlineError) as raised:
        simulation.run(until=until)
    return raised.value


def told(error: WorldlineError) -> tuple[Any, ...]:
    """Return all that an error says, without the addresses of objects."""
    return type(error), re.sub(r" at 0x[0-9a-f]+", "", str(error)), error.participant


# -- What the model does wrong


@pytest.mark.parametrize("what", [what for what in ACCIDENTS if what not in DEADLY])
def test_an_error_says_the_same_on_every_executor(what: str) -> None:
    expected = told(failure_of(accident(("c", what, 3.0))))
    assert expected[2] == "c"
    assert told(failure_of(accident(("c", what, 3.0), executor=processes(2)))) == expected


@pytest.mark.parametrize("workers", [1, 2])
def test_the_trace_of_an_error_comes_along_as_a_note(workers: int) -> None:
    error = failure_of(accident(("c", "divide", 3.0), executor=processes(workers)))
    (note,) = error.__notes__
    assert note.startswith("Traceback (most recent call last):")
    assert note.endswith("ZeroDivisionError: integer division or modulo by zero")
    assert "culprits.py" in note
    assert "in _divide" in note


@pytest.mark.parametrize(
    ("accidents", "first"),
    [
        ([("a", "divide", 5.0), ("d", "assert", 4.75), ("b", "divide", 6.0)], "d"),
        ([("d", "divide", 5.0), ("b", "assert", 5.0), ("c", "exit", 5.0)], "b"),
        ([(name, "divide", 7.0) for name in "dcba"], "a"),
    ],
)
def test_of_several_failures_the_first_in_the_lab_is_told(accidents: list[tuple[str, str, float]], first: str) -> None:
    expected = told(failure_of(accident(*accidents)))
    assert expected[2] == first
    for placement in ({"a": 0, "b": 1, "c": 2, "d": 0}, {"a": 2, "b": 2, "c": 1, "d": 0}):
        executor = processes(3, placement=placement)
        assert told(failure_of(accident(*accidents, executor=executor))) == expected


def test_a_failure_ends_workers_that_would_go_on_for_ever(tmp_path: Path) -> None:
    simulation = endless(str(tmp_path), processes(3, placement={"a": 0, "b": 1, "Person-1": 2}))
    with simulation:
        Person().after(0.2, "has", "divide")
    assert told(failure_of(simulation, 1e6))[2] == "Person-1"
    check_gone(tmp_path)


@pytest.mark.parametrize("count", [3, *later([2, 4])])
def test_a_circle_across_workers_is_named_as_inline(count: int) -> None:
    expected = failure_of(circle("inline", count))
    assert isinstance(expected, Stuck)
    names = [f"Walker-{number}" for number in range(1, count + 1)]
    assert sorted(expected.facts["agents"]) == names
    for executor in (processes(2), processes(count, placement={name: place for place, name in enumerate(names)})):
        found = failure_of(circle(executor, count))
        assert told(found) == told(expected)
        assert found.facts == expected.facts


# -- Workers that are gone


def pids(folder: Path) -> list[int]:
    """Return the processes that have left a note."""
    return sorted({int(note.read_text()) for note in folder.iterdir() if not note.name.endswith(".part")})


def check_gone(folder: Path) -> None:
    """Wait until nothing is left of the processes that have left a note, not even a zombie."""
    assert pids(folder)
    eventually(lambda: not any(Path(f"/proc/{pid}").exists() for pid in pids(folder)))


# -- What can't be sent to a worker


def local_class() -> type[Agent]:
    class Local(Agent):
        """A class that exists only in this call."""

    return Local


class Trap:
    """Something that raises what unexpected participant when it is packed."""

    def __reduce__(self) -> Any:
        raise LookupError("the trap has sprung")


def holder_of(thing: Callable[[], Any], executor: Any = "processes(2)") -> ForwardSimulation:
    simulation = ForwardSimulation(Minkowski(2), executor=executor)
    with simulation:
        first, second = Holder(), Holder()
        first.thing, second.thing = 0, thing()
    return simulation


@pytest.mark.parametrize(
    ("thing", "reason"),
    [
        (lambda: lambda: 0, "lambda"),
        (threading.Lock, "cannot pickle '_thread.lock' object"),
        (lambda: (number for number in range(3)), "cannot pickle 'generator' object"),
        (lambda: {"deep": [{"down": threading.Lock()}]}, "cannot pickle '_thread.lock' object"),
        (lambda: local_class(), "local_class.<locals>.Local"),
        (Holder, "Holder-3 is an agent, and can't be copied or sent"),
        (lambda: [Holder()], "Holder-3 is an agent, and can't be copied or sent"),
        (Trap, "the trap has sprung"),
    ],
)
def test_an_attribute_that_cannot_be_sent_is_refused(thing: Callable[[], Any], reason: str) -> None:
    error = failure_of(holder_of(thing))
    assert isinstance(error, ConfigurationError)
    assert str(error).startswith("Holder-2: its attribute thing can't be sent to a worker: ")
    assert reason in str(error)
    assert "channels to other agents" in str(error)


def test_a_class_inside_a_function_is_refused() -> None:
    simulation = ForwardSimulation(Minkowski(2), executor="processes(2)")
    with simulation:
        local_class()()
    error = failure_of(simulation)
    assert isinstance(error, ConfigurationError)
    assert "Local-1: its class can't be sent to a worker" in str(error)
    assert "local_class.<locals>.Local" in str(error)


def test_a_class_that_workers_cannot_import_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    module = type(sys)("only_here")
    monkeypatch.setitem(sys.modules, "only_here", module)
    exec("from worldline.spacetime import Agent\nclass Homebound(Agent): pass", vars(module))
    simulation = ForwardSimulation(Minkowski(2), executor="processes(2)")
    with simulation:
        vars(module)["Homebound"]()
    error = failure_of(simulation)
    assert isinstance(error, ConfigurationError)
    assert "a worker can't load the agents: No module named 'only_here'" in str(error)


class Bomb:
    """Something that goes off when it is unpacked."""

    def __reduce__(self) -> Any:
        return _go_off, ()


def _go_off() -> None:
    raise ZeroDivisionError("it has gone off")


def test_what_goes_wrong_when_an_agent_is_unpacked_is_a_clear_error() -> None:
    error = failure_of(holder_of(Bomb))
    assert isinstance(error, ConfigurationError)
    assert "it has gone off" in str(error)
    assert "Traceback" not in str(error)


# -- Boundaries


def test_a_boundary_may_do_something_of_its_own_elsewhere() -> None:
    errors = [failure_of(wall(fails_there, executor)) for executor in ("inline", "processes(2)")]
    assert told(errors[0]) == told(errors[1])
    assert "ValueError: a is at x1 < 2, in fails_there at (4, 2)" in str(errors[0])


def test_a_lambda_as_a_boundary_s_action_is_refused() -> None:
    """It can't be sent to workers; and it is said before anything starts."""
    wall(lambda agent, _: agent.die(), "inline").run(until=UNTIL)
    error = failure_of(wall(lambda agent, _: agent.die(), "processes(2)"))
    assert isinstance(error, ConfigurationError)
    assert "the boundaries or the placement can't be sent to a worker" in str(error)
    assert "define their functions at the top level of a module" in str(error)


# -- What is brought back


def test_states_are_brought_back_to_the_same_objects() -> None:
    simulation = ForwardSimulation(Minkowski(2), executor="processes(2)")
    with simulation:
        holder = Holder()
        holder.thing, holder.early = None, "old"
        holder.velocity = simulation.space.velocity(0.6)
        holder.after(1.0, "swap")
    simulation.run(until=10.0)
    assert simulation["Holder-1"] is holder
    assert holder.thing == {"now": 1.25, "in": [1, (2, 3)]}
    assert holder.late == "new"
    assert not hasattr(holder, "early")
    assert tuple(holder.position) == (10.0, 6.0)
    assert tuple(holder.velocity) == (1.25, 0.75)
    assert holder.local_time == 8.0


def test_agents_with_slots_are_brought_back() -> None:
    simulation = ForwardSimulation(Minkowski(2), executor="processes(2)")
    with simulation:
        slotted = Slotted()
        slotted.after(1.0, "grow")
    simulation.run(until=10.0)
    assert (slotted.count, slotted.more) == (2, "yes")
    assert not hasattr(slotted, "unset")


def test_agents_that_were_born_elsewhere_are_brought_back() -> None:
    simulation = ForwardSimulation(Minkowski(2), LambdaField(R=(0.5, 0.0)), executor="processes(2)")
    with simulation:
        mother = Mother()
        mother.after(1.0, "bear", 3)
    result = simulation.run(until=10.0)
    assert result.agents == 4
    children = [simulation[f"Mother-1/child {place}"] for place in range(3)]
    for place, child in enumerate(children):
        assert type(child) is Child
        assert child.age == 3
        assert child.position[1] == pytest.approx(0.9 * place)
        assert repr(child.to_mother) == f"<channel from Mother-1/child {place} to Mother-1>"
    assert sorted(mother.heard) == sorted(f"Mother-1/child {place}" for place in (0, 1, 2) * 3)
    assert list(simulation.agents) == ["Mother-1", "Mother-1/child 0", "Mother-1/child 1", "Mother-1/child 2"]


def test_wrapped_objects_are_brought_back() -> None:
    """The wrapper is the same as before; what it wraps is what has become of it elsewhere."""
    simulation, wrapped, wrappers = counters("processes(2)")
    simulation.run(until=10.5)
    for place, wrapper in enumerate(wrappers):
        assert isinstance(wrapper, AgentWrapper)
        assert isinstance(wrapper.object, Counter)
        assert wrapper.object.count == 10 * (place + 1)
    assert all(isinstance(each, Counter) for each in wrapped)


@pytest.mark.parametrize("executor", ["inline", "processes(1)", "processes(2)"])
def test_channels_are_closed_after_a_run(executor: str) -> None:
    simulation, row = people(executor)
    simulation.run(until=UNTIL)
    for person, other in zip(row, [*row[1:], row[0]], strict=True):
        channel = person.other
        assert isinstance(channel, Channel)
        assert not channel.is_open
        assert repr(channel) == f"<channel from {person.name} to {other.name}>"
        channel.close()  # As it is.
        for use in (lambda channel=channel: channel.send("hear"), channel.target):
            with pytest.raises(UsageError, match="no agent acts now"):
                use()


@pytest.mark.parametrize("executor", ["inline", "processes(2)"])
def test_agents_do_nothing_after_a_run(executor: str) -> None:
    simulation, (a, *_) = people(executor)
    simulation.run(until=UNTIL)
    for act in (lambda: a.jump_to((99.0, 0.0)), lambda: a.after(1.0, "hear"), a.die, a.reference):
        with pytest.raises(ModelError, match=r"a can't .*: the run is over"):
            act()
    with pytest.raises(UsageError, match="the simulation is over"):
        simulation.run(until=2 * UNTIL)


def test_what_cannot_come_back_is_left_behind() -> None:
    simulation = ForwardSimulation(Minkowski(2), executor="processes(2)")
    with simulation:
        holder = Holder()
        holder.thing = 1
        holder.after(1.0, "gather")
    simulation.run(until=2.0)
    assert (holder.plain, holder.thing) == ([1, 2], 1)
    for name, reason in (("lock", "_thread.lock"), ("function", "lambda")):
        left: Any = vars(holder)[name]
        assert isinstance(left, LeftBehind)
        assert reason in left.reason


# -- Programs
