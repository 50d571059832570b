"""Faults of a federation on the command line, in its file, and on the page about them."""

from __future__ import annotations

import csv
import json
import re
import textwrap
from pathlib import Path

import pytest

from tests.cli.conftest import Command
from worldline import MS
from worldline.recording import Recording

PAGE = (Path(__file__).parents[2] / "docs" / "faults.md").read_text()

PROGRAMS = """
def camera(me):
    while True:
        me.publish("image", b"picture")
        me.advance(by="10ms")

def planner(me):
    for image in me.messages():
        me.publish("target", b"%d" % me.incarnation)
"""

CELL = """
until = "100ms"
{more}
[[participants]]
name = "camera"
entry = "cell:camera"
publishes = ["image"]
[[participants]]
name = "planner"
entry = "cell:planner"
publishes = ["target"]
subscribes = ["image"]
[[participants]]
name = "logger"
command = "true"
publishes = []
"""


def cell(more: str = "", *, logger: bool = False) -> None:
    Path("cell.py").write_text(PROGRAMS)
    text = CELL.format(more=more)
    Path("cell.toml").write_text(text if logger else text.rpartition("[[participants]]")[0])


IN_PROCESS = ("run", "cell.toml", "--executor", "in-process")


def digest(output: str) -> str:
    return re.findall(r"digest (\w+)", output)[0]


def test_the_page_shows_what_happens(worldline: Command) -> None:
    for name in ("cell.toml", "cell.py"):
        found = re.search(rf"```\w+\n# {re.escape(name)}\n(.*?)```", PAGE, re.DOTALL)
        assert found is not None
        Path(name).write_text(found[1])
    command, shown = re.findall(r"```console\n\$ worldline (.*?)\n(.*?)```", PAGE, re.DOTALL)[0]
    code, output, errors = worldline(*command.split())
    assert (code, errors) == (0, "")
    assert output.startswith(shown)


def test_the_programs_of_the_page_do_as_it_says(capsys: pytest.CaptureFixture[str]) -> None:
    *_, federation, stop = re.findall(r"```python\n(from worldline.*?)```", PAGE, re.DOTALL)
    shown = re.findall(r"```\n(30ms.*?)```", PAGE, re.DOTALL)[0]
    exec(federation, {})
    exec(stop, {})
    assert capsys.readouterr().out == shown


def test_a_fault_of_the_command_line_is_recorded_and_replayed(worldline: Command) -> None:
    cell()
    _, quiet, _ = worldline(*IN_PROCESS, "--no-record")
    fault = ("--fault", "planner sends target 2: crash planner 20ms")
    code, output, errors = worldline(*IN_PROCESS, *fault, "--record", "run.mcap")
    assert code == 0, errors
    assert digest(output) != digest(quiet)
    cell(f"faults = ['{fault[1]}']")
    assert digest(worldline(*IN_PROCESS, "--no-record")[1]) == digest(output)
    cell()
    code, compared, errors = worldline("replay", "run.mcap", "--until-differs")
    assert (code, errors) == (0, "")
    assert "planner: the same up to its end" in compared


@pytest.mark.parametrize("kinds", ["crash=1,hang=2,slow=1,dropout=1", "crash-after=1,hang-after=2,slow-after=1"])
def test_drawn_faults_depend_on_the_seed_alone(worldline: Command, kinds: str) -> None:
    cell()
    drawn = ("--faults", kinds, "--no-record")
    digests = [digest(worldline(*IN_PROCESS, *drawn, "--seed", seed)[1]) for seed in "112"]
    assert digests[0] == digests[1] != digests[2]


def test_a_run_says_which_faults_it_drew_even_if_it_fails(worldline: Command) -> None:
    cell()
    code, output, errors = worldline(*IN_PROCESS, "--faults", "crash=1,hang=2", "--record", "run.mcap", "--quiet")
    assert code == 0, errors
    drawn = re.findall(r"^drawn: (.*)$", output, re.MULTILINE)
    assert sorted(each.split()[1] for each in drawn) == ["crash", "hang", "hang"]
    assert all(each in worldline("info", "run.mcap")[1] for each in drawn)
    Path("failing.py").write_text(PROGRAMS.replace("me.advance", "1 // 0 and me.advance"))
    Path("cell.toml").write_text(Path("cell.toml").read_text().replace("cell:", "failing:"))
    code, output, _ = worldline(*IN_PROCESS, "--faults", "crash=1,hang=2", "--no-record")
    assert code == 1
    assert re.findall(r"^drawn: (.*)$", output, re.MULTILINE) == drawn


