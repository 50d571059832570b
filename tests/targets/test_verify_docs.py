"""The page about `worldline verify` shows what happens, but for how long it takes."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.leaks.running import ROOT
from worldline.builds import first_uncompiled
from worldline.targets.run_processes import Factor, variants_of

PAGE = (ROOT / "docs" / "verify.md").read_text()


def untimed(text: str) -> str:
    return re.sub(r" +\d+\.\d\d(?=$|  \w+$)| in [\d.]+ s$", "", text, flags=re.MULTILINE)


@pytest.mark.long
@pytest.mark.skipif(bool(first_uncompiled()), reason="the page shows what is compiled, too")
def test_the_page_shows_what_is_printed(worldline: Any, tmp_path: Path) -> None:
    (program,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    (wrong,) = re.findall(r"\$ worldline verify rumors.py\n(.*?)```", PAGE, re.DOTALL)
    (right,) = re.findall(r"\$ worldline verify rumors.py \| tail -1\n(.*?)```", PAGE, re.DOTALL)
    file = tmp_path / "rumors.py"
    file.write_text(program)
    code, out, _ = worldline("verify", "rumors.py")
    assert code == 1
    beginning, *others = untimed(wrong).split("...\n")  # What `worldline diff` says is left out, but for the cause.
    assert untimed(out).startswith(beginning)
    assert untimed(out).endswith(others[-1])
    assert [part in untimed(out) for part in others] == [True, True]
    (cured,) = re.findall(r"With\s`(enumerate\(.*?\))`", PAGE)
    file.write_text(program.replace("enumerate(self.friends, 1)", cured))
    code, out, _ = worldline("verify", "rumors.py")
    assert (code, untimed(out.splitlines(keepends=True)[-1])) == (0, untimed(right))


def test_the_page_names_every_variant() -> None:
    kinds = {"federation": "", **dict.fromkeys(("kernel", "nodes", "spacetime", "world"), "inline")}
    for kind, executor in kinds.items():
        for variant in variants_of(kind, executor, mpi=True):
            assert f"`{variant.name}`" in PAGE
    for factor in Factor:
        assert factor in PAGE
