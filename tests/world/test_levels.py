"""Levels at their edges, one by one."""

from __future__ import annotations

from fractions import Fraction
from math import inf, nan, nextafter
from typing import Any

import pytest

from tests.world.plain import UNIT, PlainLevel, along_x, at, world
from worldline.model.errors import ModelError, UsageError, WorldlineError
from worldline.world.levels import Levels, Point


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


def test_entering_only_the_buffer_does_not_load() -> None:
    levels = with_performers(world(along_x("L", 0, 10, 2, "tree")), p=20)
    assert levels.update({"p": at(11)}) == ()
    assert levels.update({"p": at(10.5)}) == ("p",)
    assert state(levels) == ({"p": ("L",)}, ("L",), ("tree",))


def test_a_performer_that_starts_in_the_buffer_is_not_in_the_level() -> None:
    assert with_performers(world(along_x("L", 0, 10, 2)), p=11).active() == ()


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


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("side", [-1, 1])
def test_touching_counts_on_every_face(axis: int, side: int) -> None:
    levels = world(PlainLevel("L", (1.0, 2.0, 3.0), (4.0, 6.0, 8.0), 1.0))
    touching = [1.0, 2.0, 3.0]
    touching[axis] += side * ((4.0, 6.0, 8.0)[axis] / 2 + 0.5)
    beyond = list(touching)
    beyond[axis] = nextafter(touching[axis], side * inf)
    levels.update({}, added={"in": (UNIT, point(touching)), "out": (UNIT, point(beyond))})
    assert (levels.of("in"), levels.of("out")) == (("L",), ())
    touching[axis] += side
    beyond[axis] = nextafter(touching[axis], side * inf)
    assert levels.update({"in": point(touching)}) == ()
    assert levels.update({"in": point(beyond)}) == ("in",)


def point(coordinates: list[float]) -> Point:
    x, y, z = coordinates
    return (x, y, z)


def test_touching_in_a_corner_counts() -> None:
    levels = world(PlainLevel("L", (0.0, 0.0, 0.0), (2.0, 2.0, 2.0)))
    levels.update({}, added={"p": (UNIT, (1.5, -1.5, 1.5))})
    assert levels.of("p") == ("L",)


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


def test_a_level_is_active_until_the_last_performer_leaves() -> None:
    levels = with_performers(world(along_x("L", 0, 10, 0, "tree")), a=2, b=8)
    assert levels.update({"a": at(20)}) == ("a",)
    assert state(levels) == ({"a": (), "b": ("L",)}, ("L",), ("tree",))
    assert levels.update({"b": at(20)}) == ("b",)
    assert state(levels) == ({"a": (), "b": ()}, (), ())


def test_one_takes_over_from_another_in_one_step() -> None:
    levels = with_performers(world(along_x("L", 0, 10, 0, "tree")), a=5, b=20)
    assert levels.update({"a": at(20), "b": at(5)}) == ("a", "b")
    assert state(levels) == ({"a": (), "b": ("L",)}, ("L",), ("tree",))


def test_two_performers_swap_levels_in_one_step() -> None:
    levels = with_performers(world(along_x("A", 0, 10, 0, "a"), along_x("B", 20, 30, 0, "b")), p=5, q=25)
    assert levels.update({"p": at(25), "q": at(5)}) == ("p", "q")
    assert state(levels) == ({"p": ("B",), "q": ("A",)}, ("A", "B"), ("a", "b"))


def chain() -> Levels:
    """Three levels in a row, ten long, whose buffers overlap; neighbors share an entity."""
    return world(
        along_x("A", 0, 10, 3, "a ab"),
        along_x("B", 10, 20, 3, "ab b bc"),
        along_x("C", 20, 30, 3, "bc c"),
        others="sky",
    )


def test_a_performer_walks_through_a_chain_of_levels() -> None:
    levels = with_performers(chain(), p=5)
    told = [
        (x, levels.of("p"), levels.loaded())
        for x in (9, 9.5, 13, 13.5, 14, 19.5, 23.5, 24)
        if levels.update({"p": at(x)})
    ]
    assert told == [
        (9.5, ("A", "B"), ("a", "ab", "b", "bc", "sky")),
        (14, ("B",), ("ab", "b", "bc", "sky")),
        (19.5, ("B", "C"), ("ab", "b", "bc", "c", "sky")),
        (24, ("C",), ("bc", "c", "sky")),
    ]


