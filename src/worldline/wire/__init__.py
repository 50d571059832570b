"""The wire: frames, what stands in them, and how a connection begins. Bytes in, typed values out; no sockets here."""

from worldline.wire.codec import decode_answer, decode_events, encode_answer, encode_events
from worldline.wire.frames import FRAME_MAX, HEARTBEAT, Frames, frame
from worldline.wire.handshake import Challenge, Fail, Hello, Refused, Welcome

__all__ = [
    "FRAME_MAX",
    "HEARTBEAT",
    "Challenge",
    "Fail",
    "Frames",
    "Hello",
    "Refused",
    "Welcome",
    "decode_answer",
    "decode_events",
    "encode_answer",
    "encode_events",
    "frame",
]
