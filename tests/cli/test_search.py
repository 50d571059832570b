"""`worldline search`: the first failing seed, what it takes, and how to have it again."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from queue import SimpleQueue

import pytest

from tests.cli.conftest import Command
from worldline.cli import console
from worldline.targets import RunOptions
from worldline.targets.trials import TrialRequest, made_trial

FILE = """\
until = "2s"
[link]
latency = "uniform(1ms, 9ms)"
loss = 0.02
[[participants]]
name = "asker"
entry = "talk:ask"
publishes = ["question"]
subscribes = ["answer"]
[[participants]]
name = "answerer"
entry = "talk:answer"
publishes = ["answer"]
subscribes = ["question"]
"""
PROGRAM = """\
import sys
from worldline import payload
from worldline.search import always, at_end, eventually

def ask(me):
    for number in range(50):
        me.publish("question", payload.to_json(number))
        for message in me.advance(by="20ms"):
            me.log(f"heard {payload.from_json(message.payload)}")

def answer(me):
    print("noise")
    print("more of it", file=sys.stderr)
    for message in me.messages():
        me.publish("answer", message.payload)

def gruff(me):
    for message in me.messages():
        if me.random.random() < 0.002:
            raise ValueError("I've had enough")

@at_end("every question is answered")
def answered(story):
    missing = len(story.sent("question")) - len(story.received("answer"))
    assert not missing, f"{missing} are not"
    return True

@always("nobody shouts")
def quiet(story):
    return not story.last or story.last.topic != "shout"

def plain(story):
    '''The answers are there.'''
    return bool(story.received("answer"))

@eventually("somebody shouts")
def hopeless(story):
    return bool(story.sent("shout"))

broken = always("it is judged")(lambda story: 1 / 0)
wordy = at_end("it is told")(lambda story: "because")
of_three = always("it is between three")(lambda one, other, third: True)
nobody = always("it is nothing")(NotImplemented)
NOTHING = 5

def of_none():
    return True

class Needy:
    def __init__(self, what):
        self.what = what

class Mute:
    pass

class Greedy:
    def __call__(self, story, other):
        return True

class Unwilling:
    def __init__(self):
        raise RuntimeError("I won't")

    def __call__(self, story):
        return True
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "talk.toml").write_text(FILE)
    (tmp_path / "talk.py").write_text(PROGRAM)
    return tmp_path


def test_a_failure_is_found_shrunk_and_repeated(worldline: Command, folder: Path) -> None:
    tried = ("search", "talk.toml", "--property", "talk:answered", "--seeds", "30", "--save", "found.json")
    code, output, _ = worldline(*tried, "--workers", "1")
    assert code == 1
    assert "noise" not in output
    seed = re.findall(r"seed (\d+) fails", output)[0]
    assert f"worldline search talk.toml --property talk:answered --seed {seed} --seeds 1" in output
    (left,) = re.findall(r"to 1:\nevery message takes the usual time and none gets lost, but\n  (.*)", output)
    drawn = re.fullmatch(r"(loss/(question|answer)/(asker|answerer)/(answerer|asker)/(\d+)) = yes  \((.*)\)", left)
    assert drawn is not None
    name, topic, sender, receiver, number, words = drawn.groups()
    assert words == f"message {int(number) + 1} of {sender} on {topic} doesn't reach {receiver}"
    assert re.search(rf"  {sender}  sent  {topic}: {number}  \(doesn't reach {receiver}\)\n", output)
    assert "answered: 1 are not" in output

    named = ("--target", "talk.toml", "--property", "talk:answered")
    assert f"worldline search found.json {shlex.join(named)}\n" in output
    saved = json.loads((folder / "found.json").read_text())
    assert (saved["seed"], saved["target"]) == (int(seed), "talk.toml")
    code, again, _ = worldline("search", "found.json", *named)
    assert (code, again.splitlines()[-1]) == (1, output.splitlines()[-1])
    code, once, _ = worldline(
        "search", "talk.toml", "--property", "talk:answered", "--seed", seed, "--seeds", "1", "--no-shrink"
    )
    assert (code, once.splitlines()[1]) == (1, output.splitlines()[1])

    (folder / "talk.toml").write_text(FILE.replace("loss = 0.02", "loss = 0.0"))
    unmade, fine = worldline("search", "found.json", *named)[1].splitlines()
    assert unmade == f"found.json has draws that the run didn't make: {name}"
    assert fine.startswith("it doesn't fail any more, digest ")


