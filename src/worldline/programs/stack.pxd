cimport cython

from worldline.programs.tcp cimport Connection

cdef long long LOOPBACK_NS, _NEVER
cdef Py_ssize_t WINDOW, SEGMENT_MAX
cdef int OPENER, RST, SYN, _READ, _WRITE
cdef object Segment, heappop, heappush, read_segment, read_datagram
cdef object _OPENING, _ANSWERING, _OPEN, _WAITING, _CLOSED


cdef class Endpoint:
    cdef readonly Stack stack
    cdef public Py_ssize_t holders
    cdef public object descriptor
    cdef readonly list watchers
    cdef readonly dict options
    cdef public bint may_reuse
    cdef public bint shares
    cdef public bint blocks

    cpdef changed(self)
    cpdef bint is_readable(self) except -1
    cpdef bint is_writable(self) except -1
    cpdef int take_error(self) except -1
    cpdef bint listens(self) except -1


cdef class Watch:
    cdef readonly Endpoint endpoint
    cdef object key
    cdef int events
    cdef Watches _watches


cdef class Watches:
    cdef dict candidates
    cdef Stack _stack
    cdef dict _all

    @cython.locals(endpoint=Endpoint, watch=Watch)
    cpdef add(self, key)
    @cython.locals(watch=Watch)
    cpdef change(self, key)
    @cython.locals(watch=Watch)
    cpdef remove(self, descriptor)
    @cython.locals(endpoint=Endpoint, watch=Watch, events=int, found=list)
    cpdef list ready(self)


cdef class StreamSocket(Endpoint):
    cdef readonly object local
    cdef readonly object peer
    cdef readonly Connection connection
    cdef readonly list accepted
    cdef readonly Py_ssize_t backlog
    cdef bint is_shut
    cdef bint has_told
    cdef public bint aborts

    @cython.locals(made=Connection)
    cpdef bint is_readable(self) except -1
    @cython.locals(made=Connection)
    cpdef bint is_writable(self) except -1
    @cython.locals(made=Connection)
    cpdef int take_error(self) except -1
    @cython.locals(made=Connection, taken=Py_ssize_t)
    cpdef Py_ssize_t send(self, data) except -1
    @cython.locals(made=Connection)
    cpdef bytes receive(self, Py_ssize_t size, bint peek=*)


cdef class Stack:
    cdef public long long now
    cdef readonly object directory
    cdef readonly str address
    cdef readonly str hostname
    cdef readonly dict endpoints
    cdef object _next_descriptor
    cdef object _tcp
    cdef object _udp
    cdef Connections _connections
    cdef readonly dict paths
    cdef list _outgoing
    cdef list _looped
    cdef long long _loops

    cpdef endpoint(self, descriptor)
    cpdef bint has(self, descriptor) except -1
    cdef has_to_say(self, Connection connection)
    cdef send_segment(self, segment, str to)
    cpdef list take_outgoing(self)
    cdef bint _is_own(self, str address) except -1
    cdef _loop(self, str to, what)
    cpdef pass_time(self)
    cpdef hear(self, str protocol, str sender, bytes payload)


cdef class Connections:
    cdef Stack _stack
    cdef dict _all
    cdef dict _owners
    cdef dict _listeners
    cdef long long _opened
    cdef long long _segment_max
    cdef object _ports
    cdef object _lingering
    cdef list _timers
    cdef dict _scheduled
    cdef long long _timings
    cdef dict speaking

    @cython.locals(at="long long", connection=Connection)
    cdef long long due(self) except -1
    cpdef bint has_port(self, port) except -1
    cdef _forget_expired(self)
    @cython.locals(made=Connection)
    cdef open(self, StreamSocket owner, port, tuple to)
    @cython.locals(speaking=dict, each=Connection)
    cdef put_out(self, long long now)
    @cython.locals(each=Connection)
    cdef pass_time(self, long long now)
    @cython.locals(made=Connection)
    cdef hear(self, segment, str source, str to)
    cdef _answer(self, segment, str source, str to)
    cdef _refuse(self, segment, str source)
    @cython.locals(made=Connection)
    cdef Connection _made(self, tuple identity, tuple ports)
    cpdef _emit(self, Connection connection, segment)
    @cython.locals(listener=StreamSocket, owner=StreamSocket)
    cpdef _changed(self, Connection connection)
    cdef _accept(self, Connection connection, StreamSocket listener)
    @cython.locals(due="long long")
    cdef _touched(self, Connection connection)
    cdef _forget(self, Connection connection)
