"""`worldline doctor`: it says what works, what doesn't, and what to do."""

from __future__ import annotations

import socket
import subprocess
from pathlib import Path

import pytest
from msgspec import json
from typer.testing import CliRunner

from worldline.cli import doctor
from worldline.cli.commands import app

RUN = CliRunner()


@pytest.fixture(autouse=True)
def _no_ranks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Starting MPI takes seconds, and other tests do."""
    monkeypatch.setattr(doctor.subprocess, "run", lambda *_, **__: None)


def parts(*arguments: str) -> dict[str, dict[str, str]]:
    result = RUN.invoke(app, ["doctor", "--json", *arguments])
    return {found["part"]: found for found in json.decode(result.stdout)}


def test_what_every_machine_has_works() -> None:
    result = RUN.invoke(app, ["doctor"])
    assert result.exit_code == 0
    assert result.stdout.splitlines()[-1] == "Worldline runs here."
    found = parts()
    assert found["Python"]["state"] == found["TCP ports"]["state"] == found["Unix sockets"]["state"] == "works"
    assert {"hot modules", "greenlet", "mujoco", "mpi", "cores", "multicast", "clock", "browser"} <= set(found)


def test_what_is_missing_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "find_spec", lambda _: None)
    found = parts()
    assert found["zenoh"] == {
        "part": "zenoh",
        "state": "missing",
        "found": "worlds whose processes find each other on a network",
        "advice": "make extras WITH=zenoh in the clone of Worldline",
    }
    monkeypatch.setattr("worldline.extras._PACKAGE", Path("/lib/site-packages/worldline"))
    assert parts()["zenoh"]["advice"] == "pip install 'worldline[zenoh]'"
    assert found["mpi"]["state"] == "missing"


def test_what_is_installed_and_cant_be_loaded_is_no_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(name: str) -> None:
        raise ImportError(f"lib{name}.so: cannot open shared object file")

    monkeypatch.setattr(doctor, "import_module", refuse)
    assert "libmujoco.so" in parts()["mujoco"]["found"]


def test_without_a_loopback_interface_nothing_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(socket, "create_server", refuse)
    result = RUN.invoke(app, ["doctor"])
    assert result.exit_code == 3
    assert "no connection on the loopback interface: Operation not permitted" in result.stdout
    assert result.stdout.splitlines()[-1] == "1 part must be mended first."


def test_ranks_that_cant_be_started_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise subprocess.CalledProcessError(1, "mpiexec")

    monkeypatch.setattr(doctor.subprocess, "run", fail)
    if doctor.find_spec("mpi4py") is not None:
        assert "two ranks can't be started" in parts()["mpi"]["found"]