def test_a_remark_says_how_many_faults_could_not_be_drawn(worldline: Command) -> None:
    cell()
    code, output, errors = worldline(*IN_PROCESS, "--faults", "crash=100,hang=1", "--no-record")
    assert code == 0, errors
    many = re.findall(r"^crash=100: only (\d+) of 100 could be drawn, since there is no room", output, re.MULTILINE)
    assert len(many) == 1
    assert f"drawn: {int(many[0]) + 1 - 12} more\n" in output
    assert "hang=1:" not in output
    text = Path("cell.toml").read_text()
    Path("cell.toml").write_text(re.sub("(publishes|subscribes).*", "", text))
    code, output, errors = worldline("search", "cell.toml", "--faults", "crash-after=2", "--seeds", "3")
    assert code == 0, errors
    assert output.count("seed 0: crash-after=2: none of 2 could be drawn, since events are those of topics") == 1


def test_other_schedules_make_no_difference(worldline: Command) -> None:
    cell("faults = ['30ms crash planner 20ms', '60ms hang camera 15ms']\n[estop]\nlatency = '3ms'")
    code, output, errors = worldline("check", "cell.toml", "--schedules", "30")
    assert code == 0, output + errors


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ("faults = ['1ms crash palnner']", "line 3: faults[1]: 1ms crash palnner: there is no participant 'palnner'"),
        ("faults = ['100ms crash planner']", "100ms crash planner: the run ends at 100ms"),
        ("faults = ['1ms explode planner']", "'1ms explode planner' isn't a fault"),
        ("faults = ['1ms recover planner']", "1ms recover planner: there is no crash before that it could end"),
        ("faults = ['1ms crash planner', '2ms crash planner 1ms']", "it is down then already"),
        ("faults = ['1ms slow planner 0s']", "it takes no time"),
        ("faults = ['1ms crash logger']", "only a Python entry can crash"),
        ("faults = ['1ms dropout camera imag 5ms']", "camera doesn't publish 'imag' (did you mean 'image'?)"),
        ("faults = ['1ms dropout logger 5ms']", "logger doesn't publish anything (its `publishes` is empty)"),
        ("faults = ['camera sends image: crash planner']", "only what planner itself sends or receives"),
        ("faults = 'x'", "'x' isn't a list of faults"),
        ("[estop]\nlatency = '0s'", "the latency of an emergency stop is at least 1ns"),
        ("[link]\ncorruption = 2", "2 isn't a probability"),
    ],
)
def test_what_cant_be_is_refused_before_the_run(worldline: Command, more: str, said: str) -> None:
    cell(more, logger=True)
    code, output, errors = worldline("run", "cell.toml", "--no-record")
    assert (code, output) == (2, "")
    assert said in " ".join(textwrap.dedent(errors).split())


@pytest.mark.parametrize(
    ("option", "said"),
    [
        (("--fault", "1ms crash nobody"), "there is no participant"),
        (("--fault", "whenever crash planner"), "isn't a fault"),
        (("--faults", "meteor=1"), "can't be drawn"),
    ],
)
def test_so_is_what_the_command_line_says(worldline: Command, option: tuple[str, ...], said: str) -> None:
    cell()
    code, _, errors = worldline(*IN_PROCESS, "--no-record", *option)
    assert code == 2
    assert said in errors


def test_durable_topics_are_subscribed_to(worldline: Command) -> None:
    cell()
    text = Path("cell.toml").read_text()
    Path("cell.toml").write_text(text + 'durable = ["target"]\nboot = "uniform(0ms, 5ms)"\n')
    code, _, errors = worldline(*IN_PROCESS, "--no-record")
    assert code == 2
    assert 'it doesn\'t subscribe to "target"' in errors


