"""The mirror shows all that is sent and delivered, the same in every run, and never holds up or changes a run."""

from __future__ import annotations

import errno
import socket
import subprocess
import sys
import threading
from pathlib import Path
from typing import NoReturn

import lcm
import pytest

from tests.federation.transports import eventually
from tests.metasim.public.stage import STEPS, Seen, Talkative, loop, run_served, seen_by_participants
from worldline import Federation, Program, run
from worldline.files.saving import write_all
from worldline.history.telling import SeveralObservers
from worldline.metasim.public import PublicLcm, TcpqBroker
from worldline.metasim.public.mirror import Feed, PublicEvent, Timeline, decode_time
from worldline.metasim.public.tcpq import SERVER_MAGIC, TIME_CHANNEL, greeting
from worldline.model import MS
from worldline.model.errors import ConfigurationError, LossError, PeerError, UsageError
from worldline.model.time import FOREVER

pytestmark = pytest.mark.usefixtures("tidy")
_PATIENCE_S = 20.0


class Memory:
    """An outlet that keeps what it is given, once it is let."""

    url = "memory"

    def __init__(self, *, is_open: bool = True) -> None:
        self.published: list[tuple[str, bytes]] = []
        self.gate = threading.Event()
        if is_open:
            self.gate.set()

    def publish(self, channel: str, data: bytes) -> None:
        if not self.gate.wait(_PATIENCE_S):
            raise LossError("nobody opened it")
        self.published.append((channel, data))

    def close(self) -> None:
        self.gate.set()

    def seen(self) -> list[Seen]:
        """Return what was published, each with the times that were said before it."""
        found: list[Seen] = []
        times = (-1, -1)
        for channel, data in self.published:
            if channel == TIME_CHANNEL:
                assert decode_time(data) != times, "it was said already"
                times = decode_time(data)
            else:
                found.append((channel, data, *times))
        return found


@pytest.fixture
def memory(monkeypatch: pytest.MonkeyPatch) -> Memory:
    outlet = Memory()
    monkeypatch.setattr("worldline.metasim.public.mirror.open_port", lambda _: outlet)
    return outlet


# --- What is shown ---


@pytest.mark.parametrize("is_talkative", [False, True])
def test_all_that_participants_send_and_receive_is_shown_in_order(memory: Memory, is_talkative: bool) -> None:
    with PublicLcm("udpm://") as mirror:
        if is_talkative:
            run(loop(), observer=mirror, arbiter=Talkative)
        else:
            run(loop(), observer=mirror)
    seen = memory.seen()
    assert seen == seen_by_participants(loop())
    assert any(name == "STATE/plant>viewer" for name, *_ in seen)
    assert sum(name == "STATE/plant" for name, *_ in seen) == STEPS
    assert sum(name == "STATE/plant>controller" for name, *_ in seen) < STEPS
    assert mirror.report() == [f"public LCM memory: {len(seen):,} messages"]
    assert mirror.lost == 0


def test_what_it_shows_does_not_depend_on_who_runs_it(memory: Memory) -> None:
    with PublicLcm("udpm://") as mirror:
        outcome = run_served(loop(), mirror)
    assert memory.seen() == seen_by_participants(loop())
    assert outcome.digest == run(loop()).digest


def test_a_mirror_shows_what_has_passed_though_something_is_under_way_for_long() -> None:
    timeline = Timeline()
    timeline.sent("a", 0, "T", 5, b"x", until=FOREVER)
    timeline.sent("a", 1, "T", 6, b"y", until=20)
    timeline.arrives("a", 1, "b", 15, 0, None)
    assert [event.name for event in timeline.take(6)] == ["T/a"]
    assert [event.name for event in timeline.take(16)] == ["T/a", "T/a>b"]
    assert len(timeline) == 2
    assert timeline.take(21) == []
    assert len(timeline) == 1


def test_deliveries_are_taken_back_and_said_anew() -> None:
    timeline = Timeline()
    timeline.sent("a", 0, "T", 5, b"x", until=30)
    for copy in range(3):
        timeline.arrives("a", 0, "b", 10 + copy, copy, None)
    timeline.arrives("a", 0, "b", 10, 0, "lost")
    timeline.closed("b", "T", 12)
    timeline.closed("b", "U", 0)
    assert [(event.name, event.at) for event in timeline.take(12)] == [("T/a", 5), ("T/a>b", 11)]
    timeline.arrives("a", 0, "b", 12, 2, None)
    timeline.arrives("a", 0, "b", 12, 2, None)
    timeline.lasts("a", 0, 40)
    assert [(event.name, event.at) for event in timeline.take(31)] == [("T/a>b", 12)]
    timeline.arrives("a", 0, "b", 35, 3, None)
    assert [(event.name, event.at) for event in timeline.take(FOREVER)] == [("T/a>b", 35)]
    assert len(timeline) == 0


