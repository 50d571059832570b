"""`worldline metasim serve`, and a public LCM beside any federation."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from mcap.reader import make_reader

from tests.cli.test_run import Command, digest_in, worldline
from tests.federation.transports import PATIENCE_S, Strand
from worldline import Federation, Network, Participant, Program, connect, link, run
from worldline.metasim import Send, drive
from worldline.model import MS, Message

pytestmark = pytest.mark.timeout(55)
__all__ = ["worldline"]

STEP = 10 * MS


class Counter:
    """A simulator that says at every step how much it has heard."""

    def __init__(self, channel: str) -> None:
        self._channel = channel
        self._heard = 0
        self._now = 0

    def begin(self, now: int, send: Send) -> None:
        self._send = send
        send(self._channel, b"begin", now)

    def due(self) -> int:
        return self._now + STEP

    def advance_to(self, time: int) -> None:
        if time == self._now + STEP:
            self._now = time
            self._send(self._channel, b"%d" % self._heard, time)

    def receive(self, messages: list[Message]) -> None:
        self._heard += sum(len(message.payload) for message in messages)


CHANNELS = {"plant": ("STATE", "COMMAND"), "controller": ("COMMAND", "STATE")}


def take_part(address: str, name: str) -> Callable[[], None]:
    published, heard = CHANNELS[name]

    def act() -> None:
        with connect(address, name, publishes=[published], subscribes=[heard]) as me:
            drive(me, Counter(published))

    return act


def in_one_process() -> str:
    def program(name: str) -> Program:
        published, heard = CHANNELS[name]

        def run(me: Participant) -> None:
            drive(me, Counter(published))

        return Program(run, publishes=[published], subscribes=[heard])

    network = Network(default=link("5ms"))
    return run(Federation({name: program(name) for name in CHANNELS}, network=network), "1s").digest.hex()


@pytest.mark.parametrize("clients", [["plant", "controller"], ["2", "--no-record"]])
def test_simulators_that_somebody_else_starts_run_as_one(clients: list[str], tmp_path: Path) -> None:
    options = ["--delay", "5ms", "--until", "1s", "--listen", "tcp://127.0.0.1:0", "--lcm", "run.lcmlog"]
    child = subprocess.Popen(
        [sys.executable, "-m", "worldline", "metasim", "serve", *clients, *options],
        cwd=tmp_path,
        env=dict(os.environ),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert child.stdout is not None
    with child.stdout:
        try:
            line = child.stdout.readline()
            found = re.fullmatch(r"metasim on (\S+), waiting for (controller, plant|2 more)\n", line)
            assert found, line
            for strand in [Strand(take_part(found[1], name)) for name in CHANNELS]:
                strand.result()
            said = child.stdout.read()
            assert child.wait(PATIENCE_S) == 0
        finally:
            child.kill()
            child.wait(PATIENCE_S)
    assert digest_in(said) == in_one_process()
    assert "public LCM run.lcmlog: 402 messages" in said  # 202 are sent, and 200 delivered.
    assert (tmp_path / "run.lcmlog").stat().st_size
    if "--no-record" not in clients:
        with (tmp_path / "metasim.mcap").open("rb") as file:
            summary = make_reader(file).get_summary()
        assert summary is not None
        assert "lcm" in {channel.message_encoding for channel in summary.channels.values()}


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["plant", "controller"], "Missing option '--delay'"),
        (["plant", "--delay", "0ms"], "a latency is at least 1ns"),
        (["plant", "plant", "--delay", "1ms"], "two participants are named 'plant'"),
        (["2", "--delay", "1ms"], "a recording needs the clients' names"),
        (["0", "--delay", "1ms", "--no-record"], "the roster is empty"),
        (["plant", "--delay", "1ms", "--link", "plant=1ms"], "--link plant=1ms isn't a link"),
        (["plant", "--delay", "1ms", "--link", "plant:pant=1ms"], "there is no participant 'pant'"),
        (["plant", "--delay", "1ms", "--lcm", "http://there"], "http://there"),
    ],
)
def test_what_cant_be_served_is_refused_at_once(worldline: Command, arguments: list[str], problem: str) -> None:
    code, out, err = worldline("metasim", "serve", *arguments, "--listen", "tcp://127.0.0.1:0")
    assert (code, out) == (2, "")
    assert problem in err
    assert list(Path().iterdir()) == []


FILE = """
name = "pair"
[lcm]
public = "pair.lcmlog"
[topics.STATE]
encoding = "lcm"
type = "pair:lcmt_state"
[[participants]]
name = "plant"
entry = "pair:plant"
publishes = ["STATE"]
[[participants]]
name = "controller"
entry = "pair:controller"
publishes = []
subscribes = ["STATE"]
"""

PAIR = """
class lcmt_state:  # As lcm-gen makes them.
    __slots__ = ["position"]
    __typenames__ = ["double"]
    __dimensions__ = [None]

    @staticmethod
    def _get_packed_fingerprint():
        return b"12345678"

def plant(me):
    while not me.ended:
        me.publish("STATE", b"12345678--------")
        me.advance(by="10ms")

def controller(me):
    list(me.messages())
"""


def test_a_federations_file_names_a_public_lcm_and_lcm_types(worldline: Command, tmp_path: Path) -> None:
    (tmp_path / "pair.toml").write_text(FILE)
    (tmp_path / "pair.py").write_text(PAIR)
    arguments = ("run", str(tmp_path / "pair.toml"), "--until", "100ms", "--executor", "in-process")
    code, out, err = worldline(*arguments, "--lcm", "second.lcmlog", "--lcm-serve", "127.0.0.1:0")
    assert (code, err) == (0, "")
    assert out.count(": 21 messages") == 3  # The last is sent at the end, and not delivered.
    assert Path("pair.lcmlog").read_bytes() == Path("second.lcmlog").read_bytes()
    with Path("pair.mcap").open("rb") as file:
        summary = make_reader(file).get_summary()
    assert summary is not None
    schemas = {schema.name: schema for schema in summary.schemas.values()}
    assert b"double position;" in schemas["pair.lcmt_state"].data
    assert {channel.message_encoding for channel in summary.channels.values() if "STATE" in channel.topic} == {"lcm"}


def test_a_public_lcm_that_cant_be_opened_is_refused_before_the_run(worldline: Command, tmp_path: Path) -> None:
    (tmp_path / "pair.toml").write_text(FILE)
    (tmp_path / "pair.py").write_text(PAIR)
    code, out, err = worldline("run", str(tmp_path / "pair.toml"), "--set", "lcm.public=nowhere/pair.lcmlog")
    assert (code, out) == (2, "")
    assert "nowhere/pair.lcmlog" in err
    assert list(Path().iterdir()) == []


@pytest.mark.parametrize("executor", ["in-process", "processes"])
def test_names_that_lcm_has_no_room_for_are_refused_before_the_run(
    worldline: Command, tmp_path: Path, executor: str
) -> None:
    channel = "S" * 50
    (tmp_path / "pair.toml").write_text(FILE.replace("STATE", channel))
    (tmp_path / "pair.py").write_text(PAIR)
    code, out, err = worldline("run", str(tmp_path / "pair.toml"), "--executor", executor)
    assert (code, out) == (2, "")
    assert f"'{channel}/plant>controller' can't name an LCM channel: it has 67 bytes" in err
    assert list(Path().iterdir()) == []


def test_only_federations_have_a_public_lcm(worldline: Command) -> None:
    code, _, err = worldline("run", "raft", "--lcm", "raft.lcmlog")
    assert code == 2
    assert "--lcm is for federations" in err
