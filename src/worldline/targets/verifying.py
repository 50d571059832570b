"""Verifies a target: runs it in many ways, compares the digests, and finds out where two runs part that differ."""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import nullcontext, suppress
from enum import StrEnum
from pathlib import Path
from typing import Any

from msgspec import Struct

from worldline.builds import first_uncompiled
from worldline.files.saving import ScratchFolder, refusal
from worldline.model.errors import NonDeterminism, UsageError
from worldline.recording.comparing import compare_recordings
from worldline.targets.run_processes import (
    Factor,
    RunProcesses,
    Variant,
    VariantRun,
    check_names,
    chosen,
    meaning_of,
    mpiexec,
    reference_on,
    variants_of,
)

# Where two runs part that ought to be one: both are run again, with recordings, and these are compared.

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


Parting = tuple[tuple[str, ...], dict[str, Any] | None, tuple[set[str], set[str]]]
"""Where two runs part: in words, for programs, and the digests that each of them had."""


def look_into(runs: RunProcesses, variants: tuple[Variant, Variant], files: Sequence[Path]) -> Parting:
    """Record both until they differ again."""
    digests: tuple[set[str], set[str]] = set(), set()
    for _ in range(TRIES):
        for file in files:
            file.unlink(missing_ok=True)
        started = [runs.start(each, file) for each, file in zip(variants, files, strict=True)]
        for ended, seen in zip([future.result() for future in started], digests, strict=True):
            if ended.said is None:
                return (f"with a recording, {ended.variant.name} fails: {ended.error}",), None, digests
            seen.add(ended.said.digest)
        comparison = compare_recordings(*files)
        if not comparison.is_same:
            comparison.names = files[0].name, files[1].name
            return tuple(comparison.lines()), comparison.as_json(), digests
    return (f"in {TRIES} more pairs of runs it didn't show again: it takes luck to see it",), None, digests


_TOLD_EVERY_S = 10.0
_ANEW = (Factor.THREADS, Factor.FOLDER, Factor.HOME)  # The turns of threads and temporary folders are others each time.


class Ending(StrEnum):
    """How a variant compares with the reference."""

    SAME = "same"
    DIFFERS = "differs"
    FAILED = "failed"
    LEFT_OUT = "left out"


class Compared(Struct, frozen=True, kw_only=True):
    """A variant, and how it compares. `why` says why it failed or was left out."""

    variant: Variant
    ending: Ending
    run: VariantRun | None = None
    why: str = ""


class Verification(Struct, frozen=True, kw_only=True):
    """What came of all runs. If the reference has failed, it is the only one."""

    target: str
    reference: VariantRun
    compared: tuple[Compared, ...] = ()
    mismatch: Mismatch | None = None
    seconds: float

    @property
    def digest(self) -> str | None:
        """The one digest, if there is one."""
        return self.reference.digest if self.exit_code == 0 else None

    @property
    def exit_code(self) -> int:
        """That of the first run that failed; else whether all were the same. Nothing compared is nothing verified."""
        runs = [self.reference, *(each.run for each in self.compared if each.run is not None)]
        if codes := [run.exit_code for run in runs if run.exit_code]:
            return codes[0]
        if len(runs) == 1:
            return UsageError.exit_code
        return NonDeterminism.exit_code if self.mismatch is not None else 0

    def with_ending(self, ending: Ending) -> list[Compared]:
        return [each for each in self.compared if each.ending is ending]


