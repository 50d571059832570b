cimport cython

from worldline.federation.participant.connection cimport Eagerness
from worldline.federation.server.host cimport Host
from worldline.federation.server.session cimport Session


cdef class TimeHold:
    cdef Host _host
    cdef public object pace
    cdef public object wanted
    cdef public object paused_at
    cdef object _held
    cdef public list resting
    cdef public double due
    cdef object _begun
    cdef object _begun_at


cdef class Server:
    cdef object __weakref__
    cdef dict __dict__
    cdef public Host host
    cdef public object _clock
    cdef readonly object _sockets
    cdef public double _now
    cdef public double _timer
    cdef public Eagerness _eagerness
    cdef public TimeHold _hold

    @cython.locals(dirty=list, session=Session)
    cpdef _send_all(self)
