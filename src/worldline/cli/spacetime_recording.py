"""Recordings of runs through spacetime: written by a recorder that observes a run, and looked at again."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from worldline.cli.console import say_replaced
from worldline.cli.spacetime_show import Narrator, Outputs, checked, drawn, save
from worldline.model import LossError, ModelError, Plan, UsageError, WorldlineError
from worldline.recording import Condition, Recorder, Recording, Shelf
from worldline.spacetime.nanoseconds import nanoseconds
from worldline.spacetime.simulation import ForwardSimulation
from worldline.spacetime.told import check_end, recall


class RunRecording:
    """The recording of a run: all of it, or what came before its failure, or nothing. Without a shelf it is none."""

    def __init__(self, shelf: Shelf | None, name: str, simulation: ForwardSimulation, until: float) -> None:
        self._shelf = shelf if simulation.is_main else None
        self.recorder: Recorder | None = None
        if self._shelf is not None:
            check_end(until)
            plan = Plan(roster=tuple(simulation.agents), seed=simulation.seed, end=nanoseconds(until))
            self.recorder = Recorder(self._shelf.target, plan, federation=name, encoding="json", overwrite=True)

    def __enter__(self) -> RunRecording:
        return self

    def __exit__(self, *_: object) -> None:
        """Leave nothing behind that was neither kept nor broken off."""
        if self.recorder is not None and self._shelf is not None:
            self.recorder.abandon("it couldn't be recorded")
            self._shelf.clear()

    def keep(self) -> None:
        """Finish it: the run is over."""
        if self.recorder is not None and self._shelf is not None:
            self.recorder.close()
            say_replaced(self._shelf.put())

    def break_off(self, failure: WorldlineError) -> None:
        """Finish it: the run has failed."""
        if self.recorder is not None and self._shelf is not None:
            self.recorder.abandon(failure.problem, participant=failure.participant, at=failure.at)
            say_replaced(self._shelf.put())


def retell(path: Path, narrator: Narrator, outputs: Outputs) -> None:
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
        f"{len(records):,} records, {f'digest {digest}' if (digest := recording.outcome.digest) else verdict}",
    )


def _kept(recording: Recording) -> Iterator[tuple[str, bytes]]:
    """Yield topic and payload of all that was recorded."""
    yield from ((arrival.topic, arrival.payload) for arrival in recording.arrivals())
    yield from ((message.topic, message.payload) for message in recording.unheard())
