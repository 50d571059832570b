"""The heap of the calculus against a sorted list, in whatever build runs."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from worldline.lock.heap import Heap
from worldline.model.time import FOREVER

TIMES = st.one_of(st.integers(0, 3), st.integers(0, FOREVER))


@given(st.lists(st.one_of(TIMES, st.just(None), st.just("clear"))))
def test_what_comes_out_is_the_earliest_and_of_equals_the_first_that_went_in(calls: list[int | str | None]) -> None:
    heap, expected = Heap(), list[tuple[int, int]]()
    for number, call in enumerate(calls):
        if isinstance(call, int):
            heap.push(call, number, -number)
            expected.append((call, number))
        elif call == "clear":
            heap.clear()
            expected.clear()
        elif expected:
            assert (heap.time(), heap.number()) == min(expected)
            assert heap.mark() == -heap.number()
            expected.remove(min(expected))
            heap.pop()
        assert heap.size == len(expected)
    for first in sorted(expected):
        assert (heap.time(), heap.number()) == first
        heap.pop()
    assert heap.size == 0
    with pytest.raises(IndexError):
        heap.pop()
    assert heap.size == 0
