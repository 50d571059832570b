"""Advice is right when it is taken: what the arbiter says when it runs again is what programs do that run again."""

from __future__ import annotations

import pytest
from msgspec import structs

from tests.lock.why.casts import CELL, GUARDED, cell
from tests.lock.why.theater import Actor, Play, Role, run
from worldline.lock.why.advice import (
    Advisor,
    _ranked,
    account_as_plain,
    account_in_words,
    account_of,
    advice_in_words,
    play,
    with_latency,
)
from worldline.lock.why.heard import Habits
from worldline.lock.why.reasons import Hop
from worldline.model import MS, Network, Plan, Rule, link, plan
from worldline.model.latency import Exponential, Fixed, Normal, Table, Uniform

LINKS = [("camera", "planner", "images"), ("planner", "arm", "commands"), ("arm", "camera", "pose")]


def predicted_and_real(
    made: Plan, roles: dict[str, Role], way: tuple[str, str, str], latency: int
) -> tuple[int, int, int]:
    """Return the waiting in a run, what it would be with another latency by advice, and what it is then."""
    sender, receiver, topic = way
    before = run(made, roles)
    advisor = Advisor(made, before.heard)
    tried = advisor.try_latency(Hop(sender, receiver, topic, 5 * MS), latency)
    real = run(with_latency(made, sender, receiver, topic, latency - 5 * MS), roles)
    return before.waited, tried.after.waited, real.waited


@pytest.mark.parametrize("way", LINKS, ids=" ".join)
@pytest.mark.parametrize("latency", [2 * MS, 10 * MS, 20 * MS, 33 * MS, 50 * MS])
def test_what_disappears_with_another_latency_is_what_advice_says(way: tuple[str, str, str], latency: int) -> None:
    before, predicted, real = predicted_and_real(cell(), CELL, way, latency)
    assert abs(predicted - real) < 0.01 * before


@pytest.mark.parametrize("latency", [10 * MS, 33 * MS])
def test_also_where_somebody_waits_for_a_message_only_for_so_long(latency: int) -> None:
    before, predicted, real = predicted_and_real(cell(GUARDED), GUARDED, LINKS[1], latency)
    assert abs(predicted - real) < 0.02 * before


@pytest.mark.parametrize("latency", ["uniform(5ms, 9ms)", "normal(6ms, 1ms, 5ms)", "exponential(5ms, 1ms)"])
def test_also_where_latencies_are_drawn(latency: str) -> None:
    before, predicted, real = predicted_and_real(cell(latency=latency), CELL, LINKS[0], 20 * MS)
    assert abs(predicted - real) < 0.03 * before


def test_the_same_network_gives_the_same_waiting() -> None:
    made = cell(GUARDED)
    before = run(made, GUARDED)
    advisor = Advisor(made, before.heard)
    assert advisor.before == play(advisor.scripts, made)
    assert advisor.before.waited == advisor.tally.waited == before.waited
    assert advisor.before.took == before.took


def test_the_best_advice_comes_first_and_is_no_longer_than_it_needs_to_be() -> None:
    made = cell()
    advice = Advisor(made, run(made, CELL).heard).advice()
    assert advice[0].text == "camera → planner (images) 5ms → 25ms"
    assert advice[0].share == max(each.share for each in advice)
    assert not advice[0].is_harmless
    after = run(with_latency(made, "camera", "planner", "images", 20 * MS), CELL)
    assert abs(after.waited - advice[0].after.waited) < 0.01 * advice[0].before.waited


# --- Changes that leave every result as it is ---


def slow_source(me: Actor) -> Play:
    """Looks for news every millisecond, and sends what there is every 50."""
    while True:
        yield me.spend(2)
        if me.now % (50 * MS) == 0:
            me.publish("news")
        yield me.advance(me.now + MS)


def reader(me: Actor) -> Play:
    while True:
        yield me.advance(me.now + 10 * MS)
        yield me.spend(5)
        me.publish("echo")


SLOW = {"source": Role(slow_source, ("news",)), "reader": Role(reader, ("echo",), ("news",))}


def test_a_period_that_nobody_has_declared() -> None:
    made = plan(list(SLOW), network=Network(default=link("1ms")), until="300ms")
    before = run(made, SLOW)
    (best, *_) = Advisor(made, before.heard).advice()
    assert best.text == 'period = "50ms" for source'
    assert best.is_harmless
    after = run(made, {**SLOW, "source": SLOW["source"]._replace(period=50 * MS)})
    assert after.digest == before.digest
    assert abs(after.waited - best.after.waited) < 0.01 * before.waited
    assert best.share > 0.1


