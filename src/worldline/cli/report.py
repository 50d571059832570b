"""What `worldline run --json` prints of a run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import json

from worldline.history.outcome import Outcome
from worldline.model import WorldlineError
from worldline.model.printable import printable_json
from worldline.targets import Ready

if TYPE_CHECKING:
    from worldline.recording import Shelf


def report(
    target: str,
    ready: Ready,
    outcome: Outcome | None,
    failure: WorldlineError | None,
    shelf: Shelf | None,
) -> str:
    """Return a run as one line of JSON; what isn't known because it failed is null."""
    if outcome is not None and not outcome.digest:  # Nothing is known of it but its failure.
        outcome = None
    found = {
        "target": target,
        "kind": ready.kind,
        "name": ready.name,
        "seed": ready.seed,
        "executor": ready.executor,
        "digest": None if outcome is None else outcome.digest.hex(),
        "time": failure.at if outcome is None and failure is not None else outcome and outcome.now,
        "events": None if outcome is None else outcome.events,
        "members": None if outcome is None else len(outcome.names),
        "dropped": None if outcome is None else sum(outcome.dropped.values()),
        "remarks": [] if outcome is None else outcome.remarks(),
        "failure": None if failure is None else _failure(failure),
        "recording": None if shelf is None or shelf.kept is None else str(shelf.kept.path),
    }
    return printable_json(json.encode(found).decode())


def _failure(error: WorldlineError) -> dict[str, object]:
    return {"text": str(error), "participant": error.participant, "at": error.at}
