"""Stamped output: an ordinary file in every respect, with the time before every line."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.federation.transports import PATIENCE_S
from worldline.launch.worker import read_speaker, read_stamp

BEGIN = """
import faulthandler, logging, os, subprocess, sys
from worldline.launch.worker import TimeStamps
stamps = TimeStamps()
stamps.install()
stamps.now = lambda: 7
"""


def printed(program: str) -> list[tuple[int | None, str]]:
    """Run a program with stamped output; return its lines, with their times."""
    return [read_stamp(line) for line in raw(program)]


def raw(program: str) -> list[str]:
    ran = subprocess.run(
        [sys.executable, "-c", BEGIN + program],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
        timeout=PATIENCE_S,
        check=False,
    )
    return ran.stdout.decode().removesuffix("\n").split("\n")


def test_everything_that_works_with_standard_output_works() -> None:
    assert printed("""
print("text", 1)
sys.stdout.buffer.write(b"bytes\\n")
print("one"); print("two\\n\\nthree")
sys.stdout.writelines(["a\\n", "b\\n"])
subprocess.run(["echo", "another program"], stdout=sys.stdout)
os.write(1, b"descriptor\\n")
os.write(sys.stdout.fileno(), b"its number\\n")
sys.stdout.reconfigure(line_buffering=True, errors="replace")
logging.basicConfig(stream=sys.stdout, format="%(message)s")
logging.warning("logged")
print(sys.stdout.encoding, sys.stdout.errors, sys.stdout.isatty(), sys.stdout.name, sys.stdout.writable())
print("Grüße, 世界")
""") == [
        (7, "text 1"),
        (7, "bytes"),
        (7, "one"),
        (7, "two"),
        (7, ""),
        (7, "three"),
        (7, "a"),
        (7, "b"),
        (None, "another program"),
        (None, "descriptor"),
        (None, "its number"),
        (7, "logged"),
        (7, "utf-8 replace False <stdout> True"),
        (7, "Grüße, 世界"),
    ]


def test_the_two_outputs_share_no_line() -> None:
    assert printed("""
print("begun", end="")
print("aside", file=sys.stderr)
print("and on")
sys.stderr.write("half"); sys.stderr.write(" of it\\n")
""") == [(7, "begun"), (7, "aside"), (7, "and on"), (7, "half of it")]


def test_nothing_is_kept_back() -> None:
    assert printed("print('no end', end=''); os._exit(1)") == [(7, "no end")]
    crash = printed("print('before', end='\\n'); faulthandler.enable(); os.abort()")
    assert crash[0] == (7, "before")
    assert crash[1][1].startswith("Fatal Python error: Aborted")


def test_what_is_said_before_the_time_is_known_has_no_stamp(tmp_path: Path) -> None:
    assert printed("stamps.now = lambda: None; print('early'); stamps.now = lambda: 0; print('there')") == [
        (None, "early"),
        (0, "there"),
    ]


def test_those_who_share_a_process_share_no_line_and_each_says_whose_it_is() -> None:
    program = """
stamps.now, stamps.speaker = lambda: None, lambda: "a"; print("loading")
stamps.now = lambda: 7; print("begun", end="")
stamps.speaker = lambda: "b"; print("aside"); print("half", end="")
print(" of it")
stamps.speaker = lambda: None; print("nobody's")
"""
    lines = [read_speaker(line) for line in raw(program)]
    assert [(name, *read_stamp(line)) for name, line in lines] == [
        ("a", None, "loading"),
        ("a", 7, "begun"),
        ("b", 7, "aside"),
        ("b", 7, "half of it"),
        (None, 7, "nobody's"),
    ]


@pytest.mark.parametrize("digits", ["", "9" * 20, "9" * 5000, "-1", "1_0", "\u0663"])
def test_what_no_time_can_look_like_is_no_stamp(digits: str) -> None:
    assert read_stamp(f"\x1e{digits}\x1ftext") == (None, f"\x1e{digits}\x1ftext")
    assert read_stamp("\x1e70\x1ftext") == (70, "text")
