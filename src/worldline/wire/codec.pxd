cimport cython

from worldline.model.frames cimport Cutter, frame, frames, header
from worldline.wire.packed cimport pack_grant, packed_events, packed_grant, unpacked_events, unpacked_grant

cdef Py_ssize_t _FEW, _PORTION, _HEAVY, _OVERHEAD, _FEW_EVENTS, _EVENTS_SAID_MAX
cdef tuple _REQUESTS, _UNREADABLE
cdef object Fail, Grant, Leave, Publish, StartRun, _encode, _encode_into, _decode_events, _decode_event, _split, _decode_answer


cdef class Frames(Cutter):
    cpdef admit(self, long long payload_max)


@cython.locals(body=bytes)
cpdef encode_events(list events, Py_ssize_t longest=*)
@cython.locals(body=bytes)
cpdef bytes encode_answer(object answer, Py_ssize_t longest=*)
cdef bint _is_heavy_publish(list events) except -1
@cython.locals(messages=list)
cpdef bint is_heavy(object grant) except -1
@cython.locals(messages=list, body=bytes)
cpdef add_grant(bytearray out, object grant, Py_ssize_t longest=*)
@cython.locals(start=Py_ssize_t, body=Py_ssize_t, length=Py_ssize_t)
cdef _add(bytearray out, object said, Py_ssize_t longest)
cpdef list decode_events(object body)
@cython.locals(first=Py_ssize_t)
cpdef Py_ssize_t count_events(object body) except -1
cpdef list split_events(object body)
cpdef object decode_event(object raw)
cpdef object decode_answer(object body)
