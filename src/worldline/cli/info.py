"""`worldline info`, `digest`, `draws`, `export`: what a recording or a federation's file has in it, also for others."""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Collection, Iterable, Sequence
from enum import StrEnum
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

import typer
from msgspec import json
from msgspec.structs import replace
from rich.console import Console
from rich.table import Table

from worldline.builds import build
from worldline.cli.console import PlainConsole, cell, output_free_for, print_json, remark, tell_lost, warn
from worldline.cli.options import OF_FEDERATION, takes
from worldline.cli.runner import interruptible, losses_in_words
from worldline.extras import installing
from worldline.federation.inprocess.strand import GreenletStrand, strand_kind
from worldline.files.saving import ScratchFolder, destination, save, save_parts
from worldline.history.account import named
from worldline.history.link_draws import DrawEffect, RunDraws
from worldline.launch.file.setup import ParticipantSetup, Setup, read_setup, starts_none
from worldline.model import LossError, ModelError, Network, Plan, UsageError, as_time, format_time
from worldline.model.draws.distributions import distribution_text, value_text
from worldline.model.draws.names import NamePattern, check_pattern
from worldline.model.draws.table import Drawn, functions_in
from worldline.model.errors import nearest, shown
from worldline.model.links import Outage
from worldline.model.text import counted
from worldline.model.time import FOREVER
from worldline.programs.entries import read_machine
from worldline.recording import Condition, Provenance, Recording, float_fingerprint
from worldline.recording.reader import intact, members_told, narrate, recorded_account, shortcoming
from worldline.recording.scan import header_of
from worldline.recording.tables import chrome_trace_of, csv_file, csv_of, parquet_file, parquet_of
from worldline.targets import RunOptions, prepare
from worldline.targets.federation import ReadyFederation
from worldline.targets.ready import TOML

# `worldline digest`: print the digest of a recorded run, if the file is what was recorded.


@takes("FILE  A recording.")
def digest(file: Path) -> None:
    """Print the digest of a recorded run on a line by itself; fail if the file is incomplete or altered."""
    recording = Recording(file)
    verdict = recording.verify()
    if verdict.condition is Condition.ALTERED:
        # The exit code of a model that went wrong: what the file says isn't what happened. That is another thing than
        # a file which says too little, and a script that compares digests must be able to tell the two apart.
        raise ModelError(f"{file} is {verdict}", advice="record the run again")
    if recording.outcome is None or verdict.condition is not Condition.INTACT:
        raise LossError(f"{file} is {verdict}", advice="a digest is of a whole run")
    typer.echo(recording.outcome.digest)


_COLUMNS_MIN = 120  # Where there is no terminal, lines needn't be short.
_TEXT_CHAIN = re.compile(rb"([0-9a-f]{1,16})(?: ([0-9a-f]+))?")
_STYLES = {
    Condition.INTACT: "green",
    Condition.BROKEN_OFF: "yellow",
    Condition.CUT_OFF: "yellow",
    Condition.ALTERED: "bold red",
}


@takes("FILE  A recording, or a federation's FILE.toml (default: describe this installation).")
def info(file: Path | None = None) -> None:
    """Show what a recording contains: who took part, what was sent and lost, and whether the file is intact.

    Of a federation's FILE.toml, show who takes part, and their faults. Without a file, describe this installation:
    versions, what is compiled, how floats are computed.
    """
    console = PlainConsole(wraps=True)
    if not console.is_terminal:
        console.width = max(console.width, _COLUMNS_MIN)
    if file is None:
        console.print(_installation())
    elif file.suffix == ".toml":
        _describe_setup(read_setup(file, starts=starts_none), console)
    else:
        _describe(Recording(file), console)


