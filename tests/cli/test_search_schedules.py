"""`worldline search --schedules`: a race between tasks of a program is found, shrunk, saved and run again."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Command

MODEL = """
import asyncio
from worldline import Federation, Machine

async def transfer_and_audit():
    accounts = {"a": 5, "b": 0}
    async def transfer():
        await asyncio.sleep(1)
        accounts["a"] -= 3
        await asyncio.sleep(0)
        accounts["b"] += 3
    async def audit():
        await asyncio.sleep(1)
        assert sum(accounts.values()) == 5, "money is missing"
    await asyncio.gather(audit(), transfer())

def model():
    return Federation({"bank": Machine(transfer_and_audit)}, until="2s")
"""
TURN = "(bank runs Task-3 (transfer) before Task-2 (audit))"


@pytest.fixture
def bank(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "bank.py").write_text(MODEL)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("way", ["random", "pct:2", "delays:1"])
def test_a_race_is_found_in_each_way(worldline: Command, bank: Path, way: str) -> None:
    code, output, _ = worldline("search", "bank.py", "--schedules", way, "--seeds", "20", "--workers", "1")
    assert code == 1
    assert "money is missing" in output
    assert f"bank.py --schedules {way} --seed " in output
    assert "none gets lost and one callback runs out of order, once:" in output
    assert TURN in output
    assert ("PCT: what takes 2 orderings among 2 tasks" in output) == (way == "pct:2")


def test_what_was_saved_is_run_again(worldline: Command, bank: Path) -> None:
    code, _, _ = worldline("search", "bank.py", "--schedules", "random", "--workers", "1", "--save", "race.json")
    assert code == 1
    assert '"turn/bank/0": 1' in (bank / "race.json").read_text()
    code, output, _ = worldline("search", "race.json", "--target", "bank.py")
    assert code == 1
    assert "money is missing" in output


def test_in_its_own_order_it_passes_and_a_turn_can_be_stated(worldline: Command, bank: Path) -> None:
    assert worldline("search", "bank.py", "--seeds", "3", "--workers", "1")[0] == 0
    (bank / "turns.toml").write_text('"turn/bank/0" = 1\n')
    code, _, errors = worldline("run", "bank.py", "--draws", "turns.toml", "--no-record", "--quiet")
    assert code == 1
    assert "money is missing" in errors


def test_a_way_that_there_is_not_is_refused(worldline: Command, bank: Path) -> None:
    code, _, errors = worldline("search", "bank.py", "--schedules", "all")
    assert code == 2
    assert "'all' isn't a way to choose schedules (write random, pct:3 or delays:2)" in errors
