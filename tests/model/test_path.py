"""Paths: which link a message takes, when it arrives, and by when it can be forgotten."""

from itertools import chain, combinations, permutations, product

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from worldline.model.faults import Dropout
from worldline.model.latency import Exponential, Fixed, Normal, Table, Uniform, uniform
from worldline.model.links import Link, Network, Outage, Rule, check_network, link, partition
from worldline.model.path import CUT_OFF, DROPPED_OUT, LOST_AT_RECEIVER, LOST_AT_SENDER, Paths
from worldline.model.time import FOREVER, MS, SECOND, TIME_MAX

TOPICS, NAMES = ("pose", "twist"), ("a", "b", "c")

SPANS = st.integers(1, 10 * MS)
LATENCIES = st.one_of(
    st.builds(Fixed, SPANS),
    st.builds(lambda low, more: Uniform(low, low + more), SPANS, st.integers(0, 10 * MS)),
    st.builds(Normal, mean=SPANS, deviation=SPANS, minimum=SPANS),
    st.builds(Exponential, minimum=SPANS, mean=SPANS),
    st.builds(lambda values: Table(tuple(values)), st.lists(SPANS, min_size=1, max_size=5)),
)
PROBABILITIES = st.sampled_from([0.0, 0.0, 0.1, 0.5, 0.9, 1.0])
UNQUEUED = st.builds(
    Link,
    latency=LATENCIES,
    loss_at_sender=PROBABILITIES,
    loss_at_receiver=PROBABILITIES,
    duplication=PROBABILITIES,
    fifo=st.booleans(),
)
LINKS = UNQUEUED | st.builds(
    Link,
    latency=LATENCIES,
    loss_at_sender=PROBABILITIES,
    loss_at_receiver=PROBABILITIES,
    duplication=PROBABILITIES,
    fifo=st.booleans(),
    bandwidth=st.integers(1_000, 10**9),
)
OUTAGES = st.lists(
    st.builds(
        lambda start, span, **more: Outage(start=start, end=FOREVER if span is None else start + span, **more),
        start=st.integers(0, 30 * MS),
        span=st.integers(1, 30 * MS) | st.integers(1, 30 * MS) | st.none(),
        verb=st.sampled_from(["hold", "hold", "partition"]),
        topic=st.sampled_from([None, *TOPICS]),
        sender=st.sampled_from([None, *NAMES]),
        receiver=st.sampled_from([None, *NAMES]),
    ),
    max_size=4,
).map(tuple)
RULES = st.lists(
    st.builds(
        Rule,
        link=UNQUEUED,
        topic=st.sampled_from([None, *TOPICS]),
        sender=st.sampled_from([None, *NAMES]),
        receiver=st.sampled_from([None, *NAMES]),
    ).filter(lambda rule: rule.topic or rule.sender or rule.receiver),
    max_size=5,
    unique_by=lambda rule: (rule.topic, rule.sender, rule.receiver),
).map(tuple)
# Send times and sizes in the order of sequence numbers. A sender may publish for later, so times can go back.
SENDS = st.lists(st.tuples(st.integers(0, 40 * MS), st.integers(0, 2_000)), min_size=1, max_size=10)
SENDS = SENDS | SENDS.map(sorted)


def path(made, *outages, seed=7, names=("pose", "a", "b"), **more):
    return Paths(Network(default=made, outages=outages), seed).open(*names, **more)


def carry_all(opened, sends):
    return [opened.carry(sent, sequence, size) for sequence, (sent, size) in enumerate(sends)]


def fates(made, count=10_000, **more):
    """What becomes of many messages that are all sent at time 0."""
    return carry_all(path(made, **more), [(0, 0)] * count)


def share(wanted):
    counted = list(wanted)
    return sum(counted) / len(counted)


# --- Which link -------------------------------------------------------------------------------------------------------


def naive_link(network, topic, sender, receiver):
    """The documented rule: most names first, and then the sender before the receiver before the topic."""

    def matches(rule):
        return rule.topic in (None, topic) and rule.sender in (None, sender) and rule.receiver in (None, receiver)

    def precedence(rule):
        named = [name is not None for name in (rule.sender, rule.receiver, rule.topic)]
        return sum(named), named

    return max(filter(matches, network.rules), key=precedence, default=Rule(link=network.default)).link


def numbered_rules(selections):
    return tuple(
        Rule(link=Link(latency=Fixed(number)), topic=topic, sender=sender, receiver=receiver)
        for number, (topic, sender, receiver) in enumerate(selections, start=1)
    )


PRECEDENCE = [
    ("pose", "a", "b"),
    (None, "a", "b"),
    ("pose", "a", None),
    ("pose", None, "b"),
    (None, "a", None),
    (None, None, "b"),
    ("pose", None, None),
]


