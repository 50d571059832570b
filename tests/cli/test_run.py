"""`worldline run`: one outcome however it is run, plain words when somebody fails, and nothing left at its end."""

from __future__ import annotations

import contextlib
import io
import os
import pty
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import Command, command_of
from tests.federation.transports import PATIENCE_S, PROMPT_S, eventually
from tests.liveness import is_running
from worldline.cli.debugging import Debugger
from worldline.model import LossError
from worldline.recording import Condition, Recording

EXAMPLES = Path(__file__).parent.parent.parent / "examples"
ROBOT_CELL = str(EXAMPLES / "robot_cell" / "robot_cell.toml")

# Whoever a test needs: each is a function, and a federation's file names two or three of them.
CAST = """
import os, signal, subprocess, sys, threading, time
from worldline import MS

def source(self):
    noise = self.stream("noise")
    while not self.ended:
        self.publish("news", noise.randbytes(3))
        self.advance(by="1ms")

def reader(self):
    seen = sum(message.payload[0] for message in self.messages())
    print(f"seen {seen}")

def speaker(self):
    self.advance(to="3ms")
    print("[bold]not bold[/bold] [/] :smile: \\\\[x] ends in a backslash \\\\")
    print("Grüße, 世界")
    self.advance(to="5ms")
    print("two\\nlines, and no end", end="")
    sys.stdout.flush()
    print("said aside \\udcff", file=sys.stderr)

def raises(self):
    self.advance(to="5ms")
    raise ZeroDivisionError("by nought")

def decodes(self):
    import json
    self.advance(to="5ms")
    json.loads("{bad")

def quits(self):
    self.advance(to="5ms")
    sys.exit()

def stops_to_think(self):
    self.advance(to="5ms")
    thought = 6 * 7
    breakpoint()
    print("it was", thought)

def thinks_in_the_old_way(self):
    import pdb
    self.advance(to="5ms")
    pdb.set_trace()
    print("never")

def ordinary(self):
    self.advance(to="2ms")
    sys.stdout.buffer.write(b"bytes\\n")
    sys.stdout.reconfigure(errors="replace")
    print(sys.stdout.encoding, sys.stdout.fileno() > 0, sys.stdout.isatty(), sys.stdout.writable(), file=sys.stdout)
    subprocess.run(["echo", "another program"], stdout=sys.stdout, check=True)

def lingers(self):
    threading.Thread(target=time.sleep, args=(1000,)).start()

def talks(self):
    for number in range(20):
        print("news", number)
        self.advance(by="1ms")
    if os.environ.get("FOR_EVER"):
        while True:
            print("more news")
            self.advance(by="1us")

def killed(self):
    self.advance(to="5ms")
    os.kill(os.getpid(), signal.SIGKILL)

def fails_afterwards(self):
    import atexit
    atexit.register(os._exit, 7)

def endless(self):
    print("pid", os.getpid())
    while True:
        self.advance(by="1ms")
        time.sleep(0.001)

def busy(self):
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    child = subprocess.Popen(["sleep", "1000"])
    print("pid", child.pid)
    print("pid", os.getpid())
    while True:
        time.sleep(1)
"""

HAND_WRITTEN = """
import worldline
with worldline.connect() as me:
    for message in me.messages():
        pass
    print("by hand until", me.now)
"""


def write(folder: Path, *roles: str, end: str = "20ms", **commands: str) -> str:
    """Write a federation of these roles, and of participants that are started by commands; return its file."""
    (folder / "cast.py").write_text(CAST)
    text = f'name = "play"\nseed = 1\nuntil = "{end}"\n[link]\nlatency = "uniform(1ms, 3ms)"\nloss = 0.1\n'
    for role in roles:
        text += f'[[participants]]\nname = "{role}"\nentry = "cast:{role}"\nsubscribes = ["news"]\n'
    for name, command in commands.items():
        text += f'[[participants]]\nname = "{name}"\ncommand = {command}\nsubscribes = ["news"]\n'
    file = folder / "play.toml"
    file.write_text(text)
    return str(file)


@pytest.fixture
def worldline(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], tmp_path: Path) -> Command:
    """Run the command in an empty folder below; what processes print is heard, too."""
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    return command_of(monkeypatch, capfd)


