"""Admission: who may speak for whom, by what they prove, and joining how, by what the server's file declares.

It judges and remembers nothing. Who is connected, and who has been here before, is for the host to say.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from worldline.federation.participant.declaration import Declaration, Plain, agreed, difference, said_at_joining
from worldline.lock import OPERATOR, Join
from worldline.lock.lifecycle import with_estop, without_estop
from worldline.model import Plan, as_time
from worldline.model.clock import LocalClock
from worldline.model.errors import shown
from worldline.model.lifecycle import UNEVENTFUL, Lifecycle, lifecycle_of
from worldline.wire.handshake import (
    BAD_FEDERATION,
    BAD_TOKEN,
    CLOCK,
    DISAGREES,
    LIFE,
    NONCE_SIZE,
    PROTOCOL,
    UNABLE,
    VERSION,
    Challenge,
    Hello,
    client_proof,
    is_genuine,
    server_proof,
)

NOT_OPERATORS = "an operator needs the operator's token; a participant's isn't enough"


Refusal = tuple[str, str]
"""Why a connection isn't admitted: a code of the handshake, and in words."""


class Admission:
    """The tokens, the agreement and the declarations of one run.

    `operator_token` is an operator's, and no participant's.
    """

    def __init__(
        self,
        federation: str,
        token: bytes | Mapping[str, bytes],
        operator_token: bytes,
        agreement: Mapping[str, str],
        declared: Mapping[str, Plain],
        entropy: Callable[[int], bytes],
    ) -> None:
        self.federation = federation
        self._token = token
        self._entropy = entropy
        self._unknown_token = entropy(NONCE_SIZE)  # It is known to none.
        self._operator_token = operator_token or self._unknown_token
        self._agreement = agreement
        self._declared = declared

    def challenge(self) -> Challenge:
        """Return the first word to a connection, which no other one gets."""
        return Challenge(PROTOCOL, VERSION, self._entropy(NONCE_SIZE))

    # --- By what they prove ---

    def stranger(self, hello: Hello, challenge: Challenge, *, is_foreign: bool = False) -> Refusal | None:
        """Refuse who doesn't know the token, or looks for another federation. It comes before any other word (H1).

        Where there is no token to know, another user's process (`is_foreign`) is refused.
        """
        token = self._token_of(hello.name)
        expected = client_proof(token, challenge, hello.federation, hello.name, hello.nonce, hello.agreement)
        if not is_genuine(hello.proof, expected):
            if hello.name == OPERATOR:
                return BAD_TOKEN, NOT_OPERATORS
            return BAD_TOKEN, "the token is wrong, or missing" if token else "this server uses no token"
        if is_foreign and not token:
            return BAD_TOKEN, "without a token, only processes of the server's own user are admitted"
        if hello.federation not in ("", self.federation):
            theirs = shown(hello.federation)
            return BAD_FEDERATION, f"this is federation {self.federation!r}, not {theirs}"
        return None

    def disagreement(self, hello: Hello) -> Refusal | None:
        """Refuse who doesn't state what the server states."""
        differs = difference(self._agreement, hello.agreement)
        return None if differs is None else (DISAGREES, differs)

    def inability(self, hello: Hello, plan: Plan) -> Refusal | None:
        """Refuse a client that would ignore what it is to act out: its history would be another one."""
        name = hello.name
        if CLOCK not in hello.abilities and self.stated(name)[2] is not None:
            return UNABLE, f"{name} has a local clock, and its client can't keep one"
        if LIFE not in hello.abilities and self.life_of(name, plan) is not None:
            return UNABLE, f"{name} has a boot time, faults or an emergency stop, and its client can't act them out"
        return None

    def proof_for(self, hello: Hello, challenge: Challenge) -> bytes:
        """Return what shows a participant that this server knows its token."""
        return server_proof(self._token_of(hello.name), challenge, hello)

    def _token_of(self, name: str) -> bytes:
        if name == OPERATOR:
            return self._operator_token
        return self._token if isinstance(self._token, bytes) else self._token.get(name, self._unknown_token)

    # --- By what is declared ---

    def stated(self, name: str) -> tuple[Join | None, int, LocalClock | None]:
        """Return what the file declares for a participant: what it would say at joining, its period and its clock."""
        if not (stated := self._declared.get(name)):
            return None, 0, None
        declaration = Declaration(**stated)
        return declaration.join(), as_time(declaration.period), declaration.local_clock()

    def life_of(self, name: str, plan: Plan) -> Lifecycle | None:
        """Return what happens to a participant in simulated time; None if nothing does."""
        declared = Declaration(**self._declared.get(name, {}))
        life = declared.completing(name, lifecycle_of(name, plan.network, plan.faults))
        return None if life == UNEVENTFUL else life

    def agreed(self, name: str, join: Join, plan: Plan) -> Join:
        """Return how a participant joins, by what it says and what the file declares for it; raise if they differ."""
        stated = self._declared.get(name)
        if plan.network.estop is None:
            return join if stated is None else agreed(stated, said_at_joining(join)).join()
        return with_estop(join if stated is None else agreed(stated, said_at_joining(without_estop(join))).join())

    def could_come(self, name: str, roster: Iterable[str]) -> bool:
        """Whether a participant of this name could connect. That isn't known without a list of the roster."""
        names = self._token if isinstance(self._token, Mapping) else self._declared
        return name in names or not names or not all(each in names for each in roster)
