"""The recorder: a witness that writes the run into an MCAP file.

The file's bytes follow from the run alone: messages are written in the order of `pending`, channels are registered as
that order needs them, and chunks are cut by size. So it doesn't matter when `advance` is called, or how often.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import version as version_of
from os import PathLike
from pathlib import Path
from typing import BinaryIO, TypedDict

from msgspec import json

from worldline.lock.journal import run_digest
from worldline.model.errors import LossError, UsageError, WorldlineError
from worldline.model.plan import Plan
from worldline.recording.certificate import SEQUENCES, Certificate
from worldline.recording.chunks import CHANNELS_MAX, CHUNK_SIZE, ChunkedFile
from worldline.recording.facts import (
    HEADER_NAME,
    LOST_CHANNEL,
    LOST_SCHEMA,
    LOST_SCHEMA_NAME,
    LOST_TOPIC,
    OUTCOME_NAME,
    Count,
    Header,
    LossCount,
    Lost,
    Outcome,
    Part,
    to_metadata,
)
from worldline.recording.fingerprint import byte_order, float_fingerprint, platform_name, python_name
from worldline.recording.pending import Fate, Pending, Publication

_encode = json.Encoder(order="deterministic").encode


class Recorder:
    """Records one run. A path that it is given must be new, unless `overwrite`; a file that it is given stays open.

    `encodings` says how the payloads on a topic are to be read, ``{"pose": "json"}``, and `encoding` how those on
    all others; nothing means plain bytes.
    """

    def __init__(
        self,
        target: str | PathLike[str] | BinaryIO,
        plan: Plan,
        *,
        federation: str = "",
        version: str | None = None,
        encodings: Mapping[str, str] | None = None,
        encoding: str = "",
        overwrite: bool = False,
        chunk_size: int = CHUNK_SIZE,
    ) -> None:
        header = to_metadata(
            Header(
                version=version_of("worldline") if version is None else version,
                python=python_name(),
                platform=platform_name(),
                byte_order=byte_order(),
                float_fingerprint=float_fingerprint(),
                federation=federation,
                seed=plan.seed,
                roster=tuple(sorted(plan.roster)),  # The order in which they are listed means nothing.
                guests=tuple(sorted(plan.guests)),
                end=plan.end,
                network=plan.network,
            )
        )
        self._pending = Pending(chunk_size)  # Less wouldn't fill a chunk, and nothing smaller reaches the disk.
        self._certificate = Certificate(header)
        self._encodings = dict(encodings or {})
        self._encoding = encoding
        self._channels: dict[tuple[str, str, str, int], int] = {}
        self._lost_channel = 0
        self._parts: dict[str, Part] = {}
        self._counts: dict[str, list[int]] = {}  # Topic → published, arrivals, bytes.
        self._losses: dict[tuple[str, str, str], int] = {}
        self._closed = False
        self._gap: int | None = None  # When the first message was sent that couldn't be written.
        self._output = _Output(target, overwrite=overwrite)
        try:
            self._file = ChunkedFile(
                self._output.write, library=f"worldline {header['version']}", chunk_size=chunk_size
            )
            self._file.add_metadata(HEADER_NAME, header)
        except LossError:
            self._output.close()
            raise

    # --- What a witness is told ---

    @property
    def begun(self) -> bool:
        """Whether anybody has ever started."""
        return bool(self._parts)

    def started(self, name: str, at: int) -> None:
        self._parts[name] = Part(started=at)

    def published(self, sender: str, sequence: int, topic: str, sent: int, payload: bytes, expiry: int) -> None:
        self._pending.published(sender, sequence, topic, sent, payload, expiry)

    def arrives(self, sender: str, sequence: int, receiver: str, arrival: int, copy: int, lost: str | None) -> None:
        self._pending.arrives(sender, sequence, receiver, arrival, copy, lost)

    def lasts(self, sender: str, sequence: int, expiry: int) -> None:
        self._pending.lasts(sender, sequence, expiry)

    def closed(self, receiver: str, topic: str, until: int) -> None:
        self._pending.closed(receiver, topic, until)

    def left(self, name: str, at: int, digest: bytes) -> None:
        self._parts[name] = Part(started=self._parts[name].started, left=at, digest=digest.hex())

    # --- What its owner does ---

    def advance(self, floor: int) -> None:
        """Learn that nobody acts before the floor any more. Cheap: what is final is written when it's worth it."""
        for publication in self._pending.advance(floor):
            self._write(publication)

    def close(self, *, dropped: Mapping[tuple[str, str, str], int] | None = None) -> None:
        """Finish the file: the run is over, and everything that was told is final.

        `dropped` counts, by (receiver, topic, reason), what else wasn't received: dropped by buffers. Losses that
        are in the file may be among it; they are counted from the file.
        """
        if self._closed:
            raise UsageError("the recording is closed already")
        if self._gap is not None or self._output.broken:
            raise UsageError("the recording isn't complete, it failed before", advice="abandon it")
        for publication in self._pending.finish():
            self._write(publication)
        left = [
            (name, part.left, bytes.fromhex(part.digest))
            for name, part in self._parts.items()
            if part.left is not None and part.digest is not None
        ]
        losses = {**(dropped or {}), **self._losses}
        self._finish(Outcome(status="complete", digest=run_digest(left).hex(), **self._counted(losses)))

    def abandon(self, cause: str, *, participant: str | None = None, at: int | None = None) -> None:
        """Finish the file of a run that was broken off: what is final is kept, and the file says who and why.

        Does nothing if the recorder is closed already, so that it can stand wherever things may go wrong.
        """
        if self._closed:
            return
        if self._output.broken:  # What has reached the disk is readable to its last whole chunk; there's no more to do.
            self._closed = True
            self._output.close()
            return
        if self._gap is None:
            for publication in self._pending.take():
                self._write(publication)
        self._finish(
            Outcome(
                status="broken off",
                cause=cause.encode(errors="replace").decode(),  # It may quote anything, and must fit into UTF-8.
                participant=participant or "",
                at=at,
                until=self._pending.complete_until() if self._gap is None else self._gap,
                **self._counted(self._losses),
            )
        )

    # --- Writing ---

    def _write(self, publication: Publication) -> None:
        """Write all records of a publication, or, if that fails, none of it and nothing after it."""
        sender, topic, sent, payload = publication.sender, publication.topic, publication.sent, publication.payload
        fates = publication.fates()
        sequence = publication.sequence % SEQUENCES
        try:
            records = [
                (self._channel(topic, sender, receiver, copy), arrival, payload)
                if lost is None
                else (self._channel_of_losses(), arrival, _lost(publication, receiver, copy, lost))
                for arrival, receiver, copy, lost in fates
            ]
            reached = sum(lost is None for _, _, _, lost in fates)
            if not reached:
                records.insert(0, (self._channel(topic, sender, "", 0), sent, payload))
            self._file.add_messages(records, sent, sequence)
        except WorldlineError:
            self._gap = sent
            raise
        self._certificate.add(sent, sender, sequence, topic, payload, fates)
        self._count(topic, len(payload), reached, fates)

    def _count(self, topic: str, size: int, reached: int, fates: list[Fate]) -> None:
        counts = self._counts.setdefault(topic, [0, 0, 0])
        counts[0] += 1
        counts[1] += reached
        counts[2] += size
        if reached < len(fates):
            for _, receiver, _, lost in fates:
                if lost is not None:
                    self._losses[receiver, topic, lost] = self._losses.get((receiver, topic, lost), 0) + 1

    def _channel(self, topic: str, sender: str, receiver: str, copy: int) -> int:
        """Return the channel of a path. A link's duplicates have one of their own, or nobody could tell them apart."""
        path = (topic, sender, receiver, copy)
        channel = self._channels.get(path)
        if channel is None:
            metadata = {"sender": sender, "receiver": receiver}
            if copy:
                metadata["copy"] = str(copy)
            channel = self._register(topic, self._encodings.get(topic, self._encoding), 0, metadata)
            self._channels[path] = channel
        return channel

    def _channel_of_losses(self) -> int:
        if not self._lost_channel:
            schema = self._file.add_schema(LOST_SCHEMA_NAME, "jsonschema", LOST_SCHEMA)
            self._lost_channel = self._register(LOST_TOPIC, "json", schema, LOST_CHANNEL)
        return self._lost_channel

    def _register(self, topic: str, encoding: str, schema: int, metadata: dict[str, str]) -> int:
        if len(self._channels) + bool(self._lost_channel) >= CHANNELS_MAX:
            raise UsageError(
                f"the run has more than {CHANNELS_MAX:,} paths from a sender to a receiver on a topic,"
                " and an MCAP file can't hold more",
                advice="use fewer topics, or run without a recording",
                paths=CHANNELS_MAX,
            )
        return self._file.add_channel(topic, encoding, schema, metadata)

    def _counted(self, losses: Mapping[tuple[str, str, str], int]) -> _Counted:
        """Return what all outcomes tell. Names are sorted when it is encoded."""
        return {
            "participants": self._parts,
            "topics": {
                topic: Count(published=published, arrivals=arrivals, bytes=size)
                for topic, (published, arrivals, size) in self._counts.items()
            },
            "losses": tuple(sorted(LossCount(*key, count) for key, count in losses.items() if count)),
        }

    def _finish(self, outcome: Outcome) -> None:
        self._closed = True
        texts = to_metadata(outcome)
        texts["certificate"] = self._certificate.seal(texts)
        try:
            self._file.add_metadata(OUTCOME_NAME, texts)
            self._file.finish()
        finally:
            self._output.close()


