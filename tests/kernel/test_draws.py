"""The draws of entities: exactly the numbers of the model's streams, compiled or not."""

from __future__ import annotations

import copy
import pickle
import random
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.builds import source_of
from worldline import builds
from worldline.kernel import draws as used
from worldline.model import ConfigurationError, Stream, UsageError

MODULES = {"plain": source_of("worldline.kernel.draws")} | ({} if builds.reason else {"compiled": used})

Draws = Callable[..., Any]
Call = tuple[str, tuple[Any, ...]]


@pytest.fixture(params=MODULES)
def draws(request: pytest.FixtureRequest) -> Draws:
    """The class of each build that there is."""
    made: Draws = MODULES[request.param].Draws
    return made


def outcome(source: Any, call: Call) -> tuple[str, Any]:
    """Return what a call gives, with its type, or the kind of error that it raises."""
    method, arguments = call
    if method == "shuffle":
        shuffled = list(range(arguments[0]))
        source.shuffle(shuffled)
        return "list", shuffled
    try:
        value = getattr(source, method)(*arguments)
    except Exception as error:
        return "raises", type(error)
    return type(value).__name__, repr(value)  # Every bit of a float shows, and a nan is itself.


INTS = st.integers(1, 2**16) | st.sampled_from(
    [1, 2, 3, 2**31, 2**32, 2**62, 2**63 - 1, 2**63, 2**64, 2**64 + 1, 2**200]
)
SIGNED = st.integers(-(2**20), 2**20)
FLOATS = st.floats(-1e9, 1e9)
POSITIVE = st.floats(1e-3, 1e3)
CALLS = st.one_of(
    st.tuples(st.just("random"), st.just(())),
    st.tuples(st.just("getrandbits"), st.tuples(st.integers(-2, 200))),
    st.tuples(st.just("randbytes"), st.tuples(st.integers(0, 40))),
    st.tuples(st.just("randrange"), st.tuples(INTS | st.integers(-3, 0))),
    st.tuples(st.just("randrange"), st.tuples(SIGNED, SIGNED)),
    st.tuples(st.just("randrange"), st.tuples(SIGNED, SIGNED, st.integers(-5, 5))),
    st.tuples(st.just("randint"), st.tuples(SIGNED, SIGNED | INTS)),
    st.tuples(st.just("choice"), st.tuples(st.text(max_size=20))),
    st.tuples(st.just("choices"), st.tuples(st.text(min_size=1, max_size=20))),
    st.tuples(st.just("sample"), st.tuples(st.just(range(30)), st.integers(0, 31))),
    st.tuples(st.just("shuffle"), st.tuples(st.integers(0, 30))),
    st.tuples(st.just("uniform"), st.tuples(FLOATS | SIGNED, FLOATS | SIGNED)),
    st.tuples(st.just("expovariate"), st.tuples(POSITIVE | st.integers(1, 1000))),
    st.tuples(st.just("gauss"), st.tuples(FLOATS, POSITIVE)),
    st.tuples(st.just("normalvariate"), st.tuples(FLOATS, POSITIVE)),
    st.tuples(st.just("lognormvariate"), st.tuples(st.floats(-5, 5), st.floats(0.1, 3))),
    st.tuples(st.just("triangular"), st.tuples(FLOATS, FLOATS)),
    st.tuples(st.just("gammavariate"), st.tuples(POSITIVE, POSITIVE)),
    st.tuples(st.just("betavariate"), st.tuples(POSITIVE, POSITIVE)),
    st.tuples(st.just("paretovariate"), st.tuples(st.floats(0.1, 10))),
    st.tuples(st.just("weibullvariate"), st.tuples(POSITIVE, st.floats(0.1, 10))),
    st.tuples(st.just("vonmisesvariate"), st.tuples(st.floats(0, 6), st.floats(0, 10))),
)
SEEDS = st.integers(-(2**63), 2**63 - 1)
NAMES = st.lists(st.text(max_size=4), max_size=3)


@given(seed=SEEDS, names=NAMES, calls=st.lists(CALLS, min_size=1, max_size=12))
@example(seed=0, names=["a"], calls=[("gauss", (0.0, 1.0)), ("random", ()), ("gauss", (0.0, 1.0)), ("random", ())])
def test_every_draw_is_that_of_the_stream_of_the_same_names(seed: int, names: list[str], calls: list[Call]) -> None:
    stream = Stream(seed, *names)
    expected = [outcome(stream, call) for call in calls]
    for module in MODULES:
        made = MODULES[module].Draws(seed, *names)
        assert [outcome(made, call) for call in calls] == expected, module


def test_draws_have_the_methods_of_the_standard_library(draws: Draws) -> None:
    methods = [name for name in dir(random.Random) if not name.startswith("_") and name != "VERSION"]
    assert [name for name in methods if not callable(getattr(draws(0), name, None))] == []


def test_a_compiled_division_by_zero_is_one(draws: Draws) -> None:
    with pytest.raises(ZeroDivisionError):
        draws(0).expovariate(0)


