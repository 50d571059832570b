"""Options that several commands have, and what they mean."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator
from inspect import cleandoc
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import typer
from msgspec import Struct

from worldline.model import UsageError

if TYPE_CHECKING:
    from worldline.recording import Shelf


# Reads tokens: never from the command line, where every user of the machine could see them.


def token_in(file: Path | None, *, of_operator: bool = False) -> str | None:
    """Read the participants' token, or the operator's, from its file, or without one from the environment."""
    if file is not None:
        return read_token(file)
    from worldline.federation.environment import OPERATOR_TOKEN, TOKEN  # Here, since most runs have none.

    return os.environ.get(OPERATOR_TOKEN if of_operator else TOKEN) or None


def read_token(file: Path) -> str:
    """Read a token that must be there."""
    try:
        token = file.read_text(encoding="utf-8").strip()
    except OSError as error:
        raise UsageError(f"the token can't be read from {file}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"the token file {file} isn't UTF-8 text", advice="a token is one line of text") from error
    if not token:
        raise UsageError(f"the token file {file} is empty")
    return token


# How a command says what stands on its command line: as its help shows it.
#
# A row has an argument or an option, and after two blanks what it does; lines that are further to the right go on with
# that. A row without it is one of `_SHARED`. A line that ends in a colon begins a section of the help. A row is for the
# parameter, or the field of a group of options, that has the option's name, or the name in front of it:
# ``settings: --set NAME=VALUE  Set a model parameter.`` The signature has types and defaults. See `commands.flat`.

_NAMED = re.compile(r"(?:([\w.]+): )?(\S+.*)")
_FORM = re.compile(r"(-[^\s,]+(?:, -\S+)*)?(?:(?:^| )(\S+))?(?: at least ([\d.]+)| ([\d.]+) to ([\d.]+))?")
_SHARED = """
    --seed N  Seed of all random draws (default: the target's own).
    --until TIME  End of the run: 20s, or in spacetime a lab time such as 100 (default: the target's own).
    settings: --set NAME=VALUE  Set a model parameter, or a key in a federation's file, such as link.latency=5ms.
    --draws TABLE  Replace random draws, by name: FILE.toml, FILE.json, FILE.csv, or module:function.
    faults: --fault TEXT  Add a fault of a participant, such as "2s crash planner 1s". Can be
        repeated.
    drawn_faults: --faults KINDS  Draw faults of participants by the seed, such as crash=1,hang=2; crash-after=1 waits
        for an event.
    properties: --property MODULE:FUNCTION  What must hold, found as from the target's folder; repeat it for several.
    --day DAY  The kind of day: usual, or some of constant, quick, tail, slow-links, bursts, no-crash and the like
        (default: a search draws one for each seed).
    --realtime RATE  Run at most this many simulated seconds per real second.
    --timing  Note who asks when, in wall-clock time, in NAME.timing next to the recording: see `why`.
    --patience SECONDS at least 0.1  Name a participant that holds all others for longer than this, in wall-clock time
        (default: 10), also with --quiet. The result stays the same.
    --lcm TARGET  Show all messages on an LCM: udpm://GROUP:PORT, tcpq://HOST:PORT or a log.
    --lcm-serve HOST:PORT  Be a tcpq:// endpoint for LCM programs that look on; port 0 picks one.
    --listen ADDRESS  Where to listen: tcp://HOST:PORT, tls://HOST:PORT or unix:///PATH.
    --token-file FILE  File with the token that participants must present (or set WORLDLINE_TOKEN).
    --certificate FILE  The server's certificate, for tls://.
    --key FILE  The certificate's key, if in a separate file.
    --record FILE.mcap  Where to record (default: NAME.mcap in this folder).
    --no-record  Record nothing.
    --force  Replace existing files even if they aren't recordings.
    --quiet, -q  Show only the outcome.
    --watch  Show the run on a page while it happens, in a browser on this machine.
    --port N 0 to 65535  Port of the page (default: a free one). If it is taken, a free one is used.
    --host ADDRESS  Where the page is served (default: 127.0.0.1). Any other address can be reached by others.
    --no-browser  Print the page's address, and open no browser.
"""
OF_FEDERATION = """
    --seed
    --until TIME  End of the run, such as 20s (default: the target's own).
    --set
    --draws
    --fault
    --faults
"""
"""The rows of the options of a federation's run, for commands that take nothing else."""

PAGE = """
    The page:
    --watch
    --port
    --host
    --no-browser
"""
"""The rows of the options of a page, for commands that run something."""

Command = TypeVar("Command", bound=Callable[..., Any])


def takes(
    *rows: str, completed: Callable[[list[str]], list[str]] = lambda arguments: arguments
) -> Callable[[Command], Command]:
    """Declare what stands on the command line of a command, in that order.

    `completed` adds to the arguments what may be left out.
    """

    def declare(command: Command) -> Command:
        command.rows = dict(_declared(rows))  # type: ignore[attr-defined]
        command.completed = completed  # type: ignore[attr-defined]
        return command

    return declare


def _declared(rows: Iterable[str]) -> Iterator[tuple[str, Any]]:
    """Yield the name of the parameter or field of each row, and how typer declares it."""
    shared = {form.partition(" ")[0].rstrip(","): (name, form, text) for _, name, form, text in _rows(_SHARED)}
    for each in rows:
        for panel, name, form, text in _rows(each):
            name, form, text = (name, form, text) if text else shared[form]
            found = _FORM.fullmatch(form)
            assert found is not None, form
            flags, metavar, *bounds = found.groups()
            said: dict[str, Any] = {"metavar": metavar, "help": text, "rich_help_panel": panel}
            if flags is None:
                yield name or form.lower(), typer.Argument(**said)
                continue
            least, low, high = (None if bound is None else _number(bound) for bound in bounds)
            names = flags.split(", ")
            field = name or names[0].removeprefix("--").replace("-", "_")
            if any(bounds):
                said["callback"] = _bounded
            yield field, typer.Option(*names, min=low if least is None else least, max=high, **said)


def _rows(text: str) -> Iterator[tuple[str | None, str, str, str]]:
    """Yield section, name, form and text of each row."""
    panel: str | None = None
    for line in re.sub(r"\n +", " ", cleandoc(text)).splitlines():
        if line.endswith(":"):
            panel = line[:-1]
        elif line:
            named, _, said = line.partition("  ")
            found = _NAMED.fullmatch(named)
            assert found is not None, line
            yield panel, found[1] or "", found[2], said


def refuse_given(context: typer.Context, allowed: Collection[str], why: str) -> None:
    """Refuse what is on a command line besides what is `allowed`, since nothing would come of it."""
    for each in context.command.params:
        source = context.get_parameter_source(each.name or "")
        if source is not None and source.name == "COMMANDLINE" and each.name not in allowed:
            words = each.opts[0] if each.param_type_name == "option" else f"the argument {each.name}"
            raise UsageError(f"{words} can't be used with {why}")


def _bounded(value: float | None) -> float | None:
    if value != value:  # NaN, which is neither too small nor too large.
        raise typer.BadParameter(f"{value} isn't a number.")
    return value


def _number(text: str) -> float:
    return int(text) if text.isdecimal() else float(text)


# What several commands are given, and what it means.

PATIENCE_S = 10.0
"""How long time may stand still before the participant that holds it is named, unless another patience is chosen."""

LISTEN = "tcp://127.0.0.1:7475"


class PageOptions(Struct, frozen=True, kw_only=True):
    """Whether a run is shown on a page, where that is served, and whether a browser is opened."""

    watch: bool = False
    port: int = 0
    host: str = "127.0.0.1"
    no_browser: bool = False


class AccessOptions(Struct, frozen=True, kw_only=True):
    """The token that both ends know, the certificate that this one presents, and the authority whose it trusts."""

    token_file: Path | None = None
    certificate: Path | None = None
    key: Path | None = None
    authority: Path | None = None


class ServerOptions(Struct, frozen=True, kw_only=True):
    """Where participants reach a run that is served, and what they have to present."""

    listen: str = LISTEN
    access: AccessOptions = AccessOptions()
    token_directory: Path | None = None
    operator_token_file: Path | None = None


class RecordingOptions(Struct, frozen=True, kw_only=True):
    """Where a run is recorded, and whether it is."""

    record: Path | None = None
    no_record: bool = False
    force: bool = False

    def shelf(self, default: str | None = None) -> Shelf | None:
        """Return where a run is to be recorded, if it is, or refuse that place before anything has happened."""
        if self.no_record and self.record is not None:
            raise UsageError("--record and --no-record contradict each other")
        place = default if self.record is None else self.record
        if self.no_record or place is None:
            return None
        from worldline.recording import Shelf  # Here, since many runs aren't recorded.

        return Shelf(place, force=self.force)
