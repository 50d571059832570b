cimport cython

from worldline.federation.calls cimport write_record as _write

cdef int _HEARD, _ANSWERED, _GRANTED, _KIND_SHIFT
cdef long long _RECORD_SIZE


cdef class RunJournal:
    cdef readonly object path
    cdef readonly bint is_resumed
    cdef readonly long long size
    cdef readonly dict snapshots
    cdef readonly dict codes
    cdef readonly str address
    cdef dict _numbers
    cdef list _names
    cdef list _last
    cdef unsigned int _check
    cdef long long _room
    cdef object _map
    cdef object _file

    cpdef long long heard(self, str name, body) except -1
    cpdef answered(self, str name, data)
    cpdef granted(self, str name, body)
    @cython.locals(last=list, place="long long", end="long long", mixed="unsigned int")
    cdef long long _append(self, int kind, str name, body) except -1
