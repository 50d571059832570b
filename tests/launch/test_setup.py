"""Federations read from TOML files: what they say, and every mistake in them at once."""

from __future__ import annotations

import json
import pickle
import re
import sys
from datetime import date, time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from worldline.federation.server.limits import Limits
from worldline.launch.file import toml_document
from worldline.launch.file.setup import ParticipantSetup, Setup, read_setup, starts_none
from worldline.launch.file.toml_document import FILE_SIZE_MAX
from worldline.launch.file.words import TABLES
from worldline.model import MAILBOX, MS, SECOND, UNBOUNDED, ConfigurationError, newest, oldest
from worldline.model.clock import clock
from worldline.model.latency import Exponential, Fixed, Normal, Table, Uniform
from worldline.model.links import Link, Network, Rule, hold, partition
from worldline.model.plan import Plan, check_plan

PAGE = Path(__file__).parent.parent.parent / "docs" / "federation-file.md"

# Small and right: what a test adds to it is the only thing that can be wrong.
SOUND = """
[[participants]]
name = "camera"
subscribes = ["target"]
[[participants]]
name = "arm"
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a module, a package and a command to start."""
    unwanted = "raise SystemExit('nobody may import this')\n"
    (tmp_path / "robot_cell.py").write_text(unwanted + "it = Robot = a = b = camera = planner = visitor = None\n")
    (tmp_path / "package" / "inner").mkdir(parents=True)
    (tmp_path / "package" / "__init__.py").write_text(f"{unwanted}from .part import it, Robot")
    (tmp_path / "package" / "part.py").write_text("def it(_): ...\nclass Robot: ...\n")
    (tmp_path / "arm").write_text("#!/bin/sh\n")
    (tmp_path / "arm").chmod(0o755)
    (tmp_path / "notes.txt").write_text("")
    (tmp_path / "notes.txt").chmod(0o644)
    return tmp_path


def setup_of(folder: Path, text: str, *changes: str) -> Setup:
    (folder / "cell.toml").write_text(text)
    return read_setup(folder / "cell.toml", changes=changes)


def mistakes_of(folder: Path, text: str | bytes, *changes: str) -> list[str]:
    """Return the mistakes without the file's name, which must stand before each of them or else --set, and its line."""
    file = folder / "cell.toml"
    file.write_bytes(text.encode() if isinstance(text, str) else text)
    with pytest.raises(ConfigurationError) as refusal:
        read_setup(file, changes=changes)
    lines = str(refusal.value).split("\n")
    assert refusal.value.facts["mistakes"] == lines
    assert all(line.startswith((f"{file}: ", "--set: ")) for line in lines)
    plain = [re.sub(r"^line [0-9]+: (?=[a-z_]+(\[|\.|:)|\")", "", line.removeprefix(f"{file}: ")) for line in lines]
    return [line.replace(str(folder), "FOLDER") for line in plain]


# --- What a file says ---


def test_the_page_shows_a_federation_that_is_accepted_and_means_what_it_says(folder: Path) -> None:
    (example,) = re.findall(r"```toml\n(.*?)```", PAGE.read_text(), re.DOTALL)
    setup = setup_of(folder, example)
    assert setup.name == "robot-cell"
    assert setup.plan == Plan(
        roster=("arm", "camera", "planner", "watchdog"),
        guests=("visitor-1", "visitor-2"),
        network=Network(
            default=Link(latency=Fixed(MS)),
            rules=(
                Rule(topic="image", link=Link(latency=Uniform(4 * MS, 9 * MS), loss_at_receiver=0.1)),
                Rule(
                    topic="image",
                    sender="camera",
                    receiver="planner",
                    link=Link(latency=Normal(6 * MS, MS, 4 * MS), fifo=True, bandwidth=10_000_000),
                ),
                Rule(
                    sender="watchdog",
                    link=Link(latency=Table((3 * MS, 3 * MS, 4 * MS, 17 * MS)), loss_at_sender=0.01, duplication=0.02),
                ),
            ),
            outages=(
                *partition(["arm"], ["planner", "camera"], "10s", "12s"),
                *hold(["camera"], ["planner"], "30s", "30.5s"),
            ),
            control_latency=MS,
        ),
        seed=7,
        end=60 * SECOND,
    )
    assert list(setup.parts) == ["arm", "camera", "planner", "visitor-1", "visitor-2", "watchdog"]
    home = folder.resolve()
    assert setup.parts["camera"] == ParticipantSetup(
        name="camera", directory=home, entry="robot_cell:camera", publishes=("image",), period=20 * MS
    )
    assert setup.parts["planner"].subscribes == {"image": UNBOUNDED}
    assert setup.parts["planner"].latency_least == 2 * MS
    assert setup.parts["arm"] == ParticipantSetup(
        name="arm",
        directory=home,
        command=("./arm", "--fast"),
        publishes=("pose",),
        subscribes={"target": MAILBOX},
        environment={"SPEED": "4"},
    )
    assert setup.parts["watchdog"] == ParticipantSetup(
        name="watchdog",
        directory=home,
        publishes=(),
        subscribes={"pose": UNBOUNDED, "target": newest(3)},
        controls=True,
    )
    for guest in ("visitor-1", "visitor-2"):
        assert setup.parts[guest] == ParticipantSetup(
            name=guest, directory=home, entry="robot_cell:visitor", guest=True
        )


HEADINGS = [
    ["Keys at the top"],
    ["[link]"],
    ["[link]", "[[links]]"],
    ["[[faults]]"],
    ["[[participants]]"],
    ["clock"],
    ["[limits]"],
    ["[estop]"],
    ["[lcm]"],
    ["[topics]"],
]


@pytest.mark.parametrize(
    ("table", "headings"), list(zip(TABLES, HEADINGS, strict=True)), ids=lambda each: str(each)[:20]
)
def test_the_page_lists_every_key_under_its_table(table: toml_document.Table, headings: list[str]) -> None:
    sections = {section.split("\n")[0].strip("`"): section for section in PAGE.read_text().split("\n## ")}
    listed = [key for heading in headings for key in re.findall(r"^\| `(\w+)` \|", sections[heading], re.MULTILINE)]
    tables = table.keys if table is TABLES[0] else ()
    with_a_section = [key for key in tables if f"[{key}]" in sections or f"[[{key}]]" in sections]
    assert sorted(listed + with_a_section) == sorted(table.keys)


def test_a_file_that_says_no_more_than_a_name_has_the_defaults(folder: Path) -> None:
    setup = setup_of(folder, '[[participants]]\nname = "a"')
    assert setup == Setup(
        file=folder / "cell.toml",
        name="cell",
        plan=Plan(roster=("a",), network=Network(default=Link(latency=Fixed(MS)))),
        parts={"a": ParticipantSetup(name="a", directory=folder.resolve())},
        limits=Limits(join_s=600.0),
    )
    assert setup.parts["a"].publishes is None


