# The C types of `agenda.pyx`.

cimport cython
from cpython.object cimport PyObject

# The key of an event, at equal times: its priority + 8 in the 4 highest bits, then its number, then two flags.
cdef enum:
    WHOLE = 1  # Its time is an int, otherwise a float.
    STANDS_FOR = 2  # What is kept stands for the event: a process for its `Initialize`, a request for its `Release`.
    FLAGS = 2  # How many bits that are.
    PRIORITY = 60  # Where the priority begins.


cdef struct Node:
    double time
    unsigned long long key
    PyObject* kept  # A reference of its own.


cdef struct Ring:
    Node* nodes
    Py_ssize_t first
    Py_ssize_t size
    Py_ssize_t room  # A power of two.


@cython.final
cdef class Agenda:
    cdef double now
    cdef bint is_whole  # Whether that is an int.
    cdef unsigned long long key
    cdef object _nothing  # So that the garbage collector knows of it.
    cdef Node* _heap
    cdef Py_ssize_t _size
    cdef Py_ssize_t _room
    cdef bint _hole
    cdef Ring _urgent
    cdef Ring _normal

    cdef int push(self, double time, unsigned long long key, object kept) except -1
    cdef int push_now(self, bint is_urgent, unsigned long long key, object kept) except -1
    cdef object pop(self)
    cdef bint is_empty(self) noexcept
    cdef Node front(self) noexcept
    cdef list drained(self)
    cdef void _let_go(self) noexcept
    cdef int _grow_ring(self, Ring* ring) except -1
    cdef void _settle(self) noexcept
    cdef void _sift_up(self, Node node) noexcept
    cdef void _sift_down(self, Node node) noexcept
