"""`worldline verify`: run a target in many ways, and see whether one history comes of all of them."""

from __future__ import annotations

import io
import sys
from collections.abc import Sequence
from contextlib import redirect_stdout
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from worldline.cli.console import PlainConsole, cell, own_lines
from worldline.cli.console import remark as tell
from worldline.cli.interruption import Interruption
from worldline.cli.options import DrawnFaults, DrawsTable, Faults, Seed, Settings, Until
from worldline.cli.verify_reports import as_json, as_junit
from worldline.model import UsageError
from worldline.saving.destination import destination, save
from worldline.targets import Options, prepare
from worldline.targets.run_processes import VariantRun
from worldline.targets.variants import check_names, chosen, depend_on_kind, variants_of
from worldline.targets.verifying import Compared, Ending, Verification, Verifier

_NAME, _DIGEST, _NUMBER = 14, 32, 10


def verify(
    target: Annotated[str, typer.Argument(metavar="TARGET", help="A file or name, as for `worldline run`.")],
    seed: Seed = None,
    until: Until = None,
    executor: Annotated[
        str | None,
        typer.Option(metavar="EXECUTOR", help="Executor of the first run, which the others are compared with."),
    ] = None,
    changes: Settings = None,
    draws: DrawsTable = None,
    fault: Faults = None,
    faults: DrawnFaults = None,
    only: Annotated[
        list[str] | None,
        typer.Option(
            metavar="VARIANT,...", help="Run only these variants: again, hash-seed, executor, 'processes(2)'..."
        ),
    ] = None,
    again: Annotated[
        int,
        typer.Option(
            min=1, metavar="N", help="Run the same again so often, and with quick thread switches: what shows by luck."
        ),
    ] = 1,
    mpi: Annotated[bool, typer.Option("--mpi", help="Run it on two MPI ranks, too.")] = False,
    seconds_max: Annotated[
        float | None, typer.Option(min=0, metavar="S", help="Stop comparing after this many seconds.")
    ] = None,
    junit: Annotated[
        Path | None, typer.Option(metavar="FILE.xml", help="Write a JUnit report for CI, one test case per variant.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of the table.")] = False,
    keep: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Where to keep the recordings of two runs that differ.")
    ] = None,
) -> None:
    """Run a target twice, and across executors, hash seeds, surroundings, start orders and builds; compare the digests.

    If they differ, show where two runs diverge, and exit with 1.
    """
    if junit is not None:
        destination(junit)
    names = None if only is None else [name.strip() for name in ",".join(only).split(",") if name.strip()]
    if names is not None:
        _check_only(
            names,
            target,
            Options(
                seed=seed,
                until=until,
                executor=executor,
                settings=tuple(changes or ()),
                draws=draws,
                faults=tuple(fault or ()),
                drawn_faults=faults,
            ),
            mpi,
        )
    verifier = Verifier(
        target,
        _options(("--seed", seed), ("--until", until), ("--draws", draws), ("--faults", faults))
        + _options(*(("--set", change) for change in changes or ()), *(("--fault", text) for text in fault or ())),
        executor=executor,
        only=names or (),
        mpi=mpi,
        again=again,
        seconds_max=seconds_max,
        keep=keep,
    )
    table = None if json else _Rows(PlainConsole())
    with Interruption():
        verification = verifier.run(waiting=_tell) if table is None else verifier.run(table.begin, table.add, _tell)
    if table is None:
        print(as_json(verification))
    else:
        table.conclude(verification)
    if junit is not None:
        save(junit, as_junit(verification))
    if verification.exit_code:
        raise typer.Exit(verification.exit_code)


def _tell(seconds: float, status: str) -> None:
    reached = f": {status}" if status else ""
    tell(f"the first run has taken {seconds:.0f} s (--until TIME or --seconds-max S ends it){reached}")


