"""Which variants there are of a run, and what it means if one differs."""

from __future__ import annotations

import pytest

from worldline.model.errors import UsageError
from worldline.targets.run_processes import (
    Factor,
    another_locale,
    check_names,
    chosen,
    meaning_of,
    reference_on,
    variants_of,
)

FIRST = ["again", "threads", "hash-seed-1", "hash-seed-2", "folder", "home", "locale", "time-zone"]
NAMES = {
    ("kernel", "inline"): [*FIRST, "processes(2)", "processes(3)", "uncompiled"],
    ("kernel", "processes(2)"): [*FIRST, "inline", "processes(3)", "uncompiled"],
    ("nodes", "inline"): [*FIRST, "processes(2)", "processes(3)", "uncompiled"],
    ("spacetime", "inline"): [*FIRST, "processes(2)", "processes(3)", "shuffled(1)", "shuffled(2)", "uncompiled"],
    ("world", "inline"): [*FIRST, "processes(2)", "processes(3)", "run-ahead-10"],
    ("world", "processes(3)"): [*FIRST, "inline", "processes(2)", "run-ahead-10"],
    ("federation", "tcp"): [*FIRST, "in-process", "unix", "workers(2)", "shake-1", "shake-2", "uncompiled"],
    ("federation", "in-process"): [*FIRST, "tcp", "unix", "workers(2)", "shake-1", "shake-2", "uncompiled"],
}


@pytest.mark.parametrize(("kind", "executor"), NAMES)
def test_every_kind_has_its_variants_the_most_telling_first(kind: str, executor: str) -> None:
    variants = variants_of(kind, executor)
    assert [each.name for each in variants] == NAMES[kind, executor]
    factors = list(Factor)
    assert sorted(variants, key=lambda each: factors.index(each.factor)) == variants


@pytest.mark.parametrize(("kind", "executor"), NAMES)
def test_a_variant_differs_from_the_reference_in_one_thing(kind: str, executor: str) -> None:
    reference = reference_on(executor)
    for each in variants_of(kind, executor, mpi=True):
        differing = [
            each.options != reference.options,
            each.hash_seed != reference.hash_seed,
            each.is_compiled != reference.is_compiled,
            each.surroundings != reference.surroundings,
            each.factor in (Factor.FOLDER, Factor.HOME),
        ]
        assert sum(differing) == (0 if each.factor is Factor.NOTHING else 1), each


def test_the_environment_says_all_that_matters() -> None:
    assert reference_on(None).environment == {"PYTHONHASHSEED": "0", "WORLDLINE_UNCOMPILED": "0"}
    found = {each.name: each.environment for each in variants_of("kernel", "inline")}
    assert found["hash-seed-2"] == {"PYTHONHASHSEED": "2", "WORLDLINE_UNCOMPILED": "0"}
    assert found["uncompiled"] == {"PYTHONHASHSEED": "0", "WORLDLINE_UNCOMPILED": "1"}


def test_mpi_is_there_if_it_is_asked_for() -> None:
    (mpi,) = [each for each in variants_of("spacetime", "inline", mpi=True) if each.ranks]
    assert (mpi.name, mpi.factor, mpi.options) == ("mpi", Factor.EXECUTOR, ("--executor", "mpi"))
    assert not any(each.ranks for each in variants_of("federation", "tcp", mpi=True))
    assert not any(each.ranks for each in variants_of("world", "inline", mpi=True))


@pytest.mark.parametrize(
    ("only", "names"),
    [
        ("", NAMES["kernel", "inline"]),
        ("again", ["again"]),
        ("executor", ["processes(2)", "processes(3)"]),
        ("uncompiled, hash-seed", ["hash-seed-1", "hash-seed-2", "uncompiled"]),
        ("processes(3),again", ["again", "processes(3)"]),
    ],
)
def test_some_can_be_chosen_by_name_or_by_what_they_differ_in(only: str, names: list[str]) -> None:
    assert [each.name for each in chosen(variants_of("kernel", "inline"), only.split(","))] == names


def test_what_names_no_variant_is_refused_with_those_that_there_are() -> None:
    check_names(["again", "shake-2", "shuffled(1)", "tcp", "inline", "mpi", ""])
    with pytest.raises(UsageError, match=r"there is no variant 'hash' \(did you mean hash-seed\?\)"):
        check_names(["again", "hash"])
    with pytest.raises(UsageError, match=r"there is no variant 'quite another'.*hash-seed-1.*mpi"):
        check_names(["again", "quite another"])
    with pytest.raises(UsageError, match=r"there is no variant 'tcp'.*processes"):
        chosen(variants_of("kernel", "inline"), ["tcp"])


def test_what_goes_by_luck_can_be_repeated() -> None:
    names = [each.name for each in variants_of("kernel", "inline", again=3)]
    assert names[:7] == ["again", "again-2", "again-3", "threads", "threads-2", "threads-3", "hash-seed-1"]
    assert [each.name for each in chosen(variants_of("kernel", "inline", again=2), ["again"])] == ["again", "again-2"]


def test_surroundings_are_others_than_those_here(monkeypatch: pytest.MonkeyPatch) -> None:
    for here in ("C", "C.UTF-8", "tr_TR.utf8"):
        monkeypatch.setenv("LC_ALL", here)
        another_locale.cache_clear()
        assert another_locale() != here
    another_locale.cache_clear()
    seen = set()
    for _ in range(2):
        (zone,) = [dict(each.surroundings)["TZ"] for each in variants_of("kernel", "") if each.name == "time-zone"]
        monkeypatch.setenv("TZ", zone)
        seen.add(zone)
    assert len(seen) == 2


def test_what_a_difference_means_is_said_in_words() -> None:
    assert meaning_of([Factor.HASH_SEED], "kernel").startswith("hash seeds differ: something iterates over a set")
    assert meaning_of([Factor.EXECUTOR], "nodes") == "executors differ: state is shared between nodes"
    assert meaning_of([Factor.NOTHING], "federation").endswith("a clock, global randomness, id(), or a thread")
    for factor in Factor:
        assert "{" not in meaning_of([factor], "spacetime")
    assert meaning_of([Factor.RUN_AHEAD], "world").startswith("it matters how far it runs ahead: a bug")


def test_all_that_differs_is_weighed() -> None:
    """What changes by itself explains everything, and shared state what comes of start orders. All else is told."""
    several = [Factor.NOTHING, Factor.HASH_SEED, Factor.EXECUTOR]
    assert meaning_of(several, "kernel") == meaning_of([Factor.NOTHING], "kernel")
    shared = [Factor.EXECUTOR, Factor.EXECUTOR, Factor.SHAKE]
    assert meaning_of(shared, "federation") == meaning_of([Factor.EXECUTOR], "federation")
    two = [Factor.HASH_SEED, Factor.TIME_ZONE]
    assert meaning_of(two, "kernel") == "; ".join(meaning_of([each], "kernel") for each in two)
