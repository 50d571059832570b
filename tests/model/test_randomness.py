"""Keyed draws and the streams made of them."""

import copy
import pickle
import random
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from worldline.model import Stream, UsageError
from worldline.model.randomness import MIRRORED, draw_bits, key_of, open_unit, unit

WORDS = st.integers(0, 2**64 - 1)
KEY = 0x680276E3A5AF1C88

# Recorded runs depend on every one of these numbers: a change here breaks all of them.
KEYS = [
    ((0, "link"), 0x1CA246AC23B54DBA),
    ((0, "link", "pose", "a", "b"), KEY),
    ((7, "link", "pose", "a", "b"), 0xDD11CB64C9E478A9),
    ((0, "stream", "wind"), 0xC578DF7BA23A1D21),
    ((-1, "stream", "wind"), MIRRORED | 0xC578DF7BA23A1D21),
    ((2**70, "stream", "Wörldlîne", "風"), 0x45094CA18BAD08C0),
]
DRAWS = [
    ((0, 0), 0xA706DD2F4D197E6F),
    ((0, 0, 0), 0xA706DD2F4D197E6F),
    ((0, 0, 1), 0xB382A305F4414F5E),
    ((0, 1, 0), 0x46B73E79F0C37C00),
    ((KEY, 0, 0), 0x0122D04156318F48),
    ((KEY, 0, 3), 0xC0001C1731EA0615),
    ((KEY, 1, 0), 0x1A045B41B743D50C),
    ((KEY, 10**12, 2), 0x3A145C2AD4B87B10),
    ((2**64 - 1, 2**64 - 1, 2**64 - 1), 0x4BFFD802EBFB15E4),
]


@pytest.mark.parametrize(("parts", "key"), KEYS)
def test_keys_are_what_they_have_always_been(parts, key):
    assert key_of(*parts) == key


@given(st.integers(0, 2**62), st.integers(1, 100))
def test_seeds_below_0_mirror_those_from_0_on(seed, number):
    """In streams, and in draws for messages: as far from the other end, to the last bit."""
    keys = key_of(seed, "link", "pose"), key_of(-1 - seed, "link", "pose")
    assert draw_bits(keys[0], number) + draw_bits(keys[1], number) == 2**64 - 1
    here, there = Stream(seed, "wind"), Stream(-1 - seed, "wind")
    for _ in range(3):
        assert here.random() + there.random() == 1.0 - 2.0**-53
    assert pickle.loads(pickle.dumps(there)).random() == there.random()


@pytest.mark.parametrize(("place", "bits"), DRAWS)
def test_draws_are_what_they_have_always_been(place, bits):
    assert draw_bits(*place) == bits


def splitmix64(state):
    """The generator as its author publishes it: a counter and a finalizer."""
    while True:
        state = (state + 0x9E3779B97F4A7C15) % 2**64
        z = state
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
        z = (z ^ (z >> 27)) * 0x94D049BB133111EB % 2**64
        yield z ^ (z >> 31)


def test_a_draw_is_a_place_in_a_splitmix64_sequence_that_is_itself_seeded_by_one():
    published = splitmix64(1234567)
    assert [next(published) for _ in range(3)] == [6457827717110365317, 3203168211198807973, 9817491932198370423]
    outer = splitmix64(KEY)
    for sequence in range(20):
        inner = splitmix64(next(outer))
        assert [draw_bits(KEY, sequence, number) for number in range(5)] == [next(inner) for _ in range(5)]


@given(st.lists(st.text(max_size=3), max_size=4), st.lists(st.text(max_size=3), max_size=4))
def test_only_equal_names_share_a_key(left, right):
    assert (key_of(0, "p", *left) == key_of(0, "p", *right)) == (left == right)


def test_names_that_read_the_same_when_run_together_have_keys_of_their_own():
    spellings = [("ab", "c"), ("a", "bc"), ("abc",), ("abc", ""), ("", "abc"), ("a", "b", "c")]
    keys = {key_of(seed, purpose, *names) for seed, purpose, names in product((0, 1, -1), ("p", "q"), spellings)}
    assert len(keys) == 36


def test_the_draws_of_neighboring_keys_messages_and_numbers_are_all_different():
    drawn = {draw_bits(*place) for place in product((KEY, KEY + 1, KEY ^ 2**63), range(2000), range(4))}
    assert len(drawn) == 3 * 2000 * 4


@pytest.mark.parametrize("place", [lambda i: (KEY, i, 0), lambda i: (KEY, 0, i), lambda i: (KEY + i, 0, 0)])
def test_every_bit_is_set_half_of_the_time_along_every_counter(place):
    drawn = [draw_bits(*place(i)) for i in range(4000)]
    for bit in range(64):
        assert 0.45 < sum(bits >> bit & 1 for bits in drawn) / 4000 < 0.55


@given(WORDS, WORDS)
def test_a_unit_draw_lies_in_its_half_open_interval_and_grows_with_its_bits(low, high):
    low, high = sorted((low, high))
    assert 0 <= unit(low) <= unit(high) < 1
    assert 0 < open_unit(low) <= open_unit(high) < 1


def stream(*names, seed=0):
    return Stream(seed, *(names or ("ship", "wind")))


