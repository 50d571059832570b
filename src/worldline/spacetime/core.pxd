# The C types of `core.py`.

cimport cython
from cpython.mem cimport PyMem_Realloc
from libc.string cimport memcpy

from worldline.kernel._native cimport hash_of_seven
from worldline.spacetime.geometry cimport LambdaField, Trajectory, Vector, is_same
from worldline.spacetime.lanes cimport Body, Lambda, Lane, Register, new_lambda


@cython.final
cdef class Turns:
    cdef public object shuffle
    cdef list _round
    cdef Py_ssize_t _place
    cdef list _awake

    cdef int wake(self, Body body) except -1
    cdef Body next(self)


@cython.final
cdef class Sealer:
    cdef readonly Body target
    cdef readonly list captured
    cdef dict prints

    cdef object seal(self, object function, tuple arguments, Body target)
    cdef object taken(self)
    cdef object _sealed(self, object function, tuple arguments)
    cdef object _sealed_function(self, object function)


@cython.final
cdef class Core:
    cdef readonly object space
    cdef readonly Py_ssize_t n
    cdef readonly LambdaField field
    cdef readonly object seed
    cdef public list boundaries
    cdef readonly Register register
    cdef readonly dict lanes
    cdef readonly int me
    cdef readonly Turns turns
    cdef readonly Body acting
    cdef readonly Body beginning
    cdef public bint setting_up
    cdef public long long stamp
    cdef readonly Sealer sealer
    cdef readonly list dropped
    cdef public object trace
    cdef public list measured
    cdef list made_now
    cdef readonly list failures
    cdef public double cap
    cdef public list outbox
    cdef public dict moved
    cdef public long long live
    cdef readonly long long steps
    cdef readonly double lab
    cdef public long long events

    cpdef object emit(
        self, Lane lane, int kind, object function, object arguments, unsigned long long content, object ends
    )
    cpdef object deliver(self, Lane lane, Lambda item)
    cdef long long _let(self, Body body, long long limit) except -1
    cdef int _perform(self, Body body, Lane lane, double tau) except -1
    cdef int _cross(self, Body body) except -1
    cdef int _act(self, Body body, object function, object arguments) except -1
    cdef int _push(self, Lane lane, Lambda item) except -1
    cdef double _safe(self, Body body, double* x) noexcept
    cdef double _block(self, Body body, Lane lane) noexcept
    cdef int _settle(self, Body body) except -1
    cdef int _publish(self, Body body) except -1


cdef class ChannelEnd:
    cdef public Core core
    cdef public Lane lane
