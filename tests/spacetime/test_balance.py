"""Whether agents move to other workers, and which: only if it is worth it, and there is an end of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.spacetime.test_placement import cloud, residents
from worldline.spacetime.placement import Balance, Placing, Resident, cut_of, imbalance, moves

# -- Who moves


def chosen(told: Sequence[list[Resident]], by: Any = "positions") -> dict[str, int]:
    return moves(Placing(by), told)


def dealt(everybody: Sequence[Resident], placed: Mapping[str, int], count: int) -> list[list[Resident]]:
    return [[each for each in everybody if placed[each.name] == worker] for worker in range(count)]


def test_nobody_moves_if_all_is_well() -> None:
    everybody = cloud(50, 2)
    assert chosen(dealt(everybody, Placing().place(everybody, 3), 3)) == {}
    assert chosen([[], [], []]) == {}


def test_agents_move_when_loads_have_changed() -> None:
    row = residents(*[(float(number), 0.0) for number in range(8)], loads=[0, 0, 0, 0, 50, 50, 50, 50])
    now = {each.name: int(number >= 4) for number, each in enumerate(row)}
    found = chosen(dealt(row, now, 2))
    assert set(found.values()) == {0}
    assert imbalance(row, {**now, **found}, 2) < 1.05


def test_agents_move_when_they_have_met_others() -> None:
    """Loads are equal, but everybody has walked over to the other side, and now most channels are cut."""
    places = [(float(number % 2) * 10 + number, 0.0) for number in range(20)]
    sources = {number: [other for other in range(number % 2, 20, 2) if other != number] for number in range(20)}
    everybody = residents(*places, loads=[5] * 20, sources=sources)
    now = {each.name: number // 2 % 2 for number, each in enumerate(everybody)}
    found = chosen(dealt(everybody, now, 2), "channels")
    assert found
    assert cut_of(everybody, {**now, **found}) == 0
    assert cut_of(everybody, now) > 0


def test_better_balance_at_the_price_of_many_more_channels_is_not_worth_it() -> None:
    """A crowd talks to each other on one worker; two others have a little less to do."""
    crowd = list(range(6))
    sources = {number: [other for other in crowd if other != number] for number in crowd}
    everybody = residents(*[(float(number), 0.0) for number in range(9)], loads=[9] * 9, sources=sources)
    now = {each.name: int(number >= 6) for number, each in enumerate(everybody)}
    assert imbalance(everybody, now, 2) == pytest.approx(4 / 3)
    assert chosen(dealt(everybody, now, 2)) == {}


def test_a_rule_is_always_followed() -> None:
    everybody = residents((0.0,), (1.0,))
    told = dealt(everybody, {"n000": 0, "n001": 1}, 2)
    assert chosen(told, lambda _, __: {"n000": 1, "n001": 1}) == {"n000": 1}
    assert chosen(told, lambda _, __: {"n000": 0, "n001": 1}) == {}


@given(st.lists(st.tuples(st.integers(0, 2), st.floats(-9, 9), st.floats(-9, 9), st.integers(0, 50)), max_size=30))
def test_whoever_moves_goes_elsewhere_and_it_gets_better(everybody: list[tuple[int, float, float, int]]) -> None:
    row = residents(*[(x, y) for _, x, y, _ in everybody], loads=[load for *_, load in everybody])
    now = {each.name: worker for each, (worker, *_) in zip(row, everybody, strict=True)}
    found = chosen(dealt(row, now, 3))
    assert all(0 <= worker < 3 and worker != now[name] for name, worker in found.items())
    if found:
        assert imbalance(row, {**now, **found}, 3) < imbalance(row, now, 3)


# -- When it is looked at


def test_it_is_wished_for_now_and_then() -> None:
    wishes = Balance(Placing("positions", 0.5), 2, 10.0)
    asked = [(10.4, 3), (10.5, 4), (10.6, 5), (11.0, 6), (11.4, 7)]
    assert [wishes.is_due(*each) for each in asked] == [False, True, False, True, False]
    wishes.restart(11.4)
    assert not wishes.is_due(11.6, 8)
    assert wishes.is_due(11.9, 8)


def test_it_isnt_wished_for_if_nothing_has_happened() -> None:
    """Otherwise workers that wait for each other would move agents for ever, and never be idle."""
    wishes = Balance(Placing("positions", 0.0), 2, 0.0)
    assert wishes.is_due(1.0, 7)
    assert not any(wishes.is_due(now, 7) for now in (2.0, 20.0, 200.0))
    assert wishes.is_due(201.0, 8)


def granted(*asked: tuple[float, Sequence[int], int], by: Any = "positions") -> list[bool]:
    balance, found = Balance(Placing(by, 1.0), 2, 0.0), []
    for now_s, events, balance.letters in asked:
        balance.events = list(events)
        found.append(balance.is_worth_it(now_s, 0))
    return found


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ([(1.0, (100, 100), 0)], [False]),
        ([(1.0, (100, 200), 0)], [True]),
        ([(1.0, (100, 110), 0)], [False]),
        ([(1.0, (100, 200), 0), (2.0, (200, 300), 0)], [True, False]),  # What was before doesn't count.
        ([(0.4, (100, 200), 0), (0.6, (100, 200), 0), (0.7, (100, 400), 0)], [False, True, False]),
        ([(1.0, (99, 99), 10), (2.0, (199, 199), 21)], [False, False]),
        ([(1.0, (99, 99), 10), (2.0, (199, 199), 30)], [False, True]),  # More letters than at first.
        ([(1.0, (99, 99), 50), (2.0, (199, 199), 100)], [False, False]),  # It has always been like that.
        ([(1.0, (0, 0), 0)], [False]),
    ],
)
def test_it_is_granted_if_something_has_changed(
    asked: list[tuple[float, Sequence[int], int]], expected: list[bool]
) -> None:
    assert granted(*asked) == expected


def test_a_rule_of_ones_own_is_always_asked() -> None:
    assert granted((0.0, (0, 0), 0), (0.0, (0, 0), 0), by=lambda _, __: {}) == [True, True]
