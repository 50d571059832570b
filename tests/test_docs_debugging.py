"""The page on debugging, joining and twins: what it shows is what happens."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.terminal_session import terminal_session
from tests.federation.transports import PATIENCE_S

PAGE = (Path(__file__).parent.parent / "docs" / "debugging.md").read_text()
BLOCKS = re.findall(r"^```\n\$ (.*?)\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
WORLDLINE = f"{sys.executable} -m worldline"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for body in re.findall(r"^```(?:toml|python)\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE):
        (tmp_path / re.match(r"# (\S+)", body)[1]).write_text(body)  # type: ignore[index]
    return tmp_path


def shown(beginning: str) -> tuple[str, str]:
    """Return the command that begins so, and what the page says that it prints."""
    ((command, output),) = [each for each in BLOCKS if each[0].startswith(beginning)]
    return command.replace("worldline", WORLDLINE, 1), output


def without_clock(text: str) -> str:
    return re.sub(r"simulated in [\d.]+ s", "simulated", text)


def printed(command: str, folder: Path) -> str:
    done = subprocess.run(
        ["bash", "-c", f"{command} 2>&1"], cwd=folder, capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )
    return done.stdout


def digest_of(output: str) -> str:
    return re.findall(r"^digest ([0-9a-f]{32})$", output, re.MULTILINE)[0]  # type: ignore[no-any-return]


def test_a_careless_heater_is_found_by_its_twin(folder: Path) -> None:
    command, output = shown("PYTHONHASHSEED=0")
    assert without_clock(printed(command, folder)) == without_clock(output)


def test_the_heater_can_be_debugged(folder: Path) -> None:
    command, output = shown("worldline run thermostat.toml --debug")
    file = folder / "thermostat.py"
    line = re.findall(r"`(if .*?: breakpoint\(\))` into", PAGE)[0]
    file.write_text(re.sub(r"^(        )(rooms = )", rf"\1{line}\n\1\2", file.read_text(), flags=re.MULTILINE))
    with terminal_session(folder, *command.split()[3:]) as session:
        session.wait_for("heater()")
        for typed, answer in re.findall(r"^\(Pdb\) (.*)\n(.*)", output, re.MULTILINE):
            session.wait_for("(Pdb) ")
            session.type(f"{typed}\n")
            session.wait_for(answer)
        assert session.finish() == 0
    assert digest_of(session.shown.replace("\r", "")) == digest_of(output)


@pytest.mark.long
def test_the_heater_can_be_started_elsewhere(folder: Path) -> None:
    command, output = shown("worldline run thermostat.toml --without")
    _, whole = shown("worldline run thermostat.toml --debug")
    started = subprocess.Popen(["bash", "-c", f"exec {command} 2>&1"], cwd=folder, stdout=subprocess.PIPE, text=True)
    assert started.stdout is not None
    with started.stdout, started:
        try:
            lines = (line for line in started.stdout if not line.startswith("... "))  # Those come by the wall clock.
            said = [next(lines) for _ in output.splitlines()]
            assert [_anywhere(line) for line in said] == [_anywhere(line) for line in output.splitlines(keepends=True)]
            address = re.findall(r"--address \S+", said[0])[0]
            refused, words = shown("worldline join")
            assert printed(f"{refused} {address}", folder) == words
            assert printed(f"{WORLDLINE} join thermostat.toml heater {address}", folder) == ""
            assert digest_of(started.stdout.read()) == digest_of(whole)
            assert started.wait(PATIENCE_S) == 0
        finally:
            started.kill()


def _anywhere(line: str) -> str:
    return re.sub(r"unix://\S+/run", "unix://FOLDER/run", line)
