"""Writes the MCAP format: messages in compressed chunks, and the index that makes the file quick to open.

The MCAP library has a writer too, and its classes write every record here but two. It builds each message from a dozen
small writes, though, which was four fifths of the cost of recording; packing messages and their index entries at once
makes the recorder two to three times as fast. And what has been written costs less memory here, since the index of a
finished chunk is kept as the bytes that it will be.

**Chunks** of 128 KiB: a stream loses in a crash the chunk that wasn't full yet, which speaks for small ones. From
64 KiB to 1 MiB compression gains almost nothing, so the size is chosen for that alone, and not smaller, because each
chunk adds an entry to the index, which stays in memory until the end. zstd at level 1 runs at over 200 MB/s and packs
to 35 % (JSON) or 72 % (floats) of the size; lz4 is twice as fast, to 57 % and 84 %; level 3 is half as fast and no
better. All give the same bytes in every run; another version of the library may not.

**Limits**: a reader must know how large a chunk can be before it unpacks one, or a small file could fill its memory.
So a chunk that was written here is packed only up to `CHUNK_MAX`. A larger one, with a message of tens of megabytes,
stands in the file as it is, and what it claims to hold is there to be seen.
"""

from __future__ import annotations

import struct
import zlib
from itertools import groupby
from typing import TYPE_CHECKING

import zstandard
from mcap.data_stream import RecordBuilder
from mcap.opcode import Opcode
from mcap.records import (
    Channel,
    Chunk,
    ChunkIndex,
    DataEnd,
    Footer,
    Header,
    McapRecord,
    Metadata,
    MetadataIndex,
    Schema,
    Statistics,
    SummaryOffset,
)
from mcap.writer import LIBRARY_IDENTIFIER, MCAP0_MAGIC

from worldline.recording.output import Output

if TYPE_CHECKING:
    import worldline.uncompiled as cython
else:
    try:
        import cython
    except ImportError:
        import worldline.uncompiled as cython

CHUNK_SIZE = 128 * 1024
CHUNK_SIZE_MAX = 2**24
MESSAGE_MAX = 2**30
SCHEMA_MAX = 2**20
CHUNK_MAX = 2**26
PLAIN_MAX = 2**31  # Of a chunk that isn't packed: its last message, in an envelope if need be, and what is before it.
CHANNELS_MAX = 2**16 - 1  # Their numbers have 16 bits, and we leave out 0.

_MESSAGE = struct.Struct("<BQHIQQ")  # Opcode, length; channel, sequence number, log time, publish time.
_ENTRY = struct.Struct("<QQ")  # Of a channel's index: log time, place in the chunk.
_MESSAGE_INDEX = struct.Struct("<BQHI")  # Opcode, length; channel, length of the entries.
_FOOTER_START = struct.Struct("<BQQQ")  # Of the footer, what its own checksum covers.
_LEVEL = 1
_NO_TIMES = 2**63 - 1, 0  # The first and last log time where there is none.

if not cython.compiled:  # Otherwise those of `chunks.pxd` do the same.

    def put_message(
        chunk: bytearray, channel: int, sequence: int, log_time: int, publish_time: int, data: bytes
    ) -> None:
        """Put the record of a message behind what is there."""
        length = _MESSAGE.size - 9 + len(data)  # It doesn't count what says which record it is, and itself.
        chunk += _MESSAGE.pack(Opcode.MESSAGE, length, channel, sequence, log_time, publish_time)
        chunk += data

    def put_entry(entries: bytearray, log_time: int, place: int) -> None:
        """Put an entry of a channel's index behind those that are there."""
        entries += _ENTRY.pack(log_time, place)


class OpenChunk:
    """The chunk in progress: its records, their first and last log time, and the entries of each channel's index."""

    def __init__(self) -> None:
        self.records = bytearray()
        self.earliest, self.latest = _NO_TIMES
        self.entries: dict[int, bytearray] = {}
        self.shown = 0  # How much of it is in the file already, behind the file's end.

    def add(self, channel: int, log_time: int, data: bytes, publish_time: int, sequence: int) -> None:
        entries = self.entries.get(channel)
        if entries is None:
            entries = self.entries[channel] = bytearray()
        place = len(self.records)
        put_message(self.records, channel, sequence, log_time, publish_time, data)
        put_entry(entries, log_time, place)  # Only now: there may be no room for a large message.
        if log_time < self.earliest:
            self.earliest = log_time
        if log_time > self.latest:
            self.latest = log_time


