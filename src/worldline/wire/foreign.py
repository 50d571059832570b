"""Recognizes what isn't our protocol by its first bytes, so that it can be called by its name."""

from __future__ import annotations

import re

from worldline.model.errors import PeerError

_RECORDS = range(0x14, 0x18)  # TLS: kinds of records, each followed by a version 3.x.
_REQUEST = re.compile(rb"[A-Z]{3,16} [!-~]+ HTTP/")
_ANSWER = re.compile(rb"HTTP/|\s*<(!doctype )?html", re.IGNORECASE)
_TEXT = re.compile(rb"[ -~\t]{4,}")
_SHOWN_MAX = 60


def foreign(data: bytes) -> PeerError | None:
    """Return what the beginning of a stream is, if it is something that people connect to by mistake."""
    if data[:1] and data[0] in _RECORDS and data[1:2] == b"\x03":
        return PeerError("that is TLS, and this connection isn't encrypted", advice="tls:// goes with tls://")
    if _ANSWER.match(data):
        return PeerError("that is an HTTP server, not Worldline's", advice="is the port right?")
    if _REQUEST.match(data):
        return PeerError("that is an HTTP request, and this is a Worldline server", advice="is the port right?")
    if text := _TEXT.match(data):
        said = text[0][:_SHOWN_MAX].decode().strip()
        return PeerError(f"that isn't Worldline: it says {said!r}", advice="is the port right?")
    return None
