"""What of the machine and its Python a result may depend on.

Two machines that give different fingerprints compute some floats differently, in the last bit at least. Equal ones
prove nothing for other arguments, but a difference explains why two digests differ.
"""

from __future__ import annotations

import math
import platform
import struct
import sys
from collections.abc import Callable, Iterator
from functools import cache
from hashlib import blake2b

_SIZE = 8
# No special ones: simple fractions, ordinary values, large and small ones, all of which any C library accepts.
_ARGUMENTS = (0.1, 0.3, 0.7, 1.1, 2.0 / 3.0, 3.3, 10.7, 123.456, 1e-5, 7.7e5)
_FUNCTIONS: tuple[Callable[[float], float], ...] = (
    *(math.sqrt, math.sin, math.cos, math.tan, math.atan, math.asinh, math.tanh, math.exp, math.expm1),
    *(math.log, math.log1p, math.log2, math.log10, math.erf, math.gamma, math.lgamma),
)


@cache
def float_fingerprint() -> str:
    """Return a hash, in hex, over the results of a fixed list of float operations."""
    results = list(_results())
    return blake2b(struct.pack(f"<{len(results)}d", *results), digest_size=_SIZE).hexdigest()


def _results() -> Iterator[float]:
    for function in _FUNCTIONS:
        for argument in _ARGUMENTS:
            try:
                yield function(argument)
            except OverflowError:  # Such as exp of a large one: that it overflows is a result too.
                yield math.inf
    for left in _ARGUMENTS:
        for right in _ARGUMENTS:
            yield left * right - right  # Another bit if the two are fused into one operation.
            yield left / right
            yield math.atan2(left, right)
            yield math.hypot(left, right)
            yield math.fmod(left, right)
            yield math.pow(left, min(right, 30.0))
    yield sum([0.1] * 10)  # Compensated since Python 3.12, plain before.
    yield math.fsum(_ARGUMENTS)
    total = 0.0
    for argument in _ARGUMENTS:
        total += argument
    yield total


def python_name() -> str:
    return f"{platform.python_implementation()} {platform.python_version()}"


def platform_name() -> str:
    """Return system, processor and C library, which has the math functions; not the kernel, which hasn't."""
    return " ".join(part for part in (platform.system(), platform.machine(), *platform.libc_ver()) if part)


def byte_order() -> str:
    return sys.byteorder
