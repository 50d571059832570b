"""Random SimPy models, run on whichever SimPy is given, and told event by event."""

from __future__ import annotations

import random
import re
from fractions import Fraction
from typing import Any

_STARTS = (0, 0, 0, 0.0, 5, 2.5, -3)
_ADDRESS = re.compile("0x[0-9a-f]+")


class Boom(Exception):  # noqa: N818
    """What processes of these models raise."""


class RandomModel:
    """A model that a number decides. Two that differ in nothing but their SimPy must log the same."""

    def __init__(self, simpy: Any, number: int, *, is_traced: bool) -> None:
        self.simpy = simpy
        self.draw = random.Random(number)
        self.log: list[Any] = []
        self.times = self.draw.choice(["int", "float", "mixed", "mixed", "fraction", "none"])
        self.start: Any = Fraction(1, 3) if self.times == "fraction" else self.draw.choice(_STARTS)
        self.env = env = simpy.Environment(initial_time=self.start)
        self.places = [
            simpy.Resource(env, capacity=self.draw.randrange(1, 3)),
            simpy.PriorityResource(env, capacity=1),
            simpy.PreemptiveResource(env, capacity=self.draw.randrange(1, 3)),
        ]
        self.tank = simpy.Container(env, capacity=10, init=self.draw.randrange(0, 5))
        self.stores = [
            simpy.Store(env, capacity=self.draw.randrange(1, 4)),
            simpy.FilterStore(env, capacity=3),
            simpy.PriorityStore(env),
        ]
        self.events = [env.event() for _ in range(3)]
        self.processes = [env.process(self.body(f"p{each}", 0)) for each in range(self.draw.randrange(2, 6))]
        if is_traced:
            self.trace()

    def run(self) -> list[Any]:
        """Run it to its end, perhaps in several pieces, and return its log."""
        ends = [None] if self.draw.random() < 0.3 else [self.start + self.draw.randrange(1, 4), self.start + 4.5, None]
        for end in ends:
            for _ in range(20):  # Something may be raised; then it goes on.
                if self.has_run(end):
                    break
        env = self.env
        self.log.append(("end", env.now, type(env.now).__name__, env.peek(), next(env._eid)))
        return self.log

    def has_run(self, end: Any) -> bool:
        env = self.env
        try:
            self.log.append(("run", env.run(until=end), env.now, type(env.now).__name__, next(env._eid)))
        except Boom as error:
            self.log.append(("raised", str(error), env.now))
            return False
        except (ValueError, AttributeError, RuntimeError, TypeError) as error:
            self.log.append(("error", type(error).__name__, _ADDRESS.sub("", str(error)), env.now))
            return end is not None and "until" in str(error)
        return True

    def trace(self) -> None:
        """Log each event before it happens, in the way that SimPy's documentation shows."""
        step = self.env.step

        def traced() -> None:
            if len(self.env._queue):
                time, priority, number, event = self.env._queue[0]
                self.log.append(("step", time, type(time).__name__, priority, number, type(event).__name__))
            step()

        self.env.step = traced

    def note(self, who: str, *what: Any) -> None:
        self.log.append((who, self.env.now, type(self.env.now).__name__, *what))

    def delay(self) -> Any:
        draw = self.draw
        if self.times == "int":
            return draw.randrange(4)
        if self.times == "float":
            return draw.choice([0.0, 0.5, 1.25, draw.random()])
        if self.times == "mixed":
            return draw.choice([0, 1, 0.0, 1.0, 2, draw.random()])
        return Fraction(draw.randrange(5), 3) if self.times == "fraction" else 0

    def body(self, who: str, depth: int) -> Any:
        deeds = [
            *(self.wait, self.wait, self.wait, self.use, self.use_or_leave, self.use_by_hand, self.pour),
            *(self.put, self.get, self.start_another, self.interrupt, self.trigger, self.await_shared),
            *(self.await_several, self.listen, self.look),
        ]
        for _ in range(self.draw.randrange(1, 7)):
            deed = self.draw.choice(deeds)
            try:
                yield from deed(who, depth)
            except self.simpy.Interrupt as interrupt:
                cause = interrupt.cause
                told = cause if isinstance(cause, int) else type(cause).__name__
                self.note(who, "interrupt", told, getattr(cause, "usage_since", None))
            except Boom as error:
                self.note(who, "boom", str(error), type(error.__cause__).__name__)
        return who

    def wait(self, who: str, _: int) -> Any:
        self.note(who, (yield self.env.timeout(self.delay(), self.draw.choice([None, 1, "x"]))))

    def use(self, who: str, _: int) -> Any:
        resource = self.draw.choice(self.places)
        with resource.request() as request:
            yield request
            self.note(who, "uses", request.usage_since)
            yield self.env.timeout(self.delay())
        self.note(who, "leaves", resource.count, len(resource.queue))

    def use_or_leave(self, who: str, _: int) -> Any:
        resource = self.draw.choice(self.places[1:])
        with resource.request(priority=self.draw.randrange(3), preempt=self.draw.random() < 0.7) as request:
            found = yield request | self.env.timeout(self.delay())
            self.note(who, "prior", request in found, len(found.events))
            if request in found:
                yield self.env.timeout(self.delay())

    def use_by_hand(self, who: str, _: int) -> Any:
        request = self.draw.choice(self.places).request()
        yield request
        yield self.env.timeout(self.delay())
        release = request.resource.release(request)
        if self.draw.random() < 0.5:
            yield release

    def pour(self, who: str, _: int) -> Any:
        act = self.draw.choice([self.tank.put, self.tank.get])
        yield act(self.draw.randrange(1, 4)) | self.env.timeout(self.delay())
        self.note(who, "level", self.tank.level)

    def put(self, who: str, _: int) -> Any:
        store = self.draw.choice(self.stores)
        with store.put(self.draw.randrange(5)) as put:
            found = yield put | self.env.timeout(self.delay())
            self.note(who, "put", put in found, list(store.items))

    def get(self, who: str, _: int) -> Any:
        store, least = self.draw.choice(self.stores), self.draw.randrange(5)
        with store.get(lambda item: item >= least) if store is self.stores[1] else store.get() as get:
            found = yield get | self.env.timeout(self.delay())
            self.note(who, "got", found.todict().get(get, "nothing"))

    def start_another(self, who: str, depth: int) -> Any:
        if depth < 3:
            process = self.env.process(self.body(f"{who}.{len(self.processes)}", depth + 1))
            self.processes.append(process)
            if self.draw.random() < 0.6:
                self.note(who, "child", (yield process))

    def interrupt(self, who: str, _: int) -> Any:
        process = self.draw.choice(self.processes)
        if process.is_alive and process is not self.env.active_process:
            process.interrupt(self.draw.randrange(9))
        yield from ()

    def trigger(self, who: str, _: int) -> Any:
        place = self.draw.randrange(3)
        event = self.events[place]
        if not event.triggered:
            if self.draw.random() < 0.8:
                event.succeed(place)
            else:
                event.fail(Boom(place))
                event.defused = True
            if self.draw.random() < 0.8:
                self.events[place] = self.env.event()
        yield from ()

    def await_shared(self, who: str, _: int) -> Any:
        event = self.draw.choice(self.events)
        found = yield event | self.env.timeout(self.delay())
        self.note(who, "shared", event in found, [type(each).__name__ for each in found])

    def await_several(self, who: str, _: int) -> Any:
        env, draw = self.env, self.draw
        a, b, c = env.timeout(self.delay(), 1), env.timeout(self.delay(), 2), draw.choice(self.events)
        kinds = [
            lambda: (a & b) | c,
            lambda: env.all_of([a, b]),
            lambda: env.any_of([a, b, c]),
            lambda: a | (b & c),
            lambda: env.all_of([]),
            lambda: (env.any_of([]) & b) | c,
            lambda: (a | b) & (a | c) | env.timeout(5),
        ]
        found = yield draw.choice(kinds)()
        self.note(who, "several", [str(each.value) for each in found])

    def listen(self, who: str, _: int) -> Any:
        event = self.draw.choice(self.events)
        if not event.processed and self.draw.random() < 0.5:
            event.callbacks.append(lambda each: self.note("listener", each.ok))
        yield self.env.timeout(self.delay())

    def look(self, who: str, _: int) -> Any:
        if self.draw.random() < 0.2:
            raise Boom(who)
        active = self.env.active_process
        self.note(who, "looks", self.env.peek(), active.name, active.target is None)
        yield from ()
