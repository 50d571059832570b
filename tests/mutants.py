"""Do the tests of a room notice when its code is changed? Changes it in small ways, and counts the survivors.

A mutant is one change of one place: `<` becomes `<=`, `and` becomes `or`, a number grows by one, a statement is left
out. For each, the tests that run through its line are run, the quickest first; if none of them fails, it survives, and
is printed. Mutants are drawn with a seed, so that a run can be repeated. Sources aren't touched: a changed module is
compiled in memory, in a process of its own.

    python -m tests.mutants lock --count 200 --seed 1
    python -m tests.mutants lock --only bounds.py:120
"""

from __future__ import annotations

import argparse
import ast
import copy
import importlib.abc
import importlib.machinery
import importlib.util
import json
import os
import random
import signal
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

os.environ["WORLDLINE_UNCOMPILED"] = "1"

import hypothesis
import pytest

import worldline  # First, since it puts the finder of its sources before all others.

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = Path(worldline.__file__).parent
LOADED = "ignore::pytest.PytestAssertRewriteWarning"  # Hypothesis is, before the forks.
PLAIN = "--assert=plain"  # Otherwise pytest imports Worldline itself, whose plugin it is, and no mutant.
QUIET = ("-q", "-x", "--no-header", "-p", "no:cacheprovider", "-p", "no:xdist", "--tb=no", "-W", LOADED, PLAIN)
TESTS = "not soak and not long"
SECONDS_MIN = 20
NOT_USED = 99
SURVIVED, KILLED, UNREACHED = "survived", "killed", "no test runs through it"


@dataclass(frozen=True)
class Mutant:
    file: Path
    line: int
    what: str
    number: int  # Which one of its file's.

    def __str__(self) -> str:
        return f"{self.file.relative_to(ROOT)}:{self.line}: {self.what}"


# --- Changes ---

SWAPPED: dict[type[ast.AST], type[Any]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.And: ast.Or,
    ast.Or: ast.And,
}
RENAMED = {"min": "max", "max": "min", "any": "all", "all": "any"}
EXEMPT = ("TYPE_CHECKING", "cython.compiled", "__debug__", "__all__", "__slots__", "__match_args__")


