"""The examples of metasim: one digest in processes and in one process, and what they are to show."""

from __future__ import annotations

import importlib
import importlib.util
import math
import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from tests.leaks.running import EXAMPLES, ROOT, command_of
from tests.pictures.portable import strange
from tests.soaking import later

FOLDER = EXAMPLES / "metasim"
NAMES = sorted(path.stem for path in FOLDER.glob("*.toml"))
SVG = "{http://www.w3.org/2000/svg}"

needs_drake = pytest.mark.skipif(
    importlib.util.find_spec("pydrake") is None, reason="Drake isn't installed: it needs Python 3.12 or newer"
)


Told = Callable[..., dict[str, str]]


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Told:
    """Run an example; return what each participant says, and the digest."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(FOLDER))
    command = command_of(monkeypatch, capsys)

    def tell(name: str, *options: str) -> dict[str, str]:
        code, out, err = command("run", FOLDER / f"{name}.toml", "--no-record", *options)
        assert code == 0, err
        *spoken, _, digest = out.splitlines()
        return dict([*(line.split(maxsplit=2)[1:] for line in spoken), digest.split()])

    return tell


def test_they_are_there() -> None:
    assert NAMES == ["acrobot", "arm", "pendulum", "thermostat"]


@needs_drake
@pytest.mark.parametrize("name", ["pendulum", *later(["acrobot", "arm"])])
def test_processes_and_one_process_give_one_digest(told: Told, name: str) -> None:
    alone = told(name, "--until", "200ms", "--executor", "in-process")
    assert told(name, "--until", "200ms") == alone


def test_the_thermostat_needs_no_drake_and_has_one_digest_on_every_machine(told: Told) -> None:
    said = told("thermostat", "--executor", "in-process")
    assert told("thermostat") == said
    assert said == {
        "room": "20.1 °C; never above 20.7 °C",
        "thermostat": "switched 50 times",
        "digest": "758617137d97e5b72eea9418e2d9ae25",
    }


@needs_drake
def test_the_arm_reaches_where_it_should(told: Told) -> None:
    assert told("arm", "--executor", "in-process")["plant"] == "shoulder at -120.1°, elbow at -29.9°"


@needs_drake
def test_the_acrobot_is_caught(told: Told) -> None:
    assert told("acrobot", "--executor", "in-process")["plant"] == "-0.1° at the shoulder, +0.1° at the elbow"


@pytest.fixture
def delays(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(FOLDER))
    return importlib.import_module("angle_over_delay")


@needs_drake
def test_the_pendulum_stands_up_to_a_delay_and_falls_from_there_on(delays: ModuleType) -> None:
    page = (ROOT / "docs" / "metasim.md").read_text()
    assert "falls from a delay of 65 ms on" in " ".join(page.split())
    over = {delay: delays.angles_over(delay, 0.0, 2.0) for delay in (64, 65)}
    assert delays.fell_at(over[64]) is None
    assert delays.fell_at(over[65]) is not None


@needs_drake
def test_a_short_delay_differs_little_from_plain_drake(delays: ModuleType) -> None:
    plain: list[tuple[float, float]] = []
    delays.swing_in_one_process(0.5, lambda time, angle: plain.append((time, angle)))
    over = delays.angles_over(1, 0.0, 0.5)
    assert [time for time, _ in over] == [time for time, _ in plain]
    assert max(abs(ours - its) for (_, ours), (_, its) in zip(over, plain, strict=True)) < math.radians(0.5)


@needs_drake
def test_the_script_draws_all_runs(delays: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    out = tmp_path / "pendulum.svg"
    monkeypatch.setattr("sys.argv", ["angle_over_delay.py", "--seconds", "0.05", "--out", str(out)])
    delays.main()
    assert strange(out.read_text()) == []
    *delays_drawn, _, _, lossy = curves_in(out)
    *delays_kept, falling, _, _, lossy_kept = curves_in(ROOT / "docs" / "pendulum.svg")
    assert delays_drawn == delays_kept == ["no delay, one process", "20 ms", "40 ms", "60 ms"]
    assert (lossy, lossy_kept, falling) == ("50% are lost", "50% are lost: falls", "65 ms: falls")  # Not so soon.


def curves_in(picture: Path) -> list[str]:
    """Return what the curves in a picture are called."""
    return [text.text or "" for text in ET.parse(picture).iter(f"{SVG}text") if text.get("class") == "curve"]
