"""Finds where two histories part: for each member, the first thing that isn't the same in both.

A member's history is what it received, in the order of arrivals, and what it sent and noted; at the same moment it
receives before it sends. (Also that it began, and that it ended.) Two histories of a member are sorted lists, so they
part at the least action that only one of them holds, whatever else differs later. That is why one walk over both runs
finds it, in the order in which things were sent, without putting any member's history together:

D1. What is equal in both runs can be passed over, whatever it is and in whatever pieces.
D2. A message arrives after it was sent. So once both the first action that only A holds and the first that only B holds
    lie before what is being sent now, that member is settled; when all are, the rest needn't be read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from difflib import get_close_matches
from enum import Enum

from worldline.history.account import (
    Account,
    ActionKind,
    MemberAction,
    Membership,
    Sending,
    SendingsAt,
    received_otherwise,
    sent_otherwise,
)
from worldline.model.errors import UsageError, shown
from worldline.model.message import SEPARATOR
from worldline.model.time import FOREVER

_UNKNOWN = "one of the runs had ended by then"


@dataclass
class Parting:
    """Where a member's two histories part: the first action that only A holds, and the first that only B holds."""

    member: str
    a: MemberAction | None = None
    b: MemberAction | None = None

    @property
    def first(self) -> MemberAction:
        """The earlier of the two: up to here, both histories are the same."""
        actions = [action for action in (self.a, self.b) if action is not None]
        return min(actions, key=lambda action: action.key)

    @property
    def at(self) -> int:
        return self.first.at

    @property
    def is_only_in_b(self) -> bool:
        return self.first is self.b

    def note(self, a: MemberAction | None, b: MemberAction | None) -> None:
        """Take in what only one of the runs holds, if it comes before what is known."""
        if a is not None and (self.a is None or a.key < self.a.key):
            self.a = a
        if b is not None and (self.b is None or b.key < self.b.key):
            self.b = b

    def is_settled(self, now: int) -> bool:
        """Whether nothing that is sent from now on comes before what is known (D2)."""
        return self.a is not None and self.b is not None and self.a.at <= now and self.b.at <= now


@dataclass
class Partings:
    """Where the members of two runs part, by name; who takes part in one run only is among them."""

    members: list[str] = field(default_factory=list)  # Those of both runs.
    only_a: list[str] = field(default_factory=list)
    only_b: list[str] = field(default_factory=list)
    of: dict[str, Parting] = field(default_factory=dict)
    sends_part: dict[str, int] = field(default_factory=dict)  # From when on a member sends otherwise.
    unseen: list[str] = field(default_factory=list)  # The hashes of their histories differ, and nothing that was told.
    renumbered: list[str] = field(default_factory=list)  # The same, but they received messages with other numbers.
    renumbers: dict[str, tuple[int, str]] = field(default_factory=dict)  # When a member first did so, and from whom.
    lost_otherwise: int = 0  # Messages that were lost otherwise, which no member could notice.
    until: int = FOREVER  # How far both tell everything.
    ended: tuple[int, int] = (FOREVER, FOREVER)

    @property
    def is_same(self) -> bool:
        return not (self.of or self.unseen or self.renumbered or self.lost_otherwise)

    def parted(self) -> list[Parting]:
        """Return the partings of those who are in both runs, the earliest first."""
        both = [self.of[name] for name in self.members if name in self.of]
        return sorted(both, key=lambda parting: (*parting.first.key[:2], parting.member))


def part(a: Account, b: Account) -> Partings:
    """Return where the members of two runs part."""
    walk = _Walk(a, b)
    for group in _unlike(a, b, walk.note_renumbered):
        walk.look_at(*group)
        if walk.is_settled:
            break
    return walk.finish()


