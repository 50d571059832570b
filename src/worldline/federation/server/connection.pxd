cimport cython

from worldline.federation.calls cimport EpollWatch, SocketCalls, Watch
from worldline.federation.participant.connection cimport Eagerness, MonotonicClock
from worldline.federation.server.host cimport Host
from worldline.federation.server.session cimport Session
from worldline.wire.codec cimport Frames


cdef Py_ssize_t _LEAST
cdef int READ, WRITE, _MANY
cdef object _OVER


cdef class SocketWatch(Watch):
    cdef object _poll
    cdef dict _actions


cdef class ServerConnection:
    cdef public Session session
    cdef readonly object _socket
    cdef SocketCalls _calls
    cdef Host _host
    cdef object _sockets
    cdef object _gone
    cdef MonotonicClock _clock
    cdef bint _handshaking
    cdef bint _tls
    cdef bint _closed
    cdef object _process
    cdef bint _looked
    cdef bint _last_sent
    cdef object _closing_since
    cdef int _events
    cdef Py_ssize_t _size

    @cython.locals(session=Session)
    cpdef act(self)
    @cython.locals(frames=Frames, host=Host, data=bytes, size=Py_ssize_t)
    cdef _read(self, Session session)
    @cython.locals(session=Session, out=bytearray, sent=Py_ssize_t)
    cpdef write(self)
    cdef _watch(self, int events)


cdef class ServerTurns:
    cdef Host _host
    cdef Watch _sockets
    cdef MonotonicClock _clock
    cdef Eagerness _eagerness
    cdef Py_ssize_t _done
    cdef public double now
    cdef public double timer

    @cython.locals(host=Host, eagerness=Eagerness, before=double, sleeps_s=double, asks=bint, ready=list)
    cpdef bint take(self, bint patient) except -1
    cpdef bint take_many(self, list resting) except -1
    @cython.locals(host=Host, dirty=list, session=Session)
    cpdef send_all(self)
