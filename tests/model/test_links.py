"""Links, rules and outages as they are written down, and the refusal of those that can't be."""

from itertools import product

import pytest

from worldline.model.errors import ConfigurationError
from worldline.model.latency import Fixed
from worldline.model.links import Link, Network, Outage, Rule, check_link, check_network, hold, link, partition
from worldline.model.time import FOREVER, MS, TIME_MAX

ROSTER = ("alice", "bob", "carol")
NAN = float("nan")


def refusal_of(network):
    with pytest.raises(ConfigurationError) as refusal:
        check_network(network, ROSTER)
    return str(refusal.value)


def rule(latency=1, **selection):
    return Rule(link=Link(latency=Fixed(latency)), **selection)


def test_a_link_is_a_latency_and_nothing_else_unless_told():
    made = link("5ms")
    assert made == Link(latency=Fixed(5_000_000))
    assert (made.loss_at_sender, made.loss_at_receiver, made.duplication) == (0, 0, 0)
    assert (made.fifo, made.bandwidth) == (False, None)


def test_a_network_has_a_millisecond_everywhere_unless_told():
    network = Network()
    check_network(network, ROSTER)
    assert (network.default, network.control_latency) == (link("1ms"), MS)


@pytest.mark.parametrize("fifo", [None, 0, 1, "yes", "", 1.0], ids=repr)
def test_a_link_keeps_order_or_does_not_and_nothing_in_between(fifo):
    with pytest.raises(ConfigurationError, match=r"^the link: fifo is true or false") as refusal:
        link("5ms", fifo=fifo)
    assert repr(fifo) in str(refusal.value)


PROBABILITIES = [
    ("loss", "loss at the receiver"),
    ("loss_at_sender", "loss at the sender"),
    ("duplication", "duplication"),
]
NOT_PROBABILITIES = [-0.001, 1.001, -1, 2, NAN, float("inf"), -float("inf"), True, False, None, "0.5", 5j]


@pytest.mark.parametrize(("field", "words"), PROBABILITIES)
@pytest.mark.parametrize("value", NOT_PROBABILITIES, ids=repr)
def test_what_is_no_probability_is_refused_with_the_field_and_the_value(field, words, value):
    with pytest.raises(ConfigurationError) as refusal:
        link("5ms", **{field: value})
    assert f"{words} of {value!r}" in str(refusal.value)
    assert "0 to 1" in refusal.value.advice


@pytest.mark.parametrize("bandwidth", [0, -1, 1.5, 1e6, True, NAN, "1000"], ids=repr)
def test_a_bandwidth_that_is_not_whole_bytes_is_refused(bandwidth):
    with pytest.raises(ConfigurationError) as refusal:
        link("5ms", bandwidth=bandwidth)
    assert f"a bandwidth of {bandwidth!r}" in str(refusal.value)
    assert "whole bytes" in refusal.value.advice


BAD_LINKS = [
    (Link(latency=Fixed(0)), "a latency of 0s"),
    (Link(latency=Fixed(1), loss_at_sender=1.5), "loss at the sender of 1.5"),
    (Link(latency=Fixed(1), loss_at_receiver=NAN), "loss at the receiver of nan"),
    (Link(latency=Fixed(1), duplication=-0.1), "duplication of -0.1"),
    (Link(latency=Fixed(1), bandwidth=0), "a bandwidth of 0"),
    (Link(latency=Fixed(1), fifo=1), "fifo is true or false, not 1"),
    (Link(latency="5ms"), "'5ms' isn't a latency"),
]


@pytest.mark.parametrize(("bad", "reason"), BAD_LINKS)
def test_a_bad_link_is_refused_with_its_name_wherever_it_stands(bad, reason):
    with pytest.raises(ConfigurationError) as refusal:
        check_link(bad, "the cable")
    assert str(refusal.value).startswith("the cable: ")
    assert reason in str(refusal.value)
    assert refusal_of(Network(default=bad)).startswith("the default link: ")
    rules = (rule(sender="alice"), Rule(link=bad, sender="alice", receiver="bob", topic="pose"))
    text = refusal_of(Network(rules=rules))
    assert text.startswith("link alice → bob on pose: ")
    assert reason in text


NAMED = [
    ({"sender": "alice"}, "link alice → * on *"),
    ({"receiver": "bob"}, "link * → bob on *"),
    ({"topic": "pose"}, "link * → * on pose"),
    ({"sender": "alice", "receiver": "bob", "topic": "pose"}, "link alice → bob on pose"),
]


@pytest.mark.parametrize(("selection", "text"), NAMED)
def test_a_rule_and_an_outage_say_what_they_are_for(selection, text):
    assert str(rule(**selection)) == text
    assert str(Outage(verb="hold", start=MS, end=2 * MS, **selection)) == f"hold of {text} from 1ms to 2ms"
    assert str(Outage(verb="partition", start=0, **selection)) == f"partition of {text} from 0s to forever"


