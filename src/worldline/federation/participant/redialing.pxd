from worldline.federation.participant.connection cimport SocketConnection


cdef class RedialingWire:
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
    cdef object _renewing
