cimport cython

cdef object _pack, _pack_length
cdef bint _IS_COMPILED
cdef int _HEARD, _ANSWERED, _KIND_SHIFT
cdef unsigned int _NUMBER_MASK
cdef long long _RECORD_SIZE, _KIND_PLACE, _LENGTH_PLACE, _SHORT


cdef class RunJournal:
    cdef public object path
    cdef public bint is_resumed
    cdef public long long size
    cdef public dict answers
    cdef public dict snapshots
    cdef public dict codes
    cdef public str address
    cdef dict _numbers
    cdef list _names
    cdef list _last
    cdef unsigned int _check
    cdef long long _room
    cdef readonly object _file
    cdef object _map
    cdef unsigned char[::1] _view

    cpdef long long heard(self, str name, bytes body) except -1
    cpdef answered(self, str name, bytes data)
    @cython.locals(
        place="long long", end="long long", before="unsigned long long", mixed="unsigned int", length="long long",
        check="unsigned int", last=list,
    )
    cdef long long _append(self, int kind, str name, bytes body) except -1
    @cython.locals(view="unsigned char[::1]", start="long long", step="long long")
    cdef _put(
        self, long long place, bytes body, unsigned int check, unsigned long long before, unsigned int number
    )


cdef unsigned int _begun_with(
    unsigned int check, unsigned int mixed, unsigned long long before, unsigned long long length
) except? 0
