"""What a primary and its secondaries say to each other.

An order tells a secondary what to load and unload, and how many steps to go. Its ack tells what came of that. Each
answers one order, by the number of its *round*: an ack of another round, or a second one, is no answer to anything.
Numbers of many models are packed: little-endian doubles, for all movers of a secondary, group by group; both groups and
the movers of each are in the order of their names.
"""

from __future__ import annotations

from dataclasses import replace
from hashlib import blake2b

from msgspec import Struct, msgpack

from worldline.world.description import WorldDescription
from worldline.world.interactions import CommandMotors, InsertPerformer, SetCommand, SetPose
from worldline.world.pose import Pose

HASH_SIZE = 16
"""Bytes of a state hash, and of its part that a secondary contributes."""


HASH_MODULUS = 1 << 8 * HASH_SIZE
"""Parts of a hash are added up modulo this."""


def sum_of_hashes(parts: list[bytes]) -> bytes:
    """Add up parts of a state hash: the order doesn't matter, nor who has which."""
    total = sum(int.from_bytes(part, "little") for part in parts)
    return (total % HASH_MODULUS).to_bytes(HASH_SIZE, "little")


def chained(chain: bytes, state_hash: bytes) -> bytes:
    """Return the hash of all state hashes so far, given that of all before the last."""
    return blake2b(chain + state_hash, digest_size=HASH_SIZE).digest()


class GroupOrder(Struct, frozen=True, array_like=True):
    """A group that a secondary simulates from now on, with the states of those that it hasn't had so far."""

    name: str
    movers: list[str]
    statics: list[str]
    states: dict[str, bytes]


EntityChange = SetCommand | CommandMotors | SetPose
"""What is done to one mover from now on."""


def with_copies(world: WorldDescription, copies: list[InsertPerformer]) -> WorldDescription:
    """Return the world of the file with models that are like others in it."""
    models = dict(world.models)
    for copy in copies:
        pose = Pose(copy.position, copy.quaternion)
        models[copy.name] = replace(world.models[copy.like], name=copy.name, pose=pose)
    return replace(world, models=models)


class StepOrder(Struct, frozen=True, array_like=True):
    """What a secondary does next, in the order of the fields; `iteration` and `step` are where it begins.

    `copies` are all models that the file hasn't, if that has changed. `unload` are groups that it has no longer, and
    `load` those that it has from now on. If it is to go `back`, it does: to where it was before the steps of its last
    order. `speeds` limit how fast the movers of each group may get until the next look. `changes` say what is done to
    movers. Then it goes as many `steps`; with none, the world stands still. After them it looks, unless `look` is 0:
    that is how many steps away the look after this one is. Link poses are wanted of each iteration that is a multiple
    of `poses_every`.
    """

    round: int
    iteration: int
    step: int
    step_size: int
    copies: list[InsertPerformer] | None = None
    unload: list[str] = []
    load: list[GroupOrder] = []
    back: bool = False
    speeds: dict[str, float] = {}
    changes: list[tuple[str, EntityChange]] = []
    steps: int = 0
    look: int = 0
    poses_every: int = 0


class StepSeen(Struct, frozen=True, array_like=True):
    """What is told of one step: a part of the state hash, and the positions of all movers; link poses if wanted."""

    hash_part: bytes
    positions: bytes
    poses: bytes = b""


class LookSeen(Struct, frozen=True, array_like=True):
    """What groups and hand-overs need: exact states, positions, and extents (center, half size, speed)."""

    states: list[bytes]
    positions: bytes
    extents: bytes


class StepFailure(Struct, frozen=True, array_like=True):
    """Why a step couldn't be computed: in which group, and about which model."""

    group: str
    entity: str
    step: int
    problem: str
    advice: str
    too_fast: bool = False
    """Whether a mover only got faster than its group was made for: after another look it may be computed after all."""


class StepAck(Struct, frozen=True, array_like=True):
    """What came of an order: the iteration that its sender has reached, and what was seen on the way."""

    sender: str
    round: int
    iteration: int
    steps: list[StepSeen]
    look: LookSeen | None = None
    failure: StepFailure | None = None


encode = msgpack.Encoder().encode
decode_order = msgpack.Decoder(StepOrder).decode
decode_ack = msgpack.Decoder(StepAck).decode
