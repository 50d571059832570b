"""Stands in for `cython` where that isn't installed, and for mypy: what it marks means nothing to plain Python."""

from __future__ import annotations

from builtins import bool as bint
from builtins import float as double
from builtins import int as Py_ssize_t  # noqa: N812 - As Cython calls it.
from builtins import int as int  # noqa: A004 - As an attribute of this module.
from builtins import int as longlong
from builtins import int as ulonglong
from collections.abc import Callable
from typing import Any, TypeAlias, TypeVar

T = TypeVar("T")

compiled = False

p_double = list[double]
void: TypeAlias = None


def _unchanged(marked: T) -> T:
    return marked


cclass = cfunc = ccall = inline = final = no_gc = _unchanged


def exceptval(*_: Any, **__: Any) -> Callable[[T], T]:
    return _unchanged


def freelist(_: int) -> Callable[[T], T]:
    return _unchanged


def declare(_: Any, value: T) -> T:
    return value


def cast(_: Any, value: Any) -> Any:
    return value


__all__ = ["Py_ssize_t", "bint", "double", "int", "longlong", "ulonglong"]
