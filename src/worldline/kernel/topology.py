"""The links between entities, what they do to messages, how short they can be; and which worker gets which entity."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from worldline.model.errors import ConfigurationError, shown
from worldline.model.latency import Fixed
from worldline.model.links import Link, Network
from worldline.model.path import Path, Paths
from worldline.model.time import FOREVER


class KernelNetwork:
    """A network as the kernel uses it. With `declared_only`, only pairs that a rule names can talk to each other."""

    def __init__(self, network: Network, seed: int, *, declared_only: bool) -> None:
        self.network = network
        self.declared_only = declared_only
        self._seed = seed
        self._paths = Paths(network, seed)
        self._topics = sorted({rule.topic for rule in network.rules if rule.topic is not None})
        self._declared: dict[tuple[str, str], None] = {
            (rule.sender, rule.receiver): None for rule in network.rules if rule.sender and rule.receiver
        }
        self._least: dict[tuple[str, str], int] = {}
        # What holds for all pairs alike needs no look at the pair; 0 if it doesn't.
        uniform = not (network.rules or declared_only)
        plain = network.default == Link(latency=network.default.latency)
        fixed = isinstance(network.default.latency, Fixed) and not network.outages
        self.least = network.default.latency.minimum if uniform else 0
        self.latency = self.least if plain and fixed else 0

    def declared(self) -> list[tuple[str, str]]:
        """Return the pairs of sender and receiver that rules name."""
        return list(self._declared)

    def least_between(self, source: str, goal: str) -> int | None:
        """Return the least latency between two places, whatever the topic; None if there is no link."""
        least = self._least.get((source, goal))
        if least is None:
            if self.declared_only and (source, goal) not in self._declared:
                return None
            # A topic that no rule names: names can't be empty.
            links = [self._paths.link(topic, source, goal) for topic in ("", *self._topics)]
            least = self._least[source, goal] = min(link.latency.minimum for link in links)
        return least

    def path(self, topic: str, sender: tuple[str, str], receiver: tuple[str, str]) -> Path | None:
        """Return the path between two entities, each given by its place and its name.

        The places decide which link it is; the names, that each has draws of its own.
        """
        (source, sender_name), (goal, receiver_name) = sender, receiver
        if self.declared_only and (source, goal) not in self._declared:
            return None
        link, outages = self._paths.link(topic, source, goal), self._paths.outages(topic, source, goal)
        return Path(link, self._seed, (topic, sender_name, receiver_name), outages=outages)

    def lookahead(self, names: Sequence[str], workers: Sequence[int], count: int) -> list[list[int]]:
        """Return for each two workers the least latency from the first to the second: FOREVER if there is no link."""
        if not self.declared_only:
            return self._lookahead_of_rules(names, workers, count)
        least = [[FOREVER] * count for _ in range(count)]
        worker_of = dict(zip(names, workers, strict=True))
        for source, goal in self.declared():
            here, there = worker_of[source], worker_of[goal]
            between = self.least_between(source, goal)
            if here != there and between is not None:
                least[here][there] = min(least[here][there], between)
        return least

    def _lookahead_of_rules(self, names: Sequence[str], workers: Sequence[int], count: int) -> list[list[int]]:
        """All may talk to all: the default link counts for each two workers, and every rule that can."""
        default = self.network.default.latency.minimum
        least = [[FOREVER if here == there else default for there in range(count)] for here in range(count)]
        if self.network.rules:
            worker_of = dict(zip(names, workers, strict=True))
            for rule in self.network.rules:
                for here in range(count) if rule.sender is None else (worker_of[rule.sender],):
                    for there in range(count) if rule.receiver is None else (worker_of[rule.receiver],):
                        if here != there:
                            least[here][there] = min(least[here][there], rule.link.latency.minimum)
        return least


# -- Which worker gets which entity. Where entities are changes how fast a run is, never what comes of it.

Placement = Any
"""A name, or a dict of names to workers; other rooms have placements of their own."""

ROUND_ROBIN = "round robin"
BY_LINKS = "links"


def place(placement: Placement | None, names: Sequence[str], topology: KernelNetwork, count: int) -> list[int]:
    """Return for each name the number of its worker. By itself, declared links decide if there are any."""
    if placement is None:
        placement = BY_LINKS if topology.declared() else ROUND_ROBIN
    if isinstance(placement, Mapping):
        return _given(placement, names, count)
    if placement == ROUND_ROBIN:
        return [number % count for number in range(len(names))]
    if placement == BY_LINKS:
        return _by_links(names, topology, count)
    raise ConfigurationError(
        f"{shown(placement)} isn't a placement",
        advice=f"use {ROUND_ROBIN!r}, {BY_LINKS!r} or a dict of names to workers",
    )


def _given(placement: Mapping[str, int], names: Sequence[str], count: int) -> list[int]:
    for name, worker in placement.items():
        if type(worker) is not int or not 0 <= worker < count:
            raise ConfigurationError(
                f"{name} is placed on worker {shown(worker)}", advice=f"there are {count}, from 0 to {count - 1}"
            )
    missing = [name for name in names if name not in placement]
    if missing:
        raise ConfigurationError(f"the placement doesn't say where {missing[0]} is", advice="name every entity")
    known = frozenset(names)
    unknown = [name for name in placement if name not in known]
    if unknown:
        raise ConfigurationError(f"the placement names {shown(unknown[0])}, and there is no such entity")
    return [placement[name] for name in names]


def _by_links(names: Sequence[str], topology: KernelNetwork, count: int) -> list[int]:
    return grouped(names, [(topology.least_between(*pair) or 0, *pair) for pair in topology.declared()], count)


def grouped(names: Sequence[str], links: Iterable[tuple[float, str, str]], count: int) -> list[int]:
    """Keep together what is close: the lengths of the links between workers are what lets them go ahead.

    The shortest links are joined first (as in Kruskal's algorithm), as long as no group grows beyond a worker's share;
    the groups are then dealt out, the largest first, each to the worker that has least. So the links that are cut tend
    to be the longest.
    """
    share = -(-len(names) // count)
    place_of = {name: number for number, name in enumerate(names)}
    group = list(range(len(names)))
    size = [1] * len(names)

    def leader(member: int) -> int:
        while group[member] != member:
            group[member] = group[group[member]]
            member = group[member]
        return member

    for _, source, goal in sorted(links):
        first, second = leader(place_of[source]), leader(place_of[goal])
        if first != second and size[first] + size[second] <= share:
            group[max(first, second)] = min(first, second)
            size[min(first, second)] += size[max(first, second)]
    load = [0] * count
    worker_of: dict[int, int] = {}
    leaders = [member for member in range(len(names)) if leader(member) == member]
    for head in sorted(leaders, key=lambda head: (-size[head], head)):
        worker = load.index(min(load))
        worker_of[head] = worker
        load[worker] += size[head]
    return [worker_of[leader(member)] for member in range(len(names))]
