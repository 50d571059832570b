# cython: language_level=3, boundscheck=False, wraparound=False, binding=False
"""System calls of connections, made from C: what Python's own do besides costs as much as the calls.

Only the compiled build has them; the other one, and TLS, use Python's. None of them lets other threads run while it
can't wait. Signals are as in Python: where a call waits, their handlers run before it and when it is interrupted.

So are the lock and the clock, of which a participant takes several for each message. And what a server does for each
frame to write its journal, which is mapped memory.
"""

from zlib import crc32

from cpython.buffer cimport PyBUF_SIMPLE, PyBUF_WRITABLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytearray cimport PyByteArray_AS_STRING, PyByteArray_GET_SIZE, PyByteArray_Resize
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.exc cimport PyErr_CheckSignals, PyErr_SetFromErrno
from libc.errno cimport EAGAIN, EINTR, errno
from libc.math cimport ceil
from libc.string cimport memcpy

from worldline.lock._words cimport Grant
from worldline.model._messagepack cimport ROOM
from worldline.wire.packed cimport HEADER, read_events, read_grant, write_events

cdef extern from *:
    """
    #include <sched.h>
    #include <sys/socket.h>
    #include <time.h>
    #include <unistd.h>
    #ifdef __APPLE__
    #define PYTHONS_MONOTONIC CLOCK_UPTIME_RAW
    #else
    #define PYTHONS_MONOTONIC CLOCK_MONOTONIC
    #endif
    #ifdef __linux__
    #include <sys/epoll.h>
    #define HAS_EPOLL 1
    #else
    #define HAS_EPOLL 0
    #define EPOLL_CLOEXEC 0
    #define EPOLL_CTL_ADD 0
    #define EPOLL_CTL_DEL 0
    #define EPOLL_CTL_MOD 0
    typedef union epoll_data { int fd; } epoll_data_t;
    struct epoll_event { unsigned int events; epoll_data_t data; };
    static int epoll_create1(int flags) { return -1; }
    static int epoll_ctl(int watch, int change, int which, struct epoll_event *event) { return -1; }
    static int epoll_wait(int watch, struct epoll_event *events, int count, int milliseconds) { return -1; }
    #endif
    """
    const bint HAS_EPOLL
    const int EPOLL_CLOEXEC, EPOLL_CTL_ADD, EPOLL_CTL_DEL, EPOLL_CTL_MOD, MSG_DONTWAIT

    ctypedef union epoll_data_t:
        int fd

    struct epoll_event:
        unsigned int events
        epoll_data_t data

    ctypedef int clockid_t
    const clockid_t PYTHONS_MONOTONIC

    struct timespec:
        long tv_sec
        long tv_nsec

    int clock_gettime(clockid_t clock, timespec* now) nogil
    int epoll_create1(int flags) nogil
    int epoll_ctl(int watch, int change, int which, epoll_event* event) nogil
    int epoll_wait(int watch, epoll_event* events, int count, int milliseconds) nogil
    Py_ssize_t recv(int which, void* room, size_t size, int flags) nogil
    Py_ssize_t send(int which, const void* data, size_t size, int flags) nogil
    int sched_yield() nogil
    int close_file "close"(int which) nogil

cdef extern from "Python.h":
    ctypedef struct PyObject
    Py_ssize_t PyList_GET_SIZE(object items)
    int PyList_SetSlice(object items, Py_ssize_t start, Py_ssize_t end, PyObject* others) except -1
    PyObject* new_bytes "PyBytes_FromStringAndSize"(const char* data, Py_ssize_t size) except NULL
    char* bytes_of "PyBytes_AS_STRING"(PyObject* data)
    int resize "_PyBytes_Resize"(PyObject** data, Py_ssize_t size) except -1
    void let_go "Py_XDECREF"(PyObject* data)

    enum PyLockStatus:
        PY_LOCK_ACQUIRED
    const int NOWAIT_LOCK
    PyThread_type_lock PyThread_allocate_lock()
    void PyThread_free_lock(PyThread_type_lock lock)
    int PyThread_acquire_lock(PyThread_type_lock lock, int waits) nogil
    PyLockStatus PyThread_acquire_lock_timed(PyThread_type_lock lock, long long microseconds, int is_interrupted) nogil
    void PyThread_release_lock(PyThread_type_lock lock) nogil
    unsigned long PyThread_get_thread_ident()

