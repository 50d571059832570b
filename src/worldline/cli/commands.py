"""The subcommands of `worldline`, put together; each is loaded when it is used.

What a command needs may take most of a second to load, and most of that is of no use to the others. So what each does
is said here, in the words of its module, and only the one that is wanted is imported.
"""

from __future__ import annotations

import re
import shutil
from collections import UserDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module
from inspect import Parameter, Signature, cleandoc, signature
from textwrap import wrap
from typing import Annotated, Any, ClassVar, get_type_hints

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

# Values of parameters, converted only where they have to be: typer loads pydantic for it, which takes 0.2 seconds.
#
# What wasn't given is None or a default of ours, and what is given as a text is mostly meant as one.


def convert_little(parameters: Sequence[Any]) -> None:
    """Convert the values of these only where they have to be."""
    for each in parameters:
        if "process_value" not in vars(each):
            each.process_value = _processing(each)


def _processing(parameter: Any) -> Callable[[Any, Any], Any]:
    """Return what takes the place of a parameter's `process_value`, and leaves to that what needs it."""
    usual = parameter.process_value
    # If another version of typer doesn't say what a parameter is, all that is given is converted.
    is_text = getattr(getattr(parameter, "type_descriptor", None), "annotation", None) in (str, list[str])

    def process(context: Any, value: Any) -> Any:
        is_given = isinstance(value, str) or (isinstance(value, Sequence) and len(value) > 0)
        if not is_text if is_given else parameter.required:
            return usual(context, value)
        if value is None and parameter.multiple:
            value = ()
        callback = parameter.callback
        return value if callback is None else callback(context, parameter, value)

    return process


# How a command takes its options: as one value for each group of options.
#
# A command is a function, and `options.takes` says what stands on its command line. Each row is for a parameter, or for
# a field of a parameter that is a `Struct`, a group of options: the first that has it, or the one that is named, as in
# ``of_a.seed: --seed-a``. A group may have others in it. A field without a row is no option of that command, and keeps
# its default. So no function passes options on one by one.

Group = tuple[type, dict[str, Any]]
"""A kind of `Struct`, and by field the option that is its value, or the group."""


def flat(command: Callable[..., object]) -> Callable[..., object]:
    """Return a command as typer wants it: a function with a parameter for each option."""
    hints = get_type_hints(command)
    rows = dict(getattr(command, "rows", {}))
    groups: dict[str, Group] = {}
    found: dict[str, Parameter] = {}
    for each in signature(command).parameters.values():
        kind = hints[each.name]
        if _is_group(kind):
            groups[each.name] = _group(each.name, kind, rows, found)
        else:
            found[each.name] = _parameter(each.name, kind, each.default, rows.get(each.name))

    def call(**values: Any) -> object:
        for name, group in groups.items():
            values[name] = _value(group, values)
        return command(**values)

    call.__name__, call.__doc__ = command.__name__, command.__doc__
    ordered = [*(found.pop(name) for name in rows), *found.values()]
    call.__signature__ = Signature(ordered)  # type: ignore[attr-defined]
    call.__annotations__ = {}
    return call


def _is_group(kind: Any) -> bool:
    from msgspec import Struct  # Here, since help of all commands needs none of this.

    return isinstance(kind, type) and issubclass(kind, Struct)


def _group(name: str, kind: Any, rows: Mapping[str, Any], found: dict[str, Parameter]) -> Group:
    """Return a group of which the rows have options, and add their parameters to those that were found."""
    from msgspec import NODEFAULT
    from msgspec.structs import fields

    options: dict[str, Any] = {}
    for field in fields(kind):
        if _is_group(field.type):
            inner = _group(field.name, field.type, rows, found)
            if inner[1]:
                options[field.name] = inner
            continue
        full = f"{name}.{field.name}" if f"{name}.{field.name}" in rows else field.name
        if full in rows and full not in found:  # Of two groups that have the field, it is the first one's.
            default = Parameter.empty if field.default is NODEFAULT else field.default
            options[field.name] = full.replace(".", "_")
            found[full] = _parameter(options[field.name], field.type, default, rows[full])
    return kind, options


