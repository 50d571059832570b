"""What an observer is told of a run: all of it, in order, whoever executed it; and records again from that."""

from __future__ import annotations

from typing import Any

import pytest

from tests.spacetime.running import Person, prepared
from worldline.history.observer import DEAD, LOG, META, UNDER_WAY
from worldline.model import ModelError, UsageError
from worldline.spacetime import Agent, AgentRecord, Channel, ForwardSimulation, LambdaField, Minkowski
from worldline.spacetime.examples import find
from worldline.spacetime.outcome import SCENE, Scene, recall
from worldline.spacetime.space import nanoseconds


class Listener:
    """Keeps all that it is told, in order."""

    def __init__(self) -> None:
        self.heard: list[tuple[Any, ...]] = []

    def __getattr__(self, what: str) -> Any:
        return lambda *facts: self.heard.append((what, *facts))

    def all(self, what: str) -> list[tuple[Any, ...]]:
        return [each[1:] for each in self.heard if each[0] == what]

    def details(self) -> list[AgentRecord]:
        return [each[-1] for each in self.heard if each[0] in ("sent", "noted") and isinstance(each[-1], AgentRecord)]

    def told(self) -> list[tuple[str, int, str, bytes]]:
        own = [each[1:] for each in self.heard if each[0] in ("sent", "noted")]
        plain = [(each[0], each[2], each[4]) if len(each) == 7 else (each[0], each[1], each[3]) for each in own]
        return [(who, number, topic, payload) for number, (who, topic, payload) in enumerate(plain) if payload]


def listened(simulation: ForwardSimulation, until: float) -> Listener:
    listener = Listener()
    simulation.run(until=until, observer=listener)
    return listener


def test_all_of_a_run_is_told() -> None:
    listener = listened(find("ping").build(trace=True), 2.5)
    assert listener.all("began") == [("Alice", 0), ("Bob", 0)]
    assert [each[:4] for each in listener.all("sent")] == [
        ("Alice", 0, "Ping.ping", 0),
        ("Bob", 0, "Ping.ping", 10**9),
        ("Alice", 1, "Ping.ping", 2 * 10**9),
    ]
    end = nanoseconds(2.5) + 1
    assert listener.all("arrives") == [
        ("Alice", 0, "Bob", 10**9, 0, None),
        ("Bob", 0, "Alice", 2 * 10**9, 0, None),
        ("Alice", 1, "Bob", end, 0, UNDER_WAY),
    ]
    assert listener.heard[-1] == ("passed", end + 1)


def test_details_are_the_records() -> None:
    listener = Listener()
    outcome = find("introduction").build(trace=True).run(until=20.0, observer=listener)
    assert listener.details() == outcome.records
    topics = {detail.kind: topic for _, topic, _, _, detail in listener.all("noted") if isinstance(detail, AgentRecord)}
    assert topics["log"] == LOG
    assert topics["born"] == topics["timer"] == META


def test_records_can_be_made_again() -> None:
    listener = Listener()
    simulation = find("flock").build(trace=True, birds=5)
    outcome = simulation.run(until=5.0, observer=listener)
    assert recall(reversed(listener.told())) == (simulation.scene(5.0), outcome.records)


def test_who_isnt_traced_can_be_observed() -> None:
    """Also what was before the run is told, when nobody could know that somebody would observe it."""
    traced, untraced = (find("epidemic").build(trace=trace, people=6, seed=3) for trace in (True, False))
    listener = Listener()
    outcome = untraced.run(until=20.0, observer=listener)
    assert listener.heard == listened(traced, 20.0).heard
    with pytest.raises(UsageError, match="wasn't traced"):
        _ = outcome.records


def test_nobody_else_is_asked_what_it_looks_like() -> None:
    """Its code may do anything, and whoever doesn't look needn't bear that."""

    class Vain(Agent):
        def shown_as(self) -> str:
            raise ValueError("don't look")

    def made(observer: Any) -> None:
        simulation = ForwardSimulation(Minkowski(1))
        with simulation:
            Vain()
        simulation.run(until=1.0, observer=observer)

    made(None)
    with pytest.raises(ModelError, match="don't look"):
        made(Listener())


def test_everybody_is_told_in_its_own_order() -> None:
    """Before the run agents jump back in lab time; that is told as it was done all the same (H1)."""

    def set_up(_: ForwardSimulation) -> None:
        person = Person()
        for at in (5.0, -2.0, 3.0):
            person.jump_to((at, 0.0))
        Person().jump_to((4.0, 1.0))

    listener = listened(prepared(set_up, "inline"), 10.0)
    records = listener.details()
    assert [each.number for each in records if each.agent == "Person-1"] == list(range(6))
    assert [each[0] for each in listener.all("began")] == ["Person-1", "Person-2"]
    assert all(at >= 0 for _, _, at, *_ in listener.all("noted"))


