"""HELICS in the scenarios of our federation benchmark: one process per federate, one for the broker, TCP on loopback.

One step is one second of HELICS time. Of the variants that were tried and gave right results, each scenario has the
fastest or one that noise can't tell from it. Tried, though not in every combination and with 3 to 20 runs each: values,
targeted and untargeted endpoints; time period, time delta, input and output delay; the flags uninterruptible,
event_triggered, wait_for_current_time_update, restrictive_time_policy and single_thread_core; distributed and global
timing. What that came to:

* When stepping, values (publications and inputs) beat targeted endpoints by 15 to 30 %; distributed timing beats global
  timing except, perhaps, with two federates and a long latency.
* The latency is an *output delay*; an input delay lets federates run ahead but delivers values at other times.
* When stepping, the delay is half a step short of the latency. A value that becomes visible exactly at the time of a
  grant may or may not be seen by it (with a delay of one step it came a step late); with half a step there is no such
  tie and the right value comes every time, at the same speed. A wait_for_current_time_update that is meant to settle
  the tie made the federation hang or fail.
* HELICS does profit from a long latency: federates run ahead as far as the output delay lets them.
* Waiting for the next message is fastest with an output delay of the full latency, event_triggered, and a request for
  a far but finite time. HELICS still grants that far time now and then while a message is under way, with two federates
  in one run of four to twenty; such a run is measured again, and `invalid_runs` says how many there were. Without an
  output delay it does so nearly always (two federates) or hangs (four and more), so a latency of one step it is.

The parent never imports helics. Every function is bounded by `timeout_s` and leaves no process behind.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import json
import random
import socket
import struct
import sys
import time
from collections.abc import Callable
from functools import partial
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as version_of
from pathlib import Path
from typing import Any

if __package__:
    from .children import Children, PeerError, end_after, report, stopwatch
else:
    from children import Children, PeerError, end_after, report, stopwatch

LOOPBACK = "127.0.0.1"
PORTS = range(20_000, 32_000)
CORE = "tcp"
# Far beyond the end of any scenario, but not HELICS' largest time: see the module's docstring.
HORIZON = 1e6
ATTEMPTS_MAX = 5
KILL_WAIT_S = 60.0

Facts = dict[str, Any]


# ---------------------------------------------------------------------------------------------- the scenarios


def stepping(n: int, steps: int, lookahead: int = 1, *, core: str = CORE, timeout_s: float = 120) -> Facts:
    """A ring in which everybody publishes 32 bytes at every step, read by its neighbor `lookahead` steps later."""
    plan = {"play": "stepping", "steps": steps, "lookahead": lookahead}
    reports, cost = _run(n, plan, core, timeout_s, steps)
    if wrong := sum(each["wrong"] for each in reports):
        raise PeerError(f"stepping: {wrong} of {n * steps} reads gave another value than the one due")
    seconds = max(each["seconds"] for each in reports)
    facts = {"n": n, "steps": steps, "lookahead": lookahead, "seconds": seconds, "steps_per_s": steps / seconds}
    return _facts("stepping", core, **facts, **cost)


def pingpong(trips: int, *, core: str = CORE, timeout_s: float = 120) -> Facts:
    """A message back and forth between two, each of which waits for its next message."""
    facts = _token("pingpong", 2, 2 * trips, core, timeout_s)
    return facts | {"trips": trips, "round_trips_per_s": trips / facts["seconds"]}


def ring(n: int, hops: int, *, core: str = CORE, timeout_s: float = 120) -> Facts:
    """A token around a ring in which everybody waits for its next message."""
    facts = _token("ring", n, hops, core, timeout_s)
    return facts | {"hops_per_s": hops / facts["seconds"]}


def startup(n: int, *, core: str = CORE, timeout_s: float = 120) -> Facts:
    """The wall time from before the first process is started until the last federate executes."""
    start = time.monotonic()
    reports, _ = _run(n, {"play": "startup"}, core, timeout_s)
    seconds = max(each["executing_at"] for each in reports) - start
    return _facts("startup", core, n=n, seconds=seconds, import_s=max(each["import_s"] for each in reports))


def kill(n: int = 3, *, tick: str | None = None, core: str = CORE, timeout_s: float = 120) -> Facts:
    """`kill -9` one of n that step: how long until the others' calls return with something else than the next step.

    `tick` is HELICS' heartbeat, from which it learns of a death ("5s" unless given, as text such as "500ms").
    """
    names = _names(n)
    with Children(timeout_s) as children:
        _start(children, n, {"play": "kill", "tick": tick}, core)
        children.reports(names)
        time.sleep(0.5)  # well into stepping
        victim = names[1]
        killed_at = children.kill(victim)
        survivors = [name for name in names if name != victim]
        told = {name: _told(children, name, killed_at) for name in survivors}
    times = [each["seconds"] for each in told.values()]
    seconds = None if None in times else max(times)
    return _facts("kill", core, n=n, tick=tick or "default (5s)", seconds=seconds, killed=victim, told=told)


def equal_arrivals(
    runs: int, *, way: str = "targeted", seed: int = 0, core: str = CORE, timeout_s: float = 20
) -> Facts:
    """Three send to one at the same time: the order in which it gets the messages, once for each of the runs.

    The processes are started in a shuffled order with up to 50 ms between them. `timeout_s` is for each run; a run
    that gives nothing in it is counted in `hung_runs`. The order depends on the way, so there are all three:

    * `targeted`: endpoints connected beforehand, and the receiver waits for its next message. HELICS sorts an
      endpoint's messages by time and name of the source, and here knows whom it has to wait for.
    * `addressed`: endpoints that name the receiver when they send; the receiver waits for its next message as well.
      It is woken before all have come, and now and then the federation hangs.
    * `published`: an endpoint that subscribes to three publications; the receiver steps to a later time and looks.
    """
    draw = random.Random(seed)
    orders: list[list[str]] = []
    hung_runs = 0
    for _ in range(runs):
        started = _names(4)
        draw.shuffle(started)
        pauses = [draw.uniform(0, 0.05) for _ in started]
        with Children(timeout_s + 5) as children:
            _start(children, 4, {"play": "equal_arrivals", "way": way}, core, list(zip(started, pauses, strict=True)))
            try:
                got = children.reports(["f0"], wait_s=timeout_s)["f0"]["got"]
            except TimeoutError:
                hung_runs += 1
                continue
        if sorted(sender for sender, _ in got) != ["f1", "f2", "f3"] or len({at for _, at in got}) != 1:
            raise PeerError(f"equal_arrivals: not one message of each sender at one time, but {got}")
        orders.append([sender for sender, _ in got])
    facts = {"way": way, "runs": runs, "seed": seed, "hung_runs": hung_runs}
    different = len({tuple(order) for order in orders})
    return _facts("equal_arrivals", core, n=4, **facts, different_orders=different, orders=orders)


def _token(scenario: str, n: int, hops: int, core: str, timeout_s: float) -> Facts:
    for invalid_runs in range(ATTEMPTS_MAX):
        with Children(timeout_s) as children:
            _start(children, n, {"play": "token", "hops": hops}, core)
            reports = _valid_reports(children, n)
            cost = _cost(children, reports or [], hops)
        if reports is not None:
            seconds = max(each["seconds"] for each in reports)
            return _facts(scenario, core, n=n, hops=hops, seconds=seconds, invalid_runs=invalid_runs, **cost)
    raise PeerError(f"{scenario}: in {ATTEMPTS_MAX} runs of {ATTEMPTS_MAX} HELICS granted the far end too early")


def _valid_reports(children: Children, n: int) -> list[Facts] | None:
    """All reports, or None as soon as one of them says that a message was missed: the others then wait in vain."""
    reports: list[Facts] = []
    for said in children.reports_as_they_come(_names(n)):
        if said["missed"]:
            return None
        reports.append(said)
    return reports


def _told(children: Children, name: str, killed_at: float) -> Facts:
    try:
        said = children.reports([name], count=2, wait_s=KILL_WAIT_S)[name]
    except TimeoutError:
        return {"seconds": None, "text": f"nothing within {KILL_WAIT_S:g} s"}
    return {"seconds": said.pop("at") - killed_at, **said}


# ---------------------------------------------------------------------------------------------- the parent's side


def version() -> str:
    try:
        return version_of("helics")
    except PackageNotFoundError:
        raise PeerError(f"HELICS is not installed for {sys.executable}: pip install helics") from None


def _facts(scenario: str, core: str, **facts: Any) -> Facts:
    return {"scenario": scenario, "peer": f"helics {version()} {core}", **facts}


def _names(n: int) -> list[str]:
    return [f"f{number}" for number in range(n)]


def _run(n: int, plan: Facts, core: str, timeout_s: float, units: int = 1) -> tuple[list[Facts], Facts]:
    """Return what the federates report, and the processor time of a unit: the federates' together, the broker's."""
    with Children(timeout_s) as children:
        _start(children, n, plan, core)
        reports = list(children.reports(_names(n)).values())
        return reports, _cost(children, reports, units)


def _cost(children: Children, reports: list[Facts], units: int) -> Facts:
    federates = sum(each.get("cpu_s", 0.0) for each in reports)
    return {"clients_us": federates / units * 1e6, "server_us": children.cpu_s("broker") / units * 1e6}


def _start(children: Children, n: int, plan: Facts, core: str, order: list[tuple[str, float]] | None = None) -> None:
    """Start the broker and all federates, in this order and with these pauses after each where an order is given."""
    port = _free_port()
    tick = [f"--tick={plan['tick']}"] if plan.get("tick") else []
    children.start("broker", [
        _broker(), "--coretype", core, "--federates", str(n), f"--port={port}", f"--local_interface=tcp://{LOOPBACK}",
        "--loglevel=no_print", f"--maxcosimduration={round(children.timeout_s) + 5}s", *tick,
    ])  # fmt: skip
    for name, pause in order or [(name, 0.0) for name in _names(n)]:
        place = int(name[1:])
        whole = {**plan, "n": n, "place": place, "core": core, "port": port, "timeout_s": children.timeout_s}
        children.start(name, [sys.executable, str(Path(__file__).resolve()), "child", json.dumps(whole)])
        if pause:
            time.sleep(pause)


def _broker() -> str:
    """The path of the broker program itself; the script that pip installs would first start a Python."""
    version()
    package = importlib.util.find_spec("helics")
    assert package is not None
    assert package.origin is not None
    program = Path(package.origin).parent / "install" / "bin" / "helics_broker"
    if not program.exists():
        raise PeerError(f"this helics package has no broker at {program}: pip install --force-reinstall helics")
    return str(program)


def _free_port() -> int:
    """A port for the broker, which numbers the federates' ports on from it.

    It lies below those that the system gives to outgoing connections, or one of these could take a federate's.
    """
    for port in random.SystemRandom().sample(PORTS, 100):
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind((LOOPBACK, port))
            return port
    raise PeerError(f"no free port from {PORTS.start} to {PORTS.stop}")


# ---------------------------------------------------------------------------------------------- the federate's side


def _federate(plan: Facts) -> None:
    end_after(plan["timeout_s"] + 5)
    start = time.monotonic()
    import helics

    plan["import_s"] = time.monotonic() - start
    plays: dict[str, Callable[[Any, Facts], None]] = {
        "stepping": _play_stepping,
        "token": _play_token,
        "startup": _play_startup,
        "kill": _play_kill,
        "equal_arrivals": _play_equal_arrivals,
    }
    plays[plan["play"]](helics, plan)
    helics.helicsCloseLibrary()


def _create(h: Any, plan: Facts, *, flags: tuple[str, ...] = (), **times: float) -> Any:
    info = h.helicsCreateFederateInfo()
    tick = f"--tick={plan['tick']}" if plan.get("tick") else ""
    h.helicsFederateInfoSetCoreTypeFromString(info, plan["core"])
    h.helicsFederateInfoSetCoreName(info, f"core{plan['place']}")
    h.helicsFederateInfoSetCoreInitString(
        info,
        f"--federates=1 --broker_address=tcp://{LOOPBACK} --brokerport={plan['port']} "
        f"--local_interface=tcp://{LOOPBACK} {tick}",
    )
    h.helicsFederateInfoSetIntegerProperty(info, h.HelicsProperty.INT_LOG_LEVEL, h.HelicsLogLevel.NO_PRINT)
    for name, value in times.items():
        h.helicsFederateInfoSetTimeProperty(info, getattr(h.HelicsProperty, f"TIME_{name.upper()}"), value)
    for flag in flags:
        h.helicsFederateInfoSetFlagOption(info, getattr(h.HelicsFederateFlag, flag.upper()), True)
    return h.helicsCreateCombinationFederate(f"f{plan['place']}", info)


def _neighbors(h: Any, federate: Any, plan: Facts) -> tuple[Any, Any]:
    """A publication of our own, and an input from the left neighbor."""
    place, n = plan["place"], plan["n"]
    publication = h.helicsFederateRegisterGlobalPublication(federate, f"p{place}", h.HelicsDataType.RAW, "")
    return publication, h.helicsFederateRegisterSubscription(federate, f"p{(place - 1) % n}", "")


def _value(sender: int, step: int) -> bytes:
    return struct.pack("<QQ16x", sender, step)


def _play_stepping(h: Any, plan: Facts) -> None:
    place, lookahead, left = plan["place"], plan["lookahead"], (plan["place"] - 1) % plan["n"]
    federate = _create(h, plan, flags=("uninterruptible",), period=1.0, output_delay=lookahead - 0.5)
    publication, incoming = _neighbors(h, federate, plan)
    h.helicsFederateEnterExecutingMode(federate)
    wrong = 0
    taken = stopwatch()
    for step in range(1, plan["steps"] + 1):
        h.helicsPublicationPublishBytes(publication, _value(place, step - 1))
        granted = h.helicsFederateRequestTime(federate, float(step))
        got = h.helicsInputGetBytes(incoming) if h.helicsInputIsUpdated(incoming) else None
        due = _value(left, step - lookahead) if step >= lookahead else None
        wrong += got != due or granted != step
    report(**taken(), wrong=wrong)
    h.helicsFederateDisconnect(federate)


def _play_token(h: Any, plan: Facts) -> None:
    """Hop k is sent to federate k modulo n; the first leaves federate 0."""
    place, n, hops = plan["place"], plan["n"], plan["hops"]
    federate = _create(h, plan, flags=("event_triggered",), output_delay=1.0)
    publication, incoming = _neighbors(h, federate, plan)
    h.helicsFederateEnterExecutingMode(federate)
    missed = False
    taken = stopwatch()
    if place == 0:
        h.helicsPublicationPublishBytes(publication, _value(0, 1))
    for hop in range(place or n, hops + 1, n):
        granted = h.helicsFederateRequestTime(federate, HORIZON)
        if granted != hop or h.helicsInputGetBytes(incoming) != _value((place - 1) % n, hop):
            missed = True
            break
        if hop < hops:
            h.helicsPublicationPublishBytes(publication, _value(place, hop + 1))
    report(**taken(), missed=missed)
    h.helicsFederateDisconnect(federate)


def _play_startup(h: Any, plan: Facts) -> None:
    federate = _create(h, plan, period=1.0)
    _neighbors(h, federate, plan)
    h.helicsFederateEnterExecutingMode(federate)
    report(executing_at=time.monotonic(), import_s=plan["import_s"])
    h.helicsFederateDisconnect(federate)


def _play_kill(h: Any, plan: Facts) -> None:
    """Step until a call fails, or returns another time, or the federate's state has changed: and say which."""
    federate = _create(h, plan, flags=("uninterruptible",), period=1.0, output_delay=0.5)
    publication, _ = _neighbors(h, federate, plan)
    h.helicsFederateEnterExecutingMode(federate)
    report(executing=True)
    executing = h.helicsFederateGetState(federate)
    step, granted, state, text = 0, 0.0, executing, ""
    while granted == step and state == executing and not text:
        step += 1
        try:
            h.helicsPublicationPublishBytes(publication, _value(plan["place"], step))
            granted = h.helicsFederateRequestTime(federate, float(step))
        except h.HelicsException as error:
            text = str(error)
        state = h.helicsFederateGetState(federate)
    report(at=time.monotonic(), text=text, requested=step, granted=granted, state=state.name)


