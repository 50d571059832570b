"""Finds the records of an MCAP file, as far as it goes: whole, cut off anywhere, or damaged.

It goes from record to record without unpacking chunks and doesn't need the index at the file's end, which a file that
was cut off doesn't have. So whole and cut files are read in the same way.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import BinaryIO, NamedTuple

import zstandard
from mcap.data_stream import ReadDataStream
from mcap.exceptions import McapError
from mcap.opcode import Opcode
from mcap.records import Channel, Chunk, DataEnd, Footer, Message, Metadata, Schema
from mcap.stream_reader import get_chunk_data_stream
from mcap.writer import MCAP0_MAGIC

from worldline.model.errors import UsageError
from worldline.recording.facts import HEADER_NAME, OUTCOME_NAME

_PREFIX = struct.Struct("<BQ")  # Opcode and length of every record.
_SPAN = struct.Struct("<QQ")  # The first fields of a chunk: earliest and latest log time.
_PRIVATE = 0x80  # Opcodes from here on are for anybody's own records.
_KNOWN = frozenset(int(opcode) for opcode in Opcode)
_MESSAGE = struct.Struct("<HIQQ")
# What the MCAP library and the decompressors raise over bytes that aren't what they seem.
_DAMAGE = (McapError, struct.error, ValueError, OverflowError, RuntimeError, MemoryError, zstandard.ZstdError)


class Damaged(Exception):  # noqa: N818 - says what was found, as the errors of `model` do.
    """The file isn't what was written; only for this room, which turns it into a verdict or an error."""


class Place(NamedTuple):
    """Where a chunk is, and the log times in it."""

    earliest: int
    latest: int
    offset: int
    length: int


