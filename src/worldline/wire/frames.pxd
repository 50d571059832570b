from worldline.model.frames cimport Cutter


cdef class Frames(Cutter):
    pass
