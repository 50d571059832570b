cimport cython

from worldline.programs._native cimport asyncgen_hooks, set_asyncgen_hooks

cdef object _environ, _environb, _events, _handlers, _chdir, _ident, _running_loop, _run_loop
cdef list _all_handlers
cdef dict _variables


cdef class Belongings:
    cdef str _process
    cdef readonly str place
    cdef readonly str came_from
    cdef object _place_open
    cdef dict _names
    cdef dict _elsewhere
    cdef object _arguments
    cdef object _path
    cdef readonly str zone
    cdef object _variables
    cdef dict _exported
    cdef object _policy
    cdef object _hook
    cdef object _handler_names
    cdef list _handlers
    cdef object _loop
    cdef tuple _hooks

    cpdef enter(self)
    cpdef leave(self)
    @cython.locals(modules=dict, elsewhere=dict)
    cdef _exchange_modules(self)
    cdef _exchange_settings(self, Belongings before)
    cdef _exchange_exported(self, bint is_entering)


cdef Belongings _occupant

@cython.locals(before=Belongings)
cdef _occupy(Belongings own)