def _play_equal_arrivals(h: Any, plan: Facts) -> None:
    """Federates 1 to 3 send at time 1; federate 0 reads until time 5, when all must have come."""
    place, way = plan["place"], plan["way"]
    value = _value(place, 1)
    waits = way != "published"
    federate = _create(h, plan) if waits else _create(h, plan, flags=("uninterruptible",), period=1.0)
    if way == "published" and place:
        publication = h.helicsFederateRegisterGlobalPublication(federate, f"p{place}", h.HelicsDataType.RAW, "")
        send = partial(h.helicsPublicationPublishBytes, publication, value)
    elif way == "targeted":
        endpoint = h.helicsFederateRegisterGlobalTargetedEndpoint(federate, f"e{place}", "")
        if place:
            h.helicsEndpointAddDestinationTarget(endpoint, "e0")
        send = partial(h.helicsEndpointSendBytes, endpoint, value)
    else:
        endpoint = h.helicsFederateRegisterGlobalEndpoint(federate, f"e{place}", "")
        if way == "published":
            for sender in (1, 2, 3):
                h.helicsEndpointSubscribe(endpoint, f"p{sender}")
        send = partial(h.helicsEndpointSendBytesTo, endpoint, value, "e0")
    h.helicsFederateEnterExecutingMode(federate)
    if place:
        h.helicsFederateRequestTime(federate, 1.0)
        send()
        h.helicsFederateRequestTime(federate, 2.0)
    else:
        report(got=_messages_until(h, federate, endpoint, 5.0))
    h.helicsFederateDisconnect(federate)


