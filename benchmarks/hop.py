"""What a message from program to program costs: processor time of all processes together, all on one core.

On one core nothing hides behind waiting: what isn't computed isn't there. A relay in plain Python that does nothing is
the lower limit, and HELICS, if it is installed, runs in turn. A hop is one message through the server, a step is one of
each participant, with a message of each. Medians, with the least and the most.

`--profile` shows instead where the time goes in a run, from samples of Linux's `perf`: by the process, and by the
module of ours that asked for it. So what Python's own library does for a module, such as looking up an attribute or
making an object, counts as that module's, and is shown beside it. `--picture FILE.svg` draws that.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import statistics
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))


from peers import helics_peer, tcp, worldline_peer
from peers.apart import last_core
from peers.children import PERF_CONTROL, PeerError
from rich.console import Console
from rich.table import Table

from worldline.pictures.sheet import legend, ticks_between
from worldline.pictures.svg import FAINT, PALETTE, SOFT, document, element, hover, path, text_at

Facts = dict[str, Any]
Contest = dict[str, Callable[[], Facts]]

console = Console(width=120, highlight=False)


def contests(scale: float) -> dict[str, Contest]:
    def many(count: int) -> int:
        return max(200, int(count * scale))

    def ring(n: int) -> Contest:
        ours, theirs = many(6000) // n * n, many(1500) // n * n
        return {
            "TCP": lambda: worldline_peer.ring(n, ours),
            "Unix": lambda: worldline_peer.ring(n, ours, local=True),
            "HELICS": lambda: helics_peer.ring(n, theirs),
        }

    def stepping(n: int, ours: int, theirs: int, lookahead: int) -> Contest:
        return {
            "TCP": lambda: worldline_peer.stepping(n, many(ours), lookahead),
            "Unix": lambda: worldline_peer.stepping(n, many(ours), lookahead, local=True),
            "HELICS": lambda: helics_peer.stepping(n, many(theirs), lookahead),
        }

    return {
        "ping-pong": {
            "TCP": lambda: worldline_peer.pingpong(many(5000)),
            "Unix": lambda: worldline_peer.pingpong(many(5000), local=True),
            "HELICS": lambda: helics_peer.pingpong(many(1500)),
            "relay": lambda: {"clients_us": tcp.relayed(many(5000))["cpu_us"] / 2, "server_us": 0.0},
        },
        "ring of 4": ring(4),
        "ring of 8": ring(8),
        "2 step, latency 1 step": stepping(2, 8000, 1500, 1),
        "8 step, latency 1 step": stepping(8, 3000, 500, 1),
        "2 step, latency 20 steps": stepping(2, 20_000, 2000, 20),
        "8 step, latency 20 steps": stepping(8, 8000, 800, 20),
    }


def compare(repeat: int, scale: float, only: str) -> None:
    os.sched_setaffinity(0, {last_core()})
    table = Table(title=f"Processor time per hop, or per step of all, on one core (µs, medians of {repeat})")
    columns = ("TCP", "Unix", "HELICS", "relay")
    for column in ("", *columns, "× HELICS"):
        table.add_column(column, justify="right" if column else "left")
    for title, contest in contests(scale).items():
        if only not in title:
            continue
        found = race(contest, repeat)
        whole = {name: statistics.median(map(in_all, runs)) for name, runs in found.items()}
        ratio = ""
        if "HELICS" in whole:
            ratio = "; ".join(f"{whole['HELICS'] / whole[name]:.1f}" for name in ("TCP", "Unix"))
        table.add_row(title, *(told(found[name]) if name in found else "" for name in columns), ratio)
        console.print(f"{title}: {', '.join(f'{name} {value:.1f}' for name, value in whole.items())}")
    console.print(table)


def race(contest: Contest, repeat: int) -> dict[str, list[Facts]]:
    found: dict[str, list[Facts]] = {}
    for _ in range(repeat):
        for name, run in contest.items():
            try:
                found.setdefault(name, []).append(run())
            except (PeerError, ImportError) as error:
                console.print(f"[yellow]{name}: {str(error).splitlines()[0]}[/]")
    return {name: runs for name, runs in found.items() if runs}


def in_all(facts: Facts) -> float:
    return float(facts["clients_us"] + facts["server_us"])


def told(runs: list[Facts]) -> str:
    costs = sorted(map(in_all, runs))
    parts = " + ".join(f"{statistics.median(run[part] for run in runs):.0f}" for part in ("clients_us", "server_us"))
    return f"{statistics.median(costs):.0f} ({costs[0]:.0f}–{costs[-1]:.0f})\n{parts}"


# --- Where it goes ---

SYSTEM, PYTHON, MESSAGEPACK, OURS = "system calls", "Python's library", "msgspec", "our own code"
PROGRAM = "program, and what isn't compiled"
UNKNOWN = "whose caller wasn't found"
_KINDS = (OURS, MESSAGEPACK, PYTHON, SYSTEM)
_HERTZ = 2000
_UNWINDING = "fp" if platform.machine() == "aarch64" else "dwarf,16384"  # Elsewhere, Python has no frame pointers.
_FRAME = re.compile(r"^\s+[0-9a-f]+ (?P<symbol>.*) \((?P<file>[^()]*(\([^()]*\))?)\)$")

Costs = dict[tuple[str, str], float]
"""By module and kind of code: microseconds per hop."""

Stack = list[tuple[str, str]]
"""(symbol, file), the innermost first."""

Sample = tuple[int, Stack]
"""The process, and its stack."""


def profile(trips: int, local: bool) -> dict[str, Costs]:
    """Sample a ping-pong on one core; return what each module takes of a hop, in clients and in the server."""
    os.sched_setaffinity(0, {last_core()})
    with tempfile.TemporaryDirectory() as folder:
        data, control = Path(folder) / "perf.data", Path(folder) / "control"
        os.mkfifo(control)
        record = ["perf", "record", "-q", "-F", str(_HERTZ), "-e", "cpu-clock", "--call-graph", _UNWINDING]
        record += ["-o", str(data), "--delay=-1", f"--control=fifo:{control}"]  # Of what is measured alone.
        play = [sys.executable, worldline_peer.__file__, "pingpong", str(trips), *(["--unix"] if local else [])]
        os.environ[PERF_CONTROL] = str(control)
        done = subprocess.run([*record, *play], stdout=subprocess.PIPE, check=True, timeout=600)
        facts = json.loads(done.stdout.splitlines()[-1])
        script = ["perf", "script", "-i", str(data), "-F", "pid,ip,sym,dso"]
        text = subprocess.run(script, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True).stdout.decode()
    found: dict[str, Counter[tuple[str, str]]] = {"clients": Counter(), "server": Counter()}
    samples = list(_samples(text))
    roles = _roles(samples)
    for process, stack in samples:
        if process in roles:
            found[roles[process]][_cause(stack), _kind(stack[0])] += 1
    costs: dict[str, Costs] = {}
    for role, counts in found.items():
        share = facts[f"{role}_us"] / max(1, sum(counts.values()))
        costs[role] = {where: count * share for where, count in counts.items()}
    return costs


def _samples(text: str) -> Iterator[Sample]:
    """Cut what `perf script` prints into samples."""
    for block in text.split("\n\n"):
        head, *lines = block.strip("\n").split("\n")
        stack = [(match["symbol"], match["file"]) for line in lines if (match := _FRAME.match(line))]
        if stack:
            yield int(head.split()[0]), stack


def _roles(samples: list[Sample]) -> dict[int, str]:
    """Return whose process each is, by most of its stacks."""
    found: dict[int, Counter[str]] = {}
    for process, stack in samples:
        modules = {module for _, file in stack if (module := _module(file))}
        if modules & {"server/connection", "server/host"}:
            found.setdefault(process, Counter())["server"] += 1
        elif "participant/participant" in modules:
            found.setdefault(process, Counter())["clients"] += 1
    return {process: roles.most_common(1)[0][0] for process, roles in found.items()}


def _cause(stack: Stack) -> str:
    is_whole = any(symbol == "Py_RunMain" for symbol, _ in stack)
    return next((module for _, file in stack if (module := _module(file))), PROGRAM if is_whole else UNKNOWN)


def _module(file: str) -> str:
    """Return the module of ours that a file has, as room/name."""
    if "/worldline/" not in file:
        return ""
    parts = Path(file).with_suffix("").with_suffix("").parts
    return "/".join(parts[-2:])


def _kind(frame: tuple[str, str]) -> str:
    file = frame[1]
    if file.startswith("[kernel") or file == "[vdso]" or file == "[unknown]":
        return SYSTEM
    if "msgspec" in file:
        return MESSAGEPACK
    return OURS if "/worldline/" in file else PYTHON


def tell(costs: dict[str, Costs]) -> None:
    for role, found in costs.items():
        table = Table(title=f"A hop of a ping-pong, in the {role} (µs of processor time)")
        table.add_column("")
        for kind in (*_KINDS, "in all"):
            table.add_column(kind, justify="right")
        for module, whole in _by_module(found).most_common():
            if whole >= 0.05:
                cells = [found.get((module, kind), 0.0) for kind in _KINDS]
                table.add_row(module, *(f"{cell:.1f}" for cell in (*cells, whole)))
        sums = [sum(cost for (_, each), cost in found.items() if each == kind) for kind in _KINDS]
        table.add_row("in all", *(f"{cell:.1f}" for cell in (*sums, sum(sums))))
        console.print(table)


def _by_module(found: Costs) -> Counter[str]:
    wholes: Counter[str] = Counter()
    for (module, _), cost in found.items():
        wholes[module] += cost
    return wholes


_WIDTH, _LEFT, _RIGHT, _TOP = 960.0, 250.0, 70.0, 84.0
_BAR, _ROW, _GROUP = 18.0, 24.0, 38.0
_COLORS = dict(zip(_KINDS, (*PALETTE[:3], "#cbd2d9"), strict=True))


def draw(costs: dict[str, Costs]) -> str:
    """Draw a bar for each module, by what it is made of."""
    longest = max(max(_by_module(found).values()) for found in costs.values())
    scale = (_WIDTH - _LEFT - _RIGHT) / longest

    def sample(kind: str) -> Callable[[float, float], str]:
        return lambda x, y: element("rect", x=x, y=y - 6, width=22, height=12, fill=_COLORS[kind])

    explained, y = legend([(kind, sample(kind)) for kind in _KINDS], _TOP, _WIDTH, 40)
    whole = sum(sum(found.values()) for found in costs.values())
    title = f"Where the {whole:.0f} µs of a hop go"
    parts = [
        text_at(40, 36, title, size=19),
        text_at(40, 58, "µs of processor time, from samples of a running ping-pong on one core", size=13, fill=SOFT),
        *explained,
    ]
    top = y = y + 6
    rows: list[str] = []
    for role, found in costs.items():
        y += 16 if role == "clients" else _GROUP
        rows.append(text_at(40, y, f"{role}: {sum(found.values()):.0f} µs", size=13, font_weight=600))
        y += 10
        for module, cost in _by_module(found).most_common():
            if cost >= 0.5:
                rows += _bar(module, [found.get((module, kind), 0.0) for kind in _KINDS], y, scale)
                y += _ROW
    ticks = ticks_between(0.0, longest, 10)
    for value, label in zip(ticks.values, ticks.labels, strict=True):
        x = _LEFT + value * scale
        parts.append(path(((x, top), (x, y)), stroke=FAINT, stroke_width=0.7))
        parts.append(text_at(x, y + 16, label, size=11, fill=SOFT, text_anchor="middle"))
    return document(_WIDTH, y + 30, parts + rows, kind="hop", title=title)


def _bar(name: str, costs: list[float], y: float, scale: float) -> Iterator[str]:
    yield text_at(_LEFT - 8, y + 13, name, size=12, text_anchor="end")
    x = _LEFT
    for kind, cost in zip(_KINDS, costs, strict=True):
        if width := cost * scale:
            told_of = hover(f"{name}, {kind}: {cost:.1f} µs")
            yield element("rect", told_of, x=x, y=y, width=width, height=_BAR, fill=_COLORS[kind])
            x += width
    yield text_at(x + 6, y + 13, f"{sum(costs):.1f}", size=12)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeat", type=int, default=5, help="how often all is measured (default: 5)")
    parser.add_argument("--scale", type=float, default=1.0, help="how long each measurement is")
    parser.add_argument("--only", default="", help="only what has this in its name")
    parser.add_argument("--profile", action="store_true", help="show where the time of a ping-pong goes; needs perf")
    parser.add_argument("--tcp", action="store_true", help="profile it over TCP, not over Unix sockets")
    parser.add_argument("--picture", type=Path, help="where to draw the profile, as SVG")
    options = parser.parse_args()
    if not (options.profile or options.picture):
        compare(options.repeat, options.scale, options.only)
        return
    costs = profile(max(200, int(10_000 * options.scale)), local=not options.tcp)
    tell(costs)
    if options.picture is not None:
        options.picture.write_text(draw(costs), encoding="utf-8")
        console.print(f"the picture is {options.picture}")


if __name__ == "__main__":
    main()
