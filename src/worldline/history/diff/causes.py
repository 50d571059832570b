"""Finds why two histories part: which of the members' first differences follow from which, and which from none.

A member's first difference is a **symptom** if it received what was sent otherwise: then its sender has parted before,
and the question is why that one has. The others are **causes**. Since a message arrives after it was sent, each step
back is a step back in time, and ends at a cause:

- a member that received the same and then did otherwise (`ITSELF`); or what only seems the same: see `unseen_before`;
- the network, which did otherwise with a message that was sent alike (`NETWORK`); unless its sender had sent otherwise
  before in the same network, whose draws and queues depend on that;
- a member that didn't listen (`LISTENING`), or takes part in one run only (`PRESENCE`);
- the end of a run (`END`). Who has ended it isn't told; so this counts as a symptom of the first who parted, if anybody
  parted before; and if not, one of those whom it ended stands for all.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from enum import Enum

from worldline.history.diff.account import ActionKind, MemberAction, Sending
from worldline.history.diff.parting import Parting, Partings
from worldline.model.errors import UsageError, shown
from worldline.model.lineage import SEPARATOR


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
    """Why everybody parts, by name, and the names of those whose partings are causes, the earliest first."""

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
    """Say why everybody parts. `same_network`: both networks would do the same with the same messages."""
    earliest = min(partings.of.values(), key=_order, default=None)
    reasons = {name: _reason(parting, partings, earliest, same_network) for name, parting in partings.of.items()}
    first = [name for name, reason in reasons.items() if reason.source is None]
    return Causes(reasons, sorted(first, key=lambda name: _order(partings.of[name])))


def unseen_before(reason: Reason, unseen: Collection[str], sendings: Iterable[Sending]) -> list[str]:
    """Return from whom of those whose hashes alone differ a member had received before it parted by itself.

    What it received from them may have differed in a way that isn't recorded; then they come before it.
    """
    if reason.origin is not Origin.ITSELF or not unseen:
        return []
    parting, found = reason.parting, dict[str, None]()
    for at, sender, _, _, fates, _ in sendings:
        if at >= parting.at:
            break
        if sender in unseen and any(
            name == parting.member and arrival <= parting.at and lost is None for arrival, name, _, lost in fates
        ):
            found[sender] = None
    return list(found)


def _order(parting: Parting) -> tuple[int, int, str]:
    return parting.first.at, parting.first.act, parting.member


def _reason(parting: Parting, partings: Partings, earliest: Parting | None, same_network: bool) -> Reason:
    action = parting.first
    if _is_alone(parting):
        maker = parting.member.rpartition(SEPARATOR)[0]
        if maker in partings.of and partings.of[maker].at <= action.at:
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
