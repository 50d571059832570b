"""The asyncio client: the same participant, awaited.

What only tells (`publish`, `promise`, `subscribe`, ...) doesn't wait and isn't awaited; `advance`, `next`, `peek`
and `messages` are. A call that is canceled while it waits for its answer is taken up by the same call again.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from collections.abc import AsyncIterator, Callable
from typing import Self, Unpack, cast

from worldline.federation.address import Address
from worldline.federation.participant.call import PATIENCE_S, Call, Credentials, Greeting, ServerHere
from worldline.federation.participant.client import depart, report_own
from worldline.federation.participant.connection import (
    DOUBT_S,
    GREETING_S,
    PULSE_S,
    TELL_AFTER_S,
    Conversation,
    failure,
)
from worldline.federation.participant.participant import ClockName, Operations
from worldline.federation.participant.sometimes import draw_for
from worldline.federation.sockets import CLOSED, broken, expect_signs_of_life, is_unreachable, remember
from worldline.lock import Action, Ledger, ParticipantEvent
from worldline.lock.events import Recall
from worldline.lock.ledger import Wire
from worldline.model import TIME_MAX, Message, WorldlineError, as_time
from worldline.model.time import TimeLike
from worldline.wire.codec import HEARTBEAT
from worldline.wire.handshake import Welcome

_WAKE_S = 1.0
_FAREWELL_S = 2.0


class AsyncConnection(asyncio.Protocol, Wire):
    """A connection to a server, driven by the event loop."""

    def __init__(self, name: str, dialed: socket.socket) -> None:
        self._socket = dialed
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._conversation = Conversation(name)
        self._waiter: asyncio.Future[None] | None = None
        self._room = asyncio.Event()
        self._room.set()
        self._gone = False
        self._written = 0.0
        self._looked = self._loop.time()
        self._heartbeat_s = 2.5
        self._beating: asyncio.TimerHandle | None = None
        self.pulse: Callable[[], None] = lambda: None  # Tells what was said and left lying.
        remember(self)

    # --- Called by the event loop ---

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        try:
            self._conversation.feed(data)
        except WorldlineError as error:
            self._break(error)
        self._wake()

    def connection_lost(self, error: Exception | None) -> None:
        self._gone = True
        problem = broken(error) if error else CLOSED
        self._break(self._conversation.end or self._conversation.lost(problem))

    def pause_writing(self) -> None:
        self._room.clear()

    def resume_writing(self) -> None:
        self._room.set()

    # --- For the participant ---

    @property
    def end(self) -> WorldlineError | None:
        """Why there is nothing more to be said, once there isn't."""
        return self._conversation.end

    @property
    def disowned(self) -> bool:
        """Whether this process was forked from the one that the connection belongs to."""
        return self._conversation.disowned

    async def greet(self, greeting: Greeting, doubt: Callable[[], None] | None = None) -> Welcome:
        """Shake hands with the server. `doubt` as for `SocketConnection`."""
        shaking = asyncio.ensure_future(self._shake_hands(greeting))
        try:
            if doubt is not None and not (await asyncio.wait([shaking], timeout=DOUBT_S))[0]:
                await self._loop.run_in_executor(None, doubt)
            welcome = await asyncio.wait_for(shaking, None if doubt is None else GREETING_S - DOUBT_S)
        except TimeoutError as error:
            raise self._conversation.silent(GREETING_S) from error
        finally:
            shaking.cancel()
        self._heartbeat_s = welcome.heartbeat / 1e9
        expect_signs_of_life(self._socket, 4 * self._heartbeat_s)
        self._beat()
        return welcome

    async def _shake_hands(self, greeting: Greeting) -> Welcome:
        self._write(greeting.hello(await self._body()))
        welcome = greeting.settle(await self._body())
        self._conversation.agree(welcome.frame_max, welcome.payload_max)
        return welcome

    def tell(self, events: list[ParticipantEvent]) -> None:
        self._conversation.look()
        self._write(self._conversation.encode(events))
        events.clear()

    def is_due(self, urgent: bool) -> bool:
        return urgent or self._loop.time() - self._written > TELL_AFTER_S

    async def ask(self, events: list[ParticipantEvent]) -> Action:
        if events:
            self._write(self._conversation.encode(events))
            events.clear()
        await self._room.wait()
        while (answer := self._conversation.answer()) is None:
            await self._event()
        return answer

    async def drain(self) -> None:
        """Wait until what was said has been taken off our hands, or nearly."""
        await self._room.wait()
        self._conversation.look()

    def fail(self, cause: str, events: list[ParticipantEvent], at: int | None = None) -> None:
        with contextlib.suppress(WorldlineError):
            if events:
                self.tell(events)
        self._write(failure(cause, at))

    async def close(self, *, patient: bool = False) -> None:
        """Hang up once all is sent; if all is well, however long that takes."""
        try:
            if self._transport is not None and not self._transport.is_closing():
                self._transport.close()
                async with asyncio.timeout(None if patient else _FAREWELL_S):
                    while not self._gone:
                        await self._event()
        except (TimeoutError, asyncio.CancelledError) as error:
            assert self._transport is not None
            self._transport.abort()  # The server doesn't take what it is still to be told.
            if not isinstance(error, TimeoutError):
                raise
        finally:
            if self._beating is not None:
                self._beating.cancel()

    def disown(self) -> None:
        """Let go of it in a forked process: not a word, and nothing that keeps the other process's connection open."""
        self._conversation.disown()
        self._socket.close()

    # --- Inside ---

    async def _body(self) -> bytes:
        while (body := self._conversation.body()) is None:
            self._conversation.check()
            await self._event()
        return body

    async def _event(self) -> None:
        self._waiter = self._loop.create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def _break(self, error: WorldlineError) -> None:
        self._conversation.end = self._conversation.end or error
        self._room.set()
        self._wake()

    def _write(self, data: bytes) -> None:
        assert self._transport is not None
        self._written = self._loop.time()
        if not self._transport.is_closing():
            self._transport.write(data)

    def _beat(self) -> None:
        """Show that this end is alive, and see whether the other machine is."""
        now = self._loop.time()
        if now - self._written > self._heartbeat_s:
            self._write(HEARTBEAT)
        if now - self._looked > _WAKE_S:
            self._looked = now
            if not self._gone and is_unreachable(self._socket, 4 * self._heartbeat_s):
                assert self._transport is not None
                self._break(self._conversation.unreachable(4 * self._heartbeat_s))
                self._transport.abort()
        if self._conversation.end is None:
            with contextlib.suppress(WorldlineError):  # The program meets the same and says so.
                self.pulse()
        self._beating = self._loop.call_later(min(PULSE_S, self._heartbeat_s / 2), self._beat)


