# The C types of `engine.py`, for itself and for `resources/classes.py`.

cimport cython
from cpython.long cimport PyLong_AsLongLongAndOverflow
from cpython.object cimport PyObject

from worldline.kernel._native cimport hash_of_four
from worldline.simpy._native cimport (
    PYGEN_ERROR,
    PYGEN_RETURN,
    PyIter_Send,
    PyObject_GenericDelAttr,
    PyObject_GenericSetAttr,
    PySendResult,
    empty,
    is_empty,
    linked,
    owned,
    place_of,
    set_cause,
    wl_give_dict,
    wl_pending,
)
from worldline.simpy.agenda cimport FLAGS, PRIORITY, STANDS_FOR, WHOLE, Agenda, Node

# What has become of an event, and what it is. LEADS: its first callback is its own.
cdef enum:
    TRIGGERED = 1
    OK_KNOWN = 2
    OK = 4
    DEFUSED = 8
    PROCESSED = 16
    LEADS = 32
    IS_CONDITION = 64

    SUCCEEDED = 7
    FAILED = 3

cdef enum:
    URGENT_ = 0
    NORMAL_ = 1


cdef class Environment:
    cdef public object _active_proc
    cdef readonly object unit
    cdef Agenda _wl_agenda
    cdef list _wl_queue
    cdef object _wl_now
    cdef bint _wl_schedules
    cdef bint _wl_steps
    cdef long long _wl_number
    cdef long long _wl_events
    cdef unsigned long long _wl_chain
    cdef long long _wl_processes
    cdef object _wl_host
    cdef object _wl_teller
    cdef object _wl_failed
    cdef object _wl_streams
    cdef object _wl_dict
    cdef object __weakref__

    cdef object _wl_time(self)


cdef class Event:
    cdef public Environment env
    cdef object _wl_value
    cdef object _wl_waiter
    cdef object _wl_about
    cdef unsigned char _wl_state
    cdef object _wl_dict
    cdef object __weakref__

    cdef int _wl_lead(self) except -1
    cdef object _wl_leader(self)
    cdef int _wl_stand(self) except -1
    cdef list _wl_list(self)


cdef class Timeout(Event):
    pass


cdef class Initialize(Event):
    pass


cdef class Interruption(Event):
    pass


cdef class Process(Event):
    cdef object _wl_target


cdef class ConditionValue:
    cdef public list events


cdef class Condition(Event):
    cdef public object _evaluate
    cdef public tuple _events
    cdef public Py_ssize_t _count
    cdef int _wl_kind


cdef class AllOf(Condition):
    pass


cdef class AnyOf(Condition):
    pass


cdef int enqueue(Environment env, Event event, int priority, object delay) except -1
cdef int enqueue_now(Environment env, Event event) except -1
cdef int fulfil(Event event, object value) except -1
cdef int stand_in(Environment env, object kept, int priority) except -1
