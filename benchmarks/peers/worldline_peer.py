"""Worldline in the scenarios of the federation benchmark: one process per participant, one for the server.

The same plays as `helics_peer.py`, with the same checks of what was received, and a flow of messages from one to one;
over TCP, or over a Unix socket if it is to be `local`. If it is `kept`, it is recorded, and has a journal from which
whoever is lost can rejoin. Latency of one step unless said otherwise; one step is one millisecond.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import statistics
import subprocess
import sys
import tempfile
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import worldline
from peers.children import Children, PeerError, end_after, report, stopwatch
from worldline import MS, Network, Server, link, plan
from worldline.recording import Recorder

STEP = MS
NAMES = ("p0", "p1", "p2", "p3", "p4", "p5", "p6", "p7")
Facts = dict[str, Any]
STARTING = """
import time

def run(me):
    print("in the run at", time.monotonic())
"""


# --- In the parent ---


def stepping(
    n: int, steps: int, lookahead: int = 1, *, local: bool = False, kept: bool = False, timeout_s: float = 120
) -> Facts:
    play = {"play": "stepping", "steps": steps, "lookahead": lookahead, "local": local, "kept": kept}
    reports, cost = _run(n, play, timeout_s, steps)
    if wrong := sum(each["wrong"] for each in reports):
        raise PeerError(f"stepping: {wrong} of {n * steps} reads gave another value than the one due")
    seconds = max(each["seconds"] for each in reports)
    facts = {"n": n, "steps": steps, "lookahead": lookahead, "seconds": seconds, "steps_per_s": steps / seconds}
    return _facts("stepping", **facts, **cost)


def pingpong(trips: int, *, local: bool = False, kept: bool = False, timeout_s: float = 120) -> Facts:
    facts = ring(2, 2 * trips, local=local, kept=kept, timeout_s=timeout_s)
    return facts | {"scenario": "pingpong", "round_trips_per_s": trips / facts["seconds"]}


def ring(n: int, hops: int, *, local: bool = False, kept: bool = False, timeout_s: float = 120) -> Facts:
    reports, cost = _run(n, {"play": "token", "hops": hops, "local": local, "kept": kept}, timeout_s, hops)
    seconds = max(each["seconds"] for each in reports)
    typical_us = statistics.median(each["lap_s"] for each in reports) / n * 1e6
    facts = {"n": n, "hops": hops, "seconds": seconds, "hops_per_s": hops / seconds, "typical_hop_us": typical_us}
    return _facts("ring", **facts, **cost)


def flow(
    count: int, size: int, each: int, *, recorded: bool = False, kept: bool = False, timeout_s: float = 120
) -> Facts:
    """Messages of one size from one to one over a Unix socket, so many of them in each step."""
    play = {"play": "flow", "count": count, "size": size, "each": each, "recorded": recorded, "local": True}
    play["kept"] = kept
    reports, cost = _run(2, play, timeout_s, count)
    seconds = max(found["seconds"] for found in reports)
    facts = {"count": count, "size": size, "seconds": seconds, "per_s": count / seconds}
    return _facts("flow", **facts, bytes_per_s=count * size / seconds, **cost)


def startup(n: int, *, timeout_s: float = 120) -> Facts:
    """The wall time from before the first process is started until the last participant is in the run."""
    start = time.monotonic()
    reports, _ = _run(n, {"play": "startup"}, timeout_s)
    return _facts("startup", n=n, seconds=max(each["started_at"] for each in reports) - start)


def launch(n: int, *, timeout_s: float = 120) -> Facts:
    """The wall time from before `worldline run FILE.toml` is started until the last participant is in the run."""
    with tempfile.TemporaryDirectory() as folder:
        here = Path(folder)
        (here / "starting.py").write_text(STARTING)
        entries = (f'[[participants]]\nname = "{name}"\nentry = "starting:run"\n' for name in NAMES[:n])
        (here / "starting.toml").write_text('name = "starting"\n' + "".join(entries))
        start = time.monotonic()
        done = subprocess.run(
            [sys.executable, "-m", "worldline", "run", "starting.toml"],
            cwd=here,
            env={name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"},
            capture_output=True,
            text=True,
            timeout=timeout_s,
        )
        started = [float(at) for at in re.findall(r"in the run at ([\d.]+)", done.stdout)]
    if done.returncode or len(started) != n:
        raise PeerError(f"launch: {len(started)} of {n} were in the run: {done.stderr}")
    return _facts("launch", n=n, seconds=max(started) - start) | {"peer": f"worldline {worldline.__version__} unix"}


def kill(n: int = 3, *, timeout_s: float = 120) -> Facts:
    """`kill -9` one of n that step: how long until the others' calls raise, and what they are told."""
    names = NAMES[:n]
    with Children(timeout_s) as children:
        _start(children, n, {"play": "kill"}, timeout_s)
        children.reports(names)
        time.sleep(0.5)  # Well into stepping.
        killed_at = children.kill("p1")
        told = {name: children.reports([name], 2)[name] for name in names if name != "p1"}
    seconds = max(each["at"] for each in told.values()) - killed_at
    return _facts("kill", n=n, seconds=seconds, killed="p1", told={name: each["text"] for name, each in told.items()})


