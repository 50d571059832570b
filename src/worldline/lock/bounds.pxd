cimport cython

from worldline.lock.heap cimport Heap

cdef long long FOREVER
cdef list _NO_CLOCKS


cdef class Clock:
    cdef public str name
    cdef public Py_ssize_t number
    cdef public long long base
    cdef public long long promise
    cdef public long long value
    cdef public bint sleeping
    cdef public long long goal
    cdef public long long reached
    cdef public list ins
    cdef public Py_ssize_t looked_at
    cdef public long long looked_for
    cdef public Heap riders
    cdef public Py_ssize_t riders_max
    cdef public Clock rides_on
    cdef public long long subgoal
    cdef public long long ticket
    cdef public long long tracked
    cdef public long long met_in
    cdef public Clock toward
    cdef public long long distance

    cpdef long long send(self, long long bound)


cdef class Bounds:
    cdef list _clocks
    cdef readonly Heap _floors
    cdef Heap _frontier
    cdef list _ready
    cdef list _doubtful
    cdef readonly long long searches
    cdef readonly long long looks
    cdef Py_ssize_t _sleepers_max
    cdef Py_ssize_t _fan_in_small
    cdef Py_ssize_t _riders_kept
    cdef Py_ssize_t _gone_kept

    cpdef add(self, Clock clock)
    cpdef rewire(self, Clock clock, list ins)
    cpdef connect(self, Clock sender, Clock receiver, long long latency)
    @cython.locals(value="long long")
    cpdef change(self, Clock clock, long long base, long long promise, long long goal=*, bint sleeping=*)
    cdef _track_lower(self, Clock clock, long long base)
    @cython.locals(ready=list)
    cpdef list take_ready(self)
    @cython.locals(doubtful=list)
    cpdef settle(self)
    @cython.locals(floors=Heap, tracked="long long", clock=Clock)
    cpdef long long floor(self)
    @cython.locals(riders=Heap, rider=Clock)
    cdef _release(self, Clock clock, long long reached)
    @cython.locals(riders=Heap, goal="long long", threshold="long long")
    cdef long long _demand(self, Clock clock)
    @cython.locals(demand="long long", bound="long long")
    cdef _examine(self, Clock clock)
    @cython.locals(
        best="long long", blocker=Clock, near="long long", through_sleepers=bint, gone=Py_ssize_t,
        sender=Clock, latency="long long", reach="long long", floor="long long",
    )
    cdef long long _probe(self, Clock clock, long long demand)
    @cython.locals(ins=list, place=Py_ssize_t, sender=Clock, latency="long long", reach="long long")
    cdef bint _is_held(self, Clock clock, long long demand)
    @cython.locals(
        floor="long long", search="long long", met=Py_ssize_t, clocks=list, frontier=Heap, sender=Clock, latency="long long",
        distance="long long", sleeper=Clock, toward=Clock, far="long long", reach="long long", least="long long",
    )
    cdef long long _search(self, Clock origin, long long demand, long long best)
    @cython.locals(passed=Clock)
    cdef _ride_along(
        self, Clock origin, long long demand, Clock sleeper, Clock blocker, long long far, long long unreachable
    )
    cdef long long _modest(self, Clock clock, long long demand, long long unreachable)
    @cython.locals(riders=Heap)
    cdef _ride(self, Clock clock, long long subgoal, Clock blocker, long long threshold)
    @cython.locals(clock=Clock)
    cdef bint _is_valid(self, Heap riders)
