"""Short how-to pages: what they tell to do works."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from xml.etree import ElementTree

from tests.test_docs import ROOT, command

CI = (ROOT / "docs" / "ci.md").read_text()
RUMORS = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "verify.md").read_text(), re.DOTALL)[0]


def test_the_command_for_ci_fails_with_a_report_and_recordings_to_compare(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text(RUMORS)
    (line,) = re.findall(r"- run: worldline (verify .*)", CI)
    done = command("-m", "worldline", *shlex.split(line), "--only", "hash-seed", cwd=tmp_path)
    assert done.returncode == 1, done.stderr
    cases = ElementTree.parse(tmp_path / "verify.xml").iter("testcase")
    assert [case.find("failure") is not None for case in cases].count(True) >= 1
    (line,) = re.findall(r"^    worldline (diff .*)", CI, re.MULTILINE)
    done = command("-m", "worldline", *shlex.split(line), cwd=tmp_path)
    assert (done.returncode, done.stderr) == (1, "")
    assert "first cause: ann at 0s, sends rumor" in done.stdout