@given(a=st.integers(-(2**62), 2**62), b=st.integers(-(2**62), 2**62))
@example(a=2**53 + 1, b=2**53 + 3)
def test_uniform_draws_between_large_whole_numbers_are_those_of_the_stream(a: int, b: int) -> None:
    # Times are whole numbers, and beyond 104 days they have more than 53 bits.
    stream = Stream(0, "x")
    expected = [stream.uniform(a, b) for _ in range(20)]
    made = MODULES["plain"].Draws(0, "x")
    assert [made.uniform(a, b) for _ in range(20)] == expected


@pytest.mark.skipif("compiled" not in MODULES, reason="there is no compiled build")
def test_compiled_uniform_draws_between_large_whole_numbers_are_those_of_the_stream() -> None:
    stream, made = Stream(0, "x"), used.Draws(0, "x")
    a, b = 2**53 + 1, 2**53 + 3
    assert [made.uniform(a, b) for _ in range(20)] == [stream.uniform(a, b) for _ in range(20)]


@given(st.integers(0, 2**50), st.integers(0, 20))
def test_exponential_draws_are_whole_and_those_of_expovariate_but_for_rounding(mean: int, skipped: int) -> None:
    drawn = []
    for module in MODULES:
        made, stream = MODULES[module].Draws(0, "x"), Stream(0, "x")
        for _ in range(skipped):
            made.random(), stream.random()
        drawn.append([made.exponential(mean) for _ in range(5)])
        expected = [stream.expovariate(1.0) * mean for _ in range(5)]
        assert all(type(value) is int for value in drawn[-1])
        assert drawn[-1] == pytest.approx(expected, rel=1e-12, abs=0.51)
    assert all(each == drawn[0] for each in drawn)


def test_the_mean_of_exponential_draws_can_be_text(draws: Draws) -> None:
    assert draws(1, "a").exponential("2us") == draws(1, "a").exponential(2_000)
    with pytest.raises(ConfigurationError, match="'soon' isn't a mean"):
        draws(1, "a").exponential("soon")


@pytest.mark.parametrize("mean", [-5, -5.0, float("nan"), float("inf"), None, [1], "-5ms"])
def test_what_isnt_a_mean_is_refused_by_entities_and_streams_alike(draws: Draws, mean: Any) -> None:
    for source in (draws(1, "a"), Stream(1, "a")):
        with pytest.raises(ConfigurationError, match=r"isn't a mean \(.*write"):
            source.exponential(mean)


def test_exponential_draws_of_any_mean_are_the_same_in_both_builds() -> None:
    drawn = []
    for module in MODULES:
        made = MODULES[module].Draws(0, "x")
        drawn.append([made.exponential(2**60) for _ in range(2_000)])
    assert all(each == drawn[0] for each in drawn)
    assert max(drawn[0]) > 2**60


# -- Journeys

USES: list[Callable[[Any], Any]] = [
    lambda source: source.random(),
    lambda source: source.gauss(0, 1),
    lambda source: source.getrandbits(200),
    lambda source: source.sample(range(50), 7),
]
JOURNEYS: list[Callable[[Any], Any]] = [
    copy.copy,
    copy.deepcopy,
    *(lambda source, to=to: pickle.loads(pickle.dumps(source, to)) for to in range(pickle.HIGHEST_PROTOCOL + 1)),
]


@pytest.mark.parametrize("use", USES)
def test_draws_go_on_after_a_journey_where_they_were(draws: Draws, use: Callable[[Any], Any]) -> None:
    for journey in JOURNEYS:
        # gauss makes its draws in pairs: the second one of a pair has to travel too.
        original = draws(2**63 - 1, "ship")
        use(original)
        arrived = journey(original)
        assert type(arrived) is type(original)
        expected = [original.gauss(0, 1), original.random(), original.getrandbits(70)]
        assert [arrived.gauss(0, 1), arrived.random(), arrived.getrandbits(70)] == expected


def test_draws_refuse_to_be_seeded(draws: Draws) -> None:
    made, untouched = draws(0, "x"), draws(0, "x")
    for seeds in ((), (5,), (None,)):
        with pytest.raises(UsageError, match="the simulation's seed and the name are the seed"):
            made.seed(*seeds)
    assert made.random() == untouched.random()


def test_other_seeds_and_names_give_other_draws(draws: Draws) -> None:
    named = [(0,), (1,), (-1,), (0, "a"), (0, "b"), (0, "a", "b"), (0, "ab"), (0, "b", "a")]
    assert len({draws(*each).getrandbits(64) for each in named}) == len(named)


def test_draws_are_small(draws: Draws) -> None:
    # That is why there are two kinds of them: an entity's draws must not be larger than the entity.
    assert draws(0, "x").__sizeof__() <= 64
    assert Stream(0, "x").__sizeof__() > 1_000


def test_mirrored_draws_are_those_of_a_mirrored_stream() -> None:
    drawn, stream = used.Draws(-8, "wind"), Stream(-8, "wind")
    for _ in range(5):
        assert (drawn.random(), drawn.exponential(1_000_000.0), drawn.randrange(10)) == (
            *(stream.random(), stream.exponential(1_000_000.0), stream.randrange(10)),
        )
    state = drawn.getstate()
    expected = drawn.random()
    drawn.setstate(state)
    assert drawn.random() == expected == stream.random()
