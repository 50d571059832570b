cdef object _encode
cdef Py_ssize_t _HASH_EVERY, _WEIGHT_OF_A_MESSAGE


cdef class Certificate:
    cdef object _hash
    cdef list _unhashed
    cdef Py_ssize_t _weight

    cpdef add(self, sent, sender, sequence, topic, payload, list fates)
    cdef _catch_up(self)
