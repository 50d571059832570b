"""The plan of a run: checked as a whole before anything starts, and plain data throughout."""

import msgspec
import pytest

from worldline.model.errors import ConfigurationError
from worldline.model.latency import Fixed, exponential, normal, table, uniform
from worldline.model.links import Link, Network, Outage, Rule, hold, link, partition
from worldline.model.plan import Plan, check_plan, plan
from worldline.model.time import TIME_MAX

EVERYTHING = plan(
    ["bob", "alice"],
    seed=7,
    until="1.5s",
    network=Network(
        default=link(uniform("1ms", "2ms"), loss=0.1, loss_at_sender=0.2, duplication=0.3, fifo=True, bandwidth=1000),
        rules=(
            Rule(link=link(normal("5ms", "1ms", "1us")), sender="alice"),
            Rule(link=link(exponential("1ms", "2ms")), receiver="alice"),
            Rule(link=link(table(["1ms", "3ms"])), topic="pose"),
            Rule(link=link("2ms"), topic="pose", sender="alice", receiver="bob"),
        ),
        outages=partition(["alice"], ["bob"], "10ms", "20ms") + hold(["alice"], ["bob"], "30ms"),
        control_latency=5,
    ),
)


def refusal_of(*arguments, **more):
    with pytest.raises(ConfigurationError) as refusal:
        plan(*arguments, **more)
    return str(refusal.value)


def test_a_plan_has_seed_zero_no_end_and_the_default_network_unless_told():
    made = plan(["alice"])
    assert (made.roster, made.seed, made.end, made.network) == (("alice",), 0, None, Network())


def test_a_plan_takes_any_iterable_of_names_and_an_end_as_text():
    made = plan((name for name in ("bob", "alice")), until="2s")
    assert (made.roster, made.end) == (("bob", "alice"), 2_000_000_000)


@pytest.mark.parametrize("form", [msgspec.json, msgspec.msgpack], ids=["json", "msgpack"])
def test_a_plan_survives_being_written_to_a_file(form):
    read = form.decode(form.encode(EVERYTHING), type=Plan)
    assert read == EVERYTHING
    check_plan(read)


@pytest.mark.parametrize("roster", [[], (), iter(())], ids=["list", "tuple", "iterator"])
def test_an_empty_roster_is_refused(roster):
    assert "the roster is empty" in refusal_of(roster)


@pytest.mark.parametrize(
    ("roster", "twice"), [(["a", "a"], "'a'"), (["a", "b", "c", "b"], "'b'"), (["x", "y", "y", "x"], "'x'")]
)  # fmt: skip
def test_two_participants_of_one_name_are_refused_by_that_name(roster, twice):
    assert f"two participants are named {twice}" in refusal_of(roster)


@pytest.mark.parametrize("name", ["", " ", "a\n", " a", "x" * 256, None, 5, b"a", ["a"]], ids=repr)
def test_a_participant_without_a_possible_name_is_refused(name):
    text = refusal_of(["alice", name])
    assert repr(name) in text
    assert "a participant" in text


@pytest.mark.parametrize("roster", ["", "a", "alice", "alice,bob"])
def test_a_name_is_not_taken_for_a_roster_of_letters(roster):
    text = refusal_of(roster)
    assert text.startswith(f"the roster {roster!r} is one text")
    assert "a list of names" in text


@pytest.mark.parametrize("seed", [1.0, "7", None, True, float("nan"), b"7"], ids=repr)
def test_a_seed_that_is_no_whole_number_is_refused(seed):
    assert "the seed isn't a whole number" in refusal_of(["alice"], seed=seed)


@pytest.mark.parametrize("seed", [2**63, -(2**63) - 1, 2**64, 10**5000, -(10**5000)], ids=int.bit_length)
def test_a_seed_of_more_than_64_bits_is_refused(seed):
    assert "at most 64 bits" in refusal_of(["alice"], seed=seed)


@pytest.mark.parametrize("end", [-1, 1.5, True, TIME_MAX + 1, [5]], ids=repr)
def test_an_end_that_is_no_time_is_refused(end):
    text = refusal_of(["alice"], until=end)
    assert repr(end) in text
    assert "an end time" in text


@pytest.mark.parametrize("end", [0, "0", "0s"])
def test_an_end_at_the_start_is_refused(end):
    assert refusal_of(["alice"], until=end) == "a run can't end at 0 (use at least 1ns)"


BAD_NETWORKS = [
    (Network(default=Link(latency=Fixed(0))), "the default link: a latency of 0s"),
    (Network(rules=(Rule(link=link("1ms"), sender="mallory"),)), "there is no participant 'mallory'"),
    (Network(rules=(Rule(link=Link(latency=Fixed(-1)), receiver="alice"),)), "link * → alice on *: a latency of -1 "),
    (Network(outages=partition(["alice"], ["mallory"], 0)), "there is no participant 'mallory'"),
    (Network(outages=(Outage(verb="cut", start=0),)), "outage of link * → * on *: 'cut'"),
    (Network(control_latency=0), "the control link"),
]


@pytest.mark.parametrize(("network", "reason"), BAD_NETWORKS)
def test_a_network_that_cannot_be_is_refused_with_the_plan(network, reason):
    assert reason in refusal_of(["alice", "bob"], network=network)


# Read from a file rather than made by the function: the check is the only gate.
UNCHECKED = [
    (Plan(roster=()), "the roster is empty"),
    (Plan(roster=("a", "a")), "two participants are named 'a'"),
    (Plan(roster=("a",), seed=1.5), "the seed isn't a whole number"),
    (Plan(roster=("a",), seed=True), "the seed isn't a whole number"),
    (Plan(roster=("a",), seed=2**63), "at most 64 bits"),
    (Plan(roster=("a",), seed=10**5000), "at most 64 bits"),
    (Plan(roster=("a",), end=0), "a run can't end at 0"),
    (Plan(roster=("a",), end=-1), "a run can't end at -1"),
    (Plan(roster=("a",), end=2.5), "a run can't end at 2.5"),
    (Plan(roster=("a",), end=True), "a run can't end at True"),
    (Plan(roster=("a",), end="5ms"), "a run can't end at '5ms'"),
    (Plan(roster=("a",), end=TIME_MAX + 1), f"a run can't end at {TIME_MAX + 1}"),
    (Plan(roster=("a",), network=Network(control_latency=0)), "the control link"),
]


@pytest.mark.parametrize(("unchecked", "reason"), UNCHECKED)
def test_a_plan_made_by_hand_is_checked_as_strictly(unchecked, reason):
    with pytest.raises(ConfigurationError) as refusal:
        check_plan(unchecked)
    assert reason in str(refusal.value)
