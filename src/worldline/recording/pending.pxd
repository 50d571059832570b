cimport cython

from worldline.history.observer cimport Observer
from worldline.model._messagepack cimport (
    ROOM, Writer, append, put_head, put_list, put_number, put_payload, put_text
)

cdef long long FOREVER
cdef object _encode
cdef Py_ssize_t _HASH_EVERY, _WEIGHT_OF_A_FATE


@cython.no_gc
cdef class Publication:
    cdef readonly object sender
    cdef readonly long long sequence
    cdef readonly object number
    cdef readonly object topic
    cdef readonly long long sent
    cdef readonly object payload
    cdef readonly long long expiry
    cdef long long _bound
    cdef list _fates

    cpdef bint precedes(self, Publication other)
    cpdef last(self, long long expiry)
    cpdef add(self, long long arrival, receiver, long long copy, lost)
    cpdef take_back(self, dict closures)
    cpdef break_off(self, long long end)
    @cython.locals(fates=list, last=dict)
    cpdef list fates(self)


cdef class _Sender:
    cdef long long told
    cdef dict open


cdef class Pending:
    cdef long long _worth_a_look
    cdef long long _floor
    cdef dict _senders
    cdef readonly list _order
    cdef bint _is_sorted
    cdef Publication _latest
    cdef long long _latest_number
    cdef dict _closures
    cdef long long _weight
    cdef long long _enough

    @cython.locals(sender=_Sender)
    cpdef sent(self, who, number, topic, long long at, payload, long long until)
    cpdef noted(self, who, topic, long long at, payload)
    @cython.locals(sender=_Sender)
    cdef _Sender _sender(self, who)
    @cython.locals(sequence="long long", publication=Publication)
    cdef Publication _add(self, _Sender sender, who, topic, long long at, payload, long long expiry, number)
    @cython.locals(publication=Publication, at_once=bint)
    cpdef arrives(self, sender, long long number, receiver, long long arrival, long long copy, lost)
    @cython.locals(latest=Publication, of_sender=_Sender)
    cdef Publication _find(self, sender, long long number)
    @cython.locals(publication=Publication)
    cpdef lasts(self, sender, long long number, long long expiry)
    cpdef closed(self, receiver, topic, long long until)
    cpdef list advance(self, long long floor)
    @cython.locals(publication=Publication, floor="long long", count=Py_ssize_t)
    cpdef list take(self)
    @cython.locals(publication=Publication)
    cpdef list finish(self, long long end)
    cdef _sort(self)
    @cython.locals(publication=Publication, sender=_Sender)
    cpdef list _remove(self, Py_ssize_t count)
    @cython.locals(publication=Publication)
    cpdef _carry_out_closures(self)


cdef class OrderingObserver(Observer):
    cdef public Pending _pending


cdef class _Count:
    cdef readonly long long published
    cdef readonly long long arrivals
    cdef readonly long long bytes


cdef inline bint add_message(bytearray target, sent, sender, sequence, topic, payload, list fates) except -1:
    """Put a message in its canonical form behind what is there; False: it isn't written here."""
    cdef unsigned char room[ROOM]
    cdef Writer out
    cdef tuple fate
    out.at, out.end, out.fits = room, room + ROOM, True
    put_list(&out, 6)
    put_number(&out, sent)
    put_text(&out, sender)
    put_number(&out, sequence)
    put_text(&out, topic)
    put_payload(&out, payload)
    put_list(&out, len(fates))
    for fate in fates:
        put_list(&out, 4)
        put_number(&out, fate[0])
        put_text(&out, fate[1])
        put_number(&out, fate[2])
        if fate[3] is None:
            put_head(&out, 0xC0, 0, 0)
        else:
            put_text(&out, fate[3])
    if out.fits:
        append(target, room, out.at - room)
    return out.fits


cdef class Contents:
    cdef object _hash
    cdef bytearray _unhashed
    cdef dict _counts
    cdef readonly dict losses

    @cython.locals(count=_Count)
    cpdef add(self, sent, sender, sequence, topic, payload, list fates)
    cdef _catch_up(self)
