"""How connections stand in a recording of machines, in words."""

from __future__ import annotations

import socket
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

from worldline import Federation, Machine, run
from worldline.cli.commands import app
from worldline.model.reading import as_time
from worldline.recording import Recorder, Recording
from worldline.recording.connections import connections_at


def server() -> None:
    made, _ = socket.create_server(("", 80)).accept()
    while data := made.recv(100):
        time.sleep(1)
        made.sendall(data)
    made.close()


def client() -> None:
    time.sleep(0.5)
    with socket.create_connection(("server", 80)) as made:
        time.sleep(0.5)
        made.sendall(b"GET / HTTP/1.1\r\n\r\n")
        made.recv(100)
        made.recv(100)


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("machines") / "run.mcap"
    faults = ("500ms partition server 2s", "5s partition server")
    federation = Federation({"server": Machine(server), "client": Machine(client)}, faults=faults, until="20s")
    recorder = Recorder(file, federation.plan())
    run(federation, observer=recorder)
    recorder.close()
    return file


LOST, AGAIN = "was lost (sent into a partition or an endless hold)", "it is sent again at"
REQUEST = "GET / HTTP/1.1 (18 bytes)"


@pytest.mark.parametrize(
    ("at", "said"),
    [
        ("400ms", []),
        ("1s", [f"client:49152 waits for server:80 to accept; SYN, sent at 500ms, {LOST}; it is sent again at 1.5s"]),
        ("3.5005s", ["client:49152 waits for server:80 to accept; SYN, sent at 3.5s, arrives at 3.501s"]),
        ("3.5015s", ["client:49152 waits for server:80 to accept; SYN-ACK, sent at 3.501s, arrives at 3.502s"]),
        ("3.6s", ["client:49152 and server:80 are connected, and have sent nothing"]),
        (
            "4.5s",
            ["server:80 has GET / HTTP/1.1 (18 bytes) of client:49152 since 4.003s, and has sent nothing since"],
        ),
        (
            "5.1s",
            [f"server:80 waits for client:49152 to acknowledge; {REQUEST}, sent at 5.003s, {LOST}; {AGAIN} 5.203s"],
        ),
    ],
)
def test_which_end_waits_for_what(recording: Path, at: str, said: list[str]) -> None:
    assert connections_at(Recording(recording), as_time(at)) == said


def test_why_says_it_of_a_moment(recording: Path) -> None:
    said = CliRunner().invoke(app, ["why", str(recording), "--at", "3.6s"]).stdout
    assert said == "client:49152 and server:80 are connected, and have sent nothing\n"


def test_what_the_end_of_the_run_overtook_was_not_lost(tmp_path: Path) -> None:
    federation = Federation({"server": Machine(server), "client": Machine(client)}, until="1.0025s")
    recorder = Recorder(tmp_path / "run.mcap", federation.plan())
    run(federation, observer=recorder)
    recorder.close()
    (said,) = connections_at(Recording(tmp_path / "run.mcap"), as_time("1.0025s"))
    assert said.endswith(f"{REQUEST}, sent at 1.002s, hadn't arrived when the recording ended")