def test_the_same_is_found_on_several_workers(worldline: Command, folder: Path) -> None:
    tried = ("search", "talk.toml", "--property", "talk:answered", "--seeds", "30", "--keep-going", "--no-shrink")
    tried += ("--faults", "crash-after=1")
    here, apart = (worldline(*tried, "--workers", workers) for workers in ("1", "2"))
    assert here == apart
    assert re.match(r"30 seeds, [\d,]+ events, \d+ faults: \d+ fail, the first is \d+\n", here[1])


def test_what_holds_is_said(worldline: Command, folder: Path) -> None:
    code, output, _ = worldline(
        "search", "talk.toml", "--property", "talk:quiet", "--property", "talk:plain", "--seeds", "2", "--workers", "1"
    )
    assert code == 0
    assert output.splitlines()[:2] == ["holds always: nobody shouts", "holds at the end: The answers are there"]


def test_a_program_that_raises_is_a_failure(worldline: Command, folder: Path) -> None:
    code, output, _ = worldline(
        *("search", "talk.toml", "--set", "participants.answerer.entry=talk:gruff", "--seeds", "40", "--workers", "1")
    )
    assert code == 1
    assert re.search(r"shrunk in \d+ runs, from \d+ draws to 0:\nevery message takes the usual time and none", output)
    told = output.partition("---\n")[2].splitlines()
    assert told[-6].split(maxsplit=1)[1] == f"answerer  received  question from asker: {told[-6][-1]}"
    assert told[-5] == "Traceback (most recent call last):"
    assert told[-2] == "ValueError: I've had enough"
    line = PROGRAM.splitlines().index('            raise ValueError("I\'ve had enough")') + 1
    at = told[-6].split()[0]
    assert told[-1] == f"answerer at {at}: its program raised ValueError: I've had enough, in talk.py, line {line}"


def test_the_first_seed_may_fail(worldline: Command, folder: Path) -> None:
    (folder / "talk.py").write_text("def ask(me):\n    raise ValueError('no')\n\n\ndef answer(me):\n    me.next()\n")
    code, out, _ = worldline("search", "talk.toml", "--seeds", "2", "--workers", "1", "--no-shrink")
    assert (code, out.splitlines()[0]) == (1, "1 seed: seed 0 fails")


