"""`worldline draws`, and `--draws` of other commands: tables from files, functions, what is printed and refused."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Command
from worldline.recording import Recording

PROGRAMS = """
def camera(me):
    while True:
        print("a picture")
        me.publish("image", b"%d" % int(me.random.random() * 100))
        me.advance(by="10ms")

def planner(me):
    for message in me.messages():
        me.publish("plan", message.payload)

def policy(name, distribution, value):
    return distribution.maximum if name.startswith("latency") else value
"""

FILE = """
name = "cell"
seed = 3
until = "45ms"

[link]
latency = "uniform(1ms, 9ms)"
loss = 0.2

[[participants]]
name = "camera"
entry = "programs:camera"
publishes = ["image"]

[[participants]]
name = "planner"
entry = "programs:planner"
publishes = ["plan"]
subscribes = ["image"]
"""


@pytest.fixture
def cell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "programs.py").write_text(PROGRAMS)
    (tmp_path / "cell.toml").write_text(FILE)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(__import__("sys").modules, "programs", raising=False)
    return tmp_path


def digest_of(worldline: Command, *options: str) -> str:
    code, out, err = worldline("run", "cell.toml", "--quiet", "--no-record", "--executor", "in-process", *options)
    assert code == 0, err
    return out.splitlines()[-1]


def test_draws_are_listed_with_all_that_is_known_of_them(worldline: Command, cell: Path) -> None:
    code, out, err = worldline("draws", "cell.toml", "--json")
    listed = [json.loads(line) for line in out.splitlines()]
    assert code == 0
    assert "a picture" in err
    assert [each["name"] for each in listed[:4]] == [
        "latency/image/camera/planner/0",
        "loss/image/camera/planner/0",
        "random/camera/0",
        "latency/image/camera/planner/1",
    ]
    assert listed[0].keys() == {"name", "at", "distribution", "value"}
    assert listed[3]["at"] == 10_000_000
    assert listed[1]["distribution"] == "chance(0.2)"
    _, out, _ = worldline("draws", "cell.toml", "--of", "random/camera/[01]")
    assert [line.split()[:3] for line in out.splitlines()] == [
        ["0s", "random/camera/0", "unit"],
        ["10ms", "random/camera/1", "unit"],
    ]
    assert worldline("draws", "cell.toml", "--of", "duplication")[1] == "no draws\n"


def test_a_recording_has_the_draws_of_its_links(worldline: Command, cell: Path) -> None:
    (cell / "t.toml").write_text('"latency/image/camera/planner/1" = "2ms"\n')
    assert worldline("run", "cell.toml", "--executor", "in-process", "--draws", "t.toml")[0] == 0
    assert Recording(cell / "cell.mcap").header.draws[0].value == "2ms"
    _, of_target, _ = worldline("draws", "cell.toml", "--draws", "t.toml")
    code, of_recording, err = worldline("draws", "cell.mcap")
    assert code == 0
    assert "a recording doesn't have the draws that participants make" in err
    links = [line.split() for line in of_target.splitlines() if "random/" not in line]
    assert [line.split() for line in of_recording.splitlines()] == links
    _, replaced, _ = worldline("draws", "cell.mcap", "--replaced")
    assert replaced.startswith("10ms  latency/image/camera/planner/1  uniform(1ms, 9ms)  2ms, instead of ")


def test_what_participants_draw_is_listed_too(worldline: Command, cell: Path) -> None:
    text = FILE.replace("loss = 0.2", "corruption = 0.5").replace(
        '"programs:planner"', '"programs:planner"\nboot = "uniform(0ms, 9ms)"'
    )
    wander = 'clock = { wander = "walk(1ppm, every=1s, within=5ppm)" }'
    (cell / "cell.toml").write_text(text.replace('"programs:camera"', f'"programs:camera"\n{wander}'))
    (cell / "programs.py").write_text(PROGRAMS.replace('by="10ms"', 'by="1500ms", clock="local"'))
    (cell / "t.toml").write_text('"boot/planner/0" = "8ms"\n"clock-walk" = "-1ppm"\n"corruption" = true\n')
    drawn = [f"{each}/*" for each in ("corruption", "boot", "clock-walk")]
    found = [worldline("draws", "cell.toml", "--until", "4s", "--draws", "t.toml", "--of", each)[1] for each in drawn]
    assert "corruption/image/camera/planner/1  chance(0.5)  true" in found[0]
    assert found[1].startswith("0s  boot/planner/0  uniform(0s, 9ms)  8ms, instead of ")
    assert "clock-walk/camera/1  uniform(-1ppm, 1ppm)  -1ppm, instead of " in found[2]
    (cell / "t.toml").write_text('"boot/planner/0" = "10ms"\n')
    code, _, errors = worldline("run", "cell.toml", "--no-record", "--draws", "t.toml")
    assert (code, errors) == (
        2,
        "worldline: draw boot/planner/0: 10ms is outside of uniform(0s, 9ms) (use 0s to 9ms)\n",
    )


def test_draws_before_an_outcome(worldline: Command, cell: Path) -> None:
    _, out, _ = worldline("draws", "cell.toml", "--before", "planner@12ms")
    assert {line.split()[0] for line in out.splitlines()} == {"0s", "10ms"}
    _, out, _ = worldline("draws", "cell.toml", "--before", "camera@25ms")
    assert {line.split()[1].partition("/")[0] for line in out.splitlines()} == {"random"}  # Nobody tells it anything.
    code, _, err = worldline("draws", "cell.toml", "--before", "plannr@1s")
    assert (code, "there is no member 'plannr' (did you mean 'planner'?)" in err) == (2, True)
    code, _, err = worldline("draws", "cell.toml", "--before", "planner")
    assert (code, "isn't a member and a time (write planner@2s)" in err) == (2, True)


@pytest.mark.parametrize(
    ("before", "complaint"),
    [
        ("plannr@1s", "--before plannr@1s: there is no member 'plannr' (did you mean 'planner'?)"),
        ("nobody@1s", "there is no member 'nobody' (members are camera, planner)"),
        ("planner@soon", "'soon' isn't a time for --before"),
        ("@1s", "--before @1s: that isn't a member and a time (write planner@2s)"),
    ],
)
def test_what_is_asked_in_a_wrong_way_is_refused_before_the_run(
    worldline: Command, cell: Path, before: str, complaint: str
) -> None:
    entries = "def camera(me):\n    raise RuntimeError('it is run')\nplanner = camera\n"
    (cell / "programs.py").write_text(entries)
    code, out, err = worldline("draws", "cell.toml", "--before", before)
    assert (code, out) == (2, "")
    assert complaint in err


def test_who_neither_sends_nor_receives_has_a_past_without_draws(worldline: Command, cell: Path) -> None:
    idle = '[[participants]]\nname = "idle"\nentry = "programs:idle"\n'
    (cell / "cell.toml").write_text(FILE + idle)
    (cell / "programs.py").write_text(PROGRAMS + "\ndef idle(me):\n    me.advance(by='1s')\n")
    assert worldline("draws", "cell.toml", "--before", "idle@1s")[:2] == (0, "no draws\n")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("t.toml", '"latency" = "9ms"\n"loss" = false\n"random/camera" = {seed = 9}'),
        ("t.json", '{"latency": "9ms", "loss": false, "random/camera": {"seed": 9}}'),
        ("t.csv", 'name,value\nlatency,9ms\nloss,false\nrandom/camera,"{""seed"": 9}"\n'),
    ],
)
def test_tables_in_files_say_the_same(worldline: Command, cell: Path, name: str, text: str) -> None:
    (cell / name).write_text(text)
    (cell / "same.json").write_text('{"latency": 9000000, "loss": false, "random": {"seed": 9}}')
    assert digest_of(worldline, "--draws", name) == digest_of(worldline, "--draws", "same.json")
    assert digest_of(worldline, "--draws", name) != digest_of(worldline)


def test_a_function_replaces_draws_in_processes_as_well(worldline: Command, cell: Path) -> None:
    (cell / "t.toml").write_text('"latency" = "9ms"\n')
    expected = digest_of(worldline, "--draws", "t.toml")
    assert digest_of(worldline, "--draws", "programs:policy") == expected
    code, out, err = worldline("run", "cell.toml", "--quiet", "--no-record", "--draws", "programs:policy")
    assert (code, out.splitlines()[-1]) == (0, expected), err


def test_streams_in_processes_take_their_draws_from_the_table(worldline: Command, cell: Path) -> None:
    (cell / "t.toml").write_text('"random/camera" = "antithetic"\n"random/*/0" = 0.5\n')
    expected = digest_of(worldline, "--draws", "t.toml")
    code, out, err = worldline(
        "run", "cell.toml", "--quiet", "--no-record", "--executor", "workers(1)", "--draws", "t.toml"
    )
    assert (code, out.splitlines()[-1]) == (0, expected), err
    (cell / "t.toml").write_text('"random/camera/999" = 0.5\n')
    code, _, err = worldline(
        "run", "cell.toml", "--quiet", "--no-record", "--executor", "workers(1)", "--draws", "t.toml"
    )
    assert (code, "draw random/camera/999: the run made no such draw" in err) == (2, True)


def test_a_participant_replays_alone_with_the_same_draws(worldline: Command, cell: Path) -> None:
    (cell / "t.toml").write_text('"random/camera" = "antithetic"\n')
    assert worldline("run", "cell.toml", "--quiet", "--executor", "in-process", "--draws", "t.toml")[0] == 0
    code, _, err = worldline("replay", "cell.mcap", "--only", "camera")
    assert code == 0, err


def test_a_recording_may_not_name_a_function(worldline: Command, cell: Path) -> None:
    assert worldline("run", "cell.toml", "--quiet", "--executor", "in-process", "--draws", "programs:policy")[0] == 0
    sys.modules.pop("programs")
    code, _, err = worldline("draws", "cell.mcap")
    assert (code, "programs" in sys.modules) == (2, False)
    assert "a function replaced draws, 'programs:policy', and a recording isn't trusted to name any" in err


def test_diff_names_what_was_replaced(worldline: Command, cell: Path) -> None:
    (cell / "t.toml").write_text('"latency/image/camera/planner/1" = "2ms"\n')
    for record, *options in (("a.mcap",), ("b.mcap", "--draws", "t.toml")):
        assert worldline("run", "cell.toml", "--executor", "in-process", "--record", record, *options)[0] == 0
    code, out, _ = worldline("diff", "a.mcap", "b.mcap")
    assert code == 1
    assert '  draws.latency/image/camera/planner/1: (missing) → "2ms"' in out
    assert "draws with other values: 1\n  latency/image/camera/planner/1: " in out
    assert "first cause: planner at " in out
    assert "  draws of the network were replaced\n" in out
    found = json.loads(worldline("diff", "a.mcap", "b.mcap", "--json")[1])
    assert [(each["name"], each["b"]) for each in found["draws"]] == [("latency/image/camera/planner/1", "2ms")]


def test_diff_lists_what_no_function_replaced(worldline: Command, cell: Path) -> None:
    rows = ('"latency/image/camera/planner/1" = "2ms"', '"latency/image/*/*/[23]" = {function = "programs:policy"}')
    (cell / "t.toml").write_text("\n".join(rows))
    for record, *options in (("a.mcap",), ("b.mcap", "--draws", "t.toml")):
        assert worldline("run", "cell.toml", "--executor", "in-process", "--record", record, *options)[0] == 0
    sys.modules.pop("programs")
    _, out, _ = worldline("diff", "a.mcap", "b.mcap")
    assert "draws with other values: 1\n  latency/image/camera/planner/1: " in out
    assert "\ndraws that a function replaced, whose values aren't listed: 2\n" in out
    assert "programs" not in sys.modules


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("t.toml", "x =", "t.toml can't be read: "),
        ("t.json", "[1]", "t.json: it holds [1]"),
        ("t.csv", "latency,9ms\n", "t.csv: its first line isn't name,value"),
        ("t.csv", "name,value\nlatency\n", "t.csv: line 2 has 1 columns"),
        ("t.csv", "name,value\nlatency,9ms\nlatency,8ms\n", "t.csv: line 3: draw latency is there twice"),
        ("t.toml", '"latncy" = "9ms"', "t.toml: draw latncy: no draw is for 'latncy' (did you mean 'latency'?)"),
        ("t.toml", '"latency" = "antithetc"', "draw latency: 'antithetc' isn't a value (did you mean 'antithetic'?)"),
        ("t.toml", '"latency" = "10ms"', "draw latency: 10ms is outside of uniform(1ms, 9ms) (use 1ms to 9ms)"),
        (
            "t.toml",
            '"latency/imag" = "2ms"',
            "draw latency/imag: no participant publishes 'imag' (did you mean 'image'?)",
        ),
        ("t.toml", '"latency/image/camera/camera/0" = "2ms"', "no participant receives what it sends itself"),
        ("t.toml", '"random/robot" = 0.5', "draw random/robot: there is no participant 'robot'"),
        ("t.toml", '"random" = {function = "programs:nothing"}', "the function programs:nothing can't be imported"),
        ("missing.toml", None, "missing.toml can't be read: No such file"),
        ("missing", None, "--draws missing: that is neither a table nor a function (give FILE.toml,"),
        ("nowhere:f", None, "the function nowhere:f can't be imported here: ModuleNotFoundError"),
    ],
)
def test_bad_tables_are_refused_before_the_run(
    worldline: Command, cell: Path, name: str, text: str | None, words: str
) -> None:
    if text is not None:
        (cell / name).write_text(text)
    code, out, err = worldline("run", "cell.toml", "--draws", name, "--executor", "in-process", "--no-record")
    assert (code, out) == (2, "")
    assert words in err


@pytest.mark.parametrize(
    "row", ['"boot/camera/0" = "2ms"', '"clock-drift/planner" = "1ppm"', '"clock-walk/camera/3" = 0']
)
def test_what_a_participant_does_not_draw_is_refused_before_the_run(worldline: Command, cell: Path, row: str) -> None:
    (cell / "t.toml").write_text(row)
    code, out, err = worldline("run", "cell.toml", "--executor", "in-process", "--no-record", "--draws", "t.toml")
    assert (code, out) == (2, "")
    assert " doesn't draw that (a boot time or a clock that is fixed" in err


def test_draws_have_names_in_federations_only(worldline: Command, cell: Path) -> None:
    code, _, err = worldline("draws", "raft")
    assert (code, "draws have names in federations, and raft is of the kind nodes" in err) == (2, True)
    (cell / "t.toml").write_text('"latency" = "9ms"\n')
    code, _, err = worldline("run", "raft", "--draws", "t.toml")
    assert (code, "--draws is for federations" in err) == (2, True)
    code, _, err = worldline("draws", "cell.toml", "--of", "latncy")
    assert (code, "no draw is for 'latncy'" in err) == (2, True)
