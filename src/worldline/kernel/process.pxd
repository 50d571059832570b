# The C types of `process.py`.

cimport cython

from cpython.list cimport PyList_GET_ITEM
from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF

from worldline.kernel._native cimport PYGEN_RETURN, PyIter_Send, hash_of_four, is_word
from worldline.kernel.engine cimport (
    ALIVE,
    ENDED,
    INTERRUPTS,
    STARTS,
    Engine,
    EntityBase,
    Handlers,
    ScheduledEvent,
    acting,
)
from worldline.kernel.heap cimport LADEN
from worldline.kernel.heap cimport HeapQueue as Queue


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
