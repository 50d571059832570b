"""Which worker gets which entity."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from worldline.kernel.roster import KernelNetwork, place
from worldline.model import ConfigurationError, Network, Rule, link

NAMES = [f"n{number:02}" for number in range(12)]


def topology(*links: tuple[str, str, int]) -> KernelNetwork:
    rules = tuple(Rule(sender=source, receiver=goal, link=link(latency)) for source, goal, latency in links)
    return KernelNetwork(Network(default=link(1), rules=rules), 0, declared_only=True)


def test_round_robin_deals_entities_out_in_the_order_of_names() -> None:
    assert place("round robin", NAMES, topology(), 5) == [0, 1, 2, 3, 4, 0, 1, 2, 3, 4, 0, 1]
    assert place("round robin", NAMES[:2], topology(), 5) == [0, 1]
    assert place("round robin", [], topology(), 5) == []


def test_by_itself_links_decide_if_there_are_any() -> None:
    chain = topology(("n00", "n01", 5), ("n02", "n03", 5))
    assert place(None, NAMES[:4], topology(), 2) == place("round robin", NAMES[:4], topology(), 2) == [0, 1, 0, 1]
    assert place(None, NAMES[:4], chain, 2) == place("links", NAMES[:4], chain, 2) == [0, 0, 1, 1]


@pytest.mark.parametrize(
    ("placement", "problem"),
    [
        ({"a": 0}, "the placement doesn't say where b is"),
        ({}, "the placement doesn't say where a is"),
        ({"a": 0, "b": 1, "c": 0}, "the placement names 'c', and there is no such entity"),
        ({"a": 0, "b": 2}, "b is placed on worker 2 .there are 2, from 0 to 1"),
        ({"a": -1, "b": 0}, "a is placed on worker -1"),
        ({"a": True, "b": 0}, "a is placed on worker True"),
        ({"a": 0.0, "b": 0}, "a is placed on worker 0.0"),
        ({"a": "0", "b": 0}, "a is placed on worker '0'"),
        ("robin", "'robin' isn't a placement"),
        (5, "5 isn't a placement"),
        ([0, 1], r"\[0, 1\] isn't a placement"),
    ],
)
def test_a_placement_that_does_not_fit_is_refused(placement: Any, problem: str) -> None:
    with pytest.raises(ConfigurationError, match=problem):
        place(placement, ["a", "b"], topology(), 2)


def test_what_is_close_stays_together() -> None:
    # Two rings of six with short links, joined by long ones.
    rings = [NAMES[0::2], NAMES[1::2]]
    links = [(ring[number], ring[(number + 1) % 6], 10) for ring in rings for number in range(6)]
    links += [(rings[0][number], rings[1][number], 1_000) for number in range(6)]
    workers = place("links", NAMES, topology(*links), 2)
    assert workers == [0, 1] * 6


@given(
    st.lists(st.tuples(st.sampled_from(NAMES), st.sampled_from(NAMES), st.integers(1, 50)), max_size=30),
    st.integers(1, 6),
    st.randoms(use_true_random=False),
)
def test_workers_get_about_the_same_and_the_order_of_declaration_does_not_matter(
    links: list[tuple[str, str, int]], count: int, random: Any
) -> None:
    unique = {(source, goal): latency for source, goal, latency in links if source != goal}
    declared = [(source, goal, latency) for (source, goal), latency in unique.items()]
    workers = place("links", NAMES, topology(*declared), count)
    random.shuffle(declared)
    assert place("links", NAMES, topology(*declared), count) == workers
    share = -(-len(NAMES) // count)
    sizes = Counter(workers)
    assert set(sizes) <= set(range(count))
    assert max(sizes.values()) < 2 * share