def _value(group: Group, values: dict[str, Any]) -> Any:
    """Take a group's options out of the values that were given; return what they make."""
    kind, options = group
    given = {
        field: _value(option, values) if isinstance(option, tuple) else values.pop(option)
        for field, option in options.items()
    }
    return kind(
        **{
            field: tuple(value) if isinstance(value, list) else value
            for field, value in given.items()
            if value is not None
        }
    )


def _parameter(name: str, hint: Any, default: Any, said: Any) -> Parameter:
    if hint == tuple[str, ...]:
        hint, default = list[str] | None, None
    annotation = hint if said is None else Annotated[hint, said]
    return Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


# How help is laid out: names at the left, what they do at the right, and syntax that is never cut.
#
# Typer's own panels give each kind of thing a column, which leaves 21 of 80 for words, and cut what is longer. Here
# there are two columns, lines are broken at blanks alone, and what has no room beside a name stands below it.

_WIDTH_MIN, _WIDTH_MAX = 40, 100
_LEFT_MAX = 28  # Names that are longer have what they do below them.
_BELOW = 6

Rows = list[tuple[str, str]]

# What a value is, in the words of a user; typer has those of the program.
_KIND = re.compile(r"<(int|float|str|path|list\[\w+\])(?: range)?>")
_KINDS = {"int": "N", "float": "NUMBER", "str": "TEXT", "path": "FILE"}
_AT_LEAST = re.compile(r"(?<=[\[ ])x>=([\d.]+)")
_BETWEEN = re.compile(r"(?<=[\[ ])([\d.]+)<=x<=([\d.]+)")


class HelpfulCommand(TyperCommand):
    """A command whose help can be read in 80 columns. Its epilog is shown as it stands.

    `completed` adds to the arguments what may be left out. `examples` are what may follow its name.
    """

    examples: ClassVar[Sequence[str]] = ()
    completed: ClassVar[Callable[[list[str]], list[str]]] = staticmethod(lambda arguments: arguments)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        convert_little(self.get_params(ctx))
        return super().parse_args(ctx, type(self).completed(args))

    def get_help(self, ctx: Any) -> str:
        return "\n".join(_lines(self, ctx, {}))


class HelpfulGroup(TyperGroup):
    """The same for the command of all commands. What each does is in `about`, so that none is loaded for its help."""

    about: ClassVar[Mapping[str, Mapping[str, str]]] = {}
    examples: ClassVar[Sequence[str]] = ()

    def list_commands(self, ctx: Any) -> list[str]:
        return [name for group in self.about.values() for name in group]

    def get_help(self, ctx: Any) -> str:
        return "\n".join(_lines(self, ctx, {title: list(group.items()) for title, group in self.about.items()}))


def _lines(command: HelpfulCommand | HelpfulGroup, ctx: Any, sections: dict[str, Rows]) -> Iterator[str]:
    width = min(max(shutil.get_terminal_size().columns, _WIDTH_MIN), _WIDTH_MAX)
    yield from command.get_usage(ctx).splitlines()
    for paragraph in filter(None, cleandoc(command.help or "").split("\n\n")):
        yield ""
        yield from _wrapped(paragraph, width, "  ")
    for title, rows in {**_parameters(command, ctx), **sections}.items():
        yield ""
        yield typer.style(f"{title}:", bold=True)
        yield from table(rows, width)
    if command.epilog:
        yield ""
        yield command.epilog.strip("\n")
    if command.examples:
        yield ""
        yield typer.style("Examples:", bold=True)
        yield from (f"  worldline {ctx.info_name} {words}".rstrip() for words in command.examples)


def _parameters(command: TyperCommand | TyperGroup, ctx: Any) -> dict[str, Rows]:
    """Return what can be said to a command, by the panels that it is put into."""
    sections: dict[str, Rows] = {}
    for each in command.get_params(ctx):
        record = each.get_help_record(ctx)
        if record is None:
            continue
        name, about = record
        is_argument = each.param_type_name == "argument"
        if is_argument:
            name = name.partition(" <")[0]  # What it is called says what it is.
        title = getattr(each, "rich_help_panel", None) or ("Arguments" if is_argument else "Options")
        about = _BETWEEN.sub(r"\1 to \2", _AT_LEAST.sub(r"at least \1", about))
        sections.setdefault(title, []).append((_KIND.sub(_kind, name), about))
    return sections


def _kind(found: re.Match[str]) -> str:
    return _KINDS.get(found[1], "TEXT")


