"""Every command that runs something ends in the same way if it is asked to, by whichever signal."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.files.files import nothing_stays  # noqa: F401 - A fixture.
from tests.targets.files import FEDERATION, KERNEL, NODES, SPACETIME, write
from worldline.cli import main
from worldline.recording import Condition, Recording

# It asks itself, so that it's certain when.
ASKS = "__import__('os').kill(__import__('os').getpid(), {sign:d}); __import__('time').sleep(3600)"
COMMANDS: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "run": (KERNEL, "self.seen += 1", ("run", "mine.py", "--record", "run.mcap")),
    "nodes": (NODES, "self.heard += 1", ("nodes", "--file", "mine.py", "--record", "run.mcap")),
    "spacetime": (SPACETIME, 'self.log("tick")', ("spacetime", "--file", "mine.py")),
}


@pytest.mark.usefixtures("nothing_stays")
@pytest.mark.parametrize("sign", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("command", COMMANDS)
def test_a_signal_is_one_line_and_130(
    command: str,
    sign: signal.Signals,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    text, there, words = COMMANDS[command]
    assert there in text
    write(tmp_path, text.replace(there, ASKS.format(sign=sign)))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.argv", ["worldline", *words])
    with pytest.raises(SystemExit) as exit_:
        main()
    assert (exit_.value.code, capsys.readouterr().err) == (130, f"worldline: interrupted by {sign.name}\n")
    if "--record" in words:
        verdict = Recording("run.mcap").verify()
        assert verdict.condition is Condition.BROKEN_OFF
        assert f"interrupted by {sign.name}" in str(verdict)


def test_a_program_that_keeps_its_thread_is_interrupted_too(tmp_path: Path) -> None:
    """In a process of its own, whose end is the end of the thread."""
    there = 'self.publish("ball", b"serve")'
    assert there in FEDERATION
    write(tmp_path, FEDERATION.replace(there, ASKS.format(sign=signal.SIGTERM)))
    command = [sys.executable, "-m", "worldline", "check", "mine.py"]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=100, check=False)
    assert (ended.returncode, ended.stderr) == (130, "worldline: interrupted by SIGTERM\n")


@pytest.mark.long
def test_tests_hear_signals_though_who_started_them_ignores_those() -> None:
    """As with nohup, in cron, and in scripts that run them in the background."""
    tests = f"{sys.executable} -m pytest -q -p no:cacheprovider -n 1 {__file__} -k 'one_line and run'"
    deaf = ["sh", "-c", f"trap '' INT TERM HUP QUIT; exec {tests}"]
    ended = subprocess.run(deaf, capture_output=True, text=True, timeout=100, check=False)
    assert "3 passed" in ended.stdout, ended.stdout
