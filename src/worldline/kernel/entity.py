"""Entities: what users derive from, or make of a generator function."""

from __future__ import annotations

from collections.abc import Callable, Generator
from inspect import isgeneratorfunction
from typing import Any, ClassVar

from worldline.history.monitor import Monitor, checked_measure
from worldline.history.observer import LOG, MEASURE
from worldline.history.plain import encoded
from worldline.kernel.account import tell_own
from worldline.kernel.draws import Draws
from worldline.kernel.process import EntityWithProcesses
from worldline.kernel.roster import extras_of
from worldline.kernel.trouble import METHODS, PROPERTIES, check_class
from worldline.model.errors import UsageError, shown
from worldline.model.message import check_name


class Entity(EntityWithProcesses):
    """Something with a name, its own state and its own clock, which others reach only by messages.

    A message of the topic ``x`` goes to the method ``on_x(payload)``; if there is none, to ``handle(message)``; if
    there is none either, to a process that receives it. ``start()`` is called when the entity enters the simulation.
    Any of these may be a generator: then it is a process, and what it yields is what it waits for.
    """

    ends_with_its_process: ClassVar[bool] = False
    _wl_tells_itself: ClassVar[bool] = False
    """Whether it tells `_wl_observer` itself what it sends, gets and notes, in the words of a room above this one."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        check_class(cls, Entity, PROPERTIES, METHODS)

    def create(self, entity: Entity, name: str | None = None) -> str:
        """Add a new entity now, and return its name: this one's, a slash, and the given name or a number."""
        if not isinstance(entity, Entity):
            raise UsageError(f"{shown(entity)} isn't an Entity", advice="make one: create(Customer(...))")
        created: str = self._wl_roster.create(self, entity, name)
        return created

    def record(self, what: str, value: Any) -> None:
        """Record a value in the monitor of that name, as of now."""
        check_name(what, "a monitor")
        self._wl_note(what, value)
        monitors = extras_of(self).monitors
        if what not in monitors:
            monitors[what] = Monitor()
        monitors[what].record(self.now, value)

    def measure(self, what: str, value: float) -> None:
        """Measure a number, as of now: it is in the outcome's monitors, for sweeps and observers, and in no digest."""
        what, value = checked_measure(what, value)
        engine = self._wl_roster.engine
        if engine.observer is not None:
            engine.observer.noted(self.name, MEASURE, engine.now, encoded({what: value}))
        monitors = extras_of(self).monitors
        if what not in monitors:
            monitors[what] = Monitor()
        monitors[what].record(engine.now, value)

    def log(self, text: object) -> None:
        """Write a line for those who look on: observers are told, and recordings keep it. It is in no digest."""
        engine = self._wl_roster.engine
        if engine.observer is not None:
            tell_own(engine, self, LOG, {"text": str(text)})

    def stream(self, name: str) -> Draws:
        """Return a named stream of draws, independent of `random`: drawing from one doesn't affect the other."""
        streams = extras_of(self).streams
        if name not in streams:
            streams[name] = Draws(self._wl_roster.seed, self.name, name)
        return streams[name]

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}>" if self.name else f"<{type(self).__name__}>"

    def __reduce__(self) -> Any:
        raise TypeError("an entity can't be copied or sent: others know it by its name")


class _Running(Entity):
    """An entity that is one process."""

    __slots__ = ("arguments", "function", "named")

    ends_with_its_process = True

    def __init__(self, function: Callable[..., Any], arguments: tuple[Any, ...], named: dict[str, Any]) -> None:
        self.function = function
        self.arguments = arguments
        self.named = named or None  # There may be a million of these.

    def start(self) -> Generator[Any, Any, Any]:
        generator: Generator[Any, Any, Any] = self.function(self, *self.arguments, **(self.named or {}))
        return generator


def process(function: Callable[..., Generator[Any, Any, Any]], *arguments: Any, **named: Any) -> Entity:
    """Make an entity from a generator function, which is called with the entity and the arguments given here."""
    if not isgeneratorfunction(function):
        raise UsageError(f"{shown(function)} isn't a generator function", advice="a process waits with yield")
    return _Running(function, arguments, named)
