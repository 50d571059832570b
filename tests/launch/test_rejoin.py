"""Processes of participants that are killed are started again, and the run ends as if nothing had happened."""

from __future__ import annotations

import contextlib
import os
import shutil
from pathlib import Path

import pytest

from worldline import run
from worldline.federation.outcome import FederationOutcome
from worldline.launch.file.setup import read_setup
from worldline.launch.launcher import Launch, LaunchOptions, SpecialRoles, federation_of
from worldline.model import LossError, ModelError, NonDeterminism
from worldline.recording import Recorder

pytestmark = pytest.mark.usefixtures("tidy")

# Each life of a participant leaves a mark: so it knows, as no program should, whether it has lived before.
MORTAL = """
import atexit
import os
import signal
from pathlib import Path

HERE = Path(__file__).parent

def lives(name):
    mark = HERE / f"{name}.lives"
    mark.write_text((mark.read_text() if mark.exists() else "") + "x")
    return len(mark.read_text())

def die():
    os.kill(os.getpid(), signal.SIGKILL)

def play(me, deaths=(), shift=None, until=None):
    life = lives(me.name) if deaths else 0
    total = 0
    while not me.ended and (until is None or me.now < until * 1_000_000):
        if life and life <= len(deaths) and me.now >= deaths[life - 1] * 1_000_000:
            die()
        if me.now % 10_000_000 == 0:
            print(f"at {me.now // 1_000_000} with {total}")
        odd = shift is not None and life > 1 and me.now >= shift * 1_000_000
        me.publish(me.name, b"%d" % (total + odd))
        total += sum(int(message.payload) % 5 + 1 for message in me.advance(by="1ms"))

def healthy(me):
    play(me)

def mortal(me):
    play(me, (7, 20))

def doomed(me):
    play(me, (7,) * 9)

def changed(me):
    play(me, (30,), shift=4)

def rewriting(me):
    if lives("rewriting") == 1:
        text = Path(__file__).read_text()
        while me.now < 9_000_000:
            me.publish(me.name, b"0")
            me.advance(by="1ms")
        Path(__file__).write_text(text + CHANGE)
        die()
    while not me.ended:
        me.publish(me.name, b"%d" % ODD)
        me.advance(by="1ms")

ODD = 0
CHANGE = "\\nODD = 1\\n"

def restorable(me):
    total = int(me.restored or b"0")
    life = lives(me.name)
    while not me.ended:
        if life == 1 and me.now >= 25_000_000:
            die()
        if me.now % 10_000_000 == 0:
            print(f"at {me.now // 1_000_000}, in life {life}")
        if me.now % 8_000_000 == 0:
            me.snapshot(b"%d" % total)
        me.publish(me.name, b"%d" % total)
        total += sum(int(message.payload) % 5 + 1 for message in me.advance(by="1ms"))

def leaving(me):
    play(me, until=10)

def mortal_later(me):
    play(me, (25,) * 9)

def mortal_once(me):
    play(me, (25,))

def mortal_but_its_twin(me):
    play(me, () if "WORLDLINE_TWIN" in os.environ else (25,))

def failing(me):
    play(me, until=20)
    raise RuntimeError("out of ideas")

def lingering(me):
    play(me)
    atexit.register(die)
"""

FILE = """
until = "40ms"
on_loss = "rejoin"
[link]
latency = "2ms"
[[participants]]
name = "ann"
entry = "{module}:{ann}"
subscribes = ["bob"]
[[participants]]
name = "bob"
entry = "{module}:{bob}"
subscribes = ["ann"]
"""


class Stage:
    """A folder with a federation, and what its participants print."""

    def __init__(self, folder: Path, module: str) -> None:
        self.folder = folder
        self.module = module
        (folder / f"{module}.py").write_text(MORTAL)
        self.lines: list[tuple[str, str]] = []

    def launch(self, ann: str = "healthy", bob: str = "healthy", **options: object) -> FederationOutcome:
        (self.folder / "run.toml").write_text(FILE.format(module=self.module, ann=ann, bob=bob))
        setup = read_setup(self.folder / "run.toml")
        launch = Launch(setup, LaunchOptions(hear=lambda name, _, line: self.lines.append((name, line)), **options))  # type: ignore[arg-type]
        outcome = launch.run()
        launch.check_ends(outcome)
        return outcome

    def undisturbed(self, ann: str = "healthy", **options: object) -> FederationOutcome:
        (self.folder / "run.toml").write_text(FILE.format(module=self.module, ann=ann, bob="healthy"))
        return run(federation_of(read_setup(self.folder / "run.toml")), **options)  # type: ignore[arg-type]

    def said(self, name: str) -> list[str]:
        return [line for who, line in self.lines if who == name]


