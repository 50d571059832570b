# What Python's C interface has and Cython's declarations of it don't.

from cpython.object cimport PyObject, PyTypeObject


cdef inline object new_tuple(kind, tuple fields):
    """Return `tuple.__new__(kind, fields)`, at a third of the price."""
    cdef tuple arguments = (fields,)
    return (<PyTypeObject*>tuple).tp_new(kind, <PyObject*>arguments, NULL)
