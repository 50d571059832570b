# The C types of `process.py`, for itself and for the compiled loop.

cimport cython

from worldline.kernel._engine cimport EntityBase, Engine


@cython.final
cdef class Process:
    cdef EntityBase _owner
    cdef object _generator
    cdef long long _ticket  # The order of the event that wakes it; any other such event is stale.
    cdef object _waits_on
    cdef object _value
    cdef object _done


cdef int adopt(EntityBase owner, object result, bint is_main) except -1
cdef int wake(Process process) except -1
cdef int deliver(Engine engine, EntityBase target, object topic, object payload) except -1
cdef int purge(Engine engine) except -1
