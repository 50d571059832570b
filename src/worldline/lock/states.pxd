cdef class StateRow:
    cdef readonly object state
    cdef readonly bint ended
    cdef public frozenset legal
    cdef readonly dict moves
