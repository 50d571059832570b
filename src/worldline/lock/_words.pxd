# The words of a hop (`events.py`) as C reads them: a field of a Struct lies where the slot of its name does, and slots
# are sorted by their names. So nothing is looked up for one. How many there are is checked on importing, and their
# order by the tests of `packed.pyx`.

cdef extern from *:
    """
    typedef struct { PyObject_HEAD PyObject *at, *payload, *topic; } PublishWord;
    typedef struct { PyObject_HEAD PyObject *until; } PromiseWord;
    typedef struct { PyObject_HEAD PyObject *now; } ReachedWord;
    typedef struct { PyObject_HEAD PyObject *to; } AdvanceWord;
    typedef struct { PyObject_HEAD PyObject *held, *until; } NextWord;
    typedef struct { PyObject_HEAD PyObject *final, *horizon, *messages, *to; } GrantWord;
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
