"""Machines in one process: what programs see in faults, of time and chance, and what they can't do."""

from __future__ import annotations

import asyncio
import atexit
import ctypes
import json
import os
import queue
import random
import select
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
import time
import urllib.request
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from worldline import Federation, Machine, Network, Program, Rule, WorldlineError, clock, link, partition, run
from worldline.errors import ConfigurationError
from worldline.federation.inprocess.checker import check
from worldline.history.observer import LOG, Observer

LINES: list[Any] = []


@pytest.fixture(autouse=True)
def _no_lines() -> None:
    LINES.clear()


def say(*what: Any) -> None:
    LINES.append(what if len(what) > 1 else what[0])


def alone(program: Callable[[], Any], **given: Any) -> list[Any]:
    run(Federation({"a": Machine(program)}, **given))
    return list(LINES)


# --- What programs see in faults ---


async def counting_server() -> None:
    count = 0

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal count
        while line := await reader.readline():
            count += 1
            writer.write(b"%d %s" % (count, line))
        writer.close()

    server = await asyncio.start_server(handle, port=80)
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    await stop.wait()
    server.close()
    say("stopped")


async def asking_client() -> None:
    while True:
        try:
            async with asyncio.timeout(0.5):
                reader, writer = await asyncio.open_connection("server", 80)
            with closing(writer):
                while True:
                    writer.write(b"ask\n")
                    async with asyncio.timeout(0.5):
                        if not await reader.readline():
                            raise EOFError  # noqa: TRY301 - as a client would
                    await asyncio.sleep(0.1)
        except (OSError, EOFError, TimeoutError) as error:
            say(round(time.monotonic(), 1), type(error).__name__)
            await asyncio.sleep(0.5)


async def patient_client() -> None:
    reader, writer = await asyncio.open_connection("server", 80)
    with closing(writer):
        try:
            while True:
                writer.write(b"ask\n")
                if not await reader.readline():
                    raise EOFError  # noqa: TRY301 - as a client would
                await asyncio.sleep(0.1)
        except (OSError, EOFError) as error:
            say(round(time.monotonic(), 1), type(error).__name__)


def seen(client: Callable[[], Any], *faults: str, **given: Any) -> list[Any]:
    federation = Federation(
        {"server": Machine(counting_server), "client": Machine(client)}, faults=faults, until="5s", **given
    )
    run(federation)
    return list(LINES)


def test_a_kill_closes_connections_and_new_ones_are_refused_until_the_restart() -> None:
    lines = [(2.0, "EOFError"), (2.5, "ConnectionRefusedError")]
    assert seen(asking_client, "2s kill server 1s") == lines


def test_only_a_machines_program_can_be_killed() -> None:
    federation = Federation({"a": Program(print), "m": Machine(counting_server)}, faults=("1s kill a",), until="2s")
    with pytest.raises(ConfigurationError, match=r"1s kill a: only the program of a machine"):
        run(federation)


def test_a_crash_is_silence_and_then_a_reset() -> None:
    assert seen(asking_client, "2s crash server 1s") == [(2.5, "TimeoutError")]


def test_a_patient_client_is_reset_at_the_first_repetition_after_the_recovery() -> None:
    assert seen(patient_client, "2s crash server 1s") == [(3.4, "ConnectionResetError")]


@pytest.mark.parametrize("fault", ["2s hang server 1s", "2s slow server 100ms 1s"])
def test_a_hang_and_slowness_are_only_delay(fault: str) -> None:
    assert seen(patient_client, fault) == []


def test_a_partition_is_only_delay_for_the_patient() -> None:
    cut = Network(outages=tuple(partition(["client"], ["server"], "2s", "3s")))
    assert seen(patient_client, network=cut) == []
    assert seen(asking_client, network=cut)[0] == (2.5, "TimeoutError")


def test_a_signal_reaches_the_handler_of_the_event_loop() -> None:
    lines = seen(asking_client, "2s signal server SIGTERM")
    assert lines[:3] == ["stopped", (2.0, "EOFError"), (2.5, "ConnectionRefusedError")]


def test_a_signal_without_a_handler_ends_the_program() -> None:
    def program() -> None:
        try:
            time.sleep(10)
        finally:
            say(time.monotonic())

    assert alone(program, faults=("1s signal a SIGTERM",)) == [1.0]


