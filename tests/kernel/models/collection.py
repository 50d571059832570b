"""The collection that models add themselves to, and how two runs of one are compared."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from worldline.kernel import Entity, Simulation
from worldline.kernel.model import state_of

Waiting = Iterator[Any]


class Case(NamedTuple):
    """A model, and how long to run it; None: as long as something happens."""

    build: Callable[[], Simulation]
    until: str | None


MODELS: dict[str, Case] = {}


def model(until: str | None = None) -> Callable[[Callable[[], Simulation]], Callable[[], Simulation]]:
    """Add a function that builds a simulation to the collection, under its name."""

    def add(build: Callable[[], Simulation]) -> Callable[[], Simulation]:
        MODELS[build.__name__] = Case(build, until)
        return build

    return add


class Observation(NamedTuple):
    """All that can be seen of a run afterwards."""

    digest: str
    now: int
    events: int
    dropped: dict[tuple[str, str, str], int]
    monitors: dict[tuple[str, str], tuple[int | None, list[tuple[int, Any]]]]  # The end, and what was recorded.
    states: dict[str, dict[str, Any]]
    created: dict[str, dict[str, Any]]  # Those that the run has created, and that live.


def observe(simulation: Simulation, until: str | None = None, executor: Any = "inline") -> Observation:
    """Run a simulation and look at what has come of it."""
    added = list(simulation._entities)
    result = simulation.run(until, executor=executor)
    found = states(simulation)
    return Observation(
        digest=result.digest.hex(),
        now=result.now,
        events=result.events,
        dropped=result.dropped,
        monitors={key: (monitor.end, list(monitor)) for key, monitor in result.monitors.items()},
        states={name: state for name, state in found.items() if name in added},
        created={name: state for name, state in found.items() if name not in added},
    )


def states(simulation: Simulation) -> dict[str, dict[str, Any]]:
    """Return the attributes of all entities after a run, also of those that were created by it and live."""
    entities = dict(simulation._entities)
    if simulation._worker is not None:
        entities.update((entity.name, entity) for entity in simulation._worker.present())
    return {name: _shown_state(entity) for name, entity in sorted(entities.items())}


def _shown_state(entity: Entity) -> dict[str, Any]:
    """Return an entity's attributes, functions by their names: they look different in every process."""
    state = {key: value for key, value in sorted(state_of(entity).items()) if not key.startswith("_")}
    return {key: getattr(value, "__qualname__", value) for key, value in state.items()}


def difference(expected: Any, found: Any, where: str = "") -> str:
    """Say where two observations begin to differ; nothing if they don't. Whole ones are too large to be read."""
    if expected == found:
        return ""
    if isinstance(expected, Observation):
        expected, found = expected._asdict(), found._asdict()
    if isinstance(expected, dict) and isinstance(found, dict):
        if expected.keys() != found.keys():
            return f"{where}: {sorted(expected.keys() ^ found.keys())} are on one side only"
        parts = [difference(expected[key], found[key], f"{where}[{key}]" if where else str(key)) for key in expected]
        return "\n".join(part for part in parts if part)
    if isinstance(expected, list) and isinstance(found, list) and len(expected) == len(found):
        place = next(place for place, pair in enumerate(zip(expected, found, strict=True)) if pair[0] != pair[1])
        return difference(expected[place], found[place], f"{where}[{place}]")
    return f"{where}: expected {expected!r:.300}, found {found!r:.300}"


class Diarist(Entity):
    """Writes down what it is given, by whom and when."""

    def __init__(self) -> None:
        self.diary: list[tuple[int, str, int, Any]] = []

    def write(self, what: Any) -> None:
        self.diary.append((self.now, self.sender, self.sent_at, what))