def equal_arrivals(runs: int, *, seed: int = 0, timeout_s: float = 20) -> Facts:
    """Three send to one at the same time: the order in which it gets the messages, in each of the runs."""
    draw = random.Random(seed)
    orders = []
    for _ in range(runs):
        order = list(NAMES[:4])
        draw.shuffle(order)
        delays = [(name, draw.uniform(0, 0.05)) for name in order]
        with Children(timeout_s) as children:
            _start(children, 4, {"play": "equal"}, timeout_s, delays)
            orders.append(children.reports(["p0"])["p0"]["order"])
    return _facts("equal_arrivals", runs=runs, orders=orders, different=len({tuple(order) for order in orders}))


def _run(n: int, play: Facts, timeout_s: float, units: int = 1) -> tuple[list[Facts], Facts]:
    """Return what the participants report, and the processor time of a unit: the clients' together, the server's."""
    with tempfile.TemporaryDirectory() as folder, Children(timeout_s) as children:
        _start(children, n, play | {"folder": folder}, timeout_s)
        before = children.cpu_s("server")
        reports = list(children.reports(NAMES[:n]).values())
        clients = sum(each.get("cpu_s", 0.0) for each in reports)
        server = children.cpu_s("server") - before
    return reports, {"clients_us": clients / units * 1e6, "server_us": server / units * 1e6}


def _start(
    children: Children, n: int, play: Facts, timeout_s: float, order: list[tuple[str, float]] | None = None
) -> None:
    facts = play | {"n": n, "timeout_s": timeout_s}
    children.start("server", command(facts | {"name": "server"}))
    address = children.reports(["server"])["server"]["address"]
    for name, delay_s in order or [(name, 0.0) for name in NAMES[:n]]:
        time.sleep(delay_s)
        children.start(name, command(facts | {"name": name, "address": address}))


def command(facts: Facts) -> list[str]:
    """The command line of a child."""
    return [sys.executable, __file__, "child", json.dumps(facts)]


def _facts(scenario: str, **facts: Any) -> Facts:
    return {"scenario": scenario, "peer": f"worldline {worldline.__version__} tcp", **facts}


# --- In the children ---


def _child(facts: Facts) -> None:
    end_after(facts["timeout_s"])
    if facts["name"] == "server":
        network = Network(default=link(STEP * facts.get("lookahead", 1)))
        run = plan(NAMES[: facts["n"]], network=network)
        address = f"unix://{facts['folder']}/socket" if facts.get("local") else "tcp://127.0.0.1:0"
        recorder = None
        if facts.get("recorded") or facts.get("kept"):
            recorder = Recorder(Path(facts["folder"]) / "run.mcap", run)
        if facts.get("kept"):
            journal = Path(facts["folder"]) / "run.journal"
            server = Server(run, address, observer=recorder, on_loss="rejoin", journal=journal)
        else:
            server = Server(run, address, observer=recorder)
        report(address=str(server.open()))
        server.serve()
        if recorder is not None:
            recorder.close()
        return
    place, n = NAMES.index(facts["name"]), facts["n"]
    listens = [f"t{other}" for other in (1, 2, 3)] if facts["play"] == "equal" else [f"t{(place - 1) % n}"]
    me = worldline.connect(facts["address"], facts["name"], publishes=[f"t{place}"], subscribes=listens)
    _PLAYS[facts["play"]](me, facts, place)


