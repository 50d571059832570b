"""The pytest plugin, as its users have it: what fails is shrunk, told and repeated; what passes is silent."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import pytest

from worldline.errors import ConfigurationError
from worldline.testing.simulated import host, shown_id
from worldline.testing.simulated import test as simulated

TESTS = """
import asyncio
import pathlib
import socket
import time
import worldline
from worldline.search import always

@worldline.host
async def counter():
    value = 0

    async def handle(reader, writer):
        nonlocal value
        line = await reader.readline()
        if line == b"get\\n":
            writer.write(b"%d\\n" % value)
        else:
            value = int(line)
            writer.write(b"ok\\n")
            print(f"value={value}")
        writer.close()

    async with await asyncio.start_server(handle, port=8080) as server:
        await server.serve_forever()

async def call(line):
    reader, writer = await asyncio.open_connection("counter", 8080)
    writer.write(line)
    reply = await reader.readline()
    writer.close()
    return reply

async def increment():
    seen = int(await call(b"get\\n"))
    await call(b"%d\\n" % (seen + 1))

@worldline.test(seeds=50)
async def test_both_count(counter):
    await asyncio.sleep(1)
    first = asyncio.create_task(increment())
    await asyncio.sleep(0.025)
    await asyncio.gather(first, asyncio.create_task(increment()))
    assert int(await call(b"get\\n")) == 2

@worldline.test(seeds=5)
async def test_one_by_one(counter, tmp_path, request):
    assert tmp_path.is_dir() and request.node.name == "test_one_by_one"
    await asyncio.sleep(1)
    await increment()
    await increment()
    assert int(await call(b"get\\n")) == 2

script = worldline.host("server.py", "8081")

@worldline.test(seeds=2)
def test_a_script_over_blocking_sockets(script):
    import time
    time.sleep(0.5)
    with socket.create_connection((script.name, 8081)) as connection:
        connection.sendall(b"hello")
        assert connection.recv(100) == b"HELLO"

@worldline.host
async def relay(counter):
    await asyncio.sleep(1)
    await call(b"7\\n")

@worldline.test(seeds=2)
async def test_a_host_that_needs_another(relay):
    await asyncio.sleep(2)
    assert await call(b"get\\n") == b"7\\n"

@worldline.host(folder="disk", volatile=True)
async def keeper():
    pathlib.Path("made").write_text(pathlib.Path("there").read_text())
    async with await asyncio.start_server(lambda reader, writer: writer.close(), port=8082) as server:
        await server.serve_forever()

@worldline.test(seeds=2)
async def test_a_host_with_a_disk(keeper):
    await asyncio.sleep(1)
    await asyncio.open_connection("keeper", 8082)

@worldline.test(seeds=2, until="2s")
async def test_that_never_ends(counter):
    await asyncio.sleep(100)

@worldline.test(seeds=1, until="2s")
def test_that_sleeps():
    time.sleep(100)

@always("the value stays below 3")
def small(story):
    return story.state("counter").get("value", 0) < 3

@worldline.test(seeds=1, properties=[small])
async def test_a_property(counter):
    await asyncio.sleep(1)
    for _ in range(5):
        await increment()

@worldline.test(seeds=30, faults="crash=1", until="10s")
async def test_a_crash(counter):
    await asyncio.sleep(1)
    for _ in range(20):
        async with asyncio.timeout(0.3):
            await increment()
        await asyncio.sleep(0.1)

@worldline.test(schedules="delays:1")
async def test_all_orders():
    order = []
    async def one(name):
        await asyncio.sleep(0.001)
        order.append(name)
    await asyncio.gather(one("a"), one("b"), one("c"))
    assert order[0] != "b"

LEFT = []

@worldline.test(seeds=5)
async def test_what_outlives_a_run():
    LEFT.append(1)
    assert len(LEFT) < 3

FIRST = []

@worldline.test(seeds=5)
async def test_what_the_first_run_leaves():
    FIRST.append(1)
    assert len(FIRST) != 1

@worldline.test(seeds=2)
async def test_that_is_unsteady(counter):
    LEFT.append(1)
    await asyncio.sleep(1)
    await call(b"%d\\n" % len(LEFT))

class TestIt:
    @worldline.test(seeds=2)
    async def test_method(self, counter):
        await asyncio.sleep(1)
        assert await call(b"get\\n") == b"0\\n"

def test_an_ordinary_one():
    pass
"""
SERVER = """
import socket, sys
with socket.create_server(("", int(sys.argv[1]))) as server:
    while True:
        connection, _ = server.accept()
        with connection:
            connection.sendall(connection.recv(100).upper())
