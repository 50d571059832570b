"""Log files as lcm-logger writes them, of a run: the same bytes in every run.

Every event has a time in microseconds: that of the send, also for a delivery, as if the server had been a Drake program
that passes on the time its Publish was given. Tools that play or search a log expect those times in order, so the
deliveries of a message follow its send. When each arrived is in the recording of the run.

Nothing is left out of a log: an incomplete one would be worth little. So it is written where the run tells of its
messages, in the same thread, as a recording is; that waits for memory, not for the disk or for another program. If the
disk is full, the log ends with the last whole event that fits, and the run goes on: what it lacks is counted.
"""

from __future__ import annotations

import contextlib
import os
import struct
from io import FileIO
from itertools import accumulate
from pathlib import Path

from worldline.files.saving import destination, refusal, write_all
from worldline.metasim.public.names import CHANNEL_BYTES_MAX, PublicName
from worldline.model.errors import UsageError
from worldline.recording.pending import Pending, Publication

_SYNC = 0xEDA1DA01
_HEAD = struct.Struct(">IqqII")  # Sync word, number, microseconds, lengths of name and data.
_NS_IN_US = 1000


class PublicLog:
    """A log of all sends and deliveries of a run. `count` are in it, `lost` aren't; `nameless` have too long a name."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.url = str(path)
        self._file = _opened(Path(path))
        self._size = 0
        self._names: dict[tuple[str, str, str | None], bytes] = {}
        self.pending = Pending()
        self.count = 0
        self.lost = 0
        self.nameless = 0
        self.trouble = ""

    def write(self, publications: list[Publication]) -> None:
        """Write what has become final."""
        events: list[bytes] = []
        for each in publications:
            utime = each.sent // _NS_IN_US
            receivers = [None, *(receiver for _, receiver, _, lost in each.fates() if lost is None)]
            for receiver in receivers:
                name = self._name(each.topic, each.sender, receiver)
                if len(name) > CHANNEL_BYTES_MAX:
                    self.nameless += 1
                    continue
                head = _HEAD.pack(_SYNC, self.count + len(events), utime, len(name), len(each.payload))
                events.append(head + name + each.payload)
        if events:
            self._append(events)

    def close(self) -> None:
        self._file.close()

    def _name(self, topic: str, sender: str, receiver: str | None) -> bytes:
        name = self._names.get((topic, sender, receiver))
        if name is None:
            name = self._names[topic, sender, receiver] = str(PublicName(topic, sender, receiver)).encode()
        return name

    def _append(self, events: list[bytes]) -> None:
        if self.trouble:
            self.lost += len(events)
            return
        try:
            write_all(self._file.fileno(), b"".join(events))
        except OSError as error:
            self.trouble = error.strerror or str(error)
            room = os.fstat(self._file.fileno()).st_size - self._size
            fit = sum(end <= room for end in accumulate(map(len, events)))
            self.lost += len(events) - fit
            del events[fit:]
        self.count += len(events)
        self._size += sum(map(len, events))
        if self.trouble:
            with contextlib.suppress(OSError):
                self._file.truncate(self._size)  # So it ends with a whole event.


def _opened(path: Path) -> FileIO:
    """Open a new log; another log may be in its place, but nothing else."""
    to = destination(path)
    if to.is_stream:
        raise refusal(path, "it isn't a file")
    if not to.is_new and not _is_log(to.file):
        raise UsageError(f"{path} isn't an LCM log", advice="remove it, or choose another name")
    try:
        to.file.unlink(missing_ok=True)  # Not emptied: whoever still reads the old one keeps it.
        return to.file.open("xb", buffering=0)
    except OSError as error:
        raise refusal(path, error.strerror or str(error)) from error


def _is_log(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            start = file.read(4)
    except OSError as error:
        raise refusal(path, error.strerror or str(error)) from error
    return start in (b"", struct.pack(">I", _SYNC))
