"""The page on tests of services: its tests fail as it shows, and those of the example do as they say."""

from __future__ import annotations

import re
from pathlib import Path
from shutil import copy

import pytest

from tests.testing.test_plugin import run_pytest

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "testing.md").read_text()
EXAMPLE = ROOT / "examples" / "booking"
FILES = dict(re.findall(r"^```python\n# (test_\w+\.py)\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE))
SHOWN = re.findall(r"^```\n\$ pytest (.*?)\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    copy(EXAMPLE / "booking.py", tmp_path)
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    return tmp_path


@pytest.mark.long
@pytest.mark.parametrize(("command", "shown"), SHOWN, ids=[command.split()[0] for command, _ in SHOWN])
def test_what_the_page_shows_is_printed(folder: Path, command: str, shown: str) -> None:
    lines = run_pytest(folder, *command.split()).splitlines()
    for line in shown.splitlines():
        if line != "...":
            assert line in lines, f"{line}\n" + "\n".join(lines)
            del lines[: lines.index(line) + 1]


def test_the_page_shows_the_example() -> None:
    example = (EXAMPLE / "test_booking.py").read_text()
    for part in re.split(r"\n{3}", FILES["test_booking.py"])[1:]:
        assert part.strip() in example


@pytest.mark.long
def test_the_careful_service_passes() -> None:
    output = run_pytest(EXAMPLE, "-c", "/dev/null", "--rootdir", str(EXAMPLE), "test_booking.py")
    assert re.findall(r"::test_(\w+) (PASSED|FAILED)", output.partition("FAILURES")[0]) == [
        ("a_seat_is_sold_once", "FAILED"),
        ("a_careful_service_sells_it_once", "PASSED"),
        ("a_partition_changes_nothing", "PASSED"),
    ]
