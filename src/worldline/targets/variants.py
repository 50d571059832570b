"""The variants of a run: all that must not show in what comes of it, and what it means if it does.

One thing differs from the reference in every variant, so that a difference says where to look. The reference is the
target as `worldline run` runs it by itself, under the hash seed 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from enum import StrEnum

from msgspec import Struct

from worldline.kernel.build import UNCOMPILED
from worldline.model.errors import UsageError, shown

HASH_SEED = "PYTHONHASHSEED"

HASH_SEEDS = (1, 2)
SHAKES = (1, 2)
RANKS = 2
"""How many ranks of MPI a run gets."""


class Factor(StrEnum):
    """What is different in a variant. Earlier ones explain differences in later ones."""

    NOTHING = "again"
    HASH_SEED = "hash-seed"
    EXECUTOR = "executor"
    SHAKE = "shake"
    BUILD = "build"


class Variant(Struct, frozen=True, kw_only=True):
    """One way to run a target. With `ranks`, it is run by so many ranks of MPI.

    What is None is as it is here: the hash seed, and which build is used.
    """

    name: str
    factor: Factor
    options: tuple[str, ...] = ()
    hash_seed: int | None = 0
    is_compiled: bool | None = True
    ranks: int = 0

    @property
    def environment(self) -> dict[str, str]:
        seed = {} if self.hash_seed is None else {HASH_SEED: str(self.hash_seed)}
        return seed if self.is_compiled is None else {**seed, UNCOMPILED: "0" if self.is_compiled else "1"}


_ON_WORKERS = ("inline", "processes(2)", "processes(3)")
_EXECUTORS: Mapping[str, tuple[str, ...]] = {
    "federation": ("in-process", "tcp", "unix"),
    "kernel": _ON_WORKERS,
    "nodes": _ON_WORKERS,
    "spacetime": (*_ON_WORKERS, "shuffled(1)", "shuffled(2)"),
}
_MEMBERS = {"federation": "participants", "kernel": "entities", "nodes": "nodes", "spacetime": "agents"}
_MEANINGS = {
    Factor.NOTHING: "two equal runs differ: a clock, global randomness, or a thread",
    Factor.HASH_SEED: "hash seeds differ: something iterates over a set, or goes by hash() or id()",
    Factor.EXECUTOR: "executors differ: state is shared between {members}",
    Factor.SHAKE: "start orders and delays differ: state is shared, or something goes by when things happen to come",
    Factor.BUILD: "compiled and plain Python differ: a bug in Worldline, unless the model looks at what runs it",
}


def reference_on(executor: str | None) -> Variant:
    """Return what the others are compared with: the target as it is run by itself, or on a certain executor."""
    options = () if executor is None else ("--executor", executor)
    return Variant(name="reference", factor=Factor.NOTHING, options=options)


def variants_of(kind: str, executor: str, *, mpi: bool = False) -> list[Variant]:
    """Return the variants of a kind of simulation whose reference runs on this executor."""
    on = ("--executor", executor)
    others = [other for other in _EXECUTORS[kind] if other != executor]
    found = [Variant(name="again", factor=Factor.NOTHING, options=on)]
    found += [
        Variant(name=f"hash-seed-{seed}", factor=Factor.HASH_SEED, options=on, hash_seed=seed) for seed in HASH_SEEDS
    ]
    found += [Variant(name=other, factor=Factor.EXECUTOR, options=("--executor", other)) for other in others]
    if kind == "federation":
        found += [
            Variant(name=f"shake-{number}", factor=Factor.SHAKE, options=(*on, "--shake", str(number)))
            for number in SHAKES
        ]
    elif mpi:
        found.append(Variant(name="mpi", factor=Factor.EXECUTOR, options=("--executor", "mpi"), ranks=RANKS))
    return [*found, Variant(name="uncompiled", factor=Factor.BUILD, options=on, is_compiled=False)]


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
    every = [each for kind in _EXECUTORS for each in variants_of(kind, "", mpi=True)]
    chosen(list({each.name: each for each in every}.values()), only)


def depend_on_kind(only: Iterable[str]) -> bool:
    """Whether some kinds of simulations have variants of these names, and others don't."""
    names = {kind: {name for each in variants_of(kind, "") for name in (each.name, each.factor)} for kind in _EXECUTORS}
    return any(name.strip() not in known for name in only for known in names.values())


def meaning_of(factor: Factor, kind: str) -> str:
    """Say what is probably wrong with a model whose runs differ in this."""
    return _MEANINGS[factor].format(members=_MEMBERS[kind])
