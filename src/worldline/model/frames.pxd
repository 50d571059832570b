cimport cython

cdef Py_ssize_t _HEADER, _LONG, _ROOM_LEAST
cdef long long _GOES_ON
cdef list _HEADERS

cpdef bytes header(long long length)
cpdef bytes frame(bytes body)
@cython.locals(last=Py_ssize_t, start=Py_ssize_t)
cpdef bytes frames(bytes body, Py_ssize_t longest)


cdef class Cutter:
    cdef public long long longest
    cdef public long long whole
    cdef readonly bytes _rest
    cdef Py_ssize_t _at
    cdef bytearray _long
    cdef Py_ssize_t _filled
    cdef Py_ssize_t _length
    cdef bint _goes_on

    cpdef push(self, list unread)
    @cython.locals(
        rest=bytes, at=Py_ssize_t, there=Py_ssize_t, filled=Py_ssize_t, missing=Py_ssize_t, taken=Py_ssize_t,
        length="long long", start=Py_ssize_t, end=Py_ssize_t, view="const char *", body=bytes, begun=bytearray, goes_on=bint,
    )
    cpdef bint cut(self, list bodies) except -1
    @cython.locals(length="long long")
    cdef long long _piece(self, long long said) except -1
    cpdef bint is_cut_short(self) except -1
    cpdef Py_ssize_t gathered(self) except -1
    cpdef room(self)
    cpdef fill(self, list sizes)
