"""Pictures of a world's run: paths of performers in the colors of those who simulated them, and outlines."""

from __future__ import annotations

import re
from dataclasses import replace
from math import pi
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.pictures.portable import strange
from tests.world.stage import HASH, affinities, loaded, packed, perform, shaped, stage
from worldline.model.errors import UsageError
from worldline.pictures.svg import PALETTE
from worldline.pictures.world import PathsPicture, Round, model_outlines
from worldline.world.description import WorldDescription
from worldline.world.pose import ORIGIN, Pose
from worldline.world.shapes import (
    BoxShape,
    CapsuleShape,
    CylinderShape,
    EllipsoidShape,
    PlaneShape,
    Shape,
    SphereShape,
)

SVG = "{http://www.w3.org/2000/svg}"


def drawn(world: WorldDescription | None = None) -> ElementTree.Element:
    picture = PathsPicture()
    perform(picture, world or stage())
    return ElementTree.fromstring(picture.svg())


def parts(root: ElementTree.Element, kind: str) -> list[ElementTree.Element]:
    return [each for each in root.iter(f"{SVG}g") if each.get("class") == kind]


def texts(root: ElementTree.Element, kind: str) -> list[str | None]:
    return [each.text for group in parts(root, kind) for each in group.iter(f"{SVG}text")]


def test_the_picture_is_portable_and_always_the_same() -> None:
    pictures = []
    for _ in range(2):
        picture = PathsPicture(title="a <title>")
        perform(picture, stage())
        pictures.append(picture.svg())
    assert strange(pictures[0]) == []
    assert pictures[0] == pictures[1]
    assert "a &lt;title&gt;" in pictures[0]


def test_paths_have_the_colors_of_their_secondaries() -> None:
    root = drawn()
    assert [[each.get("stroke") for each in path.iter(f"{SVG}path")] for path in parts(root, "path")] == [
        [PALETTE[0], PALETTE[1]]
    ] * 2
    assert texts(root, "legend") == ["s0", "s1", "start", "end", "level", "its buffer", "static"]
    titles = [path[0].text for path in parts(root, "path")]
    assert titles == [
        "left one: from (-3.00, 0.00) to (7.00, 0.14), simulated by s0, s1",
        "right one: from (-3.00, -2.00) to (7.00, -1.86), simulated by s0, s1",
    ]


def test_the_parts_of_a_path_meet() -> None:
    first, second = (each.get("d") or "" for each in parts(drawn(), "path")[0].iter(f"{SVG}path"))
    assert first.rsplit("L", 1)[1] == re.split("[ML]", second)[1]


def test_everything_has_its_name() -> None:
    root = drawn()
    assert texts(root, "names") == ["left one", "right one"]
    assert texts(root, "levels") == ["east", "west"]
    assert [len(list(level.iter(f"{SVG}rect"))) for level in parts(root, "level")] == [2, 2]
    dashes = [each.get("stroke-dasharray") for level in parts(root, "level") for each in level.iter(f"{SVG}rect")]
    assert dashes == [None, "5 4"] * 2
    assert len(list(parts(root, "starts")[0])) == len(list(parts(root, "ends")[0])) == 2


def test_names_that_have_no_room_are_left_out_and_counted() -> None:
    world = stage(tuple(f"vehicle {number}" for number in range(40)))
    models = {
        name: replace(model, pose=Pose((-3.0, 0.0, 0.0))) if len(model.links) > 1 else model
        for name, model in world.models.items()
    }
    root = drawn(replace(world, models=models))
    written = len(texts(root, "names"))
    assert 0 < written < 40
    captions = [each.text for each in root if each.tag == f"{SVG}text"]
    assert captions[-1] == f"40 paths over 1s, seen from above. For want of room, {40 - written} names are left out."


def test_statics_are_outlines() -> None:
    (statics,) = parts(drawn(), "statics")
    assert [each.tag.removeprefix(SVG) for each in statics] == ["path", "circle", "path"]  # egg, pillar, wall


