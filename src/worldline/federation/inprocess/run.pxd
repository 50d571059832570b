cimport cython

from worldline.federation.inprocess.strand cimport Strand
from worldline.lock.arbiter cimport Arbiter
from worldline.lock.ledger cimport Ledger, Wire

cdef object _GATHERING, bisect_left, Over, Invite
cdef list _NO_EVENTS


cdef class _Seat(Wire):
    cdef readonly str name
    cdef readonly bint guest
    cdef readonly bint invited
    cdef readonly bint controls
    cdef readonly Ledger ledger
    cdef readonly Strand strand
    cdef list frame
    cdef object answer
    cdef bint asking
    cdef bint able
    cdef _Run _run
    cdef object _program

    cdef bint waits(self)
    cpdef tell(self, list events)
    cpdef ask(self, list events)
    cpdef bint is_due(self, bint urgent) except -1


cdef class _Run:
    cdef object _schedule
    cdef Arbiter _arbiter
    cdef dict _seats
    cdef list _able
    cdef _Seat _running
    cdef long long _turns
    cdef object _digest
    cdef object _error
    cdef bint _broken
    cdef bint _unwinding
    cdef bint _away
    cdef bint _hold
    cdef list _steered
    cdef list _halted

    @cython.locals(seat=_Seat)
    cpdef go_on(self, names)
    @cython.locals(seat=_Seat, found=list, first="long long")
    cpdef list earliest(self)
    cpdef list steered(self)
    @cython.locals(seat=_Seat, chosen=_Seat)
    cpdef halt(self, str name)
    cdef bint _stands_still(self)
    @cython.locals(chosen=_Seat)
    cdef _drive(self)
    cdef bint is_due(self) except -1
    cdef pause(self, _Seat seat)
    cdef _come_back(self)
    cdef _Seat _next(self)
    @cython.locals(able=list, seat=_Seat, gathering=bint)
    cdef _Seat _step(self)
    @cython.locals(frame=list, addressed=_Seat)
    cdef _hear(self, _Seat seat)
    @cython.locals(guest=_Seat)
    cdef _welcome(self, str name, _Seat inviting)
    @cython.locals(able=list)
    cdef _enable(self, _Seat seat)
    @cython.locals(able=list)
    cdef _disable(self, _Seat seat)


cdef class _Watched:
    cdef _Run _run
    cdef object _watcher
    cdef object _thread
    cdef object _ended
    cdef long long _seen_turn
    cdef double _seen_at
