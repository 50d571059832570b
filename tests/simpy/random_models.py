"""Random SimPy models, run on whichever SimPy is given, and told event by event."""

from __future__ import annotations

import random
import re
from fractions import Fraction
from typing import Any

_STARTS = (0, 0, 0, 0.0, 5, 2.5, -3)
_ADDRESS = re.compile("0x[0-9a-f]+")
_HOME = re.compile(r"worldline\.simpy[.a-z]*\.")  # Python names C's classes with their modules.


def _told(what: object) -> str:
    """Tell what differs between two runs of anything only in where objects are."""
    text = what if isinstance(what, str) else str(what) if isinstance(what, Exception) else repr(what)
    return _HOME.sub("", _ADDRESS.sub("", text))


class Boom(Exception):  # noqa: N818
    """What processes of these models raise."""


class OwnKinds:
    """Classes that a model derives from SimPy's."""

    def __init__(self, simpy: Any) -> None:
        class Desk(simpy.Resource):  # type: ignore[misc]
            """Counts what it serves, by methods that it replaces."""

            served = 0

            def _do_put(self, event: Any) -> Any:
                self.served += 1
                return super()._do_put(event)

            def request(self, *arguments: Any) -> Any:
                request = super().request(*arguments)
                request.label = len(self.queue)
                return request

        class Labelled(simpy.Event):  # type: ignore[misc]
            """An event with an attribute, and one more callback."""

            def __init__(self, env: Any, label: str) -> None:
                super().__init__(env)
                self.label = label
                self.callbacks.append(self.told)
                self.told_of = 0

            def told(self, event: Any) -> None:
                self.told_of += 1

        class Late(simpy.Timeout):  # type: ignore[misc]
            """A timeout that takes longer."""

            def __init__(self, env: Any, delay: Any) -> None:
                super().__init__(env, delay + 1, "late")

        class Worker(simpy.Process):  # type: ignore[misc]
            """A process that counts how often it goes on."""

            resumed = 0

            def _resume(self, event: Any) -> None:
                self.resumed += 1
                super()._resume(event)

        self.desk, self.labelled, self.late, self.worker = Desk, Labelled, Late, Worker


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
        self.kinds = OwnKinds(simpy)
        self.desk = self.kinds.desk(env, capacity=1)
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
        return self.log.copy()  # Generators that are left may be closed when the model goes, and log that.

    def has_run(self, end: Any) -> bool:
        env = self.env
        try:
            self.log.append(("run", env.run(until=end), env.now, type(env.now).__name__, next(env._eid)))
        except Boom as error:
            self.log.append(("raised", str(error), env.now))
            return False
        except (ValueError, AttributeError, RuntimeError, TypeError, KeyError) as error:
            self.log.append(("error", type(error).__name__, _told(error), env.now))
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
            *(self.await_several, self.listen, self.look, self.pass_on, self.schedule_by_hand, self.await_processes),
            *(self.use_in_haste, self.exchange, self.sort_items, self.end_badly, self.own_kinds, self.clean_up),
            *(self.relay, self.misuse, self.compare_values),
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

    def pass_on(self, who: str, _: int) -> Any:
        """One event triggers another, as a callback."""
        env = self.env
        first, second = env.timeout(self.delay(), "first"), env.event()
        place = self.draw.choice([0, len(first.callbacks)])
        first.callbacks.insert(place, second.trigger)
        self.note(who, "passed", (yield second), first.processed, first.callbacks, second.ok)

    def schedule_by_hand(self, who: str, _: int) -> Any:
        env, draw = self.env, self.draw
        event = env.event()
        event._ok, event._value = True, who
        event.callbacks.append(lambda each: self.note("by hand", each.value, each.triggered, each.processed))
        env.schedule(event, priority=draw.choice([0, 1, 2, -1, 7, 12]), delay=self.delay())
        if draw.random() < 0.7:
            self.note(who, "scheduled", (yield event))

    def await_processes(self, who: str, depth: int) -> Any:
        """Wait for several processes, some of which fail."""
        if depth > 2:
            return
        env, draw = self.env, self.draw

        def child(number: int) -> Any:
            try:
                yield env.timeout(self.delay())
            except self.simpy.Interrupt as interrupt:
                return f"interrupted {interrupt.cause}"
            if draw.random() < 0.3:
                raise Boom(f"{who}'s {number}")
            return number

        children = [env.process(child(number)) for number in range(draw.randrange(1, 4))]
        self.processes += children
        both = env.all_of(children) if draw.random() < 0.5 else env.any_of(children)
        try:
            found = yield both
            self.note(who, "children", [str(each) for each in found.values()], [each.is_alive for each in children])
        finally:
            for each in children:
                each.defused = True

    def use_in_haste(self, who: str, _: int) -> Any:
        """Be interrupted while waiting for a place, or while having it."""
        env, draw = self.env, self.draw
        me = env.active_process
        resource = draw.choice([*self.places[1:], self.desk])
        arguments = () if resource is self.desk else (draw.randrange(3), draw.random() < 0.5)

        def hurry() -> Any:
            yield env.timeout(self.delay())
            if me.is_alive and me.target is not None:
                me.interrupt(3)

        env.process(hurry())
        request = resource.request(*arguments)
        try:
            yield request
            yield env.timeout(self.delay())
        finally:
            self.note(who, "haste", request.triggered, request.processed, request in resource.users, resource.count)
            if draw.random() < 0.5:
                request.cancel()
            resource.release(request)

    def exchange(self, who: str, _: int) -> Any:
        """Put and get at the same moment."""
        tank, store = self.tank, self.draw.choice(self.stores)
        asked = [tank.get(2), tank.put(self.draw.choice([1, 2.5, 3])), store.get(), store.put(self.draw.randrange(4))]
        self.draw.shuffle(asked)
        for event in asked:
            if self.draw.random() < 0.2:
                event.cancel()
        yield self.env.timeout(self.delay())
        self.note(who, "exchanged", [each.triggered for each in asked], tank.level, list(store.items))
        for event in asked:
            event.cancel()

    def sort_items(self, who: str, _: int) -> Any:
        store = self.stores[2]
        if all(isinstance(each, self.simpy.PriorityItem) for each in store.items) and self.draw.random() < 0.3:
            yield store.put(self.simpy.PriorityItem(self.draw.randrange(4), who))
        if store.items and isinstance(store.items[0], self.simpy.PriorityItem):
            item = yield store.get()
            self.note(who, "item", item)
        yield self.env.timeout(self.delay())

    def end_badly(self, who: str, _: int) -> Any:
        """Wait for a failure, with or without a handler, defused or not."""
        event = self.env.event()
        event.fail(Boom("badly"))
        event.defused = self.draw.random() < 0.8
        if self.draw.random() < 0.5:
            yield self.env.timeout(self.delay())
        try:
            yield event
        except Boom as error:
            self.note(who, "badly", repr(error), repr(error.__cause__), event.processed)
            if self.draw.random() < 0.2:
                raise KeyError(who) from error

    def own_kinds(self, who: str, depth: int) -> Any:
        env, kinds = self.env, self.kinds
        event = kinds.labelled(env, who)
        late = kinds.late(env, self.delay())
        with self.desk.request() as request:
            found = yield request | late
            self.note(who, "desk", request in found, request.label, self.desk.served)
        event.succeed(who)
        self.note(who, "labelled", [each.value for each in (yield event & late)], event.label, event.told_of)
        if depth < 2:
            worker = kinds.worker(env, self.body(f"{who}.w", depth + 2))
            self.processes.append(worker)
            yield worker | env.timeout(self.delay())
            self.note(who, "worker", worker.resumed, worker.is_alive)

    def clean_up(self, who: str, _: int) -> Any:
        """Have a generator closed, or thrown something, by another process than the one that runs it."""
        env = self.env

        def guest() -> Any:
            try:
                yield env.timeout(self.delay())
                yield env.timeout(self.delay())
            except Boom:
                yield env.timeout(self.delay())
            finally:
                self.note(who, "guest leaves")

        visit = guest()
        try:
            yield next(visit)
            if self.draw.random() < 0.5:
                yield visit.throw(Boom("out"))
                yield from visit
        finally:
            visit.close()
        self.note(who, "visited")

    def relay(self, who: str, _: int) -> Any:
        """Run what waits for the same event in an order that was changed by hand."""
        event = self.draw.choice(self.events)
        if not event.processed and len(event.callbacks) > 1:
            event.callbacks.reverse()
        other = self.draw.choice(self.processes)
        found = yield other | event | self.env.timeout(self.delay())
        self.note(who, "relay", len(found.events), other.is_alive, other.triggered)

    def misuse(self, who: str, _: int) -> Any:
        """Do what is refused; the text counts, too."""
        env, event = self.env, self.env.event()
        event.succeed()
        ended = [each for each in self.processes if not each.is_alive]
        deeds = [
            event.succeed,
            lambda: event.fail(Boom()),
            lambda: env.event().fail("no error"),
            lambda: env.timeout(-1),
            lambda: env.event().value,
            lambda: env.process(None),
            lambda: env.process(len),
            lambda: env.active_process.interrupt(),
            lambda: ended[0].interrupt(),
            lambda: self.tank.put(0),
            lambda: self.tank.get(-1),
            lambda: env.run(until=env.now),
            lambda: self.simpy.Resource(env, 0),
            lambda: self.simpy.Container(env, 1, 2),
            lambda: env.all_of([event, self.simpy.Environment().event()]),
            lambda: env.any_of([event, 3]),
            lambda: event & None,
            lambda: event.no_such_thing,
            lambda: self.simpy.Store(env, capacity=-1),
            lambda: env.schedule(event, delay="soon"),
        ]
        try:
            self.draw.choice(deeds)()
        except Exception as error:
            self.note(who, "refused", type(error).__name__, _told(error))
        yield env.timeout(self.delay())

    def compare_values(self, who: str, _: int) -> Any:
        env = self.env
        a, b = env.timeout(self.delay(), 1), env.timeout(self.delay(), 2)
        found = yield a | b
        told = [found == {a: 1}, found == {a: 1, b: 2}, a in found, list(found) == [a, b], len(list(found.keys()))]
        try:
            told.append(found[b])
        except KeyError:
            told.append("no b")
        self.note(who, "values", *told, _told(found), _told(a | b))