class Changer(ast.NodeTransformer):
    """Walks over a module, counts the places that could be changed, and changes the one with a given number."""

    def __init__(self, chosen: int = -1) -> None:
        self.chosen = chosen
        self.found: list[tuple[int, str]] = []

    def _offer(self, node: ast.AST, what: str) -> bool:
        self.found.append((node.lineno, what))  # type: ignore[attr-defined]
        return len(self.found) - 1 == self.chosen

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        if node.value is not None:
            node.value = self.visit(node.value)
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        if node.name in ("__repr__", "__str__"):  # What is said for debugging.
            return node
        node.args.defaults = [self.visit(each) for each in node.args.defaults]
        node.body = self._statements(node.body)
        return node

    def visit_If(self, node: ast.If) -> ast.AST:
        if any(name in ast.unparse(node.test) for name in EXEMPT):
            return node
        node.test = self.visit(node.test)
        node.body, node.orelse = self._statements(node.body), self._statements(node.orelse)
        return node

    def visit_For(self, node: ast.For) -> ast.AST:
        node.iter = self.visit(node.iter)
        node.body, node.orelse = self._statements(node.body), self._statements(node.orelse)
        return node

    def visit_Raise(self, node: ast.Raise) -> ast.AST:
        return node  # That it is raised is a statement; its text isn't behaviour.

    def visit_Assert(self, node: ast.Assert) -> ast.AST:
        return node  # A check too many or too few changes nothing as long as it holds.

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.AST:
        return node

    def _statements(self, body: list[ast.stmt]) -> list[ast.stmt]:
        changed: list[ast.stmt] = []
        for each in body:
            dropped = isinstance(each, ast.AugAssign | ast.Raise | ast.Delete) or (
                isinstance(each, ast.Expr) and isinstance(each.value, ast.Call)
            )
            if dropped and self._offer(each, f"without `{ast.unparse(each).splitlines()[0][:70]}`"):
                changed.append(ast.copy_location(ast.Pass(), each))
                continue
            changed.append(self.visit(each))
        return changed

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        self.generic_visit(node)
        for place, operator in enumerate(node.ops):
            other = SWAPPED[type(operator)]
            after = copy.copy(node)
            after.ops = [other() if number == place else each for number, each in enumerate(node.ops)]
            if self._offer(node, f"`{ast.unparse(node)[:60]}` becomes `{ast.unparse(after)[:60]}`"):
                return after
        return node

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        self.generic_visit(node)
        return self._swapped(node) if type(node.op) in SWAPPED else node

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
        self.generic_visit(node)
        return self._swapped(node)

    def _swapped(self, node: Any) -> ast.AST:
        after = copy.copy(node)
        after.op = SWAPPED[type(node.op)]()
        chosen = self._offer(node, f"`{ast.unparse(node)[:60]}` becomes `{ast.unparse(after)[:60]}`")
        return after if chosen else node

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.op, ast.Not) and self._offer(node, f"`{ast.unparse(node)[:60]}` without its not"):
            return node.operand
        return node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.func, ast.Name) and node.func.id in RENAMED:
            other = RENAMED[node.func.id]
            if self._offer(node, f"`{node.func.id}` becomes `{other}` in `{ast.unparse(node)[:60]}`"):
                node.func = ast.copy_location(ast.Name(other, ast.Load()), node.func)
        return node

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        if type(node.value) is bool and self._offer(node, f"{node.value} becomes {not node.value}"):
            return ast.copy_location(ast.Constant(not node.value), node)
        if type(node.value) is int and self._offer(node, f"{node.value} becomes {node.value + 1}"):
            return ast.copy_location(ast.Constant(node.value + 1), node)
        return node


def mutants_of(file: Path) -> list[Mutant]:
    changer = Changer()
    changer.visit(ast.parse(file.read_text()))
    return [Mutant(file, line, what, number) for number, (line, what) in enumerate(changer.found)]


def changed(mutant: Mutant) -> CodeType:
    tree = Changer(mutant.number).visit(ast.parse(mutant.file.read_text()))
    return compile(ast.fix_missing_locations(tree), mutant.file, "exec")