def _installation() -> Table:
    mpi = "installed" if find_spec("mpi4py") else f"not installed: {installing('mpi')}"
    return _grid(
        ("worldline", version("worldline")),
        ("python", f"{platform.python_implementation()} {platform.python_version()}"),
        ("platform", f"{platform.system()} {platform.machine()}, {os.cpu_count()} processors"),
        ("lock, wire", build),
        ("kernel", build),
        ("spacetime", build),
        ("in-process", "greenlets" if strand_kind() is GreenletStrand else "threads"),
        ("mpi", mpi),
        ("floats", float_fingerprint()),
    )


def _grid(*rows: tuple[str, str]) -> Table:
    table = Table.grid(padding=(0, 2))
    for name, text in rows:
        table.add_row(name, cell(text))
    return table


def _describe(recording: Recording, console: Console) -> None:
    verdict = recording.verify()
    console.print(_facts(recording))
    rows = list(_participants(recording))
    counts_steps = any(row[-1] for row in rows)
    _print(console, ("participant", "from", "until", "digest", "count" if counts_steps else ""), rows)
    _print(console, ("topic", "published", "arrivals", "bytes"), _topics(recording), numbers_from=1)
    _print(console, ("receiver", "topic", "not received because", "messages"), _losses(recording), numbers_from=3)
    console.print()
    counts = {(loss.receiver, loss.topic, loss.reason): loss.count for loss in recording.loss_counts()}
    console.print(losses_in_words(counts))
    outcome = recording.outcome
    if outcome is not None and outcome.digest:
        console.print(f"digest       {cell(outcome.digest)}")
    if outcome is not None:
        console.print(f"certificate  {cell(outcome.certificate)}", soft_wrap=True)
    console.print(str(verdict), style=_STYLES[verdict.condition], soft_wrap=True)


def _program_of(part: ParticipantSetup) -> str:
    machine = read_machine(part.entry)
    return part.entry or " ".join(part.command or ()) if machine is None else machine.command


def _describe_setup(setup: Setup, console: Console) -> None:
    """Show a federation as its file has it."""
    console.print(
        _grid(
            ("file", str(setup.file)),
            ("name", setup.name),
            ("seed", str(setup.plan.seed)),
            ("end", _end(setup.plan.end)),
            ("network", _network(setup.plan.network)),
            *_off_nominal(setup.plan),
        )
    )
    rows = (
        (
            f"{part.name} (guest)" if part.guest else part.name,
            _program_of(part),
            "any topic" if part.publishes is None else ", ".join(part.publishes),
            ", ".join(part.subscribes),
            "" if part.boot == "0s" else part.boot,
        )
        for part in setup.parts.values()
    )
    _print(console, ("participant", "program", "publishes", "subscribes to", "boots in"), rows)


def _end(end: int | None) -> str:
    return "when all have left" if end is None else format_time(end)


def _network(network: Network) -> str:
    return f"{counted(len(network.rules), 'rule')}, {counted(len(_outages(network)), 'outage')}"


def _outages(network: Network) -> list[str]:
    """Say which outages there are; those that cut two groups off from each other are one, as a file has it."""
    groups: dict[tuple[str, int, int], list[Outage]] = {}
    for outage in network.outages:
        groups.setdefault((outage.verb, outage.start, outage.end), []).append(outage)
    return [text for group in groups.values() for text in _outage_texts(group)]


def _outage_texts(group: list[Outage]) -> list[str]:
    first = group[0]
    pairs = {(each.sender, each.receiver) for each in group if each.topic is None and each.sender and each.receiver}
    left = [sender for sender, receiver in pairs if receiver == first.receiver]
    right = [receiver for sender, receiver in pairs if sender == first.sender]
    if {pair for a in left for b in right for pair in ((a, b), (b, a))} != pairs or len(pairs) < len(group):
        return [str(each) for each in group]
    sides = " and ".join(", ".join(sorted(map(str, side))) for side in (left, right))
    until = "on" if first.end == FOREVER else f"to {format_time(first.end)}"
    return [f"{first.verb} between {sides}, from {format_time(first.start)} {until}"]


