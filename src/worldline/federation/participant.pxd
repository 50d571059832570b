cimport cython

from worldline.lock.ledger cimport Ledger


cdef class Operations:
    cdef dict __dict__  # Programs may keep things there.
    cdef public Ledger _ledger
    cdef public object _courier
    cdef public object _lock
    cdef public bint _waits
    cdef public bint _presses
    cdef public list _untold
    cdef public list _asked
    cdef public object _stable

    cpdef _say(self, bint urgent=*)
    cpdef _served_next(self, long long before, promise)
    cpdef _take_untold(self)
    cpdef _take_asked(self)
    cpdef _catch_up(self)
    cpdef _tell(self)


cdef class Participant(Operations):
    cdef public object _connection

    cpdef list _advance(self, to, by)
    @cython.locals(before="long long")
    cpdef list _next(self, until, promise)
    cpdef list _wait(self)