ALL_LIMITS = """
[limits]
memory = "1.5GiB"
under_way = "4GB"
flood = "12 MB"
unread = "64kB"
frame = "1MiB"
payload = "512MiB"
unreachable = "20s"
silence = "1min"
handshake = "500ms"
join = "2h"
topics = 12
events = 34
frames = 56
strangers = 7
"""


def test_the_servers_limits_are_set_in_the_file_and_on_the_command_line(folder: Path) -> None:
    limits = Limits(
        memory_max=3 * 2**29,
        under_way_max=4 * 10**9,
        flood_max=12 * 10**6,
        unread_max=64_000,
        frame_max=2**20,
        payload_max=2**29,
        unreachable_s=20.0,
        silence_s=60.0,
        handshake_s=0.5,
        join_s=7200.0,
        topics_max=12,
        events_max=34,
        frames_max=56,
        strangers_max=7,
    )
    assert setup_of(folder, SOUND + ALL_LIMITS).limits == limits
    changed = setup_of(folder, SOUND, "limits.silence=90s", "limits.memory=2MB", "limits.join=never", "limits.topics=3")
    assert changed.limits == Limits(silence_s=90.0, memory_max=2 * 10**6, join_s=None, topics_max=3)


def test_people_are_waited_for_and_processes_not_for_ever(folder: Path) -> None:
    (folder / "cell.toml").write_text(SOUND)
    assert read_setup(folder / "cell.toml").limits.join_s == 600.0
    assert read_setup(folder / "cell.toml", starts=starts_none).limits.join_s is None


@pytest.mark.parametrize(
    ("line", "mistake"),
    [
        ("memory = 5", '5 isn\'t a size (write a number with its unit in quotes, such as "256MB" or "64KiB")'),
        ('memory = "5"', '\'5\' isn\'t a size (write a number with its unit in quotes, such as "256MB" or "64KiB")'),
        ('memory = "0.5B"', "'0.5B' isn't a size (it isn't a whole number of bytes)"),
        ('memory = "0B"', "'0B' isn't possible here (use 1B to 1,125,899,906,842,624B)"),
        ('frame = "64kB"', "'64kB' isn't possible here (use 131,072B to 1,073,741,824B)"),
        ('payload = "2GiB"', "'2GiB' isn't possible here (use 1B to 1,073,741,824B)"),
        ("silence = 5", '5 isn\'t a silence (write a number with its unit in quotes, such as "5ms")'),
        ('silence = "0"', "'0' isn't a silence (a silence is at least 1000000ns)"),
        ('join = "soon"', '\'soon\' isn\'t a join limit (write a number and a unit, such as "5ms", "1.5s" or "2h")'),
        ("topics = 0", "0 isn't a number of topics (use 1 or more)"),
        ("topics = true", "true isn't a number of topics (use 1 or more)"),
        ('memry = "1MB"', 'there is no such key (did you mean "memory"?)'),
    ],
)
def test_a_limit_that_cant_be_is_a_mistake(folder: Path, line: str, mistake: str) -> None:
    assert mistakes_of(folder, f"{SOUND}[limits]\n{line}\n") == [f"limits.{line.split(' ')[0]}: {mistake}"]


@pytest.mark.parametrize(
    ("text", "latency"),
    [
        ("1ms", Fixed(MS)),
        ("fixed(1ms)", Fixed(MS)),
        ("uniform(4ms, 9ms)", Uniform(4 * MS, 9 * MS)),
        ("normal(6ms, 1ms, minimum=4ms)", Normal(6 * MS, MS, 4 * MS)),
        ("exponential(250ms, 20ms)", Exponential(250 * MS, 20 * MS)),
        ("table(3ms, 3ms, 17ms)", Table((3 * MS, 3 * MS, 17 * MS))),
    ],
)
def test_every_latency_can_be_written(folder: Path, text: str, latency: object) -> None:
    assert setup_of(folder, f'[link]\nlatency = "{text}"\n{SOUND}').plan.network.default == Link(latency=latency)


DECLARED = """
[[links]]
topic = "imgae"
latency = "2ms"
[[participants]]
name = "camera"
publishes = ["image"]
[[participants]]
name = "plant"
publishes = []
subscribes = ["image", "powr"]
"""


def test_topics_that_nobody_publishes_on_are_warned_of_with_the_nearest_name(folder: Path) -> None:
    file = folder / "cell.toml"
    known = "the topics that are published on are image"
    assert setup_of(folder, DECLARED).warnings == (
        f'{file}: line 11: participants[2] "plant".subscribes: no participant publishes on "powr" ({known})',
        f'{file}: line 3: links[1].topic: no participant publishes on "imgae" (did you mean "image"?)',
    )
    assert setup_of(folder, DECLARED, "participants.plant.subscribes=['image']", "links[1].topic=image").warnings == ()
    (nobody,) = setup_of(
        folder, DECLARED, "participants.camera.publishes=[]", "participants.plant.subscribes=['x']"
    ).warnings[:1]
    problem = 'no participant publishes on "x" (no participant publishes anything)'
    assert nobody == f'--set: participants[2] "plant".subscribes: {problem}'


def test_where_somebody_may_publish_on_any_topic_there_is_nothing_to_warn_of(folder: Path) -> None:
    assert setup_of(folder, DECLARED + '[[participants]]\nname = "free"\n').warnings == ()


def test_a_subscriber_has_its_own_buffer_or_that_of_the_topic_or_none(folder: Path) -> None:
    setup = setup_of(
        folder,
        """
        [[participants]]
        names = ["ann", "bob"]
        subscribes = ["pose", "image"]
        [[participants]]
        name = "cid"
        subscribes = { pose = "oldest(2)", image = "unbounded" }
        [buffers]
        pose = "mailbox"
        """,
    )
    assert setup.parts["ann"].subscribes == setup.parts["bob"].subscribes == {"pose": MAILBOX, "image": UNBOUNDED}
    assert setup.parts["cid"].subscribes == {"pose": oldest(2), "image": UNBOUNDED}


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("\"./arm --name 'left arm' # 2\"", ("./arm", "--name", "left arm", "#", "2")),
        ('["./arm", "left arm", ""]', ("./arm", "left arm", "")),
        ('["sh", "-c", "exit 3"]', ("sh", "-c", "exit 3")),
    ],
)
def test_a_command_is_a_list_or_is_split_as_a_shell_would(folder: Path, command: str, words: tuple[str, ...]) -> None:
    assert setup_of(folder, f'[[participants]]\nname = "a"\ncommand = {command}').parts["a"].command == words


def test_a_command_is_looked_up_on_the_search_path_of_its_own_environment(folder: Path) -> None:
    named = f'[[participants]]\nname = "a"\ncommand = "arm"\nenvironment = {{ PATH = "{folder}" }}'
    assert setup_of(folder, named).parts["a"].command == ("arm",)
    (mistake,) = mistakes_of(folder, '[[participants]]\nname = "a"\ncommand = "arm"\nenvironment = { PATH = "/" }')
    assert 'there is no command "arm"' in mistake


