"""Interactions: what is done to a world from outside while it runs, through its primary alone.

Each takes effect between two steps, and is written down with the iteration after which it did. Those that change the
world are enough to repeat the run; those that only say how fast it goes are written down for readers.
"""

from __future__ import annotations

from msgspec import Struct

from worldline.world.pose import Quaternion, Vector


class Interaction(Struct, frozen=True, tag_field="do"):
    """The root of all of them."""


class Begin(Interaction, frozen=True, tag="begin"):
    """The run begins, of this world. It is no command: it tells a reader what the rest was done to."""

    world: str
    content_hash: str


class Play(Interaction, frozen=True, tag="play"):
    """Go on until something stops it."""


class StandStill(Interaction, frozen=True, tag="pause"):
    """Stand still."""


class StepBy(Interaction, frozen=True, tag="step"):
    """Go on by some steps, then pause."""

    steps: int


class RunTo(Interaction, frozen=True, tag="run-to"):
    """Go on to the first step at or after a time, in nanoseconds, then pause."""

    time: int


class Quit(Interaction, frozen=True, tag="quit"):
    """End the run."""


class Reset(Interaction, frozen=True, tag="reset"):
    """Have everything as it is in the file, at step 0, without those that were inserted."""


class SetCommand(Interaction, frozen=True, tag="command"):
    """Have a model's drive move like this until its next command: velocities in its own frame."""

    entity: str
    linear: Vector
    angular: Vector


class CommandMotors(Interaction, frozen=True, tag="motor"):
    """Have the motors that hear a topic move their joints like this until their next command."""

    topic: str
    value: float


class SetPose(Interaction, frozen=True, tag="pose"):
    """Put a model somewhere else, at rest."""

    entity: str
    position: Vector
    quaternion: Quaternion


class InsertPerformer(Interaction, frozen=True, tag="insert"):
    """Add a performer: a copy of a model of the file, under a name of its own, with a box of that size.

    Without a size it is that of the model's own, if that performs.
    """

    name: str
    like: str
    position: Vector
    quaternion: Quaternion
    size: Vector | None = None


class RemovePerformer(Interaction, frozen=True, tag="remove"):
    """Take a performer out of the world, by the name of its model."""

    name: str


AnyInteraction = (
    Play
    | StandStill
    | StepBy
    | RunTo
    | Quit
    | Reset
    | SetCommand
    | CommandMotors
    | SetPose
    | InsertPerformer
    | RemovePerformer
)

Change = Reset | SetCommand | CommandMotors | SetPose | InsertPerformer | RemovePerformer
"""Those that change the world, rather than how fast it goes."""
