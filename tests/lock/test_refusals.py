"""Both ends of the lock refuse the same mistakes in the same words."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.lock.table import Table
from worldline.lock import (
    Advance,
    Event,
    Invite,
    Join,
    Ledger,
    Promise,
    Publish,
    StartRun,
    Stop,
    Subscribe,
    Subscription,
    Unsubscribe,
)
from worldline.model import MS, WorldlineError
from worldline.model.payload import PAYLOAD_MAX

CONTROLS = Join(publishes=("red",), subscribes=(Subscription("blue"),), controls=True)
LISTENS = Join(publishes=(), subscribes=(Subscription("blue"),))
LARGE = bytes(PAYLOAD_MAX + 1)

MISTAKES: dict[str, tuple[Join, Event, Callable[[Ledger], object]]] = {
    "undeclared": (CONTROLS, Publish("green", b"", 20), lambda a: a.publish("green", b"", 20)),
    "nothing declared": (LISTENS, Publish("green", b"", 20), lambda a: a.publish("green", b"", 20)),
    "too large": (CONTROLS, Publish("red", LARGE, 20), lambda a: a.publish("red", LARGE, 20)),
    "a broken promise": (CONTROLS, Publish("red", b"", 9), lambda a: a.publish("red", b"", 9)),
    "a promise taken back": (CONTROLS, Promise(9), lambda a: a.promise(9)),
    "subscribed twice": (CONTROLS, Subscribe(Subscription("blue"), 0, 0), lambda a: a.subscribe("blue")),
    "not subscribed": (CONTROLS, Unsubscribe("green", 0, 0), lambda a: a.unsubscribe("green")),
    "no control": (LISTENS, Stop(50), lambda a: a.stop(50)),
    "stopping too early": (CONTROLS, Stop(10), lambda a: a.stop(10)),
    "inviting too early": (CONTROLS, Invite("guest", 10), lambda a: a.invite("guest", 10)),
}


def table(join: Join) -> Table:
    return Table("a", "b", joins={"a": join, "b": LISTENS})


def told_by_arbiter(join: Join, event: Event) -> WorldlineError:
    arbiter = table(join).arbiter
    arbiter.handle("a", Promise(10))
    with pytest.raises(WorldlineError) as caught:
        arbiter.handle("a", event)
    return caught.value


def told_by_ledger(join: Join, act: Callable[[Ledger], object]) -> WorldlineError:
    ledger = Ledger("a", join)
    ledger.receive(StartRun("a", 0, 0, CONTROL_LATENCY))
    ledger.promise(10)
    with pytest.raises(WorldlineError) as caught:
        act(ledger)
    return caught.value


CONTROL_LATENCY = table(CONTROLS).arbiter.plan.network.control_latency


@pytest.mark.parametrize(("join", "event", "act"), MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_has_one_text(join: Join, event: Event, act: Callable[[Ledger], object]) -> None:
    heard, own = told_by_arbiter(join, event), told_by_ledger(join, act)
    assert str(heard) == str(own)
    assert (heard.participant, heard.at, heard.facts) == ("a", 0, own.facts)
    assert heard.exit_code == own.exit_code


def test_what_the_state_doesnt_allow_is_named_as_it_is_said() -> None:
    arbiter = Table("a", "b", joins={"a": CONTROLS, "b": CONTROLS}).arbiter
    arbiter.handle("a", Advance(50 * MS))
    with pytest.raises(WorldlineError, match="a at 0s: Publish isn't possible while it is advancing"):
        arbiter.handle("a", Publish("red", b"", 20))
    ledger = Ledger("a", CONTROLS)
    with pytest.raises(WorldlineError, match=r"a at 0s: publish isn't possible: the run hasn't started for it \(enter"):
        ledger.publish("red", b"")
    ledger.receive(StartRun("a", 0, 0, 1))
    ledger.advance(50)
    with pytest.raises(
        WorldlineError, match=r"a at 0s: publish isn't possible while it is advancing \(advance\(to='50"
    ):
        ledger.publish("red", b"", 20)
