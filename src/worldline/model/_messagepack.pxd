"""MessagePack, written byte by byte: what the compiled build puts together itself, where msgspec would be asked often.

It writes one shape of each kind, which is msgspec's, and says so where something doesn't fit: then msgspec writes it.
"""

from cpython.bytearray cimport PyByteArray_AS_STRING, PyByteArray_GET_SIZE, PyByteArray_Resize
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from libc.string cimport memcpy

cdef extern from *:
    """
    /* Unrolled, each is a single store where the size is known; of a loop of Cython's, gcc makes one per byte. */
    static inline void put_big_endian(unsigned char *at, unsigned long long number, int size) {
        #pragma GCC unroll 8
        for (int each = 0; each < size; each++) at[size - 1 - each] = (unsigned char)(number >> 8 * each);
    }
    static inline void put_little_endian(unsigned char *at, unsigned long long number, int size) {
        #pragma GCC unroll 8
        for (int each = 0; each < size; each++) at[each] = (unsigned char)(number >> 8 * each);
    }
    """
    void put_big_endian(unsigned char* at, unsigned long long number, int size) noexcept
    void put_little_endian(unsigned char* at, unsigned long long number, int size) noexcept

cdef extern from "Python.h":
    const char* utf8_of "PyUnicode_AsUTF8AndSize"(object text, Py_ssize_t* size) except NULL
    long long as_number "PyLong_AsLongLongAndOverflow"(object number, int* overflows) except? -1

cdef enum:
    ROOM = 16384  # So long may be what is written at a time.


cdef struct Writer:
    unsigned char* at
    unsigned char* end
    bint fits


cdef inline void put_bytes(Writer* out, const void* data, Py_ssize_t size) noexcept:
    if out.end - out.at < size:
        out.fits = False
    else:
        memcpy(out.at, data, size)
        out.at += size


cdef inline void put_head(Writer* out, unsigned char kind, unsigned long long number, int size) noexcept:
    """Write a kind, and a number of so many bytes, the most significant first."""
    if out.end - out.at <= size:
        out.fits = False
        return
    out.at[0] = kind
    put_big_endian(out.at + 1, number, size)
    out.at += size + 1


cdef inline void put_number(Writer* out, number) noexcept:
    cdef int overflows = 0
    put_natural(out, as_number(number, &overflows) if type(number) is int else -1)


cdef inline void put_natural(Writer* out, long long value) noexcept:
    if value < 0:
        out.fits = False
    elif value < 0x80:
        put_head(out, <unsigned char>value, 0, 0)
    elif value < 0x100:
        put_head(out, 0xCC, value, 1)
    elif value < 0x10000:
        put_head(out, 0xCD, value, 2)
    elif value >> 32 == 0:  # A longer literal would be a Python number.
        put_head(out, 0xCE, value, 4)
    else:
        put_head(out, 0xCF, value, 8)


cdef inline void put_length(Writer* out, Py_ssize_t length, int short, int short_max, unsigned char longer) noexcept:
    """Write how long a text or an array is: within one byte, or, if it is longer, behind it."""
    if length >= 0x10000:
        out.fits = False
    elif length <= short_max:
        put_head(out, <unsigned char>(short + length), 0, 0)
    elif length < 0x100 and longer != 0xDC:  # Of arrays, there is no such length.
        put_head(out, <unsigned char>(longer - 1), length, 1)
    else:
        put_head(out, longer, length, 2)


cdef inline int put_text(Writer* out, text) except -1:
    cdef Py_ssize_t size
    cdef const char* data
    if type(text) is not str:
        out.fits = False
        return 0
    data = utf8_of(text, &size)
    put_length(out, size, 0xA0, 31, 0xDA)
    put_bytes(out, data, size)
    return 0


cdef inline void put_payload(Writer* out, payload) noexcept:
    if type(payload) is not bytes:
        out.fits = False
        return
    put_length(out, PyBytes_GET_SIZE(payload), 0, -1, 0xC5)
    put_bytes(out, PyBytes_AS_STRING(payload), PyBytes_GET_SIZE(payload))


cdef inline void put_list(Writer* out, Py_ssize_t length) noexcept:
    put_length(out, length, 0x90, 15, 0xDC)


cdef inline int put_message(Writer* out, tuple message) except -1:
    """Write the seven fields of a message."""
    put_number(out, message[0])
    put_number(out, message[1])
    put_text(out, message[2])
    put_number(out, message[3])
    put_number(out, message[4])
    put_text(out, message[5])
    put_payload(out, message[6])
    return 0


cdef inline int append(bytearray target, const void* data, Py_ssize_t size) except -1:
    """Put bytes behind what is there."""
    cdef Py_ssize_t before = PyByteArray_GET_SIZE(target), after = before + size
    # What is small comes often: past a power of two, there is room for as much again. By itself there is an eighth.
    if before and size < ROOM and (before ^ after) > before:
        PyByteArray_Resize(target, 2 * after)
    PyByteArray_Resize(target, after)
    memcpy(PyByteArray_AS_STRING(target) + before, data, size)
    return 0
