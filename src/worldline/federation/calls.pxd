# The C types of `calls.pyx`, for the compiled ends of connections.


cdef extern from "Python.h":
    ctypedef void* PyThread_type_lock


cdef class SocketCalls:
    cdef object _connection
    cdef int _number
    cdef bint _waits

    cpdef bint takes_frames(self, Py_ssize_t size)
    cpdef bytes say(self, list events, Py_ssize_t longest)
    cpdef hear_grant(self, Py_ssize_t longest, int flags)
    cpdef hear_events(self, Py_ssize_t longest, Py_ssize_t most, list bodies=*)
    cpdef bint send(self, data, Py_ssize_t start, list sent) except -1
    cpdef bint receive(self, Py_ssize_t size, int flags, list unread) except -1
    cpdef Py_ssize_t send_some(self, data, Py_ssize_t start) except -1
    cdef Py_ssize_t _send(self, const char* data, Py_ssize_t size) except -1
    cpdef Py_ssize_t pass_on(self, bytearray out) except -1
    cpdef bytes received(self, Py_ssize_t size, int flags)
    cdef Py_ssize_t _receive(self, char* room, Py_ssize_t size, int flags) except -1
    cpdef close(self)


cdef class Watch:
    cpdef list ready(self, double seconds)


cdef class EpollWatch(Watch):
    cdef int _number
    cdef dict _actions


cpdef yield_processor()
cpdef double monotonic()


cdef class Mutex:
    cdef bint _held
    cdef bint _called
    cdef Py_ssize_t _waiting
    cdef PyThread_type_lock _bell

    cpdef __enter__(self)
    cpdef bint locked(self)
    cpdef release(self)
    cdef _wait(self)


cdef class ReentrantMutex(Mutex):
    cdef unsigned long _owner
    cdef Py_ssize_t _depth


cpdef unsigned int write_record(
    room, Py_ssize_t place, unsigned int check, unsigned long long before, unsigned int mixed, body
) except? 0