cdef enum:
    SHORT = 4096  # So much is read here first, and copied.
    READY_MAX = 64  # So many sockets are told of at once; the others come next.
    NOTHING = -2


cdef inline Py_ssize_t frame_size(const unsigned char* data, Py_ssize_t size, Py_ssize_t longest) noexcept:
    """Return how long the body is, if this is one frame that is whole, has a body and isn't too long; or else 0."""
    cdef Py_ssize_t length
    if size < HEADER:
        return 0
    length = <Py_ssize_t>data[0] << 24 | data[1] << 16 | data[2] << 8 | data[3]
    return length if length == size - HEADER and length <= longest else 0


cdef class SocketCalls:
    """The calls of one socket. It `waits` if it is a blocking one; if it isn't `plain`, Python's are used.

    What they have done is noted in the caller's list, so that a caller that is interrupted finds it there.
    """

    def __init__(self, connection, bint plain, bint waits):
        self._connection = connection
        self._number = connection.fileno() if plain else -1
        self._waits = waits

    cpdef bint send(self, data, Py_ssize_t start, list sent) except -1:
        """Write what fits of this from there on; False: nothing did."""
        cdef Py_ssize_t done = self.send_some(data, start)
        if not done:
            return False
        sent.append(done)
        return True

    cpdef bint receive(self, Py_ssize_t size, int flags, list unread) except -1:
        """Read so much at the most; False: nothing has come. What came is empty if nothing more will."""
        cdef bytes data = self.received(size, flags)
        if data is None:
            return False
        unread.append(data)
        return True

    # What most hops take: whole frames, written and read without an object for them, but of what a journal keeps.

    cpdef bint takes_frames(self, Py_ssize_t size):
        """Whether it can do that, where so much is read at a time."""
        return self._number >= 0 and size < SHORT

    cpdef bytes say(self, list events, Py_ssize_t longest):
        """Take out what a participant says, and write it as a frame; return what didn't fit.

        None: it isn't written here, and is still in the list.
        """
        cdef unsigned char room[ROOM]
        cdef Py_ssize_t size = write_events(room, events, longest), done
        cdef bytes rest
        if not size:
            return None
        done = send(self._number, room, size, MSG_DONTWAIT)
        if done < 0:
            if errno != EINTR and errno != EAGAIN:
                PyErr_SetFromErrno(OSError)
            done = 0
        rest = PyBytes_FromStringAndSize(<char*>room + done, size - done)
        PyList_SetSlice(events, 0, PyList_GET_SIZE(events), NULL)
        return rest

    cpdef hear_grant(self, Py_ssize_t longest, int flags):
        """Return the grant that has come, if that is all that has; the bytes, if they are anything else; None: nothing.
        """
        cdef unsigned char room[SHORT]
        cdef Py_ssize_t size, came
        cdef Grant grant
        came = self._receive(<char*>room, SHORT, flags)
        if came == NOTHING:
            return None
        size = frame_size(room, came, longest)
        grant = read_grant(room + HEADER, size) if size else None
        return PyBytes_FromStringAndSize(<char*>room, came) if grant is None else grant

    cpdef hear_events(self, Py_ssize_t longest, Py_ssize_t most, list bodies=None):
        """Return the events of a frame, so many at the most, as `hear_grant` does a grant.

        If there is a list for it, the frame's body goes there, too.
        """
        cdef unsigned char room[SHORT]
        cdef Py_ssize_t size, came
        cdef list events
        came = self._receive(<char*>room, SHORT, 0)
        if came == NOTHING:
            return None
        size = frame_size(room, came, longest)
        events = read_events(room + HEADER, size) if size else None
        if events is None or PyList_GET_SIZE(events) > most:
            return PyBytes_FromStringAndSize(<char*>room, came)
        if bodies is not None:
            bodies.append(PyBytes_FromStringAndSize(<char*>room + HEADER, size))
        return events

    cpdef Py_ssize_t pass_on(self, bytearray out) except -1:
        """Write what fits of this, and take it out; return how much that was. For a socket that doesn't wait."""
        cdef Py_ssize_t size = PyByteArray_GET_SIZE(out), done
        if self._number < 0:
            done = self.send_some(out, 0)
        else:
            done = self._send(PyByteArray_AS_STRING(out), size)
        if done == size:
            PyByteArray_Resize(out, 0)
        elif done:
            del out[:done]
        return done

    cpdef Py_ssize_t send_some(self, data, Py_ssize_t start) except -1:
        """Write what fits of this from there on; return how much that was."""
        cdef Py_buffer view
        if self._number < 0:
            try:
                return self._connection.send(memoryview(data)[start:] if start else data)
            except BlockingIOError:
                return 0
        if type(data) is bytes:
            return self._send(PyBytes_AS_STRING(data) + start, PyBytes_GET_SIZE(data) - start)
        PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
        try:
            return self._send(<char*>view.buf + start, view.len - start)
        finally:
            PyBuffer_Release(&view)

    cdef Py_ssize_t _send(self, const char* data, Py_ssize_t size) except -1:
        cdef Py_ssize_t done = send(self._number, data, size, MSG_DONTWAIT)
        while done < 0:
            if errno != EINTR and errno != EAGAIN:
                PyErr_SetFromErrno(OSError)
            if not self._waits:
                return 0
            PyErr_CheckSignals()
            with nogil:
                done = send(self._number, data, size, 0)
            if done < 0 and errno == EAGAIN:
                return 0  # There is a limit to how long it waits.
        return done

    cpdef bytes received(self, Py_ssize_t size, int flags):
        """Return what has come, so much at the most; None: nothing has."""
        cdef char short[SHORT]
        cdef char* room = short
        cdef PyObject* long = NULL
        cdef Py_ssize_t came
        if self._number < 0:
            try:
                return self._connection.recv(size, flags)
            except BlockingIOError:
                return None
        if size > SHORT:
            long = new_bytes(NULL, size)
            room = bytes_of(long)
        try:
            came = self._receive(room, size, flags)
            if came == NOTHING:
                return None
            if long is NULL:
                return PyBytes_FromStringAndSize(short, came)
            resize(&long, came)
            return <bytes><object>long
        finally:
            let_go(long)

    cdef Py_ssize_t _receive(self, char* room, Py_ssize_t size, int flags) except -1:
        """Read what has come; return how much that is, or NOTHING, if it would wait or has waited long enough."""
        cdef Py_ssize_t came
        cdef bint waits = self._waits and not flags & MSG_DONTWAIT
        while True:
            if waits:
                PyErr_CheckSignals()
                with nogil:
                    came = recv(self._number, room, size, flags)
            else:
                came = recv(self._number, room, size, flags)
            if came >= 0:
                return came
            if errno == EAGAIN:
                return NOTHING
            if errno != EINTR:
                PyErr_SetFromErrno(OSError)

    cpdef close(self):
        """Make no more calls: the number may soon be another file's."""
        self._number = -1


