"""Times as numbers and as text."""

from datetime import timedelta
from decimal import Decimal
from enum import IntEnum
from fractions import Fraction

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from worldline.model import FOREVER, HOUR, MINUTE, SECOND, TIME_MAX, ConfigurationError, UsageError
from worldline.model.errors import shown
from worldline.model.reading import as_latency, as_time, parse_time
from worldline.model.time import format_time, is_time, rounded_time

NANOSECONDS = {
    "ns": 1, "us": 10**3, "µs": 10**3, "μs": 10**3, "ms": 10**6, "s": 10**9, "min": 60 * 10**9, "h": 3600 * 10**9,
    "d": 86_400 * 10**9,
}  # fmt: skip

READ = [
    ("0", 0),
    ("0s", 0),
    ("0.000ns", 0),
    ("1ns", 1),
    ("5ms", 5_000_000),
    ("1.5s", 1_500_000_000),
    ("1.50s", 1_500_000_000),
    ("0.000000001s", 1),
    ("250us", 250_000),
    ("250\N{MICRO SIGN}s", 250_000),
    ("250\N{GREEK SMALL LETTER MU}s", 250_000),
    ("90min", 5_400_000_000_000),
    ("2h", 7_200_000_000_000),
    ("1d", 86_400_000_000_000),
    ("007ms", 7_000_000),
    ("5 ms", 5_000_000),
    (" 5ms\n", 5_000_000),
    ("1152921504606846975ns", TIME_MAX),
    ("1152921504.606846975s", TIME_MAX),
]

WRITTEN = [
    (0, "0s"),
    (1, "1ns"),
    (999, "999ns"),
    (1_000, "1us"),
    (1_500, "1.5us"),
    (5_000_000, "5ms"),
    (1_000_001, "1.000001ms"),
    (1_500_000_000, "1.5s"),
    (59_000_000_000, "59s"),
    (60_000_000_000, "1min"),
    (61_000_000_000, "61s"),
    (5_400_000_000_000, "90min"),
    (7_200_000_000_000, "2h"),
    (86_400_000_000_000, "1d"),
    (TIME_MAX, "1152921504.606846975s"),
    (-5_000_000, "-5ms"),
    (FOREVER, "forever"),
]

UNREADABLE = [
    "", " ", "5", "5.0", "00", "ms", "s5", "1e3s", "-5ms", "+5ms", "--5ms", "5m", "5MS", "5 m s", "5ms5", "5ms 3us",
    "5ms,", ".5s", "5.s", "1.2.3s", "1,5s", "1_000ns", "0x5ms", "nan", "nans", "inf", "infs", "forever", "²s",
    "5\N{ARABIC-INDIC DIGIT FIVE}ms", "5\N{NO-BREAK SPACE}ms",
]  # fmt: skip


class Tick(IntEnum):
    ONE = 1


class Whole:
    """As NumPy's whole numbers are."""

    def __init__(self, value):
        self.value = value

    def __index__(self):
        return self.value


NOT_TIMES = [
    1.0, 0.5, float("nan"), float("inf"), True, False, None, b"5ms", [5], (5,), 5j, Decimal(5), Fraction(5), object,
    {"ms": 5}, Tick.ONE,
]  # fmt: skip


@pytest.mark.parametrize(("text", "time"), READ)
def test_text_is_read_as_whole_nanoseconds(text, time):
    assert parse_time(text) == time
    assert as_time(text) == time


@pytest.mark.parametrize(("time", "text"), WRITTEN)
def test_a_time_is_written_in_the_unit_that_a_person_would_pick(time, text):
    assert format_time(time) == text


@given(st.integers(0, TIME_MAX))
@example(0)
@example(TIME_MAX)
def test_every_time_survives_being_written_and_read(time):
    assert parse_time(format_time(time)) == time


@given(st.integers(1, TIME_MAX))
def test_a_negative_time_is_written_with_a_sign_that_no_reader_accepts(time):
    assert format_time(-time) == "-" + format_time(time)
    with pytest.raises(ConfigurationError):
        parse_time(format_time(-time))


@given(st.from_regex(r"[0-9]{1,14}(\.[0-9]{1,14})?", fullmatch=True), st.sampled_from(sorted(NANOSECONDS)))
def test_text_means_exactly_what_fractions_say_or_is_refused(number, unit):
    exact = Fraction(number) * NANOSECONDS[unit]
    if exact.denominator == 1 and exact <= TIME_MAX:
        assert parse_time(number + unit) == exact
    else:
        with pytest.raises(ConfigurationError):
            parse_time(number + unit)


@given(st.text() | st.text(alphabet="0159.,-+e_ nusmihdµμ\n", max_size=12))
def test_any_text_is_either_a_time_or_a_configuration_error(text):
    try:
        time = parse_time(text)
    except ConfigurationError as refused:
        text_of_refusal = str(refused)
    else:
        assert 0 <= time <= TIME_MAX
        return
    assert repr(text) in text_of_refusal


@pytest.mark.parametrize("text", UNREADABLE)
def test_nonsense_is_refused_by_name_with_an_example_of_what_works(text):
    with pytest.raises(ConfigurationError) as refusal:
        parse_time(text)
    assert repr(text) in str(refusal.value)
    assert '"5ms"' in refusal.value.advice


