"""When the events of a diagram's systems are, of which Drake tells Python little.

- What a system in Python declares is noted when it does, from the import of this module on.
- A publisher or a logger of Drake's own is run alone: for want of an input it fails at its first event, before it has
  done anything, and that tells its period.
- Of other systems, Drake tells the period of discrete updates if all of one system have the same.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from fractions import Fraction
from math import inf, nextafter
from typing import Any
from weakref import WeakKeyDictionary

from pydrake.multibody.plant import MultibodyPlant
from pydrake.systems.analysis import InitializeParams, Simulator
from pydrake.systems.framework import LeafSystem, PublishEvent, System
from pydrake.systems.lcm import LcmPublisherSystem
from pydrake.systems.primitives import VectorLogSink

from worldline.metasim.seconds import Grid

ONLY_EVENTS = InitializeParams(suppress_initialization_events=True)

_SOON, _NEVER = 1e-12, 1e15  # In seconds: before all that is periodic, and after it.
_MANY = 2**20

Times = dict[tuple[float, float], None]
"""Periods and offsets, in seconds."""


@dataclass
class _Declared:
    publishes: Times = field(default_factory=dict)
    updates: Times = field(default_factory=dict)


_declared: WeakKeyDictionary[System, _Declared] = WeakKeyDictionary()


class EventTimes:
    """When the systems of a diagram publish and update something periodically, as far as that is known.

    By the run's rule, everything is published before anything is updated at one nanosecond. Drake goes by floats: where
    an update's lies before a publish's, the two *clash*.
    """

    def __init__(self, leaves: Iterable[System]) -> None:
        publishes: Times = {}
        updates: Times = {}
        self.steps: dict[float, None] = {}  # Periods of the discrete updates that Drake tells of.
        for leaf in leaves:
            declared, told = _declared.get(leaf, _Declared()), _told(leaf)
            publishes |= declared.publishes | _tried(leaf)
            updates |= declared.updates | told
            self.steps |= {period: None for period, _ in told}
        self.publishes = [Grid(*each) for each in publishes]
        self.updates = [Grid(*each) for each in updates]
        self._rounded = [grid for grid in (*self.publishes, *self.updates) if grid.is_rounded]
        self._pairs = [
            (publish, update)
            for publish in self.publishes
            for update in self.updates
            # Without an offset, those of one grid have one float.
            if publish.offset or (publish.period, publish.offset) != (update.period, update.offset)
        ]
        self._searched = 0
        self._found: int | None = None  # The clash up to which it has searched.

    def clash(self, now: int, until: int) -> int | None:
        """Return the first time after now, up to another, at which something clashes. Now never goes back."""
        if not self._pairs:
            return None
        if self._found is None or self._found <= now:
            self._searched, self._found = max(self._searched, now), None
            if self._searched < until:
                found = (_clash_of(publish, update, self._searched, until) for publish, update in self._pairs)
                self._found = min((time for time in found if time is not None), default=None)
                self._searched = until if self._found is None else self._found
        return self._found if self._found is not None and self._found <= until else None

    def published(self, time: int) -> list[float]:
        """Return the floats of all publishes at a time in nanoseconds."""
        return [each for grid in self.publishes for each in grid.floats(time)]

    def updated(self, time: int) -> list[float]:
        """Return the floats of all updates at a time in nanoseconds."""
        return [each for grid in self.updates for each in grid.floats(time)]

    def floats(self, time: int) -> list[float]:
        """Return the floats of all that happens at a time in nanoseconds, in order."""
        return sorted(self.published(time) + self.updated(time))

    def is_rounded(self, time: int) -> bool:
        """Whether this is a time of something whose period isn't a whole number of nanoseconds."""
        return bool(self._rounded) and any(grid.floats(time) for grid in self._rounded)


def _clash_of(publish: Grid, update: Grid, after: int, until: int) -> int | None:
    slower = max(publish, update, key=lambda grid: grid.period)
    while (after := slower.after(after)) <= until:
        updated = update.floats(after)
        if updated and (published := publish.floats(after)) and min(updated) < max(published):
            return after
    return None


def _told(leaf: System) -> Times:
    """Return period and offset of a system's discrete updates, if all of them have the same."""
    if isinstance(leaf, MultibodyPlant):  # It doesn't tell in the common way.
        return {(leaf.time_step(), 0.0): None} if leaf.time_step() else {}
    told = leaf.GetUniquePeriodicDiscreteUpdateAttribute()
    return {} if told is None else {(told.period_sec(), told.offset_sec()): None}


def _tried(leaf: System) -> Times:
    """Return when a publisher or a logger acts; nothing, if it does so in every step, or never by itself."""
    if not isinstance(leaf, LcmPublisherSystem | VectorLogSink):
        return {}
    first = _first_event(leaf, _SOON)
    if first in (None, _SOON):
        return {}
    assert first is not None
    if _first_event(leaf, 0.0) == 0.0:
        return {(first, 0.0): None}
    second = _first_event(leaf, nextafter(first, inf))
    assert second is not None
    # The difference lacks the last bits. That of a later one has them; a power of two adds no error of its own.
    later = _first_event(leaf, first + (_MANY - 0.5) * (second - first))
    assert later is not None
    return {(float((Fraction(later) - Fraction(first)) / _MANY), first): None}


def _first_event(leaf: System, start: float) -> float | None:
    """Return when a system fails that is run alone, which is where it lacks an input."""
    context = leaf.CreateDefaultContext()
    context.SetTime(start)
    simulator = Simulator(leaf, context)
    try:
        simulator.Initialize(ONLY_EVENTS)
        simulator.AdvanceTo(_NEVER)
    except (Exception, SystemExit):
        return float(context.get_time())
    return None


def _noting(declare: Callable[..., Any], kind: str) -> Callable[..., Any]:
    """Return a method by which a system declares an event, which also notes when it is."""

    @functools.wraps(declare)
    def noting(self: System, period_sec: float, offset_sec: float, *given: Any, **named: Any) -> Any:
        result = declare(self, period_sec, offset_sec, *given, **named)
        event = given[0] if given else named.get("event")
        publishes = isinstance(event, PublishEvent) if kind == "event" else kind == "publish"
        declared = _declared.setdefault(self, _Declared())
        (declared.publishes if publishes else declared.updates)[float(period_sec), float(offset_sec)] = None
        return result

    return noting


for _method, _kind in {
    "DeclarePeriodicPublishEvent": "publish",
    "DeclarePeriodicDiscreteUpdateEvent": "update",
    "DeclarePeriodicUnrestrictedUpdateEvent": "update",
    "DeclarePeriodicEvent": "event",
}.items():
    setattr(LeafSystem, _method, _noting(getattr(LeafSystem, _method), _kind))
