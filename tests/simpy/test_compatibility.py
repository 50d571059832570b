"""What models can see of Worldline's SimPy beyond SimPy's own tests: the out of the ordinary, done as SimPy does it."""

from __future__ import annotations

import copy
import gc
import importlib
import pickle
import weakref
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
import simpy

import worldline.simpy as ours

MODULES = ("core", "events", "exceptions", "rt", "util")
RESOURCES = ("base", "container", "resource", "store")
BOTH = pytest.mark.parametrize("s", [simpy, ours], ids=["SimPy", "ours"])


@pytest.mark.parametrize("module", ["", *MODULES, *(f"resources.{name}" for name in RESOURCES)])
def test_all_public_names_are_there(module: str) -> None:
    theirs = importlib.import_module(f"simpy.{module}".rstrip("."))
    mine = importlib.import_module(f"worldline.simpy.{module}".rstrip("."))
    names = getattr(theirs, "__all__", None) or [
        name
        for name, value in vars(theirs).items()
        if not name.startswith("_") and getattr(value, "__module__", theirs.__name__) == theirs.__name__
        if isinstance(value, type) or callable(value)
    ]
    assert [name for name in names if not hasattr(mine, name)] == []
    for name in names:
        members = [each for each in dir(getattr(theirs, name)) if not each.startswith("_")]
        missing = [each for each in members if not hasattr(getattr(mine, name), each)]
        assert missing == [], name


@pytest.mark.parametrize("taken", [pickle.dumps, copy.copy, copy.deepcopy], ids=["pickled", "copied", "copied deeply"])
def test_an_environment_says_why_it_cant_be_copied(taken: Any) -> None:
    """SimPy pickles one without processes, but into what can't be loaded again."""
    with pytest.raises(TypeError, match=r"^an Environment can't be copied or sent: its processes are generators$"):
        taken(ours.Environment())


def test_a_star_imports_the_same_names() -> None:
    assert sorted(ours.__all__) == sorted(simpy.__all__)


@BOTH
@pytest.mark.parametrize(
    ("start", "delay", "times"),
    [
        (0, 2, "[2, 4]"),
        (0, 2.5, "[2.5, 5.0]"),
        (0.0, 2, "[2.0, 4.0]"),
        (0, Fraction(1, 3), "[Fraction(1, 3), Fraction(2, 3)]"),
        (0, Decimal("0.1"), "[Decimal('0.1'), Decimal('0.2')]"),
        (2**53, 1, "[9007199254740993, 9007199254740994]"),
        (0, True, "[1, 2]"),
        (0, float("inf"), "[inf, inf]"),
    ],
)
def test_times_stay_what_they_are(s: Any, start: Any, delay: Any, times: str) -> None:
    env = s.Environment(start)
    seen = []

    def process() -> Any:
        for _ in range(2):
            yield env.timeout(delay)
            seen.append(env.now)

    env.process(process())
    env.run()
    assert repr(seen) == times


@BOTH
def test_schedule_with_unusual_priorities_and_into_the_past(s: Any) -> None:
    env = s.Environment(10)
    seen = []
    for priority, delay in [(1, 0), (100, 0), (-20, 0), (0.5, 0), (1, -3), (0, 2.5), (7, 0)]:
        event = env.event()
        event._ok, event._value = True, (priority, delay)
        event.callbacks.append(lambda each: seen.append((env.now, each.value)))
        env.schedule(event, priority, delay)
    env.run()
    assert seen == [
        *((7, (1, -3)), (10, (-20, 0)), (10, (0.5, 0)), (10, (1, 0)), (10, (7, 0)), (10, (100, 0))),
        (12.5, (0, 2.5)),
    ]


