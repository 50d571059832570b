"""The models have the digests that they have everywhere, and a model that hasn't is named."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest
from msgspec import json

from worldline import Federation
from worldline.conformance import suite
from worldline.kernel import Simulation
from worldline.nodes.algorithms import NAMES
from worldline.spacetime import examples

CASES = suite.cases()


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_model_has_its_digest(case: suite.Case) -> None:
    expected = json.decode(suite._DIGESTS.read_bytes(), type=dict[str, str])
    assert suite.digest_of(case) == expected[case.model]


def test_every_model_of_its_files_and_rooms_is_tried() -> None:
    federations = vars(importlib.import_module("worldline.conformance.models.federations"))
    kernels = vars(importlib.import_module("worldline.conformance.models.kernels"))
    written = {name for name, value in federations.items() if isinstance(value, Federation)}
    written |= {name for name, value in kernels.items() if name[0] != "_" and "Simulation" in _returns(value)}
    assert {case.model for case in CASES} == {*written, "file", *NAMES, *examples.NAMES}
    assert len({case.model for case in CASES}) >= 50


def _returns(value: object) -> str:
    return str(getattr(value, "__annotations__", {}).get("return", "")) if value is not Simulation else ""


def test_advice_on_speed_is_of_no_interest_here(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("worldline.kernel.distributed._ADVICE_AFTER_S", 0.0)
    for case in (case for case in CASES if str(case.executor).startswith("processes")):
        suite.digest_of(case)
    assert capsys.readouterr() == ("", "")


def test_a_digest_that_differs_and_a_run_that_fails_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    here = CASES[0]
    broken = here._replace(model="queue", target=f"{here.target}_which_is_not_there")
    monkeypatch.setattr(suite, "cases", lambda: [here._replace(model="dice"), broken])
    other, failed = suite.verdicts()
    assert not other.holds
    assert (len(other.digest), other.failure) == (32, "")
    assert not failed.holds
    assert "which_is_not_there" in failed.failure


def test_renewed_digests_are_those_that_were_there(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Each model once, in the order of the file; what is run on several executors doesn't come twice."""
    chosen = [case for case in CASES if case.model in ("loss", "dice", "queue") or case.executor == "tcp"]
    monkeypatch.setattr(suite, "cases", lambda: chosen[:3])
    before = json.decode(suite._DIGESTS.read_bytes(), type=dict[str, str])
    file = tmp_path / "digests.json"
    monkeypatch.setattr(suite, "_DIGESTS", file)
    suite.renew()
    names = {case.model for case in chosen[:3]}
    assert json.decode(file.read_bytes(), type=dict[str, str]) == {name: before[name] for name in names}
    assert file.read_text().endswith("}\n")
    assert all(verdict.holds for verdict in suite.verdicts())
