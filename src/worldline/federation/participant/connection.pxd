cimport cython

from worldline.federation.participant.conversation cimport Conversation


cdef bint _IS_COMPILED
cdef int _AT_ONCE
cdef Py_ssize_t _LEAST
cdef object _clock
cdef double _ASKED_S, _BRISK_S, _LONG_S, _VERY_LONG_S, _PAUSES


cdef class Eagerness:
    cdef object _clock
    cdef bint _brisk
    cdef double _lost_s
    cdef double _resumes

    cpdef bint asks(self, double since) except -1
    @cython.locals(before=double, now=double, took=double)
    cpdef bint asks_again(self, double since) except -1
    cpdef came(self, double since, double now)


cdef class SocketConnection:
    cdef object __weakref__
    cdef readonly object _socket
    cdef readonly object _plain
    cdef object _shake
    cdef str _name
    cdef readonly Conversation _conversation
    cdef object _reading
    cdef object _writing
    cdef readonly list _unsent
    cdef list _sent
    cdef list _unread
    cdef list _sizes
    cdef Py_ssize_t _size
    cdef Eagerness _eagerness
    cdef object _comes
    cdef double _written
    cdef double _looked
    cdef double _patience_s
    cdef object _doubt
    cdef double _begun
    cdef double _heard
    cdef object _silence_s
    cdef object _given_up
    cdef object _deadline
    cdef public bint disowned
    cdef readonly object welcome
    cdef readonly double heartbeat_s

    cpdef tell(self, list events)
    cpdef ask(self, list events)
    @cython.locals(now=double)
    cpdef bint is_due(self, bint urgent) except -1
    cpdef look(self)
    cdef _queue(self, list events)
    cpdef _write(self, object data)
    cdef _answer(self)
    cdef _send_all(self)
    @cython.locals(done=Py_ssize_t)
    cdef _send(self, object data)
    @cython.locals(heard=double)
    cdef _receive(self, int flags=*)


cdef class RedialingWire:
    cdef object __weakref__
    cdef readonly SocketConnection _connection
    cdef object _dial
    cdef double _patience_s
    cdef long long _answers
    cdef list _said
    cdef list _unsaid
    cdef bint _asks
    cdef bint _is_closed
    cdef object _given_up
    cdef object _renewing
