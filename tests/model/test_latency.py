"""Latencies: quantile functions of one draw, with a stated minimum and maximum."""

import math
from collections import Counter

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from worldline.model import MS, SECOND, TIME_MAX, ConfigurationError, exponential, fixed, link, normal, table, uniform
from worldline.model.errors import shown
from worldline.model.latency import Exponential, Fixed, Normal, Table, Uniform, as_distribution, check_latency
from worldline.model.randomness import BITS_MAX, draw_bits, key_of

WORDS = st.integers(0, BITS_MAX)
SPANS = st.integers(1, 10 * SECOND)
LATENCIES = st.one_of(
    st.builds(Fixed, SPANS),
    st.builds(lambda low, more: Uniform(low, low + more), SPANS, st.integers(0, 10 * SECOND)),
    st.builds(Normal, mean=st.integers(0, 10 * SECOND), deviation=st.integers(0, SECOND), minimum=SPANS),
    st.builds(Exponential, minimum=SPANS, mean=st.integers(0, SECOND)),
    # A table draws by place, so it's monotone only if its values are.
    st.builds(lambda values: Table(tuple(sorted(values))), st.lists(SPANS, min_size=1, max_size=9)),
)

# Recorded runs depend on every one of these numbers: a change here breaks all of them.
DRAWN = [
    (fixed("5ms"), [5_000_000] * 8),
    (uniform("1ms", "2ms"), [1_652_449, 1_276_233, 1_930_288, 1_305_194, 1_275_707, 1_077_452, 1_416_292, 1_915_399]),
    (
        normal("5ms", "1ms", "4.5ms"),
        [5_391_939, 4_500_000, 6_477_935, 4_500_000, 4_500_000, 4_500_000, 4_788_610, 6_374_767],
    ),
    (
        exponential("1ms", "2ms"),
        [3_113_685, 1_646_573, 6_326_750, 1_728_247, 1_645_120, 1_161_232, 2_076_707, 5_939_597],
    ),
    (table(["1ms", "2ms", "3ms", "7ms", "2ms"]), [7 * MS, 2 * MS, 2 * MS, 2 * MS, 2 * MS, MS, 3 * MS, 2 * MS]),
]


def name(latency):
    return type(latency).__name__.lower()


def sample(latency, size=10_000):
    key = key_of(0, "sample")
    return [latency.draw(draw_bits(key, place)) for place in range(size)]


@pytest.mark.parametrize(("latency", "drawn"), DRAWN, ids=[name(row[0]) for row in DRAWN])
def test_latencies_are_what_they_have_always_been(latency, drawn):
    assert [latency.draw(draw_bits(0, place)) for place in range(8)] == drawn


ENDS = [
    (fixed("5ms"), 5_000_000, 5_000_000),
    (uniform("1ms", "2ms"), 1_000_000, 2_000_000),
    (normal("5ms", "1ms", "4.5ms"), 4_500_000, 13_209_536),
    (normal("1ms", "0ms", "5ms"), 5_000_000, 5_000_000),
    (exponential("1ms", "2ms"), 1_000_000, 74_473_601),
    (exponential("1ms", "0ms"), 1_000_000, 1_000_000),
    (table(["3ms", "1ms", "7ms"]), 1_000_000, 7_000_000),
]


@pytest.mark.parametrize(("latency", "minimum", "maximum"), ENDS)
def test_a_latency_states_its_ends(latency, minimum, maximum):
    assert (latency.minimum, latency.maximum) == (minimum, maximum)


@given(LATENCIES, WORDS, WORDS)
@example(Normal(mean=5, deviation=10**17, minimum=1), BITS_MAX - 2**12, BITS_MAX)
@example(Exponential(minimum=1, mean=10**17), BITS_MAX - 2**12, BITS_MAX)
def test_every_draw_is_whole_within_the_ends_and_monotone(latency, low, high):
    low, high = sorted((low, high))
    drawn = [latency.draw(low), latency.draw(high)]
    assert all(type(each) is int for each in drawn)
    assert latency.minimum <= drawn[0] <= drawn[1] <= latency.maximum


def test_a_uniform_latency_takes_each_nanosecond_from_end_to_end_equally_often():
    drawn = Counter(Uniform(10, 13).draw(place << 60) for place in range(16))
    assert drawn == {10: 4, 11: 4, 12: 4, 13: 4}


