"""One digest for unmodified programs, wherever their machines run, and for the libraries that services are made of."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from worldline.errors import ConfigurationError
from worldline.launch.file.setup import read_setup

SCRIPTS = Path(__file__).with_name("scripts")

Parts = dict[str, str]

OFFICE: Parts = {
    "server": 'script = "streams_server.py 8080"',
    "client": 'script = "streams_client.py"',
    "blocking": 'script = "blocking_client.py"',
}
LIBRARIES: dict[str, Parts] = {
    "aiohttp": {"server": 'script = "aiohttp_server.py"', "client": 'script = "aiohttp_client.py"'},
    "fastapi": {
        "server": 'module = "uvicorn fastapi_app:app --host 0.0.0.0 --log-level warning"',
        "client": 'script = "httpx_client.py"',
    },
    "websockets": {
        "server": 'script = "websockets_server.py"',
        "one": 'script = "websockets_client.py"',
        "two": 'script = "websockets_client.py"',
    },
    "amqtt": {
        "broker": 'script = "amqtt_broker.py"',
        "reader": 'script = "amqtt_client.py reader"',
        "sensor": 'script = "amqtt_client.py sensor"',
    },
    "redis": {"server": 'script = "resp_server.py"', "client": 'script = "redis_client.py"'},
    "grpclib": {"server": 'script = "grpclib_server.py"', "client": 'script = "grpclib_client.py"'},
}
HEARD = {
    "aiohttp": "desserts",
    "fastapi": "404",
    "websockets": "I am two",
    "amqtt": "4 degrees",
    "redis": "[4, 5, 6, 7, 8] None",
    "grpclib": "2: hello you",
}


def written(folder: Path, parts: Parts, top: str = 'seed = 1\nuntil = "30s"') -> Path:
    tables = [f'[[participants]]\nname = "{name}"\n{how}\ndirectory = "{SCRIPTS}"' for name, how in parts.items()]
    file = folder / "machines.toml"
    file.write_text("\n".join([top, *tables]))
    return file


def command(file: Path, *words: str, hash_seed: str = "0", restless: str = "0", typed: str | None = None) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "worldline", *words],
        cwd=file.parent,
        input=typed,
        env={**os.environ, "PYTHONHASHSEED": hash_seed, "WORLDLINE_RESTLESS_THREADS": restless},
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )
    return done.stdout + done.stderr


def run(file: Path, executor: str, hash_seed: str = "0") -> str:
    """Return what is printed of a run."""
    return command(file, "run", file.name, "--executor", executor, "--no-record", hash_seed=hash_seed)


def digest_of(printed: str) -> str:
    found = re.search(r"^digest ([0-9a-f]{32})$", printed, re.MULTILINE)
    assert found is not None, printed
    return found[1]


@pytest.mark.long
def test_one_digest_on_every_executor(tmp_path: Path) -> None:
    file = written(tmp_path, OFFICE, 'seed = 1\nlink = { latency = "uniform(1ms, 3ms)", loss = 0.05 }')
    first = run(file, "in-process")
    assert "LINE 2" in first
    assert {digest_of(run(file, executor)) for executor in ("unix", "tcp", "workers(2)")} == {digest_of(first)}
    assert digest_of(run(file, "unix", hash_seed="1")) == digest_of(first)


@pytest.mark.long
@pytest.mark.parametrize("library", LIBRARIES)
def test_libraries_run_as_they_are(library: str, tmp_path: Path) -> None:
    assert importlib.util.find_spec(library), f"{library} isn't installed: it is in the extra `services`"
    file = written(tmp_path, LIBRARIES[library])
    first = run(file, "in-process")
    assert HEARD[library] in first
    # On another executor, with everything at once that must not matter.
    words = ("run", file.name, "--executor", "tcp", "--shake", "1", "--no-record")
    assert digest_of(command(file, *words, hash_seed="1", restless="1")) == digest_of(first)


@pytest.mark.parametrize(
    ("parts", "problem"),
    [
        ({"a": 'script = "nowhere.py"'}, "there is no script"),
        ({"a": 'module = "nowhere"'}, "there is no module"),
        ({"a": 'script = ""'}, "the script is empty"),
        ({"a": 'script = "streams_server.py 80"\nentry = "a:b"'}, "use one of them"),
        ({"a": 'entry = "json:dumps"\nfolder = "."'}, "only a machine has a disk"),
        ({"a": 'entry = "json:dumps"\nvolatile = false'}, "only a machine has a disk"),
        ({"a": 'script = "streams_server.py 80"\nvolatile = true'}, "it has no disk that could be volatile"),
        ({"a": 'entry = "json:dumps"\nallow = ["tls"]'}, "only a machine is kept from anything"),
        ({"a": 'script = "streams_server.py 80"\nallow = ["time"]'}, "'time' can't be allowed"),
    ],
)
def test_mistakes_in_the_file_are_told_with_their_place(parts: Parts, problem: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=problem):
        read_setup(written(tmp_path, parts))


def test_only_a_machines_program_can_be_killed(tmp_path: Path) -> None:
    file = written(tmp_path, {"a": 'entry = "json:dumps"'}, 'faults = ["1s kill a"]')
    with pytest.raises(ConfigurationError, match="only the program of a machine"):
        read_setup(file)


def test_a_script_that_fails_tells_its_line(tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text("import time\ntime.sleep(1)\nraise ValueError('broken')\n")
    file = tmp_path / "machines.toml"
    file.write_text('[[participants]]\nname = "a"\nscript = "broken.py"\n')
    for executor in ("in-process", "unix"):
        said = run(file, executor)
        assert "a at 1s: its program raised ValueError: broken, in broken.py, line 3" in said


@pytest.mark.parametrize(("given", "printed"), [("3", []), ("'a reason'", ["a reason"])])
def test_a_script_that_exits_says_the_same_everywhere(given: str, printed: list[str], tmp_path: Path) -> None:
    (tmp_path / "exits.py").write_text(f"import sys, time\ntime.sleep(1)\nsys.exit({given})\n")
    file = tmp_path / "machines.toml"
    file.write_text('[[participants]]\nname = "a"\nscript = "exits.py"\n')
    for executor in ("in-process", "unix"):
        said = [line for line in run(file, executor).splitlines() if line.strip().startswith("1s")]
        assert [line.split("a  ", 1)[1] for line in said] == printed


QUITTING = """
import asyncio
async def handle(reader, writer):
    await asyncio.sleep(1)
    breakpoint()
