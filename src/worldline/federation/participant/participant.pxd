cimport cython

from worldline.federation.calls cimport Mutex, ReentrantMutex
from worldline.lock.ledger cimport Ledger, Wire
from worldline.model.clock cimport RunningClock


cdef class ParticipantClock:
    cdef Ledger _ledger
    cdef long long _aimed_at
    cdef long long _aim

    @cython.locals(clock=RunningClock, now="long long", shows="long long")
    cdef long long _read(self) except? -1
    @cython.locals(found="long long")
    cdef long long _true(self, long long local, long long since) except? -1
    @cython.locals(given="long long", shows="long long", since="long long")
    cdef long long _time(self, local, what) except? -1
    @cython.locals(found="long long")
    cdef long long _target(self, local) except? -1
    @cython.locals(clock=RunningClock, step="long long")
    cdef long long _step(self, by) except? -1


cdef class Surroundings:
    cdef public object give_back


cdef Surroundings _surroundings


cdef class Operations:
    cdef dict __dict__  # Programs may keep things there.
    cdef public Ledger _ledger
    cdef public Wire _wire
    cdef public Mutex _lock
    cdef public bint _waits
    cdef public bint _presses
    cdef public list _untold
    cdef public list _asked
    cdef public object _stable
    cdef ParticipantClock _clock
    cdef public bint has_surroundings

    cpdef _target(self, to, by, clock)
    cpdef _deadline(self, until, within, clock)
    cpdef _limit(self, until, clock)
    cpdef _in_true_time(self, time, clock, what=*)
    cpdef _time_of(self, time, clock, what)
    cdef bint _is_local(self, clock) except -1
    cdef _say(self, bint urgent=*)
    cpdef list _advance(self, to, by, clock)
    @cython.locals(before="long long")
    cpdef list _next(self, until, promise, clock)
    cpdef _peek(self, until)
    cpdef bint _asks_to_revive(self) except -1
    cpdef _take_untold(self)
    @cython.locals(ledger=Ledger)
    cpdef _take_asked(self)
    cpdef _catch_up(self)
    cdef _tell(self)


cdef class Participant(Operations):
    cpdef list _advanced(self, to, by, clock)
    cpdef list _come(self, until, within, promise, clock)
    cdef list _wait(self)
