cimport cython

cdef object _HEAD, _LENGTH
cdef int _HEARD, _ANSWERED, _KIND_SHIFT
cdef long long _RECORD_SIZE, _HEAVY


cdef class RunJournal:
    cdef public object path
    cdef public bint is_resumed
    cdef public long long size
    cdef public dict answers
    cdef dict _numbers
    cdef list _names
    cdef list _last
    cdef object _check
    cdef long long _first
    cdef long long _room
    cdef readonly object _file
    cdef object _map

    cpdef heard(self, str name, bytes body)
    cpdef answered(self, str name, bytes data)
    @cython.locals(place="long long", end="long long", head=bytes, said=bytes)
    cdef _append(self, int kind, str name, bytes body)
