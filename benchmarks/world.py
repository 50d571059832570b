"""How fast worlds are: in one process, with secondaries on this machine, in lockstep and running ahead.

Contestants take turns, and every figure is a median over the turns. Whatever they simulate is one history: that is
checked, too.
"""

from __future__ import annotations

import argparse
import importlib.util
import resource
import statistics
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from rich.console import Console
from rich.table import Table

from worldline.world import World, WorldDescription
from worldline.world.course import Course
from worldline.world.description import Level, Performer, RigidLink, VelocityDrive, WorldModel
from worldline.world.distributed import local_secondaries
from worldline.world.engines import open_engine
from worldline.world.hosting import LocalExchange
from worldline.world.interactions import SetPose
from worldline.world.orders import StepAck, StepOrder, encode
from worldline.world.pose import Pose
from worldline.world.sdf import read_world

console = Console(highlight=False, width=120)
WORLDS = Path(__file__).parents[1] / "examples" / "world"


@contextmanager
def running(file: Path, secondaries: int, run_ahead: int, engine: str) -> Iterator[World]:
    """A world that is ready to step: alone, or with secondaries."""
    if not secondaries:
        with World(file, engine=engine, run_ahead=run_ahead) as world:
            yield world
        return
    with (
        local_secondaries(file, secondaries, engine=engine) as exchange,
        World(file, engine=engine, exchange=exchange, run_ahead=run_ahead) as world,
    ):
        yield world


def per_step(
    contestants: Mapping[str, tuple[Path, int, int, str]], steps: int, turns: int
) -> tuple[dict[str, float], dict[str, bytes]]:
    """Return microseconds per step of each, and the state hash at the end of the first turn."""
    times: dict[str, list[float]] = {name: [] for name in contestants}
    hashes: dict[str, bytes] = {}
    for _ in range(turns):
        for name, (file, secondaries, run_ahead, engine) in contestants.items():
            with running(file, secondaries, run_ahead, engine) as world:
                world.step_by(50)
                began = time.perf_counter()
                world.step_by(steps)
                times[name].append((time.perf_counter() - began) / steps * 1e6)
                hashes.setdefault(name, world.state_hash)
    return {name: statistics.median(each) for name, each in times.items()}, hashes


def measure_warehouse(file: Path, steps: int, turns: int) -> None:
    contestants = {
        "one process": (file, 0, 1, "mujoco"),
        "2 secondaries, lockstep": (file, 2, 1, "mujoco"),
        "2 secondaries, 10 steps ahead": (file, 2, 10, "mujoco"),
    }
    times, hashes = per_step(contestants, steps, turns)
    assert len(set(hashes.values())) == 1, "these are different histories"
    alone = times["one process"]
    table = Table("warehouse: 50 performers, 20 levels, MuJoCo", "µs/step", "steps/s", "× one process")
    for name, each in times.items():
        table.add_row(name, f"{each:.0f}", f"{1e6 / each:,.0f}", f"{alone / each:.2f}")
    console.print(table)


POINT = """<model name="point_{0}"><pose>{1} 0 0 0 0 0</pose><link name="point"/>
<plugin filename="gz-sim-velocity-control-system" name="gz::sim::systems::VelocityControl"/></model>"""
PERFORMER = '<performer name="p{0}"><ref>point_{0}</ref><geometry><box><size>1 1 1</size></box></geometry></performer>'


def points_file(folder: Path, count: int) -> Path:
    models = "\n".join(POINT.format(number, 100 * number) for number in range(count))
    performers = "\n".join(PERFORMER.format(number) for number in range(count))
    text = f"""<?xml version="1.0"?>
<sdf version="1.11"><world name="points"><gravity>0 0 0</gravity>
{models}
<plugin name="gz::sim" filename="dummy">{performers}</plugin></world></sdf>
"""
    file = folder / f"points_{count}.sdf"
    file.write_text(text)
    return file


def measure_overhead(folder: Path, steps: int, turns: int) -> None:
    """What distribution costs where physics costs next to nothing: a point for each secondary, or for one of them."""
    one, two = points_file(folder, 1), points_file(folder, 2)
    contestants = {
        "2 points, one process": (two, 0, 1, "kinematic"),
        "2 points, 2 secondaries, lockstep": (two, 2, 1, "kinematic"),
        "2 points, 2 secondaries, 10 steps ahead": (two, 2, 10, "kinematic"),
        "1 point, one process": (one, 0, 1, "kinematic"),
        "1 point, 2 secondaries, one of them idle": (one, 2, 1, "kinematic"),
    }
    times, _ = per_step(contestants, steps, turns)
    table = Table("overhead of distribution", "µs/step", "more than in one process")
    for name, each in times.items():
        alone = times[f"{name.split(',')[0]}, one process"]
        table.add_row(name, f"{each:.0f}", f"{each - alone:.0f}")
    console.print(table)
    lockstep, ahead = times["2 points, 2 secondaries, lockstep"], times["2 points, 2 secondaries, 10 steps ahead"]
    console.print(f"running ahead by 10 steps is {lockstep / ahead:.2f} × lockstep")


