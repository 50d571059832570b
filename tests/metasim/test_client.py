"""The client is incomplete while it adds transport; once complete, it owns a simulator, and runs it once."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("pydrake", reason="Drake isn't installed; it needs Python 3.12 or newer")

from drake import lcmt_drake_signal, lcmt_point
from pydrake.common.value import AbstractValue
from pydrake.examples import PendulumPlant
from pydrake.systems.framework import Diagram, DiagramBuilder
from pydrake.systems.lcm import LcmPublisherSystem, LcmSubscriberSystem
from pydrake.systems.primitives import ConstantValueSource, ZeroOrderHold

from tests.federation.transports import Strand
from tests.metasim.executors import federation, in_one_process
from tests.metasim.half_process import CASES
from tests.metasim.halves import assemble, discrete, multibody
from worldline import Federation, Participant, Program, clock, run
from worldline.history.journal import Received, Sent
from worldline.metasim import MetasimClient, MetasimServer
from worldline.model import MS, LossError, UsageError

pytestmark = [pytest.mark.timeout(50), pytest.mark.usefixtures("tidy_diagrams")]


def client() -> MetasimClient:
    return MetasimClient("tcp://127.0.0.1:1", "plant")


def speaking(builder: DiagramBuilder, publisher: LcmPublisherSystem) -> None:
    """Give a publisher something to say."""
    source = builder.AddSystem(ConstantValueSource(AbstractValue.Make(lcmt_drake_signal())))
    builder.Connect(source.get_output_port(), publisher.get_input_port())


def built(of: MetasimClient, period: Any = 0.01) -> Diagram:
    builder = DiagramBuilder()
    speaking(builder, of.add_publisher(builder, "STATE", lcmt_drake_signal, period))
    return builder.Build()


def test_a_diagram_lives_in_the_time_of_its_clock() -> None:
    """Its 10 ms are those that the clock shows, whether a federation declares the clock or the client itself."""
    described = clock(offset="5ms", drift="-20%")

    def plant(me: Participant) -> None:
        taking_part = MetasimClient(me)
        simulator = taking_part.complete(built(taking_part))
        taking_part.run()
        assert simulator.get_context().get_time() == pytest.approx(0.085)

    federation = Federation({"plant": Program(plant, publishes=["STATE"], clock=described)})
    outcome = run(federation, "100ms", keep_journals=True)
    sent = [entry.at for entry in outcome.journals["plant"] if isinstance(entry, Sent)]
    assert sent == [round((shown - 5) / 0.8 * MS) for shown in range(10, 90, 10)]

    def connected(server: MetasimServer) -> None:
        taking_part = MetasimClient(server, "plant", clock=described)
        taking_part.complete(built(taking_part))
        taking_part.run()

    with MetasimServer(["plant"], 0.01) as server:
        strand = Strand(lambda: connected(server))
        server.initialize()
        server.advance_to(0.1)
        assert server.finish().digest == outcome.digest
        strand.result()


# --- What may be added, and when ---


def test_nothing_is_added_to_a_complete_client() -> None:
    complete = client()
    complete.complete(built(complete))
    for add in (complete.add_publisher, complete.add_subscriber):
        with pytest.raises(UsageError, match="transport can't be added any more: the client is complete"):
            add(DiagramBuilder(), "MORE", lcmt_drake_signal)
    with pytest.raises(UsageError, match="its LCM object can't be added any more"):
        _ = complete.lcm
    with pytest.raises(UsageError, match="a diagram can't be added any more: the client is complete"):
        complete.complete(built(client()))


def test_an_incomplete_client_cant_run() -> None:
    with pytest.raises(UsageError, match=r"the client is incomplete \(call complete\(diagram\) first\)"):
        client().run()
    with pytest.raises(UsageError, match="the client is incomplete"):
        client().set_monitor(None)


@pytest.mark.parametrize("period", [0.0, -0.01, float("nan"), float("inf"), 1, "0ms", "often", [], 1e-12], ids=str)
def test_periods_that_arent_possible(period: Any) -> None:
    with pytest.raises(UsageError):
        client().add_publisher(DiagramBuilder(), "STATE", lcmt_drake_signal, period)


def built_builder() -> DiagramBuilder:
    builder = DiagramBuilder()
    builder.AddSystem(ConstantValueSource(AbstractValue.Make(lcmt_drake_signal())))
    builder.Build()
    return builder


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"builder": None}, "None isn't a DiagramBuilder"),
        ({"builder": built_builder()}, r"the builder has built its diagram already \(add transport before Build"),
        *(({"channel": channel}, "name a channel") for channel in ("", "a\nb", "x" * 300, 7, None)),
        *(
            ({"kind": kind}, "isn't a type of messages")
            for kind in (int, "lcmt_drake_signal", None, lcmt_drake_signal())
        ),
    ],
)
def test_transport_that_isnt_possible(given: dict[str, Any], problem: str) -> None:
    how = {"builder": DiagramBuilder(), "channel": "STATE", "kind": lcmt_drake_signal, **given}
    for add in (client().add_publisher, client().add_subscriber):
        with pytest.raises(UsageError, match=problem):
            add(how["builder"], how["channel"], how["kind"])


def test_one_channel_has_one_type() -> None:
    listening, builder = client(), DiagramBuilder()
    listening.add_subscriber(builder, "STATE", lcmt_drake_signal).set_name("first")
    listening.add_subscriber(builder, "STATE", lcmt_drake_signal).set_name("second")
    with pytest.raises(UsageError, match="'STATE' is subscribed to as lcmt_drake_signal and as lcmt_point"):
        listening.add_subscriber(builder, "STATE", lcmt_point)
    builder.Build()


# --- Completing it ---


def test_diagrams_that_cant_be_completed() -> None:
    for given in (DiagramBuilder(), None, "plant"):
        with pytest.raises(UsageError, match=r"complete takes a diagram, not .* \(complete\(builder.Build\(\)\)\)"):
            client().complete(given)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="nothing connects its diagram with the run"):
        client().complete(built(client()))
    mine = client()
    kept = built(mine)
    with pytest.raises(UsageError, match=r"LcmPublisherSystem\(STATE\) isn't in the diagram"):
        mine.complete(built(client()))
    with pytest.raises(UsageError, match="complete takes a period for `lcm` only"):
        mine.complete(kept, period=0.01)
    mine.complete(kept)


@pytest.mark.parametrize("half", [multibody, discrete], ids=["multibody", "discrete"])
def test_a_period_that_isnt_a_multiple_of_the_step(half: Any) -> None:
    step = {"multibody": 0.001, "discrete": 0.01}[half.__name__]
    mine = client()
    diagram, _ = assemble(
        half(),
        lambda builder: (
            mine.add_publisher(builder, "STATE", lcmt_drake_signal, step * 2.5),
            mine.add_subscriber(builder, "COMMAND", lcmt_drake_signal),
        ),
    )
    named = {"multibody": "2.5ms isn't a multiple of the diagram's step, 1ms", "discrete": "25ms isn't a multiple"}
    with pytest.raises(UsageError, match=named[half.__name__]):
        mine.complete(diagram)


def test_a_continuous_plant_publishes_when_it_likes() -> None:
    mine, builder = client(), DiagramBuilder()
    speaking(builder, mine.add_publisher(builder, "STATE", lcmt_drake_signal, 0.007))
    builder.AddSystem(PendulumPlant())
    builder.AddSystem(ZeroOrderHold(0.01, 1))
    mine.complete(builder.Build())


def test_a_subscriber_that_was_renamed() -> None:
    mine, builder = client(), DiagramBuilder()
    subscriber = builder.AddSystem(LcmSubscriberSystem.Make("COMMAND", lcmt_drake_signal, mine.lcm))
    subscriber.set_name("commands")
    builder.ExportOutput(subscriber.get_output_port())
    with pytest.raises(UsageError, match="it isn't known which channel 'commands' subscribes to"):
        mine.complete(builder.Build())


# --- Running it ---


def test_nobody_listens_there() -> None:
    mine = MetasimClient("tcp://127.0.0.1:1", "plant", patience_s=0.01)
    mine.complete(built(mine))
    with pytest.raises(LossError):
        mine.run()


def test_a_server_and_a_client_in_one_process() -> None:
    with MetasimServer(["plant"], 0.01) as server:
        mine = MetasimClient(server, "plant")
        simulator = mine.complete(built(mine))
        strand = Strand(mine.run)
        server.advance_to(0.1)
        server.finish()
        strand.result()
    assert simulator.get_context().get_time() == 0.1
    with pytest.raises(UsageError, match="plant: a client runs once"):
        mine.run()


def test_what_it_subscribes_to_besides() -> None:
    with MetasimServer(["plant"], 0.01) as server:
        mine, builder = MetasimClient(server, "plant", subscribes=["MORE"]), DiagramBuilder()
        speaking(builder, mine.add_publisher(builder, "STATE", lcmt_drake_signal, 0.01))
        mine.add_subscriber(builder, "COMMAND", lcmt_drake_signal)
        mine.complete(builder.Build())
        strand = Strand(mine.run)
        server.initialize(patience_s=30)
        subscriptions = server.server.ask(lambda: list(server.server.host.arbiter.members["plant"].subscriptions))
        server.finish()
        strand.result()
    assert subscriptions == ["COMMAND", "MORE"]


def test_it_leaves_nothing_behind() -> None:
    """A client, its simulator and its diagram are gone when nobody holds them; `tidy_diagrams` looks at their files."""
    for _ in range(3):
        with MetasimServer(["plant"], 0.01) as server:
            mine = MetasimClient(server, "plant")
            mine.complete(built(mine))
            mine.set_monitor(lambda context, held=mine: None)
            strand = Strand(mine.run)
            server.advance_to(0.02)
            server.finish()
            strand.result()


def test_an_existing_diagram_sends_the_same_messages_on_the_same_channels() -> None:
    journals = []
    for way in ("known", "own", "own, known"):
        outcome = run(federation(CASES["discrete"], {}, way=way), "100ms", keep_journals=True)
        journals.append(outcome.journals)
    assert journals[0] == journals[1] == journals[2]
    topics = {entry.topic for entry in journals[0]["plant"] if isinstance(entry, Sent)}
    assert topics == {"STATE"}
    assert any(isinstance(entry, Received) for entry in journals[0]["plant"])


@pytest.mark.parametrize("period", [0.01, None])
def test_a_participant_that_doesnt_declare_what_it_hears(period: float | None) -> None:
    def plant(me: Participant) -> None:
        mine, builder = MetasimClient(me), DiagramBuilder()
        speaking(builder, mine.add_publisher(builder, "STATE", lcmt_drake_signal, period))
        mine.add_subscriber(builder, "COMMAND", lcmt_drake_signal)
        mine.complete(builder.Build())
        mine.run()

    federated = Federation({"plant": Program(plant, publishes=["STATE"])})
    if period is None:
        with pytest.raises(UsageError, match="plant: it subscribes to COMMAND, which its declaration doesn't"):
            run(federated, "20ms")
    else:
        assert run(federated, "20ms").now == 20 * MS


def test_the_digest_is_the_same_with_and_without_a_monitor() -> None:
    _, digest = in_one_process(CASES["discrete"], "50ms")
    assert digest == run(federation(CASES["discrete"], {}), "50ms").digest
