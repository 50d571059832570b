cimport cython

from worldline.history.journal cimport Journal
from worldline.lock._words cimport Advance, Grant, Next, Promise, Publish, Reached, new_advance, new_next, new_publish
from worldline.lock.states cimport StateRow
from worldline.model._message cimport Message
from worldline.model.clock cimport RunningClock

cdef long long FOREVER, TIME_MAX
cdef object Peek, StartRun, Abort
cdef object as_time
cdef list _NOTHING
cdef RunningClock TRUE_TIME
cdef StateRow _ACTING, _ADVANCING, _AWAITING, _PEEKING


cdef class Subscriptions:
    cdef public dict buffers
    cdef public bint sifts
    cdef public dict dropped
    cdef public long long complete_at
    cdef public list incomplete
    cdef public list finished

    cdef complete(self, long long moment)


cdef class Undo:
    cdef bint is_marked
    cdef bint is_served
    cdef StateRow waits
    cdef long long until
    cdef list given
    cdef long long now
    cdef long long horizon
    cdef long long complete_at
    cdef StateRow row
    cdef bint final
    cdef object waited
    cdef list incomplete
    cdef list finished
    cdef dict dropped
    cdef list held


cdef class ParticipantDraws:
    cdef str _name
    cdef public object seed
    cdef public tuple rows
    cdef public object load
    cdef public object heard
    cdef public dict streams
    cdef object _table


cdef class Snapshots:
    cdef public object at_server
    cdef public object recalled
    cdef public bint is_fresh
    cdef public bint is_asked_for
    cdef public object program


cdef class Wire:
    cpdef tell(self, list events)
    cpdef ask(self, list events)
    cpdef bint is_due(self, bint urgent) except -1


cdef class Ledger:
    cdef readonly str name
    cdef readonly Journal journal
    cdef readonly long long now
    cdef public StateRow row
    cdef public long long until
    cdef public long long told
    cdef public list outbox
    cdef public long long horizon
    cdef public bint final
    cdef public list held
    cdef readonly Subscriptions topics
    cdef object _publishes
    cdef dict _checked
    cdef readonly long long period
    cdef public long long promised
    cdef public Py_ssize_t payload_max
    cdef public long long reach
    cdef bint _controls
    cdef long long _control_latency
    cdef object _described
    cdef readonly RunningClock clock
    cdef public long long reads_at
    cdef public long long reads
    cdef readonly ParticipantDraws draws
    cdef readonly Snapshots snapshots
    cdef Undo undo
    cdef public object life
    cdef tuple _idle
    cdef object _waited

    cpdef long long stands(self)
    cpdef bint may_give(self, long long until) except -1
    cpdef list take_outbox(self)
    cpdef hand_over(self, list taken)
    @cython.locals(row=StateRow)
    cpdef list receive(self, action)
    @cython.locals(undo=Undo, topics=Subscriptions)
    cdef _mark(self, StateRow waits, long long until, list held)
    cpdef forget_mark(self)
    @cython.locals(undo=Undo, topics=Subscriptions)
    cpdef take_back(self)
    @cython.locals(waited=StateRow)
    cdef list _answered(self, Grant grant)
    @cython.locals(horizon="long long", messages=list, final=bint, first=Message, arrival="long long", held=list)
    cdef _take_in(self, Grant grant)
    @cython.locals(first="long long", message=Message, arrival="long long")
    cdef bint _wakes(self, long long horizon, list messages) except -1
    @cython.locals(target="long long")
    cpdef advance(self, to)
    @cython.locals(target="long long")
    cpdef next(self, until=*, promise=*)
    cdef bint _serves_again(self)
    cdef list _wait(self, long long target, bint wakes)
    cpdef ask(self, long long target, bint wakes)
    cpdef bint knows(self, long long target, bint wakes)
    @cython.locals(first=Message)
    cpdef long long first_held(self)
    @cython.locals(
        first="long long", before="long long", message=Message, arrival="long long", held=list, taken=list,
    )
    cpdef list go(self, long long target, bint wakes)
    cdef list _give(self, list batch)
    cdef long long _retire(self, long long target)
    cdef long long _target(self, time, kind)
    @cython.locals(sent="long long", before="long long", limit="long long", calls="long long")
    cpdef note_idle_call(self)
    @cython.locals(due="long long")
    cpdef keep_period(self, long long acts)
    @cython.locals(now="long long", sent="long long")
    cpdef publish(self, topic, payload, at=*)
    cpdef tell_time(self)
    cpdef check(self, kind)
