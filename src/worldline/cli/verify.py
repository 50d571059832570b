"""`worldline verify`: run a target in many ways, and see whether one history comes of all of them."""

from __future__ import annotations

import io
import sys
from collections.abc import Sequence
from contextlib import redirect_stdout
from pathlib import Path
from platform import platform
from time import monotonic
from typing import Any
from xml.etree.ElementTree import Element, SubElement, indent, tostring

import typer
from msgspec import json
from msgspec.structs import replace
from rich.console import Console

from worldline.builds import build
from worldline.cli.console import PlainConsole, cell, own_lines
from worldline.cli.console import remark as tell
from worldline.cli.options import takes
from worldline.cli.runner import Interruption
from worldline.conformance.suite import verdicts
from worldline.files.saving import destination, save
from worldline.model import UsageError
from worldline.model.text import counted, printable, printable_json, printable_lines
from worldline.targets import RunOptions, prepare
from worldline.targets.run_processes import VariantRun, check_names, chosen, depend_on_kind, variants_of
from worldline.targets.verifying import Compared, Ending, Verification, Verifier

# What `worldline verify` has found, for programs: as one JSON object, and as JUnit's XML, which CI systems show.


def as_json(verification: Verification) -> str:
    """Return all of it as one JSON object, on one line."""
    said, mismatch = verification.reference.said, verification.mismatch
    found: dict[str, Any] = {
        "target": verification.target,
        "kind": None if said is None else said.kind,
        "name": None if said is None else said.name,
        "digest": verification.digest,
        "seconds": round(verification.seconds, 3),
        "failure": verification.reference.error or None,
        "variants": [
            _variant("reference" if said is None else said.executor, verification.reference, "reference"),
            *(_variant(each.variant.name, each.run, each.ending, each.why) for each in verification.compared),
        ],
        "difference": None
        if mismatch is None
        else {
            "variant": mismatch.variant.name,
            "differs_in": mismatch.factor.value,
            "meaning": mismatch.meaning,
            "commands": mismatch.commands,
            "text": "\n".join(mismatch.lines),
            "comparison": mismatch.comparison,
        },
    }
    return printable_json(json.encode(found).decode())


def _variant(name: str, run: VariantRun | None, ending: str, why: str = "") -> dict[str, Any]:
    said = None if run is None else run.said
    return {
        "name": name,
        "ending": ending,
        "digest": None if said is None else said.digest,
        "events": None if said is None else said.events_of_history,
        "seconds": None if run is None else round(run.seconds, 3),
        "remarks": [] if said is None else said.remarks,
        "why": why or None,
    }


def as_junit(verification: Verification) -> bytes:
    """Return a test case per variant: a difference is a failure, a run that failed an error."""
    suite = Element("testsuite", name=f"worldline verify {printable(verification.target)}")
    said = verification.reference.said
    first = _case(suite, verification, "reference" if said is None else said.executor, verification.reference.seconds)
    if verification.reference.error:
        _note(first, "error", verification.reference.error)
    for each in verification.compared:
        case = _case(suite, verification, each.variant.name, 0.0 if each.run is None else each.run.seconds)
        if each.ending is Ending.FAILED:
            _note(case, "error", each.why)
        elif each.ending is Ending.LEFT_OUT:
            _note(case, "skipped", each.why)
        elif each.ending is Ending.DIFFERS:
            _note(case, "failure", *_difference(verification, each))
    for attribute, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        suite.set(attribute, str(len(suite.findall(f"testcase/{tag}"))))
    suite.set("tests", str(len(suite)))
    suite.set("time", f"{verification.seconds:.3f}")
    indent(suite)
    written: bytes = tostring(suite, encoding="utf-8", xml_declaration=True)
    return written + b"\n"


def _case(suite: Element, verification: Verification, name: str, seconds: float) -> Element:
    return SubElement(
        suite, "testcase", classname=printable(verification.target), name=printable(name), time=f"{seconds:.3f}"
    )


def _note(case: Element, tag: str, message: str, text: str = "") -> None:
    note = SubElement(case, tag, message=printable(message.partition("\n")[0]))
    note.text = printable_lines(text or message)


