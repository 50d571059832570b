cimport cython
from cpython.bytes cimport PyBytes_FromStringAndSize

from worldline.model._message cimport Message
from worldline.model._messagepack cimport ROOM, Writer, put_head, put_message, put_natural, put_payload, put_text

cdef object _encode
cdef Py_ssize_t _HASH_EVERY, _HEAVY
cdef int _SENT, _RECEIVED
cdef bytes _HEAVY_HEAD


cdef inline bytes packed_sent(long long sequence, long long at, str topic, bytes payload):
    """Return an entry of a digest, `[0, sequence, at, topic, payload]`; None: it isn't written here."""
    cdef unsigned char room[ROOM]
    cdef Writer out
    out.at, out.end, out.fits = room, room + ROOM, True
    try:
        put_head(&out, 0x95, 0, 1)
        put_natural(&out, sequence)
        put_natural(&out, at)
        put_text(&out, topic)
        put_payload(&out, payload)
    except UnicodeEncodeError:
        return None
    return PyBytes_FromStringAndSize(<char*>room, out.at - room) if out.fits else None


cdef inline bytes packed_received(long long now, message):
    """Return an entry of a digest, `[1, now, *message]`; None: it isn't written here."""
    cdef unsigned char room[ROOM]
    cdef Writer out
    out.at, out.end, out.fits = room, room + ROOM, True
    try:
        put_head(&out, 0x99, 1, 1)
        put_natural(&out, now)
        put_message(&out, <tuple>message)
    except UnicodeEncodeError:
        return None
    return PyBytes_FromStringAndSize(<char*>room, out.at - room) if out.fits else None


cdef class Journal:
    cdef object _hash
    cdef list _unhashed
    cdef Py_ssize_t _weight
    cdef public list entries
    cdef public list asides
    cdef public long long sent
    cdef public long long received
    cdef Py_ssize_t _marked
    cdef long long _marked_received

    cpdef mark(self)
    cpdef take_back(self)
    @cython.locals(packed=bytes)
    cpdef note_sent(self, long long at, str topic, bytes payload)
    @cython.locals(packed=bytes, message=Message)
    cpdef note_received(self, long long now, list messages)
    cpdef note_fate(self, long long at, str what)
    @cython.locals(payload=bytes)
    cdef _put(self, tuple entry)
    cdef _catch_up(self)
