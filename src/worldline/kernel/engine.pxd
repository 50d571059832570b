# The C types of `engine.py`, for itself and for the compiled modules that stand on it.

cimport cython

from cpython.bytearray cimport PyByteArray_AS_STRING, PyByteArray_Resize
from cpython.bytes cimport PyBytes_AS_STRING

from worldline.kernel._native cimport hash_of_four, is_word
from worldline.kernel.heap cimport BARE, LADEN, OWN
from worldline.kernel.heap cimport HeapQueue as Queue


# What an entity is to an engine. ABSENT: named by a sender, but not here (yet).
cdef enum:
    NEW
    ALIVE
    ENDED
    ABSENT
    REMOTE

cdef object STARTS
cdef object INTERRUPTS
cdef object LAPSES


@cython.final
cdef class Handlers:
    cdef readonly dict by_topic
    cdef object topic
    cdef object function

    cdef int find(self, object topic) except -1


@cython.final
cdef class Topics:
    cdef readonly list numbered
    cdef dict _numbers
    cdef object given
    cdef object text
    cdef int number
    cdef unsigned long long chain

    cdef int learn(self, object topic) except -1


# As `LETTER` has it, which is how the other build writes and reads it.
cdef packed struct Letter:
    long long arrival
    long long sent
    long long order
    int sender
    int receiver
    int topic
    int payload


@cython.final
cdef class Outbox:
    cdef readonly long long posted  # How many letters there were in all.
    cdef bytearray _letters  # Compiled, it is longer than what is in it.
    cdef Py_ssize_t _size
    cdef Py_ssize_t _topics_known
    cdef list _names
    cdef list _payloads

    cdef int _number_of(self, object entity) except? -1


cdef class Engine


@cython.final
cdef class Mail:
    cdef readonly list outboxes
    cdef object _names
    cdef object _workers

    cdef int post(
        self,
        Engine engine,
        long long arrival,
        long long order,
        object sender,
        object target,
        object topic,
        object payload,
    ) except -1


@cython.final
cdef class Engine:
    cdef readonly Queue queue
    cdef readonly object roster
    cdef readonly dict directory
    cdef readonly dict dropped
    cdef readonly Topics topics
    cdef readonly Mail mail
    cdef readonly long long latency
    cdef readonly long long least
    cdef public long long now
    cdef readonly long long events
    cdef readonly object actor
    cdef public object failed  # Who was acting when something went wrong.
    cdef public object observer  # Who looks on (E5); mostly None.
    cdef Py_ssize_t _patience  # How many events in the queue may be dead, until it is time to do something about it.
    cdef list _leaving

    cdef int _introduce(self, object entity, object name, object rank, object place, object key) except -1
    cdef int _push(
        self,
        long long time,
        long long sent,
        long long order,
        object sender,
        object target,
        object topic,
        object payload,
    ) except -1
    cdef object _find(self, object name)
    cdef int _enter_table(self, object entity) except -1
    cdef int _unpin(self, int number) except -1
    cdef int _leave_table(self, object entity) except -1
    cdef int _let_go(self) except -1


cdef class EntityBase:
    cdef readonly int _wl_rank
    cdef readonly int _wl_place
    cdef public object _wl_extras
    cdef Engine _wl_engine
    cdef Handlers _wl_handlers
    cdef object _wl_name
    cdef int _wl_state
    cdef int _wl_number  # Its place in the engine's table, if it has one.
    cdef int _wl_pins  # How many waiting events name it, if it was created during the run.
    cdef int _wl_ahead  # How many timers and sleeping processes of its own are in the queue, dead ones included.
    cdef int _wl_running  # How many processes it has besides the main one.
    cdef int _wl_burst
    cdef long long _wl_burst_at
    cdef long long _wl_order
    cdef unsigned long long _wl_chain
    cdef unsigned long long _wl_key
    cdef object _wl_inbox
    cdef object _wl_main
    cdef list _wl_others
    cdef object _wl_random

    cdef object _wl_schedule(self, object topic, object payload, long long delay)
    cdef long long _wl_after(self, long long delay, object event) except -1
    cdef int _wl_check_burst(self, long long delay) except -1


@cython.final
cdef class ScheduledEvent:
    cdef readonly object topic
    cdef readonly object payload
    cdef readonly long long time
    cdef public bint is_live
    cdef EntityBase _owner


cdef Engine acting(EntityBase entity)
cdef ScheduledEvent new_timer(EntityBase owner, object topic, object payload, long long time)
