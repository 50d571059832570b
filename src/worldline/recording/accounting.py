"""What a recording tells of its run: whole, broken off or cut off.

A file that was cut off, or whose run was, tells everything up to some time; what it holds beyond that isn't told.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from heapq import heappop, heappush

from worldline.history.diff.account import NOTES, Account, Membership, Sending
from worldline.history.observer import Observer
from worldline.model.errors import UsageError
from worldline.model.time import FOREVER
from worldline.recording.reader import Condition, Recording
from worldline.recording.scan import Damaged
from worldline.recording.walk import sendings

# Tells an observer of a recorded run what was told then, in the order in which it happened, at any pace.
#
# So whatever looks on at a run can look on at its recording: a public LCM, an observer of a user's own.


def narrate(recording: Recording, observer: Observer, pace: Callable[[int], None] = lambda _: None) -> None:
    """Tell everything that the recording knows; `pace` is called before anything of a later time is told."""
    account = recorded_account(intact(recording))
    for name, stay in sorted(account.stays.items()):
        observer.began(name, stay.began)
    moments: list[int] = []  # At which something happens that was told; a heap.
    told = -1

    def pass_until(time: int) -> None:
        nonlocal told
        while moments and moments[0] < time:
            moment = heappop(moments)
            if moment > told:
                told = moment
                pace(moment)
                observer.passed(moment + 1)

    for at, sender, topic, payload, fates, number in account.sendings:
        pass_until(at)
        heappush(moments, at)
        if topic in NOTES and not fates:
            observer.noted(sender, topic, at, payload or b"")
            continue
        observer.sent(sender, number, topic, at, payload or b"", max((fate[0] for fate in fates), default=at))
        for arrival, receiver, copy, lost in fates:
            observer.arrives(sender, number, receiver, arrival, copy, lost)
            heappush(moments, arrival)
    pass_until(FOREVER if account.is_complete else account.until + 1)
    for name, stay in sorted(account.stays.items()):
        if stay.ended is not None:
            observer.ended(name, stay.ended, bytes.fromhex(stay.chain or ""))


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
