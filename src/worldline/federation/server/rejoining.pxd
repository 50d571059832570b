cimport cython

from worldline.federation.server.host cimport Host
from worldline.federation.server.run_journal cimport RunJournal
from worldline.federation.server.session cimport Session
from worldline.wire.codec cimport encode_answer, is_heavy

cdef object Fail, Grant, Leave, Resume, StartRun
cdef frozenset _FOR_JOURNAL


cdef class Rejoining:
    cdef Host _host
    cdef readonly RunJournal journal
    cdef public double returns_s
    cdef object _payloads
    cdef bint _rejoins
    cdef readonly dict absent
    cdef readonly dict _deaths
    cdef str _speaker
    cdef list _unwritten
    cdef object _frame
    cdef bint _enrolls
    cdef long long _heard

    @cython.locals(host=Host)
    cpdef hear(self, Session session, list events, frame=*)
    @cython.locals(events=list)
    cdef _write(self)
    @cython.locals(host=Host, session=Session)
    cpdef bint answered(self, action) except -1
