"""Records of what was sent tell what went along, so that runs that differ only there differ in a message."""

from __future__ import annotations

from typing import Any

import pytest

from worldline.spacetime import Agent, Channel, ForwardSimulation, Minkowski
from worldline.spacetime.outcome import AgentRecord


class Friend(Agent):
    to_other: Any = None

    def take(self, *_: object) -> None: ...


def sent(executor: str, word: str) -> list[AgentRecord]:
    """Let alice send bob all sorts of things; return the records of that."""
    simulation = ForwardSimulation(Minkowski(2), executor=executor, trace=True)
    with simulation:
        alice, bob = Friend(), Friend()
        alice.name, bob.name = "alice", "bob"
        bob.jump_to((0.0, 1.0))
        to_bob = alice.to_other = Channel(alice, bob)
        to_bob.send(Friend.take)
        to_bob.send(Friend.take, 1, [word], {"b", "a"}, 0.5)
        to_bob.send("take", alice.reference())
        to_bob.send(lambda friend: friend.take(word))
    return [record for record in simulation.run(until=5.0).records if record.kind == "sent" and record.agent == "alice"]


@pytest.mark.parametrize("executor", ["inline", "processes(2)"])
def test_what_goes_along_is_told_or_a_hash_of_it(executor: str) -> None:
    nothing, arguments, reference, closure = [record for record in sent(executor, "one") if record.what != "attach"]
    assert (nothing.given, nothing.content) == (None, "")
    assert (arguments.given, arguments.content) == ([1, ["one"], ["a", "b"], 0.5], "")
    assert reference.given is None
    assert len(reference.content) == 16
    assert closure.given is None
    assert len(closure.content) == 16


def test_two_runs_that_send_other_things_have_other_records() -> None:
    differing = [
        one.what for one, other in zip(sent("inline", "one"), sent("inline", "two"), strict=True) if one != other
    ]
    assert differing == ["Friend.take", "sent.<locals>.<lambda>"]
