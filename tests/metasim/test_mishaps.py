"""A client fails, or is killed or stopped in the middle of a step: everybody ends, and hears who it was, and when."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import weakref
from collections.abc import Callable
from pathlib import Path

import pytest

pytest.importorskip("pydrake", reason="Drake isn't installed; it needs Python 3.12 or newer")

from drake import lcmt_drake_signal, lcmt_point
from pydrake.common.value import AbstractValue
from pydrake.systems.framework import Context, DiagramBuilder, LeafSystem
from pydrake.systems.primitives import ConstantValueSource

from tests.federation.transports import PROMPT_S, ServerClock, Strand, brief, eventually
from tests.metasim.executors import served
from tests.metasim.half_process import CASES
from tests.metasim.halves import CHANNELS, State, take_part
from worldline import connect
from worldline.federation.peer_process import is_stopped
from worldline.federation.server.limits import Limits
from worldline.metasim import MetasimClient, MetasimServer
from worldline.model import MS, ModelError, PeerError, WorldlineError

pytestmark = [pytest.mark.timeout(50), pytest.mark.usefixtures("tidy_diagrams")]

PAIR = CASES["discrete"]


def half(server: MetasimServer, name: str, dawdle: Callable[[], object] = lambda: None) -> list[State]:
    return take_part(MetasimClient(server, name), PAIR.half(name), *CHANNELS[name], dawdle=dawdle)


def raised_by(server: MetasimServer) -> WorldlineError:
    with pytest.raises(WorldlineError) as caught, server:
        server.advance_to(0.2)
    return caught.value


def time_of(server: MetasimServer, name: str) -> int:
    """Return how far the server knows a client to have come."""
    return server.server.ask(lambda: server.server.host.arbiter.time_of(name))


# --- In processes of their own ---

VICTIM = """
import sys, time
from tests.metasim.half_process import CASES
from tests.metasim.halves import CHANNELS, take_part
from worldline.metasim import MetasimClient

steps = 0

def get_stuck():
    global steps
    steps += 1
    if steps == 6:  # Inside AdvanceTo, at 50 ms.
        print("stuck", flush=True)
        time.sleep(60)

take_part(MetasimClient(sys.argv[1], "plant"), CASES["discrete"].plant, *CHANNELS["plant"], dawdle=get_stuck)
"""


@pytest.mark.long
@pytest.mark.once
@pytest.mark.parametrize(
    ("sign", "cause"),
    [
        (signal.SIGKILL, "its connection was closed"),
        (signal.SIGINT, "it was interrupted"),
        (signal.SIGSTOP, "nothing was heard from it for"),
    ],
    ids=lambda given: given.name if isinstance(given, signal.Signals) else "",
)
def test_a_process_is_lost_in_the_middle_of_a_step(
    sign: signal.Signals, cause: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    brief(monkeypatch)  # One that is stopped doesn't go.
    clock = ServerClock()
    server = MetasimServer(list(CHANNELS), "10ms", limits=Limits(silence_s=8.0))
    monkeypatch.setattr(server.server, "_clock", clock)
    server.open()
    other = Strand(lambda: half(server, "controller"))
    command = [sys.executable, "-c", VICTIM, str(server.address)]
    root = Path(__file__).parents[2]
    with subprocess.Popen(command, cwd=root, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as victim:
        try:
            advancing = Strand(lambda: raised_by(server))
            assert victim.stdout is not None
            assert victim.stdout.readline() == "stuck\n"
            eventually(lambda: time_of(server, "plant") == 50 * MS)  # Its pulse tells that, a moment later.
            os.kill(victim.pid, sign)
            if sign == signal.SIGSTOP:
                eventually(lambda: is_stopped(victim.pid))
                clock.skip(server.server, 9.0)
            for told in (advancing.result(PROMPT_S), other.failure(PROMPT_S)):
                assert isinstance(told, WorldlineError)
                assert (told.participant, told.at) == ("plant", 50 * MS)
                assert cause in str(told)
        finally:
            victim.kill()


# --- In threads of this one ---


def test_a_diagram_that_fails_over_a_connection() -> None:
    def fail(steps: list[int] = []) -> None:  # noqa: B006 - it counts.
        steps.append(0)
        if len(steps) == 4:
            raise KeyError("the plant's")

    server = served(PAIR)
    server.open()
    strands = {
        "plant": Strand(lambda: half(server, "plant", fail)),
        "controller": Strand(lambda: half(server, "controller")),
    }
    told = raised_by(server)
    own = strands["plant"].failure()
    assert isinstance(own, ModelError)
    assert str(own).startswith('plant at 30ms: its diagram raised KeyError: "the plant\'s", in test_mishaps.py, line ')
    for error in (told, strands["controller"].failure()):
        assert isinstance(error, WorldlineError)
        assert (error.participant, error.at) == ("plant", 30 * MS)
        assert 'KeyError: "the plant\'s", in test_mishaps.py' in str(error)


def test_another_type_on_a_channel_is_reported_where_it_arrives() -> None:
    server = served(PAIR)
    server.open()

    def talk() -> None:
        with connect(server.server, "plant", publishes=["STATE"], subscribes=["COMMAND"]) as me:
            me.advance("5ms")
            me.publish("STATE", lcmt_point().encode())
            me.advance("100ms")

    plant, controller = Strand(talk), Strand(lambda: half(server, "controller"))
    told = raised_by(server)
    own = controller.failure()
    assert isinstance(own, PeerError)
    assert "controller at 15ms: it can't read what plant has sent on 'STATE' at 5ms" in str(own)
    for error in (told, plant.failure()):
        assert isinstance(error, WorldlineError)
        assert (error.participant, error.at) == ("controller", 15 * MS)
        assert "what plant has sent on 'STATE' at 5ms" in str(error)


@pytest.mark.parametrize("is_resident", [True, False])
def test_everybody_says_that_a_client_failed_when_its_simulator_did(is_resident: bool) -> None:
    """Its update at 50 ms fails, when its participant has been let go on to 60 ms."""

    class Failing(LeafSystem):
        def __init__(self) -> None:
            super().__init__()
            this = weakref.proxy(self)
            self.DeclarePeriodicUnrestrictedUpdateEvent(0.01, 0.0, lambda context, _: this.update(context))

        def update(self, context: Context) -> None:
            if context.get_time() > 0.045:
                raise ValueError("it fell")

    def fail() -> None:
        client = MetasimClient(server if is_resident else server.address, "plant")
        builder = DiagramBuilder()
        builder.AddSystem(Failing())
        publisher = client.add_publisher(builder, "STATE", lcmt_drake_signal, 0.01)
        source = builder.AddSystem(ConstantValueSource(AbstractValue.Make(lcmt_drake_signal())))
        builder.Connect(source.get_output_port(), publisher.get_input_port())
        client.complete(builder.Build())
        client.run()

    server = served(PAIR)
    server.open()
    failing, other = Strand(fail), Strand(lambda: half(server, "controller"))
    told = [raised_by(server), failing.failure(), other.failure()]
    assert [(str(each).partition(": ")[0], "ValueError: it fell" in str(each)) for each in told] == [
        ("plant at 50ms", True)
    ] * 3
