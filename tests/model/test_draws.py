"""Names of draws, tables that replace some, and the streams and paths that take from them."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from worldline.model import MS, ConfigurationError, Network, UsageError, link, plan, uniform
from worldline.model.draws.distributions import (
    BitPlace,
    Chance,
    ClockRate,
    Distribution,
    RandomBits,
    UnitInterval,
    checked_value,
    distribution_text,
    value_text,
)
from worldline.model.draws.names import NamePattern, check_pattern, concerns, is_exact, name_text, names_in, part_text
from worldline.model.draws.table import Drawn, DrawRow, DrawsGiven, DrawTable, NamedStream, read_draws
from worldline.model.latency import Uniform, as_distribution
from worldline.model.path import LOST_AT_RECEIVER, LOST_AT_SENDER, Paths
from worldline.model.randomness import Stream

NOISY = link("uniform(1ms, 9ms)", loss=0.3, loss_at_sender=0.2, duplication=0.2)


def table(given: DrawsGiven, seed: int = 7) -> DrawTable:
    rows, functions = read_draws(given)
    return DrawTable(seed, rows, load=functions.__getitem__)


def path(given: DrawsGiven, seed: int = 7, network: Network | None = None) -> Any:
    return Paths(network or Network(default=NOISY), seed, draws=table(given, seed)).open("image", "camera", "planner")


def carried(opened: Any, count: int = 50) -> list[Any]:
    return [opened.carry(number * 10 * MS, number, 8) for number in range(count)]


def stream(given: DrawsGiven, *names: str, seed: int = 7) -> NamedStream:
    return NamedStream(table(given, seed), seed, "robot", *names, time=lambda: 5)


# --- Names ---


@given(st.lists(st.text(min_size=1), min_size=1))
def test_a_name_says_its_parts_whatever_they_are(parts: list[str]) -> None:
    text = name_text(parts)
    assert names_in(text) == tuple(parts)
    assert NamePattern(text).matches([part_text(part) for part in parts])


@pytest.mark.parametrize(
    ("pattern", "name", "matches"),
    [
        ("latency", "latency/image/camera/planner/3", True),
        ("latency/image", "latency/image/camera/planner/3", True),
        ("latency/im*", "latency/image/camera/planner/3", True),
        ("latency/*/planner", "latency/image/camera/planner/3", False),
        ("latency/*/*/planner", "latency/image/camera/planner/3", True),
        ("*/image", "loss/image/camera/planner/3", True),
        ("latency/image/camera/planner/[1-3]", "latency/image/camera/planner/3", True),
        ("latency/image/camera/planner/?", "latency/image/camera/planner/33", False),
        ("latency-of-copy", "latency/image/camera/planner/3", False),
        ("random/a%2Fb", "random/a%2Fb/0", True),
        ("random/a*", "random/a%2Fb/0", True),
        ("random/a/b", "random/a%2Fb/0", False),
    ],
)
def test_a_pattern_matches_part_by_part(pattern: str, name: str, matches: bool) -> None:
    assert NamePattern(pattern).matches(name.split("/")) is matches


def test_only_the_whole_name_of_a_draw_is_exact() -> None:
    assert is_exact("random/robot/0")
    assert is_exact("loss-at-sender/image/camera/0")
    assert not is_exact("random/robot")
    assert not is_exact("random/*/0")
    assert not is_exact("unknown/1")


def test_participants_are_told_of_what_they_draw_themselves() -> None:
    assert concerns("random/robot/3", "robot")
    assert concerns("*", "robot")
    assert concerns("stream/r*", "robot")
    assert concerns("random/a%2Fb", "a/b")
    assert concerns("boot/robot", "robot")
    assert concerns("corruption/image/camera/robot", "robot")
    assert concerns("corruption/image", "robot")
    assert not concerns("corruption/image/robot/camera", "robot")
    assert not concerns("random/robot", "other")
    assert not concerns("latency", "robot")


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        ("latncy/image", "no draw is for 'latncy' (did you mean 'latency'?)"),
        ("weather", "draws are for latency,"),
        ("random/a/b/c", "too many parts (write random/PARTICIPANT/NUMBER, with %2F"),
        ("latency//a", "a part of it is empty (write * for anything)"),
        ("random/robot/first", "'first' isn't a number (count draws from 0)"),
        ("random/robot/-1", "'-1' isn't a number"),
        ("random/robot/01", "'01' isn't a number"),
    ],
)
def test_a_pattern_that_nothing_can_match_is_refused(pattern: str, words: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        check_pattern(pattern)
    assert str(caught.value).startswith(f"draw {pattern}: ")
    assert words in str(caught.value)


# --- Rows ---


def test_rows_are_read_in_the_forms_that_people_write() -> None:
    rows, functions = read_draws(
        {
            "latency": "antithetic",
            "latency/image": "5ms",
            "loss": True,
            "random/a": {"seed": 5, "antithetic": True},
            "random/b": {"function": "mine:policy"},
            "random/c": max,
        }
    )
    assert rows == (
        DrawRow("latency", antithetic=True),
        DrawRow("latency/image", value="5ms"),
        DrawRow("loss", value=True),
        DrawRow("random/a", seed=5, antithetic=True),
        DrawRow("random/b", function="mine:policy"),
        DrawRow("random/c", function="builtins:max"),
    )
    assert functions == {"builtins:max": max}
    assert read_draws(rows)[0] == rows
    assert read_draws(None) == ((), {})
    assert read_draws(max)[0] == (DrawRow("*", function="builtins:max"),)


def test_functions_of_the_same_name_are_told_apart() -> None:
    rows, functions = read_draws({"loss": lambda *_: True, "duplication": lambda *_: False})
    assert rows[0].function != rows[1].function
    assert [functions[str(row.function)]("", Chance(0.5), True) for row in rows] == [True, False]


@pytest.mark.parametrize(
    ("written", "words"),
    [
        ("latency", "isn't a table of draws"),
        (["latency"], "isn't a table of draws"),
        ({5: "1ms"}, "5 isn't the name of a draw"),
        ({"latency": None}, "draw latency: it isn't replaced by anything"),
        ({"latency": {}}, "draw latency: it isn't replaced by anything"),
        ({"latency": {"value": "1ms", "seed": 1}}, "draw latency: it is replaced in two ways"),
        ({"latency": {"sead": 1}}, "draw latency: there is no key 'sead'"),
        ({"latency": {"seed": "x"}}, "draw latency: the seed isn't a whole number"),
        ({"latency": {"antithetic": "yes"}}, "draw latency: antithetic is true or false"),
        ({"latency": {"function": 5}}, "draw latency: 5 isn't a function"),
        ({"latency": [1]}, "draw latency: [1] isn't a value"),
    ],
)
def test_rows_that_say_nothing_are_refused(written: Any, words: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        read_draws(written)
    assert words in str(caught.value)


# --- Values ---


@pytest.mark.parametrize(
    ("distribution", "given", "value"),
    [
        (uniform("1ms", "9ms"), "1ms", MS),
        (uniform("1ms", "9ms"), 9 * MS, 9 * MS),
        (Chance(0.1), True, True),
        (Chance(0.1), False, False),
        (UnitInterval(), 0, 0.0),
        (UnitInterval(), 0.25, 0.25),
        (RandomBits(3), 7, 7),
        (BitPlace(24), 23, 23),
        (ClockRate(Uniform(-5000, 5000)), "-5ppm", -5000),
    ],
)
def test_a_value_is_taken_in_the_terms_of_its_distribution(distribution: Any, given: object, value: object) -> None:
    assert checked_value(distribution, given) == value


@pytest.mark.parametrize(
    ("distribution", "given", "words"),
    [
        (uniform("1ms", "9ms"), "10ms", "10ms is outside of uniform(1ms, 9ms) (use 1ms to 9ms)"),
        (uniform("1ms", "9ms"), 999_999, "outside of uniform(1ms, 9ms)"),
        (uniform("1ms", "9ms"), True, "True isn't a latency"),
        (uniform("1ms", "9ms"), 0.5, "0.5 isn't a latency"),
        (Chance(0.1), 1, "1 is neither true nor false"),
        (Chance(1), False, "false is outside of chance(1)"),
        (UnitInterval(), 1, "1 isn't a number from 0 to 1"),
        (UnitInterval(), float("nan"), "nan isn't a number from 0 to 1"),
        (UnitInterval(), True, "True isn't a number from 0 to 1"),
        (RandomBits(3), 8, "8 isn't a whole number of 3 bits (use 0 up to 2**3 - 1)"),
        (RandomBits(3), -1, "-1 isn't a whole number of 3 bits"),
        (RandomBits(3), 1.0, "1.0 isn't a whole number of 3 bits"),
        (BitPlace(24), 24, "24 isn't one of 24 bits (use 0 to 23)"),
        (BitPlace(24), False, "False isn't one of 24 bits"),
        (ClockRate(Uniform(-5000, 5000)), "6ppm", "6ppm is outside of uniform(-5ppm, 5ppm) (use -5ppm to 5ppm)"),
        (ClockRate(Uniform(-5000, 5000)), "6ms", "'6ms' isn't a rate"),
    ],
)
def test_a_value_out_of_bounds_is_refused(distribution: Any, given: object, words: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        checked_value(distribution, given)
    assert words in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        "uniform(1ms, 9ms)",
        "normal(6ms, 1ms, 4ms)",
        "exponential(1ms, 5ms)",
        "table(1ms, 2ms)",
        "fixed(1ms)",
    ],
)
def test_a_distribution_is_written_as_in_a_file(text: str) -> None:
    assert distribution_text(as_distribution(text)) == text


def test_values_are_written_as_in_a_table() -> None:
    written: list[tuple[Distribution, Any]] = [(uniform(1, 9), 5), (Chance(0.5), True), (UnitInterval(), 0.25)]
    assert [value_text(*each) for each in written] == ["5ns", "true", "0.25"]
    assert [distribution_text(each) for each in (Chance(0.5), UnitInterval(), RandomBits(7))] == [
        "chance(0.5)",
        "unit",
        "bits(7)",
    ]


# --- Paths ---


def test_names_change_nothing() -> None:
    plain = Paths(Network(default=NOISY), 7).open("image", "camera", "planner")
    assert carried(path({"random/robot": 0.5})) == carried(plain)
    assert carried(path(lambda _name, _distribution, value: value)) == carried(plain)


def test_another_seed_gives_the_draws_of_that_seed() -> None:
    assert carried(path({"*": {"seed": 8}})) == carried(path(None, seed=8))
    assert carried(path({"*": {"seed": 8}})) != carried(path(None))


def test_one_draw_is_replaced_and_no_other() -> None:
    name = "image/camera/planner/3"
    calm = {"loss": False, "loss-at-sender": False, "duplication": False}
    before = carried(path(calm))
    after = carried(path({**calm, f"latency/{name}": "2ms"}))
    assert after[3] == ((32 * MS,), None)
    assert [place for place in range(50) if before[place] != after[place]] == [3]
    assert carried(path({**calm, f"loss/{name}": True}))[3][1] == LOST_AT_RECEIVER
    assert carried(path({**calm, "loss-at-sender/image/camera/3": True}))[3][1] == LOST_AT_SENDER
    copies = carried(path({**calm, f"duplication/{name}": True, f"latency-of-copy/{name}": "9ms"}))[3][0]
    assert copies == (before[3][0][0], 39 * MS)


def test_antithetic_latencies_mirror_each_other() -> None:
    calm = {"loss": False, "loss-at-sender": False, "duplication": False}
    pairs = zip(carried(path(calm)), carried(path({**calm, "latency": "antithetic"})), strict=True)
    for number, ((first, _), (second, _)) in enumerate(pairs):
        assert first[0] + second[0] - 2 * number * 10 * MS == 10 * MS  # u and 1 - u of 1ms to 9ms.


def test_the_last_row_that_matches_counts_and_all_have_matched() -> None:
    made = table({"loss": True, "loss/image/camera/planner/0": False, "loss/*/*/*/1": False, "latency/pose": "2ms"})
    opened = Paths(Network(default=link("uniform(1ms, 9ms)", loss=0.3)), 7, draws=made).open(
        "image", "camera", "planner"
    )
    losses = [opened.carry(0, number, 1)[1] for number in range(3)]
    assert [reason == LOST_AT_RECEIVER for reason in losses] == [False, False, True]
    assert made.matched == [0, 1, 2]


def test_a_fixed_latency_is_no_draw() -> None:
    heard: list[Drawn] = []
    made = DrawTable(7, heard=heard.append)
    Paths(Network(default=link("5ms", loss=0.5)), 7, draws=made).open("image", "camera", "planner").carry(3, 0, 1)
    assert [(each.name, each.at) for each in heard] == [("loss/image/camera/planner/0", 3)]


def test_a_value_out_of_bounds_names_the_draw_and_its_row() -> None:
    opened = path({"latency/image": "10ms"})
    with pytest.raises(ConfigurationError, match="draw latency/image/camera/planner/0, by the row latency/image: "):
        opened.carry(0, 0, 1)
    with pytest.raises(ConfigurationError, match=r"loss-at-sender/image/camera/0.*: its function raised KeyError: 'x'"):
        path({"loss-at-sender": lambda *_: {}["x"]}).carry(0, 0, 1)
    with pytest.raises(ConfigurationError, match="the function mine:policy can't be loaded here"):
        DrawTable(7, read_draws({"random": {"function": "mine:policy"}})[0]).draw(*_random_draw())


def _random_draw() -> Any:
    from worldline.model.draws.table import DrawSource

    return DrawSource(("random", "robot", "0"), UnitInterval(), ("stream", "robot"), 1), 0


# --- Streams ---


@given(st.integers(0, 200), st.integers())
def test_a_stream_with_names_draws_the_same(bits: int, seed: int) -> None:
    plain, named = Stream(seed, "robot", "noise"), stream(None, "noise", seed=seed)
    for draw in (
        lambda source: source.random(),
        lambda source: source.getrandbits(bits),
        lambda source: source.gauss(0, 1),
        lambda source: source.choice("abcdefg"),
        lambda source: source.exponential("1ms"),
        lambda source: source.sample(range(100), 10),
    ):
        assert draw(plain) == draw(named)
    assert plain.getstate() == named.getstate()


def test_the_draws_of_a_stream_are_counted_from_0() -> None:
    heard: list[Drawn] = []
    named = NamedStream(DrawTable(7, heard=heard.append), 7, "robot", "noise", time=lambda: 5)
    values = [named.random(), named.getrandbits(70), named.getrandbits(3)]
    assert [(each.name, each.distribution, each.at) for each in heard] == [
        ("stream/robot/noise/0", UnitInterval(), 5),
        ("stream/robot/noise/1", RandomBits(64), 5),
        ("stream/robot/noise/2", RandomBits(64), 5),
        ("stream/robot/noise/3", RandomBits(3), 5),
    ]
    assert (heard[0].value, heard[3].value) == (values[0], values[2])


def test_draws_of_a_stream_are_replaced() -> None:
    named = stream({"random/robot/1": 0.25, "random/robot/2": 5})
    plain = Stream(7, "robot")
    assert [named.random(), named.random(), named.getrandbits(8)] == [plain.random(), 0.25, 5]
    assert stream({"random": "antithetic"}).random() == pytest.approx(1 - Stream(7, "robot").random())
    assert stream({"*": {"seed": 9}}).random() == Stream(9, "robot").random()


def test_a_copy_of_a_stream_goes_on_by_itself_with_the_same_table() -> None:
    named = stream({"random/robot/1": 0.25})
    named.random()
    assert copy.copy(named).random() == copy.deepcopy(named).random() == named.random() == 0.25
    with pytest.raises(UsageError, match="can't be pickled while its draws are replaced"):
        pickle.dumps(named)


# --- Plans ---


@pytest.mark.parametrize(
    ("written", "words"),
    [
        ({"latency/image/camera/planner/0": "10ms"}, "10ms is outside of uniform(1ms, 9ms)"),
        ({"latency/image": "10ms"}, "10ms is outside of uniform(1ms, 9ms)"),
        ({"latency/image/planner/camera/0": "1ms"}, "no link of this network draws that"),
        ({"latency/image/camera/plnner/0": "1ms"}, "there is no participant 'plnner' (did you mean 'planner'?)"),
        ({"random/x*": 0.5}, "there is no participant 'x*' (the roster is camera, planner)"),
        ({"duplication": True}, "no link of this network draws that (fixed latencies, and what never happens,"),
    ],
)
def test_a_plan_refuses_draws_that_it_can_never_make(written: Any, words: str) -> None:
    from worldline.model import Rule

    back = Rule(sender="planner", link=link("5ms"))
    network = Network(default=link("uniform(1ms, 9ms)", loss=0.5), rules=(back,))
    with pytest.raises(ConfigurationError) as caught:
        plan(["camera", "planner"], network=network, draws=read_draws(written)[0])
    assert str(caught.value).startswith(f"draw {next(iter(written))}: ")
    assert words in str(caught.value)
