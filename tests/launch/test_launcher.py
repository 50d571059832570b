"""The launcher: a file becomes processes and one outcome, the same as in one process; guests too, and nothing stays."""

from __future__ import annotations

import contextlib
import re
import sys
from pathlib import Path

import pytest

from worldline import run
from worldline.federation.outcome import FederationOutcome
from worldline.federation.server import limits as open_files
from worldline.federation.server.operating import look_at
from worldline.history.outcome import Status
from worldline.launch import launcher
from worldline.launch.file.setup import Setup, read_setup, stated_by
from worldline.launch.launcher import Launch, LaunchOptions, federation_of
from worldline.lock.why.reasons import Situation
from worldline.lock.why.words import in_words
from worldline.model import MS, ConfigurationError, Interrupted, LossError, ModelError, UsageError

pytestmark = pytest.mark.usefixtures("tidy")

PARTY = """
import sys

def host(self):
    self.invite("early", at="20ms")
    for word in self.messages(until="60ms"):
        print(f"hears {word.payload.decode()} of {word.sender}")
        self.publish("talk", b"welcome, " + word.payload[:30])

def guest(self):
    print(f"comes at {self.now}")
    self.publish("talk", self.stream("words").choice([b"hello", b"hi", b"good day"]))
    self.advance(to="50ms")

def broken(self):
    sys.exit("no, thanks")
"""

FILE = """
name = "party"
seed = 4
[link]
latency = "uniform(2ms, 7ms)"
duplication = 0.5
[[participants]]
name = "host"
entry = "party_{number}:host"
subscribes = ["talk"]
controls = true
[[participants]]
name = "early"
entry = "party_{number}:guest"
subscribes = {{ talk = "newest(2)" }}
guest = true
"""


def party(folder: Path, text: str = FILE) -> Setup:
    """Write the files; each folder's module has a name of its own, since all of them may be imported here."""
    number = re.sub(r"\W", "_", folder.name)
    (folder / f"party_{number}.py").write_text(PARTY)
    file = folder / "party.toml"
    file.write_text(text.format(number=number))
    return read_setup(file)


def launch(setup: Setup, **options: object) -> tuple[FederationOutcome, list[str]]:
    heard: list[str] = []
    launched = Launch(
        setup, LaunchOptions(hear=lambda name, now, text: heard.append(f"{name} at {now}: {text}"), **options)
    )  # type: ignore[arg-type]
    return launched.run(), sorted(heard)


def test_processes_give_what_one_process_gives(tmp_path: Path) -> None:
    setup = party(tmp_path)
    expected = run(federation_of(setup))
    assert expected.times == {"host": 60 * MS, "early": 50 * MS}
    first, said = launch(setup)
    second, said_again = launch(setup, shake=11, address=f"unix://{tmp_path}/socket")
    for outcome in (first, second):
        assert (outcome.digest, outcome.times, outcome.dropped) == (expected.digest, expected.times, expected.dropped)
    assert said == said_again
    assert f"early at {20 * MS}: comes at {20 * MS}" in said


def test_processes_live_by_the_clocks_that_the_file_gives_them(tmp_path: Path) -> None:
    wander = 'clock = { offset = "1ms", drift = "-5%", wander = "walk(1%, every=2ms, within=20%)" }\n'
    text = FILE.replace("guest = true", f"guest = true\n{wander}").replace("{ o", "{{ o").replace('%)" }', '%)" }}')
    setup = party(tmp_path, text)
    clocked = PARTY.replace('self.advance(to="50ms")', 'self.advance(to="50ms", clock="local")')
    next(tmp_path.glob("party_*.py")).write_text(clocked)
    expected = run(federation_of(setup))
    assert expected.times["early"] not in (50 * MS, 49 * MS)
    for options in ({}, {"workers": 1}):
        assert launch(setup, **options)[0].digest == expected.digest


SLOW_GUEST = """
[[participants]]
name = "slow"
command = ["sleep", "1000"]
guest = true
"""


UNCONNECTED = """
[[participants]]
name = "silent"
command = ["sleep", "1000"]
[[participants]]
name = "slow"
entry = "loads_for_ever:run"
"""


def test_a_process_that_runs_and_doesnt_connect_is_named_with_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(launcher, "_UNCONNECTED_S", 0.0)
    (tmp_path / "loads_for_ever.py").write_text("import time\ntime.sleep(1000)\nrun = None\n")
    heard: dict[str, str] = {}
    known: list[Situation] = []
    launched = Launch(
        party(tmp_path, FILE + UNCONNECTED),
        LaunchOptions(hear=lambda name, _, text: heard.setdefault(name, text) and None),
    )

    def watch(_: Status) -> None:
        if heard.keys() >= {"silent", "slow"} and launched.server.host.missing() == ["silent", "slow"]:
            known.append(look_at(launched.server))
            launched.interrupt(Interrupted("enough"))

    with pytest.raises(Interrupted, match="enough"):
        launched.run(watch)
    runs = r"its process \d+ has been running for \d+ s, and hasn't connected"
    assert re.fullmatch(rf"worldline: {runs}: its program has to call worldline.connect\(\), .*", heard["silent"])
    assert re.fullmatch(rf"worldline: {runs}: loads_for_ever:run is still being loaded .*", heard["slow"])
    lines = in_words(known[0])
    assert lines[2:4] == ["the run begins when silent, slow have joined", "  here: host"]
    assert re.match(rf"  silent: {runs}", lines[4])
    assert re.match(rf"  slow: {runs}", lines[5])