def _off_nominal(plan: Plan) -> Iterable[tuple[str, str]]:
    """Say what is out of the ordinary: outages, faults, emergency stops, and draws that are replaced."""
    if plan.network.estop is not None:
        yield "estop", f"all participants are told within {format_time(plan.network.estop)}"
    yield from (("" if place else "outages", text) for place, text in enumerate(_outages(plan.network)))
    yield from (("" if place else "faults", str(fault)) for place, fault in enumerate(plan.faults))
    draws = (f"{row.name} = {_toml(row.replacement())}" for row in plan.draws)
    yield from (("" if place else "draws", text) for place, text in enumerate(draws))


def _toml(value: object) -> str:
    """Write what a draw is replaced by as a table has it."""
    if isinstance(value, dict):
        return f"{{ {', '.join(f'{key} = {_toml(each)}' for key, each in value.items())} }}"
    return json.encode(value).decode()


def _facts(recording: Recording) -> Table:
    header, span = recording.header, recording.span()
    floats = "computes floats as this machine does"
    if header.float_fingerprint != float_fingerprint():
        floats = f"computes floats differently from this machine ({float_fingerprint()})"
    return _grid(
        ("file", f"{recording.path}, {recording.path.stat().st_size:,} bytes"),
        ("name", header.federation or "(without one)"),
        *(_provenance(header)),
        ("seed", str(header.seed)),
        ("end", _end(header.end)),
        ("times", "no messages" if span is None else f"{format_time(span[0])} to {format_time(span[1])}"),
        ("network", _network(header.network)),
        *_off_nominal(header.plan()),
        ("recorded by", f"Worldline {header.version}, {header.python}, format {header.format}"),
        ("platform", f"{header.platform}, {header.byte_order} endian"),
        ("floats", f"{header.float_fingerprint}, {floats}"),
    )


def _provenance(header: Provenance) -> Iterable[tuple[str, str]]:
    """Say what was run, as far as the recording does."""
    if header.target:
        settings = "".join(f" --set {each}" for each in header.settings)
        yield "target", f"{header.target}{settings}"
    yield from (
        ("code" if not place else "", f"{name} {digest}") for place, (name, digest) in enumerate(header.code.items())
    )
    if header.libraries:
        yield "libraries", ", ".join(f"{name} {number}" for name, number in header.libraries.items())


def _participants(recording: Recording) -> Iterable[tuple[str, ...]]:
    """Yield all of the roster, and the guests that came; of a file that was cut off only the names are known."""
    header, outcome = recording.header, recording.outcome
    if outcome is None:
        yield from ((named(name), "", "", "", "") for name in header.roster)
        yield from ((f"{name} (guest)", "", "", "", "") for name in header.guests)
        return
    for name in sorted({*header.roster, *outcome.participants}):
        part = outcome.participants.get(name)
        said = named(name) if name in ("", *header.roster) else f"{name} (guest)"
        if part is None:
            yield (said, "never", "", "", "")
        else:
            yield (said, format_time(part.started), _until(part.left), *_chain(part.digest or ""))


def _chain(digest: str) -> tuple[str, str]:
    """Return a member's chain and what it counts.

    Those of entities, nodes and agents are text, which recordings keep in hex: a hash and mostly a count.
    """
    try:
        found = _TEXT_CHAIN.fullmatch(bytes.fromhex(digest))
    except ValueError:
        found = None
    if found is None:
        return digest, ""
    chain, count = found.groups()
    return f"{int(chain, 16):016x}", "" if count is None else f"{int(count, 16):,}"


def _until(left: int | None) -> str:
    if left is None:
        return "still there"
    return "the end" if left == FOREVER else format_time(left)


def _topics(recording: Recording) -> Iterable[tuple[str, ...]]:
    for topic, count in recording.counts().items():
        yield (topic, f"{count.published:,}", f"{count.arrivals:,}", f"{count.bytes:,}")


