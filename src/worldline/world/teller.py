"""Tells an observer of a history, such as a recorder, what happens in a world, as messages of one member."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct, json

from worldline.history.observer import Observer
from worldline.history.plain import plain
from worldline.model import Plan
from worldline.recording import Provenance, Recorder
from worldline.recording.output import RecordingTarget
from worldline.world.description import WorldDescription, WorldModel
from worldline.world.foxglove import (
    INTERACTIONS,
    SCENE,
    STATE,
    TF,
    WORLD_ENCODINGS,
    WORLD_SCHEMAS,
    SceneEncoder,
    TransformsEncoder,
)
from worldline.world.orders import HASH_SIZE, chained
from worldline.world.spectator import Spectator

WORLD_MEMBER = "world"
"""The member that a world is to whoever observes its history."""

_encode = json.Encoder().encode


class _WorldState(Struct):
    iteration: int
    step: int
    state_hash: str


class _ToldInteraction(Struct):
    iteration: int
    step: int
    interaction: Any


class WorldTeller(Spectator):
    """Messages are sent at iteration × step size, so their times rise even when the world is reset.

    A recorder needs WORLD_SCHEMAS and WORLD_ENCODINGS to say what they are. Nobody receives them: they are final as
    soon as the next iteration has begun. States are told in every iteration, poses in `every` so many. Who simulates
    what isn't told: it is no part of the history.
    """

    def __init__(self, observer: Observer, *, every: int = 1) -> None:
        self.every = every
        self._observer = observer
        self._sent = 0
        self._chain = bytes(HASH_SIZE)
        self._models: Mapping[str, WorldModel] | None = None
        self._step_ns = 0
        self._scene = SceneEncoder(())
        self._transforms = TransformsEncoder({})

    def began(self, description: WorldDescription) -> None:
        self._step_ns = description.step
        self._scene = SceneEncoder(description.levels)
        self._observer.began(WORLD_MEMBER, 0)

    def changed(
        self, iteration: int, step: int, models: Mapping[str, WorldModel], affinities: Mapping[str, str]
    ) -> None:
        if models == self._models:
            return
        self._models = dict(models)
        self._transforms = TransformsEncoder(models)
        at = self._reach(iteration)
        self._send(SCENE, at, self._scene.encode(at, models))

    def stepped(self, iteration: int, step: int, poses: Mapping[str, bytes], state_hash: bytes) -> None:
        self._chain = chained(self._chain, state_hash)
        at = self._reach(iteration)
        if poses:  # First, so that whoever looks for what differs finds who it is before the hash.
            self._send(TF, at, self._transforms.encode(at, poses))
        self._send(STATE, at, _encode(_WorldState(iteration, step, state_hash.hex())))

    def interacted(self, iteration: int, step: int, interaction: Any) -> None:
        at = self._reach(iteration)
        self._send(INTERACTIONS, at, _encode(_ToldInteraction(iteration, step, plain(interaction))))

    def ended(self, iteration: int, step: int) -> None:
        at = self._reach(iteration)
        self._observer.ended(WORLD_MEMBER, at, self._chain)
        self._observer.passed(at + 1)

    def _reach(self, iteration: int) -> int:
        """Return the time of an iteration. Whatever was before it is final (H3)."""
        at = iteration * self._step_ns
        self._observer.passed(at)
        return at

    def _send(self, topic: str, at: int, payload: bytes) -> None:
        self._observer.sent(WORLD_MEMBER, self._sent, topic, at, payload, at)
        self._sent += 1


def world_recorder(
    target: RecordingTarget, name: str, planned: Plan, *, provenance: Provenance | None = None
) -> Recorder:
    """Return what records a world, for a `WorldTeller` to tell; schemas are Foxglove's where it has one."""
    return Recorder(
        target,
        planned,
        federation=name,
        encodings=WORLD_ENCODINGS,
        schemas=WORLD_SCHEMAS,
        provenance=provenance,
        overwrite=True,
    )
