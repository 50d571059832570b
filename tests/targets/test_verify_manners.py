"""What `worldline verify` refuses before it runs anything, and what it says of runs besides their digests."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.files.files import nothing_stays  # noqa: F401 - A fixture.
from tests.targets.files import FEDERATION, KERNEL, NODES, write
from worldline.cli import main
from worldline.targets.run_processes import Factor, RunProcesses, RunSummary, Variant, VariantRun
from worldline.targets.verifying import Compared, Ending, Verification

pytestmark = pytest.mark.usefixtures("nothing_stays")


@pytest.mark.parametrize(
    ("model", "only", "complaint"),
    [
        (KERNEL, "agian", "there is no variant 'agian' (did you mean again?)"),
        (KERNEL, "again,tcp", "there is no variant 'tcp' of a target of the kind kernel (there are: again, "),
        (KERNEL, "again,inline", "the first run is on inline, and the variants are compared with it (name some of "),
        (FEDERATION, "processes(2)", "there is no variant 'processes(2)' of a target of the kind federation"),
        (NODES, "shuffled(1)", "there is no variant 'shuffled(1)' of a target of the kind nodes"),
        (KERNEL, "", "--only names no variant (leave it out to try all)"),
        (KERNEL, " ,", "--only names no variant (leave it out to try all)"),
    ],
)
def test_a_variant_that_isnt_there_is_refused_before_anything_is_run(
    model: str,
    only: str,
    complaint: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def never(*_: object) -> None:
        raise AssertionError

    monkeypatch.setattr(RunProcesses, "start", never)
    monkeypatch.setattr(
        "sys.argv", ["worldline", "verify", write(tmp_path, f"print('loaded')\n{model}"), "--only", only]
    )
    with pytest.raises(SystemExit) as exit_:
        main()
    out, err = capsys.readouterr()
    assert (exit_.value.code, out) == (2, "")
    assert err.startswith(f"worldline: {complaint}")


def ran(name: str, kind: str, events: int, *remarks: str) -> VariantRun:
    said = RunSummary(kind, "it", "inline", "abc", events, remarks)
    return VariantRun(variant=Variant(name=name, factor=Factor.NOTHING), seconds=0.5, said=said)


def shown(kind: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *options: str) -> str:
    """Return what is said of two runs that have one digest and another number of events."""
    first, again = ran("reference", kind, 10), ran("again", kind, 12, "not looked at: the moon")

    def run(_self, began=lambda _: None, compared=lambda _: None, waiting=None):  # type: ignore[no-untyped-def]
        began(first)
        other = Compared(variant=again.variant, ending=Ending.SAME, run=again)
        compared(other)
        return Verification(target="it", reference=first, compared=(other,), seconds=1.0)

    monkeypatch.setattr("worldline.targets.verifying.Verifier.run", run)
    monkeypatch.setattr("sys.argv", ["worldline", "verify", "it", *options])
    with pytest.raises(SystemExit):
        main()
    return capsys.readouterr().out


@pytest.mark.parametrize(("kind", "has_events"), [("kernel", True), ("federation", False)])
def test_events_are_shown_where_they_are_part_of_the_history(
    kind: str, has_events: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    head, first, *_ = shown(kind, monkeypatch, capsys).splitlines()
    assert ("events" in head, "10" in first) == (has_events, has_events)
    variants = json.loads(shown(kind, monkeypatch, capsys, "--json"))["variants"]
    assert [each["events"] for each in variants] == ([10, 12] if has_events else [None, None])


def test_what_isnt_looked_at_is_said(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert "\nagain: not looked at: the moon\n" in shown("nodes", monkeypatch, capsys)
    variants = json.loads(shown("nodes", monkeypatch, capsys, "--json"))["variants"]
    assert [each["remarks"] for each in variants] == [[], ["not looked at: the moon"]]
