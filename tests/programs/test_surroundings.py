"""What a program finds around it is its computer's, and the same in every run: host, processor, files, alarms."""

from __future__ import annotations

import asyncio
import atexit
import ctypes
import ctypes.util
import datetime
import gc
import importlib
import inspect
import logging.config
import os
import platform
import re
import resource
import shutil
import signal
import socket
import sqlite3
import sys
import tempfile
import threading
import time
import weakref
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from worldline import Federation, Machine, Participant, Program, WorldlineError, run
from worldline.programs.disk import _place, give_back_folder, take_folder

START_S = 1_767_225_600.0


def seen_by(program: Callable[[], Any], folder: Path | None = None, allow: Sequence[str] = ()) -> Any:
    """Return what a program returns on a computer of its own, called "box"."""
    seen: list[Any] = []
    run(Federation({"box": Machine(lambda: seen.append(program()), folder=folder, allow=allow)}))
    return seen[0]


def test_a_computer_has_its_name_and_one_core_that_is_never_busy() -> None:
    def look() -> Any:
        time.sleep(2)
        return (
            (platform.node(), platform.uname().node, os.uname().nodename, os.getppid(), platform.processor()),
            (os.cpu_count(), os.sched_getaffinity(0), os.getloadavg(), os.sysconf("SC_NPROCESSORS_ONLN")),
            (gc.collect(), gc.get_count(), sum(each["collected"] for each in gc.get_stats())),
            (platform.release(), os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGESIZE"), os.sysconf("SC_CLK_TCK")),
            (time.process_time(), time.thread_time_ns(), resource.getrusage(resource.RUSAGE_SELF).ru_utime),
            (time.clock_gettime(time.CLOCK_REALTIME), time.clock_gettime_ns(time.CLOCK_BOOTTIME), os.times().elapsed),
            (socket.if_nameindex()[0], shutil.disk_usage(".").total),
        )

    assert seen_by(look) == (
        ("box", "box", "box", 1, ""),
        (1, {0}, (0.0, 0.0, 0.0), 1),
        (0, (0, 0, 0), 0),
        ("6.1.0", 2**33, 100),
        (0.0, 0, 0.0),
        (START_S + 2, 2_000_000_000, 2.0),
        ((1, "lo"), 2**37),
    )
    assert os.uname().nodename == platform.node() != "box"
    assert time.process_time() > 0


def test_files_are_as_old_as_the_run_or_what_was_written_to_them(tmp_path: Path) -> None:
    (tmp_path / "old").write_text("")

    def look() -> Any:
        time.sleep(3)
        Path("new").write_text("x")
        with Path("new").open() as new:
            ages = (Path("old").stat().st_mtime, os.fstat(new.fileno()).st_mtime_ns, Path("new").stat().st_size)
        Path("new").rename("newer")
        return ages, Path("newer").stat().st_mtime, Path("newer").stat()[8], Path(__file__).stat().st_mtime

    assert seen_by(look, tmp_path) == (
        (START_S, int(START_S + 3) * 1_000_000_000, 1),
        START_S + 3,
        int(START_S + 3),
        START_S,
    )


def test_folders_are_sorted(tmp_path: Path) -> None:
    names = [f"{number * 7919 % 100:02}" for number in range(40)]
    for name in names:
        (tmp_path / name).touch()
    assert seen_by(
        lambda: (
            [path.name for path in Path().iterdir()],
            [entry.name for entry in os.scandir()],
            next(os.walk("."))[2],
        ),
        tmp_path,
    ) == (
        sorted(names),
        sorted(names),
        sorted(names),
    )


def test_files_are_numbered_as_the_program_meets_them(tmp_path: Path) -> None:
    for name in "ab":
        (tmp_path / name).write_text(name)

    def look() -> Any:
        os.link("b", "c")
        same = Path("b").samefile("c"), Path("a").samefile("b")
        with os.scandir(".") as found:
            entries = [(each.name, each.inode()) for each in found]
        with Path("c").open() as file:
            numbers = [Path(name).stat().st_ino for name in "ba"] + [os.fstat(file.fileno()).st_ino]
        return same, entries, numbers, Path().stat().st_size, Path("a").stat().st_blocks

    first = seen_by(look, tmp_path)
    assert first == ((True, False), [("a", 2), ("b", 1), ("c", 1)], [1, 2, 1], 4_096, 1)
    assert seen_by(look, tmp_path) == first


def test_a_new_file_has_a_new_number_whatever_the_file_system_does(tmp_path: Path) -> None:
    def look() -> list[int]:
        numbers = []
        for name in "abc":
            Path(name).touch()
            numbers.append(Path(name).stat().st_ino)
            Path(name).unlink()
        for name in "de":  # With a descriptor of the folder, as shutil.rmtree does it.
            Path(name).mkdir()
            Path(name, "file").touch()
            numbers += [Path(name).stat().st_ino, Path(name, "file").stat().st_ino]
            shutil.rmtree(name)
        with Path("log").open("w") as file:
            numbers.append(Path("log").stat().st_ino)
            Path("log").unlink()
            Path("log").touch()
            numbers += [Path("log").stat().st_ino, os.fstat(file.fileno()).st_ino]
        Path("new").touch()
        Path("new").replace("log")
        Path("next").touch()
        return [*numbers, Path("log").stat().st_ino, Path("next").stat().st_ino]

    assert seen_by(look, tmp_path) == [1, 2, 3, 4, 5, 6, 7, 8, 9, 8, 10, 11]


def test_what_sql_asks_of_the_clock_and_of_chance_is_the_computers(tmp_path: Path) -> None:
    def look() -> Any:
        time.sleep(3.25)
        with closing(sqlite3.connect("jobs.db")) as database:
            database.execute("CREATE TABLE jobs (id, at DEFAULT CURRENT_TIMESTAMP, due DEFAULT (date('now', '1 day')))")
            database.execute("CREATE INDEX by_day ON jobs (date(at))")
            database.execute("INSERT INTO jobs (id) VALUES (1)")
            rows = database.execute("SELECT * FROM jobs").fetchall()
            times = "strftime('%f', 'now'), unixepoch(), time('now', 'localtime'), datetime(86400.0, 'unixepoch')"
            return rows, database.execute(f"SELECT {times}, date(NULL), random(), hex(randomblob(4))").fetchone()

    first = seen_by(look, tmp_path)
    rows, (*times, number, blob) = first
    assert rows == [(1, "2026-01-01 00:00:03", "2026-01-02")]
    assert times == ["03.250", 1_767_225_603, "00:00:03", "1970-01-02 00:00:00", None]
    assert (-(2**63) <= number < 2**63, len(blob)) == (True, 8)
    assert seen_by(look, tmp_path) == first
    with closing(sqlite3.connect(":memory:")) as real:
        assert real.execute("SELECT date('now')").fetchone()[0] > "2026-01-01"


def test_a_connection_waits_in_simulated_time_for_another_that_writes(tmp_path: Path) -> None:
    done: list[tuple[str, float]] = []

    def write(name: str, after: float, lasts: float, patience_s: float) -> None:
        time.sleep(after)
        try:
            with closing(sqlite3.connect("jobs.db", timeout=patience_s)) as database, database:
                database.execute("INSERT INTO jobs VALUES (?)", (name,))
                time.sleep(lasts)
        except sqlite3.OperationalError as error:
            name = str(error)
        done.append((name, time.monotonic()))

    def program() -> None:
        with closing(sqlite3.connect("jobs.db")) as database:
            database.execute("CREATE TABLE jobs (name)")
        threads = [
            threading.Thread(target=write, args=each)
            for each in (("slow", 0, 1, 5), ("patient", 0.1, 0, 5), ("hasty", 0.2, 0, 0.3))
        ]
        for each in threads:
            each.start()

    run(Federation({"box": Machine(program, folder=tmp_path)}, until="20s"))
    assert done == [("database is locked", 0.5), ("slow", 1.0), ("patient", 1.0)]


def test_scripts_own_cursors_and_pragmas_wait_in_simulated_time_too(tmp_path: Path) -> None:
    done: list[Any] = []

    class Cursor(sqlite3.Cursor):
        """A program's own."""

    class Connection(sqlite3.Connection):
        def cursor(self, factory: Any = Cursor) -> Any:
            return super().cursor(factory)

    def by_script() -> None:
        with closing(sqlite3.connect("jobs.db")) as database:
            script = "BEGIN; INSERT INTO jobs VALUES ('a;'); -- One;\nSELECT 1; INSERT INTO jobs VALUES ('b'); COMMIT;"
            database.executescript(script + "INSERT INTO jobs VALUES ('c')")
            done.append(("script", time.monotonic(), database.in_transaction))

    def by_own_cursor() -> None:
        with closing(sqlite3.connect("jobs.db", factory=Connection)) as database, database:
            cursor = database.execute("INSERT INTO jobs VALUES ('d')")
            done.append(("cursor", time.monotonic(), isinstance(cursor, Cursor)))

    def by_pragma() -> None:
        with closing(sqlite3.connect("jobs.db")) as database:
            asked = [database.execute("PRAGMA busy_timeout").fetchone()]
            database.executescript("/* More. */ pragma busy_timeout = 60000;")
            asked += [database.execute("PRAGMA main.busy_timeout").fetchone()]
            asked += [database.execute("PRAGMA busy_timeout(300)").fetchone()]
            with pytest.raises(sqlite3.OperationalError, match="database is locked"):
                database.execute("INSERT INTO jobs VALUES ('e')")
            done.append(("pragma", time.monotonic(), asked))

    def program() -> Any:
        with closing(sqlite3.connect("jobs.db")) as database:
            database.execute("CREATE TABLE jobs (name)")
            with database:
                database.execute("INSERT INTO jobs VALUES ('first')")
                threads = [threading.Thread(target=each) for each in (by_script, by_own_cursor, by_pragma)]
                for each in threads:
                    each.start()
                time.sleep(1)
            for each in threads:
                each.join()
            return sorted(name for (name,) in database.execute("SELECT name FROM jobs"))

    assert seen_by(program, tmp_path) == ["a;", "b", "c", "d", "first"]
    assert done == [
        ("pragma", 0.3, [(5_000,), (60_000,), (300,)]),
        ("script", 1.01, False),
        ("cursor", 1.01, True),
    ]


def test_a_program_attaches_databases_and_says_what_sql_may_do(tmp_path: Path) -> None:
    outside = tmp_path / "a %23?&.db"
    with closing(sqlite3.connect(outside)) as made, made:
        made.execute("PRAGMA journal_mode = WAL")
        made.execute("CREATE TABLE jobs AS SELECT 1 AS id")

    def authorize(action: int, what: str, *_: Any) -> int:
        return sqlite3.SQLITE_DENY if (action, what) == (sqlite3.SQLITE_READ, "secrets") else sqlite3.SQLITE_OK

    def program() -> Any:
        with closing(sqlite3.connect("own.db")) as database, closing(sqlite3.connect(outside)) as other:
            database.set_authorizer(authorize)
            database.execute("ATTACH 'other.db' AS one")
            database.execute("ATTACH ? AS two", (str(Path("more.db").resolve()),))
            database.execute("ATTACH ':memory:' AS three")
            database.executescript("CREATE TABLE secrets (x); VACUUM; VACUUM INTO 'copy.db'")
            with pytest.raises(sqlite3.DatabaseError, match="prohibited"):
                database.execute("SELECT x FROM secrets")
            database.set_authorizer(None)
            return database.execute("SELECT x FROM secrets").fetchall(), other.execute("SELECT id FROM jobs").fetchall()

    (tmp_path / "disk").mkdir()
    assert seen_by(program, tmp_path / "disk") == ([], [(1,)])
    assert sorted(each.name for each in tmp_path.iterdir()) == [outside.name, "disk"]


@pytest.mark.skipif(sqlite3.sqlite_version_info < (3, 43), reason="SQLite has timediff since 3.43")
def test_differences_of_times_are_of_the_computers_clock() -> None:
    def look() -> Any:
        time.sleep(3.25)
        with closing(sqlite3.connect(":memory:")) as database:
            return database.execute("SELECT timediff('now', '2026-01-01')").fetchone()[0]

    assert seen_by(look) == "+0000-00-00 00:00:03.250"


def test_a_folder_that_a_program_changes_to_stays_its_own_while_others_run(tmp_path: Path) -> None:
    (tmp_path / "below").mkdir()
    seen: dict[str, list[str]] = {}

    def program() -> None:
        own = seen.setdefault(platform.node(), [])
        if platform.node() == "b":
            os.chdir("below")
        for _ in range(3):
            time.sleep(1)
            own.append(Path.cwd().name)

    before = Path.cwd()
    run(Federation({name: Machine(program, folder=tmp_path) for name in "abc"}))
    assert seen["b"] == ["below"] * 3
    assert [each.partition("-")[0] for each in seen["a"] + seen["c"]] == ["a"] * 3 + ["c"] * 3
    assert Path.cwd() == before


def test_a_program_may_remove_the_folder_that_it_is_in(tmp_path: Path) -> None:
    def look() -> Any:
        Path("below").mkdir()
        os.chdir("below")
        Path("../below").rmdir()
        time.sleep(1)
        with pytest.raises(FileNotFoundError):
            Path.cwd()
        with pytest.raises(FileNotFoundError):
            Path("file").touch()
        return time.monotonic()

    before = Path.cwd()
    assert seen_by(look, tmp_path) == 1.0
    assert Path.cwd() == before


def test_temporary_files_are_a_programs_own_and_go_with_it() -> None:
    def look() -> Any:
        with tempfile.NamedTemporaryFile("w") as file, tempfile.TemporaryDirectory() as folder:
            file.write("text")
            Path(folder, "more").write_text("text")
            return folder

    first, second = seen_by(look), seen_by(look)
    assert Path(first).name == Path(second).name
    assert not Path(first).parent.exists()


def test_alarms_ring_in_simulated_time() -> None:
    rung: list[float] = []

    def look() -> Any:
        signal.signal(signal.SIGALRM, lambda *_: rung.append(time.monotonic()))
        signal.alarm(2)
        time.sleep(5)
        assert signal.setitimer(signal.ITIMER_REAL, 0.5, 0.25) == (0.0, 0.0)
        for _ in range(3):
            signal.pause()
        return signal.getitimer(signal.ITIMER_REAL), signal.setitimer(signal.ITIMER_REAL, 0), signal.alarm(0)

    assert seen_by(look) == ((0.25, 0.25), (0.25, 0.25), 0)
    assert rung == [2.0, 5.5, 5.75, 6.0]


def test_a_signal_to_itself_is_handled_at_once_also_if_a_thread_sends_it() -> None:
    heard: list[Any] = []

    def look() -> Any:
        signal.signal(signal.SIGUSR1, lambda *_: heard.append(len(heard)))
        os.kill(os.getpid(), signal.SIGUSR1)
        first = list(heard)
        threading.Timer(1, os.kill, (os.getpid(), signal.SIGUSR1)).start()
        signal.pause()
        return first, list(heard), time.monotonic()

    assert seen_by(look) == ([0], [0, 1], 1.0)


def test_alarms_come_while_a_program_looks_at_the_clock_and_go_with_it() -> None:
    def look() -> Any:
        rung: list[float] = []
        signal.signal(signal.SIGALRM, lambda *_: rung.append(time.monotonic()))
        signal.setitimer(signal.ITIMER_REAL, 0.5, 0.25)
        while len(rung) < 2:
            time.monotonic()
        return [round(at, 2) for at in rung]

    assert seen_by(look) == [0.5, 0.75]  # And the run has ended.


def test_looking_at_the_processors_clock_takes_processor_time() -> None:
    def look() -> Any:
        while time.process_time() < 0.01:
            pass
        return time.process_time() <= time.monotonic(), os.times().user > 0

    assert seen_by(look) == (True, True)


def test_a_module_that_was_edited_is_loaded_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    values = []
    for value in (1, 2):
        (tmp_path / "part.py").write_text(f"V = {value}\n")
        os.utime(tmp_path / "part.py", (value, value))
        (tmp_path / "main.py").write_text("import part, sys\nsys.exit(part.V)\n")
        with pytest.raises(WorldlineError) as caught:
            run(Federation({"box": Machine("main.py", directory=tmp_path)}))
        values.append(re.findall(r"SystemExit: (\d)", str(caught.value)))
    assert values == [["1"], ["2"]]


def test_ages_outlive_a_program_that_is_killed(tmp_path: Path) -> None:
    ages: list[float] = []

    def look() -> None:
        if not Path("kept").exists():
            time.sleep(5)
            Path("kept").touch()
            time.sleep(1)
            Path("kept").touch()
            os.utime("kept", (7, 7))
            Path("made").touch()
        ages.extend(entry.stat().st_mtime for entry in os.scandir())
        time.sleep(10)

    run(Federation({"box": Machine(look, folder=tmp_path)}, faults=("8s kill box 1s",), until="12s"))
    assert ages == [7.0, START_S + 6] * 2


@pytest.mark.parametrize(
    ("does", "said"),
    [
        (lambda: Path("/dev/urandom").read_bytes(), "it opens /dev/urandom"),
        (lambda: Path("/proc/self/comm").write_text("x"), "it writes to /proc/self/comm"),
    ],
)
def test_what_would_differ_or_hang_is_refused(does: Callable[[], Any], said: str) -> None:
    with pytest.raises(WorldlineError, match=said):
        seen_by(does)


@pytest.mark.parametrize(
    "does",
    [
        lambda: Path("/proc/self/stat").read_bytes(),
        lambda: os.open(b"/proc/self/stat", os.O_RDONLY),
        lambda: (os.chdir("/proc"), os.open("self/stat", os.O_RDONLY)),
        lambda: Path("/tmp/../proc").stat(),
        lambda: list(Path("/proc").iterdir()),
        lambda: os.scandir(Path("/sys/")),
        lambda: Path("/proc/self").readlink(),
    ],
)
def test_a_computer_has_no_proc_and_no_sys_as_some_systems_have_none(does: Callable[[], Any]) -> None:
    def look() -> str:
        try:
            return f"it is there: {does()}"
        except FileNotFoundError as error:
            return str(error.strerror)

    assert seen_by(look) == "A simulated computer has no /proc and no /sys"


def test_the_systems_files_are_there_if_files_are_allowed() -> None:
    def look() -> bool:
        return Path("/proc/self/stat").exists()

    assert not seen_by(look)
    assert seen_by(look, allow=["files"])


def test_folders_have_the_same_names_in_every_run_unless_there_are_several_at_once(tmp_path: Path) -> None:
    def look() -> Any:
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "left").touch()
        Path("left").touch()
        return Path.cwd(), folder, tempfile.gettempdir(), [each.name for each in Path().iterdir()]

    first = seen_by(look, tmp_path)
    assert seen_by(look, tmp_path) == first
    assert first[3] == ["left"]
    assert not any(map(os.path.exists, first[:3]))
    inside: list[Any] = []
    seen_by(lambda: inside.append(take_folder("box", "disk", tmp_path.resolve())) or look(), tmp_path)
    assert inside == [f"{first[0]}-1"]
    give_back_folder(inside[0])


