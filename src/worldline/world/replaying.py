"""Interactions, written down and repeated: with the world's file they are enough to repeat a run, bit for bit.

A log is lines of JSON, each an interaction with the iteration and the step after which it took effect; the first says
of which world it is. A recording has the same, as messages of the world's on a topic of their own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from msgspec import MsgspecError, Struct, json

from worldline.history.outcome import Outcome
from worldline.model import as_time
from worldline.model.errors import UsageError, shown
from worldline.model.time import TimeLike
from worldline.recording import Recording
from worldline.saving.destination import save
from worldline.world.description import WorldDescription
from worldline.world.foxglove_schemas import INTERACTIONS
from worldline.world.interactions import AnyInteraction, Begin, Change, Interaction, Quit
from worldline.world.run import World
from worldline.world.spectator import Spectator
from worldline.world.teller import WORLD_MEMBER

_MCAP = b"\x89MCAP"


class LoggedInteraction(Struct, frozen=True, forbid_unknown_fields=True):
    """An interaction, and when it took effect: after this iteration, at which the world was at that step."""

    iteration: int
    step: int
    interaction: AnyInteraction | Begin


class InteractionHistory(NamedTuple):
    """All interactions of a run, and the world it was of."""

    begin: Begin
    entries: tuple[LoggedInteraction, ...]

    def save(self, path: Path | str) -> None:
        """Write a log, whole or not at all."""
        first = LoggedInteraction(0, 0, self.begin)
        save(Path(path), b"".join(json.encode(entry) + b"\n" for entry in (first, *self.entries)))


class InteractionsLog(Spectator):
    """Remembers all interactions of a run."""

    every = 0

    def __init__(self) -> None:
        self._entries: list[LoggedInteraction] = []

    def interacted(self, iteration: int, step: int, interaction: Interaction) -> None:
        self._entries.append(LoggedInteraction(iteration, step, interaction))  # type: ignore[arg-type]

    @property
    def history(self) -> InteractionHistory:
        """Return what has happened so far."""
        return _history(self._entries, "the log")


def read_interactions(path: Path | str) -> InteractionHistory:
    """Read a log, or the interactions in a recording."""
    path = Path(path)
    try:
        with path.open("rb") as file:
            is_recording = file.read(len(_MCAP)) == _MCAP
        lines = _recorded(path) if is_recording else enumerate(path.read_bytes().splitlines(), 1)
    except OSError as error:
        raise UsageError(f"{path} can't be read: {error.strerror or error}") from error
    what = "message" if is_recording else "line"
    return _history((_entry(line, f"{path}: {what} {number}") for number, line in lines), str(path))


def replay(
    world: World,
    history: InteractionHistory,
    until: TimeLike | None = None,
    *,
    pace: float | None = None,
    any_world: bool = False,
) -> Outcome:
    """Repeat a run, to where it ended or `until` a time of the world's, and end it.

    What changed the world does so again, at the same iterations. Pauses are passed over.
    """
    check_replay(world.description, history, until, any_world=any_world)
    target = None if until is None else as_time(until, "a time to play to")
    for entry in history.entries:
        if isinstance(entry.interaction, Quit):
            break
        if isinstance(entry.interaction, Change):
            if target is not None and world.iteration + world.steps_to(target) <= entry.iteration:
                break
            world.advance_to(entry.iteration, pace=pace)
            _repeat(world, entry, entry.interaction)
    if target is not None:
        world.advance_to(world.iteration + world.steps_to(target), pace=pace)
    else:
        world.advance_to(entry.iteration, pace=pace)
    return world.end()


def check_replay(
    world: WorldDescription, history: InteractionHistory, until: TimeLike | None = None, *, any_world: bool = False
) -> None:
    """Refuse interactions that aren't of this world, or have no end; whoever starts others for it asks before that."""
    begin = history.begin
    if not any_world and begin.world != world.name:
        raise UsageError(
            f"these interactions are of world {shown(begin.world)}, not {shown(world.name)}", advice=_OTHER
        )
    if not any_world and begin.content_hash != world.content_hash():
        raise UsageError(
            f"the files of world {shown(world.name)} aren't what they were when the interactions were written",
            advice="use the files of that time",
        )
    if until is None and not any(isinstance(entry.interaction, Quit) for entry in history.entries):
        raise UsageError("these interactions don't say where the run ended", advice="say until when it is to be played")


def _repeat(world: World, entry: LoggedInteraction, change: Change) -> None:
    at = f"at iteration {entry.iteration}"
    try:
        world.interact(change)
    except UsageError as error:
        raise UsageError(f"{at}, what was done can't be repeated: {error.problem}", advice=error.advice) from error
    if world.step != entry.step:
        raise UsageError(f"{at}, the world was at step {entry.step} and now is at {world.step}", advice=_OTHER)


_OTHER = "the interactions must be those of a run of this world"


# --- Reading ---


def _recorded(path: Path) -> Iterator[tuple[int, bytes]]:
    number = 0
    for message in Recording(path).unheard():
        if message.topic == INTERACTIONS and message.sender == WORLD_MEMBER:
            number += 1
            yield number, message.payload


def _entry(line: bytes, place: str) -> LoggedInteraction:
    try:
        entry = _decoder.decode(line)
    except (MsgspecError, UnicodeDecodeError) as error:
        raise UsageError(f"{place} is no interaction of a world: {error}") from error
    if entry.iteration < 0 or entry.step < 0:
        raise UsageError(f"{place} has an iteration or a step below 0")
    return entry


def _history(entries: Iterable[LoggedInteraction], source: str) -> InteractionHistory:
    found = list(entries)
    if not found:
        raise UsageError(f"{source} has no interactions", advice="use a log of them, or the recording of a world")
    begin = found[0].interaction
    if not isinstance(begin, Begin):
        raise UsageError(f"{source} doesn't say first of which world it is")
    for number, (earlier, later) in enumerate(pairwise(found), 2):
        if later.iteration < earlier.iteration:
            raise UsageError(
                f"{source}: interaction {number}, of iteration {later.iteration}, comes after one of iteration "
                f"{earlier.iteration}"
            )
        if isinstance(later.interaction, Begin):
            raise UsageError(f"{source}: a second run begins with interaction {number}")
        if isinstance(earlier.interaction, Quit):
            raise UsageError(f"{source}: interaction {number} comes after the end of the run")
    return InteractionHistory(begin, tuple(found[1:]))


_decoder = json.Decoder(LoggedInteraction)
