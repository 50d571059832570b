"""Ways to run a federation over real sockets in this process, and bounded waits for what happens on them.

Every program gets a thread of its own and a client; the server has one too. With the asyncio client all participants
share one event loop, and their programs, which are ordinary functions, talk to it from their threads.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import shutil
import subprocess
import threading
import time
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from random import Random
from typing import Any, Generic, TypeVar

import pytest

from worldline import Federation, Message, Participant, Program, Server, connect, connect_async, run_program
from worldline.federation.outcome import FederationOutcome
from worldline.federation.participant import call as answering
from worldline.federation.participant import connection as connection_module
from worldline.federation.participant.aio import AsyncParticipant
from worldline.federation.participant.call import Call
from worldline.federation.participant.crew import Circuit, Crew
from worldline.federation.server import server as server_module
from worldline.federation.server.limits import Limits
from worldline.model import FOREVER, MS

T = TypeVar("T")

PATIENCE_S = 60.0
"""How long a test waits for what must happen, on a machine that is busy with other things."""

PROMPT_S = 10.0
"""How soon a loss must have been noticed."""


# --- Waiting ---


def eventually(happened: Callable[[], object], within_s: float = PATIENCE_S) -> None:
    """Wait until it is so, as long as it may take."""
    deadline = time.monotonic() + within_s
    pause = threading.Event()
    while not happened():
        assert time.monotonic() < deadline, f"it hasn't happened in {within_s} seconds"
        pause.wait(0.005)


class Strand(Generic[T]):
    """A function in a thread of its own, and what came of it."""

    def __init__(self, function: Callable[[], T], name: str = "strand") -> None:
        self._function = function
        self._result: T | None = None
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._live, name=name, daemon=True)
        self._thread.start()

    def _live(self) -> None:
        try:
            self._result = self._function()
        except BaseException as failure:  # Handed to whoever asks for the result.
            self._failure = failure

    @property
    def done(self) -> bool:
        return not self._thread.is_alive()

    def result(self, within_s: float = PATIENCE_S) -> T:
        self._thread.join(within_s)
        assert self.done, f"{self._thread.name} hasn't ended in {within_s} seconds"
        if self._failure is not None:
            raise self._failure
        return self._result  # type: ignore[return-value]

    def failure(self, within_s: float = PATIENCE_S) -> BaseException:
        """Return what it raised; it must have raised something."""
        try:
            result = self.result(within_s)
        except AssertionError:
            raise
        except BaseException as failure:
            return failure
        raise AssertionError(f"{self._thread.name} ended well, with {result!r}")


def in_server(server: Server, function: Callable[[], T]) -> T:
    """Have something done in the server's own thread, where alone its state may be read, and return it."""
    done = threading.Event()
    found: list[T] = []
    server.order(lambda: (found.append(function()), done.set()))  # type: ignore[func-returns-value, arg-type, return-value]
    assert done.wait(PATIENCE_S)
    return found[0]


def states(server: Server) -> dict[str, str]:
    """Return what everybody is doing, as far as the server knows."""
    return in_server(
        server, lambda: {name: state.value for name, (state, _) in server.host.arbiter.participants().items()}
    )


@contextlib.contextmanager
def held_up(server: Server) -> Iterator[None]:
    """Keep the server's thread from doing anything at all, as a hung machine would."""
    held, release = threading.Event(), threading.Event()
    server.order(lambda: (held.set(), release.wait(PATIENCE_S)))  # type: ignore[func-returns-value, arg-type, return-value]
    assert held.wait(PATIENCE_S)
    try:
        yield
    finally:
        release.set()


