cimport cython

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
