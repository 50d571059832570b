"""Rare branches: drawn by name in a simulation, found and shrunk by a search, and never taken anywhere else."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Callable

import pytest

import worldline
from worldline import Federation, Machine, Participant, Program, Server, connect, plan, run
from worldline.errors import UsageError
from worldline.federation.inprocess.trial import FederationTrial, shrink_federation
from worldline.search import Story, always


def cached(me: Participant) -> None:
    """Count to 30; a cache that is dropped twice in a row counts wrong."""
    drops = 0
    for _ in range(30):
        me.advance(by="1ms")
        drops = drops + 1 if worldline.sometimes("drop cache", 0.2) else 0
        if drops == 2:
            me.log("wrong")


def federation(program: Callable[[Participant], None] = cached, names: str = "ab") -> Federation:
    return Federation({name: Program(program) for name in names})


@always("counts are right")
def right(story: Story) -> bool:
    return "wrong" not in [note.text for note in story.noted()]


def test_a_search_takes_it_and_shrinks_to_what_it_takes() -> None:
    trial = FederationTrial(make=federation, properties=(right,))
    failing = next(each for each in map(trial.with_seed, range(50)) if each.run().failure is not None)
    shrunk = shrink_federation(failing)
    assert shrunk.drawn > shrunk.left == 2
    who = shrunk.failure.participant
    first, second = (int(name.rpartition("/")[2]) for name in shrunk.trial.written or {})
    assert second == first + 1
    assert (
        f"sometimes/{who}/drop cache/{first} = yes  ({who} takes the branch 'drop cache' at its choice {first + 1})"
        in shrunk.text()
    )
    assert [each.text for each in shrunk.records if each.kind == "noted"] == ["sometimes: drop cache"] * 2 + ["wrong"]


def test_each_participant_draws_for_itself_and_the_same_with_and_without_a_table() -> None:
    drawn: dict[str, list[bool]] = {}

    def drawing(me: Participant) -> None:
        me.advance(by="1ms")  # So that all have begun before any draws.
        drawn[me.name] = [worldline.sometimes("x") for _ in range(100)]

    run(federation(drawing))
    first = dict(drawn)
    run(federation(drawing), draws={"sometimes/a/x/7": True, "sometimes/b": False})
    assert first["a"] != first["b"]
    assert 0 < sum(first["a"]) < 30
    assert drawn == {"a": [*first["a"][:7], True, *first["a"][8:]], "b": [False] * 100}


def test_a_participant_over_a_socket_draws_the_same() -> None:
    drawn: list[bool] = []
    run(federation(lambda _: drawn.extend(worldline.sometimes("x") for _ in range(50)), "a"))
    with Server(plan(["a"]), "tcp://127.0.0.1:0") as server, connect(server.address, "a"):
        assert [worldline.sometimes("x") for _ in range(50)] == drawn
    assert True in drawn
    assert not worldline.sometimes("x", 1)  # It has left.


async def cached_service() -> None:
    """Drop a cache now and then, in a task and in a thread."""

    async def serve() -> int:
        return sum(worldline.sometimes("drop cache", 0.3) for _ in range(50))

    taken = await asyncio.create_task(serve()) + await asyncio.to_thread(lambda: worldline.sometimes("in a thread", 1))
    print(f"taken={taken}")


def test_unmodified_programs_have_it_too() -> None:
    trial = FederationTrial(make=lambda: Federation({"a": Machine(cached_service)}, until="1s"))
    outcome, told = trial.told()
    assert outcome.failure is None
    notes = [each.text for each in told if each.kind == "noted"]
    assert 1 < notes.count("sometimes: drop cache") < 50
    assert notes[-2:] == ["sometimes: in a thread", f"taken={len(notes) - 1}"]


def test_elsewhere_it_is_never_taken_and_loads_little() -> None:
    code = (
        "import sys, worldline; print(any(worldline.sometimes('x', 1) for _ in range(9)));"
        "print(sorted(name for name in sys.modules if name.startswith(('worldline.lock', 'msgspec', 'asyncio'))))"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout == "False\n[]\n"


@pytest.mark.parametrize("given", [("", 0.1), (3, 0.1), ("x", 2), ("x", "often")])
def test_what_is_not_a_branch_is_refused(given: tuple[object, object]) -> None:
    with pytest.raises(UsageError, match=r"it takes a name, and a chance from 0 to 1"):
        run(federation(lambda _: worldline.sometimes(*given), "a"))  # type: ignore[arg-type, func-returns-value]
