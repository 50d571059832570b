"""The target that a recording is of: found again, made ready as it was run, and compared with what was run then.

What can't be equal is said before anything is compared (`doubts`): another version, another machine, other libraries.
"""

from __future__ import annotations

import glob
import shlex
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec

from worldline.federation.participant.program import Program
from worldline.files.loading import MODEL, hash_of
from worldline.history.fields import field_differences
from worldline.launch.file.setup import starts_none, stated_by
from worldline.launch.file.startable import load_program
from worldline.launch.file.toml_document import top_key_of
from worldline.lock import Join
from worldline.model.errors import UsageError, WorldlineError, nearest, shown
from worldline.model.plan import Plan
from worldline.model.time import SECOND, format_time
from worldline.recording import Header, Recording, float_fingerprint
from worldline.recording.facts import platform_name, python_name
from worldline.targets import federation
from worldline.targets.federation import ReadyFederation
from worldline.targets.finding import prepare
from worldline.targets.ready import PYTHON, TOML, WORLDS, Ready, RunOptions, parts_of

_SHOWN_MAX = 5
_MODELLED = (
    "name",
    "seed",
    "until",
    "control_latency",
    "on_loss",
    "link",
    "links",
    "faults",
    "estop",
    "buffers",
    "limits",
)
"""What a federation's file says of the run alone. The rest names programs, types, files or addresses."""


def target_of(recording: Recording, given: str | None) -> str:
    """Return the target of a recording: the one that is given, or the one it names, here or next to the recording.

    A recording has only the file's name, so that it is the same wherever it was made. If runs are started from a folder
    above, the file is found below; if several have that name, the one whose code is still that of the run is meant.
    """
    if given is not None:
        return given
    named = recording.header.target
    if not named:
        raise UsageError(f"{recording.path} doesn't say what was run", advice="name it: --target FILE")
    file, name = parts_of(named)
    if not file.suffix:
        return named  # It comes with Worldline.
    named = f"{file.name}:{name}" if name else file.name  # Whatever it says, it doesn't choose the folder.
    for folder in (Path(), recording.path.parent):
        if (folder / file.name).is_file():
            return str(folder / named)
    below = _folders_below_with(file.name)
    same = [folder for folder in below if _has_code(folder, recording.header)]
    for folders in (below, same):
        if len(folders) == 1:
            return str(folders[0] / named)
    problem = f"{recording.path} is of {shown(named)}, "
    if not below:
        raise UsageError(f"{problem}which is neither here nor next to it", advice="say where it is: --target PATH")
    places = ", ".join(str(folder / named) for folder in below[:_SHOWN_MAX]) + (", …" if below[_SHOWN_MAX:] else "")
    raise UsageError(f"{problem}which could be any of {places}", advice="choose one: --target PATH")


def _folders_below_with(name: str) -> list[Path]:
    """Return the folders below this one, down to the second level, that have a file of that name."""
    found = [each for depth in ("*", "*/*") for each in sorted(Path().glob(f"{depth}/{glob.escape(name)}"))]
    return [each.parent for each in found if not any(part.startswith(".") for part in each.parts)]


def _has_code(folder: Path, header: Header) -> bool:
    """Whether the code that was run is in a folder, as it was."""
    return bool(header.code) and all(hash_of(folder / name) == digest for name, digest in header.code.items())


def ready_as_recorded(
    recording: Recording, given: str | None, named: Sequence[str] = (), members: Sequence[str] = ()
) -> Ready:
    """Make a target ready to be run as it was: with the same settings and seed, until the same time.

    A recording is data. What chooses code counts only if the command that runs these `members` says it, too: a target
    that is `given`, settings that are `named`.
    """
    header = recording.header
    target = target_of(recording, given)
    _refuse_unnamed_code(recording, target, given, named, members)
    for each in named:
        if each not in header.settings:
            raise UsageError(f"{recording.path} wasn't made with --set {each}", advice="leave it out")
    says_no_end = parts_of(target)[0].suffix in WORLDS
    until = format_time(header.end) if says_no_end and header.end is not None else None
    options = RunOptions(settings=header.settings, until=until, only_faults=header.faults or None)
    ready = _prepared(target, options)
    if ready.seed != header.seed:
        options = msgspec.structs.replace(options, seed=header.seed)
        ready = _prepared(target, options)
    if header.end is not None and ready.plan().end != header.end:
        until = str(header.end / SECOND) if ready.kind == "spacetime" else format_time(header.end)
        ready = _prepared(target, msgspec.structs.replace(options, until=until))
    return ready


def _refuse_unnamed_code(
    recording: Recording, target: str, given: str | None, named: Sequence[str], members: Sequence[str]
) -> None:
    """Refuse what of a recording chooses code and isn't in the command; say the command that has it."""
    chosen = [each for each in recording.header.settings if _chooses_code(each, target)]
    unnamed = [f"--set {shown(each)}" for each in chosen if each not in named]
    is_chosen = given is None and parts_of(target)[1] not in ("", MODEL)
    if is_chosen:
        unnamed.insert(0, shown(target))
    if unnamed:
        words = ["worldline", "replay", str(recording.path)]
        words += [word for each in members for word in ("--only", each)] or ["--until-differs"]
        words += ["--target", target] if is_chosen or given is not None else []
        words += [word for each in chosen for word in ("--set", each)]
        raise UsageError(
            f"{recording.path} was made with {', '.join(unnamed)}, "
            "and a recording chooses neither code nor its arguments",
            advice=f"if you trust it: {shlex.join(words)}",
        )


