"""Runs of `worldline run` as processes, several at once, each ended with whoever wanted it.

A run is started through its lifeline (`processes.lifeline`), so it ends also when we are killed; what it has started
itself ends with it. It has a session of its own: a Ctrl-C in the terminal reaches only us, and we end it. What it
prints goes to files: at a pipe we would wait for everybody who has inherited it.
"""

from __future__ import annotations

import os
import shlex
import signal
import site
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from shutil import which
from typing import IO, Any, Self

from msgspec import DecodeError, Struct, json

from worldline.federation.environment import OUTPUT
from worldline.files.saving import ScratchFolder
from worldline.launch.processes import describe_exit
from worldline.model.errors import InternalError, Interrupted, LossError, UsageError
from worldline.processes.lifeline import Lifeline
from worldline.targets.variants import HASH_SEED, Factor, Variant

_GRACE_S = 3.0
_WORLDLINE = (sys.executable, "-m", "worldline")


class RunSummary(Struct, frozen=True):
    """What a run says of itself, as far as it matters here."""

    kind: str
    name: str
    executor: str
    digest: str
    events: int
    remarks: tuple[str, ...] = ()

    @property
    def events_of_history(self) -> int | None:
        """How many events there were; None for a federation: how many steps it takes depends on the executor."""
        return None if self.kind == "federation" else self.events


class _Failed(Struct, frozen=True):
    """What a run says of itself if it has failed."""

    failure: dict[str, Any]


class VariantRun(Struct, frozen=True, kw_only=True):
    """What came of one run: `said`, or `error`, a text, and the exit code that goes with it."""

    variant: Variant
    seconds: float
    said: RunSummary | None = None
    error: str = ""
    exit_code: int = 0
    is_refused: bool = False  # It hasn't begun.

    @property
    def digest(self) -> str | None:
        return None if self.said is None else self.said.digest


class RunProcesses:
    """Runs of one target, with the same options. Whatever still runs when this is left is ended."""

    def __init__(self, target: str, options: Sequence[str], *, at_once: int | None = None) -> None:
        self._arguments = (target, *options)
        self._threads = ThreadPoolExecutor(at_once or os.cpu_count() or 1, thread_name_prefix="worldline verify")
        self._lock = threading.Lock()
        self._running: dict[subprocess.Popen[bytes], Lifeline] = {}
        self._told: IO[bytes] | None = None  # What the run that tells its status writes.
        self._is_over = False
        self._folder = ScratchFolder("verify")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()
        self._threads.shutdown(cancel_futures=True)
        self._folder.cleanup()

    def start(self, variant: Variant, record: Path | None = None, *, tells: bool = False) -> Future[VariantRun]:
        """Let a run begin as soon as there is room for it. If it `tells`, `status` returns how far it is."""
        return self._threads.submit(self._run, variant, record, tells)

    def status(self) -> str:
        """Return what the run that tells it has said last of how far it is; nothing if it hasn't yet."""
        with self._lock:
            lines = [] if self._told is None else _text(self._told).decode("utf-8", "replace").splitlines()
        return next((line for line in reversed(lines) if line.startswith(("still running: ", "... "))), "")

    def _command(self, variant: Variant, record: Path | None, tells: bool) -> list[str]:
        recorded = ["--no-record"] if record is None else ["--record", str(record.absolute())]
        given = self._arguments_of(variant)
        run = ["run", *given, *variant.options, *recorded, "--json", *([] if tells else ["--quiet"])]
        return [*([mpiexec(), "-n", str(variant.ranks)] if variant.ranks else ()), *_WORLDLINE, *run]

    def shown(self, variant: Variant, record: str) -> str:
        """Return the command as a person would type it."""
        first = [f"{name}={value}" for name, value in variant.environment.items() if name == HASH_SEED or value != "0"]
        if variant.factor is Factor.HOME:
            first.append("HOME=$(mktemp -d)")
        run = ["worldline", "run", *self._arguments_of(variant), *variant.options, "--record"]
        words = shlex.join(["mpiexec", "-n", str(variant.ranks), *run] if variant.ranks else run)
        if variant.factor is Factor.FOLDER:
            return f'(cd / && {" ".join([*first, words])} "$OLDPWD/{record}")'
        return " ".join([*first, words, shlex.quote(record)])

    def _arguments_of(self, variant: Variant) -> tuple[str, ...]:
        """Return target and options; if they are to be read in another folder, with the target's whole path."""
        target, *options = self._arguments
        file, colon, name = target.partition(":")
        if variant.factor is Factor.FOLDER and Path(file).exists():
            target = f"{Path(file).absolute()}{colon}{name}"
        return target, *options

    def end(self) -> None:
        """End all that runs: by asking, and then without."""
        with self._lock:
            self._is_over = True
            running = list(self._running)
        for process in running:
            process.send_signal(signal.SIGTERM)
        until = time.monotonic() + _GRACE_S
        try:
            for process in running:
                with suppress(subprocess.TimeoutExpired):
                    process.wait(max(0.0, until - time.monotonic()))
        finally:
            for process in running:
                if process.poll() is None:
                    _kill_all(process)

    # --- In threads of their own ---

    def _run(self, variant: Variant, record: Path | None, tells: bool) -> VariantRun:
        began = time.monotonic()
        folder = tempfile.mkdtemp(dir=self._folder.name)  # What the model leaves is of no use, and not to be mixed up.
        environment = {**os.environ, OUTPUT: folder, **variant.environment}
        if variant.factor is Factor.HOME:  # What was installed for this user alone is found all the same.
            environment |= {"HOME": tempfile.mkdtemp(dir=self._folder.name), "PYTHONUSERBASE": site.getuserbase()}
        place = self._likeness() if variant.factor is Factor.FOLDER else None
        with _new_file(self._folder) as output, _new_file(self._folder) as complaints:
            process = self._started(self._command(variant, record, tells), environment, place, output, complaints)
            if tells:
                self._told = complaints
            code = process.wait()
            _kill_all(process)
            with self._lock:
                self._running.pop(process).let_go()
                self._told = None if tells else self._told
            return _judged(variant, time.monotonic() - began, code, _text(output), _text(complaints))

    def _likeness(self) -> str:
        """Return a folder in which all is found that is in this one."""
        place = tempfile.mkdtemp(dir=self._folder.name)
        for each in Path.cwd().iterdir():
            Path(place, each.name).symlink_to(each)
        return place

    def _started(
        self,
        command: list[str],
        environment: dict[str, str],
        place: str | None,
        output: IO[bytes],
        complaints: IO[bytes],
    ) -> subprocess.Popen[bytes]:
        with self._lock:
            if self._is_over:
                raise Interrupted("nothing more is run")
            line = Lifeline()
            process = subprocess.Popen(
                line.tied(command),
                env=environment,
                cwd=place,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=complaints,
                start_new_session=True,
                pass_fds=[line.end],
            )
            line.hand_over()
            self._running[process] = line
        return process