def table(rows: Rows, width: int) -> Iterator[str]:
    """Lay out names and what they do."""
    left = max((len(name) for name, _ in rows if len(name) <= _LEFT_MAX), default=0)
    for name, about in rows:
        shown = typer.style(name, bold=True)
        room = width - left - 4
        if len(name) <= left and all(len(word) <= room for word in about.split()):
            first, *rest = _wrapped(about, width, " " * (left + 4)) or [""]
            yield f"  {shown}{' ' * (left - len(name))}{first[left + 2 :]}".rstrip()
            yield from rest
        else:
            yield f"  {shown}"
            yield from _wrapped(about, width, " " * _BELOW)


def _wrapped(text: str, width: int, indent: str) -> list[str]:
    return wrap(
        text,
        width,
        initial_indent=indent,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )


ABOUT = {
    "Run": {
        "run": "Run a federation, a kernel simulation, a SimPy model, a distributed algorithm, agents in spacetime or a"
        " world.",
        "simpy": "Run a SimPy script unchanged: `import simpy` means Worldline's, which is several times as fast.",
        "sweep": "Run a target with many parameters and seeds on all cores, into one table with confidence intervals.",
        "nodes": "Run a distributed algorithm and print what happens, or try it on many seeds.",
        "spacetime": "Run agents that send each other functions at the speed of light, and print what they log.",
        "world": "Run a world of robots in lockstep, in one process or over several: the same bit for bit.",
        "serve": "Serve one run of a federation to participants started elsewhere.",
        "join": "Start one participant of a federation here, for a run served elsewhere.",
        "metasim": "Coordinate simulators in several processes as one, without a federation's file.",
        "init": "Write a small model to start from, of any layer; it runs at once.",
    },
    "Check": {
        "verify": "Run a target twice, and across executors, hash seeds, surroundings, start orders and builds; compare"
        " the digests.",
        "check": "Run a federation under many schedules and compare every delivery; any difference is non-determinism.",
        "search": "Try a federation on many seeds until a property fails or a program raises; shrink what fails.",
        "doctor": "Say what works on this machine: Python, compiled modules, extras, network, limits; and how to get"
        " the rest.",
    },
    "Inspect": {
        "view": "Look at a recording in a browser, or at two side by side; or step through a failure that was saved.",
        "diff": "Show where two runs diverge: each member's first difference, the earliest cause, and what followed.",
        "replay": "Play a recording, or run members of it again on their own and compare what they do.",
        "info": "Show what a recording contains: who took part, what was sent and lost, and whether the file is"
        " intact.",
        "digest": "Print the digest of a recorded run on a line by itself; fail if the file is incomplete or altered.",
        "export": "Write a recording as CSV, Parquet, an LCM log, a Chrome trace or a page for a browser.",
        "plot": "Plot signals of recordings over simulated time, histograms of them, or measures of a sweep.",
        "draws": "List the random draws of a run: name, time, distribution and value.",
    },
    "Operate": {
        "why": "Say who waits for whom in a running federation, through which links, for how long, and what the holder"
        " is doing.",
        "pause": "Hold a running federation where it is; its result stays the same.",
        "step": "Let a federation go on, to the next time at which a participant acts or as far as you say, and hold it"
        " there.",
        "resume": "Let a federation go on that `worldline pause` or `worldline step` holds.",
        "end": "End a federation in good order: it has a result, as if it had been run with --until that time.",
    },
}
"""What each command does: the first paragraph of the docstring of the function `NAME` in `worldline.cli.NAME`."""

NAMES = [name for group in ABOUT.values() for name in group]

