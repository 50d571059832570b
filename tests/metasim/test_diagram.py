"""A diagram that is driven: when exactly it sends, what it sees of what arrives, and what it may not do."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import pytest

pytest.importorskip("pydrake", reason="Drake isn't installed; it needs Python 3.12 or newer")

from drake import lcmt_drake_signal, lcmt_point
from pydrake.common.value import AbstractValue
from pydrake.lcm import DrakeLcm
from pydrake.systems.framework import Context, DiagramBuilder, EventStatus, LeafSystem
from pydrake.systems.lcm import LcmPublisherSystem, LcmSubscriberSystem
from pydrake.systems.primitives import ConstantValueSource, LogVectorOutput

from worldline import MS, SECOND, Federation, Network, Participant, Program, link, run
from worldline.federation.outcome import FederationOutcome
from worldline.history.journal import Received, Sent
from worldline.metasim import MetasimClient
from worldline.metasim.diagram import EventTimes
from worldline.model import BrokenPromise, ModelError, PeerError, UsageError

pytestmark = [pytest.mark.timeout(50), pytest.mark.usefixtures("tidy_diagrams")]

Act = Callable[[MetasimClient, DiagramBuilder], Any]


def message(value: float = 0.0) -> lcmt_drake_signal:
    made = lcmt_drake_signal()
    made.dim, made.val, made.coord = 1, [value], [""]
    return made


def publisher(client: MetasimClient, builder: DiagramBuilder, channel: str = "OUT", period: Any = 0.01) -> Any:
    """Add a publisher that has something to say."""
    system = client.add_publisher(builder, channel, lcmt_drake_signal, period)
    source = builder.AddSystem(ConstantValueSource(AbstractValue.Make(message())))
    builder.Connect(source.get_output_port(), system.get_input_port())
    return system


def talking(me: Participant, payload: bytes = message(1.0).encode()) -> None:
    """Say something once in 10 ms."""
    while not me.ended:
        me.publish("IN", payload)
        me.advance(by=10 * MS)


def driven(
    act: Act,
    until: str = "50ms",
    *,
    delay: str = "10ms",
    other: Callable[[Participant], None] = talking,
    period: Any = None,
) -> FederationOutcome:
    """Run a diagram as "plant", with another who talks to it. What `act` returns is called with the simulator."""

    def plant(me: Participant) -> None:
        client, builder = MetasimClient(me), DiagramBuilder()
        prepare = act(client, builder)
        simulator = client.complete(builder.Build(), period=period)
        if callable(prepare):
            prepare(simulator)
        client.run()

    programs = {
        "plant": Program(plant, subscribes=["IN"]),
        "other": Program(other, publishes=["IN"], subscribes=["OUT"]),
    }
    return run(Federation(programs, network=Network(default=link(delay))), until, keep_journals=True)


def sent(outcome: FederationOutcome, topic: str = "OUT") -> list[int]:
    entries = outcome.journals["plant"]
    return [entry.at for entry in entries if isinstance(entry, Sent) and entry.topic == topic]


class Acting(LeafSystem):
    """Calls a function once in a period: to publish, or as an update."""

    def __init__(self, act: Callable[[Context], object], period: float, *, update: bool = False) -> None:
        super().__init__()
        if update:
            self.DeclarePeriodicUnrestrictedUpdateEvent(period, 0.0, lambda context, _: _nothing(act(context)))
        else:
            self.DeclarePeriodicPublishEvent(period, 0.0, lambda context: _nothing(act(context)))


def _nothing(_: object) -> None:
    """Drake takes what a handler returns for a status."""


# --- When it sends ---


def test_publishers_whose_floats_share_a_nanosecond() -> None:
    """3 × 0.1 is more than 30 × 0.01, by the last bit; Drake has two times there, the run has one."""

    def act(client: MetasimClient, builder: DiagramBuilder) -> None:
        publisher(client, builder, "OUT", 0.01)
        publisher(client, builder, "SLOW", 0.1)

    outcome = driven(act, "1s")
    assert sent(outcome) == [step * 10 * MS for step in range(101)]
    assert sent(outcome, "SLOW") == [step * 100 * MS for step in range(11)]


def test_after_each_step() -> None:
    """Its steps are those of what happens in it, and it stops where something arrives."""

    def act(client: MetasimClient, builder: DiagramBuilder) -> None:
        publisher(client, builder, period=None)
        client.add_subscriber(builder, "IN", lcmt_drake_signal)
        builder.AddSystem(Acting(lambda _: None, 0.004, update=True))

    arrivals = [at * MS + 3_700_000 for at in (0, 10, 20)]
    steps = [at * MS for at in range(0, 31, 4)]
    stops = [30 * MS]
    looked = sent(driven(act, "30ms", delay="3.7ms"))
    assert set(looked) >= {*arrivals, *steps, *stops}
    assert looked == sorted(looked)


@pytest.mark.parametrize("delay", ["100ms", "3.7ms"])
@pytest.mark.parametrize("says_when", [False, True])
def test_what_an_update_publishes_is_sent_when_it_does(delay: str, says_when: bool) -> None:
    def act(client: MetasimClient, builder: DiagramBuilder) -> None:
        lcm = client.lcm

        def publish(context: Context) -> None:
            lcm.Publish("OUT", b"by hand", context.get_time() if says_when else None)

        client.add_subscriber(builder, "IN", lcmt_drake_signal)
        builder.AddSystem(Acting(publish, 0.01, update=True))

    assert sent(driven(act, "30ms", delay=delay)) == [0, 10 * MS, 20 * MS]


def test_what_an_update_publishes_is_sent_before_what_is_published_at_the_end_of_its_step() -> None:
    def act(client: MetasimClient, builder: DiagramBuilder) -> None:
        lcm = client.lcm
        system = builder.AddSystem(LcmPublisherSystem.Make("OUT", lcmt_drake_signal, lcm, 0.01))
        source = builder.AddSystem(ConstantValueSource(AbstractValue.Make(message())))
        builder.Connect(source.get_output_port(), system.get_input_port())
        builder.AddSystem(Acting(lambda _: lcm.Publish("OUT", message().encode()), 0.01, update=True))

    assert sent(driven(act, "20ms", delay="100ms")) == [0, 0, 10 * MS, 10 * MS, 20 * MS]


def test_an_update_of_one_that_promises_publishes_too_early() -> None:
    def act(client: MetasimClient, builder: DiagramBuilder) -> None:
        lcm = client.lcm
        builder.AddSystem(Acting(lambda _: lcm.Publish("OUT", b"by hand"), 0.01, update=True))

    with pytest.raises(BrokenPromise, match="plant at 0s: a send at 0s breaks its promise until 10ms"):
        driven(act, period=0.01)


def test_a_time_of_publishing_that_isnt_now() -> None:
    def act(client: MetasimClient, builder: DiagramBuilder) -> None:
        lcm = client.lcm
        builder.AddSystem(Acting(lambda _: lcm.Publish("OUT", b"by hand", time_sec=0.5), 0.01))

    with pytest.raises(UsageError, match=r"plant at 0s: it publishes on 'OUT' with a time_sec of 0.5, which isn't now"):
        driven(act)


def test_what_a_monitor_publishes_counts_from_when_it_does() -> None:
    def act(client: MetasimClient, builder: DiagramBuilder) -> Any:
        lcm = client.lcm
        publisher(client, builder, "SLOW")
        return lambda _: client.set_monitor(lambda context: lcm.Publish("OUT", b"seen"))

    outcome = driven(act, "30ms", delay="100ms")
    assert sent(outcome) == sent(outcome, "SLOW") == [0, 10 * MS, 20 * MS, 30 * MS]


def test_a_forced_publish_before_it_is_due() -> None:
    def act(client: MetasimClient, builder: DiagramBuilder) -> Any:
        system = publisher(client, builder, period=0.05)

        def force(context: Context) -> None:
            if 0.02 <= context.get_time() < 0.021:
                system.ForcedPublish(system.GetMyContextFromRoot(context))

        builder.AddSystem(Acting(lambda _: None, 0.02))
        return lambda _: client.set_monitor(force)

    with pytest.raises(BrokenPromise) as caught:
        driven(act, "100ms", delay="100ms")
    assert "plant at 20ms: a send at 20ms breaks its promise until 50ms" in str(caught.value)
    assert caught.value.facts == {"promise": 50 * MS, "attempt": 20 * MS}


def test_one_that_is_initialized_before_sends_nothing_twice() -> None:
    def act(client: MetasimClient, builder: DiagramBuilder) -> Any:
        publisher(client, builder)
        return lambda simulator: simulator.Initialize()

    assert sent(driven(act, "20ms")) == [0, 10 * MS, 20 * MS]


def test_what_is_published_before_the_run_isnt_sent() -> None:
    def act(client: MetasimClient, builder: DiagramBuilder) -> Any:
        publisher(client, builder)
        return lambda simulator: simulator.get_system().ForcedPublish(simulator.get_context())

    assert sent(driven(act, "20ms")) == [0, 10 * MS, 20 * MS]


def test_it_begins_late_on_its_own_floats() -> None:
    """35 × 0.01 is more than 0.35; what is due then is published then."""

    def late(me: Participant) -> None:
        client, builder = MetasimClient(me), DiagramBuilder()
        publisher(client, builder)
        client.complete(builder.Build())
        client.run()

    def inviting(me: Participant) -> None:
        me.invite("plant", "350ms")
        me.advance("400ms")

    programs = {"other": Program(inviting, controls=True), "plant": Program(late, guest=True)}
    outcome = run(Federation(programs), "400ms", keep_journals=True)
    assert sent(outcome) == [at * 10 * MS for at in range(35, 41)]


# --- What it sees ---


class Reading(LeafSystem):
    """Notes what has arrived when it is updated."""

    def __init__(self, period: float, offset: float) -> None:
        super().__init__()
        self.read: list[tuple[float, float]] = []
        self.DeclareAbstractInputPort("message", AbstractValue.Make(lcmt_drake_signal()))
        self.DeclareDiscreteState(1)
        this = weakref.proxy(self)
        self.DeclarePeriodicDiscreteUpdateEvent(period, offset, lambda context, _: this.note(context))

    def note(self, context: Context) -> None:
        read = self.EvalAbstractInput(context, 0).get_value()
        self.read.append((context.get_time(), read.val[0] if read.dim else -1.0))


@pytest.mark.parametrize("offset", [0.0, 0.005, 0.3])
@pytest.mark.parametrize("known", [True, False])
def test_an_update_sees_what_arrives_at_its_very_time(offset: float, known: bool) -> None:
    found: list[Reading] = []

    def act(client: MetasimClient, builder: DiagramBuilder) -> None:
        reading = builder.AddSystem(Reading(0.01, offset))
        subscriber = client.add_subscriber(builder, "IN", lcmt_drake_signal)
        builder.Connect(subscriber.get_output_port(), reading.get_input_port())
        if not known:
            publisher(client, builder, period=None)
        found.append(reading)

    def counting(me: Participant) -> None:
        while not me.ended:
            me.publish("IN", message(me.now / 1e9).encode())
            me.advance(by=10 * MS)

    driven(act, "1s", delay="5ms" if offset == 0.005 else "10ms", other=counting)
    read = dict(found[0].read)
    assert len(read) >= 69
    delay = 0.005 if offset == 0.005 else 0.01
    assert [(at, value) for at, value in read.items() if at >= delay and abs(at - value - delay) > 1e-9] == []


def test_one_that_only_listens() -> None:
    times: list[float] = []

    def act(client: MetasimClient, builder: DiagramBuilder) -> Any:
        client.add_subscriber(builder, "IN", lcmt_drake_signal)
        return lambda _: client.set_monitor(lambda context: times.append(context.get_time()))

    outcome = driven(act, "45ms")
    assert times == [0.0, 0.01, 0.02, 0.03, 0.04, 0.045]
    assert outcome.members["plant"].at == 45 * MS


@pytest.mark.parametrize("promises", [False, True])
def test_what_listens_on_its_lcm_may_answer_at_once(promises: bool) -> None:
    heard: list[bytes] = []

    def act(client: MetasimClient, builder: DiagramBuilder) -> None:
        lcm = weakref.proxy(client.lcm)

        def answer(data: bytes) -> None:
            heard.append(data)
            lcm.Publish("OUT", b"answer")

        client.lcm.Subscribe("IN", answer)
        publisher(client, builder, "SLOW", 0.1)

    if promises:
        with pytest.raises(BrokenPromise, match="plant at 10ms: a send at 10ms breaks its promise until 100ms"):
            driven(act, "45ms", period=0.1)
    else:
        assert sent(driven(act, "45ms")) == [10 * MS, 20 * MS, 30 * MS, 40 * MS]
        assert heard == [message(1.0).encode()] * 4


def test_what_listens_on_its_lcm_may_have_something_published() -> None:
    def act(client: MetasimClient, builder: DiagramBuilder) -> Any:
        system = weakref.proxy(publisher(client, builder, period=None))
        contexts: list[Any] = []
        client.lcm.Subscribe("IN", lambda _: system.ForcedPublish(system.GetMyContextFromRoot(contexts[0])))
        return lambda simulator: contexts.append(simulator.get_context())

    forced = sent(driven(act, "25ms", delay="10ms"))
    assert forced == [0, 10 * MS, 10 * MS, 20 * MS, 20 * MS, 25 * MS]


@pytest.mark.parametrize("own", [False, True])
@pytest.mark.parametrize("cpp", [False, True])
def test_what_it_cant_read(own: bool, cpp: bool) -> None:
    def act(client: MetasimClient, builder: DiagramBuilder) -> None:
        if own:
            system = LcmSubscriberSystem.Make("IN", lcmt_drake_signal, client.lcm, use_cpp_serializer=cpp)
            builder.ExportOutput(builder.AddSystem(system).get_output_port())
        else:
            client.add_subscriber(builder, "IN", lcmt_drake_signal, use_cpp_serializer=cpp)

    for payload in (lcmt_point().encode(), b"", message().encode()[:-3]):
        with pytest.raises(PeerError) as caught:
            driven(act, other=lambda me, payload=payload: talking(me, payload))  # type: ignore[misc]
        assert "plant at 10ms: it can't read what other has sent on 'IN' at 0s: " in str(caught.value)


def test_its_own_channels_are_its_own() -> None:
    """It publishes and subscribes on one channel, and hears only what others say."""

    def act(client: MetasimClient, builder: DiagramBuilder) -> None:
        publisher(client, builder, "IN")
        client.add_subscriber(builder, "IN", lcmt_drake_signal)

    outcome = driven(act, "25ms")
    received = [entry for entry in outcome.journals["plant"] if isinstance(entry, Received)]
    assert {entry.message.sender for entry in received} == {"other"}


# --- What it may not do ---


def test_what_a_system_raises_names_the_client_and_the_time() -> None:
    def fail(context: Context) -> None:
        if context.get_time() > 0.015:
            raise KeyError("the system's")

    def act(client: MetasimClient, builder: DiagramBuilder) -> None:
        publisher(client, builder, period=0.05)
        builder.AddSystem(Acting(fail, 0.02))

    with pytest.raises(ModelError) as caught:
        driven(act, "100ms", delay="100ms")
    assert str(caught.value).startswith(
        'plant at 20ms: its diagram raised KeyError: "the system\'s", in test_diagram.py'
    )
    assert isinstance(caught.value.__cause__, KeyError)


def test_an_assertion_of_drake() -> None:
    lcm = DrakeLcm("memq://")

    def fail(context: Context) -> None:
        if context.get_time() > 0.015:
            lcm.Publish("", b"a channel needs a name")

    def act(client: MetasimClient, builder: DiagramBuilder) -> None:
        publisher(client, builder)
        builder.AddSystem(Acting(fail, 0.02))

    with pytest.raises(ModelError, match=r"plant at 20ms: Drake has given up: Failure at .*channel"):
        driven(act)


def test_what_a_monitor_raises() -> None:
    def fail(context: Context) -> None:
        if context.get_time() > 0.015:
            raise ValueError("the monitor's")

    def act(client: MetasimClient, builder: DiagramBuilder) -> Any:
        publisher(client, builder)
        return lambda _: client.set_monitor(fail)

    with pytest.raises(ModelError, match="plant at 20ms: its diagram raised ValueError: the monitor's"):
        driven(act, delay="100ms")


def test_a_monitor_that_returns_something_else() -> None:
    def act(client: MetasimClient, builder: DiagramBuilder) -> Any:
        publisher(client, builder)
        return lambda _: client.set_monitor(lambda context: "fine")

    with pytest.raises(UsageError, match=r"plant at 0s: its monitor returned 'fine'.* \(return an EventStatus"):
        driven(act)


def test_a_monitor_that_was_replaced() -> None:
    def act(client: MetasimClient, builder: DiagramBuilder) -> Any:
        publisher(client, builder)
        return lambda simulator: simulator.set_monitor(lambda context: None)

    with pytest.raises(
        UsageError, match=r"plant at 0s: its simulator's monitor has been replaced.* set_monitor of the"
    ):
        driven(act)


def test_a_time_that_was_set() -> None:
    def act(client: MetasimClient, builder: DiagramBuilder) -> Any:
        publisher(client, builder)
        return lambda simulator: simulator.get_mutable_context().SetTime(5.0)

    with pytest.raises(
        UsageError, match=r"plant.*: its simulator stands at 5.0 seconds already, and the run begins at 0"
    ):
        driven(act)


def test_one_that_ends_itself_leaves() -> None:
    def act(client: MetasimClient, builder: DiagramBuilder) -> Any:
        system = publisher(client, builder)

        def look(context: Context) -> EventStatus:
            if context.get_time() >= 0.02:
                return EventStatus.ReachedTermination(system, "it fell")
            return EventStatus.DidNothing()

        return lambda _: client.set_monitor(look)

    outcome = driven(act)
    assert sent(outcome) == [0, 10 * MS, 20 * MS]
    assert outcome.members["plant"].at == 20 * MS
    assert outcome.members["other"].at == 50 * MS


# --- What happens at one instant, whatever the floats ---


class Keeper(LeafSystem):
    """Notes at each of its updates what it sees."""

    def __init__(self, kind: str, seen: list[tuple[int, float]]) -> None:
        super().__init__()
        self._seen = seen
        self.DeclareDiscreteState([0.0])
        self.DeclareAbstractInputPort("in", AbstractValue.Make(lcmt_drake_signal()))
        if kind == "unrestricted":
            self.DeclarePeriodicUnrestrictedUpdateEvent(0.03, 0.0, lambda context, _: self._look(context))
        else:
            self.DeclarePeriodicDiscreteUpdateEvent(0.03, 0.0, lambda context, _: self._look(context))
        if kind == "two":  # Then nobody knows of either.
            self.DeclarePeriodicDiscreteUpdateEvent(0.09, 0.0, lambda context, _: None)

    def _look(self, context: Context) -> None:
        signal = self.get_input_port().Eval(context)
        self._seen.append((round(context.get_time() * 1000), signal.val[0] if signal.dim else 0.0))


@pytest.mark.parametrize(
    "monitor", [None, lambda _: None, lambda _: EventStatus.DidNothing()], ids=["none", "silent", "says so"]
)
@pytest.mark.parametrize("kind", ["discrete", "unrestricted", "two"])
def test_an_update_sees_what_arrives_at_its_instant_on_whichever_side_of_it_its_float_lies(
    kind: str, monitor: Callable[[Context], Any] | None
) -> None:
    seen: list[tuple[int, float]] = []

    def client(me: Participant) -> None:
        client, builder = MetasimClient(me), DiagramBuilder()
        keeper = builder.AddSystem(Keeper(kind, seen))
        subscriber = client.add_subscriber(builder, "IN", lcmt_drake_signal)
        builder.Connect(subscriber.get_output_port(), keeper.get_input_port())
        client.complete(builder.Build())
        client.set_monitor(monitor)
        client.run()

    def source(me: Participant) -> None:
        while not me.ended:
            me.publish("IN", message(float(me.now // MS + 30)).encode())
            me.advance(by=30 * MS)

    programs = {"source": Program(source), "client": Program(client, subscribes=["IN"])}
    run(Federation(programs, network=Network(default=link("30ms"))), until="2s")
    assert seen == [(time, float(time)) for time in range(0, 2000, 30)]


@pytest.mark.parametrize("way", ["added", "added beside one per step", "lcm with a period", "lcm without"])
def test_a_publish_comes_before_what_arrives_at_its_instant_whatever_is_known_of_it(way: str) -> None:
    heard: list[tuple[int, float]] = []

    def source(me: Participant) -> None:
        while not me.ended:
            me.publish("IN", message(float(me.now // MS)).encode())
            me.advance(by=10 * MS)

    def relay(me: Participant) -> None:
        client, builder = MetasimClient(me), DiagramBuilder()
        if way.startswith("lcm"):
            inward = builder.AddSystem(LcmSubscriberSystem.Make("IN", lcmt_drake_signal, client.lcm))
            outward = builder.AddSystem(LcmPublisherSystem.Make("OUT", lcmt_drake_signal, client.lcm, 0.01))
        else:
            inward = client.add_subscriber(builder, "IN", lcmt_drake_signal)
            outward = client.add_publisher(builder, "OUT", lcmt_drake_signal, 0.01)
        builder.Connect(inward.get_output_port(), outward.get_input_port())
        if way == "added beside one per step":
            publisher(client, builder, "OTHER", None)
        client.complete(builder.Build(), **({"period": 0.01} if way == "lcm with a period" else {}))
        client.run()

    def sink(me: Participant) -> None:
        for each in me.messages():
            signal = lcmt_drake_signal.decode(each.payload)
            heard.append((each.sent // MS, signal.val[0] if signal.dim else -1.0))

    programs = {
        "source": Program(source, publishes=["IN"]),
        "relay": Program(relay, subscribes=["IN"]),
        "sink": Program(sink, publishes=[], subscribes=["OUT"]),
    }
    run(Federation(programs, network=Network(default=link("20ms"))), until="620ms")
    # What arrives at its instant, sent 20 ms before, is in the publish after that.
    assert heard == [(time, float(max(time - 30, -1))) for time in range(0, 600, 10)]


# --- The same, against a loop by hand ---

Row = tuple[float, ...]
"""A time in ticks, and what was seen then."""


class Node(LeafSystem):
    """Counts its updates, and keeps what it hears; says both, and what it hears now."""

    def __init__(self, step: float, offset: float) -> None:
        super().__init__()
        self.updates: list[Row] = []
        self.DeclareDiscreteState([0.0, -1.0])
        self.DeclareAbstractInputPort("in", AbstractValue.Make(lcmt_drake_signal()))
        this = weakref.proxy(self)
        self.DeclareAbstractOutputPort(
            "message", lambda: AbstractValue.Make(lcmt_drake_signal()), lambda *given: this.say(*given)
        )
        self.DeclareVectorOutputPort("vector", 3, lambda context, output: output.SetFromVector(this.seen(context)))
        self.DeclarePeriodicUnrestrictedUpdateEvent(step, offset, lambda *given: this.update(*given))

    def seen(self, context: Context) -> list[float]:
        heard = self.get_input_port().Eval(context)
        return [*context.get_discrete_state_vector().value(), heard.val[0] if heard.dim else -1.0]

    def say(self, context: Context, output: AbstractValue) -> None:
        said = lcmt_drake_signal()
        said.dim, said.val, said.coord = 3, self.seen(context), [""] * 3
        output.set_value(said)

    def update(self, context: Context, state: Any) -> None:
        count, _, heard = self.seen(context)
        self.updates.append((context.get_time(), heard))
        state.get_mutable_discrete_state().set_value([count + 1, heard])


class Observer(LeafSystem):
    def __init__(self, period: float, offset: float) -> None:
        super().__init__()
        self.rows: list[Row] = []
        self.DeclareVectorInputPort("in", 3)
        this = weakref.proxy(self)
        self.DeclarePeriodicPublishEvent(period, offset, lambda context: this.look(context))

    def look(self, context: Context) -> None:
        self.rows.append((context.get_time(), *self.get_input_port().Eval(context)))


@dataclass(frozen=True)
class Rates:
    """In ticks: how often two nodes publish, are observed and update, from when on, and how long messages take."""

    tick: Fraction  # In seconds.
    publish: int = 1
    observe: int = 1
    delay: int = 1
    update: int = 1
    offset: int = 0

    def are_due(self, period: int, tick: int) -> bool:
        return tick >= self.offset and (tick - self.offset) % period == 0

    def seconds(self, ticks: int) -> float:
        return float(self.tick * ticks)


Seen = dict[str, list[list[Row]]]


def by_hand(rates: Rates, ticks: int) -> Seen:
    """Return what each of two nodes saw: its updates, what was observed of it, and what it published."""
    state = {"a": [0.0, -1.0, -1.0], "b": [0.0, -1.0, -1.0]}
    seen: Seen = {name: [[], [], []] for name in state}
    for tick in range(ticks + 1):
        for name in state:
            if rates.are_due(rates.observe, tick):
                seen[name][1].append((tick, *state[name]))
            if rates.are_due(rates.publish, tick):
                seen[name][2].append((tick, *state[name]))
        if tick == ticks:
            break
        for name, other in ("ab", "ba"):
            for at, count, *_ in seen[other][2]:
                if at + rates.delay == tick:
                    state[name][2] = count
        for name, (count, _, heard) in state.items() if rates.are_due(rates.update, tick) else ():
            seen[name][0].append((tick, heard))
            state[name][:2] = [count + 1, heard]
    return seen


def of_drake(rates: Rates, ticks: int, way: str) -> Seen:
    """Return the same of two diagrams; what was observed is that of an observer in Python and of Drake's logger."""
    seen: Seen = {}

    def at_ticks(rows: list[Row]) -> list[Row]:
        return [(round(at / rates.tick), *map(float, values)) for at, *values in rows]

    def node(me: Participant, name: str, other: str) -> None:
        client, builder = MetasimClient(me), DiagramBuilder()
        period, offset = rates.seconds(rates.publish), rates.seconds(rates.offset)
        node = builder.AddSystem(Node(rates.seconds(rates.update), offset))
        if way == "added":
            outward = client.add_publisher(builder, name, lcmt_drake_signal, period)
            inward = client.add_subscriber(builder, other, lcmt_drake_signal)
        else:
            make = LcmPublisherSystem.Make
            outward = builder.AddSystem(
                make(name, lcmt_drake_signal, client.lcm, publish_period=period, publish_offset=offset)
            )
            inward = builder.AddSystem(LcmSubscriberSystem.Make(other, lcmt_drake_signal, client.lcm))
        builder.Connect(node.get_output_port(0), outward.get_input_port())
        builder.Connect(inward.get_output_port(), node.get_input_port())
        observer = builder.AddSystem(Observer(rates.seconds(rates.observe), offset))
        builder.Connect(node.get_output_port(1), observer.get_input_port())
        sink = None if offset else LogVectorOutput(node.get_output_port(1), builder, rates.seconds(rates.observe))
        simulator = client.complete(builder.Build(), period=period if way == "lcm with a period" else None)
        client.run()
        if sink is not None:
            log = sink.FindLog(simulator.get_context())
            logged = [(at, *row) for at, row in zip(log.sample_times(), log.data().T, strict=True)]
            assert logged == observer.rows
        seen[name] = [at_ticks(node.updates), at_ticks(observer.rows)]

    programs = {
        name: Program(lambda me, names=(name, other): node(me, *names), publishes=[name], subscribes=[other])  # type: ignore[misc]
        for name, other in ("ab", "ba")
    }
    network = Network(default=link(round(rates.tick * rates.delay * SECOND)))
    outcome = run(Federation(programs, network=network), until=round(rates.tick * ticks * SECOND), keep_journals=True)
    for name, rows in seen.items():
        told = [entry for entry in outcome.journals[name] if isinstance(entry, Sent)]
        rows.append(at_ticks([(entry.at / SECOND, *lcmt_drake_signal.decode(entry.payload).val) for entry in told]))
    return seen


