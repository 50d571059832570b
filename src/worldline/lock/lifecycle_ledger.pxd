from worldline.lock.ledger cimport Ledger
from worldline.lock.states cimport StateRow

cdef long long FOREVER
cdef StateRow _ACTING, _ADVANCING, _AWAITING, _PEEKING


cdef class LifecycleLedger(Ledger):
    cdef object _life
    cdef dict _declared
    cdef long long _declared_reach
    cdef tuple _durable
    cdef list _crashes
    cdef list _hangs
    cdef list _slows
    cdef list _dropouts
    cdef dict _lost_from
    cdef list _told_of
    cdef list _waiting
    cdef dict _counts
    cdef long long _crash_at
    cdef object _corruption
    cdef int _kind
    cdef long long _began
    cdef long long _goal
    cdef long long _aim
    cdef int _stage
    cdef long long _resumes
    cdef long long _reached
    cdef long long _inherited
    cdef bint _is_answered
    cdef object _doom
    cdef list _arrived
    cdef list _batch
    cdef object _alarm
    cdef object _forestalling
    cdef bint _has_given
    cdef list _owed
    cdef StateRow _owed_row

    cpdef long long stands(self)
