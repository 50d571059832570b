"""The example that learns to balance a pole."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.leaks.running import EXAMPLES

FOLDER = EXAMPLES / "balance"


def worker_script(text: str, folder: Path) -> str:
    """Run some lines as a script in the example's folder; return what they print."""
    ran = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(FOLDER)!r})\n{text}"],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=100,
        check=True,
    )
    return ran.stdout


@pytest.mark.long
@pytest.mark.once
def test_it_is_repeated_to_the_last_byte(tmp_path: Path) -> None:
    """Two learners of either kind, by one command: twice the same picture, on any number of workers."""
    pictures = []
    for workers in ("1", "2"):
        folder = tmp_path / workers
        folder.mkdir()
        script = f"import learn; learn.main(['--quick', '--seeds', '2', '--workers', '{workers}'])"
        said = worker_script(script, folder)
        pictures.append((said, (folder / "balance.svg").read_bytes()))
    assert pictures[0] == pictures[1]
    assert "common random numbers: " in pictures[0][0]


@pytest.mark.once
def test_what_was_learned_balances_the_pole(tmp_path: Path) -> None:
    script = "import balance, learn; env = balance.make(); print('return', learn.play(env, balance.LEARNED, seed=77))"
    *_, last = worker_script(script, tmp_path).splitlines()
    assert float(last.split()[1]) > 400


@pytest.mark.once
def test_any_learner_can_be_given_the_environment(tmp_path: Path) -> None:
    """Gymnasium's own checker has nothing to say of it; where stable-baselines3 is, a learner of its trains on it."""
    checked = "import balance, gymnasium.utils.env_checker as c; c.check_env(balance.make(), skip_render_check=True)"
    worker_script(f"import warnings; warnings.simplefilter('error')\n{checked}", tmp_path)
    train = [sys.executable, str(FOLDER / "train.py"), "--steps", "1024"]
    ran = subprocess.run(train, cwd=tmp_path, capture_output=True, text=True, timeout=100)
    if find_spec("stable_baselines3") is None:
        assert (ran.returncode, ran.stderr) == (1, "this needs stable-baselines3: pip install stable-baselines3\n")
    else:
        assert "after 1,024 steps: " in ran.stdout