def _value(sender: int, step: int) -> bytes:
    return f"{sender:3}{step:29}".encode()


def _step(client: Any, facts: Facts, place: int) -> None:
    n, steps, lookahead = facts["n"], facts["steps"], facts["lookahead"]
    sender, topic, due, wrong = (place - 1) % n, f"t{place}", 0, 0
    with client as me:
        taken = stopwatch()
        for step in range(steps):
            me.publish(topic, _value(place, step))
            for message in me.advance((step + 1) * STEP):
                wrong += message.payload != _value(sender, due)
                due += 1
        took = taken()
        wrong += due != max(0, steps - lookahead)  # Those that arrive at the last step's end or later aren't seen.
    report(**took, wrong=wrong)


def _pass_token(client: Any, facts: Facts, place: int) -> None:
    n, hops = facts["n"], facts["hops"]
    topic = f"t{place}"
    with client as me:
        taken = stopwatch()
        if place == 0:
            me.publish(topic, _value(0, 0))
        seen = 0
        laps = []  # Their median tells what a hop takes when nothing else happens to run.
        for message in me.messages():
            laps.append(time.perf_counter())
            seen += 1
            hop = int(message.payload[3:]) + 1
            if hop < hops:
                me.publish(topic, _value(place, hop))
            if hop + n > hops:
                break
        took = taken()
    if seen != hops // n:
        raise SystemExit(f"{seen} hops were seen, not {hops // n}")
    lap_s = statistics.median([after - before for before, after in pairwise(laps)] or [took["seconds"]])
    report(**took, lap_s=lap_s)


def _flow(client: Any, facts: Facts, place: int) -> None:
    count, each, payload = facts["count"], facts["each"], bytes(facts["size"])
    with client as me:
        taken = stopwatch()
        if place == 0:
            for _ in range(count // each):
                for _ in range(each):
                    me.publish("t0", payload)
                me.advance(by=STEP)
        else:
            left = count // each * each
            while left > 0:
                left -= len(me.next())
        report(**taken())


def _start_up(client: Any, _facts: Facts, _place: int) -> None:
    with client:
        report(started_at=time.monotonic())


def _step_until_killed(client: Any, _facts: Facts, place: int) -> None:
    try:
        with client as me:
            report(stepping=True)
            while True:
                me.publish(f"t{place}", b"x")
                me.advance(by=STEP)
    except worldline.WorldlineError as error:
        report(at=time.monotonic(), text=str(error))


def _send_or_receive(client: Any, _facts: Facts, place: int) -> None:
    with client as me:
        if place:
            me.publish(f"t{place}", me.name.encode())
            return
        order = [message.sender for message in me.advance(to="1s")]
    report(order=order)


_PLAYS = {
    "stepping": _step,
    "token": _pass_token,
    "flow": _flow,
    "startup": _start_up,
    "kill": _step_until_killed,
    "equal": _send_or_receive,
}


def main() -> None:
    if sys.argv[1:2] == ["child"]:
        _child(json.loads(sys.argv[2]))
        return
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "scenario", choices=("stepping", "pingpong", "ring", "flow", "startup", "launch", "kill", "equal_arrivals")
    )
    parser.add_argument("arguments", nargs="*", type=int)
    parser.add_argument("--unix", action="store_true", help="over a Unix socket, where there is a choice")
    given = parser.parse_args()
    local = {"local": True} if given.unix else {}
    print(json.dumps(globals()[given.scenario](*given.arguments, **local)))


if __name__ == "__main__":
    main()