@pytest.mark.parametrize(
    "entry",
    [
        *(f"{module}:{name}" for module in ("robot_cell", "package", "package.part") for name in ("it", "Robot.live")),
        *("package:part.it", "json:loads", "json.decoder:JSONDecoder", "sys:exit"),
    ],
)
def test_an_entry_is_found_without_running_any_of_it(folder: Path, entry: str) -> None:
    before = set(sys.modules)
    assert setup_of(folder, f'[[participants]]\nname = "a"\nentry = "{entry}"').parts["a"].entry
    assert not {"robot_cell", "package"} & (set(sys.modules) - before)


def test_an_entry_that_its_module_lacks_is_found_with_the_line_and_the_nearest_name(folder: Path) -> None:
    (folder / "cell.py").write_text("def camera(me): ...\n")
    (folder / "cell.toml").write_text('seed = 1\n[[participants]]\nname = "a"\nentry = "cell:camra"\n')
    with pytest.raises(ConfigurationError) as refusal:
        read_setup(folder / "cell.toml")
    said = 'line 4: participants[1] "a".entry: cell has no camra (did you mean "camera"?)'
    assert str(refusal.value) == f"{folder / 'cell.toml'}: {said}"
    read_setup(folder / "cell.toml", starts=starts_none)


@pytest.mark.parametrize(
    "source",
    [
        *("globals()['live'] = print", "from json import *", "def __getattr__(name): ...", "exec('live = 1')"),
        *("if True:\n  import json as live", "try:\n  live: int = 1\nfinally: ...", "for live in (): ..."),
        *("def f():\n  global live\n  live = 1\nf()", "async def live(me): ...", "[0 for _ in [live := 1]]"),
    ],
)
def test_whatever_may_define_a_name_is_let_pass(folder: Path, source: str) -> None:
    (folder / "cell.py").write_text(source)
    assert setup_of(folder, '[[participants]]\nname = "a"\nentry = "cell:live"\n').parts


def test_an_entry_in_a_module_that_cant_be_read_is_found_with_its_line(folder: Path) -> None:
    (folder / "cell.py").write_text("import json\ndef camera(me)\n")
    (mistake,) = mistakes_of(folder, '[[participants]]\nname = "a"\nentry = "cell:camera"\n')
    assert mistake == "participants[1] \"a\".entry: cell can't be imported: cell.py, line 2: expected ':'"


def test_places_are_relative_to_the_file_wherever_it_is_read_from(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "package" / "inner" / "cell.toml").write_text(
        '[[participants]]\nname = "a"\ndirectory = "../.."\nentry = "robot_cell:a"\n'
        '[[participants]]\nname = "b"\ndirectory = ".."\ncommand = "../arm"\n'
    )
    monkeypatch.chdir(folder / "package")
    parts = read_setup(Path("inner/cell.toml")).parts
    assert parts["a"].directory == folder.resolve()
    assert parts["b"].directory == (folder / "package").resolve()


def test_a_file_may_begin_with_a_mark_and_have_the_line_ends_of_another_system(folder: Path) -> None:
    (folder / "cell.toml").write_bytes(b"\xef\xbb\xbf" + SOUND.replace("\n", "\r\n").encode())
    assert list(read_setup(folder / "cell.toml").parts) == ["arm", "camera"]


# --- Mistakes ---

