cdef class PolledSockets:
    cdef object _epoll
    cdef dict _actions

    cpdef list ready(self, double seconds)


cdef class SelectedSockets:
    cdef object _selector
