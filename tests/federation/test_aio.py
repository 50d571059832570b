"""The asyncio client: many participants in one loop, refusals, losses, and that a hung server hangs nobody."""

from __future__ import annotations

import asyncio
import contextlib
import selectors
import threading
from collections.abc import Callable, Coroutine, Iterator
from typing import Any, TypeVar

import pytest

from tests.federation.test_client import IMPOSTORS, REFUSALS, Impostor, take_part
from tests.federation.transports import PROMPT_S, Strand, eventually, held_up, nothing_left, states
from worldline import Network, Server, connect_async, link, plan
from worldline.federation.participant import call as answering
from worldline.federation.participant.aio import AsyncParticipant
from worldline.federation.server.limits import Limits
from worldline.lock import ledger
from worldline.model import MS, LossError, ModelError, Plan, UsageError

T = TypeVar("T")


@pytest.fixture(autouse=True)
def _tidy() -> Iterator[None]:
    with nothing_left():
        yield


def some(*names: str, until: str | None = None) -> Plan:
    return plan(names, network=Network(default=link("1ms")), until=until)


def complete(made: Coroutine[Any, Any, T], within_s: float = PROMPT_S) -> T:
    """Run a coroutine to its end, in a loop of its own."""

    async def limited() -> T:
        return await asyncio.wait_for(made, within_s)

    return asyncio.run(limited())


class HurriedSelector(selectors.DefaultSelector):
    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        return super().select(None if timeout is None else timeout / 50)


class HurriedLoop(asyncio.SelectorEventLoop):
    """An event loop for which time goes fifty times as fast, so that a test needn't wait out a limit."""

    def __init__(self) -> None:
        super().__init__(HurriedSelector())

    def time(self) -> float:
        return super().time() * 50


def hurried(made: Coroutine[Any, Any, T], within_s: float = 100.0) -> T:
    """Run a coroutine in a hurried loop; the limit is in that loop's seconds."""

    async def limited() -> T:
        return await asyncio.wait_for(made, within_s)

    with asyncio.Runner(loop_factory=HurriedLoop) as runner:
        return runner.run(limited())


async def join(server: Server | str, name: str, act: Callable[[AsyncParticipant], Any], **declared: Any) -> Any:
    async with await connect_async(server, name, **{"subscribes": ["t"], **declared}) as me:
        return await act(me)


# --- A run ---


def test_a_wait_within_a_duration_and_one_for_the_present_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger, "IDLE_CALLS_MAX", 50)

    async def waits(me: AsyncParticipant) -> int:
        assert await me.next(within="10ms") == []
        assert await me.peek(within="500us") == 10 * MS + 500_000
        assert [message async for message in me.messages(within="10ms")] == []
        return me.now

    async def loops(me: AsyncParticipant) -> None:
        while True:
            async for _ in me.messages("20ms"):
                pass

    async def main() -> None:
        with Server(some("a", "b")) as server:
            assert await asyncio.gather(join(server, "a", waits), join(server, "b", waits)) == [20 * MS, 20 * MS]
        told = r"c at 20ms: it has asked 50 times .*within="
        with Server(some("c")) as server, pytest.raises(UsageError, match=told):
            await join(server, "c", loops)

    complete(main())


