"""What one hop of a ping-pong costs, part by part: two participants, each answering the other's message with one.

Every part is measured on its own through its public calls, hot, in microseconds of processor time; a layer that calls
others is given without them. A whole hop is measured by the wall clock, in one process and between processes, and what
its parts don't explain is its rest: the scheduler in one process; between processes waking up, waiting for a core, and
our code around the sockets. All figures are medians. On a machine that is busy the rest grows, and the parts hardly do.

It measures the plain build and, if there is one, the compiled one, taking turns. Before the lock was compiled is a
table here (`BEFORE`). `--picture FILE.svg` draws all three.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from hashlib import blake2b
from itertools import pairwise
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

from msgspec import msgpack
from peers import worldline_peer
from rich.console import Console
from rich.table import Table

from worldline import MS, Federation, Network, Program, link, run
from worldline.builds import UNCOMPILED, build
from worldline.federation.inprocess.strand import strand_kind
from worldline.federation.participant.connection import Conversation
from worldline.federation.participant.participant import Participant
from worldline.federation.server.host import Host
from worldline.federation.server.limits import Limits
from worldline.federation.server.session import Session
from worldline.history.journal import Journal
from worldline.lock import Action, Arbiter, Grant, Join, Next, ParticipantEvent, Publish, StartRun, Subscription
from worldline.lock.ledger import Ledger
from worldline.model import FOREVER, Message, Plan
from worldline.pictures.sheet import legend, ticks_between
from worldline.pictures.svg import FAINT, PALETTE, SOFT, document, element, hover, path, text_at
from worldline.wire.codec import decode_events, encode_answer, encode_events

NAMES = ("p0", "p1")
STEP = MS
PAYLOAD = b"a ball that goes back and forth!"
HOPS = 2000
BATCHES = 7

Costs = dict[str, float]
"""What each part takes of a hop, in microseconds."""

IN_PROCESS, TCP, UNIX = "in one process", "processes over TCP", "processes over Unix sockets"
DIGEST, WHOLE = "the digest alone", "whole"
PARTS = (
    "program and participant",
    "ledger",
    "digest",
    "arbiter",
    "frames",
    "host",
    "hand-over",
    "system calls",
    "rest",
)

_BEFORE = {"program and participant": 6.0, "ledger": 5.6, "digest": 1.9, "arbiter": 16.9}
BEFORE: dict[str, Costs] = {
    IN_PROCESS: _BEFORE | {"hand-over": 9.4, "rest": 11.3},
    TCP: _BEFORE | {"frames": 11.5, "host": 5.3, "system calls": 14.5, "rest": 283.1},
    UNIX: _BEFORE | {"frames": 11.5, "host": 5.3, "system calls": 5.0, "rest": 195.3},
    DIGEST: {"encoding": 0.3, "blake2b": 0.2},
}
"""Commit e4ed2a3, plain Python and threads; 16 Nov 2026, aarch64 (Neoverse-N1, 2 cores), a busy machine."""


# --- The parts ---


def cost(make: Callable[[int], Callable[[], object]]) -> float:
    """Return what a hop takes in microseconds; `make` prepares so many and returns what does them."""
    make(HOPS // 4)()
    taken = []
    for _ in range(BATCHES):
        work = make(HOPS)
        start = time.process_time()
        work()
        taken.append((time.process_time() - start) / HOPS * 1e6)
    return statistics.median(taken)


def message(hop: int) -> Message:
    """Return what a participant is sent in a hop; it sends its own at the same hop's time."""
    return Message((hop + 1) * STEP, hop * STEP, NAMES[1], hop, 0, NAMES[1], PAYLOAD)


def grants(hops: int) -> list[Grant]:
    return [Grant(NAMES[0], (hop + 2) * STEP, [message(hop)], final=False) for hop in range(hops)]


def said(hop: int) -> list[ParticipantEvent]:
    """Return what a participant says in a hop."""
    return [Publish(NAMES[hop % 2], PAYLOAD, hop * STEP), Next(FOREVER, FOREVER)]


def joining(name: str) -> Join:
    return Join(publishes=(name,), subscribes=tuple(Subscription(other) for other in NAMES if other != name))


def plan() -> Plan:
    return Plan(roster=NAMES, network=Network(default=link(STEP)))


def started() -> Ledger:
    ledger = Ledger(NAMES[0], joining(NAMES[0]))
    ledger.take_outbox()
    ledger.receive(StartRun(NAMES[0], 0, 0, STEP, STEP))
    return ledger


