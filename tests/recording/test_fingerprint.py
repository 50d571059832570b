"""The fingerprint of a machine is the same each time, and another where floats differ."""

from __future__ import annotations

import math

import pytest

from worldline.recording import facts as fingerprint


def test_one_bit_in_one_function_changes_it(monkeypatch: pytest.MonkeyPatch) -> None:
    first = fingerprint.float_fingerprint()
    other = (*fingerprint._FUNCTIONS[:-1], lambda x: math.nextafter(math.lgamma(x), math.inf))
    monkeypatch.setattr(fingerprint, "_FUNCTIONS", other)
    fingerprint.float_fingerprint.cache_clear()
    try:
        assert fingerprint.float_fingerprint() != first
    finally:
        fingerprint.float_fingerprint.cache_clear()


def test_the_names_of_the_machine_say_nothing_that_changes_from_run_to_run() -> None:
    assert fingerprint.platform_name() == fingerprint.platform_name()
    assert "Python" in fingerprint.python_name()