@BOTH
def test_error_texts(s: Any) -> None:
    env = s.Environment()
    event = env.event().succeed(1)
    with pytest.raises(RuntimeError, match=r"<Event\(\) object at 0x\w+> has already been triggered"):
        event.succeed()
    with pytest.raises(ValueError, match="Negative delay -1"):
        env.timeout(-1)
    with pytest.raises(ValueError, match="5 is not a generator"):
        env.process(5)
    with pytest.raises(AttributeError, match="is not yet available"):
        _ = env.event().value
    with pytest.raises(TypeError, match="5 is not an exception"):
        env.event().fail(5)
    with pytest.raises(ValueError, match='"capacity" must be > 0'):
        s.Resource(env, capacity=0)
    with pytest.raises(ValueError, match=r"until \(0\) must be greater than the current simulation time"):
        env.run(until=0)
    with pytest.raises(RuntimeError, match='No scheduled events left but "until" event was not triggered'):
        env.run(until=env.event())
    with pytest.raises(ValueError, match="It is not allowed to mix events from different environments"):
        _ = env.event() | s.Environment().event()


@BOTH
def test_events_in_the_queue_twice(s: Any) -> None:
    env = s.Environment()
    event = env.event().succeed()
    env.schedule(event)
    with pytest.raises(TypeError, match="'NoneType' object is not iterable"):
        env.run()


@BOTH
def test_events_that_were_never_triggered(s: Any) -> None:
    env = s.Environment()
    env.schedule(env.event())
    with pytest.raises(AttributeError, match="_ok"):
        env.run()


@BOTH
def test_attributes_that_models_set(s: Any) -> None:
    env = s.Environment()
    for thing in (env, env.event(), env.timeout(1), s.Resource(env), s.Store(env)):
        assert not hasattr(thing, "mine")
        thing.mine = 5
        assert thing.mine == 5
        assert vars(thing)["mine"] == 5
        del thing.mine
        assert not hasattr(thing, "mine")
        assert weakref.ref(thing)() is thing


@BOTH
def test_callbacks_are_a_list_like_any_other(s: Any) -> None:
    env = s.Environment()
    seen: list[Any] = []

    def process(event: Any) -> Any:
        seen.append((yield event))

    event = env.event()
    first, second = env.process(process(event)), env.process(process(event))
    env.run()
    assert [each.__self__ for each in event.callbacks] == [first, second]
    event.callbacks.insert(0, lambda each: seen.append("first"))
    event.callbacks.remove(first._resume)
    event.succeed("done")
    env.run()
    assert seen == ["first", "done"]
    assert event.callbacks is None
    request = s.Resource(env).request()
    assert [each.__name__ for each in request.callbacks] == ["_trigger_get"]
    condition = env.event() & env.event()
    assert [each.__name__ for each in condition.callbacks] == ["_build_value"]


@BOTH
def test_what_starts_a_process_can_be_seen(s: Any) -> None:
    env = s.Environment()
    seen = []

    def process() -> Any:
        seen.append(type(env.active_process.target).__name__)
        yield env.timeout(1)

    started = env.process(process())
    assert type(started.target).__name__ == "Initialize"
    assert [type(event).__name__ for _, _, _, event in env._queue] == ["Initialize"]
    env.run()
    assert seen == ["Initialize"]
    assert started.target is None


@BOTH
def test_interrupts_without_a_callback_to_remove(s: Any) -> None:
    env = s.Environment()

    def process() -> Any:
        yield env.timeout(5)

    waiting = env.process(process())
    env.run(until=1)
    waiting.target.callbacks.clear()
    waiting.interrupt()
    with pytest.raises(ValueError, match="not in list"):
        env.run()


@BOTH
def test_conditions_of_nothing_within_others(s: Any) -> None:
    env = s.Environment()
    done = env.timeout(1)
    found = env.run(until=env.all_of([]) & env.any_of([]) & done)
    assert list(found) == [done]


@BOTH
def test_requests_that_raise_stay_in_the_queue(s: Any) -> None:
    env = s.Environment()
    store, machine = s.FilterStore(env), s.PreemptiveResource(env)
    store.put({})
    env.run()

    def process() -> Any:
        with pytest.raises(KeyError, match="size"):
            store.get(lambda item: item["size"])
        yield machine.request(priority=1)
        with pytest.raises(RuntimeError, match="not allowed to interrupt itself"):
            machine.request(priority=0)

    env.process(process())
    env.run()
    assert (len(store.get_queue), len(machine.put_queue), machine.count) == (1, 1, 0)


