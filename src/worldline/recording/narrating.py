"""Tells an observer of a recorded run what was told then, in the order in which it happened, at any pace.

So whatever looks on at a run can look on at its recording: a public LCM, an observer of a user's own.
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush

from worldline.history.observer import Observer
from worldline.history.steps import NOTES
from worldline.model.time import FOREVER
from worldline.recording.accounting import intact, recorded_account
from worldline.recording.reader import Recording


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
