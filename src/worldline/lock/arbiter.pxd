cimport cython

from worldline.history.observer cimport Observer
from worldline.lock._words cimport Advance, Grant, Next, Publish, new_grant
from worldline.lock.bounds cimport Bounds
from worldline.lock.member cimport Inbox
from worldline.lock.member cimport Member
from worldline.lock.router cimport Router
from worldline.model._message cimport Message

cdef long long FOREVER, TIME_MAX
cdef Py_ssize_t _AS_AN_EVENT
cdef object _OVER, _COMPUTING, _ADVANCING, _AWAITING, _PEEKING, _JOINED
cdef object ASKING, Peek, WorldlineError


cdef class Arbiter:
    cdef readonly object plan
    cdef readonly object phase
    cdef readonly long long events
    cdef readonly long long end
    cdef readonly long long barrier
    cdef readonly long long ceiling
    cdef public object topics_max
    cdef public Py_ssize_t payload_max
    cdef public object logs_max
    cdef public object witness
    cdef readonly Bounds bounds
    cdef readonly dict newcomers
    cdef readonly Router router
    cdef Observer _observer
    cdef long long _tell_every
    cdef long long _tells_at
    cdef readonly object remarks
    cdef set _replaced
    cdef readonly dict members
    cdef Py_ssize_t _absent
    cdef Py_ssize_t _present
    cdef set _enrolled
    cdef readonly list _capped
    cdef long long _requests
    cdef dict _rewired
    cdef list _actions
    cdef dict _handlers

    @cython.locals(member=Member, actions=list)
    cpdef list hear(self, str who, list events)
    cpdef tell_if_due(self)
    cdef _take(self, Member member, event)
    @cython.locals(at="long long", topic=str, payload=bytes, waiting=Member)
    cdef _publish(self, Member member, Publish event)
    @cython.locals(to="long long")
    cdef _advance(self, Member member, Advance event)
    @cython.locals(until="long long", held="long long")
    cdef _next(self, Member member, Next event)
    cdef _wait(self, Member member, long long until)
    @cython.locals(goal="long long")
    cdef _ask(self, Member member)
    @cython.locals(awaits="long long", first="long long")
    cpdef long long goal(self, Member member)
    @cython.locals(ends=bint, first="long long")
    cdef long long _acts(self, Member member)
    cdef bint _is_capped(self, long long goal)
    @cython.locals(member=Member, ready=list, begun=bint, bound="long long")
    cdef _settle(self)
    @cython.locals(
        end="long long", horizon="long long", messages=list, first=Message, arrives="long long", now="long long",
        acts="long long", wakes="long long", promise="long long",
    )
    cdef _grant(self, Member member, long long bound)
