cimport cython

from worldline.federation.participant.participant cimport Participant
from worldline.programs.belongings cimport Belongings
from worldline.programs.stack cimport Stack

cdef long long _NEVER, _US
cdef Py_ssize_t _LOOKS_FREE, _LOOKS_LEAST, _TURNS_FREE, _CHARGES_MAX, _ENDS_MAX
cdef object here


cdef class Spinning:
    cdef Py_ssize_t _looks
    cdef Py_ssize_t _charges
    cdef readonly long long charged

    cdef long long look(self, Py_ssize_t weight=*)
    cdef time_has_passed(self)
    cdef has_waited(self)


cdef class Computer:
    cdef readonly Participant participant
    cdef readonly Stack stack
    cdef public object over
    cdef object _over_at
    cdef readonly object signals
    cdef readonly object draws
    cdef public Belongings workspace
    cdef readonly object output
    cdef readonly object restarts_at
    cdef readonly list loops
    cdef readonly list threads
    cdef readonly set held
    cdef readonly object choose_next
    cdef Spinning _spinning
    cdef Py_ssize_t _ends
    cdef str _idle

    @cython.locals(cost="long long")
    cpdef long long monotonic_ns(self) except? -1
    @cython.locals(cost="long long")
    cpdef glance(self)
    @cython.locals(until="long long")
    cdef _charge(self, long long cost)
    cpdef wait(self, ready, deadline=*, inside=*)
    cdef bint _run_threads(self) except -1
    @cython.locals(stack=Stack, limit="long long")
    cdef _go_on(self, deadline)
    @cython.locals(stack=Stack, participant=Participant, until="long long")
    cdef tuple _exchange(self, long long limit)
    cdef _log_output(self)
    cpdef enter(self)
    cpdef leave(self)