def test_topics_that_nobody_needs() -> None:
    roles = {
        "clock": Role(slow_source, ("news", "spare")),
        "reader": Role(reader, ("echo",), ("spare",)),
    }
    made = plan(list(roles), network=Network(default=link("1ms")), until="300ms")
    before = run(made, roles)
    best = next(each for each in Advisor(made, before.heard).advice() if "publishes" in each.text)
    assert best.text == 'publishes = ["news"] for clock'
    after = run(made, {**roles, "clock": roles["clock"]._replace(publishes=("news",))})
    assert after.digest == before.digest
    assert after.waited == best.after.waited


def test_somebody_who_declares_nothing() -> None:
    roles = {"clock": Role(slow_source, None), "reader": Role(reader, ("echo",), ("other",))}
    made = plan(list(roles), network=Network(default=link("1ms")), until="300ms")
    best = Advisor(made, run(made, roles).heard).advice()[0]
    assert (best.text, best.share) == ('publishes = ["news"] for clock', 1.0)


def test_no_declaration_is_advised_that_something_late_in_the_run_contradicts() -> None:
    def late(me: Actor) -> Play:
        playing = slow_source(me)
        while me.now < 280 * MS:
            yield next(playing)
        yield me.advance(281 * MS)
        me.publish("spare")

    roles = {"source": Role(late, ("news", "spare")), "reader": Role(reader, ("echo",), ("news", "spare"))}
    made = plan(list(roles), network=Network(default=link("1ms")), until="300ms")
    heard = run(made, roles).heard
    part = heard[: len(heard) // 2]

    def harmless(habits: Habits) -> list[str]:
        return [each.text for each in Advisor(made, part, habits).advice() if each.is_harmless]

    assert harmless(Habits(part)) == ['period = "50ms" for source']
    assert harmless(Habits(heard)) == []


def test_nothing_is_advised_where_nobody_waits() -> None:
    roles = {"alone": Role(reader, ("echo",))}
    made = plan(list(roles), until="100ms")
    advisor = Advisor(made, run(made, roles).heard)
    assert advisor.tally.waited == 0
    assert advice_in_words(advisor.advice()) == ["nothing that was tried would remove as much as 2 % of the waiting"]


# --- In words ---


def test_the_account_of_a_run() -> None:
    made = cell()
    before = run(made, CELL)
    advisor = Advisor(made, before.heard)
    lines = account_in_words("cell", account_of(made, before.heard))
    assert lines[0].startswith("cell: 4 participants, 1038 ms; together they waited 2676 ms")
    assert lines[3].startswith("planner → arm  (commands 5ms)")
    (best, *_) = advice_in_words(advisor.advice())
    assert best.startswith("camera → planner (images) 5ms → 25ms would remove 6")
    assert best.endswith("% less (a different model)")
    plain = account_as_plain("cell", account_of(made, before.heard), advisor.advice())
    assert plain["waited"] == before.waited
    assert sum(plain["by_participant"].values()) == sum(plain["by_holder"].values()) == before.waited


def test_the_eight_that_waited_longest_are_named() -> None:
    waited = {name: place * MS for place, name in enumerate("abcdefghij")}
    assert _ranked(waited) == "j 9 ms, i 8 ms, h 7 ms, g 6 ms, f 5 ms, e 4 ms, d 3 ms, c 2 ms"
    assert _ranked({"b": 0, "a": MS, "c": MS}) == "a 1 ms, c 1 ms"


def test_every_latency_can_be_longer() -> None:
    rules = [Fixed(5), Uniform(5, 9), Normal(6, 1, 5), Exponential(5, 2), Table((5, 7))]
    for latency in rules:
        made = plan(["a", "b"], network=Network(default=structs.replace(link(1), latency=latency)))
        longer = with_latency(made, "a", "b", "t", 10)
        (rule,) = longer.network.rules
        assert rule.link.latency.minimum == latency.minimum + 10
        assert rule.link.latency.maximum == latency.maximum + 10
        again = with_latency(longer, "a", "b", "t", 10)
        assert again.network.rules == (Rule(topic="t", sender="a", receiver="b", link=again.network.rules[0].link),)
