"""What travels between hosts, in words: connections that are opened or reset, and what they carry."""

from __future__ import annotations

from worldline.model.errors import shortened
from worldline.programs.segments import ACK, FIN, RST, SYN, Datagram, Segment, read_datagram, read_segment
from worldline.search.properties import Happening
from worldline.search.telling import told


def described(each: Happening) -> str:
    """Say what happened as logs do, and what is in a segment or a datagram."""
    if not _travels(each):
        return told(each)
    protocol, _, receiver = each.topic.partition("/")
    where = f"to {receiver}" if each.kind == "sent" else f"from {each.sender}"
    found = _content(each)
    if found is None:
        return f"{each.kind}  {where}: it is damaged"
    if isinstance(found, Segment):
        return f"{each.kind}  {where}, {found.source} → {found.target}: {_of_segment(found)}"
    what = "no socket is there" if found.is_unreachable else _text(found.data)
    return f"{each.kind}  {where}, {protocol} {found.source} → {found.target}: {what}"


def is_idle(each: Happening) -> bool:
    """Whether it is a segment that only acknowledges or closes."""
    found = _content(each) if _travels(each) else None
    if not isinstance(found, Segment) or found.data or found.flags & RST:
        return False
    return not found.flags & SYN or bool(found.flags & ACK)


def _travels(each: Happening) -> bool:
    return each.kind in ("sent", "received") and each.topic.startswith(("tcp/", "udp/"))


def _content(each: Happening) -> Segment | Datagram | None:
    return read_segment(each.payload) if each.topic.startswith("tcp/") else read_datagram(each.payload)


def _of_segment(segment: Segment) -> str:
    if segment.flags & RST:
        return "reset"
    if segment.flags & SYN:
        return "accept" if segment.flags & ACK else "open"
    if segment.data:
        return _text(segment.data)
    return "close" if segment.flags & FIN else "acknowledge"


def _text(data: bytes) -> str:
    return shortened(repr(data)[1:])