class CannedConnection:
    """Answers with what was prepared, at once."""

    def __init__(self, answers: list[Grant]) -> None:
        self._answers = iter(answers)

    def tell(self, events: list[ParticipantEvent]) -> None:
        raise NotImplementedError

    def ask(self, events: list[ParticipantEvent]) -> Action:
        events.clear()
        return next(self._answers)

    def is_due(self, urgent: bool) -> bool:
        return False


def in_participant(hops: int) -> Callable[[], object]:
    """The program's two calls, and all that is below them in its process."""
    me = Participant(started(), CannedConnection(grants(hops)))

    def play() -> None:
        for _ in range(hops):
            me.publish("p0", PAYLOAD)
            me.next()

    return play


def in_ledger(hops: int) -> Callable[[], object]:
    ledger, answers = started(), grants(hops)

    def play() -> None:
        for answer in answers:
            ledger.publish("p0", PAYLOAD)
            ledger.next()
            ledger.take_outbox()
            ledger.receive(answer)

    return play


def in_journal(hops: int) -> Callable[[], object]:
    journal, received = Journal(), [[message(hop)] for hop in range(hops)]

    def note() -> None:
        for hop, messages in enumerate(received):
            journal.note_sent(hop, "p0", PAYLOAD)
            journal.note_received(hop, messages)

    return note


def entries(hops: int) -> list[list[tuple[object, ...]]]:
    """Return what a journal writes in so many hops, in the portions in which it does."""
    notes: list[tuple[object, ...]] = []
    for hop in range(hops):
        notes += [(0, hop, hop * STEP, "p0", PAYLOAD), (1, hop * STEP, *message(hop))]
    return [notes[start : start + 64] for start in range(0, len(notes), 64)]


def in_encoding(hops: int) -> Callable[[], object]:
    portions, encode = entries(hops), msgpack.Encoder().encode
    return lambda: [encode(portion) for portion in portions]


def in_hash(hops: int) -> Callable[[], object]:
    texts, running = [msgpack.encode(portion) for portion in entries(hops)], blake2b(digest_size=16)
    return lambda: [running.update(text) for text in texts]


def in_arbiter(hops: int) -> Callable[[], object]:
    arbiter = Arbiter(plan())
    for name in NAMES:
        arbiter.handle(name, joining(name))
    arbiter.handle(NAMES[1], Next(FOREVER, FOREVER))
    turns = [(NAMES[hop % 2], said(hop)) for hop in range(hops)]

    def hear() -> None:
        for who, events in turns:
            arbiter.hear(who, events)

    return hear


class Unheard:
    """Owns a session whose answers nobody reads."""

    def write(self) -> None:
        pass

    def carry(self) -> None:
        return None


def in_host(hops: int) -> Callable[[], object]:
    """From the bytes of a frame to the bytes of the answer, with all that is between them."""
    host = Host(plan(), limits=Limits(frames_max=FOREVER), entropy=bytes)
    sessions: list[Session] = [host.seat(name, Unheard(), 0.0) for name in NAMES]
    for name, session in zip(NAMES, sessions, strict=True):
        host.receive(session, encode_events([joining(name)]), 0.0)
    host.receive(sessions[1], encode_events([Next(FOREVER, FOREVER)]), 0.0)
    turns = [(sessions[hop % 2], sessions[1 - hop % 2], encode_events(said(hop))) for hop in range(hops)]

    def receive() -> None:
        for session, answered, data in turns:
            host.receive(session, data, 0.0)
            answered.out.clear()
            host.dirty.clear()

    return receive


def in_frames(hops: int) -> Callable[[], object]:
    """What both ends do to read and write the frames of a hop: the participant's conversation, the server's codec."""
    conversation = Conversation(NAMES[0])
    turns = [(said(hop), encode_events(said(hop))[4:], grant) for hop, grant in enumerate(grants(hops))]

    def convert() -> None:
        for events, body, grant in turns:
            conversation.encode(events)
            decode_events(body)
            conversation.feed(encode_answer(grant))
            conversation.answer()

    return convert


def in_server_codec(hops: int) -> Callable[[], object]:
    """The server's half of `in_frames`, which `in_host` has in it as well."""
    turns = [(encode_events(said(hop))[4:], grant) for hop, grant in enumerate(grants(hops))]

    def convert() -> None:
        for body, grant in turns:
            decode_events(body)
            encode_answer(grant)

    return convert


