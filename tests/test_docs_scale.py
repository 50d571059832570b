"""The page on scale shows what the model says, and with which costs."""

from __future__ import annotations

import re

import pytest

from tests.leaks.running import command_of
from tests.test_docs import ROOT
from worldline.files.loading import load_module
from worldline.model import US

PAGE = (ROOT / "docs" / "scale.md").read_text()
FILE = ROOT / "examples" / "scale" / "scale.py"


def rows(heading: str) -> list[list[str]]:
    """Return the rows of the table whose first column has this heading."""
    table = PAGE.split(f"| {heading}")[1].split("\n\n")[0]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()[2:]]


def test_the_command_prints_what_is_shown(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    command, shown = re.findall(r"^\$ worldline (.*)\n((?:.*\n)+?)\.\.\.\n", PAGE, re.MULTILINE)[0]
    monkeypatch.chdir(ROOT)
    code, out, err = command_of(monkeypatch, capsys)(*command.split())
    assert code == 0, err
    assert out.startswith(shown)


def test_the_costs_are_those_of_the_model() -> None:
    costs = load_module(FILE).Costs()
    shown = {name: [float(cell) for cell in cells if cell] for name, *cells in rows("| server")}
    exchange, step, message = shown.values()
    assert exchange == [(costs.server_in + costs.server_out) / US, costs.client_exchange / US]
    assert step == [costs.client_step / US]
    assert message == [costs.server_message / US, costs.client_message / US]


@pytest.mark.parametrize("participants", [10, 100])
def test_the_table_has_what_the_model_says(participants: int) -> None:
    scale = load_module(FILE)
    found = []
    for settings in ({}, {"wire": "5ms"}, {"compute": "10ms"}):
        simulation = scale.model(participants=participants, **settings)
        simulation.run()
        found.append(f"{scale.steps_per_s(scale.processes_of(simulation)):,.0f}")
    (shown,) = (cells for name, *cells in rows("participants (`k") if name == str(participants))
    assert shown == found