TOP = [
    ("sed = 3", 'sed: there is no such key (did you mean "seed"?)'),
    ("wheels = 3", "wheels: there is no such key (the keys here are name, seed, until, "),
    ('latency = "1ms"', "latency: there is no such key here (it belongs to [link] or [[links]] or [estop])"),
    ('"\\n" = 1', '"\\n": there is no such key'),
    ("name = 5", 'name: 5 isn\'t text (write text in quotes: "...")'),
    ('name = ""', "name: '' can't name a federation"),
    ('name = "a\\u0000"', "name: 'a\\x00' contains a NUL character"),
    ("seed = 7.5", "seed: 7.5 isn't a seed"),
    ("seed = true", "seed: true isn't a seed"),
    ("seed = 9223372036854775808", "seed: 9223372036854775808 isn't a seed"),
    ("seed = 2024-01-01", "seed: 2024-01-01 isn't a seed"),
    ("until = 5", 'until: 5 isn\'t an end time (write a number with its unit in quotes, such as "5ms")'),
    ("until = 07:32:00", "until: 07:32:00 isn't an end time"),
    ('until = "5 parsecs"', "until: '5 parsecs' isn't an end time (write a number and a unit, such as \"5ms\""),
    ('until = "0s"', "until: '0s' isn't an end time (an end time is at least 1ns)"),
    ('until = "-5s"', "until: '-5s' isn't an end time (an end time can't be negative)"),
    ('control_latency = "0s"', "control_latency: '0s' isn't the control latency"),
    ("link = 5", "link: 5 isn't a table (write [link])"),
    ("link = [{}]", "link: a list isn't a table (write [link])"),
    ('links = { topic = "a" }', "links: a table isn't a list of tables (write [[links]])"),
    ("links = [5]", "links[1]: 5 isn't a table (write [[links]])"),
    ("buffers = []", "buffers: a list isn't a table"),
]
LINK = [
    ("latency = 5", 'latency: 5 isn\'t a latency (write a number with its unit in quotes, such as "5ms")'),
    ('latency = "5 parsecs"', "latency: '5 parsecs' isn't a latency (write a number and a unit"),
    ('latency = "0ms"', "latency: '0ms' isn't a latency (a latency is at least 1ns)"),
    ('latency = "-1ms"', "latency: '-1ms' isn't a latency (a latency can't be negative)"),
    ('latency = "uniform(4ms)"', "latency: 'uniform(4ms)' isn't a latency (write uniform(minimum, maximum))"),
    ('latency = "uniform(9ms, 4ms)"', "latency: a uniform latency from 9ms to 4ms is empty"),
    ('latency = "unifrom(4ms, 9ms)"', "latency: 'unifrom(4ms, 9ms)' isn't a latency (write a time"),
    ('latency = "exponential(1ms, 12000d)"', "latency: 'exponential(1ms, 12000d)': the latency can exceed"),
    ("loss = 1.5", "loss: 1.5 isn't a probability (use 0 to 1)"),
    ("loss = nan", "loss: nan isn't a probability"),
    ("loss_at_sender = -0.1", "loss_at_sender: -0.1 isn't a probability"),
    ("duplication = true", "duplication: true isn't a probability"),
    ('fifo = "yes"', "fifo: 'yes' isn't true or false"),
    ("bandwidth = 0", "bandwidth: 0 isn't a bandwidth"),
    ("bandwidth = 1e6", "bandwidth: 1000000.0 isn't a bandwidth (use whole bytes per second)"),
    ("bandwith = 4", 'bandwith: there is no such key (did you mean "bandwidth"?)'),
    ("seed = 3", "seed: there is no such key here (it belongs to the top of the file, above the first [table])"),
]
RULES = [
    ('latency = "1ms"', "links[1].topic: it is missing (write topic, sender or receiver)"),
    ('topic = "image"', "links[1].latency: it is missing"),
    ('topic = "image"\nlatncy = "1ms"', 'links[1].latncy: there is no such key (did you mean "latency"?)'),
    ('topic = " "\nlatency = "1ms"', "links[1].topic: ' ' can't name a topic"),
    (
        'sender = "camra"\nlatency = "1ms"',
        'links[1].sender: there is no participant "camra" (did you mean "camera"?)',
    ),
    (
        'receiver = "zoe"\nlatency = "1ms"',
        'links[1].receiver: there is no participant "zoe" (the roster is arm, camera)',
    ),
    (
        'topic = "a"\nsender = "arm"\nlatency = "1ms"\n[[links]]\nsender = "arm"\ntopic = "a"\nlatency = "2ms"',
        "links[2]: it names the same as links[1] (merge them into one)",
    ),
]
FAULTS = [
    ('start = "1s"', "faults[1].partition: it is missing (write partition or hold)"),
    ('hold = [["arm"], ["camera"]]', "faults[1].start: it is missing"),
    ('hold = "arm"\nstart = "1s"', "faults[1].hold: 'arm' isn't a list of two lists of names (write [["),
    ('hold = [["arm"]]\nstart = "1s"', "faults[1].hold: a fault is between two groups, not 1"),
    ('hold = ["arm", ["camera"]]\nstart = "1s"', "faults[1].hold[1]: 'arm' isn't a list of names"),
    ('hold = [["arm"], []]\nstart = "1s"', "faults[1].hold[2]: the list is empty"),
    ('hold = [["arm"], [5]]\nstart = "1s"', "faults[1].hold[2][1]: 5 isn't text"),
    ('hold = [["arm"], ["camera", "arm"]]\nstart = "1s"', 'faults[1].hold[2][2]: "arm" is on both sides'),
    ('hold = [["arm", "arm"], ["camera"]]\nstart = "1s"', 'faults[1].hold[1][2]: "arm" is listed twice'),
    (
        'partition = [["arm"], ["camrea"]]\nstart = "1s"',
        'faults[1].partition[2][1]: there is no participant "camrea" (did you mean "camera"?)',
    ),
    (
        'partition = [["arm"], ["camera"]]\nhold = [["arm"], ["camera"]]\nstart = "1s"',
        "faults[1].hold: there is partition too (use one of them)",
    ),
    (
        'partition = [["arm"], ["camera"]]\nstart = "2s"\nrepair = "1s"',
        "faults[1].repair: '1s' isn't after the start, '2s'",
    ),
    ('hold = [["arm"], ["camera"]]\nstart = "2s"\nrelease = "2s"', "faults[1].release: '2s' isn't after the start"),
    (
        'hold = [["arm"], ["camera"]]\nstart = "2s"\nrepair = "3s"',
        "faults[1].repair: a hold has no repair (write release)",
    ),
    ('hold = [["arm"], ["camera"]]\nstart = 2', "faults[1].start: 2 isn't a start (write a number with its unit"),
]
PARTICIPANTS = [
    ("guest = false", "participants[3].name: it is missing (write name or names)"),
    ('nme = "bob"', 'participants[3].nme: there is no such key (did you mean "name"?)'),
    ("name = 5", "participants[3].name: 5 isn't text"),
    ('name = " bob"', "participants[3] \" bob\".name: ' bob' can't name a participant"),
    ('name = "arm"', 'participants[3] "arm".name: two participants are named "arm" (every name is used once)'),
    ('names = ["bob", "arm"]', 'participants[3].names[2]: two participants are named "arm"'),
    ('names = ["bob", "bob"]', 'participants[3].names[2]: "bob" is listed twice'),
    ("names = []", "participants[3].names: the list is empty"),
    ('names = "bob"', "participants[3].names: 'bob' isn't a list of names"),
    ('name = "bob"\nnames = ["cid"]', 'participants[3] "bob".names: there is name too (use one of them)'),
]
BOB = [
    ('entry = "robot_cell:a"\ncommand = "./arm"', "command: there is entry too (use one of them)"),
    ('entry = "robot_cell"', "entry: 'robot_cell' isn't a Python entry point (write \"module:function\""),
    ('entry = "robot_cell:a:b"', "entry: 'robot_cell:a:b' isn't a Python entry point"),
    ('entry = "cells/robot_cell.py:a"', "entry: 'cells/robot_cell.py:a' isn't a Python entry point"),
    ('entry = "robot_cell.py:a"', 'entry: there is no module "robot_cell.py" in "FOLDER", nor is it installed (leave'),
    ('entry = "robot_sell:a"', 'entry: there is no module "robot_sell" in "FOLDER", nor is it installed'),
    ('entry = "package.inner:a"', 'entry: there is no module "package.inner" in "FOLDER"'),
    ('entry = "json.nothing:a"', 'entry: there is no module "json.nothing" in'),
    ('entry = "__main__:a"\ndirectory = "package"', 'entry: there is no module "__main__" in "FOLDER/package"'),
    ("entry = 5", "entry: 5 isn't text"),
    ('command = "no-such-command --fast"', 'command: there is no command "no-such-command" (install it, or write ./no'),
    ('command = "./leg"', 'command: there is no file "FOLDER/leg"'),
    ('command = "./package"', 'command: there is no file "FOLDER/package"'),
    ('command = ["./notes.txt"]', 'command: "FOLDER/notes.txt" can\'t be executed'),
    ('command = "./arm \'left"', "command: \"./arm 'left\" can't be split into words: No closing quotation"),
    ("command = []", "command: the command is empty"),
    ('command = " "', "command: the command is empty"),
    ('command = ["", "a"]', "command: the command is empty"),
    ('command = ["./arm", 5]', "command[2]: 5 isn't text"),
    ("command = 5", "command: 5 isn't text"),
    ('publishes = "image"', 'publishes: \'image\' isn\'t a list of topics (write ["image", "pose"])'),
    ('publishes = ["a", "a"]', 'publishes[2]: "a" is listed twice'),
    ('publishes = ["a", ""]', "publishes[2]: '' can't name a topic"),
    ('subscribes = "image"', "subscribes: 'image' isn't a list of topics"),
    (
        'subscribes = { target = "mailbx" }',
        "subscribes.target: 'mailbx' isn't a buffer (use discard, mailbox, newest(n)",
    ),
    ('subscribes = { target = "newest(0)" }', "subscribes.target: a buffer of 0 messages isn't possible"),
    ('subscribes = { "two words" = 3 }', 'subscribes."two words": 3 isn\'t text'),
    ('subscribes = { "" = "mailbox" }', "subscribes.\"\": '' can't name a topic"),
    ("period = 20", "period: 20 isn't a period (write a number with its unit in quotes"),
    ('period = "0s"', "period: '0s' isn't a period (a period is at least 1ns)"),
    ("clock = 5", "clock: 5 isn't a table (write clock = { offset"),
    ('clock = { drift = "-100%" }', "clock: a drift of -1000000ppm would stop or reverse the clock (drift and walk"),
    ('clock = { drift = "100%" }', "clock: a drift of 1000000ppm would run at twice the speed"),
    (
        'clock = { drift = "-60%", wander = "walk(1%, every=1s, within=40%)" }',
        "clock: a drift of -600000ppm, with a walk within 400000ppm, would stop or reverse the clock",
    ),
    ("clock = { drift = 40 }", "clock.drift: 40 isn't a drift (write a number with its unit in quotes, such as"),
    ('clock = { drift = "40ms" }', "clock.drift: '40ms' isn't a drift (write a number and a unit"),
    ('clock = { offset = "40ppm" }', "clock.offset: '40ppm' isn't an offset (write a number and a unit"),
    ("clock = { offset = 3 }", "clock.offset: 3 isn't an offset"),
    ('clock = { offset = "uniform(1ms)" }', "clock.offset: 'uniform(1ms)' isn't an offset (write uniform(minimum"),
    ('clock = { drift = "uniform(5ppm, -5ppm)" }', "clock: uniform(5ppm, -5ppm) isn't a drift (write the smaller"),
    ('clock = { drift = "uniform(0%, 100%)" }', "clock: a drift of uniform(0ppm, 1000000ppm) would run at twice"),
    ('clock = { wander = "20ppm" }', "clock.wander: '20ppm' isn't a wander (write \"walk("),
    ('clock = { dirft = "40ppm" }', 'clock.dirft: there is no such key (did you mean "drift"?)'),
    ('drift = "40ppm"', "drift: there is no such key here (it belongs to clock = {"),
    ('clock = { jumps = "2s" }', "clock.jumps: '2s' isn't a list of jumps (write [{ at"),
    ('clock = { jumps = [{ at = "2s" }] }', "clock.jumps[1].by: it is missing"),
    ('clock = { jumps = [{ at = "-2s", by = "1ms" }] }', "clock.jumps[1].at: '-2s' isn't the time of a jump"),
    ('clock = { jumps = [{ at = "0s", by = "1ms" }] }', "clock.jumps[1]: it can't jump at 0s (use at least 1ns"),
    (
        'clock = { jumps = [{ at = "2s", by = "1ms" }, { at = "1s", by = "1ms" }] }',
        "clock.jumps[2]: its jump at 1s doesn't come after the one at 2s (write jumps in the order of their times)",
    ),
    ('latency_least = "1"', "latency_least: '1' isn't the least latency"),
    ('controls = "yes"', "controls: 'yes' isn't true or false"),
    ("guest = 1", "guest: 1 isn't true or false"),
    ('directory = "nowhere"\ncommand = "./arm"', 'directory: there is no directory "FOLDER/nowhere"'),
    ('directory = "arm"', 'directory: there is no directory "FOLDER/arm"'),
    (f'directory = "{"d" * 300}"', 'directory: there is no directory "'),
    ("environment = 5", "environment: 5 isn't a table"),
    ("environment = { FOO = 1 }", "environment.FOO: 1 isn't text"),
    ('environment = { "A=B" = "1" }', "environment.\"A=B\": 'A=B' can't be the name of an environment variable"),
    ('subscibes = ["a"]', 'subscibes: there is no such key (did you mean "subscribes"?)'),
    ("loss = 0.1", "loss: there is no such key here (it belongs to [link] or [[links]])"),
]
WHOLE = [
    ("", "participants: it is missing"),
    ("participants = []", "participants: the roster is empty"),
    ("participants = 5", "participants: 5 isn't a list of tables (write [[participants]])"),
    ('[participants.camera]\nentry = "a:b"', "participants: a table isn't a list of tables (write [[participants]])"),
    ("participants = [5]", "participants[1]: 5 isn't a table"),
    ('[[participents]]\nname = "a"', 'participents: there is no such key (did you mean "participants"?)'),
    ('[[participants]]\nname = "a"\nguest = true', "participants: all participants are guests"),
    (f'{SOUND}[buffers]\ntarget = "mailbx"', "buffers.target: 'mailbx' isn't a buffer"),
    (
        f'{SOUND}[buffers]\ntarmget = "mailbox"',
        'buffers.tarmget: no participant in this file subscribes to "tarmget" (did you mean "target"?)',
    ),
]


