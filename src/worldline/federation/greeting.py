"""The participant's side of the handshake, shared by all clients. Bytes in, bytes out."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from msgspec import msgpack

from worldline.model import PeerError, UsageError
from worldline.model.errors import shortened
from worldline.model.frames import frame
from worldline.wire.codec import checked
from worldline.wire.handshake import (
    ABILITIES,
    BAD_TOKEN,
    PROTOCOL,
    PROTOCOL_ERROR,
    VERSION,
    Challenge,
    Hello,
    Refused,
    Welcome,
    client_proof,
    is_genuine,
    server_proof,
)

T = TypeVar("T")

_decode_challenge: Callable[[bytes], Challenge | Refused] = msgpack.Decoder(Challenge | Refused).decode
_decode_verdict: Callable[[bytes], Welcome | Refused] = msgpack.Decoder(Welcome | Refused).decode


class Greeting:
    """One handshake: `hello` answers the server's challenge, `settle` judges its verdict."""

    def __init__(
        self,
        federation: str,
        name: str,
        token: str | None,
        nonce: bytes,
        agreement: dict[str, str] | None = None,
        code: str = "",
    ) -> None:
        self._federation = federation
        self._name = name
        self._token = (token or "").encode()
        self._nonce = nonce
        self._agreement = agreement or {}
        self._code = code
        self._challenge: Challenge | None = None
        self._hello: Hello | None = None

    def hello(self, body: bytes) -> bytes:
        """Return the frame that answers a challenge."""
        challenge = self._accepted(checked(_decode_challenge, body))
        if challenge.protocol != PROTOCOL or challenge.version != VERSION:
            raise PeerError(
                f"the server speaks {shortened(challenge.protocol)} version {challenge.version}",
                advice=f"this is version {VERSION}; use the same Worldline on both sides",
            )
        proof = client_proof(self._token, challenge, self._federation, self._name, self._nonce, self._agreement)
        self._challenge = challenge
        self._hello = Hello(
            VERSION, self._federation, self._name, self._nonce, proof, self._agreement, self._code, ABILITIES
        )
        return frame(self._hello.body())

    def settle(self, body: bytes) -> Welcome:
        """Return the server's welcome, or raise why there is none."""
        welcome = self._accepted(checked(_decode_verdict, body))
        assert self._challenge is not None
        assert self._hello is not None
        if not is_genuine(welcome.proof, server_proof(self._token, self._challenge, self._hello)):
            raise PeerError("the server doesn't know the token", advice="is it the right server?")
        return welcome

    def _accepted(self, answer: T | Refused) -> T:
        if isinstance(answer, Refused):
            raise refusal(answer, self._name)
        return answer


def refusal(refused: Refused, name: str) -> UsageError | PeerError:
    """Return a server's refusal as an error: of the protocol's author, or of whoever started the participant."""
    reason = shortened(refused.reason)
    if refused.code == PROTOCOL_ERROR:
        return PeerError(f"the server refused to go on: {reason}", participant=name, code=refused.code)
    advice = None
    if refused.code == BAD_TOKEN and name:  # A run has tokens of its own for those whom it starts.
        advice = f"if it is the run's own, {name} is already there, or the run starts it itself: --without {name}"
    return UsageError(
        f"the server refused the connection: {reason}", participant=name, advice=advice, code=refused.code
    )