class _Walk:
    """One walk over two runs at once."""

    def __init__(self, a: Account, b: Account) -> None:
        self._a, self._b = a, b
        self._settled: set[str] = set()
        self._common = [name for name in a.stays if name in b.stays]
        self.found = Partings(
            only_a=sorted(name for name in a.stays if b.lacks(name, a)),
            only_b=sorted(name for name in b.stays if a.lacks(name, b)),
        )
        for name in self.found.only_a:
            self.found.of[name] = Parting(name, a=MemberAction(a.stays[name].began, ActionKind.BEGINS))
        for name in self.found.only_b:
            self.found.of[name] = Parting(name, b=MemberAction(b.stays[name].began, ActionKind.BEGINS))
        self._alone = frozenset(self.found.of)

    @property
    def is_settled(self) -> bool:
        """Whether no parting can change any more."""
        if len(self._settled) < len(self._common) or not (self._a.is_complete and self._b.is_complete):
            return False
        return all(name in self._settled or name in self._alone for name in self.found.of)

    def finish(self) -> Partings:
        """Add what isn't known before the end."""
        a, b, found = self._a, self._b, self.found
        found.until = min(a.until, b.until)
        found.ended = a.ended, b.ended
        if a.is_complete and b.is_complete:
            for name in self._common:
                self._compare_stays(name, a.stays[name], b.stays[name])
        names = sorted({**a.stays, **b.stays, **found.of})
        found.members = [name for name in names if name not in self._alone]
        return found

    def _compare_stays(self, name: str, a: Membership, b: Membership) -> None:
        if a.began != b.began:
            self._note(name, MemberAction(a.began, ActionKind.BEGINS), MemberAction(b.began, ActionKind.BEGINS))
        if a.ended != b.ended:
            actions = [None if end is None else MemberAction(end, ActionKind.ENDS) for end in (a.ended, b.ended)]
            self._note(name, actions[0], actions[1])
        if a.chain != b.chain and name not in self.found.of:
            (self.found.renumbered if name in self.found.renumbers else self.found.unseen).append(name)

    def look_at(self, now: int, sender: str, a: list[Sending], b: list[Sending]) -> None:
        """Note what differs in what one member sent at one moment."""
        receivers = dict.fromkeys(fate[1] for sending in (*a, *b) for fate in sending[4])
        pending = [name for name in receivers if not self._is_past(name, now)]
        if sender in self.found.sends_part and not pending and self._is_past(sender, now):
            return
        ours, theirs = SendingsAt(now, sender, a), SendingsAt(now, sender, b)
        noticed = self._note(sender, *sent_otherwise(ours, theirs))
        if noticed:
            self.found.sends_part.setdefault(sender, now)
        self._pair(a, b)
        for receiver in pending:
            noticed = self._note(receiver, *received_otherwise(receiver, ours, theirs)) or noticed
        if not noticed and len(pending) == len(receivers):
            self.found.lost_otherwise += 1

    def _pair(self, a: list[Sending], b: list[Sending]) -> None:
        """Find messages of one moment that differ in their numbers alone."""
        left: dict[tuple[object, ...], list[Sending]] = {}
        for sending in reversed(b):
            left.setdefault((*sending[:4], tuple(sending[4])), []).append(sending)
        for sending in a:
            equal = left.get((*sending[:4], tuple(sending[4])))
            if equal and equal.pop()[5] != sending[5]:
                self.note_renumbered(sending)

    def note_renumbered(self, sending: Sending) -> None:
        """Note that a message has another number in the other run, which its receivers can see."""
        renumbers = self.found.renumbers
        for arrival, receiver, _, lost in sending[4]:
            if lost is None and (receiver not in renumbers or arrival < renumbers[receiver][0]):
                renumbers[receiver] = arrival, sending[1]

    def _is_past(self, name: str, now: int) -> bool:
        """Whether nothing that is sent from now on can change where a member parts."""
        if name in self._settled or name in self._alone:
            return True
        parting = self.found.of.get(name)
        if parting is None or not parting.is_settled(now):
            return False
        self._settled.add(name)
        return True

    def _note(self, member: str, a: MemberAction | None, b: MemberAction | None) -> bool:
        """Note what only one of the runs holds; return whether there is anything."""
        if a is None and b is None:
            return False
        if member not in self._alone:
            self.found.of.setdefault(member, Parting(member)).note(a, b)
        return True


