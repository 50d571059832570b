"""Executors: one text for each, one way to read it, and one refusal."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from worldline.model import ConfigurationError
from worldline.processes.executor import EVERY, Executor, Kind, as_executor, inline, mpi, processes, shuffled

TEXTS: dict[str, Executor] = {
    "inline": Executor("inline"),
    "processes(4)": processes(4),
    "mpi": Executor("mpi"),
    "shuffled(7)": shuffled(7),
    "shuffled(-7)": shuffled(-7),
    "in-process": Executor("in-process"),
    "tcp": Executor("tcp"),
    "unix": Executor("unix"),
}


@pytest.mark.parametrize("text", TEXTS)
def test_texts_and_values_are_the_same(text: str) -> None:
    value = TEXTS[text]
    assert as_executor(text) == value
    assert str(value) == text
    assert as_executor(value) is value
    assert pickle.loads(pickle.dumps(value)) == value


@pytest.mark.parametrize(
    ("given", "value"),
    [
        (" inline ", Executor("inline")),
        ("inline()", Executor("inline")),
        (" processes ( 2 ) ", processes(2)),
        ("shuffled( -3 )", shuffled(-3)),
        ("processes", Executor("unix")),
        ("workers(3)", processes(3)),
        (inline, Executor("inline")),
        (mpi, Executor("mpi")),
        (processes(3, placement={"a": 2}), Executor("processes", 3, {"a": 2})),
        (mpi(placement="links", patience_s=5), Executor("mpi", placement="links", patience_s=5)),
    ],
)
def test_it_may_be_written_in_many_ways(given: Any, value: Executor) -> None:
    assert as_executor(given) == value


@pytest.mark.parametrize(
    "given",
    [
        *(
            "outline",
            "",
            "inline(2)",
            "processes(x)",
            "processes(4",
            "processes(-)",
            "processes 4",
            "shuffled",
            "mpi(2)",
            "workers(x)",
        ),
        *("in_process", "tcp(3)", f"shuffled({'9' * 5_000})", 5, None, print, processes, Executor, b"inline"),
    ],
)
def test_what_is_none_is_refused(given: Any) -> None:
    with pytest.raises(ConfigurationError, match="isn't an executor") as refused:
        as_executor(given)
    everything = 'use "inline", "processes(4)", "mpi", "shuffled(7)", "in-process", "tcp" or "unix"'
    assert refused.value.advice == everything


@pytest.mark.parametrize(
    ("given", "allowed", "text"),
    [
        ("shuffled(7)", ("inline", "mpi"), '\'shuffled(7)\' can\'t be used here (use "inline" or "mpi")'),
        (Executor("tcp"), ("inline", "mpi"), '\'tcp\' can\'t be used here (use "inline" or "mpi")'),
        ("processes", ("processes",), "'processes' can't be used here (use \"processes(4)\")"),
        ("processes(4)", ("in-process", "tcp"), '\'processes(4)\' can\'t be used here (use "in-process" or "tcp")'),
        ("fast", ("shuffled",), "'fast' isn't an executor (use \"shuffled(7)\")"),
    ],
)
def test_a_room_says_what_it_can_use(given: Any, allowed: tuple[Kind, ...], text: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        as_executor(given, allowed)
    assert str(refused.value) == text


@pytest.mark.parametrize("workers", [0, 65, -1, 2.0, True, "2"])
def test_there_are_1_to_64_workers(workers: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"there can't be .* workers \(use 1 to 64\)"):
        processes(workers)
    if type(workers) is int:
        with pytest.raises(ConfigurationError, match=r"there can't be .* workers \(use 1 to 64\)"):
            as_executor(f"processes({workers})")


@pytest.mark.parametrize("patience", [0, -1, "soon", None, True])
def test_a_patience_is_a_number_of_seconds(patience: Any) -> None:
    with pytest.raises(ConfigurationError, match="isn't a patience"):
        mpi(patience_s=patience)


def test_a_seed_is_a_whole_number() -> None:
    with pytest.raises(ConfigurationError, match="'x' isn't a seed"):
        shuffled("x")  # type: ignore[arg-type]


def test_one_process_prints() -> None:
    assert all(as_executor(text).is_main for text in TEXTS if text != "mpi")
    assert len(EVERY) == len({value.kind for value in TEXTS.values()})
