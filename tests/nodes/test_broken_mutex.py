"""The example of a bug: rare, found by the properties, and not there in the algorithm that it is derived from."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.nodes.trying import tried
from worldline.nodes import Violation
from worldline.nodes.algorithm import Algorithm
from worldline.nodes.algorithms import ricart_agrawala
from worldline.nodes.trial import load_file

FILE = Path(__file__).parent.parent.parent / "examples" / "broken_mutex" / "broken_mutex.py"
FIRST = 26  # The first seed that fails; the example's README names it.


@pytest.fixture(scope="module")
def broken() -> Algorithm:
    return load_file(FILE)


def test_the_properties_find_it(broken: Algorithm) -> None:
    with pytest.raises(Violation, match="property failed: at most one node is inside") as caught:
        tried(broken, FIRST)
    assert caught.value.participant == "node 1"


def test_it_takes_some_seeds(broken: Algorithm) -> None:
    for seed in range(FIRST):
        tried(broken, seed)
    assert f"first seed that fails is {FIRST}," in (FILE.parent / "README.md").read_text()


def test_the_correct_algorithm_passes(broken: Algorithm) -> None:
    for seed in range(200):
        tried(ricart_agrawala.model, seed, broken.topology)


def test_it_is_the_correct_algorithm_but_for_one_method(broken: Algorithm) -> None:
    assert broken.node.__mro__[1] is ricart_agrawala.RicartAgrawala
    assert [name for name in vars(broken.node) if not name.startswith("__")] == ["judge"]
