"""The front of the kernel: entities are added, linked, and run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import structs

from worldline.history.guarding import GuardedObserver
from worldline.history.observer import Observer
from worldline.history.outcome import Watch
from worldline.kernel.entity import Entity
from worldline.kernel.model import (
    KernelOutcome,
    Model,
    Sending,
    combined,
    endless,
    tell_beginning,
    tell_end,
    tell_from_outside,
)
from worldline.kernel.packing import seal
from worldline.kernel.roster import KernelNetwork
from worldline.kernel.trouble import check_happened
from worldline.kernel.waiting import Awaited
from worldline.kernel.worker import Worker
from worldline.model.errors import ConfigurationError, UsageError, nearest, shown
from worldline.model.latency import Latency
from worldline.model.links import Link, Network, Rule, check_network, link
from worldline.model.message import SEPARATOR, check_name, is_short
from worldline.model.plan import Plan
from worldline.model.reading import as_time
from worldline.model.text import counted
from worldline.model.time import FOREVER, TimeLike, format_time
from worldline.processes.executor import Executor, Kind, as_executor
from worldline.processes.status_timer import looks

EXECUTORS: tuple[Kind, ...] = ("inline", "processes", "mpi")
"""What simulations of the kernel run on."""

# Any two entities are a nanosecond apart, the microstep, unless a network says otherwise.
_MICROSTEP = Network(default=link(1))

_PASSES_AFTER = 1_000  # Events, until an observer is told what is final.


class Simulation:
    """Entities, the links between them, and one history of what they do.

    Without a network, any two entities can send each other messages with any delay. With `declared_only`, only those
    linked by `connect` or by a rule of the network can.
    """

    def __init__(self, *, network: Network = _MICROSTEP, seed: int = 0, declared_only: bool = False) -> None:
        if type(seed) is not int or not -(2**63) <= seed < 2**63:
            raise ConfigurationError("the seed isn't a whole number of at most 64 bits")
        self._network = network
        self._seed = seed
        self._declared_only = declared_only
        self._entities: dict[str, Entity] = {}
        self._rules: list[Rule] = []
        self._connected: dict[tuple[str, str], bool] = {}
        self._sendings: list[Sending] = []
        self._worker: Worker | None = None
        self._result: KernelOutcome | None = None
        self._observer: GuardedObserver | None = None

    # -- Building

    def add(self, name: str, entity: Entity) -> str:
        """Add an entity under a name, and return the name."""
        self._check_not_over()
        check_name(name, "an entity")
        if not isinstance(entity, Entity):
            advice = f"make one: {entity.__name__}(...)" if isinstance(entity, type) else "make one, or a process(...)"
            raise ConfigurationError(f"{name}: {shown(entity)} isn't an Entity", advice=advice)
        if any(map(is_short, name.split(SEPARATOR))):  # It would take the place of those whose names it stands in.
            raise ConfigurationError(
                f"{shown(name)} can't name an entity", advice="~ and a hash stand for a creator's name"
            )
        if name in self._entities:
            raise ConfigurationError(
                f"there is an entity named {shown(name)} already", advice="every name is used once"
            )
        if entity.name is not None:
            raise ConfigurationError(f"{name}: this entity takes part already, as {entity.name}")
        if self._worker is not None:
            self._worker.roster.add_late(name, entity)
        else:
            entity._wl_call(name)
            self._entities[name] = entity
        return name

    def connect(self, sender: str, receiver: str, over: Link | Latency | TimeLike, *, both: bool = True) -> None:
        """Link two entities: ``connect("a", "b", "5ms")``, or with ``link("uniform(1ms, 5ms)", loss=0.1)``."""
        if self._worker is not None or self._result is not None:
            raise UsageError("links are declared before the run", advice="use a network with outages for what changes")
        between = over if isinstance(over, Link) else link(over)
        for source, goal in ((sender, receiver), (receiver, sender)) if both else ((sender, receiver),):
            if (source, goal) in self._connected:
                raise ConfigurationError(
                    f"{source} and {goal} are connected already", advice="connect() links both ways unless both=False"
                )
            self._connected[source, goal] = True
            self._rules.append(Rule(sender=source, receiver=goal, link=between))

    def send(self, to: str, topic: str, payload: Any = None, *, at: TimeLike | None = None) -> None:
        """Send a message from outside, to arrive at a given time or now; its sender has no name."""
        self._check_not_over()
        time = self.now if at is None else as_time(at)
        if time < self.now:
            raise UsageError(
                f"{shown(topic)} can't arrive at {format_time(time)}: it is {format_time(self.now)} already"
            )
        check_name(topic, "a topic")
        sending = Sending(to, topic, *seal(payload), time)
        if self._worker is not None:
            self._worker.send(sending, len(self._sendings))
            if self._observer is not None:
                tell_from_outside(self._observer, len(self._sendings), sending, self._entities)
        self._sendings.append(sending)

    # -- Running

    def observe(self, observer: Observer) -> None:
        """Attach an observer before the start, whether the simulation is then run or stepped."""
        if self._observer is None or observer is not self._observer.guarded:
            if self._worker is not None or self._result is not None:
                raise UsageError(
                    "the simulation has begun, and an observer has to see all of it", advice="make a new one"
                )
            self._observer = GuardedObserver(observer)

    @property
    def seed(self) -> int:
        return self._seed

    @property
    def now(self) -> int:
        if self._worker is not None:
            return int(self._worker.engine.now)
        return self._result.now if self._result is not None else 0

    def run(
        self,
        until: TimeLike | Awaited | None = None,
        *,
        executor: Executor | str = "inline",
        watch: Watch | None = None,
        events_max: int | None = None,
        observer: Observer | None = None,
    ) -> KernelOutcome:
        """Run all events before `until`, or all there are, and return the outcome.

        `until` is a time, or, inline, a signal or process: then the event during which that happens is the last.

        The result is the same whatever the executor: ``"inline"``, ``"processes(4)"``, ``"mpi"``. Inline, a simulation
        can be run further; the others run it once. `watch` is told the status now and then (under MPI, that of this
        rank). `events_max` ends a run that takes more events, since it would hardly end by itself. (Under MPI there is
        no such limit.)

        An observer is told what happens, from the start: the same, in the same order, whatever the executor. Inline, it
        is also told of further runs. Under MPI it is told everything at the end, on every rank that has given one.
        """
        stop = until if isinstance(until, Awaited) else None
        end = FOREVER if until is None or isinstance(until, Awaited) else as_time(until, "the end")
        chosen = as_executor(executor, EXECUTORS)
        if observer is not None:
            self.observe(observer)
        if chosen.kind not in ("processes", "mpi"):
            return self._run_inline(end, stop, watch, events_max)
        if stop is not None:
            raise UsageError(
                f"{chosen} can't run until a signal: some workers are ahead of the one in which it fires",
                advice="run it until a time, or inline",
            )
        if self._worker is not None or self._result is not None:
            raise UsageError(f"{chosen} runs a simulation from its start", advice="make a new one")
        from worldline.kernel.distributed import run_distributed

        model = self.model()
        self._result = run_distributed(chosen, model, end, watch, events_max, self._observer)
        self._entities.update(model.created)
        return self._result

    def step(self) -> bool:
        """Handle the next event; return whether there was one."""
        self._begun()
        return self._advance(FOREVER, 1, None) == 1

    def result(self) -> KernelOutcome:
        """Return the outcome so far."""
        if self._result is not None:
            return self._result
        return combined([self._begun().part()], None)

    @property
    def culprit(self) -> Entity | None:
        """Which entity was acting when the simulation was broken off."""
        failed: Entity | None = None if self._worker is None else self._worker.engine.failed
        return failed

    def __getitem__(self, name: str) -> Entity:
        """Return an entity: to look at, before a run and after."""
        if name not in self._entities:
            raise UsageError(f"there is no entity named {shown(name)}", advice=nearest(name, self._entities))
        return self._entities[name]

    def __contains__(self, name: object) -> bool:
        return name in self._entities

    def __repr__(self) -> str:
        return f"<Simulation of {counted(len(self._entities), 'entity', 'entities')} at {format_time(self.now)}>"

    def model(self) -> Model:
        """Return the whole simulation in the form that executors take, checked."""
        names = tuple(sorted(self._entities))
        network = self._network
        check_network(network, names)
        if self._rules:
            network = structs.replace(network, rules=(*network.rules, *self._rules))
            check_network(network, names)
        for sending in self._sendings:
            _check_receiver(sending, self._entities)
        topology = KernelNetwork(network, self._seed, declared_only=self._declared_only)
        return Model(names, self._entities, topology, self._seed, tuple(self._sendings))

    def plan(self, until: TimeLike | None = None) -> Plan:
        """Return what determines a run's history apart from the entities themselves, for the header of a recording.

        Its roster lists the entities that were added; those created during the run aren't known before.
        """
        model = self.model()
        end = None if until is None else as_time(until, "the end")
        return Plan(roster=model.names, network=model.topology.network, seed=model.seed, end=end)

    def _run_inline(self, end: int, stop: Awaited | None, watch: Watch | None, events_max: int | None) -> KernelOutcome:
        worker = self._begun()
        if end < worker.engine.now:
            raise UsageError(f"it is {format_time(worker.engine.now)} already", advice="run it until a later time")
        look = looks(watch, end)
        pause = look(worker.engine.now, worker.engine.events)
        left = FOREVER if events_max is None else events_max + 1
        stride = FOREVER if self._observer is None else _PASSES_AFTER
        while left and (handled := self._advance(end, min(pause, left, stride), stop)):
            left -= handled
            pause = look(worker.engine.now, worker.engine.events)
        if events_max is not None and not left:
            raise endless(events_max, worker.engine.now)
        if end != FOREVER:
            worker.engine.now = end
        if stop is not None:
            check_happened(stop, worker.engine.now)
        part = worker.part()
        if self._observer is not None:
            tell_end(self._observer, part.members, worker.engine.now)
        return combined([part], None)

    def _advance(self, end: int, limit: int, stop: Awaited | None) -> int:
        """Handle so many events; what was before them is final, also if one of them fails."""
        assert self._worker is not None
        try:
            return self._worker.advance(end, limit, stop)
        finally:
            if self._observer is not None:
                self._observer.passed(self._worker.engine.now)

    def _begun(self) -> Worker:
        self._check_not_over()
        if self._worker is None:
            model = self.model()
            self._worker = Worker(model)
            if self._observer is not None:
                tell_beginning(self._observer, model)
                self._worker.engine.observer = self._observer
            self._entities = self._worker.engine.directory  # From now on that has them: one such table is large enough.
        return self._worker

    def _check_not_over(self) -> None:
        if self._result is not None:
            raise UsageError(
                "the simulation is over", advice="make a new one, or run it inline to go on from time to time"
            )


def _check_receiver(sending: Sending, entities: Mapping[str, Entity]) -> None:
    """Refuse a message from outside to a name that no entity has or can get."""
    beginning = sending.to
    while beginning:
        if beginning in entities:
            return
        beginning = beginning.rpartition(SEPARATOR)[0]
    raise ConfigurationError(f"{shown(sending.topic)} is sent to {shown(sending.to)}, and there is no such entity")
