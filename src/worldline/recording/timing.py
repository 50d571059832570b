"""The timing of a run: a file that says when its arbiter heard what, to find out who waited for whom.

It is written while the run goes on, in portions that are compressed one by one, so of a run that was killed all but the
last second is there. Nothing of it is part of a recording, since wall-clock times are never the same twice. A disk that
is full ends the timing, and not the run.
"""

from __future__ import annotations

import struct
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO
from zlib import crc32

import msgspec
import zstandard
from msgspec import Struct, json, msgpack

from worldline.files.saving import destination
from worldline.lock.why.heard import Heard, stripped
from worldline.model.errors import LossError, UsageError, shortened
from worldline.model.plan import Plan
from worldline.recording.output import TIMING_KIND, is_timing, put_timing_aside

_MAGIC = TIMING_KIND + b"2\n"
_PART = struct.Struct(">cII")  # What a part of the file is, how long, and its checksum.
_HEADER, _PORTION, _END = b"H", b"P", b"E"
_PORTION_SIZE = 4096  # Frames.
_PORTION_MAX = 2**28  # Bytes, unpacked.
_FLUSH_NS = 1_000_000_000


class TimingHeader(Struct, frozen=True, kw_only=True):
    """What is known of a run before it begins."""

    name: str
    plan: Plan


_encode_heard = msgpack.Encoder().encode
_decode_heard = msgpack.Decoder(list[Heard]).decode
_encode_json = json.Encoder(order="deterministic").encode
_decode_header = json.Decoder(TimingHeader).decode
_decode_end = json.Decoder(dict[str, str | None]).decode


class TimingWriter:
    """Notes when an arbiter hears what; its witness. `warn` is told if it can't be written any more."""

    def __init__(
        self,
        path: Path,
        name: str,
        plan: Plan,
        *,
        force: bool = False,
        warn: Callable[[str], None] = lambda _: None,
        clock: Callable[[], int] = time.perf_counter_ns,
    ) -> None:
        self.path = path
        self._warn = warn
        self._clock = clock
        self._heard: list[tuple[int, str, list[Any]]] = []
        self._compress = zstandard.ZstdCompressor(level=1).compress
        self._file: BinaryIO | None = _opened(path, force=force)
        self._began = self._flushed = clock()
        self._write(_HEADER, _encode_json(TimingHeader(name=name, plan=plan)), _MAGIC)

    def hears(self, who: str, events: list[Any]) -> None:
        """Note what is said, for the arbiter whose witness this is."""
        if self._file is None:
            return
        now = self._clock()
        self._heard.append((now - self._began, who, stripped(events)))
        if len(self._heard) >= _PORTION_SIZE or now - self._flushed > _FLUSH_NS:
            self._flushed = now
            self._flush()

    def close(self, digest: bytes | None = None) -> None:
        """Finish it with how the run has ended."""
        self._flush()
        self._write(_END, _encode_json({"digest": None if digest is None else digest.hex()}))
        if self._file is not None:
            self._file.close()
            self._file = None

    def _flush(self) -> None:
        heard, self._heard = self._heard, []
        if heard:
            self._write(_PORTION, self._compress(_encode_heard(heard)))

    def _write(self, kind: bytes, data: bytes, before: bytes = b"") -> None:
        if self._file is None:
            return
        try:
            self._file.write(before + _PART.pack(kind, len(data), crc32(data, crc32(kind))) + data)
            self._file.flush()
        except OSError as error:
            self._file.close()
            self._file = None
            self._warn(f"the timing {self.path} can't be written any more: {error.strerror or error}")


class Timing:
    """A timing that was noted, or is being noted just now: as much of it as there is.

    Once it has been heard, `end` is the digest of the run, empty if it has none, and `is_cut_off` says whether a part
    was begun and isn't whole.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.end: str | None = None
        self.is_cut_off = False
        kind, data = next(self._parts(), (b"", b""))
        if kind != _HEADER:
            raise self._unreadable("its beginning is missing")
        self.header: TimingHeader = self._decoded(_decode_header, data, "its beginning isn't what was noted")

    def heard(self) -> Iterator[Heard]:
        """Yield all that was noted."""
        unpacker = zstandard.ZstdDecompressor()
        for kind, data in self._parts():
            if kind == _PORTION:
                try:
                    unpacked = unpacker.decompress(data, max_output_size=_PORTION_MAX)
                except zstandard.ZstdError as error:
                    raise self._unreadable(str(error)) from error
                yield from self._decoded(_decode_heard, unpacked, "it isn't what was noted")
            elif kind == _END:
                self.end = self._decoded(_decode_end, data, "its end isn't what was noted").get("digest") or ""

    def _decoded(self, decode: Callable[[bytes], Any], data: bytes, problem: str) -> Any:
        try:
            return decode(data)
        except (msgspec.DecodeError, ValueError, RecursionError) as error:
            raise self._unreadable(f"{problem}: {shortened(str(error))}") from error

    def _parts(self) -> Iterator[tuple[bytes, bytes]]:
        try:
            with self.path.open("rb") as file:
                start = file.read(len(_MAGIC))
                if start != _MAGIC and start.startswith(TIMING_KIND):
                    raise self._unreadable("another version of Worldline has written it")
                if start != _MAGIC:
                    raise UsageError(
                        f"{self.path} isn't a timing", advice="`worldline run FILE.toml --timing` notes one"
                    )
                while len(start := file.read(_PART.size)) == _PART.size:
                    place = file.tell() - _PART.size
                    kind, length, checksum = _PART.unpack(start)
                    data = file.read(length)
                    if len(data) < length:
                        break
                    if crc32(data, crc32(kind)) != checksum:
                        raise self._unreadable(f"it was altered, at byte {place:,} or later")
                    yield kind, data
                # It is being written just now, or its writer was killed.
                self.is_cut_off = bool(start)
        except OSError as error:
            raise UsageError(f"{self.path} can't be read: {error.strerror or error}") from error

    def _unreadable(self, problem: str) -> UsageError:
        return UsageError(f"{self.path} can't be read: {problem}", advice="note it again")


def _opened(path: Path, *, force: bool) -> BinaryIO:
    """Open a file to be written; a timing that was there is put aside."""
    to = destination(path)
    if to.is_stream:
        raise UsageError(f"{path} isn't a file, and a timing is read while it is written", advice="choose a file")
    if not to.is_new and to.file.stat().st_size and not is_timing(to.file) and not force:
        raise UsageError(f"{path} isn't a timing and would be replaced", advice="use --force, or another name")
    put_timing_aside(to.file)
    try:
        return to.file.open("wb")
    except OSError as error:
        raise LossError(f"{path} can't be written: {error.strerror or error}") from error
