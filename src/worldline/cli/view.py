"""`worldline view`: look at a recording or a failure in a browser."""

from __future__ import annotations

import signal
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from worldline.cli.console import remark
from worldline.cli.options import PageOptions, takes
from worldline.cli.runner import announce, interruptible_quietly
from worldline.federation.inprocess.trial import FederationTrial, in_words
from worldline.history.outcome import Outcome
from worldline.model import UsageError
from worldline.model.text import printable
from worldline.nodes.shrinking import in_words as nodes_in_words
from worldline.nodes.trace import NodeRecord
from worldline.nodes.trial import Trial, load
from worldline.nodes.trial import story_steps as nodes_story_steps
from worldline.recording import Recording
from worldline.recording.comparing import compare_recordings
from worldline.search.day import USUAL_DAY
from worldline.search.properties import StoryStep, story_steps
from worldline.search.searching import SECONDS_MAX, deadline
from worldline.targets import RunOptions
from worldline.targets.trials import TrialRequest, is_saved_trial, load_trial_request, made_trial
from worldline.watch.live import LiveRun
from worldline.watch.recorded import recorded_show
from worldline.watch.server import PageServer
from worldline.watch.show import Show

STEPS_MAX = 2000
"""Steps of a story that a page gets: the last ones."""


@takes(
    """
    FILE  A recording, or a failure that `search` or `nodes` has saved.
    OTHER  Another recording, shown beside it, with the first difference.
    A saved failure:
    code: --target FILE.toml|FILE.py[:NAME]  What to run. A saved failure is data, and chooses no code.
    --property
    --set
    --draws
    The page:
    --port
    --host
    --no-browser
    """
)
def view(
    file: Path,
    other: Path | None = None,
    *,
    code: str | None = None,
    options: RunOptions,
    page: PageOptions,
) -> None:
    """Look at a recording in a browser, or at two side by side; or step through a failure that was saved.

    It is served to this machine alone until Ctrl-C. Nothing is loaded from elsewhere.
    """
    names_code = code is not None or options != RunOptions()
    if file.suffix == ".json":
        if other is not None:
            raise UsageError("two failures can't be compared", advice="record them, and view the recordings")
        named = TrialRequest(target=code or "", options=options)
        _view_failure(file, named, page)
        return
    if names_code:
        raise UsageError(f"{file} is no saved failure (.json)", advice="leave out all but the recordings")
    recordings = [Recording(each) for each in (file, other) if each is not None]
    content: dict[str, Any] = {}
    if len(recordings) == 2:
        content["difference"] = _difference(*recordings)
    _serve([recorded_show(each) for each in recordings], content, page)


def _serve(shows: list[Show], content: dict[str, Any], page: PageOptions) -> None:
    """Serve a page until its user ends it."""
    with interruptible_quietly(), PageServer(shows, host=page.host, port=page.port, extras=content) as server:
        announce(server, page)
        signal.pause()


# A failure as a story: the run as any other, and beside it what happens, step by step.


def _view_failure(file: Path, named: TrialRequest, page: PageOptions) -> None:
    """Run a failure that was saved, of a federation or of nodes, and show it."""
    if is_saved_trial(file):
        trial = made_trial(load_trial_request(file, named, "view"))
        show_federation_trial(file.stem, trial, page)
        return
    if named.options != RunOptions():
        raise UsageError(f"{file} has all but its algorithm in it", advice="leave out all but --target")
    nodes_trial, _ = load(file, Path(named.target) if named.target else None, "--target")
    show_nodes_trial(file.stem, nodes_trial, page)


def show_federation_trial(name: str, trial: FederationTrial, page: PageOptions) -> None:
    """Run a trial of a federation, and show it on a page until its user ends that."""
    live = LiveRun({"name": printable(name), "room": "federation", "seed": trial.seed, "file": ""})
    outcome, happenings = trial.told(observer=live.observer)
    _show_story(live, outcome, in_words(trial), story_steps(happenings, trial.written), page)


def show_nodes_trial(name: str, trial: Trial, page: PageOptions) -> None:
    """Run a trial of nodes, and show it on a page until its user ends that."""
    live = LiveRun({"name": printable(name), "room": "nodes", "seed": trial.seed, "file": ""})
    records: list[NodeRecord] = []
    with deadline(SECONDS_MAX):
        outcome = trial.run(observer=live.observer, trace=records.append)
    circumstances = nodes_in_words(trial, outcome.day or USUAL_DAY)
    _show_story(live, outcome, circumstances, nodes_story_steps(trial, records), page)


def _show_story(
    live: LiveRun, outcome: Outcome, circumstances: list[str], steps: Iterable[StoryStep], page: PageOptions
) -> None:
    live.over(outcome)
    live.show.facts["live"] = False
    last = list(steps)
    story = {
        "circumstances": [printable(line) for line in circumstances],
        "left_out": max(0, len(last) - STEPS_MAX),
        "steps": [
            {"at": step.at, "who": printable(step.who), "text": printable(step.text), "matters": step.matters}
            for step in last[-STEPS_MAX:]
        ],
    }
    if outcome.failure is None:
        remark("it doesn't fail any more")
    _serve([live.show], {"story": story}, page)


def _difference(a: Recording, b: Recording) -> dict[str, Any]:
    """Say where two recordings differ, for the page."""
    found = compare_recordings(a.path, b.path)
    if found.is_same:
        return {"text": "no difference", "at": None, "chain": []}
    cause = found.cause
    text = "; ".join(line.strip() for line in found.cause_lines()[:3]) or "they differ"
    return {
        "text": text,
        "at": None if cause is None else cause.parting.at,
        "chain": [{"member": step.member, "at": step.at} for step in found.chain()],
    }
