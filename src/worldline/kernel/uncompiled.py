"""Stands in for `cython` where that isn't installed: what it marks means nothing to plain Python."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")

compiled = False

int = int  # noqa: A001 - As an attribute of this module.
longlong = ulonglong = Py_ssize_t = bint = int
double = float
p_double = list
void = None


def _unchanged(marked: T) -> T:
    return marked


cclass = cfunc = ccall = inline = final = no_gc = _unchanged


def exceptval(*_: Any, **__: Any) -> Callable[[T], T]:
    return _unchanged


def freelist(_: int) -> Callable[[T], T]:
    return _unchanged


def declare(_: Any, value: T) -> T:
    return value
