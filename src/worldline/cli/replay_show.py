"""Plays a recording: a line for every message when it arrives, at the speed at which it is wanted."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from contextlib import ExitStack
from heapq import heappop, heappush
from typing import Any, NamedTuple

from worldline.history.diff.steps import NOTES, named
from worldline.history.diff.values import payload_text
from worldline.history.observer import Observer
from worldline.history.telling import SeveralObservers
from worldline.model.errors import UsageError, shown
from worldline.model.text import printable
from worldline.model.time import FOREVER, SECOND, format_time
from worldline.recording import Recording
from worldline.recording.accounting import narrate

_TIME_WIDTH = 14
_SLEEP_MAX_S = 1e6  # More than Python can sleep is asked for by very low speeds.


class Pace:
    """Lets simulated time pass no faster than so many seconds in a second; None: as fast as it can be told."""

    def __init__(self, speed: float | None, start: int = 0, end: int = FOREVER) -> None:
        self._speed = speed
        self._start = start
        self._end = end
        self._began = time.monotonic()

    def __call__(self, moment: int) -> None:
        if self._speed is None or not self._start <= moment < self._end:
            return
        due = self._began + (moment - self._start) / SECOND / self._speed
        left = due - time.monotonic()
        if left > 0:
            time.sleep(min(left, _SLEEP_MAX_S))


def speed_of(text: str) -> float | None:
    """Read a speed; None for the greatest."""
    if text == "max":
        return None
    try:
        speed = float(text)
    except ValueError:
        speed = 0.0
    if not 0 < speed < float("inf"):
        raise UsageError(f"{shown(text)} isn't a speed", advice="use 1 for real time, 0.1 or 20, or max")
    return speed


class ShownPart(NamedTuple):
    """Which part of a recording is shown: these topics, or all, from `start` until before `end`."""

    topics: Collection[str] = ()
    start: int = 0
    end: int = FOREVER


class _Place(NamedTuple):
    """What lines are sorted by."""

    at: int
    is_done: bool  # By a member; otherwise something arrives.
    who: str
    number: int
    receiver: str = ""
    copy: int = 0


class MessageLines(Observer):
    """Prints a line for whatever arrives, gets lost, reaches nobody or is noted, in the order of their times.

    At the same time, what arrives comes before what members do then, which it may have caused.
    """

    def __init__(self, part: ShownPart, say: Callable[[str], None]) -> None:
        self._part = part
        self._say = say
        self._messages: dict[tuple[str, int], tuple[str, bytes]] = {}
        self._expiries: list[tuple[int, str, int]] = []  # A heap: when each of them has reached everybody.
        self._ahead: list[tuple[_Place, str, bytes]] = []  # A heap.
        self._unheard: dict[tuple[str, int], _Place] = {}
        self._done = 0  # What members have done, so far.
        self.count = 0

    def sent(self, who: str, number: int, topic: str, at: int, payload: bytes, until: int, detail: Any = None) -> None:
        self._messages[who, number] = topic, payload
        heappush(self._expiries, (until, who, number))
        self._unheard[who, number] = self._place(who, at)

    def arrives(self, sender: str, number: int, receiver: str, at: int, copy: int, lost: str | None) -> None:
        self._unheard.pop((sender, number), None)
        place = _Place(at, False, sender, number, receiver, copy)
        self._expect(place, sender, number, receiver, "" if lost is None else f"lost, {lost}: ")

    def noted(self, who: str, topic: str, at: int, payload: bytes | None, detail: Any = None) -> None:
        if not self._part.topics or topic in self._part.topics:
            heappush(self._ahead, (self._place(who, at), f"{named(who)} {NOTES[topic]}", payload or b""))

    def passed(self, time: int) -> None:
        for (sender, number), place in self._unheard.items():
            self._expect(place, sender, number, "nobody", "")
        self._unheard.clear()
        while self._ahead and self._ahead[0][0].at < time:
            place, what, payload = heappop(self._ahead)
            self._print(place.at, what, payload)
        while self._expiries and self._expiries[0][0] < time:
            _, sender, number = heappop(self._expiries)
            del self._messages[sender, number]

    def _place(self, who: str, at: int) -> _Place:
        """Return where the next thing belongs that a member does."""
        self._done += 1
        return _Place(at, True, who, self._done)

    def _expect(self, place: _Place, sender: str, number: int, receiver: str, lost: str) -> None:
        topic, payload = self._messages[sender, number]
        if not self._part.topics or topic in self._part.topics:
            what = f"{named(sender)} → {printable(receiver)}  {lost}{printable(topic)}"
            heappush(self._ahead, (place, what, payload))

    def _print(self, at: int, what: str, payload: bytes) -> None:
        if self._part.start <= at < self._part.end:
            self.count += 1
            self._say(f"{format_time(at):>{_TIME_WIDTH}}  {what}  {payload_text(payload)}")


def show(
    recording: Recording,
    part: ShownPart,
    speed: float | None,
    *,
    say: Callable[[str], None],
    quiet: bool,
    lcm: Sequence[str] = (),
    lcm_serve: str | None = None,
) -> None:
    """Play a recording, and show it on LCM if that is wanted."""
    lines = MessageLines(part, (lambda _: None) if quiet else say)
    with ExitStack() as stack:
        observer: Observer = lines
        if lcm or lcm_serve is not None:
            from worldline.metasim.public import PublicLcm  # Here, since few want one.

            public = PublicLcm(lcm, serve=lcm_serve)
            stack.enter_context(public)
            if public.url is not None:
                say(f"public LCM on {public.url}")
            observer = SeveralObservers((lines, public))
        narrate(recording, observer, Pace(speed, part.start, part.end))
