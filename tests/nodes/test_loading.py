"""Users' files: what is found in them, and plain words for what is wrong with them."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from tests.files.files import nothing_stays, write  # noqa: F401 - A fixture.
from worldline.model.errors import ConfigurationError
from worldline.nodes.trial import Trial, load_file, load_trial

NODE = """
from worldline.nodes import Node

class Mine(Node):
    '''Says that it is mine.'''

    def execute(self, event):
        self.log("mine")
"""
ALGORITHM = """
from worldline.nodes.algorithm import Algorithm
model = Algorithm(name="mine", node=Mine, topology="ring:4")
"""


def test_a_single_class_of_nodes_is_the_algorithm(tmp_path: Path) -> None:
    found = load_file(write(tmp_path, NODE, "my_own.py"))
    assert (found.name, found.node.__name__, found.topology) == ("my_own", "Mine", "clique:3")
    assert found.summary == "Says that it is mine."
    assert Trial(algorithm=found).run().failure is None


def test_an_algorithm_is_taken_as_it_is(tmp_path: Path) -> None:
    more = NODE + "class Other(Mine):\n    pass\n" + ALGORITHM
    found = load_file(write(tmp_path, more))
    assert (found.name, found.node.__name__, found.topology) == ("mine", "Mine", "ring:4")


def test_a_trial_is_taken_with_all_that_it_says(tmp_path: Path) -> None:
    trial = "from worldline.nodes import Trial\nmodel = Trial(algorithm=model, seed=7, latency='5ms')\n"
    file = write(tmp_path, NODE + ALGORITHM + trial)
    found = load_trial(file)
    assert (found.algorithm.name, found.seed, found.latency) == ("mine", 7, "5ms")
    assert load_trial(file, seed=3).seed == 3
    assert load_file(file) == found.algorithm


def test_a_function_is_given_the_seed(tmp_path: Path) -> None:
    made = "Trial(algorithm=Algorithm(name='mine', node=Mine, topology=f'ring:{seed}'), seed=seed)"
    function = f"from worldline.nodes import Trial\ndef model(*, seed=5):\n    return {made}\n"
    file = write(tmp_path, NODE + ALGORITHM + function)
    assert [(each.seed, each.algorithm.topology) for each in (load_trial(file), load_trial(file, 4))] == [
        (5, "ring:5"),
        (4, "ring:4"),
    ]


def test_classes_that_are_only_imported_are_not_its_own(tmp_path: Path) -> None:
    found = load_file(write(tmp_path, f"from worldline.nodes.algorithms.gossip import Gossip\n{NODE}"))
    assert found.node.__name__ == "Mine"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("x = 1", "defines no model (write model = Algorithm("),
        ("", "defines no model"),
        (NODE + NODE.replace("Mine", "Other"), "defines 2 classes of nodes, Mine, Other, but no model (write model = "),
        ("from worldline.nodes.algorithms.gossip import Gossip", "defines no model"),
        (f"{NODE}\nmodel = Mine", "its model is the class Mine"),
        (f"{NODE}\nALGORITHM = 1", "defines ALGORITHM, but no model (call it model)"),
        ("def model(): pass", "what its model returns is None"),
    ],
)
def test_what_holds_no_algorithm_is_refused(tmp_path: Path, text: str, words: str) -> None:
    file = write(tmp_path, text)
    with pytest.raises(ConfigurationError) as caught:
        load_file(file)
    assert str(file) in str(caught.value)
    assert words in str(caught.value)


def test_a_class_that_lies_beside_it_can_be_its_node(tmp_path: Path) -> None:
    write(tmp_path, NODE, "lies_beside.py")
    found = load_file(write(tmp_path, f"from lies_beside import Mine\n{ALGORITHM}"))
    assert found.node.__name__ == "Mine"


def test_it_can_be_sent_to_other_processes(tmp_path: Path) -> None:
    found = load_file(write(tmp_path, NODE, "random.py"))
    assert found.name == "random"
    assert pickle.loads(pickle.dumps(found)).node is found.node