"""
IS_INSTALLED = any(each.name == "worldline" for each in entry_points(group="pytest11"))


def run_pytest(folder: Path, *arguments: str) -> str:
    plugin = [] if IS_INSTALLED else ["-p", "worldline.testing.plugin"]
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "no:xdist", "-vv", *plugin, *arguments]
    environment = {**os.environ, "PYTHONHASHSEED": "0", "COLUMNS": "200"}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False).stdout


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("simulated")
    (folder / "test_services.py").write_text(TESTS)
    (folder / "disk").mkdir()
    (folder / "disk" / "there").write_text("kept")
    (folder / "server.py").write_text(SERVER)
    (folder / "pytest.ini").write_text("[pytest]\n")
    return folder


@pytest.fixture(scope="module")
def output(folder: Path) -> str:
    return run_pytest(folder)


@pytest.mark.long
def test_what_is_sound_passes_and_what_is_not_fails(output: str) -> None:
    results = dict(re.findall(r"^test_services.py::(?:TestIt::)?test_(\w+) (PASSED|FAILED)", output, re.MULTILINE))
    assert results == {
        "both_count": "FAILED",
        "one_by_one": "PASSED",
        "a_script_over_blocking_sockets": "PASSED",
        "a_host_that_needs_another": "PASSED",
        "a_host_with_a_disk": "PASSED",
        "that_never_ends": "FAILED",
        "that_sleeps": "FAILED",
        "a_property": "FAILED",
        "a_crash": "FAILED",
        "all_orders": "FAILED",
        "what_outlives_a_run": "FAILED",
        "what_the_first_run_leaves": "FAILED",
        "that_is_unsteady": "PASSED",
        "method": "PASSED",
        "an_ordinary_one": "PASSED",
    }


def part(output: str, name: str) -> str:
    """Return what is said of one failure."""
    return re.split(r"^_{5,} .* _{5,}$", output, flags=re.MULTILINE)[
        1 + re.findall(r"^_{5,} (.*) _{5,}$", output, re.MULTILINE).index(name)
    ]


def test_a_failure_is_shrunk_and_told_with_the_line_that_raised(output: str) -> None:
    said = part(output, "test_both_count")
    assert '>       assert int(await call(b"get\\n")) == 2' in said
    assert "AssertionError: assert 1 == 2" in said
    assert re.search(r"on test, at 1\.\d+s: seed \d+ fails, after", said)
    assert re.search(r"shrunk in \d+ runs, from \d+ draws to 1:", said)
    assert re.search(r"latency/tcp%2Fcounter/test/counter/\d+ = .*ms", said)
    assert re.search(r"counter  received  tcp/counter from test: 49\d+ → 8080 get \(4 bytes\)", said)
    assert "in told" not in said  # None of our own lines.
    assert re.search(r"pytest test_services.py::test_both_count --worldline-seed \d+$", said, re.MULTILINE)


def test_the_seed_repeats_it(folder: Path, output: str) -> None:
    command = re.findall(r"pytest (test_services.py::test_both_count --worldline-seed \d+)$", output, re.MULTILINE)[0]
    again = run_pytest(folder, "test_services.py::test_one_by_one", *command.split())
    assert "AssertionError: assert 1 == 2" in again
    assert "shrunk" not in again
    assert "counter  noted  value=1" in again
    assert "1 failed, 1 passed" in again


@pytest.mark.long
def test_several_processes_find_the_same_seed(folder: Path, output: str) -> None:
    there = run_pytest(folder, "-k", "both_count or one_by_one", "--worldline-workers", "3")
    assert part(there, "test_both_count").startswith(part(output, "test_both_count"))
    assert "1 failed, 1 passed" in there


@pytest.mark.parametrize(
    ("name", "wait"), [("test_that_never_ends", "await asyncio.sleep(100)"), ("test_that_sleeps", "time.sleep(100)")]
)
def test_a_test_that_never_ends_is_told_where_it_waits(output: str, name: str, wait: str) -> None:
    said = part(output, name)
    line = TESTS[: TESTS.index(wait)].count("\n") + 1
    assert f"the test was still waiting in test_services.py, line {line}, when 2s of simulated time were over" in said
    assert "Traceback" not in said


def test_properties_hold_as_in_a_search(output: str) -> None:
    said = part(output, "test_a_property")
    assert re.search(r"^counter at 1\.\d+s: property failed: the value stays below 3$", said, re.MULTILINE)


def test_faults_are_drawn_for_hosts_alone(output: str) -> None:
    said = part(output, "test_a_crash")
    assert "TimeoutError" in said or "Connection" in said
    assert re.search(r"^E? *\d[\d.]*m?s crash counter \d", said, re.MULTILINE)
    assert "crash test" not in said


def test_all_orders_are_tried_on_one_seed(output: str) -> None:
    said = part(output, "test_all_orders")
    assert re.search(r"seed 0 fails, after 0 seeds that passed, \d schedules", said)
    assert "one callback runs out of order, once:" in said
    assert re.search(r"test runs Task-\d+ \(.*one\) before Task-\d+ \(.*one\)", said)


def test_what_outlives_a_run_is_said(output: str) -> None:
    said = part(output, "test_what_the_first_run_leaves")
    assert "it didn't fail when it was repeated: something outlives a run" in said


def test_a_failure_that_needs_the_seeds_before_it_is_repeated_with_them(folder: Path, output: str) -> None:
    said = part(output, "test_what_outlives_a_run")
    assert "seed 2 fails, after 2 seeds that passed" in said
    assert "it doesn't fail without the seeds before it: something outlives a run" in said
    assert "shrunk" not in said
    assert "--worldline-seed 2" not in said
    commands = re.findall(
        r"pytest (test_services.py::test_what_outlives_a_run --worldline-seeds 3)$", said, re.MULTILINE
    )
    assert "seed 2 fails" in run_pytest(folder, *commands[0].split())
    assert "1 passed" in run_pytest(folder, "test_services.py::test_what_outlives_a_run", "--worldline-seed", "2")


def test_a_test_whose_runs_differ_is_warned_of_and_no_other(output: str) -> None:
    assert re.findall(r"UnsteadyTest: (.*)", output) == [
        "two runs on seed 0 differ for counter and test: something outlives a run, or comes from outside of it"
    ]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"seed": 3}, "@worldline.test has no seed (did you mean 'seeds'?)"),
        ({"seeds": 0}, "can't be run on 0 seeds"),
        ({"faults": "crush=1"}, "crush"),
        ({"schedules": "all"}, "isn't a way to choose schedules"),
        ({"until": "soon"}, "isn't a time by which a test ends"),
    ],
)
def test_what_cannot_be_meant_is_refused_where_it_is_written(options: dict[str, object], said: str) -> None:
    with pytest.raises(ConfigurationError, match=re.escape(said)):
        simulated(**options)(lambda: None)  # type: ignore[arg-type]


MISTAKES = {
    '@worldline.test(faults="crsh=1")': "'crsh=1' can't be drawn: there is no kind 'crsh' (did you mean 'crash'?)",
    "@worldline.test(seed=3)": "@worldline.test has no seed (did you mean 'seeds'?)",
    "@worldline.test(seeds=0)": "a test can't be run on 0 seeds (use at least 1)",
    '@worldline.test(until="5")': "'5' isn't a time by which a test ends (write a number and a unit, such as",
    'worldline.host(print, "8080")': "the host print takes no arguments (its parameters are fixtures)",
}


def test_a_mistake_is_shown_at_its_authors_line_alone(tmp_path: Path) -> None:
    for number, line in enumerate(MISTAKES):
        decorated = "async def test_it():\n    pass\n" if line.startswith("@") else ""
        (tmp_path / f"test_{number}.py").write_text(f"import worldline\n\n{line}\n{decorated}")
    output = run_pytest(tmp_path)
    for number, said in enumerate(MISTAKES.values()):
        assert re.search(
            rf"test_{number}\.py:3: in <module>(\n.*){{1,2}}\nE .*ConfigurationError: {re.escape(said)}", output
        )
    assert "src/worldline" not in output


def test_a_host_says_what_is_wrong_with_it() -> None:
    with pytest.raises(ConfigurationError, match="the host serve takes no arguments"):
        host(serve, "8080")


def serve() -> None:
    """Serve nothing."""


TESTS_OF_DISKS = """
import socket
import time
import worldline

