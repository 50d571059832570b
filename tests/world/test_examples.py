"""The example worlds are read without a note, and the warehouse is the same in every run."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

from tests.leaks.running import EXAMPLES
from worldline.world.sdf import read_world

WORLDS = EXAMPLES / "world"
warehouse = runpy.run_path(str(WORLDS / "warehouse.py"))["warehouse"]


@pytest.mark.parametrize("name", ["levels", "falling_boxes", "push_box"])
def test_examples_are_read_without_a_note(name: str) -> None:
    world = read_world(WORLDS / f"{name}.sdf")
    assert world.notes == ()
    assert world.name == name
    assert world.performers


@pytest.mark.parametrize(("performers", "levels"), [(50, 20), (1, 1), (0, 0), (7, 3)])
def test_warehouses_have_what_was_asked_for(tmp_path: Path, performers: int, levels: int) -> None:
    file = tmp_path / "warehouse.sdf"
    file.write_text(warehouse(performers, levels))
    world = read_world(file)
    assert (len(world.performers), len(world.levels)) == (performers, levels)
    assert len(world.models) == 1 + 3 * levels + performers
    assert world.notes == ()


def test_a_warehouse_is_always_the_same() -> None:
    assert warehouse(5, 2) == warehouse(5, 2)