def test_the_most_specific_rule_wins_in_every_combination_of_rules():
    # Rules for somebody else stand among those that match, and must never be taken.
    others = [("twist", "a", "b"), (None, "b", "a"), ("pose", "c", None), ("pose", None, "c"), (None, "b", None)]
    everything = numbered_rules(PRECEDENCE + others)
    matching, foreign = everything[:7], everything[7:]
    for rules in chain.from_iterable(combinations(matching, count) for count in range(8)):
        network = Network(rules=foreign + rules)
        expected = rules[0].link if rules else network.default
        assert Paths(network, 0).link("pose", "a", "b") == expected == naive_link(network, "pose", "a", "b")


SELECTIONS = [selection for selection in product((None, *TOPICS), (None, *NAMES), (None, *NAMES)) if any(selection)]


@given(st.lists(st.sampled_from(SELECTIONS), unique=True).map(numbered_rules))
def test_nobody_reaches_a_receiver_sooner_than_the_least_of_all_that_may_apply(rules):
    paths = Paths(Network(rules=rules), 0)
    for topic, receiver in product(TOPICS, NAMES):
        least = paths.least_into(topic, receiver)
        assert all(least <= paths.link(topic, sender, receiver).latency.minimum for sender in NAMES)


def test_the_least_into_a_receiver_leaves_out_what_is_about_others():
    rules = (
        Rule(topic="pose", receiver="b", link=link("7ms")),
        Rule(sender="a", link=link("6ms")),
        Rule(topic="twist", link=link("2ms")),
        Rule(sender="a", receiver="c", link=link("1ms")),
    )
    paths = Paths(Network(default=link("9ms"), rules=rules), 0)
    assert paths.least_into("pose", "b") == 6 * MS
    assert paths.least_into("twist", "b") == 2 * MS
    assert paths.least_into("pose", "c") == MS
    assert Paths(Network(default=link("3ms"), rules=rules[:1]), 0).least_into("pose", "b") == 3 * MS


@given(st.lists(st.sampled_from(SELECTIONS), unique=True).map(numbered_rules), st.randoms(use_true_random=False))
def test_every_path_has_the_link_that_the_documented_rule_gives_whatever_the_order_of_the_file(rules, shuffler):
    shuffled = list(rules)
    shuffler.shuffle(shuffled)
    network = Network(rules=rules)
    paths, others = Paths(network, 0), Paths(Network(rules=tuple(shuffled)), 0)
    for names in product(TOPICS, NAMES, NAMES):
        assert paths.link(*names) == others.link(*names) == naive_link(network, *names)


def test_a_rule_wins_as_a_whole_and_takes_nothing_from_the_rule_that_it_beats():
    network = Network(
        default=link("9ms", loss=1.0),
        rules=(
            Rule(link=link("5ms", duplication=1.0), sender="a"),
            Rule(link=link("2ms"), sender="a", receiver="b"),
        ),
    )
    assert Paths(network, 0).open("pose", "a", "b").carry(0, 0, 0) == ((2 * MS,), None)
    assert Paths(network, 0).open("pose", "a", "c").carry(0, 0, 0) == ((5 * MS, 5 * MS), None)
    assert Paths(network, 0).open("pose", "b", "c").carry(0, 0, 0) == ((9 * MS,), LOST_AT_RECEIVER)


# --- Laws of every path -----------------------------------------------------------------------------------------------


@given(LINKS, OUTAGES, SENDS, st.integers(0, 20 * MS), st.integers(0, 10 * MS))
def test_nothing_arrives_before_its_send_time_plus_the_least_latency(made, outages, sends, latency_least, opened):
    carrier = path(made, *outages, latency_least=latency_least, opened=opened)
    assert carrier.latency_min >= max(1, latency_least)
    for (sent, _), (arrivals, _) in zip(sends, carry_all(carrier, sends), strict=True):
        assert all(arrival >= sent + carrier.latency_min for arrival in arrivals)


@given(LINKS, OUTAGES, SENDS)
def test_a_message_has_one_arrival_or_two_and_a_lost_one_has_a_reason_and_no_copy(made, outages, sends):
    for arrivals, lost in carry_all(path(made, *outages), sends):
        assert len(arrivals) == 1 or (len(arrivals) == 2 and made.duplication and lost is None)
        assert lost in (None, LOST_AT_SENDER, LOST_AT_RECEIVER, CUT_OFF)
        assert lost != LOST_AT_SENDER or made.loss_at_sender
        assert lost != LOST_AT_RECEIVER or made.loss_at_receiver
        assert lost != CUT_OFF or outages


