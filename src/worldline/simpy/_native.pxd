# What Python's C interface has and Cython can't say, and the bits of a time.

from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF, Py_INCREF
from libc.string cimport memcpy

from worldline.kernel._native cimport hash_of_four

cdef extern from *:
    """
    /* Returns as a function does that has raised: for a try statement around an exception that is set already. */
    static int wl_pending(void) { return -1; }

    static PyGetSetDef wl_dict_access = {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, NULL, NULL};

    /* Give objects of a class a __dict__ that isn't made before it is needed. */
    static int wl_give_dict(PyObject *kind, Py_ssize_t offset) {
        PyTypeObject *type = (PyTypeObject *)kind;
        PyObject *access = PyDescr_NewGetSet(type, &wl_dict_access);
        int failed = access == NULL || PyDict_SetItemString(type->tp_dict, "__dict__", access);
        Py_XDECREF(access);
        if (failed) return -1;
        type->tp_dictoffset = offset;
        PyType_Modified(type);
        return 0;
    }
    """
    int wl_pending() except -1
    int wl_give_dict(object kind, Py_ssize_t offset) except -1

cdef extern from "Python.h":
    ctypedef enum PySendResult:
        PYGEN_RETURN
        PYGEN_ERROR
        PYGEN_NEXT

    PySendResult PyIter_Send(object iterator, object value, PyObject** result) noexcept
    int PyObject_GenericSetAttr(object thing, object name, object value) except -1
    int PyObject_GenericDelAttr "PyObject_GenericSetAttr"(object thing, object name, void* value) except -1
    int PyList_DelSlice "PyList_SetSlice"(object items, Py_ssize_t begin, Py_ssize_t end, void* nothing) except -1
    void PyException_SetCause(object error, PyObject* cause) noexcept  # Takes the reference over.


cdef inline int remove_at(list items, Py_ssize_t place) except -1:
    """Remove an item: what Cython makes of `del` and `pop` is a call of a method, if the list is short."""
    return PyList_DelSlice(items, place, place + 1, NULL)


cdef inline void set_cause(object error, object cause) noexcept:
    Py_INCREF(cause)
    PyException_SetCause(error, <PyObject*>cause)


cdef inline Py_ssize_t place_of(object thing, object marker) noexcept:
    """Return where in an object's memory a marker is."""
    cdef PyObject** words = <PyObject**><PyObject*>thing
    cdef Py_ssize_t place = 2
    while words[place] != <PyObject*>marker:
        place += 1
    return place * sizeof(PyObject*)


cdef inline void empty(object thing, Py_ssize_t place) noexcept:
    """Put no object at all where Cython has put None."""
    if place:
        (<PyObject**>(<char*><PyObject*>thing + place))[0] = NULL
        Py_DECREF(None)


cdef inline bint is_empty(object thing, Py_ssize_t place) noexcept:
    return (<PyObject**>(<char*><PyObject*>thing + place))[0] == NULL


cdef inline object owned(PyObject* given):
    """Take over a reference that C code has given away."""
    taken = <object>given
    Py_DECREF(taken)
    return taken


cdef inline unsigned long long linked(unsigned long long chain, double time, unsigned long long code) noexcept:
    """Return the next link of a chain: CPython's hash of the tuple (chain, high half of time, low half, code)."""
    cdef unsigned long long bits
    memcpy(&bits, &time, sizeof(double))
    return hash_of_four(chain, bits >> 32, bits & 4294967295ULL, code)
