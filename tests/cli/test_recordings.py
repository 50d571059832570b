"""Where commands record: nothing of others is harmed, nothing is lost to a crash, and tools can read what is in it."""

from __future__ import annotations

import contextlib
import json
import os
import re
import resource
import select
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from mcap.reader import make_reader

from tests.cli.conftest import Command, command_of
from tests.federation.transports import PATIENCE_S, eventually
from worldline.model import UsageError, plan
from worldline.recording import Condition, Provenance, Recorder, Recording

CAST = """
import json, os, sys, time
from dataclasses import dataclass

@dataclass
class Pose:
    x: float
    y: float = 0.0

def source(self):
    while not self.ended:
        self.publish("pose", json.dumps({"x": self.now / 1e9, "y": 1.5}).encode())
        self.advance(by="1ms")

def noisy(self):
    while not self.ended:
        self.publish("pose", os.urandom(20_000))
        self.advance(by="1ms")

def reader(self):
    for _ in self.messages():
        pass

def stays(self):
    self.advance(to="15ms")
    parent = os.getppid()
    while os.getppid() == parent:  # It goes with whoever has started it.
        time.sleep(0.05)

def hostile(self):
    self.advance(to="2ms")
    print("\\x1b[31mred\\x1b[2J\\rworldline: all is well \\u202e\\x9b")
    sys.stdout.flush()
    raise ValueError("no\\nworldline: forged\\x1b[2J\\u2028")
"""


def write(folder: Path, *roles: str, more: str = "") -> str:
    (folder / "poses.py").write_text(CAST)
    text = 'name = "play"\nuntil = "20ms"\n' + "".join(
        f'[[participants]]\nname = "{role}"\nentry = "poses:{role}"\n'
        f"publishes = {['pose'] if role in ('source', 'noisy') else []}\n"
        f"subscribes = {['pose'] if role == 'reader' else []}\n"
        for role in roles
    )
    (folder / "play.toml").write_text(text.replace("'", '"') + more)
    return str(folder / "play.toml")


@pytest.fixture
def file(tmp_path: Path) -> str:
    return write(tmp_path, "source", "reader")


@pytest.fixture
def worldline(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], tmp_path: Path) -> Command:
    """Run the command in an empty folder below; what processes print is heard, too."""
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    return command_of(monkeypatch, capfd)


# Every command that records, in as little time as possible.
RECORDING = {
    "run": ("run", "FILE", "--executor", "in-process"),
    "nodes": ("nodes", "echo", "--quiet"),
    "spacetime": ("spacetime", "ping", "--quiet"),
}


@pytest.fixture(params=RECORDING)
def arguments(request: pytest.FixtureRequest, file: str) -> list[str]:
    return [file if word == "FILE" else word for word in RECORDING[request.param]]


def names() -> set[str]:
    return {path.name for path in Path().iterdir()}


# --- Where it may be recorded ---


def test_a_device_is_recorded_to_and_stays(worldline: Command, arguments: list[str]) -> None:
    before = Path("/dev/null").stat()
    assert worldline(*arguments, "--record", "/dev/null")[0] == 0
    assert worldline(*arguments, "--record", "/dev/null", "--force")[0] == 0
    after = Path("/dev/null").stat()
    assert (before.st_ino, before.st_rdev, before.st_mode) == (after.st_ino, after.st_rdev, after.st_mode)
    assert names() == set()


def test_a_pipe_gets_the_bytes_that_a_file_gets(worldline: Command, arguments: list[str]) -> None:
    assert worldline(*arguments, "--record", "file.mcap")[0] == 0
    os.mkfifo("pipe.mcap")
    got: list[bytes] = []
    reader = threading.Thread(target=lambda: got.append(Path("pipe.mcap").read_bytes()))
    reader.start()
    assert worldline(*arguments, "--record", "pipe.mcap")[0] == 0
    reader.join(PATIENCE_S)
    assert got == [Path("file.mcap").read_bytes()]
    assert Path("pipe.mcap").is_fifo()


