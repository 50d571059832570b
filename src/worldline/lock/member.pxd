cimport cython

from worldline.lock.bounds cimport Clock
from worldline.lock.inbox cimport Inbox
from worldline.lock.states cimport StateRow


cdef class Member(Clock):
    cdef dict _moves
    cdef readonly frozenset legal
    cdef readonly object state
    cdef public long long start
    cdef public long long now
    cdef public long long awaits
    cdef public long long granted
    cdef public long long reach
    cdef public long long declared_reach
    cdef readonly dict declared
    cdef readonly dict undeclared
    cdef public bint expects
    cdef public long long held
    cdef public long long since
    cdef public long long sequence
    cdef public long long outstanding
    cdef public long long logged
    cdef public long long logged_at
    cdef public bytes digest
    cdef readonly Inbox inbox
    cdef public dict publications
    cdef public dict spent
    cdef public Py_ssize_t sweep_at
    cdef public dict publishes
    cdef public dict subscriptions
    cdef readonly dict downtimes
    cdef public long long latency_least
    cdef public bint controls

    cpdef begin_at(self, long long start)
    cdef _enter(self, StateRow row)
    @cython.locals(row=StateRow)
    cpdef move(self, kind)
    cpdef retire(self)
    cpdef bint may_publish(self, topic)
