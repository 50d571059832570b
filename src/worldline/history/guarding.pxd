from worldline.history.observer cimport Observer


cdef class GuardedObserver(Observer):
    cdef readonly object guarded
    cdef Observer _told
    cdef long long _now
    cdef object _failure