def _difference(verification: Verification, compared: Compared) -> tuple[str, str]:
    """Return what is to be said of a variant that differs: where, if that is the one that was looked into."""
    mismatch, run = verification.mismatch, compared.run
    assert mismatch is not None
    assert run is not None
    digests = f"digest {run.digest}, and {verification.reference.digest} of the first run"
    if mismatch.variant != compared.variant:
        return digests, f"{digests}; see {mismatch.variant.name}"
    return mismatch.meaning, "\n".join([digests, *mismatch.lines, "to repeat it:", *mismatch.commands])


_NAME, _DIGEST, _NUMBER = 14, 32, 10


@takes(
    """
    TARGET  A file or name, as for `worldline run`.
    --conformance  Instead of a target, run the models that have the same digests on every machine.
    --seed
    --until
    --executor EXECUTOR  Executor of the first run, which the others are compared with.
    --set
    --draws
    --fault
    --faults
    --only VARIANT,...  Run only these variants: again, hash-seed, executor, 'processes(2)'...
    --again N at least 1  Run the same again so often, and with quick thread switches: what shows by luck.
    --mpi  Run it on two MPI ranks, too.
    --seconds-max S at least 0  Stop comparing after this many seconds.
    --junit FILE.xml  Write a JUnit report for CI, one test case per variant.
    --json  Print one JSON object instead of the table.
    --keep FOLDER  Where to keep the recordings of two runs that differ.
    """,
)
def verify(
    options: RunOptions,
    target: str | None = None,
    conformance: bool = False,
    only: list[str] | None = None,
    again: int = 1,
    mpi: bool = False,
    seconds_max: float | None = None,
    junit: Path | None = None,
    json: bool = False,
    keep: Path | None = None,
) -> None:
    """Run a target twice, and across executors, hash seeds, surroundings, start orders and builds; compare the digests.

    If they differ, show where two runs diverge, and exit with 1.
    """
    if conformance:
        if target is not None:
            raise UsageError(f"--conformance has models of its own, and is nothing to {target}")
        _conform()
        return
    if target is None:
        raise UsageError("there is no target to verify", advice="name a file, or give --conformance")
    if junit is not None:
        destination(junit)
    names = None if only is None else [name.strip() for name in ",".join(only).split(",") if name.strip()]
    if names is not None:
        _check_only(names, target, options, mpi)
    verifier = Verifier(
        target,
        replace(options, executor=None).words(),
        executor=options.executor,
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


def _conform() -> None:
    """Run the models of conformance, and name those with another digest."""
    console, begun = PlainConsole(), monotonic()
    with Interruption():
        found = list(verdicts())
    wrong = [verdict for verdict in found if not verdict.holds]
    for verdict in wrong:
        console.print(f"{verdict.case}: {verdict.failure or f'{verdict.digest}, not {verdict.expected}'}", style="red")
    models = counted(len({verdict.case.model for verdict in found}), "model")
    if wrong:
        console.print(f"{len(wrong)} of {counted(len(found), 'run')} of {models} differ: {build}, {platform()}")
        raise typer.Exit(1)
    console.print(
        f"{models}, {counted(len(found), 'run')} in {monotonic() - begun:.1f} s: the digests of every machine"
    )


def _tell(seconds: float, status: str) -> None:
    reached = f": {status}" if status else ""
    tell(f"the first run has taken {seconds:.0f} s (--until TIME or --seconds-max S ends it){reached}")


def _check_only(names: Sequence[str], target: str, options: RunOptions, mpi: bool) -> None:
    """Refuse names of variants that this target doesn't have, before it is run; what it is, loading it tells."""
    if not names:
        raise UsageError("--only names no variant", advice="leave it out to try all")
    check_names(names)
    if depend_on_kind(names):
        with redirect_stdout(io.StringIO()):
            ready = prepare(target, options)
        variants = variants_of(ready.kind, ready.executor, mpi=mpi)
        if ready.executor in names:
            raise UsageError(
                f"the first run is on {ready.executor}, and the variants are compared with it",
                advice=f"name some of {', '.join(each.name for each in variants)}; or another first run, --executor",
            )
        chosen(variants, names, f" of a target of the kind {ready.kind}")


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