def rule_with(text: str) -> str:
    """A rule that has all it needs, and this."""
    return f'topic = "image"\n{text}' if text.startswith("latency =") else f'topic = "image"\nlatency = "1ms"\n{text}'


TABLE = [
    *((f"{text}\n{SOUND}", mistake) for text, mistake in TOP),
    *((f"[link]\n{text}\n{SOUND}", f"link.{mistake}") for text, mistake in LINK),
    *((f"[[links]]\n{rule_with(text)}\n{SOUND}", f"links[1].{mistake}") for text, mistake in LINK),
    *((f"[[links]]\n{text}\n{SOUND}", mistake) for text, mistake in RULES),
    *((f"[[faults]]\n{text}\n{SOUND}", mistake) for text, mistake in FAULTS),
    *((f"{SOUND}[[participants]]\n{text}", mistake) for text, mistake in PARTICIPANTS),
    *((f'{SOUND}[[participants]]\nname = "bob"\n{text}', f'participants[3] "bob".{mistake}') for text, mistake in BOB),
    *WHOLE,
]


@pytest.mark.parametrize(("text", "mistake"), TABLE)
def test_a_mistake_is_reported_once_at_its_place(folder: Path, text: str, mistake: str) -> None:
    reported = mistakes_of(folder, text)
    assert len(reported) == 1, reported
    assert reported[0].startswith(mistake)


def test_a_clock_is_read_exactly(folder: Path) -> None:
    wander = "walk(1ppm, every=1s, within=20ppm)"
    jumps = '[{ at = "2s", by = "-5ms" }, { at = "3s", by = "1ns" }]'
    text = (
        '[[participants]]\nnames = ["a", "b"]\nperiod = "10ms"\n'
        f'clock = {{ offset = "-3ms", drift = "0.5ppm", wander = "{wander}", jumps = {jumps} }}'
    )
    setup = setup_of(folder, text)
    expected = clock(
        offset="-3ms", drift=500, wander=wander, jumps=[{"at": "2s", "by": "-5ms"}, {"at": "3s", "by": "1ns"}]
    )
    assert [part.clock for part in setup.parts.values()] == [expected, expected]
    assert setup_of(folder, '[[participants]]\nname = "a"\nclock = {}').parts["a"].clock == clock()


