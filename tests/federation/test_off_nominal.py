"""Whatever happens to a federation, and whatever is replaced in it: one history on every executor.

Federations are drawn with every kind of fault, with clocks that are off, emergency stops and replaced draws. Their
programs depend on all that they can see.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from contextlib import suppress
from hashlib import blake2b
from typing import Any

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.federation.transports import join_asyncio, join_in_crews, run_over_sockets
from worldline import MS, EmergencyStop, Federation, Network, Participant, Program, clock, link, run
from worldline.federation.inprocess.checker import check
from worldline.model import ConfigurationError, Plan
from worldline.model.draws.distributions import Chance, Distribution, RandomBits, UnitInterval
from worldline.model.draws.table import Drawn, DrawRow, read_draws

NAMES = ("ann", "bob", "cat", "dan")
ROUNDS = 9
END_MS = 60


class Troubled(Federation):
    """A federation whose plan has a table of draws."""

    rows: tuple[DrawRow, ...] = ()

    def plan(self) -> Plan:
        return replace(super().plan(), draws=self.rows)

    def replacing(self, table: dict[str, Any]) -> Troubled:
        made = Troubled(self.programs, self.network, self.seed, self.until, faults=self.faults, estop=self.estop)
        object.__setattr__(made, "rows", read_draws(table).rows)
        return made


def _mixed(*parts: object) -> int:
    return int.from_bytes(blake2b(repr(parts).encode(), digest_size=6).digest())


def lived(period: int, has_estop: bool) -> Any:
    """Return a program that depends on everything, and says so."""

    def live(me: Participant) -> None:
        done = me.stable.get("rounds", 0)
        state = _mixed(me.incarnation, done, me.now, me.clock.now)
        while done < ROUNDS:
            try:
                state = _one_round(me, state)
                if has_estop and state % 13 == 0:
                    state = _mixed(state, me.estop("thirteen"))
            except EmergencyStop as stop:
                state = _mixed(state, stop.by, stop.at, me.now)
                me.estop_done(str(state))
                if state % 3 == 0:
                    raise
            done += 1
            me.stable["rounds"] = done

    def _one_round(me: Participant, state: int) -> int:
        if period:
            messages = me.advance(to=(me.clock.now // period + 1) * period, clock="local")
        elif state % 2:
            messages = me.advance(by=(1 + state % 5) * MS, clock="local")
        else:
            messages = me.next(until=me.now + (1 + state % 7) * MS)
        for message in messages:
            state = _mixed(state, message.arrival, message.sender, message.payload)
        state = _mixed(state, me.random.random(), me.clock.now, me.now, me.incarnation)
        me.publish(me.name, b"%d" % state)
        return state

    return live


@st.composite
def clocks(draw: st.DrawFn) -> Any:
    return clock(
        offset=draw(st.sampled_from(["0s", "2ms", "uniform(-5ms, 5ms)"])),
        drift=draw(st.sampled_from(["0ppm", "-2%", "uniform(-3%, 3%)"])),
        wander=draw(st.sampled_from([None, "walk(1%, every=3ms, within=20%)"])),
        jumps=draw(st.sampled_from([(), [{"at": "20ms", "by": "7ms"}], [{"at": "15ms", "by": "-6ms"}]])),
    )


@st.composite
def befalling(draw: st.DrawFn, name: str) -> list[str]:
    """Draw a participant's faults: each kind at most once, so that it doesn't crash while it is down."""
    at = st.integers(0, END_MS - 1).map("{}ms".format)
    span = st.integers(1, 20).map("{}ms".format)
    kinds = draw(
        st.lists(st.sampled_from(["crash", "end", "hang", "slow", "dropout", "event"]), unique=True, max_size=3)
    )
    if "crash" in kinds and "end" in kinds:
        kinds.remove("end")
    texts = {
        "crash": f"{draw(at)} crash {name} {draw(span)}",
        "end": f"{draw(at)} crash {name}",
        "hang": f"{draw(at)} hang {name} {draw(span)}",
        "slow": f"{draw(at)} slow {name} {draw(st.integers(1, 3))}ms {draw(span)}",
        "dropout": f"{draw(at)} dropout {name} {draw(span)}",
    }
    verb, topic = draw(st.sampled_from([("sends", name), ("receives", NAMES[NAMES.index(name) - 1])]))
    what = draw(st.sampled_from([f"crash {name} 4ms", f"crash {name}", f"hang {name} 9ms", f"slow {name} 2ms 9ms"]))
    texts["event"] = f"{name} {verb} {topic} {draw(st.integers(1, 3))}: {what}"
    for kind in kinds:
        event(kind)
    return [texts[kind] for kind in kinds]


@st.composite
def federations(draw: st.DrawFn) -> Troubled:
    names = NAMES[: draw(st.integers(2, 4))]
    has_estop = draw(st.booleans())
    programs = {}
    for name in names:
        period = draw(st.sampled_from([0, 0, 4 * MS]))
        heard = [other for other in names if other != name and draw(st.booleans())]
        programs[name] = Program(
            lived(period, has_estop),
            publishes=[name],
            subscribes={other: draw(st.sampled_from(["unbounded", "mailbox"])) for other in heard},
            period=period,
            boot=draw(st.sampled_from([0, "3ms", "uniform(0ms, 9ms)"])),
            durable=[other for other in heard if draw(st.booleans())],
            clock=draw(st.none() | clocks()),
        )
    network = Network(
        default=link(
            "uniform(1ms, 6ms)",
            loss=draw(st.sampled_from([0, 0.2])),
            duplication=draw(st.sampled_from([0, 0.3])),
            corruption=draw(st.sampled_from([0, 0.4, 1])),
        )
    )
    until = f"{END_MS}ms"
    estop = draw(st.sampled_from(["2ms", "5ms"])) if has_estop else None
    made = Troubled(programs, network, draw(st.integers(0, 99)), until, estop=estop)
    for text in [text for name in names for text in draw(befalling(name))]:
        with suppress(ConfigurationError):  # Nobody crashes while it boots, for instance.
            more = dataclasses.replace(made, faults=(*made.faults, text))
            more.plan()
            made = more
    return made


def another(drawn: Drawn, choice: int) -> Any:
    """Return another value that a draw might have had."""
    distribution: Distribution = drawn.distribution
    if isinstance(distribution, Chance) and distribution.probability == 1:
        return True
    if isinstance(distribution, Chance):
        return not drawn.value
    if isinstance(distribution, RandomBits | UnitInterval):
        return distribution.draw(_mixed(choice) << 16)
    return choice % (distribution.maximum - distribution.minimum + 1) + distribution.minimum


@st.composite
def replacements(draw: st.DrawFn, federation: Troubled) -> dict[str, Any]:
    """Draw a table: nothing, all draws of another seed, the antithetic ones, or one other draw of those made."""
    kind = draw(st.sampled_from(["none", "seed", "antithetic", "one"]))
    event(f"replaced: {kind}")
    if kind == "one":
        made: list[Drawn] = []
        run(federation, draws_heard=made.append)
        if made:
            one = draw(st.sampled_from(made))
            event(f"replaced: {one.name.split('/')[0]}")
            return {one.name: another(one, draw(st.integers(0, 10**9)))}
    return {"seed": {"*": {"seed": 5}}, "antithetic": {"*": "antithetic"}}.get(kind, {})


WAYS: list[dict[str, Any]] = [{}, {"paired": True}, {"client": join_asyncio}, {"client": join_in_crews(2)}]


@settings(max_examples=12, deadline=None)
@given(st.data())
def test_it_has_one_history_on_every_executor(data: st.DataObject) -> None:
    check_one_history(data)


@pytest.mark.long
@settings(max_examples=40, deadline=None)
@given(st.data())
def test_many_have_one_history_on_every_executor(data: st.DataObject) -> None:
    check_one_history(data)


def check_one_history(data: st.DataObject) -> None:
    federation = data.draw(federations())
    replaced = federation.replacing(data.draw(replacements(federation)))
    expected = run(federation, draws=replaced.rows)
    report = check(federation, schedules=4, draws=replaced.rows)
    assert report.divergence is None, str(report.divergence)
    assert report.digest == expected.digest
    over_sockets = run_over_sockets(replaced, **data.draw(st.sampled_from(WAYS)), order=data.draw(st.integers(0, 9)))
    assert over_sockets.digest == expected.digest
    assert over_sockets.dropped == expected.dropped


def test_there_is_something_of_everything() -> None:
    """What the test above draws from does happen, and shows."""
    seen: Counter[str] = Counter()

    @settings(max_examples=30, deadline=None, database=None, derandomize=True)
    @given(st.data())
    def look(data: st.DataObject) -> None:
        federation = data.draw(federations())
        outcome = run(federation, keep_journals=True)
        for entry in (entry for journal in outcome.journals.values() for entry in journal):
            what = getattr(entry, "what", "")
            for word in ("has booted", "crash", "recovers", "hang", "slow", "told by"):
                seen[word] += word in what

    look()
    assert min(seen[word] for word in ("has booted", "crash", "recovers", "hang", "slow", "told by")) >= 2, seen