def digest_in(output: str) -> str:
    (digest,) = re.findall(r"^digest ([0-9a-f]{32})$", output, re.MULTILINE)
    return str(digest)


# --- One outcome ---


def test_the_robot_cell_is_the_same_in_processes_and_in_one(worldline: Command, tmp_path: Path) -> None:
    _, first, _ = worldline("run", ROBOT_CELL)
    code, second, err = worldline("run", ROBOT_CELL, "--listen", f"unix://{tmp_path}/socket", "--shake", "3")
    assert (code, err) == (0, "")
    recordings = [Path("robot-cell.previous.mcap").read_bytes(), Path("robot-cell.mcap").read_bytes()]
    assert worldline("run", ROBOT_CELL, "--executor", "in-process", "--record", "third.mcap")[0] == 0
    recordings.append(Path("third.mcap").read_bytes())
    assert len(set(recordings)) == 1
    assert digest_in(first) == digest_in(second)
    assert worldline("digest", "third.mcap") == (0, f"{digest_in(first)}\n", "")
    # Plain text, since this isn't a terminal; with the time and name of who has said it.
    assert "\x1b" not in first
    assert re.search(r"^ +1\.436s  watchdog  the arm acts on news 155 ms old", first, re.MULTILINE)
    assert re.search(r"^ +0s  camera    part 1 comes into view$", first, re.MULTILINE)
    assert re.search(
        r"^4 participants, 1\.446s simulated in [\d.]+ s, \d+ messages lost, \d+ not kept by buffers$",
        first,
        re.MULTILINE,
    )


def test_what_the_command_line_changes_shows(worldline: Command, tmp_path: Path) -> None:
    file = write(tmp_path, "source", "reader")
    plain = ("run", file, "--executor", "in-process", "--no-record")
    code, out, _ = worldline(*plain)
    assert code == 0
    assert "2 participants, 20ms simulated" in out
    assert digest_in(worldline(*plain)[1]) == digest_in(out)
    assert digest_in(worldline(*plain, "--seed", "1")[1]) == digest_in(out)
    digests = {
        digest_in(worldline(*plain, *change)[1])
        for change in ((), ("--seed", "2"), ("--until", "11ms"), ("--set", "link.loss=0.9"), ("--set", "seed=3"))
    }
    assert len(digests) == 5
    assert "11ms simulated" in worldline(*plain, "--until", "11ms")[1]
    assert not list(Path.cwd().iterdir())


def test_processes_take_the_changes_too(worldline: Command, tmp_path: Path) -> None:
    file = write(tmp_path, "source", "reader")
    changed = ("--seed", "5", "--until", "15ms", "--set", "link.loss=0.3", "--quiet", "--realtime", "0.5")
    code, out, _ = worldline("run", file, "--record", "kept.mcap", *changed)
    assert code == 0
    assert "seen" not in out
    inside = worldline("run", file, "--executor", "in-process", "--no-record", *changed[:-2])[1]
    assert digest_in(out) == digest_in(inside)
    assert [path.name for path in Path.cwd().iterdir()] == ["kept.mcap"]


def test_a_participant_may_be_any_command(worldline: Command, tmp_path: Path) -> None:
    (tmp_path / "hand.py").write_text(HAND_WRITTEN)
    file = write(tmp_path, "source", hand=f'["{sys.executable}", "hand.py"]')
    code, out, _ = worldline("run", file, "--no-record")
    assert code == 0, out
    assert "hand    by hand until 20000000" in out
    write(tmp_path, "source", "reader")
    code, _, err = worldline("run", write(tmp_path, "source", hand="'true'"), "--executor", "in-process")
    assert code == 2
    assert "hand has no Python entry point" in err


@pytest.mark.parametrize("executor", ["processes", "in-process"])
def test_every_line_carries_name_and_time(worldline: Command, tmp_path: Path, executor: str) -> None:
    _, out, err = worldline("run", write(tmp_path, "speaker"), "--no-record", "--executor", executor)
    lines = (out + err).splitlines()
    assert "           3ms  speaker  Grüße, 世界" in lines
    assert "           5ms  speaker  two" in lines
    assert "           5ms  speaker  lines, and no end" in lines
    assert any(line.startswith("           3ms  speaker  [bold]not bold[/bold] [/] ") for line in lines)
    assert any(line.startswith(" ") and " speaker  " in line and "said aside \\udcff" in line for line in lines)


