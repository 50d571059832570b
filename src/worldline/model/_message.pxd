# A message (`message.py`) as C reads it: the items of its tuple by their names, so that nothing is looked up for one. C
# doesn't look whether it is a message either: None, for which a type says nothing, mustn't come where one is expected.

cdef extern from *:
    ctypedef class worldline.model.message.Message [object PyTupleObject, check_size ignore]:
        cdef object arrival "ob_item[0]"
        cdef object sent "ob_item[1]"
        cdef str sender "ob_item[2]"
        cdef object sequence "ob_item[3]"
        cdef object copy "ob_item[4]"
        cdef str topic "ob_item[5]"
        cdef bytes payload "ob_item[6]"
