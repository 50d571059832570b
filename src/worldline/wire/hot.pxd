cimport cython

cdef Py_ssize_t _LONGEST, _TEXTS_KEPT
cdef bytes _PUBLISH, _NEXT, _ADVANCE, _GRANT, _MESSAGE
cdef object Grant, Message, _message


cdef class ShortReader:
    cdef bytes _body
    cdef const unsigned char* _view
    cdef Py_ssize_t _at
    cdef Py_ssize_t _end
    cdef dict _texts

    cpdef begin(self, bytes body)
    cpdef bint is_done(self)
    @cython.locals(at=Py_ssize_t, stop=Py_ssize_t, place=Py_ssize_t, expected="const unsigned char*")
    cpdef bint has(self, bytes word)
    @cython.locals(
        at=Py_ssize_t, stop=Py_ssize_t, place=Py_ssize_t, first=int, size=Py_ssize_t, value="long long",
    )
    cpdef long long whole(self)
    @cython.locals(at=Py_ssize_t, items=Py_ssize_t)
    cpdef Py_ssize_t count(self)
    @cython.locals(at=Py_ssize_t, start=Py_ssize_t, size=Py_ssize_t, encoded=bytes)
    cpdef str text(self)
    cdef str _learnt(self, bytes encoded)
    @cython.locals(at=Py_ssize_t, start=Py_ssize_t, size=Py_ssize_t)
    cpdef bytes data(self)
    @cython.locals(at=Py_ssize_t)
    cpdef bint flag(self)
    cdef int _refuse(self)


cdef class Said:
    cdef ShortReader _reader
    cdef readonly Py_ssize_t published
    cdef readonly list topics
    cdef readonly list payloads
    cdef readonly list times
    cdef readonly int request
    cdef readonly long long until
    cdef readonly long long held

    @cython.locals(reader=ShortReader, count=Py_ssize_t, place=Py_ssize_t)
    cpdef bint read(self, body)
    cpdef list events(self)


@cython.locals(messages=list, _=Py_ssize_t)
cpdef object read_grant(ShortReader reader, body)
