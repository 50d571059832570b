# What Python's C interface has and Cython's declarations of it don't.

from cpython.object cimport PyObject
from cpython.ref cimport Py_XDECREF, Py_XINCREF


cdef extern from "Python.h":
    ctypedef struct PyThreadState:
        PyObject* async_gen_firstiter
        PyObject* async_gen_finalizer

    PyThreadState* PyThreadState_Get()


cdef inline tuple asyncgen_hooks():
    """Do what `sys.get_asyncgen_hooks` does."""
    cdef PyThreadState* state = PyThreadState_Get()
    first = None if state.async_gen_firstiter is NULL else <object>state.async_gen_firstiter
    last = None if state.async_gen_finalizer is NULL else <object>state.async_gen_finalizer
    return first, last


cdef inline set_asyncgen_hooks(first, last):
    """Do what `sys.set_asyncgen_hooks` does; it isn't audited."""
    cdef PyThreadState* state = PyThreadState_Get()
    cdef PyObject* first_before = state.async_gen_firstiter
    cdef PyObject* last_before = state.async_gen_finalizer
    state.async_gen_firstiter = NULL if first is None else <PyObject*>first
    state.async_gen_finalizer = NULL if last is None else <PyObject*>last
    Py_XINCREF(state.async_gen_firstiter)
    Py_XINCREF(state.async_gen_finalizer)
    Py_XDECREF(first_before)
    Py_XDECREF(last_before)