def test_a_ring_of_participants_in_one_loop() -> None:
    async def node(me: AsyncParticipant) -> list[int]:
        place = int(me.name)
        if place == 0:
            me.publish("to 1", b"token")
        times = []
        async for message in me.messages(until="50ms"):
            times.append(me.now // MS)
            me.publish(f"to {(place + 1) % 5}", message.payload)
        return times

    async def ring(server: Server) -> list[list[int]]:
        nodes = (join(str(server.address), str(place), node, subscribes=[f"to {place}"]) for place in range(5))
        return list(await asyncio.gather(*nodes))

    with Server(some("0", "1", "2", "3", "4")) as server:
        times = complete(ring(server))
        assert server.wait(PROMPT_S).times == {str(place): 50 * MS for place in range(5)}
    assert times == [list(range(place or 5, 50, 5)) for place in range(5)]


def test_blocking_and_asyncio_clients_share_a_run() -> None:
    async def play(me: AsyncParticipant) -> int:
        return len(await me.advance(to="10ms"))

    with Server(some("a", "b")) as server:
        blocking = Strand(
            lambda: take_part(server, "a", lambda me: (me.publish("t", b"1"), len(me.advance(to="10ms")))[1])
        )
        assert complete(join(server, "b", play)) == 1
        assert blocking.result() == 0


def test_others_in_the_loop_get_their_turn() -> None:
    """However far a participant may go without asking, it doesn't keep the loop for itself."""
    turns = 0

    async def bystander() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    async def alone(server: Server) -> None:
        beside = asyncio.create_task(bystander())

        async def walk(me: AsyncParticipant) -> None:
            for _ in range(100):
                await me.advance(by="1ms")

        await join(server, "a", walk, subscribes=[])
        beside.cancel()

    with Server(some("a")) as server:
        complete(alone(server))
    assert turns > 100


# --- Refusals ---


def test_a_refusal_says_why_and_the_run_goes_on() -> None:
    call, code, reason = REFUSALS["a wrong token"]

    async def refused(server: Server) -> UsageError:
        with pytest.raises(UsageError) as caught:
            await connect_async(str(server.address), **call)
        return caught.value

    with Server(some("a", "b"), federation="cell", token="secret") as server:
        first = Strand(lambda: take_part(server, "a", token="secret"))
        eventually(lambda: states(server)["a"] == "joined")
        error = complete(refused(server))
        assert error.facts["code"] == code
        assert reason in str(error)
        take_part(server, "b", token="secret")
        first.result()


@pytest.mark.parametrize("case", ["hangs up in the middle of the handshake", "a web server", "heartbeats only"])
def test_what_isnt_our_server_is_recognized(case: str) -> None:
    words, kind, text = IMPOSTORS[case]
    with Impostor(*words) as impostor, pytest.raises(kind, match=text):
        complete(connect_async(impostor.address, "a", token="secret"))


def test_a_server_that_says_nothing_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answering, "_PATIENCE_S", 0.01)
    with Impostor(b"", hang_up=False) as impostor, pytest.raises(LossError):
        hurried(connect_async(impostor.address, "a"))


# --- Losses ---


def test_a_program_that_raises_ends_the_run_with_its_name_time_and_text() -> None:
    async def broken(me: AsyncParticipant) -> None:
        await me.advance(to="3ms")
        await me.advance(to="5ms")  # Which it may without asking.
        raise ZeroDivisionError("by nought")

    with Server(some("a", "b")) as server:
        patient = Strand(lambda: take_part(server, "a", lambda me: me.next()))
        with pytest.raises(ZeroDivisionError):
            complete(join(server, "b", broken))
        assert "b at 5ms: the run was broken off: its program raised ZeroDivisionError: by nought" in str(
            patient.failure(PROMPT_S)
        )
        with pytest.raises(ModelError, match="b at 5ms: its program raised ZeroDivisionError: by nought"):
            server.wait(PROMPT_S)


def test_a_task_that_is_canceled_while_it_waits_is_a_failure_of_its_participant() -> None:
    async def canceled(server: Server) -> None:
        task = asyncio.create_task(join(server, "b", lambda me: me.next()))
        while states(server)["b"] != "awaiting":  # It is the server's thread that is waited for.
            await asyncio.sleep(0.001)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    with Server(some("a", "b")) as server:
        computing = Strand(
            lambda: take_part(server, "a", lambda me: (eventually(lambda: server.host.over), me.advance(to="1h")))
        )
        complete(canceled(server))
        assert "b at 0s: the run was broken off: its program raised CancelledError" in str(computing.failure(PROMPT_S))


LOST = r"b at 0s: the run was broken off: its connection was closed"


