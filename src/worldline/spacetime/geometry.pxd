# The C types of `geometry.py`, for itself and for the compiled core.

cimport cython
from cpython.mem cimport PyMem_Free, PyMem_Malloc
from libc.math cimport fma, sqrt


cdef enum:
    FEW = 4  # So many coordinates have their place in the object itself.


@cython.final
cdef class Vector:
    cdef readonly Py_ssize_t n
    cdef double* x
    cdef double[FEW] few


@cython.final
cdef class LambdaField:
    cdef Vector _given
    cdef readonly double c
    cdef Vector r


@cython.final
cdef class Trajectory:
    cdef readonly Vector start
    cdef readonly Vector velocity
    cdef double _square_high
    cdef double _square_low
    cdef double stretch

    cdef Vector point(self, double tau)
    cdef void put(self, double tau, double* x) noexcept
    cdef double meeting(self, double* a, LambdaField field) noexcept


cdef double* new_doubles(Py_ssize_t n) except? NULL
cdef Vector blank_vector(Py_ssize_t n)
cdef bint is_same(Vector a, Vector b) noexcept
