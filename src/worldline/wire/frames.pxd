from worldline.model.frames cimport Cutter


cdef class Frames(Cutter):
    cpdef admit(self, long long payload_max)
