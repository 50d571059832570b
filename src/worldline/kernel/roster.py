"""Who is there: finds entities by name, on this worker or another, and the links between them.

Names tell where an entity stands. One that was added before the run has a *place* of its own; one that is created by
another stands where its creator does, has the creator's name in front of its own (or, after many generations, what
stands for it: see `model.lineage`), runs on the same worker and uses the same links. So every worker knows where any
name belongs, without being told who was created elsewhere.

Those who are created can be without end. So of one that has ended nothing stays here: its chain goes into that of who
has its place, its monitors are the run's, and its creator only knows how many it has numbered, and the names that it
has given.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NoReturn

from worldline.history.monitor import Monitor
from worldline.history.observer import OUTSIDE
from worldline.kernel.account import tell_unheard
from worldline.kernel.draws import Draws
from worldline.kernel.engine import Engine, EntityBase, Handlers, handlers_of
from worldline.kernel.packing import fingerprint, size_of
from worldline.kernel.process import refused_generator
from worldline.kernel.trouble import METHODS, advice_on
from worldline.kernel.waiting import EntityMessage
from worldline.model.blame import line_of, located, models, said_of
from worldline.model.errors import (
    ConfigurationError,
    InternalError,
    ModelError,
    ObserverFailure,
    WorldlineError,
    nearest,
    shown,
)
from worldline.model.latency import Fixed
from worldline.model.links import Link, Network
from worldline.model.message import SEPARATOR, check_name, descendant, is_short
from worldline.model.path import Path, Paths
from worldline.model.time import FOREVER, format_time

# -- The links between entities, what they do to messages, and how short they can be


class KernelNetwork:
    """A network as the kernel uses it. With `declared_only`, only pairs that a rule names can talk to each other."""

    def __init__(self, network: Network, seed: int, *, declared_only: bool) -> None:
        self.network = network
        self.declared_only = declared_only
        self._seed = seed
        self._paths = Paths(network, seed)
        self._topics = sorted({rule.topic for rule in network.rules if rule.topic is not None})
        self._declared: dict[tuple[str, str], None] = {
            (rule.sender, rule.receiver): None for rule in network.rules if rule.sender and rule.receiver
        }
        self._least: dict[tuple[str, str], int] = {}
        # What holds for every pair needs no look at the pair; 0 if it doesn't.
        uniform = not (network.rules or declared_only)
        plain = network.default == Link(latency=network.default.latency)
        fixed = isinstance(network.default.latency, Fixed) and not network.outages
        self.least = network.default.latency.minimum if uniform else 0
        self.latency = self.least if plain and fixed else 0

    def declared(self) -> list[tuple[str, str]]:
        """Return the pairs of sender and receiver that rules name."""
        return list(self._declared)

    def least_between(self, source: str, goal: str) -> int | None:
        """Return the least latency between two places, whatever the topic; None if there is no link."""
        least = self._least.get((source, goal))
        if least is None:
            if self.declared_only and (source, goal) not in self._declared:
                return None
            # A topic that no rule names: names can't be empty.
            links = [self._paths.link(topic, source, goal) for topic in ("", *self._topics)]
            least = self._least[source, goal] = min(link.latency.minimum for link in links)
        return least

    def path(self, topic: str, sender: tuple[str, str], receiver: tuple[str, str]) -> Path | None:
        """Return the path between two entities, each given by its place and its name.

        The places decide which link it is; the names, that each has draws of its own.
        """
        (source, sender_name), (goal, receiver_name) = sender, receiver
        if self.declared_only and (source, goal) not in self._declared:
            return None
        link, outages = self._paths.link(topic, source, goal), self._paths.outages(topic, source, goal)
        return Path(link, self._seed, (topic, sender_name, receiver_name), outages=outages)

    def lookahead(self, names: Sequence[str], workers: Sequence[int], count: int) -> list[list[int]]:
        """Return for each two workers the least latency from the first to the second: FOREVER if there is no link."""
        if not self.declared_only:
            return self._lookahead_of_rules(names, workers, count)
        least = [[FOREVER] * count for _ in range(count)]
        worker_of = dict(zip(names, workers, strict=True))
        for source, goal in self.declared():
            here, there = worker_of[source], worker_of[goal]
            between = self.least_between(source, goal)
            if here != there and between is not None:
                least[here][there] = min(least[here][there], between)
        return least

    def _lookahead_of_rules(self, names: Sequence[str], workers: Sequence[int], count: int) -> list[list[int]]:
        """All may talk to all: the default link counts for each two workers, and every rule that can."""
        default = self.network.default.latency.minimum
        least = [[FOREVER if here == there else default for there in range(count)] for here in range(count)]
        if self.network.rules:
            worker_of = dict(zip(names, workers, strict=True))
            for rule in self.network.rules:
                for here in range(count) if rule.sender is None else (worker_of[rule.sender],):
                    for there in range(count) if rule.receiver is None else (worker_of[rule.receiver],):
                        if here != there:
                            least[here][there] = min(least[here][there], rule.link.latency.minimum)
        return least


# -- Which worker gets which entity. Where entities are changes how fast a run is, never what comes of it.

Placement = Any
"""A name, or a dict of names to workers; other rooms have placements of their own."""

ROUND_ROBIN = "round robin"
BY_LINKS = "links"


def place(placement: Placement | None, names: Sequence[str], topology: KernelNetwork, count: int) -> list[int]:
    """Return for each name the number of its worker. By itself, declared links decide if there are any."""
    if placement is None:
        placement = BY_LINKS if topology.declared() else ROUND_ROBIN
    if isinstance(placement, Mapping):
        return _given(placement, names, count)
    if placement == ROUND_ROBIN:
        return [number % count for number in range(len(names))]
    if placement == BY_LINKS:
        return _by_links(names, topology, count)
    raise ConfigurationError(
        f"{shown(placement)} isn't a placement",
        advice=f"use {ROUND_ROBIN!r}, {BY_LINKS!r} or a dict of names to workers",
    )


def _given(placement: Mapping[str, int], names: Sequence[str], count: int) -> list[int]:
    for name, worker in placement.items():
        if type(worker) is not int or not 0 <= worker < count:
            raise ConfigurationError(
                f"{name} is placed on worker {shown(worker)}", advice=f"there are {count}, from 0 to {count - 1}"
            )
    missing = [name for name in names if name not in placement]
    if missing:
        raise ConfigurationError(f"the placement doesn't say where {missing[0]} is", advice="name every entity")
    known = frozenset(names)
    unknown = [name for name in placement if name not in known]
    if unknown:
        raise ConfigurationError(f"the placement names {shown(unknown[0])}, and there is no such entity")
    return [placement[name] for name in names]


def _by_links(names: Sequence[str], topology: KernelNetwork, count: int) -> list[int]:
    return grouped(names, [(topology.least_between(*pair) or 0, *pair) for pair in topology.declared()], count)


def grouped(names: Sequence[str], links: Iterable[tuple[float, str, str]], count: int) -> list[int]:
    """Keep together what is close: the lengths of the links between workers are what lets them go ahead.

    The shortest links are joined first (as in Kruskal's algorithm), as long as no group grows beyond a worker's share;
    the groups are then dealt out, the largest first, each to the worker that has least. So the links that are cut tend
    to be the longest.
    """
    share = -(-len(names) // count)
    place_of = {name: number for number, name in enumerate(names)}
    group = list(range(len(names)))
    size = [1] * len(names)

    def leader(member: int) -> int:
        while group[member] != member:
            group[member] = group[group[member]]
            member = group[member]
        return member

    for _, source, goal in sorted(links):
        first, second = leader(place_of[source]), leader(place_of[goal])
        if first != second and size[first] + size[second] <= share:
            group[max(first, second)] = min(first, second)
            size[min(first, second)] += size[max(first, second)]
    load = [0] * count
    worker_of: dict[int, int] = {}
    leaders = [member for member in range(len(names)) if leader(member) == member]
    for head in sorted(leaders, key=lambda head: (-size[head], head)):
        worker = load.index(min(load))
        worker_of[head] = worker
        load[worker] += size[head]
    return [worker_of[leader(member)] for member in range(len(names))]


TOO_LATE = "arrived after its receiver had ended"

_LAST_RANK = 2**30
_PATHS_MAX = 1_000


class Extras:
    """What few entities have, kept apart so that the others are small."""

    __slots__ = ("children", "monitors", "named", "numbers", "paths", "paths_max", "streams")

    def __init__(self) -> None:
        self.children = 0
        self.named: set[str] = set()
        self.monitors: dict[str, Monitor] = {}
        self.numbers: dict[str, int] = {}
        self.paths: dict[tuple[str, str], Path] = {}
        self.paths_max = _PATHS_MAX  # How many there may be until it is time to let some go.
        self.streams: dict[str, Draws] = {}


def extras_of(entity: EntityBase) -> Extras:
    if entity._wl_extras is None:
        entity._wl_extras = Extras()
    extras: Extras = entity._wl_extras
    return extras


def monitors_of(entity: EntityBase) -> Iterable[tuple[str, Monitor]]:
    return entity._wl_extras.monitors.items() if entity._wl_extras is not None else ()


def _is_number(name: str) -> bool:
    return name.isascii() and name.isdecimal()


class Roster:
    """The entities of one worker, and what it knows of the others."""

    def __init__(
        self, names: Sequence[str], topology: KernelNetwork, seed: int, workers: Sequence[int] = (), me: int = 0
    ) -> None:
        """`names` are those of all workers, sorted; `workers` says for each on which one it is (none: all are here)."""
        self.seed = seed
        self.endings: dict[str, int] = {}
        self.monitors: dict[tuple[str, str], Monitor] = {}  # Of those who were created and have ended.
        self.engine = Engine(self, latency=topology.latency, least=topology.least, names=names, workers=workers)
        self._names = names
        self._workers = workers
        self._me = me
        self._topology = topology
        self._late: dict[str, int] = {}
        self._late_names: list[str] = []
        self._handlers: dict[type, Handlers] = {}

    # -- Coming and going

    def add(self, name: str, entity: EntityBase) -> None:
        """Let an entity of the roster enter."""
        place = bisect_left(self._names, name)
        self._enter(entity, name, 2 * place, place, since=self.engine.now - 1)

    def add_late(self, name: str, entity: EntityBase) -> None:
        """Let an entity enter that is added from outside to a simulation that has begun: it has a place of its own."""
        self._check_free(name)
        place = len(self._names) + len(self._late_names)
        self._late[name] = place
        self._late_names.append(name)
        self._enter(entity, name, self._rank_between(name), place, since=self.engine.now - 1)
        self._tell_beginning(name)

    def create(self, creator: EntityBase, entity: EntityBase, name: str | None) -> str:
        """Let an entity enter that another has made, and return its name."""
        extras = extras_of(creator)
        if name is None:
            extras.children += 1
            name = str(extras.children)
        else:
            check_name(name, "an entity")
            if SEPARATOR in name or _is_number(name) or is_short(name):
                advice = f"it must not have a {SEPARATOR} in it or be a number; those are given without a name"
                raise ModelError(
                    f"{shown(name)} can't name an entity that is created during the run",
                    advice="~ and a hash stand for a creator's name" if is_short(name) else advice,
                )
            if name in extras.named:
                raise ModelError(f"it has created a {shown(name)} before", advice="every name is used once")
            extras.named.add(name)
        full = descendant(self._root(creator._wl_place), creator.name, name)
        self._check_free(full)
        self._enter(entity, full, self._rank_between(full), creator._wl_place, since=self.engine.now)
        self._tell_beginning(full)
        return full

    def ended(self, entity: EntityBase) -> None:
        """Note that an entity has ended; one that was created leaves its history to the one at whose place it stood."""
        root = self._root(entity._wl_place)
        if root == entity.name:
            self.endings[root] = self.engine.now
        else:
            del self.engine.directory[entity.name]
            for what, monitor in monitors_of(entity):
                monitor.end = self.engine.now
                self.monitors[entity.name, what] = monitor
            self.engine.directory[root]._wl_absorb(entity.name, entity._wl_history)
            if self.engine.observer is not None:
                self.engine.observer.ended(entity.name, self.engine.now, b"")

    def _enter(self, entity: EntityBase, name: str, rank: int, place: int, *, since: int) -> None:
        kind = type(entity)
        handlers = self._handlers.get(kind)
        if handlers is None:
            handlers = self._handlers[kind] = handlers_of(kind)
        self.engine.enter(entity, name, rank, place, fingerprint(name.encode()), handlers, since=since)

    def _tell_beginning(self, name: str) -> None:
        if self.engine.observer is not None:
            self.engine.observer.began(name, self.engine.now)

    def _check_free(self, name: str) -> None:
        if name in self.engine.directory or self._is_listed(name):
            raise ModelError(f"there is an entity named {shown(name)} already", advice="every name is used once")

    # -- Finding

    def locate(self, name: str) -> EntityBase:
        """Return what stands for an entity that isn't in the directory; refuse a name that no entity can have."""
        place = self._place_of(name) if isinstance(name, str) else None
        if place is None:
            self._refuse_name(name)
        return self._stand_in(name, place, remote=self.worker_of(place) != self._me)

    def sender(self, name: str) -> EntityBase:
        """Return what stands for the sender of a message from another worker."""
        found: EntityBase | None = self.engine.directory.get(name)
        return found if found is not None else self.locate(name)

    def worker_of(self, place: int) -> int:
        """Return on which worker a place is; what was added during an inline run is here."""
        return self._workers[place] if place < len(self._workers) else self._me

    def outside(self) -> EntityBase:
        """Return who sends what is sent from outside the simulation: no entity, and after all of them."""
        made: EntityBase = self.engine.stand_in(OUTSIDE, _LAST_RANK, -1, 0, remote=False)
        return made

    def _stand_in(self, name: str, place: int, *, remote: bool) -> EntityBase:
        listed = self._is_listed(name)
        rank = 2 * place if listed else self._rank_between(name)
        made: EntityBase = self.engine.stand_in(name, rank, place, fingerprint(name.encode()), remote=remote)
        if listed:  # Those can't become too many.
            self.engine.directory[name] = made
        return made

    def _is_listed(self, name: str) -> bool:
        place = bisect_left(self._names, name)
        return place < len(self._names) and self._names[place] == name

    def _rank_between(self, name: str) -> int:
        return 2 * bisect_left(self._names, name) - 1

    def _place_of(self, name: str) -> int | None:
        """Return the place of the longest beginning of the name that has one."""
        beginning = name
        while beginning:
            if beginning in self._late:
                return self._late[beginning]
            place = bisect_left(self._names, beginning)
            if place < len(self._names) and self._names[place] == beginning:
                return place
            beginning = beginning.rpartition(SEPARATOR)[0]
        return None

    def _root(self, place: int) -> str:
        """Return the name that has the place."""
        listed = len(self._names)
        return self._names[place] if place < listed else self._late_names[place - listed]

    # -- Links

    def least(self, sender: EntityBase, receiver: EntityBase) -> int:
        """Return the shortest time that a message can take between two places."""
        source, goal = self._root(sender._wl_place), self._root(receiver._wl_place)
        least = self._topology.least_between(source, goal)
        if least is None:
            self._refuse_link(source, goal)
        return least

    def carry(
        self, sender: EntityBase, receiver: EntityBase, topic: str, payload: Any
    ) -> tuple[tuple[int, ...], str | None]:
        """Return when a message arrives over its link, its copy too if there is one, and why not if it doesn't."""
        extras = extras_of(sender)
        path = extras.paths.get((receiver.name, topic))
        if path is None:
            source, goal = self._root(sender._wl_place), self._root(receiver._wl_place)
            found = self._topology.path(topic, (source, sender.name), (goal, receiver.name))
            if found is None:
                self._refuse_link(source, goal)
            if len(extras.paths) >= extras.paths_max:
                self._let_paths_go(extras)
            path = extras.paths[receiver.name, topic] = found
        number = extras.numbers.get(topic, 0)
        extras.numbers[topic] = number + 1
        return path.carry(self.engine.now, number, size_of(payload) if path.queues else 0)

    def _let_paths_go(self, extras: Extras) -> None:
        """Forget those paths to entities created during the run that can be made anew as they are now."""
        extras.paths = {
            key: path
            for key, path in extras.paths.items()
            if not path.is_idle(self.engine.now) or self._is_listed(key[0])
        }
        extras.paths_max = max(_PATHS_MAX, 2 * len(extras.paths))

    # -- Trouble

    def arrived(self, target: EntityBase, sender: EntityBase, topic: object, time: int) -> EntityBase | None:
        """Return who gets a message whose receiver isn't there; None if it has ended, and the message vanishes."""
        found: EntityBase | None = self.engine.directory.get(target.name)
        if found is not None and found is not target and not found.has_ended:
            return found
        if not isinstance(topic, str):
            return None  # A timer, or a process that slept.
        if not target.has_ended and not self._has_been(target.name):
            raise ModelError(
                f"a message to {target.name} arrives at {format_time(time)}, and there never was such an entity",
                participant=sender.name or "outside",
                at=time,
                receiver=target.name,
            )
        self.engine.count_dropped(target.name, topic, TOO_LATE)
        if self.engine.observer is not None:
            tell_unheard(self.engine, sender, target, TOO_LATE)
        return None

    def _has_been(self, name: str) -> bool:
        """Whether there was a created entity of that name. If its creator is gone too, that isn't known any more."""
        creator, _, last = name.rpartition(SEPARATOR)
        if is_short(last):  # It stands for the creator of another.
            return True
        found = self.engine.directory.get(creator)
        if found is None:
            return self._place_of(creator) is not None and SEPARATOR in creator and self._has_been(creator)
        extras: Extras | None = found._wl_extras
        if extras is None:
            return False
        return last in extras.named or (_is_number(last) and 0 < int(last) <= extras.children and last[0] != "0")

    def refuse_early(self, sender: EntityBase, sent: int, receiver: EntityBase, arrival: int, past: int) -> NoReturn:
        """Say that a message has come from another worker too late to have its place in the order of all."""
        raise InternalError(
            f"a message from {sender.name}, sent at {format_time(sent)}, arrives at {format_time(arrival)}, "
            f"but worker {self._me} was let go to {format_time(past)}",
            participant=receiver.name,
            at=self.engine.now,
        )

    def refuse_message(self, receiver: EntityBase, message: EntityMessage) -> NoReturn:
        raise ModelError(
            f"it can't take {shown(message.topic)} from {message.sender or 'outside'}: "
            f"{type(receiver).__name__} has no on_{message.topic}, no handle, and no process that could receive it",
            advice=nearest(f"on_{message.topic}", [name for name in dir(receiver) if name.startswith("on_")]),
            receiver=receiver.name,
            sender=message.sender,
        )

    def blame(self, error: BaseException, target: EntityBase | None, topic: object) -> WorldlineError:
        """Return the error that ends the run: it says who, when and why."""
        now = self.engine.now
        name = target.name if target is not None else None
        if isinstance(error, ObserverFailure):
            return error
        if isinstance(error, WorldlineError):
            said = located(error, line_of(refused_generator(target)))
            if name is None or said.participant is not None:  # Otherwise a room above has blamed one already.
                return said
            return models(said).concerning(name, now)
        doing = f"on {topic!r} " if isinstance(topic, str) else ""
        return ModelError(
            f"{doing}it raised {said_of(error)}",
            participant=name,
            at=now,
            topic=topic if doing else None,
            advice=advice_on(error, target, METHODS),
        )

    def _refuse_name(self, name: object) -> NoReturn:
        advice = nearest(name, self._names) if isinstance(name, str) else "messages are sent to names"
        raise ModelError(
            f"there is no entity named {shown(name)}",
            advice=advice,
            receiver=name if isinstance(name, str) else shown(name),
        )

    def _refuse_link(self, source: str, goal: str) -> NoReturn:
        raise ModelError(
            f"there is no link from {source} to {goal}",
            advice=f"declare it: connect({source!r}, {goal!r}, ...)",
            receiver=goal,
        )
