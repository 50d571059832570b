# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, binding=False, annotation_typing=True
"""The queue of a compiled Environment: events in the order (time, priority, number), all of that in two C numbers.

It holds what nearly all models have: times that are floats, or ints below 2**53, none of which lies in the past. For
anything else, the Environment goes over to the list of tuples that SimPy has (`engine.py`).

Most events of a SimPy model happen at once, urgently or normally. Their numbers only grow, so they wait in two rings,
first in, first out. The others are in a heap with four children per node. An event in a ring is next unless the heap
has one for the same moment with a lesser key.

While an event happens that was at the top of the heap, its place is a hole, and the next event that is pushed fills
it: that saves half of the work. Objects are kept in a list, by slot, where the garbage collector can see them.
"""

cimport cython
from cpython.list cimport PyList_GET_ITEM, PyList_SET_ITEM
from cpython.ref cimport Py_DECREF, Py_INCREF
from libc.stdlib cimport free, malloc, realloc


cdef class Agenda:
    """Events that wait, and the time of the one that was taken last."""

    def __cinit__(self):
        self._cells = []

    def __dealloc__(self):
        free(self._heap)
        free(self._free)
        free(self._urgent.nodes)
        free(self._normal.nodes)

    def __len__(self):
        return self._size - self._hole + self._urgent.size + self._normal.size

    cdef bint is_empty(self) noexcept:
        return self._size - self._hole + self._urgent.size + self._normal.size == 0

    cdef int push(self, double time, unsigned long long key, object cell) except -1:
        """Add an event for later, or one for now whose priority is unusual."""
        cdef Node node
        cdef Node* heap
        node.slot = self._keep(cell)
        node.time = time
        node.key = key
        if self._hole:
            self._hole = False
            self._sift_down(node)
            return 0
        if self._size == self._room:
            self._room = 2 * self._room if self._room else 16
            heap = <Node*>realloc(self._heap, self._room * sizeof(Node))
            if heap == NULL:
                raise MemoryError
            self._heap = heap
        self._size += 1
        self._sift_up(node)
        return 0

    cdef int push_now(self, bint is_urgent, unsigned long long key, object cell) except -1:
        """Add an event for this very moment."""
        cdef Ring* ring = &self._urgent if is_urgent else &self._normal
        if ring.size == ring.room:
            self._grow_ring(ring)
        cdef Node* node = &ring.nodes[(ring.first + ring.size) & (ring.room - 1)]
        node.slot = self._keep(cell)
        node.key = key
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
                return self._taken(node.slot)
        node = self._heap[0]
        self._hole = True
        self.now = node.time
        self.key = node.key
        return self._taken(node.slot)

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

    cdef Py_ssize_t _keep(self, object cell) except -1:
        if self._free_count == 0:
            self._grow_cells()
        self._free_count -= 1
        slot: cython.Py_ssize_t = self._free[self._free_count]
        Py_INCREF(cell)
        PyList_SET_ITEM(self._cells, slot, cell)
        Py_DECREF(None)  # What an empty cell holds.
        return slot

    cdef object _taken(self, Py_ssize_t slot):
        cell = <object>(PyList_GET_ITEM(self._cells, slot))
        Py_INCREF(None)
        PyList_SET_ITEM(self._cells, slot, None)
        Py_DECREF(cell)
        self._free[self._free_count] = slot
        self._free_count += 1
        return cell

    cdef int _grow_cells(self) except -1:
        slots: cython.Py_ssize_t = 2 * self._slots if self._slots else 16
        cdef Py_ssize_t* freed = <Py_ssize_t*>realloc(self._free, slots * sizeof(Py_ssize_t))
        if freed == NULL:
            raise MemoryError
        self._free = freed
        self._cells.extend([None] * (slots - self._slots))
        slot: cython.Py_ssize_t
        for slot in range(slots - 1, self._slots - 1, -1):
            self._free[self._free_count] = slot
            self._free_count += 1
        self._slots = slots
        return 0

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
