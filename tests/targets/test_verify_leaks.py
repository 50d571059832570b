"""Every leak of every kind of simulation is caught, by the variant that it is sure to show in, and traced to bob.

Only what differs is run here: the reference, that variant, and both with recordings. A leak is tried with one kind of
simulation; `make soak` tries it with all of them, and all variants.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.leaks.leaking import LEAKS as KINDS_OF_LEAKS
from tests.leaks.running import LEAKS, verified
from tests.soaking import later

# Who is bob, and as what his message goes.
BOB = {
    "federation": ("bob", "leak"),
    "kernel": ("bob", "leak"),
    "nodes": ("1", "Leak"),
    "spacetime": ("bob", "Ledger.hear"),
}
MEANINGS = {
    "again": "two equal runs differ: a clock, global randomness, id(), or a thread",
    "threads": "it matters when threads take turns: threads race",
    "hash-seed-1": "hash seeds differ: something iterates over a set, or goes by hash()",
    "folder": "working folders differ: something goes by the path",
    "home": "home folders differ: something goes by HOME",
    "locale": "locales differ: something goes by the language",
    "time-zone": "time zones differ: something converts to or from local time",
    "elsewhere": "executors differ",
}
SHOWS_IN = {
    "set_order": "hash-seed-1",
    "float_sum": "hash-seed-1",
    "clock": "again",
    "global_random": "again",
    "thread": "again",
    "identity": "again",
    "race": "threads",
    "folder": "folder",
    "home": "home",
    "locale": "locale",
    "time_zone": "time-zone",
    "shared_state": "elsewhere",
}
LUCK = {"race": "again"}  # In what else a leak may show, on a busy machine.
QUICK = [
    ("federation", "shared_state"),
    ("federation", "thread"),
    ("kernel", "set_order"),
    ("kernel", "clock"),
    ("nodes", "global_random"),
    ("spacetime", "float_sum"),
    ("spacetime", "identity"),
    ("kernel", "race"),
    ("kernel", "folder"),
    ("nodes", "home"),
    ("nodes", "locale"),
    ("federation", "time_zone"),
]


def test_all_leaks_and_kinds_are_among_the_quick_ones() -> None:
    assert {kind for kind, _ in QUICK} == set(BOB)
    assert sorted(leak for _, leak in QUICK) == sorted(KINDS_OF_LEAKS)


def target(kind: str, leak: str) -> list[object]:
    if kind == "federation":
        file = LEAKS / "federation_leaks.toml"
        return [file, "--executor", "in-process", "--set", f"participants[2].entry=federation_leaks:{leak}"]
    return [LEAKS / f"{kind}_leaks.py", "--set", f"leak={leak}"]


@pytest.mark.long
@pytest.mark.parametrize(
    ("kind", "leak"),
    [*QUICK, *later((kind, leak) for kind in BOB for leak in KINDS_OF_LEAKS if (kind, leak) not in QUICK)],
)
def test_it_is_caught_and_traced_to_where_it_comes_from(kind: str, leak: str, worldline: Any) -> None:
    shows_in = SHOWS_IN[leak]
    elsewhere = "tcp" if kind == "federation" else "processes(2)"
    variant = elsewhere if shows_in == "elsewhere" else shows_in
    by_luck = ("--only", f"again,{variant}", "--again", 3) if shows_in in ("again", "threads") else ("--only", variant)
    code, found = verified(worldline, *target(kind, leak), *by_luck)
    assert (code, found["digest"], found["kind"]) == (1, None, kind)
    difference = found["difference"]
    assert re.fullmatch(rf"({re.escape(variant)}|{LUCK.get(leak)})(-\d)?", difference["variant"])
    assert difference["meaning"].startswith((MEANINGS[shows_in], MEANINGS[LUCK.get(leak, shows_in)]))
    (cause,) = difference["comparison"]["causes"]
    bob, topic = BOB[kind]
    assert (cause["member"], cause["what"], cause["origin"]) == (bob, f"sends {topic}", "itself")
    assert len(difference["comparison"]["differences"]) == 4  # It has come to everybody.


@pytest.mark.long
def test_what_leaks_only_after_a_crash_is_caught_by_a_fault(worldline: Any) -> None:
    restarted = [*target("federation", "restarted"), "--until", "20ms", "--only", "again"]
    assert verified(worldline, *restarted)[0] == 0
    code, found = verified(worldline, *restarted, "--fault", "1ms crash bob 1ms")
    assert code == 1
    (cause,) = found["difference"]["comparison"]["causes"]
    assert (cause["member"], cause["what"], cause["origin"]) == ("bob", "sends leak", "itself")


@pytest.mark.long
def test_draws_are_replaced_in_all_runs_alike(worldline: Any) -> None:
    latencies = ["--set", "link.latency=uniform(1ms, 3ms)", "--only", "tcp"]
    Path("table.json").write_text('{"latency": "antithetic"}')
    plain, replaced = (
        verified(worldline, *target("federation", "none"), *latencies, *draws)
        for draws in ([], ["--draws", "table.json"])
    )
    assert plain[0] == replaced[0] == 0
    assert plain[1]["digest"] != replaced[1]["digest"]
    code, _, errors = worldline("verify", *target("federation", "none"), *latencies, "--draws", "nothing.json")
    assert (code, "nothing.json" in errors) == (2, True)


COUNTING = """
from pathlib import Path
from worldline.kernel import Entity, Simulation

