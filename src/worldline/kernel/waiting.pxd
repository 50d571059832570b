# The C types of `waiting.py`, for itself and for the compiled modules that stand on it.

cimport cython

from worldline.kernel.engine cimport (
    ALIVE,
    INTERRUPTS,
    LAPSES,
    Engine,
    EntityBase,
    ScheduledEvent,
    acting,
    new_timer,
)


# What has become of an Awaited.
cdef enum:
    PENDING
    FIRED
    FAILED


cdef class Awaited:
    cdef object _value
    cdef object _waiters
    cdef int _state

    cdef int _begin(self, Awaited waiter, Process process) except -1
    cdef int _note(self, Awaited waiter) except -1
    cdef int _leave(self, Awaited waiter) except -1
    cdef int _happen(self, int state, object value) except -1
    cdef int _told(self, Awaited what) except -1


cdef class Signal(Awaited):
    pass


@cython.final
cdef class Process(Awaited):
    cdef bint _throws
    cdef bint _is_looked_at
    cdef bint _is_suspect
    cdef int _place
    cdef EntityBase _owner
    cdef object _generator
    cdef long long _ticket  # The order of the event that wakes it; any other such event is stale.
    cdef Awaited _waits_on


@cython.final
cdef class EntityInbox(Awaited):
    cdef readonly object messages
    cdef readonly list readers


@cython.final
cdef class Part(Awaited):
    cdef object _source

    cdef int _end(self, object value) except -1


@cython.final
cdef class Combination(Awaited):
    cdef bint _is_all
    cdef list _things
    cdef list _parts
    cdef Py_ssize_t _missing

    cdef int _begin_parts(self, Process process) except -1
    cdef int _settle(self, int state, object value) except -1
    cdef int _let_go(self) except -1
    cdef object _happened(self)
    cdef object _happened_so_far(self)


cdef int stop_waiting(Process process) except -1
cdef EntityInbox inbox_of(EntityBase owner)