@given(LINKS, OUTAGES, SENDS)
def test_a_fifo_path_never_lets_a_message_overtake_another(made, outages, sends):
    ordered = path(replace(made, fifo=True), *outages)
    delivered = [arrivals for arrivals, lost in carry_all(ordered, sends) if lost is None]
    in_order = list(chain.from_iterable(delivered))
    assert in_order == sorted(in_order)


def test_a_free_path_lets_messages_overtake_each_other():
    arrivals = [arrival for (arrival,), _ in fates(link(uniform("1ms", "9ms")), 20)]
    assert arrivals != sorted(arrivals)


@given(UNQUEUED, OUTAGES, SENDS)
def test_fifo_delays_a_message_only_up_to_one_before_it(made, outages, sends):
    made = replace(made, duplication=0.0)
    free = carry_all(path(replace(made, fifo=False), *outages), sends)
    ordered = carry_all(path(replace(made, fifo=True), *outages), sends)
    latest = 0
    for ((alone,), lost), ((arrival,), also_lost) in zip(free, ordered, strict=True):
        assert lost == also_lost
        if lost is None:
            latest = max(latest, alone)
            assert arrival == latest


@given(UNQUEUED, OUTAGES, SENDS, st.randoms(use_true_random=False))
def test_a_path_without_memory_gives_a_message_the_same_fate_in_any_order(made, outages, sends, shuffler):
    made = replace(made, fifo=False)
    expected = carry_all(path(made, *outages), sends)
    carrier, places = path(made, *outages), list(range(len(sends))) * 2
    shuffler.shuffle(places)
    for place in places:
        assert carrier.carry(sends[place][0], place, sends[place][1]) == expected[place]


def test_a_plain_path_is_known_by_its_constant():
    assert path(link("5ms")).constant == 5 * MS
    assert path(link("5ms"), latency_least=8 * MS).constant == 8 * MS


@given(LINKS, OUTAGES, SENDS, st.integers(0, 20 * MS))
def test_a_constant_is_what_carrying_would_give(made, outages, sends, latency_least):
    carrier = path(made, *outages, latency_least=latency_least)
    if carrier.constant:
        for (sent, _), fate in zip(sends, carry_all(carrier, sends), strict=True):
            assert fate == ((sent + carrier.constant,), None)


@pytest.mark.parametrize(
    ("latency_least", "minimum", "arrival"),
    [(0, 5 * MS, 5 * MS), (MS, 5 * MS, 5 * MS), (5 * MS, 5 * MS, 5 * MS), (7 * MS, 7 * MS, 7 * MS)],
)
def test_a_sender_may_promise_more_latency_than_the_link_has(latency_least, minimum, arrival):
    for made in (link("5ms"), link("5ms", loss=1.0), link("5ms", duplication=1.0), link("5ms", fifo=True)):
        carrier = path(made, latency_least=latency_least)
        assert carrier.latency_min == minimum
        assert set(carrier.carry(100 * MS, 0, 0)[0]) == {100 * MS + arrival}


# --- Draws ------------------------------------------------------------------------------------------------------------


# Recorded runs depend on every one of these numbers: a change here breaks all of them.
def test_what_happens_on_a_path_is_what_has_always_happened():
    made = link(uniform("1ms", "2ms"), loss=0.2, loss_at_sender=0.1, duplication=0.3)
    assert fates(made, 18) == [
        ((1_186_888,), None),
        ((1_993_335,), None),
        ((1_618_908,), None),
        ((1_262_715,), None),
        ((1_925_713,), None),
        ((1_996_527,), LOST_AT_SENDER),
        ((1_611_933,), None),
        ((1_309_593,), None),
        ((1_548_881,), None),
        ((1_857_125,), None),
        ((1_542_892,), LOST_AT_RECEIVER),
        ((1_116_315,), LOST_AT_SENDER),
        ((1_211_256,), None),
        ((1_223_588,), None),
        ((1_187_397,), None),
        ((1_015_237, 1_298_045), None),
        ((1_606_793, 1_260_599), None),
        ((1_173_109,), LOST_AT_RECEIVER),
    ]


@given(UNQUEUED, UNQUEUED, OUTAGES, SENDS)
def test_a_path_is_not_touched_by_what_the_network_does_to_others(made, foreign, outages, sends):
    others = (
        Rule(link=foreign, receiver="c"),
        Rule(link=foreign, sender="b"),
        Rule(link=foreign, topic="twist"),
        Rule(link=foreign, sender="a", receiver="c", topic="pose"),
    )
    elsewhere = tuple(outage for outage in outages if not outage.matches("pose", "a", "b"))
    busy = Paths(Network(default=made, rules=others, outages=elsewhere), 7)
    watched, beside = busy.open("pose", "a", "b"), busy.open("pose", "a", "c")
    found = []
    for sequence, (sent, size) in enumerate(sends):
        beside.carry(sent, sequence, size)
        found.append(watched.carry(sent, sequence, size))
        beside.carry(sent, sequence, size)
    assert found == carry_all(path(made), sends)


