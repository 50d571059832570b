"""Threads of a program: who they are, and what is said when they wait for each other for ever."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import queue
import re
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from worldline import Federation, Machine, run
from worldline.model.errors import Stuck, UsageError


def alone(program: Callable[[], object], *faults: str) -> Any:
    return run(Federation({"m": Machine(program)}, faults=faults, until="9s"))


def two_locks() -> None:
    first, second = threading.Lock(), threading.RLock()

    def one() -> None:
        with first:
            time.sleep(1)
            second.acquire()

    def two() -> None:
        with second:
            time.sleep(1)
            first.acquire()

    threads = [threading.Thread(target=one), threading.Thread(target=two, name="Bob")]
    for each in threads:
        each.start()
    for each in threads:
        each.join()


def no_producer() -> None:
    with ThreadPoolExecutor(2) as pool:
        pool.submit(queue.Queue[int]().get).result()


def one_lock_twice() -> None:
    lock = threading.Lock()
    with lock, lock:
        pass


def left_behind() -> None:
    threading.Thread(target=threading.Event().wait, name="parked").start()


def lock_of_one_that_has_ended() -> None:
    lock = threading.RLock()
    thread = threading.Thread(target=lock.acquire)
    thread.start()
    thread.join()
    assert not lock.acquire(timeout=1)
    lock.acquire()


async def crossed_locks() -> None:
    locks = asyncio.Lock(), asyncio.Lock()

    async def take(one: int) -> None:
        async with locks[one]:
            await asyncio.sleep(1)
            await locks[1 - one].acquire()

    tasks = [asyncio.create_task(take(each)) for each in (0, 1)]
    assert tasks
    await asyncio.Event().wait()


async def empty_queue() -> None:
    async def take() -> None:
        await asyncio.Queue[int]().get()

    async with asyncio.TaskGroup() as group:
        group.create_task(take(), name="taker")
        await asyncio.to_thread(int)  # There is an idle thread then.


@pytest.mark.parametrize(
    ("program", "at", "says"),
    [
        (
            two_locks,
            1,
            (
                r"Thread-1 \(one\) waits for a lock that Bob holds, in test_threads.py, line 36; "
                r"Bob waits for a lock that Thread-1 \(one\) holds, in test_threads.py, line 41; "
                r"MainThread waits for Thread-1 \(one\) to end"
            ),
        ),
        (no_producer, 0, r"ThreadPoolExecutor-0_0 waits in Queue.get; MainThread waits in Future.result"),
        (one_lock_twice, 0, r"MainThread waits for a lock that MainThread holds"),
        (left_behind, 0, r"parked waits in Event.wait; MainThread waits for its other threads to end"),
        (lock_of_one_that_has_ended, 1, r"MainThread waits for a lock that Thread-1 \(acquire\) holds"),
        (
            crossed_locks,
            1,
            r"Task-1 \(crossed_locks\) waits in .*; Task-2 \(take\) waits in .*; Task-3 \(take\) waits in",
        ),
        (
            empty_queue,
            0,
            r"taker \(take\) waits in test_threads.py, line 89; Task-1 \(empty_queue\) waits in .*, line 91$",
        ),
    ],
    ids=lambda each: getattr(each, "__name__", ""),
)
def test_threads_that_wait_for_each_other_are_named(program: Callable[[], object], at: int, says: str) -> None:
    with pytest.raises(Stuck, match=rf"nothing can wake it any more: {says}") as stuck:
        alone(program)
    assert (stuck.value.participant, stuck.value.at) == ("m", at * 1_000_000_000)


def waits_again() -> None:
    lock = threading.Lock()
    lock.acquire()
    while True:
        with contextlib.suppress(Exception):
            lock.acquire()


def forks_again() -> None:
    while True:
        with contextlib.suppress(Exception):
            os.fork()
        with contextlib.suppress(Exception):
            time.sleep(1)


@pytest.mark.parametrize(
    ("program", "error"),
    [
        (waits_again, pytest.raises(Stuck, match="lock")),
        (forks_again, pytest.raises(UsageError, match="starts")),
    ],
    ids=lambda each: getattr(each, "__name__", ""),
)
def test_a_program_that_goes_on_after_errors_is_ended(program: Callable[[], object], error: Any) -> None:
    with error:
        alone(program)


class Everything:
    """Catches whatever is raised, as Twisted's main loop does."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> bool:
        return True


def wait_patiently() -> None:
    with contextlib.suppress(OSError):
        time.sleep(1)


def catch_everything_often() -> None:
    while True:
        try:
            while True:
                with Everything():
                    wait_patiently()
        except BaseException:
            pass


def catches_everything() -> None:
    while True:
        with Everything():
            catch_everything_often()


def catches_everything_in_a_thread() -> None:
    threading.Thread(target=catches_everything, daemon=True).start()
    catches_everything()


@pytest.mark.parametrize("program", [catches_everything, catches_everything_in_a_thread])
@pytest.mark.parametrize("faults", [(), ("2s kill m 1s",)])
def test_a_program_that_catches_everything_is_ended(program: Callable[[], object], faults: tuple[str, ...]) -> None:
    before = threading.active_count()
    trace = sys.gettrace()
    assert alone(program, *faults).now == 9_000_000_000
    assert threading.active_count() == before
    assert sys.gettrace() is trace


