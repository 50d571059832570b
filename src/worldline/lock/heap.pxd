cimport cython
from libc.stdlib cimport free, realloc


cdef struct Entry:
    long long time
    long long serial
    long long number
    long long mark


@cython.final
cdef class Heap:
    cdef readonly Py_ssize_t size
    cdef Entry* _entries
    cdef Py_ssize_t _room
    cdef long long _serial

    cpdef long long time(self) noexcept
    cpdef long long number(self) noexcept
    cpdef long long mark(self) noexcept
    @cython.locals(place=Py_ssize_t, parent=Py_ssize_t, entries="Entry *")
    cpdef int push(self, long long time, long long number, long long mark=*) except -1
    @cython.locals(place=Py_ssize_t, child=Py_ssize_t, entries="Entry *", last=Entry, size=Py_ssize_t)
    cpdef int pop(self) except -1
    cpdef void clear(self) noexcept
    @cython.locals(room=Py_ssize_t, entries="Entry *")
    cdef int _grow(self) except -1


cdef bint _is_before(Entry first, Entry second) noexcept
