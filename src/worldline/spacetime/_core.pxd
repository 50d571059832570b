# The C types of `core.py`.

cimport cython

from worldline.spacetime._traffic cimport Traffic


@cython.final
cdef class Core(Traffic):
    pass
