cimport cython

from worldline.federation.calls cimport Mutex, ReentrantMutex, SocketCalls, monotonic, yield_processor
from worldline.lock.ledger cimport Wire
from worldline.wire.codec cimport Frames, decode_answer, encode_events

cdef tuple _ANSWERED
cdef int _AT_ONCE
cdef Py_ssize_t _LEAST
cdef object Grant, Deliver, Recalled, Restore, StartRun
cdef list _NOTHING
cdef double _ASKED_S, _BRISK_S, _LONG_S, _VERY_LONG_S, _PAUSES, _LOOK_AFTER_S, _TELL_AFTER_S


cdef class Conversation:
    cdef public object end
    cdef public bint disowned
    cdef readonly Frames frames
    cdef str _name
    cdef list _bodies
    cdef list _parts

    cpdef agree(self, long long frame_max, long long payload_max)
    cpdef feed(self, object data)
    @cython.locals(moved=bint)
    cpdef bint move(self, list unread) except -1
    cpdef body(self)
    cpdef encode(self, list events)
    cpdef says(self, last)
    cpdef bint is_blank(self) except -1
    cpdef take(self, grant)
    @cython.locals(messages=list)
    cpdef answer(self)
    cdef bint _is_whole(self) except -1
    cpdef look(self)
    cpdef check(self)
    cdef _understood(self, object body)


cdef class MonotonicClock:
    cdef object _clock

    cpdef double read(self) except? -1


cdef class Eagerness:
    cdef MonotonicClock _clock
    cdef bint _brisk
    cdef double _lost_s
    cdef double _resumes

    cpdef bint asks(self, double since) except -1
    @cython.locals(before=double, now=double, took=double)
    cpdef bint asks_again(self, double since) except -1
    cpdef came(self, double since, double now)


cdef class QueuedSocket:
    cdef readonly object socket
    cdef readonly object plain
    cdef SocketCalls _calls
    cdef readonly Mutex reading
    cdef readonly Mutex writing
    cdef readonly list unsent
    cdef readonly double written
    cdef public double patience_s
    cdef public object deadline
    cdef object _shake
    cdef list _sent
    cdef list _unread
    cdef list _sizes
    cdef Py_ssize_t _size

    @cython.locals(rest=bytes)
    cpdef bint say(self, list events, Py_ssize_t longest) except -1
    cpdef hear(self, Py_ssize_t longest, int flags)
    cpdef bint hears(self)
    @cython.locals(done=Py_ssize_t, count=Py_ssize_t)
    cpdef bint send(self) except -1
    cpdef bint receive(self, Frames frames, int flags=*) except -1


cdef class SocketConnection(Wire):
    cdef object __weakref__
    cdef readonly QueuedSocket queued
    cdef readonly Conversation _conversation
    cdef Eagerness _eagerness
    cdef bint _is_plain
    cdef double _looked
    cdef object _doubt
    cdef double _heard
    cdef object _silence_s
    cdef object _given_up
    cdef readonly object welcome

    cpdef tell(self, list events)
    cpdef ask(self, list events)
    @cython.locals(now=double)
    cpdef bint is_due(self, bint urgent) except -1
    cpdef look(self)
    @cython.locals(conversation=Conversation, queued=QueuedSocket)
    cdef _say(self, list events)
    @cython.locals(conversation=Conversation)
    cdef bint _says_at_once(self, list events) except -1
    cpdef _write(self, object data)
    cdef _answer(self)
    cdef _send_all(self)
    @cython.locals(written=double, came=bint)
    cdef _receive(self, int flags=*)
    @cython.locals(conversation=Conversation, queued=QueuedSocket)
    cdef bint _hear(self, int flags) except -1


cdef class RedialingWire(Wire):
    cdef object __weakref__
    cdef readonly SocketConnection _connection
    cdef object _dial
    cdef double _patience_s
    cdef long long _answers
    cdef list _said
    cdef list _unsaid
    cdef bint _asks
    cdef bint _is_closed
    cdef object _given_up
    cdef ReentrantMutex _renewing

    @cython.locals(connection=SocketConnection)
    cpdef tell(self, list events)
    @cython.locals(answers="long long")
    cpdef ask(self, list events)
    @cython.locals(connection=SocketConnection)
    cdef _answer(self)
    @cython.locals(connection=SocketConnection)
    cpdef bint is_due(self, bint urgent) except -1