def test_ctrl_c_is_an_exception_and_handlers_run_where_a_program_waits() -> None:
    def program() -> None:
        signal.signal(signal.SIGUSR1, lambda number, _: say(number, time.monotonic()))
        try:
            time.sleep(10)
        except KeyboardInterrupt:
            say("interrupted", time.monotonic())

    faults = ("1s signal a SIGUSR1", "2s signal a SIGINT")
    assert alone(program, faults=faults) == [(signal.SIGUSR1, 1.0), ("interrupted", 2.0)]


def test_a_fault_may_wait_for_a_message() -> None:
    assert seen(asking_client, "server sends tcp/client 3: kill server 1s")[0] == (0.2, "EOFError")


@pytest.mark.parametrize("text", ["1s kill", "1s signal a", "1s signal a SIGFOO", "1s kill a SIGTERM", "1s restart a"])
def test_faults_that_make_no_sense_are_refused(text: str) -> None:
    with pytest.raises(ConfigurationError):
        Federation({"a": Machine(lambda: None)}, faults=(text,)).plan()


@pytest.mark.parametrize(
    ("signal_name", "advice"),
    [("SIGFOO", '(write "2s'), ("SIGTREM", "(did you mean 'SIGTERM'? Write"), ("hup", "(did you mean 'SIGHUP'?")],
)
def test_a_signal_is_suggested_that_is_near_and_no_other(signal_name: str, advice: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        Federation({"a": Machine(lambda: None)}, faults=(f"1s signal a {signal_name}",)).plan()
    assert f"there is no signal '{signal_name}' {advice}" in str(refused.value)


def test_what_was_written_to_the_disk_outlives_a_crash_and_no_run(tmp_path: Path) -> None:
    (tmp_path / "count").write_text("5")

    def program() -> None:
        count = int(Path("count").read_text()) + 1
        Path("count").write_text(str(count))
        say(count, time.monotonic())
        time.sleep(10)

    for _ in range(2):
        LINES.clear()
        run(Federation({"a": Machine(program, folder=tmp_path)}, faults=("1s crash a 1s",), until="5s"))
        assert LINES == [(6, 0.0), (7, 2.0)]
    assert (tmp_path / "count").read_text() == "5"


# --- Time and chance ---


def test_time_is_simulated_and_starts_in_2026() -> None:
    def program() -> None:
        time.sleep(1.5)
        say(time.time(), time.monotonic(), time.perf_counter_ns())
        say(datetime.now(UTC).isoformat(), datetime.now().isoformat(), time.strftime("%H:%M:%S"))
        say(isinstance(datetime.now(), datetime), isinstance(datetime.fromtimestamp(0, UTC), datetime))

    shown = "2026-01-01T00:00:01.500000"
    assert alone(program) == [
        (1767225601.5, 1.5, 1_500_000_000),
        (f"{shown}+00:00", shown, "00:00:01"),
        (True, True),
    ]


def test_the_clock_on_the_wall_is_the_participants_own() -> None:
    def program() -> None:
        time.sleep(1)
        say(time.time(), time.monotonic())

    run(Federation({"a": Machine(program, clock=clock(offset="2s"))}))
    assert LINES == [(1767225603.0, 1.0)]


def test_chance_is_the_seeds_and_the_participants() -> None:
    def program() -> None:
        say(
            random.random(),
            random.Random().random(),
            random.SystemRandom().random(),
            os.urandom(4),
            str(uuid.uuid4()),
            str(uuid.uuid1()),
            random.Random(1).random(),
        )

    both = Federation({"a": Machine(program), "b": Machine(program)}, seed=1)
    run(both)
    run(both)
    run(Federation({"a": Machine(program)}, seed=2))
    one, other, again, _, another = LINES
    assert one == again
    assert all(x != y for x, y in zip(one[:-1], other[:-1], strict=True))
    assert all(x != y for x, y in zip(one[:-1], another[:-1], strict=True))
    assert one[-1] == other[-1] == random.Random(1).random()


def test_outside_of_machines_everything_is_real() -> None:
    alone(lambda: None)
    assert abs(time.time() - datetime.now(UTC).timestamp()) < 5
    with socket.create_server(("127.0.0.1", 0)) as listener, socket.create_connection(listener.getsockname()) as client:
        client.sendall(b"real")
        accepted, _ = listener.accept()
        with accepted:
            assert accepted.recv(10) == b"real"
    thread = threading.Thread(target=lambda: say("real"))
    thread.start()
    thread.join()
    assert LINES == ["real"]
    assert random.random() != random.random()


def test_computing_takes_no_time_but_looking_for_ever_does() -> None:
    def program() -> None:
        sum(range(100_000))
        say(time.monotonic())
        while time.monotonic() < 0.005:
            pass
        say(0.005 <= time.monotonic() < 0.01)

    assert alone(program) == [0.0, True]


def test_a_loop_that_polls_sees_time_pass() -> None:
    async def program() -> None:
        done = asyncio.create_task(asyncio.sleep(0.02))
        while not done.done():
            await asyncio.sleep(0)
        say(0.02 <= time.monotonic() < 0.03)

    assert alone(program) == [True]


# --- Threads ---


def test_threads_and_jobs_take_turns() -> None:
    def work(seconds: float) -> tuple[float, float]:
        time.sleep(seconds)
        return seconds, time.monotonic()

    async def program() -> None:
        jobs = [asyncio.to_thread(work, 0.3), asyncio.to_thread(work, 0.1), asyncio.sleep(0.2, "slept")]
        say(await asyncio.gather(*jobs))
        with ThreadPoolExecutor(2) as pool:
            say(list(pool.map(work, (0.3, 0.1, 0.1))))

    assert alone(program) == [[(0.3, 0.3), (0.1, 0.1), "slept"], [(0.3, 0.6), (0.1, 0.4), (0.1, 0.5)]]


def test_threads_have_queues_locks_and_their_own_names() -> None:
    waiting: queue.Queue[int | None]

    def consume() -> None:
        while (found := waiting.get()) is not None:
            with lock:
                say(found, time.monotonic(), threading.current_thread().name)

    def program() -> None:
        nonlocal waiting, lock
        waiting, lock = queue.Queue(), threading.Lock()
        thread = threading.Thread(target=consume, name="consumer")
        thread.start()
        for number in range(2):
            waiting.put(number)
            time.sleep(0.1)
        with lock:
            waiting.put(2)
            time.sleep(0.1)
        waiting.put(None)
        thread.join()
        say(thread.is_alive(), threading.current_thread() is threading.main_thread())

    lock: Any = None
    expected = [(0, 0.0, "consumer"), (1, 0.1, "consumer"), (2, 0.3, "consumer"), (False, True)]
    assert [tuple(round(x, 3) if type(x) is float else x for x in line) for line in alone(program)] == expected


def test_a_pools_thread_can_be_joined_after_the_run_as_the_process_does_when_it_ends() -> None:
    async def program() -> None:
        say(await asyncio.to_thread(threading.current_thread))
        await asyncio.sleep(10)

    (thread,) = alone(program, until="1s")
    thread.join()
    assert not thread.is_alive()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_thread_that_raises_ends_alone() -> None:
    def program() -> None:
        thread = threading.Thread(target=lambda: 1 / 0)
        thread.start()
        thread.join()
        say("on")

    assert alone(program) == ["on"]


# --- Schedules ---


def test_every_schedule_of_an_exchange_gives_one_history() -> None:
    def server() -> None:
        made, _ = socket.create_server(("", 80)).accept()
        while data := made.recv(100):
            made.sendall(data)
        made.close()

    async def client() -> None:
        reader, writer = await asyncio.open_connection("server", 80)
        writer.write(b"hello\n")
        await reader.readline()
        writer.close()

    report = check(Federation({"server": Machine(server), "client": Machine(client)}))
    assert report.complete
    assert report.divergence is None
    assert report.schedules > 10


# --- What there is to wait with ---


def test_select_and_poll_wait_for_sockets() -> None:
    def program() -> None:
        one, other = socket.socketpair()
        say(select.select([one], [], [], 0.5)[0], time.monotonic())
        other.send(b"x")
        say(select.select([one], [], [], 0.5)[0] == [one], time.monotonic())
        poll = select.poll()
        poll.register(one, select.POLLIN)
        say(poll.poll(100) == [(one.fileno(), select.POLLIN)])
        one.recv(1)
        say(poll.poll(100), round(time.monotonic(), 3))

    assert alone(program) == [([], 0.5), (True, 0.5), True, ([], 0.6)]


def test_names_are_hosts_and_others_are_unknown() -> None:
    def program() -> None:
        say(socket.gethostname(), socket.gethostbyname("b"), socket.getfqdn("10.0.0.2"))
        try:
            socket.getaddrinfo("nobody", 80)
        except socket.gaierror as error:
            say(error.errno == socket.EAI_NONAME)

    run(Federation({"a": Machine(program), "b": Machine(lambda: None)}))
    assert LINES == [("a", "10.0.0.2", "b"), True]


def test_a_broadcast_reaches_all() -> None:
    def hear() -> None:
        with socket.socket(type=socket.SOCK_DGRAM) as heard:
            heard.bind(("", 99))
            say(socket.gethostname(), heard.recvfrom(10))

    def tell() -> None:
        with socket.socket(type=socket.SOCK_DGRAM) as telling:
            telling.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
            telling.sendto(b"all", ("<broadcast>", 99))

    run(Federation({"a": Machine(hear), "b": Machine(hear), "c": Machine(tell)}))
    assert LINES == [("a", (b"all", ("10.0.0.3", 49152))), ("b", (b"all", ("10.0.0.3", 49152)))]


def test_links_of_a_kind_lose_datagrams_and_no_connections() -> None:
    def hear() -> None:
        with socket.socket(type=socket.SOCK_DGRAM) as heard, socket.create_server(("", 80)) as listener:
            heard.bind(("", 99))
            heard.settimeout(1)
            count = 0
            try:
                while heard.recv(10):
                    count += 1
            except TimeoutError:
                say(0 < count < 100)
            say(len(listener.accept()[0].recv(100, socket.MSG_WAITALL)), time.monotonic() < 1.2)

    def tell() -> None:
        with socket.socket(type=socket.SOCK_DGRAM) as telling:
            for _ in range(100):
                telling.sendto(b"x", ("a", 99))
        with socket.create_connection(("a", 80)) as told:
            told.sendall(bytes(100))

    lossy = Network(rules=(Rule(topic="udp/*", link=link("1ms", loss=0.5)),))
    run(Federation({"a": Machine(hear), "b": Machine(tell)}, network=lossy))
    assert LINES == [True, (100, True)]


def test_prints_are_log_lines(capsys: pytest.CaptureFixture[str]) -> None:
    def program() -> None:
        print("one", end=" ")
        print("line")
        sys.stderr.write("no end")

    alone(program)
    assert capsys.readouterr() == ("one line\n", "no end\n")


class LogReader(Observer):
    """Notes what machines log, and when, in ms."""

    def __init__(self) -> None:
        self.lines: list[tuple[int, str, str]] = []

    def noted(self, who: str, topic: str, at: int, payload: bytes | None, detail: Any = None) -> None:
        if topic == LOG and "kind" not in (said := json.loads(payload or b"")):
            self.lines.append((at // 1_000_000, who, said["text"]))


def test_a_line_without_an_end_is_logged_when_its_program_ends_or_is_killed() -> None:
    def ends() -> None:
        time.sleep(0.5)
        print("I end", end="")

    def dies() -> None:
        print("I die", end="")
        time.sleep(9)

    log = LogReader()
    machines = {"ends": Machine(ends), "dies": Machine(dies)}
    run(Federation(machines, faults=("1s kill dies",), until="2s"), observer=log)
    assert log.lines == [(500, "ends", "I end"), (1_000, "dies", "I die"), (1_000, "dies", "it was ended by SIGKILL")]


def test_sets_of_tasks_are_in_the_order_of_creation() -> None:
    async def program() -> None:
        tasks = [asyncio.create_task(asyncio.sleep(0, number)) for number in range(20)]
        done, _ = await asyncio.wait(tasks)
        say([task.result() for task in done], tasks[0].get_name())

    assert alone(program) == [(list(range(20)), "Task-2")]


# --- What they can't do, and what goes wrong ---


def test_what_ends_a_program_is_raised_as_it_was_first() -> None:
    def stubborn() -> None:
        for _ in range(50):
            with suppress(BaseException):
                subprocess.run(["true"], check=True)
            with suppress(BaseException):
                time.sleep(1)

    with pytest.raises(WorldlineError, match="it starts a process") as raised:
        alone(stubborn)
    assert len(raised.traceback) < 40


def make_process() -> None:
    subprocess.run(["true"], check=True)


def fork() -> None:
    os.fork()


def write() -> None:
    Path("/tmp/worldline-test-escape").write_text("x")


def make_process_with_a_pipe() -> None:
    subprocess.run(["true"], capture_output=True, check=True)


def make_database() -> None:
    sqlite3.connect("/tmp/worldline-test-escape.db")


def write_to_database() -> None:
    with closing(sqlite3.connect(os.environ["WORLDLINE_TEST_DATABASE"])) as database:
        assert database.execute("SELECT * FROM found").fetchall() == [(1,)]
        database.execute("PRAGMA query_only = 0")
        database.execute("INSERT INTO found VALUES (2)")


def attach_database() -> None:
    with closing(sqlite3.connect(":memory:")) as database:
        database.execute("ATTACH '/tmp/worldline-test-escape.db' AS other")


def attach_database_by_parameter() -> None:
    with closing(sqlite3.connect(os.environ["WORLDLINE_TEST_DATABASE"])) as database:
        database.execute("ATTACH ? AS other", ("/tmp/worldline-test-escape.db",))


def copy_database() -> None:
    with closing(sqlite3.connect(os.environ["WORLDLINE_TEST_DATABASE"])) as database:
        database.executescript("VACUUM INTO '/tmp/worldline-test-escape.db'")


def encrypt() -> None:
    with socket.create_server(("", 443)) as listener:
        assert listener
        urllib.request.urlopen("https://localhost/")


@pytest.mark.parametrize(
    ("program", "problem"),
    [
        (make_process, "starts a process"),
        (make_process_with_a_pipe, "starts a process"),
        (fork, "starts a process"),
        (write, "on its disk"),
        (make_database, "writes to /tmp/worldline-test-escape.db, which isn't on its disk"),
        (write_to_database, "writes to a database, which isn't on its disk"),
        (attach_database, "writes to /tmp/worldline-test-escape.db, which isn't on its disk"),
        (attach_database_by_parameter, "writes to a database that it attaches, which isn't on its disk"),
        (copy_database, "writes to /tmp/worldline-test-escape.db, which isn't on its disk"),
        (encrypt, "encrypts"),
    ],
)
def test_what_would_get_out_is_refused_where_it_is_done(
    program: Callable[[], None], problem: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = tmp_path / "found.db"
    with closing(sqlite3.connect(database)) as made, made:
        made.executescript("CREATE TABLE found (x); INSERT INTO found VALUES (1)")
    monkeypatch.setenv("WORLDLINE_TEST_DATABASE", str(database))
    with pytest.raises(WorldlineError, match=problem) as refused:
        alone(program)
    assert Path(__file__).name in str(refused.value)


def test_a_killed_program_that_forks_on_its_way_out_just_ends() -> None:
    def program() -> None:
        try:
            time.sleep(10)
        finally:
            try:
                os.fork()
            except Exception as error:
                say(error)

    run(Federation({"a": Machine(program)}, faults=("1s kill a",), until="3s"))
    assert LINES == []


def test_what_is_allowed_by_name_gets_out(tmp_path: Path) -> None:
    def program() -> None:
        done = subprocess.run(["/bin/sh", "-c", "cat; echo b >&2"], input=b"a", capture_output=True, check=True)
        (tmp_path / "written").write_bytes(done.stdout + done.stderr)

    run(Federation({"a": Machine(program, allow=["files", "processes"])}))
    assert (tmp_path / "written").read_text() == "ab\n"
    with pytest.raises(WorldlineError, match=r"which isn't on its disk.* or allow = \[\"files\"\]"):
        run(Federation({"a": Machine(program, allow=["processes"])}))
    with pytest.raises(ConfigurationError, match="'time' can't be allowed"):
        Machine(program, allow=["time"])


def test_what_a_killed_program_does_on_its_way_out_never_happened(tmp_path: Path) -> None:
    def program() -> None:
        say(sorted(each.name for each in Path().iterdir()))
        Path("lock").touch()
        with suppress(FileExistsError):
            Path("folder").mkdir()
        try:
            time.sleep(10)
        finally:
            Path("lock").rename("unlocked")
            Path("lock").write_text("x")
            Path("folder").rmdir()

    run(Federation({"a": Machine(program, folder=tmp_path)}, faults=("1s kill a 1s",), until="3s"))
    assert LINES == [[], ["folder", "lock"]]


@pytest.mark.parametrize("is_async", [False, True])
def test_ctrl_c_at_its_computer_ends_a_program_alone(is_async: bool, capsys: pytest.CaptureFixture[str]) -> None:
    def program() -> None:
        atexit.register(say, "at exit")
        try:
            asyncio.run(asyncio.sleep(10)) if is_async else time.sleep(10)
        finally:
            say(time.monotonic())

    other = Machine(lambda: (time.sleep(2), say(time.monotonic())))
    run(Federation({"a": Machine(program), "b": other}, faults=("1s signal a SIGINT",)))
    assert LINES == [1.0, "at exit", 2.0]
    assert capsys.readouterr().err == "it was ended by SIGINT\n"


def press_ctrl_c() -> None:
    """Interrupt the thread that runs this, as a person would: no statement raises it."""
    ident = ctypes.pythonapi.PyThread_get_thread_ident
    ident.restype = ctypes.c_ulong
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(ident()), ctypes.py_object(KeyboardInterrupt))


@pytest.mark.parametrize("has_handler", [False, True])
def test_ctrl_c_at_the_run_ends_it_though_its_computer_had_one_before(has_handler: bool) -> None:
    def program() -> None:
        if has_handler:
            signal.signal(signal.SIGINT, lambda *_: say("handled"))
        try:
            time.sleep(2)
        except KeyboardInterrupt:
            say("caught")
        press_ctrl_c()
        time.sleep(1)

    with pytest.raises(KeyboardInterrupt):
        run(Federation({"a": Machine(program)}, faults=("1s signal a SIGINT",)))
    assert ["handled" if has_handler else "caught"] == LINES


def test_a_program_that_aborts_ends_alone(capsys: pytest.CaptureFixture[str]) -> None:
    assert alone(lambda: (say("here"), os.abort())) == ["here"]
    assert capsys.readouterr().err == "it was ended by SIGABRT\n"


def test_a_program_that_fails_fails_the_run_with_its_line() -> None:
    with pytest.raises(WorldlineError, match=r"raised ZeroDivisionError: .*, in test_machines.py, line"):
        alone(lambda: 1 / 0)


def test_an_exit_code_fails_the_run_unless_it_is_0() -> None:
    alone(lambda: sys.exit(0))
    with pytest.raises(WorldlineError, match="SystemExit: 3"):
        alone(lambda: sys.exit(3))


def test_tasks_that_are_left_make_no_noise(capsys: pytest.CaptureFixture[str]) -> None:
    async def program() -> None:
        asyncio.create_task(asyncio.sleep(100))  # noqa: RUF006 - that is what is tested
        await asyncio.sleep(100)

    alone(program, until="1s")
    printed = capsys.readouterr()
    assert (printed.out, printed.err) == ("", "")


def test_after_the_end_a_program_can_do_nothing() -> None:
    async def program() -> None:
        try:
            await asyncio.sleep(100)
        finally:
            with pytest.raises(BaseException):  # noqa: B017, PT011 - whatever ended the run
                time.sleep(1)
            say("unwound")

    assert alone(program, until="1s") == ["unwound"]


def test_a_script_that_is_not_there_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="there is no script"):
        Machine("nowhere.py")
    with pytest.raises(ConfigurationError, match="arguments are texts"):
        Machine(lambda: None, 80)  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match="there is no folder"):
        Machine(lambda: None, folder="nowhere")


def test_programs_that_have_ended_arent_said_to_wait_for_messages() -> None:
    outcome = run(Federation({"a": Machine(lambda: None), "b": Machine(lambda: time.sleep(1))}, until="5s"))
    assert str(outcome.standstill).endswith(
        "a waited for the network, or its program had ended; b waited for the network, or its program had ended"
    )
