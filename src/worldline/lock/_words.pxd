# The words of a hop (`events.py`) as C reads them: a field of a Struct lies where the slot of its name does, and slots
# are sorted by their names. So nothing is looked up for one. How many there are is checked on importing, and their order
# by the tests of `packed.pyx`.

cdef extern from *:
    """
    typedef struct { PyObject_HEAD PyObject *at, *payload, *topic; } PublishWord;
    typedef struct { PyObject_HEAD PyObject *until; } PromiseWord;
    typedef struct { PyObject_HEAD PyObject *now; } ReachedWord;
    typedef struct { PyObject_HEAD PyObject *to; } AdvanceWord;
    typedef struct { PyObject_HEAD PyObject *held, *until; } NextWord;
    typedef struct { PyObject_HEAD PyObject *final, *horizon, *messages, *to; } GrantWord;

    static PyObject *worldline_new_word(PyTypeObject *kind, int size, ...) {
        PyObject *made = PyType_GenericAlloc(kind, 0);
        if (made != NULL) {
            va_list fields;
            va_start(fields, size);
            for (int place = 0; place < size; place++)
                ((PyObject **)(made + 1))[place] = Py_NewRef(va_arg(fields, PyObject *));
            va_end(fields);
        }
        return made;
    }
    """
    ctypedef class worldline.lock.events.Publish [object PublishWord, check_size error]:
        cdef object topic, payload, at

    ctypedef class worldline.lock.events.Promise [object PromiseWord, check_size error]:
        cdef object until

    ctypedef class worldline.lock.events.Reached [object ReachedWord, check_size error]:
        cdef object now

    ctypedef class worldline.lock.events.Advance [object AdvanceWord, check_size error]:
        cdef object to

    ctypedef class worldline.lock.events.Next [object NextWord, check_size error]:
        cdef object until, held

    ctypedef class worldline.lock.events.Grant [object GrantWord, check_size error]:
        cdef object to, horizon, messages, final

    object _new_publish "worldline_new_word"(type kind, int size, object at, bytes payload, str topic)
    object _new_advance "worldline_new_word"(type kind, int size, object to)
    object _new_next "worldline_new_word"(type kind, int size, object held, object until)
    object _new_grant "worldline_new_word"(type kind, int size, object final, object horizon, list messages, str to)


cdef inline Publish new_publish(str topic, bytes payload, at):
    return <Publish>_new_publish(Publish, 3, at, payload, topic)


cdef inline Advance new_advance(to):
    return <Advance>_new_advance(Advance, 1, to)


cdef inline Next new_next(until, held):
    return <Next>_new_next(Next, 2, held, until)


cdef inline Grant new_grant(str to, horizon, list messages, final):
    return <Grant>_new_grant(Grant, 4, final, horizon, messages, to)
