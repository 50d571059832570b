# The C types of `population.py`.

from worldline.spacetime._stepping cimport Stepping


cdef class Population(Stepping):
    pass
