"""How the connections between machines stood at one moment of a recorded run, in words: which end waits for what.

All of it is told by segments: what was sent by then, what had arrived, and what became of the rest later. So it can be
said of a segment that is lost when it is sent again, though neither end knew.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from worldline.model.segments import FIN, OPENER, RST, SYN, Segment, read_segment, said_of_data
from worldline.model.time import format_time
from worldline.recording.reader import Recording

_TCP = "tcp/"


class SentSegment(NamedTuple):
    """A segment, when it was sent, and when it arrived; or why it was lost."""

    at: int
    sender: str
    receiver: str
    segment: Segment
    arrival: int | None
    lost: str


Ends = tuple[str, str]
"""The two ends of a connection, the one that has opened it first."""


def _words(ends: Ends, segments: list[SentSegment], at: int) -> str | None:
    """Say how a connection stood whose ends have sent these; None if it hadn't begun, or had ended."""
    sent = [each for each in segments if each.at <= at]
    arrived = [each for each in sent if each.arrival is not None and each.arrival <= at]
    if not sent or any(each.segment.flags & RST for each in arrived) or _has_closed(arrived):
        return None

    def fate(sending: SentSegment, what: str) -> str:
        again = next((each for each in segments if each.at > at and _repeats(each, sending)), None)
        return _fate(sending, what, again)

    opener, other = ends
    if not any(each.segment.flags & SYN and not each.segment.flags & OPENER for each in arrived):
        answers = [each for each in sent if not each.segment.flags & OPENER]
        asked = answers[-1] if answers else sent[-1]
        return f"{opener} waits for {other} to accept; {fate(asked, 'SYN-ACK' if answers else 'SYN')}"
    for one, another, is_opener in ((opener, other, True), (other, opener, False)):
        owed = _unheard(sent, arrived, is_opener)
        if owed is not None:
            return f"{one} waits for {another} to acknowledge; {fate(owed, _called(owed.segment))}"
    spoken = [each for each in arrived if each.segment.data]
    if not spoken:
        return f"{opener} and {other} are connected, and have sent nothing"
    last = max(spoken, key=lambda each: (each.arrival, each.at))
    speaker, listener = (opener, other) if last.segment.flags & OPENER else (other, opener)
    since = format_time(last.arrival or 0)
    return f"{listener} has {_called(last.segment)} of {speaker} since {since}, and has sent nothing since"


def _has_closed(arrived: list[SentSegment]) -> bool:
    """Whether both ends have heard that the other sends no more."""
    heard = {bool(each.segment.flags & OPENER) for each in arrived if each.segment.flags & FIN}
    return len(heard) == 2


def _unheard(sent: list[SentSegment], arrived: list[SentSegment], is_opener: bool) -> SentSegment | None:
    """Return the last sending of the first data of one end that the other hasn't got."""
    own = [each for each in sent if bool(each.segment.flags & OPENER) is is_opener]
    theirs = [each.segment for each in arrived if bool(each.segment.flags & OPENER) is not is_opener]
    known = max((each.acknowledged for each in theirs), default=0)
    got = {each.segment.sequence for each in arrived if each in own and _end_of(each.segment) > known}
    owed = [
        each
        for each in own
        if (each.segment.data or each.segment.flags & FIN)
        and _end_of(each.segment) > known
        and each.segment.sequence not in got
    ]
    first = min((each.segment.sequence for each in owed), default=0)
    return next((each for each in reversed(owed) if each.segment.sequence == first), None)


def _fate(sending: SentSegment, what: str, again: SentSegment | None) -> str:
    """Say what has become of a segment by then, and when it is sent again."""
    text = f"{what}, sent at {format_time(sending.at)},"
    if sending.arrival is None:
        text += f" was lost ({sending.lost})" if sending.lost else " hadn't arrived when the recording ended"
    else:
        text += f" arrives at {format_time(sending.arrival)}"
    if again is not None and (sending.arrival is None or sending.arrival > again.at):
        text += f"; it is sent again at {format_time(again.at)}"
    return text


def _repeats(one: SentSegment, other: SentSegment) -> bool:
    mask = SYN | OPENER
    return (
        one.sender == other.sender
        and one.segment.sequence == other.segment.sequence
        and one.segment.flags & mask == other.segment.flags & mask
        and bool(one.segment.data) == bool(other.segment.data)
    )


def _end_of(segment: Segment) -> int:
    return segment.sequence + len(segment.data) + bool(segment.flags & FIN)


def _called(segment: Segment) -> str:
    return said_of_data(segment.data) if segment.data else "FIN"


def connections_at(recording: Recording, at: int) -> list[str]:
    """Say of each connection that was open at a simulated time which end waits for what, in the order of opening."""
    found: dict[tuple[str, str, int], list[SentSegment]] = {}
    for each in sorted(_segments_in(recording), key=lambda each: (each.at, each.sender)):
        segment = each.segment
        source, target = f"{each.sender}:{segment.source}", f"{each.receiver}:{segment.target}"
        is_opener = bool(segment.flags & OPENER)
        ends = (source, target) if is_opener else (target, source)
        found.setdefault((*ends, segment.connection), []).append(each)
    words = (_words((opener, other), segments, at) for (opener, other, _), segments in found.items())
    return [each for each in words if each is not None]


def has_connections(recording: Recording) -> bool:
    """Whether machines talk in it."""
    return any(topic.startswith(_TCP) for topic in recording.topics())


def _segments_in(recording: Recording) -> Iterator[SentSegment]:
    reasons = {(each.sender, each.sequence): each.reason for each in recording.losses()}
    messages: Iterable[tuple[int, str, int, str, bytes, int | None]] = (
        *((each.sent, each.sender, each.sequence, each.topic, each.payload, each.at) for each in recording.arrivals()),
        *((*each, None) for each in recording.unheard()),
    )
    for sent, sender, sequence, topic, payload, arrival in messages:
        if topic.startswith(_TCP) and (segment := read_segment(payload)) is not None:
            lost = reasons.get((sender, sequence), "")
            yield SentSegment(sent, sender, topic.removeprefix(_TCP), segment, arrival, lost)
