"""A header says no more than it always did, to the byte, where nothing of what came later is used."""

from __future__ import annotations

import math
import subprocess
import sys

import pytest
from msgspec.structs import replace

from worldline.model import Network, Rule, link
from worldline.model.faults import as_faults
from worldline.recording import facts as fingerprint
from worldline.recording.facts import Header, from_metadata, to_metadata

PLAIN = (
    '{"default":{"latency":{"type":"fixed","latency":5000000},"loss_at_sender":0.0,"loss_at_receiver":0.0,'
    '"duplication":0.0,"fifo":false,"bandwidth":null},"rules":[],"outages":[],"control_latency":1000000}'
)


def header(network: Network, faults: tuple[str, ...] = ()) -> Header:
    return Header(
        version="1",
        python="",
        platform="",
        byte_order="little",
        float_fingerprint="",
        federation="",
        seed=0,
        roster=("a",),
        guests=(),
        end=None,
        network=network,
        faults=faults,
    )


def test_a_network_without_corruption_or_emergency_stop_is_written_as_before() -> None:
    metadata = to_metadata(header(Network(default=link("5ms"))))
    assert metadata["network"] == PLAIN
    assert "faults" not in metadata


def test_what_came_later_is_written_and_read_where_it_is_used() -> None:
    rule = Rule(topic="image", link=link("1ms", corruption=0.5))
    network = replace(Network(default=link("5ms")), rules=(rule,), estop=7)
    found = from_metadata(Header, to_metadata(header(network, ("1s crash a 2s",))))
    assert found.network == network
    assert found.plan().faults == as_faults(["1s crash a 2s"])


# The fingerprint of a machine is the same each time, and another where floats differ.


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
    here = [fingerprint.platform_name(), fingerprint.python_name()]
    asked = "from worldline.recording import facts; print(facts.platform_name(), facts.python_name(), sep='\\n')"
    there = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True)
    assert there.stdout.splitlines() == here
    assert "Python" in here[1]
