"""A trial: one run of an algorithm with everything that it depends on, so that it can be had again."""

from __future__ import annotations

from collections.abc import Callable, Collection
from contextlib import suppress
from typing import Any

from msgspec import Struct, structs

from worldline.history.observer import Observer
from worldline.history.outcome import Watch
from worldline.kernel.simulation import EXECUTORS
from worldline.model.draws.distributions import Chance
from worldline.model.errors import ConfigurationError, ModelError, Stuck, shown
from worldline.model.links import Link
from worldline.model.links import link as as_link
from worldline.model.plan import Plan
from worldline.model.randomness import draw_bits, key_of
from worldline.model.reading import as_time
from worldline.nodes.algorithm import LATENCY, Algorithm
from worldline.nodes.faults import SHARES, Fault, draw_faults, parse_kinds, time_of
from worldline.nodes.reading import as_topology
from worldline.nodes.scheduler import EVENTS_MAX, Scheduler, plan_of
from worldline.nodes.script import Delays, Deliveries, MessageId, Script
from worldline.nodes.topology import Topology
from worldline.nodes.trace import NodeRecord
from worldline.processes.executor import Executor, Inline, as_executor
from worldline.search.day import USUAL_DAY, Day, DayDraws, draw_day
from worldline.search.properties import AT_END, Property
from worldline.search.trial import TrialOutcome

# How long messages of nodes are under way on a day that isn't a usual one.


class DayDeliveries:
    """Draws the fate of each message from the seed, its link and the day; `is_open` if nobody stated the latency."""

    def __init__(self, day: Day, seed: int, link: Link, *, is_open: bool) -> None:
        self._draws = DayDraws(day, seed)
        self._seed = seed
        self._link = link
        self._is_open = is_open
        self._keys: dict[tuple[int, int, str], int] = {}

    @property
    def felt(self) -> Collection[str]:
        """What of the day has made a difference so far."""
        return self._draws.felt

    def delays(self, message: MessageId) -> Delays:
        if self._happens("loss", message, self._link.loss_at_receiver):
            return ()
        return (self._takes("latency", message),) + (
            (self._takes("latency-of-copy", message),)
            if self._happens("duplication", message, self._link.duplication)
            else ()
        )

    def _takes(self, purpose: str, message: MessageId) -> int:
        latency = self._link.latency
        stated = latency.draw(self._bits(purpose, message))
        *way, number = message
        path = (purpose, *map(str, way))
        return self._draws.latency(path, number, latency, stated, is_open=self._is_open)

    def _happens(self, purpose: str, message: MessageId, share: float) -> bool:
        if not share:
            return False
        chance = Chance(share)
        happens = chance.draw(self._bits(purpose, message))
        *way, number = message
        return self._draws.is_lost(("loss", *map(str, way)), number, chance, happens) if purpose == "loss" else happens

    def _bits(self, purpose: str, message: MessageId) -> int:
        sender, receiver, number = message
        key = self._keys.get((sender, receiver, purpose))
        if key is None:
            key = self._keys[sender, receiver, purpose] = key_of(self._seed, purpose, str(sender), str(receiver))
        return draw_bits(key, number)


