# cython: language_level=3, binding=False
# cython: annotation_typing=True
"""Keyed draws in a few bytes: the numbers of `model.randomness.Stream`, without its 2.5 KB.

An entity's `random` is one of these. It has the methods of `random.Random`, and each gives exactly what the stream of
the same names gives; a test compares them. The everyday ones are written out here, so that they can be compiled; the
others are borrowed from the standard library, which builds them on these.
"""

from __future__ import annotations

from math import inf
from random import Random
from typing import TYPE_CHECKING, Any

from worldline.model.errors import UsageError
from worldline.model.randomness import MIRRORED, checked_mean, key_of
from worldline.model.time import TimeLike

if TYPE_CHECKING:
    import worldline.uncompiled as cython
else:
    try:
        import cython
    except ImportError:
        import worldline.uncompiled as cython

if not cython.compiled:  # Compiled, its C function is called.
    from worldline.model.quantiles import log

# SplitMix64, as in `model.randomness`.
_GOLDEN = cython.declare(cython.ulonglong, 0x9E3779B97F4A7C15)
_FIRST = cython.declare(cython.ulonglong, 0xBF58476D1CE4E5B9)
_SECOND = cython.declare(cython.ulonglong, 0x94D049BB133111EB)
_MASK = cython.declare(cython.ulonglong, 0xFFFFFFFFFFFFFFFF)
_NEVER = cython.declare(cython.double, inf)
_UNIT = cython.declare(cython.double, 2.0**-53)
_HALF = cython.declare(cython.longlong, 2**32)
_LOW = cython.declare(cython.ulonglong, 2**32 - 1)

_WORD_MAX = 2**63

_Methods: Any = Random  # They take anything that has its `random` and `getrandbits`.
Number = float  # Under its own name, Cython would take `float` for a C double, and round whole numbers.
Mean = float | TimeLike
Flag = bool


@cython.cfunc
@cython.exceptval(check=False)
@cython.inline
def _mix(x: cython.ulonglong) -> cython.ulonglong:
    x = (x + _GOLDEN) & _MASK
    x = ((x ^ (x >> 30)) * _FIRST) & _MASK
    x = ((x ^ (x >> 27)) * _SECOND) & _MASK
    return x ^ (x >> 31)


@cython.cfunc
@cython.exceptval(check=False)
@cython.inline
def _as_word(n: Any) -> cython.longlong:
    """Return n if it fits into 63 bits, otherwise 0 or less."""
    if cython.compiled:
        overflow: cython.int = 0
        return PyLong_AsLongLongAndOverflow(n, cython.address(overflow))
    return n if n < _WORD_MAX else 0


