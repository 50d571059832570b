cimport cython

from worldline.lock.arbiter cimport Arbiter
from worldline.lock.member cimport Member
from worldline.wire.codec cimport (
    add_grant, count_events, decode_event, decode_events, encode_answer, is_heavy, split_events
)
from worldline.wire.frames cimport Frames


cdef object _OVER


cdef class Session:
    cdef public object owner
    cdef public object challenge
    cdef public Frames frames
    cdef public bytearray out
    cdef public str name
    cdef public str claims
    cdef public str code
    cdef public Member member
    cdef public object joining
    cdef public double opened
    cdef public double heard
    cdef public double spoke
    cdef public double sent
    cdef public object stopped
    cdef public bint closing
    cdef public bint paused
    cdef public list bodies
    cdef public list events
    cdef public bint busy
    cdef public Py_ssize_t said
    cdef public bint hasty
    cdef public long long heavy
    cdef public long long stood_at
    cdef public long long stood_with
    cdef public object trunk


cdef class Host:
    cdef public object limits
    cdef public Arbiter arbiter
    cdef public str federation
    cdef public double returns_s
    cdef public object digest
    cdef public object failure
    cdef public dict sessions
    cdef public list dirty
    cdef public object notices
    cdef public object doubts
    cdef public list busy
    cdef public object desk
    cdef readonly list _strangers
    cdef readonly list _trunks
    cdef object _token
    cdef object _agreement
    cdef object _declared
    cdef bytes _nobodys
    cdef object _entropy
    cdef readonly long long _share
    cdef long long _heed
    cdef long long _frame_max
    cdef long long _unread_max
    cdef long long _frames_max
    cdef readonly list _paused
    cdef long long _resumed_at
    cdef list _hasty
    cdef dict _awaited
    cdef readonly double _ticked

    cpdef receive(self, Session session, object data, double now)
    cpdef work(self)
    @cython.locals(left=Py_ssize_t, busy=bint, frames=Frames, bodies=list)
    cdef _turn(self, Session session)
    @cython.locals(count=Py_ssize_t)
    cdef Py_ssize_t _hear(self, Session session, object body) except -1
    @cython.locals(heard=list, events=list)
    cdef Py_ssize_t _hear_on(self, Session session) except -1
    cpdef _take(self, Session session, list events)
    @cython.locals(session=Session)
    cpdef _carry_out(self, object actions)
    cpdef _put(self, Session session, object data)
    cdef bint _reads(self, Session session) except -1
