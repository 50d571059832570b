"""Channels: order, ends that travel, what lambdas carry, deaths that one hears of, and simultaneous arrivals."""

from __future__ import annotations

import copy
import gc
import pickle
from collections import Counter
from dataclasses import dataclass
from typing import Any

import pytest

from tests.spacetime.running import Person, failure, prepared, run
from worldline.model.errors import ModelError, UsageError
from worldline.spacetime import (
    Agent,
    Channel,
    ClosedError,
    ForwardSimulation,
    LambdaField,
    Minkowski,
    RemoteReference,
    Shuffled,
)

NEAR = LambdaField(c=0.01)


def heard(simulation: ForwardSimulation, name: str) -> list[Any]:
    return simulation[name].heard


# -- Sending


def test_a_channel_is_a_queue() -> None:
    def set_up(simulation: ForwardSimulation) -> None:
        alice, bob = Person(), Person()
        bob.jump_to((0, 2))
        alice.other = Channel(alice, bob)
        for what in range(20):
            alice.tell(what)
        for what in range(20, 40):
            alice.after(0.1 * (what - 19), "tell", what)

    _, simulation = run(set_up)
    assert heard(simulation, "Person-2") == list(range(40))
    assert simulation["Person-2"].times[:20] == [2.0] * 20


def test_methods_names_and_functions_can_be_sent() -> None:
    def set_up(simulation: ForwardSimulation) -> None:
        alice, bob = Person(), Person()
        bob.jump_to((0, 2))
        alice.other = Channel(alice, bob)
        alice.other.send(Person.hear, 1)
        alice.other.send("hear", 2)
        alice.other.send(shout, 3)
        alice.other.send(lambda person: person.hear(4))
        alice.other.send(lambda person, what: person.hear(what), 5)
        alice.other.send(Person.hear)

    result, simulation = run(set_up)
    assert heard(simulation, "Person-2") == [1, 2, "3!", 4, 5, ""]
    assert result.events == 6


def shout(person: Person, what: int) -> None:
    person.hear(f"{what}!")


@pytest.mark.parametrize("what", [3, None, Person, object()])
def test_only_functions_can_be_sent(what: Any) -> None:
    with ForwardSimulation(Minkowski(2)):
        alice, bob = Person(), Person()
        to = Channel(alice, bob)
        if what is Person:
            what = alice.hear  # A bound method would act on its own agent.
        with pytest.raises(UsageError, match=r"can't be sent|belongs to an agent"):
            to.send(what)


def test_channels_are_used_by_their_sources() -> None:
    class Thief(Agent):
        def steal(self) -> None:
            with pytest.raises(UsageError, match="is Person-1's, and Thief-1 acts now"):
                stolen[-1].send(Person.hear)
            with pytest.raises(UsageError, match="is Person-1's"):
                stolen[-1].close()
            with pytest.raises(UsageError, match="is Person-1's"):
                stolen[-1].target()
            self.log("caught")

    stolen: list[Channel] = []

    def set_up(simulation: ForwardSimulation) -> None:
        alice, bob, thief = Person(), Person(), Thief()
        bob.jump_to((0, 2))
        alice.other = Channel(alice, bob)
        stolen.append(alice.other)
        thief.after(1.0, "steal")

    result, _ = run(set_up)
    assert [record.what for record in result.records if record.kind == "log"] == ["caught"]
    with pytest.raises((ClosedError, UsageError)):
        stolen[0].send(Person.hear)


def test_the_ends_of_channels_are_agents_that_are_here() -> None:
    with pytest.raises(UsageError, match="outside of a simulation"):
        Channel(None, None)
    with ForwardSimulation(Minkowski(2)) as first:
        alice = Person()
        for ends in ((alice, 3), (alice, None), (3, alice), (alice, "Person-1")):
            with pytest.raises(UsageError, match="isn't an agent"):
                Channel(*ends)
    with ForwardSimulation(Minkowski(2)):
        bob = Person()
        for ends in ((alice, bob), (bob, alice)):
            with pytest.raises(UsageError, match="another simulation"):
                Channel(*ends)
    assert first["Person-1"] is alice


