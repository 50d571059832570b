cimport cython

cdef Py_ssize_t _BLOCK, _ROUNDS
cdef unsigned long long _MASK
cdef tuple _START, _ORDERS


cdef class ResumableHash:
    cdef Py_ssize_t _size
    cdef unsigned long long[::1] _words
    cdef unsigned long long[::1] _mixed
    cdef unsigned long long[::1] _block
    cdef unsigned long long _count
    cdef bytes _rest

    @cython.locals(unmixed=bytes, start=Py_ssize_t)
    cpdef update(self, data)
    @cython.locals(last=ResumableHash)
    cpdef bytes digest(self)
    @cython.locals(
        words="unsigned long long[::1]", mixed="unsigned long long[::1]", block="unsigned long long[::1]",
        order="const unsigned char[::1]", place=Py_ssize_t, step=Py_ssize_t, number=Py_ssize_t,
        word="unsigned long long", first="unsigned long long", second="unsigned long long",
    )
    cdef _mix_in(self, bytes data, Py_ssize_t start, bint is_last)


@cython.locals(va="unsigned long long", vb="unsigned long long", vc="unsigned long long", vd="unsigned long long")
cdef void _stir(
    unsigned long long[::1] mixed, Py_ssize_t a, Py_ssize_t b, Py_ssize_t c, Py_ssize_t d,
    unsigned long long first, unsigned long long second,
) noexcept
