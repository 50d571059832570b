cimport cython

from worldline.history.journal cimport Journal
from worldline.lock.states cimport StateRow
from worldline.model.clock cimport RunningClock

cdef long long FOREVER, TIME_MAX
cdef object Publish, Advance, Next, Peek, Promise, Reached, Grant, StartRun, Abort
cdef object as_time, insort, deque
cdef RunningClock TRUE_TIME
cdef StateRow _ACTING, _ADVANCING, _AWAITING, _PEEKING


cdef class Ledger:
    cdef readonly str name
    cdef readonly Journal journal
    cdef readonly long long now
    cdef public long long horizon
    cdef StateRow _row
    cdef readonly dict dropped
    cdef readonly dict missed
    cdef readonly dict untaken
    cdef public Py_ssize_t payload_max
    cdef list _outbox
    cdef object _publishes
    cdef bint _controls
    cdef dict _buffers
    cdef bint _sifts
    cdef dict _topics
    cdef long long _period
    cdef readonly bint has_clock
    cdef object _described
    cdef readonly RunningClock clock
    cdef public long long reads_at
    cdef public long long reads
    cdef long long _promised
    cdef long long _told
    cdef readonly object _held
    cdef bint _final
    cdef long long _until
    cdef long long _idle_at
    cdef Py_ssize_t _idle_calls
    cdef long long _idle_sent
    cdef long long _complete_at
    cdef list _incomplete
    cdef list _finished
    cdef object _seed
    cdef long long _control_latency
    cdef readonly long long reach
    cdef dict _streams
    cdef public object load_draw_function
    cdef public object draws_heard
    cdef tuple _rows
    cdef object _draws
    cdef public object has_snapshot
    cdef object _kept
    cdef bint _is_fresh
    cdef bint _asked_for_state
    cdef object _restored
    cdef public bint careful
    cdef bint _is_marked
    cdef bint _is_served
    cdef tuple _called
    cdef tuple _before
    cdef tuple _lists
    cdef list _given
    cdef object _waited
    cdef readonly Py_ssize_t incarnation
    cdef readonly bint is_crashed
    cdef readonly object estopped

    cdef _mark(self, StateRow waits, long long until, held=*)
    cpdef long long stands(self)
    cpdef forget_mark(self)
    cpdef take_back(self)
    cdef _serve_again(self)
    cdef long long _target(self, time, kind)
    cpdef note_idle_call(self)

    cpdef list take_outbox(self)
    cpdef hand_over(self, list taken)
    @cython.locals(row=StateRow)
    cpdef list receive(self, action)
    @cython.locals(waited=StateRow)
    cdef list _granted(self, grant)
    @cython.locals(horizon="long long", messages=list)
    cdef _take_in(self, grant)
    @cython.locals(first="long long")
    cdef bint _wakes(self, grant)
    @cython.locals(target="long long")
    cpdef advance(self, to)
    @cython.locals(first="long long")
    cpdef next(self, until=*, promise=*)
    cdef long long _first(self)
    @cython.locals(due="long long")
    cdef _keep_period(self, long long acts)
    @cython.locals(first="long long", batch=list)
    cdef list _wake(self)
    cdef _complete(self, long long moment)
    @cython.locals(batch=list)
    cdef list _go_to(self, long long target)
    cdef long long _retire(self, long long target)
    cdef list _arrive(self, long long now, list batch)
    @cython.locals(now="long long", sent="long long")
    cpdef publish(self, topic, payload, at=*)
    cpdef tell_time(self)
    cdef _check(self, kind)