@pytest.mark.parametrize("how", ["waits", "publishes", "steps", "leaves"])
def test_the_loss_of_another_is_noticed(how: str) -> None:
    async def survive(me: AsyncParticipant) -> None:
        if how == "waits":
            await me.next()
        while how in ("publishes", "steps"):
            if how == "publishes":
                me.publish("x", b"")
                await asyncio.sleep(0)
            else:
                me.publish("x", b"")
                await me.advance(by="1ms")
        while not server.host.over:  # It is the server's thread that is waited for.
            await asyncio.sleep(0.001)
        await asyncio.sleep(0.01)

    with Server(some("a", "b"), limits=Limits(memory_max=2**16)) as server:
        survivor = Strand(lambda: complete(join(server, "a", survive, subscribes=["t"] if how == "waits" else []), 20))

        def hang_up(me: Any) -> None:
            eventually(lambda: states(server)["a"] == ("awaiting" if how == "waits" else "computing"))
            me.close()

        with contextlib.suppress(LossError):
            take_part(server, "b", hang_up)
        told = survivor.failure(PROMPT_S)
        assert isinstance(told, LossError)
        assert LOST in str(told)


def test_the_cause_is_told_also_if_nothing_is_due_to_be_said() -> None:
    async def survive(me: AsyncParticipant) -> None:
        await me.advance(to="1ms")
        server.end(LossError("enough of this"))
        connection = me._wire
        while connection.end is None:
            await asyncio.sleep(0.001)
        connection._written = asyncio.get_running_loop().time()
        await me.advance(to="2ms")

    with Server(some("a")) as server, pytest.raises(LossError, match="enough of this"):
        complete(join(server, "a", survive, subscribes=[]))


# --- A server that hangs ---


def test_a_server_that_hangs_is_waited_for() -> None:
    with Server(some("a", "b", until="10ms"), limits=Limits(silence_s=0.1)) as server:
        computing = Strand(lambda: take_part(server, "b", lambda me: eventually(released.is_set), subscribes=[]))
        released = threading.Event()
        patient = Strand(lambda: complete(join(server, "a", lambda me: me.next()), 20))
        eventually(lambda: states(server)["a"] == "awaiting")
        with held_up(server):
            patient._thread.join(0.5)
            assert not patient.done
        released.set()
        assert patient.result() == []
        computing.result()


def test_leaving_a_server_that_hangs_waits_until_it_has_taken_all() -> None:
    async def leave(server: Server) -> None:
        me = await (await connect_async(server, "a")).__aenter__()
        await me.advance(to="1ms")  # From now on it needs no answer.
        with held_up(server):
            for _ in range(40):
                me.publish("x", bytes(2**19))
            leaving = asyncio.create_task(me.__aexit__(None, None, None))
            await asyncio.wait([leaving], timeout=0.3)
            assert not leaving.done()
        await leaving

    with Server(some("a"), limits=Limits(silence_s=0.1)) as server:
        complete(leave(server), 20)
        assert server.wait(PROMPT_S).times == {"a": MS}


def test_leaving_a_server_that_hangs_can_be_given_up() -> None:
    async def leave(server: Server) -> None:
        me = await (await connect_async(server, "a")).__aenter__()
        await me.advance(to="1ms")
        with held_up(server):
            for _ in range(40):
                me.publish("x", bytes(2**19))
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(me.__aexit__(None, None, None), 0.1)

    with Server(some("a")) as server:
        complete(leave(server), 20)
        with pytest.raises(LossError, match=r"a at .*its connection"):
            server.wait(PROMPT_S)


def test_a_source_that_runs_ahead_waits_until_its_news_is_taken() -> None:
    sent: list[int] = []

    async def source(server: Server) -> None:
        async with await connect_async(server, "a") as me:
            await me.advance(to="1ms")  # From now on it needs no answer.
            with held_up(server):
                news = asyncio.create_task(publish(me))
                await asyncio.wait([news], timeout=0.3)
                sent.append(me.now // MS)
            await news

    async def publish(me: AsyncParticipant) -> None:
        for _ in range(200):
            me.publish("x", bytes(2**18))
            await me.advance(by="1ms")

    with Server(some("a")) as server:
        complete(source(server), 20)
        assert server.wait(PROMPT_S).times == {"a": 201 * MS}
    assert sent[0] < 100, "50 MB wait to be sent"
