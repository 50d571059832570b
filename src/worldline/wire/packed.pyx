# cython: language_level=3, boundscheck=False, wraparound=False, binding=False
"""The frames of which a hop is made, written and read byte by byte: what is published, asked for and granted.

Only the compiled build has it. It knows one shape of each: all fields, no number below zero, and no more than fits into
a few pages. For anything else each function says that it can't, and msgspec writes or reads it: what is unusual, long
or wrong means, and is told of, the same either way. So what is written here is what msgspec writes, and what is read
here msgspec would have read as the same.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.unicode cimport PyUnicode_DecodeUTF8
from libc.string cimport memcmp

from worldline.lock._words cimport (
    Advance, Grant, Next, Promise, Publish, Reached, new_advance, new_grant, new_next, new_publish
)
from worldline.model._messagepack cimport (
    ROOM, Writer, append, put_bytes, put_head, put_list, put_message, put_number, put_payload, put_text, utf8_of
)
from worldline.model._native cimport new_tuple

from worldline.model.message import Message as _Message

cdef enum:
    NAMES = 64  # A power of two.
    NAME_LENGTH = 64

cdef long long NUMBER_MAX = 1LL << 62  # As `Int64` has it.

cdef object Message = _Message

cdef list names = [""] * NAMES  # Those that were read last: the same few come again and again.


# --- Writing ---

cdef inline void begin(Writer* out, unsigned char* room) noexcept:
    out.at = &room[HEADER]
    out.end = &room[ROOM]
    out.fits = True


cdef Py_ssize_t finish(Writer* out, unsigned char* start, Py_ssize_t longest) noexcept:
    """Put the header before the body; return how long both are, or 0 if it can't be written here."""
    cdef Py_ssize_t size = out.at - start - HEADER
    if not out.fits or size > longest:
        return 0
    out.at = start
    put_head(out, 0, size, 3)
    return HEADER + size


cpdef bytes packed_events(list events, Py_ssize_t longest):
    """Return what a participant says as a frame; None: it isn't written here."""
    cdef unsigned char room[ROOM]
    cdef Py_ssize_t size = write_events(room, events, longest)
    return PyBytes_FromStringAndSize(<char*>room, size) if size else None


cdef Py_ssize_t write_events(unsigned char* room, list events, Py_ssize_t longest) except -1:
    """Write what a participant says as a frame; return its length, or 0: it isn't written here."""
    cdef Writer out
    begin(&out, room)
    put_list(&out, len(events))
    try:
        for event in events:
            kind = type(event)
            if kind is Publish:
                put_bytes(&out, b"\x94\xA7publish", 9)
                put_text(&out, (<Publish>event).topic)
                put_payload(&out, (<Publish>event).payload)
                put_number(&out, (<Publish>event).at)
            elif kind is Next:
                put_bytes(&out, b"\x93\xA4next", 6)
                put_number(&out, (<Next>event).until)
                put_number(&out, (<Next>event).held)
            elif kind is Advance:
                put_bytes(&out, b"\x92\xA7advance", 9)
                put_number(&out, (<Advance>event).to)
            elif kind is Promise:
                put_bytes(&out, b"\x92\xA7promise", 9)
                put_number(&out, (<Promise>event).until)
            elif kind is Reached:
                put_bytes(&out, b"\x92\xA7reached", 9)
                put_number(&out, (<Reached>event).now)
            else:
                return 0
            if not out.fits:
                return 0
    except UnicodeEncodeError:
        return 0  # Half a character.
    return finish(&out, room, longest)


cpdef bint pack_grant(bytearray sent, Grant grant, Py_ssize_t longest) except -1:
    """Put a grant as a frame behind what is to be sent; False: it isn't written here."""
    cdef unsigned char room[ROOM]
    cdef Py_ssize_t size = write_grant(room, grant, longest)
    if size:
        append(sent, room, size)
    return size > 0


cpdef bytes packed_grant(Grant grant, Py_ssize_t longest):
    """Return a grant as a frame; None: it isn't written here."""
    cdef unsigned char room[ROOM]
    cdef Py_ssize_t size = write_grant(room, grant, longest)
    return PyBytes_FromStringAndSize(<char*>room, size) if size else None


cdef Py_ssize_t write_grant(unsigned char* room, Grant grant, Py_ssize_t longest) except -1:
    """Write a grant as a frame; return its length, or 0: it isn't written here."""
    cdef Writer out
    cdef list messages = grant.messages
    begin(&out, room)
    try:
        put_bytes(&out, b"\x95\xA5grant", 7)
        put_text(&out, grant.to)
        put_number(&out, grant.horizon)
        put_list(&out, len(messages))
        for message in messages:
            if type(message) is not Message or not out.fits:
                return 0
            put_head(&out, 0x97, 0, 0)
            put_message(&out, <tuple>message)
    except UnicodeEncodeError:
        return 0
    final = grant.final
    if type(final) is not bool:
        return 0
    put_head(&out, 0xC3 if final else 0xC2, 0, 0)
    return finish(&out, room, longest)


# --- Reading ---

cdef struct Reader:
    const unsigned char* at
    const unsigned char* end


cdef inline bint skips(Reader* body, const void* expected, Py_ssize_t size) noexcept:
    """Whether these bytes come next; if so, they have been read."""
    if body.end - body.at < size or memcmp(body.at, expected, size):
        return False
    body.at += size
    return True


