cimport cython

from worldline.model.frames cimport frame, frames

cdef Py_ssize_t _FEW, _PORTION, _OVERHEAD, _FEW_EVENTS
cdef object _encode, _decode_events, _decode_event, _split, _decode_answer

@cython.locals(body=bytes)
cpdef bytes encode_events(list events, Py_ssize_t longest=*)
@cython.locals(body=bytes)
cpdef bytes encode_answer(object answer, Py_ssize_t longest=*)
cpdef list decode_events(object body)
@cython.locals(first=Py_ssize_t)
cpdef Py_ssize_t count_events(object body) except -1
cpdef list split_events(object body)
cpdef object decode_event(object raw)
cpdef object decode_answer(object body)