class ServerClock:
    """A clock for a server that runs as the real one does and can be moved on, so that no test waits for a limit."""

    def __init__(self) -> None:
        self._skipped_s = 0.0

    def __call__(self) -> float:
        return time.monotonic() + self._skipped_s

    def leap(self, seconds: float) -> None:
        """Let time pass at once, in which the server doesn't listen."""
        self._skipped_s += seconds

    def skip(self, server: Server, seconds: float) -> None:
        """Let time pass for a server: tick by tick, since a leap would be time in which it didn't listen (H7)."""
        tick_s = server.host.limits.heartbeat_s / 2
        until = self() + seconds
        while self() < until and not server.host.over:
            self._skipped_s += tick_s
            server.ask(lambda: None)  # This wakes it,
            server.ask(lambda: None)  # and this is answered when it has looked at its clock.


def impatient(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    """Let blocking clients doubt a server that says nothing at first after so long, and soon give it up."""
    monkeypatch.setattr(answering, "_PATIENCE_S", seconds)
    monkeypatch.setattr(connection_module, "DOUBT_S", seconds)
    monkeypatch.setattr(connection_module, "GREETING_S", 2 * seconds)


def brief(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let servers wait only shortly for those who don't go, in tests where somebody doesn't."""
    monkeypatch.setattr(server_module, "_LINGER_S", 0.5)


@contextlib.contextmanager
def nothing_left() -> Iterator[None]:
    """See that no thread and no open file is left behind."""

    def threads() -> list[str]:
        return [thread.name for thread in threading.enumerate() if "worldline" in thread.name]

    def files() -> int:
        return len(os.listdir("/proc/self/fd"))  # noqa: PTH208 - reading it opens one more, each time alike.

    gc.collect()
    before = files()
    yield
    eventually(lambda: not threads(), PROMPT_S)
    gc.collect()
    eventually(lambda: files() <= before, PROMPT_S)


# --- One federation, many ways ---


class Awaited:
    """A participant of an event loop, for a program in a thread of its own: each call waits for the loop to do it."""

    def __init__(self, participant: AsyncParticipant, loop: asyncio.AbstractEventLoop) -> None:
        self._participant = participant
        self._loop = loop

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._participant, name)
        if not callable(found) or name == "random":
            return found

        async def call(*arguments: object, **keywords: object) -> object:
            made = found(*arguments, **keywords)
            return await made if isinstance(made, Coroutine) else made

        return lambda *arguments, **keywords: asyncio.run_coroutine_threadsafe(
            call(*arguments, **keywords), self._loop
        ).result()

    def messages(self, until: object = None) -> Iterator[Message]:
        while batch := self.next(until):
            yield from batch


def play(program: Program, participant: Participant) -> None:
    """Run a program as its participant, as a launched process would."""
    run_program(program.run, participant)


def join_blocking(
    target: Server | str, programs: dict[str, Program], authority: Path | None, token: str | None
) -> list[Strand[None]]:
    def live(name: str, program: Program) -> None:
        declared: Any = program.as_plain()
        with connect(target, name, authority=authority, token=token, **declared) as participant:
            play(program, participant)

    return [
        Strand(lambda name=name, program=program: live(name, program), name)  # type: ignore[misc]
        for name, program in programs.items()
    ]


def join_asyncio(
    target: Server | str, programs: dict[str, Program], authority: Path | None, token: str | None
) -> list[Strand[None]]:
    async def live(name: str, program: Program) -> None:
        declared: Any = program.as_plain()
        loop = asyncio.get_running_loop()
        async with await connect_async(target, name, authority=authority, token=token, **declared) as participant:
            awaited: Any = Awaited(participant, loop)
            failure: list[BaseException] = []
            done = asyncio.Event()

            def act() -> None:
                try:
                    play(program, awaited)
                except BaseException as error:
                    failure.append(error)
                loop.call_soon_threadsafe(done.set)

            threading.Thread(target=act, name=name, daemon=True).start()
            await done.wait()
            if failure:
                raise failure[0]

    async def everybody() -> None:
        await asyncio.gather(*(live(name, program) for name, program in programs.items()))

    return [Strand(lambda: asyncio.run(everybody()), "event loop")]


def join_in_crews(crews: int) -> Callable[..., list[Strand[None]]]:
    """Return how participants join that share so many trunks, and are strands of as many threads."""

    def join(
        target: Server | str, programs: dict[str, Program], authority: Path | None, token: str | None
    ) -> list[Strand[None]]:
        def work(names: list[str]) -> None:
            calls = []
            for name in names:
                declared: Any = programs[name].as_plain()
                calls.append(Call(target, name, authority=authority, token=token, **declared))
            crew = Crew(calls, calls[0].shake)
            failures: list[BaseException] = []

            def live(circuit: Circuit) -> None:
                try:
                    with crew.participant(circuit) as participant:
                        play(programs[circuit.name], participant)
                except BaseException as error:
                    failures.append(error)

            crew.run(live)
            for failure in failures:
                raise failure

        dealt = [list(programs)[first::crews] for first in range(crews)]
        return [Strand(lambda names=names: work(names), "crew") for names in dealt if names]  # type: ignore[misc]

    return join


def run_over_sockets(
    federation: Federation,
    address: str = "tcp://127.0.0.1:0",
    *,
    client: Callable[..., list[Strand[None]]] = join_blocking,
    paired: bool = False,
    order: int | None = None,
    steps: int | None = None,
    pace: float | None = None,
    token: str | None = None,
    limits: Limits | None = None,
    certificate: tuple[Path, Path] | None = None,
    within_s: float = PATIENCE_S,
) -> FederationOutcome:
    """Run a federation with a server and clients.

    With `paired`, clients are connected within the process; with `order`, a number, they are started in another order;
    with `steps`, the server's barrier is moved on in steps of so many nanoseconds.
    """
    programs = dict(federation.programs)
    if order is not None:
        names = list(programs)
        Random(order).shuffle(names)
        programs = {name: programs[name] for name in names}
    pem, key = certificate if certificate is not None else (None, None)
    server = Server(federation.plan(), address, certificate=pem, key=key, pace=pace, token=token, limits=limits)
    with server:
        if steps is not None:
            server.hold_at(0)
        target = server if paired else str(server.address)
        uninvited = {name: programs.pop(name) for name in list(programs) if name == "never"}
        strands = client(target, uninvited, pem, token) if uninvited else []
        # Who isn't expected, and comes when all is over, is turned away: so it has to be there before.
        if uninvited:
            eventually(lambda: in_server(server, lambda: [s for s in server.host.sessions.values() if s.joining]))
        strands += client(target, programs, pem, token)
        if steps is not None:
            _move_barrier(server, steps)
        outcome = server.wait(within_s)
        for strand in strands:
            strand.result()
    return outcome


def _move_barrier(server: Server, step: int) -> None:
    """Move the barrier on step by step, and take it away in the end."""
    for barrier in range(0, 300 * MS, step):
        moved = threading.Event()
        server.hold_at(barrier)
        server.order(moved.set)
        while not moved.wait(0.05):
            if server.host.over:
                return
    server.hold_at(FOREVER)


# --- Certificates ---

_REQUEST = """
[req]
distinguished_name = name
x509_extensions = extensions
prompt = no
[name]
CN = Worldline tests
[extensions]
basicConstraints = critical, CA:TRUE
keyUsage = critical, digitalSignature, keyCertSign
subjectKeyIdentifier = hash
subjectAltName = %s
"""


def make_certificate(directory: Path, names: str = "IP:127.0.0.1, DNS:localhost") -> tuple[Path, Path]:
    """Make a certificate for this machine that trusts itself, and its key; they are of no use to anybody else."""
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("there is no openssl command to make a certificate with")
    request, certificate, key = (directory / name for name in ("request.cnf", "certificate.pem", "key.pem"))
    request.write_text(_REQUEST % names)
    command = [openssl, "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    command += ["-days", "2", "-config", str(request), "-keyout", str(key), "-out", str(certificate)]
    subprocess.run(command, check=True, capture_output=True, timeout=PATIENCE_S)
    return certificate, key
