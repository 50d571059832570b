"""A heap of times, each with two numbers: what `bounds` looks at most.

Of equal times, the first that was put in is the first to be taken out. Compiled, a heap is C memory without a Python
object in it; in plain Python it is a list of tuples.
"""

from __future__ import annotations

from heapq import heappop, heappush
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import worldline.uncompiled as cython
else:
    try:
        import cython
    except ImportError:
        import worldline.uncompiled as cython


class Heap:
    """`time`, `number` and `mark` are of its first entry; an empty heap mustn't be asked for them."""

    if not cython.compiled:
        __slots__ = ("_entries", "_serial", "size")

        def __init__(self) -> None:
            self.size = 0
            self._serial = 0
            self._entries: list[tuple[int, int, int, int]] = []

        def time(self) -> int:
            return self._entries[0][0]

        def number(self) -> int:
            return self._entries[0][2]

        def mark(self) -> int:
            return self._entries[0][3]

        def push(self, time: int, number: int, mark: int = 0) -> None:
            self.size += 1
            self._serial += 1
            heappush(self._entries, (time, self._serial, number, mark))

        def pop(self) -> None:
            """Take out the first entry."""
            heappop(self._entries)
            self.size -= 1

        def clear(self) -> None:
            self.size = 0
            self._entries.clear()

    else:

        def __dealloc__(self):
            free(self._entries)  # noqa: F821 - imported by `heap.pxd`.

        def time(self):
            return self._entries[0].time

        def number(self):
            return self._entries[0].number

        def mark(self):
            return self._entries[0].mark

        def push(self, time, number, mark=0):
            if self.size == self._room:
                self._grow()
            self._serial += 1
            entries = self._entries
            place = self.size
            while place:
                parent = (place - 1) >> 1
                if entries[parent].time <= time:  # Of equal times, the other was there before.
                    break
                entries[place] = entries[parent]
                place = parent
            entries[place].time = time
            entries[place].serial = self._serial
            entries[place].number = number
            entries[place].mark = mark
            self.size += 1
            return 0

        def pop(self):
            """Let the last entry take the place of the first, and bring it down to where it belongs."""
            if not self.size:
                raise IndexError("the heap is empty")
            self.size -= 1
            size, entries = self.size, self._entries
            last = entries[size]
            place, child = 0, 1
            while child < size:
                if child + 1 < size and _is_before(entries[child + 1], entries[child]):
                    child += 1
                if not _is_before(entries[child], last):
                    break
                entries[place] = entries[child]
                place = child
                child = 2 * place + 1
            entries[place] = last
            return 0

        def clear(self):
            self.size = 0

        def _grow(self):
            room = 2 * self._room if self._room else 4
            entries = cython.cast("Entry *", realloc(self._entries, room * cython.sizeof(Entry)))  # noqa: F821
            if entries == cython.NULL:
                raise MemoryError
            self._entries, self._room = entries, room
            return 0


if cython.compiled:

    def _is_before(first, second):
        return first.time < second.time or (first.time == second.time and first.serial < second.serial)
