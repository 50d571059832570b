"""Names the threads and tasks of a program that wait for each other for ever.

A wait that only the program itself can end, for a lock, a queue or another thread, says so (`Inside`). When all of its
threads are in such a wait, without a time limit, nothing that may still happen in the run wakes any of them. That alone
is no mistake: a program that waits for an event or a queue may be idle, until Ctrl-C. It is a deadlock if one of its
threads or tasks owes something to another: a lock that it holds, its result, or its end.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Iterable, Iterator
from types import FrameType
from typing import Any

from worldline.model.blame import SourceLine, own_line_in

Inside = Callable[[], str | None]
"""Says what a wait is for that only the program can end: a text, or an empty one; None if others can end it, too."""

_SHOWN_MAX = 12


def is_deadlock(waits: Iterable[tuple[FrameType | None, str]], loops: Iterable[Any]) -> bool:
    """Whether a thread or task waits for what another, or it itself, will never let go of or finish.

    A thread's wait is where it is, and for what.
    """
    if any(_waits_for_debtor(*each) for each in waits):
        return True
    return any(_task_waits_for_debtor(task) for loop in loops for task in asyncio.all_tasks(loop))


def _waits_for_debtor(frame: FrameType | None, what: str) -> bool:
    if (call := _waiting_call(frame)) is not None:
        return call.f_globals.get("__name__") == _OF_FUTURES
    return what not in (ANY_TASK, ANY_THREAD)


def _task_waits_for_debtor(task: Any) -> bool:
    awaited = task._fut_waiter
    if isinstance(awaited, asyncio.Task) or getattr(awaited, "_children", None):  # Those of `gather`.
        return True
    return any(
        (frame.f_globals.get("__name__"), frame.f_code.co_qualname) in _OF_TASKS for frame in _frames(task.get_coro())
    )


ANY_TASK, ANY_THREAD = "one of its tasks or threads", "one of its threads"
"""What a wait is for that any of them could end, by writing to a pipe."""

_OF_FUTURES = "concurrent.futures._base"
_OF_TASKS = {
    ("asyncio.locks", "Lock.acquire"),
    ("asyncio.taskgroups", "TaskGroup.__aexit__"),
    ("asyncio.tasks", "_wait"),
    ("asyncio.threads", "to_thread"),
}


def waits_in_words(
    threads: Iterable[tuple[str, FrameType | None, str]],
    main: tuple[FrameType, str],
    loops: Iterable[Any],
    *,
    is_whole: bool,
) -> str:
    """Say of tasks at which line they wait, and of threads, each with its name and where it is, for what.

    The main thread comes last; without its line, if it isn't to be whole: an error has that itself. Where it runs
    tasks, they stand for it.
    """
    tasks = [line for loop in loops for line in _tasks_in_words(loop)]
    found = tasks + [_thread_in_words(*each) for each in threads if not _is_idle(each[1])]
    if not tasks:
        found.append(_thread_in_words("MainThread", *main) if is_whole else f"MainThread waits {_waiting(*main)}")
    more = len(found) - _SHOWN_MAX
    return "; ".join([*([f"{more} more"] if more > 0 else []), *found[-_SHOWN_MAX:]])


def _thread_in_words(name: str, frame: FrameType | None, what: str) -> str:
    line = own_line_in(frame)
    return f"{name} waits {_waiting(frame, what)}{'' if line is None else f', in {line}'}"


def _waiting(frame: FrameType | None, what: str) -> str:
    call = _waiting_call(frame)
    return f"for {what}" if call is None else f"in {call.f_code.co_qualname}"


def _waiting_call(frame: FrameType | None) -> FrameType | None:
    """Return the call of Python's that a thread waits in, if it isn't a lock's own or a join, such as Queue.get."""
    call: FrameType | None = None
    while frame is not None:
        name = frame.f_code.co_qualname
        if frame.f_globals.get("__name__") in _WAITING and not name.startswith(("Thread.", "_RLock.", "_PyRLock.")):
            call = frame
        elif call is not None:
            break
        frame = frame.f_back
    return call


def _is_idle(frame: FrameType | None) -> bool:
    """Whether a thread of a pool waits for something to do."""
    while frame is not None and frame.f_globals.get("__name__") != "concurrent.futures.thread":
        frame = frame.f_back
    return frame is not None and frame.f_code.co_name == "_worker"


_WAITING = ("threading", "queue", _OF_FUTURES)


def _tasks_in_words(loop: Any) -> Iterator[str]:
    for task in sorted(asyncio.all_tasks(loop), key=lambda each: _natural(each.get_name())):
        frame = _awaiting(task.get_coro())
        name = getattr(task.get_coro(), "__qualname__", "").rpartition("<locals>.")[2]
        line = None if frame is None else SourceLine(frame.f_code.co_filename, frame.f_lineno, "")
        yield f"{task.get_name()} ({name}) waits in {line}" if line else f"{task.get_name()} waits"


def _natural(name: str) -> tuple[int, str]:
    return len(name), name


def _frames(coroutine: Any) -> list[FrameType]:
    """Return the frames in which a coroutine waits, the innermost last."""
    frames: list[FrameType] = []
    while coroutine is not None:
        frame = getattr(coroutine, "cr_frame", None) or getattr(coroutine, "gi_frame", None)
        if frame is None:
            break
        frames.append(frame)
        coroutine = getattr(coroutine, "cr_await", None) or getattr(coroutine, "gi_yieldfrom", None)
    return frames


def _awaiting(coroutine: Any) -> FrameType | None:
    """Return the innermost frame of the author's own code in which a coroutine waits."""
    frames = _frames(coroutine)
    own = [frame for frame in frames if not _is_pythons(frame)]
    return own[-1] if own else frames[-1] if frames else None


def _is_pythons(frame: FrameType) -> bool:
    return str(frame.f_globals.get("__name__")).partition(".")[0] in sys.stdlib_module_names