def _unlike(
    a: Account, b: Account, renumbered: Callable[[Sending], None]
) -> Iterator[tuple[int, str, list[Sending], list[Sending]]]:
    """Yield what one member sent at one moment, wherever that isn't the same in both runs."""
    horizon = min(a.until, b.until)
    left, right = _known(a.sendings, horizon), _known(b.sendings, horizon)
    x, y = next(left, None), next(right, None)
    while True:
        while x is not None and y is not None and (x == y or x[:5] == y[:5]):  # D1; their numbers don't count.
            if x[5] != y[5]:
                renumbered(x)
            x, y = next(left, None), next(right, None)
        if x is None and y is None:
            return
        key = min(each[:2] for each in (x, y) if each is not None)
        if (x is None and key[0] >= a.until) or (y is None and key[0] >= b.until):
            return  # One of them tells no more.
        ours, theirs = list[Sending](), list[Sending]()
        while x is not None and x[:2] == key:
            ours.append(x)
            x = next(left, None)
        while y is not None and y[:2] == key:
            theirs.append(y)
            y = next(right, None)
        yield *key, ours, theirs


def _known(sendings: Iterable[Sending], horizon: int) -> Iterator[Sending]:
    """Yield what was sent, with what became of it before the horizon.

    Where one of the runs has ended, it isn't known what would have arrived: that it didn't is no difference.
    """
    if horizon == FOREVER:
        yield from sendings
        return
    for at, sender, topic, payload, fates, number in sendings:
        known = [fate for fate in fates if fate[0] < horizon]
        unknown = sorted((horizon, fate[1], fate[2], _UNKNOWN) for fate in fates if fate[0] >= horizon)
        yield at, sender, topic, payload, [*known, *unknown], number


# Finds why two histories part: which of the members' first differences follow from which, and which from none.
#
# A member's first difference is a **symptom** if it received what was sent otherwise: then its sender has parted
# before, and the question is why that one has. The others are **causes**. Since a message arrives after it was sent,
# each step back is a step back in time, and ends at a cause:
#
# - a member that received the same and then did otherwise (`ITSELF`); or what only seems the same: see `unseen_before`;
# - the network, which did otherwise with a message that was sent equally (`NETWORK`); unless its sender had sent
# otherwise before in the same network, whose draws and queues depend on that;
# - a member that didn't listen (`LISTENING`), or takes part in one run only (`PRESENCE`);
# - the end of a run (`END`). Who has ended it isn't told; so this counts as a symptom of the first who parted, if
# any parted before; and if not, one of those whom it ended stands for all.


class Origin(Enum):
    """Where a difference comes from."""

    ITSELF = "itself"
    NETWORK = "network"
    LISTENING = "listening"
    PRESENCE = "presence"
    END = "end"
    SENDER = "sender"
    MAKER = "maker"
    """The last two, and an END that has a `source`, are symptoms."""


@dataclass(frozen=True)
class Reason:
    """Why a member parts; `source` is the member whose parting is the reason, None: this is a cause."""

    parting: Parting
    origin: Origin
    source: str | None = None


@dataclass(frozen=True)
class Causes:
    """Why each member parts, by name, and the names of those whose partings are causes, the earliest first."""

    reasons: dict[str, Reason]
    first: list[str]

    def chain(self, to: str) -> list[Reason]:
        """Return how a difference came to a member, from its cause on."""
        reason = self.reasons.get(to)
        if reason is None:
            raise UsageError(f"{shown(to)} doesn't differ", advice=_advice(to, list(self.reasons)))
        chain = [reason]
        while reason.source is not None:
            reason = self.reasons[reason.source]
            chain.append(reason)
        return chain[::-1]

    def symptoms(self, cause: str) -> list[str]:
        """Return to whom a cause has come, in the order of time."""
        found = [name for name in self.reasons if name != cause and self.chain(name)[0].parting.member == cause]
        return sorted(found, key=lambda name: _order(self.reasons[name].parting))