@pytest.mark.parametrize("text", ["0.1ns", "1.0000000001s", "0.0001us", "1.5ns"])
def test_text_finer_than_a_nanosecond_is_refused_and_not_rounded(text):
    with pytest.raises(ConfigurationError) as refusal:
        parse_time(text)
    assert repr(text) in str(refusal.value)
    assert "whole number of nanoseconds" in refusal.value.advice


@pytest.mark.parametrize("text", ["99999999h", "1152921504606846976ns", "1152921504.606846976s", "13344d"])
def test_text_beyond_the_largest_time_is_refused_with_the_largest_time(text):
    with pytest.raises(ConfigurationError) as refusal:
        parse_time(text)
    assert repr(text) in str(refusal.value)
    assert "1152921504.606846975s" in refusal.value.advice


@pytest.mark.parametrize("value", NOT_TIMES, ids=repr)
def test_what_is_neither_whole_number_nor_text_is_no_time(value):
    with pytest.raises(ConfigurationError) as refusal:
        as_time(value, "the release")
    assert shown(value) in str(refusal.value)
    assert "the release" in str(refusal.value)
    assert "nanoseconds" in refusal.value.advice


def test_whole_numbers_of_other_classes_are_times_too():
    time = as_time(Whole(5))
    assert (type(time), time) == (int, 5)
    with pytest.raises(ConfigurationError, match="lies between 0 and"):
        as_time(Whole(-5))


@pytest.mark.parametrize(
    ("value", "time"),
    [
        (timedelta(0), 0),
        (timedelta(microseconds=1), 1_000),
        (timedelta(days=1, microseconds=7), 86_400_000_007_000),
        (timedelta(milliseconds=1.5), 1_500_000),
    ],
)
def test_a_timedelta_is_a_time_to_the_microsecond(value, time):
    assert as_time(value) == time


@pytest.mark.parametrize("value", [-1, -TIME_MAX, TIME_MAX + 1, FOREVER, 2**64])
def test_a_number_out_of_range_is_refused_with_the_range(value):
    with pytest.raises(UsageError) as refusal:
        as_time(value, "the release")
    assert str(value) in str(refusal.value)
    assert "the release lies between 0 and 1152921504.606846975s" in str(refusal.value)


@pytest.mark.parametrize("value", [*NOT_TIMES, "5ms", -1, TIME_MAX + 1, FOREVER, -(10**5000), 10**5000], ids=type)
def test_only_a_plain_whole_number_in_range_is_a_time(value):
    assert is_time(value) is False


# Python itself refuses to write so many digits, with an error that isn't ours.
@pytest.mark.parametrize("value", [10**5000, -(10**5000), 2**256], ids=["huge", "hugely negative", "just too long"])
@pytest.mark.parametrize("taken", [as_time, as_latency])
def test_a_number_too_long_to_write_is_refused_by_its_length(taken, value):
    with pytest.raises(ConfigurationError) as refusal:
        taken(value, "the release")
    assert refusal.value.problem == f"a number of {value.bit_length()} bits isn't the release"
    assert "the release lies between 0 and 1152921504.606846975s" in refusal.value.advice


BADLY_WRITTEN = ["soon", "5", "-5ms", "0.1ns", "99999999h", "9" * 41 + "s", "", 1.5, True, None, -1, TIME_MAX + 1]


@pytest.mark.parametrize("value", BADLY_WRITTEN, ids=repr)
@pytest.mark.parametrize("taken", [as_time, as_latency])
def test_whatever_is_wrong_with_a_value_its_refusal_says_what_it_was_for(taken, value):
    with pytest.raises(ConfigurationError) as refusal:
        taken(value, "the release")
    assert refusal.value.problem == f"{value!r} isn't the release"


@pytest.mark.parametrize(("value", "latency"), [(1, 1), ("1ns", 1), ("5ms", 5_000_000), (TIME_MAX, TIME_MAX)])
def test_a_latency_is_at_least_a_nanosecond(value, latency):
    assert as_latency(value) == latency


@pytest.mark.parametrize("value", [0, "0", "0ms", "0.0s", -1, "-5ms", 0.5, True, "0.1ns"])
def test_a_latency_of_nothing_or_less_is_refused(value):
    with pytest.raises(ConfigurationError) as refusal:
        as_latency(value)
    assert repr(value) in str(refusal.value)


def test_two_times_added_are_before_forever_and_fit_64_bits():
    assert TIME_MAX + TIME_MAX < FOREVER
    assert FOREVER + TIME_MAX < 2**62


@pytest.mark.parametrize(
    ("time", "text"),
    [
        (112_938_165_636_577_344, "1307d 3h 42min"),
        (3 * HOUR + 25 * MINUTE + 45 * SECOND + 1, "3h 25min 45s"),
        (HOUR + 1, "1h 0min 0s"),
        (8 * HOUR, "8h"),
        (90 * MINUTE, "90min"),
        (HOUR - 1, "3599.999999999s"),
        (FOREVER, "forever"),
    ],
)
def test_long_times_for_people_have_three_parts(time, text):
    assert rounded_time(time) == text
