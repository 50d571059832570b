"""The command loads what it needs, and nothing else: most of what there is takes long to load."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.leaks.running import EXAMPLES

LOADED = """
import sys
from worldline.cli import main
try:
    main()
finally:
    print(*sys.modules, file=sys.stderr)
"""

# What is loaded before the model is nothing that the garbage collector looks through.
KERNEL = """
import gc
assert gc.isenabled() and gc.get_freeze_count() > 5_000
from worldline.kernel import Simulation
def model(*, seed=0): return Simulation(seed=seed)
"""


def loaded_by(folder: Path, *arguments: str) -> set[str]:
    """Return the modules that a command has loaded when it ends, and the packages that they are in."""
    command = [sys.executable, "-c", LOADED, *arguments]
    ran = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=100)
    assert ran.returncode == 0, ran.stderr
    modules = ran.stderr.splitlines()[-1].split()
    return {".".join(name.split(".")[:depth]) for name in modules for depth in (1, 2)}


@pytest.mark.parametrize(
    ("arguments", "unneeded"),
    [
        (("--help",), {"rich", "pydantic", "mcap", "worldline.cli.run", "worldline.targets"}),
        (
            ("run", "empty.py"),
            {"pydantic", "mcap", "multiprocessing", "networkx", "worldline.recording", "worldline.federation"}
            | {"worldline.nodes", "worldline.spacetime", "worldline.launch"},
        ),
        (
            ("run", str(EXAMPLES / "ping_pong" / "ping_pong.toml"), "--no-record", "--executor", "in-process"),
            {"pydantic", "networkx", "worldline.kernel", "worldline.nodes", "worldline.spacetime"},
        ),
    ],
    ids=["help", "kernel", "federation"],
)
def test_what_isnt_needed_isnt_loaded(arguments: tuple[str, ...], unneeded: set[str], tmp_path: Path) -> None:
    (tmp_path / "empty.py").write_text(KERNEL)
    assert loaded_by(tmp_path, *arguments) & unneeded == set()


def test_the_front_door_loads_no_room(tmp_path: Path) -> None:
    command = [sys.executable, "-c", "import sys, worldline; dir(worldline); print(*sys.modules)"]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True, timeout=100)
    loaded = [name for name in ran.stdout.split() if name.startswith(("worldline.", "msgspec"))]
    assert loaded == ["worldline.builds"]  # Which says how all others are loaded.


COMMAND = """
import os, signal, sys

class Interrupting:
    def find_spec(self, name, path=None, target=None):
        if name == sys.argv[1]:
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Interrupting())
from worldline.cli import main
main()
"""


@pytest.mark.parametrize("module", ["worldline.builds", "worldline.cli", "worldline.cli.commands"])
def test_ctrl_c_while_the_command_is_loaded_leaves_no_traceback(module: str, tmp_path: Path) -> None:
    (tmp_path / "worldline").write_text(COMMAND)
    ran = subprocess.run(
        [sys.executable, str(tmp_path / "worldline"), module], capture_output=True, text=True, check=False, timeout=60
    )
    assert ran.stderr == ""
    assert ran.returncode in (-signal.SIGINT, 130)


def test_whoever_imports_it_keeps_their_own_ctrl_c() -> None:
    code = "import signal, worldline; print(signal.getsignal(signal.SIGINT) is signal.default_int_handler)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert ran.stdout == "True\n"
