"""`worldline verify`: one digest of many runs, or what is wrong; and nothing is left of them."""

from __future__ import annotations

import json
import os
import re
import signal
import sys
from concurrent.futures import Future
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from tests.descendants import family_of
from tests.kernel.matrix import MPIEXEC
from tests.leaks.running import EXAMPLES, LEAKS, verified
from tests.targets.files import MODELS
from worldline.model.errors import UsageError
from worldline.targets import verifying
from worldline.targets import verifying as recorded_pair
from worldline.targets.run_processes import RunSummary, Variant, VariantRun, reference_on, variants_of
from worldline.targets.verifying import Ending, Verifier, look_into

HONEST = LEAKS / "kernel_leaks.py"
WORLDLINE = (sys.executable, "-m", "worldline")


# --- What is printed and written ---


def test_an_honest_model_gives_one_digest(worldline: Any, tmp_path: Path) -> None:
    code, out, err = worldline("verify", HONEST, "--only", "again,hash-seed,processes(2)", "--junit", "found.xml")
    assert (code, err) == (0, "")
    head, *rows, last = out.splitlines()
    assert head.split() == ["variant", "digest", "events", "seconds"]
    names = [row.split()[0] for row in rows]
    assert names[:2] == ["inline", "again"]
    assert {"hash-seed-1", "processes(2)"} <= set(names)
    assert len({row.split()[1] for row in rows}) == 1
    assert re.fullmatch(rf"one digest: {len(names)} runs in [\d.]+ s", last)
    suite = ElementTree.parse(tmp_path / "found.xml").getroot()
    assert [case.get("name") for case in suite][: len(names)] == names
    assert (suite.get("failures"), suite.get("errors")) == ("0", "0")


@pytest.mark.long
def test_a_difference_is_shown_and_its_recordings_are_kept(worldline: Any, tmp_path: Path) -> None:
    arguments = (LEAKS / "nodes_leaks.py", "--set", "leak=clock", "--only", "again")
    code, out, err = worldline("verify", *arguments, "--keep", "kept/here", "--junit", "found.xml")
    assert (code, err) == (1, "")
    assert "not one digest: again differs from the first run\ntwo equal runs differ: a clock" in out
    assert "first cause: 1 at 2ms, sends Leak" in out
    repeat, once_more, diff = out.splitlines()[-3:]
    assert repeat == f"  PYTHONHASHSEED=0 worldline run {arguments[0]} --set leak=clock --record reference.mcap"
    assert once_more.endswith("--executor inline --record again.mcap")
    assert sorted(path.name for path in (tmp_path / "kept" / "here").iterdir()) == ["again.mcap", "reference.mcap"]
    os.chdir(tmp_path / "kept" / "here")
    assert worldline(*diff.split()[1:])[0] == 1
    (failure,) = ElementTree.parse(tmp_path / "found.xml").getroot().iter("failure")
    assert "first cause: 1 at 2ms, sends Leak" in (failure.text or "")


@pytest.mark.long
def test_options_reach_every_run_and_what_a_run_leaves_is_not_left_here(worldline: Any, tmp_path: Path) -> None:
    target = EXAMPLES / "clock_sync" / "clock_sync.toml"  # Which draws a picture at its end, too.
    options = ("--executor", "in-process", "--seed", "5", "--until", "65s", "--set", "link.latency=2ms")
    code, found = verified(worldline, target, *options, "--only", "again")
    assert (code, [each["ending"] for each in found["variants"]]) == (0, ["reference", "same"])
    assert list(tmp_path.iterdir()) == []
    code, out, _ = worldline("run", target, *options, "--no-record", "--json")
    assert code == 0
    assert found["digest"] == json.loads(out)["digest"]


# --- What can't be done ---


@pytest.mark.long
def test_what_an_executor_cant_do_is_left_out_and_said_once(worldline: Any) -> None:
    (Path.cwd() / "pair.py").write_text(
        "from worldline import Federation, Program\n"
        "model = Federation({name: Program(run=lambda self: self.publish('t', b'')) for name in 'ab'})\n"
    )
    code, out, _ = worldline("verify", "pair.py", "--only", "again,tcp,unix")
    assert code == 0
    (said,) = [line for line in out.splitlines() if line.startswith("left out")]
    assert said.startswith("left out: tcp, unix: pair.py: a federation from a Python file runs in-process")
    code, out, _ = worldline("verify", "pair.py", "--only", "tcp")
    assert (code, out.splitlines()[-1]) == (2, "nothing was compared")


