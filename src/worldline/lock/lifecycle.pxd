from worldline.lock.ledger cimport Ledger
from worldline.lock.states cimport StateRow

cdef long long FOREVER
cdef StateRow _ACTING, _ADVANCING, _AWAITING
cdef object _NONE, _REACHING, _STALLING, _BEING_DOWN, _GIVEN, _TAKEN_BACK


cdef class FaultTimes:
    cdef readonly dict spans
    cdef readonly list waiting
    cdef dict _counts
    cdef readonly list told_of
    cdef readonly long long next_crash


cdef class ProgramWait:
    cdef public object kind
    cdef public object stage
    cdef public long long began
    cdef public long long goal
    cdef public long long aim
    cdef public long long resumes
    cdef public list batch
    cdef public StateRow row
    cdef public bint is_answered

    cpdef bint is_under_way(self)


cdef class Emergency:
    cdef readonly object latency
    cdef public object notice
    cdef readonly object alarm
    cdef readonly object earlier


cdef class Losses:
    cdef readonly tuple durable
    cdef public dict since
    cdef readonly dict missed
    cdef readonly dict untaken


cdef class LifecycleFilter:
    cdef readonly Ledger ledger
    cdef object _life
    cdef dict _declared
    cdef long long _declared_reach
    cdef object _corruption
    cdef FaultTimes _faults
    cdef Losses _losses
    cdef readonly Emergency emergency
    cdef ProgramWait _wait
    cdef list _arrived
    cdef readonly long long reached
    cdef long long _inherited
    cdef object _last_fault
    cdef readonly bint is_crashed
    cdef readonly Py_ssize_t incarnation