def test_a_fault_that_waits_for_what_nobody_sends_is_refused(worldline: Command) -> None:
    cell('faults = ["planner sends targets: crash planner"]')
    code, _, errors = worldline("run", "cell.toml", "--no-record")
    assert code == 2
    assert "planner doesn't publish 'targets' (did you mean 'target'?)" in errors


BAD_DAY = """
until = "200ms"
faults = ["40ms crash planner 30ms", "90ms hang camera 25ms", "planner sends target 6: slow planner 3ms 20ms"]
[estop]
latency = "3ms"
[link]
latency = "uniform(1ms, 4ms)"
corruption = 0.3
[[participants]]
name = "camera"
entry = "cell:camera"
period = "10ms"
boot = "uniform(0ms, 9ms)"
clock = { offset = "uniform(-5ms, 5ms)", drift = "uniform(-3%, 3%)", wander = "walk(1%, every=7ms, within=9%)" }
[[participants]]
name = "planner"
entry = "cell:planner"
subscribes = ["image"]
"""
TABLE = """
"boot/camera/0" = "4ms"
"corruption" = "antithetic"
"clock-walk" = { seed = 9 }
"clock-drift/camera/0" = "-2%"
"clock-offset" = "antithetic"
"latency/image" = { seed = 4 }
"""
PLANNED = """
from worldline import MS

def camera(me):
    while True:
        me.advance(to=(me.clock.now // (10 * MS) + 1) * 10 * MS, clock="local")
        me.publish("image", b"picture %d" % me.clock.now)

def planner(me):
    for image in me.messages():
        me.publish("target", image.payload)
        if me.now > 150 * MS:
            me.estop("enough")
"""


def test_a_bad_day_with_clocks_and_replaced_draws_is_the_same_in_processes(worldline: Command) -> None:
    for name, text in {"cell.toml": BAD_DAY, "cell.py": PLANNED, "table.toml": TABLE}.items():
        Path(name).write_text(text)
    run = ["run", "cell.toml", "--quiet", "--no-record"]
    executors = ("in-process", "processes", "workers(2)")
    found = [worldline(*run, "--draws", "table.toml", "--executor", executor) for executor in executors]
    assert [code for code, _, _ in found] == [0, 0, 0], found
    assert len({digest(out) for _, out, _ in found}) == 1, found
    assert digest(worldline(*run, "--executor", "in-process")[1]) != digest(found[0][1])


def test_info_lists_what_is_out_of_the_ordinary(worldline: Command) -> None:
    more = 'faults = ["20ms crash planner 30ms", "planner sends target 2: hang planner 5ms"]\nestop.latency = "7ms"\n'
    cell(more)
    text = Path("cell.toml").read_text().replace('name = "planner"', 'name = "planner"\nboot = "uniform(1ms, 3ms)"')
    Path("cell.toml").write_text(text)
    Path("draws.toml").write_text('"boot/planner" = "2ms"\n')
    assert (
        worldline("run", "cell.toml", "--executor", "in-process", "--draws", "draws.toml", "--record", "a.mcap")[0] == 0
    )
    for file in ("cell.toml", "a.mcap"):
        code, out, _ = worldline("info", file)
        assert code == 0
        lines = [" ".join(line.split()) for line in out.splitlines()]
        assert "estop all participants are told within 7ms" in lines
        place = lines.index("faults 20ms crash planner 30ms")
        assert lines[place + 1] == "planner sends target 2: hang planner 5ms"
        assert ('draws boot/planner = "2ms"' in lines) is (file == "a.mcap")
        assert ("planner cell:planner target image uniform(1ms, 3ms)" in lines) is (file == "cell.toml")