store = worldline.host("store.py", folder="disk", volatile=True)
missing = worldline.host("missing.py")

@worldline.test(seeds=3)
def test_each_run_has_a_disk_of_its_own(store):
    time.sleep(0.1)
    with socket.create_connection(("store", 7000)) as connection:
        assert connection.recv(100) == b"1"

@worldline.test(seeds=3)
def test_without_its_script(missing):
    pass
"""
STORE = """
import os
import socket
with socket.create_server(("", 7000)) as server:
    while True:
        connection, _ = server.accept()
        with connection, open("written", "a") as file:
            file.write("x")
            file.flush()
            connection.sendall(str(os.path.getsize("written")).encode())
"""


def test_a_host_may_have_a_disk_and_its_mistakes_take_a_line(tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    (tmp_path / "store.py").write_text(STORE)
    (tmp_path / "test_disks.py").write_text(TESTS_OF_DISKS)
    said = run_pytest(tmp_path)
    assert "1 failed, 1 passed" in said
    assert re.search(r"^there is no script .*missing\.py \(say in which directory it is\)$", said, re.MULTILINE)
    assert "simulated.py" not in said
    assert not list((tmp_path / "disk").iterdir())


def test_the_plugin_loads_nothing_else() -> None:
    code = (
        "import sys, worldline.testing.plugin;"
        "print([name for name in sys.modules if name.startswith(('worldline.', 'asyncio'))])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert found == "['worldline.builds', 'worldline.testing', 'worldline.testing.plugin']\n"


def test_names_are_quoted_for_a_shell() -> None:
    assert shown_id("tests/test_a.py::test_b") == "tests/test_a.py::test_b"
    assert shown_id("test_a.py::test_b[x y]") == "'test_a.py::test_b[x y]'"
