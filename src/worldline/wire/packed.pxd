from worldline.lock._words cimport Grant


cdef enum:
    HEADER = 4

cdef Py_ssize_t write_events(unsigned char* room, list events, Py_ssize_t longest) except -1
cdef list read_events(const unsigned char* body, Py_ssize_t size)
cdef Grant read_grant(const unsigned char* body, Py_ssize_t size)

cpdef bytes packed_events(list events, Py_ssize_t longest)
cpdef bint pack_grant(bytearray sent, Grant grant, Py_ssize_t longest) except -1
cpdef bytes packed_grant(Grant grant, Py_ssize_t longest)
cpdef list unpacked_events(body)
cpdef object unpacked_grant(body)
