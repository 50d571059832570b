# The C types of `draws.py`.

cimport cython
from cpython.long cimport PyLong_AsLongLongAndOverflow
from libc.math cimport log


@cython.final
cdef class Draws:
    cdef unsigned long long _key
    cdef unsigned long long _mirror
    cdef unsigned long long _drawn
    cdef public object gauss_next

    cdef unsigned long long _bits(self) noexcept
    cdef unsigned long long _below(self, unsigned long long n) noexcept
