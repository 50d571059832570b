"""Two diagrams give the same trajectories, to the last bit, wherever they run."""

from __future__ import annotations

import threading
from random import Random

import pytest

pytest.importorskip("pydrake", reason="Drake isn't installed; it needs Python 3.12 or newer")

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.metasim.executors import in_one_process, in_processes, in_threads
from tests.metasim.half_process import CASES
from tests.metasim.halves import WAYS, Pair, continuous, controller, discrete, multibody
from tests.metasim.oracle import by_hand

pytestmark = pytest.mark.usefixtures("tidy_diagrams")
UNTIL = "300ms"


# --- Against a loop by hand ---

PLANTS = {"discrete": discrete(), "multibody": multibody(), "continuous": continuous()}
DELAYS = {
    "short": ("3.7ms", "3.7ms"),
    "one step": ("10ms", "10ms"),
    "long": ("23ms", "23ms"),
    "uneven": ("23ms", "1ms"),
}


@pytest.mark.parametrize("delays", DELAYS)
@pytest.mark.parametrize("plant", PLANTS)
def test_as_by_hand(plant: str, delays: str) -> None:
    pair = Pair(PLANTS[plant], discrete() if plant == "discrete" else controller(), *DELAYS[delays])
    expected = by_hand(pair, UNTIL)
    states, digest = in_one_process(pair, UNTIL)
    assert states == expected
    assert in_threads(pair, 0.3) == (expected, digest)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("plant", PLANTS)
def test_in_whatever_way_it_publishes(plant: str, way: str) -> None:
    # Where it isn't known when it sends, it stops at more times, and a stop shows in a continuous plant. So each way is
    # compared with itself there, and with the loop by hand in discrete ones.
    pair = Pair(PLANTS[plant], discrete() if plant == "discrete" else controller(), "10ms", "10ms")
    states, digest = in_one_process(pair, UNTIL, way=way)
    assert in_threads(pair, 0.1, 0.2, 0.3, way=way) == (states, digest)
    if way in ("known", "own, known"):
        assert states == by_hand(pair, UNTIL)
    elif plant == "discrete":
        assert [dict(each) for each in states.values()] == [dict(each) for each in by_hand(pair, UNTIL).values()]


def test_nested_diagrams_are_the_same() -> None:
    pair = CASES["discrete"]
    for way in WAYS:
        assert in_one_process(pair, UNTIL, way=way, nested=True) == in_one_process(pair, UNTIL, way=way)


_MS = st.integers(1, 40).map(lambda number: f"{number * 700}us")


@settings(max_examples=10)
@given(
    forth=_MS,
    back=_MS,
    steps=st.tuples(st.sampled_from([0.001, 0.005, 0.01, 1 / 60]), st.sampled_from([0.002, 0.01])),
    multiples=st.tuples(st.integers(1, 10), st.integers(1, 7)),
    way=st.sampled_from(["known", "own, known"]),
)
def test_any_periods_and_delays(
    forth: str, back: str, steps: tuple[float, float], multiples: tuple[int, int], way: str
) -> None:
    halves = [
        discrete(step, step * multiple, turn=turn)
        for step, multiple, turn in zip(steps, multiples, (0.1, 0.2), strict=True)
    ]
    pair = Pair(*halves, forth, back)
    states, _ = in_one_process(pair, "150ms", way=way)
    assert states == by_hand(pair, "150ms")


# --- Against each other ---


@pytest.mark.parametrize("quality", [{"loss": 0.3}, {"duplication": 0.3}], ids=str)
def test_lossy_links(quality: dict[str, float]) -> None:
    pair = CASES["discrete"]
    network = pair.network(**quality)
    result = in_one_process(pair, UNTIL, network=network)
    assert result != in_one_process(pair, UNTIL)
    assert in_threads(pair, 0.3, network=network) == result


def test_jitter() -> None:
    pair = Pair(continuous(), controller(), "uniform(2ms, 20ms)", "exponential(1ms, 5ms)")
    result = in_one_process(pair, UNTIL)
    for _ in range(2):
        assert in_threads(pair, 0.3) == result


@pytest.mark.parametrize("way", ["known", "every step"])
def test_whoever_is_quicker(way: str) -> None:
    """Pauses of random lengths at random steps change nothing."""
    pair = CASES["continuous"]
    result = in_one_process(pair, UNTIL, way=way)
    random, pause = Random(1), threading.Event()
    assert in_threads(pair, 0.3, way=way, dawdle=lambda: pause.wait(random.random() * 0.003)) == result


@pytest.mark.long
@pytest.mark.once
def test_in_two_processes() -> None:
    pair = CASES["multibody"]
    states, digest = in_one_process(pair, UNTIL)
    assert states == by_hand(pair, UNTIL)
    assert in_processes("multibody", 0.1, 0.3, delays=3, PYTHONHASHSEED="5") == (states, digest)


@pytest.mark.long
@pytest.mark.once
def test_in_two_processes_that_dont_know_when_they_send() -> None:
    result = in_one_process(CASES["continuous"], UNTIL, way="own")
    assert in_processes("continuous", 0.3, way="own", delays=1, PYTHONHASHSEED="6") == result
