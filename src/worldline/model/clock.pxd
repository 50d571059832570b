cdef class RunningClock:
    cdef readonly object described
    cdef readonly bint is_steady
    cdef readonly long long shift
    cdef object _drift
    cdef object _every
    cdef list _ats
    cdef list _shifts
    cdef object _rates
    cdef object _whole
    cdef object _rest
    cdef object _key

    cpdef long long local(self, long long time) except? -1
    cpdef long long true(self, long long local, long long since) except? -1
    cpdef long long due(self, long long period, long long since) except? -1
    cpdef bint is_due(self, long long period, long long time) except -1
    cdef _jump_back(self, after, until)
    cdef _segment(self, time)
    cdef _walk_to(self, segment)