def test_one_process_needs_no_legend_of_secondaries() -> None:
    world = stage()
    picture = PathsPicture()
    picture.began(world)
    picture.changed(0, 0, world.models, affinities(world.models, ""))
    for step in range(3):
        poses = {"left": packed(world.models["left"], Pose((step, 0.0, 0.0)))}
        picture.stepped(step, step, poses, HASH)
    root = ElementTree.fromstring(picture.svg())
    assert texts(root, "legend") == ["start", "end", "level", "its buffer", "static"]
    assert [each.get("stroke") for path in parts(root, "path") for each in path.iter(f"{SVG}path")] == [PALETTE[0]]


def test_a_reset_and_an_absence_break_a_path() -> None:
    world = stage()
    models = world.models
    for breaking in ("reset", "absence"):
        picture = PathsPicture()
        picture.began(world)
        picture.changed(0, 0, models, affinities(models))
        for iteration in range(12):
            if iteration == 6 and breaking == "absence":
                picture.changed(6, 6, loaded(world, "left"), affinities(models))
                picture.changed(6, 6, models, affinities(models))
            x = float(iteration % 6)
            step = iteration % 6 if breaking == "reset" else iteration
            picture.stepped(iteration, step, {"left": packed(models["left"], Pose((x, 0.0, 0.0)))}, HASH)
        (path,) = parts(ElementTree.fromstring(picture.svg()), "path")
        assert len(list(path.iter(f"{SVG}path"))) == 2


def test_a_world_without_performers_shows_all_movers() -> None:
    bare = stage()
    world = WorldDescription(name="w", step=bare.step, models=bare.models)
    assert texts(drawn(world), "names") == ["east_box", "left", "right", "west_box"]


def test_a_picture_of_nothing() -> None:
    assert strange(PathsPicture().svg()) == []
    picture = PathsPicture()
    perform(picture, WorldDescription(name="w", models={}), 2)
    assert strange(picture.svg()) == []


def test_hostile_names_are_text() -> None:
    names = ("</svg><script>", '"&')
    root = drawn(stage(names, ("<level>", "x")))
    assert texts(root, "names") == ['"& one', "</svg><script> one"]
    assert list(root.iter(f"{SVG}script")) == []


def test_it_is_written_whole(tmp_path: Path) -> None:
    picture = PathsPicture()
    perform(picture, stage())
    picture.write(tmp_path / "a.svg")
    assert (tmp_path / "a.svg").read_text(encoding="utf-8") == picture.svg()
    assert [each.name for each in tmp_path.iterdir()] == ["a.svg"]
    with pytest.raises(UsageError):
        picture.write(tmp_path / "no" / "a.svg")


LYING = Pose.from_rpy((0.0, 0.0, 0.0), pi / 2, 0.0, 0.0)


def seen(shape: Shape, at: Pose = ORIGIN) -> object:
    (outline,) = model_outlines(shaped("m", shape, (0.0, 0.0, 0.0)), at)
    return outline


def reach(shape: Shape, at: Pose) -> tuple[float, float]:
    """Return how wide and high the polygon is."""
    outline = seen(shape, at)
    assert isinstance(outline, tuple)
    xs, ys = zip(*outline, strict=True)
    return max(xs) - min(xs), max(ys) - min(ys)


@pytest.mark.parametrize("shape", [SphereShape(0.5), CylinderShape(0.5, 2.0), CapsuleShape(0.5, 2.0)])
def test_what_is_round(shape: Shape) -> None:
    assert seen(shape, Pose((1.0, 2.0, 3.0))) == Round((1.0, 2.0), 0.5)


def test_a_box_is_a_rectangle() -> None:
    assert seen(BoxShape((2.0, 4.0, 6.0))) == ((-1.0, -2.0), (1.0, -2.0), (1.0, 2.0), (-1.0, 2.0))
    assert reach(BoxShape((2.0, 4.0, 6.0)), LYING) == pytest.approx((2.0, 6.0))


@pytest.mark.parametrize(
    ("shape", "size"),
    [
        (CylinderShape(0.5, 3.0), (1.0, 3.0)),
        (CapsuleShape(0.5, 3.0), (1.0, 4.0)),
        (EllipsoidShape((1.0, 2.0, 3.0)), (2.0, 6.0)),
    ],
)
def test_what_lies(shape: Shape, size: tuple[float, float]) -> None:
    assert reach(shape, LYING) == pytest.approx(size)


def test_planes_look_like_nothing() -> None:
    assert model_outlines(shaped("m", PlaneShape(), (0, 0, 0), static=True), ORIGIN) == []
