"""Schedules as files: what is saved is what is loaded, and what isn't a schedule is refused with its path."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from worldline.model.errors import ConfigurationError, UsageError
from worldline.nodes import Topology, Violation
from worldline.nodes.algorithms import find
from worldline.nodes.faults import Fault, draw_faults
from worldline.nodes.trace import Script
from worldline.nodes.trial import Trial, load, load_file, load_trial, save
from worldline.search.searching import SAVED_FORMAT

MINE = """
from worldline.nodes import Node, Start

class Mine(Node):
    '''Takes parameters of all kinds.'''

    def __init__(self, num_nodes, id, num_neighbors, send, *, count: int = 2, share: float = 0.5, name: str = "a",
                 is_loud: bool = False):
        super().__init__(num_nodes, id, num_neighbors, send)
        self.given = (count, share, name, is_loud)

    def execute(self, event):
        if isinstance(event, Start):
            self.broadcast(self.given)
            self.broadcast(self.random.random())
"""


@pytest.fixture(scope="module")
def mine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("mine") / "mine_scheduled.py"
    file.write_text(MINE)
    return file


# --- There and back ---

TIMES = st.integers(0, 2**60 - 1)
DELAYS = st.lists(st.integers(1, 10**12), max_size=2).map(tuple)
MESSAGES = st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(0, 50)).filter(lambda key: key[0] != key[1])
PARAMETERS = st.fixed_dictionaries(
    {},
    optional={
        "count": st.integers(-(2**100), 2**100),
        "share": st.floats(allow_nan=False, allow_infinity=False),
        "name": st.text(st.characters(exclude_categories=["Cs"]), max_size=8),
        "is_loud": st.booleans(),
    },
)


@st.composite
def topologies(draw: st.DrawFn) -> Topology:
    edges = draw(st.permutations([(a, b) for b in range(4) for a in range(b)]))
    return Topology.of_edges(4, [(*edge, draw(st.integers(0, 10**12))) for edge in edges[: draw(st.integers(1, 6))]])


@st.composite
def trials(draw: st.DrawFn) -> dict[str, Any]:
    graph = draw(topologies())
    kinds = {"crash": 1, "partition": 1, "link": 2}
    faults = draw_faults(kinds, graph, draw(st.integers(100, 10**12)), draw(st.integers(0, 99)))
    scripts = st.builds(Script, st.integers(1, 10**12), st.dictionaries(MESSAGES, DELAYS, max_size=5))
    return {
        "topology": graph,
        "seed": draw(st.integers(-(2**63), 2**63 - 1)),
        "parameters": draw(PARAMETERS),
        "faults": faults,
        "latency": draw(st.sampled_from([None, "5ms", "uniform(1ms, 9ms)", "exponential(1ms, 3ms)"])),
        "fifo": draw(st.booleans()),
        "kinds": draw(st.sampled_from([{}, {"loss": 0.1}, {"loss": 1 / 3}])),
        "until": draw(st.none() | TIMES),
        "script": draw(st.none() | scripts),
    }


def facts(trial: Trial) -> dict[str, Any]:
    """Return all that a trial says, in a form that can be compared."""
    graph, script = trial.graph(), trial.script
    return {
        **structs.asdict(trial),
        "topology": (graph.neighbors, graph.weights),
        "script": script and (script.usual, script.exceptions),
    }


@given(options=trials())
def test_every_field_comes_back(options: dict[str, Any], mine: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.getbasetemp() / "there-and-back.json"
    trial = Trial(algorithm=load_file(mine), **options)
    save(trial, path, file=mine)
    loaded, file = load(path, mine)
    assert facts(loaded) == facts(trial)
    assert file == mine
    text = path.read_bytes()
    save(loaded, path, file=file)
    assert path.read_bytes() == text


@pytest.mark.parametrize("number", [float("inf"), float("-inf")])
def test_numbers_without_an_end_come_back(number: float, mine: Path, tmp_path: Path) -> None:
    save(Trial(algorithm=load_file(mine), parameters={"share": number}), tmp_path / "it.json", file=mine)
    assert load(tmp_path / "it.json", mine)[0].parameters == {"share": number}


def test_what_a_seed_draws_is_written_down(tmp_path: Path) -> None:
    trial = Trial(algorithm=find("raft"), seed=3, kinds={"crash": 2, "partition": 1, "loss": 0.05}, until=3 * 10**9)
    save(trial, tmp_path / "it.json")
    loaded, file = load(tmp_path / "it.json")
    assert file is None
    assert loaded.faults == trial.pinned().faults
    assert loaded.kinds == {"loss": 0.05}
    assert loaded.run() == trial.run()


def test_a_file_is_text_that_people_can_read_and_change(tmp_path: Path) -> None:
    script = Script(5 * 10**6, {(0, 1, 0): (10**9, 2), (2, 1, 4): ()})
    faults = (Fault(1_500_000_000, "crash", (1,)), Fault(2 * 10**9, "recover", (1,)))
    trial = Trial(algorithm=find("bellman-ford"), seed=2, script=script, faults=faults, until=10**10)
    save(trial, tmp_path / "it.json")
    text = (tmp_path / "it.json").read_text()
    assert text.endswith("}\n")
    assert "\n" in text.strip()
    assert json.loads(text) == {
        "algorithm": "bellman-ford",
        "seed": 2,
        "neighbors": [[1, 2], [0, 2], [0, 1]],
        "until": "10s",
        "usual": "5ms",
        "messages": [
            {"sender": 0, "receiver": 1, "number": 1, "takes": ["1s", "2ns"]},
            {"sender": 2, "receiver": 1, "number": 5, "takes": []},
        ],
        "faults": ["1.5s crash 1", "2s recover 1"],
    } | ({"format": SAVED_FORMAT} if "format" in json.loads(text) else {})


# --- Where the algorithm is ---


def test_a_schedule_runs_no_file_that_it_names_alone(tmp_path: Path) -> None:
    """It is data, and may come from a stranger."""
    (tmp_path / "own_alone.py").write_text(MINE)
    save(Trial(algorithm=load_file(tmp_path / "own_alone.py")), tmp_path / "it.json", file=tmp_path / "own_alone.py")
    (tmp_path / "own_alone.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\n{MINE}")
    with pytest.raises(
        ConfigurationError, match=r"runs only one that you name \(if you trust .*: --file .*own_alone.py"
    ):
        load(tmp_path / "it.json")
    assert not (tmp_path / "ran").exists()
    save(Trial(algorithm=find("bellman-ford")), tmp_path / "ours.json")
    with pytest.raises(ConfigurationError, match=r"is of 'bellman-ford', not of a file \(leave out --file\)"):
        load(tmp_path / "ours.json", tmp_path / "own_alone.py")


def test_an_algorithm_can_be_another_name_of_a_file(tmp_path: Path) -> None:
    other = "other = Algorithm(name='other', node=Mine, topology='ring:5')"
    (tmp_path / "two.py").write_text(f"{MINE}\nfrom worldline.nodes.algorithm import Algorithm\n{other}\n")
    named = Path(f"{tmp_path / 'two.py'}:other")
    trial = load_trial(named, 3)
    assert (trial.algorithm.name, trial.seed) == ("other", 3)
    save(trial, tmp_path / "it.json", file=named)
    assert load(tmp_path / "it.json", named)[0].algorithm.name == "other"


def test_an_algorithm_beside_the_schedule_is_found(mine: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "there" / "code").mkdir(parents=True)
    (tmp_path / "there" / "code" / "own_beside.py").write_text(MINE)
    monkeypatch.chdir(tmp_path / "there")
    own = Path("code/own_beside.py")
    trial = Trial(algorithm=load_file(own), seed=4)
    save(trial, Path("it.json"), file=own)
    assert load(Path("it.json"), own)[0].run() == trial.run()
    monkeypatch.chdir(mine.parent)
    there = tmp_path / "there" / "code" / "own_beside.py"
    loaded, file = load(tmp_path / "there" / "it.json", there)
    assert loaded.run() == trial.run()
    assert file is not None
    assert file.samefile(tmp_path / "there" / "code" / "own_beside.py")
    (tmp_path / "there").rename(tmp_path / "moved")
    moved = tmp_path / "moved" / "code" / "own_beside.py"
    assert load(tmp_path / "moved" / "it.json", moved)[0].run() == trial.run()


def test_an_algorithm_that_is_gone_is_named(mine: Path, tmp_path: Path) -> None:
    save(Trial(algorithm=load_file(mine)), tmp_path / "it.json", file=tmp_path / "gone.py")
    with pytest.raises(ConfigurationError, match=r"it\.json: there is no file .*gone\.py"):
        load(tmp_path / "it.json", tmp_path / "gone.py")


# --- What is refused ---

GOOD: dict[str, Any] = {
    "format": 1,
    "algorithm": "bellman-ford",
    "seed": 1,
    "neighbors": [[1, 2], [0, 2], [0, 1]],
    "usual": "5ms",
    "messages": [{"sender": 0, "receiver": 1, "number": 1, "takes": ["1s"]}],
    "faults": ["1s crash 1"],
}


def refused(path: Path, text: str | bytes) -> str:
    """Load what is wrong, and return the words."""
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(UsageError) as caught:
        load(path)
    return str(caught.value)


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "null", "3", '"x"', "\xff\xfe", b"\xff\xfe{}", '{"seed": "one"}', "{}\n{}", b"\x00" * 10],
)
def test_what_is_no_schedule_is_refused(text: str | bytes, tmp_path: Path) -> None:
    assert refused(tmp_path / "it.json", text).startswith(f"{tmp_path / 'it.json'} isn't a schedule: ")


@pytest.mark.parametrize(
    "change",
    [
        {"seed": 1.5},
        {"seed": None},
        {"parameters": [1]},
        {"neighbors": "ring:3"},
        {"neighbors": [[1.5], [0]]},
        {"weights": [[0, 1]]},
        {"fifo": "yes"},
        {"loss": "much"},
        {"until": 5},
        {"messages": [{"sender": 0, "receiver": 1, "number": 1}]},
        {"messages": [{"sender": 0, "receiver": 1, "number": 1, "takes": "1s"}]},
        {"faults": "1s crash 1"},
        {"faults": [1]},
    ],
)
def test_types_that_do_not_fit_are_refused(change: dict[str, Any], tmp_path: Path) -> None:
    words = refused(tmp_path / "it.json", json.dumps({**GOOD, **change}))
    assert words.startswith(f"{tmp_path / 'it.json'} isn't a schedule: ")
    assert f"$.{next(iter(change))}" in words


@pytest.mark.parametrize("number", [0, 2, -1])
def test_another_format_is_refused(number: int, tmp_path: Path) -> None:
    words = refused(tmp_path / "it.json", json.dumps({**GOOD, "format": number}))
    assert words == f"{tmp_path / 'it.json'} has the format {number} (this version reads 1)"


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    for path in (tmp_path / "nowhere.json", tmp_path / "no" / "folder.json", tmp_path):
        with pytest.raises(ConfigurationError) as caught:
            load(path)
        assert str(caught.value).startswith(f"{path} can't be read: ")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        pytest.param({"algorithm": "bellmann-ford"}, "did you mean bellman-ford?"),
        pytest.param({"algorithm": ""}, "there is no algorithm"),
        pytest.param({"neighbors": []}, "number of nodes"),
        pytest.param({"neighbors": [[1, 2], [0], [0], [7]]}, "7"),
        pytest.param({"neighbors": [[1], [0, 2], [0, 1]]}, "links go both ways"),
        pytest.param({"weights": [[0, 9, 1]]}, "no such edge"),
        pytest.param({"weights": [[0, 1, -1]]}, "isn't a weight"),
        pytest.param({"usual": "soon"}, "soon"),
        pytest.param({"until": "soon"}, "soon"),
        pytest.param({"faults": ["1s explode 1"]}, "isn't a fault"),
        pytest.param({"faults": ["1s crash 3"]}, "there is no node 3"),
        pytest.param({"faults": ["1s down 0 9"]}, "there is no node 9"),
        pytest.param({"latency": "soon"}, "isn't a latency"),
        pytest.param({"loss": 1.5}, "'loss=1.5' can't be drawn"),
        pytest.param({"seed": 2**70}, "64 bits"),
        pytest.param({"parameters": {"speed": 3}}, "has no parameter 'speed'"),
        pytest.param({"usual": "0s"}, "latency"),
        pytest.param({"usual": ""}, "usual"),
        *(
            ({"messages": [{**GOOD["messages"][0], **wrong}]}, word)
            for wrong, word in (
                ({"takes": ["soon"]}, "soon"),
                ({"takes": ["0s"]}, "latency"),
                ({"sender": 3}, "there is no 3"),
                ({"receiver": -1}, "there is no -1"),
                ({"receiver": 0}, "there is no message 1 from 0 to 0"),
                ({"number": 0}, "there is no message 0 from 0 to 1"),
            )
        ),
        pytest.param({"mesages": []}, "mesages"),
    ],
)
def test_what_cannot_be_run_is_refused_with_the_path(change: dict[str, Any], words: str, tmp_path: Path) -> None:
    text = refused(tmp_path / "it.json", json.dumps({**GOOD, **change}))
    assert text.startswith(str(tmp_path / "it.json"))
    assert words in text


def test_what_cannot_be_written_is_refused_and_leaves_nothing(tmp_path: Path) -> None:
    trial = Trial(algorithm=find("bellman-ford"))
    for path in (tmp_path, tmp_path / "no" / "it.json"):
        with pytest.raises(UsageError, match=f"{path} can't be written: "):
            save(trial, path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("value", ["\ud800", object(), {1j}])
def test_parameters_that_cannot_be_written_are_refused_and_leave_nothing(
    value: Any, mine: Path, tmp_path: Path
) -> None:
    path = tmp_path / "it.json"
    path.write_text("as it was")
    with pytest.raises(UsageError, match="parameters that can't be written down"):
        save(Trial(algorithm=load_file(mine), parameters={"name": value}), path, file=mine)
    assert path.read_text() == "as it was"


def test_a_trial_that_cannot_be_run_is_not_written(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="isn't a topology"):
        save(Trial(algorithm=find("bellman-ford"), topology="blob:3"), tmp_path / "it.json")
    assert list(tmp_path.iterdir()) == []


def test_a_failure_is_the_same_after_loading(tmp_path: Path) -> None:
    file = Path(__file__).parent.parent.parent / "examples" / "broken_mutex" / "broken_mutex.py"
    trial = Trial(algorithm=load_file(file), seed=26)
    save(trial, tmp_path / "it.json", file=file)
    loaded, _ = load(tmp_path / "it.json", file)
    here, there = trial.run(), loaded.run()
    assert isinstance(there.failure, Violation)
    assert str(here.failure) == str(there.failure)
    assert (here.now, here.events, here.digest) == (there.now, there.events, there.digest)


def test_properties_that_were_left_out_stay_left_out(tmp_path: Path) -> None:
    raft = find("raft")
    for algorithm, count in ((raft, len(raft.properties)), (structs.replace(raft, properties=()), 0)):
        save(Trial(algorithm=algorithm), tmp_path / "it.json")
        assert len(load(tmp_path / "it.json")[0].algorithm.properties) == count