class Verifier:
    """What is to be verified, and how.

    `options` are those of `worldline run` that every run gets, `executor` is that of the reference. Recordings of two
    runs that differ stay in the folder `keep`, if there is one. After `seconds_max` nothing more is compared; what
    differs by then is looked into all the same.
    """

    def __init__(
        self,
        target: str,
        options: Sequence[str] = (),
        *,
        executor: str | None = None,
        only: Sequence[str] = (),
        mpi: bool = False,
        again: int = 1,
        seconds_max: float | None = None,
        keep: Path | None = None,
    ) -> None:
        check_names(only)
        if mpi:
            mpiexec()
        if keep is not None:
            _make_folder(keep)
        self._target = target
        self._options = options
        self._first = reference_on(executor)
        self._only = only
        self._mpi = mpi
        self._again = again
        self._began = time.monotonic()
        self._seconds_max = seconds_max
        self._keep = keep

    def run(
        self,
        began: Callable[[VariantRun], None] = lambda _: None,
        compared: Callable[[Compared], None] = lambda _: None,
        waiting: Callable[[float, str], None] = lambda _seconds, _status: None,
    ) -> Verification:
        """Run it in all ways; tell what came of the reference, and then of the others, in their order.

        While the reference runs, `waiting` is told now and then for how long, and what it says of itself.
        """
        with RunProcesses(self._target, self._options) as runs:
            reference = self._reference(runs, waiting)
            began(reference)
            if reference.said is None:
                return self._verified(reference)
            variants = variants_of(reference.said.kind, reference.said.executor, mpi=self._mpi, again=self._again)
            found = []
            for variant, run in [self._started(runs, variant) for variant in chosen(variants, self._only)]:
                found.append(self._compared(reference, variant, run))
                compared(found[-1])
        differing = [each.run for each in found if each.ending is Ending.DIFFERS and each.run is not None]
        if not differing:
            return self._verified(reference, found)
        return self._verified(reference, found, self._mismatch(reference, reference.said.kind, differing))

    def _mismatch(self, reference: VariantRun, kind: str, differing: Sequence[VariantRun]) -> Mismatch:
        """Look into the first that differs, and weigh all of them.

        If the very same run gives another digest the next time, that explains everything, even if no other run has
        shown it yet. But the same variant needn't be the very same run (`_ANEW`).
        """
        first = differing[0]
        names = "reference.mcap", f"{first.variant.name}.mcap"
        place = ScratchFolder("verify") if self._keep is None else nullcontext(str(self._keep))
        # Other processes, since time may have run out for the first.
        with RunProcesses(self._target, self._options) as runs, place as folder:
            files = [Path(folder) / name for name in names]
            lines, comparison, digests = look_into(runs, (self._first, first.variant), files)
            shown = runs.shown(self._first, names[0]), runs.shown(first.variant, names[1])
        again = [digests[0] - {reference.digest}]
        if first.variant.factor not in _ANEW:
            again.append(digests[1] - {first.digest})
        factors = [Factor.NOTHING] if any(again) else [run.variant.factor for run in differing]
        return Mismatch(
            variant=first.variant,
            factor=factors[0],
            meaning=meaning_of(factors, kind),
            lines=lines,
            comparison=comparison,
            commands=(*shown, shlex.join(["worldline", "diff", *names])),
        )

    def _verified(
        self, reference: VariantRun, found: Sequence[Compared] = (), mismatch: Mismatch | None = None
    ) -> Verification:
        return Verification(
            target=self._target,
            reference=reference,
            compared=tuple(found),
            mismatch=mismatch,
            seconds=time.monotonic() - self._began,
        )

    # --- Comparing ---

    def _left_s(self) -> float | None:
        return None if self._seconds_max is None else max(0.0, self._began + self._seconds_max - time.monotonic())

    def _reference(self, runs: RunProcesses, waiting: Callable[[float, str], None]) -> VariantRun:
        run = runs.start(self._first, tells=True)
        while not run.done() and (left := self._left_s()) != 0:
            with suppress(TimeoutError):
                return run.result(_TOLD_EVERY_S if left is None else min(left, _TOLD_EVERY_S))
            if self._left_s() != 0:
                waiting(time.monotonic() - self._began, runs.status())
        if run.done():
            return run.result()
        advice = "allow more, or let the run end earlier: --until"
        raise UsageError(f"one run takes longer than {self._seconds_max:g} seconds", advice=advice)

    def _started(self, runs: RunProcesses, variant: Variant) -> tuple[Variant, Future[VariantRun] | None]:
        is_there = variant.factor is not Factor.BUILD or not first_uncompiled()
        return variant, runs.start(variant) if is_there else None

    def _compared(self, reference: VariantRun, variant: Variant, future: Future[VariantRun] | None) -> Compared:
        if future is None:
            return Compared(variant=variant, ending=Ending.LEFT_OUT, why="nothing is compiled here")
        try:
            run = future.result(self._left_s())
        except TimeoutError:
            return Compared(variant=variant, ending=Ending.LEFT_OUT, why="no time was left")
        if run.is_refused and variant.factor in (Factor.EXECUTOR, Factor.SHAKE):
            return Compared(variant=variant, ending=Ending.LEFT_OUT, why=run.error)  # The executor is all that is new.
        if run.said is None and variant.factor in (Factor.FOLDER, Factor.HOME):  # It may need what is there.
            return Compared(variant=variant, ending=Ending.LEFT_OUT, why=f"it fails there: {run.error}")
        if run.said is None:
            return Compared(variant=variant, ending=Ending.FAILED, run=run, why=run.error)
        ending = Ending.SAME if run.digest == reference.digest else Ending.DIFFERS
        return Compared(variant=variant, ending=ending, run=run)


def _make_folder(path: Path) -> None:
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise refusal(path, error.strerror or str(error)) from error