@pytest.mark.long
def test_state_that_participants_share_shows_under_another_schedule(worldline: Any) -> None:
    code, found = verified(worldline, EXAMPLES / "leaky.py", "--only", "shake")
    assert (code, found["difference"]["variant"]) == (1, "shake-1")
    assert found["difference"]["comparison"]["causes"][0]["what"] == "sends job"


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("nowhere.py",), "there is no file nowhere.py"),
        ((HONEST, "--set", "leek=1"), "has no parameter 'leek'"),
        ((HONEST, "--only", "agian"), "there is no variant 'agian'"),
        ((HONEST, "--only", "tcp"), "there is no variant 'tcp'"),
        ((HONEST, "--junit", "nowhere/found.xml"), "there is no folder nowhere"),
        ((HONEST, "--seconds-max", "0.001"), "one run takes longer than 0.001 seconds"),
    ],
)
def test_mistakes_are_told_in_a_line(worldline: Any, arguments: tuple[object, ...], complaint: str) -> None:
    code, _, err = worldline("verify", *arguments)
    assert code == 2
    assert complaint in err
    assert err.count("\n") == 1


@pytest.mark.parametrize("name", ["random", "token", "inspect"])
def test_a_model_may_be_named_as_a_module_of_python(worldline: Any, tmp_path: Path, name: str) -> None:
    (tmp_path / f"{name}.py").write_text(MODELS["kernel"])
    code, out, err = worldline("verify", f"{name}.py", "--only", "again")
    assert (code, err, out.splitlines()[-1][:10]) == (0, "", "one digest")


RAISES = """
import os
from worldline.kernel import Entity, Simulation
class Fragile(Entity):
    def start(self):
        if os.environ["PYTHONHASHSEED"] in ({seeds}):
            raise ValueError("not under this one")
model = Simulation()
model.add("fragile", Fragile())
"""


def test_a_run_that_fails_is_shown_and_gives_its_exit_code(worldline: Any, tmp_path: Path) -> None:
    (tmp_path / "fragile.py").write_text(RAISES.format(seeds='"0", "1"'))
    code, out, err = worldline("verify", "fragile.py", "--only", "hash-seed")
    assert (code, out) == (1, "")
    assert err.startswith("worldline: fragile at 0s: ")
    assert "not under this one" in err


def test_a_variant_that_fails_is_shown_among_the_others(worldline: Any, tmp_path: Path) -> None:
    (tmp_path / "fragile.py").write_text(RAISES.format(seeds='"1", "7"'))
    code, out, _ = worldline("verify", "fragile.py", "--only", "hash-seed", "--junit", "found.xml")
    assert code == 1
    assert re.search(r"^hash-seed-1 .* failed$", out, re.MULTILINE)
    assert re.search(r"^failed: hash-seed-1: fragile at 0s: .*not under this one", out, re.MULTILINE)
    assert "one digest" not in out
    (error,) = ElementTree.parse(tmp_path / "found.xml").getroot().iter("error")
    assert "not under this one" in (error.text or "")


LEAKS_INTO_A_MISTAKE = """
from worldline.kernel import Entity, Simulation
SHARED = {}
class Writer(Entity):
    def start(self):
        SHARED["delay"] = 3
class Reader(Entity):
    def start(self):
        yield "1ms"
        self.schedule("x", delay=SHARED.get("delay"))
    def on_x(self, payload):
        pass
model = Simulation()
model.add("a", Writer())
model.add("b", Reader())
"""


def test_a_mistake_in_a_run_that_has_begun_is_a_failure_and_not_left_out(worldline: Any, tmp_path: Path) -> None:
    (tmp_path / "shared.py").write_text(LEAKS_INTO_A_MISTAKE)
    code, out, _ = worldline("verify", "shared.py", "--only", "again,processes(2)")
    assert (code, "one digest" in out, "left out" in out) == (1, False, False)
    assert "failed: processes(2): b at 1ms: an event is scheduled after a delay or at a time" in out


def test_what_the_model_says_may_not_come_of_it_fails(worldline: Any, tmp_path: Path) -> None:
    (tmp_path / "judged.py").write_text(RAISES.format(seeds="") + "def outcome(*_):\n    assert False, 'never'\n")
    code, _, err = worldline("verify", "judged.py", "--only", "again")
    assert code == 1
    assert "its outcome isn't what it should be: AssertionError: never" in err


# --- Time and luck ---


def ran(variant: Variant, digest: str = "ab") -> VariantRun:
    return VariantRun(variant=variant, seconds=0.5, said=RunSummary("kernel", "shop", "inline", digest, 1234))


class FewRuns:
    """Stands in for runs: those of the variants that are named never end."""

    endless: tuple[str, ...] = ()
    started: tuple[str, ...] = ()

    def __init__(self, *_: object) -> None:
        pass

    def __enter__(self) -> FewRuns:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def start(self, variant: Variant, record: Path | None = None, **_: bool) -> Future[VariantRun]:
        FewRuns.started += (variant.name,)
        run: Future[VariantRun] = Future()
        if variant.name not in self.endless:
            run.set_result(ran(variant))
        return run

    def status(self) -> str:
        return "still running: 5s simulated"

    def shown(self, variant: Variant, record: str) -> str:
        return f"run {variant.name} > {record}"


