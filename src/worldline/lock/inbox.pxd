cimport cython

cdef long long FOREVER
cdef object heappop, heappush


cdef class Inbox:
    cdef readonly long long first
    cdef list _fresh
    cdef bint _in_order
    cdef long long _last
    cdef long long _last_sent
    cdef str _last_sender
    cdef dict _later
    cdef list _moments
    cdef readonly list _ghosts
    cdef Py_ssize_t _ghosts_kept
    cdef Py_ssize_t _ghosts_max
    cdef readonly dict dropped

    cpdef put(self, message)
    cpdef add(self, message, long long arrival, long long sent, str sender)
    cpdef put_ghost(self, long long arrival, str topic, str reason, long long now)
    @cython.locals(fresh=list, moments=list, taken=list, sorts=bint)
    cpdef list take(self, long long horizon)
    @cython.locals(fresh=list, taken=list, count=Py_ssize_t)
    cdef list _cut_off(self, long long horizon)
    @cython.locals(taken=list, later=dict, others=list)
    cdef list _put_aside(self, long long horizon)
    cdef _clear(self)
    cpdef count(self, long long before, topics=*)