def test_seeds_topics_senders_and_receivers_each_have_draws_of_their_own():
    made = link(uniform("1ms", "9ms"))
    base = fates(made, 5)
    others = [
        fates(made, 5, seed=8),
        fates(made, 5, names=("twist", "a", "b")),
        fates(made, 5, names=("pose", "c", "b")),
        fates(made, 5, names=("pose", "a", "c")),
        fates(made, 5, names=("pose", "b", "a")),
    ]
    assert all(left != right for left, right in combinations([base, *others], 2))


def test_a_latency_is_drawn_the_same_with_and_without_losses_and_copies():
    plain = [arrivals[0] for arrivals, _ in fates(link(uniform("1ms", "9ms")), 200)]
    for field, probability in product(("loss", "loss_at_sender", "duplication"), (0.5, 1.0)):
        made = link(uniform("1ms", "9ms"), **{field: probability})
        assert [arrivals[0] for arrivals, _ in fates(made, 200)] == plain


@pytest.mark.parametrize(("field", "reason"), [("loss", LOST_AT_RECEIVER), ("loss_at_sender", LOST_AT_SENDER)])
@pytest.mark.parametrize("probability", [0.0, 0.3, 1.0])
def test_as_many_messages_are_lost_as_the_link_says(field, reason, probability):
    lost = [lost == reason for _, lost in fates(link("1ms", **{field: probability}))]
    assert share(lost) == pytest.approx(probability, abs=0.03)
    if probability in (0.0, 1.0):
        assert set(lost) == {bool(probability)}


@pytest.mark.parametrize("probability", [0.0, 0.3, 1.0])
def test_as_many_messages_are_doubled_as_the_link_says(probability):
    doubled = [len(arrivals) == 2 for arrivals, _ in fates(link("1ms", duplication=probability))]
    assert share(doubled) == pytest.approx(probability, abs=0.03)
    if probability in (0.0, 1.0):
        assert set(doubled) == {bool(probability)}


def test_losses_at_both_ends_and_copies_are_independent_of_each_other_and_of_the_latency():
    sent = fates(link(uniform("1ms", "3ms"), loss=0.3, loss_at_sender=0.3, duplication=0.3))
    fast = [(arrivals, lost) for arrivals, lost in sent if arrivals[0] < 2 * MS]
    for some in (sent, fast):
        left = [(arrivals, lost) for arrivals, lost in some if lost != LOST_AT_SENDER]
        delivered = [arrivals for arrivals, lost in left if lost is None]
        assert len(left) / len(some) == pytest.approx(0.7, abs=0.03)
        assert len(delivered) / len(left) == pytest.approx(0.7, abs=0.03)
        assert share(len(arrivals) == 2 for arrivals in delivered) == pytest.approx(0.3, abs=0.03)


def test_a_copy_has_a_latency_of_its_own():
    pairs = [arrivals for arrivals, _ in fates(link(uniform("1ms", "9ms"), duplication=1.0), 2_000)]
    assert share(copied < original for original, copied in pairs) == pytest.approx(0.5, abs=0.05)
    assert all(MS <= copied <= 9 * MS for _, copied in pairs)


# --- Loss at the sender and at the receiver ---------------------------------------------------------------------------


@given(UNQUEUED, UNQUEUED, OUTAGES, SENDS, st.sampled_from([0.1, 0.5, 0.9]))
def test_what_is_lost_at_the_sender_reaches_nobody(to_b, to_c, outages, sends, probability):
    to_b, to_c = replace(to_b, loss_at_sender=probability), replace(to_c, loss_at_sender=probability)
    rules = (Rule(link=to_b, receiver="b"), Rule(link=to_c, receiver="c"))
    paths = Paths(Network(rules=rules, outages=outages), 7)
    at_b, at_c = (carry_all(paths.open("pose", "a", name), sends) for name in "bc")
    assert [lost == LOST_AT_SENDER for _, lost in at_b] == [lost == LOST_AT_SENDER for _, lost in at_c]


def test_receivers_lose_messages_independently_of_each_other():
    at_b, at_c = (fates(link("1ms", loss=0.5), names=("pose", "a", name)) for name in "bc")
    both = [bool(lost_b and lost_c) for (_, lost_b), (_, lost_c) in zip(at_b, at_c, strict=True)]
    assert share(both) == pytest.approx(0.25, abs=0.03)


