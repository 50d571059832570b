"""One word, one meaning: no two classes of one name, and one spelling."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from pathlib import Path

import worldline

ROOT = Path(worldline.__file__).parent
PROJECT = ROOT.parent.parent

BRITISH = re.compile(
    r"(?<!-)\b\w*(?:neighbor|behavior|color|favor|harbour|honor|center|metre|license|gray"
    r"|canceled|travel|modeled|modeling|labeled|[a-z]ise[sd]?\b(?<!rise)(?<!wise)(?<!raise)(?<!raises)(?<!raised))",
    re.IGNORECASE,
)


def classes(file: Path) -> list[str]:
    return [node.name for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.ClassDef)]


def test_no_two_classes_have_one_name() -> None:
    """But for algorithms, which use the words of their textbooks."""
    found = defaultdict(set)
    for file in ROOT.rglob("*.py"):
        name = file.relative_to(ROOT).as_posix()
        if not name.startswith("nodes/algorithms/"):
            for each in classes(file):
                found[each].add(name)
    assert {name: files for name, files in found.items() if len(files) > 1} == {}
