cimport cython

from worldline.programs._native cimport asyncgen_hooks, set_asyncgen_hooks

cdef object _environ, _environb, _events, _handlers, _chdir, _ident, _running_loop, _run_loop
cdef list _all_handlers
cdef dict _variables


cdef class WorkingFolder:
    cdef str _process
    cdef readonly str path
    cdef str _came_from
    cdef object _open

    cdef enter(self)
    cdef leave(self)


cdef class OwnModules:
    cdef str _prefix
    cdef dict _names
    cdef dict _elsewhere

    @cython.locals(modules=dict, elsewhere=dict)
    cdef exchange(self)


cdef class Belongings:
    cdef readonly WorkingFolder folder
    cdef readonly OwnModules modules
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
    cdef _exchange_settings(self, Belongings before)
    cdef _exchange_exported(self, bint is_entering)


cdef Belongings _occupant

@cython.locals(before=Belongings)
cdef _occupy(Belongings own)