@pytest.fixture
def stage(tmp_path: Path, request: pytest.FixtureRequest) -> Stage:
    return Stage(tmp_path, f"mortal_{abs(hash(request.node.name)) % 10**9}")


def test_one_that_is_killed_twice_ends_as_if_nothing_had_happened(stage: Stage, tmp_path: Path) -> None:
    """Digest, recording and what it prints are those of the undisturbed run."""
    plan = read_setup_plan(stage)
    recorders = [Recorder(tmp_path / f"{name}.mcap", plan, federation="run") for name in ("calm", "wild")]
    calm = stage.undisturbed(observer=recorders[0])
    wild = stage.launch("mortal", observer=recorders[1])
    for recorder, outcome in zip(recorders, (calm, wild), strict=True):
        recorder.close(dropped=outcome.dropped)
    assert wild.digest == calm.digest
    assert (tmp_path / "calm.mcap").read_bytes() == (tmp_path / "wild.mcap").read_bytes()
    killed = "worldline: its process was killed by SIGKILL, and is started again"
    assert stage.said("ann").count(killed) == 2
    shown = [line for line in stage.said("ann") if line != killed]
    assert shown == [line for line in shown if line.startswith("at ")]
    assert [line.split()[1] for line in shown] == ["0", "10", "20", "30", "40"]  # Once each.


def read_setup_plan(stage: Stage) -> object:
    (stage.folder / "run.toml").write_text(FILE.format(module=stage.module, ann="healthy", bob="healthy"))
    return read_setup(stage.folder / "run.toml").plan


def test_those_who_share_a_process_come_back_together(stage: Stage) -> None:
    assert stage.launch("mortal", "mortal", workers=1).digest == stage.undisturbed().digest


def test_a_twin_goes_on_when_its_first_copy_has_come_back(stage: Stage, tmp_path: Path) -> None:
    roles = SpecialRoles(twinned=("ann",))
    twinned = stage.launch("mortal_but_its_twin", roles=roles, journal=tmp_path / "run.journal")
    assert twinned.digest == stage.undisturbed().digest
    assert not (tmp_path / "run.journal").exists()


def test_one_that_is_killed_after_it_has_left_isnt_missed(stage: Stage) -> None:
    assert stage.launch("lingering").digest == stage.undisturbed().digest


def test_two_deaths_at_the_same_message_end_the_run(stage: Stage) -> None:
    with pytest.raises(ModelError, match=r"ann at \d+ms: it was lost twice at the same message.*of bob on bob, which"):
        stage.launch("doomed")


def test_a_program_that_does_otherwise_the_second_time_is_found_out(stage: Stage) -> None:
    with pytest.raises(NonDeterminism, match=r"ann at 4ms: run again, it doesn't say the same: message 4 on ann"):
        stage.launch("changed")


def test_one_that_is_killed_before_it_has_joined_is_started_again(stage: Stage) -> None:
    """Not forever, though."""
    dies_early = (
        MORTAL + '\nif lives("import") <= LIVES and not os.environ.get("WORLDLINE_NAME") == "bob":\n    die()\n'
    )
    (stage.folder / f"{stage.module}.py").write_text(dies_early.replace("LIVES", "2"))
    assert stage.launch().digest == Stage(stage.folder, f"{stage.module}_calm").undisturbed().digest
    (stage.folder / "import.lives").unlink()
    (stage.folder / f"{stage.module}.py").write_text(dies_early.replace("LIVES", "99"))
    with pytest.raises(LossError, match="ann: its process was killed by SIGKILL before it had joined"):
        stage.launch()


def test_a_run_that_was_killed_is_taken_up_from_its_journal(stage: Stage, tmp_path: Path) -> None:
    """As far as the journal goes: here, until one of its participants was lost for good."""
    journal = tmp_path / "run.journal"
    with pytest.raises(ModelError):
        stage.launch("doomed", journal=journal)
    assert journal.exists()
    said: list[str] = []
    assert stage.launch(journal=journal, say=said.append).digest == stage.undisturbed().digest
    assert said[0].startswith(f"resuming {journal} at ")
    assert not journal.exists()


