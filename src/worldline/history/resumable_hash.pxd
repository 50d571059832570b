cimport cython

cdef Py_ssize_t _BLOCK, _ROUNDS
cdef unsigned long long _MASK
cdef tuple _START, _ORDERS


cdef class ResumableHash:
    cdef Py_ssize_t _size
    cdef unsigned long long[8] _words
    cdef unsigned long long[16] _mixed
    cdef unsigned long long[16] _block
    cdef unsigned long long _count
    cdef bytes _rest

    @cython.locals(unmixed=bytes, start=Py_ssize_t)
    cpdef update(self, data)
    @cython.locals(last=ResumableHash)
    cpdef bytes digest(self)
    @cython.locals(
        words="unsigned long long*", mixed="unsigned long long*", block="unsigned long long*",
        order=bytes, place=Py_ssize_t, step=Py_ssize_t, number=Py_ssize_t,
        word="unsigned long long", first="unsigned long long", second="unsigned long long",
    )
    cdef _mix_in(self, bytes data, Py_ssize_t start, bint is_last)


@cython.locals(va="unsigned long long", vb="unsigned long long", vc="unsigned long long", vd="unsigned long long")
cdef void _stir(
    unsigned long long* mixed, Py_ssize_t a, Py_ssize_t b, Py_ssize_t c, Py_ssize_t d,
    unsigned long long first, unsigned long long second,
) noexcept