class Counting:
    """Secondaries in this process; counts what would be sent."""

    def __init__(self, exchange: LocalExchange) -> None:
        self._exchange = exchange
        self.sent = 0

    def trade(self, orders: Mapping[str, StepOrder], take: Callable[[StepAck], bool]) -> None:
        self.sent += sum(len(encode(order)) for order in orders.values())
        self._exchange.trade(orders, take)


def measure_migration(turns: int) -> None:
    """A robot that is put into another's level and back: the time and the bytes beyond those of an ordinary step."""
    world = read_world(WORLDS / "levels.sdf")
    names = ("a", "b", "c")
    counting = Counting(LocalExchange(lambda: open_engine("mujoco", world), names))
    course = Course(open_engine("mujoco", world), names)

    def step() -> tuple[float, int]:
        began, sent, iteration = time.perf_counter(), counting.sent, course.iteration
        while course.iteration == iteration:
            counting.trade(course.begin(1), course.take)
            course.settle()
        return time.perf_counter() - began, counting.sent - sent

    for _ in range(50):
        step()
    usual = [step() for _ in range(100)]
    moves = []
    place = course.positions()["vehicle_blue"]
    other = course.positions()["vehicle_red"]
    for turn in range(20 * turns):
        x, y, z = place if turn % 2 else other
        before = dict(course.affinities)
        course.interact(SetPose("vehicle_blue", (x, y + 1.5 * (not turn % 2), z), (1.0, 0.0, 0.0, 0.0)))
        took = step()
        if course.affinities["vehicle_blue"] != before["vehicle_blue"]:
            moves.append(took)
    took_s = statistics.median(s for s, _ in moves) - statistics.median(s for s, _ in usual)
    size = statistics.median(b for _, b in moves) - statistics.median(b for _, b in usual)
    console.print(
        f"a migration of a robot ({len(moves)} measured): {took_s * 1e6:.0f} µs and {size:.0f} bytes more than a step"
    )


def huge() -> WorldDescription:
    """1,000 performers in 100 levels, ten in each, that drive to and fro across the borders of their levels."""
    models, performers, levels = {}, [], []
    for number in range(1000):
        level, place = divmod(number, 10)
        name = f"performer_{number:04}"
        pose = Pose(((level % 10) * 100.0 + place * 9.0, (level // 10) * 100.0, 0.0))
        models[name] = WorldModel(
            name=name,
            pose=pose,
            links=(RigidLink(name="body"),),
            drive=VelocityDrive(linear=(0.0, 1.0, 0.0), angular=(0.0, 0.0, 0.1)),
        )
        performers.append(Performer(name=name, model=name, size=(1.0, 1.0, 1.0)))
    for number in range(100):
        center = ((number % 10) * 100.0 + 40.0, (number // 10) * 100.0, 0.0)
        levels.append(Level(name=f"level_{number:03}", center=center, size=(90.0, 15.0, 10.0), buffer=1.0))
    return WorldDescription(
        name="huge", step=10_000_000, models=models, performers=tuple(performers), levels=tuple(levels)
    )


def measure_huge(steps: int) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with World(huge(), engine="kinematic", run_ahead=10) as world:
        world.step_by(20)
        began = time.perf_counter()
        world.step_by(steps)
        took_s = time.perf_counter() - began
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    console.print(
        f"1,000 kinematic performers in 100 levels: {steps / took_s:.0f} steps/s, {memory / 1024:.0f} MB more memory"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--steps", type=int, default=400)
    options = parser.parse_args()
    spec = importlib.util.spec_from_file_location("warehouse", WORLDS / "warehouse.py")
    assert spec is not None
    assert spec.loader is not None
    warehouse = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(warehouse)
    measure_huge(options.steps // 4)
    measure_migration(options.turns)
    with TemporaryDirectory() as folder:
        file = Path(folder) / "warehouse.sdf"
        file.write_text(warehouse.warehouse(50, 20))
        measure_overhead(Path(folder), 10 * options.steps, options.turns)
        measure_warehouse(file, options.steps, options.turns)


if __name__ == "__main__":
    main()
