"""The links between entities: what they do to messages, and how short they can be."""

from __future__ import annotations

from collections.abc import Sequence

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

        The places decide which link it is; the names, that everybody has draws of its own.
        """
        (source, sender_name), (goal, receiver_name) = sender, receiver
        if self.declared_only and (source, goal) not in self._declared:
            return None
        link, outages = self._paths.link(topic, source, goal), self._paths.outages(topic, source, goal)
        return Path(link, self._seed, topic, sender_name, receiver_name, outages=outages)

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
        """Everybody may talk to everybody: the default link counts for each two workers, and every rule that can."""
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
