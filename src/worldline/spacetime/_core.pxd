# The C types of `core.py`.

cimport cython

from worldline.spacetime._geometry cimport FEW, LambdaField, Trajectory, Vector


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
    cdef public bint is_news
    cdef public bint attached
    cdef public bint open
    cdef public bint told
    cdef list rest
    cdef Py_ssize_t first
    cdef readonly unsigned long long key
    cdef public long long sent
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
cdef class Core:
    cdef readonly object space
    cdef readonly Py_ssize_t n
    cdef readonly LambdaField field
    cdef readonly object seed
    cdef public list boundaries
    cdef readonly dict bodies
    cdef readonly object elsewhere
    cdef readonly dict graves
    cdef readonly dict lanes
    cdef readonly dict homes
    cdef readonly int me
    cdef list batch
    cdef Py_ssize_t place
    cdef list awake
    cdef public object shuffle
    cdef readonly Body acting
    cdef readonly Body beginning
    cdef public bint setting_up
    cdef public long long stamp
    cdef public Body carrier
    cdef public list captured
    cdef readonly list dropped
    cdef public object trace
    cdef list newborn
    cdef readonly list failures
    cdef public double cap
    cdef public list outbox
    cdef public dict moved
    cdef public long long live
    cdef readonly long long steps
    cdef readonly double lab
    cdef public long long events
    cdef dict prints

    cdef long long _let(self, Body body, long long limit) except -1
    cdef int _perform(self, Body body, Lane lane, double tau) except -1
    cdef int _cross(self, Body body) except -1
    cdef int _act(self, Body body, object function, object arguments) except -1
    cdef int _push(self, Lane lane, Lambda item) except -1
    cdef double _safe(self, Body body, double* x) noexcept
    cpdef object emit(
        self, Lane lane, int kind, object function, object arguments, unsigned long long content, object ends
    )
    cpdef object deliver(self, Lane lane, Lambda item)
    cdef double _block(self, Body body, Lane lane) noexcept
    cdef int _settle(self, Body body) except -1
    cdef int _publish(self, Body body) except -1
    cdef int _wake(self, Body body) except -1


cpdef Lambda new_lambda(
    Vector at, long long order, int kind, object function, object arguments, unsigned long long content, object ends
)


cdef class Outlet:
    cdef public Core core
    cdef public Lane lane
