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
from collections.abc import Iterable, Sequence
from typing import Any, NoReturn

from worldline.history.observer import OUTSIDE
from worldline.kernel.account import tell_unheard
from worldline.kernel.engine import Engine, EntityBase, Handlers, handlers_of
from worldline.kernel.monitor import Monitor
from worldline.kernel.packing import fingerprint, size_of
from worldline.kernel.process import refused_generator
from worldline.kernel.topology import KernelNetwork
from worldline.kernel.trouble import METHODS, advice_on
from worldline.kernel.waiting import EntityMessage
from worldline.model.blame import line_of, located, models, said_of
from worldline.model.errors import ModelError, ObserverFailure, WorldlineError, nearest, shown
from worldline.model.message import SEPARATOR, check_name, descendant, is_short
from worldline.model.path import Path
from worldline.model.randomness import Stream
from worldline.model.time import format_time

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
        self.streams: dict[str, Stream] = {}


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
        self.engine = Engine(self, latency=topology.latency, least=topology.least)
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