def test_the_dead_get_nothing() -> None:
    def set_up(_: ForwardSimulation) -> None:
        person, brief = Person(), Person()
        person.other = Channel(person, brief, blind=True)
        person.after(2.0, "tell", "hello")
        brief.after(1.0, "die")

    listener = listened(prepared(set_up, "inline", field=LambdaField(R=(1.0, 0.0))), 10.0)
    assert [each[2:] for each in listener.all("arrives")] == [("Person-2", nanoseconds(10.0) + 1, 0, DEAD)]


def test_of_a_failure_is_told_what_was_before() -> None:
    def set_up(_: ForwardSimulation) -> None:
        early, late = Person(), Person()
        early.after(2.0, "fail")
        late.after(5.0, "hear")
        late.after(1.0, "hear")

    heard = []
    for executor in ("inline", "shuffled(3)"):
        simulation, listener = prepared(set_up, executor), Listener()
        with pytest.raises(ModelError, match="ValueError: no"):
            simulation.run(until=50.0, observer=listener)
        assert listener.details() == simulation.records_of_failure
        assert listener.details()[-1].kind == "failed"
        assert listener.all("ended") == []
        assert listener.heard[-1] == ("passed", nanoseconds(2.0) + 2)
        heard.append(listener.heard)
    assert heard[0] == heard[1]
    (scene,) = [detail for *_, detail in listener.all("noted") if isinstance(detail, Scene)]
    assert scene.until == 2.0


class Deaf(Listener):
    """Can't take it."""

    def passed(self, _: int) -> None:
        raise UsageError("I can't hear you")


def test_an_observer_that_fails() -> None:
    with pytest.raises(UsageError, match="I can't hear you"):
        find("ping").build().run(until=3.0, observer=Deaf())

    def set_up(_: ForwardSimulation) -> None:
        Person().after(2.0, "fail")

    simulation = prepared(set_up, "inline")
    with pytest.raises(ModelError, match="ValueError: no"):  # What has gone wrong first stays the error.
        simulation.run(until=5.0, observer=Deaf())
    assert str(simulation.failure_of_observer) == "I can't hear you"


def test_an_end_that_cant_be_counted_is_refused_before_the_run() -> None:
    simulation = find("ping").build()
    with pytest.raises(UsageError, match=r"recordings end at 1\.153e\+09"):
        simulation.run(until=1e12, observer=Listener())
    assert simulation.run(until=3.0).events == 2


def test_what_isnt_a_run_cant_be_recalled() -> None:
    with pytest.raises(UsageError, match="isn't a recording of agents"):
        recall([])
    with pytest.raises(UsageError, match="isn't a recording of agents"):
        recall([("", 0, SCENE, b"{}")])
    with pytest.raises(UsageError, match="isn't a recording of agents"):
        recall([("a", 0, "ping", b"no JSON")])


def test_the_ends_make_the_digest() -> None:
    listener = Listener()
    outcome = find("ping").build().run(until=2.5, observer=listener)
    assert listener.all("ended") == [(name, *end) for name, end in outcome.members.items()]
    assert list(outcome.times) == ["Alice", "Bob"]
    assert (outcome.now, outcome.until) == (2_500_000_000, 2.5)


def test_what_a_receiver_does_is_told_of_nobody_else() -> None:
    """Otherwise a sender would be blamed for what somebody did long after it had sent anything."""

    def told(*, hears_more: bool) -> Listener:
        def set_up(_: ForwardSimulation) -> None:
            person, other = Person(), Person()
            other.jump_to((0.0, 5.0))
            person.other = Channel(person, other)
            person.after(1.0, "tell", "hello")
            if hears_more:
                other.after(3.0, "hear")

        return listened(prepared(set_up, "inline"), 10.0)

    usual, unusual = told(hears_more=False), told(hears_more=True)
    assert len(usual.all("sent")) == 1
    assert usual.all("sent") == unusual.all("sent")
    (absorbed,) = [
        each for each in usual.all("noted") if isinstance(each[-1], AgentRecord) and each[-1].kind == "absorbed"
    ]
    assert absorbed[:3] == ("Person-2", META, 6 * 10**9)
    assert absorbed not in unusual.all("noted")  # It has another number.
