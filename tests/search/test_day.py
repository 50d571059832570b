"""The kind of day: drawn from the seed, within what the network states, and worth it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from tests.nodes.suzuki_kasami import Forgetful, SuzukiKasami, Undiscerning, algorithm
from worldline import Federation, Network, Participant, Program, link
from worldline.federation.inprocess.trial import FederationTrial
from worldline.model.draws.distributions import Chance
from worldline.model.errors import ConfigurationError
from worldline.model.latency import Exponential, Fixed, Latency, Normal, Table, Uniform
from worldline.nodes import Trial, search, shrink
from worldline.nodes.algorithms import find
from worldline.nodes.faults import KINDS
from worldline.search.day import USUAL_DAY, Day, DayDraws, as_day, draw_day

LATENCIES = (
    Fixed(5),
    Uniform(1_000_000, 9_000_000),
    Exponential(1_000, 1_000_000),
    Normal(6_000_000, 1_000_000, 4_000_000),
    Table((3, 3, 17)),
)


def test_every_kind_of_day_is_drawn_and_a_usual_one_in_four() -> None:
    days = [draw_day(seed, ("crash", "loss")) for seed in range(400)]
    assert 70 < days.count(USUAL_DAY) < 140
    assert {day.ordinary for day in days} == {"as-stated", "constant", "quick"}
    assert {each for day in days for each in day.slow} == {"tail", "slow-links", "bursts"}
    assert {day.without for day in days} == {(), ("crash",), ("loss",), ("crash", "loss")}
    assert days == [draw_day(seed, ("loss", "crash")) for seed in range(400)]
    assert not any(draw_day(seed, ("crash",)).without for seed in range(100))  # It is what the search is about.


def test_a_day_is_written_as_it_is_read() -> None:
    for seed in range(200):
        day = draw_day(seed, ("crash", "crash-after", "loss"))
        assert as_day(str(day), ("crash", "crash-after", "loss")) == day
        assert bool(day.words()) == (day != USUAL_DAY)
    assert as_day(" usual ", ()) == USUAL_DAY
    assert as_day("tail, quick,no-crash", KINDS) == Day(ordinary="quick", slow=("tail",), without=("crash",))


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "'' isn't a kind of day"),
        ("tale", r"'tale' isn't a kind of day \(did you mean 'tail'"),
        ("quick,constant", r"isn't a kind of day \(use constant or quick, not both\)"),
        ("no-", "'no-' isn't a kind of day"),
        ("tail,no-crsh", r"'no-crsh' isn't a kind of day \(did you mean 'no-crash'"),
        ("no-hang", r"'no-hang' isn't a kind of day \(write usual, or some of constant, .*, no-loss, no-duplication"),
    ],
)
def test_what_is_no_day_is_refused(text: str, complaint: str) -> None:
    with pytest.raises(ConfigurationError, match=complaint):
        as_day(text, KINDS)


@given(st.integers(0, 10**9), st.sampled_from(LATENCIES), st.integers(0, 1000))
def test_a_message_takes_what_its_link_allows_on_every_day(seed: int, latency: Latency, number: int) -> None:
    draws = DayDraws(draw_day(seed, ()), seed)
    name = f"latency/image/camera/planner/{number}"
    taken = draws(name, latency, latency.minimum)
    assert isinstance(taken, int)
    assert latency.minimum <= taken <= latency.maximum
    assert draws(name, latency, latency.minimum) == taken


def test_nothing_gets_lost_on_a_link_that_loses_nothing_and_something_in_bursts_on_one_that_does() -> None:
    draws = DayDraws(Day(slow=("bursts",)), 1)
    names = [f"loss/x/a/b/{number}" for number in range(2000)]
    assert not any(draws(name, Chance(0), False) for name in names)
    assert 0.03 < sum(bool(draws(name, Chance(0.01), False)) for name in names) / 2000 < 0.1
    assert all(draws(name, Chance(1), True) for name in names)


def test_a_run_has_a_usual_day_and_a_search_draws_one() -> None:
    trial = Trial(algorithm=find("bellman-ford"))
    seed = next(seed for seed in range(20) if draw_day(seed, ()).slow)
    assert trial.with_seed(seed).day == draw_day(seed, ())
    assert (
        Trial(algorithm=find("bellman-ford"), seed=seed, day=USUAL_DAY).run()
        == Trial(algorithm=find("bellman-ford"), seed=seed).run()
    )
    assert trial.with_seed(seed).run().digest != Trial(algorithm=find("bellman-ford"), seed=seed).run().digest
    assert Trial(algorithm=find("bellman-ford"), day=USUAL_DAY).with_seed(seed).day == USUAL_DAY


@pytest.mark.parametrize(("node", "seeds"), [(Undiscerning, 20), pytest.param(Forgetful, 150, marks=pytest.mark.long)])
def test_a_mistake_that_takes_a_very_slow_message_is_found(node: type[SuzukiKasami], seeds: int) -> None:
    """On usual days, at most three seeds in 2,000 find it."""
    trial = Trial(algorithm=algorithm(node))
    found = search(trial, range(seeds)).failure
    assert found is not None
    short = shrink(trial.with_seed(found.seed))
    assert short.trial.day == USUAL_DAY  # Which messages are slow is written down instead.
    assert short.left <= 6
    assert len(short.records) <= short.records_before or (short.failure.at or 0) <= (found.failure.at or 0)  # type: ignore[union-attr]


def test_the_right_one_passes_on_every_day() -> None:
    assert search(Trial(algorithm=algorithm(SuzukiKasami)), range(100)).failure is None


def test_a_federation_has_days_too() -> None:
    def send(me: Participant) -> None:
        for _ in range(40):
            me.publish("x", b"")
            me.advance(by="1ms")

    def hear(me: Participant) -> None:
        for _ in me.messages():
            pass

    programs = {"a": Program(send, publishes=["x"]), "b": Program(hear, subscribes=["x"])}
    federation = Federation(programs, Network(default=link("uniform(1ms, 9ms)")), until="1s")
    usual = FederationTrial(make=lambda: federation)
    digests = {}
    for text in ("usual", "constant", "quick", "tail", "slow-links", "bursts"):
        trial = FederationTrial(make=lambda: federation, day=as_day(text, ()), seed=3)
        arrivals = [each.at for each in trial.told()[1] if each.kind == "received"]
        assert len(arrivals) == 40
        digests[text] = trial.run().digest
    assert digests["usual"] == FederationTrial(make=lambda: federation, seed=3).run().digest
    assert len(set(digests.values())) >= 5  # The link may be none of the slow ones.
    assert usual.with_seed(3).day == draw_day(3, ())


def felt_with(latency: str, day: Day, *, loss: float = 0, kinds: dict[str, float] | None = None) -> Day:
    """Return what of a day makes a difference to a federation; without the rest, the run is the same."""

    def send(me: Participant) -> None:
        for _ in range(40):
            me.publish("x", b"")
            me.advance(by="1ms")

    def hear(me: Participant) -> None:
        for _ in me.messages():
            pass

    programs = {"a": Program(send, publishes=["x"]), "b": Program(hear, publishes=[], subscribes=["x"])}
    federation = Federation(programs, Network(default=link(latency, loss=loss)), until="1s")
    trial = FederationTrial(make=lambda: federation, seed=3, day=day, kinds=kinds or {})
    outcome = trial.run()
    assert outcome.day is not None
    assert replace(trial, day=outcome.day).run().digest == outcome.digest
    return outcome.day


def test_what_of_a_day_makes_no_difference_is_not_told() -> None:
    every = Day(ordinary="constant", slow=("tail", "bursts"))
    assert felt_with("5ms", every) == USUAL_DAY
    assert felt_with("5ms", every, loss=0.01) == Day(slow=("bursts",))  # In which more get lost.
    assert felt_with("uniform(1ms, 9ms)", every) == every
    assert felt_with("uniform(1ms, 9ms)", USUAL_DAY) == USUAL_DAY
    assert felt_with("5ms", Day(without=("crash", "hang")), kinds={"hang": 1}) == Day(without=("hang",))


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("latency", ["5ms", "uniform(1ms, 9ms)", None])
def test_what_of_a_day_makes_no_difference_to_nodes_is_not_told(seed: int, latency: str | None) -> None:
    trial = Trial(algorithm=find("bellman-ford"), latency=latency).with_seed(seed)
    outcome = trial.run()
    assert outcome.day is not None
    if outcome.day.changes_messages:
        assert structs.replace(trial, day=outcome.day).run() == outcome
    assert latency != "5ms" or outcome.day == USUAL_DAY