def _new_file(folder: ScratchFolder) -> IO[bytes]:
    return tempfile.TemporaryFile(dir=folder.name)


def _text(file: IO[bytes]) -> bytes:
    """Return all that is in a file, and leave its position alone: whoever still writes there shares it."""
    return os.pread(file.fileno(), os.fstat(file.fileno()).st_size, 0)


def _kill_all(process: subprocess.Popen[bytes]) -> None:
    """Kill a run, if it is still there, and what it has started; its session has its number."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)


def _judged(variant: Variant, seconds: float, code: int, output: bytes, complaints: bytes) -> VariantRun:
    """Return what came of a run: what it says, or what is said of its failure."""
    if code == 0:
        try:
            return VariantRun(variant=variant, seconds=seconds, said=json.decode(output, type=RunSummary))
        except DecodeError as problem:
            error, code = f"the run doesn't say what came of it: {problem}", InternalError.exit_code
    else:
        error = _failure(output) or _last_words(complaints.decode("utf-8", "replace"))
        if code < 0:
            error, code = ": ".join(filter(None, (f"its process {describe_exit(code)}", error))), LossError.exit_code
    is_refused = code == UsageError.exit_code and not output  # What has begun says what came of it.
    return VariantRun(variant=variant, seconds=seconds, error=error, exit_code=code, is_refused=is_refused)


def _failure(output: bytes) -> str:
    try:
        return str(json.decode(output, type=_Failed).failure["text"])
    except (DecodeError, KeyError):
        return ""  # It wasn't even begun.


def _last_words(complaints: str) -> str:
    """Return the error that a command ends with; before it may stand what the model prints."""
    return f"\n{complaints}".rpartition("\nworldline: ")[2].strip()


def mpiexec() -> str:
    """Return the mpiexec that belongs to this Python, or is on the search path; refuse to go without."""
    beside = Path(sys.executable).with_name("mpiexec")
    found = str(beside) if beside.exists() else which("mpiexec")
    if found is None or find_spec("mpi4py") is None:
        raise UsageError(
            "there is no MPI here", advice="pip install '.[mpi]' in the clone of Worldline, or leave --mpi out"
        )
    return found
