# The hash that chains are made of, in the kernel and in spacetime: CPython's hash of a tuple of whole numbers, a variant
# of xxHash, of which 60 bits are kept. So in plain Python it is one fast call, and here a handful of operations; the
# tests compare digests of both builds. The numbers must be less than 2**61 - 1, or Python's hash of each would be
# another one.

ctypedef unsigned long long word


cdef inline word _mixed(word sum_so_far, word number) noexcept nogil:
    sum_so_far += number * 14029467366897019727ULL
    sum_so_far = (sum_so_far << 31) | (sum_so_far >> 33)
    return sum_so_far * 11400714785074694791ULL


cdef inline word _kept(word mixed, word length) noexcept nogil:
    mixed += length ^ (2870177450012600261ULL ^ 3527539ULL)
    return (mixed if mixed != 18446744073709551615ULL else 1546275796ULL) & 1152921504606846975ULL


cdef inline word hash_of_four(word a, word b, word c, word d) noexcept nogil:
    return _kept(_mixed(_mixed(_mixed(_mixed(2870177450012600261ULL, a), b), c), d), 4)


cdef inline word hash_of_seven(word a, word b, word c, word d, word e, word f, word g) noexcept nogil:
    cdef word first = _mixed(_mixed(_mixed(_mixed(2870177450012600261ULL, a), b), c), d)
    return _kept(_mixed(_mixed(_mixed(first, e), f), g), 7)


# What Python's C interface has and Cython's declarations of it don't.

from cpython.object cimport PyObject


cdef extern from "Python.h":
    ctypedef enum PySendResult:
        PYGEN_RETURN
        PYGEN_ERROR
        PYGEN_NEXT

    # Cython isn't told that it may raise an exception: to be ready for one would cost each call something.
    PySendResult PyIter_Send(object iterator, object value, PyObject** result) noexcept


cdef inline int raise_pending() except -1:
    """Let Cython see an exception that C code has left behind."""
    return -1


from cpython.long cimport PyLong_AsLongLongAndOverflow


cdef inline bint is_word(object value) noexcept:
    """Whether an int fits into 64 bits."""
    cdef int overflow = 0
    PyLong_AsLongLongAndOverflow(value, &overflow)
    return overflow == 0
