"""How the solids of a world move: pages get it piece by piece, and no more than they can draw."""

from __future__ import annotations

from typing import Any

import pytest

from tests.world.stage import poses_at, stage
from worldline.watch import scene
from worldline.watch.live import LiveRun
from worldline.world.foxglove import WorldTeller


def gone_on(before: dict[str, Any] | None, found: dict[str, Any]) -> dict[str, Any]:
    """Go on with what a page has, as it does."""
    if before is None or not found["first"]:
        return found
    first = found["first"]
    ways = {frame: way[:first] for frame, way in before["ways"].items()}
    for frame, way in found["ways"].items():
        ways[frame] = ways.get(frame, []) + way
    return {**found, "times": before["times"][:first] + found["times"], "ways": ways}


@pytest.mark.parametrize("every", [1, 7])
def test_a_page_that_asks_again_and_again_sees_what_one_does_that_asks_once(
    every: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scene, "MOMENTS_MAX", 20)
    live = LiveRun({"name": "world", "room": "world"})
    teller, world = WorldTeller(live.observer), stage()
    teller.began(world)
    teller.changed(0, 0, world.models, dict.fromkeys(world.models, "a"))
    seen: dict[str, Any] | None = None
    asked, whole = [], 0
    for step in range(100):
        teller.stepped(step, step, poses_at(world.models, 0.1 * step), bytes(16))
        live.observer.passed(step * world.step)
        live.observer.take()
        found = live.show.scene(*(seen["kept"], seen["stride"]) if seen else ()) if step % every == 0 else None
        if found is not None:
            asked.append(len(found["times"]))
            whole += not found["first"]
            seen = gone_on(seen, found)
    teller.ended(100, 100)
    live.observer.finish(100 * world.step)
    assert seen is not None
    seen = gone_on(seen, live.show.scene(seen["kept"], seen["stride"]) or {})
    once = live.show.scene()
    assert once is not None
    assert (seen["times"], seen["ways"], seen["solids"]) == (once["times"], once["ways"], once["solids"])
    assert 10 <= len(once["times"]) <= 21
    assert once["times"][-1] == max(once["times"])
    assert whole <= 4  # Mostly it gets what is new.
    assert max(asked) <= 21


def test_the_places_of_what_moves_are_signals_by_its_name() -> None:
    live = LiveRun({"name": "world", "room": "world"})
    teller, world = WorldTeller(live.observer), stage()
    teller.began(world)
    teller.changed(0, 0, world.models, dict.fromkeys(world.models, "a"))
    for step in range(5):
        teller.stepped(step, step, poses_at(world.models, 0.1 * step), bytes(16))
    teller.ended(5, 5)
    live.observer.finish(5 * world.step)
    fields = live.show.fields().fields
    assert set(fields) == {"/tf"}
    frames = live.show.scene()["ways"]  # type: ignore[index]
    assert fields["/tf"] == [f"{frame}.{axis}" for frame in frames for axis in "xyz"]
    frame, way = next(iter(frames.items()))
    values = live.show.signal("/tf", f"{frame}.x")["lines"][0]["values"]
    assert [round(value, 5) for value in values] == [pose[0] for pose in way]
