# The C types of `lanes.py`.

cimport cython
from cpython.mem cimport PyMem_Free

from worldline.spacetime.geometry cimport FEW, Trajectory, Vector, new_doubles


@cython.final
cdef class Lambda:
    cdef readonly Vector at
    cdef readonly long long order
    cdef readonly int kind
    cdef readonly object function
    cdef readonly object arguments
    cdef readonly unsigned long long content
    cdef readonly object ends


@cython.final
cdef class Lane:
    # What is looked at whenever a lane is the next one comes first, so that it shares a line of the cache.
    cdef public Body source
    cdef public Body target
    cdef Lambda head
    cdef public Vector floor
    cdef Py_ssize_t place
    cdef bint exact
    cdef public bint gone
    cdef public bint asked
    cdef object rest
    cdef readonly unsigned long long key
    cdef public long long sent
    cdef public object ended
    cdef readonly object name
    cdef public object timers
    cdef public object handle

    cdef int push(self, Lambda item) except -1
    cdef Lambda pop(self)


@cython.final
cdef class Body:
    # As above: what others look at, and then what it looks at itself.
    cdef double* here
    cdef double[FEW] few
    cdef bint known
    cdef readonly bint done
    cdef readonly bint parked
    cdef bint queued
    cdef public bint is_here
    cdef bint stale
    cdef bint moved
    cdef readonly bint frozen
    cdef double tau
    cdef double last
    cdef double edge
    cdef double* dues
    cdef readonly list lanes
    cdef public Trajectory trajectory
    cdef list waiters
    cdef Body waits_for
    cdef readonly Lane blocked_by
    cdef public dict partners
    cdef public unsigned long long chain
    cdef public long long events
    cdef readonly Vector point
    cdef public object receiver
    cdef Py_ssize_t room
    cdef int edge_place
    cdef double local_start
    cdef readonly list outs
    cdef list passed
    cdef public Lane timer
    cdef readonly object name
    cdef public object agent
    cdef public object random
    cdef public int home
    cdef readonly Vector death
    cdef object __weakref__
    cdef long long born
    cdef long long notes
    cdef object shown
    cdef public dict counts


@cython.final
cdef class Register:
    cdef readonly Py_ssize_t n
    cdef readonly int me
    cdef readonly dict bodies
    cdef readonly object elsewhere
    cdef readonly dict graves
    cdef readonly dict homes


cpdef Lambda new_lambda(
    Vector at, long long order, int kind, object function, object arguments, unsigned long long content, object ends
)
