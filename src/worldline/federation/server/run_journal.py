"""The journal of a run: all that its arbiter heard, and all that participants were answered, in order, in a file.

A participant that dies can be taken through its part again from it, and so can the server itself.

J1. It is written before any participant can act on it. What is heard goes in before the arbiter's answers go out.
J2. It survives the process. It is a mapped file: writing is copying, without a system call, and what was copied belongs
    to the system, whatever happens to this process. (Not to the machine: nothing waits for the disk.)
J3. A record is there or not, never half of it. Its length is written first, and its kind last, in one byte, which is
    zero before. So a reader that finds half of one, over which its writer was killed, knows where that ends.
J4. Room is taken from the disk before it is mapped, so that a full disk is an error that one can meet, not a signal.
J5. Each record has a checksum that goes on from the one before. So it is noticed if the file was changed or cut off,
    and where; then nothing is done to it before its owner has said so.
J6. Checksums are no proof against forgery. Whatever a file says is checked when it is taken up, so that nothing that is
    read from it later can lead astray.

The file: a first line, a header, and records. All numbers are little-endian. The header is its length (4 bytes), its
checksum (4), and what it says. A record is its checksum (4 bytes), the place of its participant's record before it, 0
if there is none (8), its length, with all of this (4), its participant's number (3), its kind (1), and what it says.
Numbers stand for names in the order in which they were first used. The checksum is the CRC-32 of what it says; it
begins with the checksum before, the header's for the first one, with the other fields added bit by bit.
"""

from __future__ import annotations

import contextlib
import fcntl
import mmap
import os
import stat
import struct
import tempfile
from collections.abc import Callable, Iterator
from enum import IntEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from zlib import crc32

import msgspec
from msgspec import msgpack
from msgspec.structs import replace

from worldline.federation.participant.connection import Conversation
from worldline.history.fields import value_differences
from worldline.lock import Action, Grant, Publish
from worldline.model import PeerError
from worldline.model.errors import ConfigurationError, LossError, UsageError, shortened
from worldline.model.message import check_name
from worldline.wire.codec import decode_events
from worldline.wire.handshake import Told

if TYPE_CHECKING:
    import worldline.uncompiled as cython
else:
    try:
        import cython
    except ImportError:
        import worldline.uncompiled as cython

_ANY_MAGIC = b"worldline journal "
_MAGIC = _ANY_MAGIC + b"3\n"
_LENGTH = struct.Struct("<I")
_HEADER = struct.Struct("<II")  # Length and checksum.
_RECORD = struct.Struct("<IQII")  # Checksum, the record before, length, number and kind.
_RECORD_SIZE = _RECORD.size
_KIND_PLACE = _RECORD_SIZE - 1
_LENGTH_PLACE = 12
_KIND_SHIFT = 24
_NUMBER_MASK = 0xFFFFFF
_GROW_LEAST = 2**20
_GROW_MOST = 2**22  # The part of the map that was written to is in memory until the next one is made.
_LOOK = 2**20
_PART = 2**16
_DIFFERENCES_MAX = 3


class RecordKind(IntEnum):
    """What a record tells."""

    NAME = 1  # A participant's name: the next number stands for it.
    HEARD = 2  # Events of a participant, as one frame.
    ANSWERED = 3  # What it was answered, as the bytes that were sent.
    ENROLLED = 4  # It has taken a vacancy, and wants to join so.
    LOST = 5  # It has gone before its start, and is expected anew: what it said before counts no more.
    OPERATED = 6  # What an operator said: an event of the lock.
    SNAPSHOT = 7  # What a participant can be restored from. Only the last one counts.
    CODE = 8  # A hash of the code that a participant had when it joined.
    ADDRESS = 9  # Where the server listens, if it was free to choose.
    GRANTED = 10  # What it was answered: a grant, without payloads that are in the journal already.


ANSWERS = (RecordKind.ANSWERED, RecordKind.GRANTED)
"""The kinds that tell what a participant was answered."""