def _chooses_code(setting: str, target: str) -> bool:
    """Whether a setting says which programs are run, or what a user's function is called with."""
    kind = parts_of(target)[0].suffix
    return kind == PYTHON or (kind == TOML and top_key_of(setting) not in _MODELLED)


def _prepared(target: str, options: RunOptions) -> Ready:
    if target.endswith(TOML):  # Of a file, only those have to be startable that are run again.
        return federation.from_file(Path(target), options, starts=starts_none)
    return prepare(target, options)


def members_of(recording: Recording, names: Iterable[str]) -> list[str]:
    """Return the members to be run again: those that are named, or all; refuse a name that isn't there."""
    outcome, header = recording.outcome, recording.header
    came = header.roster if outcome is None else outcome.participants
    there = sorted(filter(None, came))
    for name in names:
        if name not in there:
            guest = name in header.guests
            problem = "was a guest that wasn't invited" if guest else "isn't in it"
            listed = f"its members are {', '.join(there[:12])}"
            raise UsageError(f"{recording.path}: {shown(name)} {problem}", advice=nearest(name, there) or listed)
    return list(dict.fromkeys(names)) or there


def program_of(ready: ReadyFederation, name: str) -> Program:
    """Return the program of a participant; refuse one that the target no longer has, or that isn't Python."""
    if ready.setup is None:
        assert ready.federation is not None
        programs = ready.federation.programs
        if name not in programs:
            raise _gone(ready, name, programs)
        return programs[name]
    part = ready.setup.parts.get(name)
    if part is None:
        raise _gone(ready, name, ready.setup.parts)
    if part.entry is None:
        raise UsageError(
            f"{name} has no Python entry point in {ready.target}", advice="only those can be replayed on their own"
        )
    try:
        return load_program(part.entry, part.directory, stated_by(part), guest=part.guest)
    except WorldlineError as error:
        raise UsageError(
            f"{ready.target} has the participant {name}, but {error.problem}", advice=error.advice
        ) from error


def joins_of(ready: ReadyFederation) -> dict[str, Join]:
    """Return what all participants declare, as far as that is known here."""
    if ready.setup is not None:
        from worldline.federation.participant.declaration import Declaration

        return {name: Declaration(**stated_by(part)).join() for name, part in ready.setup.parts.items()}
    assert ready.federation is not None
    return {name: program.join() for name, program in ready.federation.programs.items()}


def _gone(ready: Ready, name: str, known: Iterable[str]) -> UsageError:
    there = sorted(known)
    advice = nearest(name, there) or f"it has {', '.join(there[:12])}"
    return UsageError(f"{ready.target} has no participant {shown(name)} any more", advice=advice)


def doubts(header: Header, ready: Ready) -> list[str]:
    """Say why results may differ though nothing was changed that was meant to change them."""
    from importlib.metadata import version  # Here, since it takes long to load.

    found = []
    here = {"version": version("worldline"), "python": python_name(), "platform": platform_name()}
    then = {"version": header.version, "python": header.python, "platform": header.platform}
    names = {"version": "Worldline", "python": "", "platform": ""}
    changed = [key for key in here if here[key] != then[key]]
    if changed:
        recorded, now = (", ".join(f"{names[key]} {each[key]}".strip() for key in changed) for each in (then, here))
        found.append(f"it was recorded with {recorded}, and this is {now}")
    if header.float_fingerprint != float_fingerprint() or header.byte_order != sys.byteorder:
        found.append("floats are computed differently on this machine, so their last places may differ")
    provenance = ready.provenance()
    libraries = field_differences(msgspec.json.encode(header.libraries), msgspec.json.encode(provenance.libraries))
    if header.code and libraries:
        found.append(f"libraries differ: {'; '.join(map(str, libraries[:_SHOWN_MAX]))}")
    return found


def plan_changes(then: Plan, now: Plan) -> list[str]:
    """Say what of a plan isn't as it was. Those who run alone don't notice, since they are given what was recorded."""
    texts = [msgspec.json.encode(_sorted(each)) for each in (then, now)]
    return [str(each) for each in field_differences(texts[0], texts[1])[:_SHOWN_MAX]]


def _sorted(plan: Plan) -> Plan:
    return msgspec.structs.replace(plan, roster=tuple(sorted(plan.roster)), guests=tuple(sorted(plan.guests)))


def code_changes(header: Header, ready: Ready) -> list[str]:
    """Return the files of code that were changed since, or are new, or gone."""
    if not header.code:
        return []
    now = ready.provenance().code
    return [name for name in sorted({*header.code, *now}) if header.code.get(name) != now.get(name)]