def test_a_guest_that_the_file_doesnt_have_isnt_waited_for(tmp_path: Path) -> None:
    problem = r"host at 0s: it invites 'late', and there is no participant of that name \(guests are early\)"
    setup = party(tmp_path, FILE)
    (module,) = tmp_path.glob("party_*.py")
    module.write_text(PARTY.replace('"early", at', '"late", at'))
    with pytest.raises(UsageError, match=problem):
        launch(setup)


def test_a_guest_that_nobody_invites_may_be_too_slow_to_come(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launcher, "_LINGER_S", 0.5)
    setup = party(tmp_path, FILE + SLOW_GUEST)
    assert launch(setup)[0].times == {"host": 60 * MS, "early": 50 * MS}


@pytest.mark.long
def test_a_guest_that_fails_before_it_is_invited_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launcher, "_LINGER_S", 0.5)
    odd = (
        FILE
        + """
[[participants]]
name = "odd"
command = ["{python}", "-c", "raise SystemExit('not me')"]
guest = true
"""
    )
    setup = party(tmp_path, odd.replace("{python}", sys.executable))
    with pytest.raises(
        LossError, match=r"odd: its process ended with exit code 1 before .* \(its last line was: not me\)"
    ):
        launch(setup)


def test_a_last_line_is_told_no_longer_than_a_person_can_take_in(tmp_path: Path) -> None:
    odd = f"""
[[participants]]
name = "odd"
command = ["{sys.executable}", "-c", "raise RuntimeError('ü' * 5000)"]
guest = true
"""
    with pytest.raises(LossError, match=r"its last line was: RuntimeError: ü+\.\.\.\)$") as lost:
        launch(party(tmp_path, FILE + odd))
    assert len(str(lost.value)) < 600


def test_a_program_that_exits_is_a_failure(tmp_path: Path) -> None:
    setup = party(tmp_path, FILE.replace(":guest", ":broken"))
    with pytest.raises(ModelError, match=r"early at 20ms: its program raised SystemExit: no, thanks"):
        launch(setup)


def test_the_file_decides_what_is_declared(tmp_path: Path) -> None:
    text = (
        FILE
        + """
[[participants]]
name = "camera"
entry = "party_{number}:guest"
publishes = ["image"]
period = "20ms"
latency_least = "2ms"
"""
    )
    setup = party(tmp_path, text)
    camera = stated_by(setup.parts["camera"])
    assert camera == {"publishes": ("image",), "period": 20 * MS, "latency_least": 2 * MS}
    assert stated_by(setup.parts["early"])["subscribes"] == {"talk": "newest(2)"}
    made = federation_of(setup)
    assert {name for name, program in made.programs.items() if program.guest} == {"early"}
    assert made.plan() == setup.plan


def test_who_cant_be_started_from_here_is_named(tmp_path: Path) -> None:
    by_hand = party(tmp_path, FILE + '[[participants]]\nname = "visitor"\n')
    with pytest.raises(UsageError, match=r"doesn't say how to start visitor \(.*`worldline serve`\)"):
        launch(by_hand)
    with pytest.raises(UsageError, match="visitor has no Python entry point"):
        federation_of(by_hand)


@pytest.mark.parametrize("entry", ["guest", "broken"])
def test_they_meet_at_a_socket_of_their_own(
    tmp_path: Path, short_folder: Path, monkeypatch: pytest.MonkeyPatch, entry: str
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(short_folder))
    launched = Launch(party(tmp_path, FILE.replace(":guest", f":{entry}")), LaunchOptions(hear=lambda *_: None))
    kind, place = launched.server.address.kind, Path(launched.server.address.place)
    assert (kind, place.parent.parent, place.parent.stat().st_mode & 0o777) == ("unix", short_folder, 0o700)
    with pytest.raises(ModelError) if entry == "broken" else contextlib.nullcontext():
        launched.run()
    assert not place.parent.exists()


def test_nothing_stays_of_a_run_that_is_refused(
    tmp_path: Path, short_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(short_folder))
    with pytest.raises(ConfigurationError, match="a pace of -1 isn't possible"):
        launch(party(tmp_path), pace=-1)
    assert list(short_folder.iterdir()) == []


def test_the_path_of_a_socket_is_never_too_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    deep = tmp_path / ("d" * 100)
    deep.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(deep))
    launch(party(tmp_path))
    assert list(deep.iterdir()) == []


def test_too_few_files_are_named_before_anybody_is_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(open_files, "files_max", lambda: 12)
    told = r"2 processes need about \d+ open files, and this process may have 12: raise the limit with `ulimit -n \d+`"
    with pytest.raises(UsageError, match=told):
        launch(party(tmp_path))


def test_an_address_that_is_taken_starts_nobody(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("")
    with pytest.raises(UsageError, match="can't listen on unix:"):
        launch(party(tmp_path), address=f"unix://{tmp_path}/taken")
