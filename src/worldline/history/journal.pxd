cimport cython

from worldline.model._messagepack cimport pack

cdef object _encode
cdef Py_ssize_t _HASH_EVERY, _HEAVY
cdef object _SENT, _RECEIVED
cdef bytes _HEAVY_HEAD


cdef class Journal:
    cdef object _hash
    cdef bytearray _unhashed
    cdef list _heavy
    cdef public list entries
    cdef public list asides
    cdef public long long sent
    cdef public long long received
    cdef Py_ssize_t _marked
    cdef Py_ssize_t _marked_heavy
    cdef long long _marked_received

    cpdef mark(self)
    cpdef take_back(self)
    cpdef note_sent(self, long long at, str topic, bytes payload)
    @cython.locals(received=tuple)
    cpdef note_received(self, long long now, list messages)
    cpdef note_fate(self, long long at, str what)
    cdef _note(self, tuple note)
    cdef _catch_up_if_due(self)
    @cython.locals(parts=list, start=Py_ssize_t, fresh=bytearray)
    cdef _catch_up(self)