def check_rates(rates: Rates, ticks: int = 200) -> None:
    expected = by_hand(rates, ticks)
    # The others know no offset.
    for way in ("lcm without",) if rates.offset else ("added", "lcm with a period", "lcm without"):
        assert of_drake(rates, ticks, way) == expected, way


@pytest.mark.parametrize(
    "rates",
    [
        Rates(Fraction("0.01"), publish=5, observe=3),
        Rates(Fraction("0.01"), publish=10, observe=1, delay=10),
        Rates(Fraction("0.1"), publish=3, observe=7, delay=2),
        # Not whole nanoseconds.
        Rates(Fraction(1, 60)),
        Rates(Fraction(1, 30), publish=1, observe=5, delay=2),
        # With offsets, of one grid and of several.
        Rates(Fraction("0.003"), publish=3, observe=3, delay=3, update=3, offset=1),
        Rates(Fraction("0.0005"), delay=3, offset=1),
        Rates(Fraction("0.01"), publish=5, observe=3, delay=2, offset=7),
        Rates(Fraction(1, 60), publish=3, observe=5, delay=1, offset=40),
    ],
    ids=str,
)
def test_all_publishes_then_arrivals_then_updates(rates: Rates) -> None:
    check_rates(rates)


@pytest.mark.long
@pytest.mark.parametrize("tick", ["0.0001", "0.0003", "0.003", "0.007", "0.02", "0.1", "1/144"])
def test_all_rates_follow_the_rule(tick: str) -> None:
    for publish, observe, delay in ((1, 5, 1), (2, 3, 2), (3, 10, 3), (5, 1, 7), (7, 2, 1), (10, 7, 10), (50, 3, 1)):
        check_rates(Rates(Fraction(tick), publish, observe, delay), ticks=120)
        check_rates(Rates(Fraction(tick), publish, observe, delay, update=publish, offset=1), ticks=120)


