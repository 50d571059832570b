"""What travels between hosts, in words: connections that are opened or reset, and what they carry."""

from __future__ import annotations

from worldline.model.errors import shortened
from worldline.programs.segments import ACK, RST, SYN, Segment, read_datagram, read_segment
from worldline.search.properties import Happening
from worldline.search.telling import told


def described(each: Happening) -> str:
    """Say what happened as logs do, and what is in a segment or a datagram; nothing of what only acknowledges."""
    protocol, _, receiver = each.topic.partition("/")
    if each.kind not in ("sent", "received") or protocol not in ("tcp", "udp"):
        return told(each)
    where = f"to {receiver}" if each.kind == "sent" else f"from {each.sender}"
    found = read_segment(each.payload) if protocol == "tcp" else read_datagram(each.payload)
    if found is None:
        return f"{each.kind}  {protocol} {where}: it is damaged"
    if isinstance(found, Segment):
        what = _of_segment(found)
        return f"{each.kind}  {where}, {found.source} → {found.target}: {what}" if what else ""
    what = "no socket is there" if found.is_unreachable else _text(found.data)
    return f"{each.kind}  {where}, udp {found.source} → {found.target}: {what}"


def _of_segment(segment: Segment) -> str:
    if segment.flags & RST:
        return "reset"
    if segment.flags & SYN:
        return "" if segment.flags & ACK else "open"
    return _text(segment.data) if segment.data else ""


def _text(data: bytes) -> str:
    return shortened(repr(data)[1:])