@pytest.mark.parametrize("command", ["nodes", "spacetime"])
def test_standard_output_gets_the_recording_and_nothing_else(command: str, file: str, tmp_path: Path) -> None:
    arguments = [file if word == "FILE" else word for word in RECORDING[command]]
    done = subprocess.run(
        [sys.executable, "-m", "worldline", *arguments, "--record", "/dev/stdout"],
        capture_output=True,
        check=True,
        cwd=tmp_path,
    )
    (tmp_path / "run.mcap").write_bytes(done.stdout)
    assert Recording(tmp_path / "run.mcap").verify().condition is Condition.INTACT
    assert b"digest" in done.stderr


@pytest.mark.parametrize("command", ["run FILE --executor in-process", "run echo", "nodes echo", "spacetime ping"])
def test_every_command_says_where_it_has_recorded(worldline: Command, command: str, file: str) -> None:
    words = [file if word == "FILE" else word for word in command.split()]
    for quietly in ((), ("--quiet",), ("--json",)):
        code, out, err = worldline(*words, *quietly, "--record", "run.mcap")
        assert code == 0
        assert ("recorded in run.mcap\n" in out) is (not quietly)
        assert "recorded in" not in err


EMPTY_AGENTS = """
from worldline.spacetime import ForwardSimulation, Minkowski
UNTIL = 1.0
def model(*, seed):
    return ForwardSimulation(Minkowski(1), seed=seed)
"""


@pytest.mark.parametrize("command", ["run --executor in-process", "spacetime --file"])
def test_a_run_that_never_began_leaves_no_file_and_no_other_one(
    worldline: Command, tmp_path: Path, command: str
) -> None:
    words = command.split()
    model = tmp_path / "empty_agents.py"
    model.write_text(EMPTY_AGENTS)
    target = str(model) if words[-1] == "--file" else write(tmp_path, "absent")
    Path("run.mcap").write_bytes(b"")
    assert worldline(*words, target, "--record", "run.mcap")[0] in (0, 2)
    assert names() == {"run.mcap"}
    assert Path("run.mcap").read_bytes() == b""


def test_a_link_stays(worldline: Command, arguments: list[str], tmp_path: Path) -> None:
    Path("link.mcap").symlink_to(tmp_path / "far.mcap")
    for _ in range(2):
        assert worldline(*arguments, "--record", "link.mcap")[0] == 0
    assert Path("link.mcap").is_symlink()
    assert names() == {"link.mcap"}
    for name in ("far.mcap", "far.previous.mcap"):
        assert Recording(tmp_path / name).verify().condition is Condition.INTACT


def test_only_recordings_are_replaced_and_it_is_said(worldline: Command, arguments: list[str]) -> None:
    arguments = [word for word in arguments if word != "--quiet"]
    for name in ("notes.mcap", "run.previous.mcap"):
        Path(name).write_text("precious")
    for _ in range(2):
        code, _, err = worldline(*arguments, "--record", "notes.mcap")
        assert (code, "notes.mcap isn't a recording and would be replaced" in err) == (2, True)
    assert worldline(*arguments, "--record", "run.mcap")[0] == 0
    code, _, err = worldline(*arguments, "--record", "run.mcap")
    assert (code, "run.previous.mcap isn't a recording" in err) == (2, True)
    assert [Path(name).read_text() for name in ("notes.mcap", "run.previous.mcap")] == ["precious"] * 2
    code, out, err = worldline(*arguments, "--record", "run.mcap", "--force")
    assert code == 0
    assert re.search(r"^run\.mcap was a recording of \S+; it is now run\.previous\.mcap$", out + err, re.MULTILINE)
    assert names() == {"notes.mcap", "run.mcap", "run.previous.mcap"}


def test_what_cant_be_written_is_refused_before_the_run(worldline: Command, arguments: list[str]) -> None:
    Path("folder.mcap").mkdir()
    for place, words in (("folder.mcap", "it is a folder"), ("none/run.mcap", "there is no folder none")):
        for force in ((), ("--force",)):
            code, out, err = worldline(*arguments, "--record", place, *force)
            assert (code, out) == (2, "")
            assert words in err
    code, out, err = worldline(*arguments, "--record", "/dev/full")
    assert code == 3
    assert "the recording /dev/full can't be written: No space left on device" in err
    assert names() == {"folder.mcap"}


