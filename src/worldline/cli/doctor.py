"""`worldline doctor`: what works on this machine, and how to get the rest."""

from __future__ import annotations

import os
import platform
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import time
import webbrowser
from collections.abc import Callable
from contextlib import closing
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from textwrap import wrap
from typing import Literal

import typer
from msgspec import Struct, json, to_builtins
from rich.text import Text

from worldline.builds import UNCOMPILED, build
from worldline.cli.console import PlainConsole
from worldline.cli.options import takes
from worldline.extras import installing
from worldline.model.text import counted

State = Literal["works", "could be better", "missing", "broken"]
_STYLES = {"works": "green", "could be better": "yellow", "missing": "dim", "broken": "red"}

_WIDTH = 100
_CLONE = "in the clone of Worldline"
_MULTICAST = "239.255.76.67"  # LCM's default group
_ANSWER_S = 1.0
_START_S_MAX = 30.0
_FILES_WANTED = 4096  # A server has several for each participant.
_TIMER_S_MAX = 0.001

_EXTRAS = {
    "greenlet": ("greenlet", "federations in one process run on threads, several times slower"),
    "drake": ("pydrake", "Drake diagrams as participants (Python 3.12 or newer)"),
    "lcm": ("lcm", "LCM logs, and public messages of metasim"),
    "mujoco": ("mujoco", "worlds with real physics"),
    "zenoh": ("zenoh", "worlds whose processes find each other on a network"),
    "experiments": ("scipy", "confidence intervals of sweeps"),
    "learn": ("gymnasium", "participants as Gymnasium and PettingZoo environments"),
    "plot": ("matplotlib", "plots of signals and sweeps"),
    "tables": ("pandas", "recordings as frames of pandas, and as Parquet"),
}
"""Each extra, the module that shows that it is installed, and what it is for."""


class Finding(Struct, frozen=True):
    """What was found about one part of the machine. Only what is broken keeps Worldline from running."""

    part: str
    state: State
    found: str
    advice: str = ""


@takes("as_json: --json  Print the findings as JSON.")
def doctor(as_json: bool = False) -> None:
    """Say what works on this machine: Python, compiled modules, extras, network, limits; and how to get the rest."""
    findings = [finding for check in _CHECKS for finding in check()]
    if as_json:
        print(json.format(json.encode(to_builtins(findings)), indent=2).decode())
    else:
        _show(findings)
    if any(finding.state == "broken" for finding in findings):
        raise typer.Exit(3)


def _show(findings: list[Finding]) -> None:
    console = PlainConsole()
    left = max(len(finding.part) for finding in findings)
    middle = max(map(len, _STYLES))
    for finding in findings:
        line = Text(f"{finding.part:<{left}}  ")
        line.append(f"{finding.state:<{middle}}", style=_STYLES[finding.state])
        console.print(line.append(f"  {finding.found}"))
        indent = " " * (left + middle + 4)
        for advice in wrap(finding.advice, _WIDTH, initial_indent=indent, subsequent_indent=indent):
            console.print(advice, style="dim")
    broken = sum(finding.state == "broken" for finding in findings)
    console.print()
    console.print("Worldline runs here." if not broken else f"{counted(broken, 'part')} must be mended first.")


def _python() -> list[Finding]:
    found = f"{platform.python_implementation()} {platform.python_version()}, {platform.system()} {platform.machine()}"
    if sys.version_info < (3, 14):
        return [Finding("Python", "works", found)]
    return [Finding("Python", "could be better", found, "Worldline is tested with Python 3.11 to 3.13")]


def _compiled() -> list[Finding]:
    if not build.startswith("plain"):
        return [Finding("hot modules", "works", build)]
    if os.environ.get(UNCOMPILED):
        return [Finding("hot modules", "could be better", build, f"unset {UNCOMPILED}")]
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    advice = f"`make build` {_CLONE}: same digests, federations twice as fast, the kernel 4 to 12 times"
    if compiler is None:
        advice = f"install a C compiler, then {advice}"
    return [Finding("hot modules", "could be better", build, advice)]


def _extras() -> list[Finding]:
    return [_extra(name, module, purpose) for name, (module, purpose) in _EXTRAS.items()]


def _extra(name: str, module: str, purpose: str) -> Finding:
    install = installing(name)
    if find_spec(module) is None:
        return Finding(name, "missing", purpose, install)
    try:
        import_module(module)
    except (ImportError, OSError) as error:  # A library of the system is missing, or was built for another one.
        return Finding(name, "missing", f"{module} is installed and can't be loaded: {error}", install)
    distribution = {"pydrake": "drake", "mujoco": "mujoco-core", "zenoh": "eclipse-zenoh"}.get(module, module)
    try:
        return Finding(name, "works", f"{distribution} {version(distribution)}")
    except PackageNotFoundError:  # From elsewhere: a system package, a source tree.
        return Finding(name, "works", f"{module}, of unknown version")


