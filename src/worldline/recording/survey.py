"""Reads a file from its first message to its last: puts publications together again, counts and hashes them.

Each publication is written as several records, one after the other: one for each receiver that it reached or didn't.
What comes out here is what the recorder was told, so the certificate is computed as the recorder computed it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

import msgspec
from mcap.records import Channel, Message

from worldline.history.account import Fate
from worldline.recording.certificate import SEQUENCES, Certificate
from worldline.recording.facts import LOST_CHANNEL, Count, LossCount, Lost
from worldline.recording.scan import Damaged, Scan

_COPY = re.compile("[0-9]{1,18}")
_lost_decoder = msgspec.json.Decoder(Lost)


class Path(NamedTuple):
    """What a channel's messages have in common. Receiver "": they reached nobody."""

    topic: str
    sender: str
    receiver: str
    copy: int


class Rebuilt(NamedTuple):
    """A publication as it is found in a file; the payload is missing if the file is cut off just before it."""

    sent: int
    sender: str
    sequence: int
    topic: str
    payload: bytes | None
    fates: list[Fate]


class Survey:
    """What one walk over all records finds, as far as they can be read."""

    def __init__(self, scan: Scan) -> None:
        self.channels: dict[int, Channel] = {}
        self.certificate = Certificate(scan.header)
        self.last_sent: int | None = None
        self.damage: str | None = None
        self._counts: dict[str, list[int]] = {}
        self._losses: dict[tuple[str, str, str], int] = {}
        try:
            for rebuilt in _publications(self._messages(scan)):
                self.last_sent = rebuilt.sent
                if rebuilt.payload is not None:
                    self._add(rebuilt, rebuilt.payload)
                elif scan.whole:
                    self.damage = f"message {rebuilt.sequence} of {rebuilt.sender} isn't there, only losses of it"
        except Damaged as damage:
            self.damage = str(damage)

    def counts(self) -> dict[str, Count]:
        return {
            topic: Count(published=published, arrivals=arrivals, bytes=size)
            for topic, (published, arrivals, size) in sorted(self._counts.items())
        }

    def losses(self) -> tuple[LossCount, ...]:
        return tuple(sorted(LossCount(*key, count) for key, count in self._losses.items()))

    def _add(self, rebuilt: Rebuilt, payload: bytes) -> None:
        sent, sender, sequence, topic, _, fates = rebuilt
        self.certificate.add(sent, sender, sequence, topic, payload, fates)
        count = self._counts.setdefault(topic, [0, 0, 0])
        count[0] += 1
        count[2] += len(payload)
        for _, receiver, _, lost in fates:
            if lost is None:
                count[1] += 1
            else:
                self._losses[receiver, topic, lost] = self._losses.get((receiver, topic, lost), 0) + 1

    def _messages(self, scan: Scan) -> Iterator[tuple[Channel, Message]]:
        """Yield every message with its channel, in the order of the file, and collect the channels."""
        with scan.path.open("rb") as file:
            for chunk in scan.chunks:
                for record in scan.records(file, chunk):
                    if isinstance(record, Channel):
                        self.channels[record.id] = record
                    elif isinstance(record, Message):
                        channel = self.channels.get(record.channel_id)
                        if channel is None:
                            raise Damaged(f"a message is on channel {record.channel_id}, which there isn't")
                        yield channel, record


def path_of(channel: Channel) -> Path | None:
    """Return the path that a channel is for, None if it holds losses or isn't ours."""
    metadata = channel.metadata
    copy = metadata.get("copy", "0")
    if "sender" not in metadata or "receiver" not in metadata or not _COPY.fullmatch(copy):
        return None
    return Path(channel.topic, metadata["sender"], metadata["receiver"], int(copy))


def lost_of(message: Message) -> Lost:
    """Return what a record on the topic of losses says."""
    try:
        lost = _lost_decoder.decode(message.data)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise Damaged(f"a loss can't be read: {error}") from error
    if lost.sequence % SEQUENCES != message.sequence:
        raise Damaged(f"the loss of message {lost.sequence} of {lost.sender} is numbered {message.sequence}")
    return lost


def _publications(messages: Iterator[tuple[Channel, Message]]) -> Iterator[Rebuilt]:
    """Put the records of each publication together; they follow each other in the file."""
    paths: dict[int, Path | None] = {}
    current: Rebuilt | None = None
    for channel, message in messages:
        if channel.id not in paths:
            paths[channel.id] = path_of(channel)
        found = _rebuilt(channel, paths[channel.id], message)
        if current is None or current[:4] != found[:4]:
            if current is not None:
                yield current
            current = found
            continue
        if current.payload is None:
            current = current._replace(payload=found.payload)
        elif found.payload is not None and found.payload != current.payload:
            raise Damaged(f"message {found.sequence} of {found.sender} has two payloads")
        current.fates.extend(found.fates)
    if current is not None:
        yield current


def _rebuilt(channel: Channel, path: Path | None, message: Message) -> Rebuilt:
    """Return what a single record says of its publication."""
    sent, sequence, at = message.publish_time, message.sequence, message.log_time
    if path is not None:
        fates: list[Fate] = [(at, path.receiver, path.copy, None)] if path.receiver else []
        return Rebuilt(sent, path.sender, sequence, path.topic, message.data, fates)
    if channel.metadata != LOST_CHANNEL:
        raise Damaged(f"channel {channel.id} on {channel.topic} is neither a path's nor that of losses")
    lost = lost_of(message)
    return Rebuilt(sent, lost.sender, sequence, lost.topic, None, [(at, lost.receiver, lost.copy, lost.reason)])