def test_what_a_better_link_loses_a_worse_one_loses_too():
    for field in ("loss", "loss_at_sender"):
        better, worse = (fates(link("1ms", **{field: probability}), 500) for probability in (0.2, 0.4))
        pairs = [(lost, also_lost) for (_, lost), (_, also_lost) in zip(better, worse, strict=True)]
        assert all(also_lost for lost, also_lost in pairs if lost)
        assert any(also_lost for lost, also_lost in pairs if not lost)


# --- Outages ----------------------------------------------------------------------------------------------------------


def window(verb, start, end=FOREVER, **selection):
    return Outage(verb=verb, start=start, end=end, **selection)


@pytest.mark.parametrize("verb", ["hold", "partition"])
@pytest.mark.parametrize(("sent", "cut"), [(9, False), (10, True), (TIME_MAX, True)])
def test_an_outage_without_an_end_lets_nothing_through(verb, sent, cut):
    assert path(link(7), window(verb, 10)).carry(sent, 0, 0) == ((sent + 7,), CUT_OFF if cut else None)


@pytest.mark.parametrize(
    "outages", [(), (window("partition", 5, 15),), (window("hold", 10),), (window("hold", 1, 90),)]
)
def test_what_its_sender_drops_out_with_is_lost_whatever_the_network_would_do_to_it(outages):
    dropouts = (Dropout(10, 20, "a", "pose"), Dropout(30, 40, "a", None), Dropout(0, FOREVER, "b", None))
    paths = Paths(Network(default=link(7), outages=outages), 0, dropouts=dropouts)
    dropped = {
        topic: [
            sent for sent in range(50) if paths.open(topic, "a", "c").carry(sent, 0, 0) == ((sent + 7,), DROPPED_OUT)
        ]
        for topic in TOPICS
    }
    assert dropped == {"pose": [*range(10, 20), *range(30, 40)], "twist": [*range(30, 40)]}


def test_a_chain_of_holds_that_ends_in_an_endless_one_loses_the_message():
    carrier = path(link(7), window("hold", 10, 20), window("hold", 15))
    assert carrier.carry(12, 0, 0) == ((19,), CUT_OFF)
    assert carrier.carry(9, 1, 0) == ((16,), None)


WINDOWS = st.builds(
    lambda verb, start, span: window(verb, start, start + span),
    st.sampled_from(["hold", "partition"]),
    st.integers(0, 30),
    st.integers(1, 10),
)


@given(st.lists(WINDOWS, max_size=6), st.lists(st.integers(0, 40), min_size=1, max_size=6))
def test_partitions_are_judged_by_the_send_time_and_holds_by_the_departure(outages, sends):
    def covered(verb, time):
        return any(outage.verb == verb and outage.start <= time < outage.end for outage in outages)

    carrier = path(link(1), *outages)
    for sequence, sent in enumerate(sends):
        leaves = next(time for time in range(sent, 100) if not covered("hold", time))
        cut = covered("partition", sent)
        assert carrier.carry(sent, sequence, 0) == ((sent + 1 if cut else leaves + 1,), CUT_OFF if cut else None)


LOST_WHILE_HELD = [
    ("in a hold", [("hold", 10, 20)], 20),
    ("in a chain of holds", [("hold", 10, 20), ("hold", 20, 30)], 30),
    ("in an endless hold", [("hold", 10, FOREVER)], 12),
    ("in a chain that ends in an endless hold", [("hold", 10, 20), ("hold", 15, FOREVER)], 12),
    ("in a partition", [("partition", 10, 20)], 12),
    ("in a partition and a hold", [("partition", 10, 20), ("hold", 10, 30)], 12),
]


@pytest.mark.parametrize(
    ("outages", "leaves"), [row[1:] for row in LOST_WHILE_HELD], ids=[row[0] for row in LOST_WHILE_HELD]
)  # fmt: skip
def test_what_is_lost_at_the_sender_would_have_left_when_the_hold_is_released(outages, leaves):
    carrier = path(link(7, loss_at_sender=1.0), *(window(*outage) for outage in outages))
    assert carrier.carry(12, 0, 0) == ((leaves + 7,), LOST_AT_SENDER)


@given(UNQUEUED, OUTAGES, SENDS)
def test_a_loss_changes_no_arrival_but_only_whether_there_is_one(made, outages, sends):
    made = replace(made, fifo=False, duplication=0.0)
    clean = replace(made, loss_at_sender=0.0, loss_at_receiver=0.0)
    lossy, whole = carry_all(path(made, *outages), sends), carry_all(path(clean, *outages), sends)
    assert [arrivals for arrivals, _ in lossy] == [arrivals for arrivals, _ in whole]


