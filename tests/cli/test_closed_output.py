"""Output that nobody reads on ends a command quietly, and a full disk is said: nobody is blamed who just prints."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.federation.transports import PATIENCE_S
from tests.targets.files import FEDERATION, KERNEL, SPACETIME
from worldline.recording import Condition, Recording

LOUD = "import sys\nfor _ in range(9): print('loud' * 1000, flush=True)\n"
LOUD_KERNEL = KERNEL.replace("self.seen += 1", "print('loud' * 5000)")


def command(folder: Path, stdout: int, *words: str) -> tuple[int, str]:
    done = subprocess.run(
        [sys.executable, "-m", "worldline", *words],
        cwd=folder,
        env={**os.environ, "PYTHONUNBUFFERED": ""},
        stdout=stdout,
        stderr=subprocess.PIPE,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    return done.returncode, done.stderr


@pytest.fixture
def closed() -> Iterator[int]:
    """The end of a pipe that nobody reads."""
    reading, writing = os.pipe()
    os.close(reading)
    yield writing
    os.close(writing)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (LOUD_KERNEL, ("run", "it.py", "--record", "run.mcap")),
        (LOUD_KERNEL, ("run", "it.py", "--executor", "processes(2)")),
        (f"{LOUD}{SPACETIME}", ("run", "it.py")),
        (FEDERATION, ("run", "it.py", "--no-record")),
        ("", ("info",)),
    ],
)
def test_a_reader_that_has_enough_ends_a_command_quietly(
    text: str, words: tuple[str, ...], closed: int, tmp_path: Path
) -> None:
    (tmp_path / "it.py").write_text(text)
    assert command(tmp_path, closed, *words) == (141, "")
    if "--record" in words:
        verdict = Recording(tmp_path / "run.mcap").verify()
        assert verdict.condition is Condition.BROKEN_OFF
        assert "the reader closed the pipe" in str(verdict)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full here")
@pytest.mark.parametrize(
    ("text", "words", "who"),
    [
        (LOUD_KERNEL, ("run", "it.py"), " at "),
        (FEDERATION, ("run", "it.py", "--no-record"), "worldline: what"),
        ("", ("--help",), "worldline: what"),
    ],
)
def test_a_full_disk_is_said(text: str, words: tuple[str, ...], who: str, tmp_path: Path) -> None:
    (tmp_path / "it.py").write_text(text)
    full = os.open("/dev/full", os.O_WRONLY)
    try:
        code, said = command(tmp_path, full, *words)
    finally:
        os.close(full)
    assert (code, len(said.splitlines())) == (3, 1), said
    assert who in said
    assert "what is to be shown can't be written: No space left on device" in said


def test_what_the_command_has_to_say_of_a_mistake_is_said_though_nobody_reads_the_rest(
    closed: int, tmp_path: Path
) -> None:
    (tmp_path / "it.py").write_text(KERNEL.replace("self.seen += 1", "print('buffered'); 1 / 0"))
    code, said = command(tmp_path, closed, "run", "it.py")
    assert code == 1
    assert "ZeroDivisionError" in said
    assert "BrokenPipe" not in said