@pytest.mark.parametrize("name", ["cell/arm", "../arm", "a" * 250])
def test_a_folder_is_in_its_place_whatever_its_participants_name(name: str) -> None:
    taken, other = take_folder(name, "disk"), take_folder(name.replace("/", "_"), "disk")
    assert Path(taken).parent == Path(other).parent == _place()
    assert taken != other
    for each in (taken, other):
        give_back_folder(each)


def test_folders_keep_their_names_where_all_files_are_of_one_group(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tmp_path.chmod(0o2755)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    for _ in range(2):
        taken = take_folder("box", "disk")
        give_back_folder(taken)
        assert Path(taken).parent == tmp_path / f"worldline-{os.getuid()}"
    assert [each.name for each in tmp_path.iterdir()] == [f"worldline-{os.getuid()}"]


def test_a_folder_outlives_a_process_that_was_forked_meanwhile() -> None:
    taken = take_folder("box", "disk")
    if (child := os.fork()) == 0:
        give_back_folder(taken)  # As at its end.
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    assert Path(taken).is_dir()
    other = take_folder("box", "disk")
    assert other != taken
    for each in (taken, other):
        give_back_folder(each)


def test_what_a_program_has_protected_is_removed_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = []
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir(mode=0o500)
    taken = Path(take_folder("box", "disk"))
    inner = taken / "outer" / "inner"
    inner.mkdir(parents=True)
    (taken / "link").symlink_to(elsewhere)
    for each in (inner, inner.parent, taken):
        each.chmod(0o500)
    real = shutil.rmtree  # As root, it would need no permission.
    monkeypatch.setattr(
        shutil,
        "rmtree",
        lambda folder, **named: (
            opened.extend(each.stat().st_mode & 0o777 for each in (inner, inner.parent, taken)),
            real(folder, **named),
        ),
    )
    give_back_folder(str(taken))
    assert opened == [0o700] * 3
    assert elsewhere.stat().st_mode & 0o777 == 0o500
    assert not taken.exists()


def test_the_class_of_datetimes_is_the_one_that_c_code_makes() -> None:
    class Moment(datetime.datetime):
        """A class of the program's own."""

    def look() -> Any:
        time.sleep(1.5)
        now = datetime.datetime.now()
        kinds = type(now) is datetime.datetime, type(Moment.now()) is Moment, {datetime.datetime: 1}[type(now)]
        moments = now, Moment.utcnow(), datetime.datetime.today(), datetime.datetime.now(datetime.UTC)
        return kinds, {each.isoformat()[:21] for each in moments}, datetime.date.today().isoformat()

    assert seen_by(look) == ((True, True, 1), {"2026-01-01T00:00:01.5"}, "2026-01-01")
    assert datetime.datetime.now().year != 1970
    assert abs(datetime.datetime.now().timestamp() - time.time()) < 5


def test_local_time_is_utc_wherever_the_machine_is_and_a_program_can_choose_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TZ", "America/New_York")
    time.tzset()

    def look() -> Any:
        shown = datetime.datetime.fromtimestamp(0), time.localtime().tm_hour, time.tzname[0], time.asctime()[11:19]
        if platform.node() == "other":
            os.environ["TZ"] = "Asia/Tokyo"
            time.tzset()
        time.sleep(1)
        return shown, "TZ" in os.environ, time.localtime().tm_hour, datetime.datetime.fromtimestamp(0).hour

    seen: dict[str, Any] = {}
    machines = {name: Machine(lambda: seen.__setitem__(platform.node(), look())) for name in ("box", "other")}
    run(Federation(machines))
    first = (datetime.datetime(1970, 1, 1), 0, "UTC", "00:00:00")
    assert seen == {"box": (first, False, 0, 0), "other": (first, True, 9, 9)}
    assert time.tzname[0] == "EST"
    monkeypatch.undo()
    time.tzset()


@pytest.mark.parametrize("first", ["UTC", "Europe/Berlin"])
def test_a_process_may_choose_another_zone_between_runs(first: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def hour() -> int:
        return time.localtime(0).tm_hour

    for zone in (first, "Asia/Tokyo"):
        monkeypatch.setenv("TZ", zone)
        time.tzset()
        assert seen_by(hour) == 0
        assert hour() == {"UTC": 0, "Europe/Berlin": 1, "Asia/Tokyo": 9}[zone]
    monkeypatch.undo()
    time.tzset()


def test_what_a_process_has_one_of_is_each_computers_own(tmp_path: Path) -> None:
    """Variables, loggers and their files, event loops, time-outs: what one program sets, no other finds."""
    library = logging.getLogger("a.library")
    library.addHandler(handler := logging.NullHandler())
    os.environ["WORLDLINE_TEST"], hook = "process", threading.excepthook
    seen: dict[str, Any] = {}

    def look() -> None:
        name = platform.node()
        found = os.environ["WORLDLINE_TEST"], len(logging.root.handlers), socket.getdefaulttimeout(), library.handlers
        os.environ["WORLDLINE_TEST"] = name
        socket.setdefaulttimeout(int(name))
        logging.config.dictConfig({"version": 1, "incremental": False})
        logging.basicConfig(filename=f"{name}.log", filemode="w", format="%(message)s", level=int(name))
        threading.excepthook = lambda _: None
        loop = asyncio.new_event_loop()
        asyncio.set_event_loop(loop)
        library.setLevel(int(name) + 20)
        time.sleep(1)
        logging.log(1, "one")
        logging.log(2, "two")
        set_now = os.environ["WORLDLINE_TEST"], socket.socket().gettimeout(), library.level
        mine = asyncio.get_event_loop() is loop
        loop.close()
        seen[name] = found, set_now, mine, Path(f"{name}.log").read_text().split()

    run(Federation({name: Machine(look, folder=tmp_path) for name in "12"}))
    given = "process", 0, None, [handler]
    assert seen == {
        "1": (given, ("1", 1.0, 21), True, ["one", "two"]),
        "2": (given, ("2", 2.0, 22), True, ["two"]),
    }
    assert (os.environ.pop("WORLDLINE_TEST"), library.level) == ("process", 0)
    assert (socket.getdefaulttimeout(), threading.excepthook) == (None, hook)
    library.removeHandler(handler)


def test_a_participant_that_is_no_machine_has_the_processs_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """It goes on while machines wait whose variables, arguments, modules and event loops are others."""
    monkeypatch.setenv("WORLDLINE_TEST", "process")
    hooks = sys.get_asyncgen_hooks()
    seen: list[Any] = []

    def look() -> Any:
        found = os.environ.get("WORLDLINE_TEST"), sys.argv, sys.path, sys.modules["__main__"], os.environ.get("TZ")
        return *found, sys.get_asyncgen_hooks() == hooks, asyncio._get_running_loop(), threading.excepthook

    async def main() -> None:
        os.environ["WORLDLINE_TEST"] = platform.node()
        sys.argv = [platform.node()]
        while True:
            await asyncio.sleep(1)
            assert (os.environ["WORLDLINE_TEST"], sys.argv) == (platform.node(), [platform.node()])
            assert asyncio.get_running_loop() is not None

    def watch(me: Participant) -> None:
        seen.append(look())
        for _ in range(3):
            me.advance(by="700ms")
            seen.append(look())

    before = look()
    run(Federation({"a": Machine(main), "b": Program(watch), "c": Machine(main)}, until="4s"))
    assert seen == [before] * 4


def test_c_code_sees_variables_of_the_program_that_runs_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORLDLINE_TEST", "process")
    getenv = ctypes.CDLL(None).getenv
    getenv.restype = ctypes.c_char_p
    seen: dict[str, Any] = {}

    def look() -> None:
        name = platform.node()
        found = getenv(b"WORLDLINE_TEST"), getenv(b"WORLDLINE_OTHER")
        os.environ["WORLDLINE_OTHER"] = name
        del os.environ["WORLDLINE_TEST"]
        time.sleep(1)
        seen[name] = found, (getenv(b"WORLDLINE_TEST"), getenv(b"WORLDLINE_OTHER"))

    run(Federation({name: Machine(look) for name in "12"}))
    assert seen == {name: ((b"process", None), (None, name.encode())) for name in "12"}
    assert (getenv(b"WORLDLINE_TEST"), getenv(b"WORLDLINE_OTHER")) == (b"process", None)


def test_what_the_process_lets_through_says_nothing_about_a_programs_loggers() -> None:
    library = logging.getLogger("a.library.at.rest")
    level = logging.root.level
    logging.root.setLevel(logging.DEBUG)
    try:
        assert library.isEnabledFor(logging.DEBUG)
        assert seen_by(lambda: library.isEnabledFor(logging.DEBUG)) is False
        assert library.isEnabledFor(logging.DEBUG)
    finally:
        logging.root.setLevel(level)


def test_loggers_can_be_looked_into_after_a_run() -> None:
    assert seen_by(lambda: hasattr(logging.Logger, "level")) is False
    assert "setLevel" in dict(inspect.getmembers(logging.Logger))


def test_loggers_are_as_before_when_the_last_machine_has_ended() -> None:
    """What is looked up for each line that isn't logged is an attribute of the logger again."""
    made: list[logging.Logger] = []
    seen_by(lambda: made.append(logging.Logger("made by a program")))
    for logger in (logging.getLogger("made by the process"), *made):
        assert (logger.level, logger.handlers, logger.filters, logger.disabled) == (0, [], [], False)
        assert not hasattr(vars(logging.Logger)["level"], "__set__")
        logger.setLevel(7)
        assert (vars(logger)["level"], logger.level) == (7, 7)


def test_a_program_ends_as_a_process_does(capfd: pytest.CaptureFixture[str]) -> None:
    """What it has registered is done, last first; a daemon ends with it; `os._exit` ends it at once."""

    def tidy() -> None:
        atexit.register(print, "first registered")
        atexit.register(print, "then")
        atexit.register(unwanted := [].append, 1)
        atexit.unregister(unwanted)
        weakref.finalize(tidy, print)  # The process does that at its own end, for all.
        threading.Thread(target=lambda: [time.sleep(1) for _ in range(10)], daemon=True).start()
        threading.Thread(target=lambda: (time.sleep(2), print("a thread's end"))).start()
        sys.exit(0)

    def hasty() -> None:
        atexit.register(print, "never")
        os._exit(0)

    def failing() -> None:
        os._exit(3)

    outcome = run(Federation({"tidy": Machine(tidy), "hasty": Machine(hasty)}))
    said = capfd.readouterr().out.split("\n")
    assert [each.strip() for each in said if each] == [
        "a thread's end",
        "then",
        "first registered",
    ]
    assert outcome.members["tidy"].at == 2_000_000_000
    assert weakref.finalize(hasty, len, "abc")() == 3
    with pytest.raises(WorldlineError, match="3"):
        run(Federation({"failing": Machine(failing)}))


def test_a_library_with_sockets_in_c_is_as_if_it_werent_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "zmq.py").write_text("")
    monkeypatch.syspath_prepend(tmp_path)

    def look() -> Any:
        with pytest.raises(ImportError, match="zmq has sockets of its own, in C, which aren't simulated"):
            importlib.import_module("zmq")

    seen_by(look)
    loaded = importlib.import_module("zmq")
    monkeypatch.setitem(sys.modules, "zmq", loaded)  # By the process, before.
    seen_by(look)
    assert importlib.import_module("zmq") is loaded


def test_a_library_of_the_system_is_found_without_a_process() -> None:
    assert seen_by(lambda: (ctypes.util.find_library("c"), ctypes.util.find_library("pthread"))) == (
        ctypes.util.find_library("c"),
        None,
    )