cdef class Watch:
    """What tells which sockets are ready, of either kind: one of these, or `SocketWatch`."""

    cpdef list ready(self, double seconds):
        raise NotImplementedError


cdef class EpollWatch(Watch):
    """Sockets, each with what is to be done when it is ready."""

    def __cinit__(self):
        self._number = -1

    def __init__(self):
        self._actions = {}
        self._number = epoll_create1(EPOLL_CLOEXEC)
        if self._number < 0:
            PyErr_SetFromErrno(OSError)

    def register(self, which, unsigned int events, action):
        number = which.fileno()
        self._change(EPOLL_CTL_ADD, number, events)
        self._actions[number] = action

    def modify(self, which, unsigned int events):
        self._change(EPOLL_CTL_MOD, which.fileno(), events)

    def unregister(self, which):
        number = which.fileno()
        del self._actions[number]
        self._change(EPOLL_CTL_DEL, number, 0)

    def _change(self, int change, int number, unsigned int events):
        cdef epoll_event event
        event.events = events
        event.data.fd = number
        if epoll_ctl(self._number, change, number, &event) < 0:
            PyErr_SetFromErrno(OSError)

    cpdef list ready(self, double seconds):
        """Return what is to be done now; wait for something, for so long at the most."""
        cdef epoll_event events[READY_MAX]
        cdef int count, place
        cdef int milliseconds = <int>ceil(min(seconds, 1e6) * 1000)
        cdef list actions
        if milliseconds > 0:
            PyErr_CheckSignals()
            with nogil:
                count = epoll_wait(self._number, events, READY_MAX, milliseconds)
        else:
            count = epoll_wait(self._number, events, READY_MAX, 0)
        if count < 0:
            if errno != EINTR:
                PyErr_SetFromErrno(OSError)
            PyErr_CheckSignals()
            count = 0  # Its owner asks again.
        actions = []
        for place in range(count):
            actions.append(self._actions[events[place].data.fd])
        return actions

    def close(self):
        if self._number >= 0:
            close_file(self._number)
            self._number = -1

    def __dealloc__(self):
        if self._number >= 0:
            close_file(self._number)


