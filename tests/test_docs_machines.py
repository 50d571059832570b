"""The page on several machines shows commands that work: here, with several processes on one."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.ports import free_port
from tests.test_docs import ROOT, command

PAGE = (ROOT / "docs" / "machines.md").read_text()
_NAMES = ("room", "heater", "display")


def shown(start: str) -> str:
    """Return the line of the page that begins so, if there is only one."""
    (line,) = (line.removeprefix("$ ") for line in PAGE.splitlines() if line.removeprefix("$ ").startswith(start))
    return line


@pytest.mark.long
@pytest.mark.parametrize("kind", ["tcp", "tls"])
def test_the_page_shows_how_to_serve_and_join(kind: str, tmp_path: Path) -> None:
    command("-m", "worldline", "init", "cell", cwd=tmp_path)
    for line in (shown("openssl rand"), shown("openssl req").replace("lab-1", "localhost")):
        subprocess.run(line, shell=True, cwd=tmp_path, check=True, capture_output=True, timeout=60)

    port = free_port()

    def started(line: str) -> subprocess.Popen[str]:
        words = shlex.split(line.replace("lab-1", "localhost").replace(":7475", f":{port}"))
        return subprocess.Popen(
            [sys.executable, "-m", *words], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )

    server = started(f"{shown(f'worldline serve cell/federation.toml --listen {kind}')} --no-record")
    join = shown(f"worldline join cell/federation.toml heater --address {kind}")
    clients = [started(join.replace("heater", name)) for name in _NAMES]
    printed, _ = server.communicate(timeout=60)
    for client in clients:
        client.communicate(timeout=60)
    assert [client.returncode for client in clients] == [0, 0, 0]
    (digest,) = re.findall(r"^digest .*$", PAGE, re.MULTILINE)
    assert printed.splitlines()[-1] == digest
