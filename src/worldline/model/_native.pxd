# What Python's C interface has and Cython's declarations of it don't.

cdef extern from *:
    """
    static PyObject *worldline_new_tuple(PyObject *kind, PyObject *fields) {
        Py_ssize_t size = PyTuple_GET_SIZE(fields);
        // A tuple that was made for this call alone is what is asked for, but for its type. Its one reference says so
        // only of a display in the call itself, with something in it that isn't constant: pass no other.
        if (Py_REFCNT(fields) == 1 && PyTuple_CheckExact(fields)) {
            Py_SET_TYPE(fields, (PyTypeObject *)Py_NewRef(kind));
            return Py_NewRef(fields);
        }
        PyObject *made = PyType_GenericAlloc((PyTypeObject *)kind, size);
        if (made == NULL)
            return NULL;
        for (Py_ssize_t place = 0; place < size; place++)
            PyTuple_SET_ITEM(made, place, Py_NewRef(PyTuple_GET_ITEM(fields, place)));
    #if PY_VERSION_HEX >= 0x030E0000
        ((PyTupleObject *)made)->ob_hash = -1;
    #endif
        return made;
    }
    """
    # `tuple.__new__(kind, fields)` of a NamedTuple, at a tenth of the price.
    object new_tuple "worldline_new_tuple"(kind, tuple fields)
