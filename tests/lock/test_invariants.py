"""Invariants that are checked in every run: a bug of ours is met where it shows, with the state that shows it."""

from __future__ import annotations

import pytest

from tests.lock.table import Table
from worldline.lock import Advance
from worldline.model import InternalError, Message


def test_a_message_in_the_known_past_is_a_bug_and_not_delivered() -> None:
    table = Table("a", "b", subscribes={"a": ["red"]})
    table.say("b", Advance(100_000_000))
    table.say("a", Advance(50_000_000))
    inbox = table.arbiter.members["a"].inbox
    inbox.put(Message(10, 9, "b", 1, 0, "red", b"late"))
    told = r"a at 50ms: a grant to 60ms breaks A1 or A4: first message 10ns, granted .*this is a bug in Worldline"
    with pytest.raises(InternalError, match=told):
        table.arbiter.handle("a", Advance(60_000_000))
