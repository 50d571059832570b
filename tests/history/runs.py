"""Small runs whose members depend on all that they have received, and what must be found where two of them differ.

A change to one message therefore shows in everything that follows from it, and in nothing else. The oracle puts
everybody's whole history together and looks at all that differs, not only at what comes first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import blake2b
from typing import Literal

from worldline.history.account import Account, Fate, Membership, Sending

TOPICS = ("x", "y")


def draw(*key: object) -> int:
    return int.from_bytes(blake2b(repr(key).encode(), digest_size=6).digest())


@dataclass(frozen=True)
class Change:
    """What is done to the message of a number that a member sends."""

    sender: str
    number: int
    what: Literal["payload", "drop", "later", "swap", "more", "lose", "delay"]

    @property
    def is_networks(self) -> bool:
        return self.what in ("lose", "delay")


@dataclass
class SmallRun:
    """A run of a few members: each answers what it receives, with what follows from all that it has received."""

    seed: int
    members: int = 4
    until: int = 60
    change: Change | None = None

    def __post_init__(self) -> None:
        self.names = ["ann", "bob", "cat", "dan"][: self.members]
        self.sendings: list[Sending] = []
        self.is_changed = False
        inboxes: dict[str, dict[int, list[tuple[int, str, int, int, str, bytes]]]] = {n: {} for n in self.names}
        self._inboxes = inboxes
        state = {name: draw(self.seed, name) for name in self.names}
        numbers = dict.fromkeys(self.names, 0)
        self._numbers = numbers
        for now in range(self.until):
            for name in self.names:
                arrived = sorted(inboxes[name].pop(now, []))
                for _, sender, _, _, topic, payload in arrived:
                    state[name] = draw(state[name], now, sender, topic, payload)
                if arrived or now == draw(self.seed, name, "start") % 5:
                    self._act(now, name, state[name])
        self.sendings.sort(key=lambda each: (each[0], each[1], each[5]))

    def _act(self, now: int, name: str, state: int) -> None:
        count = state % 3 + (now < 5)
        messages = [(TOPICS[draw(state, k) % 2], b"%d" % (draw(state, k, "payload") % 1000)) for k in range(count)]
        change = self.change
        if change is not None and change.sender == name and not self.is_changed and not change.is_networks:
            place = change.number - self._numbers[name]
            if 0 <= place < len(messages):
                messages = self._changed(messages, place, change)
        for topic, payload in messages:
            at = now
            if payload.endswith(b"later"):
                payload, at = payload.removesuffix(b"later"), now + 1
            self._send(at, name, topic, payload)

    def _changed(self, messages: list[tuple[str, bytes]], place: int, change: Change) -> list[tuple[str, bytes]]:
        topic, payload = messages[place]
        before, after = messages[:place], messages[place + 1 :]
        changed = {
            "payload": [*before, (topic, payload + b"!"), *after],
            "drop": [*before, *after],
            "more": [*before, (topic, b"more"), (topic, payload), *after],
            "later": [*messages[:-1], (messages[-1][0], messages[-1][1] + b"later")],
            "swap": messages[::-1],
        }[change.what]
        self.is_changed = changed != messages
        return changed

    def _send(self, at: int, sender: str, topic: str, payload: bytes) -> None:
        number = self._numbers[sender]
        self._numbers[sender] += 1
        fates: list[Fate] = []
        for receiver in self.names:
            if receiver == sender or draw(self.seed, receiver, topic, "listens") % 4 == 0:
                continue
            drawn = draw(self.seed, sender, number, receiver)
            arrival, lost = at + 2 + drawn % 6, "bad luck" if drawn // 10 % 6 == 0 else None
            arrival, lost = self._disturbed(sender, number, arrival, lost)
            fates.append((arrival, receiver, 0, lost))
            if lost is None:
                self._inboxes[receiver].setdefault(arrival, []).append((at, sender, number, 0, topic, payload))
        self.sendings.append((at, sender, topic, payload, sorted(fates), number))

    def _disturbed(self, sender: str, number: int, arrival: int, lost: str | None) -> tuple[int, str | None]:
        change = self.change
        if change is None or not change.is_networks or (change.sender, change.number) != (sender, number):
            return arrival, lost
        if lost is not None or self.is_changed or arrival >= self.until - 2:
            return arrival, lost
        self.is_changed = True
        return (arrival, "on purpose") if change.what == "lose" else (arrival + 1, None)

    def account(self) -> Account:
        return Account(iter(self.sendings), {name: Membership(0, self.until, "") for name in self.names})


Deed = tuple[int, int, int, str, int, str, bytes]


def histories(run: SmallRun) -> dict[str, list[Deed]]:
    """Put everybody's history together: (when, 0 received or 1 sent, sent, by whom, place, topic, payload)."""
    found: dict[str, list[Deed]] = {name: [] for name in run.names}
    places: Counter[tuple[int, str]] = Counter()
    heard: dict[str, list[tuple[int, int, str, int, str, bytes]]] = {name: [] for name in run.names}
    for sent, sender, topic, payload, fates, number in run.sendings:
        found[sender].append((sent, 1, sent, "", places[sent, sender], topic, payload or b""))
        places[sent, sender] += 1
        for at, receiver, _, lost in fates:
            if lost is None:
                heard[receiver].append((at, sent, sender, number, topic, payload or b""))
    for receiver, arrivals in heard.items():
        ranks: Counter[tuple[int, int, str]] = Counter()
        for at, sent, sender, _, topic, payload in sorted(arrivals):
            found[receiver].append((at, 0, sent, sender, ranks[at, sent, sender], topic, payload))
            ranks[at, sent, sender] += 1
    return {name: sorted(actions) for name, actions in found.items()}


