"""One end of a TCP connection: what it sends, what it has received, and its timers.

It neither reads a clock nor sends: it is told the time, and says segments to `emit`, which is what its network gives
it. What the program at this end writes goes out when the network calls `put_out`, once for all that was written at one
moment; so does an acknowledgement that is due, along with data if there is any.

T1. `out.data` is everything from `out.first` on that hasn't been acknowledged; `out.next` is what is sent next.
T2. `incoming.data` is what was received in order and not read yet; `incoming.next` is the byte that comes next.
T3. While anything is on its way and not acknowledged, or a window is shut with data left, `out.due` is set. So data
    that is lost is sent again, until the other end acknowledges it or this end gives up.
T4. Once it is closed, nothing is sent. An end that waits in TIME-WAIT only answers what the other end repeats.

Left out: congestion control (the federation's links say what a network can carry), selective acknowledgements, urgent
data, keepalive and Nagle's algorithm.
"""

from __future__ import annotations

import errno
from collections.abc import Callable
from enum import Enum

from worldline.model.segments import ACK, FIN, OPENER, PROBE, RST, SYN, Segment

_MS, _SECOND = 1_000_000, 1_000_000_000

WINDOW = 256 * 1024
"""How much an end takes before its program reads, and keeps before it is acknowledged."""
SEGMENT_MAX = 16 * 1024

_RTO_FIRST, _RTO_LEAST, _RTO_MOST = _SECOND, 200 * _MS, 120 * _SECOND
_SYN_RETRIES, _DATA_RETRIES = 6, 15
_ACK_DELAY = 40 * _MS
_LINGER = 60 * _SECOND
_DUPLICATES = 3
_NEVER = 2**62


class ConnectionState(Enum):
    """Where a connection stands, as its own end sees it; the two directions are closed apart from each other."""

    OPENING = "SYN-SENT"
    ANSWERING = "SYN-RECEIVED"
    OPEN = "ESTABLISHED"
    WAITING = "TIME-WAIT"
    CLOSED = "CLOSED"


_OPENING, _ANSWERING, _OPEN, _WAITING, _CLOSED = ConnectionState  # Looked at all the time.


class RoundTrip:
    """How long the other end takes to acknowledge, and so when to send again."""

    def __init__(self) -> None:
        self.rto = _RTO_FIRST
        self._mean = 0
        self._deviation = 0
        self._timed = -1  # What is acknowledged when,
        self._since = 0  # counted from here.

    def time(self, sequence: int, now: int) -> None:
        """Look when this is acknowledged, unless something else is looked at."""
        if self._timed < 0:
            self._timed, self._since = sequence, now

    def forget(self) -> None:
        """What is sent again says nothing: either copy may be acknowledged."""
        self._timed = -1

    def acknowledged(self, sequence: int, now: int) -> None:
        """Take note that everything before `sequence` has been acknowledged."""
        if self._timed < 0 or sequence < self._timed:
            return
        took = now - self._since
        self._timed = -1
        if self._mean:
            self._deviation += (abs(took - self._mean) - self._deviation) // 4
            self._mean += (took - self._mean) // 8
        else:
            self._mean, self._deviation = took, took // 2
        self.rto = min(max(self._mean + 4 * self._deviation, _RTO_LEAST), _RTO_MOST)

    def back_off(self) -> None:
        """Wait twice as long for the next answer."""
        self.rto = min(2 * self.rto, _RTO_MOST)


class OutgoingData:
    """What this end sends."""

    def __init__(self) -> None:
        self.data = bytearray()
        self.first = 0
        self.next = 0
        self.window = 0
        self.is_ended = False  # Whether nothing is added any more: a FIN follows the last byte.
        self.is_done = False  # Whether the FIN has been acknowledged, too.
        self.due = _NEVER
        self.retries = 0
        self.duplicates = 0
        self.lost_before = 0  # Up to here it is known that something was lost.
        self.trip = RoundTrip()

    def end(self) -> int:
        """Where the data ends, and the FIN is if there is one."""
        return self.first + len(self.data)


