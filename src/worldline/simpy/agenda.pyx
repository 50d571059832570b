# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, binding=False, annotation_typing=True
"""The queue of a compiled Environment: events in the order (time, priority, number), all of that in two C numbers.

It holds what nearly all models have: times that are floats, or ints below 2**53, none of which lies in the past. For
anything else, the Environment goes over to the list of tuples that SimPy has (`engine.py`).

Most events of a SimPy model happen at once, urgently or normally. Their numbers only grow, so they wait in two rings,
first in, first out. The others are in a heap with four children per node. An event in a ring is next unless the heap
has one for the same moment with a lesser key.

While an event happens that was at the top of the heap, its place is a hole, and the next event that is pushed fills
it: that saves half of the work. Events are kept by C pointers, each with a reference of its own, so the garbage
collector has to be told of them: `_traverse` and `_clear` at the end.
"""

cimport cython
from cpython.object cimport PyObject, PyTypeObject, inquiry, traverseproc, visitproc
from cpython.ref cimport Py_DECREF, Py_INCREF
from libc.stdlib cimport free, malloc, realloc

from worldline.simpy._native cimport owned


cdef class Agenda:
    """Events that wait, and the time of the one that was taken last."""

    def __dealloc__(self):
        self._let_go()

    def __len__(self):
        return self._size - self._hole + self._urgent.size + self._normal.size

    cdef bint is_empty(self) noexcept:
        return self._size - self._hole + self._urgent.size + self._normal.size == 0

    cdef int push(self, double time, unsigned long long key, object kept) except -1:
        """Add an event for later, or one for now whose priority is unusual."""
        cdef Node node
        cdef Node* heap
        cdef Py_ssize_t room
        if self._size == self._room:
            room = self._room + self._room // 4 + 16
            heap = <Node*>realloc(self._heap, room * sizeof(Node))
            if heap == NULL:
                raise MemoryError
            self._heap = heap
            self._room = room
        node.kept = <PyObject*>kept
        node.time = time
        node.key = key
        Py_INCREF(kept)
        if self._hole:
            self._hole = False
            self._sift_down(node)
            return 0
        self._size += 1
        self._sift_up(node)
        return 0

    cdef int push_now(self, bint is_urgent, unsigned long long key, object kept) except -1:
        """Add an event for this very moment."""
        cdef Ring* ring = &self._urgent if is_urgent else &self._normal
        if ring.size == ring.room:
            self._grow_ring(ring)
        cdef Node* node = &ring.nodes[(ring.first + ring.size) & (ring.room - 1)]
        node.kept = <PyObject*>kept
        node.key = key
        Py_INCREF(kept)
        ring.size += 1
        return 0

    cdef object pop(self):
        """Take the next event; `now` and `key` are its. There must be one."""
        cdef Node node
        cdef Ring* ring = &self._urgent if self._urgent.size else &self._normal
        if self._hole:
            self._settle()
        if ring.size:
            node = ring.nodes[ring.first]
            if not (self._size and self._heap[0].time == self.now and self._heap[0].key < node.key):
                ring.first = (ring.first + 1) & (ring.room - 1)
                ring.size -= 1
                self.key = node.key
                return owned(node.kept)
        node = self._heap[0]
        self._hole = True
        self.now = node.time
        self.key = node.key
        return owned(node.kept)

    cdef Node front(self) noexcept:
        """Return the next event's time and key. There must be one."""
        cdef Ring* ring = &self._urgent if self._urgent.size else &self._normal
        cdef Node node
        if self._hole:
            self._settle()
        if ring.size:
            node = ring.nodes[ring.first]
            node.time = self.now
            if not (self._size and self._heap[0].time == self.now and self._heap[0].key < node.key):
                return node
        return self._heap[0]

    cdef list drained(self):
        """Take all events, in order: (time, key, what is kept)."""
        found = []
        while not self.is_empty():
            kept = self.pop()
            found.append((self.now, self.key, kept))
        return found

    cdef void _let_go(self) noexcept:
        """Let everything go. The arrays are taken away first, because what is let go may look into them."""
        cdef Node* heap = self._heap
        cdef Ring urgent = self._urgent
        cdef Ring normal = self._normal
        cdef Py_ssize_t first = self._hole
        cdef Py_ssize_t size = self._size
        self._heap = self._urgent.nodes = self._normal.nodes = NULL
        self._size = self._room = 0
        self._urgent.size = self._urgent.room = self._urgent.first = 0
        self._normal.size = self._normal.room = self._normal.first = 0
        self._hole = False
        cdef Py_ssize_t place
        for place in range(first, size):
            Py_DECREF(<object>heap[place].kept)
        _empty(&urgent)
        _empty(&normal)
        free(heap)

    cdef int _grow_ring(self, Ring* ring) except -1:
        """Make room for twice as many; what had come round to the beginning is put behind the end."""
        room: cython.Py_ssize_t = 2 * ring.room if ring.room else 16
        nodes: cython.pointer(Node) = <Node*>malloc(room * sizeof(Node))
        if nodes == NULL:
            raise MemoryError
        place: cython.Py_ssize_t
        for place in range(ring.size):
            nodes[place] = ring.nodes[(ring.first + place) & (ring.room - 1)]
        free(ring.nodes)
        ring.nodes = nodes
        ring.first = 0
        ring.room = room
        return 0

    cdef void _settle(self) noexcept:
        """Close the hole, if nothing has filled it."""
        self._hole = False
        self._size -= 1
        if self._size:
            self._sift_down(self._heap[self._size])

    cdef void _sift_up(self, Node node) noexcept:
        """Put a node into the heap, whose last place is free."""
        heap: cython.pointer(Node) = self._heap
        place: cython.Py_ssize_t = self._size - 1
        parent: cython.Py_ssize_t
        while place > 0:
            parent = (place - 1) >> 2
            if not _precedes(&node, &heap[parent]):
                break
            heap[place] = heap[parent]
            place = parent
        heap[place] = node

    cdef void _sift_down(self, Node node) noexcept:
        """Put a node into the heap, whose first place is free."""
        heap: cython.pointer(Node) = self._heap
        size: cython.Py_ssize_t = self._size
        place: cython.Py_ssize_t = 0
        child: cython.Py_ssize_t = 1
        least: cython.Py_ssize_t
        other: cython.Py_ssize_t
        while child < size:
            least = child
            for other in range(child + 1, child + 4 if child + 4 < size else size):
                if _precedes(&heap[other], &heap[least]):
                    least = other
            if not _precedes(&heap[least], &node):
                break
            heap[place] = heap[least]
            place = least
            child = 4 * place + 1
        heap[place] = node


