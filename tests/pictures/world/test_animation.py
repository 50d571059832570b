"""Animations of worlds: what the page plays is what happened."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.pictures.portable import Page
from tests.world.stage import HASH, affinities, loaded, packed, perform, poses_at, stage
from worldline.model.errors import UsageError
from worldline.model.time import MS
from worldline.pictures.world import film
from worldline.pictures.world.animation import Animation
from worldline.pictures.world.film import TURN, Film, FilmFrame
from worldline.world.description import WorldDescription
from worldline.world.pose import Pose


def read(animation: Animation) -> dict[str, Any]:
    return Page(animation.html()).data


def played(world: WorldDescription | None = None, iterations: int = 100) -> dict[str, Any]:
    animation = Animation()
    perform(animation, world or stage(), iterations)
    return read(animation)


def mover(data: dict[str, Any], model: str) -> dict[str, Any]:
    found: dict[str, Any]
    (found,) = (each for each in data["movers"] if each["model"] == model)
    return found


def spots(run: list[int]) -> list[tuple[int, ...]]:
    """Return where a mover was, frame by frame."""
    found: list[tuple[int, ...]] = []
    last: tuple[int, ...] = (0, 0, 0)
    for place in range(1, len(run), 3):
        last = (last[0] + run[place], last[1] + run[place + 1], last[2] + run[place + 2])
        found.append(last)
    return found


def test_what_is_played_is_where_models_were() -> None:
    world = stage()
    data = played(world)
    assert data["step"] == 0.01
    assert data["iterations"] == [0, *[2] * 50]  # 50 frames per second.
    left = mover(data, "left")
    assert (left["name"], left["performs"]) == ("left one", True)
    ((first, *_),) = left["runs"]
    way = spots(left["runs"][0])
    assert (first, len(way)) == (0, 51)
    assert way[0] == (-3000, 0, round(0.3 / 6.283185307 * TURN))
    assert way[-1][:2] == (7000, 141)
    assert left["outlines"] == [[400, 0, 100], [-500, -250, 500, -250, 500, 250, -500, 250]]


def test_who_is_loaded_is_shown() -> None:
    data = played()
    assert [(run[0], len(spots(run))) for run in mover(data, "west_box")["runs"]] == [(0, 25)]
    assert [(run[0], len(spots(run))) for run in mover(data, "east_box")["runs"]] == [(25, 26)]
    assert sorted(each["spans"] for each in data["statics"]) == [[0, 51], [0, 51], [0, 51], [25, 51]]
    assert not mover(data, "east_box")["performs"]


def test_colors_are_those_of_secondaries_by_name() -> None:
    data = played()
    assert data["secondaries"] == ["s0", "s1"]
    assert mover(data, "left")["owners"] == [0, 0, 25, 1]
    animation, world = Animation(), stage()
    animation.began(world)
    animation.changed(0, 0, world.models, {**affinities(world.models, "b"), "right": "a"})
    animation.stepped(0, 0, poses_at(world.models, 0.0), HASH)
    data = read(animation)
    assert data["secondaries"] == ["a", "b"]
    assert (mover(data, "left")["owners"], mover(data, "right")["owners"]) == ([0, 1], [0, 0])


def test_levels_light_up_while_performers_are_in_them() -> None:
    data = played()
    east, west = data["levels"]
    assert (east["name"], east["box"], east["buffer"]) == ("east", [3500, -5000, 9500, 5000], 500)
    # A performer of size 1 enters at x = 3 and leaves at x = 1.5, beyond the buffer; they go 0.2 m per frame.
    assert (west["spans"], east["spans"]) == ([0, 23], [30, 51])


def test_a_reset_cuts_and_levels_begin_anew() -> None:
    world = stage()
    animation = Animation()
    animation.began(world)
    animation.changed(0, 0, world.models, affinities(world.models))
    for iteration, step, x in ((0, 0, 5.0), (2, 2, 2.7), (4, 0, 2.7), (6, 2, 2.7)):
        poses = {"left": packed(world.models["left"], Pose((x, 0.0, 0.0)))}
        animation.stepped(iteration, step, poses, HASH)
    data = read(animation)
    assert (data["cuts"], data["steps"]) == ([2], [0, 2, -2, 2])
    assert data["levels"][0]["spans"] == [0, 2]  # In the buffer it stays only if it was in before.


def test_directions_take_the_short_way() -> None:
    world = stage()
    animation = Animation()
    animation.began(world)
    animation.changed(0, 0, world.models, affinities(world.models))
    for place, yaw in enumerate((3.1, -3.1, 3.1)):
        pose = Pose.from_rpy((0.0, 0.0, 0.0), 0.0, 0.0, yaw)
        animation.stepped(2 * place, 2 * place, {"left": packed(world.models["left"], pose)}, HASH)
    (run,) = mover(read(animation), "left")["runs"]
    assert [abs(each) for each in run[6::3]] == [96, 96]


def test_a_model_that_comes_again_in_another_shape_is_another() -> None:
    world = stage()
    swapped = {**loaded(world), "west_box": replace(world.models["east_box"], name="west_box")}
    animation = Animation()
    animation.began(world)
    for place, models in enumerate((loaded(world), swapped)):
        animation.changed(2 * place, 2 * place, models, affinities(models))
        animation.stepped(2 * place, 2 * place, poses_at(models, 0.0), HASH)
    assert len(read(animation)["movers"]) == 5


def test_the_page_is_always_the_same_and_written_whole(tmp_path: Path) -> None:
    pages = []
    for _ in range(2):
        animation = Animation()
        perform(animation, stage())
        pages.append(animation.html())
    assert pages[0] == pages[1]
    animation.write(tmp_path / "a.html")
    assert (tmp_path / "a.html").read_text(encoding="utf-8") == pages[0]
    with pytest.raises(UsageError):
        animation.write(tmp_path / "no" / "a.html")


def test_nothing_happened() -> None:
    assert read(Animation())["iterations"] == []
    assert played(WorldDescription(name="w", models={}), 2)["movers"] == []


def test_long_steps_are_all_shown_and_short_ones_aren_t() -> None:
    for step, every in ((MS, 20), (7 * MS, 3), (50 * MS, 1)):
        animation = Animation()
        animation.began(WorldDescription(name="w", step=step, models={}))
        assert animation.every == every


# --- Films ---


def framed(iteration: int, movers: int = 1) -> FilmFrame:
    return FilmFrame(iteration, iteration, 0, dict.fromkeys(range(movers), (0, 0, 0)), {}, {}, frozenset(), frozenset())


def test_a_film_is_bounded_and_keeps_its_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(film, "NUMBERS_MAX", 700)
    reel = Film(2)
    for iteration in range(0, 1003, 2):
        reel.add(framed(iteration))
        assert len(reel.frames()) <= 101
    places = [frame.iteration for frame in reel.frames()]
    assert places == [*range(0, 1001, 16), 1002]


def test_a_film_has_one_frame_for_an_iteration() -> None:
    reel = Film(1)
    reel.add(framed(0, 1))
    reel.add(framed(0, 2))
    assert [len(frame.spots) for frame in reel.frames()] == [2]
