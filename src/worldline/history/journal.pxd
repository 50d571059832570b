cimport cython

cdef object _encode
cdef Py_ssize_t _HASH_EVERY, _HEAVY
cdef object _SENT, _RECEIVED
cdef bytes _HEAVY_HEAD


cdef class Journal:
    cdef object _hash
    cdef list _unhashed
    cdef Py_ssize_t _weight
    cdef public list entries
    cdef public list asides
    cdef public long long sent
    cdef public long long received
    cdef Py_ssize_t _marked
    cdef long long _marked_received

    cpdef mark(self)
    cpdef take_back(self)
    cpdef note_sent(self, long long at, str topic, bytes payload)
    @cython.locals(received=tuple)
    cpdef note_received(self, long long now, list messages)
    cpdef note_fate(self, long long at, str what)
    @cython.locals(count=Py_ssize_t)
    cdef _catch_up(self)
    cdef _hash_one(self, tuple note, bytes payload)