def test_a_level_that_is_passed_within_one_step_is_never_entered() -> None:
    levels = with_performers(chain(), p=5)
    assert levels.update({"p": at(25)}) == ("p",)
    assert state(levels) == ({"p": ("C",)}, ("C",), ("bc", "c", "sky"))


def test_a_jump_into_one_box_and_the_buffer_of_another_keeps_only_what_was_entered_before() -> None:
    levels = with_performers(chain(), p=5, q=15)
    levels.update({"p": at(17.5), "q": at(21.5)})  # Both in B; q in C as well; p near C, and C is active.
    assert state(levels)[0] == {"p": ("B",), "q": ("B", "C")}
    levels.update({"p": at(21.5), "q": at(17.5)})
    assert state(levels)[0] == {"p": ("B", "C"), "q": ("B", "C")}
    levels.update({"p": at(25), "q": at(11)})
    assert state(levels)[0] == {"p": ("C",), "q": ("B",)}


def test_overlapping_and_nested_levels() -> None:
    levels = world(along_x("inner", 4, 6), along_x("outer", 0, 10), along_x("twin", 0, 10))
    with_performers(levels, p=5, q=1)
    assert state(levels)[0] == {"p": ("inner", "outer", "twin"), "q": ("outer", "twin")}


def test_a_large_performer_is_in_all_levels_that_it_touches() -> None:
    levels = chain()
    levels.update({}, added={"whale": ((20.0, 1.0, 1.0), at(15)), "minnow": (UNIT, at(15))})
    assert state(levels)[0] == {"whale": ("A", "B", "C"), "minnow": ("B",)}


# --- Coming and going ---


def test_performers_come_and_go() -> None:
    levels = chain()
    for number, change in enumerate(
        ({"added": {"p": (UNIT, at(5))}}, {"added": {"q": (UNIT, at(6))}}, {"removed": ["p"]}, {"removed": ["q"]})
    ):
        assert levels.update({}, **change) == ("pqpq"[number],)
        assert levels.loaded() == (("a", "ab", "sky") if number < 3 else ("sky",))
    assert (levels.performers(), levels.loaded()) == ((), ("sky",))


def test_one_comes_as_another_goes_and_nothing_is_unloaded() -> None:
    levels = with_performers(chain(), p=5)
    assert levels.update({}, added={"q": (UNIT, at(5))}, removed=["p"]) == ("p", "q")
    assert state(levels) == ({"q": ("A",)}, ("A",), ("a", "ab", "sky"))


def test_a_new_performer_with_the_name_of_one_that_went_has_entered_nothing() -> None:
    levels = with_performers(chain(), p=5)
    levels.update({"p": at(5)}, added={"p": (UNIT, at(12))}, removed=["p"])  # In A's buffer, in B's box.
    assert levels.of("p") == ("B",)


def test_sizes_that_nobody_has_any_more_are_forgotten() -> None:
    levels = with_performers(chain(), p=5)
    for number in range(5):
        levels.update({}, added={"q": ((0.1 * number, 1.0, 1.0), at(5))})
        levels.update({}, removed=["q"])
    assert list(levels._grids) == [UNIT]


def test_who_changed() -> None:
    levels = with_performers(chain(), p=5, q=15, r=50)
    assert levels.update({"p": at(25), "q": at(16), "r": at(51)}) == ("p",)


def test_a_world_without_levels() -> None:
    levels = with_performers(world(others="sun"), p=5)
    assert levels.update({"p": at(1e9)}) == ()
    assert state(levels) == ({"p": ()}, (), ("sun",))


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
        ({"positions": {"p": at(25)}, "added": {"p": (UNIT, at(0))}}, "a performer 'p' already"),
        ({"positions": {}, "added": {"q": ((1.0, -1.0, 1.0), at(0))}}, "'q' can't be of size"),
        ({"positions": {}, "added": {"q": ((1.0, nan, 1.0), at(0))}}, "'q' can't be of size"),
        ({"positions": {}, "added": {"r": (UNIT, at(nan)), "q": (UNIT, at(nan))}, "removed": ["p"]}, "'q' is at"),
    ],
)
def test_an_update_that_is_not_legal_changes_nothing(arguments: dict[str, Any], text: str) -> None:
    levels = with_performers(chain(), p=5)
    before = state(levels)
    with pytest.raises(WorldlineError, match=text):
        levels.update(**arguments)
    assert state(levels) == before


def test_nobody_asks_for_the_levels_of_a_stranger() -> None:
    with pytest.raises(UsageError, match="no performer 'x'"):
        chain().of("x")