# --- Recordings ---


def test_the_recording_before_this_one_is_kept(worldline: Command, tmp_path: Path) -> None:
    file = write(tmp_path, "source", "reader")
    plain = ("run", file, "--executor", "in-process", "--quiet")
    seeds = {seed: digest_in(worldline(*plain, "--seed", seed)[1]) for seed in ("1", "2", "3")}
    assert worldline("digest", "play.mcap")[1].strip() == seeds["3"]
    assert worldline("digest", "play.previous.mcap")[1].strip() == seeds["2"]


def test_a_command_that_is_refused_leaves_recordings_alone(worldline: Command, tmp_path: Path) -> None:
    file = write(tmp_path, "source", "reader")
    _, out, _ = worldline("run", file, "--executor", "in-process", "--quiet")
    assert worldline("run", file, "--executor", "in-process", "--realtime", "1")[0] == 2
    assert worldline("digest", "play.mcap") == (0, f"{digest_in(out)}\n", "")


# --- Mistakes and failures ---


def test_contradictions_are_refused(worldline: Command, tmp_path: Path) -> None:
    file = write(tmp_path, "source", "reader")
    code, _, err = worldline("run", file, "--record", "a.mcap", "--no-record")
    assert (code, err) == (2, "worldline: --record and --no-record contradict each other\n")
    code, _, err = worldline("run", file, "--executor", "in-process", "--realtime", "1", "--no-record")
    assert (code, err) == (2, "worldline: --realtime needs processes\n")
    code, _, err = worldline("run", "missing.toml")
    assert code == 2
    assert "missing.toml" in err
    (tmp_path / "play.toml").write_text('[[participants]]\nname = "by-hand"\n')
    code, _, err = worldline("run", file, "--no-record")
    assert code == 2
    assert "doesn't say how to start by-hand" in err


FAILURES: dict[str, tuple[int, str]] = {
    "raises": (1, r"worldline: raises at 5ms: its program raised ZeroDivisionError: by nought"),
    "killed": (3, r"worldline: killed at 5ms: its connection .* \(its process (was )?killed by SIGKILL\)"),
}


@pytest.mark.parametrize("role", FAILURES)
def test_a_participant_that_fails_is_named_by_everybody(worldline: Command, tmp_path: Path, role: str) -> None:
    expected, text = FAILURES[role]
    code, out, err = worldline("run", write(tmp_path, "source", "reader", role, end="10s"))
    assert code == expected
    assert re.search(text, err)
    for name in ("source", "reader"):
        assert re.search(rf" {name}  +worldline: the run was broken off because of {role} at 5ms$", out, re.M), out
    recording = Recording(Path("play.mcap"))
    assert recording.verify().condition is Condition.BROKEN_OFF
    code, _, err = worldline("digest", "play.mcap")
    assert code == LossError.exit_code
    assert f"{role} at 5ms" in err or role in err
    assert worldline("info", "play.mcap")[0] == 0


@pytest.mark.parametrize("executor", ["processes", "in-process"])
def test_the_author_sees_the_whole_trace_and_everybody_the_authors_line(
    worldline: Command, tmp_path: Path, executor: str
) -> None:
    file = write(tmp_path, "source", "decodes", end="10s")
    code, out, err = worldline("run", file, "--no-record", "--executor", executor)
    assert code == 1
    line = CAST.splitlines().index('    json.loads("{bad")') + 1
    assert err.count("\n") == 1
    assert re.search(
        rf"^worldline: decodes at 5ms: its program raised JSONDecodeError: .*, in cast.py, line {line}$", err
    )
    shown = [row for row in out.splitlines() if "  decodes  " in row]
    assert shown[0] == "           5ms  decodes  Traceback (most recent call last):"
    assert f'cast.py", line {line}, in decodes' in shown[1]  # Nothing of Worldline's own comes before.
    assert "json.decoder.JSONDecodeError: " in shown[-1]
    assert 'decoder.py", line ' in out


