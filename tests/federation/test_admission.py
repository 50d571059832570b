"""Who may take part, as whom, and declaring what: tokens, certificates, and what the server's file says of them."""

from __future__ import annotations

import asyncio
import ssl
from pathlib import Path
from typing import Any

import pytest

from tests.federation.transports import PATIENCE_S, Strand, brief, eventually, in_server, make_certificate
from worldline import Network, Server, connect, connect_async, link, plan
from worldline.federation.participant.declaration import Declaration, agreed, said_at_joining
from worldline.lock import Join
from worldline.model import ConfigurationError, LossError, Plan, UsageError
from worldline.model.errors import BrokenPromise


def pair(**more: Any) -> Plan:
    return plan(["camera", "logger"], network=Network(default=link("1ms")), until="100ms", **more)


def film(target: Server | str, **options: Any) -> Strand[None]:
    def live() -> None:
        with connect(target, "camera", publishes=["image"], **options) as me:
            while not me.ended:
                me.publish("image", b"%d" % me.now)
                me.advance(by="10ms")

    return Strand(live)


def listen(target: Server | str, **options: Any) -> Strand[None]:
    def live() -> None:
        with connect(target, "logger", **options) as me:
            me.next()

    return Strand(live)


LISTENS = {"logger": {"publishes": (), "subscribes": {"image": "newest(2)"}}}


# --- What the server's file declares ---


def test_who_declares_nothing_takes_the_files_word() -> None:
    with Server(pair(), declared=LISTENS) as server:
        camera = film(server)
        with connect(server, "logger") as me:
            heard = [message.payload for message in me.advance(to="55ms")]
            with pytest.raises(UsageError, match="didn't declare that it publishes on 'x'"):
                me.publish("x", b"")
            me.advance(to="100ms")
        camera.result()
    assert heard == [b"40000000", b"50000000"]


def test_asyncio_takes_the_files_word_too() -> None:
    async def hear(server: Server) -> list[bytes]:
        async with await connect_async(server, "logger") as me:
            heard = [message.payload for message in await me.advance(to="55ms")]
            await me.advance(to="100ms")
            return heard

    with Server(pair(), declared=LISTENS) as server:
        camera = film(server)
        assert asyncio.run(hear(server)) == [b"40000000", b"50000000"]
        camera.result()


def test_a_period_in_the_file_is_kept_by_whoever_connects() -> None:
    with Server(pair(), declared={"camera": {"publishes": ("image",), "period": 20_000_000}}) as server:
        logger = listen(server, subscribes=["image"])
        late = pytest.raises(BrokenPromise, match="isn't at a multiple of its period, 20ms")
        with late, connect(server, "camera") as me:
            me.advance(to="10ms")  # Nothing before 20ms is promised by now, but the period is what was declared.
            me.publish("image", b"", at="15ms")
        logger.failure()


def test_what_contradicts_the_file_is_refused_and_may_be_mended() -> None:
    with Server(pair(), declared=LISTENS) as server:
        camera = film(server)
        problem = (
            r"it declares subscribes = \[imgae\], and the federation's file says \{image = newest\(2\)\} \(leave it"
        )
        with pytest.raises(UsageError, match=problem) as caught, connect(server, "logger", subscribes=["imgae"]):
            pytest.fail("it was let in")
        assert caught.value.facts["code"] == "declared"
        with connect(server, "logger", subscribes={"image": "newest(2)"}) as me:  # The same again is no contradiction.
            assert len(me.advance(to="100ms")) == 2
        camera.result()


def test_the_file_decides_who_controls_the_run() -> None:
    with Server(pair(), declared={"logger": {"controls": False}, "camera": {"controls": True}}) as server:
        with pytest.raises(UsageError, match="declares controls = true, and the federation's file says false"):
            listen(server, controls=True).result()
        logger = listen(server)
        with connect(server, "camera") as me:
            me.stop(at="5ms")
        logger.result()


def test_a_join_that_says_less_than_the_file_is_completed_by_the_server() -> None:
    stated = {"publishes": ("b", "a"), "subscribes": {"t": "mailbox"}, "period": 7}
    join = agreed(stated, said_at_joining(Join(publishes=("a", "b")))).join()
    assert (join.publishes, [(one.topic, one.buffer.limit) for one in join.subscribes]) == (("a", "b"), [("t", 1)])
    with pytest.raises(ConfigurationError, match='latency_least = "2ns", and the federation\'s file says "1ns"'):
        agreed({"latency_least": 1}, said_at_joining(Join(latency_least=2)))


def test_a_declaration_of_thousands_of_topics_reaches_its_participant() -> None:
    topics = tuple(f"sensor/{number}/{'x' * 60}" for number in range(6000))
    with Server(pair(), declared={"logger": {"subscribes": dict.fromkeys(topics, "mailbox")}}) as server:
        camera = film(server)
        with connect(server, "logger") as me:
            me.advance(to="100ms")
            assert in_server(server, lambda: tuple(server.host.arbiter.members["logger"].subscriptions)) == topics
        camera.result()


def test_only_what_is_said_counts_as_said() -> None:
    assert Declaration().said() == {}
    assert Declaration(publishes=[], subscribes=["t"], period="1ms").said() == {
        "publishes": (),
        "subscribes": {"t": "unbounded"},
        "period": 1_000_000,
    }


# --- Tokens ---


def test_with_a_token_for_each_nobody_can_take_anothers_name() -> None:
    tokens = {"camera": "of the camera", "logger": "of the logger"}
    with Server(pair(), token=tokens) as server:
        for name in ("logger", "nobody"):  # A name that there is no token for is refused in the same words.
            with pytest.raises(UsageError, match="the token is wrong, or missing"):
                connect(str(server.address), name, token="of the camera")
        camera = film(str(server.address), token="of the camera")
        with connect(str(server.address), "logger", token="of the logger", subscribes=["image"]) as me:
            assert me.next()
            me.advance(to="100ms")
        camera.result()


