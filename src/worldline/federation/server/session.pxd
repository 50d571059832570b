from worldline.lock.member cimport Member
from worldline.wire.codec cimport Frames


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
    cdef public object returning
    cdef public bint is_foreign
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
    cdef public bint throttled
    cdef public object trunk
