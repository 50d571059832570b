"""Finds the records of an MCAP file, as far as it goes: whole, cut off anywhere, or damaged.

It goes from record to record without unpacking chunks and doesn't need the index at the file's end, which a file that
was cut off doesn't have. So whole and cut files are read in the same way. Records that stand in no chunk, as in the
tail of a file that was cut off, are taken together as if they were in one.

Another tool may have packed a recording anew: in other chunks, without some of the sums and indexes that MCAP leaves to
the writer, and in another order, such as that of arrivals. It is still the same recording, if its certificate says so.
What a recorder has written itself `is_original`: its order and its sums can be relied on before all of it is read.

Nothing that the file says is believed before it has been held against a limit: a small file can't fill the memory of
its reader. What is read at once is at most `CHUNK_MAX`, packed or unpacked; what stands in the file as it is,
and so is no less in the file than in memory, `PLAIN_MAX`; what is kept, `KEPT_MAX`.
"""

from __future__ import annotations

import stat
import struct
import zlib
from io import BytesIO
from pathlib import Path
from typing import BinaryIO, NamedTuple

import lz4.frame  # type: ignore[import-untyped]
import msgspec
import zstandard
from mcap.data_stream import ReadDataStream
from mcap.exceptions import McapError
from mcap.opcode import Opcode
from mcap.records import Channel, Chunk, DataEnd, Footer, Header, Metadata, Schema
from mcap.writer import MCAP0_MAGIC
from msgspec import UNSET, Raw, Struct, UnsetType

from worldline.files.loading import command_for
from worldline.model.errors import UsageError, shown
from worldline.model.text import printable
from worldline.model.time import FOREVER, TIME_MAX, format_time
from worldline.recording.chunks import CHUNK_MAX, CHUNK_SIZE, PLAIN_MAX
from worldline.recording.facts import HEADER_NAME, OUTCOME_NAME

KEPT_MAX = 2**28

_PREFIX = struct.Struct("<BQ")  # Opcode and length of every record.
_SPAN = struct.Struct("<QQ")  # The first fields of a chunk: earliest and latest log time.
_CHUNK_HEAD = struct.Struct("<QQQII")  # Its span, size and checksum, and how long the name of its packing is.
_PRIVATE = 0x80  # Opcodes from here on are for its users' own records.
_KNOWN = frozenset(int(opcode) for opcode in Opcode)
_MESSAGE = struct.Struct("<HIQQ")
_LOOSE = (Opcode.SCHEMA, Opcode.CHANNEL, Opcode.MESSAGE)
_CHUNK_HEAD_MAX = 2**16  # What a chunk says of itself, and what packing adds in the worst case.
# What the MCAP library and the decompressors raise over bytes that aren't what they seem.
DAMAGE = (McapError, struct.error, ValueError, OverflowError, RuntimeError, MemoryError, zstandard.ZstdError)


class Damaged(Exception):  # noqa: N818 - says what was found, as the errors of `model` do.
    """The file isn't what was written; only for this room, which turns it into a verdict or an error.

    What it quotes from the file is another's text.
    """

    def __init__(self, problem: str) -> None:
        super().__init__(printable(problem))


class Place(NamedTuple):
    """Where a chunk is, and the log times in it. Records that stand in no chunk are `loose`."""

    earliest: int
    latest: int
    offset: int
    length: int
    loose: bool = False


def header_of(path: Path) -> dict[str, str] | None:
    """Return what a recording says of itself at its start, however it goes on; None: the file isn't a recording."""
    try:
        return Scan(path, header_only=True).header
    except UsageError:
        return None


