"""Runs the models of this room, and compares what comes of them with the digests that they have everywhere.

A user's machine gives the same results as ours, and as their colleague's: that is shown here, in half a minute, rather
than claimed. The models are small and of every room, but for worlds, whose engines compute in floats of their own. The
digests are beside this file. They are the same for all kinds of processors, versions of Python, builds and executors; a
release that changes one says so in the changelog.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import NamedTuple

from msgspec import json

from worldline.files.saving import save
from worldline.model.errors import WorldlineError
from worldline.targets import RunOptions, prepare

_FOLDER = Path(__file__).parent
_MODELS = _FOLDER / "models"
_DIGESTS = _FOLDER / "digests.json"

_FEDERATIONS = (
    *("latency_fixed", "latency_uniform", "latency_normal", "latency_exponential", "latency_table"),
    *("in_order", "loss", "duplication", "corruption", "bandwidth", "outage_partition", "outage_hold", "rules"),
    *("mailboxes", "faults_crash", "faults_hang", "faults_slow", "boot_late"),
    *("clock_drift", "clock_drawn", "clock_wander", "emergency_stop", "guest"),
)
_KERNELS = ("queue", "two_clerks", "hold", "rumor", "players", "machines", "children", "dice")
_FILE = "file"
_AGENTS = {"ping": "9", "introduction": "9", "flock": "4", "epidemic": "6", "relay": "9", "pipeline": "9"}
_ELSEWHERE = {
    **dict.fromkeys(("unix", "tcp", "workers(2)"), (_FILE,)),
    "processes(2)": ("hold", "rumor", "machines", "epidemic", "relay"),
}
"""Models that are also run by several processes: their digests mustn't depend on it."""


class Case(NamedTuple):
    """One run of a model."""

    model: str
    target: str
    until: str | None = None
    executor: str | None = None

    def __str__(self) -> str:
        return self.model if self.executor is None else f"{self.model} on {self.executor}"


class Verdict(NamedTuple):
    """What came of a case: the digest, or why there is none, and the digest that it has elsewhere."""

    case: Case
    digest: str
    expected: str
    failure: str = ""

    @property
    def holds(self) -> bool:
        return self.digest == self.expected


def cases() -> list[Case]:
    """Return all of them: each model in this process, and then some on several."""
    from worldline.nodes.algorithms import NAMES

    here = [
        *(Case(name, f"{_MODELS / 'federations.py'}:{name}") for name in _FEDERATIONS),
        *(Case(name, f"{_MODELS / 'kernels.py'}:{name}") for name in _KERNELS),
        Case(_FILE, str(_MODELS / "federation.toml"), executor="in-process"),
        *(Case(name, f"nodes:{name}") for name in NAMES),
        *(Case(name, f"spacetime:{name}", until) for name, until in _AGENTS.items()),
    ]
    by_model = {case.model: case for case in here}
    return here + [
        by_model[model]._replace(executor=executor) for executor, models in _ELSEWHERE.items() for model in models
    ]


def verdicts() -> Iterator[Verdict]:
    """Run all cases, one after the other."""
    expected = json.decode(_DIGESTS.read_bytes(), type=dict[str, str])
    for case in cases():
        try:
            yield Verdict(case, digest_of(case), expected[case.model])
        except WorldlineError as error:
            yield Verdict(case, "", expected[case.model], str(error))


def digest_of(case: Case) -> str:
    """Run a case. What its programs print is of no interest here, and neither is advice on how to run it faster."""
    with redirect_stdout(StringIO()), redirect_stderr(StringIO()):
        ready = prepare(case.target, RunOptions(until=case.until, executor=case.executor))
        outcome = ready.run()
        if outcome.failure is not None:
            raise outcome.failure
    return outcome.digest.hex()


def renew() -> None:
    """Write the digests that the models have now, after a change that was meant to change them."""
    found = {case.model: digest_of(case) for case in reversed(cases())}
    save(_DIGESTS, json.format(json.encode(found), indent=2) + b"\n")
