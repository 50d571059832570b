"""Reads the records of an MCAP file, as far as it goes: whole, cut off anywhere, or damaged.

A `Scan` finds them: it goes from record to record without unpacking chunks and doesn't need the index at the file's
end, which a file that was cut off doesn't have. So whole and cut files are read in the same way. Records that stand in
no chunk, as in the tail of a file that was cut off, are taken together as if they were in one.

Another tool may have packed a recording anew: in other chunks, without some of the sums and indexes that MCAP leaves to
the writer, and in another order, such as that of arrivals. It is still the same recording, if its certificate says so.
What a recorder has written itself `is_original`: its order and its sums can be relied on before all of it is read.

Nothing that the file says is believed before it has been held against a limit: a small file can't fill the memory of
its reader. What is read at once is at most `CHUNK_MAX`, packed or unpacked; what stands in the file as it is,
and so is no less in the file than in memory, `PLAIN_MAX`; what is kept, `KEPT_MAX`.
"""

from __future__ import annotations

import re
import stat
import struct
import zlib
from collections.abc import Callable, Iterable, Iterator
from io import BytesIO
from itertools import islice
from operator import ne
from pathlib import Path
from typing import BinaryIO, NamedTuple, TypeVar

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
from worldline.history.account import Fate, Sending
from worldline.model.errors import UsageError, shown
from worldline.model.text import printable
from worldline.model.time import FOREVER, TIME_MAX, format_time
from worldline.recording.chunks import CHUNK_MAX, CHUNK_SIZE, PLAIN_MAX
from worldline.recording.facts import HEADER_NAME, LOST_CHANNEL, OUTCOME_NAME, LostMessage
from worldline.recording.pending import SEQUENCES

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


# The messages in a file, and what was sent in its run, in the order of the file, as fast as Python can.
#
# Each message is written as several records, one after the other: one for each receiver that it reached or didn't.
# `records` yields them, and `sendings` puts them together. A chunk is unpacked and gone through with one `struct` for
# every record, which takes a fifth of the time that a class for each would.
#
# Two recordings of runs with the same beginning have the same chunks up to where they part, since chunks are cut by
# content. So who compares two can leave out the equal ones: only the channels that they introduce have to be known. If
# a message goes on in the next chunk, its rest comes without its beginning, and possibly without its payload; that is
# the same on both sides.

_RECORD = struct.Struct("<BQHIQQ")  # Kind, length; of a message: channel, number, log time, publish time.
_PREFIX_SIZE = _PREFIX.size
_FIELDS = _RECORD.size - _PREFIX_SIZE  # Of a message, before its data.
_PADDING = bytes(_RECORD.size)  # So that the last record of a chunk, too, can be read as if it were a message.
_COPY = re.compile("[0-9]{1,18}")
_Kind = TypeVar("_Kind", Channel, Schema)
_lost_decoder = msgspec.json.Decoder(LostMessage)


ORDERED_MAX = 2**30
"""How many bytes are held at most in order to put messages back into the order in which they were recorded."""

Record = tuple[int, int, int, RecordedPath, bytes | None, str | None]
"""When it arrived, or would have; when it was sent; its number; its path; payload; and the reason if it got lost.

A plain tuple, since there are millions of them. What got lost has no payload here.
"""


def equal_chunks(a: Scan, b: Scan) -> int:
    """Return how many chunks at the beginning are the same in two files, as recorders wrote them."""
    if not (a.is_original and b.is_original):
        return 0
    with a.path.open("rb") as one, b.path.open("rb") as other:
        for count, (ours, theirs) in enumerate(zip(a.chunks, b.chunks, strict=False)):
            if ours.length != theirs.length or ours.loose != theirs.loose:
                return count
            if a.packed(one, ours) != b.packed(other, theirs):
                return count
    return min(len(a.chunks), len(b.chunks))


