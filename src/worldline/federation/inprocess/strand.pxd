cimport cython

cdef object getcurrent, greenlet, get_ident, gettrace, settrace


cdef class Strand:
    cdef readonly str name
    cdef readonly bint finished
    cdef readonly object failure
    cdef object _body
    cdef bint _broken

    cpdef resume(self)
    cpdef pause(self)
    cpdef hand_over(self, other)
    cpdef break_off(self)
    cpdef check(self)


cdef class GreenletStrand(Strand):
    cdef object _here
    cdef object _root
    cdef object _outside
    cdef object _thread

    @cython.locals(successor=GreenletStrand)
    cpdef hand_over(self, other)
    cdef _begin(self, outside, thread)
    cdef _leave_for(self, target)


cdef class ThreadStrand(Strand):
    cdef object _go
    cdef object _back
    cdef object _thread

    @cython.locals(successor=ThreadStrand)
    cpdef hand_over(self, other)
    cdef _begin(self)
    cdef _await_turn(self)


cdef _switch_to(target)
