cimport cython

from worldline.lock.bounds cimport Clock
from worldline.lock.heap cimport Heap
from worldline.lock.states cimport StateRow
from worldline.model._message cimport Message

cdef long long FOREVER


cdef class Inbox:
    cdef readonly long long first
    cdef list _fresh
    cdef bint _in_order
    cdef long long _last
    cdef long long _last_sent
    cdef str _last_sender
    cdef dict _later
    cdef Heap _moments
    cdef readonly list _ghosts
    cdef Py_ssize_t _ghosts_kept
    cdef Py_ssize_t _ghosts_max
    cdef readonly dict dropped

    cpdef put(self, Message message)
    cpdef add(self, Message message, long long arrival, long long sent, str sender)
    cpdef put_ghost(self, long long arrival, str topic, str reason, long long now)
    @cython.locals(moments=Heap, taken=list, of_moment=list)
    cpdef list take(self, long long horizon)
    @cython.locals(fresh=list, message=Message, taken=list, count=Py_ssize_t)
    cdef list _cut_off(self, long long horizon)
    @cython.locals(message=Message, later=dict, others=list)
    cdef _put_aside(self)
    cdef _clear(self)
    cpdef count(self, long long before, topics=*)


@cython.locals(place=Py_ssize_t, before=Message, message=Message, sent_before="long long", sent="long long")
cdef bint _is_sorted(list messages) except -1


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