def test_a_table_takes_each_of_its_values_equally_often():
    drawn = Counter(Table((5, 9, 5, 7)).draw(place << 60) for place in range(16))
    assert drawn == {5: 8, 9: 4, 7: 4}


@pytest.mark.parametrize(
    ("probability", "deviations"),
    [(0.5, 0.0), (0.841344746, 1.0), (0.158655254, -1.0), (0.977249868, 2.0), (0.998650102, 3.0)],
)
def test_a_normal_latency_has_the_quantiles_of_the_textbook(probability, deviations):
    drawn = normal("100ms", "10ms", "1ms").draw(int(probability * 2**64))
    assert drawn == pytest.approx(100 * MS + deviations * 10 * MS, abs=10)


@pytest.mark.parametrize("probability", [0.1, 0.5, 0.9, 0.999])
def test_an_exponential_latency_has_the_quantiles_of_the_textbook(probability):
    drawn = exponential("1ms", "20ms").draw(int(probability * 2**64))
    assert 1 - math.exp(-(drawn - MS) / (20 * MS)) == pytest.approx(probability, abs=1e-7)


def test_what_would_fall_below_the_minimum_of_a_normal_latency_is_the_minimum():
    drawn = sample(normal("5ms", "1ms", "5ms"))
    assert drawn.count(5 * MS) / len(drawn) == pytest.approx(0.5, abs=0.03)
    assert min(drawn) == 5 * MS


# The offender is what the error has to quote.
REFUSED = [
    (lambda: fixed(0), "0"),
    (lambda: uniform(0, "1ms"), "the minimum latency"),
    (lambda: uniform("1ms", 0), "the maximum latency"),
    (lambda: uniform("2ms", "1ms"), "from 2ms to 1ms"),
    (lambda: normal(-1, 1, 1), "the mean latency"),
    (lambda: normal(1, -1, 1), "the standard deviation"),
    (lambda: normal(1, 1, 0), "the minimum latency"),
    (lambda: exponential(0, 1), "the minimum latency"),
    (lambda: exponential(1, -1), "the mean delay"),
    (lambda: table([]), "at least one"),
    (lambda: table([5, 0]), "a measured latency"),
]


@pytest.mark.parametrize(("made", "offender"), REFUSED)
def test_a_latency_that_cannot_be_is_refused_by_name(made, offender):
    with pytest.raises(ConfigurationError) as refusal:
        made()
    assert offender in str(refusal.value)


# Made by hand or read from a file: nobody has checked these yet.
UNCHECKED = [
    (Fixed(0), "0s"),
    (Uniform(0, 5), "0s"),
    (Uniform(5, 4), "larger than its maximum"),
    (Normal(5, 1, 0), "0s"),
    (Normal(5, TIME_MAX, 1), "the largest time"),
    (Exponential(0, 5), "0s"),
    (Exponential(1, TIME_MAX), "the largest time"),
    (Table(()), "empty"),
    (Table((5, 0)), "0s"),
]


@pytest.mark.parametrize(("latency", "reason"), UNCHECKED)
def test_an_unchecked_latency_is_refused_with_its_link_and_the_reason(latency, reason):
    with pytest.raises(ConfigurationError, match=r"^link a → b on pose: ") as refusal:
        check_latency(latency, "link a → b on pose")
    assert reason in str(refusal.value)


IN_EVERY_FIELD = [
    Fixed,
    lambda time: Uniform(time, 5),
    lambda time: Uniform(5, time),
    lambda time: Normal(time, 1, 1),
    lambda time: Normal(1, time, 1),
    lambda time: Normal(1, 1, time),
    lambda time: Exponential(time, 1),
    lambda time: Exponential(1, time),
    lambda time: Table((5, time)),
]


@pytest.mark.parametrize("time", [5.0, 0.5, math.nan, math.inf, True, None, "5ms", [5], -1, TIME_MAX + 1], ids=repr)
@pytest.mark.parametrize("made", IN_EVERY_FIELD)
def test_a_hand_made_latency_holds_plain_times_in_every_field(made, time):
    with pytest.raises(ConfigurationError) as refusal:
        check_latency(made(time), "the link")
    assert str(refusal.value).startswith(f"the link: a latency of {time!r} isn't possible")
    assert "whole nanoseconds" in refusal.value.advice