@pytest.mark.parametrize(
    ("selection", "hit"),
    [
        ({}, {("pose", "a", "b"), ("pose", "b", "a"), ("twist", "a", "b"), ("pose", "a", "c")}),
        ({"topic": "pose"}, {("pose", "a", "b"), ("pose", "b", "a"), ("pose", "a", "c")}),
        ({"sender": "a"}, {("pose", "a", "b"), ("twist", "a", "b"), ("pose", "a", "c")}),
        ({"receiver": "b"}, {("pose", "a", "b"), ("twist", "a", "b")}),
        ({"topic": "pose", "sender": "a", "receiver": "b"}, {("pose", "a", "b")}),
        ({"topic": "twist", "sender": "b"}, set()),
    ],
)
def test_an_outage_cuts_the_paths_that_it_names_and_no_others(selection, hit):
    network = Network(outages=(window("partition", 0, 10, **selection),))
    tried = [("pose", "a", "b"), ("pose", "b", "a"), ("twist", "a", "b"), ("pose", "a", "c")]
    assert {names for names in tried if Paths(network, 0).open(*names).carry(5, 0, 0)[1] == CUT_OFF} == hit


def test_a_partition_between_two_groups_leaves_each_group_whole():
    paths = Paths(Network(outages=partition(["a", "b"], ["c"], 0, 10)), 0)
    cut = {names for names in permutations(NAMES, 2) if paths.open("pose", *names).carry(5, 0, 0)[1]}
    assert cut == {("a", "c"), ("c", "a"), ("b", "c"), ("c", "b")}


def test_a_held_message_draws_the_latency_that_it_would_have_drawn():
    made = link(uniform("1ms", "9ms"))
    free = fates(made, 20)
    held = carry_all(path(made, window("hold", 0, 50 * MS)), [(0, 0)] * 20)
    assert held == [((arrival + 50 * MS,), lost) for (arrival,), lost in free]


# --- Bandwidth --------------------------------------------------------------------------------------------------------

BUSY = link("1ms", bandwidth=1_000)  # A byte takes a millisecond.

QUEUES = [
    ("alone", [(0, 10)], [11]),
    ("a burst leaves one after the other", [(0, 10), (0, 10), (0, 10)], [11, 21, 31]),
    ("an idle link sends at once", [(0, 10), (50, 10)], [11, 61]),
    ("a small one waits behind a large one", [(0, 100), (1, 1)], [101, 102]),
    ("just free again", [(0, 10), (10, 10)], [11, 21]),
    ("just not free yet", [(0, 10), (9, 10)], [11, 21]),
    ("no bytes take no time but wait their turn", [(0, 10), (5, 0), (20, 0)], [11, 11, 21]),
]


@pytest.mark.parametrize(("sends", "arrivals"), [row[1:] for row in QUEUES], ids=[row[0] for row in QUEUES])
def test_a_limited_bandwidth_makes_messages_queue(sends, arrivals):
    found = carry_all(path(BUSY), [(sent * MS, size) for sent, size in sends])
    assert found == [((arrival * MS,), None) for arrival in arrivals]


def test_a_part_of_a_nanosecond_counts_as_a_whole_one():
    assert path(link(1, bandwidth=3)).carry(0, 0, 1) == ((333_333_335,), None)
    assert path(link(1, bandwidth=3)).carry(0, 0, 3) == ((SECOND + 1,), None)