def test_no_channel_to_an_agent_elsewhere_without_a_reference() -> None:
    class Stranger(Agent):
        def go(self) -> None:
            Channel(self, self.friend)

    def set_up(simulation: ForwardSimulation) -> None:
        stranger = Stranger()
        stranger.friend = Person()
        stranger.after(1.0, "go")

    assert "Person-1 isn't here, so no channel can be attached to it" in str(failure(set_up))


def test_channels_cannot_be_copied_or_sent() -> None:
    with ForwardSimulation(Minkowski(2)):
        alice, bob = Person(), Person()
        to = Channel(alice, bob)
        for act in (copy.copy, copy.deepcopy, pickle.dumps):
            with pytest.raises(ModelError, match="can't be copied or sent"):
                act(to)
        for what in (to, [to], {"a": (to,)}):
            with pytest.raises(ModelError, match="channel"):
                to.send(Person.hear, what)
        with pytest.raises(ModelError, match="channel"):
            to.send(lambda person: to)
        for what in (alice, [bob]):
            with pytest.raises(ModelError, match="agent"):
                to.send(Person.hear, what)
        with pytest.raises(ModelError, match="agent"):
            to.send(lambda person: alice)
        assert repr(to) == "<channel from Person-1 to Person-2>"


# -- What lambdas carry


@dataclass
class Note:
    text: str
    pages: list[int]


def test_what_is_sent_is_a_copy() -> None:
    class Fickle(Person):
        def go(self) -> None:
            pages, note = [1], Note("a", [1])
            self.other.send(Person.hear, pages)
            self.other.send(Person.hear, note)
            self.other.send(lambda person: person.hear(list(pages)))
            pages.append(2)
            note.pages.append(2)
            note.text = "b"

    def set_up(simulation: ForwardSimulation) -> None:
        alice, bob = Fickle(), Person()
        bob.jump_to((0, 2))
        alice.other = Channel(alice, bob)
        alice.after(1.0, "go")

    _, simulation = run(set_up)
    assert heard(simulation, "Person-1") == [[1], Note("a", [1]), [1]]


def test_a_closure_has_the_variables_of_when_it_was_sent() -> None:
    class Looper(Person):
        def go(self) -> None:
            total = 0
            for number in range(3):
                total += number
                self.other.send(lambda person: person.hear((number, total)))  # noqa: B023 - It is sent in the loop.
            self.other.send(lambda person, what="default", *, key="word": person.hear((what, key)))

    def set_up(simulation: ForwardSimulation) -> None:
        alice, bob = Looper(), Person()
        bob.jump_to((0, 2))
        alice.other = Channel(alice, bob)
        alice.after(1.0, "go")

    _, simulation = run(set_up)
    assert heard(simulation, "Person-1") == [(0, 0), (1, 1), (2, 3), ("default", "word")]


def test_what_cannot_be_carried_is_refused_where_it_is_sent() -> None:
    with ForwardSimulation(Minkowski(2)):
        alice, bob = Person(), Person()
        to = Channel(alice, bob)
        with pytest.raises(ModelError, match="can't carry"):
            to.send(Person.hear, object())
        handle = (each for each in ())
        with pytest.raises(ModelError, match="captures what can't be sent"):
            to.send(lambda person: handle)
        with pytest.raises(UsageError, match="no value yet"):
            to.send(lambda person: unset)
        unset = 1
        assert unset
        to.send(Person.hear, "fine")


# -- Closing and deaths


def test_what_is_under_way_arrives_after_closing() -> None:
    class Closer(Person):
        def go(self) -> None:
            self.tell("last")
            self.other.close()
            assert not self.other.is_open
            self.other.close()
            for act in (lambda: self.tell("more"), self.other.target):
                with pytest.raises(ClosedError, match="closed"):
                    act()

    def set_up(simulation: ForwardSimulation) -> None:
        alice, bob = Closer(), Person()
        bob.jump_to((0, 5))
        alice.other = Channel(alice, bob)
        alice.after(1.0, "go")

    _, simulation = run(set_up)
    assert heard(simulation, "Person-1") == ["last"]
    assert simulation["Person-1"].times == [6.0]


