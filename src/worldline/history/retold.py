"""A run as its members' journals tell it: what each was given when, and what it sent.

That is all that a program has seen, so it is told by the times at which it was given things, which may be later than
they arrived. What was lost is in nobody's journal.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from worldline.history.account import Account, Fate, Membership, Sending
from worldline.history.journal import Entry, Received, Sent
from worldline.history.outcome import End


def account_of(journals: Mapping[str, Sequence[Entry]], members: Mapping[str, End]) -> Account:
    """Return what the journals of all members tell of a run that has come to its end."""
    fates: dict[tuple[str, int], list[Fate]] = {}
    for receiver, entries in journals.items():
        for entry in entries:
            if isinstance(entry, Received):
                message = entry.message
                fate = entry.now, receiver, message.copy, None
                fates.setdefault((message.sender, message.sequence), []).append(fate)
    sendings: list[Sending] = [
        (entry.at, sender, entry.topic, entry.payload, sorted(fates.get((sender, entry.sequence), ())), entry.sequence)
        for sender, entries in journals.items()
        for entry in entries
        if isinstance(entry, Sent)
    ]
    sendings.sort(key=lambda sending: (sending[0], sending[1], sending[5]))
    return Account(sendings, {name: Membership(0, end.at, end.chain.hex()) for name, end in members.items()})