def test_a_clock_can_be_changed_on_the_command_line(folder: Path) -> None:
    (folder / "cell.toml").write_text('[[participants]]\nname = "a"\nclock = { drift = "40ppm" }')
    changes = ["participants.a.clock.drift=-2ppm", "participants.a.clock.offset=5ms"]
    assert read_setup(folder / "cell.toml", changes=changes).parts["a"].clock == clock(drift="-2ppm", offset="5ms")
    with pytest.raises(ConfigurationError, match=r'--set: participants\[1\] "a".clock.drift: \'2ms\' isn\'t a drift'):
        read_setup(folder / "cell.toml", changes=["participants.a.clock.drift=2ms"])
    with pytest.raises(ConfigurationError, match=r'line 3, with --set: participants\[1\] "a".clock: a drift of'):
        read_setup(folder / "cell.toml", changes=["participants.a.clock.drift=100%"])


@pytest.mark.parametrize(
    ("change", "mistake"),
    [
        ("participants.a.module=missing", 'participants[1] "a".module: there is script too (use one of them)'),
        ("participants.a.folder=missing", 'participants[1] "a".folder: there is no directory "FOLDER/missing"'),
    ],
)
def test_a_change_that_is_refused_makes_nothing_else_wrong(folder: Path, change: str, mistake: str) -> None:
    (folder / "box.py").touch()
    (folder / "disk").mkdir()
    machine = '[[participants]]\nname = "a"\nscript = "box.py"\nfolder = "disk"\nvolatile = true\n'
    (folder / "cell.toml").write_text(machine)
    with pytest.raises(ConfigurationError) as caught:
        read_setup(folder / "cell.toml", changes=[change])
    assert str(caught.value) == f"--set: {mistake.replace('FOLDER', str(folder))}"


def test_all_mistakes_of_a_file_are_reported_at_once(folder: Path) -> None:
    assert mistakes_of(
        folder,
        """
        sed = 7
        until = 5
        [link]
        latency = "5 parsecs"
        loss = 2
        [[links]]
        sender = "camra"
        latency = "0ms"
        [[faults]]
        partition = [["arm"], ["plan"]]
        start = "2s"
        repair = "1s"
        [[participants]]
        name = "camera"
        entry = "nothing:camera"
        [[participants]]
        name = "arm"
        command = "./leg"
        subscribes = { target = "mailbx" }
        [[participants]]
        name = "arm"
        """,
        "participants.arm.period=soon",
        "links[7].loss=0",
    ) == [
        "--set: links[7].loss: there is no [7] (places in a list are counted from 1)",
        'sed: there is no such key (did you mean "seed"?)',
        'until: 5 isn\'t an end time (write a number with its unit in quotes, such as "5ms")',
        'link.latency: \'5 parsecs\' isn\'t a latency (write a number and a unit, such as "5ms", "1.5s" or "2h")',
        "link.loss: 2 isn't a probability (use 0 to 1)",
        "links[1].latency: '0ms' isn't a latency (a latency is at least 1ns)",
        (
            "participants[2] \"arm\".subscribes.target: 'mailbx' isn't a buffer "
            "(use discard, mailbox, newest(n), oldest(n) or unbounded)"
        ),
        (
            "--set: participants[2] \"arm\".period: 'soon' isn't a period "
            '(write a number and a unit, such as "5ms", "1.5s" or "2h")'
        ),
        "faults[1].repair: '1s' isn't after the start, '2s'",
        'links[1].sender: there is no participant "camra" (did you mean "camera"?)',
        'faults[1].partition[2][1]: there is no participant "plan" (the roster is arm, camera)',
        (
            'participants[1] "camera".entry: there is no module "nothing" in "FOLDER", nor is it installed '
            "(directory says where it is)"
        ),
        'participants[2] "arm".command: there is no file "FOLDER/leg"',
        'participants[3] "arm".name: two participants are named "arm" (every name is used once)',
    ]


# What can't be known isn't complained about: the first mistake would make others look wrong that aren't.
@pytest.mark.parametrize(
    "text",
    [
        'participants = 5\n[[links]]\nsender = "bob"\nlatency = "1ms"',
        '[[links]]\nsender = "bob"\nlatency = "1ms"\n[[participants]]\nnme = "bob"',
        '[[links]]\nsender = "bob"\nlatency = "1ms"\n[[participants]]\nname = ["bob"]',
        (
            '[[links]]\nsender = "a"\ntopc = "x"\nlatency = "1ms"\n'
            '[[links]]\nsender = "a"\nlatency = "2ms"\n[[participants]]\nname = "a"'
        ),
        '[buffers]\ntarget = "mailbox"\n[[participants]]\nname = "a"\nsubscribes = "target"',
        '[buffers]\ntarget = "mailbox"\n[[participants]]\nname = "a"\nsubscribe = ["target"]',
        '[[participants]]\nname = "a"\ndirectory = "nowhere"\ncommand = "./arm"\n',
    ],
)
def test_a_mistake_has_no_consequences(folder: Path, text: str) -> None:
    assert len(mistakes_of(folder, text)) == 1


