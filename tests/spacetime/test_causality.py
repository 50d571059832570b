"""The checker of causality: content with true records, and no kind of false one escapes it."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import pytest
from msgspec import structs

from tests.spacetime.worlds import make_world, simulate
from worldline.spacetime import Agent, AgentRecord, Channel, ForwardSimulation, LambdaField, Minkowski, box
from worldline.spacetime.causality import check

SPACE = Minkowski(3)
FIELD = LambdaField(R=(0.5, 0.1, 0.0), c=0.04)


class Relay(Agent):
    """Passes on what it gets, a little later; the third time it makes a child, jumps and turns."""

    passed = 0

    def pass_on(self) -> None:
        self.passed += 1
        self.after(0.25, "send_on")

    def send_on(self) -> None:
        if not self.next.is_open:
            return
        self.next.send(Relay.pass_on)
        self.next.send(Relay.rest)
        if self.passed == 3:
            child = Relay()
            child.next = Channel(child, self)
            child.after(1.0, "send_on")
            self.child = Channel(self, child)
            self.jump_to(self.position + SPACE.point(2.0, 1.0, 0.0))
            self.velocity = self.space.velocity(0.3, -0.4)
        if self.passed >= 12 and self.name == "b":
            self.die()

    def rest(self) -> None:
        self.log("rests")


@pytest.fixture(scope="module")
def records() -> list[AgentRecord]:
    simulation = ForwardSimulation(SPACE, FIELD, box([-4, -4], [4, 4]), trace=True)
    with simulation:
        a, b, c = Relay(), Relay(), Relay()
        a.name, b.name, c.name = "a", "b", "c"
        b.jump_to((0.5, 1, 1))
        c.jump_to((0.25, -1, -1))
        a.velocity = SPACE.velocity(0.1, 0.8)
        a.next, b.next, c.next = Channel(a, b), Channel(b, c), Channel(c, a)
        a.send_on()
    return simulation.run(until=100).records


def test_true_records_keep_every_law(records: list[AgentRecord]) -> None:
    verdict = check(records, SPACE, FIELD)
    assert verdict.is_clean, str(verdict)
    assert (verdict.agents, verdict.channels) == (6, 6)
    assert verdict.absorbed == sum(record.kind == "absorbed" for record in records) > 30
    assert str(verdict) == f"{verdict.absorbed} lambdas on 6 channels of 6 agents: no violation"


# -- False records

Tamper = Callable[[list[AgentRecord]], list[AgentRecord]]


def places(records: list[AgentRecord], kind: str, agent: str = "c") -> list[int]:
    return [place for place, record in enumerate(records) if record.kind == kind and record.agent == agent]


def altered(records: list[AgentRecord], place: int, **changes: object) -> list[AgentRecord]:
    return [*records[:place], structs.replace(records[place], **changes), *records[place + 1 :]]


def moved(at: tuple[float, ...], by: float, axis: int = 0) -> tuple[float, ...]:
    return tuple(each + by * (place == axis) for place, each in enumerate(at))


def absorbed_out_of_order(records: list[AgentRecord]) -> list[AgentRecord]:
    first, second = places(records, "absorbed")[4:6]
    one, other = records[first], records[second]
    assert one.channel == other.channel
    swapped = altered(records, first, order=other.order, what=other.what, emitted=other.emitted)
    return altered(swapped, second, order=one.order, what=one.what, emitted=one.emitted)


def absorbed_twice(records: list[AgentRecord]) -> list[AgentRecord]:
    first, second = places(records, "absorbed")[4:6]
    return altered(records, second, order=records[first].order, what=records[first].what)


def absorption_left_out(records: list[AgentRecord]) -> list[AgentRecord]:
    place = places(records, "absorbed")[4]
    kept = records[:place] + records[place + 1 :]
    later = [each for each in kept if each.agent == "c" and each.number > records[place].number]
    return [structs.replace(each, number=each.number - 1) if each in later else each for each in kept]


def sent_twice(records: list[AgentRecord]) -> list[AgentRecord]:
    first, second = places(records, "sent", "b")[-2:]
    return altered(records, second, order=records[first].order)


def born_elsewhere(records: list[AgentRecord]) -> list[AgentRecord]:
    name = next(record.agent for record in records if record.peer == "c" and record.kind == "born")
    place = places(records, "born", name)[0]
    return altered(records, place, at=moved(records[place].at, 1e-9))


def with_a_gap(records: list[AgentRecord]) -> list[AgentRecord]:
    place = places(records, "log")[4]
    return records[:place] + records[place + 1 :]


def followed(agent: str, end: str, kind: str) -> Tamper:
    """Let something happen to an agent after its end."""

    def tamper(records: list[AgentRecord]) -> list[AgentRecord]:
        last = records[places(records, end, agent)[0]]
        return [*records, structs.replace(last, kind=kind, number=last.number + 1)]

    return tamper


def changed(kind: str, changes: Callable[[AgentRecord], dict[str, object]], agent: str = "c", which: int = 4) -> Tamper:
    """Change one record of a kind."""

    def tamper(records: list[AgentRecord]) -> list[AgentRecord]:
        place = places(records, kind, agent)[which]
        return altered(records, place, **changes(records[place]))

    return tamper


TAMPERED: dict[str, tuple[Tamper, str]] = {
    "absorbed earlier": (changed("absorbed", lambda each: {"at": moved(each.at, -1e-9)}), "field"),
    "absorbed later": (changed("absorbed", lambda each: {"at": moved(each.at, 1e-9)}), "field"),
    "absorbed at once": (
        changed("absorbed", lambda each: {"at": ((each.emitted or each.at)[0], *each.at[1:])}),
        "future",
    ),
    "absorbed out of order": (absorbed_out_of_order, "channel"),
    "absorbed twice": (absorbed_twice, "channel"),
    "absorption left out": (absorption_left_out, "channel"),
    "never sent": (changed("sent", lambda _: {"kind": "log"}, "b"), "sending"),
    "sent twice": (sent_twice, "sending"),
    "sent from elsewhere": (
        changed("absorbed", lambda each: {"emitted": moved(each.emitted or (), 1e-15, axis=1)}),
        "sending",
    ),
    "sent by another": (changed("absorbed", lambda _: {"peer": "a"}), "sending"),
    "sent as another": (changed("absorbed", lambda _: {"what": "Relay.die"}), "sending"),
    "without emission": (changed("absorbed", lambda _: {"emitted": None}), "sending"),
    "back in time": (changed("log", lambda each: {"at": moved(each.at, -1e-9)}), "order"),
    "faster than light": (changed("log", lambda each: {"at": moved(each.at, 1e-9, axis=2)}), "order"),
    "younger": (changed("log", lambda each: {"local_time": each.local_time - 1e-9}), "clock"),
    "unborn": (changed("born", lambda _: {"kind": "log"}, which=0), "life"),
    "born twice": (changed("log", lambda _: {"kind": "born"}), "life"),
    "born elsewhere": (born_elsewhere, "life"),
    "alive after death": (followed("b", "died", "log"), "life"),
    "alive after the end": (followed("c", "ended", "timer"), "life"),
    "with a gap": (with_a_gap, "story"),
}


@pytest.mark.parametrize(("tamper", "law"), TAMPERED.values(), ids=TAMPERED)
def test_a_false_record_is_found(records: list[AgentRecord], tamper: Tamper, law: str) -> None:
    verdict = check(tamper(records), SPACE, FIELD)
    assert not verdict.is_clean
    assert law in {violation.law for violation in verdict.violations}, str(verdict)
    assert f"{law}: " in str(verdict)


def test_another_field_is_noticed(records: list[AgentRecord]) -> None:
    for field in (LambdaField(R=(0.5, 0.1, 0.0), c=0.04000001), LambdaField(R=(0.5, 0.1, 1e-8), c=0.04), LambdaField()):
        assert {violation.law for violation in check(records, SPACE, field).violations} == {"field"}


def test_what_is_jumped_over_is_only_excused_where_the_jump_ends() -> None:
    class Jumper(Agent):
        def go(self) -> None:
            self.jump_to(self.position + self.space.point(10.0, 0.0))

        def hear(self) -> None:
            pass

    simulation = ForwardSimulation(Minkowski(2), trace=True)
    with simulation:
        sender, jumper = Jumper(), Jumper()
        sender.jump_to((0, 3))
        to = sender.to = Channel(sender, jumper)
        to.send(Jumper.hear)
        jumper.after(1.0, "go")
    records = simulation.run(until=20).records
    place = next(place for place, record in enumerate(records) if record.kind == "absorbed")
    assert records[place].at == (11.0, 0.0)
    assert check(records, Minkowski(2), LambdaField()).is_clean
    late = altered(records, place, at=(11.5, 0.0), local_time=1.5)
    assert [each.law for each in check(late, Minkowski(2), LambdaField()).violations] == ["field"]


@pytest.mark.parametrize("number", range(5))
def test_random_worlds_are_clean_and_a_lost_record_of_theirs_is_noticed(number: int) -> None:
    world = make_world(Random(number))
    records = simulate(world).records
    assert check(records, world.space, world.field).is_clean
    place = Random(number).randrange(len(records) - len(world.starts))
    last = {record.agent: record.number for record in records}
    if records[place].number < last[records[place].agent]:
        assert not check(records[:place] + records[place + 1 :], world.space, world.field).is_clean
