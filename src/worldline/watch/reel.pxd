cimport cpython.array
cimport cython

from worldline.history.observer cimport Observer

cdef long long FOREVER
cdef dict NOTES
cdef Py_ssize_t _LEAST
cdef int _GONE
cdef long long _INT


cdef double *_doubles(cpython.array.array column)
cdef int *_ints(cpython.array.array column)


@cython.final
cdef class Ints:
    cdef readonly Py_ssize_t room
    cdef cpython.array.array _all
    cdef int *at

    cpdef make_room(self, Py_ssize_t count)


@cython.final
cdef class Numbers:
    cdef readonly Py_ssize_t room
    cdef readonly list all
    cdef double *sent
    cdef double *arrival
    cdef double *expiry
    cdef int *sender
    cdef int *receiver
    cdef int *topic
    cdef int *sequence
    cdef int *lost
    cdef int *number
    cdef int *copy

    cpdef make_room(self, Py_ssize_t count)


cdef class Rows:
    cdef readonly Py_ssize_t count
    cdef readonly list payloads
    cdef Numbers _numbers
    cdef dict _places
    cdef Py_ssize_t _looked
    cdef dict _closures
    cdef Ints _reached

    @cython.locals(place=Py_ssize_t)
    cdef add(self, double at, int sender, int topic, long long sequence, payload, double until, long long number)
    cdef reach(self, Py_ssize_t place, int receiver, double arrival, int copy, int lost)
    @cython.locals(place=Py_ssize_t)
    cdef Py_ssize_t find(self, int sender, long long number) except -2
    @cython.locals(before=double)
    cdef last(self, Py_ssize_t place, double until)
    @cython.locals(place=Py_ssize_t)
    cdef Py_ssize_t count_final(self, double floor)
    @cython.locals(place=Py_ssize_t, is_final=bint)
    cdef break_off(self, double floor, double end, int reason)
    @cython.locals(place=Py_ssize_t, last=Py_ssize_t, is_same=bint)
    cdef bint retell(self, int receiver, double arrival, int copy, int lost) except -1
    cdef bint _is_same(self, Py_ssize_t place, Py_ssize_t other)
    cdef close(self, int receiver, int topic, long long until)
    cdef bint reopen(self, Py_ssize_t place, int receiver) except -1
    cdef bint carry_out_closures(self) except -1
    @cython.locals(is_changed=bint, first=double, place=Py_ssize_t)
    cdef bint _take_back(self, dict closures) except -1
    cdef _forget_places(self)


cdef class Reel(Observer):
    cdef object _tape
    cdef Observer _also
    cdef dict _members
    cdef dict _topics
    cdef Ints _told
    cdef Rows _rows
    cdef list _notes
    cdef bint _is_tidy
    cdef object _last_who
    cdef long long _last_number
    cdef long long _latest_at
    cdef object _latest_who
    cdef long long _weight
    cdef long long _floor
    cdef double _due

    @cython.locals(sender=Py_ssize_t, sequence=int)
    cdef _add(self, who, topic, long long at, payload, long long until, long long number)
    cdef int _member(self, name) except -1
    @cython.locals(loss=int, whom=int, is_last=bint, place=Py_ssize_t)
    cpdef arrives(self, sender, long long number, receiver, long long at, long long copy, lost)
    cdef int _topic(self, name) except -1