class IncomingData:
    """What this end has received."""

    def __init__(self) -> None:
        self.data = bytearray()
        self.next = 0
        self.early: dict[int, bytes] = {}  # What came before its turn.
        self.ends_at = -1  # Where the FIN is, once it is known.
        self.is_ended = False
        self.ack_due = _NEVER
        self.acks_now = False
        self.window_told = WINDOW

    def window(self) -> int:
        """How much there is room for."""
        return max(0, WINDOW - len(self.data))

    def take(self, sequence: int, data: bytes) -> bool:
        """Take data in; return whether anything follows what was there."""
        if sequence > self.next:
            if sequence + len(data) <= self.next + self.window():
                self.early.setdefault(sequence, data)
            return False
        fresh = data[self.next - sequence :][: self.window()]
        self.data += fresh
        self.next += len(fresh)
        while self.early:
            place = min(self.early)
            if place > self.next:
                break
            rest = self.early.pop(place)[self.next - place :]
            self.data += rest
            self.next += len(rest)
        return bool(fresh)


class Connection:
    """One end of a connection. `changed` is called when its program may have something to do."""

    def __init__(
        self,
        identity: tuple[str, int, bool],
        ports: tuple[int, int],
        emit: Callable[[Connection, Segment], None],
        changed: Callable[[Connection], None],
        segment_max: int = SEGMENT_MAX,
    ) -> None:
        self.identity = identity  # The other end's address, the connection's number, whether this end has opened it.
        self.ports = ports  # Ours and theirs.
        self.state = _CLOSED
        self.error = 0  # What the program is told at its next call.
        self.out = OutgoingData()
        self.incoming = IncomingData()
        self.is_orphan = False  # Whether no program holds it any more.
        self.is_deaf = False  # Whether the program reads nothing any more.
        self._emit = emit
        self.changed = changed
        self._segment_max = segment_max
        self._side = OPENER if identity[2] else 0
        self._greets = False  # Whether a SYN is to be sent.
        self._is_first = False  # Whether this end was the first to end what it writes.
        self.expires = _NEVER  # When it is forgotten, if it only waits for what the other end may repeat.

    def __repr__(self) -> str:
        return f"<connection {self.ports[0]} → {self.identity[0]}:{self.ports[1]} {self.state.value}>"

    def due(self) -> int:
        """When its next timer runs out; not when it is forgotten, since nothing is said then."""
        sends, acknowledges = self.out.due, self.incoming.ack_due
        return sends if sends < acknowledges else acknowledges  # It is asked for all the time.

    # --- What the program at this end does ---

    def open(self) -> None:
        """Begin: the other end is asked to answer."""
        self.state = _OPENING
        self._greets = True

    def answer(self) -> None:
        """Begin as the end that was asked."""
        self.state = _ANSWERING
        self._greets = True

    def write(self, data: bytes | memoryview) -> int:
        """Take as much as there is room for; return how much that is."""
        room = WINDOW - len(self.out.data)
        taken = data[:room] if len(data) > room else data
        self.out.data += taken
        return len(taken)

    def read(self, size: int) -> bytes:
        """Return what was received, at most so much; the other end hears of it if it waits for room."""
        incoming = self.incoming
        if size < len(incoming.data):
            taken = bytes(incoming.data[:size])
            del incoming.data[:size]
        else:
            taken = bytes(incoming.data)
            incoming.data.clear()
        if incoming.window_told < WINDOW // 4 and incoming.window() >= WINDOW // 2 and not incoming.is_ended:
            incoming.acks_now = True
        return taken

    def end_writing(self) -> None:
        """Write nothing any more: the other end reads an end after what was written."""
        self.out.is_ended = True

    def release(self) -> None:
        """Do without a program: what was written still goes out, and what comes in is refused."""
        self.is_orphan = self.is_deaf = True
        if self.state is _OPENING or (self.state is _ANSWERING and not self.out.data):
            self._close(0)
        elif self.incoming.data and self.state is _OPEN:
            self.reset()  # As Linux does: data that the program never read is lost, and the sender may know.
        else:
            self.out.is_ended = True

    def reset(self) -> None:
        """Break it off, and tell the other end."""
        if self.state not in (_CLOSED, _WAITING):
            if self.incoming.acks_now:  # The other end may not know yet that there is a connection.
                self._say(0)
            self._say(RST)
        self._close(0)

    # --- What the network does ---

    def put_out(self, now: int) -> None:
        """Send what can be sent now."""
        if self._greets:
            self._greets = False
            self._greet(now)
        elif self.state is _OPEN:
            self._send_data(now)
        if self.incoming.acks_now and self.state in (_OPEN, _WAITING):
            self._say(0)

    def take(self, segment: Segment, now: int) -> None:
        """Take in a segment of this connection."""
        flags = segment.flags
        if flags & RST:
            self._be_reset()
        elif self.state is _OPENING:
            if flags & SYN:
                self._become_open(segment, now)
                self.incoming.acks_now = True
        elif flags & SYN:  # The other end hasn't heard our answer, or our acknowledgement of its own.
            self._greets = self.state is _ANSWERING
            self.incoming.acks_now = self.state in (_OPEN, _WAITING)
        elif self.state is _WAITING:
            self.incoming.acks_now = bool(flags & (FIN | PROBE)) or bool(segment.data)
        elif self.state is not _CLOSED:
            if self.state is _ANSWERING:
                self._become_open(segment, now)
            self._take_acknowledgement(segment, now)
            self._take_data(segment, now)
            self._look_for_end(now)

    def pass_time(self, now: int) -> None:
        """Do what timers ask for."""
        if now >= self.incoming.ack_due:
            self.incoming.ack_due = _NEVER
            self.incoming.acks_now = True
        if now >= self.out.due:
            self._retry(now)

    # --- Sending ---

    def _say(self, flags: int, sequence: int = -1, data: bytes = b"") -> None:
        incoming = self.incoming
        window = incoming.window()
        incoming.acks_now = False
        incoming.ack_due = _NEVER
        incoming.window_told = window
        flags |= self._side if self.state is _OPENING else self._side | ACK
        source, target = self.ports
        place = self.out.next if sequence < 0 else sequence
        self._emit(self, Segment(flags, source, target, self.identity[1], place, incoming.next, window, data))

    def _greet(self, now: int) -> None:
        self._say(SYN)
        out = self.out
        if not out.retries:
            out.trip.time(0, now)
        out.due = now + out.trip.rto

    def _send_data(self, now: int) -> None:
        out = self.out
        limit = min(out.end(), out.first + out.window)
        while out.next < limit:
            size = min(self._segment_max, limit - out.next)
            self._send_piece(out.next, size)
            out.trip.time(out.next, now)
        if out.is_ended and not out.is_done and out.next == out.end():
            self._send_piece(out.next, 0)
        if out.due == _NEVER and (out.next > out.first or out.end() > out.next):
            out.due = now + out.trip.rto

    def _send_piece(self, place: int, size: int) -> None:
        """Send a piece, for the first time or again; the last one says that it is."""
        out = self.out
        end = place + size
        is_last = out.is_ended and end == out.end()
        if is_last and out.next <= out.end():
            self._is_first = not self.incoming.is_ended
        offset = place - out.first
        piece = out.data if size == len(out.data) else out.data[offset : offset + size]
        self._say(FIN if is_last else 0, place, bytes(piece))
        out.next = max(out.next, end + is_last)

    def _send_again(self) -> None:
        """Send the first piece again that wasn't acknowledged; or ask whether there is room by now."""
        out = self.out
        out.trip.forget()
        if out.next > out.first:
            self._send_piece(out.first, min(self._segment_max, max(out.end() - out.first, 0)))
        else:
            self._say(PROBE)

    def _retry(self, now: int) -> None:
        out = self.out
        out.retries += 1
        most = _DATA_RETRIES if self.state is _OPEN else _SYN_RETRIES
        if out.retries > most:
            self._close(errno.ETIMEDOUT)
            return
        out.trip.back_off()
        if self.state is _OPEN:
            out.lost_before = out.next
            out.duplicates = 0
            self._send_again()
        else:
            out.trip.forget()
            self._say(SYN)
        out.due = now + out.trip.rto

    # --- Receiving ---

    def _become_open(self, segment: Segment, now: int) -> None:
        self.state = _OPEN
        self.out.window = segment.window
        self.out.retries = 0
        self.out.due = _NEVER
        self.out.trip.acknowledged(0, now)
        self.changed(self)

    def _take_acknowledgement(self, segment: Segment, now: int) -> None:
        out = self.out
        known = segment.acknowledged
        if known > out.first and known <= out.next:
            is_full = known == out.next
            if known > out.end():
                out.is_done = True
                out.data.clear()
            else:
                del out.data[: known - out.first]
            out.first = known
            out.window = segment.window
            out.retries = out.duplicates = 0
            out.trip.acknowledged(known, now)
            out.due = _NEVER if is_full and (not out.data or out.window) else now + out.trip.rto
            if known < out.lost_before and not is_full:
                self._send_again()
            self.changed(self)
        elif known == out.first:
            is_duplicate = not segment.data and segment.window == out.window and out.next > out.first
            if out.next == out.first:  # It answers, so it is there.
                out.retries = 0
                out.due = _NEVER if segment.window else out.due
            out.window = segment.window
            out.duplicates = out.duplicates + 1 if is_duplicate else 0
            if out.duplicates == _DUPLICATES:
                out.lost_before = out.next
                self._send_again()

    def _take_data(self, segment: Segment, now: int) -> None:
        incoming = self.incoming
        flags, data = segment.flags, segment.data
        if flags & PROBE:
            incoming.acks_now = True
        if not data and not flags & FIN:
            return
        end = segment.sequence + len(data)
        if self.is_deaf and self.out.is_ended and data and end > incoming.next:
            self._say(RST)  # The program will never read it, and both ends are told.
            self._close(errno.ECONNRESET)
            return
        if flags & FIN:
            incoming.ends_at = end
        followed = bool(data) and incoming.take(segment.sequence, data)
        is_last = incoming.ends_at == incoming.next and not incoming.is_ended
        if is_last:
            incoming.is_ended = True
            incoming.next += 1
        if followed and not is_last and not incoming.early and incoming.ack_due == _NEVER:
            incoming.ack_due = now + _ACK_DELAY
        else:
            incoming.acks_now = True
        if followed or is_last:
            self.changed(self)

    def _look_for_end(self, now: int) -> None:
        """Close it if both directions are done; the end that was first to close stays to answer what is repeated."""
        if self.state is not _OPEN or not self.out.is_done:
            return
        if self.incoming.is_ended:
            if self._is_first:
                self.state = _WAITING
                self.out.due = _NEVER
                self.expires = now + _LINGER
                self.changed(self)
            else:
                self._close(0)
        elif self.is_orphan and self.expires == _NEVER:
            self.expires = now + _LINGER

    def _be_reset(self) -> None:
        if self.state is _OPENING:
            self._close(errno.ECONNREFUSED)
        elif self.state is _OPEN:
            self._close(errno.EPIPE if self.incoming.is_ended else errno.ECONNRESET)
        else:
            self._close(0)

    def _close(self, error: int) -> None:
        self.state = _CLOSED
        self.error = error
        self.out.due = self.incoming.ack_due = self.expires = _NEVER
        self.incoming.acks_now = self._greets = False
        self.out.data.clear()
        self.changed(self)
