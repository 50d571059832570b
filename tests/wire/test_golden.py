"""Golden bytes: every kind of frame, byte for byte.

These are what other people's programs were written against. They must never change without a new version number
(`handshake.VERSION`): if one of these tests fails, it isn't the hex that is wrong.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from msgspec import msgpack

from worldline.history.journal import Journal, run_digest
from worldline.lock.events import (
    Abort,
    Advance,
    Down,
    Grant,
    Invite,
    Join,
    Leave,
    Log,
    Next,
    Peek,
    Promise,
    Publish,
    Reached,
    Recall,
    Recalled,
    Restore,
    Snapshot,
    StartRun,
    Stop,
    Subscribe,
    Subscription,
    Unsubscribe,
)
from worldline.model.draws.table import DrawRow
from worldline.model.frames import PIECE_LEAST, frame
from worldline.model.links import MAILBOX, Buffer
from worldline.model.message import Message
from worldline.model.time import FOREVER
from worldline.wire import handshake
from worldline.wire.codec import FRAME_MAX, HEARTBEAT, decode_answer, decode_events, encode_answer, encode_events
from worldline.wire.handshake import (
    Answer,
    Challenge,
    Deliver,
    Fail,
    Hello,
    Refused,
    Resume,
    Told,
    Welcome,
    client_proof,
    server_proof,
)

TOKEN = b"secret"
CHALLENGE = Challenge("worldline", 1, bytes(range(16)))
MINE = bytes(range(16, 32))
CLIENT_PROOF = bytes.fromhex("29028e72649425a685be18c22c0b3f87a913c68bacff6c6b35c466006123ee05")
SERVER_PROOF = bytes.fromhex("0bb802d8d3c2c14496b044698325e1b96406f1b2e17287473c2af83253a6840d")
AGREED_PROOF = bytes.fromhex("4061be957ba0ff8af45224dd73748f163fdd840c1805c26064b0c038d91d8240")
HELLO = Hello(1, "cell", "arm", MINE, CLIENT_PROOF)
PONG = Message(2_000_000, 1_000_000, "arm", 0, 0, "pong", b"\x02")

GREETINGS: list[tuple[Challenge | Hello | Welcome | Refused, str]] = [
    (
        CHALLENGE,
        "0000002894a96368616c6c656e6765a9776f726c646c696e6501c410000102030405060708090a0b0c0d0e0f",
    ),
    (
        HELLO,
        (
            "0000004596a568656c6c6f01a463656c6ca361726dc410101112131415161718191a1b1c1d1e1fc420"
            "29028e72649425a685be18c22c0b3f87a913c68bacff6c6b35c466006123ee05"
        ),
    ),
    (
        Welcome(SERVER_PROOF, 2_500_000_000, FRAME_MAX),
        (
            "0000003594a777656c636f6d65c420"
            "0bb802d8d3c2c14496b044698325e1b96406f1b2e17287473c2af83253a6840dce9502f900ce01010000"
        ),
    ),
    (
        Welcome(SERVER_PROOF, 2_500_000_000, FRAME_MAX, payload_max=2**30),
        (
            "0000003c97a777656c636f6d65c420"
            "0bb802d8d3c2c14496b044698325e1b96406f1b2e17287473c2af83253a6840dce9502f900ce01010000c000ce40000000"
        ),
    ),
    (
        Refused("token", "the token is wrong"),
        "0000002293a772656675736564a5746f6b656eb274686520746f6b656e2069732077726f6e67",
    ),
    (
        Hello(1, "cell", "arm", MINE, AGREED_PROOF, {"world": "ab12"}),
        (
            "0000005197a568656c6c6f01a463656c6ca361726dc410101112131415161718191a1b1c1d1e1fc420"
            "4061be957ba0ff8af45224dd73748f163fdd840c1805c26064b0c038d91d824081a5776f726c64a461623132"
        ),
    ),
]
EVENTS: list[tuple[Told, str]] = [
    (Join(), "0000000b9195a46a6f696ec09000c2"),
    (
        Join(("x", "y"), (Subscription("t"), Subscription("u", Buffer(2, True))), 1000, True),
        (
            "000000379195a46a6f696e92a178a1799292a17482a56c696d6974c0a66f6c64657374c2"
            "92a17582a56c696d697402a66f6c64657374c3cd03e8c3"
        ),
    ),
    (Publish("ping", b"\x01", 1_000_000), "000000179194a77075626c697368a470696e67c40101ce000f4240"),
    (Promise(5_000_000), "0000000f9192a770726f6d697365ce004c4b40"),
    (Reached(7), "0000000b9192a77265616368656407"),
    (
        Subscribe(Subscription("t", MAILBOX), 10, 11),
        "000000219194a973756273637269626592a17482a56c696d697401a66f6c64657374c20a0b",
    ),
    (Unsubscribe("t", 10, 11), "000000129194ab756e737562736372696265a1740a0b"),
    (Down(10, 20, {"t": 11}), "0000000d9194a4646f776e0a1481a1740b"),
    (Invite("guest", 20), "000000109193a6696e76697465a5677565737414"),
    (Stop(1_000_000_000), "0000000c9192a473746f70ce3b9aca00"),
    (Log("gull"), "0000000c9193a36c6f67a467756c6ca0"),
    (Log("gone", "fault"), "000000119193a36c6f67a4676f6e65a56661756c74"),
    (Advance(2_000_000), "0000000f9192a7616476616e6365ce001e8480"),
    (Next(FOREVER), "000000199193a46e657874cf2000000000000000cf2000000000000000"),
    (Next(1_000_000_000, 5), "0000000d9193a46e657874ce3b9aca0005"),
    (Resume(12), "0000000a9192a6726573756d650c"),
    (Snapshot(b"\x05"), "0000000e9192a8736e617073686f74c40105"),
    (Recall(), "000000099191a6726563616c6c"),
    (Restore(12, 3), "0000000c9193a7726573746f72650c03"),
    (Peek(2_000_000), "000000159193a47065656bce001e8480cf2000000000000000"),
    (Peek(1_000_000_000, 5), "0000000d9193a47065656bce3b9aca0005"),
    (
        Leave(1_000_000_000, bytes(16), True, {"t": 3}),
        "000000259196a56c65617665ce3b9aca00c41000000000000000000000000000000000c381a17403c0",
    ),
    (Leave(3), "0000000e9196a56c6561766503c400c280c0"),
    (Leave(3, waited=2), "0000000e9196a56c6561766503c400c28002"),
    (Leave(3, replaced=(0, 2)), "000000119197a56c6561766503c400c280c0920002"),
    (Leave(3, missed={"t": 2}), "000000149199a56c6561766503c400c280c09081a1740280"),
    (Leave(3, awaited={"f": 1}), "000000149199a56c6561766503c400c280c0908081a16601"),
    (Leave(3, untaken={"t": 1}), "00000015919aa56c6561766503c400c280c090808081a17401"),
    (Fail("no"), "0000000a9192a46661696ca26e6f"),
    (Fail("no", 7), "0000000b9193a46661696ca26e6f07"),
]
ANSWERS: list[tuple[Answer, str]] = [
    (
        StartRun("a", 0, 7, 1_000_000, 5, (DrawRow("random/a/0", value=0.25),)),
        "0000003297a57374617274a1610007ce000f4240059182a46e616d65aa72616e646f6d2f612f30a576616c7565cb3fd0000000000000",
    ),
    (StartRun("arm", 0, -1, 1_000_000, 2_000_000), "0000001796a57374617274a361726d00ffce000f4240ce001e8480"),
    (StartRun("arm", 0, -1, 1_000_000, FOREVER), "0000001b96a57374617274a361726d00ffce000f4240cf2000000000000000"),
    (
        Grant("leg", 3_000_000, [PONG]),
        "0000002b95a56772616e74a36c6567ce002dc6c09197ce001e8480ce000f4240a361726d0000a4706f6e67c40102c2",
    ),
    (Grant("arm", FOREVER, [], True), "0000001695a56772616e74a361726dcf200000000000000090c3"),
    (Recalled(12, 3, b"\x05"), "0000000f94a8726563616c6c65640c03c40105"),
    (Deliver([PONG]), "0000002392a764656c697665729197ce001e8480ce000f4240a361726d0000a4706f6e67c40102"),
    (Abort("arm", "why", "leg", 5), "0000001495a561626f7274a361726da3776879a36c656705"),
    (Abort("arm", "why"), "0000001195a561626f7274a361726da3776879c0c0"),
]


def kind(value: object) -> str:
    return "" if isinstance(value, str) else type(value).__name__


def test_this_is_version_1() -> None:
    assert (handshake.PROTOCOL, handshake.VERSION) == ("worldline", 1)
    assert bytes.fromhex("00000000") == HEARTBEAT


def test_proofs() -> None:
    assert client_proof(TOKEN, CHALLENGE, "cell", "arm", MINE) == CLIENT_PROOF
    assert server_proof(TOKEN, CHALLENGE, HELLO) == SERVER_PROOF
    assert client_proof(TOKEN, CHALLENGE, "cell", "arm", MINE, {"world": "ab12"}) == AGREED_PROOF
    without = client_proof(b"", CHALLENGE, "", "arm", MINE)
    assert without.hex() == "4bf2d5a1fdfab65e87115f3ab024cd38e56e0fbb1264a6ab29a9cf66d5aa261e"


@pytest.mark.parametrize(("greeting", "expected"), GREETINGS, ids=kind)
def test_greetings(greeting: Challenge | Hello | Welcome | Refused, expected: str) -> None:
    body = greeting.body() if isinstance(greeting, Hello | Welcome) else msgpack.encode(greeting)
    assert frame(body).hex() == expected
    assert msgpack.decode(bytes.fromhex(expected)[4:], type=type(greeting)) == greeting


@pytest.mark.parametrize(("event", "expected"), EVENTS, ids=kind)
def test_events(event: Told, expected: str) -> None:
    assert encode_events([event]).hex() == expected
    assert decode_events(bytes.fromhex(expected)[4:]) == [event]


def test_a_line_without_a_kind_is_a_programs() -> None:
    assert decode_events(bytes.fromhex("9192a36c6f67a467756c6c")) == [Log("gull")]


@pytest.mark.parametrize(("answer", "expected"), ANSWERS, ids=kind)
def test_answers(answer: Answer, expected: str) -> None:
    assert encode_answer(answer).hex() == expected
    assert decode_answer(bytes.fromhex(expected)[4:]) == answer


def test_several_events_in_one_frame() -> None:
    expected = "0000002b9294a77075626c697368a470696e67c40101ce000f424093a46e657874ce3b9aca00cf2000000000000000"
    assert encode_events([Publish("ping", b"\x01", 1_000_000), Next(1_000_000_000)]).hex() == expected


def test_every_kind_has_its_vector() -> None:
    assert {type(event) for event, _ in EVENTS} == set(Told.__args__)
    assert {type(answer) for answer, _ in ANSWERS} | {Refused} == set(Answer.__args__)


def test_digests() -> None:
    journal = Journal()
    journal.note_sent(1_000_000, "ping", b"\x01")
    assert journal.digest().hex() == "4c5805b2f9631f532124d8663415d5c7"
    journal.note_received(2_000_000, [PONG])
    assert journal.digest().hex() == "c3aee260a1709429e11e78e224e63e24"
    assert run_digest([("leg", 10**9, journal.digest()), ("arm", 3, b"")]).hex() == "050f014d06a7eace4571ae549c1733d9"


# --- The page that says all this to people ---

PAGE = (Path(__file__).parents[2] / "docs" / "protocol.md").read_text()


def dumps() -> list[str]:
    """Return the hex dumps of the page, without their remarks."""
    blocks = re.findall(r"```hex\n(.*?)```", PAGE, re.DOTALL)
    return ["".join("".join(line.split("#")[0].split()) for line in block.splitlines()) for block in blocks]


def test_the_page_shows_the_bytes_that_are_sent() -> None:
    proven, greetings, talk = dumps()
    assert proven == msgpack.encode(["worldline", 1, "client", CHALLENGE.nonce, MINE, "cell", "arm"]).hex()
    assert greetings == "".join(expected for _, expected in GREETINGS[:3])
    said = encode_events([Publish("ping", b"\x01", 1_000_000), Next(1_000_000_000)])
    assert talk == (said + encode_answer(Grant("leg", 3_000_000, [PONG]))).hex()


def test_the_page_names_every_kind_with_its_fields() -> None:
    pages = PAGE + (Path(__file__).parents[2] / "docs" / "rejoin.md").read_text()  # With what few need.
    for struct in (*Told.__args__, *Answer.__args__, Challenge, Hello, Welcome):
        tag = struct.__struct_config__.tag
        (shown,) = re.findall(rf'^\|[^`]*`\["{tag}"(?:, )?([^`]*)\]`', pages, re.MULTILINE)
        names = re.findall(r"(?:^|, )([a-z_]+)", re.sub(r"\{.*?\}|\[.*?\]", "", shown))
        assert names == list(struct.__struct_fields__), tag


def test_the_page_names_every_code_of_a_refusal() -> None:
    codes = {
        handshake.BAD_VERSION,
        handshake.BAD_TOKEN,
        handshake.BAD_FEDERATION,
        handshake.DISAGREES,
        handshake.UNEXPECTED,
        handshake.TAKEN,
        handshake.DECLARED,
        handshake.UNABLE,
        handshake.OVER,
        handshake.CROWDED,
        handshake.PROTOCOL_ERROR,
    }
    rows = PAGE.split("| code | why |\n|---|---|\n")[1].split("\n\n")[0].splitlines()
    assert {code for row in rows for code in re.findall(r"`([a-z]+)`", row.split("|")[1])} == codes


def test_the_page_of_large_payloads_shows_the_bytes_that_are_sent() -> None:
    page = (Path(__file__).parents[2] / "docs" / "large-payloads.md").read_text()
    words = " ".join(page.split())
    said = encode_events([Publish("map", bytes(20_000_000), 0)])
    first, last = re.findall(r"^([0-9a-f ]+) …", page, re.MULTILINE)
    first = first.replace(" ", "")
    assert said.hex().startswith(first)
    assert said[4 + FRAME_MAX :][:4].hex() == last
    assert f"{FRAME_MAX:,} bytes" in words
    assert f"{len(said) - 8:,} bytes" in words
    assert f"{len(said) - 8 - FRAME_MAX:,} bytes" in words
    assert f"at least {PIECE_LEAST:,} bytes" in words


def test_the_page_is_short_enough_to_be_read() -> None:
    assert len(PAGE.splitlines()) <= 200
    assert f"{FRAME_MAX:,}" in PAGE
    assert f"{handshake.HELLO_MAX:,}" in PAGE
