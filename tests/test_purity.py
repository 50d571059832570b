"""The pure rooms stay pure: no IO, imports point inwards only, and nothing in them takes an order from luck."""

from __future__ import annotations

import ast
import inspect
import re
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import worldline

ROOT = Path(worldline.__file__).parent

# A room may import itself and the rooms named here.
FOUNDATIONS: dict[str, set[str]] = {
    "model": set(),
    "history": {"model"},
    "lock": {"model", "history"},
    "wire": {"model", "lock"},
    "files": {"model"},
    "processes": {"model", "history", "files"},
    "recording": {"model", "history", "lock", "files"},
    "search": {"model", "history", "files", "processes"},
    "federation": {"model", "history", "lock", "wire", "search"},
    "programs": {"model", "history", "lock", "federation"},
    "launch": {"model", "history", "lock", "wire", "files", "processes", "federation", "programs"},
    "kernel": {"model", "history", "processes"},
    "nodes": {"model", "history", "files", "processes", "kernel", "search"},
    "spacetime": {"model", "history", "files", "processes", "kernel"},
    "simpy": {"model", "history", "processes", "kernel"},
    "world": {"model", "history", "lock", "wire", "files", "processes", "recording", "federation"},
    "metasim": {"model", "history", "lock", "wire", "files", "processes", "recording", "federation", "launch"},
    "learning": {"model", "history", "lock", "files", "processes", "federation", "launch", "watch"},
    "pictures": {
        *("model", "history", "lock", "files", "recording", "nodes", "spacetime", "world", "experiments"),
    },
    "targets": {
        *("model", "history", "lock", "files", "processes", "recording", "search", "federation", "launch"),
        *("kernel", "nodes", "simpy", "spacetime", "world"),
    },
    "watch": {"model", "history", "lock", "wire", "recording", "federation", "spacetime", "pictures"},
    "conformance": {"model", "files", "nodes", "targets"},
    "testing": {"model", "lock", "search", "federation", "programs"},
    "experiments": {"model", "history", "files", "processes", "search", "targets"},
    "cli": {
        *(
            "conformance",
            "experiments",
            "model",
            "history",
            "lock",
            "wire",
            "files",
            "processes",
            "recording",
            "search",
            "federation",
            "launch",
        ),
        *("kernel", "nodes", "spacetime", "world", "metasim", "pictures", "programs", "targets", "watch"),
    },
}
# Programs that stand for those of users, and so come in by the front door.
WRITTEN_AS_BY_USERS = ("models", "templates")

# Modules that belong to no room, and need none: rooms that aren't pure may use them.
LEAVES = {"builds", "extras"}
STAND_INS = {"uncompiled"}  # For Cython where it isn't installed: pure as it is.
PURE = ("model", "history", "lock", "wire")
PURE_IN_KERNEL = ("queue", "roster", "waiting", "worker")
PURE_IN_PICTURES = ("plot/chart", "sheet", "svg", "waits")
PURE_IN_WORLD = ("levels", "groups", "peers")
PURE_IN_PROGRAMS = ("stack", "tcp")

# All that the pure rooms may use of the world outside. Entropy and clocks are IO too; `random` is here for its class
# `Random` alone, and `datetime` for `timedelta`, which the next test checks.
ALLOWED = {
    *(
        "__future__",
        "array",
        "bisect",
        "collections",
        "collections.abc",
        "dataclasses",
        "datetime",
        "difflib",
        "copy",
        "enum",
        "fnmatch",
        "fractions",
        "functools",
        "hashlib",
        "heapq",
        "hmac",
        "itertools",
        "math",
        "msgspec",
        "msgspec.structs",
    ),
    *("numbers", "operator", "random", "re", "statistics", "types", "typing"),
}

# What some modules alone may use besides: one shows frames to an author who looks for a mistake; others
# take a span of time in the form that Python has for it, without a look at a clock; one has NetworkX find a flow of
# which there is one best.
NOTHING_OUTSIDE = ("worldline.", "cython", "cpython.", "libc.stdlib", "libc.string")
ALLOWED_IN = {
    "kernel/worker.py": {"struct"},
    "model/blame.py": {"traceback"},
    "model/segments.py": {"struct", "zlib"},
    "model/reading.py": {"datetime"},
    "model/time.py": {"datetime"},
    "programs/stack.py": {"errno", "os"},  # os for the texts of errors.
    "programs/tcp.py": {"errno"},
    "world/groups.py": {"networkx"},
}


def modules(*rooms: str) -> list[Path]:
    return sorted(
        path for room in rooms for path in (ROOT / room).rglob("*.py") if path.parent.name not in WRITTEN_AS_BY_USERS
    )


def typed(room: str) -> list[Path]:
    """Return what says the types of a room's modules, for compilers and for mypy."""
    return sorted((ROOT / room).rglob("*.p[xy][dix]"))


