"""Invariants that are checked in every run: a bug of ours is met where it shows, with the state that shows it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.lock.table import Table
from worldline.lock import Advance
from worldline.lock.member import Member
from worldline.lock.states import State
from worldline.model import FOREVER, InternalError, Message, Network, link


def test_a_message_in_the_known_past_is_a_bug_and_not_delivered() -> None:
    table = Table("a", "b", subscribes={"a": ["red"]})
    table.say("b", Advance(100_000_000))
    table.say("a", Advance(50_000_000))
    inbox = table.arbiter.members["a"].inbox
    inbox.put(Message(10, 9, "b", 1, 0, "red", b"late"))
    told = r"a at 50ms: a grant to 60ms breaks A1 or A4: first message 10ns, granted .*this is a bug in Worldline"
    with pytest.raises(InternalError, match=told):
        table.arbiter.handle("a", Advance(60_000_000))


BREAKS: dict[str, Callable[[Member], None]] = {
    "A1: granted beyond its bound": lambda member: setattr(member, "granted", FOREVER),
    "A1: a message in its known past": lambda member: member.inbox.put(Message(10, 9, "b", 1, 0, "red", b"late")),
    "A4: a promise in the past": lambda member: setattr(member, "promise", 0),
    "A4: beyond its horizon": lambda member: setattr(member, "now", member.granted + 1),
    "B3: it rides on no other": lambda member: setattr(member, "rides_on", None),
}


@pytest.mark.parametrize("invariant", BREAKS)
def test_each_invariant_is_missed_when_it_is_broken(invariant: str) -> None:
    """What checks every test of the lock must itself notice something."""
    table = Table("a", "b", subscribes={"a": ["red"]}, network=Network(default=link(10_000_000)))
    table.say("b", Advance(100_000_000))
    table.say("a", Advance(5_000_000))
    table.say("a", Advance(50_000_000))
    table.say("a", Advance(500_000_000))
    member = table.arbiter.members["a"]
    assert member.state is State.ADVANCING
    BREAKS[invariant](member)
    with pytest.raises(InternalError, match=invariant.partition(":")[0]):
        table.arbiter.check_invariants()