def records(scan: Scan, file: BinaryIO, chunks: Iterable[Place], channels: dict[int, Channel]) -> Iterator[Record]:
    """Yield the messages in some chunks; put the channels that are found into the dict of those that are known."""
    ways: dict[int, RecordedPath | str] = {}  # The path of a channel, or the topic if several paths share it.
    unpack = _RECORD.unpack_from
    is_message = int(Opcode.MESSAGE)
    for chunk in chunks:
        data = scan.unpacked(file, chunk)
        size, offset = len(data), 0
        data += _PADDING
        while offset < size:
            kind, length, number, sequence, at, sent = unpack(data, offset)
            start = offset + _PREFIX_SIZE
            offset = start + length
            if offset > size:
                raise Damaged(f"the chunk at byte {chunk.offset:,} ends within a record")
            if kind != is_message:
                ways.pop(_note_definition(kind, data[start:offset], chunk, scan, channels), None)
                continue
            if length < _FIELDS:
                raise Damaged(f"the chunk at byte {chunk.offset:,} contains something other than records")
            way = ways.get(number)
            if way is None:
                way = ways[number] = _way(number, channels)
            payload = data[start + _FIELDS : offset]
            if not isinstance(way, str):
                yield at, sent, sequence, way, payload, None
            elif way:
                path, payload = take_out(way, payload)
                yield at, sent, sequence, path, payload, None
            else:
                lost = _lost(payload, sequence)
                path = RecordedPath(lost.topic, lost.sender, lost.receiver, lost.copy)
                yield at, sent, sequence, path, None, lost.reason


Batch = tuple[str, str, list[int], list[bytes]]
"""A sender, a topic, when what it sent was sent, and the payloads."""


def batches(scan: Scan, wants: Callable[[str, str], object]) -> Iterator[Batch]:
    """Yield all that some senders sent on some topics, each once, chunk by chunk: without what became of it.

    That is what takes least for one who needs only values: a quarter of the time of `sendings`. The file must be in
    the order in which it was recorded, and have a channel for each path.
    """
    channels: dict[int, Channel] = {}
    chosen: dict[int, tuple[str, str] | None] = {}
    last: dict[tuple[str, str], tuple[int, int]] = {}
    unpack, is_message = _RECORD.unpack_from, int(Opcode.MESSAGE)
    with scan.path.open("rb") as file:
        for chunk in scan.chunks:
            data = scan.unpacked(file, chunk)
            size, offset = len(data), 0
            data += _PADDING
            found: dict[tuple[str, str], _Columns] = {}
            columns: dict[int, _Columns | None] = {}
            while offset < size:
                kind, length, number, sequence, _, sent = unpack(data, offset)
                start = offset + _PREFIX_SIZE
                offset = start + length
                if kind == is_message and number in columns:
                    own = columns[number]
                    if own is not None:
                        own[0].append(sent)
                        own[1].append(sequence)
                        own[2].append(data[start + _FIELDS : offset])
                    continue
                if offset > size or (kind == is_message and length < _FIELDS):
                    raise Damaged(f"the chunk at byte {chunk.offset:,} contains something other than records")
                if kind != is_message:
                    chosen.pop(_note_definition(kind, data[start:offset], chunk, scan, channels), None)
                    continue
                if number not in chosen:
                    way = _way(number, channels)
                    chosen[number] = None
                    if not isinstance(way, str) and wants(way.sender, way.topic):
                        chosen[number] = way.sender, way.topic
                key = chosen[number]
                columns[number] = None if key is None else found.setdefault(key, ([], [], []))
                offset = start - _PREFIX_SIZE  # Once more, now that it is known.
            if offset > size:
                raise Damaged(f"the chunk at byte {chunk.offset:,} ends within a record")
            for key, own in found.items():
                last[key] = _leave_out_equal(own, last.get(key))
                if own[0]:
                    yield (*key, own[0], own[2])


_Columns = tuple[list[int], list[int], list[bytes]]
"""Times, numbers and payloads."""


def _leave_out_equal(columns: _Columns, last: tuple[int, int] | None) -> tuple[int, int]:
    """Leave a message in only once that is there for several receivers; return time and number of the last one."""
    times, numbers, payloads = columns
    end = times[-1], numbers[-1]
    if last != (times[0], numbers[0]) and all(map(ne, numbers, islice(numbers, 1, None))):
        return end
    kept = []
    for place, key in enumerate(zip(times, numbers, strict=True)):
        if key != last:
            kept.append(place)
            last = key
    times[:], payloads[:] = [times[place] for place in kept], [payloads[place] for place in kept]
    return end


def _note_definition(kind: int, record: bytes, chunk: Place, scan: Scan, channels: dict[int, Channel]) -> int:
    """Take in a channel or a schema; return the number of the channel, or -1."""
    if kind == Opcode.CHANNEL:
        channel = _read(Channel, record, chunk)
        channels[channel.id] = channel
        return int(channel.id)
    if kind == Opcode.SCHEMA:
        schema = _read(Schema, record, chunk)
        scan.schemas.setdefault(schema.id, schema)
    return -1