class Caller(Person):
    """Asks every second whether the other one is still there."""

    def call(self) -> None:
        self.heard.append(self.other.is_open)
        self.times.append(self.position[0])
        if self.other.is_open:
            self.tell("still there?")
        else:
            with pytest.raises(ClosedError, match="Person-1 is dead"):
                self.tell("hello?")
            self.other.close()  # It stays as it is: whether the other has died yet is a race.
        self.after(1.0, "call")


def test_senders_are_told_of_a_death_as_soon_as_light_can_tell_them() -> None:
    def set_up(simulation: ForwardSimulation) -> None:
        alice, bob = Caller(), Person()
        bob.jump_to((0, 4.5))
        alice.other = Channel(alice, bob)
        alice.call()
        bob.after(3.0, "die")

    _, simulation = run(set_up, until=10)
    alice = simulation["Caller-1"]
    assert alice.heard == [True] * 8 + [False] * 2  # 3 + 4.5 = 7.5


def test_a_blind_channel_does_not_tell() -> None:
    class Blind(Person):
        def look(self) -> None:
            self.heard.append(self.other.is_open)
            self.tell("anybody?")

    def set_up(simulation: ForwardSimulation) -> None:
        alice, bob = Blind(), Person()
        bob.jump_to((0, 4.5))
        alice.other = Channel(alice, bob, blind=True)
        bob.after(3.0, "die")
        alice.after(30.0, "look")

    _, simulation = run(set_up)
    assert simulation["Blind-1"].heard == [True]


def test_whether_a_death_or_its_watcher_is_executed_first_is_no_part_of_the_result() -> None:
    class Watcher(Person):
        def take(self, reference: Any) -> None:
            self.kept = reference
            self.after(2.0, "watch")

        def watch(self) -> None:
            self.other = Channel(self, self.kept)
            self.after(0.5, "unwatch")

        def unwatch(self) -> None:
            self.other.close()

    def set_up(simulation: ForwardSimulation) -> None:
        far, watcher, between = Person(), Watcher(), Person()
        far.jump_to((0, 10))
        between.jump_to((0, 5))
        far.after(6.0, "die")
        between.far = Channel(between, far, blind=True)
        between.watcher = Channel(between, watcher, blind=True)
        between.watcher.send(Watcher.take, between.far.target())

    run(set_up, field=NEAR)


@pytest.mark.parametrize("collected", [False, True])
def test_when_garbage_is_collected_is_no_part_of_the_result(collected: bool) -> None:
    class Forgetful(Person):
        def forget(self) -> None:
            circle: list[Any] = [self.other]
            circle.append(circle)
            del self.other

        def tidy(self) -> None:
            if is_collected:
                gc.collect()

        def look(self) -> None:
            self.log(str(self.blind.is_open))

    def set_up(simulation: ForwardSimulation) -> None:
        alice, bob = Forgetful(), Person()
        bob.jump_to((0, 2))
        alice.other, alice.blind = Channel(alice, bob), Channel(alice, bob, blind=True)
        alice.after(1.0, "forget")
        alice.after(2.0, "tidy")
        alice.after(10.0, "look")
        bob.after(3.0, "die")

    is_collected = collected
    gc.disable()
    try:
        result, _ = run(set_up, field=NEAR)
        is_collected = not collected
        other, _ = run(set_up, field=NEAR)
    finally:
        gc.enable()
    assert result.digest == other.digest


# -- Introductions


class Friend(Person):
    """Takes references, makes channels of them, and passes them on."""

    def __init__(self) -> None:
        super().__init__()
        self.friends: list[Channel] = []

    def meet(self, reference: RemoteReference, greeting: str = "hello") -> None:
        self.heard.append(f"meets {reference.name}")
        self.friends.append(Channel(self, reference))
        self.friends[-1].send(Person.hear, f"{greeting} from {self.name}")

    def keep(self, reference: RemoteReference) -> None:
        self.kept = reference

    def drop(self, reference: RemoteReference) -> None:
        self.heard.append(f"drops {reference.name}")

    def use(self) -> None:
        self.meet(self.kept)

    def pass_on(self, reference: RemoteReference) -> None:
        self.friends[0].send(Friend.meet, reference, "hello again")
        self.friends[0].send(Friend.meet, reference, "and again")
        self.meet(reference)


