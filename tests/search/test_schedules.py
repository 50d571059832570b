"""Schedules: who is next is drawn by name, at random, by priorities, or in all ways with a few delays."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine
from itertools import pairwise, product
from typing import Any

import pytest

from worldline import Federation, Machine, Network, link, run
from worldline.errors import ConfigurationError, UsageError
from worldline.federation.inprocess.trial import FederationTrial, shrink_federation
from worldline.model.draws.distributions import Turn
from worldline.search import schedules as searched
from worldline.search.schedules import Schedules, TurnDraws, as_schedules, delayed_turns, drawn_turns
from worldline.search.searching import Report, search_seeds
from worldline.search.shrinking import WrittenDraws

Program = Callable[[], Coroutine[Any, Any, None]]


@pytest.mark.parametrize("text", ["random", "pct:1", "pct:12", "delays:2"])
def test_ways_are_read_as_they_are_written(text: str) -> None:
    assert str(as_schedules(text)) == text


@pytest.mark.parametrize("text", ["", "pct", "pct:0", "delays:-1", "delays:", "Random", "pct:3,4"])
def test_others_are_refused(text: str) -> None:
    with pytest.raises(ConfigurationError, match=r"write random, pct:3 or delays:2"):
        as_schedules(text)


# -- The ways to choose, without programs


def chosen(draws: TurnDraws, ready: list[tuple[str, ...]]) -> list[int]:
    """Return what is chosen at each turn of a participant."""
    return [int(draws(f"turn/a/{number}", Turn(each), 0)) for number, each in enumerate(ready)]  # type: ignore[call-overload, no-any-return]


def test_at_random_all_are_as_likely() -> None:
    found = Counter(chosen(drawn_turns(as_schedules("random"), 3, None), [("x", "y", "z")] * 3_000))
    assert sorted(found) == [0, 1, 2]
    assert min(found.values()) > 900


def test_by_priority_one_task_goes_first_until_that_changes() -> None:
    ready = [("x", "y", "z")] * 60
    ways = Schedules(way="pct", depth=1, choices=(("a", 3, 60),))
    runs = [tuple(chosen(drawn_turns(ways, seed, None), ready)) for seed in range(60)]
    assert {len(set(each)) for each in runs} == {1}
    assert {each[0] for each in runs} == {0, 1, 2}
    ways = Schedules(way="pct", depth=3, choices=(("a", 3, 60),))
    changes = [
        sum(one != other for one, other in pairwise(each))
        for each in (chosen(drawn_turns(ways, seed, None), ready) for seed in range(60))
    ]
    assert set(changes) <= {0, 1, 2}  # Two changes of priorities; one may come first of all, or twice at one place.
    assert 2 in changes


def test_a_task_that_is_always_passed_over_runs_in_the_end() -> None:
    ways = Schedules(way="pct", depth=1)
    seed = next(seed for seed in range(20) if chosen(drawn_turns(ways, seed, None), [("poor", "x")]) == [1])
    assert 0 in chosen(drawn_turns(ways, seed, None), [("poor", "x")] * 1_000)


def test_delays_come_in_all_ways_and_each_once() -> None:
    """Four choices between three: all with at most three delays, and no others."""
    ready = [("x", "y", "z")] * 4
    found = [tuple(chosen(draws, ready)) for draws in delayed_turns(3, lambda: None)]
    wanted = [each for each in product(range(3), repeat=4) if sum(each) <= 3]
    assert sorted(found) == sorted(wanted)
    assert found[0] == (0, 0, 0, 0)


def test_too_many_schedules_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(searched, "SCHEDULES_MAX", 50)
    ready = [("x", "y")] * 30
    with pytest.raises(UsageError, match=r"more than 50 schedules with at most 2 delays \(allow fewer delays"):
        _ = [chosen(draws, ready) for draws in delayed_turns(2, lambda: None)]


def test_other_draws_are_left_to_others() -> None:
    assert TurnDraws(lambda *_: 7, None)("latency/x", link("1ms").latency, 5) == 5
    assert TurnDraws(lambda *_: 7, lambda *_: 9)("latency/x", link("1ms").latency, 5) == 9


# -- In programs


async def lost_update() -> None:
    """Two deposits, and an audit that has to come after the first or after both, all at one moment."""
    value = 0

    async def deposit() -> None:
        nonlocal value
        await asyncio.sleep(0.001)
        value += 1
        await asyncio.sleep(0)
        value += 1

    async def audit() -> None:
        await asyncio.sleep(0.001)
        assert value in (0, 2), f"it is {value}"

    await asyncio.gather(*(asyncio.sleep(0) for _ in range(5)), audit(), deposit())


async def sound() -> None:
    lock, value = asyncio.Lock(), 0

    async def increment() -> None:
        nonlocal value
        async with lock:
            seen = value
            await asyncio.sleep(0)
            value = seen + 1

    await asyncio.gather(increment(), increment(), increment())
    assert value == 3


def trial_of(program: Program, way: str) -> FederationTrial:
    def make() -> Federation:
        return Federation({"a": Machine(program)}, until="1s")

    return FederationTrial(make=make, schedules=as_schedules(way)).with_choices()


def searched_for(trial: FederationTrial, seeds: int) -> Report:
    return search_seeds(trial, range(seeds), recipe=lambda: pytest.fail("no other process"))


@pytest.mark.parametrize(("way", "seeds"), [("random", 30), ("pct:2", 400), ("delays:1", 1)])
def test_a_race_is_found_and_shrinks_to_one_callback_out_of_order(way: str, seeds: int) -> None:
    assert FederationTrial(make=trial_of(lost_update, way).make).run().failure is None  # In asyncio's own order.
    trial = trial_of(lost_update, way)
    report = searched_for(trial, seeds)
    assert report.failure is not None
    shrunk = shrink_federation(trial.with_seed(report.failure.seed))
    assert shrunk.left == 1
    first, second = shrunk.lines
    assert first == "every message takes the usual time, none gets lost and one callback runs out of order, once:"
    assert "(a runs Task-8 (deposit) before Task-7 (audit))" in second
    # What is written down is all that it takes, without a way to choose.
    again = FederationTrial(make=trial.make, draws=WrittenDraws(shrunk.trial.written or {})).run().failure
    assert str(again) == str(shrunk.failure)


def test_a_sound_program_passes_in_all_ways() -> None:
    report = searched_for(trial_of(sound, "delays:2"), 1)
    assert report.failure is None
    assert report.schedules > 5
    assert searched_for(trial_of(sound, "random"), 20).failure is None


def test_pct_states_its_bound() -> None:
    ways = trial_of(lost_update, "pct:3").schedules
    assert ways is not None
    ((_, tasks, choices),) = ways.choices
    assert ways.words().endswith(f"by each seed with a chance of at least 1 in {tasks * choices**2:,}")


async def serve() -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while line := await reader.readline():
            writer.write(line)
        writer.close()

    async with await asyncio.start_server(answer, port=80) as server:
        await server.serve_forever()


async def ask() -> None:
    async def one(number: int) -> None:
        reader, writer = await asyncio.open_connection("server", 80)
        for _ in range(5):
            writer.write(b"%d\n" % number)
            assert await reader.readline() == b"%d\n" % number
        writer.close()
        await writer.wait_closed()

    await asyncio.sleep(0.1)
    await asyncio.gather(*map(one, range(4)))
    print("done")


def echoing() -> Federation:
    programs = {"server": Machine(serve), "client": Machine(ask)}
    return Federation(programs, network=Network(default=link("uniform(1ms, 3ms)")), until="5s")


@pytest.mark.parametrize("way", ["random", "pct:3"])
def test_streams_stand_any_order_of_tasks(way: str) -> None:
    """What asyncio itself relies on stays in order: no byte is lost, and no connection breaks."""
    trial = FederationTrial(make=echoing, schedules=as_schedules(way)).with_choices()
    outcomes = [trial.with_seed(seed).told() for seed in range(2)]
    assert [outcome.failure for outcome, _ in outcomes] == [None] * 2
    assert all(any(each.text == "done" for each in told) for _, told in outcomes)


def test_a_turn_is_a_draw_like_any_other() -> None:
    heard: list[tuple[str, object, object]] = []
    run(
        trial_of(lost_update, "random").make(),
        draws={"turn/a/1": 2, "turn": lambda _name, _among, value: value, "turn/a/3": 1},
        draws_heard=lambda drawn: heard.append((drawn.name, drawn.natural, drawn.value)),
    )
    turns = {name: (natural, value) for name, natural, value in heard if name.startswith("turn/")}
    assert turns["turn/a/0"] == (0, 0)
    assert turns["turn/a/3"] == (0, 1)