@pytest.mark.parametrize("role", ["sender", "receiver"])
def test_a_rule_or_outage_for_somebody_unknown_is_refused_with_the_roster(role):
    for network in (
        Network(rules=(rule(**{role: "mallory"}),)),
        Network(outages=(Outage(verb="hold", start=0, **{role: "mallory"}),)),
    ):
        text = refusal_of(network)
        assert "'mallory'" in text
        assert "alice, bob, carol" in text


@pytest.mark.parametrize("topic", ["", " pose", "po\nse", 5, "x" * 256], ids=repr)
def test_a_rule_or_outage_for_a_topic_that_cannot_be_is_refused(topic):
    for network in (Network(rules=(rule(topic=topic),)), Network(outages=(Outage(verb="hold", start=0, topic=topic),))):
        text = refusal_of(network)
        assert repr(topic) in text
        assert "a topic" in text


def test_a_rule_for_every_topic_is_refused_with_what_to_write():
    assert "change the default link" in refusal_of(Network(rules=(rule(topic="*"),)))


EVERY_NAMING = list(product((None, "pose"), (None, "alice"), (None, "bob")))[1:]
SELECTIONS = [{"topic": topic, "sender": sender, "receiver": receiver} for topic, sender, receiver in EVERY_NAMING]


@pytest.mark.parametrize("selection", SELECTIONS, ids=lambda selection: str(rule(**selection)))
def test_two_rules_that_name_the_same_are_refused_even_if_they_agree(selection):
    for second in (1, 2):
        text = refusal_of(Network(rules=(rule(1, **selection), rule(second, **selection))))
        assert text.startswith(f"{rule(**selection)}: two rules name the same")


def test_a_rule_that_names_nothing_is_pointed_to_the_default():
    assert "default link" in refusal_of(Network(rules=(rule(),)))


@pytest.mark.parametrize("latency", [0, -1, 1.0, 1.5, True, None, "1ms", TIME_MAX + 1], ids=repr)
def test_a_control_link_without_a_possible_latency_is_refused(latency):
    text = refusal_of(Network(control_latency=latency))
    assert text.startswith(f"the control link: a latency of {latency!r} isn't possible")


@pytest.mark.parametrize(("start", "end"), [(5, 5), (5, 4), (1, 0), (TIME_MAX, TIME_MAX)])
def test_an_outage_that_ends_before_it_starts_is_refused_by_name(start, end):
    outage = Outage(verb="partition", start=start, end=end, sender="alice")
    assert refusal_of(Network(outages=(outage,))).startswith(str(outage))


@pytest.mark.parametrize(
    ("start", "end"),
    [
        (-1, 5),
        (True, 5),
        ("0", "5ms"),
        (TIME_MAX + 1, FOREVER),
        (0, TIME_MAX + 1),
        (0, 5.0),
    ],
)
def test_an_outage_out_of_time_is_refused_by_name(start, end):
    outage = Outage(verb="hold", start=start, end=end, sender="alice", topic="pose")
    text = refusal_of(Network(outages=(outage,)))
    assert text == f"outage of link alice → * on pose: from {start!r} to {end!r} isn't a span of time"


@pytest.mark.parametrize("verb", ["", "Hold", "cut", "holdpartition", None, 1, True, ["hold"]], ids=repr)
def test_an_outage_that_neither_cuts_nor_holds_is_refused_by_name(verb):
    # Taken for a hold, a misspelled partition would deliver what it should lose.
    outage = Outage(verb=verb, start=0, receiver="bob")
    text = refusal_of(Network(outages=(outage,)))
    assert text == f"outage of link * → bob on *: {verb!r} is neither partition nor hold"


@pytest.mark.parametrize(("verb", "made"), [("partition", partition), ("hold", hold)])
@pytest.mark.parametrize(("left", "right"), [("alice", ["bob"]), (["alice"], "bob"), ("alice", "bob"), ("", ["bob"])])
def test_a_name_is_not_taken_for_a_list_of_letters(verb, made, left, right):
    with pytest.raises(ConfigurationError, match=f"^a {verb} is between two lists of names"):
        made(left, right, 0)


@pytest.mark.parametrize(("verb", "made"), [("partition", partition), ("hold", hold)])
def test_two_groups_are_cut_in_both_directions_and_not_among_themselves(verb, made):
    outages = made(["alice"], ["bob", "carol"], "10ms", "20ms")
    assert {(outage.sender, outage.receiver) for outage in outages} == {
        ("alice", "bob"), ("bob", "alice"), ("alice", "carol"), ("carol", "alice"),
    }  # fmt: skip
    assert len(outages) == 4
    assert all((each.verb, each.start, each.end, each.topic) == (verb, 10 * MS, 20 * MS, None) for each in outages)
    check_network(Network(outages=outages), ROSTER)


@pytest.mark.parametrize("made", [partition, hold])
def test_without_an_end_an_outage_lasts_for_ever(made):
    assert {outage.end for outage in made(["alice"], ["bob"], 0)} == {FOREVER}


def test_an_outage_for_one_receiver_counts_when_any_receiver_is_meant():
    outage = Outage(verb="hold", start=0, sender="alice", receiver="carol")
    assert outage.matches("pose", "alice", None)
    assert not outage.matches("pose", "bob", None)
