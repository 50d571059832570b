cimport cython

from worldline.federation.server.host cimport Host
from worldline.federation.server.session cimport Session
from worldline.federation.server.run_journal cimport RunJournal
from worldline.wire.codec cimport decode_events, encode_answer, is_heavy

cdef Py_ssize_t HEAVY


cdef class Rejoining:
    cdef readonly Host _host
    cdef readonly RunJournal journal
    cdef public double returns_s
    cdef object _payloads
    cdef bint _rejoins
    cdef readonly dict absent
    cdef readonly dict _deaths
    cdef str _speaker
    cdef list _unwritten
    cdef bint _enrolls
    cdef long long _heard

    @cython.locals(host=Host, name=str)
    cpdef hear(self, Session session, list events)
    @cython.locals(host=Host, name=str, answer=bytes, session=Session)
    cpdef bint answered(self, object action) except -1
    @cython.locals(name=str, events=list, body=bytes, place="long long")
    cdef _write(self)
