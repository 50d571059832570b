"""Running a federation in one process: programs in blocking style, one at a time."""

from __future__ import annotations

import re
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from worldline import Federation, Network, Participant, Program, Rule, RunEnded, check, clock, link, run
from worldline.federation.inprocess import run as inprocess
from worldline.history.outcome import ALL_OTHERS, THE_RUN, Status, WaitReason
from worldline.lock import ledger
from worldline.model import MS, ConfigurationError, ModelError, UsageError
from worldline.processes.executor import Executor


def federation(network: Network | None = None, until: str | None = None, **programs: Program) -> Federation:
    return Federation(programs, network=network or Network(default=link("1ms")), until=until)


def test_a_program_may_run_for_ever_and_is_ended_with_the_run() -> None:
    steps: list[int] = []

    def ticker(self: Participant) -> None:
        while True:
            self.advance(to=self.now + 3 * MS)
            steps.append(self.now)
            self.publish("tick", b"")

    assert run(federation(until="10ms", a=Program(run=ticker))).times == {"a": 10 * MS}
    assert steps == [3 * MS, 6 * MS, 9 * MS, 10 * MS]


def test_after_the_end_every_operation_says_so() -> None:
    raised: list[RunEnded] = []

    def program(self: Participant) -> None:
        assert self.advance(to="1s") == []
        assert self.ended
        for operation in (lambda: self.publish("t", b""), lambda: self.advance(to="2s"), self.next, self.peek):
            with pytest.raises(RunEnded) as info:
                operation()
            raised.append(info.value)

    run(federation(until="10ms", a=Program(run=program)))
    assert len(raised) == 4