def test_a_mistake_that_only_the_model_finds_is_reported_too(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise ConfigurationError("no such plan")

    monkeypatch.setattr("worldline.launch.file.setup.plan", refuse)
    assert mistakes_of(folder, SOUND) == ["no such plan"]


def test_the_error_survives_the_way_to_another_process(folder: Path) -> None:
    (folder / "cell.toml").write_text("sed = 3\nuntil = 4")
    with pytest.raises(ConfigurationError) as refusal:
        read_setup(folder / "cell.toml")
    again = pickle.loads(pickle.dumps(refusal.value))
    assert str(again) == str(refusal.value)
    assert len(again.facts["mistakes"]) == 3


# --- Files that can't be read at all ---


def test_an_end_is_called_until_as_everywhere(folder: Path) -> None:
    assert mistakes_of(folder, 'end = "2s"\n' + SOUND) == ["end: there is no such key (write until)"]


LINES = """\
link = { loss = 2 }

[[links]]
latency = "1ms"
[[links]]
sender = 5
latency = "1ms"

[[participants]]
name = "a"
subscribes.target = "mailbx"
command = [
    "./arm",
    5,
]
[participants.environment]
HOME = 5
[[participants]]
guest = 1
[limits]
topics = 0
"""


def test_a_mistake_has_the_line_of_its_key_or_of_what_is_around_it(folder: Path) -> None:
    (folder / "cell.toml").write_text(LINES)
    with pytest.raises(ConfigurationError) as refusal:
        read_setup(folder / "cell.toml")
    assert re.findall(r"line ([0-9]+): (.*?): ", str(refusal.value)) == [
        ("1", "link.loss"),
        ("3", "links[1].topic"),
        ("6", "links[2].sender"),
        ("11", 'participants[1] "a".subscribes.target'),
        ("12", 'participants[1] "a".command[2]'),
        ("17", 'participants[1] "a".environment.HOME'),
        ("19", "participants[2].guest"),
        ("18", "participants[2].name"),
        ("21", "limits.topics"),
    ]


@pytest.mark.parametrize(
    ("content", "mistake"),
    [
        (
            "seed = 7\nuntil = 5ms\n",
            (
                "line 2: until = 5ms: expected newline or end of document after a statement "
                '(text and times are written in quotes, as in "5ms")'
            ),
        ),
        ("seed = 7\n[link\n", "line 2: [link: expected ']' at the end of a table declaration"),
        ("seed = 7\nseed = 8", "line 2: seed = 8: cannot overwrite a value"),
        (
            "[participants]\n[participants]",
            "line 2: [participants]: cannot declare participants twice (write [[participants]]: there can be several)",
        ),
        (
            "[participants]\n[[participants]]",
            "line 2: [[participants]]: cannot overwrite a value (write it like this everywhere, with two brackets)",
        ),
        ("seed = ", "line 1: seed =: invalid value"),
        (b"seed = 7\nname = '\xff'", "line 2: it isn't UTF-8 text (save it as UTF-8)"),
        (f"seed = {'9' * 5000}", "it contains a number with too many digits"),
        (f"seed = {'[' * 50_000}", "its lists or tables are nested too deeply"),
        ("#" * (FILE_SIZE_MAX + 1), "it is larger than 1 MiB, too large for a federation's file"),
    ],
    ids=["unquoted", "bracket", "twice", "two tables", "mixed", "cut short", "latin-1", "digits", "deep", "huge"],
)
def test_a_file_that_is_no_toml_is_one_mistake(folder: Path, content: str | bytes, mistake: str) -> None:
    assert mistakes_of(folder, content, "nothing") == [mistake]


@pytest.mark.parametrize(
    ("name", "mistake"),
    [
        ("missing.toml", "there is no such file"),
        ("package", "it is a directory (name a file in it)"),
        ("arm/cell.toml", "it can't be read: Not a directory"),
        ("a\0b", "it can't be read: embedded null byte"),
    ],
)
def test_a_file_that_cannot_be_opened_is_one_mistake(folder: Path, name: str, mistake: str) -> None:
    with pytest.raises(ConfigurationError) as refusal:
        read_setup(folder / name)
    said = f"{folder / name}: {mistake}"
    assert str(refusal.value) == said.replace("\0", r"\x00")
    assert refusal.value.facts["mistakes"] == [said]


def test_a_file_whose_name_can_be_no_name_needs_one_inside(tmp_path: Path) -> None:
    file = tmp_path / " .toml"
    file.write_text('[[participants]]\nname = "a"')
    with pytest.raises(
        ConfigurationError, match=r"\.toml: name: ' ' can't name a federation .*the file's name is used"
    ):
        read_setup(file)
    assert read_setup(file, changes=["name=cell"]).name == "cell"


# --- Changes from the command line ---

FULL = f"""
[link]
latency = "1ms"
[[links]]
topic = "image"
latency = "1ms"
{SOUND}
[[participants]]
names = ["ann", "bob"]
"""


def test_changes_are_put_into_the_file_before_it_is_read(folder: Path) -> None:
    setup = setup_of(
        folder,
        FULL,
        "name=other",
        "seed=3",
        "until = 2s",
        "link.latency=uniform(5ms, 6ms)",
        "links[1].loss=0.5",
        "participants.camera.period=10ms",
        "participants.camera.environment.FOO=2",
        'participants."camera".environment.BAR="3"',
        "participants.camera.environment.EQUATION=a=b",
        'participants.arm.publishes=["pose"]',
        "participants.arm.command=sh -c true",
        "participants[3].controls=true",
        "buffers.target=mailbox",
        "seed=4",
    )
    assert (setup.name, setup.plan.seed, setup.plan.end) == ("other", 4, 2 * SECOND)
    assert setup.plan.network.default.latency == Uniform(5 * MS, 6 * MS)
    assert setup.plan.network.rules[0].link.loss_at_receiver == 0.5
    assert setup.parts["camera"].period == 10 * MS
    assert setup.parts["camera"].environment == {"FOO": "2", "BAR": "3", "EQUATION": "a=b"}
    assert setup.parts["camera"].subscribes == {"target": MAILBOX}
    assert setup.parts["arm"].publishes == ("pose",)
    assert setup.parts["arm"].command == ("sh", "-c", "true")
    assert setup.parts["ann"].controls
    assert setup.parts["bob"].controls


@pytest.mark.parametrize(
    ("text", "value"),
    [("2", "2"), ("1.50", "1.50"), ("true", "true"), ("2024-01-01", "2024-01-01"), ("", ""), ("'a", "'a")],
)
def test_where_a_text_is_wanted_a_change_is_one_as_it_was_written(folder: Path, text: str, value: str) -> None:
    setup = setup_of(folder, SOUND, f"participants.arm.environment.FOO={text}")
    assert setup.parts["arm"].environment == {"FOO": value}


def test_a_later_change_of_a_whole_table_wins_over_an_earlier_one_inside_it(folder: Path) -> None:
    changes = ("participants.arm.environment.FOO=1", 'participants.arm.environment={FOO = "2"}')
    assert setup_of(folder, SOUND, *changes).parts["arm"].environment == {"FOO": "2"}


@pytest.mark.parametrize(
    ("change", "mistake"),
    [
        ("seed", "seed: 'seed' isn't a change (write key=value, as in link.latency=5ms)"),
        ("", "\"\": '' isn't a change"),
        ("=5", "\"\": '=5' isn't a change"),
        ("link..latency=5ms", "link..latency: 'link..latency=5ms' isn't a change"),
        ("sed=3", 'sed: there is no such key (did you mean "seed"?)'),
        ("lnk.latency=5ms", 'lnk: there is no such key (did you mean "link"?)'),
        ("link.latency=5", "link.latency: '5' isn't a latency (write a number and a unit"),
        ("link.latency=", "link.latency: '' isn't a latency"),
        ("link=5ms", "link: '5ms' isn't a table"),
        ("link.loss=often", "link.loss: 'often' isn't a probability"),
        ("link.latency.mean=5ms", "link.latency.mean: '1ms' isn't a table, so \"mean\" in it can't be set"),
        (
            "links.image.loss=1",
            "links.image.loss: nothing is named \"image\" there (write one of [1] (topic = 'image'))",
        ),
        ("faults.image.loss=1", "faults: the file has none, so nothing of them can be set (write "),
        ("links[2].loss=1", "links[2].loss: there is no [2] (places in a list are counted from 1)"),
        ("links[0].loss=1", "links[0].loss: there is no [0]"),
        ("link[1].loss=1", "link[1].loss: there is no [1]"),
        (
            "participants.camra.period=1ms",
            'participants.camra.period: nothing is named "camra" there (did you mean "camera"?)',
        ),
        (
            "participants.camera.perod=1ms",
            'participants[1] "camera".perod: there is no such key (did you mean "period"?)',
        ),
        ("participants.camera=5", "participants[1]: 5 isn't a table"),
        ("participants.bob.period=1ms", 'participants.bob.period: "bob" shares a table with others'),
        ("participants.camera.guest=True", "participants[1] \"camera\".guest: 'True' isn't true or false"),
        ("seed=3\nuntil = 4", "seed: '3\\nuntil = 4' isn't a seed"),
        ("name=\udcff", "name: '\\udcff' can't name a federation"),
    ],
)
def test_a_key_that_cannot_be_set_is_a_mistake_like_any_other(folder: Path, change: str, mistake: str) -> None:
    (reported,) = mistakes_of(folder, FULL, change)
    assert reported.startswith(f"--set: {mistake}")


# --- Anything at all ---


def toml(value: Any) -> str:
    """Write a value as TOML on one line."""
    if isinstance(value, dict):
        return f"{{{', '.join(f'{toml(str(key))} = {toml(each)}' for key, each in value.items())}}}"
    if isinstance(value, list):
        return f"[{', '.join(toml(each) for each in value)}]"
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return str(value).lower()


KEYS = sorted({key for table in TABLES for key in table.keys})
NAMES = st.sampled_from(["a", "b", "camera", "", " ", "é"])
SCALARS = st.one_of(
    st.sampled_from(
        ["5ms", "1s", "0", "5", "uniform(1ms, 2ms)", "mailbox", "newest(2)", "json:loads", "./a", "sh -c x", "."]
    ),
    NAMES,
    st.booleans(),
    st.integers(-2, 3) | st.integers(),
    st.floats(),
    st.dates() | st.times(),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=5),
)
ANYTHING = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(KEYS) | st.text(st.characters(exclude_categories=["Cs"]), max_size=3), inner, max_size=4
        )
    ),
    max_leaves=8,
)


