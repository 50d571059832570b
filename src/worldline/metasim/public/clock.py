"""The message that says when the messages behind it were sent: LCM's own carry no time on their way. Pure.

It is an LCM message itself, of this type, so that lcm-spy and every language's generated code can read it.
"""

from __future__ import annotations

import struct

from worldline.model.errors import PeerError

TIME_DEFINITION = """\
package worldline;

struct time_t
{
    int64_t sent_ns;
    int64_t at_ns;
}
"""
_FINGERPRINT = 0x848C6A102A722C11  # What lcm-gen makes of the definition.
_LAYOUT = struct.Struct(">Qqq")


def encode_time(sent: int, at: int) -> bytes:
    """Return the message for what was sent then, and happens `at` (for a delivery, its arrival)."""
    return _LAYOUT.pack(_FINGERPRINT, sent, at)


def decode_time(data: bytes) -> tuple[int, int]:
    """Return when the messages that follow were sent, and when they happen."""
    if len(data) != _LAYOUT.size or _LAYOUT.unpack(data)[0] != _FINGERPRINT:
        raise PeerError("that isn't a message of type worldline.time_t")
    _, sent, at = _LAYOUT.unpack(data)
    return sent, at
