"""Environments by Gymnasium's registry; what they show; spaces of their own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import gymnasium
import numpy as np
import pytest

from tests.learning.heating import FORMS, env
from worldline.errors import UsageError
from worldline.learning.gym import ID

HEATING = Path(__file__).parent / "heating.py"


def test_a_fresh_interpreter_finds_it_by_its_name() -> None:
    code = f"import gymnasium; print(gymnasium.make('worldline.learning.gym:{ID}', file={f'{HEATING}:env'!r}).spec.id)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=HEATING.parents[2])
    assert (done.stdout, done.stderr) == (f"{ID}\n", "")


def test_gymnasium_makes_an_environment_by_its_file() -> None:
    with gymnasium.make(ID, file=f"{HEATING}:env", until="100ms", render_mode="ansi") as made:
        made.reset(seed=3)
        *_, truncated, _ = [made.step(np.array([0.5])) for _ in range(5)][-1]
        assert truncated
        assert str(made.render()).startswith("heater at 100ms, step 5: sees [")
        assert "after [0.5], which earned -" in str(made.render())


def test_a_file_that_has_been_edited_is_loaded_anew(tmp_path: Path) -> None:
    file = tmp_path / "edited.py"
    part = tmp_path / "edited_part.py"
    text = "import edited_part\nfrom tests.learning.heating import env\ndef make(): return env(until=edited_part.END)"
    for end in ("100ms", "60ms"):
        file.write_text(text)
        part.write_text(f"END = {end!r}\n")
        with gymnasium.make(ID, file=str(file)) as made:
            made.reset(seed=3)
            steps = 1
            while not made.step(np.array([0.5]))[3]:
                steps += 1
        assert steps == int(end[:-2]) // 20


@pytest.mark.parametrize(
    ("file", "said"),
    [
        (str(HEATING), "has no function 'make'"),
        (f"{HEATING}:nothing", "has no function 'nothing'"),
        (f"{HEATING}:federation", "and not an environment"),
        ("nowhere.py", "there is no file nowhere.py"),
    ],
)
def test_what_isnt_an_environment_is_refused(file: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        gymnasium.make(ID, file=file)


def test_two_environments_share_no_space() -> None:
    with env() as first, env() as second:
        spaces = [first.action_space, second.action_space, FORMS["action_space"]]
        assert len({id(space) for space in spaces}) == 3
        first.action_space.seed(1)
        second.action_space.seed(1)
        drawn = second.action_space.sample()
        assert np.array_equal(first.action_space.sample(), drawn)


def test_it_shows_itself_only_if_that_is_wanted() -> None:
    with env() as silent:
        silent.reset()
        assert silent.render() is None
    with env(render_mode="ansi") as shown:
        assert shown.render() == "heater: no episode"
    with pytest.raises(UsageError, match="can't be shown as 'rgb_array'"):
        env(render_mode="rgb_array")