class AsyncParticipant(Operations):
    """A participant of a run, for asyncio. Use it in an `async with` statement, like `Client` in a `with`."""

    def __init__(self, ledger: Ledger, connection: AsyncConnection) -> None:
        super().__init__(ledger, connection)
        connection.pulse = self.catch_up
        remember(self)

    async def __aenter__(self) -> Self:
        try:
            await self._wait()
            if self._ledger.misses_snapshot:
                self._asked.append(Recall())  # type: ignore[arg-type] # of the server, not the arbiter
                await self._wait()
        except BaseException as error:
            report_own(error, self)
            await self._wire.close()
            raise
        draw_for(self)
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, *_: object) -> bool:
        if not self._wire.disowned:  # By a fork: it is for the parent to leave.
            is_patient = False
            try:
                is_patient = depart(self, error)
            finally:
                await self._wire.close(patient=is_patient)
        return self._has_unwound(error)

    async def advance(
        self, to: TimeLike | None = None, *, by: TimeLike | None = None, clock: ClockName = "true"
    ) -> list[Message]:
        """Advance to a time, or by a duration, and return, in order, every message that arrives before then."""
        await self._yield()
        messages = self._advance(to, by, clock)
        return await self._wait() if messages is None else messages

    async def next(
        self,
        until: TimeLike | None = None,
        *,
        within: TimeLike | None = None,
        promise: TimeLike | None = None,
        clock: ClockName = "true",
    ) -> list[Message]:
        """Advance to the next arrival and return all messages of that exact time, or to `until` and return none.

        ``within="100ms"`` is `until` 100 ms from now. With a `promise`, first promise to send nothing before then.
        """
        await self._yield()
        messages = self._next(self._deadline(until, within, clock), promise, clock)
        return await self._wait() if messages is None else messages

    async def peek(
        self, until: TimeLike | None = None, *, within: TimeLike | None = None, clock: ClockName = "true"
    ) -> int:
        """Return when the next message arrives, or a time before which none does, and stay where you are.

        See `Participant.peek`.
        """
        await self._yield()
        until = self._deadline(until, within, clock)
        if clock != "true":
            until = self._in_true_time(until, clock)
        known = self._peek(until)
        if known is None:
            await self._wait()
            known = self._ledger.peek(until)
        assert known is not None
        return known

    async def revive(self) -> bool:
        """If it has crashed, wait until its program is started again. Return whether the program is to run."""
        if self._asks_to_revive():
            await self._wait()
        return not (self.ended or self.is_crashed)

    async def messages(
        self, until: TimeLike | None = None, *, within: TimeLike | None = None, clock: ClockName = "true"
    ) -> AsyncIterator[Message]:
        """Iterate over the messages that arrive before `until`, or `within` a duration, advancing to each arrival."""
        end = self._limit(self._deadline(until, within, clock), clock)
        limit = TIME_MAX if end is None else as_time(end)
        if not self._ledger.may_give(limit):
            await self._yield()
            self._ledger.note_idle_call()
        while self._ledger.may_give(limit) and (batch := await self.next(end)):
            for message in batch:
                yield message

    async def _yield(self) -> None:
        """Give others in this loop their turn, the heartbeat too, and the server time to take what it was told.

        Before anything is done: a call that is canceled here has changed nothing.
        """
        await asyncio.sleep(0)
        await self._wire.drain()

    async def _wait(self) -> list[Message]:
        if self._waits:
            raise self._crowded()
        self._waits = True
        try:
            messages: list[Message] | None = None
            while messages is None:
                self._take_asked()
                messages = self._ledger.receive(await self._wire.ask(self._asked))
            return messages
        finally:
            self._waits = False


async def connect_async(
    address: str | Address | ServerHere | None = None,
    name: str | None = None,
    *,
    patience_s: float = PATIENCE_S,
    **given: Unpack[Credentials],
) -> AsyncParticipant:
    """Connect to a server as one of its participants, from asyncio; takes the same arguments as `connect`."""
    call = Call(address, name, **given)
    loop = asyncio.get_running_loop()
    dialed = await loop.run_in_executor(None, call.dial, patience_s)
    dialed.setblocking(False)
    try:
        _, connection = await loop.create_connection(
            lambda: AsyncConnection(call.name, dialed),
            sock=dialed,
            ssl=call.tls,
            server_hostname=call.host if call.tls else None,
        )
    except (OSError, ssl.SSLError) as error:
        dialed.close()
        raise await loop.run_in_executor(None, call.untrusted, error) from error
    try:
        welcome = await connection.greet(call.greeting, None if call.known else call.recognize)
        return AsyncParticipant(call.ledger(welcome), connection)
    except BaseException:
        await connection.close()
        raise
