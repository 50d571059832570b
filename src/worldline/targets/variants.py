"""The variants of a run: all that must not show in what comes of it, and what it means if it does.

One thing differs from the reference in every variant, so that a difference says where to look. The reference is the
target as `worldline run` runs it by itself, under the hash seed 0.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from difflib import get_close_matches
from enum import StrEnum
from functools import cache

from msgspec import Struct

from worldline.builds import UNCOMPILED
from worldline.model.errors import UsageError, shown

HASH_SEED = "PYTHONHASHSEED"

RESTLESS = "WORLDLINE_RESTLESS_THREADS"
TIME_ZONE = "TZ"
LOCALE = "LC_ALL"

HASH_SEEDS = (1, 2)
SHAKES = (1, 2)
RUNS_AHEAD = (10,)
RANKS = 2
"""How many ranks of MPI a run gets."""


class Factor(StrEnum):
    """What is different in a variant. Earlier ones explain differences in later ones."""

    NOTHING = "again"
    THREADS = "threads"
    HASH_SEED = "hash-seed"
    FOLDER = "folder"
    HOME = "home"
    LOCALE = "locale"
    TIME_ZONE = "time-zone"
    EXECUTOR = "executor"
    SHAKE = "shake"
    RUN_AHEAD = "run-ahead"
    BUILD = "build"


class Variant(Struct, frozen=True, kw_only=True):
    """One way to run a target. With `ranks`, it is run by so many ranks of MPI.

    What is None is as it is here: the hash seed, and which build is used. `surroundings` are further variables of the
    environment. What differs in its folder or its home is run in another one.
    """

    name: str
    factor: Factor
    options: tuple[str, ...] = ()
    hash_seed: int | None = 0
    is_compiled: bool | None = True
    ranks: int = 0
    surroundings: tuple[tuple[str, str], ...] = ()

    @property
    def environment(self) -> dict[str, str]:
        seed = {} if self.hash_seed is None else {HASH_SEED: str(self.hash_seed)}
        build = {} if self.is_compiled is None else {UNCOMPILED: "0" if self.is_compiled else "1"}
        return {**seed, **build, **dict(self.surroundings)}


class _Ways(Struct, frozen=True, kw_only=True):
    """In which ways simulations of a kind can be run. `own` are the options that only they have."""

    members: str
    executors: tuple[str, ...] = ("inline", "processes(2)", "processes(3)")
    own: tuple[tuple[str, Factor, tuple[str, ...]], ...] = ()
    has_mpi: bool = True
    is_compiled: bool = True


_SHAKEN = tuple((f"shake-{number}", Factor.SHAKE, ("--shake", str(number))) for number in SHAKES)
_AHEAD = tuple((f"run-ahead-{steps}", Factor.RUN_AHEAD, ("--set", f"run-ahead={steps}")) for steps in RUNS_AHEAD)
_KINDS: Mapping[str, _Ways] = {
    "federation": _Ways(
        members="participants", executors=("in-process", "tcp", "unix", "workers(2)"), own=_SHAKEN, has_mpi=False
    ),
    "kernel": _Ways(members="entities"),
    "nodes": _Ways(members="nodes"),
    "spacetime": _Ways(
        members="agents", executors=("inline", "processes(2)", "processes(3)", "shuffled(1)", "shuffled(2)")
    ),
    "world": _Ways(members="models", own=_AHEAD, has_mpi=False, is_compiled=False),
}
_MEANINGS = {
    Factor.NOTHING: "two equal runs differ: a clock, global randomness, id(), or a thread",
    Factor.THREADS: "it matters when threads take turns: threads race",
    Factor.HASH_SEED: "hash seeds differ: something iterates over a set, or goes by hash()",
    Factor.FOLDER: "working folders differ: something goes by the path of the current folder",
    Factor.HOME: "home folders differ: something goes by HOME, or by what lies there",
    Factor.LOCALE: "locales differ: something goes by the language or the number format of the system",
    Factor.TIME_ZONE: "time zones differ: something converts to or from local time",
    Factor.EXECUTOR: "executors differ: state is shared between {members}",
    Factor.SHAKE: "start orders and delays differ: state is shared, or something goes by when things happen to come",
    Factor.RUN_AHEAD: "it matters how far it runs ahead: a bug in Worldline or in the physics engine",
    Factor.BUILD: "compiled and plain Python differ: a bug in Worldline, unless the model looks at what runs it",
}


def reference_on(executor: str | None) -> Variant:
    """Return what the others are compared with: the target as it is run by itself, or on a certain executor."""
    options = () if executor is None else ("--executor", executor)
    return Variant(name="reference", factor=Factor.NOTHING, options=options)


def variants_of(kind: str, executor: str, *, mpi: bool = False, again: int = 1) -> list[Variant]:
    """Return the variants of a kind of simulation whose reference runs on this executor.

    What goes by luck is there `again` times.
    """
    ways = _KINDS[kind]
    on = ("--executor", executor)
    others = [other for other in ways.executors if other != executor]
    often = ((RESTLESS, "1"),)
    repeats = ["", *(f"-{number}" for number in range(2, again + 1))]
    found = [Variant(name=f"again{number}", factor=Factor.NOTHING, options=on) for number in repeats]
    found += [
        Variant(name=f"threads{number}", factor=Factor.THREADS, options=on, surroundings=often) for number in repeats
    ]
    found += [
        Variant(name=f"hash-seed-{seed}", factor=Factor.HASH_SEED, options=on, hash_seed=seed) for seed in HASH_SEEDS
    ]
    found += [
        Variant(name="folder", factor=Factor.FOLDER, options=on),
        Variant(name="home", factor=Factor.HOME, options=on),
        Variant(name="locale", factor=Factor.LOCALE, options=on, surroundings=((LOCALE, another_locale()),)),
        Variant(name="time-zone", factor=Factor.TIME_ZONE, options=on, surroundings=((TIME_ZONE, _another_zone()),)),
    ]
    found += [Variant(name=other, factor=Factor.EXECUTOR, options=("--executor", other)) for other in others]
    if mpi and ways.has_mpi:
        found.append(Variant(name="mpi", factor=Factor.EXECUTOR, options=("--executor", "mpi"), ranks=RANKS))
    found += [Variant(name=name, factor=factor, options=(*on, *options)) for name, factor, options in ways.own]
    if ways.is_compiled:
        found.append(Variant(name="uncompiled", factor=Factor.BUILD, options=on, is_compiled=False))
    return found


def chosen(variants: Sequence[Variant], only: Iterable[str], of_what: str = "") -> list[Variant]:
    """Return the variants that are named, themselves or by what they differ in; all, if none is."""
    wanted = [name.strip() for name in only if name.strip()]
    for name in wanted:
        if not any(name in (each.name, each.factor) for each in variants):
            there = list(dict.fromkeys([*(each.name for each in variants), *(each.factor.value for each in variants)]))
            near = get_close_matches(name, there, n=1)
            advice = f"did you mean {near[0]}?" if near else f"there are: {', '.join(there)}"
            raise UsageError(f"there is no variant {shown(name)}{of_what}", advice=advice)
    return [each for each in variants if not wanted or each.name in wanted or each.factor in wanted]


def check_names(only: Iterable[str]) -> None:
    """Refuse what names no variant of any kind of simulation, before anything is run."""
    every = [each for kind in _KINDS for each in variants_of(kind, "", mpi=True)]
    chosen(list({each.name: each for each in every}.values()), only)


def depend_on_kind(only: Iterable[str]) -> bool:
    """Whether some kinds of simulations have variants of these names, and others don't."""
    names = {kind: {name for each in variants_of(kind, "") for name in (each.name, each.factor)} for kind in _KINDS}
    return any(name.strip() not in known for name in only for known in names.values())