def test_at_the_same_time_deliveries_come_before_sends() -> None:
    timeline = Timeline()
    timeline.sent("a", 0, "T", 5, b"x", until=10)
    timeline.sent("b", 0, "U", 10, b"answer", until=20)
    timeline.arrives("a", 0, "b", 10, 0, None)
    assert [event.name for event in timeline.take(11)] == ["T/a", "T/a>b", "U/b"]


def test_a_message_of_another_type_is_no_time() -> None:
    with pytest.raises(PeerError, match=r"worldline\.time_t"):
        decode_time(b"x" * 24)


def test_the_end_settles_the_rest(memory: Memory) -> None:
    with PublicLcm("udpm://") as mirror:
        mirror.sent("a", 0, "T", 5, b"x", until=10)
        mirror.passed(5)
        mirror.close(end=6)
    assert [name for name, *_ in memory.seen()] == ["T/a"]


# --- It never holds up a run, and says what it lost ---


def test_a_stalled_outlet_holds_up_nobody_and_losses_are_counted(memory: Memory) -> None:
    memory.gate.clear()
    with PublicLcm("udpm://", queue_bytes_max=5000) as mirror:
        digest = run(loop(), observer=mirror).digest
        assert digest == run(loop()).digest
        assert not mirror.drain(0.0)
        memory.gate.set()
    (report,) = mirror.report()
    assert mirror.lost > 0
    assert report.endswith(f" messages, {mirror.lost:,} lost")
    seen = seen_by_participants(loop())
    assert memory.seen() == seen[: len(seen) - mirror.lost]


