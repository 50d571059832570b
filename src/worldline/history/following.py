"""Follows a run of a whole model against a recorded one: what its members say now must be what they said then.

As long as nobody says anything else, everybody is given what it was given then. So for each member this is as good as
to be fed from the recording, and it needs no payload to be made of what was recorded: in most rooms those are objects,
of which a recording has only what can be read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

from worldline.history.account import Fate
from worldline.history.observer import LOG, Observer
from worldline.history.parts import RecordedParts, SaidThen
from worldline.history.retelling import RetoldDifference, Utterance, compared

_TO_ANYBODY: list[Fate] = [(0, "", 0, None)]  # Makes a message of it, whatever its topic is called.
_UNKNOWN = SaidThen(0, 0, "", b"", [])


class Following(Observer):
    """Compares everything that is told with what was recorded; `differs` is called with every difference.

    What it raises ends the run. It is called in the middle of what the member does, if the room tells things then.
    """

    def __init__(self, parts: RecordedParts, differs: Callable[[RetoldDifference], None]) -> None:
        self._parts = parts
        self._differs = differs
        self._latest: dict[str, tuple[int, SaidThen]] = {}  # Each member's last message, by its number.
        self.counts: Counter[str] = Counter()  # How much each has sent.
        self.now = 0

    def began(self, who: str, at: int) -> None:
        if self._parts.stay(who) is None and self._parts.is_complete:
            self._differ(who, None, Utterance("begins", at))

    def sent(self, who: str, number: int, topic: str, at: int, payload: bytes, until: int, detail: Any = None) -> None:
        then = self._compare(who, SaidThen(at, self.counts[who], topic, payload, _TO_ANYBODY))
        self._latest[who] = number, then
        self.counts[who] += 1

    def arrives(self, sender: str, number: int, receiver: str, at: int, copy: int, lost: str | None) -> None:
        latest, then = self._latest.get(sender, (None, _UNKNOWN))
        if latest == number and then is not _UNKNOWN and receiver not in then.to:
            before, now = (
                then.utterance._replace(details=(("to", ", ".join(names)),))
                for names in (then.to or ["nobody"], [receiver])
            )
            self._differ(sender, before, now)

    def noted(self, who: str, topic: str, at: int, payload: bytes | None, detail: Any = None) -> None:
        if payload is not None and topic != LOG:  # Nothing depends on what is logged.
            self._compare(who, SaidThen(at, self.counts[who], topic, payload, []))

    def ended(self, who: str, at: int, chain: bytes) -> None:
        stay = self._parts.stay(who)
        if stay is None or not self._parts.is_complete:
            return
        if (said := self._parts.next_said(who)) is not None:
            self._differ(who, said.utterance, None)
        elif stay.ended != at:
            self._differ(who, self._end(who, at, "ends", now=stay.ended), self._end(who, at, "ends", now=at))
        elif stay.chain != chain.hex():
            verb = "receives what it is given"
            self._differ(who, self._end(who, at, verb, digest=stay.chain), self._end(who, at, verb, digest=chain.hex()))

    def passed(self, time: int) -> None:
        self.now = time

    def _end(self, who: str, at: int, verb: str, **details: Any) -> Utterance:
        return Utterance(verb, min(at, self.now), self.counts[who], details=tuple(details.items()))

    def _compare(self, who: str, now: SaidThen) -> SaidThen:
        """Compare what a member says with what it said next, and return that."""
        then = self._parts.next_said(who)
        if then is None and not self._parts.is_complete:  # What it said then isn't known.
            return _UNKNOWN
        if then is None or then[:4] != now[:4]:
            self._differ(who, None if then is None else then.utterance, now.utterance)
        return then or _UNKNOWN

    def _differ(self, who: str, then: Utterance | None, now: Utterance | None) -> None:
        difference = compared(who, then, now)
        if difference is not None:
            self._differs(difference)