STREAMED = [
    (
        lambda s: [s.random() for _ in range(4)],
        [0.06596350562978293, 0.9499816410188111, 0.1304643639511659, 0.12270047007403606],
    ),
    (
        lambda s: [s.getrandbits(k) for k in (1, 8, 32, 64, 65, 130)],
        [0, 243, 560340176, 2263424169179602223, 894390173891567851, 836784589215306487597507762238098301],
    ),
    (lambda s: [s.randrange(1000) for _ in range(6)], [67, 972, 133, 125, 24, 0]),
    (lambda s: s.sample("abcdefghij", 10), list("bcjaghdefi")),
    (lambda s: s.randbytes(5).hex(), "68fbfbe210"),
    (lambda s: s.choices("xyz", k=8), list("xzxxxzxx")),
    (lambda s: s.uniform(-1, 1), -0.8680729887404341),
]


@pytest.mark.parametrize(("draw", "drawn"), STREAMED)
def test_a_stream_gives_what_it_has_always_given(draw, drawn):
    assert draw(stream()) == drawn


def test_a_stream_shuffles_as_it_has_always_done():
    letters = list("abcdefghij")
    stream().shuffle(letters)
    assert "".join(letters) == "ifedhgajcb"


def test_a_stream_gives_the_normal_draws_that_it_has_always_given():
    # The last bit belongs to the C library's logarithm, cosine and sine, which differ between platforms.
    drawn = [2.240367474586287, 0.9856388291175272, 0.3491774067454356, 0.37401704500260397]
    wind = stream()
    assert [wind.gauss(0, 1) for _ in range(4)] == pytest.approx(drawn, rel=1e-12)


def test_streams_of_other_names_and_seeds_are_other_streams():
    names = [("ship", "wind"), ("ship", "waves"), ("ship",), ("wind", "ship"), ("shipwind",)]
    first = {stream(*each, seed=seed).getrandbits(64) for each, seed in product(names, (0, 1, -1))}
    assert len(first) == 15


def test_a_stream_is_not_shifted_by_what_others_draw():
    alone = stream()
    expected = [alone.random(), alone.random()]
    wind, waves = stream(), stream("ship", "waves")
    first = wind.random()
    waves.shuffle(list(range(100)))
    random.random()
    assert [first, wind.random()] == expected


def test_a_stream_leaves_the_global_generator_alone():
    before = random.getstate()
    stream().shuffle(list(range(100)))
    assert random.getstate() == before


USES = [
    lambda s: s.random(),
    lambda s: s.gauss(0, 1),
    lambda s: s.getrandbits(200),
    lambda s: s.shuffle(list(range(9))),
    lambda s: s.sample(range(50), 7),
    lambda s: s.betavariate(2, 3),
]
KEPT = [
    copy.copy,
    copy.deepcopy,
    *(lambda s, to=to: pickle.loads(pickle.dumps(s, to)) for to in range(pickle.HIGHEST_PROTOCOL + 1)),
]


@pytest.mark.parametrize("kept", KEPT)
@pytest.mark.parametrize("use", USES)
def test_a_stream_goes_on_after_a_journey_where_it_was(use, kept):
    # gauss makes its draws in pairs: the second one of a pair has to travel too.
    original = stream()
    use(original)
    arrived = kept(original)
    assert isinstance(arrived, Stream)
    expected = [original.gauss(0, 1), original.random(), original.getrandbits(70)]
    assert [arrived.gauss(0, 1), arrived.random(), arrived.getrandbits(70)] == expected


def test_a_stream_can_be_set_back():
    wind = stream()
    wind.gauss(0, 1)
    state = wind.getstate()
    drawn = [wind.gauss(0, 1), wind.random()]
    wind.setstate(state)
    assert [wind.gauss(0, 1), wind.random()] == drawn


@pytest.mark.parametrize("seeds", [(), (5,), (None,), ("wind", 2)], ids=repr)
def test_a_stream_refuses_to_be_seeded_and_goes_on_as_if_nobody_had_tried(seeds):
    wind, untouched = stream(), stream()
    for each in (wind, untouched):
        each.gauss(0, 1)
    with pytest.raises(UsageError, match="a stream of another name"):
        wind.seed(*seeds)
    assert [wind.gauss(0, 1), wind.random()] == [untouched.gauss(0, 1), untouched.random()]


@given(st.integers(0, 300))
def test_random_bits_fill_their_width_and_no_more(k):
    wind = stream()
    drawn = [wind.getrandbits(k) for _ in range(64)]
    together = 0
    for bits in drawn:
        together |= bits
    assert together == 2**k - 1


def test_a_stream_serves_the_whole_interface_with_its_own_bits():
    wind = stream()
    assert isinstance(wind, random.Random)
    assert all(0 <= wind.randrange(7) < 7 for _ in range(200))
    assert all(2 <= wind.uniform(2, 3) <= 3 for _ in range(200))
    assert sorted(wind.sample(range(20), 20)) == list(range(20))
    assert wind.choice("x") == "x"
    assert len(wind.randbytes(13)) == 13
    assert wind.expovariate(1.0) > 0


def test_normal_draws_of_a_stream_have_the_mean_and_deviation_asked_for():
    wind = stream()
    drawn = [wind.gauss(10, 2) for _ in range(10_000)]
    mean = sum(drawn) / len(drawn)
    deviation = (sum((x - mean) ** 2 for x in drawn) / len(drawn)) ** 0.5
    assert mean == pytest.approx(10, abs=0.1)
    assert deviation == pytest.approx(2, abs=0.1)