def in_hand_over(hops: int) -> Callable[[], object]:
    """Two programs that let each other go on, as those do that share a process."""
    kind = strand_kind()
    strands: list[Any] = []

    def turns(own: int, other: int) -> Callable[[], None]:
        def body() -> None:
            for _ in range(hops // 2):
                strands[own].check()
                strands[own].hand_over(strands[other])

        return body

    strands += [kind("p0", turns(0, 1)), kind("p1", turns(1, 0))]

    def play() -> None:
        while not all(strand.finished for strand in strands):
            next(strand for strand in strands if not strand.finished).resume()

    return play


def in_system(pair: Callable[[], tuple[socket.socket, socket.socket]]) -> Callable[[int], Callable[[], object]]:
    """Two sends and two receives: to the server, and on to the other participant. Nobody waits."""

    def make(hops: int) -> Callable[[], object]:
        one, other = pair()
        frames = (encode_events(said(1)), encode_answer(grants(1)[0]))

        def pass_on() -> None:
            with one, other:
                for _ in range(hops):
                    for data in frames:
                        one.send(data)
                        other.recv(65536)

        return pass_on

    return make


def tcp_pair() -> tuple[socket.socket, socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        one = socket.create_connection(listener.getsockname())
        other, _ = listener.accept()
    for end in (one, other):
        end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return one, other


# --- The whole ---


def whole_hop(transport: str, trips: int) -> float:
    """Return how long a hop takes in microseconds, by the median of a run's."""
    if transport == IN_PROCESS:
        return whole_in_process(trips)
    return float(worldline_peer.pingpong(trips, local=transport == UNIX)["typical_hop_us"])


def whole_in_process(trips: int) -> float:
    times: list[float] = []

    def serve(me: Participant) -> None:
        for _ in range(trips):
            me.publish("p0", PAYLOAD)
            me.next()
            times.append(time.perf_counter())

    def reply(me: Participant) -> None:
        while me.next():
            me.publish("p1", PAYLOAD)

    programs = {
        "p0": Program(serve, publishes=["p0"], subscribes=["p1"]),
        "p1": Program(reply, publishes=["p1"], subscribes=["p0"]),
    }
    run(Federation(programs, network=Network(default=link(STEP))))
    return statistics.median(after - before for before, after in pairwise(times)) / 2 * 1e6


def measure(trips: int) -> dict[str, Costs]:
    """Return what the parts of a hop take for each transport, and the whole; and the parts of the digest."""
    participant, ledger, journal = cost(in_participant), cost(in_ledger), cost(in_journal)
    arbiter, frames = cost(in_arbiter), cost(in_frames)
    host = cost(in_host) - arbiter - cost(in_server_codec)
    shared = {
        "program and participant": participant - ledger,
        "ledger": ledger - journal,
        "digest": journal,
        "arbiter": arbiter,
    }
    wired = shared | {"frames": frames, "host": host}
    measured: dict[str, Costs] = {
        IN_PROCESS: shared | {"hand-over": cost(in_hand_over)},
        TCP: wired | {"system calls": cost(in_system(tcp_pair))},
        UNIX: wired | {"system calls": cost(in_system(socket.socketpair))},
    }
    for transport, costs in measured.items():
        costs[WHOLE] = whole_hop(transport, trips)
    return measured | {DIGEST: {"encoding": cost(in_encoding), "blake2b": cost(in_hash)}}


def compare(repeat: int, trips: int) -> dict[str, dict[str, Costs]]:
    """Measure each build in processes of its own, which take turns, and return the medians."""
    kinds = {"plain": "1", "compiled": "0"} if build == "compiled" else {"plain": "1"}
    found: dict[str, list[dict[str, Costs]]] = {name: [] for name in kinds}
    for _ in range(repeat):
        for name, uncompiled in kinds.items():
            done = subprocess.run(
                [sys.executable, __file__, "--json", "--trips", str(trips)],
                env=os.environ | {UNCOMPILED: uncompiled},
                stdout=subprocess.PIPE,
                check=True,
                timeout=600,
            )
            found[name].append(json.loads(done.stdout))
    return {name: medians(runs) for name, runs in found.items()}


def medians(runs: list[dict[str, Costs]]) -> dict[str, Costs]:
    """Return each part's median, and the rest in place of the whole."""
    middle = {
        title: {part: max(0.0, statistics.median(run[title][part] for run in runs)) for part in costs}
        for title, costs in runs[0].items()
    }
    for costs in middle.values():
        if WHOLE in costs:
            whole = costs.pop(WHOLE)
            costs["rest"] = max(0.0, whole - sum(costs.values()))
    return middle


# --- What is shown ---


def tell(builds: dict[str, dict[str, Costs]]) -> None:
    console = Console(width=110, highlight=False)
    for transport in next(iter(reversed(builds.values()))):
        table = Table(title=f"One hop, {transport} (µs)")
        table.add_column("")
        shown = {name: measured[transport] for name, measured in builds.items() if transport in measured}
        for name in shown:
            table.add_column(name, justify="right")
        parts = [part for part in (*PARTS, "encoding", "blake2b") if any(part in costs for costs in shown.values())]
        for part in parts:
            table.add_row(part, *(f"{costs[part]:.1f}" if part in costs else "" for costs in shown.values()))
        if "rest" in parts:
            table.add_row("in all", *(f"{sum(costs.values()):.1f}" for costs in shown.values()))
        console.print(table)


_WIDTH, _LEFT, _RIGHT, _TOP = 960.0, 130.0, 70.0, 84.0
_BAR, _ROW, _GROUP = 18.0, 24.0, 38.0
_COLORS = dict(zip(PARTS, (*PALETTE, "#cbd2d9"), strict=True))


def draw(builds: dict[str, dict[str, Costs]]) -> str:
    """Draw a bar for each transport and build, its parts one after the other."""
    bars = [
        (transport, name, measured[transport])
        for transport in (IN_PROCESS, UNIX, TCP)
        for name, measured in builds.items()
        if transport in measured
    ]
    longest = max(sum(costs.values()) for _, _, costs in bars)
    scale = (_WIDTH - _LEFT - _RIGHT) / longest

    def sample(part: str) -> Callable[[float, float], str]:
        return lambda x, y: element("rect", x=x, y=y - 6, width=22, height=12, fill=_COLORS[part])

    explained, y = legend([(part, sample(part)) for part in PARTS], _TOP, _WIDTH, 40)
    title = "What one hop of a ping-pong costs"
    parts = [
        text_at(40, 36, title, size=19),
        text_at(40, 58, "µs, medians; before the lock was compiled, and now, plain and compiled", size=13, fill=SOFT),
        *explained,
    ]
    top = y = y + 6
    rows: list[str] = []
    last = ""
    for transport, name, costs in bars:
        if transport != last:
            y += _GROUP if last else 16
            rows.append(text_at(40, y, transport, size=13, font_weight=600))
            y, last = y + 10, transport
        rows += _bar(name, costs, y, scale)
        y += _ROW
    ticks = ticks_between(0.0, longest, 10)
    for value, label in zip(ticks.values, ticks.labels, strict=True):
        x = _LEFT + value * scale
        parts.append(path(((x, top), (x, y)), stroke=FAINT, stroke_width=0.7))
        parts.append(text_at(x, y + 16, label, size=11, fill=SOFT, text_anchor="middle"))
    return document(_WIDTH, y + 30, parts + rows, kind="hop", title=title)


def _bar(name: str, costs: Costs, y: float, scale: float) -> Iterator[str]:
    yield text_at(_LEFT - 8, y + 13, name, size=12, text_anchor="end")
    x = _LEFT
    for part in PARTS:
        if width := costs.get(part, 0.0) * scale:
            told = hover(f"{part}: {costs[part]:.1f} µs")
            yield element("rect", told, x=x, y=y, width=width, height=_BAR, fill=_COLORS[part])
            x += width
    yield text_at(x + 6, y + 13, f"{sum(costs.values()):.0f}", size=12)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeat", type=int, default=5, help="how often all is measured (default: 5)")
    parser.add_argument("--trips", type=int, default=3000, help="round trips of a whole ping-pong (default: 3,000)")
    parser.add_argument("--picture", type=Path, help="where to draw it, as SVG")
    parser.add_argument("--json", action="store_true", help="measure this build, once, and print it as JSON")
    options = parser.parse_args()
    if options.json:
        print(json.dumps(measure(options.trips)))
        return
    builds = {"before": BEFORE, **compare(options.repeat, options.trips)}
    tell(builds)
    if options.picture is not None:
        options.picture.write_text(draw(builds), encoding="utf-8")
        print(f"the picture is {options.picture}")


if __name__ == "__main__":
    main()
