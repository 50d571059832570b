"""The page about SDF says what is so: its blocks are read, without a note."""

from __future__ import annotations

import re
from pathlib import Path

from tests.leaks.running import EXAMPLES
from tests.world.sdf.files import LINK, Files, model
from worldline.world.description import absolute_topic

PAGE = (EXAMPLES.parent / "docs" / "sdf.md").read_text()
MOTORS, COMMANDS, MOTION, STAGE = re.findall(r"```xml\n(.*?)```", PAGE, re.DOTALL)


def test_the_blocks_are_read(tmp_path: Path) -> None:
    drive = "<plugin name='gz::sim::systems::VelocityControl'/>"
    arm = LINK + "".join(
        f"<link name='{joint}_link'/>"
        f"<joint name='{joint}' type='revolute'><parent>body</parent><child>{joint}_link</child></joint>"
        for joint in ("elbow", "wheel")
    )
    world = Files(tmp_path).world(
        model("vehicle_red", LINK + drive + COMMANDS)
        + model("tile_southwest", LINK + MOTION)
        + model("M", arm + MOTORS)
        + STAGE
    )
    topics = [absolute_topic(each.topic.replace(each.joint, "J"), "M") for each in world.models["M"].motors]
    assert all(f"| `{topic}` |" in PAGE for topic in topics)
    assert len(topics) == 2
    assert world.notes == ()
    assert len(world.models["vehicle_red"].commands) == 2
    assert world.models["tile_southwest"].motion is not None
    assert world.levels[0].entities == ("tile_southwest",)