PEOPLE = ["a", "b", "camera"]
TIMES = st.sampled_from(["1ns", "5ms", "7ms", "2s"])
TOPICS = st.lists(st.sampled_from(["x", "y", "z"]), max_size=3, unique=True)
BUFFERS = st.dictionaries(st.sampled_from(["x", "y"]), st.sampled_from(["mailbox", "discard", "oldest(3)"]))
SIDES = st.permutations(PEOPLE).map(lambda names: [names[:1], names[1:]])
LATENCIES = st.sampled_from(
    ["1ms", "uniform(1ms, 2ms)", "table(1ms, 1ns)", "normal(1ms, 4000d, 1ns)", "exponential(1ns, 0)"]
)


def federations(noise: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """Federations that are nearly right; any value in them may be noise instead."""

    def table(needed: dict[str, Any], **optional: Any) -> st.SearchStrategy[dict[str, Any]]:
        noisy = ({key: value | noise for key, value in keys.items()} for keys in (needed, optional))
        return st.fixed_dictionaries(next(noisy), optional=next(noisy))

    link = {"loss": st.floats(0, 1), "duplication": st.floats(0, 1), "bandwidth": st.integers(1), "fifo": st.booleans()}
    whom = {"sender": st.sampled_from(PEOPLE), "receiver": st.sampled_from(PEOPLE)}
    rule = table({"latency": LATENCIES, "topic": st.sampled_from(["x", "y"])}, **whom, **link)
    fault = table({"hold": SIDES, "start": TIMES}, release=TIMES) | table(
        {"partition": SIDES, "start": TIMES}, repair=TIMES
    )

    def participant(name: str) -> st.SearchStrategy[dict[str, Any]]:
        return table(
            {"name": st.just(name), "subscribes": TOPICS | BUFFERS},
            publishes=TOPICS,
            period=TIMES,
            command=st.sampled_from(["sh", "sh -c x"]),
            guest=st.booleans(),
        )

    return table(
        {"participants": st.tuples(*map(participant, PEOPLE)).map(list)},
        name=st.sampled_from(PEOPLE),
        seed=st.integers(-(2**63), 2**63 - 1),
        until=TIMES,
        control_latency=TIMES,
        link=table({}, latency=LATENCIES, **link),
        links=st.lists(rule, max_size=2),
        faults=st.lists(fault, max_size=2),
        buffers=BUFFERS,
        limits=table({}, memory=st.just("1MB"), frame=st.just("1MiB"), silence=TIMES, topics=st.integers(1, 9)),
    )


CHANGES = st.lists(
    st.builds(
        "{}{}={}".format,
        st.sampled_from([*KEYS, "participants.a", "participants[1]", "links[1]", "faults[1]", "x", "", "."]),
        st.sampled_from(["", *(f".{key}" for key in KEYS), "[1]", "."]),
        st.text(max_size=5) | SCALARS.map(toml),
    ),
    max_size=2,
)


def read_or_refuse(folder: Path, content: bytes, changes: list[str]) -> None:
    file = folder / "any.toml"
    file.write_bytes(content)
    lines: list[str] = []
    try:
        setup = read_setup(file, changes=changes)
    except ConfigurationError as error:
        lines = str(error).split("\n")
    else:
        check_plan(setup.plan)
        assert list(setup.parts) == sorted((*setup.plan.roster, *setup.plan.guests))
    assert all(line.startswith((f"{file}: ", "--set: ")) for line in lines)
    assert len(set(lines)) == len(lines)


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("any")


def written(content: dict[str, Any]) -> bytes:
    return "\n".join(f"{toml(str(key))} = {toml(value)}" for key, value in content.items()).encode()


@given(content=federations(ANYTHING) | st.dictionaries(st.sampled_from(KEYS), ANYTHING), changes=CHANGES)
def test_anything_shaped_like_a_federation_is_read_or_refused(
    scratch: Path, content: dict[str, Any], changes: list[str]
) -> None:
    read_or_refuse(scratch, written(content), changes)


@given(content=federations(st.nothing()))
def test_the_checks_leave_nothing_for_the_model_to_find(scratch: Path, content: dict[str, Any]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        # The model's own refusal isn't caught then, and comes out here without the file's name.
        patch.setattr("worldline.launch.file.setup.ConfigurationError", ZeroDivisionError)
        read_or_refuse(scratch, written(content), [])


@given(content=st.binary(max_size=40) | st.text("[]{}=\"'\n.#, aé15:-").map(str.encode))
def test_any_bytes_are_read_or_refused(scratch: Path, content: bytes) -> None:
    read_or_refuse(scratch, content, [])


def test_of_many_topics_that_nobody_publishes_on_some_are_named(folder: Path) -> None:
    topics = [f"robot/{number}/pos" for number in range(3000)]
    warnings = setup_of(folder, DECLARED, f"participants.plant.subscribes={topics}").warnings
    assert len(warnings) == 9
    assert warnings[-1] == f"{folder / 'cell.toml'}: nor on 2,993 more topics that are subscribed to, or linked"
