cimport cython

from worldline.federation.server.host cimport Host
from worldline.federation.server.session cimport Session
from worldline.federation.server.run_journal cimport RunJournal
from worldline.wire.codec cimport decode_events, encode_answer, is_heavy

cdef Py_ssize_t HEAVY


cdef class JournaledHost(Host):
    cdef public RunJournal journal
    cdef object _payloads
    cdef bint _rejoins
    cdef long long _frame_max
    cdef dict _away
    cdef dict _missed
    cdef dict _returning
    cdef set _behind
    cdef readonly dict _deaths
    cdef str _speaker
    cdef list _unwritten
    cdef bint _enrolls
    cdef long long _heard

    @cython.locals(name=str)
    cpdef _take(self, Session session, list events)
    @cython.locals(name=str, answer=bytes, session=Session)
    cpdef _carry_out(self, object actions)
    @cython.locals(name=str, events=list, body=bytes, place="long long")
    cdef _write(self)
