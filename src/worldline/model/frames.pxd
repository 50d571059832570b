cimport cython

cdef Py_ssize_t _LONG, _ROOM_LEAST, _AHEAD
cdef list _HEADERS

@cython.locals(length=Py_ssize_t)
cpdef bytes frame(bytes body)


cdef class Cutter:
    cdef public long long longest
    cdef readonly bytes _rest
    cdef Py_ssize_t _at
    cdef bytearray _long
    cdef Py_ssize_t _filled
    cdef Py_ssize_t _length

    cpdef push(self, list unread)
    @cython.locals(
        rest=bytes, at=Py_ssize_t, there=Py_ssize_t, filled=Py_ssize_t, missing=Py_ssize_t, taken=Py_ssize_t,
        length="long long", start=Py_ssize_t, end=Py_ssize_t, begun=bytearray,
    )
    cpdef bint cut(self, list bodies) except -1
    cpdef room(self)
    cpdef fill(self, list sizes)
