"""The draws of links that a run made, worked out again from what was sent; and those in the past cone of an outcome.

Draws are keyed, so nothing of them needs to be recorded: who sent what, and to whom it mattered, says which were made.

A draw can show at a receiver from the send time on plus the least latency of the link. From there it can spread to
those who hear of it, at the least latencies: along the ways that were used in the run, from each sender on each of its
topics to all whom messages on that topic were for. That is the cone: what lies outside of it, the draw can't have
changed. It looks at what links allow, not at what they did, since another draw may make messages that this run lacks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from heapq import heappop, heappush
from typing import NamedTuple

from worldline.history.account import NOTES, Sending
from worldline.model.draws.names import drawn_by
from worldline.model.draws.table import DrawFunction, Drawn, DrawTable
from worldline.model.faults import dropouts_of
from worldline.model.path import Path, Paths
from worldline.model.plan import Plan, network_of


class DrawEffect(NamedTuple):
    """A draw that a run made, and from when on it can show, at whom."""

    drawn: Drawn
    shows: dict[str, int]


class RunDraws:
    """The draws of a run's links, by name, and its ways from sender to receiver."""

    def __init__(
        self, sendings: Iterable[Sending], plan: Plan, load: Callable[[str], DrawFunction] | None = None
    ) -> None:
        self.effects: dict[str, DrawEffect] = {}
        self._ways: dict[str, dict[str, int]] = {}  # Receiver → sender → the least latency.
        self._heard: list[Drawn] = []
        table = DrawTable(plan.seed, plan.draws, load=load, heard=self._heard.append)
        self._paths = Paths(network_of(plan), plan.seed, dropouts=dropouts_of(plan.faults), draws=table)
        self._opened: dict[tuple[str, str, str], Path] = {}
        listeners: dict[str, dict[str, None]] = {}  # By topic.
        published: dict[tuple[str, str], list[tuple[int, int, int, list[str]]]] = {}
        for at, sender, topic, payload, fates, number in sendings:
            if topic in NOTES and not fates:
                continue
            receivers = sorted({fate[1] for fate in fates})
            listeners.setdefault(topic, {}).update(dict.fromkeys(receivers))
            published.setdefault((topic, sender), []).append((number, at, len(payload or b""), receivers))
        for (topic, sender), messages in published.items():
            self._connect(topic, sender, listeners[topic])
            # Draws go by the order of publishing, which isn't that of the send times.
            for place, (_, at, size, receivers) in enumerate(sorted(messages)):
                for receiver in receivers:
                    self._carry(topic, sender, receiver, at, place, size)

    def add(self, drawn: Drawn) -> None:
        """Take in a draw that a participant made itself."""
        participant = drawn_by(drawn.name)
        assert participant is not None
        self.effects[drawn.name] = DrawEffect(drawn, {participant: drawn.at})

    def before(self, member: str, time: int) -> list[DrawEffect]:
        """Return the draws that could have changed what happened at a member up to a time."""
        latest = self._past(member, time)
        return [
            effect
            for effect in self.effects.values()
            if any(who in latest and at <= latest[who] for who, at in effect.shows.items())
        ]

    def _past(self, member: str, time: int) -> dict[str, int]:
        """Return the last time at which each member could still have reached this one."""
        latest: dict[str, int] = {}
        heap = [(-time, member)]
        while heap:
            at, receiver = heappop(heap)
            if receiver in latest:
                continue
            latest[receiver] = -at
            for sender, latency in self._ways.get(receiver, {}).items():
                if sender not in latest and -at - latency >= 0:
                    heappush(heap, (at + latency, sender))
        return latest

    def _connect(self, topic: str, sender: str, receivers: Iterable[str]) -> None:
        for receiver in receivers:
            if receiver != sender:
                least = self._path(topic, sender, receiver).latency_min
                ways = self._ways.setdefault(receiver, {})
                ways[sender] = min(least, ways.get(sender, least))

    def _carry(self, topic: str, sender: str, receiver: str, at: int, place: int, size: int) -> None:
        path = self._path(topic, sender, receiver)
        path.carry(at, place, size)
        for drawn in self._heard:
            known = self.effects.get(drawn.name)  # Whether a message is lost at its sender is drawn once for all.
            shows = {} if known is None else known.shows
            self.effects[drawn.name] = DrawEffect(drawn, {**shows, receiver: at + path.latency_min})
        self._heard.clear()

    def _path(self, topic: str, sender: str, receiver: str) -> Path:
        names = topic, sender, receiver
        if names not in self._opened:
            self._opened[names] = self._paths.open(*names)
        return self._opened[names]