cdef inline long long big_endian(Reader* body, int size) noexcept:
    """Read a number of so many bytes; -1: it is too large, or they haven't come."""
    cdef unsigned long long value = 0
    if body.end - body.at < size:
        return -1
    while size:
        value = value << 8 | body.at[0]
        body.at += 1
        size -= 1
    return <long long>value if value <= <unsigned long long>NUMBER_MAX else -1


cdef inline long long number(Reader* body) noexcept:
    """Read a number; -1: it isn't one that is read here."""
    cdef unsigned char kind
    if body.at == body.end:
        return -1
    kind = body.at[0]
    body.at += 1
    if kind < 0x80:
        return kind
    if 0xCC <= kind <= 0xCF:
        return big_endian(body, 1 << (kind - 0xCC))
    return -1


cdef inline Py_ssize_t length(Reader* body, int short, int short_max, unsigned char longer) noexcept:
    """Read how long a text or an array is; -1: it isn't one that is read here, or not all of it is there."""
    cdef unsigned char kind
    cdef long long found = -1
    if body.at == body.end:
        return -1
    kind = body.at[0]
    body.at += 1
    if short <= kind <= short + short_max:
        found = kind - short
    elif kind == longer:
        found = big_endian(body, 2)
    elif kind == longer - 1 and longer != 0xDC:
        found = big_endian(body, 1)
    return found if found <= body.end - body.at else -1


cdef str text(Reader* body):
    """Read a text; None: it isn't one that is read here."""
    cdef Py_ssize_t size = length(body, 0xA0, 31, 0xDA), known_size, each
    cdef const char* data = <const char*>body.at
    cdef const char* known_data
    cdef unsigned int place = 0
    cdef str known
    if size < 0:
        return None
    body.at += size
    if size > NAME_LENGTH:
        return PyUnicode_DecodeUTF8(data, size, NULL)
    for each in range(size):
        place = place * 31 + <unsigned char>data[each]
    place &= NAMES - 1
    known = <str>names[place]
    known_data = utf8_of(known, &known_size)
    if known_size == size and not memcmp(known_data, data, size):
        return known
    known = PyUnicode_DecodeUTF8(data, size, NULL)
    names[place] = known
    return known


cdef bytes payload(Reader* body):
    """Read a payload; None: it isn't one that is read here."""
    cdef Py_ssize_t size = length(body, 0, -1, 0xC5)
    if size < 0:
        return None
    body.at += size
    return PyBytes_FromStringAndSize(<const char*>body.at - size, size)


cpdef list unpacked_events(body):
    """Read a participant's frame; None: it isn't read here."""
    if type(body) is not bytes:
        return None
    return read_events(<const unsigned char*>PyBytes_AS_STRING(body), PyBytes_GET_SIZE(body))


cdef list read_events(const unsigned char* body, Py_ssize_t size):
    cdef Reader left
    cdef Py_ssize_t count
    cdef long long first, second
    cdef list events = []
    left.at, left.end = body, body + size
    count = length(&left, 0x90, 15, 0xDC)
    if count < 0:
        return None
    try:
        while count:
            count -= 1
            if skips(&left, b"\x94\xA7publish", 9):
                topic = text(&left)
                sent = None if topic is None else payload(&left)
                first = number(&left)
                if sent is None or first < 0:
                    return None
                events.append(new_publish(topic, sent, first))
            elif skips(&left, b"\x93\xA4next", 6):
                first, second = number(&left), number(&left)
                if first < 0 or second < 0:
                    return None
                events.append(new_next(first, second))
            elif skips(&left, b"\x92\xA7advance", 9):
                first = number(&left)
                if first < 0:
                    return None
                events.append(new_advance(first))
            elif skips(&left, b"\x92\xA7promise", 9):
                first = number(&left)
                if first < 0:
                    return None
                events.append(Promise(first))
            elif skips(&left, b"\x92\xA7reached", 9):
                first = number(&left)
                if first < 0:
                    return None
                events.append(Reached(first))
            else:
                return None
    except UnicodeDecodeError:
        return None
    return events if left.at == left.end else None


cpdef object unpacked_grant(body):
    """Read a grant; None: it isn't one that is read here."""
    if type(body) is not bytes:
        return None
    return read_grant(<const unsigned char*>PyBytes_AS_STRING(body), PyBytes_GET_SIZE(body))


cdef Grant read_grant(const unsigned char* body, Py_ssize_t size):
    cdef Reader left
    cdef Py_ssize_t count
    cdef long long horizon, arrival, sent, sequence, copy
    cdef list messages = []
    left.at, left.end = body, body + size
    if not skips(&left, b"\x95\xA5grant", 7):
        return None
    try:
        to = text(&left)
        horizon = -1 if to is None else number(&left)
        count = -1 if horizon < 0 else length(&left, 0x90, 15, 0xDC)
        if count < 0:
            return None
        while count:
            count -= 1
            if not skips(&left, b"\x97", 1):
                return None
            arrival, sent = number(&left), number(&left)
            sender = None if arrival < 0 or sent < 0 else text(&left)
            if sender is None:
                return None
            sequence, copy = number(&left), number(&left)
            topic = None if sequence < 0 or copy < 0 else text(&left)
            carried = None if topic is None else payload(&left)
            if carried is None:
                return None
            messages.append(new_tuple(Message, (arrival, sent, sender, sequence, copy, topic, carried)))
    except UnicodeDecodeError:
        return None
    if left.end - left.at != 1 or not 0xC2 <= left.at[0] <= 0xC3:
        return None
    return new_grant(to, horizon, messages, left.at[0] == 0xC3)
