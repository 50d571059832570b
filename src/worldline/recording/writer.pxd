cimport cython

from worldline.history.observer cimport Observer
from worldline.recording.chunks cimport ChunkedFile
from worldline.recording.pending cimport Certificate, Pending, Publication

cdef long long FOREVER, SEQUENCES
cdef Py_ssize_t MESSAGE_MAX


cdef class _Tally:
    cdef readonly long long published
    cdef readonly long long arrivals
    cdef readonly long long bytes


cdef class Recorder(Observer):
    cdef public Pending _pending
    cdef Certificate _certificate
    cdef dict _encodings
    cdef object _encoding
    cdef dict _schemas
    cdef dict _schema_numbers
    cdef dict _channels
    cdef dict _shared
    cdef long long _lost_channel
    cdef dict _parts
    cdef dict _tallies
    cdef dict _losses
    cdef long long _end
    cdef bint _closed
    cdef object _gap
    cdef object _clock
    cdef double _shows_at
    cdef object _output
    cdef ChunkedFile _file

    @cython.locals(publication=Publication, sent=object, sequence=object, fates=list, reached=Py_ssize_t)
    cdef _write(self, list publications)
    @cython.locals(reached=Py_ssize_t, records=list)
    cdef Py_ssize_t _write_records(self, Publication publication, sent, sequence, list fates) except -1
    @cython.locals(tally=_Tally)
    cdef _count(self, topic, Py_ssize_t size, Py_ssize_t reached, list fates)
    cdef tuple _record(self, topic, sender, receiver, copy, at, payload)
