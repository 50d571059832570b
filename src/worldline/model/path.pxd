cimport cython

cdef long long FOREVER


cdef class Path:
    cdef long long _busy_until
    cdef object _draws
    cdef tuple _dropouts
    cdef object _key
    cdef object _key_at_sender
    cdef long long _last
    cdef long long _latency_least
    cdef object _link
    cdef tuple _names
    cdef long long _opened
    cdef tuple _outages
    cdef readonly long long constant
    cdef readonly long long latency_min
    cdef readonly bint queues

    @cython.locals(departure="long long", drops_out=bint, stays=bint, drawn="long long", arrival="long long")
    cpdef tuple carry(self, long long sent, number, size)
    cpdef bint is_idle(self, long long now)
    cdef bint _is_lost_at_sender(self, long long sent, number) except -1
    cdef bint _happens(self, probability, long long sent, number, which) except -1
    cdef long long _latency(self, long long sent, number, which) except? -1
    @cython.locals(departure="long long")
    cdef long long _departure(self, long long sent)
    cdef bint _drops_out(self, long long sent) except -1
    cdef long long _queue(self, long long sent, long long departure, long long transmission)
    @cython.locals(arrival="long long")
    cdef long long _arrive(self, long long sent, long long earliest)
    cdef long long _in_range(self, long long sent, long long earliest)


cdef class Lifetime:
    cdef object _bandwidth_min
    cdef tuple _holds
    cdef long long _last
    cdef long long _latency_max
    cdef readonly long long constant
    cdef readonly bint queues

    @cython.locals(departure="long long")
    cpdef long long expiry(self, long long sent, size)