BY_HAND_AND_AWAITED = """
import asyncio, worldline
async def main():
    async with await worldline.connect_async() as me:
        async for message in me.messages():
            pass
asyncio.run(main())
"""


def test_the_cause_comes_first_and_bystanders_have_a_line_each(worldline: Command, tmp_path: Path) -> None:
    (tmp_path / "hand.py").write_text(HAND_WRITTEN)
    (tmp_path / "awaited.py").write_text(BY_HAND_AND_AWAITED)
    commands = {"hand": '["python", "hand.py"]', "awaited": '["python", "awaited.py"]'}
    code, out, err = worldline("run", write(tmp_path, "source", "raises", end="10s", **commands), "--no-record")
    assert code == 1
    assert err.count("by nought") == 1
    names = [row[16:].split()[0] for row in out.splitlines()]
    assert names[:-3] == ["raises"] * (len(names) - 3)
    assert sorted(names[-3:]) == ["awaited", "hand", "source"]
    assert out.count("Traceback") == 1


@pytest.mark.parametrize("executor", ["processes", "in-process"])
def test_leaving_python_is_a_normal_end(worldline: Command, tmp_path: Path, executor: str) -> None:
    code, out, err = worldline("run", write(tmp_path, "source", "quits"), "--no-record", "--executor", executor)
    assert (code, err) == (0, "")
    assert digest_in(out)


@pytest.mark.parametrize("role", ["stops_to_think", "thinks_in_the_old_way"])
def test_a_debugger_without_a_terminal_says_what_to_do(worldline: Command, tmp_path: Path, role: str) -> None:
    code, _, err = worldline("run", write(tmp_path, role), "--no-record")
    assert code == 1
    assert "(debug it with `worldline run --debug NAME`, or start it with `worldline join`)" in err
    assert ", in cast.py, line " in err


@pytest.mark.parametrize("executor", ["processes", "in-process"])
def test_standard_output_is_an_ordinary_file(worldline: Command, tmp_path: Path, executor: str) -> None:
    code, out, err = worldline("run", write(tmp_path, "ordinary"), "--no-record", "--executor", executor)
    assert (code, err) == (0, "")
    assert "           2ms  ordinary  bytes\n" in out
    assert "           2ms  ordinary  utf-8 True False True\n" in out
    assert "another program\n" in out


