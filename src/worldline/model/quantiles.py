"""The logarithm and the normal quantile, the same to the last bit on every machine.

C libraries don't agree on the last bit of a logarithm, nor does one with itself where the processor can multiply and
add at once. A latency that is rounded to another nanosecond is another history. So these use nothing but what IEEE 754
defines to the last bit: sums, products, quotients and roots of doubles, one at a time.

`log` is carried to about 66 bits and rounded once, so it is the nearest double in all but a few of 10,000 cases. For
0.75 <= m < 1.5 and the multiple c of 1/32 that is next to m,

    log(2**e * m) = e log 2 + log c + 2 (s + s**3 / 3 + s**5 / 5 + ...)   with s = (m - c) / (m + c)
"""

from __future__ import annotations

from math import sqrt

_FINE = 120  # Bits behind the point, for making the table.
_COARSE = 42  # Of the high parts, so that their sums are exact.
_SPLITTER = 134217729.0  # 2**27 + 1, which parts a double into two of 26 bits.


def _fine_log(numerator: int, denominator: int) -> int:
    """Return the logarithm of a fraction between 1/2 and 2, in units of 2**-120."""
    up, down = numerator - denominator, numerator + denominator
    power = (2 * up << _FINE) // down
    total, number = 0, 1
    while power not in (0, -1):
        total += power // number
        power = power * up * up // (down * down)
        number += 2
    return total


def _parted(fine: int) -> tuple[float, float]:
    """Return two floats whose sum it is; the high one has few bits."""
    high = fine >> (_FINE - _COARSE)
    return high / 2**_COARSE, (fine - (high << (_FINE - _COARSE))) / 2**_FINE


_LOG_2_HIGH, _LOG_2_LOW = _parted(_fine_log(2, 1))
_TABLE = [_parted(_fine_log(place, 32)) if place >= 24 else (0.0, 0.0) for place in range(49)]
_HIGH = [high for high, _ in _TABLE]
_LOW = [low for _, low in _TABLE]


def log(x: float) -> float:
    """Return the natural logarithm of a positive number."""
    exponent = 0.0
    while x < 0.75:
        x += x
        exponent -= 1.0
    while x >= 1.5:
        x *= 0.5
        exponent += 1.0
    place = int(x * 32.0 + 0.5)
    center = place * 0.03125
    part = x - center  # Exact, as all up to the quotient.
    whole = x + center
    added = whole - x
    whole_low = (x - (whole - added)) + (center - added)
    s = part / whole
    # What the quotient lacks is the remainder, which takes the exact product of both.
    split = s * _SPLITTER
    s_high = split - (split - s)
    s_low = s - s_high
    split = whole * _SPLITTER
    whole_high = split - (split - whole)
    rest = whole - whole_high
    product = s * whole
    error = ((s_high * whole_high - product) + s_high * rest + s_low * whole_high) + s_low * rest
    lack = ((part - product) - error - s * whole_low) / whole
    z = s * s
    tail = s * z * (2.0 / 3.0 + z * (2.0 / 5.0 + z * (2.0 / 7.0 + z * (2.0 / 9.0 + z * (2.0 / 11.0)))))
    high = exponent * _LOG_2_HIGH + _HIGH[place]
    total = high + 2.0 * s
    low = 2.0 * s - (total - high)
    return total + (low + (exponent * _LOG_2_LOW + _LOW[place] + 2.0 * lack + tail))


# Wichura's rational approximations (Algorithm AS 241, Applied Statistics 37, 1988): numerator and denominator, from
# the highest power down, for the middle, the tails and the far tails.
_MIDDLE = (
    (
        *(2509.0809287301226727, 33430.575583588128105, 67265.770927008700853, 45921.953931549871457),
        *(13731.693765509461125, 1971.5909503065514427, 133.14166789178437745, 3.387132872796366608),
    ),
    (
        *(5226.495278852854561, 28729.085735721942674, 39307.89580009271061, 21213.794301586595867),
        *(5394.1960214247511077, 687.1870074920579083, 42.313330701600911252, 1.0),
    ),
)
_TAIL = (
    (
        *(7.7454501427834140764e-4, 0.0227238449892691845833, 0.24178072517745061177, 1.27045825245236838258),
        *(3.64784832476320460504, 5.7694972214606914055, 4.6303378461565452959, 1.42343711074968357734),
    ),
    (
        *(1.05075007164441684324e-9, 5.475938084995344946e-4, 0.0151986665636164571966, 0.14810397642748007459),
        *(0.68976733498510000455, 1.6763848301838038494, 2.05319162663775882187, 1.0),
    ),
)
_FAR_TAIL = (
    (
        *(2.01033439929228813265e-7, 2.71155556874348757815e-5, 0.0012426609473880784386, 0.026532189526576123093),
        *(0.29656057182850489123, 1.7848265399172913358, 5.4637849111641143699, 6.6579046435011037772),
    ),
    (
        *(2.04426310338993978564e-15, 1.4215117583164458887e-7, 1.8463183175100546818e-5, 7.868691311456132591e-4),
        *(0.0148753612908506148525, 0.1369298809227358053, 0.59983220655588793769, 1.0),
    ),
)


def normal(p: float) -> float:
    """Return the value below which a standard normal variable lies with probability p, strictly between 0 and 1."""
    from_middle = p - 0.5
    if -0.425 <= from_middle <= 0.425:
        return from_middle * _ratio(_MIDDLE, 0.180625 - from_middle * from_middle)
    out = sqrt(-log(min(p, 1.0 - p)))
    x = _ratio(_TAIL, out - 1.6) if out <= 5.0 else _ratio(_FAR_TAIL, out - 5.0)
    return x if from_middle > 0.0 else -x


def _ratio(polynomials: tuple[tuple[float, ...], tuple[float, ...]], x: float) -> float:
    up = down = 0.0
    for above, below in zip(*polynomials, strict=True):
        up = up * x + above
        down = down * x + below
    return up / down
