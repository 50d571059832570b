"""A small stage for recorders: participants whose acts are told in many orders, and what must come of each.

A stand-in for the router: whoever may act next, by the rule of the lock, is picked by a generator; so the calls
interleave as luck would have it, and all interleavings tell of the same run. `truth` works out from the script alone,
without any calls, what a recording of it must hold.
"""

from __future__ import annotations

import io
from dataclasses import dataclass, field
from random import Random
from zlib import crc32

from worldline.history.observer import Observer
from worldline.model import Plan, link, plan
from worldline.model.links import Network
from worldline.recording import Arrival, Loss, Recorder, Unheard

LATENCY_MIN, LATENCY_MAX = 5, 20

Act = tuple[int, str, str]  # When, what (publish, subscribe, unsubscribe, leave), and the topic.


@dataclass
class Script:
    """What everybody does and when, in the order of time; the last act of each is to leave."""

    acts: dict[str, list[Act]]

    def plan(self) -> Plan:
        return plan(sorted(self.acts), network=Network(default=link("5ns")), seed=7, until="1s")


@dataclass
class Sent:
    sender: str
    sequence: int
    topic: str
    sent: int
    payload: bytes

    def fates(self, receiver: str) -> list[tuple[int, int, str | None]]:
        """Return (arrival, copy, lost) at a receiver, whether it listens or not."""
        drawn = crc32(f"{self.sender} {self.sequence} {receiver}".encode())
        arrival = self.sent + LATENCY_MIN + drawn % (LATENCY_MAX - LATENCY_MIN + 1)
        if drawn % 7 == 0:
            return [(arrival, 0, "lost on stage")]
        if drawn % 5 == 0:
            return [(arrival, 0, None), (self.sent + LATENCY_MIN + drawn // 100 % 16, 1, None)]
        return [(arrival, 0, None)]


def write_script(random: Random, *, participants: int = 3, acts: int = 12, topics: str = "xy") -> Script:
    """Write a script by chance."""
    script: dict[str, list[Act]] = {}
    for name in ("ann", "bob", "cat", "dan")[:participants]:
        now, listens, mine = 0, set[str](), list[Act]()
        for _ in range(random.randrange(acts)):
            now += random.choice((0, 1, 3, 8, 30))
            topic = random.choice(topics)
            what = random.choice(("publish", "publish", "publish", "listen"))
            if what == "listen":
                what = "unsubscribe" if topic in listens else "subscribe"
                listens ^= {topic}
            mine.append((now, what, topic))
        mine.append((now + random.randrange(40), "leave", ""))
        script[name] = mine
    return Script(script)


@dataclass
class Performance:
    """One interleaving of a script's acts, told to a recorder."""

    script: Script
    observer: Observer
    random: Random
    subscribed: dict[tuple[str, str], int] = field(default_factory=dict)
    retained: list[Sent] = field(default_factory=list)
    sequences: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.left = {name: list(acts) for name, acts in self.script.acts.items()}
        names = list(self.left)
        self.random.shuffle(names)
        for name in names:
            self.observer.began(name, 0)

    def floor(self) -> int | None:
        """Return the time before which nobody acts any more, None if nobody does at all."""
        return min((acts[0][0] for acts in self.left.values() if acts), default=None)

    def step(self) -> bool:
        """Let one of those act who know all that reaches them before; return whether anybody could."""
        nexts = {name: acts[0][0] for name, acts in self.left.items() if acts}
        able = [
            name
            for name, now in nexts.items()
            if all(now <= other + LATENCY_MIN for rival, other in nexts.items() if rival != name)
        ]
        if not able:
            return False
        name = self.random.choice(able)
        now, what, topic = self.left[name].pop(0)
        getattr(self, what)(name, now, topic)
        return True

    def publish(self, name: str, now: int, topic: str) -> None:
        sequence = self.sequences.get(name, 0)
        self.sequences[name] = sequence + 1
        sent = Sent(name, sequence, topic, now, payload_of(name, sequence))
        self.retained.append(sent)
        self.observer.sent(name, sequence, topic, now, sent.payload, now + LATENCY_MAX)
        listeners = [pair for pair in self.subscribed.items() if pair[0][1] == topic]
        self.random.shuffle(listeners)
        for (receiver, _), since in listeners:
            self._tell(sent, receiver, since)

    def subscribe(self, name: str, now: int, topic: str) -> None:
        self.subscribed[name, topic] = now
        for sent in self.retained:
            if sent.topic == topic and sent.sent + LATENCY_MAX >= now:
                self._tell(sent, name, now)

    def unsubscribe(self, name: str, now: int, topic: str) -> None:
        del self.subscribed[name, topic]
        self.observer.closed(name, topic, now)

    def leave(self, name: str, now: int, _: str) -> None:
        for receiver, topic in list(self.subscribed):
            if receiver == name:
                self.unsubscribe(name, now, topic)
        self.observer.ended(name, now, name.encode())

    def _tell(self, sent: Sent, receiver: str, since: int) -> None:
        if receiver != sent.sender:
            for arrival, copy, lost in sent.fates(receiver):
                if arrival >= since:
                    self.observer.arrives(sent.sender, sent.sequence, receiver, arrival, copy, lost)


def payload_of(name: str, sequence: int) -> bytes:
    return f"{name}{sequence}".encode() * (crc32(name.encode()) % 5 + sequence % 3)


def perform(script: Script, recorder: Recorder, seed: int) -> None:
    """Tell a recorder of the whole run, in the interleaving of this number; it isn't closed."""
    random = Random(seed)
    performance = Performance(script, recorder, random)
    eagerness = random.random()
    while performance.step():
        floor = performance.floor()
        if floor is not None and random.random() < eagerness:
            recorder.passed(random.choice((floor, max(0, floor - 3))))


def recorded(script: Script, seed: int, *, chunk_size: int = 500) -> bytes:
    """Return the bytes of a recording of one interleaving."""
    file = io.BytesIO()
    recorder = Recorder(file, script.plan(), federation="stage", chunk_size=chunk_size)
    perform(script, recorder, seed)
    recorder.close(dropped={("ann", "x", "dropped by its buffer"): 2})
    return file.getvalue()


def truth(script: Script) -> tuple[list[Arrival], list[Unheard], list[Loss]]:
    """Work out what a recording must hold."""
    listens: list[tuple[str, str, int, int]] = []
    for name, acts in script.acts.items():
        since: dict[str, int] = {}
        for now, what, topic in acts:
            if what == "subscribe":
                since[topic] = now
            ended = [topic] if what == "unsubscribe" else list(since) if what == "leave" else []
            listens.extend((name, each, since.pop(each), now) for each in ended)
    arrivals, unheard, losses = [], [], []
    for name, acts in script.acts.items():
        publishes = [(now, topic) for now, what, topic in acts if what == "publish"]
        for sequence, (now, topic) in enumerate(publishes):
            sent = Sent(name, sequence, topic, now, payload_of(name, sequence))
            reached = 0
            for receiver, heard, since_, until in listens:
                for at, copy, lost in sent.fates(receiver) if heard == topic and receiver != name else ():
                    if not since_ <= at < until:
                        continue
                    if lost is None:
                        reached += 1
                        arrivals.append(Arrival(at, now, name, sequence, receiver, copy, topic, sent.payload))
                    else:
                        losses.append(Loss(at, now, name, sequence, receiver, copy, topic, lost))
            if not reached:
                unheard.append(Unheard(now, name, sequence, topic, sent.payload))
    return sorted(arrivals), sorted(unheard), sorted(losses)
