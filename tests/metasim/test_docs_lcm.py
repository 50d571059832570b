"""What the page about LCM shows is what happens."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import lcm

from worldline.metasim.public.mirror import TIME_DEFINITION

_PAGE = (Path(__file__).parent.parent.parent / "docs" / "metasim-lcm.md").read_text()
_MIRROR, _BRIDGE = re.findall(r"```python\n(.*?)```", _PAGE, re.DOTALL)


def printed(program: str, folder: Path) -> str:
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=folder, capture_output=True, text=True, timeout=60, check=True
    )
    return done.stdout


def test_the_log_is_what_the_page_shows(tmp_path: Path) -> None:
    assert f"```\n{printed(_MIRROR, tmp_path)}```" in _PAGE
    events = list(lcm.EventLog(str(tmp_path / "run.lcmlog")))
    lines = [f"{event.timestamp:>6} µs  {event.channel:<20} {event.data.decode()}\n" for event in events[:5]]
    assert f"```\n{''.join(lines)}```" in _PAGE


def test_the_bridge_prints_what_the_page_shows(tmp_path: Path) -> None:
    assert f"```\n{printed(_BRIDGE, tmp_path)}```" in _PAGE


def test_the_type_of_times_is_that_of_the_code() -> None:
    assert f"```\n{TIME_DEFINITION}```" in _PAGE