def first_differences(a: SmallRun, b: SmallRun) -> dict[str, tuple[int, int]]:
    """Return for each member that differs when it does, and whether by receiving (0) or sending (1)."""
    found = {}
    ours, theirs = histories(a), histories(b)
    for name in a.names:
        for place in range(max(len(ours[name]), len(theirs[name]))):
            x, y = ours[name][place : place + 1], theirs[name][place : place + 1]
            if x != y:
                found[name] = min((*x, *y))[:2]
                break
    return found


def minimal_members(a: SmallRun, b: SmallRun) -> set[str]:
    """Return who holds a action that differs, and that nothing which differs has led to."""
    found = set()
    for mine, other in ((a, b), (b, a)):
        ours, theirs = histories(mine), histories(other)
        unlike = {name: set(actions) - set(theirs[name]) for name, actions in ours.items()}
        unlike_there = {name: set(actions) - set(ours[name]) for name, actions in theirs.items()}
        for name, actions in unlike.items():
            for action in actions:
                if any(each[:5] < action[:5] for each in unlike_there[name]):
                    continue
                if not any(_differs(unlike, unlike_there, *past) for past in _past(ours, name, action)):
                    found.add(name)
    return found


def _differs(unlike: dict[str, set[Deed]], unlike_there: dict[str, set[Deed]], name: str, action: Deed) -> bool:
    """Whether this or something before it differs, also by what is missing here."""
    return action in unlike[name] or any(each[:5] < action[:5] for each in unlike_there[name])


def _past(ours: dict[str, list[Deed]], name: str, action: Deed) -> Iterator[tuple[str, Deed]]:
    """Yield all that has led to a action, however long ago."""
    open_, seen = [(name, action)], set()
    while open_:
        who, what = open_.pop()
        before = [(who, each) for each in ours[who] if each < what]
        if what[1] == 0:
            message = (what[2], 1, *what[5:])
            before += [(what[3], each) for each in ours[what[3]] if (each[0], each[1], *each[5:]) == message]
        for each in before:
            if each not in seen:
                seen.add(each)
                open_.append(each)
                yield each
