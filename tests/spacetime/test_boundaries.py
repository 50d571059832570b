"""Boundaries: planes that agents reach at exact points, once, and what is done to them there."""

from __future__ import annotations

from math import inf, nan, sqrt
from typing import Any

import pytest

from tests.spacetime.running import Person, run
from worldline.model.errors import UsageError
from worldline.spacetime import (
    Boundary,
    Channel,
    ForwardSimulation,
    LambdaField,
    Minkowski,
    above,
    below,
    box,
)


def runner(speed: float, at: tuple[float, ...] = (0, 0)) -> Any:
    def set_up(simulation: ForwardSimulation) -> None:
        person = Person()
        person.jump_to(at)
        person.velocity = simulation.space.velocity(speed, *[0.0] * (simulation.space.n - 2))

    return set_up


def crossings(result: Any) -> list[tuple[float, ...]]:
    return [record.at for record in result.records if record.kind == "crossed"]


def test_what_would_happen_at_the_end_does_not() -> None:
    def set_up(simulation: ForwardSimulation) -> None:
        alice, bob = Person(), Person()
        bob.jump_to((0, 4))
        alice.other = Channel(alice, bob)
        alice.after(6.0, "tell", "too late")
        alice.after(5.0, "tell", "in time")
        alice.after(10.0, "hear", "too late")

    result, simulation = run(set_up, until=10)
    assert simulation["Person-1"].heard == []
    assert simulation["Person-2"].heard == ["in time"]
    assert result.until == 10.0


def test_a_function_is_called_once_at_the_crossing_point() -> None:
    called = []

    def cross(agent: Person, boundary: Boundary) -> None:
        called.append((tuple(agent.position), boundary.name))
        agent.hear(boundary.name)

    result, simulation = run(runner(0.5), until=20, boundary=below(2, 1, 3, cross, name="the door"))
    assert set(called) == {((6.0, 3.0), "the door")}
    assert simulation["Person-1"].heard == ["the door"]
    assert crossings(result) == [(6.0, 3.0), (20.0, 10.0)]
    assert result.events == 1


@pytest.mark.parametrize("n", [2, 3, 4])
def test_mirrors(n: int) -> None:
    low, high = [-2.0] * (n - 1), [2.0] * (n - 1)
    result, simulation = run(runner(0.5, (0,) * n), until=29, n=n, boundary=box(low, high))
    at = crossings(result)
    assert [point[0] for point in at] == pytest.approx([4, 12, 20, 28, 29])
    assert [point[1] for point in at[:-1]] == pytest.approx([2, -2, 2, -2])
    assert simulation["Person-1"].velocity == pytest.approx(Minkowski(n).velocity(0.5, *[0.0] * (n - 2)))


def test_a_mirror_that_moves_changes_the_speed() -> None:
    # The wall x = 4 − 0.5 t: at rest an agent at 0 is hit at t = 8, and leaves with the relativistic sum of speeds.
    wall = Boundary((-0.5, 1.0), 4.0, "reflect")
    result, simulation = run(runner(0.0), until=20, boundary=wall)
    assert crossings(result)[0] == (8.0, 0.0)
    velocity = simulation["Person-1"].velocity
    assert velocity[1] / velocity[0] == pytest.approx(-2 * 0.5 / (1 + 0.25))


def test_stop() -> None:
    result, simulation = run(runner(-0.8), until=20, boundary=above(2, 1, -4, "stop"))
    assert crossings(result) == [pytest.approx((5.0, -4.0)), (20.0, -4.0)]
    assert simulation["Person-1"].velocity == (1, 0)


def test_remove_is_a_death_that_others_hear_of_with_light() -> None:
    class Sender(Person):
        def look(self) -> None:
            self.heard.append(self.other.is_open)

    def set_up(simulation: ForwardSimulation) -> None:
        sender, leaver = Sender(), Person()
        leaver.jump_to((0, 1))
        leaver.velocity = simulation.space.velocity(0.5)
        sender.other = Channel(sender, leaver)
        for when in (9.9, 10.1):  # It leaves at (6, 4).
            sender.after(when, "look")

    _, simulation = run(set_up, until=20, boundary=below(2, 1, 4))
    assert simulation["Sender-1"].heard == [True, False]


def test_wrapping_takes_as_long_as_light() -> None:
    result, simulation = run(runner(0.5), until=30, boundary=box([-2], [2], "wrap"))
    points = [record.at for record in result.records if record.kind == "jumped"][1:]
    assert points[:2] == [pytest.approx((8, -2)), pytest.approx((20, -2))]
    assert simulation["Person-1"].velocity == Minkowski(2).velocity(0.5)


