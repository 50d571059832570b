# The C types of `quantiles.py`.

cimport cython

cdef double _SPLITTER, _LOG_2_HIGH, _LOG_2_LOW
cdef double[49] _HIGH, _LOW


@cython.locals(
    exponent=double, place=int, center=double, part=double, whole=double, added=double, whole_low=double, s=double, split=double,
    s_high=double, s_low=double, whole_high=double, rest=double, product=double, error=double, lack=double, z=double,
    tail=double, high=double, total=double, low=double,
)
cpdef double log(double x) noexcept
