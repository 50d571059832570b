"""The conformance matrix: model × executor × workers × build × hash seed, and one digest for each model.

``python -m tests.kernel.matrix [model ...]`` prints a line for each model, with its digest or with what differs, and
ends with exit code 1 if anything does. Compared is not only the digest, but all that can be seen of a run.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from tests.kernel.models import MODELS, observe
from worldline.kernel import build

ROOT = Path(__file__).parents[2]
MPIEXEC = Path(sys.executable).parent / "mpiexec"

BUILDS = {"compiled": "0", "plain": "1"}
HASH_SEEDS = ("0", "1")
EXECUTORS = ("inline", "processes(1)", "processes(2)", "processes(4)")
RANKS = (1, 2, 4)

_COLUMNS_SHOWN = 3

Prints = dict[str, str]  # What was compared, and its value: short ones as they are, long ones as a hash.


class Column(NamedTuple):
    """A way to run a model."""

    executor: str
    build: str
    hash_seed: str

    def __str__(self) -> str:
        return f"{self.executor}, {self.build}, hash seed {self.hash_seed}"


def prints(name: str, executor: str) -> Prints:
    """Run a model, and return what came of it in a form that is the same under every hash seed."""
    model = MODELS[name]
    seen = observe(model.build(), model.until, executor)
    long = {what: hashlib.sha256(repr(getattr(seen, what)).encode()).hexdigest()[:16] for what in seen._fields}
    return {**long, "digest": seen.digest, "now": str(seen.now), "events": str(seen.events)}


# Each build and hash seed needs an interpreter of its own, and MPI one for each rank. They don't run this module as
# their main one: workers load that, and it would be most of what they do.
REPORTER = "import sys; from tests.kernel.matrix import report; report(*sys.argv[1:])"


def report(folder: str, executors: str, *names: str) -> None:
    """Run models with executors, and write what came of it to a file; every rank of MPI has a file of its own."""
    found = {name: {executor: prints(name, executor) for executor in executors.split()} for name in names or MODELS}
    rank = 0
    if executors == "mpi":
        from mpi4py import MPI

        rank = MPI.COMM_WORLD.Get_rank()
    Path(folder, f"report-{rank}.json").write_text(json.dumps({"build": build, "models": found}))


def reports(
    build_wanted: str, hash_seed: str, executors: Sequence[str], names: Iterable[str] = (), *, ranks: int = 0
) -> Iterator[tuple[Column, str, Prints]]:
    """Run models in another interpreter, or as many as there are ranks; return (column, model, what came of it)."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-c", REPORTER, folder, " ".join(executors), *names]
        if ranks:
            command = [str(MPIEXEC), "-n", str(ranks), *command]
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed, "WORLDLINE_UNCOMPILED": BUILDS[build_wanted]}
        environment["MPIEXEC_TIMEOUT"] = "100"  # If it is us who end it, its ranks go on.
        ended = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=110)
        if ended.returncode:
            raise RuntimeError(f"{' '.join(command)} ended with {ended.returncode}:\n{ended.stdout}{ended.stderr}")
        for number in range(max(1, ranks)):
            told = json.loads(Path(folder, f"report-{number}.json").read_text())
            for name, by_executor in told["models"].items():
                for executor, found in by_executor.items():
                    shown = f"mpi rank {number} of {ranks}" if ranks else executor
                    yield Column(shown, told["build"].partition(" (")[0], hash_seed), name, found


def columns(names: Sequence[str]) -> Iterator[tuple[Column, str, Prints]]:
    """Run models in all ways there are."""
    for wanted in BUILDS:
        for hash_seed in HASH_SEEDS:
            yield from reports(wanted, hash_seed, EXECUTORS, names)
            for ranks in RANKS:
                yield from reports(wanted, hash_seed, ["mpi"], names, ranks=ranks)


def disagreement(runs: list[tuple[Column, Prints]]) -> list[str]:
    """Say in what the runs of one model differ, and which of them do."""
    first, expected = runs[0]
    lines = []
    for what, value in expected.items():
        by_value: dict[str, list[str]] = {}
        for column, found in runs:
            by_value.setdefault(found[what], []).append(str(column))
        if len(by_value) > 1:
            lines.append(f"  {what} is {value} with {first}, but")
            lines += [f"    {other} with {_some(by_value[other])}" for other in by_value if other != value]
    return lines


def _some(columns: list[str]) -> str:
    more = f"; and {len(columns) - _COLUMNS_SHOWN} more" if len(columns) > _COLUMNS_SHOWN else ""
    return "; ".join(columns[:_COLUMNS_SHOWN]) + more


def main(names: Sequence[str]) -> int:
    """Print the matrix; return the exit code."""
    by_model: dict[str, list[tuple[Column, Prints]]] = {name: [] for name in names}
    for column, name, found in columns(names):
        if sys.stderr.isatty():
            print(f"\r{column}: {name}", end="\033[K\r", file=sys.stderr, flush=True)
        by_model[name].append((column, found))
    builds = sorted({column.build for runs in by_model.values() for column, _ in runs})
    print(f"{', '.join(EXECUTORS)}, mpi with {', '.join(map(str, RANKS))} ranks;", end=" ")
    print(f"{', '.join(builds)}; hash seeds {', '.join(HASH_SEEDS)}")
    width = max(map(len, names))
    wrong = 0
    for name, runs in by_model.items():
        lines = disagreement(runs)
        wrong += bool(lines)
        print(f"{name:{width}}  {'DIFFERS' if lines else runs[0][1]['digest']}  {len(runs)} runs", *lines, sep="\n")
    if len(builds) < len(BUILDS):
        print("The kernel isn't compiled here, so one build was compared with itself.", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m tests.kernel.matrix", description="Print the conformance matrix.")
    parser.add_argument("model", nargs="*", help="the models to run; all, if none is named")
    chosen = parser.parse_args().model
    unknown = [name for name in chosen if name not in MODELS]
    if unknown:
        parser.error(f"there is no model {unknown[0]}; there are {', '.join(MODELS)}")
    sys.exit(main(chosen or list(MODELS)))
