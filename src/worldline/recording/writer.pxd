cimport cython

from worldline.recording.chunks cimport ChunkedFile
from worldline.recording.pending cimport Contents, OrderingObserver, Publication

cdef long long FOREVER, SEQUENCES
cdef Py_ssize_t MESSAGE_MAX


cdef class Recorder(OrderingObserver):
    cdef Contents _contents
    cdef dict _encodings
    cdef object _encoding
    cdef dict _schemas
    cdef dict _schema_numbers
    cdef dict _channels
    cdef dict _shared
    cdef dict _parts
    cdef long long _end
    cdef bint _closed
    cdef object _gap
    cdef double _shows_at
    cdef object _output
    cdef ChunkedFile _file

    @cython.locals(publication=Publication, sent="long long", sequence="long long", fates=list)
    cdef _write(self, list publications)
    @cython.locals(is_heard=bint, records=list)
    cdef _write_records(self, Publication publication, long long sent, long long sequence, list fates)
    cdef tuple _record(self, topic, sender, receiver, copy, at, payload)
