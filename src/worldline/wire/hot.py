"""Reads the frames that are said most, without an object for each event: publications with a request, and grants.

It reads them in the one form in which this package writes them: every number, text and array as short as it can be, and
no field left out. All else, be it another client's longer form, another event or no MessagePack at all, is left to
`codec`, which says what is wrong with it. So nothing is refused here, and what is read here is what `codec` would have
read: a test compares the two, on hostile frames as well. And its bytes are those that `codec` would write for it.

Uncompiled it is the same, and slower than `codec`: there it isn't used.
"""

from __future__ import annotations

from worldline.lock.events import Advance, Grant, Next, Publish
from worldline.model.message import Message

NOTHING, NEXT, ADVANCE = 0, 1, 2
"""What a participant asks for."""

_LONGEST = 2**14  # Of longer frames, what is around their payloads doesn't matter.
_TEXTS_KEPT = 1024

_PUBLISH, _NEXT, _ADVANCE = b"\x94\xa7publish", b"\x93\xa4next", b"\x92\xa7advance"
_GRANT, _MESSAGE = b"\x95\xa5grant", b"\x97"

_message = tuple.__new__  # Cheaper than Message(...).


class ShortReader:
    """Reads MessagePack in its shortest form. What isn't that makes all that is read from there on empty."""

    def __init__(self) -> None:
        self._body = self._view = b""
        self._at = 0
        self._end = -1  # Nothing can be read any more.
        self._texts: dict[bytes, str] = {}  # Few names are said all the time.

    def begin(self, body: bytes) -> None:
        is_short = len(body) <= _LONGEST
        self._body = self._view = body if is_short else b""
        self._at = 0
        self._end = len(body) if is_short else -1

    def is_done(self) -> bool:
        """Whether all of it was read, and well."""
        return self._at == self._end

    def has(self, word: bytes) -> bool:
        """Whether these bytes come next; then they are passed."""
        at, expected = self._at, word
        stop = at + len(word)
        if stop > self._end:
            return False
        for place in range(len(word)):
            if self._view[at + place] != expected[place]:
                return False
        self._at = stop
        return True

    def whole(self) -> int:
        """Read a number that isn't negative, and well below 2**63."""
        at = self._at
        if at >= self._end:
            return self._refuse()
        first = self._view[at]
        if first < 0x80:
            self._at = at + 1
            return first
        if first < 0xCC or first > 0xCF:
            return self._refuse()
        size = 1 << (first - 0xCC)
        stop = at + 1 + size
        if stop > self._end or (size == 8 and self._view[at + 1] >= 0x40):
            return self._refuse()
        value = 0
        for place in range(at + 1, stop):
            value = value << 8 | self._view[place]
        if value >> (7 if size == 1 else 4 * size) == 0:  # It is shorter in another form.
            return self._refuse()
        self._at = stop
        return value

    def count(self) -> int:
        """Read how many items an array has."""
        at = self._at
        if at < self._end and 0x90 <= self._view[at] <= 0x9F:
            self._at = at + 1
            return self._view[at] - 0x90
        if at + 3 > self._end or self._view[at] != 0xDC:
            return self._refuse()
        items = self._view[at + 1] << 8 | self._view[at + 2]
        self._at = at + 3
        return items if items >= 16 else self._refuse()

    def text(self) -> str:
        at = self._at
        if at < self._end and 0xA0 <= self._view[at] <= 0xBF:
            start, size = at + 1, self._view[at] - 0xA0
        elif at + 2 <= self._end and self._view[at] == 0xD9 and self._view[at + 1] >= 32:
            start, size = at + 2, self._view[at + 1]
        else:
            self._refuse()
            return ""
        if start + size > self._end:
            self._refuse()
            return ""
        self._at = start + size
        encoded = self._body[start : start + size]
        text = self._texts.get(encoded)
        return self._learnt(encoded) if text is None else text

    def _learnt(self, encoded: bytes) -> str:
        try:
            text = encoded.decode()
        except UnicodeDecodeError:
            self._refuse()
            return ""
        if len(self._texts) >= _TEXTS_KEPT:
            self._texts.clear()
        self._texts[encoded] = text
        return text

    def data(self) -> bytes:
        at = self._at
        if at + 2 <= self._end and self._view[at] == 0xC4:
            start, size = at + 2, self._view[at + 1]
        elif at + 3 <= self._end and self._view[at] == 0xC5 and self._view[at + 1]:
            start, size = at + 3, self._view[at + 1] << 8 | self._view[at + 2]
        else:
            self._refuse()
            return b""
        if start + size > self._end:
            self._refuse()
            return b""
        self._at = start + size
        return self._body[start : start + size]

    def flag(self) -> bool:
        """Read whether something is true."""
        at = self._at
        if at >= self._end or self._view[at] not in (0xC2, 0xC3):
            self._refuse()
            return False
        self._at = at + 1
        return self._view[at] == 0xC3

    def _refuse(self) -> int:
        self._end = -1
        return 0


class Said:
    """What a participant says in a frame: it publishes, and perhaps asks for something then."""

    def __init__(self) -> None:
        self._reader = ShortReader()
        self.published = 0  # How many messages;
        self.topics: list[str] = []  # of each its topic,
        self.payloads: list[bytes] = []  # its payload,
        self.times: list[int] = []  # and when it is sent.
        self.request = NOTHING
        self.until = self.held = 0  # Of the request.

    def read(self, body: bytes) -> bool:
        """Read a frame; return whether that could be done. If not, it is for `codec`."""
        if type(body) is not bytes:  # It was long, and put together.
            return False
        reader = self._reader
        reader.begin(body)
        self.topics.clear()
        self.payloads.clear()
        self.times.clear()
        self.published, self.request = 0, NOTHING
        count = reader.count()
        for place in range(count):
            if reader.has(_PUBLISH):
                self.topics.append(reader.text())
                self.payloads.append(reader.data())
                self.times.append(reader.whole())
                self.published = place + 1
            elif place < count - 1:
                return False
            elif reader.has(_NEXT):
                self.request, self.until, self.held = NEXT, reader.whole(), reader.whole()
            elif reader.has(_ADVANCE):
                self.request, self.until = ADVANCE, reader.whole()
            else:
                return False
        return count > 0 and reader.is_done()

    def events(self) -> list[Publish | Next | Advance]:
        """Return it as events, for those who want them."""
        sent = zip(self.topics, self.payloads, self.times, strict=True)
        found: list[Publish | Next | Advance] = [Publish(*each) for each in sent]
        if self.request == NEXT:
            found.append(Next(self.until, self.held))
        elif self.request == ADVANCE:
            found.append(Advance(self.until))
        return found


def read_grant(reader: ShortReader, body: bytes) -> Grant | None:
    """Read a grant; None: it is for `codec`."""
    if type(body) is not bytes:
        return None
    reader.begin(body)
    if not reader.has(_GRANT):
        return None
    to, horizon = reader.text(), reader.whole()
    messages: list[Message] = []
    for _ in range(reader.count()):
        if not reader.has(_MESSAGE):
            return None
        arrival, sent, sender = reader.whole(), reader.whole(), reader.text()
        sequence, copy, topic = reader.whole(), reader.whole(), reader.text()
        messages.append(_message(Message, (arrival, sent, sender, sequence, copy, topic, reader.data())))
    final = reader.flag()
    return Grant(to, horizon, messages, final) if reader.is_done() else None
