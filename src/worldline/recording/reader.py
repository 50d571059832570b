"""Reads recordings: their facts, their messages in the order of arrivals, and whether they are what was written."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from enum import Enum
from functools import cached_property
from heapq import heappop, heappush
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from mcap.records import Channel

from worldline.history.account import NOTES, Account, Membership, Sending
from worldline.history.journal import run_digest
from worldline.history.observer import Observer
from worldline.model.errors import ModelError, UsageError, nearest, shortened, shown
from worldline.model.reading import as_time
from worldline.model.text import facts_html, printable, table_html
from worldline.model.time import FOREVER, TimeLike, format_time
from worldline.recording.facts import (
    FORMAT,
    LOST_CHANNEL,
    Count,
    Header,
    LossCount,
    RunFacts,
    counted_losses,
    from_metadata,
)
from worldline.recording.pending import Contents
from worldline.recording.scan import Damaged, Record, Scan, records, sendings
from worldline.recording.signals import RecordedSignal, Tellings, signals


class Survey:
    """What one walk over all records finds, as far as they can be read: computed as the recorder computed it."""

    def __init__(self, scan: Scan) -> None:
        self.channels: dict[int, Channel] = {}
        self.contents = Contents(scan.header)
        self.last_sent: int | None = None
        self.damage: str | None = None
        try:
            for sent, sender, topic, payload, fates, sequence in sendings(scan, channels=self.channels):
                self.last_sent = sent
                if payload is not None:
                    self.contents.add(sent, sender, sequence, topic, payload, fates)
                elif scan.whole:
                    self.damage = f"message {sequence} of {sender} isn't there, only losses of it"
        except Damaged as damage:
            self.damage = str(damage)


class Arrival(NamedTuple):
    """A message that reached a receiver. The first six fields are its place in the order: no two share them."""

    at: int
    sent: int
    sender: str
    sequence: int
    receiver: str
    copy: int
    topic: str
    payload: bytes


class Unheard(NamedTuple):
    """A message that reached no receiver, because none listened or because it was lost on the way to all."""

    sent: int
    sender: str
    sequence: int
    topic: str
    payload: bytes


class Loss(NamedTuple):
    """A message that would have reached a receiver at that time, but was lost."""

    at: int
    sent: int
    sender: str
    sequence: int
    receiver: str
    copy: int
    topic: str
    reason: str


POOL_MAX = 2**30
"""How many bytes are held at most in order to put messages into the order of their arrivals."""

_Entry = TypeVar("_Entry", Arrival, Unheard, Loss)


class Condition(Enum):
    """The state of a file. In all but the last, what can be read is what happened."""

    INTACT = "intact"
    BROKEN_OFF = "broken off"  # The run was, and the file says so.
    CUT_OFF = "cut off"  # The file was, by a crash for instance.
    ALTERED = "altered"


class RecordingVerdict(NamedTuple):
    """What was found out about a file. Everything sent before `until` is there; None: there is no such time."""

    condition: Condition
    text: str
    until: int | None = None

    def __str__(self) -> str:
        return f"{self.condition.value}: {self.text}"


class Recording:
    """A recorded run. Of a file that was cut off, all whole chunks can be read; `verify` says how far they reach."""

    def __init__(self, path: str | PathLike[str]) -> None:
        self.path = Path(path)
        self._scan = Scan(self.path)
        written = shortened(str(self._scan.header.get("format")))
        if written != str(FORMAT):
            raise UsageError(
                f"{self.path} has format {written}, and this version of Worldline reads format {FORMAT}",
                advice="use the version that recorded it",
            )
        try:
            self.header = from_metadata(Header, self._scan.header)
        except UsageError as error:
            raise UsageError(f"{self.path} can't be read: {error.problem}") from error
        self.outcome: RunFacts | None = None
        if self._scan.outcome is not None:
            try:
                self.outcome = from_metadata(RunFacts, self._scan.outcome)
            except UsageError as error:
                self._scan.damage = self._scan.damage or error.problem
        if not self._scan.is_original and not self._is_certified():
            self._scan.is_reordered = True  # It may have been packed anew, by arrivals: the certificate tells.
            self.__dict__.pop("_survey", None)  # That was of the order in which they stand.

    @property
    def scan(self) -> Scan:
        """Where things are in the file, for other kinds of readers."""
        return self._scan

    # --- What was recorded ---

    def arrivals(
        self,
        *,
        topics: Collection[str] | None = None,
        receivers: Collection[str] | None = None,
        start: TimeLike = 0,
        end: TimeLike | None = None,
    ) -> Iterator[Arrival]:
        """Yield what arrived in [start, end), on these topics and at these receivers, in order of arrival."""
        if isinstance(topics, str) or isinstance(receivers, str):
            raise UsageError("topics and receivers must be lists, not a single text")
        self._check_known("topic", topics, self.topics)
        self._check_known("receiver", receivers, self.members)

        def arrival(record: Record) -> Arrival | None:
            at, sent, sequence, (topic, sender, receiver, copy), payload, _ = record
            if payload is None or not receiver or (topics is not None and topic not in topics):
                return None
            if receivers is not None and receiver not in receivers:
                return None
            return Arrival(at, sent, sender, sequence, receiver, copy, topic, payload)

        return self._in_order(arrival, start, end)

    def check_topics(self, topics: Collection[str]) -> None:
        """Refuse topics that the recording doesn't have."""
        self._check_known("topic", topics, self.topics)

    def _check_known(self, what: str, names: Collection[str] | None, known: Callable[[], set[str]]) -> None:
        """Refuse a name that the recording doesn't have: nothing would ever be found of it."""
        there = known() if names else set()
        for name in names or ():
            if name not in there:
                listed = f"its {what}s are {', '.join(sorted(there)[:12])}" if there else None
                raise UsageError(f"{self.path} has no {what} {shown(name)}", advice=nearest(name, there) or listed)

    def topics(self) -> set[str]:
        """Return the topics of what was sent and noted."""
        return {channel.topic for channel in self.channels.values() if channel.metadata != LOST_CHANNEL}

    def listeners(self) -> dict[str, list[str]]:
        """Return to whom messages on each topic were, by name; nothing, where the file has no channel for each path."""
        found: dict[str, set[str]] = {}
        for channel in self.channels.values():
            if receiver := channel.metadata.get("receiver"):
                found.setdefault(channel.topic, set()).add(receiver)
        return {topic: sorted(names) for topic, names in found.items()}

    def members(self) -> set[str]:
        """Return who took part, or might have."""
        came = () if self.outcome is None else self.outcome.participants
        return {*self.header.roster, *self.header.guests, *came}

    def unheard(self, *, start: TimeLike = 0, end: TimeLike | None = None) -> Iterator[Unheard]:
        """Yield what was sent in [start, end) and reached no receiver, in order of sending."""

        def unheard(record: Record) -> Unheard | None:
            at, _, sequence, path, payload, _ = record
            if payload is None or path.receiver:
                return None
            return Unheard(at, path.sender, sequence, path.topic, payload)

        return self._in_order(unheard, start, end)

    def losses(self, *, start: TimeLike = 0, end: TimeLike | None = None) -> Iterator[Loss]:
        """Yield what was lost on its way and would have arrived in [start, end), in order of arrival."""

        def loss(record: Record) -> Loss | None:
            at, sent, sequence, (topic, sender, receiver, copy), _, reason = record
            return None if reason is None else Loss(at, sent, sender, sequence, receiver, copy, topic, reason)

        return self._in_order(loss, start, end)

    def frame(self, *names: str) -> Any:
        """Return topics, or fields by their names, as a pandas DataFrame: a row for each message and receiver.

        Its columns are `sent`, `arrival`, `sender`, `receiver`, `sequence`, `copy` and `lost`, and the fields of the
        payloads; if it isn't of one topic alone, also `topic`, and the fields have their full names, ``pose.x``. Times
        are nanoseconds. It needs pandas: the extra `tables`.
        """
        from worldline.recording.tables import frame_of  # Here, since few need it, and it needs this module.

        return frame_of(self.tellings, names)

    def signals(self, *names: str, senders: Collection[str] = (), **span: int) -> list[RecordedSignal]:
        """Return the values of fields over time: a signal for each field that a name means, and each sender.

        `start` and `end` are the times, in nanoseconds, that they lie between.
        """
        return signals(self.tellings, names, senders=senders, **span)

    @property
    def tellings(self) -> Tellings:
        """What it tells, for those who read values out of it."""
        return Tellings(
            self.path,
            self._scan,
            self.channels,
            frozenset(self.topics()),
            frozenset(self.members()),
            is_complete(self),
            sendings=lambda: recorded_account(intact(self)).sendings,
            check=lambda: intact(self),
        )

    def counts(self) -> dict[str, Count]:
        """Count what is in the file, by topic."""
        return self._survey.contents.counts()

    def loss_counts(self) -> tuple[LossCount, ...]:
        """Return how much was lost, by receiver, topic and reason; if the run is complete, including buffers."""
        return counted_losses(self._survey.contents.losses) if self.outcome is None else self.outcome.losses

    def span(self) -> tuple[int, int] | None:
        """Return the earliest and the latest time in the file, None if it contains no message."""
        chunks = self._scan.chunks
        return (min(chunk.earliest for chunk in chunks), max(chunk.latest for chunk in chunks)) if chunks else None

    def _in_order(
        self, entry_of: Callable[[Record], _Entry | None], start: TimeLike, end: TimeLike | None
    ) -> Iterator[_Entry]:
        """Yield the entries of a span of time, in order. Only chunks that overlap in time are held at once."""
        begin, stop = as_time(start, "the start"), FOREVER + 1 if end is None else as_time(end, "the end")
        chunks = sorted(chunk for chunk in self._scan.chunks if chunk.latest >= begin and chunk.earliest < stop)
        pool: list[_Entry] = []
        channels, size = dict(self.channels), 0
        try:
            with self.path.open("rb") as file:
                for place, chunk in enumerate(chunks):
                    for record in records(self._scan, file, (chunk,), channels):
                        if begin <= record[0] < stop and (entry := entry_of(record)) is not None:
                            pool.append(entry)
                            size += len(entry[-1])  # The payload, or the reason of a loss.
                            if size > POOL_MAX:
                                raise self._too_much(entry[0])
                    pool.sort()
                    following = chunks[place + 1].earliest if place + 1 < len(chunks) else FOREVER + 1
                    ready = next((i for i, entry in enumerate(pool) if entry[0] >= following), len(pool))
                    yield from pool[:ready]
                    del pool[:ready]
                    size = sum(len(entry[-1]) for entry in pool)
        except Damaged as damage:
            raise self._altered(damage) from damage

    def _altered(self, damage: Damaged) -> ModelError:
        return ModelError(f"{self.path} was altered: {damage}", advice="record the run again")

    def _too_much(self, at: int) -> UsageError:
        return UsageError(
            f"{self.path} holds more than {POOL_MAX:,} bytes under way at once, or claims to",
            at=at,
            advice="ask for a shorter span of time, or for fewer topics",
        )

    @cached_property
    def channels(self) -> dict[int, Channel]:
        """All channels: from the index of a whole file; otherwise they must be looked for in its chunks."""
        return self._scan.index if self._scan.whole and self._scan.index else self._survey.channels

    def _repr_html_(self) -> str:
        """Show it in a notebook: what was run, how it ended, and what there is on its topics."""
        header, outcome, span = self.header, self.outcome, self.span()
        ended = "the end of the file is missing" if outcome is None or is_cut_off(self) else outcome.status
        facts: list[tuple[str, object]] = [("recording", self.path), ("seed", header.seed), ("run", ended)]
        facts += [] if span is None else [("times", f"{format_time(span[0])} to {format_time(span[1])}")]
        facts += [] if outcome is None or not outcome.digest else [("digest", outcome.digest)]
        facts.append(("members", ", ".join(sorted(self.members()))))
        counts = self.counts() if outcome is None else outcome.topics
        rows = ((topic, f"{each.published:,}", f"{each.arrivals:,}") for topic, each in counts.items())
        return facts_html(header.federation or "Recording", facts) + table_html(("topic", "sent", "received"), rows)

    # --- Whether it is what was written ---

    def verify(self) -> RecordingVerdict:
        """Read everything and say whether it is what was written, and whether it is complete."""
        survey = self._survey
        damage = self._scan.damage or survey.damage or self._located(self.damage_in_short())
        if damage is None and self._scan.whole:
            damage = self._contradiction()
        if damage is not None:
            return RecordingVerdict(Condition.ALTERED, damage)
        if self._scan.whole and self.outcome is not None:
            if self.outcome.status == "complete":
                failed = f", but {story(self.outcome)}" if self.outcome.cause else ""
                return RecordingVerdict(Condition.INTACT, f"the file matches its certificate{failed}")
            return RecordingVerdict(Condition.BROKEN_OFF, story(self.outcome), self.outcome.until)
        if not self._scan.is_original:
            return RecordingVerdict(Condition.CUT_OFF, "it was packed anew, so it doesn't show what is missing", 0)
        if survey.last_sent is None:
            return RecordingVerdict(Condition.CUT_OFF, "the file ends before its first whole chunk of messages", 0)
        until = survey.last_sent
        return RecordingVerdict(Condition.CUT_OFF, f"everything sent before {format_time(until)} is there", until)

    @cached_property
    def _survey(self) -> Survey:
        return Survey(self._scan)

    def _located(self, damage: str | None) -> str | None:
        """Say where a file is damaged all of whose chunks can be read."""
        if damage is None or not self._scan.whole or self.outcome is None or self._scan.outcome is None:
            return damage
        if self._is_certified():
            return f"{damage}; its messages match their certificate, so it is one of its indexes"
        return f"{damage}; its messages can be read, so it is its header, its outcome or what is said of a participant"

    def damage_in_short(self) -> str | None:
        """Say how the file is damaged, as far as that shows without unpacking it; None if nothing shows."""
        if self._scan.damage is not None or not self._scan.whole:
            return self._scan.damage
        if self.outcome is None or self._scan.outcome is None:
            return "the file ends without an outcome"
        try:
            self._scan.check_sums()
        except Damaged as damage:
            return str(damage)
        if self.outcome.status == "complete" and self.outcome.digest != _digest_of(self.outcome):
            return "the digest of the run isn't that of its participants"
        return None

    def _contradiction(self) -> str | None:
        """Say what in a whole file doesn't go with the rest of it, once all of it is unpacked."""
        if self._scan.index not in ({}, self._survey.channels):
            return "the index lists channels that the data doesn't have, or lacks some"
        return None if self._is_certified() else "the file doesn't match its certificate"

    def _is_certified(self) -> bool:
        """Whether the messages match their certificate, in the order in which they are read."""
        outcome = self._scan.outcome
        return outcome is not None and self._survey.contents.certificate(outcome) == outcome.get("certificate")


def story(outcome: RunFacts) -> str:
    """Tell how a run was broken off, or which property it doesn't have."""
    where = f"{outcome.participant}: " if outcome.participant else ""
    if outcome.at is not None:
        where = f"{outcome.participant or 'the run'} at {format_time(outcome.at)}: "
    until = "" if outcome.until is None else f"; everything sent before {format_time(outcome.until)} is there"
    return printable(f"{where}{outcome.cause}{until}")


def _digest_of(outcome: RunFacts) -> str | None:
    try:
        left = [
            (name, part.left, bytes.fromhex(part.digest or ""))
            for name, part in outcome.participants.items()
            if part.left is not None and part.digest != ""
        ]
    except ValueError:
        return None
    return run_digest(left).hex()


# What a recording tells of its run: whole, broken off or cut off.
#
# A file that was cut off, or whose run was, tells everything up to some time; what it holds beyond that isn't told.

# Tells an observer of a recorded run what was told then, in the order in which it happened, at any pace.
#
# So whatever looks on at a run can look on at its recording: a public LCM, an observer of a user's own.


def members_told(recording: Recording) -> list[str]:
    """Return those of whom `narrate` would tell, or refuse the file as that would."""
    return sorted(recorded_account(intact(recording)).stays)


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
