"""Whatever comes with Worldline gives one digest: every example, algorithm, spacetime and world."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

from tests.leaks.running import EXAMPLES, verified
from worldline.nodes.algorithms import NAMES as ALGORITHMS
from worldline.spacetime.examples import NAMES as SPACETIMES

# What makes some of them small enough.
SMALLER: dict[str, tuple[str, ...]] = {
    "epidemic/epidemic.py": ("--set", "people=100"),
    "harbor/harbor.py": ("--until", "120h"),
    "job_shop/job_shop.py": ("--until", "120h"),
    "million/million.py": ("--set", "entities=2000"),
    "packet_network/packet_network.py": ("--until", "100ms"),
    "phold/phold.py": ("--until", "5s"),
    **{f"world/{path.name}": ("--until", "300ms") for path in sorted((EXAMPLES / "world").glob("*.sdf"))},
}
WITHOUT_DRAKE = "metasim/thermostat.toml"
WRONG_ON_PURPOSE = "leaky.py"


def is_target(path: Path) -> bool:
    return path.suffix in (".toml", ".sdf") or "\nmodel = " in path.read_text() or "\ndef model(" in path.read_text()


OF_FILES = sorted(
    str(path.relative_to(EXAMPLES))
    for path in (*EXAMPLES.glob("*/*.toml"), *EXAMPLES.glob("*/*.sdf"), *EXAMPLES.rglob("*.py"))
    if path.name != WRONG_ON_PURPOSE and is_target(path)
)
ALL = [*OF_FILES, *ALGORITHMS, *(f"spacetime:{name}" for name in SPACETIMES)]
QUICK = {
    "ping_pong/ping_pong.toml": ("in-process",),
    "raft": ("hash-seed-1", "uncompiled"),
    "spacetime:relay": ("shuffled(1)",),
    "world/push_box.sdf": ("run-ahead-10",),
}


def arguments(name: str) -> list[object]:
    return [EXAMPLES / name if name in OF_FILES else name, *SMALLER.get(name, ())]


def test_all_kinds_of_simulations_are_among_them() -> None:
    assert len(ALGORITHMS) == 17
    assert len(SPACETIMES) == 6
    assert {Path(name).suffix for name in OF_FILES} == {".toml", ".py", ".sdf"}
    assert set(QUICK) <= set(ALL)
    assert set(SMALLER) <= set(OF_FILES)


@pytest.mark.long
@pytest.mark.parametrize("name", QUICK)
def test_some_give_one_digest_in_some_ways(worldline: Any, name: str) -> None:
    code, found = verified(worldline, *arguments(name), "--only", ",".join(QUICK[name]))
    assert (code, found["difference"]) == (0, None)


@pytest.mark.soak
@pytest.mark.timeout(0)
@pytest.mark.parametrize("name", ALL)
def test_all_give_one_digest_in_all_ways(worldline: Any, name: str) -> None:
    if name.startswith("metasim/") and name != WITHOUT_DRAKE and importlib.util.find_spec("pydrake") is None:
        pytest.skip("Drake isn't installed: it needs Python 3.12 or newer")
    code, found = verified(worldline, *arguments(name))
    assert (code, found["difference"]) == (0, None), found
    left_out = {each["name"]: each["why"] for each in found["variants"] if each["ending"] == "left out"}
    assert left_out.keys() <= {"uncompiled"}, left_out