def test_python_is_the_one_that_runs_worldline(
    worldline: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    others = tmp_path / "others"
    others.mkdir()
    (others / "python").write_text("#!/bin/sh\necho another python\nexit 1\n")
    (others / "python").chmod(0o755)
    monkeypatch.setenv("PATH", f"{others}:/usr/bin:/bin")
    (tmp_path / "hand.py").write_text(HAND_WRITTEN)
    code, out, _ = worldline("run", write(tmp_path, "source", hand='["python", "hand.py"]'), "--no-record")
    assert code == 0, out
    (tmp_path / "hand.py").write_text("import no_such_module_anywhere")
    _, _, err = worldline("run", write(tmp_path, "source", hand='["python", "hand.py"]'), "--no-record")
    assert f"No module named 'no_such_module_anywhere'; python is {Path(sys.executable).parent}/python)" in err
    own_path = write(tmp_path, "source", hand='["python", "hand.py"]')
    with Path(own_path).open("a") as file:
        file.write(f'environment = {{ PATH = "{others}" }}\n')
    _, _, err = worldline("run", own_path, "--no-record")
    assert f"its last line was: another python; python is {others}/python)" in err


def test_any_number_of_topics_can_be_declared(worldline: Command, tmp_path: Path) -> None:
    topics = ", ".join(f'"a-topic-with-a-name-of-its-own-{number}"' for number in range(6000))
    for role in ("reader", "hand"):
        (tmp_path / "hand.py").write_text(HAND_WRITTEN)
        started = {"hand": '["python", "hand.py"]'} if role == "hand" else {}
        file = Path(write(tmp_path, "source", *(() if started else ("reader",)), end="2ms", **started))
        file.write_text(file.read_text() + f"publishes = [{topics}]\n")
        code, out, err = worldline("run", str(file), "--no-record")
        assert (code, err) == (0, ""), out


def test_a_process_that_lingers_is_ended_and_that_is_what_is_said(
    worldline: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("worldline.launch.launcher._LINGER_S", 0.4)
    code, out, err = worldline("run", write(tmp_path, "source", "lingers"), "--no-record")
    assert code == 1
    assert digest_in(out)
    assert "worldline: lingers: its process was still running 0.4 seconds after the run, and was ended (" in err
    assert "SIGTERM" not in out + err


def test_programs_without_a_model_lead_to_the_file_beside_them(worldline: Command, tmp_path: Path) -> None:
    write(tmp_path, "source")
    code, _, err = worldline("run", str(tmp_path / "cast.py"))
    assert code == 2
    assert "cast.py defines no model (a model is a Federation, " in err
    (tmp_path / "cast.toml").write_text("")
    assert f"the federation beside it is {tmp_path / 'cast.toml'}" in worldline("run", str(tmp_path / "cast.py"))[2]


NEVER_THERE = {
    "that fails": (f'["{sys.executable}", "-c", "print(1 / 0)"]', "code 1", "ZeroDivisionError: division by zero"),
    "that ends": ("'true'", "its process ended before it had joined", ""),
    "that is killed": (f'["{sys.executable}", "-c", "import os; os.kill(os.getpid(), 9)"]', "killed by SIGKILL", ""),
}


@pytest.mark.parametrize("case", NEVER_THERE)
def test_a_process_that_ends_before_it_has_joined_is_named(worldline: Command, tmp_path: Path, case: str) -> None:
    command, how, last = NEVER_THERE[case]
    code, _, err = worldline("run", write(tmp_path, other=command), "--no-record")
    assert code == 3
    assert "worldline: other: its process" in err
    assert how in err
    assert last in err


@pytest.mark.long
def test_a_process_that_joins_and_ends_before_the_start_is_named_since_it_cant_come_again(
    worldline: Command, tmp_path: Path
) -> None:
    (tmp_path / "quick.py").write_text(
        "import os, worldline\nme = worldline.connect()\nme._take_untold()\nme._wire.tell(me._untold)\nos._exit(7)\n"
    )
    quick = f'[[participants]]\nname = "quick"\ncommand = ["{sys.executable}", "quick.py"]\n'
    never = '[[participants]]\nname = "never"\ncommand = ["sleep", "60"]\n'
    (tmp_path / "play.toml").write_text(quick + never)
    code, _, err = worldline("run", str(tmp_path / "play.toml"), "--no-record")
    assert code == 3
    assert "worldline: quick: its process ended with exit code 7 before it had joined" in err


@pytest.mark.long
def test_a_process_that_never_joins_isnt_waited_for_longer_than_the_limit(worldline: Command, tmp_path: Path) -> None:
    file = write(tmp_path, other='["sleep", "60"]')
    changes = ("--set", "limits.join=300ms", "--set", "limits.silence=2s")
    code, _, err = worldline("run", file, "--no-record", *changes)
    assert code == 3
    assert "worldline: other didn't join within 0.3 seconds, and the run can't go on without" in err


def test_an_entry_that_cant_be_used_is_told_with_the_reason(worldline: Command, tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text("import no_such_module_anywhere\ndef a(me): ...\n")
    file = write(tmp_path, "source", "missing_role")
    code, _, err = worldline("run", file, "--no-record")
    assert code == 2
    assert '"missing_role".entry: cast has no missing_role' in err
    Path(file).write_text('[[participants]]\nname = "a"\nentry = "broken:a"\n')
    code, _, err = worldline("run", file, "--no-record")
    assert code == 2
    assert "broken can't be imported: ModuleNotFoundError: No module named 'no_such_module_anywhere'" in err
    code, _, err = worldline("run", file, "--no-record", "--executor", "in-process")
    assert code == 2
    assert "broken can't be imported: ModuleNotFoundError: No module named 'no_such_module_anywhere'" in err


def test_a_process_that_fails_after_it_has_left_is_told(worldline: Command, tmp_path: Path) -> None:
    code, _, err = worldline("run", write(tmp_path, "source", "fails_afterwards"), "--no-record")
    assert code == 1
    assert "worldline: fails_afterwards: its process ended with exit code 7 after it had left" in err


def test_a_socket_named_relative_to_here_is_found(worldline: Command, tmp_path: Path) -> None:
    file = write(tmp_path, other="""["sh", "-c", "echo $WORLDLINE_ADDRESS"]""")
    _, _, err = worldline("run", file, "--no-record", "--listen", "unix:play.sock")
    assert f"its last line was: unix://{Path.cwd()}/play.sock" in err


# --- Ended from outside ---


# The command, with less patience for those who don't go.
HURRIED = """
from worldline.cli import main
from worldline.federation import server
from worldline.launch import launcher, processes
server._LINGER_S = launcher._GRACE_S = launcher._LINGER_S = processes._TERM_S = 0.5
main()
"""


@contextlib.contextmanager
def started(
    folder: Path, *arguments: str, pids: int, program: tuple[str, ...] = ("-m", "worldline")
) -> Iterator[tuple[subprocess.Popen[str], list[int]]]:
    """Start the command, and wait until so many participants have said their process's number."""
    command = [sys.executable, *program, "run", *arguments]
    child = subprocess.Popen(
        command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, bufsize=1
    )
    found: list[int] = []
    assert child.stdout is not None
    with child.stdout:
        try:
            while len(found) < pids:
                line = child.stdout.readline()
                assert line, "it ended before everybody was there"
                found += map(int, re.findall(r" pid (\d+)", line))
            yield child, found
        finally:
            child.kill()
            child.wait(PATIENCE_S)
            for pid in found:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)


@pytest.mark.long
@pytest.mark.parametrize("sign", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_leaves_a_recording_and_no_processes(sign: signal.Signals, tmp_path: Path) -> None:
    roles = ("source", "endless") if sign is signal.SIGTERM else ("source", "endless", "busy")
    file, expected = write(tmp_path, *roles, end="10h"), 1 if len(roles) == 2 else 3
    with started(tmp_path, file, pids=expected, program=("-c", HURRIED)) as (child, pids):
        child.send_signal(sign)
        assert child.wait(PATIENCE_S) == 130
        assert child.stdout is not None
        rest = child.stdout.read()
        assert f"worldline: interrupted by {sign.name}" in rest
        eventually(lambda: not any(map(is_running, pids)), PROMPT_S)
    verdict = Recording(tmp_path / "play.mcap").verify()
    assert verdict.condition is Condition.BROKEN_OFF
    assert f"interrupted by {sign.name}" in str(verdict)


def test_an_impatient_user_leaves_no_processes_either(tmp_path: Path) -> None:
    with started(tmp_path, write(tmp_path, "source", "busy", end="10h"), pids=2) as (child, pids):
        while child.poll() is None:
            child.send_signal(signal.SIGINT)
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.wait(0.3)
        assert child.returncode in (130, -signal.SIGINT)  # A shell shows both alike.
        eventually(lambda: not any(map(is_running, pids)), PROMPT_S)


def test_a_run_in_one_process_is_interrupted_alike(tmp_path: Path) -> None:
    sign = signal.SIGTERM
    file = write(tmp_path, "source", "endless", end="10h")
    with started(tmp_path, file, "--executor", "in-process", pids=1) as (child, _):
        child.send_signal(sign)
        assert child.wait(PATIENCE_S) == 130
    verdict = Recording(tmp_path / "play.mcap").verify()
    assert verdict.condition is Condition.BROKEN_OFF
    assert f"interrupted by {sign.name}" in str(verdict)


def test_a_reader_that_has_seen_enough_ends_the_run_in_good_order(tmp_path: Path) -> None:
    file = write(tmp_path, "source", "talks", end="10h")
    command = [sys.executable, "-m", "worldline", "run", file]
    with subprocess.Popen(
        command,
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "FOR_EVER": "1"},
    ) as child:
        assert child.stdout is not None
        assert child.stderr is not None
        assert child.stdout.readline().endswith("talks   news 0\n")
        child.stdout.close()
        assert child.wait(PATIENCE_S) == 141
        assert [line for line in child.stderr if not line.startswith("... ")] == []
    assert Recording(tmp_path / "play.mcap").verify().condition is Condition.BROKEN_OFF


# Counts down the lines of Python that are executed from the first of Worldline's on, and interrupts itself there.
INTERRUPTED_AT = """
import os, signal, sys, threading
left = int(sys.argv.pop(1))
def count(frame, event, argument):
    global left
    left -= 1
    if left == 0:
        sys.setprofile(None)
        os.kill(os.getpid(), signal.SIGINT)
from worldline.cli import main
sys.setprofile(count)
main()
"""


@pytest.mark.parametrize("call", [1000, 30_000, 300_000])
def test_an_interruption_at_any_moment_leaves_no_traceback(call: int, tmp_path: Path) -> None:
    file = write(tmp_path, "source", "endless", end="10h")
    command = [sys.executable, "-c", INTERRUPTED_AT, str(call), "run", file, "--no-record", "--quiet"]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert "Traceback" not in ran.stderr
    assert ran.returncode in (130, -signal.SIGINT), ran.stderr


# --- On a terminal ---


def on_a_terminal(folder: Path, *arguments: str, answers: dict[str, str] | None = None) -> tuple[int, str]:
    """Run the command on a terminal, answer its prompts, and return its exit code and all that was shown."""
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "100", "LINES": "30"}
    command = [sys.executable, "-m", "worldline", *arguments]
    child = subprocess.Popen(command, cwd=folder, stdin=theirs, stdout=theirs, stderr=theirs, env=environment)
    os.close(theirs)
    shown, left = b"", dict(answers or {})
    deadline = time.monotonic() + PATIENCE_S
    with contextlib.suppress(OSError):  # So the end of a terminal shows.
        while time.monotonic() < deadline and (data := os.read(ours, 4096)):
            shown += data
            for prompt in [prompt for prompt in left if prompt.encode() in shown]:
                os.write(ours, left.pop(prompt).encode())
    os.close(ours)
    return child.wait(PATIENCE_S), shown.decode()


def test_a_debugger_has_the_terminal_when_all_run_in_one_process(tmp_path: Path) -> None:
    file = write(tmp_path, "source", "stops_to_think")
    code, shown = on_a_terminal(
        tmp_path,
        "run",
        file,
        "--no-record",
        "--executor",
        "in-process",
        answers={"(Pdb) ": "p thought * 1001\n", "42042": "c\n"},
    )
    assert code == 0, shown
    assert "stops_to_think()" in shown
    assert "42042" in shown
    assert "it was 42\r\n" in shown
    assert re.search(r"digest [0-9a-f]{32}\r\n", shown)


def test_leaving_the_debugger_ends_the_run(tmp_path: Path) -> None:
    file = write(tmp_path, "source", "stops_to_think")
    options = ("--no-record", "--executor", "in-process")
    code, shown = on_a_terminal(tmp_path, "run", file, *options, answers={"(Pdb) ": "q\n"})
    assert code == 130, shown
    assert "worldline: stops_to_think at 5ms: the debugger was quit" in shown
    assert "Traceback" not in shown


def test_a_terminal_shows_how_it_goes_and_is_left_clean(tmp_path: Path) -> None:
    file = write(tmp_path, "source", "reader", end="500ms")
    code, text = on_a_terminal(tmp_path, "run", file, "--no-record", "--realtime", "0.5")
    assert code == 0
    assert re.search(r"play  \d+(\.\d+)?m?s of 500ms, .*real time", text)
    assert text.count("\x1b[?25l") == text.count("\x1b[?25h")  # The cursor is hidden, and shown again.
    assert text.rfind("\x1b[?25h") > text.rfind("\x1b[?25l")
    assert re.search(r"digest [0-9a-f]{32}\r\n", text)
    # In the end the status line is taken back: it is erased, and nothing comes after that.
    assert re.search(r"real time[^\n]*\n\x1b\[\?25h\r\x1b\[1A\x1b\[2K$", text)


def test_a_debugger_without_input_says_so_before_it_quits() -> None:
    output = io.StringIO()
    debugger = Debugger(lambda: None, output)
    debugger.reset()
    assert debugger.do_EOF("")
    assert output.getvalue().startswith("there is no input to take commands from, so the debugger quits")