cpdef yield_processor():
    """Let another process have the processor, if one wants it."""
    with nogil:
        sched_yield()


cpdef double monotonic():
    """Return what `time.monotonic` does, and make no object for it."""
    cdef timespec now
    clock_gettime(PYTHONS_MONOTONIC, &now)
    return now.tv_sec + now.tv_nsec * 1e-9


cdef class Mutex:
    """A `threading.Lock`; in a `with` statement of a compiled module it costs a fraction of one.

    It is no more than a note whether it is held, since other threads run only where these lines let them. They wait for
    the bell, a lock of the system's, which is rung for one of them at a time.
    """

    def __cinit__(self):
        self._bell = PyThread_allocate_lock()
        if self._bell is NULL:
            raise MemoryError
        PyThread_acquire_lock(self._bell, NOWAIT_LOCK)

    cpdef __enter__(self):
        if self._held:
            self._wait()
        self._held = True

    @property
    def __exit__(self):
        """What a `with` statement calls at its end. Of a method it would make an object first, each time."""
        return self

    def __call__(self, *_):
        self.release()

    cdef _wait(self):
        cdef PyLockStatus status
        self._waiting += 1
        try:
            while self._held:  # Another may have been quicker, after the bell, too.
                with nogil:
                    status = PyThread_acquire_lock_timed(self._bell, -1, 1)
                if status == PY_LOCK_ACQUIRED:
                    self._called = False
                else:
                    PyErr_CheckSignals()
        finally:
            self._waiting -= 1

    cpdef bint locked(self):
        """Whether it is held, by any thread."""
        return self._held

    def acquire(self, bint blocking=True):
        """Take it; if it isn't to be waited for, return whether it could be taken."""
        if self._held and not blocking:
            return False
        self.__enter__()
        return True

    cpdef release(self):
        self._held = False
        if self._waiting and not self._called:
            self._called = True
            PyThread_release_lock(self._bell)

    def __dealloc__(self):
        if self._bell is not NULL:
            PyThread_free_lock(self._bell)


cdef class ReentrantMutex(Mutex):
    """A `threading.RLock`."""

    cpdef __enter__(self):
        cdef unsigned long thread = PyThread_get_thread_ident()
        if not self._depth or self._owner != thread:
            Mutex.__enter__(self)
            self._owner = thread
        self._depth += 1

    def acquire(self, bint blocking=True):
        cdef unsigned long thread = PyThread_get_thread_ident()
        if not blocking and self._depth and self._owner != thread:
            return False
        self.__enter__()
        return True

    cpdef release(self):
        self._depth -= 1
        if not self._depth:
            Mutex.release(self)


cdef enum:
    RECORD_SIZE = 20  # Of what stands before a record's body.
    LENGTH_PLACE = 12


cpdef unsigned int write_record(
    room, Py_ssize_t place, unsigned int check, unsigned long long before, unsigned int mixed, body
) except? 0:
    """Write a record of a run's journal, of which `run_journal` says how; return its checksum."""
    cdef Py_buffer target, source
    cdef unsigned char* start
    cdef volatile unsigned char* head
    cdef unsigned int length
    PyObject_GetBuffer(room, &target, PyBUF_WRITABLE)
    try:
        PyObject_GetBuffer(body, &source, PyBUF_SIMPLE)
        try:
            if place < 0 or place + RECORD_SIZE + source.len > target.len:
                raise ValueError("there is no room for a record")
            length = <unsigned int>(RECORD_SIZE + source.len)
            check = crc32(body, check ^ mixed ^ <unsigned int>before ^ <unsigned int>(before >> 32) ^ length << 7)
            start = <unsigned char*>target.buf + place
            head = start
            put_number(head + LENGTH_PLACE, length, 4)
            memcpy(start + RECORD_SIZE, source.buf, source.len)
            put_number(head, check, 4)
            put_number(head + 4, before, 8)
            put_number(head + LENGTH_PLACE + 4, mixed, 4)  # The kind last (J3).
        finally:
            PyBuffer_Release(&source)
    finally:
        PyBuffer_Release(&target)
    return check


cdef void put_number(volatile unsigned char* place, unsigned long long number, int size) noexcept:
    """Write a number, the least significant byte first."""
    cdef int each
    for each in range(size):
        place[each] = <unsigned char>(number >> 8 * each)
