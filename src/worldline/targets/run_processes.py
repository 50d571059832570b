"""Runs of `worldline run` as processes, several at once, each ended with this process.

A run is tied to this process (`processes.tied`), so it ends also when we are killed; what it has started
itself ends with it. It has a session of its own: a Ctrl-C in the terminal reaches only us, and we end it. What it
prints goes to files: at a pipe we would wait for every process that has inherited it.
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
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from difflib import get_close_matches
from enum import StrEnum
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from shutil import which
from typing import IO, Self

from msgspec import DecodeError, Struct, json

from worldline.builds import UNCOMPILED
from worldline.extras import installing
from worldline.federation.environment import OUTPUT
from worldline.files.saving import ScratchFolder
from worldline.model.errors import InternalError, Interrupted, LossError, UsageError, shown
from worldline.processes.tied import TiedProcess, describe_exit, module_command

# The variants of a run: all that must not show in what comes of it, and what it means if it does.
#
# One thing differs from the reference in every variant, so that a difference says where to look. The reference is the
# target as `worldline run` runs it by itself, under the hash seed 0.

HASH_SEED = "PYTHONHASHSEED"

RESTLESS = "WORLDLINE_RESTLESS_THREADS"
TIME_ZONE = "TZ"
LOCALE = "LC_ALL"

HASH_SEEDS = (1, 2)
SHAKES = (1, 2)
RUNS_AHEAD = (10,)
RANKS = 2
"""How many ranks of MPI a run gets."""


class Factor(StrEnum):
    """What is different in a variant. Earlier ones explain differences in later ones."""

    NOTHING = "again"
    THREADS = "threads"
    HASH_SEED = "hash-seed"
    FOLDER = "folder"
    HOME = "home"
    LOCALE = "locale"
    TIME_ZONE = "time-zone"
    EXECUTOR = "executor"
    SHAKE = "shake"
    RUN_AHEAD = "run-ahead"
    BUILD = "build"


class Variant(Struct, frozen=True, kw_only=True):
    """One way to run a target. With `ranks`, it is run by so many ranks of MPI.

    What is None is as it is here: the hash seed, and which build is used. `surroundings` are further variables of the
    environment. What differs in its folder or its home is run in another one.
    """

    name: str
    factor: Factor
    options: tuple[str, ...] = ()
    hash_seed: int | None = 0
    is_compiled: bool | None = True
    ranks: int = 0
    surroundings: tuple[tuple[str, str], ...] = ()

    @property
    def environment(self) -> dict[str, str]:
        seed = {} if self.hash_seed is None else {HASH_SEED: str(self.hash_seed)}
        build = {} if self.is_compiled is None else {UNCOMPILED: "0" if self.is_compiled else "1"}
        return {**seed, **build, **dict(self.surroundings)}


class _Ways(Struct, frozen=True, kw_only=True):
    """In which ways simulations of a kind can be run. `own` are the options that only they have."""

    members: str
    executors: tuple[str, ...] = ("inline", "processes(2)", "processes(3)")
    own: tuple[tuple[str, Factor, tuple[str, ...]], ...] = ()
    has_mpi: bool = True
    is_compiled: bool = True


_SHAKEN = tuple((f"shake-{number}", Factor.SHAKE, ("--shake", str(number))) for number in SHAKES)
_AHEAD = tuple((f"run-ahead-{steps}", Factor.RUN_AHEAD, ("--set", f"run-ahead={steps}")) for steps in RUNS_AHEAD)
_KINDS: Mapping[str, _Ways] = {
    "federation": _Ways(
        members="participants", executors=("in-process", "tcp", "unix", "workers(2)"), own=_SHAKEN, has_mpi=False
    ),
    "kernel": _Ways(members="entities"),
    "nodes": _Ways(members="nodes"),
    "spacetime": _Ways(
        members="agents", executors=("inline", "processes(2)", "processes(3)", "shuffled(1)", "shuffled(2)")
    ),
    "simpy": _Ways(members="processes", executors=("inline",), has_mpi=False),
    "world": _Ways(members="models", own=_AHEAD, has_mpi=False, is_compiled=False),
}
_MEANINGS = {
    Factor.NOTHING: "two equal runs differ: a clock, global randomness, id(), or a thread",
    Factor.THREADS: "it matters when threads take turns: threads race",
    Factor.HASH_SEED: "hash seeds differ: something iterates over a set, or goes by hash()",
    Factor.FOLDER: "working folders differ: something goes by the path of the current folder",
    Factor.HOME: "home folders differ: something goes by HOME, or by what lies there",
    Factor.LOCALE: "locales differ: something goes by the language or the number format of the system",
    Factor.TIME_ZONE: "time zones differ: something converts to or from local time",
    Factor.EXECUTOR: "executors differ: state is shared between {members}",
    Factor.SHAKE: "start orders and delays differ: state is shared, or something goes by when things happen to come",
    Factor.RUN_AHEAD: "it matters how far it runs ahead: a bug in Worldline or in the physics engine",
    Factor.BUILD: "compiled and plain Python differ: a bug in Worldline, unless the model looks at what runs it",
}


def reference_on(executor: str | None) -> Variant:
    """Return what the others are compared with: the target as it is run by itself, or on a certain executor."""
    options = () if executor is None else ("--executor", executor)
    return Variant(name="reference", factor=Factor.NOTHING, options=options)


def variants_of(kind: str, executor: str, *, mpi: bool = False, again: int = 1) -> list[Variant]:
    """Return the variants of a kind of simulation whose reference runs on this executor.

    What goes by luck is there `again` times.
    """
    ways = _KINDS[kind]
    on = ("--executor", executor)
    others = [other for other in ways.executors if other != executor]
    often = ((RESTLESS, "1"),)
    repeats = ["", *(f"-{number}" for number in range(2, again + 1))]
    found = [Variant(name=f"again{number}", factor=Factor.NOTHING, options=on) for number in repeats]
    found += [
        Variant(name=f"threads{number}", factor=Factor.THREADS, options=on, surroundings=often) for number in repeats
    ]
    found += [
        Variant(name=f"hash-seed-{seed}", factor=Factor.HASH_SEED, options=on, hash_seed=seed) for seed in HASH_SEEDS
    ]
    found += [
        Variant(name="folder", factor=Factor.FOLDER, options=on),
        Variant(name="home", factor=Factor.HOME, options=on),
        Variant(name="locale", factor=Factor.LOCALE, options=on, surroundings=((LOCALE, another_locale()),)),
        Variant(name="time-zone", factor=Factor.TIME_ZONE, options=on, surroundings=((TIME_ZONE, _another_zone()),)),
    ]
    found += [Variant(name=other, factor=Factor.EXECUTOR, options=("--executor", other)) for other in others]
    if mpi and ways.has_mpi:
        found.append(Variant(name="mpi", factor=Factor.EXECUTOR, options=("--executor", "mpi"), ranks=RANKS))
    found += [Variant(name=name, factor=factor, options=(*on, *options)) for name, factor, options in ways.own]
    if ways.is_compiled:
        found.append(Variant(name="uncompiled", factor=Factor.BUILD, options=on, is_compiled=False))
    return found


def chosen(variants: Sequence[Variant], only: Iterable[str], of_what: str = "") -> list[Variant]:
    """Return the variants that are named, themselves or by what they differ in; all, if none is."""
    wanted = [name.strip() for name in only if name.strip()]
    for name in wanted:
        if not any(name in (each.name, each.factor) for each in variants):
            there = list(dict.fromkeys([*(each.name for each in variants), *(each.factor.value for each in variants)]))
            near = get_close_matches(name, there, n=1)
            advice = f"did you mean {near[0]}?" if near else f"there are: {', '.join(there)}"
            raise UsageError(f"there is no variant {shown(name)}{of_what}", advice=advice)
    return [each for each in variants if not wanted or each.name in wanted or each.factor in wanted]


def check_names(only: Iterable[str]) -> None:
    """Refuse what names no variant of any kind of simulation, before anything is run."""
    every = [each for kind in _KINDS for each in variants_of(kind, "", mpi=True)]
    chosen(list({each.name: each for each in every}.values()), only)


def depend_on_kind(only: Iterable[str]) -> bool:
    """Whether some kinds of simulations have variants of these names, and others don't."""
    names = {kind: {name for each in variants_of(kind, "") for name in (each.name, each.factor)} for kind in _KINDS}
    return any(name.strip() not in known for name in only for known in names.values())