@pytest.mark.long
@pytest.mark.parametrize("options", [{"workers": 1}, {"roles": SpecialRoles(twinned=("ann", "bob"))}], ids=str)
def test_one_that_had_left_isnt_started_when_a_run_is_taken_up(
    stage: Stage, tmp_path: Path, options: dict[str, object]
) -> None:
    journal = tmp_path / "run.journal"
    with pytest.raises(ModelError, match=r"bob at .*: it was lost twice"):
        stage.launch("leaving", "mortal_later", journal=journal, **options)
    stage.lines.clear()
    assert stage.launch("leaving", journal=journal, **options).digest == stage.undisturbed("leaving").digest
    assert not stage.said("ann")
    assert stage.said("bob")[-1].startswith("at 40 with")


def test_one_that_had_left_isnt_started_again_with_those_who_share_its_process(stage: Stage) -> None:
    outcome = stage.launch("leaving", "mortal_once", workers=1)
    assert outcome.digest == stage.undisturbed("leaving").digest
    assert stage.said("ann") == ["at 0 with 0"]


def test_a_run_that_was_killed_when_all_had_left_is_over_as_soon_as_it_is_taken_up(
    stage: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal, kept = tmp_path / "run.journal", tmp_path / "kept.journal"

    def keep(*_stats: os.stat_result) -> bool:
        """Copy the journal when it is about to be removed, so that it is as if the run had been killed just before."""
        shutil.copy(journal, kept)
        return True

    with monkeypatch.context() as removing:
        removing.setattr(os.path, "samestat", keep)
        expected = stage.launch(journal=journal).digest
    kept.rename(journal)
    stage.lines.clear()
    assert stage.launch(journal=journal).digest == expected
    assert not stage.lines
    assert not journal.exists()


def test_a_run_in_which_a_program_has_failed_can_be_taken_up_once_that_is_mended(stage: Stage, tmp_path: Path) -> None:
    journal = tmp_path / "run.journal"
    with pytest.raises(ModelError, match="out of ideas"):
        stage.launch("failing", journal=journal)
    assert stage.launch(journal=journal).digest == stage.undisturbed().digest


def test_a_run_that_is_taken_up_listens_where_it_did_before(stage: Stage, tmp_path: Path) -> None:
    """Whoever was started by others tries there again."""
    addresses: list[str] = []
    for ann in ("doomed", "healthy"):
        with contextlib.suppress(ModelError):
            stage.launch(
                ann, journal=tmp_path / "run.journal", opened=lambda address, _: addresses.append(str(address))
            )
    assert addresses[0] == addresses[1]
    assert not Path(addresses[0].removeprefix("unix://")).exists()


def test_a_run_that_is_taken_up_waits_for_nobody_who_has_left(stage: Stage, tmp_path: Path) -> None:
    journal = tmp_path / "run.journal"
    with pytest.raises(ModelError, match="out of ideas"):
        stage.launch("failing", "leaving", journal=journal)
    awaited: list[str] = []
    stage.launch(
        "healthy",
        "leaving",
        journal=journal,
        roles=SpecialRoles(awaited=("bob",)),
        opened=lambda _, names: awaited.append(f"{names}"),
    )
    assert awaited == ["[]"]


def test_one_that_is_restored_prints_what_it_hasnt_printed_yet(stage: Stage) -> None:
    assert stage.launch("restorable").digest == stage.undisturbed().digest
    shown = [line for line in stage.said("ann") if line.startswith("at ")]
    assert shown == ["at 0, in life 1", "at 10, in life 1", "at 20, in life 1", "at 30, in life 2", "at 40, in life 2"]


def test_those_who_share_a_process_are_restored_too(stage: Stage) -> None:
    assert stage.launch("restorable", "healthy", workers=1).digest == stage.undisturbed().digest


def test_one_that_comes_back_with_other_code_is_warned_of_before_it_is_compared(stage: Stage) -> None:
    (stage.folder / "run.toml").write_text(FILE.format(module=stage.module, ann="rewriting", bob="healthy"))
    failures: list[object] = []

    def hear(_: str, __: int | None, line: str) -> None:
        if line == "worldline: its code isn't what it was when it joined, so it may not do the same again":
            failures.append(launch.server.host.failure)

    launch = Launch(read_setup(stage.folder / "run.toml"), LaunchOptions(hear=hear))
    with pytest.raises(NonDeterminism, match=r"ann at 0s: run again.*\(its code has been changed since\)"):
        launch.run()
    assert failures == [None]
