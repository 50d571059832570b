cimport cython

cdef double _ASKED_S, _BRISK_S, _CROWDED_S, _PAUSE_LEAST_S, _PAUSE_MAX_S, _UNCROWDED_S


cdef class Eagerness:
    cdef object _clock
    cdef bint _brisk
    cdef bint _yielded_long
    cdef double _pause_s
    cdef double _resumes

    cpdef bint asks(self, double since) except -1
    @cython.locals(before=double, now=double)
    cpdef bint asks_again(self, double since) except -1
    cpdef came(self, double since, double now)