@pytest.mark.parametrize("offset", [1 / 60, 0.3, 10.0])
@pytest.mark.parametrize("period", [0.01, 1 / 60, 1 / 144, 5000.0])
def test_the_times_of_a_publisher_are_known_to_the_last_bit(period: float, offset: float) -> None:
    lcm = DrakeLcm("memq://")
    system = LcmPublisherSystem.Make("OUT", lcmt_drake_signal, lcm, publish_period=period, publish_offset=offset)
    (grid,) = EventTimes([system]).publishes
    assert (grid.period, grid.offset) == (period, offset)


@pytest.mark.parametrize(("step", "period"), [(1 / 60, 0.016666667), (0.033333333, 1 / 30)])
def test_periods_that_meet_in_a_nanosecond_with_many_floats_between_them(step: float, period: float) -> None:
    """The update's float lies before the publish's; still it comes after it, and after what arrives then."""
    meeting = round(period * SECOND)
    nodes: list[Node] = []
    rows: list[Row] = []

    def act(client: MetasimClient, builder: DiagramBuilder) -> None:
        node, observer = builder.AddSystem(Node(step, 0.0)), builder.AddSystem(Observer(period, 0.0))
        outward = client.add_publisher(builder, "OUT", lcmt_drake_signal, period)
        inward = client.add_subscriber(builder, "IN", lcmt_drake_signal)
        builder.Connect(node.get_output_port(0), outward.get_input_port())
        builder.Connect(node.get_output_port(1), observer.get_input_port())
        builder.Connect(inward.get_output_port(), node.get_input_port())
        nodes.append(node)
        rows.append(observer.rows)  # type: ignore[arg-type]

    def once(me: Participant) -> None:
        me.publish("IN", message(7.0).encode())

    outcome = driven(act, f"{3 * meeting // 2}ns", delay=f"{meeting}ns", other=once)
    assert round(step * SECOND) == meeting
    assert step < period
    assert nodes[0].updates == [(0.0, -1.0), (step, 7.0)]
    assert rows == [[(0.0, 0.0, -1.0, -1.0), (period, 1.0, -1.0, -1.0)]]
    assert sent(outcome) == [0, meeting]
