cimport cython

from worldline.federation.server.session cimport Session
from worldline.lock.arbiter cimport Arbiter
from worldline.lock.member cimport Member
from worldline.wire.codec cimport (
    Frames, add_grant, count_events, decode_event, decode_events, encode_answer, split_events
)



cdef object _OVER, Fail, Grant, Over


cdef class Host


cdef class FlowControl:
    cdef readonly Host _host
    cdef readonly long long share
    cdef readonly long long weigh_above
    cdef readonly long long frames_max
    cdef readonly long long frame_max
    cdef readonly long long unread_max
    cdef public list paused
    cdef list _throttled
    cdef long long _resumed_at
    cdef dict _stood

    cpdef weigh(self, Session session, Member member)
    cpdef resume(self)


cdef class Host:
    cdef public object limits
    cdef public Arbiter arbiter
    cdef public object digest
    cdef public object failure
    cdef public dict sessions
    cdef public object rejoining
    cdef public list dirty
    cdef public list busy
    cdef readonly object owner
    cdef public FlowControl flow
    cdef readonly list _strangers
    cdef readonly list _trunks
    cdef object _admission
    cdef dict _awaited
    cdef readonly double _ticked

    cpdef receive(self, Session session, object data, double now)
    cpdef bint hears(self, Session session) except -1
    cpdef hear(self, Session session, list events, double now)
    cpdef work(self)
    @cython.locals(left=Py_ssize_t, busy=bint, frames=Frames, bodies=list)
    cdef _turn(self, Session session)
    @cython.locals(count=Py_ssize_t)
    cdef Py_ssize_t _hear(self, Session session, object body) except -1
    @cython.locals(heard=list, events=list)
    cdef Py_ssize_t _hear_on(self, Session session) except -1
    cdef _pass_on(self, Session session, list events, body)
    @cython.locals(member=Member, actions=list)
    cpdef take(self, Session session, list events)
    @cython.locals(member=Member)
    cdef _weigh(self, Session session)
    @cython.locals(session=Session)
    cpdef _carry_out(self, object actions)
    cpdef put(self, Session session, object data)
    cdef bint _reads(self, Session session) except -1