def _losses(recording: Recording) -> Iterable[tuple[str, ...]]:
    for loss in recording.loss_counts():
        yield (named(loss.receiver), loss.topic, loss.reason, f"{loss.count:,}")


def _print(
    console: Console, titles: Sequence[str], rows: Iterable[tuple[str, ...]], *, numbers_from: int | None = None
) -> None:
    """Print a table, or nothing if there is nothing to say."""
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    for place, title in enumerate(titles):
        justify: Literal["left", "right"] = "left" if numbers_from is None or place < numbers_from else "right"
        table.add_column(title, justify=justify, overflow="fold")
    for row in rows:
        table.add_row(*map(cell, row))
    if table.row_count:
        console.print()
        console.print(table)


# `worldline draws`: list the random draws of a run, each by its name.

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
        for effect in sorted(effects, key=_drawn_order)
        if pattern is None or pattern.matches(effect.drawn.name.split("/"))
    ]
    if replaced:
        listed = [drawn for drawn in listed if drawn.value != drawn.natural]
    if as_json:
        for drawn in listed:
            print_json(_drawn_as_json(drawn))
    else:
        _show_drawn(listed)


_MemberTime = tuple[str, int]
"""A member and a time: what happened to it up to then."""


def _check_drawn_by(outcome: _MemberTime, members: Collection[str]) -> None:
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
        _check_drawn_by(outcome, recording.members())
    warn("a recording doesn't have the draws that participants make; name the federation to list those, too")
    return RunDraws(recorded_account(recording).sendings, recording.header.plan())


def _of_target(target: str, options: RunOptions, outcome: _MemberTime | None) -> RunDraws:
    ready = prepare(target, replace(options, executor=_IN_PROCESS) if target.endswith(TOML) else options)
    if not isinstance(ready, ReadyFederation):
        raise UsageError(f"draws have names in federations, and {target} is of the kind {ready.kind}")
    if outcome is not None:
        _check_drawn_by(outcome, ready.names)
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


def _drawn_order(effect: DrawEffect) -> tuple[int, list[tuple[int, str]]]:
    """Sort by time, and by name with numbers as such."""
    drawn = effect.drawn
    return drawn.at, [(int(part) if part.isdecimal() else -1, part) for part in drawn.name.split("/")]


def _drawn_as_json(drawn: Drawn) -> dict[str, object]:
    found: dict[str, object] = {
        "name": drawn.name,
        "at": drawn.at,
        "distribution": distribution_text(drawn.distribution),
        "value": drawn.value,
    }
    return found if drawn.value == drawn.natural else {**found, "instead_of": drawn.natural}


def _show_drawn(listed: list[Drawn]) -> None:
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


# `worldline export`: write a recording in a form that other tools read.


class ExportForm(StrEnum):
    """What a recording can be written as."""

    CSV = "csv"
    PARQUET = "parquet"
    LCM = "lcm"
    CHROME_TRACE = "chrome-trace"
    HTML = "html"


_STANDARD = Path("/dev/stdout")
_RECORDING = ".mcap"
_SUFFIXES = {
    ".csv": ExportForm.CSV,
    ".parquet": ExportForm.PARQUET,
    ".log": ExportForm.LCM,
    ".lcm": ExportForm.LCM,
    ".json": ExportForm.CHROME_TRACE,
    ".html": ExportForm.HTML,
}