EXAMPLES = {
    "run": ("federation.toml", "model.py --seed 7 --executor 'processes(4)' --record run.mcap"),
    "simpy": ("bank.py --seed 7 --until 100 --record bank.mcap", "bank.py -- --customers 20"),
    "sweep": ("shop.py --set clerks=1,2 --seeds 100 --measure wait.mean", "shop.sweep"),
    "nodes": ("raft --seed 5 --until 1s --faults crash=1 --diagram raft.svg", "--file mutex.py --seeds 1000"),
    "spacetime": ("relay --diagram relay.svg", "flock --until 20"),
    "world": ("world.sdf --until 10s --paths paths.svg", "world.sdf --until 10s --local-secondaries 3"),
    "serve": ("cell.toml --listen tcp://0.0.0.0:5000 --token-file token", "cell.toml --journal cell.journal"),
    "join": ("cell.toml camera", "cell.toml camera --address tcp://server:5000 --token-file token"),
    "metasim": ("serve 2 --delay 20ms", "serve plant controller --delay 5ms --until 5s"),
    "init": ("room", "shop --kernel"),
    "verify": ("model.py", "--conformance"),
    "check": ("federation.toml", "model.py --schedules 500"),
    "search": ("federation.toml --seeds 500 --faults crash=1,hang=1", "model.py --seeds 100 --keep-going"),
    "doctor": ("", "--json"),
    "view": ("run.mcap", "before.mcap after.mcap", "failure.json --target commit.toml --property commit:agreement"),
    "diff": ("before.mcap after.mcap", "model.py --seed-a 1 --seed-b 2"),
    "replay": ("run.mcap --speed max", "run.mcap --only camera --pdb"),
    "info": ("run.mcap", "federation.toml"),
    "digest": ("run.mcap", "/data/monday.mcap"),
    "export": ("run.mcap run.csv", "run.mcap run.parquet --topic pose", "run.mcap run.html"),
    "plot": ("run.mcap --topic pose.x --topic arm.angle", "before.mcap after.mcap --topic queue -o queue.png"),
    "draws": ("federation.toml", "run.mcap --json"),
    "why": ("cell", "cell --follow"),
    "pause": ("cell", "tcp://server:5000 --token-file token"),
    "step": ("cell --by 10ms", "cell --to 2s"),
    "resume": ("cell", "4713"),
    "end": ("cell", "cell --at 10s"),
}
"""What can be written after `worldline NAME`: the end of each command's help."""

_HOMES = {
    **dict.fromkeys(("join", "pause", "step", "resume", "end"), "operate"),
    **dict.fromkeys(("digest", "draws", "export"), "info"),
    "metasim": "serve",
    "plot": "sweep",
    "simpy": "run",
    "check": "search",
}
"""Commands that share a module."""


class Subcommands(UserDict[str, Any]):
    """The commands by their names, each made when it is looked up; `when_loaded` is called once it is there."""

    when_loaded: ClassVar[Callable[[], None]] = staticmethod(lambda: None)

    def __init__(self) -> None:
        super().__init__()
        self.data = dict.fromkeys(NAMES)

    def __getitem__(self, name: str) -> Any:
        if self.data[name] is None:
            self.data[name] = _loaded(name)
            Subcommands.when_loaded()
        return self.data[name]


def _loaded(name: str) -> Any:
    module = import_module(f"worldline.cli.{_HOMES.get(name, name)}")
    alone = typer.Typer(add_completion=False, rich_markup_mode=None)
    function, parts = getattr(module, name), getattr(module, "COMMANDS", {}).get(name)
    if parts:  # It is a group of commands, which are loaded together.
        about = {part: cleandoc(each.__doc__).partition("\n\n")[0] for part, each in parts.items()}
        group = type("_Group", (HelpfulGroup,), {"about": {"Commands": about}, "examples": EXAMPLES[name]})
        alone.callback(cls=group, no_args_is_help=True)(function)
        for part, each in parts.items():
            alone.command(part, cls=HelpfulCommand)(flat(each))
    else:
        completed = staticmethod(getattr(function, "completed", HelpfulCommand.completed))
        kind = type("_Command", (HelpfulCommand,), {"completed": completed, "examples": EXAMPLES[name]})
        alone.command(name, cls=kind, epilog=getattr(module, "EPILOG", None))(flat(function))
    return get_command(alone)


class _Worldline(HelpfulGroup):
    about = ABOUT

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands = Subcommands()

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        convert_little(self.get_params(ctx))
        return super().parse_args(ctx, args)


app = typer.Typer(
    cls=_Worldline,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # Mistakes are told in plain lines, as everything else.
    help="Deterministic distributed simulation.",
)


def _say_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version
        from platform import python_version

        print(f"worldline {version('worldline')}, Python {python_version()}")
        raise typer.Exit


@app.callback()
def _worldline(
    version_wanted: Annotated[
        bool, typer.Option("--version", help="Show the version and exit.", callback=_say_version, is_eager=True)
    ] = False,
) -> None:
    """Deterministic distributed simulation."""
