"""Chooses the build of the hot modules: compiled, or the sources.

The modules named here are ordinary Python. Each has a `.pxd` beside it that gives its classes C types, and `setup.py`
compiles it in place, under its own name, which Python prefers to the source. Compiled classes are built into one
another, so it's all of them or none: the sources are used if one of them isn't compiled for this Python, or if
WORLDLINE_UNCOMPILED is set. Four are Cython alone, a `.pyx`, and uncompiled nothing imports them: `federation.calls`,
`wire.packed`, `kernel.heap` and `simpy.agenda`.
"""

from __future__ import annotations

import os
import sys
from importlib.machinery import EXTENSION_SUFFIXES, ModuleSpec, SourceFileLoader
from importlib.util import spec_from_file_location

COMPILED = (
    "worldline.model.quantiles",
    "worldline.model.clock",
    "worldline.model.path",
    "worldline.model.frames",
    "worldline.history.resumable_hash",
    "worldline.history.journal",
    "worldline.history.observer",
    "worldline.history.guarding",
    "worldline.recording.pending",
    "worldline.recording.chunks",
    "worldline.recording.writer",
    "worldline.lock.heap",
    "worldline.lock.bounds",
    "worldline.lock.states",
    "worldline.lock.member",
    "worldline.lock.router",
    "worldline.lock.arbiter",
    "worldline.lock.ledger",
    "worldline.wire.packed",
    "worldline.wire.codec",
    "worldline.federation.calls",
    "worldline.federation.participant.participant",
    "worldline.federation.participant.connection",
    "worldline.federation.server.session",
    "worldline.federation.server.host",
    "worldline.federation.server.connection",
    "worldline.federation.server.run_journal",
    "worldline.federation.server.rejoining",
    "worldline.federation.inprocess.strand",
    "worldline.federation.inprocess.run",
    "worldline.programs.belongings",
    "worldline.programs.tcp",
    "worldline.programs.stack",
    "worldline.kernel.draws",
    "worldline.kernel.heap",
    "worldline.kernel.engine",
    "worldline.kernel.waiting",
    "worldline.kernel.resources",
    "worldline.kernel.process",
    "worldline.simpy.agenda",
    "worldline.simpy.engine",
    "worldline.simpy.resources.shared",
    "worldline.spacetime.geometry",
    "worldline.spacetime.lanes",
    "worldline.spacetime.core",
    "worldline.watch.reel",
)

UNCOMPILED = "WORLDLINE_UNCOMPILED"

_FOLDER = os.path.dirname(__file__)  # noqa: PTH120 - pathlib would double the time that it takes to import worldline.


def is_unwanted() -> bool:
    """Whether the environment of this process asks for the sources."""
    return os.environ.get(UNCOMPILED, "0") not in ("", "0")


def _place(name: str, suffix: str) -> str:
    return os.path.join(_FOLDER, *name.split(".")[1:]) + suffix  # noqa: PTH118


def first_uncompiled() -> str:
    """Return the first module that isn't compiled for this Python; nothing if all are."""
    for name in COMPILED:
        if not any(os.path.exists(_place(name, suffix)) for suffix in EXTENSION_SUFFIXES):  # noqa: PTH110
            return name
    return ""


def _reason() -> str:
    """Say why the sources are to be used; nothing if they aren't."""
    if is_unwanted():
        return f"{UNCOMPILED} is set"
    missing = first_uncompiled()
    return f"{missing} isn't compiled for this Python" if missing else ""


class _Sources:
    """Finds the sources of modules that may also be compiled."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        if name not in COMPILED:
            return None
        source = _place(name, ".py")
        return spec_from_file_location(name, source, loader=SourceFileLoader(name, source))


reason = _reason()
"""Why the sources are used; empty if what is compiled is."""

build = f"plain Python ({reason})" if reason else "compiled"

if reason:
    sys.meta_path.insert(0, _Sources())