@takes(
    """
    FILE  A recording, or a sweep's table.
    OUTPUT  Where to write it (default: next to FILE, with another ending); - is standard output.
    form: --to  What to write it as (default: what OUTPUT's ending says).
    topics: --topic NAME  Only this topic, or in tables this field, such as pose.x. Can be repeated.
    """
)
def export(
    file: Path, output: Path | None = None, form: ExportForm | None = None, topics: list[str] | None = None
) -> None:
    """Write a recording as CSV, Parquet, an LCM log, a Chrome trace or a page for a browser.

    Tables have a row for each message and receiver, and a column for each field of the payloads. An LCM log is
    the one that `run --lcm` would have written. A page is one file, and works offline. A sweep's table, with a row
    for each run, is written as CSV or Parquet.
    """
    chosen, names = _form(form, output), topics or []
    recording = None if _is_sweep(file) else Recording(file)
    path = _default(file, chosen) if output is None else _STANDARD if str(output) == "-" else output
    to = destination(path)  # What can't be written is refused before anything is read.
    if not to.is_stream and not to.is_new and to.file.samefile(file):
        what = "the sweep's table" if recording is None else "the recording"
        raise UsageError(f"{path} is {what} itself, which would be lost", advice="choose another OUTPUT")
    with interruptible():
        if recording is None:
            _export_sweep(file, path, chosen, names)
        else:
            _export_recording(recording, path, chosen, names)
    if recording is not None and (missing := shortcoming(recording)):
        warn(missing)
    if to.descriptor is None:  # Otherwise it was written to where its user looks, or has led it.
        remark(f"written to {path}")


def _is_sweep(file: Path) -> bool:
    if file.suffix == _RECORDING:  # Most are that, and it takes a while to load what knows sweeps.
        return False
    from worldline.experiments.table import is_sweep

    return is_sweep(file)


def _export_sweep(file: Path, path: Path, form: ExportForm, topics: Sequence[str]) -> None:
    from worldline.experiments.table import read_sweep

    if form not in (ExportForm.CSV, ExportForm.PARQUET):
        raise UsageError(f"a sweep's table can't be written as {form}", advice="use csv or parquet")
    if topics:
        raise UsageError("a sweep's table has no topics", advice="leave out --topic")
    table = read_sweep(file)
    if form is ExportForm.CSV:
        save_parts(path, csv_file(table.columns, table.rows))
    else:
        save(path, parquet_file({name: table.column(name) for name in table.columns}))


def _export_recording(recording: Recording, path: Path, chosen: ExportForm, names: Sequence[str]) -> None:
    if chosen is ExportForm.CSV:
        save_parts(path, csv_of(recording.tellings, names))
    elif chosen is ExportForm.PARQUET:
        save(path, parquet_of(recording.tellings, names))
    elif chosen is ExportForm.CHROME_TRACE:
        recording.check_topics(names)
        account = recorded_account(intact(recording))
        save_parts(path, chrome_trace_of(recording.header.federation or recording.path.name, account, names))
    elif chosen is ExportForm.HTML:
        save(path, _page_of(recording, names))
    else:
        _export_to_lcm(recording, path, names)


def _form(form: ExportForm | None, output: Path | None) -> ExportForm:
    found = form or (None if output is None else _SUFFIXES.get(output.suffix))
    if found is None:
        raise UsageError("nothing says what to write", advice=f"--to {', '.join(ExportForm)}")
    return found


def _default(file: Path, form: ExportForm) -> Path:
    ending = next(suffix for suffix, each in _SUFFIXES.items() if each is form)
    return file.with_suffix(".trace.json" if form is ExportForm.CHROME_TRACE else ending)


def _page_of(recording: Recording, topics: Sequence[str]) -> bytes:
    """Return the page that `worldline view` shows, as a file that needs no server."""
    from worldline.watch.recorded import recorded_show

    if topics:
        raise UsageError("a page has all topics", advice="leave out --topic")
    return recorded_show(recording).page().encode()


def _export_to_lcm(recording: Recording, path: Path, topics: Sequence[str]) -> None:
    from worldline.metasim.public import PublicLcm

    if topics:
        raise UsageError("an LCM log has all topics", advice="leave out --topic")
    public = PublicLcm(f"file://{path}")
    public.check(dict.fromkeys(members_told(recording), ()), {})  # Before a log is written in the place of another.
    with public:
        narrate(recording, public)
    tell_lost(public)
