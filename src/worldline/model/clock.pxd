cimport cython

cdef long long BILLION, FOREVER, TIME_MAX


cdef class RunningClock:
    cdef readonly object described
    cdef readonly bint is_steady
    cdef readonly long long shift
    cdef object _steps
    cdef object _rates
    cdef object _whole
    cdef object _rest
    cdef list _ats
    cdef list _shifts
    cdef long long _begins
    cdef long long _ends
    cdef long long _origin
    cdef long long _rate
    cdef long long _left
    cdef long long _ahead

    cdef _enter(self, time)
    @cython.locals(passed="long long", seconds="long long", more="long long")
    cpdef long long local(self, long long time) except? -1
    @cython.locals(time="long long", found="long long")
    cpdef long long true(self, long long local, long long since) except? -1
    cdef long long _passing(self, missing) except? -1
    @cython.locals(time="long long", found="long long")
    cpdef long long due(self, long long period, long long since) except? -1
    @cython.locals(shows="long long")
    cpdef bint is_due(self, long long period, long long time) except -1
    cdef _jump_back(self, after, until)
    cdef _walk_to(self, segment)
