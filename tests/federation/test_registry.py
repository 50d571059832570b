"""Runs are found by their names, as long as they go on, and by nobody else."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec
import pytest

from worldline import Server
from worldline.federation import registry
from worldline.federation.address import Address, parse_address
from worldline.federation.peer_process import birth_of
from worldline.federation.registry import RunEntry, enter, running, runtime_folder, token_at
from worldline.metasim import MetasimServer
from worldline.model import UsageError, plan
from worldline.world.description import WorldDescription
from worldline.world.distributed import Primary
from worldline.world.engines.kinematic import KinematicEngine

NOBODY = 4_194_304 + 7  # More than Linux gives out.


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))


def test_a_run_is_entered_and_taken_out_again() -> None:
    leave = enter("cell", "tcp://127.0.0.1:7", "secret")
    other = enter("cell", "tcp://127.0.0.1:8", None)
    first, second = running("cell")
    assert (first.name, first.address, first.token) == ("cell", "tcp://127.0.0.1:7", "secret")
    assert first.process == os.getpid()
    assert second.address.endswith(":8")
    assert running("other") == []
    leave()
    assert [entry.address for entry in running()] == ["tcp://127.0.0.1:8"]
    other()
    assert running() == []
    assert not runtime_folder().exists()  # Nothing is left behind.


def test_only_the_user_can_read_what_is_there() -> None:
    enter("cell", "tcp://127.0.0.1:7", "secret")
    folder = runtime_folder()
    assert folder.stat().st_mode & 0o777 == 0o700
    (entry,) = folder.iterdir()
    assert entry.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(("process", "born"), [(NOBODY, "5"), (os.getpid(), "another's")], ids=["gone", "reused"])
def test_an_entry_of_a_process_that_is_gone_is_removed(process: int, born: str) -> None:
    enter("mine", "tcp://127.0.0.1:7", None)
    stale = RunEntry(name="cell", address="tcp://127.0.0.1:9", token=None, process=process, born=born)
    path = runtime_folder() / f"{process}-9.run"
    path.write_bytes(msgspec.json.encode(stale))
    assert [entry.name for entry in running()] == ["mine"]
    assert not path.exists()


def test_what_cant_be_read_is_removed_if_its_writer_is_gone() -> None:
    enter("mine", "tcp://127.0.0.1:7", None)
    half, ours = runtime_folder() / f"{NOBODY}-0.run", runtime_folder() / f"{os.getpid()}-7.run"
    half.write_text("{")
    ours.write_text("{")
    assert [entry.name for entry in running()] == ["mine"]
    assert not half.exists()
    assert ours.exists()  # It is being written just now.


def test_a_folder_that_others_can_open_isnt_trusted(tmp_path: Path) -> None:
    (tmp_path / "worldline").mkdir(mode=0o755)
    with pytest.raises(UsageError, match="isn't a folder that only you can open"):
        running()
    leave = enter("cell", "tcp://127.0.0.1:7", None)  # The run goes on without.
    leave()


def test_without_a_folder_a_run_goes_on(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(registry, "runtime_folder", lambda: tmp_path / "missing" / "worldline")
    enter("cell", "tcp://127.0.0.1:7", None)()
    assert running() == []


def test_a_server_with_a_name_is_found_while_it_listens() -> None:
    server = Server(plan(["a"]), federation="cell", token="secret")
    assert running() == []
    server.open()
    (entry,) = running("cell")
    assert (entry.address, entry.token) == (str(server.address), server.operator_token)
    server.close()
    assert running() == []
    nameless = Server(plan(["a"]))
    nameless.open()
    assert running() == []
    assert token_at(nameless.address) == nameless.operator_token
    nameless.close()
    assert token_at(nameless.address) is None


def test_metasim_servers_and_primaries_have_a_name_of_their_own() -> None:
    metasim = MetasimServer(["plant"], 0.01)
    metasim.open()
    assert [entry.name for entry in running()] == ["metasim"]
    metasim.__exit__(RuntimeError, RuntimeError("enough"), None)
    primary = Primary(KinematicEngine(WorldDescription(name="empty", models={})), 1)
    primary.open()
    assert [entry.name for entry in running()] == ["world"]
    primary._server.close()
    assert running() == []


@pytest.mark.parametrize(
    ("listening", "meant", "is_found"),
    [
        ("tcp://127.0.0.1:7", "tcp://localhost:7", True),
        ("tcp://0.0.0.0:7", "tcp://127.0.0.1:7", True),
        ("tcp://[::]:7", "tcp://[::1]:7", True),
        ("tcp://[::]:7", "tcp://127.0.0.1:7", True),
        ("tcp://0.0.0.0:7", "tcp://[::1]:7", False),
        ("tcp://localhost:7", "tcp://127.0.0.1:7", True),
        ("tcp://localhost:7", "tcp://localhost:7", True),
        ("tcp://lab-3:7", "tcp://lab-3:7", True),
        ("tcp://127.0.0.1:7", "tcp://127.0.0.1:8", False),
        ("tcp://0.0.0.0:7", "tcp://lab-3:7", False),  # It may be another machine, which is told nothing.
        ("tls://127.0.0.1:7", "tcp://127.0.0.1:7", False),
        ("unix:///run/a", "unix:///run/a", True),
        ("unix:///run/a", "unix:///run/b", False),
    ],
)
def test_a_run_is_found_by_its_address(listening: str, meant: str, is_found: bool) -> None:
    enter("cell", listening, "secret")
    assert token_at(parse_address(meant)) == ("secret" if is_found else None)


@pytest.mark.parametrize("order", [1, -1])
def test_of_several_runs_on_one_port_the_one_that_is_reached_is_found(order: int) -> None:
    places = ["127.0.0.1", "127.0.0.2", "[::1]"]
    for place in places[::order]:
        enter("cell", f"tcp://{place}:7", f"that of {place}")
    for place in places:
        assert token_at(parse_address(f"tcp://{place}:7")) == f"that of {place}"
    assert token_at(parse_address("tcp://[0:0:0:0:0:0:0:1]:7")) == "that of [::1]"
    assert token_at(parse_address("tcp://127.0.0.3:7")) is None


@pytest.mark.parametrize("tried", [["::1", "127.0.0.1"], ["127.0.0.1", "::1"]])
def test_localhost_is_what_is_tried_first(tried: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    found = [(0, 0, 0, "", (place, 7)) for place in tried]
    monkeypatch.setattr(registry.socket, "getaddrinfo", lambda *_, **__: found)
    for place in ("127.0.0.2", "127.0.0.1", "::1"):
        enter("cell", str(Address("tcp", place, 7)), place)
    assert token_at(parse_address("localhost:7")) == tried[0]


def test_one_that_listens_on_one_address_comes_before_one_that_listens_on_all() -> None:
    enter("cell", "tcp://0.0.0.0:7", "everywhere")
    enter("cell", "tcp://[::1]:7", "there")
    assert token_at(parse_address("tcp://[::1]:7")) == "there"
    assert token_at(parse_address("tcp://127.0.0.2:7")) == "everywhere"


def test_a_unix_socket_is_found_by_any_path_to_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "home")
    enter("cell", f"unix://{tmp_path}/link/w.sock", "secret")
    monkeypatch.chdir(tmp_path / "home")
    for path in ("unix:w.sock", "unix://./w.sock", f"unix://{tmp_path}/home/../link/w.sock"):
        assert token_at(parse_address(path)) == "secret"
    assert token_at(parse_address("unix:other.sock")) is None


def test_the_next_run_removes_what_killed_ones_have_left() -> None:
    enter("mine", "tcp://127.0.0.1:7", None)
    stale = RunEntry(name="cell", address="tcp://127.0.0.1:9", token="secret", process=NOBODY, born="5")
    (path := runtime_folder() / f"{NOBODY}-0.run").write_bytes(msgspec.json.encode(stale))
    enter("next", "tcp://127.0.0.1:8", None)
    assert not path.exists()
    assert [entry.name for entry in running()] == ["mine", "next"]


def test_the_birth_of_a_process_tells_it_from_others() -> None:
    assert birth_of(os.getpid()).isdecimal()
    assert birth_of(NOBODY) == ""
