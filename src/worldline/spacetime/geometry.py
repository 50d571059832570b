# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, binding=False, cdivision=True
# cython: annotation_typing=True
"""Minkowski space: vectors, trajectories, and where a trajectory meets a field.

This is ordinary Python, and in Cython's pure-Python mode also C, as the kernel's engine is; `geometry.pxd` has the C
types. Both builds give the same bits: nothing but sums, products, quotients and square roots is used, which IEEE 754
rounds in one way.

Where a trajectory meets a light cone is the root of a quadratic whose coefficients cancel: an agent that has been on
its way for long is far from where it set out, and so is the lambda that it meets. So coordinates are subtracted
without any error, and inner products are summed in twice the precision (T. Ogita, S. M. Rump and S. Oishi, "Accurate
sum and dot product", 2005): a value is a pair (high, low), whose sum counts. What is left is the rounding of the
result, and cancellation beyond 30 digits.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from math import isfinite
from typing import TYPE_CHECKING, Any, SupportsFloat

from worldline.model.errors import ConfigurationError, UsageError, shown

if TYPE_CHECKING:
    import worldline.uncompiled as cython
else:
    try:
        import cython
    except ImportError:
        import worldline.uncompiled as cython

if not cython.compiled:  # Compiled, it is C's.
    from math import sqrt

COORDINATE_MAX = 1e100  # Squares of these, and their errors, are numbers still.
GAMMA_MAX = 1e6  # Beyond that, a float can hardly tell an agent from light.
_UNIT_WITHIN = 1e-9
_SPLITTER = 134217729.0  # 2**27 + 1: splits a float into two halves (Dekker).


# -- Floats without error


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _sum_error(a: cython.double, b: cython.double, total: cython.double) -> cython.double:
    """Return what `total`, which is a + b rounded, lacks."""
    part: cython.double = total - a
    return (a - (total - part)) + (b - part)


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _product_error(a: cython.double, b: cython.double, product: cython.double) -> cython.double:
    """Return what `product`, which is a · b rounded, lacks."""
    error: cython.double
    if cython.compiled:
        error = fma(a, b, -product)  # The same number: both ways are exact.
    else:
        c = _SPLITTER * a
        a_high = c - (c - a)
        a_low = a - a_high
        c = _SPLITTER * b
        b_high = c - (c - b)
        b_low = b - b_high
        error = ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low
    return error


# -- Vectors


@cython.final
@cython.freelist(256)
@cython.cclass
class Vector:
    """A point or vector of Minkowski space: lab time first, then the coordinates of space. It never changes."""

    __slots__ = ("n", "x")

    if not cython.compiled:
        n: int
        x: list[float]

    def __init__(self, coordinates: Iterable[SupportsFloat]) -> None:
        numbers = [float(each) for each in coordinates]
        if not numbers:
            raise UsageError("a vector has at least one coordinate", advice="the first is lab time")
        for each in numbers:
            if not isfinite(each) or abs(each) > COORDINATE_MAX:
                raise UsageError(f"{shown(each)} can't be a coordinate", advice="use numbers up to 1e100")
        i: cython.Py_ssize_t
        self.n = len(numbers)
        if cython.compiled:
            if self.n <= FEW:
                self.x = self.few
            else:
                self.x = new_doubles(self.n)
            for i in range(self.n):
                self.x[i] = numbers[i]
        else:
            self.x = numbers

    if cython.compiled:

        def __dealloc__(self) -> None:
            if self.n > FEW:
                PyMem_Free(self.x)

    def __len__(self) -> int:
        return self.n

    def __getitem__(self, place: Any) -> Any:
        """Return a coordinate; of a slice, such as ``[1:]``, which is space alone, a tuple."""
        i: cython.Py_ssize_t
        if isinstance(place, slice):
            return self.coordinates()[place]
        i = place
        if not -self.n <= i < self.n:
            raise IndexError(f"there are {self.n} coordinates")
        return self.x[i if i >= 0 else i + self.n]

    def coordinates(self) -> tuple[float, ...]:
        place: cython.Py_ssize_t
        found = []
        for place in range(self.n):
            found.append(self.x[place])  # noqa: PERF401 - A comprehension has variables of its own, that aren't C's.
        return tuple(found)

    def __iter__(self) -> Iterator[float]:
        return iter(self.coordinates())

    @property
    def t(self) -> float:
        """Return the lab time."""
        return self.x[0]

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Vector | tuple):
            return self.coordinates() == tuple(other)
        return NotImplemented

    def __hash__(self) -> int:
        return hash(self.coordinates())

    def __add__(self, other: Any) -> Vector:
        return Vector([a + b for a, b in _paired(self, other)])

    def __sub__(self, other: Any) -> Vector:
        return Vector([a - b for a, b in _paired(self, other)])

    def __mul__(self, factor: float) -> Vector:
        return Vector([each * factor for each in self.coordinates()])

    def __rmul__(self, factor: float) -> Vector:
        return self * factor

    def __neg__(self) -> Vector:
        return Vector([-each for each in self.coordinates()])

    def dot(self, other: Any) -> float:
        """Return the inner product x₁y₁ − x₂y₂ − x₃y₃ …, rounded once."""
        pair = product(self, _as_vector(other, self.n))
        return pair[0] + pair[1]

    def __repr__(self) -> str:
        return f"({', '.join([f'{each:.12g}' for each in self.coordinates()])}{',' if self.n == 1 else ''})"

    def __reduce__(self) -> tuple[object, ...]:
        return Vector, (self.coordinates(),)


def _as_vector(given: Any, n: int) -> Vector:
    made: Vector = given if isinstance(given, Vector) else Vector(given)
    if made.n != n:
        raise UsageError(
            f"{shown(given)} has {made.n} coordinate{'' if made.n == 1 else 's'}",
            advice=f"this is a space of {n} dimension{'' if n == 1 else 's'}",
        )
    return made


def as_vector(given: Any, n: int, what: str) -> Vector:
    """Take a vector, or anything that lists its coordinates; refuse another number of them."""
    try:
        return _as_vector(given, n)
    except UsageError as error:
        raise UsageError(f"{what}: {error.problem}", advice=error.advice) from None
    except (TypeError, ValueError):
        raise UsageError(f"{what}: {shown(given)} isn't a vector", advice=f"give {n} numbers, lab time first") from None


def _paired(a: Vector, b: Any) -> Iterable[tuple[float, float]]:
    return zip(a.coordinates(), _as_vector(b, a.n).coordinates(), strict=True)


def product(a: Vector, b: Vector) -> tuple[float, float]:
    """Return the inner product of two vectors as a pair (high, low)."""
    high: cython.double = 0.0
    low: cython.double = 0.0
    i: cython.Py_ssize_t
    for i in range(a.n):
        x: cython.double = a.x[i] if i == 0 else -a.x[i]
        term: cython.double = x * b.x[i]
        total: cython.double = high + term
        low += _sum_error(high, term, total) + _product_error(x, b.x[i], term)
        high = total
    total = high + low
    return total, low - (total - high)


@cython.cfunc
def new_doubles(n: cython.Py_ssize_t) -> cython.p_double:
    """Return room for so many floats; the caller frees it."""
    made: cython.p_double
    if cython.compiled:
        made = cython.cast(cython.p_double, PyMem_Malloc(n * cython.sizeof(cython.double)))
        if made == cython.NULL:
            raise MemoryError
    else:
        made = [0.0] * n
    return made


@cython.cfunc
def blank_vector(n: cython.Py_ssize_t) -> Vector:
    """Return a vector whose coordinates the caller fills in, before any other code sees it."""
    made: Vector = Vector.__new__(Vector)
    made.n = n
    if cython.compiled:
        if n <= FEW:
            made.x = made.few
        else:
            made.x = new_doubles(n)
    else:
        made.x = [0.0] * n
    return made


@cython.cfunc
@cython.exceptval(check=False)
def is_same(a: Vector, b: Vector) -> cython.bint:
    i: cython.Py_ssize_t
    for i in range(a.n):  # noqa: SIM110 - As a generator it wouldn't be C.
        if a.x[i] != b.x[i]:
            return False
    return True


# -- Fields


@cython.final
@cython.cclass
class LambdaField:
    """Where a lambda that is emitted at 0 can be absorbed: (X − R)·(X − R) = c, on the future side.

    With R = 0 and c = 0 it's the light cone. `R` is how long a lambda takes even to an agent right beside, as a vector;
    √c is the same in the receiver's own time. Any of them lets agents meet.
    """

    __slots__ = ("_given", "c", "r")

    def __init__(self, R: Any = None, c: Any = 0.0) -> None:  # noqa: N803 - The formula's own names.
        self._given: Vector | None = (
            None if R is None else R if isinstance(R, Vector) else as_vector(R, _length(R, "R"), "R")
        )
        if isinstance(c, bool) or not isinstance(c, int | float) or not 0.0 <= c <= COORDINATE_MAX:
            raise ConfigurationError(f"c is {shown(c)}", advice="use a number that isn't negative")
        self.c = c
        self.r: Vector | None = self._given
        if self.r is not None:
            if self.r[0] < 0.0:
                raise ConfigurationError(
                    f"R is {self.r}, and its lab component is negative: lambdas would arrive before they are sent",
                    advice="use R ≥ 0",
                )
            high, low = product(self.r, self.r)
            if high + low < 0.0:
                raise ConfigurationError(
                    f"R is {self.r}, which isn't in the future of 0: lambdas would be faster than light",
                    advice="make its lab component at least as large as the rest",
                )

    @property
    def R(self) -> Vector | None:  # noqa: N802 - The formula's own name.
        return self._given

    @property
    def lookahead(self) -> float:
        """Return how long a lambda takes at least to an agent at rest at the same place."""
        if self.r is None:
            return sqrt(self.c)
        rest: cython.double = 0.0
        for each in self.r.coordinates()[1:]:
            rest += each * each
        return self.r.x[0] + sqrt(rest + self.c)

    def of(self, n: int) -> LambdaField:
        """Return this field in a space of n dimensions, where it has an R."""
        if self._given is not None and len(self._given) != n:
            raise ConfigurationError(
                f"R is {self._given}, and has {len(self._given)} coordinates", advice=f"this space has {n} dimensions"
            )
        made: LambdaField = LambdaField(self._given, self.c)
        made.r = Vector([0.0] * n) if self._given is None else self._given
        return made

    def __repr__(self) -> str:
        return f"LambdaField(R={self._given}, c={self.c!r})"

    def __reduce__(self) -> tuple[object, ...]:
        return LambdaField, (self._given, self.c)


def _length(given: Any, what: str) -> int:
    try:
        return len(given)
    except TypeError:
        raise ConfigurationError(f"{what} is {shown(given)}", advice="it's a vector: (1, 0, 0, 0)") from None


# -- Trajectories


@cython.final
@cython.cclass
class Trajectory:
    """A straight line through spacetime: `start` + `velocity` · τ, where τ is the local time since the start."""

    __slots__ = ("_square_high", "_square_low", "start", "stretch", "velocity")

    def __init__(self, start: Vector, velocity: Vector) -> None:
        self.start = start
        self.velocity = velocity
        self._square_high, self._square_low = product(velocity, velocity)
        self.stretch = velocity.x[0] + sqrt(max(0.0, velocity.x[0] * velocity.x[0] - 1.0))

    def __repr__(self) -> str:
        return f"<Trajectory from {self.start} with {self.velocity}>"

    def at(self, tau: float) -> Vector:
        """Return the point after so much local time."""
        return self.point(tau)

    def meets(self, emitted: Any, field: LambdaField) -> float:
        """Return the local time at which this meets the field of a lambda that was emitted there.

        It is negative if that was before the start.
        """
        here: LambdaField = field if field.r is not None else field.of(self.start.n)
        point: Vector
        if isinstance(emitted, Vector):
            point = emitted
            if point.n == self.start.n:
                return self.meeting(point.x, here)
        point = as_vector(emitted, self.start.n, "where it was emitted")
        return self.meeting(point.x, here)

    def crosses(self, normal: Vector, offset: float) -> float:
        """Return the local time at which normal · X + offset falls to 0; infinite if it rises or stays."""
        speed = product(normal, self.velocity)
        if speed[0] >= 0.0:
            return float("inf")
        height = product(normal, self.start)
        total: cython.double = height[0] + offset
        low: cython.double = _sum_error(height[0], offset, total) + height[1]
        tau: cython.double = _quotient(-total, -low, speed[0], speed[1])
        return tau if -COORDINATE_MAX <= tau <= COORDINATE_MAX else float("inf")  # So far away that it never comes.

    @cython.cfunc
    def point(self, tau: cython.double) -> Vector:
        made: Vector = blank_vector(self.start.n)
        self.put(tau, made.x)
        return made

    @cython.cfunc
    @cython.exceptval(check=False)
    def put(self, tau: cython.double, x: cython.p_double) -> cython.void:
        """Write the point after so much local time into `x`."""
        i: cython.Py_ssize_t
        for i in range(self.start.n):
            start: cython.double = self.start.x[i]
            if self.velocity.x[i] == 0.0:
                x[i] = start
                continue
            way: cython.double = self.velocity.x[i] * tau
            total: cython.double = start + way
            # Rounded once, however far away the start is.
            error: cython.double = _sum_error(start, way, total)
            more: cython.double = _product_error(self.velocity.x[i], tau, way)
            low: cython.double = error + more
            rest: cython.double = _sum_error(error, more, low)
            x[i] = total + low
            x[i] += _sum_error(total, low, x[i]) + rest

    @cython.cfunc
    @cython.exceptval(check=False)
    def meeting(self, a: cython.p_double, field: LambdaField) -> cython.double:
        """Return the larger root τ of (D + Vτ)·(D + Vτ) = c, where D = start − a − R."""
        x: cython.p_double = self.start.x
        v: cython.p_double = self.velocity.x
        r: cython.p_double = field.r.x  # type: ignore[union-attr] # The field is that of a space, `LambdaField.of`.
        b_high: cython.double = 0.0  # V·D
        b_low: cython.double = 0.0
        q_high: cython.double = -field.c  # D·D − c
        q_low: cython.double = 0.0
        i: cython.Py_ssize_t
        for i in range(self.start.n):
            d: cython.double = x[i] - a[i]
            e: cython.double = _sum_error(x[i], -a[i], d)
            if r[i] != 0.0:
                term: cython.double = d - r[i]
                e += _sum_error(d, -r[i], term)
                d = term + e
                e -= d - term
            term = d * d
            low: cython.double = _product_error(d, d, term) + (2.0 * d + e) * e
            if i:
                term = -term
                low = -low
            total: cython.double = q_high + term
            q_low += _sum_error(q_high, term, total) + low
            q_high = total
            if v[i] != 0.0:
                speed: cython.double = -v[i] if i else v[i]
                term = speed * d
                low = _product_error(speed, d, term) + speed * e
                total = b_high + term
                b_low += _sum_error(b_high, term, total) + low
                b_high = total
        total = b_high + b_low
        b_low -= total - b_high
        b_high = total
        total = q_high + q_low
        q_low -= total - q_high
        q_high = total
        # The discriminant (V·D)² − V·V (D·D − c): what of D is across V, and c.
        square: cython.double = b_high * b_high
        rest: cython.double = self._square_high * q_high
        disc: cython.double = square - rest
        disc_low: cython.double = _sum_error(square, -rest, disc) + (
            (_product_error(b_high, b_high, square) + 2.0 * b_high * b_low)
            - (
                _product_error(self._square_high, q_high, rest)
                + (self._square_high * q_low + self._square_low * q_high)
            )
        )
        root: cython.double = 0.0
        root_low: cython.double = 0.0
        if disc + disc_low > 0.0:  # Otherwise only rounding has made it negative.
            root = sqrt(disc + disc_low)
            square = root * root
            root_low = (((disc - square) - _product_error(root, root, square)) + disc_low) / (2.0 * root)
        # Of the two ways to write the root, the one whose terms have the same sign.
        if b_high <= 0.0:
            total = root - b_high
            low = _sum_error(root, -b_high, total) + (root_low - b_low)
            return _quotient(total, low, self._square_high, self._square_low)
        total = root + b_high
        low = _sum_error(root, b_high, total) + (root_low + b_low)
        return _quotient(-q_high, -q_low, total, low)


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _quotient(high: cython.double, low: cython.double, by: cython.double, by_low: cython.double) -> cython.double:
    """Return (high + low) / (by + by_low), rounded about once. It's never asked for a division by 0."""
    result: cython.double = (high + low) / by
    back: cython.double = result * by
    return result + (((high - back) - _product_error(result, by, back)) + (low - result * by_low)) / by


