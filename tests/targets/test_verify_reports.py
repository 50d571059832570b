"""What programs are told of a verification: JSON, and JUnit's XML, whatever stands in a text."""

from __future__ import annotations

import json
from xml.etree import ElementTree

from tests.targets.test_verify import ran
from worldline.cli.verify import as_json, as_junit
from worldline.targets.run_processes import Factor, Variant, VariantRun, reference_on, variants_of
from worldline.targets.verifying import Compared, Ending, Mismatch, Verification

VARIANTS = {each.name: each for each in variants_of("kernel", "inline")}
AGAIN, SEED, TWO, THREE, PLAIN = (
    VARIANTS[name] for name in ("again", "hash-seed-1", "processes(2)", "processes(3)", "uncompiled")
)


def failed(variant: Variant, error: str, exit_code: int = 1) -> VariantRun:
    return VariantRun(variant=variant, seconds=0.25, error=error, exit_code=exit_code)


REFERENCE = ran(reference_on(None))
SAME = Compared(variant=AGAIN, ending=Ending.SAME, run=ran(AGAIN))
GOOD = Verification(target="shop.py", reference=REFERENCE, compared=(SAME,), seconds=1.0)
BAD = Verification(
    target="shop.py",
    reference=REFERENCE,
    compared=(
        SAME,
        Compared(variant=SEED, ending=Ending.DIFFERS, run=ran(SEED, "cd")),
        Compared(variant=TWO, ending=Ending.DIFFERS, run=ran(TWO, "ef")),
        Compared(
            variant=THREE, ending=Ending.FAILED, run=failed(THREE, "no <way>\n\x1b[31m\x00"), why="no <way>\n\x1b"
        ),
        Compared(variant=PLAIN, ending=Ending.LEFT_OUT, why="nothing is compiled here"),
    ),
    mismatch=Mismatch(
        variant=SEED,
        factor=Factor.HASH_SEED,
        meaning="hash seeds differ",
        lines=("bob parts\x07 first", "]]> & <more>"),
        comparison={"cause": "bob"},
        commands=("run it", "and diff"),
    ),
    seconds=2.0,
)
BROKEN = Verification(target="shop.py", reference=failed(reference_on(None), "it can't be", 4), seconds=0.5)


def test_exit_codes_tell_failures_from_differences() -> None:
    assert GOOD.exit_code == 0
    assert BAD.exit_code == 1
    assert BROKEN.exit_code == 4
    lost = Compared(variant=TWO, ending=Ending.FAILED, run=failed(TWO, "gone", 3), why="gone")
    assert Verification(target="", reference=REFERENCE, compared=(SAME, lost), seconds=1).exit_code == 3
    out = Compared(variant=TWO, ending=Ending.LEFT_OUT, why="it can't")
    assert Verification(target="", reference=REFERENCE, compared=(out,), seconds=1).exit_code == 2


def test_json_says_all() -> None:
    good = json.loads(as_json(GOOD))
    assert (good["digest"], good["difference"], good["failure"]) == ("ab", None, None)
    assert [(each["name"], each["ending"], each["digest"]) for each in good["variants"]] == [
        ("inline", "reference", "ab"),
        ("again", "same", "ab"),
    ]
    bad = json.loads(as_json(BAD))
    assert bad["digest"] is None
    assert [each["ending"] for each in bad["variants"]] == [
        *("reference", "same", "differs", "differs", "failed", "left out")
    ]
    assert bad["difference"]["variant"] == "hash-seed-1"
    assert bad["difference"]["differs_in"] == "hash-seed"
    assert bad["difference"]["comparison"] == {"cause": "bob"}
    broken = json.loads(as_json(BROKEN))
    assert (broken["digest"], broken["kind"], broken["failure"]) == (None, None, "it can't be")


def test_junit_has_a_case_for_every_variant() -> None:
    suite = ElementTree.fromstring(as_junit(BAD))
    counts = {name: suite.get(name) for name in ("tests", "failures", "errors", "skipped")}
    assert counts == {"tests": "6", "failures": "2", "errors": "1", "skipped": "1"}
    cases = {case.get("name"): case for case in suite}
    assert [len(case) for case in cases.values()] == [0, 0, 1, 1, 1, 1]
    (failure,) = cases["hash-seed-1"]
    assert failure.get("message") == "hash seeds differ"
    assert failure.text is not None
    assert "]]> & <more>" in failure.text
    assert "and diff" in failure.text
    (other,) = cases["processes(2)"]
    assert other.text == "digest ef, and ab of the first run; see hash-seed-1"
    (error,) = cases["processes(3)"]
    assert (error.tag, error.get("message")) == ("error", "no <way>")
    assert cases["uncompiled"][0].tag == "skipped"


def test_junit_of_a_reference_that_fails_is_one_error() -> None:
    suite = ElementTree.fromstring(as_junit(BROKEN))
    assert (suite.get("tests"), suite.get("errors")) == ("1", "1")
    assert suite[0][0].get("message") == "it can't be"


def test_junit_of_one_digest_has_nothing_to_complain_about() -> None:
    suite = ElementTree.fromstring(as_junit(GOOD))
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("2", "0", "0")