def _mpi() -> list[Finding]:
    starter = shutil.which("mpiexec", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}")
    if find_spec("mpi4py") is None or starter is None:
        lacking = "mpi4py" if starter is not None else "an MPI (mpiexec)"
        return [Finding("mpi", "missing", f"runs on clusters; {lacking} is missing", installing("mpi"))]
    asked = (starter, "-n", "2", sys.executable, "-c", "from mpi4py import MPI; assert MPI.COMM_WORLD.size == 2")
    try:
        subprocess.run(asked, check=True, capture_output=True, timeout=_START_S_MAX)
    except (subprocess.SubprocessError, OSError) as error:
        advice = f"the MPI of mpi4py and of {starter} may differ: {installing('mpi')} brings both"
        return [Finding("mpi", "missing", f"two ranks can't be started: {error}", advice)]
    return [Finding("mpi", "works", f"mpi4py {version('mpi4py')}, {starter}")]


def _cores() -> list[Finding]:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return [Finding("cores", "works", f"{counted(cores, 'core')} for this process")]


def _files() -> list[Finding]:
    try:
        import resource
    except ImportError:  # Windows has no such limit.
        return []
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    found = f"{soft} open files in a process"
    if soft >= _FILES_WANTED or soft == hard:
        return [Finding("file descriptors", "works", found)]
    return [Finding("file descriptors", "could be better", found, f"`ulimit -n {hard}` allows more")]


def _ports() -> list[Finding]:
    try:
        with closing(socket.create_server(("127.0.0.1", 0))) as listening:
            socket.create_connection(listening.getsockname(), timeout=_ANSWER_S).close()
    except OSError as error:
        advice = "a firewall or sandbox forbids it; executors unix and in-process need no ports"
        return [Finding("TCP ports", "broken", f"no connection on the loopback interface: {error.strerror}", advice)]
    return [Finding("TCP ports", "works", "loopback connections")]


def _unix_sockets() -> list[Finding]:
    if not hasattr(socket, "AF_UNIX"):
        return [Finding("Unix sockets", "missing", "this system has none; processes talk over TCP")]
    try:
        with (
            tempfile.TemporaryDirectory() as folder,
            closing(socket.socket(socket.AF_UNIX)) as listening,
            closing(socket.socket(socket.AF_UNIX)) as calling,
        ):
            listening.bind(f"{folder}/socket")
            listening.listen()
            calling.connect(f"{folder}/socket")
    except OSError as error:
        advice = "set TMPDIR to a folder with a short path on a local disk"
        return [Finding("Unix sockets", "broken", f"{tempfile.gettempdir()}: {error.strerror or error}", advice)]
    return [Finding("Unix sockets", "works", tempfile.gettempdir())]


def _multicast() -> list[Finding]:
    group = struct.pack("4s4s", socket.inet_aton(_MULTICAST), socket.inet_aton("127.0.0.1"))
    try:
        with (
            closing(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) as receiving,
            closing(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) as sending,
        ):
            receiving.bind(("", 0))
            receiving.settimeout(_ANSWER_S)
            receiving.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, group)
            sending.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton("127.0.0.1"))
            sending.sendto(b"worldline", (_MULTICAST, receiving.getsockname()[1]))
            receiving.recv(16)
    except OSError as error:
        advice = (
            "only public LCM over udpm needs it: `ip link set lo multicast on && ip route add 224.0.0.0/4 dev lo`, or"
            " tcpq:// instead"
        )
        return [Finding("multicast", "missing", f"no datagram on the loopback interface: {error}", advice)]
    return [Finding("multicast", "works", f"{_MULTICAST} on the loopback interface")]


def _clock() -> list[Finding]:
    """Sleep shortly: under some virtual machines and power plans that takes far longer than it should."""
    begun = time.perf_counter()
    time.sleep(_TIMER_S_MAX)
    late = time.perf_counter() - begun - _TIMER_S_MAX
    found = f"resolution {time.get_clock_info('perf_counter').resolution:.0e} s; a timer was {late * 1e6:.0f} µs late"
    if late < 20 * _TIMER_S_MAX:
        return [Finding("clock", "works", found)]
    return [Finding("clock", "could be better", found, "the machine is busy: real-time pacing will be uneven")]


def _browser() -> list[Finding]:
    try:
        found = getattr(webbrowser.get(), "name", "found")
    except webbrowser.Error:
        advice = "pictures and players are files: open them on another machine"
        return [Finding("browser", "missing", "no browser here", advice)]
    return [Finding("browser", "works", found)]


_CHECKS: tuple[Callable[[], list[Finding]], ...] = (
    *(_python, _compiled, _extras, _mpi),
    *(_cores, _files, _ports, _unix_sockets, _multicast, _clock, _browser),
)