def test_an_outlet_that_breaks_is_reported_with_its_reason(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(channel: str, data: bytes) -> None:
        raise LossError("the cable is gone")

    monkeypatch.setattr(memory, "publish", broken)
    with PublicLcm("udpm://") as mirror:
        run(loop(), observer=mirror)
    assert mirror.report() == [f"public LCM memory: 0 messages, {mirror.lost:,} lost: the cable is gone"]


def test_an_outlet_that_fails_unexpectedly_loses_no_more_than_it_was_given(monkeypatch: pytest.MonkeyPatch) -> None:
    outlet = Memory()
    feed = Feed(outlet)
    with monkeypatch.context() as patch:
        patch.setattr(outlet, "publish", lambda *_: 1 // 0)
        feed.put([PublicEvent("A/a", b"", 0, 0), PublicEvent("B/a", b"", 0, 0)])
        assert feed.drain(_PATIENCE_S)
    feed.put([PublicEvent("C/a", b"", 0, 0)])
    feed.close()
    assert (feed.count, feed.lost) == (1, 2)
    assert feed.trouble.startswith("ZeroDivisionError(")
    assert [name for name, *_ in outlet.seen()] == ["C/a"]


def test_a_broker_that_fails_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> NoReturn:
        raise RuntimeError("broken")

    monkeypatch.setattr(TcpqBroker, "_watch", fail)
    with PublicLcm(serve="127.0.0.1:0") as mirror:
        broker = mirror._broker
        assert broker is not None
        eventually(lambda: broker._state == "ended")
        assert run(loop(), observer=mirror).digest == run(loop()).digest
    expected, url = len(seen_by_participants(loop())), mirror.url
    assert mirror.lost == expected
    assert mirror.report() == [
        f"public LCM {url}: 0 messages, {expected:,} lost: the LCM broker at {url} has ended: RuntimeError('broken')",
        f"public LCM {url}: the broker failed: RuntimeError('broken')",
    ]


def test_an_outlet_that_stays_blocked_is_given_up() -> None:
    feed = Feed(Memory(is_open=False), linger_s=0.0)
    feed.put([PublicEvent("T/a", b"x", 0, 0)] * 3)
    feed.close()
    assert feed.count + feed.lost == 3
    assert feed.lost >= 2


def test_names_that_only_turn_up_in_the_run_are_left_out_and_counted(memory: Memory, tmp_path: Path) -> None:
    with PublicLcm(["udpm://", str(tmp_path / "run.lcmlog")]) as mirror:
        for number, topic in enumerate(["T" * 61, "T" * 62, "ä" * 31]):
            mirror.sent("a", number, topic, 5, b"x", until=10)
        mirror.passed(FOREVER)
    assert [name for name, *_ in memory.seen()] == ["T" * 61 + "/a"]
    assert mirror.lost == 4
    assert [line.partition(": ")[2] for line in mirror.report()] == 2 * [
        "1 messages, 2 left out, whose names LCM has no room for"
    ]


def test_a_stalled_broker_of_others_is_given_up_at_the_end() -> None:
    """Over a real connection: nobody reads at its other end."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        accepted: list[socket.socket] = []

        def greet() -> None:
            connection, _ = listener.accept()
            accepted.append(connection)
            connection.sendall(greeting(SERVER_MAGIC))

        stranger = threading.Thread(target=greet)
        stranger.start()
        with PublicLcm(f"tcpq://127.0.0.1:{listener.getsockname()[1]}", linger_s=0.1) as mirror:
            stranger.join()
            for number in range(40):
                mirror.sent("a", number, "T", number, b"x" * 2**20, until=number)
            mirror.passed(FOREVER)
        accepted[0].close()
    assert mirror.lost > 0


# --- Logs ---


def logged(path: Path) -> list[tuple[int, int, str, bytes]]:
    return [(event.eventnum, event.timestamp, event.channel, event.data) for event in lcm.EventLog(str(path))]


def test_a_log_has_everything_with_the_time_of_its_send(tmp_path: Path) -> None:
    with PublicLcm(str(tmp_path / "run.lcmlog")) as mirror:
        run(loop(), observer=mirror)
    found = logged(tmp_path / "run.lcmlog")
    expected = seen_by_participants(loop())
    assert sorted((name, data, at) for _, at, name, data in found) == sorted(
        (name, data, sent // 1000) for name, data, sent, _ in expected
    )
    assert [number for number, *_ in found] == list(range(len(expected)))
    assert [at for _, at, *_ in found] == sorted(at for _, at, *_ in found)
    assert found[:2] == [(0, 0, "STATE/plant", b"0"), (1, 0, "STATE/plant>controller", b"0")]
    assert mirror.report() == [f"public LCM {tmp_path / 'run.lcmlog'}: {len(expected):,} messages"]


def test_logs_are_the_same_bytes_in_every_run(tmp_path: Path) -> None:
    first, second, third = (tmp_path / f"{number}.lcmlog" for number in range(3))
    with PublicLcm([str(first)]) as mirror:
        run(loop(), observer=mirror)
    with PublicLcm(f"file://{second}") as mirror:
        run(loop(), observer=mirror, arbiter=Talkative)
    with PublicLcm(str(third)) as mirror:
        run_served(loop(), mirror)
    assert first.read_bytes() == second.read_bytes() == third.read_bytes()


def test_it_is_the_log_that_the_library_writes(tmp_path: Path) -> None:
    with PublicLcm(str(tmp_path / "ours.lcmlog")) as mirror:
        run(loop(), observer=mirror)
    theirs = lcm.EventLog(str(tmp_path / "theirs.lcmlog"), "w")
    for _, at, name, data in logged(tmp_path / "ours.lcmlog"):
        theirs.write_event(at, name, data)
    theirs.close()
    assert (tmp_path / "ours.lcmlog").read_bytes() == (tmp_path / "theirs.lcmlog").read_bytes()


def test_a_log_can_be_read_during_the_run(tmp_path: Path) -> None:
    now = 0.0
    with PublicLcm(str(tmp_path / "run.lcmlog"), clock=lambda: now) as mirror:
        mirror.sent("a", 0, "T", 5, b"x", until=10)
        mirror.passed(20)
        assert logged(tmp_path / "run.lcmlog") == []
        assert mirror.drain()
        assert len(logged(tmp_path / "run.lcmlog")) == 1
        mirror.sent("a", 1, "T", 25, b"x" * 100_000, until=30)
        now = 2.0
        mirror.passed(40)
        assert len(logged(tmp_path / "run.lcmlog")) == 2


def test_a_log_that_ends_early_ends_with_a_whole_event(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def half(descriptor: int, data: bytes) -> None:
        write_all(descriptor, data[: len(data) // 2])
        raise OSError(errno.ENOSPC, "No space left on device")

    with PublicLcm(str(tmp_path / "run.lcmlog")) as mirror:
        mirror.sent("a", 0, "T", 5, b"first", until=10)
        mirror.passed(20)
        mirror.drain()
        monkeypatch.setattr("worldline.metasim.public.mirror.write_all", half)
        mirror.sent("a", 1, "T", 25, b"second", until=30)
        mirror.passed(40)
    assert [data for *_, data in logged(tmp_path / "run.lcmlog")] == [b"first"]
    assert (tmp_path / "run.lcmlog").stat().st_size == 28 + len("T/a") + len("first")
    assert mirror.lost == 1


def test_multicast_is_paced_so_that_receivers_have_room(monkeypatch: pytest.MonkeyPatch) -> None:
    class Network:
        def __init__(self, url: str) -> None:
            self.unread = 0

        def publish(self, channel: str, data: bytes) -> None:
            self.unread += len(data) + 1000
            assert self.unread < 212_992 / 4  # The usual buffer of a receiver, which others want to share.

        def read(self, seconds: float) -> None:
            assert 0.0005 < seconds < 0.01
            self.unread = 0

    network = Network("")
    monkeypatch.setattr("worldline.metasim.public.tcpq.open_lcm", lambda _: network)
    monkeypatch.setattr("worldline.metasim.public.tcpq.time.sleep", network.read)
    with PublicLcm("udpm://", linger_s=0.0) as mirror:
        for number in range(2000):
            mirror.sent("a", number, "T", number, b"x" * (number * 10), until=number)
        mirror.passed(2000)
    assert mirror.report() == ["public LCM udpm://: 2,000 messages"]  # It takes longer, and nothing is left out.


@pytest.mark.parametrize("room", [33, 339])
def test_a_log_on_a_full_disk_keeps_what_fits(tmp_path: Path, room: int) -> None:
    """The limit on the size of a file is as good as a full disk; it is for whole processes, so this is one."""
    path = tmp_path / "run.lcmlog"
    program = f"""
import resource
from worldline.metasim.public import PublicLcm
resource.setrlimit(resource.RLIMIT_FSIZE, ({room}, resource.RLIM_INFINITY))
with PublicLcm({str(path)!r}) as mirror:
    for number in range(10):
        mirror.sent("a", number, "T", number, b"%03d" % number, until=number)
    mirror.passed(20)
print(*mirror.report())
"""
    told = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    fit = room // (28 + len("T/a") + len("000"))
    assert [data for *_, data in logged(path)] == [b"%03d" % number for number in range(fit)]
    assert path.stat().st_size == fit * 34
    assert told.stdout == f"public LCM {path}: {fit} messages, {10 - fit} lost: File too large\n"


def test_a_log_replaces_a_log_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "run.lcmlog"
    for _ in range(2):
        with PublicLcm(str(path)) as mirror:
            run(loop(), observer=mirror)
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(UsageError, match="isn't an LCM log"):
        PublicLcm(str(tmp_path / "thesis.tex")).open()
    assert (tmp_path / "thesis.tex").read_text() == "years of work"


# --- Before the run ---


@pytest.mark.parametrize(
    ("target", "problem"),
    [
        ("", "is no place for a public LCM"),
        ("http://example.org", "is no place for a public LCM"),
        ("memq://", "is no place for a public LCM"),
        ("udpm", "is no place for a public LCM"),
        ("tcpq://127.0.0.1:1", "no LCM broker can be reached"),
        ("udpm://nonsense", "LCM can't be opened"),
        ("/nowhere/run.lcmlog", "there is no folder"),
        ("/dev/null", "it isn't a file"),
        (".", "it is a folder"),
    ],
)
def test_what_can_not_be_opened_is_an_error_before_the_run(target: str, problem: str) -> None:
    with pytest.raises((UsageError, LossError), match=problem):
        PublicLcm(target).open()


def test_what_was_opened_is_closed_if_the_rest_can_not_be() -> None:
    with TcpqBroker() as broker, pytest.raises(UsageError, match="can listen on"):
        PublicLcm(broker.url, serve=broker.url).open()


def test_a_participant_that_lcm_has_no_name_for_ends_the_run_before_it_begins(tmp_path: Path) -> None:
    federation = Federation({"arm/left": Program(lambda me: me.publish("T", b"x"))})
    refused = pytest.raises(ConfigurationError, match=r"^arm/left at 0s: 'arm/left' can't name a participant")
    with PublicLcm(str(tmp_path / "run.lcmlog")) as mirror, refused:
        run(federation, observer=mirror)
    assert logged(tmp_path / "run.lcmlog") == []


def test_without_the_library_only_multicast_is_missing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "lcm", None)
    with pytest.raises(UsageError, match=r"needs the LCM library \(make extras WITH=lcm"):
        PublicLcm("udpm://239.255.76.67:7667?ttl=0").open()
    with PublicLcm(str(tmp_path / "run.lcmlog"), serve="127.0.0.1:0") as mirror:
        run(loop(), observer=mirror)
        assert mirror.url is not None


def test_several_observers_are_told_the_same(memory: Memory, tmp_path: Path) -> None:
    with PublicLcm("udpm://") as one, PublicLcm(str(tmp_path / "run.lcmlog")) as other:
        run(loop(), observer=SeveralObservers([one, other]))
    assert len(memory.seen()) == len(logged(tmp_path / "run.lcmlog"))


def test_times_are_exact_to_the_nanosecond(memory: Memory) -> None:
    with PublicLcm("udpm://") as mirror:
        mirror.sent("a", 0, "T", 10 * MS + 1, b"x", until=20 * MS)
        mirror.arrives("a", 0, "b", 12 * MS + 345, 0, None)
        mirror.passed(FOREVER)
    assert memory.seen() == [("T/a", b"x", 10_000_001, 10_000_001), ("T/a>b", b"x", 10_000_001, 12_000_345)]