def woken_by_a_signal() -> None:
    woken = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: woken.set())
    woken.wait()


def killed_while_it_waits() -> None:
    threading.Event().wait()


def waits_for_others() -> None:
    with socket.create_server(("", 80)) as listener:
        threading.Thread(target=listener.accept, daemon=True).start()
        threading.Event().wait()


@pytest.mark.parametrize(
    ("program", "fault"),
    [
        (woken_by_a_signal, "2s signal m SIGTERM"),
        (killed_while_it_waits, "2s kill m"),
        (waits_for_others, "2s hang m 1s"),
    ],
)
def test_what_something_else_may_wake_is_no_such_wait(program: Callable[[], object], fault: str) -> None:
    alone(program, fault)


async def idle_task() -> None:
    await asyncio.Event().wait()


def until_interrupted() -> None:
    with contextlib.suppress(KeyboardInterrupt):
        threading.Event().wait()


def work_is_done() -> None:
    jobs = queue.Queue[int]()
    pool = ThreadPoolExecutor(2)
    pool.submit(jobs.put, 1).result()
    threading.Thread(target=threading.Event().wait, daemon=True).start()
    while True:
        jobs.get()


def own_pipe() -> None:
    near, far = socket.socketpair()
    assert far
    near.recv(1)


@pytest.mark.parametrize(
    ("program", "waits"),
    [
        (idle_task, r"Task-1 \(idle_task\) waits"),
        (until_interrupted, r"MainThread waits in Event.wait"),
        (work_is_done, r"Thread-1 \(wait\) waits in Event.wait; MainThread waits in Queue.get"),
        (own_pipe, r"MainThread waits for one of its threads"),
    ],
)
def test_an_idle_program_goes_on_to_the_end_and_says_why(
    program: Callable[[], object], waits: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert alone(program).now == 9_000_000_000
    said = capsys.readouterr().err
    assert re.fullmatch(rf"nothing can wake it any more: {waits},? in test_threads\.py, line \d+\n", said)


def test_a_program_that_others_may_wake_is_not_said_to_be_idle(capsys: pytest.CaptureFixture[str]) -> None:
    alone(waits_for_others)
    assert capsys.readouterr() == ("", "")


SHARED: dict[str, Any] = {}


def lock_up() -> None:
    SHARED["lock"] = threading.Lock()
    SHARED["lock"].acquire()
    time.sleep(9)


@pytest.mark.parametrize("use", ["acquire", "release"])
def test_a_lock_that_programs_share_is_refused_by_name(use: str) -> None:
    def program() -> None:
        time.sleep(1)
        getattr(SHARED["lock"], use)()

    with pytest.raises(UsageError, match=r"b at 1s: it shares a lock with the program of a, .*--executor unix"):
        run(Federation({"a": Machine(lock_up), "b": Machine(program)}, until="9s"))


# --- Who they are ---


def test_threads_have_the_same_names_and_numbers_beside_other_machines() -> None:
    seen: dict[str, list[Any]] = {}

    def program() -> None:
        found = seen.setdefault(socket.gethostname(), [])

        def look() -> None:
            me = threading.current_thread()
            record = logging.getLogger("x").makeRecord("x", logging.INFO, "", 0, "", (), None)
            found.append((me.name, me.daemon, me.ident, me.native_id, record.thread, record.threadName))
            assert me.ident == threading.get_ident()
            assert me is threading.current_thread()
            found.append([each.name for each in threading.enumerate()])

        look()
        assert threading.current_thread() is threading.main_thread()
        assert threading.get_native_id() == os.getpid()
        threads = [threading.Thread(target=look) for _ in range(2)]
        for each in threads:
            each.start()
        with ThreadPoolExecutor(1) as pool:
            pool.submit(look).result()
        for each in threads:
            each.join()
        assert threading.active_count() == 1

    run(Federation({"b": Machine(program)}, until="9s"))
    alone_then = seen.pop("b")
    run(Federation({name: Machine(program) for name in "ab"}, until="9s"))
    names = [[each[0], each[1], *each[3:4]] if isinstance(each, tuple) else each for each in alone_then]
    assert names[0] == ["MainThread", False, 1_000]
    assert names[2] == ["Thread-1 (look)", False, 1_001]
    assert names[3] == ["MainThread", "Thread-1 (look)"]
    for name in "ab":
        others = [[each[0], each[1], *each[3:4]] if isinstance(each, tuple) else each for each in seen[name]]
        assert others == names
    idents = [each[2] for name in "ab" for each in seen[name] if isinstance(each, tuple)]
    assert len(set(idents)) == len(idents)


def test_sets_of_threads_are_in_order() -> None:
    seen: list[list[str]] = []

    def program() -> None:
        made = {threading.Thread(name=f"t{number}"): None for number in range(7)}
        seen.append([each.name for each in set(made)])

    run(Federation({name: Machine(program) for name in "ab"}))
    assert seen == [[f"t{number}" for number in range(7)]] * 2


def test_a_program_ends_when_its_threads_have_ended() -> None:
    lines: list[float] = []

    def program() -> None:
        threading.Thread(target=lambda: (time.sleep(3), lines.append(time.monotonic()))).start()

    alone(program)
    assert lines == [3.0]
