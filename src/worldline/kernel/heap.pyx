# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, binding=False, annotation_typing=True
"""The queue of the compiled engine: events in the order of their keys. The other one's is in `queue.py`.

The two have nothing in common but what they are for: this one is C memory, of which plain Python has none, and that one
sorts lists, since in plain Python each comparison of a heap costs more than a turn of this one.

A key is (time, sent, sender's rank, sender's name if the rank is odd, order). The queue is a heap of C structs with
four children each: a node is just a time and the number of a slot, so that four of them fill one line of the
processor's cache. The rest of an event is kept by slot, in numbers as far as possible; the object that it carries, if
any, is in a list, where the garbage collector can see it.

While an event is handled, its place at the top is a hole. The first event that is pushed fills it, which saves half of
the work in the usual case that one event causes one other.
"""

cimport cython
from cpython.list cimport PyList_GET_ITEM, PyList_SET_ITEM
from cpython.ref cimport Py_DECREF, Py_INCREF
from libc.stdint cimport uintptr_t
from libc.stdlib cimport free, malloc, realloc
from libc.string cimport memcpy

from worldline.model.time import FOREVER

cdef Py_ssize_t _LINE = 64  # Bytes in a line of the cache.


cdef class HeapQueue:
    """Events that wait, of which about so many are `dead`.

    `table` has the entities that they name by number: names decide between equal odd ranks. Numbers that are `vacant`
    are given again.
    """

    def __init__(self) -> None:
        self.table: list[object] = []
        self.vacant: list[int] = []
        self._cells = []

    def __dealloc__(self) -> None:
        free(self._block)
        free(self._records)
        free(self._free)

    def __len__(self) -> int:
        return self._size

    def next_time(self) -> int:
        """Return when the next event is due; FOREVER if there is none."""
        return self._heap[0].time if self._size else FOREVER

    def purge(self, is_dead: object) -> list[int]:
        """Take out the events of entities' own that are dead, and return the numbers of their owners."""
        owners: list[int] = []
        dead: list[object] = []  # Let go at the end, because that may run code of the model's.
        total: cython.Py_ssize_t = self._size
        self._size = 0
        place: cython.Py_ssize_t
        for place in range(total):  # Those that stay move to places that have been looked at.
            node: Node = self._heap[place]
            record: cython.pointer(Record) = &self._records[node.slot]
            if record.kind == OWN and is_dead(self._cells[node.slot], record.order):
                owners.append(record.sender)
                dead.append(self._cells[node.slot])
                self._cells[node.slot] = None
                self._free[self._free_count] = node.slot
                self._free_count += 1
            else:
                self._size += 1
                self._sift_up(node)
        del dead
        return owners

    cdef int push(self, long long time, long long sent, int rank, long long order, unsigned long long sender_key,
                  int sender, int target, int topic, int kind, object cell) except -1:
        if self._free_count == 0:
            self._grow()
        self._free_count -= 1
        node: Node
        node.time = time
        node.slot = self._free[self._free_count]
        record: cython.pointer(Record) = &self._records[node.slot]
        record.sent = sent
        record.order = order
        record.sender_key = sender_key
        record.rank = rank
        record.kind = kind
        record.sender = sender
        record.target = target
        record.topic = topic
        if kind >= LADEN:
            Py_INCREF(cell)
            PyList_SET_ITEM(self._cells, node.slot, cell)
            Py_DECREF(None)  # What an empty cell holds.
        if self._hole:
            self._hole = False
            self._sift_down(node)
        else:
            self._size += 1
            self._sift_up(node)
        return 0

    cdef bint pop(self, long long end) noexcept:
        """Make the next event before `end` the one at hand: `time`, `event` and `cell`. Its place is a hole now."""
        if self._size == 0 or self._heap[0].time >= end:
            return False
        last = self.cell  # Let go at the end, because that may run code of the model's.
        slot: cython.Py_ssize_t = self._heap[0].slot
        self.time = self._heap[0].time
        self.event = self._records[slot]
        self._hole = True
        if self.event.kind >= LADEN:
            self.cell = <object>(PyList_GET_ITEM(self._cells, slot))
            Py_INCREF(None)
            PyList_SET_ITEM(self._cells, slot, None)
            Py_DECREF(self.cell)
        else:
            self.cell = None
        self._free[self._free_count] = slot
        self._free_count += 1
        del last
        return True

    cdef void settle(self) noexcept:
        """Close the hole, if nothing has filled it."""
        if self._hole:
            self._hole = False
            self._size -= 1
            if self._size:
                self._sift_down(self._heap[self._size])

    cdef int _grow(self) except -1:
        """Make room for twice as many events. Every slot has its place in all arrays, so they grow together."""
        slots: cython.Py_ssize_t = 2 * self._slots if self._slots else 64
        # Children of a node begin at places 1, 5, 9 and so on: these are the ones that must begin a line.
        block: cython.p_void = malloc((slots + 3) * sizeof(Node) + _LINE)
        if block == NULL:
            raise MemoryError
        aligned: uintptr_t = (<uintptr_t>block + 63) // 64 * 64
        heap: cython.pointer(Node) = <Node*>aligned + 3
        if self._size:
            memcpy(heap, self._heap, self._size * sizeof(Node))
        free(self._block)
        self._block = block
        self._heap = heap
        cdef Record* records = <Record*>realloc(self._records, slots * sizeof(Record))
        if records == NULL:
            raise MemoryError
        self._records = records
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

    cdef bint _precedes(self, Node* a, Node* b) noexcept:
        return a.time < b.time or (a.time == b.time and self._precedes_in_tie(a.slot, b.slot))

    cdef bint _precedes_in_tie(self, Py_ssize_t first, Py_ssize_t second) noexcept:
        a: cython.pointer(Record) = &self._records[first]
        b: cython.pointer(Record) = &self._records[second]
        if a.sent != b.sent:
            return a.sent < b.sent
        if a.rank != b.rank:
            return a.rank < b.rank
        if a.rank & 1 and a.sender != b.sender:  # A sender at another worker may have several numbers here.
            name, other = self.table[a.sender].name, self.table[b.sender].name
            if name != other:
                return name < other
        return a.order < b.order

    cdef void _sift_up(self, Node node) noexcept:
        """Put a node into the heap, whose last place is free."""
        place: cython.Py_ssize_t = self._size - 1
        while place > 0:
            parent: cython.Py_ssize_t = (place - 1) >> 2
            if not self._precedes(&node, &self._heap[parent]):
                break
            self._heap[place] = self._heap[parent]
            place = parent
        self._heap[place] = node

    cdef void _sift_down(self, Node node) noexcept:
        """Put a node into the heap, whose first place is free.

        Of four siblings the least is found by their times alone, in two rounds, and without branches, since a processor
        couldn't foresee where they go. Only if times are equal do the rest of the keys matter.
        """
        heap: cython.pointer(Node) = self._heap
        last: cython.Py_ssize_t = self._size - 4  # The last place whose three siblings to the right are all there.
        place: cython.Py_ssize_t = 0
        child: cython.Py_ssize_t = 1
        while child < self._size:
            if child <= last:
                a: cython.longlong = heap[child].time
                b: cython.longlong = heap[child + 1].time
                c: cython.longlong = heap[child + 2].time
                d: cython.longlong = heap[child + 3].time
                first: cython.longlong = b if b < a else a
                second: cython.longlong = d if d < c else c
                if (a == b) | (c == d) | (first == second):
                    child = self._least_of(child, child + 4)
                else:
                    left: cython.Py_ssize_t = b < a
                    right: cython.Py_ssize_t = 2 + (d < c)
                    child += left ^ ((left ^ right) & -<Py_ssize_t>(second < first))
            else:
                child = self._least_of(child, self._size)
            if not self._precedes(&heap[child], &node):
                break
            heap[place] = heap[child]
            place = child
            child = 4 * place + 1
        heap[place] = node

    cdef Py_ssize_t _least_of(self, Py_ssize_t child, Py_ssize_t end) noexcept:
        """Return the place of the least of some siblings."""
        least: cython.Py_ssize_t = child
        child += 1
        while child < end:
            if self._precedes(&self._heap[child], &self._heap[least]):
                least = child
            child += 1
        return least
