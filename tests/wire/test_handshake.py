"""The handshake: each side proves that it knows the token, for this connection, this name and this side alone."""

from __future__ import annotations

import hashlib
import hmac

import pytest
from msgspec import msgpack, structs

from worldline.federation.participant.call import Greeting
from worldline.model.errors import PeerError, UsageError
from worldline.wire.handshake import (
    PROTOCOL_ERROR,
    Challenge,
    Hello,
    Refused,
    Welcome,
    client_proof,
    is_genuine,
    server_proof,
)

TOKEN = b"secret"
CHALLENGE = Challenge("worldline", 1, bytes(range(16)))
NONCE = bytes(range(16, 32))
PROOF = client_proof(TOKEN, CHALLENGE, "cell", "arm", NONCE)
HELLO = Hello(1, "cell", "arm", NONCE, PROOF)
OURS = structs.replace(HELLO, abilities=("clock", "life"))  # As our own clients say it.


def test_a_proof_is_a_plain_hmac_that_any_language_can_compute() -> None:
    content = msgpack.encode(["worldline", 1, "client", CHALLENGE.nonce, NONCE, "cell", "arm"])
    assert hmac.new(TOKEN, content, hashlib.sha256).digest() == PROOF
    content = msgpack.encode(["worldline", 1, "server", CHALLENGE.nonce, NONCE, "cell", "arm"])
    assert hmac.new(TOKEN, content, hashlib.sha256).digest() == server_proof(TOKEN, CHALLENGE, HELLO)


@pytest.mark.parametrize(
    "other",
    [
        client_proof(b"Secret", CHALLENGE, "cell", "arm", NONCE),
        client_proof(b"", CHALLENGE, "cell", "arm", NONCE),
        client_proof(TOKEN, Challenge("worldline", 1, NONCE), "cell", "arm", NONCE),
        client_proof(TOKEN, CHALLENGE, "cell", "arm", CHALLENGE.nonce),
        client_proof(TOKEN, Challenge("worldline", 1, NONCE), "cell", "arm", CHALLENGE.nonce),
        client_proof(TOKEN, CHALLENGE, "cell", "leg", NONCE),
        client_proof(TOKEN, CHALLENGE, "", "arm", NONCE),
        client_proof(TOKEN, CHALLENGE, "cella", "rm", NONCE),
        server_proof(TOKEN, CHALLENGE, HELLO),
        PROOF[:-1],
        PROOF + b"\x00",
        b"",
    ],
    ids=[
        "another token",
        "no token",
        "another challenge",
        "another nonce",
        "nonces swapped",
        "another name",
        "another federation",
        "letters moved from name to federation",
        "the other side",
        "too short",
        "too long",
        "empty",
    ],
)
def test_a_proof_holds_for_nothing_else(other: bytes) -> None:
    assert is_genuine(PROOF, PROOF)
    assert not is_genuine(other, PROOF)


# --- The participant's side ---


def greeting(token: str | None = "secret") -> Greeting:
    return Greeting("cell", "arm", token, NONCE)


def welcome(proof: bytes) -> bytes:
    return msgpack.encode(Welcome(proof, 1, 2))


def test_a_participant_answers_a_challenge_and_believes_a_server_that_knows_the_token() -> None:
    mine = greeting()
    assert mine.hello(msgpack.encode(CHALLENGE))[4:] == OURS.body()
    assert mine.settle(welcome(server_proof(TOKEN, CHALLENGE, HELLO))) == Welcome(
        server_proof(TOKEN, CHALLENGE, HELLO), 1, 2
    )


@pytest.mark.parametrize(
    "proof",
    [
        server_proof(b"other", CHALLENGE, HELLO),
        server_proof(TOKEN, Challenge("worldline", 1, bytes(16)), HELLO),
        server_proof(TOKEN, CHALLENGE, structs.replace(HELLO, nonce=bytes(16))),
        server_proof(TOKEN, CHALLENGE, structs.replace(HELLO, name="leg")),
        PROOF,  # Its own, sent back.
        b"",
    ],
    ids=["another token", "of another challenge", "an old one played again", "for another", "reflected", "empty"],
)
def test_a_participant_hangs_up_on_a_server_that_doesnt_know_the_token(proof: bytes) -> None:
    mine = greeting()
    mine.hello(msgpack.encode(CHALLENGE))
    with pytest.raises(PeerError, match="the server doesn't know the token"):
        mine.settle(welcome(proof))


