# The C types of `heap.pyx`, for itself and for the compiled engine.

cimport cython


# What an event is: a message without a payload, or with one; or something of an entity's own, a process or a timer.
cdef enum:
    BARE
    LADEN
    OWN


cdef struct Node:
    long long time
    Py_ssize_t slot


cdef struct Record:
    long long sent
    long long order
    unsigned long long sender_key
    int rank
    int kind
    int sender
    int target
    int topic


@cython.final
cdef class HeapQueue:
    cdef Node* _heap
    cdef void* _block
    cdef Record* _records
    cdef Py_ssize_t* _free
    cdef Py_ssize_t _free_count
    cdef Py_ssize_t _slots
    cdef Py_ssize_t _size
    cdef bint _hole
    cdef list _cells
    cdef readonly list table
    cdef list vacant
    cdef public Py_ssize_t dead
    cdef long long time
    cdef Record event
    cdef object cell

    cdef int push(
        self,
        long long time,
        long long sent,
        int rank,
        long long order,
        unsigned long long sender_key,
        int sender,
        int target,
        int topic,
        int kind,
        object cell,
    ) except -1
    cdef bint pop(self, long long end) noexcept
    cdef void settle(self) noexcept
    cdef int _grow(self) except -1
    cdef bint _precedes(self, Node* a, Node* b) noexcept
    cdef bint _precedes_in_tie(self, Py_ssize_t first, Py_ssize_t second) noexcept
    cdef Py_ssize_t _least_of(self, Py_ssize_t child, Py_ssize_t end) noexcept
    cdef void _sift_up(self, Node node) noexcept
    cdef void _sift_down(self, Node node) noexcept