@given(SENDS, st.integers(1_000, 10**7))
def test_a_limited_link_sends_as_early_as_it_can_and_never_two_at_once(sends, bandwidth):
    found = [arrivals[0] for arrivals, _ in carry_all(path(link(1, bandwidth=bandwidth)), sends)]
    takes = [-(-size * SECOND // bandwidth) for _, size in sends]
    for place, arrival in enumerate(found):
        # Some message found the link idle, and from then on it was busy without a break.
        assert arrival == 1 + max(sends[first][0] + sum(takes[first : place + 1]) for first in range(place + 1))
        assert place == 0 or arrival - found[place - 1] >= takes[place]


def test_each_receiver_and_each_topic_has_a_queue_of_its_own():
    paths = Paths(Network(default=BUSY), 0)
    for names in (("pose", "a", "b"), ("pose", "a", "c"), ("twist", "a", "b"), ("pose", "b", "a")):
        assert paths.open(*names).carry(0, 0, 10) == ((11 * MS,), None)


@given(SENDS)
def test_what_never_left_its_sender_takes_no_bandwidth(sends):
    lossy = carry_all(path(link("1ms", bandwidth=10_000, loss_at_sender=0.5)), sends)
    clean = path(link("1ms", bandwidth=10_000))
    for sequence, ((sent, size), (arrivals, lost)) in enumerate(zip(sends, lossy, strict=True)):
        if lost is None:
            assert clean.carry(sent, sequence, size)[0] == arrivals


@given(SENDS)
def test_what_is_cut_off_takes_no_bandwidth(sends):
    cut = path(link("1ms", bandwidth=10_000), window("partition", 5 * MS, 10 * MS))
    clean = path(link("1ms", bandwidth=10_000))
    for sequence, (sent, size) in enumerate(sends):
        arrivals, lost = cut.carry(sent, sequence, size)
        if lost is None:
            assert clean.carry(sent, sequence, size)[0] == arrivals


@given(SENDS, st.sampled_from([0.5, 1.0]))
def test_what_is_lost_at_the_receiver_has_taken_its_bandwidth(sends, loss):
    lossy = carry_all(path(link("1ms", bandwidth=10_000, loss=loss)), sends)
    clean = carry_all(path(link("1ms", bandwidth=10_000)), sends)
    assert [arrivals for arrivals, _ in lossy] == [arrivals for arrivals, _ in clean]


def test_what_was_held_queues_from_the_release():
    carrier = path(BUSY, window("hold", 0, 50 * MS))
    assert carry_all(carrier, [(0, 10), (20 * MS, 10), (55 * MS, 10)]) == [
        ((61 * MS,), None),
        ((71 * MS,), None),
        ((81 * MS,), None),
    ]


# A byte takes a second: this takes about twice as long as there are times.
ENDLESS_SIZE = 2 * (FOREVER // SECOND)


@pytest.mark.parametrize("feature", [{}, {"fifo": True}, {"duplication": 1.0}, {"loss": 1.0}], ids=str)
def test_what_queues_beyond_all_times_arrives_at_forever_and_no_later(feature):
    carrier = path(link(TIME_MAX, bandwidth=1, **feature))
    for sequence, sent in enumerate((0, SECOND, TIME_MAX)):
        assert set(carrier.carry(sent, sequence, ENDLESS_SIZE)[0]) == {FOREVER}


@given(
    st.lists(st.tuples(st.integers(0, TIME_MAX), st.integers(0, ENDLESS_SIZE)), min_size=1, max_size=6),
    st.integers(1, TIME_MAX),
    st.integers(0, TIME_MAX),
    st.booleans(),
)
def test_every_arrival_fits_a_signed_integer_of_64_bits(sends, latency, latency_least, fifo):
    carrier = path(link(latency, bandwidth=1, fifo=fifo, duplication=0.5, loss=0.2), latency_least=latency_least)
    for arrivals, _ in carry_all(carrier, sends):
        assert all(0 < arrival <= FOREVER for arrival in arrivals)


def test_what_was_sent_before_the_receiver_was_there_is_in_the_way_of_nothing():
    carrier = path(BUSY, opened=5 * MS)
    sends = [(0, 100), (0, 100), (5 * MS, 10), (5 * MS, 10)]
    assert [arrivals[0] // MS for arrivals, _ in carry_all(carrier, sends)] == [101, 101, 16, 26]


# --- By when a message can be forgotten -------------------------------------------------------------------------------


@given(UNQUEUED, RULES, OUTAGES, SENDS, st.integers(0, 20 * MS))
def test_every_message_has_arrived_everywhere_by_its_expiry(default, rules, outages, sends, latency_least):
    network = Network(default=default, rules=rules, outages=outages)
    check_network(network, NAMES)
    paths = Paths(network, 7)
    for topic, sender in product(TOPICS, NAMES):
        lifetime = paths.lifetime(topic, sender, latency_least)
        receivers = [paths.open(topic, sender, name, latency_least=latency_least) for name in (*NAMES, "newcomer")]
        for sequence, (sent, size) in enumerate(sends):
            expiry = lifetime.expiry(sent, 0)
            assert all(arrival <= expiry for each in receivers for arrival in each.carry(sent, sequence, size)[0])


@given(SENDS, st.integers(1, 1000))
def test_a_message_to_one_who_comes_later_has_arrived_by_its_expiry_over_a_slow_link_too(sends, bandwidth):
    paths = Paths(Network(default=link("1ms", bandwidth=bandwidth)), 7)
    lifetime = paths.lifetime("pose", "a", 0)
    late = paths.open("pose", "a", "newcomer", opened=TIME_MAX)
    for number, (sent, size) in enumerate(sends):
        assert late.carry(sent, number, size)[0][0] <= lifetime.expiry(sent, size)


@given(UNQUEUED, OUTAGES, SENDS, st.integers(0, 60 * MS))
def test_a_fifo_path_built_anew_from_what_has_not_expired_shows_a_late_subscriber_the_same(made, outages, sends, floor):
    paths = Paths(Network(default=replace(made, fifo=True), outages=outages), 7)
    lifetime = paths.lifetime("pose", "a", 0)
    old, new = paths.open("pose", "a", "b"), paths.open("pose", "a", "b")
    for sequence, (sent, size) in enumerate(sends):
        kept = lifetime.expiry(sent, 0) >= floor
        arrivals, lost = old.carry(sent, sequence, size)
        again, lost_again = new.carry(sent, sequence, size) if kept else ((), lost)
        seen = [arrival for arrival in arrivals if arrival >= floor]
        assert ([arrival for arrival in again if arrival >= floor], lost_again) == (seen, lost)


EXPIRIES = [
    ("the default link's latency", {}, 0, 5),
    ("the promise of the sender", {}, 9, 9),
    ("the longest rule that may be taken", {"rules": [{"receiver": "b"}]}, 0, 70),
    ("a rule for a newcomer", {"rules": [{"receiver": "newcomer"}]}, 0, 70),
    ("a rule for this topic", {"rules": [{"topic": "pose"}]}, 0, 70),
    ("not a rule for another topic", {"rules": [{"topic": "twist", "sender": "a"}]}, 0, 5),
    ("not a rule for another sender", {"rules": [{"sender": "b"}]}, 0, 5),
    ("the release of a hold", {"outages": [("hold", 0, 30, {})]}, 0, 35),
    ("a hold toward one receiver", {"outages": [("hold", 0, 30, {"receiver": "c"})]}, 0, 35),
    ("two holds in a row", {"outages": [("hold", 20, 40, {}), ("hold", 0, 20, {})]}, 0, 45),
    ("not a hold of another sender", {"outages": [("hold", 0, 30, {"sender": "b"})]}, 0, 5),
    ("not a hold of another topic", {"outages": [("hold", 0, 30, {"topic": "twist"})]}, 0, 5),
    ("not a hold that comes later", {"outages": [("hold", 1, 30, {})]}, 0, 5),
    ("not an endless hold", {"outages": [("hold", 0, FOREVER, {})]}, 0, 5),
    ("not a partition", {"outages": [("partition", 0, 30, {})]}, 0, 5),
]


@pytest.mark.parametrize(
    ("parts", "latency_least", "expiry"),
    [row[1:] for row in EXPIRIES],
    ids=[row[0] for row in EXPIRIES],
)
def test_a_message_sent_at_0_is_kept_for(parts, latency_least, expiry):
    network = Network(
        default=link(5),
        rules=tuple(Rule(link=link(70), **selection) for selection in parts.get("rules", ())),
        outages=tuple(window(verb, start, end, **more) for verb, start, end, more in parts.get("outages", ())),
    )
    assert Paths(network, 0).lifetime("pose", "a", latency_least).expiry(0, 0) == expiry


@given(UNQUEUED, OUTAGES, SENDS)
def test_expiries_never_decrease(made, outages, sends):
    lifetime = Paths(Network(default=made, outages=outages), 7).lifetime("pose", "a", 0)
    expiries = [lifetime.expiry(sent, 0) for sent, _ in sends]
    assert expiries == sorted(expiries)


@pytest.mark.parametrize(
    ("limited", "queues"),
    [
        ([], False),
        ([{"topic": "pose"}], True),
        ([{"receiver": "c"}], True),
        ([{"sender": "a", "receiver": "newcomer"}], True),
        ([{"topic": "twist"}], False),
        ([{"sender": "b"}, {"sender": "c", "topic": "pose"}], False),
    ],
    ids=str,
)
def test_a_lifetime_says_whether_any_path_of_its_sender_may_queue(limited, queues):
    rules = tuple(Rule(link=link("1ms", bandwidth=1_000), **selection) for selection in limited)
    assert Paths(Network(rules=rules), 0).lifetime("pose", "a", 0).queues is queues
    assert Paths(Network(default=BUSY, rules=rules), 0).lifetime("pose", "a", 0).queues is True


@given(LINKS, st.lists(st.tuples(st.sampled_from(SELECTIONS), LINKS), max_size=5, unique_by=lambda row: row[0]))
def test_no_path_queues_unless_the_lifetime_says_so(default, rows):
    rules = [
        Rule(link=made, topic=topic, sender=sender, receiver=receiver) for (topic, sender, receiver), made in rows
    ]  # fmt: skip
    paths = Paths(Network(default=default, rules=tuple(rules)), 0)
    for topic, sender, receiver in product(TOPICS, NAMES, NAMES):
        assert paths.lifetime(topic, sender, 0).queues or not paths.open(topic, sender, receiver).queues
