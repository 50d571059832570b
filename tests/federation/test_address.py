"""Addresses: how they are written, read, and which of them only this machine can reach."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from worldline.federation.address import Address, parse_address
from worldline.model import UsageError


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("tcp://127.0.0.1:7000", Address("tcp", "127.0.0.1", 7000)),
        ("tls://cell.example:7000", Address("tls", "cell.example", 7000)),
        ("unix:///run/cell.sock", Address("unix", "/run/cell.sock")),
        ("unix:/run/cell.sock", Address("unix", "/run/cell.sock")),
        ("unix://cell.sock", Address("unix", "cell.sock")),
        ("unix:///run/a b:c.sock", Address("unix", "/run/a b:c.sock")),
        ("localhost:7000", Address("tcp", "localhost", 7000)),
        (":7000", Address("tcp", "127.0.0.1", 7000)),
        ("tcp://:0", Address("tcp", "127.0.0.1", 0)),
        ("tcp://[::1]:7000", Address("tcp", "::1", 7000)),
        ("[::1]:7000", Address("tcp", "::1", 7000)),
        ("  tcp://host:65535 ", Address("tcp", "host", 65535)),
    ],
)
def test_an_address_is_read(text: str, address: Address) -> None:
    assert parse_address(text) == address
    assert parse_address(address) is address
    assert parse_address(str(address)) == address


@pytest.mark.parametrize(
    "text",
    [
        "",
        "host",
        "tcp://host",
        "tcp://host:",
        "tcp://host:http",
        "tcp://host:-1",
        "tcp://host:7000/path",
        "tcp://host:7 000",
        "udp://host:7000",
        "http://host:7000",
        "://host:7000",
        "unix://",
        "unix:",
        None,
        7000,
        b"tcp://host:7000",
    ],
)
def test_what_isnt_an_address_is_refused_with_the_forms_that_are(text: object) -> None:
    with pytest.raises(
        UsageError, match=r"isn't an address \(write tcp://HOST:PORT, tls://HOST:PORT or unix:///PATH\)"
    ):
        parse_address(text)  # type: ignore[arg-type]


@given(st.text(max_size=30))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        address = parse_address(text)
    except UsageError:
        return
    assert address.kind in ("tcp", "tls", "unix")


@pytest.mark.parametrize(
    ("text", "local"),
    [
        ("unix:///run/cell.sock", True),
        ("tcp://127.0.0.1:1", True),
        ("tcp://127.8.9.10:1", True),
        ("tcp://localhost:1", True),
        ("tls://[::1]:1", True),
        ("tcp://:1", True),
        ("tcp://0.0.0.0:1", False),
        ("tcp://[::]:1", False),
        ("tcp://192.168.1.7:1", False),
        ("tls://cell.example:1", False),
        ("tcp://localhost.example:1", False),
        ("tcp://127.0.0.1.example:1", False),
    ],
)
def test_only_loopback_and_sockets_in_the_file_system_are_local(text: str, local: bool) -> None:
    assert parse_address(text).is_local is local


def test_an_address_is_written_as_it_is_read() -> None:
    assert str(Address("tcp", "::1", 7000)) == "tcp://[::1]:7000"
    assert str(Address("tls", "cell.example", 7000)) == "tls://cell.example:7000"
    assert str(Address("unix", "/run/cell.sock")) == "unix:///run/cell.sock"


@pytest.mark.parametrize("port", ["65536", "9" * 5_000])
def test_a_port_that_is_too_large_is_said_to_be(port: str) -> None:
    with pytest.raises(UsageError, match=r"the port is out of range \(ports go up to 65535\)"):
        parse_address(f"tcp://host:{port}")
