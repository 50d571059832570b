"""The recorder: an observer that writes the run into an MCAP file.

The file's bytes follow from the run alone: messages are written in the order of `pending`, channels are registered as
that order needs them, and chunks are cut by size. So it doesn't matter when `passed` is called, or how often.

By the wall clock goes only what a crash leaves: about every half second, all that is final is put into the chunk in
progress, and that is shown behind the file's end (see `output`), where the chunk will take its place.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from importlib.metadata import version as version_of
from time import monotonic
from typing import Any, NamedTuple

from msgspec import json, structs

from worldline.history.account import Fate
from worldline.history.journal import run_digest
from worldline.model.errors import LossError, UsageError, WorldlineError
from worldline.model.plan import Plan
from worldline.model.time import FOREVER
from worldline.recording.chunks import CHANNELS_MAX, CHUNK_SIZE, CHUNK_SIZE_MAX, MESSAGE_MAX, SCHEMA_MAX, ChunkedFile
from worldline.recording.facts import (
    HEADER_NAME,
    LOST_CHANNEL,
    LOST_SCHEMA,
    LOST_SCHEMA_NAME,
    LOST_TOPIC,
    OUTCOME_NAME,
    Header,
    LostMessage,
    MemberFacts,
    Provenance,
    RunFacts,
    counted_losses,
    float_fingerprint,
    platform_name,
    python_name,
    to_metadata,
)
from worldline.recording.output import Output, RecordingTarget
from worldline.recording.pending import SEQUENCES, Contents, OrderingObserver, Publication
from worldline.recording.scan import ENVELOPE_SCHEMA, ENVELOPE_SCHEMA_NAME, SHARED_CHANNEL, RecordedPath, put_in

PATHS_MAX = 65_000
"""How many paths have a channel of their own; the rest of an MCAP file's channels is for the topics of all others."""

SHOW_EVERY_S = 0.5
"""How long what is final may be missing from a file."""

_LOOKING_SHARE = 0.1  # At most, of all time. Looking for what is final takes long only if very much is under way.
_encode = json.Encoder(order="deterministic").encode


class Schema(NamedTuple):
    """How tools are to interpret the payloads on a topic: an MCAP schema, in one of the encodings that MCAP knows."""

    name: str
    encoding: str
    data: bytes


# The schema, topic and metadata of channels that many paths share.
_ENVELOPES = Schema(ENVELOPE_SCHEMA_NAME, "jsonschema", ENVELOPE_SCHEMA), "", SHARED_CHANNEL
_LOSSES = Schema(LOST_SCHEMA_NAME, "jsonschema", LOST_SCHEMA), LOST_TOPIC, LOST_CHANNEL


