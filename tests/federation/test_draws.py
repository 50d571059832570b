"""Draws as inputs of a federation: replaced alike wherever it runs, and without an effect outside of their cones."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.federation.transports import join_asyncio, join_in_crews, run_over_sockets
from worldline import MS, Federation, Network, Participant, Program, Rule, clock, link, run
from worldline.federation.inprocess.checker import check
from worldline.federation.outcome import FederationOutcome
from worldline.history.account import Sending
from worldline.history.journal import Entry, Received
from worldline.history.link_draws import RunDraws
from worldline.history.observer import Observer
from worldline.model import Plan, Stream, UsageError, WorldlineError
from worldline.model.draws.distributions import BitPlace, ClockOffset, ClockRate, Distribution, DrawnValue, RandomBits
from worldline.model.draws.table import Drawn, DrawsGiven, read_draws
from worldline.model.latency import Uniform

# Who hears whom: changes spread along these, and not at once.
HEARS = {"ann": [], "bob": ["ann", "dan"], "cat": ["bob"], "dan": ["cat"], "eve": ["ann"]}


def _mixed(*parts: object) -> int:
    return int.from_bytes(blake2b(repr(parts).encode(), digest_size=6).digest())


def gossip(self: Participant) -> None:
    """Depend on everything: what was received and when, and what was drawn."""
    state = 0
    while self.now < 40 * MS:
        for message in self.next(until=self.now + (3 + len(HEARS[self.name])) * MS):
            state = _mixed(state, message.arrival, message.sender, message.payload)
        if self.random.random() < 0.7:
            self.publish(self.name, b"%d" % _mixed(state, self.stream("more").randrange(1000)))


def gossiping(seed: int = 0, **made: Any) -> Federation:
    programs = {name: Program(gossip, publishes=[name], subscribes=heard) for name, heard in HEARS.items()}
    slow = Rule(sender="bob", link=link("uniform(5ms, 12ms)", duplication=0.3))
    network = Network(default=link("uniform(1ms, 8ms)", loss=0.2, loss_at_sender=0.1), rules=(slow,))
    return Federation(programs, network=network, seed=seed, until="50ms", **made)


def troubled(seed: int = 0) -> Federation:
    """The same, where participants boot, have clocks that wander, and get corrupted messages."""

    def gossip_by_clock(self: Participant) -> None:
        state = 0
        while self.now < 40 * MS:
            self.advance(by="4ms", clock="local")
            for message in self.next(until=self.now + (1 + len(HEARS[self.name])) * MS):
                state = _mixed(state, message.arrival, message.sender, message.payload)
            self.publish(self.name, b"%d" % _mixed(state, self.clock.now))

    wanders = clock(offset="uniform(-5ms, 5ms)", drift="uniform(-3%, 3%)", wander="walk(2%, every=3ms, within=30%)")
    programs = {
        name: Program(gossip_by_clock, publishes=[name], subscribes=heard, boot="uniform(0ms, 6ms)", clock=wanders)
        for name, heard in HEARS.items()
    }
    network = Network(default=link("uniform(1ms, 8ms)", corruption=0.3, duplication=0.3))
    return Federation(programs, network=network, seed=seed, until="50ms")


@dataclass
class _Noted(Observer):
    """What was sent, as a recording tells it."""

    sendings: dict[tuple[str, int], Sending] = field(default_factory=dict)

    def sent(self, who: str, number: int, topic: str, at: int, payload: bytes, until: int, detail: Any = None) -> None:
        self.sendings[who, number] = (at, who, topic, payload, [], number)

    def arrives(self, sender: str, number: int, receiver: str, at: int, copy: int, lost: str | None) -> None:
        self.sendings[sender, number][4].append((at, receiver, copy, lost))


def drawn_in(federation: Federation, draws: DrawsGiven = None) -> tuple[RunDraws, FederationOutcome]:
    """Run a federation; return its draws, those of streams included, and its outcome with journals."""
    noted, own = _Noted(), list[Drawn]()
    outcome = run(federation, observer=noted, keep_journals=True, draws=draws, draws_heard=own.append)
    inputs = read_draws(draws)
    found = RunDraws(
        noted.sendings.values(), replace(federation.plan(), draws=inputs.rows), inputs.functions.__getitem__
    )
    for drawn in own:
        found.add(drawn)
    return found, outcome


def first_difference(a: list[Entry], b: list[Entry]) -> int | None:
    """Return when two journals of one participant part."""
    for one, other in zip(a, b, strict=False):
        if one != other:
            return min(_time(one), _time(other))
    longer = max(a, b, key=len)
    return None if len(a) == len(b) else _time(longer[min(len(a), len(b))])


def _time(entry: Entry) -> int:
    return entry.now if isinstance(entry, Received) else entry.at


def another(drawn: Drawn, choice: int) -> Any:
    """Return another value that a draw might have had."""
    distribution = drawn.distribution
    if isinstance(drawn.value, bool):
        return not drawn.value
    if isinstance(distribution, Uniform | BitPlace | ClockOffset | ClockRate):
        return distribution.draw(_mixed(choice) << 16)
    if isinstance(distribution, RandomBits):
        return choice % 1000
    return (choice % 997) / 997


# --- What is in the past cone of what ---


@pytest.mark.long
@settings(max_examples=60, deadline=None)
@given(st.sampled_from([gossiping, troubled]), st.integers(0, 20), st.data())
def test_a_replaced_draw_changes_nothing_outside_of_its_cone(
    make: Callable[[int], Federation], seed: int, data: st.DataObject
) -> None:
    before, outcome = drawn_in(make(seed))
    names = data.draw(st.lists(st.sampled_from(sorted(before.effects)), min_size=1, max_size=3, unique=True))
    choice = data.draw(st.integers(0, 10**6))
    table = {name: another(before.effects[name].drawn, choice) for name in names}
    # By a function: an earlier one may change what is drawn, so that a later one isn't made.
    _, changed = drawn_in(make(seed), lambda name, _, value: table.get(name, value))
    for member, journal in outcome.journals.items():
        at = first_difference(journal, changed.journals[member])
        if at is not None:
            could_matter = {effect.drawn.name for effect in before.before(member, at)}
            assert could_matter.intersection(names), f"{member} parts at {at}, and none of {names} is in its past"


def test_the_cone_is_no_larger_than_the_least_latencies_allow() -> None:
    draws, _ = drawn_in(gossiping())
    to_cat = {effect.drawn.name for effect in draws.before("cat", 20 * MS)}
    assert not any(name.startswith(("random/eve", "latency/ann/ann/eve")) for name in to_cat)  # It tells nobody.
    at = {name: draws.effects[name].drawn.at for name in to_cat}
    assert max(at[name] for name in to_cat if name.startswith("random/cat/")) <= 20 * MS
    assert max(at[name] for name in to_cat if name.startswith("random/bob/")) <= 15 * MS  # Bob's link has 5 ms.
    assert max(at[name] for name in to_cat if name.startswith("random/ann/")) <= 14 * MS


@pytest.mark.parametrize(
    ("make", "purposes"),
    [
        (gossiping, {"latency", "loss", "loss-at-sender", "duplication", "latency-of-copy", "random", "stream"}),
        (
            troubled,
            {"latency", "duplication", "latency-of-copy", "boot", "clock-offset", "clock-drift", "clock-walk"}
            | {"corruption", "corruption-of-copy", "corrupted-bit", "corrupted-bit-of-copy"},
        ),
    ],
)
def test_draws_are_listed_as_they_were_made(make: Callable[[int], Federation], purposes: set[str]) -> None:
    made: dict[str, DrawnValue] = {}

    def note(name: str, _: Distribution, value: DrawnValue) -> DrawnValue:
        made[name] = value
        return value

    draws, _ = drawn_in(make(3), note)
    assert {name: effect.drawn.value for name, effect in draws.effects.items()} == made
    assert len(made) > 50
    assert {name.split("/")[0] for name in made} == purposes


# --- Replaced draws ---


def test_common_random_numbers_by_name() -> None:
    """Two runs with other seeds have the same draws where a table says so, and others elsewhere."""
    _, one = drawn_in(gossiping(1), {"*": {"seed": 5}})
    _, other = drawn_in(gossiping(2), {"*": {"seed": 5}})
    assert one.digest == other.digest == run(gossiping(5)).digest
    network = {"l*": {"seed": 5}, "duplication": {"seed": 5}}
    draws, _ = drawn_in(gossiping(1), network)
    reference, _ = drawn_in(gossiping(5))
    for name in draws.effects.keys() & reference.effects.keys():
        same = draws.effects[name].drawn.value == reference.effects[name].drawn.value
        assert same or name.startswith(("random", "stream"))
    assert draws.effects["random/ann/0"].drawn.value == Stream(1, "ann").random()


def test_an_antithetic_pair() -> None:
    draws, _ = drawn_in(gossiping(), {"random": "antithetic"})
    for effect in draws.effects.values():
        if effect.drawn.name.startswith("random/"):
            assert effect.drawn.value + effect.drawn.natural == pytest.approx(1)


TABLE = {
    "latency": "antithetic",
    "latency/ann/ann/bob/1": "7ms",
    "loss-at-sender/ann/ann/0": False,
    "random/ann/0": 0.1,
    "stream/cat": {"seed": 11},
    "random/e*": "antithetic",
}


WAYS: list[dict[str, Any]] = [{}, {"client": join_asyncio, "paired": True}, {"client": join_in_crews(2)}]


OWN = {
    "boot/ann/0": "5ms",
    "boot/bob": "antithetic",
    "clock-offset": "antithetic",
    "clock-offset/ann/0": "-4ms",
    "clock-drift/dan": "0.5%",
    "clock-walk/cat": {"seed": 4},
    "clock-walk/cat/2": "-1.5%",
    "corruption": True,
    "corruption/*/*/eve": False,
    "corrupted-bit/*/*/bob": 3,
    "corruption-of-copy": {"seed": 5},
}


@pytest.mark.parametrize(
    ("make", "table", "ways"), [(gossiping, TABLE, WAYS[0]), *((troubled, OWN, ways) for ways in WAYS)]
)
def test_draws_are_replaced_alike_under_all_schedules_and_in_other_processes(
    make: Callable[[], Federation], table: dict[str, Any], ways: Any
) -> None:
    plain = make()
    _, expected = drawn_in(plain, table)
    assert expected.digest != run(plain).digest

    class Replacing(Federation):
        def plan(self) -> Plan:
            return replace(super().plan(), draws=read_draws(table).rows)

    report = check(plain, schedules=5, draws=table)
    assert (report.digest, report.divergence) == (expected.digest, None)
    over_sockets = run_over_sockets(Replacing(plain.programs, plain.network, plain.seed, plain.until), **ways)
    assert over_sockets.digest == expected.digest


def test_values_are_those_of_the_table() -> None:
    draws, _ = drawn_in(troubled(), OWN)
    value = {name: effect.drawn.value for name, effect in draws.effects.items()}
    natural = {name: effect.drawn.natural for name, effect in draws.effects.items()}
    assert value["boot/ann/0"] == 5 * MS
    assert value["boot/bob/0"] == 6 * MS - natural["boot/bob/0"]
    assert value["clock-walk/cat/2"] == -15_000_000
    assert value["clock-offset/ann/0"] == -4 * MS
    assert value["clock-offset/bob/0"] == -natural["clock-offset/bob/0"]
    assert value["clock-drift/dan/0"] == 5_000_000
    assert len({value[f"clock-drift/{name}/0"] for name in HEARS}) == len(HEARS)
    own = {name: each for name, each in value.items() if name.startswith("corrup")}
    assert {each for name, each in own.items() if name.startswith("corruption/")} == {True, False}
    assert not any(each for name, each in own.items() if name.startswith("corruption/ann/ann/eve"))
    assert {each for name, each in own.items() if name.startswith("corrupted-bit/ann/ann/bob")} == {3}


def test_names_alone_change_nothing() -> None:
    assert drawn_in(troubled())[1].digest == run(troubled()).digest


# --- Bad input ---


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ({"latency/ann/ann/bob/1000": "7ms"}, "draw latency/ann/ann/bob/1000: the run made no such draw"),
        ({"latency/nothing": "7ms", "stream/ann/less": 0.5}, "draw latency/nothing, and 1 more: the run made no"),
        ({"random/ann/0": 1.5}, "ann at 3ms: draw random/ann/0: 1.5 isn't a number from 0 to 1"),
        ({"latency/ann": "13ms"}, "draw latency/ann: 13ms is outside of uniform(1ms, 8ms)"),
        ({"latency/ann/a*": "9ms"}, "draw latency/ann/ann/bob/0, by the row latency/ann/a*: 9ms is outside of uniform"),
        ({"random/zoe": 0.5}, "draw random/zoe: there is no participant 'zoe'"),
        ({"random/ann": lambda *_: "x"}, "draw random/ann/0, by the row random/ann: 'x' isn't a number from 0 to 1"),
        ({"random/ann": lambda: 0.5}, "its function raised TypeError"),
        (
            {"random/ann": {"function": "nowhere:f"}},
            "the function nowhere:f can't be imported here",
        ),
    ],
)
def test_draws_that_no_run_makes_are_refused(table: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError) as caught:
        run(gossiping(), draws=table)
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ({"boot/ann/0": "7ms"}, "draw boot/ann/0: 7ms is outside of uniform(0s, 6ms) (use 0s to 6ms)"),
        (
            {"clock-walk/cat": "3%"},
            "draw clock-walk/cat: 30000ppm is outside of uniform(-20000ppm, 20000ppm) (use -20000ppm to 20000ppm)",
        ),
        ({"clock-offset/cat": "6ms"}, "draw clock-offset/cat: 6ms is outside of uniform(-5ms, 5ms) (use -5ms to 5ms)"),
        ({"clock-drift/cat/0": "-4%"}, "-40000ppm is outside of uniform(-30000ppm, 30000ppm)"),
        ({"corruption/ann/ann/bob/0": 1}, "draw corruption/ann/ann/bob/0: 1 is neither true nor false"),
        (
            {"corruption": True, "corrupted-bit/ann/ann/bob": 10**4},
            "by the row corrupted-bit/ann/ann/bob: 10000 isn't one of ",
        ),
        ({"boot/b?b": "7ms"}, "draw boot/bob/0, by the row boot/b?b: 7ms is outside of uniform(0s, 6ms)"),
    ],
)
def test_what_participants_cannot_draw_is_refused(table: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError) as caught:
        run(troubled(), draws=table)
    assert words in str(caught.value)


@pytest.mark.parametrize("ways", WAYS[:2])
def test_the_server_is_told_why_a_participant_cannot_begin(ways: Any) -> None:
    """There is one alone: others might be lost in the same moment."""

    class Replacing(Federation):
        def plan(self) -> Plan:
            return replace(super().plan(), draws=read_draws({"boot": "7ms"}).rows)

    alone = Replacing({"ann": Program(lambda me: None, boot="uniform(0ms, 6ms)")})
    with pytest.raises(WorldlineError, match=r"ann at 0s: .* by the row boot: 7ms is outside of uniform"):
        run_over_sockets(alone, **ways)


def test_a_function_for_all_draws_may_find_none() -> None:
    quiet = Federation({"ann": Program(lambda me: None, publishes=[])}, until="1ms")
    assert run(quiet, draws=lambda _name, _distribution, value: value).digest == run(quiet).digest


def test_functions_reach_links_and_streams() -> None:
    calls: list[str] = []

    def seen(call: Callable[[str], None]) -> Callable[[str, Distribution, DrawnValue], DrawnValue]:
        return lambda name, _distribution, value: (call(name), value)[1]

    assert run(gossiping(), draws=seen(calls.append)).digest == run(gossiping()).digest
    assert {name.partition("/")[0] for name in calls} >= {"latency", "loss", "duplication", "random", "stream"}


def test_a_server_may_not_choose_what_its_clients_import(monkeypatch: pytest.MonkeyPatch) -> None:
    class Replacing(Federation):
        def plan(self) -> Plan:
            return replace(super().plan(), draws=read_draws({"random/ann": {"function": "bisect:bisect"}}).rows)

    alone = Replacing({"ann": Program(lambda me: me.random.random())})
    with pytest.raises(
        WorldlineError, match="the server names the function 'bisect:bisect', and the caller that started"
    ):
        run_over_sockets(alone)
    monkeypatch.setenv("WORLDLINE_DRAW_FUNCTIONS", "bisect:bisect")
    with pytest.raises(WorldlineError, match="its function raised TypeError"):
        run_over_sockets(alone)
