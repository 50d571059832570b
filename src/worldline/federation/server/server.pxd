cimport cython

from worldline.federation.participant.connection cimport Eagerness
from worldline.federation.server.host cimport Host
from worldline.federation.server.session cimport Session


cdef class Server:
    cdef object __weakref__
    cdef dict __dict__
    cdef public Host host
    cdef public object _clock
    cdef readonly object _sockets
    cdef public double _now
    cdef public double _timer
    cdef public Eagerness _eagerness
    cdef public list _resting

    @cython.locals(dirty=list, session=Session)
    cpdef _send_all(self)