class Scan:
    """The skeleton of a file. `whole` says that it ends as it should; `damage` why it can't be what was written.

    `is_reordered` says that messages stand in another order than they were recorded in: for who finds that out.
    """

    def __init__(self, path: Path, *, header_only: bool = False) -> None:
        self.path = path
        self.header: dict[str, str] = {}
        self.outcome: dict[str, str] | None = None
        self.chunks: list[Place] = []
        self.index: dict[int, Channel] = {}  # The channels that the end of the file repeats.
        self.schemas: dict[int, Schema] = {}  # Those that the end repeats, or that were found on the way.
        self.whole = False
        self.is_reordered = False
        self.damage: str | None = None
        self._is_ours = False  # Whether it begins as recorders let it begin.
        self._kept = 0  # Bytes of the file that stay in memory.
        self._data_end: tuple[int, int] | None = None  # Offset, and the checksum of all before it.
        self._footer: tuple[int, Footer] | None = None
        try:
            if path.is_dir():
                raise UsageError(f"{path} is a directory", advice="name a recording in it")
            if not stat.S_ISREG(path.stat().st_mode):
                raise UsageError(f"{path} can't be read: it isn't a plain file")
            with path.open("rb") as file:
                self._size = file.seek(0, 2)
                self._scan(file, self._read_start(file), header_only=header_only)
                if not self.header:
                    raise self._foreign()
        except FileNotFoundError as error:
            raise UsageError(f"there is no file {path}") from error
        except OSError as error:
            raise UsageError(f"{path} can't be read: {error.strerror or error}") from error

    @property
    def is_original(self) -> bool:
        """Whether it is as a recorder has written it, as far as it says so itself."""
        return self._is_ours and (not self.whole or (self._data_end is not None and self._data_end[1] != 0))

    def _scan(self, file: BinaryIO, offset: int, *, header_only: bool) -> None:
        start = offset
        while offset < self._size and self._footer is None and not (header_only and self.header):
            after = self._read_record(file, offset)
            if after is None:
                break
            self._is_ours = self._is_ours and (offset > start or bool(self.header))
            offset = after
        if header_only:
            return
        if self._footer is not None and self.damage is None:
            file.seek(offset)
            self.whole = file.read(len(MCAP0_MAGIC) + 1) == MCAP0_MAGIC
        if not self.whole and self.damage is None and self._ends_like_a_whole_one(file):
            self.damage = "its end is there, but a record before it is damaged"

    def _read_start(self, file: BinaryIO) -> int:
        """Read what says that this is an MCAP file, and by whom; return where the next record begins."""
        file.seek(0)
        magic = file.read(len(MCAP0_MAGIC))
        if not magic:
            raise UsageError(f"{self.path} is empty, and no recording")
        if not MCAP0_MAGIC.startswith(magic):
            advice = command_for(self.path) if self.path.suffix != ".mcap" else None
            raise UsageError(f"{self.path} isn't an MCAP file", advice=advice or "as recordings are")
        offset = len(MCAP0_MAGIC)
        record = _record_at(file, offset, self._size)
        if record is None:
            raise self._headless()
        opcode, length = record
        if opcode != Opcode.HEADER:
            raise self._foreign()
        try:
            self._is_ours = Header.read(self._kept_record(file, length)).library.startswith("worldline ")
        except (Damaged, *DAMAGE) as error:
            raise self._foreign() from error
        after = offset + _PREFIX.size + length
        if _record_at(file, after, self._size) is None:
            raise self._headless()
        return after

    def _headless(self) -> UsageError:
        return UsageError(f"{self.path} is cut off within its header", advice="nothing can be read from it")

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
            elif opcode in _LOOSE and self._data_end is None:
                self._note_loose(file, opcode, offset, length)
            elif opcode == Opcode.METADATA:
                metadata = Metadata.read(self._kept_record(file, length))
                if metadata.name == OUTCOME_NAME:
                    self.outcome = metadata.metadata
                elif metadata.name == HEADER_NAME and not self.header:
                    self.header = metadata.metadata
            elif opcode == Opcode.CHANNEL:
                channel = Channel.read(self._kept_record(file, length))
                self.index[channel.id] = channel
            elif opcode == Opcode.SCHEMA:
                schema = Schema.read(self._kept_record(file, length))
                self.schemas[schema.id] = schema
            elif opcode == Opcode.DATA_END:
                self._data_end = (offset, DataEnd.read(self._kept_record(file, length)).data_section_crc)
            elif opcode == Opcode.FOOTER:
                self._footer = (offset, Footer.read(self._kept_record(file, length)))
        except Damaged as damage:
            self.damage = f"the record at byte {offset:,} {damage}"
            return None
        except DAMAGE:
            self.damage = f"the record at byte {offset:,} can't be read"
            return None
        return offset + _PREFIX.size + length

    def _note_loose(self, file: BinaryIO, opcode: int, offset: int, length: int) -> None:
        """Note a record that stands in no chunk, with those before it if they aren't too many already."""
        if length > PLAIN_MAX:
            raise Damaged(f"claims {length:,} bytes")
        earliest, latest = FOREVER, 0
        if opcode == Opcode.MESSAGE:
            _, _, earliest, _ = _MESSAGE.unpack(file.read(_MESSAGE.size))
            latest = earliest
        last = self.chunks[-1] if self.chunks else None
        if last is not None and last.loose and last.offset + last.length == offset and last.length < CHUNK_SIZE:
            earliest, latest = min(earliest, last.earliest), max(latest, last.latest)
            self.chunks[-1] = Place(earliest, latest, last.offset, last.length + _PREFIX.size + length, loose=True)
        else:
            self.chunks.append(Place(earliest, latest, offset, _PREFIX.size + length, loose=True))

    def _kept_record(self, file: BinaryIO, length: int) -> ReadDataStream:
        self._kept += length
        if length > CHUNK_MAX or self._kept > KEPT_MAX:
            raise Damaged(f"claims {length:,} bytes")
        return _stream(file.read(length))

    def _ends_like_a_whole_one(self, file: BinaryIO) -> bool:
        file.seek(-len(MCAP0_MAGIC), 2)
        return file.read() == MCAP0_MAGIC and self._size > 2 * len(MCAP0_MAGIC)

    def check_sums(self) -> None:
        """Raise if a byte of a whole file isn't what was written, wherever it is. A sum of 0 is none."""
        if self._data_end is None or self._footer is None:
            raise Damaged("its end lacks the checksums")
        data_end, data_sum = self._data_end
        at, footer = self._footer
        # The footer's sum covers the summary and the footer itself, up to the sum.
        end = at + _PREFIX.size + 16
        if footer.summary_start and not data_end < footer.summary_start <= at:
            raise Damaged("its end says that the index is where it can't be")
        with self.path.open("rb") as file:
            if data_sum and _crc(file, 0, data_end) != data_sum:
                raise Damaged("the checksum of its data doesn't match")
            if footer.summary_crc and _crc(file, footer.summary_start or at, end) != footer.summary_crc:
                raise Damaged("the checksum of its index doesn't match")

    def packed(self, file: BinaryIO, chunk: Place) -> bytes:
        """Return a chunk as it stands in the file."""
        longest = CHUNK_MAX
        if chunk.length > longest + _CHUNK_HEAD_MAX:
            file.seek(chunk.offset)
            if chunk.loose or not _CHUNK_HEAD.unpack(file.read(_CHUNK_HEAD.size))[-1]:
                longest = PLAIN_MAX
        if chunk.length > longest + _CHUNK_HEAD_MAX:
            raise Damaged(f"the chunk at byte {chunk.offset:,} claims {chunk.length:,} bytes")
        file.seek(chunk.offset)
        return file.read(chunk.length)

    def unpacked(self, file: BinaryIO, chunk: Place) -> bytes:
        """Return the records in a chunk, checked."""
        data = self.packed(file, chunk)
        return data if chunk.loose else _unpacked(data, chunk)


