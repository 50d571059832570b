"""Log files as lcm-logger writes them, of a run: the same bytes in every run.

Every event has a time in microseconds: that of the send, also for a delivery, as if the server had been a Drake program
that passes on the time its Publish was given. Tools that play or search a log expect those times in order, so the
deliveries of a message follow its send. When each arrived is in the recording of the run.

Nothing is left out of a log: an incomplete one would be worth little. So it is written where the run tells of its
messages, in the same thread, as a recording is; that waits for memory, not for the disk or for another program. If the
disk is full, the log ends there, and the run goes on: what it lacks is counted.
"""

from __future__ import annotations

import os
import struct
from pathlib import Path
from typing import BinaryIO

from worldline.metasim.public.names import CHANNEL_BYTES_MAX, PublicName
from worldline.model.errors import UsageError
from worldline.recording.pending import Pending, Publication
from worldline.saving.destination import destination, refusal

_SYNC = 0xEDA1DA01
_HEAD = struct.Struct(">IqqII")  # Sync word, number, microseconds, lengths of name and data.
_NS_IN_US = 1000


def encode_event(number: int, utime: int, channel: str, data: bytes) -> bytes:
    """Return an event as it is in a log."""
    name = channel.encode()
    return _HEAD.pack(_SYNC, number, utime, len(name), len(data)) + name + data


class PublicLog:
    """A log of all sends and deliveries of a run."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.url = str(path)
        self._file = _opened(Path(path))
        self.pending = Pending()
        self.count = 0
        self.lost = 0
        self.trouble = ""
        self.nameless = 0

    def write(self, publications: list[Publication]) -> None:
        """Write what has become final."""
        for each in publications:
            self._add(each.sent, PublicName(each.topic, each.sender), each.payload)
            for _, receiver, _, lost in each.fates():
                if lost is None:
                    self._add(each.sent, PublicName(each.topic, each.sender, receiver), each.payload)

    def _add(self, sent: int, name: PublicName, payload: bytes) -> None:
        text = str(name)
        if len(text.encode()) > CHANNEL_BYTES_MAX:
            self.nameless += 1
            return
        if self.trouble:
            self.lost += 1
            return
        try:
            self._file.write(encode_event(self.count, sent // _NS_IN_US, text, payload))
            self.count += 1
        except OSError as error:
            self._give_up(error)
            self.lost += 1

    def flush(self) -> None:
        """Let others see what was written."""
        if not self.trouble:
            try:
                self._file.flush()
            except OSError as error:
                self._give_up(error)

    def close(self) -> None:
        self.flush()
        try:
            self._file.close()
        except OSError as error:
            self._give_up(error)

    def _give_up(self, error: OSError) -> None:
        self.trouble = self.trouble or error.strerror or str(error)


def _opened(path: Path) -> BinaryIO:
    """Open a new log; another log may be in its place, but nothing else."""
    to = destination(path)
    if to.is_stream:
        raise refusal(path, "it isn't a file")
    if not to.is_new and not _is_log(to.file):
        raise UsageError(f"{path} isn't an LCM log", advice="remove it, or choose another name")
    try:
        to.file.unlink(missing_ok=True)  # Not emptied: whoever still reads the old one keeps it.
        return to.file.open("xb")
    except OSError as error:
        raise refusal(path, error.strerror or str(error)) from error


def _is_log(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            start = file.read(4)
    except OSError as error:
        raise refusal(path, error.strerror or str(error)) from error
    return start in (b"", struct.pack(">I", _SYNC))
