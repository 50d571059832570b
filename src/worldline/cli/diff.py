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
from typing import Annotated, NamedTuple

import typer

from worldline.cli.console import PlainConsole, own_lines, print_json
from worldline.cli.interruption import Interruption
from worldline.files.saving import ScratchFolder
from worldline.history.diff.difference import SHOWN_MAX
from worldline.model import UsageError
from worldline.recording.comparing import compare_recordings
from worldline.recording.scan import header_of
from worldline.targets.run_processes import RunProcesses, VariantRun
from worldline.targets.variants import Factor, Variant

_DIFFERS = 1
_RUNS = "For targets, which are run first"
_Texts = list[str] | None


class Choice(NamedTuple):
    """A target, and the options that one of two runs has."""

    target: str
    options: Sequence[str]

    @property
    def is_recording(self) -> bool:
        path = Path(self.target)
        return path.suffix == ".mcap" or header_of(path) is not None


def diff(
    a: Annotated[str, typer.Argument(metavar="A", help="A recording, or a target as for `worldline run`.")],
    b: Annotated[
        str | None, typer.Argument(metavar="B", help="Another one (default: A again, with other options).")
    ] = None,
    to: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="Trace how the difference reached this member (default: the last to diverge)."
        ),
    ] = None,
    show_all: Annotated[
        bool, typer.Option("--all", help=f"Show every member that differs, not just the first {SHOWN_MAX}.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    settings: Annotated[
        _Texts,
        typer.Option("--set", rich_help_panel=_RUNS, metavar="NAME=VALUE", help="Set a parameter in both runs."),
    ] = None,
    settings_a: Annotated[
        _Texts, typer.Option("--set-a", rich_help_panel=_RUNS, metavar="NAME=VALUE", help="Set a parameter in A only.")
    ] = None,
    settings_b: Annotated[
        _Texts, typer.Option("--set-b", rich_help_panel=_RUNS, metavar="NAME=VALUE", help="Set a parameter in B only.")
    ] = None,
    faults: Annotated[
        _Texts, typer.Option("--fault", rich_help_panel=_RUNS, metavar="TEXT", help="Add a fault to both runs.")
    ] = None,
    faults_a: Annotated[
        _Texts, typer.Option("--fault-a", rich_help_panel=_RUNS, metavar="TEXT", help="Add a fault to A.")
    ] = None,
    faults_b: Annotated[
        _Texts, typer.Option("--fault-b", rich_help_panel=_RUNS, metavar="TEXT", help="Add a fault to B.")
    ] = None,
    seed: Annotated[int | None, typer.Option(rich_help_panel=_RUNS, help="Seed of both runs.")] = None,
    seed_a: Annotated[int | None, typer.Option(rich_help_panel=_RUNS, help="Seed of A.")] = None,
    seed_b: Annotated[int | None, typer.Option(rich_help_panel=_RUNS, help="Seed of B.")] = None,
    until: Annotated[str | None, typer.Option(rich_help_panel=_RUNS, metavar="TIME", help="End of both runs.")] = None,
    executor: Annotated[
        str | None, typer.Option(rich_help_panel=_RUNS, metavar="EXECUTOR", help="Executor of both runs.")
    ] = None,
    executor_a: Annotated[
        str | None, typer.Option(rich_help_panel=_RUNS, metavar="EXECUTOR", help="Executor of A.")
    ] = None,
    executor_b: Annotated[
        str | None, typer.Option(rich_help_panel=_RUNS, metavar="EXECUTOR", help="Executor of B.")
    ] = None,
    draws: Annotated[
        str | None, typer.Option(rich_help_panel=_RUNS, metavar="TABLE", help="Replace draws in both runs.")
    ] = None,
    draws_a: Annotated[
        str | None, typer.Option(rich_help_panel=_RUNS, metavar="TABLE", help="Replace draws in A.")
    ] = None,
    draws_b: Annotated[
        str | None, typer.Option(rich_help_panel=_RUNS, metavar="TABLE", help="Replace draws in B.")
    ] = None,
) -> None:
    """Show where two runs diverge: each member's first difference, the earliest cause, and what followed.

    The exit code is 0 if the same happened in both, 1 if not.
    """
    common = _options(settings, faults, until=until)
    of_a = _options(settings_a, faults_a, _one(seed_a, seed), _one(executor_a, executor), _one(draws_a, draws))
    of_b = _options(settings_b, faults_b, _one(seed_b, seed), _one(executor_b, executor), _one(draws_b, draws))
    choices = Choice(a, (*common, *of_a)), Choice(a if b is None else b, (*common, *of_b))
    _check(
        choices,
        is_alone=b is None,
        own=(
            _options(settings_a, faults_a, seed_a, executor_a, draws_a),
            _options(settings_b, faults_b, seed_b, executor_b, draws_b),
        ),
    )
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


def _one(own: object, common: object) -> object:
    return common if own is None else own


def _options(
    settings: _Texts,
    faults: _Texts,
    seed: object = None,
    executor: object = None,
    draws: object = None,
    *,
    until: str | None = None,
) -> tuple[str, ...]:
    """Return the options of `worldline run` that say the same."""
    given = (
        *(("--set", text) for text in settings or ()),
        *(("--fault", text) for text in faults or ()),
        ("--seed", seed),
        ("--until", until),
        ("--executor", executor),
        ("--draws", draws),
    )
    return tuple(str(word) for name, value in given if value is not None for word in (name, value))


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
