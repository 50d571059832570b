"""Levels at their edges, one by one."""

from __future__ import annotations

from fractions import Fraction
from math import inf, nan, nextafter
from typing import Any

import pytest

from tests.world.plain import UNIT, PlainLevel, along_x, at, world
from worldline.model.errors import ModelError, WorldlineError
from worldline.world.levels import Levels
from worldline.world.pose import Vector as Point


def with_performers(levels: Levels, **xs: float) -> Levels:
    """Levels with performers of size 1 at these places on the x axis."""
    levels.update({}, added={name: (UNIT, at(x)) for name, x in xs.items()})
    return levels


def state(levels: Levels) -> tuple[Any, ...]:
    return ({name: levels.of(name) for name in levels.performers()}, levels.active(), levels.loaded())


# --- Case 6: boxes and buffers ---


def test_a_performer_that_leaves_the_box_but_not_the_buffer_keeps_the_level() -> None:
    levels = with_performers(world(along_x("L", 0, 10, 2, "tree")), p=5)
    assert levels.update({"p": at(11)}) == ()  # Out of the box, by half a meter.
    assert levels.active() == ("L",)
    assert levels.update({"p": at(12.5)}) == ()  # Touches the buffer's edge.
    assert levels.update({"p": at(nextafter(12.5, inf))}) == ("p",)
    assert state(levels) == ({"p": ()}, (), ())
    assert levels.update({"p": at(11)}) == ()  # Back in the buffer alone.
    assert state(levels) == ({"p": ()}, (), ())


def test_a_buffer_counts_only_for_those_who_entered() -> None:
    """Here Gazebo differs: the level is active, so its buffer would count for both."""
    levels = with_performers(world(along_x("L", 0, 10, 2)), a=5, b=11)
    assert state(levels)[:2] == ({"a": ("L",), "b": ()}, ("L",))
    levels.update({"a": at(20)})
    assert levels.active() == ()


# --- Case 7: entities of none, one and two levels ---


def test_entities_of_no_level_are_always_loaded_and_those_of_two_while_either_is() -> None:
    levels = world(along_x("A", 0, 10, 0, "bridge a"), along_x("B", 20, 30, 0, "b bridge"), others="sun ground")
    assert levels.default == ("ground", "sun")
    assert levels.loaded() == ("ground", "sun")
    with_performers(levels, p=5)
    assert levels.loaded() == ("a", "bridge", "ground", "sun")
    levels.update({"p": at(25)})  # From one to the other in one step: the bridge stays.
    assert levels.loaded() == ("b", "bridge", "ground", "sun")
    levels.update({"p": at(50)})
    assert levels.loaded() == ("ground", "sun")


# --- Edges ---


@pytest.mark.parametrize(
    ("center", "length", "buffer", "performer"),
    [
        (0.1, 0.2, 0.3, 0.7),
        (1e16, 0.1, 3.0, 0.3),
        (-7.7, 1e-9, 1e9, 1 / 3),
        (0.0, 0.0, 0.0, 0.0),
        (5e-324, 0.0, 0.0, 0.1),
    ],
)
def test_edges_are_exact_whatever_the_numbers(center: float, length: float, buffer: float, performer: float) -> None:
    """The last double that touches, and the first that doesn't, by fractions; sums of doubles would be off."""
    levels = world(PlainLevel("L", (center, 0.0, 0.0), (length, 1.0, 1.0), buffer))
    for side in (-1, 1):
        for reach in (0.0, buffer):
            half = (Fraction(length) + Fraction(performer)) / 2 + Fraction(reach)
            near = float(Fraction(center) + side * half)
            for x in (nextafter(near, -inf), near, nextafter(near, inf)):
                added = {"p": ((performer, 1.0, 1.0), at(center))}
                levels.update({}, added=added, removed=levels.performers())
                if reach == 0.0:  # As one who comes; otherwise as one who was in it and goes.
                    levels.update({}, added={"p": ((performer, 1.0, 1.0), at(x))}, removed=["p"])
                else:
                    levels.update({"p": at(x)})
                assert levels.of("p") == (("L",) if abs(Fraction(x) - Fraction(center)) <= half else ()), (
                    side,
                    reach,
                    x,
                )


def test_numbers_near_the_largest_double_do_no_harm() -> None:
    levels = world(PlainLevel("L", (1.7e308, 0.0, 0.0), (1.7e308, 1.0, 1.0), 1e308))
    levels.update({}, added={"p": (UNIT, at(nextafter(inf, 0))), "q": (UNIT, at(-1.7e308))})
    assert (levels.of("p"), levels.of("q")) == (("L",), ())


# --- Several performers, several levels ---


def chain() -> Levels:
    """Three levels in a row, ten long, whose buffers overlap; neighbors share an entity."""
    return world(
        along_x("A", 0, 10, 3, "a ab"),
        along_x("B", 10, 20, 3, "ab b bc"),
        along_x("C", 20, 30, 3, "bc c"),
        others="sky",
    )


def test_a_level_that_is_passed_within_one_step_is_never_entered() -> None:
    levels = with_performers(chain(), p=5)
    assert levels.update({"p": at(25)}) == ("p",)
    assert state(levels) == ({"p": ("C",)}, ("C",), ("bc", "c", "sky"))


# --- Coming and going ---


def test_sizes_that_nobody_has_any_more_are_forgotten() -> None:
    levels = with_performers(chain(), p=5)
    for number in range(5):
        levels.update({}, added={"q": ((0.1 * number, 1.0, 1.0), at(5))})
        levels.update({}, removed=["q"])
    assert list(levels._grids) == [UNIT]


# --- What can't be ---


@pytest.mark.parametrize("bad", [at(nan), at(0, inf), at(0, 0, -inf)])
def test_positions_must_be_finite(bad: Point) -> None:
    levels = with_performers(chain(), p=5, q=5)
    before = state(levels)
    with pytest.raises(ModelError, match="performer 'p' is at"):
        levels.update({"q": bad, "p": bad})
    assert state(levels) == before


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"positions": {"p": at(25), "x": at(0)}}, "no performer 'x'"),
        ({"positions": {"p": at(25)}, "removed": ["x"]}, "no performer 'x'"),
        ({"positions": {}, "added": {"r": (UNIT, at(nan)), "q": (UNIT, at(nan))}, "removed": ["p"]}, "'q' is at"),
    ],
)
def test_an_update_that_is_not_legal_changes_nothing(arguments: dict[str, Any], text: str) -> None:
    levels = with_performers(chain(), p=5)
    before = state(levels)
    with pytest.raises(WorldlineError, match=text):
        levels.update(**arguments)
    assert state(levels) == before
