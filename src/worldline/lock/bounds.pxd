cimport cython

cdef long long FOREVER
cdef Py_ssize_t _SLEEPERS_MAX, _RIDERS_KEPT, _GONE_KEPT, _FAN_IN_SMALL
cdef object heapify, heappop, heappush, heapreplace


cdef class Clock:
    cdef readonly str name
    cdef readonly long long base
    cdef readonly long long promise
    cdef readonly long long value
    cdef readonly bint sleeping
    cdef readonly long long goal
    cdef readonly list ins
    cdef readonly Py_ssize_t looked_at
    cdef readonly long long looked_for
    cdef readonly list riders
    cdef readonly Py_ssize_t riders_max
    cdef readonly Clock rides_on
    cdef readonly long long subgoal
    cdef readonly long long ticket
    cdef readonly long long tracked

    cpdef long long send(self, long long bound)


cdef class Bounds:
    cdef list _clocks
    cdef list _floors
    cdef long long _serial
    cdef list _ready
    cdef list _doubtful

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
    @cython.locals(floors=list, tracked="long long", clock=Clock)
    cpdef long long floor(self)
    @cython.locals(riders=list, rider=Clock, entry=tuple)
    cdef _release(self, Clock clock, long long reached)
    @cython.locals(riders=list, goal="long long", threshold="long long", entry=tuple, rider=Clock)
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
        floor="long long", met=dict, frontier=list, serial="long long", sender=Clock, latency="long long",
        distance="long long", sleeper=Clock, toward=Clock, far="long long", reach="long long", least="long long",
    )
    cdef long long _search(self, Clock origin, long long demand, long long best)
    @cython.locals(passed=Clock, toward=Clock, distance="long long")
    cdef _ride_along(
        self, Clock origin, long long demand, dict met, Clock sleeper, Clock blocker, long long far,
        long long unreachable,
    )
    cdef long long _modest(self, Clock clock, long long demand, long long unreachable)
    cdef _ride(self, Clock clock, long long subgoal, Clock blocker, long long threshold)