@BOTH
def test_an_interrupt_after_an_invalid_yield(s: Any) -> None:
    env = s.Environment()

    def process() -> Any:
        yield "no event"

    broken = env.process(process())
    with pytest.raises(RuntimeError, match="Invalid yield value"):
        env.run()
    env.process(iter_of(env))
    env.run(until=1)
    broken.interrupt()
    with pytest.raises(AttributeError, match="'NoneType' object has no attribute 'remove'"):
        env.run()


@BOTH
def test_classes_of_ones_own(s: Any) -> None:
    seen: list[Any] = []

    class Queue(s.Resource):  # type: ignore[misc]
        def _do_put(self, event: Any) -> Any:
            seen.append("put")
            return super()._do_put(event)

        def release(self, request: Any) -> Any:
            seen.append("release")
            return super().release(request)

    class Delay(s.Timeout):  # type: ignore[misc]
        def __init__(self, env: Any, delay: Any) -> None:
            super().__init__(env, 2 * delay)

    class World(s.Environment):  # type: ignore[misc]
        delay = s.core.BoundClass(Delay)

        def schedule(self, event: Any, priority: int = 1, delay: Any = 0) -> None:
            seen.append(type(event).__name__)
            super().schedule(event, priority, delay)

    class Turnstile(s.resources.base.BaseResource):  # type: ignore[misc]
        def _do_put(self, event: Any) -> bool:
            event.succeed("through")
            return True

    def process(env: Any, queue: Any, turnstile: Any) -> Any:
        with queue.request() as request:
            yield request
            yield env.delay(3)
        seen.append((env.now, (yield turnstile.put())))

    env = World()
    env.process(process(env, Queue(env), Turnstile(env, 1)))
    env.run()
    assert seen == [
        *("Initialize", "put", "Request", "Delay", "release", "Release", "Put", (6, "through"), "Process"),
    ]


@BOTH
def test_methods_that_are_replaced(s: Any) -> None:
    """As SimPy's documentation has it, for tracing and monitoring."""
    env = s.Environment()
    resource = s.Resource(env)
    seen: list[Any] = []
    request, release, step = resource.request, resource.release, env.step
    resource.request = lambda: seen.append("request") or request()
    resource.release = lambda each: seen.append("release") or release(each)
    env.step = lambda: seen.append(env.peek()) or step()

    def process() -> Any:
        with resource.request() as granted:
            yield granted
            yield env.timeout(1)

    env.process(process())
    env.run()
    assert seen == [0, "request", 0, 1, "release", 1, 1, float("inf")]


@BOTH
def test_real_time(s: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    time = [100.0]
    slept = []
    monkeypatch.setattr(s.rt, "monotonic", lambda: time[0])
    monkeypatch.setattr(s.rt, "sleep", lambda seconds: (slept.append(seconds), time.__setitem__(0, time[0] + seconds)))
    env = s.rt.RealtimeEnvironment(factor=0.5)
    env.process(iter_of(env))
    env.run(until=3)
    assert slept == [0.5, 0.5, 0.5]
    time[0] += 5
    with pytest.raises(RuntimeError, match=r"Simulation too slow for real time \(\d+.\d+s\)"):
        env.run(until=5)


def iter_of(env: Any) -> Any:
    while True:
        yield env.timeout(1)


def test_environments_are_let_go() -> None:
    """Whatever still waits in them: 1,000 environments leave nothing behind."""
    gc.collect()
    there = [weakref.ref(busy_environment()) for _ in range(1_000)]
    gc.collect()
    assert [each for each in there if each() is not None] == []


def busy_environment() -> Any:
    env = ours.Environment()
    resource, store = ours.Resource(env), ours.Store(env)

    def process(number: int) -> Any:
        with resource.request() as request:
            env.own = yield request | env.timeout(number)
            yield store.get() & env.event()

    for number in range(5):
        env.process(process(number)).mine = env
    env.run(until=3)
    return env


def test_many_events_can_be_dropped_at_once() -> None:
    env = ours.Environment()
    event = env.event()
    for _ in range(100_000):
        event = event | env.event()
    del event, env
    gc.collect()
