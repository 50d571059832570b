# What Python's C interface has and Cython's declarations of it don't.

from cpython.object cimport PyObject


cdef extern from "Python.h":
    ctypedef enum PySendResult:
        PYGEN_RETURN
        PYGEN_ERROR
        PYGEN_NEXT

    PySendResult PyIter_Send(object iterator, object value, PyObject** result) except PYGEN_ERROR


from cpython.long cimport PyLong_AsLongLongAndOverflow


cdef inline bint is_word(object value) noexcept:
    """Whether an int fits into 64 bits."""
    cdef int overflow = 0
    PyLong_AsLongLongAndOverflow(value, &overflow)
    return overflow == 0
