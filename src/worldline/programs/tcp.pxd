cimport cython

cdef long long _RTO_FIRST, _RTO_LEAST, _RTO_MOST, _ACK_DELAY, _LINGER, _NEVER
cdef Py_ssize_t _SYN_RETRIES, _DATA_RETRIES, _DUPLICATES
cdef int ACK, FIN, OPENER, PROBE, RST, SYN
cdef object Segment, _OPENING, _ANSWERING, _OPEN, _WAITING, _CLOSED


cdef class RoundTrip:
    cdef readonly long long rto
    cdef long long _mean
    cdef long long _deviation
    cdef long long _timed
    cdef long long _since

    cdef time(self, long long sequence, long long now)
    cdef forget(self)
    @cython.locals(took="long long")
    cdef acknowledged(self, long long sequence, long long now)
    cdef back_off(self)


cdef class OutgoingData:
    cdef readonly bytearray data
    cdef readonly long long first
    cdef readonly long long next
    cdef readonly long long window
    cdef readonly bint is_ended
    cdef readonly bint is_done
    cdef readonly long long due
    cdef readonly Py_ssize_t retries
    cdef Py_ssize_t duplicates
    cdef long long lost_before
    cdef readonly RoundTrip trip

    cdef long long end(self)


cdef class IncomingData:
    cdef readonly bytearray data
    cdef readonly long long next
    cdef dict early
    cdef long long ends_at
    cdef readonly bint is_ended
    cdef readonly long long ack_due
    cdef readonly bint acks_now
    cdef long long window_told

    cdef long long window(self)
    @cython.locals(fresh=bytes, place="long long", rest=bytes)
    cdef bint take(self, long long sequence, bytes data) except -1


cdef class Connection:
    cdef readonly tuple identity
    cdef readonly tuple ports
    cdef readonly object state
    cdef public int error
    cdef readonly OutgoingData out
    cdef readonly IncomingData incoming
    cdef bint is_orphan
    cdef public bint is_deaf
    cdef object _emit
    cdef object changed
    cdef long long _segment_max
    cdef int _side
    cdef bint _greets
    cdef bint _is_first
    cdef readonly long long expires

    cdef long long due(self)
    @cython.locals(room="long long")
    cpdef Py_ssize_t write(self, data) except -1
    @cython.locals(incoming=IncomingData, taken=bytes)
    cpdef bytes read(self, Py_ssize_t size)
    cpdef put_out(self, long long now)
    @cython.locals(flags=int)
    cpdef take(self, segment, long long now)
    cpdef pass_time(self, long long now)
    @cython.locals(incoming=IncomingData, window="long long", place="long long")
    cdef _say(self, int flags, long long sequence=*, bytes data=*)
    @cython.locals(out=OutgoingData)
    cdef _greet(self, long long now)
    @cython.locals(out=OutgoingData, limit="long long", size="long long")
    cdef _send_data(self, long long now)
    @cython.locals(out=OutgoingData, end="long long", offset="long long", is_last=bint)
    cdef _send_piece(self, long long place, long long size)
    @cython.locals(out=OutgoingData)
    cdef _send_again(self)
    @cython.locals(out=OutgoingData, most=Py_ssize_t)
    cdef _retry(self, long long now)
    cdef _become_open(self, segment, long long now)
    @cython.locals(out=OutgoingData, known="long long", is_full=bint, is_duplicate=bint)
    cdef _take_acknowledgement(self, segment, long long now)
    @cython.locals(incoming=IncomingData, flags=int, data=bytes, end="long long", followed=bint, is_last=bint)
    cdef _take_data(self, segment, long long now)
    cdef _look_for_end(self, long long now)
    cdef _be_reset(self)
    cdef _close(self, int error)
