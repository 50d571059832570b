"""`worldline diff`: where two runs diverge, why, and what followed.

What isn't a recording yet is run first, as `worldline run` would, in a process of its own: two runs in one process
could share what neither of them may.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from concurrent.futures import Future
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import typer

from worldline.cli.console import PlainConsole, own_lines, print_json
from worldline.cli.options import takes
from worldline.cli.runner import Interruption
from worldline.files.saving import ScratchFolder
from worldline.history.difference import SHOWN_MAX
from worldline.model import UsageError
from worldline.recording.comparing import compare_recordings
from worldline.recording.scan import header_of
from worldline.targets import RunOptions
from worldline.targets.run_processes import Factor, RunProcesses, Variant, VariantRun

_DIFFERS = 1
_OF_BOTH = """
For targets, which are run first:
both.settings: --set NAME=VALUE  Set a parameter in both runs.
both.faults: --fault TEXT  Add a fault to both runs.
both.seed: --seed N  Seed of both runs.
both.until: --until TIME  End of both runs.
both.executor: --executor EXECUTOR  Executor of both runs.
both.draws: --draws TABLE  Replace draws in both runs.
"""
_OF_A = """
For targets, which are run first:
of_a.settings: --set-a NAME=VALUE  Set a parameter in A only.
of_a.faults: --fault-a TEXT  Add a fault to A.
of_a.seed: --seed-a N  Seed of A.
of_a.executor: --executor-a EXECUTOR  Executor of A.
of_a.draws: --draws-a TABLE  Replace draws in A.
"""
_OF_B = _OF_A.replace("-a ", "-b ").replace("of_a", "of_b").replace(" A.", " B.").replace(" A only", " B only")


class Choice(NamedTuple):
    """A target, and the options that one of two runs has."""

    target: str
    options: Sequence[str]

    @property
    def is_recording(self) -> bool:
        path = Path(self.target)
        return path.suffix == ".mcap" or header_of(path) is not None


@takes(
    f"""
    A  A recording, or a target as for `worldline run`.
    B  Another one (default: A again, with other options).
    --to NAME  Trace how the difference reached this member (default: the last to diverge).
    show_all: --all  Show every member that differs, not just the first {SHOWN_MAX}.
    as_json: --json  Print one JSON object.
    """,
    _OF_BOTH,
    _OF_A,
    _OF_B,
)
def diff(
    a: str,
    b: str | None = None,
    *,
    to: str | None = None,
    show_all: bool = False,
    as_json: bool = False,
    both: RunOptions,
    of_a: RunOptions,
    of_b: RunOptions,
) -> None:
    """Show where two runs diverge: each member's first difference, the earliest cause, and what followed.

    The exit code is 0 if the same happened in both, 1 if not.
    """
    choices = Choice(a, _merged(both, of_a).words()), Choice(a if b is None else b, _merged(both, of_b).words())
    _check(choices, is_alone=b is None, own=(of_a.words(), of_b.words()))
    with Interruption(), ExitStack() as stack:
        difference = compare_recordings(*_recordings(choices, stack), to=to)
    difference.names = choices[0].target, choices[1].target
    if as_json:
        print_json(difference.as_json())
    else:
        console = PlainConsole()
        for line in difference.lines(show_all=show_all):
            console.print(line)
    if not difference.partings.is_same:
        raise typer.Exit(_DIFFERS)
    for choice, is_cut_off in zip(choices, difference.cut_off, strict=True):
        if is_cut_off:
            raise UsageError(f"{choice.target} is cut off, and nothing can be said of what is missing")
    if not difference.is_same:
        raise typer.Exit(_DIFFERS)


def _merged(both: RunOptions, own: RunOptions) -> RunOptions:
    """Return what is wanted of one run: what is said of both, and what is said of it alone."""
    return RunOptions(
        seed=both.seed if own.seed is None else own.seed,
        until=both.until,
        executor=own.executor or both.executor,
        settings=(*both.settings, *own.settings),
        faults=(*both.faults, *own.faults),
        draws=own.draws or both.draws,
    )


def _check(choices: tuple[Choice, Choice], *, is_alone: bool, own: tuple[Sequence[str], Sequence[str]]) -> None:
    """Refuse what can't be meant."""
    if is_alone and choices[0].is_recording:
        raise UsageError("a recording is compared with another", advice="name two recordings, or targets")
    if is_alone and own[0] == own[1]:
        raise UsageError(
            "nothing says how the two runs are to differ", advice="for instance --seed-b 2 or --set-b NAME=VALUE"
        )
    for side, choice, options in zip("AB", choices, own, strict=True):
        if choice.is_recording and options:
            raise UsageError(f"{side} is a recording, and can't be run with {' '.join(options)}")
    if all(choice.is_recording and choice.options for choice in choices):
        raise UsageError(f"both are recordings, and can't be run with {' '.join(choices[0].options)}")


def _recordings(choices: tuple[Choice, Choice], stack: ExitStack) -> list[Path]:
    """Return two recordings: as they are, or of runs that are made for it, both at once."""
    folder: Path | None = None
    paths, runs = list[Path](), list[tuple[Path, Future[VariantRun]]]()
    for side, choice in zip("ab", choices, strict=True):
        if choice.is_recording:
            paths.append(Path(choice.target))
            continue
        if folder is None:
            folder = Path(stack.enter_context(ScratchFolder("diff")))
        paths.append(folder / f"{side}.mcap")
        processes = stack.enter_context(RunProcesses(choice.target, choice.options, at_once=1))
        as_here = Variant(name=side, factor=Factor.NOTHING, hash_seed=None, is_compiled=None)
        runs.append((paths[-1], processes.start(as_here, paths[-1])))
    finished = [run.result() for _, run in runs]
    kinds = [run.said.kind for run in finished if run.said is not None]
    if len(set(kinds)) > 1:
        raise UsageError(f"A is of the kind {kinds[0]}, and B of the kind {kinds[1]}", advice="compare like with like")
    for (path, _), run in zip(runs, finished, strict=True):
        _finish(path, run)
    return paths


def _finish(path: Path, run: VariantRun) -> None:
    """Take a run that is over. One that failed is compared as far as it came; one that never began ends the command."""
    if not path.exists():
        PlainConsole(sys.stderr).print(own_lines(f"worldline: {run.error}"), style="red")
        raise typer.Exit(run.exit_code or _DIFFERS)