_KINDS = frozenset(RecordKind)
_OF_NO_PARTICIPANT = frozenset((RecordKind.NAME, RecordKind.OPERATED, RecordKind.ADDRESS))
_TEXTS = frozenset((RecordKind.NAME, RecordKind.CODE, RecordKind.ADDRESS))

# Most of them.
_HEARD, _ANSWERED, _GRANTED = int(RecordKind.HEARD), int(RecordKind.ANSWERED), int(RecordKind.GRANTED)


class JournalRecord(NamedTuple):
    """One record, and where it begins."""

    place: int
    kind: RecordKind
    name: str
    body: bytes


class RunJournal:
    """The journal of one run. Without a path, it is a file without a name, gone with this process.

    `header` is what fixes the run: a file that has another one is refused. `is_resumed` says that there was one.
    """

    def __init__(self, path: Path | str | None, header: dict[str, Any]) -> None:
        self.path = None if path is None else Path(path)
        self.is_resumed = False
        self.size = 0  # Where the next record begins.
        self.snapshots: dict[str, int] = {}  # Where the last snapshot of each is, of those who have offered any.
        self.codes: dict[str, str] = {}  # Hashes of their code, of those who have said it.
        self.address = ""  # Where the server listened last, if it was free to choose.
        self._numbers: dict[str, int] = {}  # 0 is no participant's: of an operator, and of names.
        self._names: list[str] = []
        self._last: list[int] = []  # Where the last record of each begins, by number.
        self._check = 0  # The checksum of the last one.
        self._room = 0
        self._map: Any = None
        encoded = msgspec.msgpack.encode(header)
        self._file = tempfile.TemporaryFile() if self.path is None else self._opened(self.path)  # noqa: SIM115
        try:
            if self._is_new():
                self._begin(encoded)
            else:
                self._take_up(header)
        except BaseException:
            self._let_go()
            raise

    # --- Writing ---

    def heard(self, name: str, body: bytes) -> int:
        """Note what a participant said: events, encoded. Return the place of that."""
        return self._append(_HEARD, name, body)

    def answered(self, name: str, data: bytes) -> None:
        """Note what it was answered."""
        self._append(_ANSWERED, name, data)

    def granted(self, name: str, body: bytes) -> None:
        """Note what it was granted, without large payloads."""
        self._append(_GRANTED, name, body)

    def enrolled(self, name: str, body: bytes) -> None:
        """Note that a participant has taken a vacancy."""
        self._append(RecordKind.ENROLLED, name, body)

    def lost(self, name: str, body: bytes) -> None:
        """Note that a participant has gone before its start, and is expected anew."""
        self._append(RecordKind.LOST, name, body)

    def restorable(self, name: str, body: bytes) -> None:
        """Note a snapshot."""
        self._append(RecordKind.SNAPSHOT, name, body)
        self.snapshots[name] = self._last[self._numbers[name]]

    def coded(self, name: str, code: str) -> None:
        """Note a participant's code."""
        self._append(RecordKind.CODE, name, code.encode())
        self.codes[name] = code

    def listened(self, address: str) -> None:
        """Note where the server listens, if that has changed."""
        if address == self.address:
            return
        self._append(RecordKind.ADDRESS, "", address.encode())
        self.address = address

    def operated(self, body: bytes) -> None:
        """Note what an operator said."""
        self._append(RecordKind.OPERATED, "", body)

    def _append(self, kind: int, name: str, body: bytes) -> int:
        number = self._numbers.get(name)
        if number is None:
            number = self._introduce(name)
        place = self.size
        end = place + _RECORD_SIZE + len(body)
        if end + _RECORD_SIZE > self._room:
            self._grow(end + _RECORD_SIZE)
        last, mixed = self._last, kind << _KIND_SHIFT | number
        self._check = _write(self._map, place, self._check, last[number], mixed, body)
        last[number] = place
        self.size = end
        return place

    def _introduce(self, name: str) -> int:
        self._append(RecordKind.NAME, "", name.encode())
        return self._know(name)

    def _know(self, name: str) -> int:
        number = self._numbers[name] = len(self._names)
        self._names.append(name)
        self._last.append(0)
        return number

    def _grow(self, needed: int) -> None:
        more = max(needed - self._room, min(max(self._room // 4, _GROW_LEAST), _GROW_MOST))
        room = -(-(self._room + more) // mmap.PAGESIZE) * mmap.PAGESIZE
        try:
            _take_room(self._file.fileno(), self._room, room - self._room)
            grown = mmap.mmap(self._file.fileno(), room)
        except OSError as error:
            called = "the journal" if self.path is None else f"the journal {self.path}"
            unwritten = LossError(
                f"{called} can't be written: {error.strerror or error}",
                advice="make room, and start the run again with the same journal: it goes on from there"
                if self.path is not None
                else "it keeps what participants said and were answered, for those who rejoin; TMPDIR says where",
            )
            unwritten.of_observer = True  # The participant that happened to be speaking isn't to blame.
            raise unwritten from error
        if self._map is not None:
            self._map.close()
        self._map = grown
        self._room = room

    # --- Reading ---

    def records(self) -> Iterator[JournalRecord]:
        """Yield all records from the beginning, also those that are added meanwhile; not the names."""
        place = self._first_place()
        while place < self.size:
            record, place = self._read(place)
            if record.kind is not RecordKind.NAME:
                yield record

    def _first_place(self) -> int:
        """Return where the first record begins: after the header."""
        length: int = _HEADER.unpack_from(self._map, len(_MAGIC))[0]
        return len(_MAGIC) + _HEADER.size + length

    def record(self, place: int) -> JournalRecord:
        """Return the record that begins there."""
        return self._read(place)[0]

    def places(self, name: str, after: int = 0) -> list[int]:
        """Return where the records of a participant are, in order: those after a place, since it last began."""
        number = self._numbers.get(name)
        if number is None:
            return []
        places = []
        place = self._last[number]
        while place > after:
            _, before, _, mixed = _RECORD.unpack_from(self._map, place)
            if mixed >> _KIND_SHIFT == RecordKind.LOST:
                break
            places.append(place)
            place = before
        return places[::-1]

    def place_of_answer(self, name: str, count: int) -> int | None:
        """Return the place of the answer with which a participant had been given so many; None, if there is none."""
        if not count:
            return 0
        answers = [place for place in self.places(name) if self.kind(place) in ANSWERS]
        return answers[count - 1] if 0 < count <= len(answers) else None

    def kind(self, place: int) -> int:
        """Return the kind of the record that begins there."""
        kind: int = self._map[place + _KIND_PLACE]
        return kind

    def _read(self, place: int) -> tuple[JournalRecord, int]:
        _, _, length, mixed = _RECORD.unpack_from(self._map, place)
        end = place + length
        kind, number = mixed >> _KIND_SHIFT, mixed & _NUMBER_MASK
        return JournalRecord(place, RecordKind(kind), self._names[number], self._map[place + _RECORD_SIZE : end]), end

    # --- Beginning and ending ---

    def _opened(self, path: Path) -> Any:
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise UsageError(f"the journal {path} can't be opened: {error.strerror or error}") from error
        file = os.fdopen(descriptor, "r+b", buffering=0)
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            file.close()
            raise UsageError(f"the journal {path} isn't a plain file", advice="use another name")
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            file.close()
            raise UsageError(
                f"the journal {path} is in use by another server", advice="end that one, or use another journal"
            ) from None
        return file

    def _is_new(self) -> bool:
        return os.fstat(self._file.fileno()).st_size == 0

    def _begin(self, header: bytes) -> None:
        self._check = crc32(header)
        start = _MAGIC + _HEADER.pack(len(header), self._check) + header
        self._know("")
        self.size = len(start)
        self._grow(len(start))
        self._map[: len(start)] = start

    def _take_up(self, header: dict[str, Any]) -> None:
        """Read a journal that is there, and check it."""
        self._room = os.fstat(self._file.fileno()).st_size
        try:
            self._map = mmap.mmap(self._file.fileno(), self._room)
        except (OSError, ValueError) as error:
            raise UsageError(f"{self.path} can't be a journal: {error}") from error
        if self._map[: len(_MAGIC)] != _MAGIC:
            if self._map[: len(_ANY_MAGIC)] == _ANY_MAGIC:
                raise UsageError(
                    f"the journal {self.path} was written by another version of Worldline",
                    advice="resume it with that version, or begin a new journal",
                )
            raise UsageError(f"{self.path} isn't a journal, and would be overwritten", advice="use another name")
        self._compare_header(header)
        self._scan()
        self.is_resumed = True

    def _compare_header(self, header: dict[str, Any]) -> None:
        start = len(_MAGIC) + _HEADER.size
        found = None
        with contextlib.suppress(struct.error, msgspec.DecodeError, ValueError, RecursionError):
            length, self._check = _HEADER.unpack_from(self._map, len(_MAGIC))
            encoded = self._map[start : start + length]
            if len(encoded) == length and crc32(encoded) == self._check:
                found = msgspec.msgpack.decode(encoded)
        if not isinstance(found, dict):
            raise UsageError(
                f"the journal {self.path} is damaged at its very beginning, so the run can't be resumed",
                advice="remove it, or begin a new one",
            )
        plain = msgspec.msgpack.decode(msgspec.msgpack.encode(header))
        if differences := value_differences(found, plain):
            shown = "; ".join(map(str, differences[:_DIFFERENCES_MAX]))
            more = f", and {len(differences) - _DIFFERENCES_MAX} more" if len(differences) > _DIFFERENCES_MAX else ""
            raise UsageError(
                f"the journal {self.path} is of another run: {shortened(shown)}{more}",
                advice="resume that run as it was, or begin a new journal",
            )

    def _scan(self) -> None:
        """Go through all records: who is named, where each one's last is, and whether it can be what was written.

        What events say is for the host to judge, which hears them.
        """
        self._know("")
        file, place, count = self._map, self._first_place(), 0
        while place < self._room:
            if place + _RECORD_SIZE > self._room:
                if file[place:].strip(b"\0"):
                    raise self._damaged("ends in the middle of", place, count)
                break
            check, before, length, mixed = _RECORD.unpack_from(file, place)
            end = place + length
            if not mixed >> _KIND_SHIFT:
                end = max(end, place + _RECORD_SIZE)
                if end > self._room or not self._is_blank(end):
                    raise self._damaged("was altered, in", place, count)
                file[place:end] = bytes(end - place)  # Half of one, or nothing (J3).
                break
            if end > self._room:
                raise self._damaged("ends in the middle of", place, count)
            body = file[place + _RECORD_SIZE : end]
            expected = crc32(body, _begun_with(self._check, mixed, before, length))
            kind, number = mixed >> _KIND_SHIFT, mixed & _NUMBER_MASK
            text = _text_of(kind, body)
            if (
                check != expected
                or length < _RECORD_SIZE
                or number >= len(self._names)
                or before != self._last[number]
                or kind not in _KINDS
                or (kind in _OF_NO_PARTICIPANT) is not (number == 0)
                or text is None
                or (kind == RecordKind.NAME and text in self._numbers)
            ):
                raise self._damaged("was altered, in", place, count)
            self._check = check
            self._last[number] = place
            name = self._names[number]
            if kind == RecordKind.NAME:
                self._know(text)
            elif kind == RecordKind.SNAPSHOT:
                self.snapshots[name] = place
            elif kind == RecordKind.CODE:
                self.codes[name] = text
            elif kind == RecordKind.ADDRESS:
                self.address = text
            place, count = end, count + 1
        self.size = place

    def _is_blank(self, start: int) -> bool:
        """Whether there is nothing from here on; a little at a time, since a file may claim to be of any size."""
        while start < self._room and not self._map[start : start + _LOOK].strip(b"\0"):
            start += _LOOK
        return start >= self._room

    def _damaged(self, how: str, place: int, count: int) -> UsageError:
        return UsageError(
            f"the journal {self.path} {how} record {count + 1:,}, at byte {place:,}",
            advice=f"`truncate -s {place} {self.path}` takes that away, and the run can be resumed from what is before",
        )

    def close(self) -> None:
        """Let go of it. What has a name stays, as long as it is."""
        if self.path is not None and not self._file.closed:
            with contextlib.suppress(OSError):
                os.ftruncate(self._file.fileno(), self.size)
        self._let_go()

    def _let_go(self) -> None:
        if self._map is not None:
            self._map.close()  # It keeps the file open, too.
            self._map = None
        self._file.close()

    def remove(self) -> None:
        """Remove it: the run has come to its end, and there is nothing to be resumed. A link to it stays."""
        if self.path is not None and not self._file.closed:
            self.size = 0  # What can't be removed is empty at least, and the next run begins with it.
            with contextlib.suppress(OSError):
                file = self.path.resolve()
                if os.path.samestat(file.stat(), os.fstat(self._file.fileno())):
                    file.unlink()
        self.close()


def _text_of(kind: int, body: bytes) -> str | None:
    """Return the text of a record, empty if it isn't one; None if it can't be that."""
    try:
        text = body.decode() if kind in _TEXTS else ""
        return check_name(text, "a participant") if kind == RecordKind.NAME else text
    except (ConfigurationError, ValueError):
        return None


def _begun_with(check: int, mixed: int, before: int, length: int) -> int:
    """Return what a checksum begins with: the one before, and what is written besides the body."""
    return (check ^ mixed ^ before ^ before >> 32 ^ length << 7) & 0xFFFFFFFF


def _written(room: Any, place: int, check: int, before: int, mixed: int, body: bytes) -> int:
    """Write a record; return its checksum. `check` is the one before."""
    length = _RECORD_SIZE + len(body)
    _LENGTH.pack_into(room, place + _LENGTH_PLACE, length)
    check = crc32(body, _begun_with(check, mixed, before, length))
    room[place + _RECORD_SIZE : place + length] = body
    _RECORD.pack_into(room, place, check, before, length, mixed)  # From the first byte to the last (J3).
    return check


if not cython.compiled:  # Otherwise `run_journal.pxd` imports the compiled one.
    _write = _written


def _take_room(descriptor: int, start: int, size: int) -> None:
    """Take room from the disk (J4)."""
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(descriptor, start, size)
    else:
        os.pwrite(descriptor, bytes(size), start)


# Where large payloads are in a journal, so that the answers that deliver them needn't hold them once more.
#
# What a participant publishes is in the journal once, as it was heard. Every receiver's grant would add a copy, which
# has to be written and checked while all wait. A *light* grant has an empty payload instead, and says which
# record holds it: one that was written before, so a reader that has the light grant has the payload, too.

HEAVY = 2**16
"""The size from which a payload is large. It takes a thousandth of that to remember where it is."""


LightGrant = tuple[Grant, list[tuple[int, int, int]]]
"""A grant without its large payloads; and of each, which message it belongs to, its record, and which event."""


_encode = msgpack.Encoder().encode
_decode: Callable[[bytes], LightGrant] = msgpack.Decoder(LightGrant).decode


class HeavyPayloads:
    """The places of all large payloads in one journal, by sender and sequence number."""

    def __init__(self, journal: RunJournal) -> None:
        self._journal = journal
        self._places: dict[tuple[str, int], tuple[int, int]] = {}

    def note(self, sender: str, sent: int, events: list[Told], place: int) -> None:
        """Note where events are that were heard just now; `sent` is how many messages their sender has sent."""
        published = [(event, number) for number, event in enumerate(events) if isinstance(event, Publish)]
        for sequence, (event, number) in enumerate(published, sent - len(published)):
            if len(event.payload) >= HEAVY:
                self._places[sender, sequence] = (place, number)

    def without(self, grant: Grant) -> bytes:
        """Return a grant as it is written: without the payloads that are in the journal already."""
        messages, payloads = list(grant.messages), []
        for number, message in enumerate(messages):
            where = self._places.get((message.sender, message.sequence))
            if where is not None:
                messages[number] = message._replace(payload=b"")
                payloads.append((number, *where))
        return _encode((replace(grant, messages=messages), payloads))

    def whole(self, body: bytes) -> Grant:
        """Return the grant that was written like this, if it can have been (J6)."""
        grant, payloads = _decode(body)
        for number, *where in payloads:
            message = grant.messages[number] if 0 <= number < len(grant.messages) else None
            if message is None or self._places.get((message.sender, message.sequence)) != tuple(where):
                raise PeerError("it delivers a payload that isn't there")
        return _with_payloads(grant, payloads, self._journal.record)


def _with_payloads(grant: Grant, payloads: list[tuple[int, int, int]], record: Callable[[int], JournalRecord]) -> Grant:
    for number, place, event in payloads:
        heard: Any = decode_events(record(place).body)
        grant.messages[number] = grant.messages[number]._replace(payload=heard[event].payload)
    return grant


def opened(data: bytes) -> Action:
    """Return an answer that was kept as the bytes in which it was sent."""
    conversation = Conversation("")
    conversation.agree(2**32, 2**32)
    conversation.feed(data)
    answer = conversation.answer()
    assert answer is not None
    return answer


class FollowedJournal:
    """A journal that another process of this run is writing, as far as it is written."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("rb", buffering=0)
        length, _ = _HEADER.unpack(self._at(len(_MAGIC), _HEADER.size))
        self._next = len(_MAGIC) + _HEADER.size + length
        self._names = [""]
        self._read, self._start = b"", self._next  # The last part that was read, and where it begins.

    def next(self) -> JournalRecord | None:
        """Return the next record; None if there is none yet."""
        while True:
            record = self._record(self._next)
            if record is None:
                return None
            self._next += _RECORD_SIZE + len(record.body)
            if record.kind is not RecordKind.NAME:
                return record
            self._names.append(record.body.decode())

    def close(self) -> None:
        self._file.close()

    def answer(self, record: JournalRecord) -> Action:
        """Return the answer that a record tells of."""
        if record.kind is RecordKind.ANSWERED:
            return opened(record.body)
        return _with_payloads(*_decode(record.body), self._written)

    def _written(self, place: int) -> JournalRecord:
        record = self._record(place)
        assert record is not None  # An answer tells only of what was written before it.
        return record

    def _record(self, place: int) -> JournalRecord | None:
        head = self._part(place, _RECORD_SIZE)
        if len(head) < _RECORD_SIZE:
            return None
        _, _, length, mixed = _RECORD.unpack(head)
        kind = mixed >> _KIND_SHIFT
        if not kind or length < _RECORD_SIZE:  # It wasn't there yet (J3) when that part was read.
            is_latest = self._start == place
            self._read = b""
            return None if is_latest else self._record(place)
        body = self._part(place + _RECORD_SIZE, length - _RECORD_SIZE)
        return JournalRecord(place, RecordKind(kind), self._names[mixed & _NUMBER_MASK], body)

    def _part(self, place: int, size: int) -> bytes:
        first = place - self._start
        if first < 0 or first + size > len(self._read):
            self._read, self._start, first = self._at(place, max(size, _PART)), place, 0
        return self._read[first : first + size]

    def _at(self, place: int, size: int) -> bytes:
        return os.pread(self._file.fileno(), size, place)
