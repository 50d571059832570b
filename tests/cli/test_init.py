"""`worldline init`: what it writes works, and it writes all of it or nothing."""

from __future__ import annotations

import errno
import importlib
import io
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
from typer.testing import CliRunner

from worldline import Federation, Program, check, run
from worldline.cli.commands import app
from worldline.cli.init import TEMPLATES, init, write_files
from worldline.launch.file.setup import Setup, read_setup
from worldline.model import UsageError

ROOT = Path(__file__).parent.parent.parent


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """The module that init writes, imported from there."""
    init(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    yield importlib.import_module("federation")
    del sys.modules["federation"]


def programs_of(setup: Setup, module: ModuleType) -> dict[str, Program]:
    return {
        name: Program(
            getattr(module, str(part.entry).removeprefix("federation:")),
            publishes=part.publishes,
            subscribes=part.subscribes,
            period=part.period,
        )
        for name, part in setup.parts.items()
    }


def federation_of(file: Path, module: ModuleType, *changes: str) -> Federation:
    setup = read_setup(file, changes=changes)
    plan = setup.plan
    return Federation(programs_of(setup, module), network=plan.network, seed=plan.seed, until=plan.end)


def test_what_it_writes_runs_and_gives_one_history(
    tmp_path: Path, module: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "federation.toml"
    outcome = run(federation_of(file, module))
    shown = capsys.readouterr().out
    assert "temperature: " in shown
    assert "power: on" in shown
    assert "power: off" in shown
    assert any(reason.startswith("lost") for _, _, reason in outcome.dropped), "the link isn't lossy"
    assert set(outcome.times.values()) == {10 * 10**9}
    assert run(federation_of(file, module)).digest == outcome.digest
    assert run(federation_of(file, module, "seed=8")).digest != outcome.digest
    check(federation_of(file, module, "until=1s"), schedules=20).demand_same()


def test_what_it_writes_passes_the_linter_and_the_formatter(tmp_path: Path) -> None:
    init(tmp_path)
    for command in (["check"], ["format", "--check"]):
        done = subprocess.run(
            [sys.executable, "-m", "ruff", *command, "--no-cache", "--config", ROOT / "pyproject.toml", tmp_path],
            capture_output=True,
            text=True,
            timeout=100,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr


def test_the_command_takes_a_directory_or_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for arguments, directory in (([], tmp_path), (["there"], tmp_path / "there")):
        assert CliRunner().invoke(app, ["init", *arguments]).exit_code == 0
        assert tomllib.loads((directory / "federation.toml").read_text())["name"] == "room"


@pytest.mark.parametrize(
    ("there", "words"),
    [
        (["federation.py"], "federation.py is there already (nothing was written"),
        (["federation.toml"], "federation.toml is there already"),
        (["federation.toml", "federation.py"], "federation.py are there already"),
    ],
)
def test_what_is_there_is_never_overwritten(tmp_path: Path, there: list[str], words: str) -> None:
    for name in there:
        (tmp_path / name).write_text("mine")
    with pytest.raises(UsageError) as refusal:
        init(tmp_path)
    assert words in str(refusal.value)
    assert all(str(tmp_path / name) in str(refusal.value) for name in there)
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == dict.fromkeys(there, "mine")


def test_a_link_that_leads_nowhere_is_there_too(tmp_path: Path) -> None:
    (tmp_path / "federation.py").symlink_to("elsewhere")
    with pytest.raises(UsageError, match="is there already"):
        init(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["federation.py"]


@pytest.mark.parametrize(
    ("failure", "raised"),
    [(OSError(errno.ENOSPC, "No space left on device"), UsageError), (KeyboardInterrupt(), KeyboardInterrupt)],
)
def test_nothing_remains_if_writing_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failure: BaseException, raised: type[BaseException]
) -> None:
    class Half(io.TextIOWrapper):
        """A file on a disk that is nearly full."""

        def write(self, text: str) -> int:
            if text != "second":
                return super().write(text)
            super().write(text[:3])
            raise failure

    def open_half(path: Path, mode: str, encoding: str) -> io.TextIOWrapper:
        return Half(io.FileIO(path, mode), encoding=encoding)

    (tmp_path / "kept").write_text("mine")
    monkeypatch.setattr(Path, "open", open_half)
    write_files(tmp_path / "c", {"1": "first"})
    with pytest.raises(raised):
        write_files(tmp_path / "a" / "b", {"1": "first", "2": "second"})
    assert sorted(path.name for path in tmp_path.iterdir()) == ["c", "kept"]


@pytest.mark.parametrize("layer", [name for name in TEMPLATES if name != "federation"])
def test_a_template_of_each_layer_runs_at_once(layer: str, tmp_path: Path) -> None:
    if layer == "drake":
        pytest.importorskip("pydrake")
    written = CliRunner().invoke(app, ["init", str(tmp_path / layer), f"--{layer}"])
    assert written.exit_code == 0, written.output
    *_, command = written.output.splitlines()
    ran = subprocess.run(
        [sys.executable, "-m", *shlex.split(command)], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr
    assert re.search(r"^digest [0-9a-f]{32}$", ran.stdout, re.MULTILINE)


def test_what_a_template_needs_is_said_where_it_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("worldline.cli.init.find_spec", lambda name: None)
    for layer, needs in (("drake", "make extras WITH=drake"), ("kernel", None)):
        said = CliRunner().invoke(app, ["init", str(tmp_path / layer), f"--{layer}"]).output
        assert ("first install what it needs" in said, needs is None or needs in said) == (needs is not None, True)


def test_there_is_one_layer_at_a_time(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["init", str(tmp_path / "new"), "--kernel", "--nodes"])
    assert isinstance(result.exception, UsageError)
    assert "one layer at a time, not --kernel and --nodes" in str(result.exception)
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(
    ("folder", "options", "is_remarked"), [("simpy", [], True), ("shop", [], False), ("world", ["--world"], False)]
)
def test_a_folder_with_the_name_of_a_layer_is_remarked_on(
    folder: str, options: list[str], is_remarked: bool, tmp_path: Path
) -> None:
    said = CliRunner().invoke(app, ["init", str(tmp_path / folder), *options]).output
    assert (f"for the layer of that name: worldline init FOLDER --{folder}" in said) == is_remarked