# -- Velocities


def as_velocity(given: Any, n: int, what: str = "a velocity") -> Vector:
    """Take a 4-velocity, V·V = 1 and V₁ > 0; return it with V₁ worked out from the others, as exactly as can be."""
    velocity = as_vector(given, n, what)
    high, low = product(velocity, velocity)
    if velocity[0] <= 0.0:
        raise UsageError(f"{what}: {velocity} doesn't lead into the future", advice="its lab component is positive")
    if velocity[0] > GAMMA_MAX:
        raise _too_fast(f"{what}: {velocity}")
    size: cython.double = velocity[0] * velocity[0]
    if high + low <= 0.0 or abs(high + low - 1.0) > _UNIT_WITHIN * size:
        how = "is as fast as light, or faster" if high + low <= 0.0 else f"isn't of unit length: V·V = {high + low:.9g}"
        raise UsageError(f"{what}: {velocity} {how}", advice="Minkowski.velocity() makes one from an ordinary velocity")
    return _from_rest(velocity.coordinates()[1:])


def from_speeds(speeds: Sequence[float]) -> Vector:
    """Return the 4-velocity of an ordinary velocity, whose unit is the speed of light."""
    square: cython.double = 0.0
    for each in speeds:
        square += each * each
    if not square < 1.0:
        shown_as = ", ".join([f"{each:.12g}" for each in speeds])
        raise UsageError(
            f"({shown_as}) is {'as fast as' if square == 1.0 else 'faster than'} light", advice="use a speed below 1"
        )
    gamma: cython.double = 1.0 / sqrt(1.0 - square)
    if gamma > GAMMA_MAX:
        raise _too_fast(f"a speed of {sqrt(square)!r}")
    return _from_rest([gamma * each for each in speeds])


def _from_rest(spatial: Sequence[float]) -> Vector:
    square: cython.double = 1.0
    for each in spatial:
        square += each * each
    return Vector([sqrt(square), *spatial])


def _too_fast(what: str) -> UsageError:
    return UsageError(f"{what} can hardly be told from the speed of light", advice=f"stay below γ = {GAMMA_MAX:,.0f}")
