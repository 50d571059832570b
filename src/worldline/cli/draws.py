"""`worldline draws`: list the random draws of a run, each by its name."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from msgspec.structs import replace

from worldline.cli.console import PlainConsole, cell, output_free_for, print_json, warn
from worldline.cli.options import OF_FEDERATION, takes
from worldline.files.saving import ScratchFolder
from worldline.history.link_draws import DrawEffect, RunDraws
from worldline.model import UsageError, as_time, format_time
from worldline.model.draws.distributions import distribution_text, value_text
from worldline.model.draws.names import NamePattern, check_pattern
from worldline.model.draws.table import Drawn, functions_in
from worldline.model.errors import nearest, shown
from worldline.recording.reader import Recording, intact, recorded_account
from worldline.recording.scan import header_of
from worldline.targets import RunOptions, prepare
from worldline.targets.federation import ReadyFederation
from worldline.targets.ready import TOML

_IN_PROCESS = "in-process"
_NAMED_MAX = 12


@takes(
    """
    RUN  A recording, or a federation as for `worldline run`.
    --of NAME  List only draws whose name matches this: latency/image, random/*/0.
    --before MEMBER@TIME  List only draws that could have changed what happened to MEMBER up to TIME.
    --replaced  List only draws that a table replaced.
    as_json: --json  Print one JSON object per draw.
    """,
    OF_FEDERATION,
)
def draws(
    run: str,
    *,
    of: str | None = None,
    before: str | None = None,
    replaced: bool = False,
    as_json: bool = False,
    options: RunOptions,
) -> None:
    """List the random draws of a run: name, time, distribution and value.

    A federation is run first, in this process. A recording says nothing of the draws that participants make.
    """
    if of is not None:
        check_pattern(of)
    outcome = None if before is None else _outcome_at(before)
    found = _of_recording(Path(run), options, outcome) if _is_recording(run) else _of_target(run, options, outcome)
    effects = found.effects.values() if outcome is None else found.before(*outcome)
    pattern = None if of is None else NamePattern(of)
    listed = [
        effect.drawn
        for effect in sorted(effects, key=_order)
        if pattern is None or pattern.matches(effect.drawn.name.split("/"))
    ]
    if replaced:
        listed = [drawn for drawn in listed if drawn.value != drawn.natural]
    if as_json:
        for drawn in listed:
            print_json(_as_json(drawn))
    else:
        _show(listed)


_MemberTime = tuple[str, int]
"""A member and a time: what happened to it up to then."""


def _check(outcome: _MemberTime, members: Collection[str]) -> None:
    """Refuse a member that isn't there."""
    member, at = outcome
    if member not in members:
        raise UsageError(
            f"--before {member}@{format_time(at)}: there is no member {shown(member)}",
            advice=nearest(member, members) or f"members are {', '.join(sorted(members)[:_NAMED_MAX])}",
        )


def _outcome_at(text: str) -> _MemberTime:
    member, at, time = text.rpartition("@")
    if not at or not member:
        raise UsageError(f"--before {text}: that isn't a member and a time", advice="write planner@2s")
    return member, as_time(time, "a time for --before")


def _is_recording(text: str) -> bool:
    path = Path(text)
    return path.suffix == ".mcap" or header_of(path) is not None


def _of_recording(path: Path, options: RunOptions, outcome: _MemberTime | None) -> RunDraws:
    if options != RunOptions():
        raise UsageError(f"{path} is a recording, of a run that is over", advice="options are for a federation")
    recording = intact(Recording(path))
    if named := functions_in(recording.header.draws):
        raise UsageError(
            f"{path}: a function replaced draws, {shown(named[0])}, and a recording isn't trusted to name any",
            advice="name the federation, with --draws",
        )
    if outcome is not None:
        _check(outcome, recording.members())
    warn("a recording doesn't have the draws that participants make; name the federation to list those, too")
    return RunDraws(recorded_account(recording).sendings, recording.header.plan())


def _of_target(target: str, options: RunOptions, outcome: _MemberTime | None) -> RunDraws:
    ready = prepare(target, replace(options, executor=_IN_PROCESS) if target.endswith(TOML) else options)
    if not isinstance(ready, ReadyFederation):
        raise UsageError(f"draws have names in federations, and {target} is of the kind {ready.kind}")
    if outcome is not None:
        _check(outcome, ready.names)
    own: list[Drawn] = []
    ready.draws_heard = own.append
    with ScratchFolder("draws") as folder:
        file = Path(folder, "run.mcap")
        recorder = ready.recorder(file)
        with output_free_for(None, wanted=True):  # What participants print is no draw.
            ready.run(recorder)
        recorder.close()
        sendings = recorded_account(Recording(file)).sendings
        found = RunDraws(sendings, ready.plan(), ready.draws.functions.__getitem__)
    for drawn in own:
        found.add(drawn)
    return found


def _order(effect: DrawEffect) -> tuple[int, list[tuple[int, str]]]:
    """Sort by time, and by name with numbers as such."""
    drawn = effect.drawn
    return drawn.at, [(int(part) if part.isdecimal() else -1, part) for part in drawn.name.split("/")]


def _as_json(drawn: Drawn) -> dict[str, object]:
    found: dict[str, object] = {
        "name": drawn.name,
        "at": drawn.at,
        "distribution": distribution_text(drawn.distribution),
        "value": drawn.value,
    }
    return found if drawn.value == drawn.natural else {**found, "instead_of": drawn.natural}


def _show(listed: list[Drawn]) -> None:
    console = PlainConsole()
    rows = [
        (
            format_time(drawn.at),
            cell(drawn.name),
            distribution_text(drawn.distribution),
            value_text(drawn.distribution, drawn.value)
            + ("" if drawn.value == drawn.natural else f", instead of {value_text(drawn.distribution, drawn.natural)}"),
        )
        for drawn in listed
    ]
    widths = [max((len(row[place]) for row in rows), default=0) for place in range(3)]
    for row in rows:
        console.print("  ".join([*(text.ljust(width) for text, width in zip(row, widths, strict=False)), row[3]]))
    if not rows:
        console.print("no draws")