@pytest.mark.parametrize(
    "arguments",
    [
        ("nodes", "echo", "--quiet", "--diagram"),
        ("nodes", "echo", "--quiet", "--topology-plot"),
        ("nodes", "echo", "--quiet", "--save"),
        ("spacetime", "relay", "--quiet", "--diagram"),
        ("spacetime", "relay", "--quiet", "--animation"),
    ],
    ids="-".join,
)
def test_pictures_and_schedules_replace_files_and_nothing_else(worldline: Command, arguments: tuple[str, ...]) -> None:
    name = "it.html" if "--animation" in arguments else "it.svg"
    Path(name).write_text("an older one")
    Path(f"link-{name}").symlink_to(name)
    assert worldline(*arguments, f"link-{name}")[0] == 0
    assert Path(f"link-{name}").is_symlink()
    assert len(Path(name).read_text()) > 100
    assert worldline(*arguments, "/dev/null")[0] == 0
    assert Path("/dev/null").is_char_device()
    Path("folder").mkdir()
    for place, code in (("folder", 2), (f"none/{name}", 2), ("/dev/full", 3)):
        assert worldline(*arguments, place)[0] == code
    assert names() == {name, f"link-{name}", "folder"}


# --- What a crash costs ---


@pytest.mark.parametrize("executor", ["processes", "in-process"])
def test_what_was_final_a_second_ago_survives_a_kill(executor: str, tmp_path: Path) -> None:
    file = write(tmp_path, "source", "reader", "stays")
    process = subprocess.Popen(
        [sys.executable, "-m", "worldline", "run", file, "--executor", executor],
        cwd=tmp_path,
        stdout=subprocess.DEVNULL,
        start_new_session=True,
    )

    def reached() -> bool:
        """Whether all that is final is in the file: `stays` keeps the others from going further."""
        (path,) = list(tmp_path.glob("play.unfinished-*.mcap")) or [None]
        with contextlib.suppress(UsageError):  # Its header isn't written yet.
            return path is not None and len(seen(path)) >= 13
        return False

    def seen(path: Path) -> list[int]:
        try:
            return [arrival.sent for arrival in Recording(path).arrivals()]
        except UsageError:  # Its header isn't whole yet.
            return []

    try:
        eventually(reached)
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait(PATIENCE_S)
    (path,) = tmp_path.glob("play.unfinished-*.mcap")
    assert Recording(path).verify().condition is Condition.CUT_OFF
    assert seen(path)[:13] == [1_000_000 * number for number in range(13)]


def test_a_disk_that_fills_up_ends_the_run_in_plain_words(tmp_path: Path) -> None:
    file = write(tmp_path, "noisy", "reader")
    done = subprocess.run(
        [sys.executable, "-m", "worldline", "run", file, "--until", "100s"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=100,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (2**20, 2**20)),
    )
    assert done.returncode == 3
    problem = "the recording play.mcap can't be written: File too large (what was written before stays readable)"
    assert problem in done.stderr
    assert "Traceback" not in done.stderr
    assert Recording(tmp_path / "play.mcap").verify().condition is Condition.CUT_OFF


# --- What others say ---


@pytest.mark.parametrize("executor", ["processes", "in-process"])
def test_what_a_participant_says_cant_pass_for_what_we_say(worldline: Command, tmp_path: Path, executor: str) -> None:
    file = write(tmp_path, "source", "hostile")
    code, out, err = worldline("run", file, "--executor", executor)
    assert code == 1
    said = out + err
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u202e]", said)
    assert r"hostile  red\x1b[2J\rworldline: all is well \u202e\x9b" in out
    if executor == "processes":  # In one process, it is the user's own program that speaks.
        assert not re.search("^worldline: forged", said, re.MULTILINE)
        assert r"ValueError: no\nworldline: forged\x1b[2J\u2028" in err
    code, out, _ = worldline("info", "play.mcap")
    assert code == 0
    assert r"\nworldline: forged\x1b[2J\u2028" in out
    assert not re.search("^worldline: forged", out, re.MULTILINE)


FORGED = "it\nforged: all is well\x1b[2J\u2028forged, too"