class Recorder(OrderingObserver):
    """Records one run. A path must be new, unless `overwrite`; a file object stays open.

    `encodings` says how the payloads on a topic are encoded, ``{"pose": "json"}``, and `encoding` how those on all
    others are; none means plain bytes. `schemas` says, by topic, what they contain. `provenance` says what is run, and
    which code that is.
    """

    def __init__(
        self,
        target: RecordingTarget,
        plan: Plan,
        *,
        federation: str = "",
        encodings: Mapping[str, str] | None = None,
        encoding: str = "",
        schemas: Mapping[str, Schema] | None = None,
        provenance: Provenance | None = None,
        overwrite: bool = False,
        chunk_size: int = CHUNK_SIZE,
    ) -> None:
        if chunk_size > CHUNK_SIZE_MAX:
            raise UsageError(f"a chunk can't have {chunk_size:,} bytes", advice=f"use at most {CHUNK_SIZE_MAX:,}")
        for topic, schema in (schemas or {}).items():
            if len(schema.data) > SCHEMA_MAX:
                raise UsageError(f"the schema of {topic} is longer than {SCHEMA_MAX:,} bytes")
        header = to_metadata(
            Header(
                version=version_of("worldline"),
                python=python_name(),
                platform=platform_name(),
                byte_order=sys.byteorder,
                float_fingerprint=float_fingerprint(),
                federation=federation,
                seed=plan.seed,
                roster=tuple(sorted(plan.roster)),  # The order in which they are listed means nothing.
                guests=tuple(sorted(plan.guests)),
                end=plan.end,
                network=plan.network,
                draws=plan.draws,
                faults=tuple(map(str, plan.faults)),
                **structs.asdict(provenance or Provenance()),
            )
        )
        super().__init__(chunk_size)  # Less wouldn't fill a chunk, and nothing smaller reaches the disk.
        self._contents = Contents(header)
        self._encodings = dict(encodings or {})
        self._encoding = encoding
        self._schemas = dict(schemas or {})
        self._schema_numbers: dict[Schema, int] = {}
        self._channels: dict[tuple[str, str, str, int], int] = {}  # By `RecordedPath`.
        # By topic, for paths that have come too late for one of their own; that of losses by "".
        self._shared: dict[str, int] = {}
        self._parts: dict[str, MemberFacts] = {}
        self._end = FOREVER if plan.end is None else plan.end
        self._closed = False
        self._gap: int | None = None  # When the first message was sent that couldn't be written.
        self._shows_at = monotonic() + SHOW_EVERY_S
        self._output = target if isinstance(target, Output) else Output(target, overwrite=overwrite)
        try:
            self._file = ChunkedFile(self._output, library=f"worldline {header['version']}", chunk_size=chunk_size)
            self._file.add_metadata(HEADER_NAME, header)
        except LossError:
            self._output.close()
            raise

    # --- What an observer is told ---

    @property
    def begun(self) -> bool:
        """Whether any member has ever started."""
        return bool(self._parts)

    def began(self, who: str, at: int) -> None:
        self._parts[who] = MemberFacts(started=at)

    def ended(self, who: str, at: int, chain: bytes) -> None:
        self._parts[who] = MemberFacts(started=self._parts[who].started, left=at, digest=chain.hex())

    def passed(self, time: int) -> None:
        """Write what has become final, if it is worth it: cheap, however often it is called.

        Call it often: the file then holds everything that has been final for a second, whatever happens to this
        process.
        """
        if self._gap is not None or self._output.broken:
            return  # The caller was told, and will abandon this; nothing may follow what is missing.
        self._write(self._pending.advance(time))
        if self._output.has_tail and (now := monotonic()) >= self._shows_at:
            self._write(self._pending.take())
            self._file.show()
            after = monotonic()
            self._shows_at = after + max(SHOW_EVERY_S, (after - now) / _LOOKING_SHARE)

    # --- What its owner does ---

    def give_up(self) -> None:
        """Stop waiting for the recording's reader, if it is a pipe. May be called from a signal handler."""
        self._output.give_up()

    def close(
        self,
        *,
        dropped: Mapping[tuple[str, str, str], int] | None = None,
        end: int | None = None,
        failure: WorldlineError | None = None,
    ) -> None:
        """Finish the file: the run is over, and everything that was reported is final.

        Whatever isn't settled by then and would have arrived at `end` (by default the plan's) or later is still under
        way.

        `dropped` counts, by (receiver, topic, reason), what else wasn't received: dropped by buffers. It may include
        losses that are in the file; those are counted from the file. `failure` is a property that the run doesn't have.
        """
        if self._closed:
            raise UsageError("the recording is already closed")
        if self._gap is not None or self._output.broken:
            raise UsageError("the recording isn't complete: it failed earlier", advice="abandon it")
        self._write(self._pending.finish(self._end if end is None else end))
        left = [
            (name, part.left, bytes.fromhex(part.digest))
            for name, part in self._parts.items()
            if part.left is not None and part.digest
        ]
        facts: dict[str, Any] = {"status": "complete", "digest": run_digest(left).hex()}
        if failure is not None:
            facts |= {"cause": _in_utf8(failure.problem), "participant": failure.participant or "", "at": failure.at}
        self._finish({**(dropped or {}), **self._contents.losses}, **facts)

    def abandon(
        self, cause: str, *, participant: str | None = None, at: int | None = None, end: int | None = None
    ) -> None:
        """Finish the file of a run that was broken off: what is final is kept, and the file says who and why.

        With an `end`, everything that was reported is final, as in `close`: the caller knows that nothing else
        happened.

        Does nothing if the recorder is closed already, so it can be called wherever things may go wrong.
        """
        if self._closed:
            return
        if self._output.broken:  # What has reached the disk is readable; there's no more to do.
            self._closed = True
            self._output.close()
            return
        if self._gap is None:
            self._write(self._pending.take() if end is None else self._pending.finish(end))
        self._finish(
            self._contents.losses,
            status="broken off",
            cause=_in_utf8(cause),
            participant=participant or "",
            at=at,
            until=self._gap if self._gap is not None else self._pending.complete_until() if end is None else end,
        )

    # --- Writing ---

    def _write(self, publications: list[Publication]) -> None:
        """Write all records of each publication, or, where that fails, none of it and nothing after it."""
        for publication in publications:
            sent, sequence = publication.sent, publication.sequence % SEQUENCES
            fates = publication.fates()
            try:
                self._write_records(publication, sent, sequence, fates)
            except WorldlineError:
                self._gap = sent
                raise
            self._contents.add(sent, publication.sender, sequence, publication.topic, publication.payload, fates)

    def _write_records(self, publication: Publication, sent: int, sequence: int, fates: list[Fate]) -> None:
        sender, topic, payload = publication.sender, publication.topic, publication.payload
        if len(payload) > MESSAGE_MAX:
            raise UsageError(
                f"its message {sequence} on {topic} has {len(payload):,} bytes",
                participant=sender,
                at=sent,
                advice=f"a recording has room for {MESSAGE_MAX:,} in one message",
            )
        records: list[tuple[int, int, bytes]] = []  # All of them before any is written: to make a channel may fail.
        is_heard = False
        for arrival, receiver, copy, lost in fates:
            if lost is None:
                is_heard = True
                records.append(self._record(topic, sender, receiver, copy, arrival, payload))
            else:
                records.append((self._shared_channel(""), arrival, _lost(publication, receiver, copy, lost)))
        if not is_heard:
            records.insert(0, self._record(topic, sender, "", 0, sent, payload))
        for channel, at, data in records:
            self._file.add_message(channel, at, data, sent, sequence)

    def _record(
        self, topic: str, sender: str, receiver: str, copy: int, at: int, payload: bytes
    ) -> tuple[int, int, bytes]:
        """Return the record of a message: its channel, when it arrives, and its data."""
        channel = self._channels.get((topic, sender, receiver, copy))
        if channel is None:
            path = RecordedPath(topic, sender, receiver, copy)
            if len(self._channels) >= PATHS_MAX:
                return self._shared_channel(topic), at, put_in(path, payload)
            channel = self._channels[path] = self._new_channel(path)
        return channel, at, payload

    def _new_channel(self, path: RecordedPath) -> int:
        """Make the channel of a path. A link's duplicates have one of their own, or they couldn't be told apart."""
        topic, sender, receiver, copy = path
        metadata = {"sender": sender, "receiver": receiver}
        if copy:
            metadata["copy"] = str(copy)
        return self._register(topic, self._encodings.get(topic, self._encoding), self._schema(topic), metadata)

    def _shared_channel(self, topic: str) -> int:
        """Return the channel of all paths of a topic that have none of their own; or of losses, without a topic."""
        channel = self._shared.get(topic)
        if channel is None:
            schema, name, metadata = _ENVELOPES if topic else _LOSSES
            number = self._schema_number(schema)
            channel = self._shared[topic] = self._register(name or topic, "json", number, metadata)
        return channel

    def _schema(self, topic: str) -> int:
        """Return the number of a topic's schema, 0 if it has none. Topics that have the same share it."""
        schema = self._schemas.get(topic)
        return 0 if schema is None else self._schema_number(schema)

    def _schema_number(self, schema: Schema) -> int:
        number = self._schema_numbers.get(schema)
        if number is None:
            number = self._schema_numbers[schema] = self._file.add_schema(*schema)
        return number

    def _register(self, topic: str, encoding: str, schema: int, metadata: dict[str, str]) -> int:
        if len(self._channels) + len(self._shared) >= CHANNELS_MAX:
            raise UsageError(
                f"the run has more topics than an MCAP file can hold besides {PATHS_MAX:,} paths",
                advice="use fewer topics, or run without a recording",
                topics=len(self._shared),
            )
        return self._file.add_channel(topic, encoding, schema, metadata)

    def _finish(self, losses: Mapping[tuple[str, str, str], int], **facts: Any) -> None:
        """Finish the file with how the run has ended; names are sorted when that is encoded."""
        self._closed = True
        counts = self._contents.counts()
        texts = to_metadata(RunFacts(participants=self._parts, topics=counts, losses=counted_losses(losses), **facts))
        texts["certificate"] = self._contents.certificate(texts)
        try:
            self._file.add_metadata(OUTCOME_NAME, texts)
            self._file.finish()
        finally:
            self._output.close()


def _in_utf8(cause: str) -> str:
    """Return what fits into the file: it may quote anything."""
    return cause.encode(errors="replace").decode()


def _lost(publication: Publication, receiver: str, copy: int, reason: str) -> bytes:
    return _encode(
        LostMessage(
            topic=publication.topic,
            sender=publication.sender,
            receiver=receiver,
            sequence=publication.sequence,
            reason=reason,
            copy=copy,
        )
    )
