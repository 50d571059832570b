"""What a run that ended well may still have to tell: that all waited in the end, or one listened in vain.

Both are legal, so neither is an error; both are what a misspelled topic looks like. Whatever is noted here follows from
simulated times and declarations alone, so it is the same in every interleaving.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches

from msgspec import Struct

from worldline.history.monitor import Monitors
from worldline.model.faults import ParticipantFault, order_of
from worldline.model.lifecycle import ESTOP_LINE, EmergencyNote
from worldline.model.links import ESTOP_TOPIC
from worldline.model.text import counted
from worldline.model.time import format_time

_SHOWN = 8
_COMPARED_MAX = 1000  # Names that one is compared with; each takes about a twentieth of a millisecond.


class Standstill(Struct, frozen=True):
    """From this time on all waited for a next message, and none could come.

    `waited` is who, by name, and on which topics; `end` is the end that the plan had, if it had one: only then is it
    certain that the run was to go on.
    """

    at: int
    waited: dict[str, tuple[str, ...]]
    end: int | None = None

    def __str__(self) -> str:
        waits = [f"{name} waited{_for_what(name, topics)}" for name, topics in self.waited.items()]
        ended = "ended" if self.end is None else "ended early"
        why = "because all waited for a message and none could send one"
        return f"{ended} at {format_time(self.at)}, {why}: {_listed(waits, '; ')}"


def _for_what(name: str, topics: tuple[str, ...]) -> str:
    if set(topics) == {f"tcp/{name}", f"udp/{name}"}:  # It is a machine.
        return " for the network, or its program had ended"
    return f" for {_listed(topics)}" if topics else ", but subscribed to nothing"


class UnheardTopic(Struct, frozen=True):
    """A topic that was subscribed to, and that none declared or published on.

    `meant` is the nearest one. It is looked for only as long as there are few: otherwise it isn't a slip of the pen.
    """

    topic: str
    subscribers: tuple[str, ...]
    meant: str | None

    def __str__(self) -> str:
        advice = f" (did you mean {self.meant!r}?)" if self.meant is not None else ""
        return f"{_listed(self.subscribers)} subscribed to {self.topic!r}, on which none published{advice}"


class UnmetFault(Struct, frozen=True):
    """A fault that waited for an event, and never happened; there were `count` messages of those it counts."""

    fault: ParticipantFault
    count: int

    def __str__(self) -> str:
        after = self.fault.after
        if after is None:
            return f"{self.fault} never happened"
        did = "sent" if after.verb == "sends" else "was given"
        many = f"only {counted(self.count, 'message')}" if self.count else "nothing"
        return f"{self.fault} never happened: {after.participant} {did} {many} on {after.topic}"


class Remarks:
    """What the arbiter notes for the end of its run."""

    def __init__(self) -> None:
        self._published: dict[str, None] = {}
        self._subscribers: dict[str, list[str]] = {}
        self._waited: dict[str, tuple[int, tuple[str, ...]]] = {}
        self._emergency: list[EmergencyNote] = []
        self._unmet: list[UnmetFault] = []
        self.monitors = Monitors()  # What participants have measured.

    def publishes(self, topic: str) -> None:
        """A participant publishes on a topic, or may."""
        self._published[topic] = None

    def left(self, name: str, topics: Iterable[str], waited: int | None) -> None:
        """A participant has left that subscribed to these topics; `waited`: since when it waited for more in vain."""
        topics = [topic for topic in topics if topic != ESTOP_TOPIC]  # That one is meant to stay silent.
        if waited is not None:
            self._waited[name] = waited, tuple(topics)
        for topic in topics:
            # What is addressed to a participant alone, as to a machine, may well never come.
            if topic not in self._published and not topic.endswith(f"/{name}"):
                self._subscribers.setdefault(topic, []).append(name)

    def awaited(self, fault: ParticipantFault, count: int) -> None:
        """A participant has left for which a fault waited in vain, for an event of which there were so many."""
        self._unmet.append(UnmetFault(fault, count))

    def unmet(self) -> tuple[UnmetFault, ...]:
        """Return the faults that never happened, in order."""
        return tuple(sorted(self._unmet, key=lambda each: order_of(each.fault)))

    def logged(self, name: str, at: int, text: str, kind: str) -> None:
        """A participant has written a line, in a run that has an emergency stop."""
        if kind == ESTOP_LINE:
            self._emergency.append(EmergencyNote(at, name, text))

    def emergency(self) -> tuple[EmergencyNote, ...]:
        """Return who called an emergency stop, who was told of it when, and what each has done about it, in order."""
        return tuple(sorted(self._emergency, key=lambda note: (note.at, note.participant)))

    def unheard(self) -> tuple[UnheardTopic, ...]:
        """Return the topics on which subscribers have waited in vain, in the order of their names."""
        topics = sorted(topic for topic in self._subscribers if topic not in self._published)
        is_few = len(topics) <= _SHOWN and len(self._published) <= _COMPARED_MAX
        known = list(self._published) if is_few else []
        return tuple(
            UnheardTopic(
                topic,
                tuple(sorted(self._subscribers[topic])),
                next(iter(get_close_matches(topic, known, 1, 0.7)), None),
            )
            for topic in topics
        )

    def standstill(self, names: Iterable[str], end: int | None) -> Standstill | None:
        """Return the standstill that the run of these participants ended in, if all of them waited for another.

        Where one was done by itself, it is the rule that those who only listen wait until the end.
        """
        if not all(name in self._waited for name in names):
            return None
        at = max(since for since, _ in self._waited.values())
        return Standstill(at, {name: topics for name, (_, topics) in sorted(self._waited.items())}, end)


def said_of_unheard(unheard: Sequence[UnheardTopic]) -> list[str]:
    """Say which topics were subscribed to in vain, a line for each as long as a reader would read them."""
    more = len(unheard) - _SHOWN
    return [*map(str, unheard[:_SHOWN]), *([f"nor did any publish on {more:,} more"] if more > 0 else [])]


def _listed(words: Iterable[str], separator: str = ", ") -> str:
    first = list(words)
    more = f"{separator}and {len(first) - _SHOWN} more" if len(first) > _SHOWN else ""
    return separator.join(first[:_SHOWN]) + more