class ChunkedFile:
    """An MCAP file under construction. What is complete goes to the output at once, in whole records."""

    def __init__(self, output: Output, *, library: str, chunk_size: int = CHUNK_SIZE) -> None:
        self._output = output
        self._chunk_size = chunk_size
        self._compress = zstandard.ZstdCompressor(level=_LEVEL).compress
        self._offset = 0
        self._crc = 0
        self._schemas: list[Schema] = []
        self._channels: list[Channel] = []
        self._counts: dict[int, int] = {}  # Channel → messages.
        self._span: tuple[int, int] | None = None
        self._chunk_indexes: list[bytes] = []
        self._metadata_indexes: list[bytes] = []
        self._chunk = OpenChunk()
        self._put(MCAP0_MAGIC + _packed(Header("", f"{library}, {LIBRARY_IDENTIFIER}")))

    def add_metadata(self, name: str, texts: dict[str, str]) -> None:
        """Write named texts, behind all messages so far."""
        self._cut()
        record = _packed(Metadata(name, texts))
        self._metadata_indexes.append(_packed(MetadataIndex(self._offset, len(record), name)))
        self._put(record)

    def add_schema(self, name: str, encoding: str, data: bytes) -> int:
        schema = Schema(id=len(self._schemas) + 1, name=name, encoding=encoding, data=data)
        self._schemas.append(schema)
        self._chunk.records += _packed(schema)
        return schema.id

    def add_channel(self, topic: str, encoding: str, schema: int, metadata: dict[str, str]) -> int:
        channel = Channel(len(self._channels) + 1, topic, encoding, metadata, schema)
        self._channels.append(channel)
        self._chunk.records += _packed(channel)
        return channel.id

    def add_message(self, channel: int, log_time: int, data: bytes, publish_time: int, sequence: int) -> None:
        self._chunk.add(channel, log_time, data, publish_time, sequence)
        if len(self._chunk.records) > self._chunk_size:  # By content alone: equal runs are cut at the same places.
            self._cut()

    def show(self) -> None:
        """Let those see the chunk in progress who read the file as it is now, for instance after a crash."""
        chunk = self._chunk
        if self._output.has_tail and chunk.shown < len(chunk.records):
            self._output.show(bytes(chunk.records[chunk.shown :]))
            chunk.shown = len(chunk.records)

    def finish(self) -> None:
        """Write the index and the end of the file."""
        self._cut()
        self._put(_packed(DataEnd(self._crc)))
        start = self._offset
        groups = (
            *[(Opcode.SCHEMA, _packed(schema)) for schema in self._schemas],
            *[(Opcode.CHANNEL, _packed(channel)) for channel in self._channels],
            (Opcode.STATISTICS, _packed(self._statistics())),
            *[(Opcode.CHUNK_INDEX, index) for index in self._chunk_indexes],
            *[(Opcode.METADATA_INDEX, index) for index in self._metadata_indexes],
        )
        summary, offsets = bytearray(), bytearray()
        for opcode, group in groupby(groups, key=lambda item: item[0]):
            begin = len(summary)
            summary += b"".join([record for _, record in group])
            offsets += _packed(SummaryOffset(opcode, start + begin, len(summary) - begin))
        offsets_start = start + len(summary)
        summary += offsets
        covered = _FOOTER_START.pack(Opcode.FOOTER, 8 + 8 + 4, start, offsets_start)
        crc = zlib.crc32(covered, zlib.crc32(summary))
        self._put(bytes(summary) + _packed(Footer(start, offsets_start, crc)) + MCAP0_MAGIC)

    def _cut(self) -> None:
        """Write the chunk in progress, if there is anything in it, and the indexes of its messages."""
        done = self._chunk
        data = done.records
        if not data:
            return
        earliest, latest = done.earliest, done.latest
        if not done.entries:
            earliest = latest = 0
        compression = "zstd" if len(data) <= CHUNK_MAX else ""
        packed = self._compress(data) if compression else bytes(data)
        chunk = _packed(
            Chunk(
                compression=compression,
                data=packed,
                message_start_time=earliest,
                message_end_time=latest,
                uncompressed_crc=zlib.crc32(data),
                uncompressed_size=len(data),
            )
        )
        indexes, offsets = bytearray(), dict[int, int]()
        for channel, entries in done.entries.items():
            offsets[channel] = self._offset + len(chunk) + len(indexes)
            indexes += _MESSAGE_INDEX.pack(Opcode.MESSAGE_INDEX, 2 + 4 + len(entries), channel, len(entries))
            indexes += entries
            self._counts[channel] = self._counts.get(channel, 0) + len(entries) // _ENTRY.size
        if done.entries:
            self._span = (earliest, latest) if self._span is None else _hull(self._span, (earliest, latest))
        self._chunk_indexes.append(
            _packed(
                ChunkIndex(
                    message_start_time=earliest,
                    message_end_time=latest,
                    chunk_start_offset=self._offset,
                    chunk_length=len(chunk),
                    message_index_offsets=offsets,
                    message_index_length=len(indexes),
                    compression=compression,
                    compressed_size=len(packed),
                    uncompressed_size=len(data),
                )
            )
        )
        self._chunk = OpenChunk()
        self._put(chunk + indexes)

    def _put(self, data: bytes) -> None:
        self._crc = zlib.crc32(data, self._crc)
        self._offset += len(data)
        self._output.put(data)

    def _statistics(self) -> Statistics:
        earliest, latest = self._span or (0, 0)
        return Statistics(
            attachment_count=0,
            channel_count=len(self._channels),
            channel_message_counts=self._counts,
            chunk_count=len(self._chunk_indexes),
            message_count=sum(self._counts.values()),
            message_start_time=earliest,
            message_end_time=latest,
            metadata_count=len(self._metadata_indexes),
            schema_count=len(self._schemas),
        )


def _hull(one: tuple[int, int], other: tuple[int, int]) -> tuple[int, int]:
    return min(one[0], other[0]), max(one[1], other[1])


def _packed(record: McapRecord) -> bytes:
    builder = RecordBuilder()
    record.write(builder)
    return bytes(builder.end())  # type: ignore[no-untyped-call]