def pure_modules() -> list[Path]:
    parts = {
        "kernel": PURE_IN_KERNEL,
        "pictures": PURE_IN_PICTURES,
        "programs": PURE_IN_PROGRAMS,
        "world": PURE_IN_WORLD,
    }
    return modules(*PURE) + [ROOT / room / f"{name}.py" for room, names in parts.items() for name in names]


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


_CIMPORT = re.compile(r"^(?:from ([\w.]+) |)c?import ([\w.]+)", re.MULTILINE)


@cache
def import_statements(path: Path) -> list[ast.Import | ast.ImportFrom]:
    """Return them from wherever statements may stand; no expression is looked into, of which there are many more."""
    found: list[ast.Import | ast.ImportFrom] = []
    ahead: list[ast.AST] = [tree_of(path)]
    while ahead:
        node = ahead.pop()
        if isinstance(node, ast.Import | ast.ImportFrom):
            found.append(node)
        elif isinstance(node, ast.Module | ast.stmt | ast.ExceptHandler | ast.match_case):
            for part in ("body", "orelse", "handlers", "finalbody", "cases"):
                ahead += getattr(node, part, ())
    return found


def imports(path: Path) -> Iterator[str]:
    if path.suffix != ".py":
        yield from (found[1] or found[2] for found in _CIMPORT.finditer(path.read_text()))
        return
    for node in import_statements(path):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        else:
            assert node.level == 0, f"{path}: relative import"
            yield node.module or ""


def identify(path: Path) -> str:
    return str(path.relative_to(ROOT))


def test_every_room_is_known() -> None:
    rooms = {path.name for path in ROOT.iterdir() if path.is_dir() and path.name != "__pycache__"}
    assert rooms == set(FOUNDATIONS)


def test_imports_point_inwards_and_never_in_a_circle() -> None:
    """One test for all rooms: what takes long is to parse them, and each process that runs tests would do so."""
    for room, below in FOUNDATIONS.items():
        allowed = below | {room} | STAND_INS | (set() if room in PURE else LEAVES)
        for path in (*modules(room), *typed(room)):
            for name in imports(path):
                if name.startswith("worldline."):
                    assert name.split(".")[1] in allowed, f"{path} imports {name}"
                assert name != "worldline", f"{path}: a room imports rooms, not the front door"
        short = [{name.removeprefix(f"worldline.{room}.") for name in circle} for circle in circles(import_graph(room))]
        permitted = CIRCLES.get(room, [])
        assert [circle for circle in short if not any(circle <= each for each in permitted)] == []


# Circles of files that there may be, by room; they may get smaller. Rooms that aren't named here have none, not even
# for the sake of types. Those of the lock are for that alone.
CIRCLES: dict[str, list[set[str]]] = {
    # An engine has a roster of entities, and an entity is of its engine: two halves of one thing, in two files.
    "kernel": [{"account", "engine", "entity", "model", "process", "roster"}],
    # A ledger asks its filter, and that one its ledger; an arbiter is explained and checked by what reads it.
    "lock": [{"ledger", "lifecycle"}, {"arbiter", "invariants", "why.reasons"}],
    # A server has connections and a host, and these speak of their server: for the sake of types, and only here.
    "federation": [
        {
            *("server.connection", "server.host", "server.operating", "server.rejoining", "server.resident"),
            *("server.run_journal", "server.server", "server.session", "server.trunk"),
        }
    ],
}


def module_of(path: Path) -> str:
    parts = path.relative_to(ROOT.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def import_graph(room: str) -> dict[str, set[str]]:
    """Return which modules of a room import which others of it, also where only types are needed."""
    paths = {module_of(path): path for path in modules(room)}
    graph: dict[str, set[str]] = {name: set() for name in paths}
    for name, path in paths.items():
        for node in import_statements(path):
            if isinstance(node, ast.ImportFrom):
                named = [f"{node.module}.{alias.name}" for alias in node.names]
                found = {each if each in paths else node.module or "" for each in named}
            else:
                found = {alias.name for alias in node.names}
            graph[name] |= {each for each in found if each in paths and each != name}
    return graph


def circles(graph: dict[str, set[str]]) -> list[set[str]]:
    """Return the sets of modules that all import each other, directly or not."""

    def reached(start: str) -> set[str]:
        seen: set[str] = set()
        ahead = [start]
        while ahead:
            for target in graph[ahead.pop()]:
                if target not in seen:
                    seen.add(target)
                    ahead.append(target)
        return seen

    reach = {name: reached(name) for name in graph}
    found: list[set[str]] = []
    for name in sorted(graph):
        circle = {other for other in reach[name] if name in reach[other]}
        if circle and circle not in found:
            found.append(circle)
    return found


def test_circles_are_found() -> None:
    graph = {"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a", "e"}, "e": {"e"}, "f": set()}
    assert circles(graph) == [{"a", "b", "c"}, {"e"}]


