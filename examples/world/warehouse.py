"""Writes a warehouse as SDF: aisles that are levels, with shelves and boxes, and robots that drive through them.

    python examples/world/warehouse.py --performers 50 --levels 20 > warehouse.sdf

The same numbers give the same file, byte for byte. Each level is one aisle between two rows of shelves, with a box to
bump into; the robots drive along the aisles, and some turn into the next one at the end.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator

AISLE_WIDTH = 4.0
AISLE_LENGTH = 20.0
BUFFER = 1.0
COLUMNS = 5  # Aisles next to each other, before a new row of aisles begins.


def warehouse(performers: int, levels: int) -> str:
    """Return a world of this many robots in this many levels."""
    lines = ['<?xml version="1.0"?>', '<sdf version="1.11">', '  <world name="warehouse">', *_physics(), *_floor()]
    for level in range(levels):
        lines += _aisle(level)
    for number in range(performers):
        lines += _robot(number, *_start(number, levels))
    lines.append('    <plugin name="gz::sim" filename="dummy">')
    for number in range(performers):
        lines += _performer(number)
    for level in range(levels):
        lines += _level(level)
    return "\n".join([*lines, "    </plugin>", "  </world>", "</sdf>", ""])


def _center(level: int) -> tuple[float, float]:
    row, column = divmod(level, COLUMNS)
    return column * AISLE_WIDTH, row * (AISLE_LENGTH + AISLE_WIDTH)


def _start(number: int, levels: int) -> tuple[float, float, float]:
    """Return where a robot starts, one behind the other along the aisles, and its speed."""
    turn, level = divmod(number, max(levels, 1))
    x, y = _center(level)
    return x, y - AISLE_LENGTH / 2 + 2 + 2.5 * turn, 0.4 + 0.1 * (number % 4)


def _physics() -> Iterator[str]:
    yield "    <physics><max_step_size>0.002</max_step_size><real_time_factor>0</real_time_factor></physics>"


def _floor() -> Iterator[str]:
    yield '    <model name="floor">'
    yield "      <static>true</static>"
    yield '      <link name="floor">'
    shape = "<geometry><plane><size>200 200</size></plane></geometry>"
    yield f'        <collision name="floor">{shape}</collision>'
    yield f'        <visual name="floor">{shape}</visual>'
    yield "      </link>"
    yield "    </model>"


def _aisle(level: int) -> Iterator[str]:
    x, y = _center(level)
    for side, offset in (("west", -1.6), ("east", 1.6)):
        yield from _box(f"shelf_{level}_{side}", (x + offset, y, 1.0), (0.4, AISLE_LENGTH - 4, 2.0), static=True)
    yield from _box(f"parcel_{level}", (x + 0.9, y + 3, 0.2), (0.4, 0.4, 0.4), static=False)


def _box(name: str, at: tuple[float, float, float], size: tuple[float, float, float], *, static: bool) -> Iterator[str]:
    shape = f"<geometry><box><size>{_numbers(*size)}</size></box></geometry>"
    yield f'    <model name="{name}">'
    yield f"      <pose>{_numbers(*at)} 0 0 0</pose>"
    if static:
        yield "      <static>true</static>"
    yield '      <link name="body">'
    if not static:
        yield '        <inertial auto="true"><mass>5</mass></inertial>'
    yield f'        <collision name="body">{shape}</collision>'
    yield f'        <visual name="body">{shape}</visual>'
    yield "      </link>"
    yield "    </model>"


def _robot(number: int, x: float, y: float, speed: float) -> Iterator[str]:
    """A box on two wheels and a ball that slides; it looks along y."""
    yield f'    <model name="robot_{number}">'
    yield f"      <pose>{_numbers(x, y)} 0.15 0 0 1.5707963267948966</pose>"
    yield from _link("chassis", "0 0 0.05 0 0 0", "<box><size>0.6 0.4 0.16</size></box>", 10)
    for side, offset in (("left", 0.25), ("right", -0.25)):
        wheel = "<cylinder><radius>0.15</radius><length>0.06</length></cylinder>"
        yield from _link(f"{side}_wheel", f"0.12 {offset} 0 -1.5707963267948966 0 0", wheel, 1)
    yield from _link("slider", "-0.2 0 -0.1 0 0 0", "<sphere><radius>0.05</radius></sphere>", 0.5, friction=0)
    yield '      <joint name="slider_mount" type="fixed"><parent>chassis</parent><child>slider</child></joint>'
    for side in ("left", "right"):
        yield f'      <joint name="{side}" type="continuous">'
        yield f"        <parent>chassis</parent><child>{side}_wheel</child>"
        yield "        <axis><xyz>0 0 1</xyz><dynamics><damping>0.01</damping></dynamics></axis>"
        yield "      </joint>"
    yield '      <plugin filename="gz-sim-diff-drive-system" name="gz::sim::systems::DiffDrive">'
    yield "        <left_joint>left</left_joint><right_joint>right</right_joint>"
    yield "        <wheel_separation>0.5</wheel_separation><wheel_radius>0.15</wheel_radius>"
    yield "        <max_linear_acceleration>1</max_linear_acceleration>"
    yield "      </plugin>"
    yield '      <plugin filename="worldline" name="worldline::ScriptedCommands">'
    yield f"        <command><time>0</time><linear>{_numbers(speed)}</linear></command>"
    if number % 3 == 0:
        yield f"        <command><time>20</time><linear>{_numbers(speed)}</linear><angular>0.2</angular></command>"
    yield "      </plugin>"
    yield "    </model>"


def _link(name: str, pose: str, shape: str, mass: float, friction: float = 1) -> Iterator[str]:
    yield f'      <link name="{name}">'
    yield f"        <pose>{pose}</pose>"
    yield f'        <inertial auto="true"><mass>{_numbers(mass)}</mass></inertial>'
    yield f'        <collision name="{name}">'
    yield f"          <geometry>{shape}</geometry>"
    yield f"          <surface><friction><ode><mu>{friction}</mu><mu2>{friction}</mu2></ode></friction></surface>"
    yield "        </collision>"
    yield f'        <visual name="{name}"><geometry>{shape}</geometry></visual>'
    yield "      </link>"


def _performer(number: int) -> Iterator[str]:
    yield f'      <performer name="performer_{number}">'
    yield f"        <ref>robot_{number}</ref><geometry><box><size>0.8 0.8 0.5</size></box></geometry>"
    yield "      </performer>"


def _level(level: int) -> Iterator[str]:
    x, y = _center(level)
    yield f'      <level name="aisle_{level}">'
    yield f"        <pose>{_numbers(x, y)} 1 0 0 0</pose>"
    yield f"        <geometry><box><size>{_numbers(AISLE_WIDTH - 0.2, AISLE_LENGTH)} 4</size></box></geometry>"
    yield f"        <buffer>{_numbers(BUFFER)}</buffer>"
    for name in (f"shelf_{level}_west", f"shelf_{level}_east", f"parcel_{level}"):
        yield f"        <ref>{name}</ref>"
    yield "      </level>"


def _numbers(*numbers: float) -> str:
    return " ".join(f"{round(number, 6):g}" for number in numbers)


def main() -> None:
    options = argparse.ArgumentParser(description="Write a warehouse of robots as SDF.")
    options.add_argument("--performers", type=int, default=50, help="how many robots there are")
    options.add_argument("--levels", type=int, default=20, help="how many aisles there are")
    chosen = options.parse_args()
    print(warehouse(chosen.performers, chosen.levels), end="")


if __name__ == "__main__":
    main()