@pytest.mark.parametrize("latency", [5, 5.0, "5ms", None, (5,), Fixed], ids=repr)
def test_what_is_no_latency_at_all_is_refused_with_the_list_of_those_there_are(latency):
    with pytest.raises(ConfigurationError) as refusal:
        check_latency(latency, "the link")
    assert str(refusal.value).startswith(f"the link: {shown(latency)} isn't a latency")
    for known in ("fixed", "uniform", "normal", "exponential", "table"):
        assert known in refusal.value.advice


WRITTEN = [
    ("5ms", Fixed(5 * MS)),
    (" 5 ms ", Fixed(5 * MS)),
    (5, Fixed(5)),
    ("fixed(5ms)", Fixed(5 * MS)),
    ("fixed(latency=5ms)", Fixed(5 * MS)),
    ("uniform(4ms, 9ms)", Uniform(4 * MS, 9 * MS)),
    ("  uniform ( 4ms,9 ms )  ", Uniform(4 * MS, 9 * MS)),
    ("uniform(maximum=9ms, minimum=4ms)", Uniform(4 * MS, 9 * MS)),
    ("normal(6ms, 1ms, minimum=4ms)", Normal(6 * MS, MS, 4 * MS)),
    ("normal(6ms, 0, 4ms)", Normal(6 * MS, 0, 4 * MS)),
    ("exponential(250ms, 20ms)", Exponential(250 * MS, 20 * MS)),
    ("table(3ms)", Table((3 * MS,))),
    ("table(3ms, 3ms, 17ms)", Table((3 * MS, 3 * MS, 17 * MS))),
    (uniform("4ms", "9ms"), Uniform(4 * MS, 9 * MS)),
]


@pytest.mark.parametrize(("text", "latency"), WRITTEN, ids=repr)
def test_a_latency_can_be_written_as_text(text, latency):
    assert as_distribution(text) == latency
    assert link(text).latency == latency


UNREADABLE = [
    ("soon", "'soon' isn't a latency (write a number and a unit"),
    ("0ms", "'0ms' isn't a latency (a latency is at least 1ns"),
    (
        "soon(5ms)",
        "'soon(5ms)' isn't a latency (write a time such as 5ms, or fixed(latency), uniform(minimum, maximum), ",
    ),
    ("Uniform(4ms, 9ms)", "'Uniform(4ms, 9ms)' isn't a latency (write a time"),
    ("uniform(4ms, 9ms", "'uniform(4ms, 9ms' isn't a latency (write a time"),
    ("uniform((4ms), 9ms)", "'uniform((4ms), 9ms)' isn't a latency (write a time"),
    ("uniform()", "'uniform()' isn't a latency (write uniform(minimum, maximum))"),
    ("uniform(4ms, 9ms, 10ms)", "isn't a latency (write uniform(minimum, maximum))"),
    ("uniform(4ms, minimum=4ms)", "isn't a latency (write uniform(minimum, maximum))"),
    ("uniform(4ms, most=9ms)", "isn't a latency (write uniform(minimum, maximum))"),
    ("normal(6ms, 1ms)", "'normal(6ms, 1ms)' isn't a latency (write normal(mean, deviation, minimum))"),
    ("uniform(4, 9)", "'4' isn't the minimum latency (write a number and a unit"),
    ("uniform(4ms, )", "'' isn't the maximum latency"),
    ("uniform(9ms, 4ms)", "a uniform latency from 9ms to 4ms is empty"),
    ("uniform(0ms, 4ms)", "'0ms' isn't the minimum latency (the minimum latency is at least 1ns"),
    ("table()", "a latency table needs at least one measured value"),
    ("table(3ms,)", "'' isn't a measured latency"),
    ("exponential(1ms, 12000d)", "'exponential(1ms, 12000d)': the latency can exceed the largest time"),
]


@pytest.mark.parametrize(("text", "reason"), UNREADABLE)
def test_a_text_that_is_no_latency_is_refused_with_how_to_write_one(text, reason):
    for take in (as_distribution, link):
        with pytest.raises(ConfigurationError) as refusal:
            take(text)
        assert reason in str(refusal.value)


@given(st.text("uniformtable()=, 15ms", max_size=30) | st.text())
def test_any_text_is_a_latency_or_refused(text):
    try:
        latency = as_distribution(text)
    except ConfigurationError:
        return
    check_latency(latency, "the link")
