"""Where two runs part that ought to be one: both are run again, with recordings, and these are compared."""

from __future__ import annotations

import shlex
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from msgspec import Struct

from worldline.recording.comparing import compare_recordings
from worldline.scratch_folder import ScratchFolder
from worldline.targets.run_processes import RunProcesses
from worldline.targets.variants import Factor, Variant

TRIES = 3
"""How often two runs that differed are recorded until they differ again: luck may make them equal."""


class Mismatch(Struct, frozen=True, kw_only=True):
    """A variant that differs from the reference: what that means, where they part, and how to repeat it.

    `factor` is what the difference comes of; that needn't be what differs in the variant. `comparison` is what the
    comparison says to programs, if the recordings differ.
    """

    variant: Variant
    factor: Factor
    meaning: str
    lines: tuple[str, ...]
    comparison: dict[str, Any] | None = None
    commands: tuple[str, ...]


class RecordedPair(Struct, frozen=True, kw_only=True):
    """Two runs that were recorded: where they part, how to repeat that, and the digests that each had."""

    lines: tuple[str, ...]
    comparison: dict[str, Any] | None = None
    commands: tuple[str, ...]
    digests: tuple[frozenset[str], frozenset[str]]


def look_into(runs: RunProcesses, reference: Variant, variant: Variant, keep: Path | None) -> RecordedPair:
    """Record both until they differ again. The recordings stay, if there is a folder to keep them in."""
    names = "reference.mcap", f"{variant.name}.mcap"
    commands = (
        runs.shown(reference, names[0]),
        runs.shown(variant, names[1]),
        shlex.join(["worldline", "diff", *names]),
    )
    digests: tuple[set[str], set[str]] = set(), set()
    place = ScratchFolder("verify") if keep is None else nullcontext(str(keep))
    with place as folder:
        files = [Path(folder) / name for name in names]
        lines, comparison = _parted(runs, (reference, variant), files, digests)
    return RecordedPair(
        lines=tuple(lines),
        comparison=comparison,
        commands=commands,
        digests=(frozenset(digests[0]), frozenset(digests[1])),
    )


def _parted(
    runs: RunProcesses, variants: tuple[Variant, Variant], files: list[Path], digests: tuple[set[str], set[str]]
) -> tuple[list[str], dict[str, Any] | None]:
    for _ in range(TRIES):
        for file in files:
            file.unlink(missing_ok=True)
        started = [runs.start(each, file) for each, file in zip(variants, files, strict=True)]
        for ended, seen in zip([future.result() for future in started], digests, strict=True):
            if ended.said is None:
                return [f"with a recording, {ended.variant.name} fails: {ended.error}"], None
            seen.add(ended.said.digest)
        comparison = compare_recordings(*files)
        if not comparison.is_same:
            comparison.names = files[0].name, files[1].name
            return comparison.lines(), comparison.as_json()
    return [f"in {TRIES} more pairs of runs it didn't show again: it takes luck to see it"], None
