"""Local clocks: their arithmetic against exact fractions, and what can't be a clock."""

from __future__ import annotations

from datetime import timedelta
from fractions import Fraction
from math import floor
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import json, msgpack

from worldline.model import MS, SECOND, ConfigurationError, UsageError
from worldline.model.clock import (
    ClockJump,
    LocalClock,
    RateWalk,
    RunningClock,
    as_clock,
    clock,
    clock_as_plain,
)
from worldline.model.draws.distributions import as_rate, format_rate
from worldline.model.randomness import draw_bits, key_of
from worldline.model.time import FOREVER, TIME_MAX

BILLION = 10**9
SEED, NAME = 11, "ann"
SPAN = 1000  # Times are drawn from so few nanoseconds that all that matters meets, and that looking at all is quick.


def shown(described: LocalClock) -> list[int]:
    """What a clock shows at all times, by definition: the integral of its rate, as a fraction, rounded down once."""
    walk = described.wander
    key = key_of(SEED, "clock", NAME)
    shows, gained, wandered = [], Fraction(0), 0
    for time in range(SPAN + 1):
        jumped = sum(jump.by for jump in described.jumps if jump.at <= time)
        shows.append(time + described.offset + floor(gained) + jumped)
        if walk is not None and time and time % walk.every == 0:
            step = floor(Fraction(draw_bits(key, time // walk.every), 2**64) * (2 * walk.step + 1)) - walk.step
            wandered = max(-walk.within, min(walk.within, wandered + step))
        gained += Fraction(described.drift + wandered, BILLION)
    return shows


rates = st.integers(-BILLION + 1, BILLION - 1)


@st.composite
def clocks(draw: st.DrawFn) -> LocalClock:
    within = draw(st.integers(0, BILLION - 1))
    most = BILLION - 1 - within
    walk = None
    if draw(st.booleans()):
        walk = RateWalk(step=draw(st.integers(0, 2 * within)), every=draw(st.integers(1, SPAN)), within=within)
    ats = sorted(draw(st.sets(st.integers(1, SPAN), max_size=4)))
    jumps = tuple(ClockJump(at, draw(st.integers(-SPAN, SPAN).filter(bool))) for at in ats)
    made = LocalClock(
        offset=draw(st.integers(-SPAN, SPAN)), drift=draw(st.integers(-most, most)), wander=walk, jumps=jumps
    )
    return as_clock(made)


times = st.integers(0, SPAN)


def running(described: LocalClock) -> RunningClock:
    return RunningClock(described, SEED, NAME)


@given(clocks(), times)
def test_a_clock_shows_the_integral_of_its_rate(described: LocalClock, time: int) -> None:
    assert running(described).local(time) == shown(described)[time]


@given(clocks(), times)
def test_between_jumps_it_never_goes_back_nor_twice_as_fast(described: LocalClock, time: int) -> None:
    ticking = running(described)
    if time + 1 not in [jump.at for jump in described.jumps]:
        assert 0 <= ticking.local(time + 1) - ticking.local(time) <= 2


@given(clocks(), times, st.integers(-2 * SPAN, 3 * SPAN))
def test_true_is_the_first_time_that_shows_at_least_that(described: LocalClock, since: int, local: int) -> None:
    ticking = running(described)
    found = ticking.true(local, since)
    shows = shown(described)
    first = next((time for time in range(since, SPAN + 1) if shows[time] >= local), None)
    assert first == (found if found <= SPAN else None)


@given(clocks(), st.integers(1, SPAN), times)
def test_multiples_of_a_period_are_where_the_clock_comes_to_them(
    described: LocalClock, period: int, since: int
) -> None:
    ticking = running(described)
    shows = shown(described)

    def comes(time: int) -> bool:
        if time == 0:
            return shows[0] % period == 0
        return shows[time] // period > shows[time - 1] // period

    first = next((time for time in range(since, SPAN + 1) if comes(time)), None)
    found = ticking.due(period, since)
    assert first == (found if found <= SPAN else None)
    assert ticking.is_due(period, since) == comes(since)


def test_a_step_that_would_lead_beyond_the_bound_ends_at_it() -> None:
    """It isn't reflected, and the next step starts from there; the walk begins after the first segment."""
    steps = dict(enumerate((3, 3, 3, -4, -4, -4), 1))
    walk = RateWalk(step=4 * 10**8, every=10, within=5 * 10**8)
    ticking = RunningClock(LocalClock(wander=walk), 0, "a", lambda number: steps.get(number, 0) * 10**8)
    gains = [ticking.local(10 * number + 10) - ticking.local(10 * number) - 10 for number in range(7)]
    assert gains == [0, 3, 5, 5, 1, -3, -5]


@given(rates, st.integers(0, TIME_MAX), st.integers(-TIME_MAX, TIME_MAX))
def test_it_is_exact_at_the_end_of_time_too(drift: int, time: int, offset: int) -> None:
    ticking = running(LocalClock(offset=offset, drift=drift))
    shows = ticking.local(time)
    assert shows == time + offset + floor(Fraction(drift * time, BILLION))
    found = ticking.true(shows, 0)
    assert found <= time
    assert ticking.local(found) == shows  # It may have shown it before, if it is slow.
    assert found == 0 or ticking.local(found - 1) < shows


@given(clocks(), times, times)
def test_what_it_shows_does_not_depend_on_who_has_looked(described: LocalClock, first: int, then: int) -> None:
    looked = running(described)
    looked.local(first)
    looked.true(then, 0)
    assert looked.local(then) == running(described).local(then)


def test_walks_differ_between_participants_and_seeds() -> None:
    described = clock(wander="walk(1ppm, every=1s, within=20ppm)")
    shows = {RunningClock(described, seed, name).local(100 * SECOND) for seed in (1, 2) for name in ("ann", "bob")}
    assert len(shows) == 4


def test_a_clock_that_is_never_there_is_there_forever() -> None:
    assert running(clock(drift="-99%")).true(TIME_MAX, 0) == FOREVER


def test_texts_are_read_exactly_and_written_as_a_file_has_them() -> None:
    made = clock(
        offset="-3ms", drift="40.5ppm", wander="walk(1ppm, every=1s, within=20ppm)", jumps=[{"at": "2s", "by": "-5ms"}]
    )
    assert made == LocalClock(-3 * MS, 40_500, RateWalk(1000, SECOND, 20_000), (ClockJump(2 * SECOND, -5 * MS),))
    assert str(made) == (
        '{ offset = "-3ms", drift = "40500ppb", wander = "walk(1ppm, every=1s, within=20ppm)", '
        'jumps = [{ at = "2s", by = "-5ms" }] }'
    )
    assert clock(offset=timedelta(milliseconds=-3)).offset == -3 * MS
    assert clock(wander="walk(within=2%, step=1ppb, every=5ms)").wander == RateWalk(1, 5 * MS, 2 * 10**7)
    assert str(clock()) == "{}"


@given(clocks())
def test_a_clock_survives_as_plain_data(described: LocalClock) -> None:
    assert as_clock(clock_as_plain(described)) == described


@pytest.mark.parametrize(
    "given_",
    [
        {"offset": "uniform(-5ms, 5ms)"},
        {"drift": "uniform(-40ppm, 40ppm)"},
        {"offset": "normal(0s, 2ms, -4ms)", "drift": "table(-20ppm, 5ppb)"},
        {"offset": "exponential(-1ms, 3ms)"},
    ],
)
def test_a_clock_that_is_drawn_survives_as_text_and_as_plain_data(given_: dict[str, str]) -> None:
    made = clock(**given_)  # type: ignore[arg-type]
    assert str(made) == "{ " + ", ".join(f'{key} = "{text}"' for key, text in given_.items()) + " }"
    assert as_clock(json.decode(json.encode(clock_as_plain(made)))) == made
    assert msgpack.decode(msgpack.encode(made), type=LocalClock) == made


def test_a_fixed_offset_is_not_drawn() -> None:
    assert clock(offset="fixed(-5ms)") == clock(offset="-5ms")


@given(rates)
def test_a_rate_survives_as_text(rate: int) -> None:
    assert as_rate(format_rate(rate)) == rate


@pytest.mark.parametrize(
    ("given_", "text"),
    [
        ({"drift": "-100%"}, "a drift of -1000000ppm would stop or reverse the clock"),
        ({"drift": "-1000001ppm"}, "a drift of -1000001ppm would stop or reverse the clock"),
        ({"drift": "100%"}, "a drift of 1000000ppm would run at twice the speed or more"),
        (
            {"drift": "-50%", "wander": "walk(1ppm, every=1s, within=50%)"},
            "a drift of -500000ppm, with a walk within 500000ppm, would stop or reverse the clock",
        ),
        ({"drift": "40ms"}, "'40ms' isn't a drift (write a number and a unit, such as \"40ppm\""),
        ({"drift": 0.5}, "0.5 isn't a drift"),
        ({"drift": True}, "True isn't a drift"),
        ({"drift": "0.1ppb"}, "'0.1ppb' isn't a drift (it isn't a whole number of parts per billion)"),
        ({"offset": "3ppm"}, "'3ppm' isn't an offset (write a number and a unit"),
        ({"offset": 2**61}, "isn't an offset"),
        ({"offset": "uniform(5ms, -5ms)"}, "uniform(5ms, -5ms) isn't an offset (write the smaller number first)"),
        ({"offset": "uniform(5ms)"}, "'uniform(5ms)' isn't an offset (write uniform(minimum, maximum))"),
        ({"offset": "uniform(-5ppm, 5ppm)"}, "'5ppm' isn't an offset"),
        ({"offset": "normal(0s, -1ms, 0s)"}, "normal(0s, -1ms, 0s) isn't an offset"),
        ({"offset": "normal(0s, 100000d, 0s)"}, "isn't an offset"),
        ({"offset": "table()"}, "'table()' isn't an offset (a table needs at least one value)"),
        ({"offset": {"type": "uniform"}}, "isn't an offset"),
        ({"drift": "unifrom(-5ppm, 5ppm)"}, "'unifrom(-5ppm, 5ppm)' isn't a drift"),
        ({"drift": "uniform(-100%, 5ppm)"}, "a drift of uniform(-1000000ppm, 5ppm) would stop or reverse the clock"),
        (
            {"drift": "uniform(0ppm, 60%)", "wander": "walk(1ppm, every=1s, within=40%)"},
            "a drift of uniform(0ppm, 600000ppm), with a walk within 400000ppm, would stop or reverse the clock",
        ),
        ({"wander": "walk(1ppm, every=1s)"}, 'isn\'t a wander (write "walk(1ppm, every=1s, within=20ppm)")'),
        ({"wander": "walk(1ppm, 1s, 20ppm, 4)"}, "isn't a wander"),
        ({"wander": "walk(1ppm, every=1s, every=1s)"}, "isn't a wander"),
        ({"wander": "20ppm"}, "'20ppm' isn't a wander"),
        ({"wander": "walk(1ms, every=1s, within=20ppm)"}, "'1ms' isn't a walk's step"),
        ({"wander": "walk(1ppm, every=1ppm, within=20ppm)"}, "'1ppm' isn't the time between two steps of a walk"),
        ({"wander": "walk(1ppm, every=0, within=20ppm)"}, "a walk with no time between its steps isn't possible"),
        ({"wander": "walk(-1ppm, every=1s, within=20ppm)"}, "can't be negative"),
        (
            {"jumps": [{"at": "2s", "by": "1ms"}, {"at": "1s", "by": "1ms"}]},
            "jump 2 of a clock: its jump at 1s doesn't come after the one at 2s",
        ),
        ({"jumps": [{"at": "2s", "by": "1ms"}, {"at": "2s", "by": "1ms"}]}, "doesn't come after the one at 2s"),
        ({"jumps": [{"at": 0, "by": "1ms"}]}, "it can't jump at 0s"),
        ({"jumps": [{"at": "-1s", "by": "1ms"}]}, "'-1s' isn't the time of a jump"),
        ({"jumps": [{"at": "1s", "by": 0}]}, "is of no length"),
        ({"jumps": [{"at": "1s"}]}, "isn't a jump"),
        ({"jumps": [{"at": 1, "by": TIME_MAX}, {"at": 2, "by": -1}]}, "longer than the largest time"),
    ],
)
def test_what_cannot_be_a_clock_is_refused(given_: dict[str, Any], text: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        clock(**given_)
    assert text in str(refused.value)


def test_what_is_no_clock_at_all_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="a clock has no 'drfit'"):
        as_clock({"drfit": "40ppm"})
    with pytest.raises(ConfigurationError, match="'40ppm' isn't a clock"):
        as_clock("40ppm")  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match="would stop or reverse"):
        as_clock(LocalClock(drift=-BILLION))


def test_a_walk_is_not_followed_for_ever() -> None:
    ticking = running(clock(wander="walk(1ppm, every=1ns, within=20ppm)"))
    with pytest.raises(UsageError, match="its clock wanders every 1ns, and can't be told so far ahead"):
        ticking.local(TIME_MAX)
