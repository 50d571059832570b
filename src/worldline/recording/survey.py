"""Reads a file from its first message to its last, and counts and hashes what is in it.

What is read is what the recorder was told, so the certificate is computed as the recorder computed it.
"""

from __future__ import annotations

from mcap.records import Channel

from worldline.history.account import Sending
from worldline.recording.certificate import Certificate
from worldline.recording.facts import Count, LossCount
from worldline.recording.scan import Damaged, Scan
from worldline.recording.walk import sendings


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
            for sending in sendings(scan, channels=self.channels):
                self.last_sent, sender, _, payload, _, sequence = sending
                if payload is not None:
                    self._add(sending, payload)
                elif scan.whole:
                    self.damage = f"message {sequence} of {sender} isn't there, only losses of it"
        except Damaged as damage:
            self.damage = str(damage)

    def counts(self) -> dict[str, Count]:
        return {
            topic: Count(published=published, arrivals=arrivals, bytes=size)
            for topic, (published, arrivals, size) in sorted(self._counts.items())
        }

    def losses(self) -> tuple[LossCount, ...]:
        return tuple(sorted(LossCount(*key, count) for key, count in self._losses.items()))

    def _add(self, sending: Sending, payload: bytes) -> None:
        sent, sender, topic, _, fates, sequence = sending
        self.certificate.add(sent, sender, sequence, topic, payload, fates)
        count = self._counts.setdefault(topic, [0, 0, 0])
        count[0] += 1
        count[2] += len(payload)
        for _, receiver, _, lost in fates:
            if lost is None:
                count[1] += 1
            else:
                self._losses[receiver, topic, lost] = self._losses.get((receiver, topic, lost), 0) + 1
