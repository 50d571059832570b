"""One word, one meaning: no two classes of one name."""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path

import worldline

ROOT = Path(worldline.__file__).parent

SIMPYS = ("simpy/engine.py", "simpy/exceptions.py", "simpy/resources/shared.py")

CLASS = re.compile(r"^ *class (\w+)", re.MULTILINE)


def test_no_two_classes_have_one_name() -> None:
    """But for algorithms, which use the words of their textbooks, for models of users', and for SimPy's classes."""
    found = defaultdict(set)
    for file in ROOT.rglob("*.py"):
        name = file.relative_to(ROOT).as_posix()
        if not name.startswith(("nodes/algorithms/", "conformance/models/")) and name not in SIMPYS:
            for each in CLASS.findall(file.read_text()):
                found[each].add(name)
    assert {name: files for name, files in found.items() if len(files) > 1} == {}