def _messages_until(h: Any, federate: Any, endpoint: Any, end: float) -> list[tuple[str, float]]:
    got = []
    now = 0.0
    while now < end:
        now = h.helicsFederateRequestTime(federate, end)
        while h.helicsEndpointHasMessage(endpoint):
            message = h.helicsEndpointGetMessage(endpoint)
            sender, _ = struct.unpack("<QQ16x", h.helicsMessageGetBytes(message))
            got.append((f"f{sender}", h.helicsMessageGetTime(message)))
    return got


# ---------------------------------------------------------------------------------------------- the command line


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    shared = argparse.ArgumentParser(add_help=False)
    shared.add_argument("--core", default=CORE, help="HELICS core type: tcp, or tcpss (all through the broker)")
    shared.add_argument("--repeat", type=int, default=1, help="measure so many times; one JSON object per line")
    shared.add_argument("--timeout", type=float, metavar="SECONDS", help="of each run")
    scenarios = parser.add_subparsers(dest="scenario", required=True)

    def scenario(measure: Callable[..., Facts], **numbers: int) -> argparse.ArgumentParser:
        described = (measure.__doc__ or "").splitlines()[0]
        one = scenarios.add_parser(measure.__name__, parents=[shared], help=described, description=described)
        for name, default in numbers.items():
            one.add_argument(f"--{name}", type=int, default=default, help="%(default)s unless given")
        one.set_defaults(measure=measure, arguments=list(numbers))
        return one

    scenario(stepping, n=2, steps=2000, lookahead=1)
    scenario(pingpong, trips=1000)
    scenario(ring, n=4, hops=2000)
    scenario(startup, n=8)
    killing = scenario(kill, n=3)
    killing.add_argument("--tick", help="HELICS' heartbeat, such as 500ms; its own default is 5s")
    killing.set_defaults(arguments=["n", "tick"])
    arriving = scenario(equal_arrivals, runs=50, seed=0)
    arriving.add_argument("--way", choices=["targeted", "addressed", "published"], default="targeted")
    arriving.set_defaults(arguments=["runs", "seed", "way"])

    options = parser.parse_args()
    arguments = {name: getattr(options, name) for name in options.arguments}
    if options.timeout is not None:
        arguments["timeout_s"] = options.timeout
    for _ in range(options.repeat):
        try:
            facts = options.measure(**arguments, core=options.core)
        except PeerError as error:
            sys.exit(f"{options.scenario}: {error}")
        print(json.dumps(facts), flush=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["child"]:
        _federate(json.loads(sys.argv[2]))
    else:
        main()
