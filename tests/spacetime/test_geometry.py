"""Minkowski space: vectors, velocities, fields, and roots that are compared with arithmetic of a hundred digits."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from decimal import Decimal, localcontext
from fractions import Fraction
from math import inf, nan, sqrt, ulp
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.builds import source_of
from worldline import builds
from worldline.model.errors import ConfigurationError, UsageError
from worldline.spacetime import LambdaField, Minkowski, Trajectory, Vector, geometry
from worldline.spacetime.geometry import COORDINATE_MAX
from worldline.spacetime.space import sign_of_interval

SOURCE = source_of("worldline.spacetime.geometry")

# How far a root may be from the true one, in units of 2**-53 of itself. Where the terms of the quadratic cancel, their
# own rounding counts too, which happens in twice the precision: so many units of 2**-106 of the terms.
ROOT_ERROR = 4
TERM_ERROR = 64


# -- Roots


def dot(a: Sequence[Decimal], b: Sequence[Decimal]) -> Decimal:
    return a[0] * b[0] - sum((x * y for x, y in zip(a[1:], b[1:], strict=True)), Decimal(0))


def check_root(trajectory: Trajectory, emitted: Vector, field: LambdaField) -> None:
    """Compare with the larger root τ of (D + Vτ)·(D + Vτ) = c, for floats that are taken for exact."""
    reach: Any = field.R if field.R is not None else [0.0] * len(emitted)
    found = trajectory.meets(emitted, field)
    with localcontext() as context:
        context.prec = 150
        places = zip(trajectory.start, emitted, reach, strict=True)
        apart = [Decimal(x) - Decimal(a) - Decimal(r) for x, a, r in places]
        speeds = [Decimal(each) for each in trajectory.velocity]
        square, half, rest = dot(speeds, speeds), dot(speeds, apart), dot(apart, apart) - Decimal(field.c)
        root = max(half * half - square * rest, Decimal(0)).sqrt()
        true = (root - half) / square
        unit = TERM_ERROR * Decimal(2) ** -106
        half_error = unit * sum(abs(v * d) for v, d in zip(speeds, apart, strict=True))
        rest_error = unit * (sum(each * each for each in apart) + Decimal(field.c))
        rest_error += unit * sum(each * each for each in speeds) * abs(rest)
        under_error = 2 * abs(half) * half_error + rest_error
        root_error = min(under_error.sqrt(), under_error / (2 * root)) if root else under_error.sqrt()
        allowed = ROOT_ERROR * Decimal(2) ** -53 * abs(true) + half_error + root_error
        if half > 0:
            allowed += rest_error / (root + half)
        assert abs(Decimal(found) - true) <= allowed, f"{found} instead of {true:.25}, allowed {allowed:.3}"


def drawn_velocity(random: Random, n: int, gamma: float) -> Vector:
    """Draw a 4-velocity of so much γ."""
    across = [random.gauss(0, 1) for _ in range(n - 1)]
    length = sqrt(sum(each * each for each in across)) or 1.0
    across = [each / length * sqrt(gamma * gamma - 1.0) for each in across]
    return Minkowski(n).as_velocity((sqrt(1.0 + sum(each * each for each in across)), *across))


def drawn_case(random: Random) -> tuple[Trajectory, Vector, LambdaField]:
    n = random.randrange(1, 9)
    velocity = drawn_velocity(random, n, 10 ** random.uniform(0, 5.99) if n > 1 else 1.0)
    scale = 10 ** random.uniform(-3, 9)
    emitted = [random.uniform(-scale, scale) for _ in range(n)]
    kind = random.randrange(4)
    if kind == 0 and n > 1:  # Just off the light cone of the emission.
        across = [random.uniform(-scale, scale) for _ in range(n - 1)]
        length = sqrt(sum(each * each for each in across))
        start = [emitted[0] + length * (1 + random.uniform(-1, 1) * 1e-15)]
        start += [a + each for a, each in zip(emitted[1:], across, strict=True)]
    elif kind == 1:  # Far away.
        start = [random.uniform(-1e12, 1e12) for _ in range(n)]
    elif kind == 2:  # Where its own trajectory has been: it meets what it has itself sent.
        tau = random.uniform(-scale, scale)
        start = [a + v * tau for a, v in zip(emitted, velocity, strict=True)]
    else:
        start = [random.uniform(-scale, scale) for _ in range(n)]
    reach = None
    if random.random() < 0.5:
        delay = 10 ** random.uniform(-6, 3)
        reach = [delay] + [random.uniform(-1, 1) * delay / n for _ in range(n - 1)]
    c = random.choice((0.0, 10 ** random.uniform(-12, 4)))
    return Trajectory(Vector(start), velocity), Vector(emitted), LambdaField(reach, c)


@pytest.mark.parametrize("first", range(0, 3000, 1000))
def test_roots_are_right_to_a_few_last_places(first: int) -> None:
    for number in range(first, first + 1000):
        check_root(*drawn_case(Random(number)))


@pytest.mark.parametrize("gamma", [1.0, 1.5, 1e3, 1e6 * (1 - 1e-9)])
@pytest.mark.parametrize("far", [1.0, 1e6, 1e12])
def test_light_that_is_hardly_faster_catches_up_where_it_should(gamma: float, far: float) -> None:
    velocity = drawn_velocity(Random(1), 2, gamma)
    ahead = far if velocity[1] >= 0 else -far
    trajectory = Trajectory(Vector((0.0, ahead)), velocity)
    check_root(trajectory, Vector((0.0, 0.0)), LambdaField())
    assert trajectory.meets((0.0, 0.0), LambdaField()) >= far


def test_the_root_is_on_the_future_side() -> None:
    trajectory = Trajectory(Vector((0, 3)), Vector((1, 0)))
    assert trajectory.meets((0, 0), LambdaField()) == 3.0
    assert trajectory.meets((-10, 0), LambdaField()) == -7.0
    assert trajectory.meets((0, 0), LambdaField(c=16)) == 5.0
    assert trajectory.meets((0, 0), LambdaField(R=(2, 0))) == 5.0
    assert trajectory.meets((0, 0), LambdaField(R=(2, 1))) == 4.0
    assert Trajectory(Vector((7,)), Vector((1,))).meets((3,), LambdaField(R=(1,), c=4)) == -1.0


def test_trajectories_cross_planes() -> None:
    trajectory = Trajectory(Vector((1, 2)), Minkowski(2).velocity(0.6))
    assert trajectory.at(4.0) == (6.0, 5.0)
    assert trajectory.crosses(Vector((-1, 0)), 6.0) == 4.0  # t < 6
    assert trajectory.crosses(Vector((0, 1)), 5.0) == 4.0  # x < 5
    assert trajectory.crosses(Vector((0, -1)), 5.0) == inf  # x > -5: it leads away from there.
    assert Trajectory(Vector((1, 2)), Vector((1, 0))).crosses(Vector((0, 1)), 5.0) == inf


@pytest.mark.parametrize("speed", [1e-308, 1e-314, 5e-324])
def test_a_crossing_that_is_too_far_away_never_comes(speed: float) -> None:
    assert Trajectory(Vector((0, 0)), Vector((1, speed))).crosses(Vector((0, 1)), 5.5) == inf


@given(st.integers(0, 2**32))
def test_crossings_are_right_to_a_few_last_places(seed: int) -> None:
    random = Random(seed)
    trajectory, _, _ = drawn_case(random)
    normal = [random.uniform(-1, 1) for _ in trajectory.start]
    offset = random.uniform(-1e6, 1e6)
    signs = [1] + [-1] * (len(normal) - 1)
    x, v = ([Fraction(each) for each in numbers] for numbers in (trajectory.start, trajectory.velocity))
    speed = sum(s * Fraction(a) * b for s, a, b in zip(signs, normal, v, strict=True))
    height = sum(s * Fraction(a) * b for s, a, b in zip(signs, normal, x, strict=True)) + Fraction(offset)
    found = trajectory.crosses(Vector(normal), offset)
    if speed >= 0:
        assert found == inf
    else:
        assert abs(Fraction(found) - height / -speed) <= ROOT_ERROR * Fraction(2) ** -53 * abs(height / speed)


# -- Two builds


def numbers(random: Random, n: int) -> list[float]:
    return [random.choice((0.0, 1.0, -1.0, random.uniform(-1, 1) * 10 ** random.uniform(-60, 60))) for _ in range(n)]


@pytest.mark.skipif(bool(builds.reason), reason="needs the compiled build")
@given(st.integers(0, 2**32))
@settings(max_examples=300)
def test_both_builds_give_the_same_bits(seed: int) -> None:
    random = Random(seed)
    n = random.randrange(1, 6)
    velocity = list(drawn_velocity(random, n, 10 ** random.uniform(0, 5.9) if n > 1 else 1.0))
    start, emitted, normal = (numbers(random, n) for _ in range(3))
    delay = random.choice((0.0, 10 ** random.uniform(-9, 9)))
    c = random.choice((0.0, 10 ** random.uniform(-9, 9)))
    speeds = [random.uniform(-1, 1) / n for _ in range(n - 1)]
    found = []
    for module in (geometry, SOURCE):
        trajectory = module.Trajectory(module.Vector(start), module.as_velocity(velocity, n))
        field = module.LambdaField([delay] + [0.0] * (n - 1), c)
        met = trajectory.meets(emitted, field)
        found.append(
            (
                met,
                tuple(trajectory.at(0.1)),
                trajectory.crosses(module.Vector(normal), 0.5),
                module.product(module.Vector(start), module.Vector(emitted)),
                module.Vector(start).dot(emitted),
                tuple(module.from_speeds(speeds)),
                tuple(trajectory.velocity),
                field.lookahead,
            )
        )
    assert repr(found[0]) == repr(found[1])


# -- Vectors


def test_vectors_are_values() -> None:
    a, b = Vector((1, 2, 3)), Vector([1.0, 0.5, -1.0])
    assert a + b == (2.0, 2.5, 2.0)
    assert a - b == Vector((0, 1.5, 4))
    assert a * 2 == 2 * a == (2, 4, 6)
    assert -a == (-1, -2, -3)
    assert a.dot(b) == 1 - 1 + 3
    assert (a.t, a[0], a[-1], len(a), list(a)) == (1.0, 1.0, 3.0, 3, [1.0, 2.0, 3.0])
    assert {a: 1}[Vector((1, 2, 3))] == 1
    assert a != b
    assert a != "abc"
    assert pickle.loads(pickle.dumps(a)) == a
    assert repr(a) == "(1, 2, 3)"
    assert repr(Vector((1,))) == "(1,)"
    with pytest.raises(IndexError):
        a[3]
    with pytest.raises(TypeError):
        a[0] = 2


def test_an_inner_product_is_rounded_once() -> None:
    big = Vector((1e16, 1e16, 1.0))
    assert big.dot(Vector((1.0, 1.0, -1.0))) == 1.0
    almost = Vector((1 + 2.0**-52, 1.0))
    assert almost.dot(almost) == 2.0**-51 + 2.0**-104


@pytest.mark.parametrize("coordinates", [(), (nan,), (inf, 0), (1e101,), (0, -1e101)])
def test_what_is_no_coordinate_is_refused(coordinates: tuple[float, ...]) -> None:
    with pytest.raises(UsageError, match="coordinate"):
        Vector(coordinates)


# -- Spaces


@pytest.mark.parametrize("n", [0, -1, 65, 2.0, "3", True, None])
def test_a_space_has_a_number_of_dimensions(n: Any) -> None:
    with pytest.raises(ConfigurationError, match="dimensions"):
        Minkowski(n)


def test_spaces_are_values_and_make_points() -> None:
    assert Minkowski(3) == Minkowski(3) != Minkowski(4)
    assert hash(Minkowski(3)) == hash(Minkowski(3))
    assert repr(Minkowski(3)) == "Minkowski(3)"
    assert Minkowski(3).point(1, 2, 3) == Minkowski(3).point((1, 2, 3)) == (1, 2, 3)
    assert Minkowski(1).point(5) == (5,)
    for wrong in ((1, 2), (1, 2, 3, 4), ("a", "b", "c"), (None,)):
        with pytest.raises(UsageError):
            Minkowski(3).point(*wrong)


def test_past_future_and_elsewhere() -> None:
    space = Minkowski(3)
    here = (0, 0, 0)
    assert space.is_future((5, 3, 3.9), here)
    assert not space.is_future((5, 3, 4), here)  # On the cone.
    assert space.can_reach((5, 3, 4), here)
    assert space.can_reach(here, here)
    assert not space.can_reach((5, 3, 4.0000001), here)
    assert not space.can_reach((-5, 3, 4), here)
    assert not space.is_future((-5, 0, 0), here)
    assert space.is_past((-5, 0, 0), here)
    assert space.is_spacelike((5, 3, 4.0000001), here)
    assert not space.is_spacelike((5, 3, 4), here)
    assert not space.is_spacelike((-5, 3, 3), here)
    assert Minkowski(1).can_reach((1,), (1,))
    assert not Minkowski(1).can_reach((1,), (1 + 1e-15,))


def exact_sign(one: Any, other: Any) -> int:
    apart = [Fraction(x) - Fraction(y) for x, y in zip(one, other, strict=True)]
    interval = apart[0] ** 2 - sum((each**2 for each in apart[1:]), Fraction(0))
    return (interval > 0) - (interval < 0)


@given(st.integers(0, 2**32))
@settings(max_examples=400)
def test_signs_of_intervals_are_exact_also_next_to_the_light_cone(seed: int) -> None:
    random = Random(seed)
    n = random.randrange(1, 6)
    size = 10 ** random.uniform(-30, 60)
    one = [random.uniform(-size, size) for _ in range(n)]
    across = [random.choice((0.0, random.uniform(-size, size))) for _ in range(n - 1)]
    length = sqrt(sum(each * each for each in across))
    other = [one[0] + length, *(x + each for x, each in zip(one[1:], across, strict=True))]
    other[0] += random.randrange(-3, 4) * ulp(other[0])
    assert sign_of_interval(other, one) == sign_of_interval(one, other) == exact_sign(other, one)


def test_signs_of_tiny_intervals_are_exact() -> None:
    tiny = sqrt(1.45 * 5e-324), sqrt(0.6 * 5e-324), sqrt(0.6 * 5e-324)
    assert sign_of_interval(tiny, (0, 0, 0)) == exact_sign(tiny, (0, 0, 0))


# -- Velocities


def test_ordinary_velocities_become_4_velocities() -> None:
    assert Minkowski(4).velocity(0.6, 0, 0) == (1.25, 0.75, 0, 0)
    assert Minkowski(1).velocity() == (1,)
    for wrong in ((), (0.1,), (0.1, 0.2, 0.3)):
        with pytest.raises(UsageError, match="isn't a velocity"):
            Minkowski(3).velocity(*wrong)


@given(st.integers(0, 2**32))
def test_velocities_are_of_unit_length(seed: int) -> None:
    random = Random(seed)
    n = random.randrange(2, 6)
    velocity = drawn_velocity(random, n, 10 ** random.uniform(0, 5.99))
    # V₁ is rounded, and with it V·V by 2 V₁ times half of its last place, and as much for the sum it comes from.
    assert abs(velocity.dot(velocity) - 1.0) <= 4 * velocity[0] * ulp(velocity[0])
    speeds = [each / velocity[0] for each in velocity][1:]
    assert Minkowski(n).velocity(*speeds)[0] == pytest.approx(velocity[0], rel=1e-2)


@pytest.mark.parametrize(
    ("velocity", "problem"),
    [
        ((1.0, 2.0), "light"),
        ((1.0, 1.0), "light"),
        ((1e5, 1e5 + 1e-5), "light"),
        ((1e6, 1e6 + 4e-4), "light"),
        ((2.0, 0.0), "unit length"),
        ((1.25, 0.74), "unit length"),
        ((-1.0, 0.0), "future"),
        ((0.0, 0.0), "future"),
        ((2e6, sqrt(4e12 - 1)), "speed of light"),
        ((1.0, 0.0, 0.0), "3 coordinates"),
        ((1.0,), "1 coordinate"),
        ("fast", "velocity"),
        (None, "velocity"),
        ((nan, 0.0), "nan"),
    ],
)
def test_what_is_no_4_velocity_is_refused(velocity: Any, problem: str) -> None:
    with pytest.raises(UsageError, match=problem):
        Minkowski(2).as_velocity(velocity)


@pytest.mark.parametrize("speeds", [(1.0, 0.0), (0.8, 0.7), (-2.0, 0.0), (1 - 1e-14, 0.0), (nan, 0.0), (inf, 0.0)])
def test_speeds_of_light_and_more_are_refused(speeds: tuple[float, float]) -> None:
    with pytest.raises(UsageError):
        Minkowski(3).velocity(*speeds)


# -- Fields


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"R": (-1, 0)}, "negative"),
        ({"R": (-1e-300, 0)}, "negative"),
        ({"R": (1, 2)}, "faster than light"),
        ({"R": (0, 1e-9)}, "faster than light"),
        ({"c": -1}, "c is -1"),
        ({"c": nan}, "c is nan"),
        ({"c": inf}, "c is inf"),
        ({"R": 3}, "R is 3"),
        ({"R": "ab"}, "R"),
        ({"R": ()}, "R"),
        ({"R": (nan, 0)}, "nan"),
    ],
)
def test_fields_that_cannot_be_are_refused(options: dict[str, Any], problem: str) -> None:
    with pytest.raises(UsageError, match=problem):
        LambdaField(**options)


def test_a_field_belongs_to_a_space() -> None:
    with pytest.raises(ConfigurationError, match="3 coordinates"):
        LambdaField(R=(1, 0, 0)).of(2)
    assert LambdaField(R=(1, 0)).of(2).R == (1, 0)
    assert LambdaField().of(5).R is None


def test_fields_are_values() -> None:
    field = LambdaField(R=(2, 1), c=0.25)
    back = pickle.loads(pickle.dumps(field))
    assert (back.R, back.c) == (field.R, field.c) == ((2, 1), 0.25)
    assert field.lookahead == 2 + sqrt(1.25)
    assert LambdaField(c=4).lookahead == 2
    assert LambdaField().lookahead == 0
    assert LambdaField(R=(1, 1)).R == (1, 1)  # Light-like is as fast as light, and no faster.
    assert LambdaField(c=COORDINATE_MAX).c == COORDINATE_MAX