class Scan:
    """The skeleton of a file. `whole` says that it ends as it should; `damage` why it can't be what was written."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.header: dict[str, str] = {}
        self.outcome: dict[str, str] | None = None
        self.chunks: list[Place] = []
        self.index: dict[int, Channel] = {}  # The channels that the end of the file repeats.
        self.whole = False
        self.damage: str | None = None
        self._data_end: tuple[int, int] | None = None  # Offset, and the checksum of all before it.
        self._footer: tuple[int, Footer] | None = None
        try:
            with path.open("rb") as file:
                self._size = file.seek(0, 2)
                self._scan(file)
        except FileNotFoundError as error:
            raise UsageError(f"there is no file {path}") from error
        except OSError as error:
            raise UsageError(f"{path} can't be read: {error.strerror or error}") from error

    def _scan(self, file: BinaryIO) -> None:
        offset = self._read_header(file)
        while offset < self._size:
            if self._footer is not None:
                break
            after = self._read_record(file, offset)
            if after is None:
                break
            offset = after
        if self._footer is not None and self.damage is None:
            file.seek(offset)
            self.whole = file.read() == MCAP0_MAGIC
        if not self.whole and self.damage is None and self._ends_like_a_whole_one(file):
            self.damage = "its end is there, but a record before it is damaged"

    def _read_header(self, file: BinaryIO) -> int:
        """Read the first two records, which say that this is a recording; return where the next one begins."""
        file.seek(0)
        magic = file.read(len(MCAP0_MAGIC))
        if not magic:
            raise UsageError(f"{self.path} is empty", advice="the recorder wrote nothing at all")
        if not MCAP0_MAGIC.startswith(magic):
            raise UsageError(f"{self.path} isn't an MCAP file")
        offset = len(MCAP0_MAGIC)
        for expected in (Opcode.HEADER, Opcode.METADATA):
            record = _record_at(file, offset, self._size)
            if record is None:
                raise UsageError(f"{self.path} is cut off within its header", advice="nothing can be read from it")
            opcode, length = record
            if opcode != expected:
                raise self._foreign()
            if opcode == Opcode.METADATA:
                try:
                    metadata = Metadata.read(_stream(file.read(length)))
                except _DAMAGE as error:
                    raise self._foreign() from error
                if metadata.name != HEADER_NAME:
                    raise self._foreign()
                self.header = metadata.metadata
            offset += _PREFIX.size + length
        return offset

    def _foreign(self) -> UsageError:
        return UsageError(f"{self.path} is an MCAP file, but not a recording that Worldline made")

    def _read_record(self, file: BinaryIO, offset: int) -> int | None:
        """Note what a record says; return where the next one begins, None if this one isn't there or is damaged."""
        record = _record_at(file, offset, self._size)
        if record is None:
            return None
        opcode, length = record
        if opcode not in _KNOWN and opcode < _PRIVATE:
            self.damage = f"there is no record of kind {opcode}, as at byte {offset:,}"
            return None
        try:
            if opcode == Opcode.CHUNK:
                earliest, latest = _SPAN.unpack(file.read(_SPAN.size))
                self.chunks.append(Place(earliest, latest, offset + _PREFIX.size, length))
            elif opcode == Opcode.METADATA:
                metadata = Metadata.read(_stream(file.read(length)))
                if metadata.name == OUTCOME_NAME:
                    self.outcome = metadata.metadata
            elif opcode == Opcode.CHANNEL:
                channel = Channel.read(_stream(file.read(length)))
                self.index[channel.id] = channel
            elif opcode == Opcode.DATA_END:
                self._data_end = (offset, DataEnd.read(_stream(file.read(length))).data_section_crc)
            elif opcode == Opcode.FOOTER:
                self._footer = (offset, Footer.read(_stream(file.read(length))))
        except _DAMAGE:
            self.damage = f"the record at byte {offset:,} can't be read"
            return None
        return offset + _PREFIX.size + length

    def _ends_like_a_whole_one(self, file: BinaryIO) -> bool:
        file.seek(-len(MCAP0_MAGIC), 2)
        return file.read() == MCAP0_MAGIC and self._size > 2 * len(MCAP0_MAGIC)

    def check_sums(self) -> None:
        """Raise if a byte of a whole file isn't what was written, wherever it is."""
        if self._data_end is None or self._footer is None:
            raise Damaged("its end lacks the checksums")
        data_end, data_sum = self._data_end
        at, footer = self._footer
        # The footer's sum covers the summary and the footer itself, up to the sum.
        end = at + _PREFIX.size + 16
        if not data_end < footer.summary_start <= at:
            raise Damaged("its end says that the index is where it can't be")
        with self.path.open("rb") as file:
            if _crc(file, 0, data_end) != data_sum:
                raise Damaged("the checksum of its data doesn't fit")
            if _crc(file, footer.summary_start, end) != footer.summary_crc:
                raise Damaged("the checksum of its index doesn't fit")

    def records(self, file: BinaryIO, chunk: Place) -> Iterator[Schema | Channel | Message]:
        """Yield the records in a chunk, unpacked and checked."""
        file.seek(chunk.offset)
        try:
            unpacked = Chunk.read(_stream(file.read(chunk.length)))
            stream, size = get_chunk_data_stream(unpacked, validate_crc=True)
            data = stream.read(size)
        except _DAMAGE as error:
            raise Damaged(f"the chunk at byte {chunk.offset:,} is damaged") from error
        offset = 0
        try:
            while offset < size:
                opcode, length = _PREFIX.unpack_from(data, offset)
                offset += _PREFIX.size
                body = data[offset : offset + length]
                offset += length
                if opcode == Opcode.MESSAGE:
                    channel, sequence, log_time, publish_time = _MESSAGE.unpack_from(body)
                    yield Message(channel, log_time, body[_MESSAGE.size :], publish_time, sequence)
                elif opcode == Opcode.CHANNEL:
                    yield Channel.read(_stream(body))
                elif opcode == Opcode.SCHEMA:
                    yield Schema.read(_stream(body))
        except _DAMAGE as error:
            raise Damaged(f"the chunk at byte {chunk.offset:,} holds something else than records") from error


def _record_at(file: BinaryIO, offset: int, size: int) -> tuple[int, int] | None:
    """Return kind and length of the record there, with the file standing behind them; None if it isn't all there."""
    file.seek(offset)
    prefix = file.read(_PREFIX.size)
    if len(prefix) < _PREFIX.size:
        return None
    opcode, length = _PREFIX.unpack(prefix)
    return (opcode, length) if offset + _PREFIX.size + length <= size else None


def _stream(data: bytes) -> ReadDataStream:
    return ReadDataStream(BytesIO(data))


def _crc(file: BinaryIO, start: int, end: int) -> int:
    file.seek(start)
    crc, left = 0, end - start
    while left > 0 and (data := file.read(min(left, 1 << 20))):
        crc = zlib.crc32(data, crc)
        left -= len(data)
    return crc