def test_info_shows_outages_and_draws_as_their_files_do(worldline: Command) -> None:
    cell(
        'faults = [{ partition = [["camera"], ["planner", "logger"]], start = "5ms", repair = "9ms" },'
        ' { hold = [["camera"], ["logger"]], start = "20ms" }]\nlink = { latency = "uniform(1ms, 2ms)", loss = 0.1 }',
        logger=True,
    )
    rows = (
        '"loss/image/camera" = false',
        '"latency" = "antithetic"',
        '"latency/image" = { seed = 9, antithetic = true }',
    )
    Path("draws.toml").write_text("\n".join(rows))
    text = Path("cell.toml").read_text().replace('command = "true"', 'entry = "cell:planner"')
    Path("cell.toml").write_text(text)
    code, _, errors = worldline(*IN_PROCESS, "--draws", "draws.toml", "--record", "a.mcap")
    assert code == 0, errors
    lines = [" ".join(line.split()) for line in worldline("info", "a.mcap")[1].splitlines()]
    assert "network 0 rules, 2 outages" in lines
    place = lines.index("outages partition between camera and logger, planner, from 5ms to 9ms")
    assert lines[place + 1] == "hold between camera and logger, from 20ms on"
    assert f"draws {rows[0]}".replace('"', "") in lines
    assert 'latency = "antithetic"' in lines
    assert "latency/image = { seed = 9, antithetic = true }" in lines


@pytest.mark.long
def test_diff_names_the_fault_that_one_run_has(worldline: Command) -> None:
    cell()
    fault = "20ms crash planner 30ms"
    code, out, _ = worldline("diff", "cell.toml", "--executor", "in-process", "--fault-b", fault)
    assert code == 1
    assert f"  only B has the fault {fault}\n" in out
    both = ("--fault", fault, "--fault-a", "95ms dropout planner", "--fault-b", "95ms dropout planner 1s")
    code, out, _ = worldline("diff", "cell.toml", "cell.toml", "--executor", "in-process", *both)
    assert '95ms dropout planner" → "95ms dropout planner 1s' in out
    assert fault not in out
    added = ("--fault", "80ms hang planner 1ms", "--fault", "90ms hang planner 1ms", "--fault-b", fault)
    code, out, _ = worldline("diff", "cell.toml", "--executor", "in-process", *added)
    assert out.partition("headers differ:\n")[2].startswith(f'  faults[0]: (missing) → "{fault}"\nfirst differences')


def test_what_is_lost_while_its_receiver_is_down_is_lost_wherever_it_is_shown(worldline: Command) -> None:
    cell('faults = ["20ms crash planner 30ms"]')
    text = Path("cell.toml").read_text()
    Path("cell.toml").write_text(text.replace('subscribes = ["image"]', 'subscribes = ["image"]\nboot = "4ms"'))
    code, output, errors = worldline(*IN_PROCESS, "--record", "run.mcap")
    assert (code, "4 messages lost" in output) == (0, True), errors
    lost, received = [1, 21, 31, 41], [11, 51, 61, 71, 81, 91]
    assert "4 messages lost" in worldline("info", "run.mcap")[1]

    recording = Recording(Path("run.mcap"))
    assert [each.at // MS for each in recording.arrivals(topics=["image"])] == received
    assert [each.at // MS for each in recording.losses()] == lost

    shown = worldline("replay", "run.mcap", "--topic", "image")[1].splitlines()
    assert [line.split()[0] for line in shown if " lost" in line] == [f"{at}ms" for at in lost]
    assert [line.split()[0] for line in shown if "planner  image" in line] == [f"{at}ms" for at in received]

    worldline("export", "run.mcap", "all.csv", "--topic", "image")
    table = csv.DictReader(Path("all.csv").read_text().splitlines())
    rows = [(bool(row["lost"]), int(row["arrival"]) // MS) for row in table if row["receiver"]]
    assert rows == sorted([(True, at) for at in lost] + [(False, at) for at in received], key=lambda row: row[1])

    worldline("export", "run.mcap", "trace.json")
    events = json.loads(Path("trace.json").read_text())["traceEvents"]
    for category, times in (("lost", lost), ("receive", received)):
        found = [
            round(each["ts"]) // 1000 for each in events if each.get("cat") == category and "image" in each["name"]
        ]
        assert found == times

    assert worldline("replay", "run.mcap", "--only", "planner")[0] == 0
    assert worldline("diff", "run.mcap", "cell.toml", "--executor", "in-process")[0] == 0
