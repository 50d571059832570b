cimport cython

from worldline.wire.codec cimport decode_answer, encode_events
from worldline.wire.frames cimport Frames

cdef tuple _REQUESTS


cdef class Conversation:
    cdef public object end
    cdef public bint disowned
    cdef readonly Frames frames
    cdef str _name
    cdef list _bodies
    cdef list _parts

    cpdef agree(self, long long frame_max, long long payload_max)
    cpdef feed(self, object data)
    @cython.locals(moved=bint)
    cpdef bint move(self, list unread) except -1
    cpdef body(self)
    cpdef encode(self, list events)
    @cython.locals(messages=list)
    cpdef answer(self)
    cdef bint _is_whole(self) except -1
    cpdef look(self)
    cpdef check(self)
    cdef _understood(self, object body)