cdef inline bint _precedes(Node* a, Node* b) noexcept:
    return a.time < b.time or (a.time == b.time and a.key < b.key)


cdef void _empty(Ring* ring) noexcept:
    cdef Py_ssize_t place
    for place in range(ring.size):
        Py_DECREF(<object>ring.nodes[(ring.first + place) & (ring.room - 1)].kept)
    free(ring.nodes)


cdef int _visit(Ring* ring, visitproc visit, void* argument) noexcept:
    cdef Py_ssize_t place
    cdef int found
    for place in range(ring.size):
        found = visit(ring.nodes[(ring.first + place) & (ring.room - 1)].kept, argument)
        if found:
            return found
    return 0


cdef int _traverse(PyObject* thing, visitproc visit, void* argument) noexcept:
    """Tell the garbage collector what an agenda holds. In a hole there is nothing any more."""
    cdef Agenda agenda = <Agenda>thing
    cdef Py_ssize_t place
    cdef int found
    for place in range(agenda._hole, agenda._size):
        found = visit(agenda._heap[place].kept, argument)
        if found:
            return found
    return _visit(&agenda._urgent, visit, argument) or _visit(&agenda._normal, visit, argument)


cdef int _clear(PyObject* thing) noexcept:
    cdef Agenda agenda = <Agenda>thing
    agenda._let_go()
    return 0


(<PyTypeObject*>Agenda).tp_traverse = <traverseproc>_traverse
(<PyTypeObject*>Agenda).tp_clear = <inquiry>_clear