def _unpacked(record: bytes, place: Place) -> bytes:
    """Return what is in a chunk: exactly as many bytes as it claims, and only if those aren't too many."""
    offset = place.offset
    try:
        chunk = Chunk.read(_stream(record))
        size = chunk.uncompressed_size
        if size > CHUNK_MAX and chunk.compression:
            raise Damaged(f"the chunk at byte {offset:,} claims {size:,} bytes unpacked")
        data = _decompressed(chunk.compression, chunk.data, size)
    except DAMAGE as error:
        raise _damage(place) from error
    if len(data) != size or (chunk.uncompressed_crc and zlib.crc32(data) != chunk.uncompressed_crc):
        raise _damage(place)
    return data


def _damage(place: Place) -> Damaged:
    """Say which chunk is damaged, and of what time it is, if it still says so."""
    earliest, latest = place.earliest, place.latest
    times = f", with what arrived from {format_time(earliest)} to {format_time(latest)}" if latest <= TIME_MAX else ""
    return Damaged(f"the chunk at byte {place.offset:,} is damaged{times}")


def _decompressed(compression: str, data: bytes, size: int) -> bytes:
    """Unpack no more than one byte over the size, whatever the data say about themselves."""
    if compression == "":
        return data
    if compression == "zstd":
        # Where a frame says its size, the library goes by that alone.
        if zstandard.frame_content_size(data) not in (-1, size):
            raise ValueError("the frame has another size")
        return zstandard.ZstdDecompressor().decompress(data, max_output_size=size + 1)
    if compression == "lz4":
        return bytes(lz4.frame.LZ4FrameDecompressor().decompress(data, max_length=size + 1))
    raise Damaged(f"a chunk is packed with {shown(compression)}, which isn't known")


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