def meaning_of(factors: Iterable[Factor], kind: str) -> str:
    """Say what is probably wrong with a model whose runs differ in these: in the first of them, and in nothing else.

    What changes by itself explains all others, and state that is shared whatever comes of other start orders.
    """
    differing = list(dict.fromkeys(factors))
    if Factor.NOTHING in differing:
        differing = [Factor.NOTHING]
    elif Factor.EXECUTOR in differing and Factor.SHAKE in differing:
        differing.remove(Factor.SHAKE)
    return "; ".join(_MEANINGS[factor].format(members=_KINDS[kind].members) for factor in differing)


@cache
def another_locale() -> str:
    """Return a locale that the system has, and that isn't the one of this process: with another language, if it can."""
    here = next(filter(None, map(os.environ.get, (LOCALE, "LC_CTYPE", "LANG"))), "C")
    there: list[str] = []
    with suppress(OSError, subprocess.SubprocessError):
        listed = subprocess.run(["locale", "-a"], capture_output=True, text=True, check=True, timeout=10).stdout
        there = sorted(name for name in listed.split() if "utf" in name.lower() and name[:2] not in ("C.", "en"))
    others = [name for name in there if name[:2] != here[:2]]
    return others[0] if others else "C" if here != "C" else "C.UTF-8"