class _Counted(TypedDict):
    participants: dict[str, Part]
    topics: dict[str, Count]
    losses: tuple[LossCount, ...]


def _lost(publication: Publication, receiver: str, copy: int, reason: str) -> bytes:
    return _encode(
        Lost(
            topic=publication.topic,
            sender=publication.sender,
            receiver=receiver,
            sequence=publication.sequence,
            reason=reason,
            copy=copy,
        )
    )


class _Output:
    """Where the bytes go: each write, a whole chunk for instance, is handed to the operating system at once."""

    def __init__(self, target: str | PathLike[str] | BinaryIO, *, overwrite: bool) -> None:
        self._owned = isinstance(target, str | PathLike)
        self.broken = False
        if isinstance(target, str | PathLike):
            self._name = str(target)
            self._file: BinaryIO = _create(Path(target), overwrite=overwrite)
        else:
            self._name = str(getattr(target, "name", "file"))
            self._file = target

    def write(self, data: bytes) -> None:
        try:
            self._file.write(data)
            self._file.flush()
        except OSError as error:
            self.broken = True
            raise LossError(
                f"the recording {self._name} can't be written: {error.strerror or error}",
                advice="what was written before stays readable",
            ) from error

    def close(self) -> None:
        if self._owned:
            self._file.close()


def _create(path: Path, *, overwrite: bool) -> BinaryIO:
    if not path.parent.is_dir():
        raise UsageError(f"{path} can't be recorded: there is no folder {path.parent}", advice="make it first")
    try:
        if overwrite:
            path.unlink(missing_ok=True)  # Not emptied: whoever still reads the old one keeps it.
        return path.open("xb")
    except FileExistsError as error:
        raise UsageError(f"there is a file {path} already", advice="remove it, or choose another name") from error
    except OSError as error:
        raise UsageError(f"{path} can't be recorded: {error.strerror or error}") from error
