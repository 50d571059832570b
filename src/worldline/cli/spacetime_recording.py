"""Recordings of runs through spacetime: written after a run, and looked at again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from worldline.cli.console import say_replaced
from worldline.cli.spacetime_show import Narrator, Outputs, checked, drawn, save
from worldline.model import LossError, ModelError, Plan, UsageError, WorldlineError
from worldline.recording import Condition, Recorder, Recording, Shelf
from worldline.spacetime.story import Record
from worldline.spacetime.testimony import Setting, nanoseconds, recall, testify


def write(
    shelf: Shelf,
    name: str,
    seed: int,
    setting: Setting,
    records: Sequence[Record],
    chains: Sequence[tuple[str, int, bytes]],
    failure: WorldlineError | None = None,
) -> None:
    """Record a run that was traced, or what came before its failure: all of that, or nothing."""
    end = nanoseconds(setting.until)
    plan = Plan(roster=tuple(dict.fromkeys(record.agent for record in records)), seed=seed, end=end)
    recorder = Recorder(shelf.target, plan, federation=name, encoding="json", overwrite=True)
    try:
        testify(setting, records, chains, recorder)
        if failure is None:
            recorder.close()
        else:
            recorder.passed(end + 2)  # What was sent at last counts as under way for one more; all of that is final.
            recorder.abandon(failure.problem, participant=failure.participant, at=end)
    except BaseException:
        recorder.abandon("it couldn't be recorded")
        shelf.clear()
        raise
    say_replaced(shelf.put())


def retell(path: Path, narrator: Narrator, outputs: Outputs) -> None:
    """Show a recorded run as if it had just been run."""
    recording = Recording(path)
    verdict = recording.verify()
    if verdict.condition is Condition.ALTERED:
        raise ModelError(f"{path} is {verdict}", advice="record the run again")
    if recording.outcome is None or verdict.condition is Condition.CUT_OFF:
        raise LossError(f"{path} is {verdict}", advice="record the run again")
    try:
        setting, records = recall(_kept(recording))
    except UsageError as error:
        raise UsageError(f"{path}: {error.problem}", advice=error.advice) from error
    save(drawn(records, setting, f"{recording.header.federation}, seed {recording.header.seed}", outputs))
    narrator.tell(records)
    narrator.conclude(
        checked(records, setting) if outputs.is_checked else "",
        f"{len(records):,} records, {f'digest {digest}' if (digest := recording.outcome.digest) else verdict}",
    )


def _kept(recording: Recording) -> Iterator[tuple[str, bytes]]:
    """Yield topic and payload of all that was recorded."""
    yield from ((arrival.topic, arrival.payload) for arrival in recording.arrivals())
    yield from ((message.topic, message.payload) for message in recording.unheard())