def _check_only(names: Sequence[str], target: str, options: Options, mpi: bool) -> None:
    """Refuse names of variants that this target doesn't have, before it is run; what it is, loading it tells."""
    if not names:
        raise UsageError("--only names no variant", advice="leave it out to try all")
    check_names(names)
    if depend_on_kind(names):
        with redirect_stdout(io.StringIO()):
            ready = prepare(target, options)
        variants = variants_of(ready.kind, ready.executor, mpi=mpi)
        chosen(variants, names, f" of a target of the kind {ready.kind}")


def _options(*given: tuple[str, str | int | None]) -> list[str]:
    """Return options as they are written, without those that nobody has given."""
    return [str(word) for option in given if option[1] is not None for word in option]


class _Rows:
    """The table, as results come in, and what they say together."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._is_without_events = False

    def begin(self, reference: VariantRun) -> None:
        if reference.said is not None:
            self._is_without_events = reference.said.events_of_history is None
            events = "" if self._is_without_events else f"{'events':>{_NUMBER}}"
            self._console.print(f"{'variant':{_NAME}}{'digest':{_DIGEST}}{events}{'seconds':>{_NUMBER}}")
            self._row(reference.said.executor, reference)

    def add(self, compared: Compared) -> None:
        if compared.run is not None and compared.ending is not Ending.LEFT_OUT:
            self._row(compared.variant.name, compared.run, "" if compared.ending is Ending.SAME else compared.ending)

    def _row(self, name: str, run: VariantRun, remark: str = "") -> None:
        count = None if run.said is None else run.said.events_of_history
        events = "" if self._is_without_events else f"{'' if count is None else f'{count:,}':>{_NUMBER}}"
        row = f"{cell(name):{_NAME}}{cell(run.digest or ''):{_DIGEST}}{events}{run.seconds:>{_NUMBER}.2f}"
        self._console.print(f"{row}  {remark}" if remark else row, style="red" if remark else None)

    def conclude(self, verification: Verification) -> None:
        say = self._console.print
        for why, names in _by_reason(verification.with_ending(Ending.LEFT_OUT)).items():
            say(f"left out: {', '.join(names)}: {why}")
        for remark, names in _by_remark(verification).items():
            say(f"{', '.join(names)}: {remark}")
        if verification.reference.error:
            PlainConsole(sys.stderr).print(own_lines(f"worldline: {verification.reference.error}"), style="red")
        for why, names in _by_reason(verification.with_ending(Ending.FAILED)).items():
            say(f"failed: {', '.join(names)}: {why}", style="red")
        if verification.digest is not None:
            count = 1 + len(verification.with_ending(Ending.SAME))
            say(f"one digest: {count} runs in {verification.seconds:.2f} s")
        elif not any(each.run for each in verification.compared) and not verification.reference.error:
            say("nothing was compared", style="red")
        if (mismatch := verification.mismatch) is None:
            return
        differing = [each.variant.name for each in verification.with_ending(Ending.DIFFERS)]
        say(f"not one digest: {', '.join(differing)} differ{'s' if len(differing) == 1 else ''} from the first run")
        say(mismatch.meaning)
        say()
        for line in mismatch.lines:
            say(line)
        say("to repeat it:")
        for command in mismatch.commands:
            say(f"  {command}")


def _by_remark(verification: Verification) -> dict[str, list[str]]:
    """Return the names of runs by what they remark, though nothing went wrong."""
    found: dict[str, list[str]] = {}
    runs = [
        ("the first run", verification.reference),
        *((each.variant.name, each.run) for each in verification.compared),
    ]
    for name, run in runs:
        for remark in () if run is None or run.said is None else run.said.remarks:
            found.setdefault(remark, []).append(name)
    return found


def _by_reason(compared: Sequence[Compared]) -> dict[str, list[str]]:
    """Return the names of variants by why they are out; what is said of each in the same words is said once."""
    reasons: dict[str, str] = {}
    found: dict[str, list[str]] = {}
    for each in compared:
        reason = reasons.setdefault(each.why.replace(each.variant.name, "it"), each.why)
        found.setdefault(reason, []).append(each.variant.name)
    return found
