"""Placement by the written cases: the initial rule, the five moves, and every rule on its own."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from tests.world.plain import UNIT, along_x, at, world
from worldline.world.groups import Group, Mover, find_groups, place
from worldline.world.levels import Levels
from worldline.world.pose import Vector as Point

# Where to stand on the x axis to be in these levels; they don't touch, except L3 and L4.
LEVELS = (along_x("L1", 0, 10), along_x("L2", 20, 30), along_x("L3", 40, 50), along_x("L4", 50, 60))
PLACES = {"L1": 5.0, "L2": 25.0, "L3": 45.0, "L3+L4": 50.0, "L4": 55.0, "": 100.0}


def together(levels: Levels, positions: Mapping[str, Point]) -> tuple[Group, ...]:
    """The groups that performers form by their levels; here, nobody comes near another except in a level."""
    return find_groups(
        [
            Mover(name, (x, y, 0.0), (0.1, 0.1, 0.1), 1.0, levels.of(name), True)
            for name, (x, y, _) in positions.items()
        ],
        1_000_000,
    )


def stand(**performers: str) -> dict[str, Point]:
    """Positions of performers by their levels, in rows of their own."""
    return {name: at(PLACES[where], number * 0.5) for number, (name, where) in enumerate(performers.items())}


def start(secondaries: str, **performers: str) -> tuple[Levels, dict[str, str]]:
    levels, positions = world(*LEVELS), stand(**performers)
    levels.update({}, added={name: (UNIT, position) for name, position in positions.items()})
    return levels, place(together(levels, positions), secondaries.split())


# --- Cases 8 and 9 ---


def test_initial_placement() -> None:
    _, distribution = start("c a b", P1="L1", P2="L2", P3="L2", P4="")
    assert distribution == {"P1": "a", "P2": "b", "P3": "b", "P4": "c"}


@pytest.mark.parametrize(
    ("moved", "hosts"),
    [
        ({"P1": "L3"}, "S1 S2 S2"),
        ({"P1": "L2"}, "S2 S2 S2"),
        ({"P2": "L1", "P3": "L1"}, "S2 S2 S2"),
        ({"P3": "L3"}, "S1 S2 S3"),
        ({"P2": "L1"}, "S1 S1 S2"),
    ],
)
def test_the_five_moves(moved: dict[str, str], hosts: str) -> None:
    before = {"P1": "L1", "P2": "L2", "P3": "L2"}
    levels, distribution = start("S1 S2 S3", **before)
    assert list(distribution.values()) == ["S1", "S2", "S2"]
    positions = stand(**(before | moved))
    changed = levels.update(positions)
    after = place(together(levels, positions), ["S1", "S2", "S3"], distribution, changed)
    assert after == dict(zip(before, hosts.split(), strict=True))


def test_a_performer_that_overlaps_two_levels_joins_them() -> None:
    _, distribution = start("a b c", P1="L3", P2="L3+L4", P3="L4", P4="L1")
    assert distribution == {"P1": "b", "P2": "b", "P3": "b", "P4": "a"}


# --- The rules ---


def group(performers: str, levels: str = "", entities: str = "") -> Group:
    found = Group("", tuple(performers.split()), tuple(entities.split()), tuple(levels.split()))
    return found._replace(name=min(found.members()))


def spots(distribution: dict[str, str]) -> str:
    return " ".join(f"{name}:{where}" for name, where in distribution.items())


def placed(groups: list[Group], secondaries: str, before: str = "", changed: str = "") -> str:
    affinities = dict(pair.split(":") for pair in before.split())
    return spots(place(groups, secondaries.split(), affinities, changed.split()))


def test_a_group_makes_way_for_another() -> None:
    """S1 has two groups and S3 none. From S1 to S3 three performers move; by way of S2, one more than now, and m."""
    groups = [group("v w x y z", "L1"), group("a b c", "L2"), group("m", "L3")]
    before = "a:S1 b:S1 c:S1 m:S2 v:S1 w:S1 x:S1 y:S2 z:S2"
    assert placed(groups, "S1 S2 S3", before) == "a:S1 b:S1 c:S1 m:S3 v:S2 w:S2 x:S2 y:S2 z:S2"


# --- Entities ---


def test_what_performers_push_goes_along() -> None:
    distribution = place([group("a", "L1", "box"), group("b", "L2")], ["S1", "S2"], {"a": "S2", "b": "S1", "box": "S1"})
    assert distribution == {"a": "S2", "b": "S1", "box": "S2"}


def test_loose_entities_are_where_their_level_is() -> None:
    groups = [group("a", "L1"), group("b", "L2"), group("", "L1 L2", "box"), group("", "L2 L9", "crate")]
    assert placed(groups, "S1 S2 S3", "a:S1 b:S2 box:S2") == "a:S1 b:S2 box:S2 crate:S2"
    assert placed(groups, "S1 S2 S3", "a:S1 b:S3 box:S2") == "a:S1 b:S3 box:S1 crate:S3"


def test_loose_entities_elsewhere_stay_or_are_dealt() -> None:
    groups = [group("", "", "a"), group("", "", "b c"), group("", "", "d"), group("", "", "e")]
    assert placed(groups, "S1 S2") == "a:S1 b:S2 c:S2 d:S1 e:S2"
    assert placed(groups, "S1 S2", "a:S2 b:S2 c:S1 d:S2") == "a:S2 b:S1 c:S1 d:S2 e:S1"


def test_loose_entities_keep_nobody_busy() -> None:
    groups = [group("a", "L1"), group("b", "L2"), group("", "", "box")]
    assert placed(groups, "S1 S2", "a:S1 b:S1 box:S2", "b") == "a:S1 b:S2 box:S2"
