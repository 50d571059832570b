"""The two builds of the hot modules: which one is loaded, and that both give the same histories and the same errors."""

from __future__ import annotations

import os
import runpy
import subprocess
import sys
from functools import cache
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from shutil import copytree
from types import SimpleNamespace

import pytest

import worldline
from worldline import builds
from worldline.builds import UNCOMPILED
from worldline.federation.inprocess.strand import THREADS

ROOT = Path(worldline.__file__).parent

WHICH = "import worldline.builds, worldline.lock.arbiter as a; print(worldline.builds.build); print(a.__file__)"

# Everything that a path can do to a message, a late subscription, a guest, a stop and an error, on one line each.
HISTORY = """
import worldline
from worldline import Federation, Network, Program, Rule, hold, link, run, uniform

def chatter(me):
    while True:
        me.publish(f"from {me.name}", f"{me.now} {me.random.random()}".encode())
        me.next(until=me.now + 1 + me.random.randrange(3_000_000))

def host(me):
    me.subscribe("from a")
    me.invite("late", at=me.now + 10_000_000)
    for message in me.messages(until="40ms"):
        if message.sequence % 7 == 3:
            me.unsubscribe("from a")
            me.advance(by="1ms")
            me.subscribe("from a", buffer="newest(1)")
    me.stop(at="60ms")
    me.advance(to="70ms")

noisy = link(uniform("200us", "3ms"), loss=0.2, duplication=0.2)
held = hold(["a"], ["b"], "5ms", "9ms")
network = Network(default=link("1ms"), rules=[Rule(topic="from a", link=noisy)], outages=held)
everybody = {"a": Program(chatter), "b": Program(chatter, subscribes=["from a", "from late"]),
             "host": Program(host, controls=True), "late": Program(chatter, subscribes=["from b"], guest=True)}
outcome = run(Federation(everybody, network=network, seed=5))
print(outcome.digest, sorted(outcome.dropped.items()))
try:
    run(Federation({"a": Program(lambda me: me.publish("x", b"", at=2**70))}))
except worldline.WorldlineError as error:
    print(error)
"""


def said(program: str, *, folder: Path = ROOT.parent, **environment: str) -> str:
    around = {name: value for name, value in os.environ.items() if not name.startswith("WORLDLINE_")}
    run = subprocess.run(
        [sys.executable, "-c", program],
        env=around | {"PYTHONPATH": str(folder)} | environment,
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert run.returncode == 0, run.stderr
    return run.stdout


C_ALONE = {"agenda", "calls", "heap", "packed"}


def test_whatever_has_its_types_beside_it_is_compiled_and_nothing_else() -> None:
    typed = {path for path in ROOT.rglob("*.pxd") if not path.name.startswith("_")}
    assert {ROOT.joinpath(*name.split(".")[1:]).with_suffix(".pxd") for name in builds.COMPILED} == typed
    assert all(path.with_suffix(".py").exists() for path in typed if path.stem not in C_ALONE)
    assert {path.stem for path in ROOT.rglob("*.pyx")} == C_ALONE


def test_the_sources_are_used_where_somebody_wants_that() -> None:
    build, file = said(WHICH, **{UNCOMPILED: "1"}).splitlines()
    assert build == "plain Python (WORLDLINE_UNCOMPILED is set)"
    assert file.endswith("arbiter.py")


def test_the_sources_are_used_for_all_if_one_isnt_compiled(tmp_path: Path) -> None:
    compiled = [f"*{suffix}" for suffix in EXTENSION_SUFFIXES]
    folder = copytree(ROOT, tmp_path / "worldline", ignore=lambda where, names: _without(where, names, compiled))
    (folder / "lock" / f"arbiter{EXTENSION_SUFFIXES[0]}").touch()  # Even if there is another.
    build, file = said(WHICH, folder=tmp_path).splitlines()
    assert build == f"plain Python ({builds.COMPILED[0]} isn't compiled for this Python)"
    assert file.endswith("arbiter.py")


def _without(where: str, names: list[str], patterns: list[str]) -> set[str]:
    return {name for name in names if any(Path(name).match(pattern) for pattern in (*patterns, "__pycache__"))}


@pytest.mark.parametrize(("wish", "is_unwanted"), [(None, False), ("", False), ("0", False), ("1", True)])
def test_the_same_wish_has_nothing_compiled_and_nothing_compiled_used(
    wish: str | None, is_unwanted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[list[object]] = []
    monkeypatch.setattr("setuptools.setup", lambda *, ext_modules, **_: made.append(ext_modules))
    monkeypatch.setitem(sys.modules, "Cython.Build", SimpleNamespace(cythonize=lambda modules, **_: modules))
    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path])  # Where sources are wanted, they are found there.
    monkeypatch.chdir(ROOT.parent.parent)
    if wish is None:
        monkeypatch.delenv(UNCOMPILED, raising=False)
    else:
        monkeypatch.setenv(UNCOMPILED, wish)
    runpy.run_path("setup.py")
    assert [bool(modules) for modules in made] == [not is_unwanted]
    assert builds.is_unwanted() is is_unwanted


@cache
def usual_history() -> str:
    return said(HISTORY, PYTHONHASHSEED="0")


@pytest.mark.parametrize(
    "other",
    [{THREADS: "1"}, {UNCOMPILED: "1", THREADS: "1"}],
    ids=["threads", "plain with threads"],
)
def test_a_history_and_an_error_are_the_same_in_every_build(other: dict[str, str]) -> None:
    usual = usual_history()
    assert said(HISTORY, PYTHONHASHSEED="1", **other) == usual
    assert usual.count("\n") == 2
