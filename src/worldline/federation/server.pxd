cimport cython

from worldline.federation.eagerness cimport Eagerness
from worldline.federation.host cimport Host, Session


cdef class Server:
    cdef object __weakref__
    cdef dict __dict__
    cdef readonly Host host
    cdef object _clock
    cdef object _sockets
    cdef double _now
    cdef double _timer
    cdef Eagerness _eagerness
    cdef readonly list _resting

    @cython.locals(dirty=list, session=Session)
    cpdef _send_all(self)
