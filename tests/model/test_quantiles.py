"""Logarithm and normal quantile: right, and the same bits on every machine."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from random import Random
from statistics import NormalDist

import pytest

from worldline.model.latency import Exponential, Normal
from worldline.model.quantiles import log, normal

# What every machine and build has to give.
LOGS = {
    0.1: "-0x1.26bb1bbb55515p+1",
    0.3: "-0x1.34378fcbda721p+0",
    0.7499999: "-0x1.26962a05f3f6bp-2",
    0.76: "-0x1.1905f8f46d038p-2",
    0.984374: "-0x1.0209a85266336p-6",
    0.999999: "-0x1.0c6f82d74d230p-20",
    1.0: "0x0.0p+0",
    1.2345: "0x1.af71abe30f48fp-3",
    1.1102230246251565e-16: "-0x1.25e4f7b2737fap+5",
    10.0: "0x1.26bb1bbb55516p+1",
}
NORMALS = {
    1.1102230246251565e-16: "-0x1.06b48528cea51p+3",
    1e-12: "-0x1.c234fba57a32ap+2",
    0.01: "-0x1.29c5c4630ff0ep+1",
    0.0749: "-0x1.70b374817af50p+0",
    0.3: "-0x1.0c7e39582c5fap-1",
    0.5: "0x0.0p+0",
    0.876: "0x1.27bc8dabdb134p+0",
    0.99: "0x1.29c5c4630ff0ep+1",
    0.9999999999999999: "0x1.06b48528cea51p+3",
}


@pytest.mark.parametrize("x", LOGS)
def test_logarithms_have_these_bits(x: float) -> None:
    assert log(x).hex() == LOGS[x]


@pytest.mark.parametrize("p", NORMALS)
def test_normal_quantiles_have_these_bits(p: float) -> None:
    assert normal(p).hex() == NORMALS[p]


def test_a_logarithm_is_the_nearest_float() -> None:
    draw = Random(7)
    tried = [1.0 - draw.random() for _ in range(300)]
    tried += [1.0 + draw.uniform(-1, 1) * 2.0**-power for power in range(1, 53)]  # Where all that is left is small.
    tried += [2.0**-power * draw.uniform(1, 2) for power in range(1, 54)]
    tried += [place / 64 for place in range(48, 97)]  # The ends of the table's intervals.
    with localcontext(prec=50):
        assert [x for x in tried if log(x) != float(Decimal(x).ln())] == []


def test_a_normal_quantile_is_that_of_the_standard_library_but_for_rounding() -> None:
    draw = Random(7)
    tried = [draw.random() or 0.5 for _ in range(300)] + [2.0**-power for power in range(1, 54)]
    for p in tried:
        assert math.isclose(normal(p), NormalDist().inv_cdf(p), rel_tol=2e-15), p


def test_latencies_use_them() -> None:
    bits = 0x123456789ABCDEF0
    assert Exponential(5, 10**15).draw(bits) == 73_766_150_239_614
    assert Normal(10**15, 10**14, 1).draw(bits) == 853_243_426_868_670