def _read(kind: type[_Kind], record: bytes, chunk: Place) -> _Kind:
    try:
        found: _Kind = kind.read(ReadDataStream(BytesIO(record)))
    except DAMAGE as error:
        raise Damaged(f"the chunk at byte {chunk.offset:,} contains something other than records") from error
    return found


def _way(number: int, channels: dict[int, Channel]) -> RecordedPath | str:
    """Return the path that a channel is for; its topic if several share it, and "" if it is that of losses."""
    channel = channels.get(number)
    if channel is None:
        raise Damaged(f"a message is on channel {number}, which there isn't")
    metadata = channel.metadata
    copy = metadata.get("copy", "0")
    if "sender" in metadata and "receiver" in metadata and _COPY.fullmatch(copy):
        return RecordedPath(channel.topic, metadata["sender"], metadata["receiver"], int(copy))
    if metadata not in (SHARED_CHANNEL, LOST_CHANNEL):
        raise Damaged(f"channel {number} on {channel.topic} is neither a path's nor that of losses")
    return str(channel.topic) if metadata == SHARED_CHANNEL else ""


def _lost(data: bytes, sequence: int) -> LostMessage:
    try:
        lost = _lost_decoder.decode(data)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise Damaged(f"a loss can't be read: {error}") from error
    if lost.sequence % SEQUENCES != sequence:
        raise Damaged(f"the loss of message {lost.sequence} of {lost.sender} is numbered {sequence}")
    return lost


def sendings(scan: Scan, skip: int = 0, channels: dict[int, Channel] | None = None) -> Iterator[Sending]:
    """Yield all that was sent, but for what stands in the first chunks; put the channels that are found into a dict."""
    found = {} if channels is None else channels
    with scan.path.open("rb") as file:
        if scan.whole and skip:  # It lists all channels at its end.
            found.update(scan.index)
        else:
            for _ in records(scan, file, scan.chunks[:skip], found):
                pass
        yield from _reordered(scan, file, found) if scan.is_reordered else _sendings(scan, file, skip, found)


def _reordered(scan: Scan, file: BinaryIO, channels: dict[int, Channel]) -> Iterator[Sending]:
    """Yield what was sent in the order in which it was recorded, wherever its parts stand in the file."""
    found: dict[tuple[int, str, int, str], tuple[bytes | None, list[Fate]]] = {}
    size = 0
    for sent, sender, topic, payload, fates, number in _sendings(scan, file, 0, channels):
        key = (sent, sender, number, topic)
        before, others = found.get(key, (None, []))
        if None not in (before, payload) and before != payload:
            raise Damaged(f"message {number} of {sender} has two payloads")
        size += len(payload or b"") if before is None else 0
        if size > ORDERED_MAX:
            raise Damaged(f"its messages stand in another order, and have more than {ORDERED_MAX:,} bytes")
        found[key] = (payload if before is None else before, others + fates)
    for key in sorted(found):
        sent, sender, number, topic = key
        payload, fates = found[key]
        yield sent, sender, topic, payload, sorted(fates, key=lambda fate: fate[:3]), number


def _sendings(scan: Scan, file: BinaryIO, skip: int, channels: dict[int, Channel]) -> Iterator[Sending]:
    time = number = -1
    topic = sender = ""
    payload: bytes | None = None
    fates: list[Fate] = []
    for at, sent, sequence, path, its_payload, lost in records(scan, file, scan.chunks[skip:], channels):
        its_topic, its_sender, receiver, copy = path
        if sent == time and sequence == number and its_sender == sender and its_topic == topic:
            if payload is None:
                payload = its_payload
            elif its_payload is not None and its_payload != payload:
                raise Damaged(f"message {sequence} of {sender} has two payloads")
        else:
            if time >= 0:
                if sent < time and not scan.is_reordered:
                    raise Damaged(f"message {sequence} of {its_sender} stands behind what was sent later")
                yield time, sender, topic, payload, fates, number
            time, number, sender, topic, payload, fates = sent, sequence, its_sender, its_topic, its_payload, []
        if receiver:
            fates.append((at, receiver, copy, lost))
    if time >= 0:
        yield time, sender, topic, payload, fates, number
