# The words of a hop (`events.py`), as C reads them: nothing is looked up for a field. It lies where the slot of its name
# does, and slots are sorted by name. How many there are is checked when a module that has this is imported, and their
# order by the tests of what is packed and unpacked.

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