def explain(partings: Partings, *, same_network: bool = True) -> Causes:
    """Say why each member parts. `same_network`: both networks would do the same with the same messages."""
    earliest = min(partings.of.values(), key=_order, default=None)
    reasons = {name: _reason(parting, partings, earliest, same_network) for name, parting in partings.of.items()}
    first = [name for name, reason in reasons.items() if reason.source is None]
    return Causes(reasons, sorted(first, key=lambda name: _order(partings.of[name])))


def unseen_before(reason: Reason, partings: Partings, sendings: Iterable[Sending]) -> list[str]:
    """Return who may have made a member part that seems to have parted by itself.

    Those are members whose hashes alone differ, and from whom it had received before: what it received may have
    differed in a way that isn't recorded. If such a member had itself received from another before it sent, that one
    comes first: as a rule its messages have other numbers.
    """
    suspects = {*partings.unseen, *partings.renumbered}
    if reason.origin is not Origin.ITSELF or not suspects:
        return []
    parting, found = reason.parting, dict[str, None]()
    tainted: dict[str, tuple[int, str]] = {}  # When a suspect first received from another, and who came first.
    for at, sender, _, _, fates, _ in sendings:
        if at >= parting.at:
            break
        if sender not in suspects:
            continue
        since, origin = tainted.get(sender, (at, sender))
        first = origin if since <= at else sender
        for arrival, name, _, lost in fates:
            if lost is not None:
                continue
            if name == parting.member and arrival <= parting.at:
                found[first] = None
            elif name in suspects and name != first and arrival < tainted.get(name, (FOREVER, ""))[0]:
                tainted[name] = arrival, first
    return list(found)


def _order(parting: Parting) -> tuple[int, int, str]:
    return parting.first.at, parting.first.act, parting.member


def _reason(parting: Parting, partings: Partings, earliest: Parting | None, same_network: bool) -> Reason:
    action = parting.first
    if _is_alone(parting):
        maker, separator, _ = parting.member.rpartition(SEPARATOR)
        if separator and maker in partings.of and partings.of[maker].at <= action.at:
            return Reason(parting, Origin.MAKER, maker)
        return Reason(parting, Origin.PRESENCE)
    if _is_the_end(parting, partings):
        before = earliest or parting
        is_before = before.at < action.at or (before is not parting and _is_the_end(before, partings))
        return Reason(parting, Origin.END, before.member if is_before else None)
    if action.act is not ActionKind.RECEIVES:
        return Reason(parting, Origin.ITSELF)
    if action.peer in partings.of and _is_senders(action, partings, same_network):
        return Reason(parting, Origin.SENDER, action.peer)
    return Reason(parting, Origin.NETWORK if action.elsewhere else Origin.LISTENING)


def _is_alone(parting: Parting) -> bool:
    return parting.first.act is ActionKind.BEGINS and (parting.a is None or parting.b is None)


def _is_senders(action: MemberAction, partings: Partings, same_network: bool) -> bool:
    """Whether the sender of what was received has sent otherwise: this, or before."""
    if action.elsewhere is None or action.reordered:
        return True
    return same_network and partings.sends_part.get(action.peer, action.at) <= action.sent


def _is_the_end(parting: Parting, partings: Partings) -> bool:
    """Whether a member has parted because one of the runs was over."""
    ended_a, ended_b = partings.ended
    if ended_a == ended_b:
        return False
    action = parting.first
    here, there = (ended_b, ended_a) if parting.is_only_in_b else (ended_a, ended_b)
    return action.at >= there or (action.act is ActionKind.ENDS and action.at == here)


def _advice(name: str, names: list[str]) -> str:
    if not names:
        return ""
    near = get_close_matches(name, names, n=1)
    if near:
        return f"did you mean {near[0]}?"
    shown_names = ", ".join(sorted(names)[:8])
    return f"those that differ: {shown_names}{', …' if len(names) > 8 else ''}"