def test_a_corner_is_two_walls() -> None:
    def set_up(simulation: ForwardSimulation) -> None:
        Person().velocity = simulation.space.velocity(0.5, 0.5)

    result, simulation = run(set_up, until=8, n=3, boundary=box([-2, -2], [2, 2]))
    assert len(crossings(result)) == 3
    assert simulation["Person-1"].velocity == pytest.approx(Minkowski(3).velocity(-0.5, -0.5))
    assert simulation["Person-1"].position == pytest.approx((8, 0, 0))


def test_who_begins_or_lands_outside_on_its_way_out_crosses_there() -> None:
    def note(agent: Person, boundary: Boundary) -> None:
        agent.hear(tuple(agent.position))

    wall = below(2, 1, 3, note)
    _, simulation = run(runner(0.5, (0, 5)), until=20, boundary=wall)
    assert simulation["Person-1"].heard == [(0.0, 5.0)]
    _, simulation = run(runner(-0.5, (0, 5)), until=20, boundary=wall)
    assert simulation["Person-1"].heard == []

    def set_up(simulation: ForwardSimulation) -> None:
        person = Person()
        person.velocity = simulation.space.velocity(0.1)
        person.after(1.0, lambda agent: agent.jump_to((9, 6)))

    _, simulation = run(set_up, until=20, boundary=wall)
    assert simulation["Person-1"].heard == [(9.0, 6.0)]


def test_a_boundary_wins_against_what_arrives_at_the_same_point() -> None:
    def set_up(simulation: ForwardSimulation) -> None:
        alice, bob = Person(), Person()
        bob.velocity = simulation.space.velocity(0.5)
        alice.jump_to((0, 4))
        alice.other = Channel(alice, bob)
        alice.after(2.0, "tell", "lambda")  # It meets Bob at (4, 2).

    def note(agent: Person, boundary: Boundary) -> None:
        agent.hear("boundary")

    _, simulation = run(set_up, until=7, boundary=below(2, 1, 2, note))
    assert simulation["Person-2"].heard == ["boundary", "lambda"]
    assert simulation["Person-2"].times == [4.0, 4.0]


def test_boundaries_can_end_time() -> None:
    result, _ = run(runner(0.5), until=None, boundary=below(2, 0, 10))
    assert (result.until, crossings(result)) == (10.0, [(10.0, 5.0)])
    result, _ = run(runner(0.5), until=None, boundary=[below(2, 1, 3), below(2, 0, 10)])
    assert crossings(result) == [(6.0, 3.0)]


@pytest.mark.parametrize(
    "make",
    [
        lambda: Boundary((0, 0), 1),
        lambda: Boundary((), 1),
        lambda: Boundary("ab", 1),
        lambda: Boundary(None, 1),
        lambda: Boundary((-1, 0), nan),
        lambda: Boundary((-1, 0), inf),
        lambda: Boundary((-1, 0), "x"),
        lambda: Boundary((-1, 0), 1, "explode"),
        lambda: Boundary((-1, 0), 1, 3),
        lambda: Boundary((0, 1), 1, "wrap"),
        lambda: Boundary((0, 1), 1, "wrap", period=(0, 1, 2)),
        lambda: Boundary((-1, 0), 1, "reflect"),
        lambda: Boundary((-1, 1), 1, "reflect"),
        lambda: below(2, 2, 1),
        lambda: above(2, -1, 1),
        lambda: box([0], [0]),
        lambda: box([0], [1, 2]),
        lambda: box([1], [0]),
        lambda: box(0, 1),
        lambda: box([nan], [1]),
        lambda: ForwardSimulation(Minkowski(2), boundary=below(3, 1, 1)),
        lambda: ForwardSimulation(Minkowski(2), boundary=[3]),
        lambda: ForwardSimulation(Minkowski(2), boundary=3),
    ],
)
def test_boundaries_that_cannot_be_are_refused(make: Any) -> None:
    with pytest.raises(UsageError):
        make()


def test_a_fast_agent_between_close_mirrors_stays_inside() -> None:
    field = LambdaField(c=1e-4)
    result, simulation = run(runner(0.999), until=20, boundary=box([-0.25], [0.25]), field=field)
    assert len(crossings(result)) > 35
    assert all(abs(point[1]) <= 0.25 + 1e-9 for point in crossings(result))
    assert simulation["Person-1"].velocity[0] == pytest.approx(1 / sqrt(1 - 0.999**2), rel=1e-9)