@pytest.mark.parametrize("leaf", sorted(LEAVES | STAND_INS))
def test_leaves_stand_on_the_standard_library_alone(leaf: str) -> None:
    for name in imports(ROOT / f"{leaf}.py"):
        assert name.partition(".")[0] in sys.stdlib_module_names


def test_pure_rooms_do_no_io() -> None:
    found = {}
    for path in map(identify, (*pure_modules(), *(each for room in PURE for each in typed(room)))):
        outside = {name for name in imports(ROOT / path) if not name.startswith(NOTHING_OUTSIDE)}
        found[path] = outside - ALLOWED - ALLOWED_IN.get(path, set())
    assert {path: names for path, names in found.items() if names} == {}


def test_pure_rooms_take_no_order_from_luck() -> None:
    found = {identify(path): list(suspects(tree_of(path))) for path in pure_modules()}
    assert {path: suspicious for path, suspicious in found.items() if suspicious} == {}


SUSPICIOUS_CALLS = {"hash", "id", "open", "print", "input", "vars", "globals"}
SUSPICIOUS_MODULES = {"random": {"Random"}, "datetime": {"timedelta"}}  # Module → all that may be used of it.
SET_METHODS = {"union", "intersection", "difference", "symmetric_difference"}


def suspects(tree: ast.AST) -> Iterator[str]:
    """Yield every place that calls for a closer look: sets that are iterated, hashes, identities, global randomness."""
    sets = set_names(tree)
    for node in ast.walk(tree):
        line = getattr(node, "lineno", 0)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in SUSPICIOUS_CALLS:
            yield f"{line}: {node.func.id}()"
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            allowed = SUSPICIOUS_MODULES.get(node.value.id)
            if allowed is not None and node.attr not in allowed:
                yield f"{line}: {node.value.id}.{node.attr}"
        if isinstance(node, ast.ImportFrom) and node.module in SUSPICIOUS_MODULES:
            for name in node.names:
                if name.name not in SUSPICIOUS_MODULES[node.module]:
                    yield f"{line}: {node.module}.{name.name}"
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ITERATES:
            for argument in node.args:
                if is_set(argument, sets):
                    yield f"{line}: {node.func.id}() over a set"
        if isinstance(node, ast.For | ast.comprehension) and is_set(node.iter, sets):
            yield f"{getattr(node.iter, 'lineno', 0)}: iteration over a set"
        if isinstance(node, ast.Starred) and is_set(node.value, sets):
            yield f"{line}: a set unpacked"


ITERATES = {
    "list",
    "tuple",
    "enumerate",
    "iter",
    "next",
    "zip",
    "map",
    "filter",
    "reversed",
    "dict",
    "min",
    "max",
    "sum",
}


def set_names(tree: ast.AST) -> set[str]:
    """Return the names and attributes that are ever assigned a set, or annotated as one."""
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.AnnAssign):
            if "set[" in ast.unparse(node.annotation) or (node.value is not None and is_set(node.value, set())):
                names.add(ast.unparse(node.target))
        elif isinstance(node, ast.Assign) and is_set(node.value, set()):
            names.update(ast.unparse(target) for target in node.targets)
        elif isinstance(node, ast.arg) and node.annotation is not None and "set[" in ast.unparse(node.annotation):
            names.add(node.arg)
    return names


def is_set(node: ast.expr, sets: set[str]) -> bool:
    if isinstance(node, ast.Set | ast.SetComp):
        return True
    if isinstance(node, ast.Call):
        made = ast.unparse(node.func)
        method = made.rpartition(".")[2] in SET_METHODS
        return made.startswith(("set[", "frozenset[")) or made in ("set", "frozenset") or method
    return ast.unparse(node) in sets


@pytest.mark.parametrize(
    "leak",
    [
        "for x in {1, 2}: pass",
        "names = set()\nfor name in names: pass",
        "def f(self):\n    self.names: set[str] = g()\n    return [n for n in self.names]",
        "def f(names: frozenset[str]):\n    return list(names)",
        "[*{x for x in y}]",
        "for x in a.union(b): pass",
        "key = hash(x)",
        "sorted(xs, key=lambda x: id(x))",
        "import random\nrandom.shuffle(xs)",
        "from random import shuffle\nshuffle(xs)",
        "from datetime import datetime\ndatetime.now()",
    ],
)
def test_the_search_finds_what_it_looks_for(leak: str) -> None:
    assert list(suspects(ast.parse(leak)))


def test_the_public_names_are_few_and_there() -> None:
    assert len(worldline.__all__) <= 40
    assert all(hasattr(worldline, name) for name in worldline.__all__)
    assert [name for name in dir(worldline) if not name.startswith("__")] == sorted(worldline.__all__)
    assert "until" in inspect.signature(worldline.Federation).parameters
