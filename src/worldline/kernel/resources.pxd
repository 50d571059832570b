# The C types of `resources.py`.

cimport cython

from worldline.kernel.engine cimport EntityBase
from worldline.kernel.waiting cimport FIRED, PENDING, Awaited, Process


cdef class Stock


@cython.final
cdef class Claim(Awaited):
    cdef bint _is_put
    cdef bint _is_withdrawn
    cdef bint _is_held
    cdef Stock _of
    cdef object _wanted
    cdef Process _holder
    cdef long long _since

    cdef int _meet(self, object value) except -1


@cython.final
cdef class WaitingLine:
    cdef list _claims
    cdef Py_ssize_t _gone

    cdef int _is_empty(self) except -1
    cdef Claim _first(self)
    cdef int _add(self, Claim claim) except -1
    cdef int _add_by_priority(self, Claim claim) except -1
    cdef Claim _take_first(self)
    cdef int _remove(self, Claim claim) except -1


cdef class Stock:
    cdef unsigned long long _owner
    cdef WaitingLine _gets
    cdef WaitingLine _puts

    cdef int _belong_to(self, EntityBase owner) except -1
    cdef int _enter(self, Claim claim) except -1
    cdef int _queue(self, Claim claim) except -1
    cdef int _withdraw(self, Claim claim) except -1
    cdef int _abandon(self, Claim claim) except -1
    cdef int _leave_block(self, Claim claim, bint regularly) except -1


@cython.final
cdef class Resource(Stock):
    cdef readonly Py_ssize_t capacity
    cdef dict _held

    cdef int _hold(self, Claim turn) except -1
    cdef int _let_go(self, Claim turn) except -1
    cdef int _preempt(self, Claim turn) except -1
    cdef int _grant(self) except -1
    cdef int _give_back(self, Claim turn) except -1


@cython.final
cdef class Store(Stock):
    cdef readonly object capacity
    cdef readonly object key
    cdef object _items

    cdef int _is_full(self) except -1
    cdef int _admit(self, Claim put) except -1
    cdef int _take(self, Claim get) except -1


@cython.final
cdef class Container(Stock):
    cdef readonly object capacity
    cdef readonly object level

    cdef Claim _ask(self, object amount, bint is_put)
    cdef int _serve(self) except -1