class Trial(Struct, frozen=True, kw_only=True):
    """Everything that a run depends on. What isn't given is up to the algorithm.

    `kinds` are faults drawn from the seed, with how many of each; `faults` are written out. `day` is the kind of day;
    without one a run has a usual day, and a search draws one for each seed.
    """

    algorithm: Algorithm
    topology: str | Topology | None = None
    seed: int = 0
    parameters: dict[str, Any] = {}
    kinds: dict[str, float] = {}
    faults: tuple[Fault, ...] = ()
    latency: str | None = None
    fifo: bool | None = None
    until: int | None = None
    events_max: int = EVENTS_MAX
    script: Script | None = None
    day: Day | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.algorithm, Algorithm):
            raise ConfigurationError(
                f"{shown(self.algorithm)} isn't an algorithm", advice="use find(name), or Algorithm(...)"
            )
        if not isinstance(self.kinds, dict):
            raise ConfigurationError(
                f"{shown(self.kinds)} aren't kinds of faults", advice='write {"crash": 2, "loss": 0.1}'
            )
        parse_kinds(",".join(f"{kind}={number!r}" for kind, number in self.kinds.items()))

    def graph(self) -> Topology:
        return as_topology(self.algorithm.topology if self.topology is None else self.topology, seed=self.seed)

    def end(self) -> int | None:
        if self.until is not None or self.algorithm.until is None:
            return self.until
        return as_time(self.algorithm.until, "the end")

    def link(self) -> Link:
        return as_link(
            self.latency or self.algorithm.latency,
            loss=self._todays().get("loss", 0.0),
            duplication=self._todays().get("duplication", 0.0),
            fifo=self.algorithm.fifo if self.fifo is None else self.fifo,
        )

    def plan(self) -> Plan:
        """Return what determines a run apart from the nodes themselves, for the header of a recording."""
        return plan_of(self.graph(), self.link(), self.seed, self.end())

    def _todays(self) -> dict[str, float]:
        """Return the kinds of faults that there are on this day."""
        without = () if self.day is None else self.day.without
        return {kind: number for kind, number in self.kinds.items() if kind not in without}

    def deliveries(self) -> Deliveries | None:
        """Return what decides how long messages take, unless they take what the seed draws for their links."""
        if self.script is None and self.day is not None and self.day.changes_messages:
            is_open = self.latency is None and self.algorithm.latency == LATENCY
            return DayDeliveries(self.day, self.seed, self.link(), is_open=is_open)
        return self.script

    def _felt(self, deliveries: Deliveries | None) -> Day:
        """Return what of the day made a difference to a run with these deliveries."""
        felt = deliveries.felt if isinstance(deliveries, DayDeliveries) else ()
        return (self.day or USUAL_DAY).only(felt, self.kinds)

    def with_seed(self, seed: int) -> Trial:
        day = draw_day(seed, self.kinds) if self.day is None else self.day
        return structs.replace(self, seed=seed, day=day)

    def pinned(self) -> Trial:
        """Return the same trial with its topology and its faults written out."""
        graph = self.graph()
        kinds = self._todays()
        rest = {kind: number for kind, number in kinds.items() if kind in SHARES}
        drawn: tuple[Fault, ...] = ()
        if rest != kinds:
            drawn = draw_faults(kinds, graph, self.end() or self._length(graph), self.seed)
        return structs.replace(
            self, topology=graph, faults=tuple(sorted((*self.faults, *drawn), key=time_of)), kinds=rest
        )

    def _length(self, graph: Topology) -> int:
        """Return how long it takes if nothing goes wrong: faults that come after the end strike nobody."""
        undisturbed = Scheduler.over(
            graph,
            self.algorithm.node,
            seed=self.seed,
            link=self.link(),
            parameters=self.parameters,
            script=self.deliveries(),
        )
        undisturbed.start_all_nodes()
        with suppress(ModelError):  # It will fail again, and is judged then.
            undisturbed.run(events_max=self.events_max)
        return undisturbed.now

    def scheduler(
        self,
        *,
        trace: bool | Callable[[NodeRecord], None] = False,
        properties: tuple[Property, ...] | None = None,
        deliveries: Deliveries | None = None,
    ) -> Scheduler:
        """Return the run, ready to start; properties and deliveries are the trial's own, unless others are given."""
        pinned = self.pinned()
        made = Scheduler.over(
            pinned.topology,
            self.algorithm.node,
            seed=self.seed,
            link=self.link(),
            parameters=self.parameters,
            faults=pinned.faults,
            properties=self.algorithm.properties if properties is None else properties,
            script=self.deliveries() if deliveries is None else deliveries,
            trace=trace,
        )
        made.start_all_nodes()
        return made

    def measured(self) -> tuple[TrialOutcome, int]:
        """Run it, and return how many lines its trace has as well."""
        count = 0

        def take(_: NodeRecord) -> None:
            nonlocal count
            count += 1

        outcome = self.run(trace=take)
        return outcome, count

    def run(
        self,
        *,
        executor: Executor | str = "inline",
        observer: Observer | None = None,
        watch: Watch | None = None,
        trace: Callable[[NodeRecord], None] | None = None,
    ) -> TrialOutcome:
        """Run it, and return the outcome; a failure of the model is an outcome, too.

        On executors other than inline, properties that are checked after every event are left out, as the outcome
        remarks; and of a run that fails before its end only the failure is known.
        """
        chosen = as_executor(executor, EXECUTORS)
        is_inline = isinstance(chosen, Inline)
        unseen = () if is_inline else tuple(each for each in self.algorithm.properties if each.when != AT_END)
        judged = tuple(each for each in self.algorithm.properties if each not in unseen)
        deliveries = self.deliveries()
        scheduler = self.scheduler(trace=trace or False, properties=judged, deliveries=deliveries)
        failure: ModelError | None = None
        try:
            scheduler.run(self.end(), events_max=self.events_max, executor=chosen, observer=observer, watch=watch)
        except ModelError as error:
            failure = error
            if not is_inline and not scheduler.is_over:
                if isinstance(error, Stuck):  # It was broken off somewhere, not where it went wrong.
                    raise
                return TrialOutcome.failed(self.seed, error)
        result = scheduler.result()
        return TrialOutcome(
            digest=result.digest,
            now=scheduler.now,
            events=result.events,
            members=result.members,
            dropped=result.dropped,
            failure=failure,
            is_cut=failure is not None and scheduler.is_cut,
            seed=self.seed,
            faults=scheduler.faults_so_far,
            faults_in_vain=scheduler.faults_in_vain if is_inline and failure is None else 0,
            unseen=tuple(map(str, unseen)),
            day=self._felt(deliveries) if is_inline else None,
        )