def test_nor_what_a_recording_says(worldline: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("a.mcap", b"1"), ("b.mcap", b"2")):
        monkeypatch.setattr("worldline.recording.writer.version_of", lambda _, name=name: FORGED + name)
        provenance = Provenance(
            target=f"{FORGED}.toml", settings=(FORGED,), code={FORGED: name}, libraries={FORGED: FORGED}
        )
        made = plan(["ann", "bob"], seed=int(value))
        recorder = Recorder(name, made, federation=FORGED, provenance=provenance)
        for who in ("ann", "bob", FORGED):
            recorder.began(who, 0)
        recorder.sent(FORGED, 0, FORGED, 0, FORGED.encode() + value, 10)
        recorder.arrives(FORGED, 0, "bob", 5, 0, None)
        recorder.arrives(FORGED, 0, "ann", 6, 0, FORGED)
        recorder.noted("ann", "worldline/log", 7, json.dumps({"text": FORGED, "kind": FORGED}).encode())
        for who in ("ann", "bob", FORGED):
            recorder.ended(who, 20, value)
        if value == b"1":
            recorder.close(dropped={(FORGED, FORGED, FORGED): 1})
        else:
            recorder.abandon(FORGED, participant=FORGED, at=20)
    write(tmp_path, "source", "reader")
    for arguments in (
        ("info", "a.mcap"),
        ("info", "b.mcap"),
        ("digest", "b.mcap"),
        ("replay", "a.mcap"),
        ("replay", "a.mcap", "--only", "ann"),
        ("replay", "a.mcap", "--only", FORGED),
        ("replay", "a.mcap", "--only", "source", "--target", str(tmp_path / "play.toml")),
        ("replay", "a.mcap", "--until-differs", "--target", str(tmp_path / "play.toml")),
        ("replay", "a.mcap", "--topic", "nothing"),
        ("diff", "a.mcap", "b.mcap"),
        ("diff", "a.mcap", "b.mcap", "--json"),
        ("diff", "a.mcap", "b.mcap", "--to", "nobody"),
        ("export", "a.mcap", "a.csv", "--topic", "nothing"),
        ("run", str(tmp_path / "play.toml"), "--executor", "in-process", "--record", "a.mcap"),  # It names the old one.
        ("info", FORGED),
        ("run", FORGED),
    ):
        _, out, err = worldline(*arguments)
        assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028]", out + err), arguments
        assert not re.search("^forged", out + err, re.MULTILINE), (arguments, out, err)


def test_nor_what_nodes_and_agents_write(worldline: Command) -> None:
    Path("mine.py").write_text(
        "from worldline.nodes import Node\n"
        "class Mine(Node):\n"
        "    def execute(self, event):\n"
        "        self.log('a\\x1b[2J\\r\\n---\\u202e\\x9b')\n"
    )
    code, out, _ = worldline("nodes", "--file", "mine.py", "--topology", "ring:3")
    assert code == 0
    assert out.count(r"a\x1b[2J\r\n---\u202e\x9b") == 3
    code, out, _ = worldline("nodes", "--file", "mine.py", "--topology", "ring:3", "--json")
    assert "\x9b" not in out
    texts = [json.loads(line).get("text") for line in out.splitlines()]
    assert texts.count("a\x1b[2J\r\n---\u202e\x9b") == 3
    assert worldline("nodes", "--file", "mine.py", "--topology", "ring:3", "-q", "--diagram", "it.svg")[0] == 0
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]", Path("it.svg").read_text())
    Path("agents.py").write_text(
        "from worldline.spacetime import Agent, ForwardSimulation, Minkowski\n"
        "UNTIL = 5.0\n"
        "class Mine(Agent):\n"
        "    def speak(self):\n"
        "        self.log('a\\x1b[2J\\r\\n---\\u202e\\x9b')\n"
        "def model(*, executor='inline', seed=0, trace=False):\n"
        "    simulation = ForwardSimulation(Minkowski(2), seed=seed)\n"
        "    with simulation:\n"
        "        Mine().after(1.0, Mine.speak)\n"
        "    return simulation\n"
    )
    code, out, _ = worldline("spacetime", "--file", "agents.py")
    assert code == 0
    assert r"a\x1b[2J\r\n---\u202e\x9b" in out
    _, out, _ = worldline("spacetime", "--file", "agents.py", "--json")
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]", out)
    assert "a\x1b[2J\r\n---\u202e\x9b" in [json.loads(line).get("what") for line in out.splitlines()]