def three(simulation: ForwardSimulation, *, blind: bool = False) -> tuple[Friend, Friend, Friend]:
    """Bob, between Alice and Carol, knows both."""
    alice, bob, carol = Friend(), Friend(), Friend()
    for person, name, place in ((alice, "alice", -3.0), (bob, "bob", 0.5), (carol, "carol", 6.0)):
        person.name = name
        person.jump_to((0, place))
    bob.friends = [Channel(bob, alice, blind=blind), Channel(bob, carol, blind=blind)]
    return alice, bob, carol


@pytest.mark.parametrize("blind", [False, True])
@pytest.mark.parametrize("field", [LambdaField(), NEAR, LambdaField(R=(1, 0.5))])
def test_an_introduction(field: LambdaField, blind: bool) -> None:
    def set_up(simulation: ForwardSimulation) -> None:
        _, bob, _ = three(simulation, blind=blind)
        bob.friends[1].send(Friend.meet, bob.friends[0].target())

    _, simulation = run(set_up, field=field)
    assert heard(simulation, "carol") == ["meets alice"]
    assert heard(simulation, "alice") == ["hello from carol"]
    if field.lookahead == 0:
        assert simulation["alice"].times == [5.5 + 9.0]


def test_the_target_of_a_reference_that_is_under_way_cannot_run_past_it() -> None:
    def set_up(simulation: ForwardSimulation) -> None:
        alice, bob, carol = three(simulation, blind=True)
        alice.after(14.0, "hear", "before")
        alice.after(15.0, "hear", "after")
        carol.velocity = simulation.space.velocity(0.01)
        bob.friends[1].send(Friend.meet, bob.friends[0].target())

    result, simulation = run(set_up, field=LambdaField())
    assert heard(simulation, "alice") == ["before", "hello from carol", "after"]
    kinds = [record.kind for record in result.records if record.channel == ":3"]
    assert kinds == ["created", "attached", "held", "sent", "absorbed"]


def test_what_comes_right_after_the_end_of_a_channel_is_not_missed() -> None:
    def set_up(simulation: ForwardSimulation) -> None:
        alice, bob, carol = Friend(), Friend(), Friend()
        alice.jump_to((0, 5, 0))
        carol.jump_to((0, 4.5, 0.2))  # Nearly on the way from Bob to Alice.
        bob.friends = [Channel(bob, alice), Channel(bob, carol)]
        bob.friends[1].send(Friend.meet, bob.friends[0].target())
        alice.after(5.1, "hear", "a moment later")

    result, simulation = run(set_up, n=3)
    assert heard(simulation, "Friend-1") == ["hello from Friend-3", "a moment later"]
    attached = next(record for record in result.records if record.kind == "attached")
    assert attached.at == (5.0, 5.0, 0.0)
    assert 5.0 < simulation["Friend-1"].times[0] < 5.1


def test_a_reference_can_be_sent_on_as_often_as_one_likes() -> None:
    def set_up(simulation: ForwardSimulation) -> None:
        _, bob, carol = three(simulation)
        dave = Friend()
        dave.name = "dave"
        dave.jump_to((0, 11))
        carol.friends = [Channel(carol, dave)]
        bob.friends[1].send(Friend.pass_on, bob.friends[0].target())
        bob.friends[1].send(Friend.pass_on, bob.friends[0].target())

    _, simulation = run(set_up, field=NEAR)
    assert heard(simulation, "dave") == ["meets alice"] * 4
    assert Counter(heard(simulation, "alice")) == {
        "hello from carol": 2,
        "hello again from dave": 2,
        "and again from dave": 2,
    }


