"""A world's report says what is there, and what isn't supported."""

from __future__ import annotations

from pathlib import Path

from tests.world.sdf.files import BOX, LINK, Files, model, stage
from worldline.world.report import world_report


def test_the_report(tmp_path: Path) -> None:
    points = "".join(f"<waypoint><time>{t}</time><pose/></waypoint>" for t in (0, 2))
    world = Files(tmp_path).world(
        "<gui/><physics><max_step_size>0.002</max_step_size><real_time_factor>0</real_time_factor></physics>"
        + model("ground", f"<static>1</static>{LINK}")
        + model("door", f"{LINK}<plugin name='worldline::ScriptedMotion'>{points}</plugin>")
        + model("robot", f"{LINK}<plugin name='gz::sim::systems::VelocityControl'/>")
        + stage(f"<performer name='p'><ref>robot</ref>{BOX}</performer><level name='l'>{BOX}<ref>door</ref></level>")
    )
    assert world_report(world) == [
        "world w: steps of 2ms, as fast as it goes, gravity 0 0 -9.8",
        "3 models, 1 of them static, 3 links, 0 joints",
        "  door: scripted motion, 2 waypoints",
        "  robot: velocity drive, 0 scripted commands",
        "1 performer",
        "  p: model robot, box 1 1 1",
        "1 level",
        "  l: box 1 1 1 at 0 0 0, buffer 0: door",
        "always loaded: ground, robot",
        "not supported, but nothing moves in another way because of it:",
        "  line 3: <gui> in <world> isn't supported",
    ]


def test_the_shortest_report(tmp_path: Path) -> None:
    assert world_report(Files(tmp_path).world(""))[-2:] == [
        "always loaded: nothing",
        "everything in the file is supported",
    ]
