"""Works out what would make a run wait less, by trying it: the arbiter runs again with that one thing changed.

Three kinds of changes are tried, for those who are waited for most:

- **A period**: somebody who only ever sent at multiples of a time could declare that. No result of this run changes.
- **Topics**: somebody who declares topics that it never sends on, or doesn't declare any, could declare those it uses.
  No result of this run changes.
- **A latency**: a link that is waited for could have a greater one. That is another model, with other results.

What comes out is what the change would have saved in the run that was noted, on a machine with a core for everybody.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple

from msgspec import structs

from worldline.lock.why.habits import Habits
from worldline.lock.why.heard import Heard, HeardSending
from worldline.lock.why.playing import Changed, Played, RunScript, play, scripts_of
from worldline.lock.why.reasons import Hop
from worldline.lock.why.tally import WaitingTally, waits_in
from worldline.model.latency import Exponential, Fixed, Latency, Normal, Table, Uniform
from worldline.model.links import Rule
from worldline.model.path import Paths
from worldline.model.plan import Plan
from worldline.model.time import TIME_MAX, format_time

HEARD_MAX = 5_000
"""How much of a timing is played again, in frames: what comes later is mostly more of the same."""

_LINKS_TRIED = 4
_WORTH = 0.02  # Of the waiting: less isn't worth a word.
_NEARLY = 0.9  # Of what the greatest latency saves: a smaller one that saves as much is better.
_FACTORS = (2, 5, 10)


class Advice(NamedTuple):
    """A change, in words; how much waiting there would be with it, and without; whether results stay as they are."""

    text: str
    before: Played
    after: Played
    is_harmless: bool
    change: Changed

    @property
    def share(self) -> float:
        """How much of the waiting it removes."""
        return 1 - self.after.waited / self.before.waited if self.before.waited else 0.0


class Advisor:
    """Tries changes on one run: its plan, what was heard of it, or the first part of that, and all of its habits."""

    def __init__(self, plan: Plan, noted: Sequence[Heard], habits: Habits | None = None) -> None:
        self._plan = plan
        self._habits = Habits(noted) if habits is None else habits
        self.scripts = scripts_of(plan, noted)
        self.tally = WaitingTally(waits_in(plan, noted))
        self.before = play(self.scripts, Changed(plan=plan))

    def advice(self) -> list[Advice]:
        """Return what would help: first what leaves results as they are, and of that the best first."""
        found = [each for each in (*self._periods(), *self._topics(), *self._latencies()) if each.share >= _WORTH]
        return sorted(found, key=lambda each: (not each.is_harmless, -round(each.share, 2), each.text))

    def try_latency(self, hop: Hop, latency: int) -> Advice:
        """Try another latency for a link."""
        assert hop.topic is not None
        change = Changed(plan=with_latency(self._plan, hop.sender, hop.receiver, hop.topic, latency - hop.latency))
        text = f"{hop.sender} → {hop.receiver} ({hop.topic}) {format_time(hop.latency)} → {format_time(latency)}"
        return self._tried(text, change, is_harmless=False)

    def _tried(self, text: str, change: Changed, *, is_harmless: bool) -> Advice:
        return Advice(text, self.before, play(self.scripts, change), is_harmless, change)

    def _periods(self) -> Iterable[Advice]:
        for name in self._awaited():
            period = self._habits.of[name].period
            if period is not None:
                change = Changed(plan=self._plan, periods={name: period})
                yield self._tried(f'period = "{format_time(period)}" for {name}', change, is_harmless=True)

    def _topics(self) -> Iterable[Advice]:
        for name in self._awaited():
            script = self.scripts[name]
            used = tuple(sorted(self._habits.of[name].topics))
            declared = script.join.publishes
            if declared is None or set(used) < set(declared):
                change = Changed(plan=self._plan, joins={name: structs.replace(script.join, publishes=used)})
                listed = ", ".join(f'"{topic}"' for topic in used)
                yield self._tried(f"publishes = [{listed}] for {name}", change, is_harmless=True)

    def _latencies(self) -> Iterable[Advice]:
        """Try the links that are waited for most: the least latency that helps nearly as much as any."""
        links = [each.hop for each in self.tally.links() if each.hop.topic is not None]
        for hop in links[:_LINKS_TRIED]:
            tried = [self.try_latency(hop, latency) for latency in self._longer(hop)]
            best = max((each.share for each in tried), default=0.0)
            yield from [each for each in tried if each.share >= _NEARLY * best][:1]

    def _longer(self, hop: Hop) -> list[int]:
        """Return latencies to try: a few times as long, and as long as it is from one message to the next."""
        sends = [deed.at for deed in _sendings(self.scripts[hop.sender]) if deed.topic == hop.topic]
        gaps = sorted(later - earlier for earlier, later in pairwise(sends))
        usual = [gaps[len(gaps) // 2]] if gaps else []
        found = {factor * hop.latency for factor in _FACTORS} | set(usual)
        return sorted(each for each in found if hop.latency < each < TIME_MAX)

    def _awaited(self) -> list[str]:
        """Return who is waited for, the one that costs most first."""
        return sorted(
            (name for name in self.tally.by_holder if name in self.scripts),
            key=lambda name: (-self.tally.by_holder[name], name),
        )


def with_latency(plan: Plan, sender: str, receiver: str, topic: str, longer: int) -> Plan:
    """Return a plan in which what a sender sends a receiver on a topic takes so much longer."""
    link = Paths(plan.network, plan.seed).link(topic, sender, receiver)
    rule = Rule(
        topic=topic,
        sender=sender,
        receiver=receiver,
        link=structs.replace(link, latency=_longer_latency(link.latency, longer)),
    )
    others = tuple(
        each for each in plan.network.rules if (each.topic, each.sender, each.receiver) != (topic, sender, receiver)
    )
    return structs.replace(plan, network=structs.replace(plan.network, rules=(*others, rule)))


def _longer_latency(latency: Latency, longer: int) -> Latency:
    if isinstance(latency, Fixed):
        return Fixed(latency.latency + longer)
    if isinstance(latency, Uniform):
        return Uniform(latency.minimum + longer, latency.maximum + longer)
    if isinstance(latency, Normal):
        return Normal(latency.mean + longer, latency.deviation, latency.minimum + longer)
    if isinstance(latency, Exponential):
        return Exponential(latency.minimum + longer, latency.mean)
    assert isinstance(latency, Table)
    return Table(tuple(value + longer for value in latency.values))


def _sendings(script: RunScript) -> list[HeardSending]:
    return [deed.event for point in script.points for deed in point.deeds if isinstance(deed.event, HeardSending)]
