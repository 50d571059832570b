"""What `worldline verify` has found, for programs: as one JSON object, and as JUnit's XML, which CI systems show."""

from __future__ import annotations

from typing import Any
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from msgspec import json

from worldline.model.printable import printable, printable_json, printable_lines
from worldline.targets.run_processes import VariantRun
from worldline.targets.verifying import Compared, Ending, Verification


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
