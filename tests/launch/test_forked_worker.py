"""Forks of a warm keeper: whatever a program can see is as in an interpreter of its own."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.launch.conftest import kept
from worldline.federation.environment import NAME
from worldline.launch import worker
from worldline.launch.file.setup import ParticipantSetup
from worldline.launch.processes import KeeperClient, inherited, keeper_for, may_fork
from worldline.model import UsageError

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="elsewhere, nothing is forked")

# A module that says what it sees, and can't be imported: nothing is connected to.
LOOKING = """
import gc, json, os, random, signal, sys, threading

def target(descriptor):
    return os.readlink(f"/proc/self/fd/{descriptor}").partition(":")[0]

with open("/proc/self/cmdline", "rb") as file:
    command = file.read().rstrip(bytes(1)).split(bytes(1))

signals = {number: signal.getsignal(number) for number in signal.valid_signals()}
print(json.dumps({
    "argv": sys.argv,
    "original": sys.orig_argv,
    "command": [word.decode() for word in command],
    "executable": sys.executable,
    "path": sys.path,
    "flags": repr(sys.flags),
    "warnings": sys.warnoptions,
    "main": [getattr(sys.modules["__main__"], name) for name in ("__name__", "__file__", "__package__")],
    "module": [sys.modules["__main__"].__spec__.name, "worldline.launch.worker" in sys.modules],
    "environment": {**os.environ, "PYTHONHASHSEED": ""},
    "outputs": [repr((each.encoding, each.errors, each.write_through)) for each in (sys.__stdout__, sys.__stderr__)],
    "files": {number: target(number) for number in map(int, os.listdir("/proc/self/fd")) if number < 3},
    "highest": os.dup(0),
    "here": os.getcwd(),
    "session": os.getsid(0) == os.getpgrp() == os.getpid(),
    "threads": [thread.name for thread in threading.enumerate()],
    "collecting": gc.isenabled(),
    "signals": {int(number): repr(handler).partition(" at ")[0] for number, handler in signals.items()},
    "blocked": sorted(signal.pthread_sigmask(signal.SIG_BLOCK, ())),
    "wakes": signal.set_wakeup_fd(-1),
    "parent": os.getppid(),
}))
print(random.random())
with open("/proc/self/environ", "rb") as file:
    print("fresh" if b"WORLDLINE_NAME=" in file.read() else "forked")  # A fork's shows the environment of the keeper.
raise SystemExit("seen")
"""


@pytest.fixture
def keeping() -> Iterator[KeeperClient]:
    """A warm keeper, heard by a thread until it has ended."""
    with kept(KeeperClient(warm=True)) as made:
        yield made


def look(keeping: KeeperClient, folder: Path, *, may_fork: bool) -> tuple[dict[str, Any], float, str, str]:
    """Start a worker of the module `looking`; return what it sees, a draw of it, how it came to be, and the rest."""
    reading, writing = os.pipe()
    command = (sys.executable, "-m", worker.__name__, "looking:run")
    with os.fdopen(reading, "r") as output:
        try:
            keeping.start("a", command, folder, {**inherited(), NAME: "a", "Ü": "ü"}, [writing], may_fork=may_fork)
        finally:
            os.close(writing)
        seen, draw, how, rest = output.read().split("\n", 3)
    return json.loads(seen), float(draw), how, rest


def test_a_fork_sees_what_a_fresh_interpreter_sees(keeping: KeeperClient, tmp_path: Path) -> None:
    (tmp_path / "looking.py").write_text(LOOKING)
    forked, draw, how, rest = look(keeping, tmp_path, may_fork=True)
    other, other_draw, _, _ = look(keeping, tmp_path, may_fork=True)
    fresh, _, usual, usual_rest = look(keeping, tmp_path, may_fork=False)
    assert (how, usual) == ("forked", "fresh")
    assert forked == fresh
    assert forked == other
    assert draw != other_draw
    assert rest == usual_rest
    assert rest.startswith("worldline: looking can't be imported: SystemExit: seen, in looking.py")


def test_a_module_of_a_name_that_is_loaded_gets_an_interpreter_of_its_own(
    keeping: KeeperClient, tmp_path: Path
) -> None:
    (tmp_path / "looking.py").write_text(LOOKING)
    (tmp_path / "ctypes.py").write_text("")  # The keeper has loaded another one.
    assert look(keeping, tmp_path, may_fork=True)[2] == "fresh"


def test_a_program_in_a_directory_that_is_gone_is_refused(keeping: KeeperClient, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"a can't be started: .*No such file.*nowhere"):
        look(keeping, tmp_path / "nowhere", may_fork=True)


def participant(**described: Any) -> ParticipantSetup:
    return ParticipantSetup(**{"name": "a", "directory": Path("/"), "entry": "m:run", **described})


def test_only_what_would_be_the_same_may_be_forked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYTHONPATH", raising=False)
    assert may_fork(participant())
    assert not may_fork(participant(entry=None, command=("true",)))
    assert not may_fork(participant(environment={"PYTHONOPTIMIZE": "2"}))  # An interpreter reads it when it starts.
    monkeypatch.setenv("PYTHONPATH", "/lib:/opt/lib")
    assert may_fork(participant())
    monkeypatch.setenv("PYTHONPATH", "/lib:lib")  # It means something else in each directory.
    assert not may_fork(participant())


def test_a_keeper_is_warm_if_that_is_of_use() -> None:
    for parts, word in (([participant()], "-m"), ([participant(entry=None, command=("true",))], "-I")):
        keeper = keeper_for(parts)
        assert word in keeper._process.args  # type: ignore[operator]
        keeper.close()
        assert keeper._process.returncode == 0


def test_what_concerns_another_run_isnt_passed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORLDLINE_TOKEN", "secret")
    monkeypatch.setenv("WORLDLINE_UNCOMPILED", "1")
    passed_on = inherited()
    assert "WORLDLINE_TOKEN" not in passed_on
    assert passed_on["WORLDLINE_UNCOMPILED"] == "1"
