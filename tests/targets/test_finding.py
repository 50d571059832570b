"""Targets: what a text means, what can be said of a run of it, and plain words for what can't be run."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.files.files import nothing_stays  # noqa: F401 - A fixture.
from tests.targets.files import FEDERATION, KERNEL, MODELS, NODES, SPACETIME, write
from worldline.history.outcome import Status
from worldline.model import ConfigurationError, UsageError, link
from worldline.nodes import algorithms
from worldline.recording import Recording
from worldline.targets import Ready, RunOptions, prepare
from worldline.targets.federation import ReadyFederation
from worldline.targets.finding import found_federation


def ready(target: str, **options: object) -> Ready:
    return prepare(target, RunOptions(**options))  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", MODELS)
def test_a_file_is_what_its_model_is(kind: str, tmp_path: Path) -> None:
    found = prepare(write(tmp_path, MODELS[kind]), RunOptions())
    assert found.kind == kind
    assert found.name == ("greetings" if kind == "nodes" else "mine")
    assert found.is_main


@pytest.mark.parametrize("kind", MODELS)
def test_every_kind_is_run_and_recorded_alike(kind: str, tmp_path: Path) -> None:
    found = ready(write(tmp_path, MODELS[kind]))
    recorder = found.recorder(tmp_path / "run.mcap")
    seen: list[Status] = []
    outcome = found.run(recorder, seen.append)
    recorder.close(dropped=outcome.dropped)
    recording = Recording(tmp_path / "run.mcap")
    assert recording.outcome is not None
    assert recording.outcome.digest == outcome.digest.hex() == ready(write(tmp_path, MODELS[kind])).run().digest.hex()
    assert recording.header.federation == found.name
    assert all(isinstance(line, str) for line in found.verify(outcome))


@pytest.mark.parametrize(
    ("target", "kind", "name"),
    [
        ("raft", "nodes", "raft"),
        ("nodes:raft", "nodes", "raft"),
        ("relay", "spacetime", "relay"),
        ("spacetime:relay", "spacetime", "relay"),
    ],
)
def test_what_comes_with_worldline_has_a_name(target: str, kind: str, name: str) -> None:
    found = prepare(target, RunOptions())
    assert (found.kind, found.name) == (kind, name)


@pytest.mark.parametrize("name", algorithms.NAMES)
def test_an_algorithm_of_ours_is_a_file_like_any_other(name: str) -> None:
    file = Path(algorithms.__file__).parent / f"{name.replace('-', '_')}.py"
    found, ours = ready(str(file), until="300ms", seed=2), ready(name, until="300ms", seed=2)
    assert (found.kind, found.name) == (ours.kind, ours.name)
    assert found.run().digest == ours.run().digest


def test_a_model_may_be_a_value_or_have_another_name(tmp_path: Path) -> None:
    file = write(tmp_path, KERNEL + "\nother = model(seed=9)\n")
    assert prepare(f"{file}:other", RunOptions()).seed == 9
    assert prepare(file, RunOptions()).seed == 3
    trial = "\nfrom worldline.nodes import Trial\nother = Trial(algorithm=model, seed=5, parameters={'times': 2})\n"
    found = ready(write(tmp_path, NODES + trial, "trial.py") + ":other")
    assert found.seed == 5
    assert found.run().events == 4 + 2 * 8
    made = write(tmp_path, SPACETIME + "\nother = model()\n", "made.py")
    assert ready(f"{made}:other").run().digest == ready(made).run().digest


def test_a_single_class_of_nodes_needs_no_model(tmp_path: Path) -> None:
    found = ready(write(tmp_path, NODES.partition("@at_end")[0], "hello.py"))
    assert (found.kind, found.name) == ("nodes", "hello")
    assert found.run().failure is None


@pytest.mark.parametrize(
    ("kind", "setting"), [("kernel", "tickers=5"), ("nodes", "times=3"), ("spacetime", "clocks=2")]
)
def test_seed_end_and_settings_are_taken(kind: str, setting: str, tmp_path: Path) -> None:
    file = write(tmp_path, MODELS[kind])
    plain = ready(file).run()
    assert ready(file, seed=8).seed == 8
    assert ready(file, settings=(setting,)).run().digest != plain.digest
    shorter = ready(file, until="1.5" if kind == "spacetime" else "100ms").run()
    assert shorter.events < plain.events
    assert ready(file).run().digest == plain.digest


def test_a_federation_takes_them_too(tmp_path: Path) -> None:
    file = write(tmp_path, FEDERATION)
    found = prepare(file, RunOptions(seed=8, until="2s", settings=("latency=30ms",)))
    assert isinstance(found, ReadyFederation)
    assert (found.plan().seed, found.plan().end) == (8, 2_000_000_000)
    assert found.plan().network.default == link("30ms")
    assert found.executor == "in-process"


def test_files_of_every_kind_may_say_when_they_end(tmp_path: Path) -> None:
    found = prepare(write(tmp_path, f'UNTIL = "70ms"\n{FEDERATION}'), RunOptions())
    assert found.plan().end == 70_000_000
    algorithm = prepare(write(tmp_path, f'UNTIL = "70ms"\n{NODES}', "algorithm.py"), RunOptions())
    assert (algorithm.kind, algorithm.plan().end) == ("nodes", 70_000_000)
    with pytest.raises(ConfigurationError, match="UNTIL = 5 has no unit"):
        prepare(write(tmp_path, f"UNTIL = 5\n{FEDERATION}", "unclear.py"), RunOptions())


def test_parameters_of_a_function_and_of_its_algorithm_can_be_set(tmp_path: Path) -> None:
    made = "Algorithm(name='sized', node=Greeter, topology=f'ring:{size}')"
    more = f"\ndef model(*, size=3):\n    return {made}\n"
    file = write(tmp_path, NODES + more)
    assert ready(file, settings=("size=5", "times=2")).run().events == 5 + 5 * 2 * 2
    with pytest.raises(UsageError, match=r"no parameter 'sizes' \(parameters: size=3, times=1\)"):
        ready(file, settings=("sizes=5",))


@pytest.mark.parametrize(
    ("kind", "executor", "words"),
    [
        ("federation", "processes(2)", "in-process"),
        ("federation", "tcp", "runs in-process, and not on 'tcp'"),
        ("kernel", "in-process", "inline"),
        ("kernel", "shuffled(3)", "inline"),
        ("nodes", "unix", "inline"),
        ("nodes", "shuffled(3)", "inline"),
        ("spacetime", "tcp", "shuffled"),
        ("kernel", "process(2)", "isn't an executor"),
    ],
)
def test_an_executor_that_cannot_run_it_is_refused(kind: str, executor: str, words: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=words):
        prepare(write(tmp_path, MODELS[kind]), RunOptions(executor=executor))


FORM = (
    "a model is a Federation, a kernel Simulation, a SimPy Environment, an Algorithm, a ForwardSimulation, or a "
    "function that makes one"
)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", f"defines no model ({FORM})"),
        ("model = [1, 2]", f"its model is a list ({FORM})"),
        ("model = None", "its model is None"),
        ("class model: pass", "its model is the class model"),
        ("def model(): pass", "what its model returns is None"),
        ("def model():\n    yield 1", "what its model returns is a generator"),
        (
            "def model(size): pass",
            "the parameter size of its model has no default (write def model(*, seed=0, size=10)",
        ),
        ("def model(**all): pass", "its model takes *all, so its parameters can't be known"),
        ("def model(size=1, /): pass", "the parameter size of its model has to be named"),
        (
            "def model():\n    1 / 0",
            "its model can't be set up: ZeroDivisionError: division by zero, in mine.py, line 2",
        ),
        ("def model():\n    exit(3)", "its model can't be set up: SystemExit: 3, in mine.py, line 2"),
        ("1 +", "mine.py can't be loaded: SyntaxError: invalid syntax, in mine.py, line 1"),
        ("federation = 1", "defines federation, but no model (call it model)"),
        ("ALGORITHM = 1", "defines ALGORITHM, but no model (call it model)"),
        ("def build(): pass", "defines build, but no model (call it model)"),
        (KERNEL.replace("def model(", "left = right = None\ndef build("), "defines build, but no model"),
        (KERNEL + "left, right = model(), model()\ndel model\n", "it has left, right: write "),
        (KERNEL.replace("Simulation(seed=seed)", "Simulation()"), "doesn't pass on its seed"),
        (SPACETIME.replace(", seed=seed", ""), "doesn't pass on its seed"),
        (KERNEL.replace('"10s"', '"soon"'), "'soon' isn't the UNTIL of"),
        (SPACETIME.replace("4.5", "'soon'"), "its UNTIL is 'soon' (it's a lab time: UNTIL = 100.0)"),
        (SPACETIME.replace("UNTIL", "END"), "doesn't say when it ends"),
    ],
)
def test_what_cannot_be_run_is_explained_by_what_was_found(text: str, words: str, tmp_path: Path) -> None:
    file = write(tmp_path, text)
    with pytest.raises(UsageError) as caught:
        prepare(file, RunOptions(seed=4))
    assert words in str(caught.value)
    assert "mine" in str(caught.value)


@pytest.mark.parametrize(
    ("target", "words"),
    [
        ("rafft", "there is nothing to run called 'rafft' (did you mean raft?)"),
        ("nodes:relay", "nothing to run called 'nodes:relay'"),
        ("run.mcap", "run.mcap is a recording, of a run that is over (worldline info run.mcap shows it)"),
        ("gone.mcap", "there is no file gone.mcap"),
        ("shop.sweep", "shop.sweep isn't a file that can be run (worldline sweep shop.sweep shows it)"),
        ("cell.timing", "cell.timing isn't a file that can be run (worldline why cell.timing reads it)"),
        ("bad.json", "bad.json isn't a file that can be run (if a search has saved it, worldline view bad.json"),
        ("notes.txt", "notes.txt isn't a file that can be run (the names of those end in .toml, .py or .sdf)"),
        ("missing.py", "there is no file missing.py"),
        ("missing.toml", "missing.toml"),
        ("play.toml:ann", "play.toml is a federation as a whole (write play.toml, without :ann)"),
        (".", ". is a directory (name a file in it: FILE.toml, FILE.py or FILE.sdf)"),
        ("", "nothing to run called ''"),
    ],
)
def test_a_text_that_means_nothing_is_refused(
    target: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("run.mcap", "shop.sweep", "cell.timing", "bad.json", "notes.txt"):
        Path(name).touch()
    with pytest.raises(UsageError) as caught:
        prepare(target, RunOptions())
    assert words in str(caught.value)


def test_a_world_isnt_asked_for_its_end_where_only_federations_will_do(tmp_path: Path) -> None:
    (tmp_path / "yard.sdf").write_text("<sdf version='1.11'><world name='yard'/></sdf>")
    with pytest.raises(
        UsageError, match=r"only federations have schedules to check, and .*yard\.sdf is of the kind world"
    ):
        found_federation(str(tmp_path / "yard.sdf"), RunOptions())


def test_a_name_that_is_not_there_leads_to_those_that_are(tmp_path: Path) -> None:
    file = write(tmp_path, FEDERATION + "\nleft = model()\n")
    with pytest.raises(UsageError, match=rf"{file} has no 'right' \(it has left: write {file}:left\)"):
        prepare(f"{file}:right", RunOptions())


@pytest.mark.parametrize("until", ["soon", "nan", "inf"])
def test_an_end_that_is_no_lab_time_is_refused(until: str) -> None:
    with pytest.raises(UsageError, match="a run can't end at"):
        prepare("relay", RunOptions(until=until))


def test_a_function_makes_the_federation_anew_for_every_schedule(tmp_path: Path) -> None:
    made = found_federation(write(tmp_path, FEDERATION), RunOptions())[0]
    assert callable(made)
    assert made() is not made()
    with pytest.raises(UsageError, match=r"only federations have schedules to check, and .* is of the kind kernel"):
        found_federation(write(tmp_path, KERNEL, "kernel.py"), RunOptions())
