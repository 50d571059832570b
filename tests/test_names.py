"""One word, one meaning: no two classes of one name. And what a user sees of public names."""

from __future__ import annotations

import inspect
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


def test_what_is_made_of_a_public_class_says_what_it_is() -> None:
    """But for what is only derived from."""
    classes = [found for name in worldline.__all__ if inspect.isclass(found := getattr(worldline, name))]
    silent = [each.__name__ for each in classes if each.__repr__ is object.__repr__]
    assert silent == ["Observer"]
    plan = worldline.plan(["ann"])
    assert repr(worldline.Server(plan, federation="cell")) == "<Server of cell at tcp://127.0.0.1:0, gathering>"
    assert "ann" in repr(worldline.Federation({"ann": worldline.Program(print)}))


def test_completion_shows_what_public_functions_take() -> None:
    """No function takes anything under any name, which completion couldn't show."""
    functions = {name: found for name in worldline.__all__ if inspect.isfunction(found := getattr(worldline, name))}
    any_kind = {inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD}
    taking = {
        name: {each.kind for each in inspect.signature(found).parameters.values()} for name, found in functions.items()
    }
    assert [name for name, kinds in taking.items() if any_kind <= kinds] == ["plot"]  # Its options are a chart's.
