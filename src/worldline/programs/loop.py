"""asyncio's own event loop on a computer: everything in it is stock but what depends on addresses in memory.

Sets of tasks and futures are iterated in the order of hashes, which by default come from where an object lies in
memory. Here they are numbers, in the order in which they are first needed. Tasks are named by the computer's count, not
the process's.

A computer's `choose_next` is the place for other orders: it is given the steps of tasks that are ready, in asyncio's
own order, and returns which one runs.
"""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import suppress
from typing import Any

from worldline.federation.participant.participant import Participant
from worldline.federation.participant.program import is_debugger_quit
from worldline.programs.computer import Choose, Computer, ProgramEnd
from worldline.programs.reals import here
from worldline.programs.sockets import getaddrinfo

_Stock: Any = asyncio.SelectorEventLoop


def _number(self: Any) -> int:
    """Return the hash of a task or future: a number that it gets when it is first asked for."""
    try:
        found: int = self._number
    except AttributeError:
        found = self._number = object.__hash__(self) if here.computer is None else here.computer.draws.count()
    return found


class _NumberedTask(asyncio.Task):  # type: ignore[type-arg]
    __slots__ = ("_number",)
    __hash__ = _number


class _NumberedFuture(asyncio.Future):  # type: ignore[type-arg]
    __slots__ = ("_number",)
    __hash__ = _number


for _kind, _name in ((_NumberedTask, "Task"), (_NumberedFuture, "Future")):  # As their reprs, and asyncio's log, say.
    _kind.__module__, _kind.__name__, _kind.__qualname__ = "_asyncio", _name, _name


class ChosenOrder(deque):  # type: ignore[type-arg]
    """The callbacks that are ready. Where a task's step comes next, it is chosen which of the steps that are ready.

    Other callbacks stay where they are: asyncio's own rely on the order among them.
    """

    def __init__(self, choose: Choose) -> None:
        super().__init__()
        self._choose = choose

    def popleft(self) -> Any:
        if len(self) < 2 or not _is_step(self[0]):
            return super().popleft()
        steps = [place for place, handle in enumerate(self) if _is_step(handle)]
        if len(steps) < 2:
            return super().popleft()
        place = steps[self._choose([self[each] for each in steps])]
        taken = self[place]
        del self[place]
        return taken


def turns_of(participant: Participant) -> Choose | None:
    """Return what chooses between steps by draws of a participant, if its run's table says how."""
    turn = participant.turns()
    return None if turn is None else lambda steps: turn(tuple(map(_named, steps)))


def _named(step: asyncio.Handle) -> str:
    """Name a task and what it does: ``Task-3 (serve)``."""
    task: Any = step._callback.__self__  # type: ignore[attr-defined]
    name = getattr(task.get_coro(), "__qualname__", "").rpartition("<locals>.")[2]
    return f"{task.get_name()} ({name})" if name else str(task.get_name())


def _is_step(handle: asyncio.Handle) -> bool:
    return isinstance(getattr(handle._callback, "__self__", None), asyncio.Task)  # type: ignore[attr-defined]


class Loop(_Stock):  # type: ignore[misc]
    """The event loop of a computer's program."""

    def __init__(self, selector: Any = None) -> None:
        super().__init__(selector)
        self._computer: Computer = here.computer
        self._computer.loops.append(self)
        if self._computer.choose_next is not None:
            self._ready = ChosenOrder(self._computer.choose_next)

    def time(self) -> float:
        return self._computer.monotonic_ns() / 1e9

    def create_future(self) -> Any:
        return _NumberedFuture(loop=self)

    def create_task(self, coro: Any, *, name: Any = None, context: Any = None, **named: Any) -> Any:
        if self._task_factory is not None:
            return super().create_task(coro, name=name, context=context, **named)
        self._check_closed()
        name = f"Task-{self._computer.draws.count_task()}" if name is None else name
        task: Any = _NumberedTask(coro, loop=self, name=name, context=context)
        if task._source_traceback:
            del task._source_traceback[-1]
        return task

    async def getaddrinfo(self, host: Any, port: Any, **named: Any) -> Any:
        return getaddrinfo(host, port, **named)  # It needs no thread: no look-up takes time.

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        computer, error = self._computer, context.get("exception")
        if computer.over is None and error is not None and is_debugger_quit(error):
            # Quitting the debugger in a callback ends the program, and not the callback alone.
            computer.over = ProgramEnd(error)
        elif computer.over is None:  # Otherwise it is the end that a callback has met.
            super().call_exception_handler(context)

    def abandon(self) -> None:
        """Let go of what is left when all is over, without a word about it."""
        everything = asyncio.tasks
        known = [getattr(everything, name, ()) for name in ("_scheduled_tasks", "_eager_tasks", "_all_tasks")]
        for task in [task for tasks in known for task in list(tasks) if task.get_loop() is self]:
            if not task.done():
                task._log_destroy_pending = False
                with suppress(BaseException):  # Whatever it says now, its computer is no more.
                    task.get_coro().close()
        for transport in list(self._transports.values()):
            transport._closing, transport._sock = True, None
        with suppress(BaseException):
            self.close()


def _made(cls: Any, *_: Any, **__: Any) -> Any:
    return object.__new__(Loop if cls is _Stock and here.computer is not None else cls)


def install() -> None:
    """Let programs' event loops be of this kind."""
    _Stock.__new__ = _made