def test_the_story_is_told_in_the_order_in_which_each_did_it(worldline: Command, folder: Path) -> None:
    (folder / "talk.toml").write_text(FILE.replace("uniform(1ms, 9ms)", "10ms").replace("loss = 0.02", ""))
    _, output, _ = worldline("search", "talk.toml", "--property", "talk:hopeless", "--workers", "1")
    told = [line.split() for line in output.partition("---\n")[2].splitlines()]
    asked = [line[2:4] for line in told if line[1] == "asker" and line[0] == "960ms"]
    assert asked == [["received", "answer"], ["noted", "heard"], ["sent", "question:"]]


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["talk.toml", "--property", "answered"], "'answered' doesn't name a property (write module:function"),
        (["talk.toml", "--property", "talk:anwered"], 'talk has no anwered (did you mean "answered"?)'),
        (["talk.toml", "--property", "talk:NOTHING"], "talk:NOTHING is 5 (a property is a function"),
        (["talk.toml", "--property", "talk:nobody"], "(a property is a function"),
        (
            ["talk.toml", "--property", "talk:of_three"],
            "talk:of_three can't be called with a story: missing a required",
        ),
        (["talk.toml", "--property", "talk:of_none"], "talk:of_none can't be called with a story: too many"),
        (["talk.toml", "--property", "talk:Needy"], "talk:Needy can't be called without arguments: missing a required"),
        (["talk.toml", "--property", "talk:Mute"], "talk:Mute is a class whose objects can't be called (write its"),
        (["talk.toml", "--property", "talk:Greedy"], "talk:Greedy can't be called with a story: missing a required"),
        (["talk.toml", "--propety", "talk:quiet"], "No such option: --propety"),
        (["nothing.toml"], "nothing.toml"),
        (["missing.json"], "missing.json can't be read: No such file"),
        (["bad.json"], "bad.json isn't a saved failure"),
        (["old.json"], "old.json has the format 99 (this version reads 1)"),
        (["cut.json"], "cut.json isn't a saved failure: Input data was truncated"),
        (["old.json", "--seed", "3"], "old.json says itself which run it is"),
        (["old.json", "--seeds", "3"], "old.json says itself which run it is"),
        (["old.json", "--save", "new.json"], "old.json says itself which run it is"),
        (
            ["talk.toml", "--property", "talk:broke"],
            'worldline: --property: talk has no broke (did you mean "broken"?)',
        ),
        (["talk.toml", "--property", "talk:nope"], "--property: talk has no nope (talk has "),
        (["talk.toml", "--property", "nowhere:answered"], "nowhere can't be imported: ModuleNotFoundError"),
        (["talk.toml", "--fault", "1s crash nobody"], "there is no participant 'nobody'"),
        (["talk.toml", "--fault", "3s crash asker"], "3s crash asker: the run ends at 2s"),
        (
            ["talk.toml", "--fault", "asker sends questoin: crash asker"],
            "asker doesn't publish 'questoin' (did you mean 'question'?)",
        ),
        (["talk.toml", "--faults", "crash-before=1"], "'crash-before=1' can't be drawn: there is no kind"),
        (["talk.toml", "--faults", "crsh=1"], "there is no kind 'crsh' (did you mean 'crash'?)"),
        (["talk.toml", "--faults", "crash=many"], "'many' isn't a number from 0 to 10,000"),
        (["talk.toml", "--faults", ""], "'' names no faults to draw (write "),
        (["talk.toml", "--faults", "crash="], "'crash=' can't be drawn: '' isn't a number"),
        (["talk.toml", "--faults", "crash=1.5"], "'1.5' isn't a whole number"),
        (["talk.toml", "--faults", "crash=1,hang=1,crash"], "'crash' can't be drawn: crash is there twice"),
        (["talk.toml", "--save", "nowhere/found.json"], "nowhere"),
        (["talk.toml", "--save", "old.json"], "--save old.json: it is there already, and may be another failure"),
        (["talk.toml", "--save", "found"], "it would not be known as a failure (name it found.json)"),
    ],
)
def test_mistakes_are_told_before_anything_is_run(
    worldline: Command, folder: Path, arguments: list[str], complaint: str
) -> None:
    (folder / "bad.json").write_text('{"format": 1}')
    (folder / "cut.json").write_text('{"format": 1, "target": "ta')
    (folder / "old.json").write_text('{"format": 99, "target": "talk.toml", "seed": 0}')
    code, output, errors = worldline("search", *arguments)
    assert (code, output) == (2, "")
    assert complaint in errors


@pytest.mark.parametrize(
    ("name", "complaint"),
    [
        (
            "broken",
            r"asker at 0s: seed 3: the check of 'it is judged' raised ZeroDivisionError: .*, in talk.py, line \d+",
        ),
        (
            "wordy",
            r"at 2s: seed 3: the check of 'it is told', talk:<lambda>, returned 'because' \(it has to return True",
        ),
        (
            "Unwilling",
            r"seed 3: the check of 'Unwilling' raised RuntimeError: I won't, in talk.py, line \d+, before the",
        ),
    ],
)
@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_property_that_cannot_be_judged_is_a_mistake_and_no_failure(
    worldline: Command, folder: Path, name: str, complaint: str, workers: str
) -> None:
    code, output, errors = worldline(
        "search", "talk.toml", "--property", f"talk:{name}", "--seed", "3", "--seeds", "20", "--workers", workers
    )
    assert (code, output) == (2, "")
    assert re.search(complaint, errors)