async def main():
    async with await asyncio.start_server(handle, port=80) as server:
        await asyncio.open_connection("127.0.0.1", 80)
        await server.serve_forever()
asyncio.run(main())
"""


@pytest.mark.long
def test_a_machine_can_be_debugged_and_quit_in_a_callback(tmp_path: Path) -> None:
    (tmp_path / "server.py").write_text(QUITTING)
    file = tmp_path / "machines.toml"
    file.write_text('[[participants]]\nname = "a"\nscript = "server.py"\n')
    said = command(file, "run", file.name, "--debug", "a", "--no-record", typed="import time; time.monotonic()\nq\n")
    assert "(Pdb) 1.00003" in said
    assert "a at 1.00003s: it was ended at its terminal" in said


DYING = """
import ctypes, os, random, socket, time
libc = ctypes.CDLL(None)
with socket.create_connection(("server", 80)) as made:
    for count in range(4):
        made.sendall(b"%d" % random.randrange(1000))
        print(made.recv(100), time.monotonic())
        if count == 2 and not os.path.exists("died"):
            libc.creat(b"died", 0o600)
            libc.kill(libc.getpid(), 9)
"""
ANSWERING = """
import socket
made, _ = socket.create_server(("", 80)).accept()
while data := made.recv(100):
    made.sendall(data)
"""


@pytest.mark.long
def test_a_machine_whose_process_was_killed_rejoins(tmp_path: Path) -> None:
    (tmp_path / "server.py").write_text(ANSWERING)
    (tmp_path / "client.py").write_text(DYING)
    file = tmp_path / "machines.toml"
    tables = [f'[[participants]]\nname = "{name}"\nscript = "{name}.py"' for name in ("client", "server")]
    file.write_text("\n".join(['on_loss = "rejoin"\nlink = { latency = "uniform(1ms, 3ms)" }', *tables]))
    disturbed = run(file, "unix")
    assert "its process was killed by SIGKILL, and is started again" in disturbed
    assert (tmp_path / "died").exists()
    assert digest_of(run(file, "in-process")) == digest_of(disturbed)


@pytest.mark.long
@pytest.mark.parametrize(
    "module", ["test_streams", "test_sock_lowlevel", "test_timeouts", "test_queues", "test_taskgroups"]
)
def test_cpythons_own_tests_of_asyncio_pass_on_a_machine(module: str) -> None:
    if importlib.util.find_spec("test.test_asyncio") is None:
        pytest.skip("this Python comes without its tests")
    done = subprocess.run(
        [sys.executable, "-m", "tests.programs.cpython", module],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )
    assert "all pass" in done.stdout, done.stdout + done.stderr