def _another_zone() -> str:
    """Return a time zone that isn't the one here, in a form that needs no table of zones."""
    zones = ("XYZ-13:45", "XYZ+9:30")
    return zones[os.environ.get(TIME_ZONE) == zones[0]]


_GRACE_S = 3.0


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
        self._running: list[TiedProcess] = []
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
        return [*([mpiexec(), "-n", str(variant.ranks)] if variant.ranks else ()), *module_command("worldline"), *run]

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
            process.end(0)
            with self._lock:
                self._running.remove(process)
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
    ) -> TiedProcess:
        with self._lock:
            if self._is_over:
                raise Interrupted("nothing more is run")
            process = TiedProcess(
                command, env=environment, cwd=place, stdout=output, stderr=complaints, start_new_session=True
            )
            self._running.append(process)
        return process


def _new_file(folder: ScratchFolder) -> IO[bytes]:
    return tempfile.TemporaryFile(dir=folder.name)


def _text(file: IO[bytes]) -> bytes:
    """Return all that is in a file, and leave its position alone: a process that still writes there shares it."""
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
        return str(json.decode(output)["failure"]["text"])
    except (DecodeError, KeyError, TypeError):
        return ""  # It wasn't even begun.


def _last_words(complaints: str) -> str:
    """Return the error that a command ends with; before it may stand what the model prints."""
    return f"\n{complaints}".rpartition("\nworldline: ")[2].strip()


def mpiexec() -> str:
    """Return the mpiexec that belongs to this Python, or is on the search path; refuse to go without."""
    beside = Path(sys.executable).with_name("mpiexec")
    found = str(beside) if beside.exists() else which("mpiexec")
    if found is None or find_spec("mpi4py") is None:
        raise UsageError("there is no MPI here", advice=f"{installing('mpi')}, or leave --mpi out")
    return found
