cimport cython

cdef object _MESSAGE_OPCODE, _pack_message
cdef Py_ssize_t _MESSAGE_FIELDS


cdef class ChunkedFile:
    cdef object _output
    cdef Py_ssize_t _chunk_size
    cdef object _compress
    cdef long long _offset
    cdef object _crc
    cdef list _schemas
    cdef list _channels
    cdef dict _counts
    cdef object _span
    cdef list _chunk_indexes
    cdef list _metadata_indexes
    cdef list _parts
    cdef Py_ssize_t _size
    cdef Py_ssize_t _shown
    cdef dict _entries

    @cython.locals(length=Py_ssize_t, entry=list)
    cpdef add_message(self, channel, log_time, data, publish_time, sequence)