@cython.final
@cython.cclass
class Draws:
    """A stream of draws, fixed by (seed, names); its state is one counter."""

    __slots__ = ("_drawn", "_key", "_mirror", "gauss_next")

    if not cython.compiled:
        _key: int
        _mirror: int
        _drawn: int
        gauss_next: float | None

    def __init__(self, seed: int, *names: str) -> None:
        self.setstate((key_of(seed, "stream", *names), 0, None))

    @cython.cfunc
    @cython.exceptval(check=False)
    @cython.inline
    def _bits(self) -> cython.ulonglong:
        self._drawn += 1
        return _mix(_mix((self._key + self._drawn * _GOLDEN) & _MASK)) ^ self._mirror

    def random(self) -> float:
        return (self._bits() >> 11) * _UNIT

    def getrandbits(self, k: int) -> int:
        if 0 < k <= 64:
            return self._bits() >> (64 - k)
        if k < 0:
            raise ValueError("number of bits must be non-negative")
        words = -(-k // 64)
        drawn = b"".join([int(self._bits()).to_bytes(8, "big") for _ in range(words)])
        return int.from_bytes(drawn, "big") >> (words * 64 - k)

    @cython.cfunc
    @cython.exceptval(check=False)
    def _below(self, n: cython.ulonglong) -> cython.ulonglong:
        """Draw as `random.Random` does: as many bits as n has, again until they are below n."""
        shift: cython.int = 63
        if cython.compiled:
            while n >> (64 - shift):
                shift -= 1
        else:
            shift = 64 - n.bit_length()
        drawn: cython.ulonglong = self._bits() >> shift
        while drawn >= n:
            drawn = self._bits() >> shift
        return drawn

    def _randbelow(self, n: int) -> int:
        word: cython.longlong = _as_word(n)
        return self._below(word) if word > 0 else Random._randbelow_with_getrandbits(self, n)  # type: ignore[attr-defined]

    def randrange(self, start: int, stop: int | None = None, step: int = 1) -> int:
        word: cython.longlong
        if stop is None and step == 1 and type(start) is int:
            word = _as_word(start)
            if word > 0:
                return self._below(word)
        return Random.randrange(self, start, stop, step)  # type: ignore[arg-type]

    def uniform(self, a: Number, b: Number) -> float:
        return a + (b - a) * ((self._bits() >> 11) * _UNIT)

    def expovariate(self, lambd: float = 1.0) -> float:
        drawn: cython.double = (self._bits() >> 11) * _UNIT
        return -log(1.0 - drawn) / lambd

    def exponential(self, mean: Mean) -> int:
        """Draw whole nanoseconds, exponentially distributed: `round(expovariate(1 / mean))` without its detours."""
        if type(mean) is not int and type(mean) is not float:
            mean = checked_mean(mean)
        scale: cython.double = mean
        if not 0.0 <= scale < _NEVER:
            checked_mean(mean)  # It says what is wrong.
        drawn: cython.double = (self._bits() >> 11) * _UNIT
        delay: cython.double = -log(1.0 - drawn) * mean + 0.5
        if cython.compiled and -1e18 < delay < 1e18:
            return cython.cast(cython.longlong, delay)
        return int(delay)

    def happens(self, chance: Number) -> Flag:
        """Draw whether something happens that does so with this probability."""
        return self.random() < chance

    def spread(self, least: int, number: int) -> int:
        """Draw one of so many whole numbers from `least` on: what `model.latency.Uniform` makes of 64 bits."""
        count: cython.ulonglong
        bits: cython.ulonglong = self._bits()
        if cython.compiled and 0 < _as_word(number) < _HALF:
            count = number
            return least + (((bits >> 32) * count + ((bits & _LOW) * count >> 32)) >> 32)
        return least + (int(bits) * number >> 64)

    randint = _Methods.randint
    choice = _Methods.choice
    choices = _Methods.choices
    shuffle = _Methods.shuffle
    sample = _Methods.sample
    randbytes = _Methods.randbytes
    gauss = _Methods.gauss
    normalvariate = _Methods.normalvariate
    lognormvariate = _Methods.lognormvariate
    triangular = _Methods.triangular
    gammavariate = _Methods.gammavariate
    betavariate = _Methods.betavariate
    paretovariate = _Methods.paretovariate
    weibullvariate = _Methods.weibullvariate
    vonmisesvariate = _Methods.vonmisesvariate

    if hasattr(Random, "binomialvariate"):  # Since Python 3.12.
        binomialvariate = _Methods.binomialvariate

    def getstate(self) -> tuple[object, ...]:
        return int(self._key) | (MIRRORED if self._mirror else 0), int(self._drawn), self.gauss_next

    def setstate(self, state: tuple[Any, ...]) -> None:
        key, self._drawn, self.gauss_next = state
        self._key = key % MIRRORED
        self._mirror = _MASK if key >= MIRRORED else 0

    def seed(self, *_: object) -> None:
        raise UsageError("an entity's draws can't be seeded", advice="the simulation's seed and the name are the seed")

    def __reduce__(self) -> tuple[object, ...]:
        return _restore, (self.getstate(),)


def _restore(state: tuple[object, ...]) -> Draws:
    draws = Draws(0)
    draws.setstate(state)
    return draws
