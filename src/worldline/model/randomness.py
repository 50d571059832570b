"""Keyed, stateless randomness.

A draw is a function of its key alone: (run seed, purpose, names, sequence number, draw number). Nothing is consumed, so
no member's draws shift when another draws more, joins later or is served in another order.

The names are hashed once into a 64-bit key (blake2b, well defined on every platform); each draw then mixes the key
with two counters by SplitMix64's finalizer, which is a handful of integer operations in any language and vectorizes
in compiled code.

Seeds below 0 mirror those from 0 on: where seed n draws u of [0, 1), seed -1 - n draws what is as far from the other
end. So two runs can be antithetic, in every room, by their seeds alone. A key has a 65th bit for it.
"""

from __future__ import annotations

import random
from datetime import timedelta
from hashlib import blake2b
from math import inf
from numbers import Real
from typing import Any, cast

from worldline.model.errors import ConfigurationError, UsageError, shown
from worldline.model.quantiles import log
from worldline.model.reading import as_time
from worldline.model.time import TimeLike

_MASK = 2**64 - 1
_GOLDEN = 0x9E3779B97F4A7C15
BITS_MAX = _MASK
MIRRORED = 2**64
"""The bit of a key that is set if its draws are mirrored."""


def checked_mean(given: float | TimeLike) -> float:
    """Take the mean of what is drawn in nanoseconds: a time, or a number, which needn't be whole."""
    mean = as_time(given, "a mean") if isinstance(given, str | timedelta) else cast("float", given)
    if not isinstance(mean, Real) or not 0 <= mean < inf:  # NumPy's numbers are real, too.
        raise ConfigurationError(f"{shown(given)} isn't a mean", advice='write nanoseconds from 0 on, or "5ms"')
    return mean


def key_of(seed: int, purpose: str, *names: str) -> int:
    """Make the key for draws of one purpose. Every part is length-prefixed: ("ab", "c") isn't ("a", "bc")."""
    hashed = blake2b(digest_size=8, person=b"worldline")
    for part in (str(seed if seed >= 0 else -1 - seed), purpose, *names):
        encoded = part.encode()
        hashed.update(len(encoded).to_bytes(4, "big"))
        hashed.update(encoded)
    key = int.from_bytes(hashed.digest(), "big")
    return key if seed >= 0 else key | MIRRORED


def draw_bits(key: int, sequence: int, number: int = 0) -> int:
    """Draw 64 bits for the given sequence number; `number` tells several draws for one message apart."""
    bits = _mix((_mix((key + sequence * _GOLDEN) & _MASK) + number * _GOLDEN) & _MASK)
    return bits if key < MIRRORED else bits ^ _MASK


def _mix(x: int) -> int:
    x = (x + _GOLDEN) & _MASK
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & _MASK
    return x ^ (x >> 31)


def unit(bits: int) -> float:
    """Turn 64 bits into a float in [0, 1), as `random.random()` does: 53 of them, exactly."""
    return float((bits >> 11) * 2.0**-53)


def open_unit(bits: int) -> float:
    """Turn 64 bits into a float strictly between 0 and 1, for quantile functions that are infinite at the ends."""
    return float(((bits >> 12) + 0.5) * 2.0**-52)


class Stream(random.Random):
    """A named stream of draws with the whole interface of `random.Random`.

    `random.Random` itself supplies the distributions; this class only replaces its source of bits, so that a stream is
    fixed by (seed, names) and its state is a single counter. Exponential draws are the same on every machine.
    """

    def __new__(cls, *_: Any, **__: Any) -> Stream:
        # An explicit seed: the default would ask the operating system for entropy.
        return super().__new__(cls, 0)  # type: ignore[call-arg]

    def __init__(self, seed: int, *names: str) -> None:
        super().__init__(0)
        self._key = key_of(seed, "stream", *names)
        self._drawn = 0

    def random(self) -> float:
        return unit(self._bits64())

    def expovariate(self, lambd: float = 1.0) -> float:
        return -log(1.0 - self.random()) / lambd

    def exponential(self, mean: float | TimeLike) -> int:
        """Draw whole nanoseconds, exponentially distributed."""
        scale = checked_mean(mean)
        return int(-log(1.0 - self.random()) * scale + 0.5)

    def happens(self, chance: float) -> bool:
        """Draw whether something happens that does so with this probability."""
        return self.random() < chance

    def getrandbits(self, k: int, /) -> int:
        if k < 0:
            raise ValueError("number of bits must be non-negative")
        words = -(-k // 64)
        drawn = b"".join(self._bits64().to_bytes(8, "big") for _ in range(words))
        return int.from_bytes(drawn, "big") >> (words * 64 - k)

    def seed(self, *_: Any, **__: Any) -> None:
        """Refuse: the key is the seed. Only `random.Random.__init__`, which insists on calling this, may."""
        if hasattr(self, "_key"):
            raise UsageError("a named stream can't be seeded", advice="use a stream of another name")

    def getstate(self) -> tuple[Any, ...]:
        return self._key, self._drawn, self.gauss_next

    def setstate(self, state: tuple[Any, ...]) -> None:
        self._key, self._drawn, self.gauss_next = state

    def __reduce__(self) -> tuple[Any, ...]:
        return _restore, (self.getstate(),)

    def _bits64(self) -> int:
        self._drawn += 1
        return draw_bits(self._key, self._drawn)


def _restore(state: tuple[Any, ...]) -> Stream:
    stream = Stream(0)
    stream.setstate(state)
    return stream
