"""What the toolbox costs, and how fast it is.

Keeping: federations of processes over TCP, with a recording and a journal from which whoever is lost can rejoin, and
without. Both take turns, because on a shared machine two measurements a minute apart compare the minutes. At most 15 %
of the throughput is the aim.

Rejoining: one of two processes is killed when it has sent and received 100,000 messages, and started again. Measured is
the time from the start of the process until it has been taken through all of them. Less than two seconds is the aim.

Replay: a federation of eight processes that compute little is run over Unix sockets and recorded; then one of its
participants is run alone, fed from the recording. Compared are the seconds from the first message to the last, without
starting processes, and those of the whole replay, with reading the file. At least five times faster is the aim.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

from peers import worldline_peer
from peers.rejoin_peer import rejoin
from rich.console import Console
from rich.table import Table

from worldline.federation.participant.solo import reach_in, replay_alone
from worldline.history.observer import Observer
from worldline.history.replay import RecordedParts
from worldline.history.telling import SeveralObservers
from worldline.lock.feeding import Feeding
from worldline.recording import Recording
from worldline.recording.reader import intact, recorded_account
from worldline.targets import RunOptions, prepare
from worldline.targets.federation import ReadyFederation
from worldline.targets.recorded import joins_of, program_of

PARTICIPANTS = 8
PROGRAM = """
def pass_on(me):
    me.publish(f"from {me.name}", b"0")
    for message in me.messages():
        me.publish(f"from {me.name}", b"%d" % (int(message.payload) + 1))
"""


class _Span(Observer):
    """When the first message was told, and the last."""

    def __init__(self) -> None:
        self.first_s = self.last_s = 0.0
        self.messages = 0

    def sent(self, who: str, number: int, topic: str, at: int, payload: bytes, until: int, detail: Any = None) -> None:
        self.last_s = time.perf_counter()
        self.first_s = self.first_s or self.last_s
        self.messages += 1


def write_ring(folder: Path, milliseconds: int) -> Path:
    """Write a federation whose participants pass messages on in a circle, each every millisecond."""
    parts = "".join(
        f'[[participants]]\nname = "p{number}"\nentry = "ring:pass_on"\npublishes = ["from p{number}"]\n'
        f'subscribes = ["from p{(number - 1) % PARTICIPANTS}"]\n'
        for number in range(PARTICIPANTS)
    )
    (folder / "ring.py").write_text(PROGRAM)
    file = folder / "ring.toml"
    file.write_text(f'until = "{milliseconds}ms"\nlink.latency = "1ms"\n{parts}')
    return file


def replay_figure(table: Table, milliseconds: int) -> None:
    """Compare a run with the replay of one of its participants."""
    with tempfile.TemporaryDirectory() as folder:
        file = write_ring(Path(folder), milliseconds)
        ready = prepare(str(file), RunOptions(executor="unix"))
        assert isinstance(ready, ReadyFederation)
        path, span = Path(folder) / "ring.mcap", _Span()
        recorder = ready.recorder(path)
        outcome = ready.run(SeveralObservers((recorder, span)))
        recorder.close(dropped=outcome.dropped)
        live = span.last_s - span.first_s

        recording, name = Recording(path), "p3"
        program = program_of(ready, name)
        reach = reach_in(ready.plan(), joins_of(ready), name)
        began = time.perf_counter()
        parts = RecordedParts(recorded_account(intact(recording)), [name])
        done = replay_alone(program, lambda take: Feeding(name, parts, ready.plan(), differs=take, reach=reach))
        alone = time.perf_counter() - began
        assert not done.differences
        assert recording.outcome is not None
        assert done.digest.hex() == recording.outcome.participants[name].digest
    table.add_row(
        f"replay of one of {PARTICIPANTS}, {span.messages:,} messages",
        f"{live:.2f} s live, {alone:.2f} s alone",
        f"{live / alone:.1f} times as fast",
        "5 times",
    )


def keeping_figures(table: Table, repeat: int, scale: float) -> None:
    """Compare the throughput of federations that keep what happens with that of those that don't."""

    def many(count: int) -> int:
        return max(200, int(count * scale))

    plays: dict[str, Callable[[bool], float]] = {
        "8 step, latency 1 step": lambda kept: worldline_peer.stepping(8, many(4000), kept=kept)["steps_per_s"],
        "8 step, latency 20 steps": lambda kept: worldline_peer.stepping(8, many(10_000), 20, kept=kept)["steps_per_s"],
        "ping-pong": lambda kept: worldline_peer.pingpong(many(4000), kept=kept)["round_trips_per_s"],
        "100 B, Unix": lambda kept: worldline_peer.flow(many(300_000), 100, 100, kept=kept)["per_s"],
        "1 MB, Unix": lambda kept: worldline_peer.flow(many(400), 10**6, 1, kept=kept)["per_s"],
    }
    for name, play in plays.items():
        found: dict[bool, list[float]] = {False: [], True: []}
        for _ in range(repeat):
            for kept, speeds in found.items():
                speeds.append(play(kept))
        off, on = statistics.median(found[False]), statistics.median(found[True])
        cost = f"{100 * (1 - on / off):.0f} % less"
        table.add_row(f"keeping: {name}", f"{off:,.0f}/s without, {on:,.0f}/s with", cost, "15 %")


def rejoining_figure(table: Table, messages: int, repeat: int) -> None:
    """Measure how long one that was killed takes until it goes on."""
    seconds, computing = zip(*(rejoin(messages) for _ in range(repeat)), strict=True)
    spread = (
        f"{min(seconds):.2f} – {max(seconds):.2f} s, {1e6 * min(computing) / messages:.1f} µs computing per message"
    )
    table.add_row(f"rejoining after {messages:,} messages", spread, f"{statistics.median(seconds):.2f} s", "2 s")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--milliseconds", type=int, default=10_000, help="of the run that is replayed")
    parser.add_argument("--messages", type=int, default=100_000, help="after which one rejoins")
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--scale", type=float, default=1.0, help="how long the federations run that keep what happens")
    parser.add_argument("--only", choices=("keeping", "rejoining", "replay"))
    options = parser.parse_args()
    table = Table("figure", "measured", "result", "aim")
    if options.only in (None, "keeping"):
        keeping_figures(table, options.repeat, options.scale)
    if options.only in (None, "rejoining"):
        rejoining_figure(table, options.messages, options.repeat)
    if options.only in (None, "replay"):
        replay_figure(table, options.milliseconds)
    Console().print(table)


if __name__ == "__main__":
    main()
