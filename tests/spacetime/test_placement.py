"""Which worker gets which agent: balanced, close ones together, and moved only if it is worth it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

import pytest

from worldline.kernel import processes
from worldline.model import ConfigurationError
from worldline.spacetime import Agent, ForwardSimulation, Minkowski
from worldline.spacetime.placement import Placing, Resident, as_placing, imbalance


def residents(
    *places: tuple[float, ...], loads: Sequence[int] = (), sources: Mapping[int, Sequence[int]] | None = None
) -> list[Resident]:
    """Return agents at these places of space, named by their numbers."""
    return [
        Resident(
            f"n{number:03}",
            (0.0, *place),
            loads[number] if loads else 0,
            tuple(f"n{each:03}" for each in (sources or {}).get(number, ())),
        )
        for number, place in enumerate(places)
    ]


def cloud(count: int, n: int, seed: int = 0) -> list[Resident]:
    random = Random(seed)
    places = [tuple(random.gauss(0.0, 1.0) for _ in range(n)) for _ in range(count)]
    return residents(*places, loads=[random.randrange(100) for _ in range(count)])


def loads_of(everybody: Sequence[Resident], placed: Mapping[str, int], count: int) -> list[int]:
    loads = Counter(dict.fromkeys(range(count), 0))
    for each in everybody:
        loads[placed[each.name]] += each.load + 1
    return [loads[worker] for worker in range(count)]


# -- By positions


@pytest.mark.parametrize("workers", [1, 2, 3, 4, 7])
@pytest.mark.parametrize("n", [1, 2, 3])
def test_a_split_is_balanced(workers: int, n: int) -> None:
    everybody = cloud(200, n)
    placed = Placing().place(everybody, workers)
    assert sorted(placed) == [each.name for each in everybody]
    assert imbalance(everybody, placed, workers) < 1.15


@pytest.mark.parametrize("workers", [2, 3, 4, 5])
def test_a_split_is_by_planes(workers: int) -> None:
    """The boxes of no two workers overlap: everybody in a region of space is on the same one."""
    everybody = cloud(100, 2)
    placed = Placing().place(everybody, workers)
    boxes = []
    for worker in range(workers):
        here = [each.at for each in everybody if placed[each.name] == worker]
        boxes.append([(min(at[axis] for at in here), max(at[axis] for at in here)) for axis in (1, 2)])
    for number, one in enumerate(boxes):
        for other in boxes[:number]:
            assert any(a[1] < b[0] or b[1] < a[0] for a, b in zip(one, other, strict=True))


def test_a_split_goes_by_how_busy_agents_are() -> None:
    row = residents((0.0,), (1.0,), (2.0,), (3.0,), (4.0,), loads=[100, 1, 1, 1, 100])
    placed = Placing().place(row, 2)
    assert loads_of(row, placed, 2) in ([103, 105], [105, 103], [107, 101], [101, 107])
    lopsided = residents((0.0,), (1.0,), (2.0,), (3.0,), loads=[300, 1, 1, 1])
    assert list(Placing().place(lopsided, 2).values()) == [0, 1, 1, 1]


def test_agents_at_one_place_are_dealt_out_all_the_same() -> None:
    heap = residents(*[(1.0, 1.0)] * 12)
    assert sorted(Counter(Placing().place(heap, 4).values()).items()) == [(0, 3), (1, 3), (2, 3), (3, 3)]


@pytest.mark.parametrize("by", ["positions", "channels"])
@pytest.mark.parametrize("count", [0, 1, 2, 3])
def test_fewer_agents_than_workers(by: str, count: int) -> None:
    few = residents(*[(float(number), 0.0) for number in range(count)])
    placed = Placing(by).place(few, 5)
    assert len(placed) == count
    assert len({*placed.values()}) == count
    assert all(0 <= worker < 5 for worker in placed.values())


@pytest.mark.parametrize("by", ["positions", "channels"])
def test_a_placement_does_not_depend_on_the_order_in_which_agents_are_told(by: str) -> None:
    sources = {number: [(number + 1) % 40, (number + 7) % 40] for number in range(40)}
    everybody = residents(*[each.at[1:] for each in cloud(40, 2)], sources=sources)
    expected = Placing(by).place(everybody, 3)
    for seed in range(5):
        mixed = Random(seed).sample(everybody, len(everybody))
        assert Placing(by).place(sorted(mixed), 3) == expected


# -- By channels


def test_those_who_talk_over_short_distances_stay_together() -> None:
    """Everybody talks to everybody; there are two towns."""
    places = [(100.0 * (number % 2) + number / 10, 0.0) for number in range(12)]
    towns = residents(*places, sources={number: [x for x in range(12) if x != number] for number in range(12)})
    placed = Placing("channels").place(towns, 2)
    for number, each in enumerate(towns):
        assert placed[each.name] == placed[towns[number % 2].name]
    assert placed[towns[0].name] != placed[towns[1].name]


# -- By hand


def test_a_dict_may_name_others_too() -> None:
    assert Placing({"n000": 1, "n001": 0, "somebody": 5}).place(residents((0.0,), (1.0,)), 2) == {"n000": 1, "n001": 0}


@pytest.mark.parametrize(
    ("by", "said"),
    [
        ({"n000": 0}, "n001 is placed on worker None"),
        ({"n000": 0, "n001": 2}, "n001 is placed on worker 2"),
        ({"n000": -1, "n001": 0}, "n000 is placed on worker -1"),
        ({"n000": True, "n001": 0}, "n000 is placed on worker True"),
        ({"n000": "0", "n001": 0}, "n000 is placed on worker '0'"),
        ({"n000": 0.0, "n001": 0}, "n000 is placed on worker 0.0"),
        (lambda everybody, _: {each.name: 9 for each in everybody}, "n000 is placed on worker 9"),
    ],
)
def test_a_worker_that_is_not_there_is_refused(by: Any, said: str) -> None:
    with pytest.raises(ConfigurationError, match="there are 2, from 0 to 1") as raised:
        Placing(by).place(residents((0.0,), (1.0,)), 2)
    assert str(raised.value).startswith(said)


@pytest.mark.parametrize("by", ["links", "", 3, ["a"], Placing("nonsense"), Placing(7)])  # type: ignore[arg-type]
def test_what_is_no_placement_is_refused(by: Any) -> None:
    with pytest.raises(ConfigurationError, match="isn't a placement"):
        as_placing(by, 3)


def test_in_one_dimension_channels_decide() -> None:
    assert as_placing(None, 1).by == "channels"
    assert as_placing(None, 2).by == "positions"
    with pytest.raises(ConfigurationError, match="in one dimension all agents are at the same place"):
        as_placing("positions", 1)
    assert as_placing("channels", 1).by == "channels"


def test_a_dict_moves_nobody() -> None:
    """Nobody could say where those go who are born later; a function can."""
    assert as_placing({"a": 0}, 2).moves_every_s is None
    assert as_placing(Placing({"a": 0}, 1.0), 2).moves_every_s == 1.0
    assert as_placing("channels", 2).moves_every_s is not None
    assert as_placing(lambda _, __: {}, 2).moves_every_s is not None


@pytest.mark.parametrize("every_s", [-1.0, "soon", float("nan"), True])
def test_a_time_between_moves_that_makes_no_sense_is_refused(every_s: Any) -> None:
    with pytest.raises(ConfigurationError):
        as_placing(Placing("channels", moves_every_s=every_s), 2)


@pytest.mark.parametrize("rule", [lambda *_: None, lambda *_: 1 // 0, lambda _: {}])
def test_a_rule_that_fails_is_a_clear_error(rule: Any) -> None:
    simulation = ForwardSimulation(Minkowski(2), executor=processes(2, placement=rule))
    with simulation:
        Agent()
    with pytest.raises(ConfigurationError, match="placement"):
        simulation.run(until=1.0)