def test_what_programs_print_is_swallowed_in_every_process(
    folder: Path, worldline: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    trial = made_trial(
        TrialRequest(target="talk.toml", options=RunOptions(properties=("talk:quiet",)))
    )  # As a worker makes it.
    assert trial.run().failure is None
    assert capsys.readouterr() == ("", "")


def test_draws_of_a_saved_failure_that_are_not_made_any_more_are_named(worldline: Command, folder: Path) -> None:
    saved = {"format": 1, "target": "talk.toml", "seed": 0, "draws": {"loss/query/asker/answerer/3": True}}
    (folder / "found.json").write_text(json.dumps(saved))
    code, output, _ = worldline("search", "found.json", "--target", "talk.toml")
    assert code == 0
    assert output.splitlines()[0] == "found.json has draws that the run didn't make: loss/query/asker/answerer/3"


def test_what_never_happens_is_found_at_the_end(worldline: Command, folder: Path) -> None:
    code, output, _ = worldline("search", "talk.toml", "--property", "talk:hopeless", "--workers", "1")
    assert code == 1
    assert "at 2s: property never held: somebody shouts" in output
    assert "draws to 0:\n" in output


def test_a_fault_counts_if_its_event_comes(worldline: Command, folder: Path) -> None:
    faults = ("--fault", "asker sends question 3: hang asker 50ms", "--fault", "asker sends question 99: crash asker")
    _, output, _ = worldline("search", "talk.toml", "--seeds", "1", "--workers", "1", *faults)
    assert ", 1 fault, digest" in output


@pytest.mark.parametrize("command", [("search", "--seeds", "8", "--workers", "1"), ("run", "--no-record")])
def test_drawn_faults_leave_room_for_the_given_ones(worldline: Command, folder: Path, command: tuple[str, ...]) -> None:
    for participant in ("asker", "answerer"):
        given = ("--fault", f"100ms crash {participant}", "--fault", f"1900ms recover {participant}")
        code, _, errors = worldline(*command, "talk.toml", "--faults", "crash=2,hang=2", *given)
        assert (code, errors) == (0, "")


def lines_up_to_the_command(output: str) -> list[str]:
    lines = output.splitlines()
    return lines[: lines.index("to repeat it:") + 2]


def commands_in(output: str) -> list[list[str]]:
    """Return the commands that an output says to copy, as a shell takes them apart."""
    return [shlex.split(line)[1:] for line in output.splitlines() if line.startswith("  worldline ")]


@pytest.mark.parametrize("option", [(), ("--no-shrink",)])
def test_the_commands_that_repeat_a_failure_can_be_copied(
    worldline: Command, folder: Path, option: tuple[str, ...]
) -> None:
    (folder / "my talk.toml").write_text(FILE.replace('"asker"', '"the asker\'s"'))
    fault = 'answerer receives question 3: hang "answerer" 50ms'
    others = ("--fault", '1s hang "the asker\'s" 50ms', "--faults", "crash=1,hang=1", "--set", "link.loss=0.01")
    tried = ("search", "my talk.toml", "--property", "talk:answered", "--fault", fault, *others, "--until", "1500ms")
    code, output, _ = worldline(*tried, *option, "--workers", "1", "--seconds-max", "50", "--save", "it is.json")
    assert code == 1
    again, saved = commands_in(output)
    assert saved[:4] == ["search", "it is.json", "--target", "my talk.toml"]
    code, once, _ = worldline(*again, "--no-shrink")
    assert (code, once.splitlines()) == (1, lines_up_to_the_command(output))
    assert worldline(*saved)[1].splitlines()[-1] == output.splitlines()[1 if option else -1].strip()


@pytest.mark.parametrize("table", ["tables/third.toml", "talk:third"])
def test_what_a_table_says_of_draws_stays_when_a_failure_is_shrunk_saved_and_repeated(
    worldline: Command, folder: Path, table: str
) -> None:
    (folder / "tables").mkdir()
    (folder / "kept").mkdir()
    lost = '"loss/question/asker/answerer/2" = true\n'
    (folder / "tables" / "third.toml").write_text("loss = false\n" + lost)
    (folder / "talk.py").write_text(
        PROGRAM + "def third(name, _, value):\n    return name.endswith('question/asker/answerer/2')"
        " if name.startswith('loss') else value\n"
    )
    tried = ("search", "talk.toml", "--property", "talk:answered", "--draws", table, "--workers", "1")
    code, output, _ = worldline(*tried, "--save", "kept/it.json")
    assert code == 1
    assert "property failed: every question is answered: 1 are not" in output
    assert f"to 0:\nbesides what {table} says, every message takes the usual time and none gets lost\n" in output
    again, saved = commands_in(output)
    assert worldline(*again, "--no-shrink")[1].splitlines() == lines_up_to_the_command(output)
    assert worldline(*saved)[1].splitlines()[-1] == output.splitlines()[-1]
    assert worldline(*saved[:-2])[0] == 2  # What names code has to be named.

    (folder / "tables" / "none.toml").write_text("loss = false\n")
    code, output, _ = worldline(*tried[:4], "--draws", "tables/none.toml", "--seeds", "5", "--workers", "2")
    assert (code, output.splitlines()[0]) == (0, "holds at the end: every question is answered")


def test_a_saved_failure_is_replaced_only_if_that_is_wanted(worldline: Command, folder: Path) -> None:
    tried = ("search", "talk.toml", "--property", "talk:hopeless", "--workers", "1", "--no-shrink", "--save", "it.json")
    assert worldline(*tried)[0] == 1
    before = (folder / "it.json").read_bytes()
    assert worldline(*tried, "--seed", "7")[0] == 2
    assert (folder / "it.json").read_bytes() == before
    assert worldline(*tried, "--seed", "7", "--force")[0] == 1
    assert json.loads((folder / "it.json").read_text())["seed"] == 7


def test_a_fault_is_shown_however_long_ago_it_was(worldline: Command, folder: Path) -> None:
    faults = ("--fault", "100ms hang answerer 50ms", "--fault", "answerer sends answer 3: crash answerer 50ms")
    tried = ("search", "talk.toml", "--property", "talk:undisturbed", "--workers", "1", "--seeds", "1", *faults)
    (folder / "talk.py").write_text(PROGRAM + UNDISTURBED)
    code, output, _ = worldline(*tried)
    assert code == 1
    told = output.partition("---\n")[2].splitlines()
    assert re.fullmatch(r"\.\.\. \d+ before that, among them", told[0])
    assert [line.split(maxsplit=1)[1] for line in told[1:4]] == [
        "answerer  fault: answerer sends answer 3: crash answerer 1ms",
        "answerer  fault: it recovers, and is incarnation 1",
        "answerer  fault: 105ms hang answerer 1ms",
    ]
    assert told[4] == "..."
    assert len(told) == 5 + 40 + 1


UNDISTURBED = """
@at_end("nobody is disturbed twice")
def undisturbed(story):
    return {each.who for each in story.befell()} != {"answerer"} or len(story.befell(whom="answerer")) < 3
"""


def test_a_saved_failure_runs_no_code_that_it_alone_names(worldline: Command, folder: Path) -> None:
    """It is data, and may come from a stranger."""
    evil = folder / "evil"
    evil.mkdir()
    (evil / "evil.py").write_text(f"open({str(folder / 'ran')!r}, 'w')\n{PROGRAM}")
    (evil / "evil.toml").write_text(FILE.replace("talk:", "evil:"))
    (evil / "talk.py").write_text(f"open({str(folder / 'ran')!r}, 'w')\n{PROGRAM}")
    entry, elsewhere = "participants.asker.entry=evil:ask", f"participants.asker.directory={evil}"
    for names, given in [
        ({"target": "evil/evil.toml"}, ()),
        ({"target": str(evil / "evil.toml")}, ()),
        ({"target": "talk.toml", "properties": ["evil.evil:answered"]}, ("--target", "talk.toml")),
        ({"target": "talk.toml", "settings": [entry]}, ("--target", "talk.toml")),
        ({"target": "talk.toml", "settings": [elsewhere]}, ("--target", "talk.toml", "--set", "link.loss=0.5")),
        ({"target": "talk.toml", "table": "evil.evil:answered"}, ("--target", "talk.toml")),
        ({"target": "talk.toml", "table": "evil.evil:answered"}, ("--target", "talk.toml", "--draws", "talk:third")),
    ]:
        (folder / "it.json").write_text(json.dumps({"format": 1, "seed": 0, **names}))
        code, output, errors = worldline("search", "it.json", *given)
        assert (code, output) == (2, "")
        assert errors.startswith(
            "worldline: it.json is data, and runs only what you name (if you trust what it names: "
        )
        assert not (folder / "ran").exists()
    code, _, errors = worldline("search", "talk.toml", "--target", "talk.toml")
    assert (code, errors) == (
        2,
        "worldline: --target is for a saved failure, and talk.toml is a target itself (leave it out)\n",
    )


def test_what_is_no_federation_is_told_where_it_is_searched(worldline: Command, folder: Path) -> None:
    (folder / "kernel.py").write_text("from worldline.kernel import Simulation\nmodel = Simulation()\n")
    code, _, errors = worldline("search", "kernel.py")
    assert code == 2
    assert "only federations can be searched, and kernel.py is of the kind kernel (`worldline verify" in errors
    code, _, errors = worldline("search", "raft")
    assert "raft is of the kind nodes (`worldline nodes raft --seeds 100` tries it on many seeds)" in errors


DRIFTING = """
until = "1s"
[link]
latency = "uniform(1ms, 9ms)"
[[participants]]
name = "a"
entry = "drifting:tell"
publishes = ["x"]
[participants.clock]
offset = "uniform(-50ms, 50ms)"
drift = "uniform(-40ppm, 40ppm)"
wander = "walk(1ppm, every=100ms, within=20ppm)"
[[participants]]
name = "b"
entry = "drifting:compare"
subscribes = ["x"]
clock = { offset = "uniform(-50ms, 50ms)" }
"""
DRIFTING_PROGRAM = """
from worldline import MS
from worldline.search import always

def tell(me):
    for _ in range(20):
        me.publish("x", str(me.clock.now).encode())
        me.advance(by="20ms")

def compare(me):
    for message in me.messages():
        me.log(str(abs(me.clock.now - int(message.payload))))

@always("clocks agree to 60 ms")
def agree(story):
    return all(int(note.text) < 60 * MS for note in story.noted())
"""


def test_clocks_are_shrunk_told_and_saved(worldline: Command, folder: Path) -> None:
    (folder / "drifting.toml").write_text(DRIFTING)
    (folder / "drifting.py").write_text(DRIFTING_PROGRAM)
    tried = ("search", "drifting.toml", "--property", "drifting:agree", "--workers", "1", "--save", "it.json")
    code, output, _ = worldline(*tried)
    assert code == 1
    told = output.partition("every message takes the usual time, none gets lost and clocks are right, but\n")[2]
    one, other, *_ = told.splitlines()
    assert re.fullmatch(r"  clock-offset/a/0 = -?\d+ms  \(the clock of a is \d+ms (fast|slow) at first\)", one)
    assert re.fullmatch(r"  clock-offset/b/0 = -?\d+ms  \(the clock of b is \d+ms (fast|slow) at first\)", other)
    saved = json.loads((folder / "it.json").read_text())["draws"]
    assert sorted(saved) == ["clock-offset/a/0", "clock-offset/b/0"]
    assert saved["clock-offset/a/0"] * saved["clock-offset/b/0"] < 0
    assert 55 <= sum(map(abs, saved.values())) // 10**6 <= 70  # In round numbers.
    again = worldline("search", "it.json", "--target", "drifting.toml", "--property", "drifting:agree")
    assert (again[0], again[1].splitlines()[-1]) == (1, output.splitlines()[-1])


AHEAD = """
until = "1s"
[link]
latency = "5ms"
[[participants]]
name = "a"
entry = "ahead:tell"
publishes = ["x"]
clock = {{ {} }}
[[participants]]
name = "b"
entry = "ahead:compare"
subscribes = ["x"]
"""
AHEAD_PROGRAM = """
from worldline import MS
from worldline.search import always

def tell(me):
    me.publish("x", str(me.clock.now).encode())

def compare(me):
    for message in me.messages():
        me.log(str(me.clock.now - int(message.payload)))

@always("messages seem to take their time")
def lasting(story):
    return all(int(note.text) > 1_500_000 for note in story.noted())

@always("nobody notes anything")
def silent(story):
    return not story.noted()
"""


@pytest.mark.parametrize(
    ("clock", "must", "calm"),
    [
        ('offset = "uniform(4ms, 9ms)"', "lasting", "none gets lost and the clock of a is 4ms fast at first"),
        (
            'offset = "4ms", drift = "uniform(-40ppm, 40ppm)"',
            "lasting",
            "none gets lost and the clock of a is 4ms fast at first",
        ),
        (
            'offset = "uniform(-9ms, -4ms)", drift = "uniform(7ppm, 9ppm)"',
            "silent",
            "none gets lost, the clock of a is 4ms slow at first and the clock of a gains 7ppm",
        ),
        (
            'drift = "uniform(-7ppm, 9ppm)", jumps = [{ at = "1ms", by = "2ms" }]',
            "silent",
            "none gets lost and the clock of a jumps forward by 2ms at 1ms",
        ),
        ('offset = "uniform(-4ms, 9ms)"', "silent", "none gets lost and clocks are right"),
        (
            'offset = "uniform(2ms, 9ms)"',
            "lasting",
            "none gets lost and clocks are right, but\n  clock-offset/a/0 = 4ms",
        ),
        (
            'offset = "uniform(3.1ms, 3.9ms)"',
            "lasting",
            "none gets lost and clocks are right, but\n  clock-offset/a/0 = 3.5ms",
        ),
    ],
)
def test_clocks_that_cannot_be_right_are_told(
    worldline: Command, folder: Path, clock: str, must: str, calm: str
) -> None:
    (folder / "ahead.toml").write_text(AHEAD.format(clock))
    (folder / "ahead.py").write_text(AHEAD_PROGRAM)
    code, output, _ = worldline("search", "ahead.toml", "--property", f"ahead:{must}", "--workers", "1")
    assert code == 1
    assert f"\nevery message takes the usual time, {calm}" in output
    assert ("clocks are right" in output) == ("clocks are right" in calm)
    assert "on this day" not in output  # All messages take 5 ms on every day.


def test_the_day_is_told_repeated_and_can_be_chosen(worldline: Command, folder: Path) -> None:
    tried = ("search", "talk.toml", "--property", "talk:answered", "--workers", "1", "--no-shrink")
    for seed in range(20):
        code, output, _ = worldline(*tried, "--seed", str(seed), "--seeds", "1", "--save", "it.json", "--force")
        day = re.findall(r"^  on this day: .+  \(--day (.+)\)$", output, re.MULTILINE)
        if code == 1 and day:
            break
    assert json.loads((folder / "it.json").read_text())["day"] == day[0]
    again = worldline("search", "it.json", "--target", "talk.toml", "--property", "talk:answered")[1]
    assert again.splitlines()[-1] == output.splitlines()[1].strip()
    assert worldline(*tried, "--seed", str(seed), "--seeds", "1", "--day", day[0])[1].startswith(output.splitlines()[0])
    assert "on this day" not in worldline(*tried, "--seed", str(seed), "--day", "usual")[1]
    code, _, errors = worldline(*tried, "--day", "qick")
    assert (code, errors) == (2, "worldline: 'qick' isn't a kind of day (did you mean 'quick'?)\n")
    code, _, errors = worldline(*tried, "--day", "no-crsh")
    assert (code, errors) == (2, "worldline: 'no-crsh' isn't a kind of day (did you mean 'no-crash'?)\n")


EXECUTORS = ["in-process", *(pytest.param(each, marks=pytest.mark.long) for each in ("unix", "processes(2)"))]


@pytest.mark.parametrize("executor", EXECUTORS)
def test_a_run_is_judged_by_the_same_properties_on_every_executor(
    worldline: Command, folder: Path, executor: str
) -> None:
    _, found, _ = worldline("search", "talk.toml", "--property", "talk:answered", "--no-shrink", "--day", "usual")
    seed, said = re.findall(r"seed (\d+) fails\n  (.*)", found)[0]
    (folder / "talk.toml").write_text(f'properties = ["talk:quiet"]\n{FILE}')
    run = ("run", "talk.toml", "--executor", executor, "--record", "talk.mcap", "--property", "talk:answered")
    code, _, error = worldline(*run, "--seed", seed)
    assert (code, error.splitlines()[-1]) == (1, f"worldline: {said}")
    assert f"intact: the file matches its certificate, but the run {said}\n" in worldline("info", "talk.mcap")[1]
    assert worldline("digest", "talk.mcap")[0] == 0
    code, output, _ = worldline(*run, "--set", "link.loss=0.0")
    assert code == 0
    assert "\nholds always: nobody shouts\nholds at the end: every question is answered\n2 participants" in output


def test_a_search_judges_by_what_the_file_names_as_well(worldline: Command, folder: Path) -> None:
    (folder / "talk.toml").write_text(f'properties = ["talk:hopeless"]\n{FILE}')
    code, output, _ = worldline("search", "talk.toml", "--property", "talk:quiet", "--no-shrink")
    assert code == 1
    assert "seed 0 fails\n  at 2s: property never held: somebody shouts\n" in output


@pytest.mark.parametrize(
    ("name", "code", "says"),
    [
        ("talk:missing", 2, "talk has no missing"),
        ("talk", 2, "'talk' doesn't name a property (write module:function, as for an entry)"),
        ("talk:broken", 2, "asker at 0s: the check of 'it is judged' raised ZeroDivisionError"),
    ],
)
def test_what_is_no_property_is_refused_before_a_run_or_said_of_it(
    worldline: Command, folder: Path, name: str, code: int, says: str
) -> None:
    found = worldline("run", "talk.toml", "--executor", "in-process", "--no-record", "--property", name)
    assert (found[0], says in found[2]) == (code, True)


def test_other_models_have_properties_of_their_own(worldline: Command) -> None:
    code, _, error = worldline("run", "flooding", "--property", "talk:quiet")
    assert (code, error) == (2, "worldline: --property is for federations, and flooding is of the kind nodes\n")


def test_a_search_that_takes_long_says_so_without_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also while a single seed takes minutes."""
    told: SimpleQueue[str] = SimpleQueue()
    monkeypatch.setattr(console, "remark", told.put)
    monkeypatch.setattr(console, "_TOLD_EVERY_S", 0.0)
    with console.counting("searching", "seeds", 1_000) as count:
        assert told.get(timeout=60) == "searching: 0 of 1,000 seeds, after 0 s"
        count(7)
        while not told.get(timeout=60).startswith("searching: 7 of 1,000 seeds, after "):
            pass
