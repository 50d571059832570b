"""The page on rejoining shows what happens."""

from __future__ import annotations

import re
from pathlib import Path

from tests.test_docs import ROOT, command

PAGE = (ROOT / "docs" / "rejoin.md").read_text()
_VARIES = re.compile(r" +~[0-9.]+m?s|in [0-9.]+ s")  # When it was killed, as far as the launcher knows; wall time.


def test_the_page_shows_what_its_walker_prints_and_the_digest_of_one_that_isnt_killed(tmp_path: Path) -> None:
    for block, name in re.findall(r"```(?:python|toml)\n(# (\S+)\n.*?)```", PAGE, re.DOTALL):
        (tmp_path / name).write_text(block)
    (shown,) = re.findall(r"\$ worldline run walk.toml\n(.*?)```", PAGE, re.DOTALL)
    run = ("-m", "worldline", "run", "walk.toml", "--no-record")
    printed = command(*run, cwd=tmp_path).stdout
    assert _VARIES.sub("", printed) == _VARIES.sub("", shown)
    assert (tmp_path / "died").exists()
    calm = command(*run, "--executor", "in-process", cwd=tmp_path).stdout
    assert calm.splitlines()[-1] == shown.splitlines()[-1]