# Envelopes: what a message is put into whose path has no channel of its own.
#
# A channel of an MCAP file is one path, from a sender to a receiver on a topic, and there is room for 65,535. In a run
# with more of them, those that come late share a channel for each topic. There the data of a message is JSON that says
# whose it is and for whom: a payload that is JSON stands in it as it is, for tools to read, all others in base64.

SHARED_CHANNEL = {"worldline": "shared"}
"""The metadata of a channel that several paths share."""

ENVELOPE_SCHEMA_NAME = "worldline.Envelope"
# By hand, as the others: the file's bytes mustn't change with msgspec's version.
ENVELOPE_SCHEMA = (
    b'{"type":"object","properties":{"sender":{"type":"string"},"receiver":{"type":"string"},'
    b'"copy":{"type":"integer"},"payload":{},"base64":{"type":"string","contentEncoding":"base64"}},'
    b'"required":["sender"]}'
)


class RecordedPath(NamedTuple):
    """What the messages of a path have in common. Receiver "": they reached none."""

    topic: str
    sender: str
    receiver: str
    copy: int


class _Envelope(Struct, frozen=True, kw_only=True, omit_defaults=True):
    sender: str
    receiver: str = ""
    copy: int = 0
    payload: Raw | UnsetType = UNSET
    base64: bytes | UnsetType = UNSET


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(_Envelope).decode


def put_in(path: RecordedPath, payload: bytes) -> bytes:
    """Return a message of a path as it is written to a shared channel."""
    _, sender, receiver, copy = path
    made = _encode(_Envelope(sender=sender, receiver=receiver, copy=copy, payload=Raw(payload)))
    try:
        if take_out(path.topic, made) == (path, payload):
            return made
    except Damaged:
        pass  # It isn't JSON.
    return _encode(_Envelope(sender=sender, receiver=receiver, copy=copy, base64=payload))


def take_out(topic: str, data: bytes) -> tuple[RecordedPath, bytes]:
    """Return of which path of the topic a message is, and its payload."""
    try:
        found = _decode(data)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise Damaged(f"an envelope on {topic} can't be read: {error}") from error
    payload = found.base64 if found.payload is UNSET else bytes(found.payload)
    if payload is UNSET:
        raise Damaged(f"an envelope on {topic} has nothing in it")
    return RecordedPath(topic, found.sender, found.receiver, found.copy), payload
