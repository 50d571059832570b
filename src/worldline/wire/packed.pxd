from worldline.lock._words cimport Grant


cpdef bytes packed_events(list events, Py_ssize_t longest)
cpdef bint pack_grant(bytearray sent, Grant grant, Py_ssize_t longest) except -1
cpdef list unpacked_events(body)
cpdef object unpacked_grant(body)