def test_what_both_sides_agree_on_is_covered_by_both_proofs() -> None:
    agreement = {"world": "ab12", "physics": "mujoco"}
    content = ["worldline", 1, "client", CHALLENGE.nonce, NONCE, "cell", "arm", agreement]
    proof = client_proof(TOKEN, CHALLENGE, "cell", "arm", NONCE, agreement)
    assert hmac.new(TOKEN, msgpack.encode(content), hashlib.sha256).digest() == proof
    mine = Greeting("cell", "arm", "secret", NONCE, agreement)
    hello = Hello(1, "cell", "arm", NONCE, proof, agreement)
    assert msgpack.decode(mine.hello(msgpack.encode(CHALLENGE))[4:], type=Hello) == structs.replace(
        hello, abilities=OURS.abilities
    )
    assert len(msgpack.decode(hello.body())) == 7
    altered = structs.replace(hello, agreement={**agreement, "world": "cd34"})
    for other in (HELLO, altered):
        with pytest.raises(PeerError, match="the server doesn't know the token"):
            mine.settle(welcome(server_proof(TOKEN, CHALLENGE, other)))
    mine.settle(welcome(server_proof(TOKEN, CHALLENGE, hello)))


def test_an_empty_agreement_isnt_said() -> None:
    assert client_proof(TOKEN, CHALLENGE, "cell", "arm", NONCE, {}) == PROOF
    assert Greeting("cell", "arm", "secret", NONCE, {}).hello(msgpack.encode(CHALLENGE))[4:] == OURS.body()
    assert len(msgpack.decode(HELLO.body())) == 6
    assert msgpack.decode(HELLO.body(), type=Hello) == msgpack.decode(msgpack.encode(HELLO), type=Hello) == HELLO


@pytest.mark.parametrize(
    ("challenge", "spoken"),
    [(Challenge("worldline", 2, b""), "worldline version 2"), (Challenge("http", 1, b""), "http version 1")],
)
def test_a_participant_says_which_protocol_it_has_met(challenge: Challenge, spoken: str) -> None:
    with pytest.raises(PeerError, match=f"the server speaks {spoken}.*this is version 1"):
        greeting().hello(msgpack.encode(challenge))


def test_a_refusal_names_who_must_act() -> None:
    with pytest.raises(UsageError, match="arm: the server refused the connection: too many") as usage:
        greeting().hello(msgpack.encode(Refused("crowded", "too many")))
    assert usage.value.facts == {"code": "crowded"}
    mine = greeting()
    mine.hello(msgpack.encode(CHALLENGE))
    with pytest.raises(PeerError, match="arm: the server refused to go on: no") as peer:
        mine.settle(msgpack.encode(Refused(PROTOCOL_ERROR, "no")))
    assert peer.value.facts == {"code": "protocol"}


@pytest.mark.parametrize("body", [b"", b"\xc1", b"HTTP/1.1 400 Bad Request", msgpack.encode(HELLO), b"\x91" * 5000])
def test_garbage_from_a_server_is_a_peers_error(body: bytes) -> None:
    mine = greeting()
    with pytest.raises(PeerError, match="can't be read"):
        mine.hello(body)
    mine.hello(msgpack.encode(CHALLENGE))
    with pytest.raises(PeerError, match="can't be read"):
        mine.settle(body)


@pytest.mark.parametrize(
    "absurd",
    [
        {"heartbeat": -1},
        {"heartbeat": 2**64 - 1},
        {"frame_max": 0},
        {"frame_max": 2**31},
        {"frame_max": 2**64 - 1},
        {"period": -1},
        {"period": 2**64 - 1},
        {"payload_max": -1},
        {"payload_max": 2**64 - 1},
        {"returns": -1},
        {"returns": 2**64 - 1},
    ],
    ids=str,
)
def test_a_welcome_with_absurd_numbers_is_a_peers_error(absurd: dict[str, int]) -> None:
    mine = greeting()
    mine.hello(msgpack.encode(CHALLENGE))
    said = structs.replace(Welcome(server_proof(TOKEN, CHALLENGE, HELLO), 1, 2), **absurd)
    with pytest.raises(PeerError, match="can't be read: Expected `int`"):
        mine.settle(msgpack.encode(said))


def test_neither_token_nor_anything_that_serves_again_crosses_the_wire() -> None:
    first, second = (
        greeting().hello(msgpack.encode(CHALLENGE)),
        greeting().hello(msgpack.encode(Challenge("worldline", 1, bytes(16)))),
    )
    assert TOKEN not in first
    assert first[-32:] != second[-32:]
