"""Looks again at a run through spacetime that was recorded."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from worldline.cli.spacetime_show import SpacetimeNarrator, SpacetimeOutputs, checked, drawn, save
from worldline.model import LossError, ModelError, UsageError
from worldline.model.counting import counted
from worldline.recording import Condition, Recording
from worldline.spacetime.told import recall


def retell(path: Path, narrator: SpacetimeNarrator, outputs: SpacetimeOutputs) -> None:
    """Show a recorded run as if it had just been run."""
    recording = Recording(path)
    verdict = recording.verify()
    if verdict.condition is Condition.ALTERED:
        raise ModelError(f"{path} is {verdict}", advice="record the run again")
    if recording.outcome is None or verdict.condition is Condition.CUT_OFF:
        raise LossError(f"{path} is {verdict}", advice="record the run again")
    try:
        scene, records = recall(_kept(recording))
    except UsageError as error:
        raise UsageError(f"{path}: {error.problem}", advice=error.advice) from error
    save(drawn(records, scene, f"{recording.header.federation}, seed {recording.header.seed}", outputs))
    narrator.tell(records)
    narrator.conclude(
        checked(records, scene) if outputs.is_checked else "",
        f"{counted(len(records), 'record')}, {f'digest {digest}' if (digest := recording.outcome.digest) else verdict}",
    )


def _kept(recording: Recording) -> Iterator[tuple[str, bytes]]:
    """Yield topic and payload of all that was recorded."""
    yield from ((arrival.topic, arrival.payload) for arrival in recording.arrivals())
    yield from ((message.topic, message.payload) for message in recording.unheard())
