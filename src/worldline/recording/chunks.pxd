cimport cython
from cpython.bytearray cimport PyByteArray_GET_SIZE
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE

from worldline.model._messagepack cimport append, put_little_endian

cdef enum:
    _MESSAGE_SIZE = 31  # Of what stands before a message's data,
    _MESSAGE_PREFIX = 9  # and of what its length doesn't count.
    _MESSAGE_OPCODE = 5
    _ENTRY_SIZE = 16


cdef inline unsigned char* put_little(unsigned char* place, unsigned long long number, int size) noexcept:
    """Write a number, the least significant byte first; return what is behind it."""
    put_little_endian(place, number, size)
    return place + size


cdef inline int put_message(
    bytearray chunk, int channel, long long sequence, long long log_time, long long publish_time, data
) except -1:
    cdef unsigned char head[_MESSAGE_SIZE]
    cdef unsigned char* at = put_little(head, _MESSAGE_OPCODE, 1)
    at = put_little(at, _MESSAGE_SIZE - _MESSAGE_PREFIX + len(data), 8)
    at = put_little(at, channel, 2)
    at = put_little(at, sequence, 4)
    at = put_little(at, log_time, 8)
    put_little(at, publish_time, 8)
    append(chunk, head, _MESSAGE_SIZE)
    if type(data) is bytes:
        append(chunk, PyBytes_AS_STRING(data), PyBytes_GET_SIZE(data))
    else:
        chunk += data
    return 0


cdef inline int put_entry(bytearray entries, long long log_time, long long place) except -1:
    cdef unsigned char entry[_ENTRY_SIZE]
    put_little(put_little(entry, log_time, 8), place, 8)
    return append(entries, entry, _ENTRY_SIZE)


@cython.final
cdef class OpenChunk:
    cdef bytearray records
    cdef long long earliest
    cdef long long latest
    cdef dict entries
    cdef Py_ssize_t shown

    @cython.locals(entries=bytearray)
    cdef add(self, channel, long long log_time, data, long long publish_time, long long sequence)


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
    cdef OpenChunk _chunk

    cpdef add_message(self, channel, long long log_time, data, long long publish_time, long long sequence)
