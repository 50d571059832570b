"""Help: all of it can be read in 80 columns, and what it says of syntax is so."""

from __future__ import annotations

import re
import shlex

import pytest
import typer
from typer.core import TyperGroup
from typer.main import get_command
from typer.testing import CliRunner

from worldline.cli.commands import EXAMPLES, HelpfulCommand, app, table
from worldline.cli.nodes import SYNTAX
from worldline.model.latency import as_distribution
from worldline.nodes.faults import FORMS as FAULT_FORMS
from worldline.nodes.faults import KINDS, as_fault, parse_kinds
from worldline.nodes.shapes import _SHAPES, as_topology

GROUP = get_command(app)
assert isinstance(GROUP, TyperGroup)
COMMANDS = list(GROUP.commands)


def help_of(*words: str, columns: int = 80) -> str:
    result = CliRunner().invoke(app, [*words, "--help"], env={"COLUMNS": str(columns)})
    assert result.exit_code == 0, result.output
    return result.output


@pytest.mark.parametrize("columns", [80, 100])
@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_nothing_is_cut_and_nothing_is_too_long(command: str, columns: int) -> None:
    text = help_of(*filter(None, [command]), columns=columns)
    assert max(map(len, text.splitlines())) <= columns
    assert "…" not in text
    assert "<bool>" not in text
    assert not re.search(r"<(int|float|str)", text)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_word_is_there(command: str) -> None:
    """What is said of an option stands there whole: no word of it is broken, however long it is."""
    words = help_of(command).split()
    made = GROUP.commands[command]  # type: ignore[attr-defined]
    for each in made.params:
        assert [word for word in (each.help or "").split() if word not in words] == []
        assert all(any(option in word for word in words) for option in each.opts if option.startswith("-"))


@pytest.mark.parametrize(("command", "words"), [(name, words) for name in COMMANDS for words in EXAMPLES[name]])
def test_its_help_ends_with_examples_that_it_understands(command: str, words: str) -> None:
    assert f"  worldline {command} {words}".rstrip() in help_of(command).partition("Examples:\n")[2].splitlines()
    made = GROUP.commands[command]  # type: ignore[attr-defined]
    arguments = shlex.split(words)
    if isinstance(made, TyperGroup):
        made = made.commands[arguments.pop(0)]
    made.make_context(command, arguments)


def test_all_commands_are_said_what_they_do() -> None:
    text = " ".join(help_of().split())
    for made in GROUP.commands.values():  # type: ignore[attr-defined]
        about, _, _ = made.help.partition("\n\n")
        assert f"{made.name} {' '.join(about.split())}" in text


def test_where_there_is_no_room_beside_a_name_it_stands_below() -> None:
    rows = [("--a", "x" * 60), ("--quite-a-long-name-for-an-option", "short"), ("--b", "word " * 20)]
    lines = [re.sub(r"\x1b\[\d*m", "", line) for line in table(rows, 70)]
    assert lines[:4] == [
        "  --a  " + "x" * 60,
        "  --quite-a-long-name-for-an-option",
        "      short",
        "  --b  " + "word " * 11 + "word",
    ]
    narrow = [re.sub(r"\x1b\[\d*m", "", line) for line in table(rows[:1], 60)]
    assert narrow == ["  --a", "      " + "x" * 60]


def test_numbers_are_said_in_words() -> None:
    made = typer.Typer(rich_markup_mode=None, add_completion=False)

    @made.command(cls=HelpfulCommand)
    def command(
        share: float = typer.Option(0.5, min=0.0, max=1.0, help="How much."),
        number: int = typer.Option(3, min=1, help="How many."),
        loud: bool = typer.Option(False, "--loud", help="Whether it is."),
    ) -> None:
        """Do nothing."""

    text = CliRunner().invoke(made, ["--help"]).output
    assert "--share NUMBER  How much.  [default: 0.5; 0.0 to 1.0]" in text
    assert "--number N      How many.  [default: 3; at least 1]" in text
    assert "--loud          Whether it is.\n" in text


# --- What stands below the options of nodes ---


def section(title: str) -> str:
    return re.split(r"\n\n|\Z", SYNTAX.partition(title)[2])[0]


def test_every_shape_is_named_and_is_one() -> None:
    named = re.findall(r"\b[a-z-]+:\d\S*", section("Shapes"))
    assert {name.partition(":")[0] for name in named} == set(_SHAPES)
    for name in named:
        for more in ("", *re.findall(r"(?<= ),\S+", section("Shapes"))):
            assert as_topology(name + more).num_nodes


def test_latencies_are_latencies() -> None:
    forms = re.findall(r'"([^"]+)"|(\d+ms)', section("Latencies"))
    assert len(forms) >= 5
    for quoted, plain in forms:
        as_distribution(quoted or plain)


def test_every_fault_is_named_and_is_one() -> None:
    named = re.findall(r'"([^"]+)"', section("Faults, for"))
    assert sorted(named) == sorted(re.findall(r'"([^"]+)"', FAULT_FORMS))
    assert all(str(as_fault(text)) == text for text in named)
    kinds = re.findall(r"  (crash\S+)", section("Kinds"))[0]
    assert tuple(parse_kinds(kinds)) == KINDS


@pytest.mark.parametrize(
    ("command", "runs_agents"), [("run", True), ("verify", True), ("check", False), ("serve", False)]
)
def test_lab_time_is_for_commands_that_run_agents(command: str, runs_agents: bool) -> None:
    assert ("lab time" in help_of(command, columns=200)) is runs_agents