# --- What tools can read ---

POSE_SCHEMA = '{"type": "object", "title": "Pose", "properties": {"x": {"type": "number"}}}'


def channel_of(path: str) -> tuple[str, str, str, str, object]:
    """Read a recording as a tool would that knows nothing of us, and decode a message of ours by what the file says."""
    with Path(path).open("rb") as opened:
        for schema, channel, message in make_reader(opened).iter_messages(topics=["pose"]):
            encoding = channel.message_encoding
            decoded = json.loads(message.data) if encoding == "json" else message.data
            if schema is None:
                return encoding, "", "", "", decoded
            return encoding, schema.name, schema.encoding, json.loads(schema.data)["type"], decoded
    raise AssertionError("there is no message")


@pytest.mark.parametrize(
    ("topic", "expected"),
    [
        ('type = "poses:Pose"', ("json", "Pose", "jsonschema", "object", {"x": 0.0, "y": 1.5})),
        ('schema = "pose.schema.json"', ("json", "Pose", "jsonschema", "object", {"x": 0.0, "y": 1.5})),
        ('encoding = "json"', ("json", "", "", "", {"x": 0.0, "y": 1.5})),
        ('encoding = "lcm"', ("lcm", "", "", "", b'{"x": 0.0, "y": 1.5}')),
    ],
)
def test_encodings_and_schemas_of_the_file_are_in_the_recording(
    worldline: Command, tmp_path: Path, topic: str, expected: tuple[object, ...]
) -> None:
    (tmp_path / "pose.schema.json").write_text(POSE_SCHEMA)
    plain = worldline("run", write(tmp_path, "source", "reader"), "--executor", "in-process", "--record", "plain.mcap")
    file = write(tmp_path, "source", "reader", more=f"[topics.pose]\n{topic}\n")
    code, out, err = worldline("run", file, "--executor", "in-process", "--record", "told.mcap")
    assert (code, err) == (0, "")
    assert channel_of("told.mcap") == expected
    assert channel_of("plain.mcap") == ("", "", "", "", b'{"x": 0.0, "y": 1.5}')
    assert out.split()[-1] == plain[1].split()[-1]  # The digest doesn't know of it.
    assert worldline("digest", "told.mcap")[1].split() == out.split()[-1:]


def test_processes_record_it_alike(worldline: Command, tmp_path: Path) -> None:
    file = write(tmp_path, "source", "reader", more='[topics.pose]\ntype = "poses:Pose"\n')
    assert worldline("run", file, "--executor", "in-process", "--record", "one.mcap")[0] == 0
    assert worldline("run", file, "--record", "two.mcap")[0] == 0
    assert Path("one.mcap").read_bytes() == Path("two.mcap").read_bytes()


def test_a_type_that_cant_be_had_is_a_mistake_and_changes_nothing(worldline: Command, tmp_path: Path) -> None:
    file = write(tmp_path, "source", "reader", more='[topics.pose]\ntype = "poses:Pase"\n')
    code, out, err = worldline("run", file, "--executor", "in-process")
    assert (code, out) == (2, "")
    assert "poses has no Pase" in err
    assert names() == set()


def test_a_pipe_that_nobody_reads_keeps_nobody_from_interrupting(tmp_path: Path) -> None:
    file, pipe = write(tmp_path, "noisy", "reader"), tmp_path / "pipe"
    os.mkfifo(pipe)
    held = os.open(pipe, os.O_RDWR | os.O_NONBLOCK)
    room = select.poll()
    room.register(held, select.POLLOUT)
    try:
        with subprocess.Popen(
            [sys.executable, "-m", "worldline", "run", file, "--record", str(pipe), "--until", "100s", "--quiet"],
            cwd=tmp_path,
            stderr=subprocess.PIPE,
            text=True,
        ) as child:
            eventually(lambda: not room.poll(0))
            child.send_signal(signal.SIGINT)
            child.send_signal(signal.SIGTERM)  # Another one: two of a kind are one if the first is still to be heard.
            _, said = child.communicate(timeout=PATIENCE_S)
            assert "can't be written: the reader closed it" in said
            assert child.returncode == 3
    finally:
        os.close(held)