def test_one_that_needs_no_token_is_let_in_on_this_machine_alone() -> None:
    tokens = {"camera": "of the camera", "logger": None}
    with Server(pair(), token=tokens) as server:
        with pytest.raises(UsageError, match="this server uses no token"):
            connect(str(server.address), "logger", token="of the camera")
        with pytest.raises(UsageError, match="the token is wrong, or missing"):
            connect(str(server.address), "camera")
        camera = film(str(server.address), token="of the camera")
        with connect(str(server.address), "logger", subscribes=["image"]) as me:
            assert me.next()
        camera.result()
    with pytest.raises(ConfigurationError, match="can be reached from other machines, and there is no token"):
        Server(pair(), "tcp://0.0.0.0:0", token=tokens)


@pytest.mark.parametrize(
    ("tokens", "words"),
    [
        ({"camera": "x"}, "there is no token for logger"),
        ({"camera": "x", "logger": ""}, "there is no token for logger"),
        ({"camera": "x", "logger": "y", "spy": "z"}, "there is a token for spy, who doesn't take part"),
    ],
)
def test_tokens_are_for_those_who_take_part(tokens: dict[str, str], words: str) -> None:
    with pytest.raises(ConfigurationError, match=words):
        Server(pair(), token=tokens)


# --- Certificates ---


def test_a_server_with_an_authority_lets_in_only_whoever_shows_its_certificate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    brief(monkeypatch)
    (tmp_path / "stranger").mkdir()
    certificate, key = make_certificate(tmp_path)
    strange, strange_key = make_certificate(tmp_path / "stranger")
    shown = {"authority": certificate, "certificate": certificate, "key": key}
    with Server(
        pair(), "tls://127.0.0.1:0", certificate=certificate, key=key, authority=certificate, declared=LISTENS
    ) as server:
        address = str(server.address)
        for wrong in ({}, {"certificate": strange, "key": strange_key}):
            with pytest.raises(LossError, match=r"no trusted connection to the server: .*(certificate|unknown ca)"):
                connect(address, "camera", authority=certificate, **wrong)

        async def knock() -> None:
            await connect_async(address, "camera", authority=certificate)

        with pytest.raises(LossError, match=r"no trusted connection to the server: .*(certificate|unknown ca)"):
            asyncio.run(knock())
        eventually(lambda: not in_server(server, lambda: server.host.sessions))
        camera = film(address, **shown)
        with connect(address, "logger", **shown) as me:  # type: ignore[arg-type]
            assert len(me.advance(to="100ms")) == 2
        camera.result(PATIENCE_S)


def test_certificates_that_cant_be_used_are_named(tmp_path: Path) -> None:
    certificate, key = make_certificate(tmp_path)
    (tmp_path / "empty").write_text("")
    with pytest.raises(ConfigurationError, match="an authority for clients goes with tls"):
        Server(pair(), authority=certificate)
    with pytest.raises(UsageError, match=r"the authority .*empty can't be used"):
        Server(pair(), "tls://127.0.0.1:0", certificate=certificate, key=key, authority=tmp_path / "empty")
    with pytest.raises(UsageError, match=r"the certificate .*empty can't be used"):
        connect("tls://127.0.0.1:1", "camera", certificate=tmp_path / "empty", patience_s=0)


def test_a_client_that_trusts_an_authority_still_checks_the_servers_name() -> None:
    from worldline.federation.sockets import client_context

    assert client_context(None).check_hostname
    context = client_context(ssl.get_default_verify_paths().cafile or None)
    assert context.check_hostname
    assert context.verify_mode is ssl.CERT_REQUIRED


# --- What both ends must state alike ---

WORLD = {"world": "ab12", "physics": "mujoco"}


def test_both_ends_state_the_same_or_the_connection_is_refused() -> None:
    with Server(pair(), agreement=WORLD) as server:
        address = str(server.address)
        with pytest.raises(UsageError, match="refused the connection: world is cd34, the server's is ab12") as refused:
            connect(address, "camera", agreement={**WORLD, "world": "cd34"})
        assert refused.value.facts["code"] == "agreement"
        with pytest.raises(UsageError, match="world isn't stated, the server's is ab12"):
            connect(server, "camera")

        async def differ() -> None:
            await connect_async(address, "camera", agreement={**WORLD, "physics": "bullet"})

        with pytest.raises(UsageError, match="physics is bullet, the server's is mujoco"):
            asyncio.run(differ())
        camera = film(address, agreement=WORLD)
        listen(server, subscribes=["image"], agreement=dict(reversed(WORLD.items()))).result()
        camera.result()
        assert server.wait(PATIENCE_S).digest


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        (["world"], r"an agreement is texts by keys, not \['world'\]"),
        ({"world": 7}, "an agreement is texts by keys, not 'world' = 7"),
        ({7: "ab12"}, "an agreement is texts by keys, not 7 = 'ab12'"),
        ({"": "ab12"}, "an agreement is texts by keys, not '' = 'ab12'"),
        ({"world": "\ud800"}, "an agreement holds what isn't text"),
        ({"world": "x" * 2048}, "an agreement of 2,058 bytes is too long"),
    ],
)
def test_what_cant_be_agreed_on_is_found_out_before_anything_is_opened(given: Any, problem: str) -> None:
    with pytest.raises(ConfigurationError, match=problem):
        Server(pair(), agreement=given)
    with pytest.raises(ConfigurationError, match=problem):
        connect("tcp://127.0.0.1:1", "camera", agreement=given)
