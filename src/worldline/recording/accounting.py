"""What a recording tells of its run: whole, broken off or cut off.

A file that was cut off, or whose run was, tells everything up to some time; what it holds beyond that isn't told.
"""

from __future__ import annotations

from collections.abc import Iterator

from worldline.history.account import Account, Membership, Sending
from worldline.model.errors import UsageError
from worldline.model.time import FOREVER
from worldline.recording.reader import Condition, Recording
from worldline.recording.scan import Damaged
from worldline.recording.walk import sendings


def intact(recording: Recording) -> Recording:
    """Refuse a file that isn't what was written, before anything in it is taken for a difference."""
    # A file that isn't whole has no checksums, so there is nothing for it but to unpack it; and that tells the place.
    # Nor may one that was packed anew.
    if recording.scan.whole and recording.scan.is_original and recording.damage_in_short() is None:
        return recording
    verdict = recording.verify()
    damage = verdict.text if verdict.condition is Condition.ALTERED else None
    if damage is not None:
        raise _altered(recording, damage)
    return recording


def is_complete(recording: Recording) -> bool:
    """Whether the run came to its end, and all of it is there."""
    return recording.scan.whole and recording.outcome is not None and recording.outcome.status == "complete"


def recorded_account(recording: Recording, skip: int = 0) -> Account:
    """Return what a recording tells of its run, but for its first chunks."""
    outcome, roster = recording.outcome, recording.header.roster
    account = Account((), planned=frozenset(roster), is_complete=is_complete(recording))
    if outcome is not None and recording.scan.whole:
        account.stays = {
            name: Membership(part.started, part.left, part.digest) for name, part in outcome.participants.items()
        }
        account.until = FOREVER if outcome.until is None else outcome.until
    else:
        account.stays = {name: Membership(0) for name in roster}
    account.sendings = _told(recording, account, skip)
    return account


def _told(recording: Recording, account: Account, skip: int) -> Iterator[Sending]:
    """Yield what was sent, as far as all of it is there; then the account's `until` says how far that is."""
    try:
        if account.is_complete:
            yield from sendings(recording.scan, skip)
            return
        latest: list[Sending] = []
        for sending in sendings(recording.scan, skip):
            if sending[0] >= account.until:
                break
            if latest and latest[0][0] != sending[0]:
                yield from latest
                latest = []
            latest.append(sending)
        if account.until < FOREVER:
            yield from latest
        else:  # It was cut off, perhaps among those that were sent at the same time as the last.
            account.until = latest[0][0] if latest else 0
    except Damaged as damage:
        raise _altered(recording, str(damage)) from damage


def _altered(recording: Recording, problem: str) -> UsageError:
    return UsageError(f"{recording.path} was altered: {problem}", advice="record the run again")


def shortcoming(recording: Recording) -> str | None:
    """Say how far a file goes whose end is missing; None for one that is whole."""
    return f"{recording.path} is {recording.verify()}" if is_cut_off(recording) else None


def is_cut_off(recording: Recording) -> bool:
    """Whether the file's end is missing."""
    return recording.outcome is None or not recording.scan.whole
