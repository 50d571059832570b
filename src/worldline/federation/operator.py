"""An operator's end of a connection to a run: it asks, and waits for the answer.

The server answers between two turns, within a moment. If it doesn't, its process is looked at: it may be stopped, or
busy with a participant that lives in it.
"""

from __future__ import annotations

import os
import socket
import ssl
import time
from pathlib import Path
from types import TracebackType
from typing import Self

from msgspec import structs

from worldline.federation.address import Address, parse_address
from worldline.federation.participant.call import Greeting, recognized, refusal
from worldline.federation.peer_process import condition_of, process_of
from worldline.federation.registry import token_at
from worldline.federation.sockets import broken, client_context, dial, untrusted
from worldline.lock import OPERATOR
from worldline.lock.why.reasons import Situation
from worldline.model import LossError, UsageError
from worldline.wire.codec import Frames
from worldline.wire.handshake import NONCE_SIZE, OVER, Refused
from worldline.wire.operator import (
    AskSituation,
    EndRun,
    OperatorAnswer,
    OperatorWord,
    OrderDone,
    OrderRefused,
    OrderTaken,
    PauseRun,
    ResumeRun,
    RunOver,
    SituationTold,
    StepRun,
    decode_operator_answer,
    operator_frame,
)

_ANSWER_S = 10.0
_DIAL_S = 2.0
_WAKE_S = 0.5
_READ = 2**16


class Operator:
    """A connection to a run, by its server's address. Use it in a `with` statement.

    Without a `token`, it is looked up: a run of this user's on this machine has left it where only this user finds it.
    Each method returns a `RunOver` instead if the run has ended, and raises a `UsageError` if it can't be done.
    `process` is the server's, if that is known.
    """

    def __init__(
        self,
        address: str | Address,
        *,
        token: str | None = None,
        authority: Path | str | None = None,
        certificate: Path | str | None = None,
        key: Path | str | None = None,
        process: int | None = None,
    ) -> None:
        self.address = parse_address(address)
        tls = client_context(authority, certificate, key) if self.address.kind == "tls" else None
        self._socket = dial(self.address, _DIAL_S)
        self._process = process
        self._frames = Frames()
        self._bodies: list[bytes] = []
        self._over: RunOver | None = None
        self._number = 0  # Of the last word.
        try:
            if tls is not None:
                self._socket = self._encrypted(tls)
            greeting = Greeting("", OPERATOR, token or token_at(self.address), os.urandom(NONCE_SIZE))
            self._socket.sendall(greeting.hello(self._challenge()))
            try:
                greeting.settle(self._body(_ANSWER_S, time.monotonic() + _ANSWER_S))
            except UsageError as error:
                if error.facts.get("code") == OVER:
                    self._over = RunOver(None, None)
                else:
                    raise
        except BaseException:
            self._socket.close()
            raise

    def __repr__(self) -> str:
        return f"<Operator of {self.address}>"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._socket.close()

    def situation(self, *, links: bool = False) -> Situation | RunOver:
        """Look at the run."""
        answer = self._ask(AskSituation(links))
        return answer.situation if isinstance(answer, SituationTold) else self._only_over(answer)

    def pause(self) -> int | RunOver:
        """Hold all participants; return the time at which they are held."""
        answer = self._ask(PauseRun())
        return answer.at or 0 if isinstance(answer, OrderTaken) else self._only_over(answer)

    def resume(self) -> RunOver | None:
        """Let all participants go on."""
        answer = self._ask(ResumeRun())
        return None if isinstance(answer, OrderTaken) else self._only_over(answer)

    def step(self, *, by: int | None = None, to: int | None = None, within_s: float | None = None) -> int | RunOver:
        """Let all run so far, or up to that time, or to where a participant acts next; return where all stand.

        If that takes longer than `within_s`, a `LossError` says so; they go on to there all the same.
        """
        answer = self._ask(StepRun(by, to), within_s=within_s)
        return answer.at if isinstance(answer, OrderDone) else self._only_over(answer)

    def end(self, *, at: int | None = None, now: bool = False) -> int | RunOver | None:
        """End the run in good order, at that time or as soon as possible, and return when; or break it off now."""
        answer = self._ask(EndRun(at, now))
        return answer.at if isinstance(answer, OrderTaken) else self._only_over(answer)

    def last_word(self, within_s: float) -> RunOver:
        """Wait for the end of the run."""
        return self._only_over(self._answer(within_s))

    def _ask(self, word: OperatorWord, *, within_s: float | None = _ANSWER_S) -> OperatorAnswer:
        if self._over is not None:
            return self._over
        try:
            self._number += 1
            self._socket.sendall(operator_frame(structs.replace(word, number=self._number)))
        except OSError as error:
            return self._last(broken(error))
        answer = self._answer(within_s)
        if isinstance(answer, OrderRefused):
            raise UsageError(answer.reason, advice=answer.advice)
        return answer

    def _answer(self, within_s: float | None) -> OperatorAnswer:
        deadline = None if within_s is None else time.monotonic() + within_s
        while True:  # What comes too late answers a word whose answer isn't waited for any more.
            answer = decode_operator_answer(self._body(within_s, deadline))
            if isinstance(answer, Refused | RunOver) or answer.number == self._number:
                break
        if isinstance(answer, Refused):
            raise refusal(answer, "an operator")
        if isinstance(answer, RunOver):
            self._over = answer
        return answer

    def _last(self, problem: str) -> OperatorAnswer:
        """Return what the server has said last, if it has hung up with a word."""
        try:
            return self._answer(_WAKE_S)
        except LossError as error:
            raise self._gone(problem) from error

    def _gone(self, problem: str) -> LossError:
        return LossError(f"the server at {self.address} has gone: {problem}")

    def _only_over(self, answer: OperatorAnswer) -> RunOver:
        if not isinstance(answer, RunOver):
            raise LossError(f"the server at {self.address} answers something else: {type(answer).__name__}")
        return answer

    def _body(self, within_s: float | None, deadline: float | None) -> bytes:
        """Return the next frame that isn't a heartbeat."""
        while True:
            while self._frames.cut(self._bodies):
                if body := self._bodies.pop():
                    return body
            left = _WAKE_S if deadline is None else deadline - time.monotonic()
            if left <= 0:
                raise self._silent(within_s or 0.0)
            try:
                self._socket.settimeout(min(_WAKE_S, left))
                data = self._socket.recv(_READ)
            except TimeoutError:
                continue
            except OSError as error:
                raise self._gone(broken(error)) from error
            if not data:
                raise self._gone("it closed the connection")
            self._frames.push([data])

    def _challenge(self) -> bytes:
        """Return the server's first word, which comes at once, unless it waits for ours."""
        try:
            return self._body(_ANSWER_S, time.monotonic() + _ANSWER_S)
        except LossError as error:
            if self.address.kind != "tcp":
                raise
            raise LossError(error.problem, advice=f"perhaps it speaks TLS: tls{str(self.address)[3:]}") from error

    def _silent(self, seconds: float) -> LossError:
        process = self._process or process_of(self._socket)
        condition = condition_of(process)
        known = f": its process {process} is {condition}" if condition else ""
        return LossError(f"the server at {self.address} hasn't answered for {seconds:.0f} seconds{known}")

    def _encrypted(self, tls: ssl.SSLContext) -> socket.socket:
        try:
            return tls.wrap_socket(self._socket, server_hostname=self.address.place)
        except OSError as error:
            is_distrust = isinstance(error, ssl.SSLCertVerificationError)
            raise (None if is_distrust else recognized(self.address)) or untrusted(error) from error