def test_a_reference_can_be_captured_by_a_closure() -> None:
    class Matchmaker(Friend):
        def go(self) -> None:
            reference = self.friends[0].target()
            mine = self.reference()

            def make(friend: Friend) -> None:
                friend.meet(reference)
                friend.meet(mine)

            self.friends[1].send(make)

    def set_up(simulation: ForwardSimulation) -> None:
        alice, bob, carol = Friend(), Matchmaker(), Friend()
        alice.jump_to((0, -3))
        carol.jump_to((0, 4))
        bob.friends = [Channel(bob, alice), Channel(bob, carol)]
        bob.after(1.0, "go")

    _, simulation = run(set_up)
    assert simulation["Friend-1"].heard == simulation["Matchmaker-1"].heard == ["hello from Friend-2"]


@pytest.mark.parametrize("how", ["drop", "vanish", "die"])
def test_a_reference_that_nobody_uses_sets_its_target_free(how: str) -> None:
    def set_up(simulation: ForwardSimulation) -> None:
        alice, bob, carol = three(simulation, blind=True)
        if how == "die":
            carol.after(20.0, "die")
        if how == "vanish":
            carol.after(2.0, "die")
        bob.friends[1].send(Friend.keep if how == "die" else Friend.drop, bob.friends[0].target())
        alice.after(45.0, "hear", "free")

    result, simulation = run(set_up)
    assert heard(simulation, "alice") == ["free"]
    assert any(record.kind == "attached" and record.channel == ":3" for record in result.records)
    assert ":3" not in simulation._core.lanes


def test_references_cannot_be_copied_or_used_by_others() -> None:
    with ForwardSimulation(Minkowski(2)):
        alice, bob = Friend(), Friend()
        to = Channel(alice, bob)
        reference = to.target()
        assert (reference.name, repr(reference)) == ("Friend-2", "<reference to Friend-2>")
        for act in (copy.copy, copy.deepcopy, pickle.dumps):
            with pytest.raises(ModelError, match="reference can't be copied"):
                act(reference)
        to.close()
        with pytest.raises(ClosedError):
            Channel(alice, reference)


# -- Simultaneous arrivals


def crowd(simulation: ForwardSimulation) -> None:
    target = Person()
    senders = [Person() for _ in range(4)]
    for place, sender in enumerate(senders):
        sender.jump_to((0, 2 if place % 2 else -2))
        sender.other = Channel(sender, target)
        sender.tell(place)
        sender.tell(place + 10)


def test_who_is_first_of_those_that_arrive_together_is_drawn() -> None:
    orders = Counter()
    for seed in range(12):
        _, simulation = run(crowd, seed=seed)
        found = heard(simulation, "Person-1")
        assert sorted(found) == [0, 1, 2, 3, 10, 11, 12, 13]
        assert all(found.index(place) < found.index(place + 10) for place in range(4))
        orders[tuple(found)] += 1
    assert len(orders) > 6
    assert {order[0] for order in orders} == {0, 1, 2, 3}


# -- What is left


def test_lanes_of_the_dead_and_the_dropped_are_forgotten() -> None:
    class Spawner(Person):
        def go(self, left: int) -> None:
            child = Person()
            child.other = Channel(child, self)
            self.child = Channel(self, child)
            self.child.send(Person.tell, "I was")
            self.child.send(Person.die)
            Channel(self, self.far.target()).send(Person.hear)
            self.far.send(Friend.drop, self.reference())
            if left:
                self.after(1.0, "go", left - 1)

    def set_up(simulation: ForwardSimulation) -> None:
        spawner, far = Spawner(), Friend()
        far.jump_to((0, 3))
        spawner.far = Channel(spawner, far)
        spawner.after(1.0, "go", 200)

    for executor in ("inline", Shuffled(1)):
        simulation = prepared(set_up, executor, field=NEAR)
        most = 0
        core = simulation._core
        while core.run(50):  # The lanes are counted while it runs; there is no end to it before.
            most = max(most, len(core.lanes))
            if simulation["Spawner-1"].position[0] > 190:
                break
        assert len(simulation["Spawner-1"].heard) > 150
        assert most < 60
