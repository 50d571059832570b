"""mosaik in the stepping scenario of our federation benchmark: one process per simulator, TCP on loopback.

Time-based simulators with a step size of one, started by mosaik with a command and connected in a ring. Every
connection is time-shifted by one step, which breaks the cycle and lets all simulators step at the same time. Progress
bars, debug mode, logging and `lazy_stepping` are off; the last made no difference that could be measured, and without
it mosaik is freer. Only the run itself is timed, neither the start nor the shutdown.

The parent never imports mosaik. The measurement is bounded by `timeout_s` and leaves no process behind: mosaik's own
process leads a group to which its simulators belong.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as version_of
from pathlib import Path
from typing import Any

if __package__:
    from .children import Children, PeerError, end_after, report
else:
    from children import Children, PeerError, end_after, report

VALUE_SIZE = 32

Facts = dict[str, Any]


def stepping(n: int, steps: int, *, timeout_s: float = 180) -> Facts:
    """A ring in which everybody puts out 32 characters at every step, read by its neighbor one step later."""
    peer = f"mosaik {version()} tcp"
    plan = json.dumps({"n": n, "steps": steps, "timeout_s": timeout_s})
    with Children(timeout_s) as children:
        children.start("mosaik", [sys.executable, str(Path(__file__).resolve()), "world", plan])
        said = children.reports(["mosaik"])["mosaik"]
    if said["steps"] != n * steps or said["wrong"]:
        raise PeerError(f"stepping: {said['steps']} steps of {n * steps}, {said['wrong']} with another value than due")
    seconds = said["seconds"]
    return {
        "scenario": "stepping",
        "peer": peer,
        "n": n,
        "steps": steps,
        "lookahead": 1,
        "seconds": seconds,
        "steps_per_s": steps / seconds,
    }


def version() -> str:
    try:
        return version_of("mosaik")
    except PackageNotFoundError:
        raise PeerError(f"mosaik is not installed for {sys.executable}: pip install mosaik") from None


def _value(sender: int, step: int) -> str:
    return f"{sender} {step}".ljust(VALUE_SIZE)


async def _world(n: int, steps: int, timeout_s: float) -> None:
    from mosaik.async_scenario import AsyncWorld

    command = f'%(python)s "{Path(__file__).resolve()}" simulator {timeout_s} %(addr)s'
    # Eight Pythons that start on a busy machine need longer than the ten seconds mosaik gives them.
    config = {"addr": ("127.0.0.1", None), "start_timeout": timeout_s}
    async with AsyncWorld({"ring": {"cmd": command}}, config) as world:
        simulators = [await world.start("ring", left=(place - 1) % n) for place in range(n)]
        entities = [await simulator.Place(place=place) for place, simulator in enumerate(simulators)]
        for place, entity in enumerate(entities):
            before = _value(place, -1)
            follower = entities[(place + 1) % n]
            world.connect_one(entity, follower, "out", "in", time_shifted=True, initial_data=before)
        start = time.perf_counter()
        await world.run(until=steps, print_progress=False, lazy_stepping=False)
        seconds = time.perf_counter() - start
        # mosaik's run returns without an error when a simulator failed, so we ask every one what it did.
        done = [await simulator.call.checked() for simulator in simulators]
        report(seconds=seconds, steps=sum(each["steps"] for each in done), wrong=sum(each["wrong"] for each in done))


def _simulator(timeout_s: float) -> None:
    import mosaik_api_v3

    end_after(timeout_s + 5)
    meta = {
        "api_version": "3.0",
        "type": "time-based",
        "models": {"Place": {"public": True, "params": ["place"], "attrs": ["in", "out"]}},
        "extra_methods": ["checked"],
    }

    class Ring(mosaik_api_v3.Simulator):  # type: ignore[misc]
        """One simulator of the ring, with one entity."""

        def __init__(self) -> None:
            super().__init__(meta)
            self.place = self.left = self.now = self.steps = self.wrong = 0

        def init(self, sid: str, time_resolution: float = 1.0, left: int = 0) -> Any:
            self.left = left
            return self.meta

        def create(self, num: int, model: str, place: int) -> Any:
            self.place = place
            return [{"eid": "place", "type": model}]

        def step(self, time: int, inputs: Any, max_advance: int) -> int:
            got = list(inputs.get("place", {}).get("in", {}).values())
            self.wrong += got != [_value(self.left, time - 1)]
            self.now = time
            self.steps += 1
            return time + 1

        def get_data(self, outputs: Any) -> Any:
            return {"place": {"out": _value(self.place, self.now)}}

        def checked(self) -> dict[str, int]:
            return {"steps": self.steps, "wrong": self.wrong}

    mosaik_api_v3.start_simulation(Ring(), configure_logging=False)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("scenario", choices=["stepping"])
    parser.add_argument("--n", type=int, default=2, help="%(default)s unless given")
    parser.add_argument("--steps", type=int, default=500, help="%(default)s unless given")
    parser.add_argument("--repeat", type=int, default=1, help="measure so many times; one JSON object per line")
    parser.add_argument("--timeout", type=float, default=180, metavar="SECONDS", help="of each measurement")
    options = parser.parse_args()
    for _ in range(options.repeat):
        try:
            facts = stepping(options.n, options.steps, timeout_s=options.timeout)
        except PeerError as error:
            sys.exit(f"{options.scenario}: {error}")
        print(json.dumps(facts), flush=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["world"]:
        import asyncio

        plan = json.loads(sys.argv[2])
        end_after(plan["timeout_s"] + 5)
        asyncio.run(_world(**plan))
    elif sys.argv[1:2] == ["simulator"]:
        # mosaik's own reading of the command line expects the address alone.
        seconds = float(sys.argv.pop(2))
        sys.argv.pop(1)
        _simulator(seconds)
    else:
        main()