class Loader(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Imports one module as it was changed."""

    def __init__(self, mutant: Mutant) -> None:
        parts = mutant.file.relative_to(PACKAGE.parent).with_suffix("").parts
        self.name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        self.mutant = mutant
        self.is_used = False

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname != self.name:
            return None
        return importlib.util.spec_from_file_location(fullname, self.mutant.file, loader=self)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        exec(changed(self.mutant), module.__dict__)
        self.is_used = True


# --- Which test runs through which line, and how long it takes ---


class Tracks:
    """A plugin of pytest that notes the lines of a room that each test runs through."""

    def __init__(self, room: Path) -> None:
        self.room = str(room)
        self.lines: set[tuple[str, int]] = set()
        self.tests: dict[str, dict[str, Any]] = {}
        self._begun = 0.0
        monitoring = sys.monitoring
        monitoring.use_tool_id(monitoring.COVERAGE_ID, "mutants")
        monitoring.register_callback(monitoring.COVERAGE_ID, monitoring.events.LINE, self._line)
        monitoring.set_events(monitoring.COVERAGE_ID, monitoring.events.LINE)

    def _line(self, code: CodeType, line: int) -> Any:
        if code.co_filename.startswith(self.room):
            self.lines.add((code.co_filename, line))
        return sys.monitoring.DISABLE  # Once per test is enough.

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self.lines.clear()
        sys.monitoring.restart_events()
        self._begun = time.monotonic()

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        seconds = time.monotonic() - self._begun
        self.tests[nodeid] = {"seconds": seconds, "lines": sorted(self.lines)}


def in_child(work: Any, seconds: float = 0) -> int:
    """Do it in a fork that says nothing; return its exit code, or 1 if it took too long."""
    sys.stdout.flush()
    pid = os.fork()
    if pid == 0:
        signal.alarm(round(seconds) + 1 if seconds else 0)
        nothing = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nothing, 1)
        os.dup2(nothing, 2)
        code = 1
        try:
            code = work()
        finally:
            os._exit(code)
    _, status = os.waitpid(pid, 0)
    return os.waitstatus_to_exitcode(status)


def tracks_of(room: str) -> dict[str, dict[str, Any]]:
    with tempfile.NamedTemporaryFile("r") as file:

        def work() -> int:
            tracks = Tracks(PACKAGE / room)
            code = pytest.main([*QUIET, "-m", TESTS, str(ROOT / "tests" / room)], plugins=[tracks])
            Path(file.name).write_text(json.dumps(tracks.tests))
            return int(code)

        if in_child(work):
            raise SystemExit(f"the tests of {room} fail as they are: `pytest tests/{room}`")
        tests: dict[str, dict[str, Any]] = json.load(file)
        return tests


# --- Trying ---


def fate(mutant: Mutant, tests: dict[str, dict[str, Any]]) -> str:
    place = [str(mutant.file), mutant.line]
    concerned = sorted((found["seconds"], name) for name, found in tests.items() if place in found["lines"])
    if not concerned:
        # What runs when the module is imported concerns them all.
        is_reached = any(line[0] == place[0] for found in tests.values() for line in found["lines"])
        if not is_reached or not is_at_import(mutant):
            return UNREACHED
        concerned = sorted((found["seconds"], name) for name, found in tests.items())[:200]
    budget = SECONDS_MIN + 10 * sum(seconds for seconds, _ in concerned)

    def work() -> int:
        loader = Loader(mutant)
        sys.meta_path.insert(0, loader)
        code = int(pytest.main([*QUIET, *(name for _, name in concerned)]))
        return code if loader.is_used else NOT_USED

    code = in_child(work, budget)
    if code == NOT_USED:
        raise SystemExit(f"{mutant}: it was imported as it is, and not as it was changed")
    return KILLED if code else SURVIVED


def is_at_import(mutant: Mutant) -> bool:
    functions = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
    tree = ast.parse(mutant.file.read_text())
    inside = (node for node in ast.walk(tree) if isinstance(node, functions))
    return not any(node.lineno < mutant.line <= (node.end_lineno or 0) for node in inside)


def chosen(room: str, count: int, seed: int, only: Sequence[str]) -> Iterator[Mutant]:
    files = sorted((PACKAGE / room).rglob("*.py"))
    everything = [mutant for file in files for mutant in mutants_of(file)]
    if only:
        yield from (mutant for mutant in everything if f"{mutant.file.name}:{mutant.line}" in only)
        return
    yield from random.Random(seed).sample(everything, min(count, len(everything)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("room", help="a folder of src/worldline that has one of the same name in tests")
    parser.add_argument("--count", type=int, default=100, help="mutants to try")
    parser.add_argument("--seed", type=int, default=0, help="which ones")
    parser.add_argument("--only", action="append", default=[], metavar="FILE:LINE", help="all of this line instead")
    options = parser.parse_args()
    os.chdir(ROOT)
    hypothesis.settings.register_profile("mutants", derandomize=True, database=None, deadline=None)
    hypothesis.settings.load_profile("mutants")
    tests = tracks_of(options.room)
    assert not any(name.startswith(f"worldline.{options.room}.") for name in sys.modules), "it must not be loaded yet"
    fates: dict[str, list[Mutant]] = {SURVIVED: [], KILLED: [], UNREACHED: []}
    for mutant in chosen(options.room, options.count, options.seed, options.only):
        found = fate(mutant, tests)
        fates[found].append(mutant)
        if found != KILLED:
            print(f"{found}: {mutant}", flush=True)
    print(", ".join(f"{len(mutants)} {what}" for what, mutants in fates.items()))


if __name__ == "__main__":
    main()
