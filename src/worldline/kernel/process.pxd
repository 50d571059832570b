# The C types of `process.py`.

cimport cython

from cpython.list cimport PyList_GET_ITEM
from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF

from worldline.kernel._native cimport (
    PYGEN_ERROR,
    PYGEN_RETURN,
    PyIter_Send,
    PySendResult,
    hash_of_four,
    is_word,
    raise_pending,
)
from worldline.kernel.engine cimport (
    ALIVE,
    ENDED,
    INTERRUPTS,
    LAPSES,
    STARTS,
    Engine,
    EntityBase,
    Handlers,
    ScheduledEvent,
    acting,
)
from worldline.kernel.heap cimport LADEN
from worldline.kernel.heap cimport HeapQueue as Queue
from worldline.kernel.waiting cimport (
    FAILED,
    FIRED,
    PENDING,
    Awaited,
    EntityInbox,
    Part,
    Process,
    inbox_of,
    stop_waiting,
)


cdef class EntityWithProcesses(EntityBase):
    pass


cdef int adopt(EntityBase owner, object result, bint is_main) except -1
cdef int wake(Process process) except -1
cdef int deliver(Engine engine, EntityBase target, object topic, object payload) except -1
cdef int purge(Engine engine) except -1