def test_messages_iterates_until_the_time_given() -> None:
    seen: list[tuple[int, bytes]] = []

    def sender(self: Participant) -> None:
        for number in range(4):
            self.publish("news", b"%d" % number, at=number * MS)

    def reader(self: Participant) -> None:
        seen.extend((self.now // MS, message.payload) for message in self.messages(until="3ms"))
        assert self.now == 3 * MS

    run(federation(a=Program(run=sender), b=Program(run=reader, subscribes=["news"])))
    assert seen == [(1, b"0"), (2, b"1")]


def test_a_guest_comes_when_it_is_invited() -> None:
    log: list[tuple[str, int]] = []

    def host(self: Participant) -> None:
        self.advance(to="5ms")
        self.invite("guest", at="20ms")
        log.extend((message.payload.decode(), message.arrival // MS) for message in self.messages(until="50ms"))

    def guest(self: Participant) -> None:
        log.append(("here", self.now // MS))
        self.publish("news", b"hello")

    programs = {
        "host": Program(run=host, publishes=[], subscribes=["news"], controls=True),
        "guest": Program(run=guest, guest=True),
    }
    outcome = run(Federation(programs, network=Network(default=link("1ms"))))
    assert log == [("here", 20), ("hello", 21)]
    assert outcome.times == {"guest": 20 * MS, "host": 50 * MS}


def test_a_guest_that_nobody_invites_is_no_part_of_the_run() -> None:
    def never(self: Participant) -> None:
        raise AssertionError

    assert run(federation(a=Program(run=lambda self: None), b=Program(run=never, guest=True))).times == {"a": 0}


def test_inviting_somebody_who_has_no_program_is_the_inviters_mistake() -> None:
    def host(self: Participant) -> None:
        self.invite("stranger", at="20ms")
        self.advance(to="30ms")

    with pytest.raises(UsageError, match=r"host at 0s: it invites 'stranger', and .* \(there are no guests\)"):
        run(federation(host=Program(run=host, controls=True)))
    with pytest.raises(UsageError, match=r"no program of that name \(guests are visitor\)"):
        run(federation(host=Program(run=host, controls=True), visitor=Program(run=host, guest=True)))


def test_a_program_that_raises_ends_the_run_with_its_name_time_and_cause() -> None:
    def broken(self: Participant) -> None:
        self.advance(to="5ms")
        raise ZeroDivisionError("by nought")

    def patient(self: Participant) -> None:
        self.next()

    before = threading.active_count()
    with pytest.raises(ModelError, match="b at 5ms: its program raised ZeroDivisionError: by nought") as info:
        run(federation(a=Program(run=patient, subscribes=["t"]), b=Program(run=broken)))
    assert isinstance(info.value.__cause__, ZeroDivisionError)
    assert threading.active_count() == before


def test_a_programs_own_mistake_comes_through_as_it_is() -> None:
    def hasty(self: Participant) -> None:
        self.advance(to="5ms")
        self.advance(to="4ms")

    with pytest.raises(UsageError, match="a at 5ms: it can't go back to 4ms"):
        run(federation(a=Program(run=hasty)))


def test_a_wait_within_a_duration_ends_that_long_after_now() -> None:
    seen: list[tuple[int, list[bytes]]] = []

    def sender(self: Participant) -> None:
        self.publish("t", b"1", at="25ms")

    def receiver(self: Participant) -> None:
        for _ in range(3):
            batch = self.next(within="10ms")
            seen.append((self.now, [message.payload for message in batch]))
        assert self.peek(within="400us") == 26 * MS + 400_000
        assert [message.payload for message in self.messages(within="7ms")] == []
        seen.append((self.now, []))

    run(federation(a=Program(run=sender), b=Program(run=receiver, subscribes=["t"])))
    assert seen == [(10 * MS, []), (20 * MS, []), (26 * MS, [b"1"]), (33 * MS, [])]


WAITS: dict[str, Callable[[Participant], object]] = {
    "next": lambda me: me.next("100ms"),
    "next after publishing": lambda me: (me.now or me.publish("t", b""), me.next("100ms")),
    "messages": lambda me: list(me.messages("100ms")),
    "peek": lambda me: (me.peek("100ms"), me.now < 100 * MS and me.advance("100ms")),
    "advance": lambda me: me.advance("100ms"),
    "local": lambda me: me.next("100ms", clock="local"),
    "within": lambda me: me.next(within=0 if me.now else "100ms"),
}


@pytest.mark.parametrize("faults", [(), ("1s hang a 1ms",)], ids=["plain", "with faults"])
@pytest.mark.parametrize("wait", WAITS.values(), ids=WAITS)
def test_a_program_that_asks_for_the_present_for_ever_is_told_so(
    wait: Callable[[Participant], object], faults: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ledger, "IDLE_CALLS_MAX", 50)

    def program(self: Participant) -> None:
        while True:
            wait(self)

    made = federation(a=Program(run=program, subscribes=["t"]))
    with pytest.raises(UsageError, match=r'a at 100ms: it has asked 50 times .* 100ms, .* next\(within="100ms"\)'):
        run(replace(made, faults=faults, until="2s"))


@pytest.mark.parametrize("faults", [(), ("1s hang a 1ms",)], ids=["plain", "with faults"])
def test_a_program_that_sends_in_between_isnt_idle(faults: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger, "IDLE_CALLS_MAX", 50)

    def program(self: Participant) -> None:
        for _ in range(120):
            self.publish("t", b"")
            self.advance(by=0)
            self.next(within=0)

    received: list[int] = []
    listener = Program(run=lambda me: received.append(len(me.advance("1s"))), subscribes=["t"])
    run(replace(federation(a=Program(run=program), b=listener), faults=faults, until="2s"))
    assert received == [120]


def test_a_program_that_sends_for_ever_without_going_on_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger, "IDLE_CALLS_MAX", 50)

    def program(self: Participant) -> None:
        while True:
            self.next("100ms")
            self.publish("t", b"")

    with pytest.raises(UsageError, match="a at 100ms: it has asked 500 times"):
        run(federation(a=Program(run=program)))


def test_a_wait_takes_one_limit() -> None:
    with pytest.raises(UsageError, match="a at 0s: a wait takes either `until` or `within`"):
        run(federation(a=Program(run=lambda me: me.next("1ms", within="1ms"))))


def test_a_program_cannot_swallow_the_end_of_a_broken_run() -> None:
    def stubborn(self: Participant) -> None:
        while True:
            try:
                self.next()
            except Exception:  # As bad programs do.
                continue

    def broken(self: Participant) -> None:
        raise ZeroDivisionError

    with pytest.raises(ModelError, match="ZeroDivisionError"):
        run(federation(a=Program(run=stubborn, subscribes=["t"]), b=Program(run=broken)))


def test_a_server_that_waits_for_ever_ends_when_nothing_can_come_any_more() -> None:
    def server(self: Participant) -> None:
        while True:
            for message in self.next():
                self.publish("reply", message.payload)

    def client(self: Participant) -> None:
        self.publish("request", b"1")
        assert [message.payload for message in self.next(until="1s")] == [b"1"]

    outcome = run(federation(c=Program(client, subscribes=["reply"]), s=Program(server, subscribes=["request"])))
    assert outcome.times == {"c": 2 * MS, "s": 1 * MS}


def test_two_that_only_wait_for_each_other_come_to_an_end() -> None:
    def waiter(self: Participant) -> None:
        self.advance(by="1ms")
        assert self.next() == []
        assert self.ended

    assert run(federation(**{n: Program(waiter, subscribes=["t"]) for n in "ab"})).times == {"a": MS, "b": MS}


def test_a_program_that_catches_every_exception_still_comes_to_its_end() -> None:
    def stubborn(self: Participant) -> None:
        while True:
            try:
                self.advance(by="1ms")
            except Exception:  # As bad programs do.
                continue

    assert run(federation(until="5ms", a=Program(stubborn))).times == {"a": 5 * MS}


def test_a_run_is_broken_off_while_a_program_runs_ahead_without_asking() -> None:
    # It listens to nobody, so it never has to ask: only its own calls give a chance to stop it.
    running = threading.Event()

    def endless(self: Participant) -> None:
        while True:
            self.advance(by="1ms")
            if self.now == 1000 * MS:
                running.set()
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(federation(a=Program(endless), b=Program(endless)))
    assert running.is_set()


@pytest.mark.parametrize("code", [None, 0, False])
def test_leaving_python_is_a_normal_end_of_a_program(code: int | None) -> None:
    def quitter(self: Participant) -> None:
        self.advance(to="3ms")
        sys.exit(code)

    assert run(federation(a=Program(quitter))).times == {"a": 3 * MS}


@pytest.mark.parametrize("code", [1, "no, thanks", "", 0.0])
def test_leaving_python_with_a_code_or_a_text_is_a_failure(code: object) -> None:
    def quitter(self: Participant) -> None:
        raise SystemExit(code)

    with pytest.raises(ModelError, match=rf"a at 0s: its program raised SystemExit(: {code})?, in test_inprocess.py"):
        run(federation(a=Program(quitter)))


def test_the_error_says_in_which_line_a_program_raised() -> None:
    def broken(self: Participant) -> None:
        raise ZeroDivisionError

    with pytest.raises(ModelError, match=r"test_inprocess\.py, line [0-9]+"):
        run(federation(a=Program(broken)))


def test_what_buffers_drop_is_counted_with_the_rest() -> None:
    def sender(self: Participant) -> None:
        for _ in range(5):
            self.publish("news", b"")

    def reader(self: Participant) -> None:
        assert len(self.advance(to="5ms")) == 1

    outcome = run(federation(a=Program(sender), b=Program(reader, subscribes={"news": "mailbox"})))
    assert outcome.dropped == {("b", "news", "dropped by its buffer"): 4}


def test_guests_have_links_of_their_own() -> None:
    heard: list[int] = []

    def host(self: Participant) -> None:
        self.invite("guest", at="10ms")
        heard.extend(message.arrival // MS for message in self.advance(to="50ms"))

    programs = {
        "host": Program(host, publishes=[], subscribes=["news"], controls=True),
        "guest": Program(lambda self: self.publish("news", b""), guest=True),
    }
    network = Network(default=link("1ms"), rules=(Rule(sender="guest", link=link("7ms")),))
    run(Federation(programs, network=network))
    assert heard == [17]


def test_leaving_a_loop_over_messages_behind_in_time_ends_it() -> None:
    def reader(self: Participant) -> None:
        for _ in self.messages(until="5ms"):
            self.advance(to="20ms")

    def sender(self: Participant) -> None:
        self.publish("news", b"")

    assert run(federation(a=Program(sender), b=Program(reader, subscribes=["news"]))).times["b"] == 20 * MS


def test_a_step_is_given_as_a_time_or_as_a_distance() -> None:
    def program(self: Participant) -> None:
        self.advance(by="3ms")
        self.advance(by=2 * MS)
        with pytest.raises(UsageError, match="either `to` or `by`"):
            self.advance()

    assert run(federation(a=Program(program))).times == {"a": 5 * MS}


def test_topics_may_come_from_an_iterator_and_last_for_several_runs() -> None:
    made = federation(a=Program(lambda self: self.publish("x", b""), publishes=(topic for topic in ["x"])))
    assert run(made).digest == run(made).digest


@pytest.mark.parametrize(
    ("programs", "problem"),
    [
        ({"a": print}, r"a: the function print isn't a Program \(write Program\(print, ...\)\)"),
        ([("a", Program(print))], "isn't a mapping"),
    ],
)
def test_what_isnt_a_federation_is_refused(programs: object, problem: str) -> None:
    with pytest.raises(ConfigurationError, match=problem):
        run(Federation(programs))  # type: ignore[arg-type]


def test_generators_and_coroutines_are_refused_since_they_would_never_run() -> None:
    def generator(self: Participant) -> Iterator[None]:
        yield

    async def coroutine(self: Participant) -> None:
        pass

    for program in (generator, coroutine):
        with pytest.raises(ConfigurationError, match="would never run"):
            Program(program)
    with pytest.raises(UsageError, match="which never ran"):
        run(federation(a=Program(lambda self: generator(self))))


@pytest.mark.parametrize(
    ("program", "problem"),
    [
        (lambda: Program(run=print, subscribes="news"), "topics must be a list"),
        (lambda: Program(run=print, publishes="news"), "topics must be a list"),
        (lambda: Program(run=print, subscribes={"news": "biggest(3)"}), "isn't a buffer"),
        (lambda: Program(run=print, publishes=[""]), "can't name a topic"),
        (lambda: Program(run=print, latency_least="-1ms"), "isn't the least latency"),
    ],
)
def test_a_bad_declaration_is_refused_before_anything_runs(program: Callable[[], Program], problem: str) -> None:
    def never(self: Participant) -> None:
        raise AssertionError

    with pytest.raises(ConfigurationError, match=problem):
        run(federation(a=Program(run=never), b=program()))


def test_named_streams_are_each_participants_own_and_depend_on_the_seed() -> None:
    drawn: dict[tuple[int, str], list[float]] = {}
    for seed in (0, 0, 1):

        def program(self: Participant, seed: int = seed) -> None:
            wind, rain = self.stream("wind"), self.stream("rain")
            values = [wind.random(), rain.gauss(0, 1), wind.random(), float(rain.randrange(100))]
            assert drawn.setdefault((seed, self.name), values) == values

        run(Federation({name: Program(run=program) for name in "ab"}, seed=seed))
    assert len({tuple(values) for values in drawn.values()}) == 4


def test_an_interrupted_run_ends_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The signal is seen when the program hands the baton back: the scheduler has it, and doesn't know."""
    unwound: list[str] = []

    def interrupted(self: Participant) -> None:
        try:
            self.advance(by="5ms")  # So that the others have begun.
            signal.raise_signal(signal.SIGINT)
            while True:
                self.advance(by="1ms")
        finally:
            unwound.append(self.name)

    def bystander(self: Participant) -> None:
        try:
            self.next()
        finally:
            unwound.append(self.name)

    programs = {"a": Program(interrupted, subscribes=["t"])}
    programs |= {name: Program(bystander, subscribes=["t"]) for name in ("b", "c")}
    monkeypatch.setattr(inprocess, "_PATIENCE_S", 40.0)
    monkeypatch.setattr("worldline.federation.inprocess.strand._PATIENCE_S", 40.0)
    begun = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        run(federation(**programs))
    assert time.monotonic() - begun < 20, "it waits for somebody who has ended"
    assert sorted(unwound) == ["a", "b", "c"]


def test_only_federations_are_run() -> None:
    def model() -> None: ...

    with pytest.raises(UsageError, match=r"isn't a Federation \(call the function that makes it: run\(model\(\)\)\)"):
        run(model)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match=r"5 isn't a Federation \(run\(\) is for federations"):
        run(5)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match=r"5 isn't a Federation"):
        check(5)  # type: ignore[arg-type]


def test_a_link_is_no_network() -> None:
    with pytest.raises(ConfigurationError, match=r"isn't a network \(write Network\(default=link"):
        run(Federation({"a": Program(print)}, network=link("5ms")))  # type: ignore[arg-type]


def test_it_runs_in_process_and_on_no_other_executor() -> None:
    alone = federation(a=Program(run=lambda me: None))
    assert (
        run(alone, executor="in-process").digest
        == run(alone, executor=Executor("in-process")).digest
        == run(alone).digest
    )
    with pytest.raises(ConfigurationError, match=r"a Federation runs in-process, and not on 'tcp' \(leave executor"):
        run(alone, executor="tcp")


def test_an_end_is_called_until_as_everywhere() -> None:
    with pytest.raises(ConfigurationError, match=r"a Federation has no `end` \(write until=\)"):
        Federation({}, end="1s")  # type: ignore[call-arg]


def test_whoever_runs_without_waiting_is_named_with_the_time_that_it_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inprocess, "_WATCH_EVERY_S", 0.001)
    monkeypatch.setattr(inprocess, "_BUSY_S", 0.0)
    named = threading.Event()
    seen: list[WaitReason] = []

    def watch(status: Status) -> None:
        # It may take a moment to begin, and to start the other.
        seen.extend(wait for wait in status.waits if wait.who != THE_RUN and wait.holder != "b")
        if seen:
            named.set()

    def runs(me: Participant) -> None:
        me.advance("5ms")
        while not named.is_set():
            me.advance(by="1ms")

    run(federation(a=Program(runs), b=Program(lambda me: None)), watch=watch)
    assert (seen[0].who, seen[0].holder) == (ALL_OTHERS, "a")
    assert re.fullmatch(
        r"a has been running for \d+ s without waiting, at \d+(\.\d+)?m?s, and keeps all others waiting",
        seen[0].why,
    )


def test_a_program_may_keep_things_with_its_participant() -> None:
    def program(me: Participant) -> None:
        me.count = 1  # type: ignore[attr-defined]
        me.advance(by=1)
        assert me.count == 1  # type: ignore[attr-defined]

    run(Federation({"a": Program(program)}))


def test_what_programs_have_says_what_it_is() -> None:
    shown: list[str] = []

    def program(me: Participant) -> None:
        me.advance("3ms")
        shown.extend((repr(me), repr(me.clock), repr(me.stable)))

    run(federation(a=Program(program, clock=clock(offset="-5ms"))))
    assert shown == ["<Participant a at 3ms>", "<clock of a: -2ms>", "StableStore({})"]