def test_what_there_is_no_time_for_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verifying, "RunProcesses", FewRuns)
    monkeypatch.setattr(FewRuns, "endless", ("hash-seed-1", "processes(3)"))
    found = Verifier("shop", only=["again", "hash-seed", "executor"], seconds_max=0.05).run()
    endings = {each.variant.name: each.ending for each in found.compared}
    assert [name for name, ending in endings.items() if ending is Ending.LEFT_OUT] == ["hash-seed-1", "processes(3)"]
    assert found.exit_code == 0
    monkeypatch.setattr(FewRuns, "endless", ("reference",))
    with pytest.raises(UsageError, match="one run takes longer"):
        Verifier("shop", seconds_max=0.05).run()


def test_whoever_waits_for_the_first_run_is_told_how_far_it_is(monkeypatch: pytest.MonkeyPatch, worldline: Any) -> None:
    monkeypatch.setattr(verifying, "RunProcesses", FewRuns)
    monkeypatch.setattr(FewRuns, "endless", ("reference",))
    monkeypatch.setattr(verifying, "_TOLD_EVERY_S", 0.01)
    code, out, err = worldline("verify", "shop", "--seconds-max", "0.4")
    assert (code, out) == (2, "")
    assert "the first run has taken 0 s (--until TIME or --seconds-max S ends it): still running: 5s simulated\n" in err


def test_a_difference_that_takes_luck_is_tried_again_and_then_said_to(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    class Same:
        is_same = True

    monkeypatch.setattr(recorded_pair, "compare_recordings", lambda *_: Same)
    monkeypatch.setattr(FewRuns, "started", ())
    again = variants_of("kernel", "inline")[0]
    runs: Any = FewRuns()
    lines, comparison, _ = look_into(runs, (reference_on(None), again), [tmp_path / "a", tmp_path / "b"])
    assert FewRuns.started == ("reference", "again") * recorded_pair.TRIES
    assert lines == ("in 3 more pairs of runs it didn't show again: it takes luck to see it",)
    assert comparison is None


# --- Nothing is left ---

HANGS = """
import signal
import sys
def model(*, fifo=""):
    with open(fifo, "w") as told:
        print("here", file=told, flush=True)
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM] if {deaf} else [])
        signal.pause()
"""


@pytest.mark.parametrize(
    ("sign", "code", "deaf"),
    [
        (signal.SIGINT, 130, False),
        (signal.SIGTERM, 130, True),
        (signal.SIGKILL, -signal.SIGKILL, False),
    ],
)
def test_runs_end_with_the_command(tmp_path: Path, sign: signal.Signals, code: int, deaf: bool) -> None:
    fifo, file = tmp_path / "fifo", tmp_path / "hangs.py"
    os.mkfifo(fifo)
    file.write_text(HANGS.format(deaf=deaf))
    with family_of(*WORLDLINE, "verify", str(file), "--set", f"fifo={fifo}") as everybody, fifo.open() as told:
        assert told.readline() == "here\n"
        everybody.program.send_signal(sign)
        assert told.read() == ""  # Whoever could write is gone.
        everybody.stderr()
        assert everybody.program.returncode == code


STARTS_ANOTHER = """
import subprocess
import sys
from worldline.kernel import Entity, Simulation
class Careless(Entity):
    def start(self):
        subprocess.Popen([sys.executable, "-c", "import os, signal; os.open('fifo', os.O_WRONLY); signal.pause()"])
        return
        yield
model = Simulation()
model.add("careless", Careless())
"""


def test_what_a_run_has_started_ends_with_it(worldline: Any, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    reader = os.open(tmp_path / "fifo", os.O_RDONLY | os.O_NONBLOCK)
    (tmp_path / "careless.py").write_text(STARTS_ANOTHER)
    assert worldline("verify", "careless.py", "--only", "again")[0] == 0
    os.set_blocking(reader, True)
    assert os.read(reader, 1) == b""  # Nobody has it any more, and nobody was waited for.
    os.close(reader)


# --- MPI ---


@pytest.mark.skipif(not MPIEXEC.exists(), reason="needs mpiexec")
def test_ranks_of_mpi_are_tried_if_they_are_asked_for(worldline: Any) -> None:
    code, found = verified(worldline, HONEST, "--mpi", "--only", "mpi")
    assert (code, [each["name"] for each in found["variants"]]) == (0, ["inline", "mpi"])
