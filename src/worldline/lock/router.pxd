cimport cython

from worldline.history.observer cimport Observer
from worldline.lock.bounds cimport Bounds
from worldline.lock.member cimport Inbox
from worldline.lock.member cimport Member
from worldline.model._message cimport Message
from worldline.model._native cimport new_tuple as _message
from worldline.model.path cimport Lifetime, Path

cdef long long FOREVER
cdef Py_ssize_t _MESSAGE_COST
cdef object _NO_MESSAGE, heappop, heappush


cdef class _Target:
    cdef readonly Member member
    cdef readonly Inbox inbox
    cdef readonly Path path
    cdef readonly long long constant
    cdef public long long listens_from
    cdef public long long down_from
    cdef public long long down_until
    cdef readonly object backlog


cdef class _Publication:
    cdef readonly Member sender
    cdef readonly str topic
    cdef readonly long long published
    cdef readonly dict targets
    cdef readonly Lifetime lifetime
    cdef readonly long long lasting
    cdef list _retained
    cdef Py_ssize_t _forgotten
    cdef readonly list judged
    cdef public dict probes

    cpdef retain(self, Message message)
    @cython.locals(
        freed="long long", retained=list, judged=list, message=Message, arrival="long long", place=Py_ssize_t,
        count=Py_ssize_t,
    )
    cpdef forget(self, long long floor)
    @cython.locals(target=_Target)
    cpdef long long floor(self, long long acts)


cdef class Router:
    cdef Bounds _bounds
    cdef Observer _observer
    cdef readonly object draws
    cdef object _paths
    cdef readonly long long latest
    cdef bint _queues
    cdef dict _members
    cdef dict _newcomers
    cdef readonly dict _publications
    cdef readonly dict _by_topic
    cdef readonly dict _subscribers
    cdef list _departed
    cdef long long _serial
    cdef readonly object edges
    cdef Py_ssize_t _forget_every

    @cython.locals(
        publication=_Publication, sequence="long long", number="long long", size=Py_ssize_t, lasting="long long",
        expiry="long long", roused=list, shared="long long", target=_Target, arrival="long long", inbox=Inbox,
        observer=Observer,
    )
    cpdef list publish(self, Member sender, str topic, bytes payload, long long sent)
    cdef _Publication _publication(self, Member sender, str topic)
    @cython.locals(target=_Target)
    cdef _Target _aim(self, _Publication publication, Member member, long long since)
    cdef _Target _open(self, _Publication publication, Member member)
    @cython.locals(arrival="long long", copy="long long")
    cdef _carry(
        self, _Publication publication, _Target target, long long number, long long sent, long long sequence,
        bytes payload, list roused,
    )
    @cython.locals(
        arrival="long long", sent="long long", sequence="long long", copy="long long", member=Member, inbox=Inbox,
    )
    cdef _deliver(self, _Publication publication, _Target target, tuple flight, list roused)
    @cython.locals(path=Path)
    cdef _retell(self, _Publication publication, _Target target)
    @cython.locals(floor="long long", target=_Target)
    cdef _forget(self, _Publication publication)
