"""What a worker in another process is given, and what it gives back, as bytes."""

from __future__ import annotations

import pickle
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from worldline.kernel.entity import Entity
from worldline.kernel.model import Model, Sending, restored, state_of
from worldline.kernel.topology import KernelNetwork
from worldline.model.errors import ConfigurationError
from worldline.model.links import Network


class Share(NamedTuple):
    """A model, of whose entities only one worker's are there."""

    names: tuple[str, ...]
    workers: list[int]
    entities: dict[str, bytes]
    network: Network
    declared_only: bool
    seed: int
    sendings: tuple[Sending, ...]

    def model(self) -> Model:
        topology = KernelNetwork(self.network, self.seed, declared_only=self.declared_only)
        entities = {name: unpacked(packed) for name, packed in self.entities.items()}
        return Model(self.names, entities, topology, self.seed, self.sendings)


def shares_of(model: Model, workers: Sequence[int], count: int) -> list[bytes]:
    """Return each worker's share; refuse what can't be sent, before anything has started."""
    entities: list[dict[str, bytes]] = [{} for _ in range(count)]
    for name, worker in zip(model.names, workers, strict=True):
        entities[worker][name] = _packed_entity(name, model.entities[name])
    network, declared_only = model.topology.network, model.topology.declared_only
    main = sys.modules.get("__main__")
    if not Path(getattr(main, "__file__", None) or "").is_file() and any(
        type(each).__module__ == "__main__" for each in model.entities.values()
    ):
        raise ConfigurationError(
            "workers can't load what was typed in, or comes from a pipe", advice="put the entities' classes into a file"
        )
    return [
        _dumps(Share(model.names, list(workers), own, network, declared_only, model.seed, model.sendings))
        for own in entities
    ]


class LeftBehind:
    """Stands for an attribute that couldn't be brought back from a worker."""

    def __init__(self, reason: str) -> None:
        self.reason = reason

    def __repr__(self) -> str:
        return f"<left behind in the worker: {self.reason}>"


def packed_state(entity: Entity) -> bytes | None:
    """Return an entity's class and attributes after a run; what can't leave the process is said to be left behind.

    None if its class can't be found from outside, as it may be for one that was created during the run.
    """
    if isinstance(_sendable(type(entity)), LeftBehind):
        return None
    state = state_of(entity)
    try:
        return _dumps((type(entity), state))
    except Exception:  # An attribute's own code may raise anything; which one it was is found below.
        return _dumps((type(entity), {name: _sendable(value) for name, value in state.items()}))


def unpacked(packed: bytes) -> Entity:
    """Return the entity that was packed, new."""
    kind, state = pickle.loads(packed)
    entity: Entity = restored(kind.__new__(kind), state)
    return entity


def unpacked_share(packed: bytes) -> Share:
    share: Share = pickle.loads(packed)
    return share


def _packed_entity(name: str, entity: Entity) -> bytes:
    state = state_of(entity)
    try:
        packed = _dumps((type(entity), state))
        if type(entity).__module__ != "__main__":  # That module exists only here until a worker has made its own.
            pickle.loads(packed)
    except Exception:  # As above.
        for attribute, value in state.items():
            _check(value, f"its attribute {attribute}", name)
        _check(type(entity), "its class", name)
        raise
    return packed


def _check(value: Any, what: str, name: str) -> None:
    try:
        pickle.loads(_dumps(value))
    except Exception as error:  # As above.
        raise ConfigurationError(
            f"{what} can't be sent to a worker: {error}",
            participant=name,
            advice="make it something that can be pickled, or make it in start(), which runs in the worker",
        ) from error


def _sendable(value: Any) -> Any:
    try:
        pickle.loads(_dumps(value))
    except Exception as error:  # As above.
        return LeftBehind(str(error))
    return value


def _dumps(value: Any) -> bytes:
    return pickle.dumps(value, protocol=5)
