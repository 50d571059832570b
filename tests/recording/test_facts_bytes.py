"""A header says no more than it always did, to the byte, where nothing of what came later is used."""

from __future__ import annotations

from msgspec.structs import replace

from worldline.model import Network, Rule, link
from worldline.model.faults import as_faults
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
