"""The keeper: nothing of a run stays, whoever is killed, and whatever participants have started, and how."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.federation.transports import PATIENCE_S, eventually
from tests.launch.conftest import kept
from tests.liveness import is_running
from worldline.federation.peer_process import is_stopped
from worldline.launch.processes import KeeperClient
from worldline.model import LossError, UsageError

# Each says the numbers of the processes to look for.
CAST = """
import itertools, os, signal, subprocess, sys, time

def waiting(self):
    self.subscribe("news")  # That anybody may send.
    print("pid", os.getpid())
    self.advance(to="1h")

def computing(self):
    print("pid", os.getpid())
    sum(itertools.repeat(1))

def stopped(self):
    print("pid", os.getpid())
    os.kill(os.getpid(), signal.SIGSTOP)

def parent(self):
    alone = subprocess.Popen(["sleep", "1000"], start_new_session=True, env={}, stdout=subprocess.DEVNULL)
    daemon = "sleep 1000 >/dev/null 2>&1 & echo $!"
    daemon = subprocess.run(daemon, shell=True, capture_output=True, start_new_session=True)
    print("pid", alone.pid)
    print("pid", daemon.stdout.decode().strip())
    if self.name == "parent":
        self.subscribe("news")
        self.advance(to="1h")

brief = parent
"""

NEVER_CONNECTS = '["sh", "-c", "trap \'\' TERM HUP; echo pid $$; sleep 1000 & echo pid $!; wait"]'


@contextlib.contextmanager
def launched(
    folder: Path, *roles: str, pids: int, **commands: str
) -> Iterator[tuple[subprocess.Popen[str], list[int]]]:
    """Run a federation of these, and wait until so many processes are known by their numbers."""
    (folder / "cast.py").write_text(CAST)
    text = 'name = "play"\nuntil = "10h"\n'
    text += "".join(f'[[participants]]\nname = "{role}"\nentry = "cast:{role}"\n' for role in roles)
    text += "".join(f'[[participants]]\nname = "{name}"\ncommand = {line}\n' for name, line in commands.items())
    (folder / "play.toml").write_text(text)
    command = [sys.executable, "-m", "worldline", "run", "play.toml", "--no-record"]
    found: list[int] = []
    with subprocess.Popen(
        command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
    ) as child:
        try:
            assert child.stdout is not None
            while len(found) < pids:
                line = child.stdout.readline()
                assert line, "it ended before everybody was there"
                found += map(int, re.findall(r" pid (\d+)", line))
            yield child, found
        finally:
            for pid in [child.pid, *found]:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)


def test_nothing_stays_when_the_launcher_is_killed(
    tmp_path: Path, short_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(short_folder))
    with launched(tmp_path, "waiting", "computing", "stopped", "parent", pids=5) as (child, pids):
        assert all(map(is_running, pids))
        assert len(list(short_folder.iterdir())) == 1  # Where they have met.
        os.killpg(child.pid, signal.SIGKILL)  # With all that is in its process group, as a job's end would.
        eventually(lambda: not any(map(is_running, pids)), PATIENCE_S)
        eventually(lambda: not list(short_folder.iterdir()), PATIENCE_S)


def test_commands_that_never_connect_dont_stay_either(tmp_path: Path) -> None:
    with launched(tmp_path, other=NEVER_CONNECTS, pids=2) as (child, pids):
        child.kill()
        eventually(lambda: not any(map(is_running, pids)), PATIENCE_S)


def test_nothing_stays_after_success(tmp_path: Path) -> None:
    with launched(tmp_path, "brief", pids=2) as (child, pids):
        assert child.wait(PATIENCE_S) == 0
        assert not any(map(is_running, pids))
        assert child.stdout is not None
        rest = child.stdout.read()
    # One has hidden whose it is.
    assert "a process left this running; it was ended: sleep 1000" in rest
    assert re.search(r"brief +worldline: it left this running; it was ended: sleep 1000", rest)


def keeper_of(launcher: int) -> int:
    (pid,) = Path(f"/proc/{launcher}/task/{launcher}/children").read_text().split()
    return int(pid)


def test_who_is_left_without_a_keeper_ends_too(tmp_path: Path) -> None:
    with launched(tmp_path, "computing", "stopped", pids=2) as (child, pids):
        os.kill(keeper_of(child.pid), signal.SIGKILL)
        assert child.wait(PATIENCE_S) == LossError.exit_code
        assert not any(map(is_running, pids))


@pytest.mark.long
def test_a_keeper_that_was_stopped_goes_on_when_it_is_needed(tmp_path: Path) -> None:
    with launched(tmp_path, "waiting", "computing", pids=2) as (child, pids):
        os.kill(keeper_of(child.pid), signal.SIGSTOP)
        while child.poll() is None:
            child.send_signal(signal.SIGINT)
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.wait(0.2)
        eventually(lambda: not any(map(is_running, pids)), PATIENCE_S)


# --- The keeper itself ---


@pytest.fixture
def keeping() -> Iterator[KeeperClient]:
    """A keeper, heard by a thread until it has ended."""
    with kept(KeeperClient()) as made:
        yield made


def start(keeping: KeeperClient, *command: str) -> bytes:
    """Start a command; return what it prints."""
    reading, writing = os.pipe()
    with os.fdopen(reading, "rb") as output:
        try:
            keeping.start("a", command, Path("/"), {"PATH": os.defpath}, [writing])
        finally:
            os.close(writing)
        return output.read()


def test_what_cant_be_started_is_refused_with_the_reason(keeping: KeeperClient) -> None:
    with pytest.raises(UsageError, match=r"a can't be started: .*No such file.*\(/no/such/program --fast\)"):
        start(keeping, "/no/such/program", "--fast")


def test_who_asks_a_keeper_that_is_gone_is_told(keeping: KeeperClient) -> None:
    keeping.end_all()
    keeping.wait()
    assert keeping.left() == []
    with pytest.raises(LossError, match="looks after the participants' processes is gone"):
        start(keeping, "true")


def test_a_keeper_that_was_stopped_does_what_it_is_asked_to(keeping: KeeperClient) -> None:
    keeping._process.send_signal(signal.SIGSTOP)
    eventually(lambda: is_stopped(keeping._process.pid))
    assert start(keeping, "echo", "done") == b"done\n"