def meaning_of(factors: Iterable[Factor], kind: str) -> str:
    """Say what is probably wrong with a model whose runs differ in these: in the first of them, and in nothing else.

    What changes by itself explains all others, and state that is shared whatever comes of other start orders.
    """
    differing = list(dict.fromkeys(factors))
    if Factor.NOTHING in differing:
        differing = [Factor.NOTHING]
    elif Factor.EXECUTOR in differing and Factor.SHAKE in differing:
        differing.remove(Factor.SHAKE)
    return "; ".join(_MEANINGS[factor].format(members=_KINDS[kind].members) for factor in differing)


@cache
def another_locale() -> str:
    """Return a locale that the system has, and that isn't the one of this process: with another language, if it can."""
    here = next(filter(None, map(os.environ.get, (LOCALE, "LC_CTYPE", "LANG"))), "C")
    there: list[str] = []
    with suppress(OSError, subprocess.SubprocessError):
        listed = subprocess.run(["locale", "-a"], capture_output=True, text=True, check=True, timeout=10).stdout
        there = sorted(name for name in listed.split() if "utf" in name.lower() and name[:2] not in ("C.", "en"))
    others = [name for name in there if name[:2] != here[:2]]
    return others[0] if others else "C" if here != "C" else "C.UTF-8"


def _another_zone() -> str:
    """Return a time zone that isn't the one here, in a form that needs no table of zones."""
    zones = ("XYZ-13:45", "XYZ+9:30")
    return zones[os.environ.get(TIME_ZONE) == zones[0]]
