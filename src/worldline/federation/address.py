"""Addresses of servers: ``tcp://127.0.0.1:7000``, ``tls://cell.example:7000``, ``unix:///run/cell.sock``."""

from __future__ import annotations

from dataclasses import dataclass

from worldline.model import UsageError
from worldline.model.errors import shown

LOOPBACK = "127.0.0.1"
_FORMS = "write tcp://HOST:PORT, tls://HOST:PORT or unix:///PATH"
_PORT_MAX = 65535


@dataclass(frozen=True)
class Address:
    """Where a server listens. `kind` is tcp, tls or unix; `place` is a host or a path."""

    kind: str
    place: str
    port: int = 0

    def __str__(self) -> str:
        if self.kind == "unix":
            return f"unix://{self.place}"
        return f"{self.kind}://{f'[{self.place}]' if ':' in self.place else self.place}:{self.port}"

    @property
    def is_local(self) -> bool:
        """Whether it can be reached from this machine only."""
        if self.kind == "unix" or self.place == "localhost":
            return True
        import ipaddress  # Here, since only servers want to know.

        try:
            return ipaddress.ip_address(self.place).is_loopback
        except ValueError:
            return False


def parse_address(text: str | Address) -> Address:
    """Read an address; ``HOST:PORT`` alone is TCP."""
    if isinstance(text, Address):
        return text
    if not isinstance(text, str):
        raise UsageError(f"{shown(text)} isn't an address", advice=_FORMS)
    kind, separator, rest = text.strip().partition("://")
    if not separator:
        kind, rest = ("unix", text[5:]) if text.startswith("unix:") else ("tcp", text)
    if kind == "unix" and rest:
        return Address("unix", rest)
    host, _, port = rest.rpartition(":")
    if kind not in ("tcp", "tls") or not port.isdecimal():
        raise UsageError(f"{shown(text)} isn't an address", advice=_FORMS)
    if len(port) > len(str(_PORT_MAX)) or int(port) > _PORT_MAX:
        raise UsageError(f"{shown(text)}: the port is out of range", advice=f"ports go up to {_PORT_MAX}")
    return Address(kind, host.strip("[]") or LOOPBACK, int(port))
