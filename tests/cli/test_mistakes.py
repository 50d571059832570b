"""Mistakes on the command line and in files: the option that was given is blamed, and what helps is said."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.files.files import nothing_stays  # noqa: F401 - A fixture.
from tests.soaking import later
from tests.targets.files import FEDERATION, KERNEL, NODES, SPACETIME, write
from worldline.cli import info, main
from worldline.history.account import ActionKind, MemberAction
from worldline.history.parting import Causes, Origin, Parting, Reason
from worldline.model import UsageError

pytestmark = pytest.mark.usefixtures("nothing_stays")

TOML = """
name = "cell"
until = "2s"
[link]
latency = "1ms"
[[participants]]
name = "ann"
entry = "cell:talk"
publishes = ["x"]
"""
FILES = {
    "kernel.py": KERNEL,
    "nodes.py": NODES,
    "agents.py": SPACETIME,
    "pair.py": FEDERATION,
    "cell.py": "def talk(self): pass\n",
    "cell.toml": TOML,
    "async.py": KERNEL.replace("def model", "async def model"),
    "yields.py": KERNEL.replace("def model", "async def model").replace("return simulation", "yield simulation"),
    "until.py": KERNEL.replace('"10s"', "5"),
    "hours.py": KERNEL.replace('"10s"', "8.0"),
    "misspelled.py": KERNEL.replace("def model", "def modle"),
    "judged.py": f"{KERNEL}\noutcome = 5\n",
    "broken.py": "def helper():\n    return 1 / 0\n\nhelper()\n",
    "unmade.py": "def helper():\n    return 1 / 0\n\ndef model():\n    return helper()\n",
    "raises.py": FEDERATION.replace('self.publish("ball", b"serve")', "1 / 0"),
}


@pytest.fixture
def said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):  # type: ignore[no-untyped-def]
    for name, text in FILES.items():
        write(tmp_path, text, name)
    (tmp_path / "folder.py").mkdir()
    (tmp_path / "folder.mcap").mkdir()
    monkeypatch.chdir(tmp_path)

    def command(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr("sys.argv", ["worldline", *arguments])
        with pytest.raises(SystemExit) as exit_:
            main()
        return int(exit_.value.code or 0), *capsys.readouterr()

    return command


IN_PROCESS = "a federation from a Python file runs in-process, and not on "


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("run", "cell.toml", "--until", "abc"), "--until: 'abc' isn't an end time (write a number and a unit"),
        (("run", "cell.toml", "--seed", str(2**70)), "--seed: "),
        (("run", "cell.toml", "--set", "until=abc"), "--set: until: 'abc' isn't an end time"),
        (("run", "kernel.py", "--until", "abc"), "'abc' isn't a time for --until (write a number and a unit"),
        (("run", "nodes.py", "--until", "abc"), "'abc' isn't a time for --until"),
        (("run", "pair.py", "--until", "abc"), "'abc' isn't a time for --until"),
        (("run", "kernel.py", "--set", "seed=5"), "kernel has no parameter 'seed' of its own (write --seed 5)"),
        (("run", "nodes.py", "--set", "until=5s"), "greetings has no parameter 'until' of its own (write --until 5s)"),
        (("run", "agents.py", "--set", "executor=mpi"), "agents has no parameter 'executor' of its own (write --exec"),
        (("run", "pair.py", "--executor", "processes"), f"pair.py: {IN_PROCESS}'processes' (leave --executor out"),
        (("run", "pair.py", "--executor", "processes(x)"), f"pair.py: {IN_PROCESS}'processes(x)' (leave --executor"),
        (("run", "pair.py", "--executor", "inline"), f"pair.py: {IN_PROCESS}'inline' (leave --executor out"),
        (("run", "kernel.py", "--executor", "processes(x)"), "'processes(x)' isn't an executor (use \"inline\", \"pr"),
        (("run", "."), ". is a directory (name a file in it: FILE.toml, FILE.py or FILE.sdf)"),
        (("run", "folder.py"), "folder.py is a directory (name a file in it)"),
        (("check", "."), ". is a directory (name a file in it: FILE.toml, FILE.py or FILE.sdf)"),
        (("nodes", "--file", "."), ". is a directory (name a file in it)"),
        (("info", "folder.mcap"), "folder.mcap is a directory (name a recording in it)"),
        (("run", "async.py"), "async.py: its model can't be async (write def model(...), without async)"),
        (("run", "yields.py"), "yields.py: its model can't be async"),
        (
            ("run", "until.py"),
            'until.py: UNTIL = 5 has no unit (write a text: UNTIL = "5s", or another unit: ns, us, ms, s, min, h, d)',
        ),
        (("run", "hours.py"), 'hours.py: UNTIL = 8.0 has no unit (write a text: UNTIL = "8.0s", or another unit'),
        (("run", "misspelled.py"), "misspelled.py defines modle, but no model (did you mean model?)"),
        (("simpy", "kernel.py"), "kernel.py defines a model, and isn't a script (worldline run kernel.py)"),
        (("run", "judged.py"), "judged.py: its outcome is 5, not a function (write def outcome(simulation, result)"),
    ],
)
def test_the_mistake_is_named_and_what_helps(said, words: tuple[str, ...], complaint: str) -> None:  # type: ignore[no-untyped-def]
    code, out, err = said(*words)
    assert (code, out) == (2, "")
    assert err.startswith(f"worldline: {complaint}")
    assert err.count("\n") == 1


@pytest.mark.parametrize("file", ["broken.py", "unmade.py"])
def test_the_traceback_of_what_cant_be_loaded_is_shown_if_it_is_wanted(said, file: str) -> None:  # type: ignore[no-untyped-def]
    code, _, err = said("run", file, "--traceback")
    assert code == 2
    assert "line 2, in helper" in err
    assert "Traceback" not in said("run", file)[2]


@pytest.mark.parametrize("options", [(), ("--quiet",)])
def test_the_traceback_of_a_participant_is_shown_once(said, options: tuple[str, ...]) -> None:  # type: ignore[no-untyped-def]
    code, out, err = said("run", "raises.py", "--no-record", "--traceback", *options)
    assert code == 1
    assert (out + err).count("Traceback (most recent call last)") == 1


def test_a_member_that_is_nearly_right_is_named() -> None:
    causes = Causes(
        {"planner": Reason(Parting("planner", MemberAction(5, ActionKind.SENDS)), Origin.ITSELF)}, ["planner"]
    )
    with pytest.raises(UsageError, match=r"'planer' doesn't differ \(did you mean planner\?\)"):
        causes.chain("planer")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--executor", "in-process", "--listen", "tcp://127.0.0.1:0"], "--listen needs processes"),
        (["--executor", ""], "'' isn't an executor"),
        (["--executor", "workers()"], "'workers()' isn't an executor"),
        (["--listen", "tcp://127.0.0.1:99999"], "'tcp://127.0.0.1:99999': the port is out of range"),
        (["--listen", "unix://cell.py"], "--listen unix://cell.py: cell.py exists, and isn't a socket"),
    ],
)
def test_an_executor_or_address_that_cant_be_meant_is_refused(said, options: list[str], words: str) -> None:  # type: ignore[no-untyped-def]
    code, out, err = said("run", "cell.toml", "--no-record", *options)
    assert (code, out) == (2, "")
    assert err.startswith(f"worldline: {words}")


def test_an_installation_says_what_is_compiled_and_what_programs_run_on(said, monkeypatch: pytest.MonkeyPatch) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setattr(info, "build", "compiled for this test")
    monkeypatch.setenv("WORLDLINE_THREADS", "1")
    rows = [line.split() for line in said("info")[1].splitlines()]
    assert ["lock,", "wire", "compiled", "for", "this", "test"] in rows
    assert ["in-process", "threads"] in rows


_MISTAKES = [
    ("me.publish('nope', b'')", "UsageError: it didn't declare that it publishes on 'nope', in program.py, line 3 (it"),
    ("raise ConfigurationError('no', advice='so')", "ConfigurationError: no, in program.py, line 3 (so)"),
]
_MORE_MISTAKES = [
    ("me.advance(to='5ms')", "UsageError: it can't go back to 5ms, in program.py, line 3"),
    ("me.advance(by=0.1)", "ConfigurationError: 0.1 isn't a step, in program.py, line 3"),
    ("me.publish('x', 'text')", "UsageError: a payload is bytes, not str, in program.py, line 3"),
    ("me.publish('x', bytes(2000))", "UsageError: a payload of 2,000 bytes is too large, in program.py, line 3"),
    ("raise LossError('gone')", "LossError: gone, in program.py, line 3"),
    ("raise SystemExit('bye')", "SystemExit: bye, in program.py, line 3"),
    ("raise ValueError(3000 * '0')", "ValueError: 00000"),
    ("return (each for each in ())", "UsageError: its program is a generator or a coroutine, which never ran"),
]
_EXECUTORS = ("tcp", "workers(2)")


@pytest.mark.parametrize(
    ("call", "words", "executors"),
    [
        *((*mistake, _EXECUTORS) for mistake in _MISTAKES),
        *((*mistake, ()) for mistake in _MORE_MISTAKES),
        *later((*mistake, _EXECUTORS) for mistake in _MORE_MISTAKES),
    ],
)
def test_a_programs_mistake_is_its_authors_on_every_executor(  # type: ignore[no-untyped-def]
    said, tmp_path: Path, call: str, words: str, executors: tuple[str, ...]
) -> None:
    (tmp_path / "program.py").write_text(
        f"def talk(me):\n    me.advance('10ms')\n    {call}\n\n"
        "from worldline.model import ConfigurationError, LossError\n"
    )
    (tmp_path / "wrong.toml").write_text(TOML.replace("cell:talk", "program:talk") + '[limits]\npayload = "1kB"\n')
    options = ("--no-record", "--quiet")
    code, _, err = said("run", "wrong.toml", "--executor", "in-process", *options)
    last = err.splitlines()[-1]
    assert code == 1
    assert last.startswith(f"worldline: ann at 10ms: its program raised {words}")
    assert said("check", "wrong.toml")[0::2] == (1, err)
    for executor in executors:
        elsewhere, _, said_there = said("run", "wrong.toml", "--executor", executor, *options)
        assert (elsewhere, said_there.splitlines()[-1]) == (code, last)


def test_the_traceback_of_a_refusal_is_shown_if_it_is_wanted(said) -> None:  # type: ignore[no-untyped-def]
    Path("refuses.py").write_text(FEDERATION.replace('self.publish("ball", b"serve")', "self.publish('ball', 'text')"))
    out, err = said("run", "refuses.py", "--no-record", "--traceback")[1:]
    assert (out + err).count("Traceback (most recent call last)") == 1
    assert "Traceback" not in "".join(said("run", "refuses.py", "--no-record")[1:])