class Teller(Entity):
    def start(self):
        self.send("hearer", "count", max(1, self.count), delay="1ms")

class Hearer(Entity):
    def on_count(self, _):
        pass

def model(*, file=""):
    with open(file, "a+") as counted:
        counted.write("x")
    teller = Teller()
    teller.count = len(Path(file).read_text())
    simulation = Simulation()
    simulation.add("teller", teller)
    simulation.add("hearer", Hearer())
    return simulation
"""


@pytest.mark.long
def test_what_changes_by_itself_isnt_taken_for_a_sets_order_because_a_run_agreed(
    worldline: Any, tmp_path: Path
) -> None:
    """The first two runs agree, and all others differ: `again` alone would have shown nothing."""
    (tmp_path / "counting.py").write_text(COUNTING.replace("max(1, ", "max(2, "))
    code, found = verified(
        worldline, "counting.py", "--set", f"file={tmp_path / 'count'}", "--only", "again,hash-seed-1"
    )
    assert code == 1
    difference = found["difference"]
    assert difference["differs_in"] == "again"
    assert difference["meaning"] == MEANINGS["again"]


@pytest.mark.long
def test_what_fails_in_another_folder_is_left_out_and_what_lies_beside_it_is_found(
    worldline: Any, tmp_path: Path
) -> None:
    (tmp_path / "data").write_text("2")
    checks = "assert Path('data').read_text() == '2'\n"
    for check, ending in ((checks, "same"), (f"{checks}assert str(Path.cwd()) == {str(tmp_path)!r}\n", "left out")):
        (tmp_path / "picky.py").write_text(COUNTING.replace("self.count", "1") + check)
        code, found = verified(worldline, "picky.py", "--set", f"file={tmp_path / 'count'}", "--only", "again,folder")
        assert (code, found["variants"][2]["name"], found["variants"][2]["ending"]) == (0, "folder", ending)


@pytest.mark.soak
@pytest.mark.timeout(0)
@pytest.mark.parametrize("leak", KINDS_OF_LEAKS)
@pytest.mark.parametrize("kind", BOB)
def test_it_is_caught_among_all_variants(kind: str, leak: str, worldline: Any) -> None:
    code, found = verified(worldline, *target(kind, leak))
    assert code == 1
    shown = [each["name"] for each in found["variants"] if each["ending"] == "differs"]
    assert any(name.startswith(SHOWS_IN[leak].replace("elsewhere", "processes(2)")) for name in shown) or "tcp" in shown
    shows_in = SHOWS_IN[leak]
    assert found["difference"]["meaning"].startswith((MEANINGS[shows_in], MEANINGS[LUCK.get(leak, shows_in)]))


@pytest.mark.soak
@pytest.mark.timeout(0)
@pytest.mark.parametrize("kind", BOB)
def test_the_honest_one_passes(kind: str, worldline: Any) -> None:
    code, found = verified(worldline, *target(kind, "none"))
    assert (code, found["difference"]) == (0, None)
    assert all(each["ending"] in ("reference", "same") for each in found["variants"])
