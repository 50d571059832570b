# The C types of `traffic.py`.

from worldline.spacetime._lanes cimport Lane
from worldline.spacetime._population cimport Population


cdef class Traffic(Population):
    pass


cdef class ChannelEnd:
    cdef public Traffic core
    cdef public Lane lane
