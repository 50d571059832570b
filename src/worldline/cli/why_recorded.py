"""`worldline why FILE`: who waited for whom in a run that was noted, and what would help."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

from worldline.cli.console import PlainConsole, print_json, warn
from worldline.lock.situation import Situation
from worldline.model import UsageError
from worldline.recording import Recording
from worldline.recording.timing import Timing
from worldline.recording.timing_file import TIMING_SUFFIX
from worldline.waiting.accounts import account_as_plain, account_in_words, advice_in_words
from worldline.waiting.advice import HEARD_MAX, Advice, Advisor
from worldline.waiting.habits import Habits
from worldline.waiting.moments import situation_at
from worldline.waiting.tally import WaitingTally, waits_in
from worldline.waiting.words import in_words

_RECORDING = ".mcap"


def timing_for(run: str) -> Timing:
    """Open the timing that is meant, or that is beside the recording that is meant."""
    path = Path(run)
    if path.suffix != _RECORDING:
        return Timing(path)
    beside = path.with_suffix(TIMING_SUFFIX)
    if not path.exists():
        raise UsageError(f"there is no file {path}")
    if not beside.exists():
        raise UsageError(
            f"{path} says what happened, and not how long anybody waited for it",
            advice="run it again with --timing: the result is the same",
        )
    return Timing(beside)


def moment(timing: Timing, at: int | None) -> Situation:
    """Return how the run stood at a simulated time, or at the end."""
    return situation_at(timing.header.plan, timing.header.name, timing.heard(), at)


def account(timing: Timing, recording: Path | None, *, as_json: bool, advise: bool) -> None:
    """Say who waited for whom in all, and what would help."""
    plan, name = timing.header.plan, timing.header.name
    habits = Habits()
    tally = WaitingTally(waits_in(plan, habits.listening(timing.heard())))
    _check_same(timing, recording)
    console = PlainConsole()
    if not as_json:
        for line in account_in_words(name, tally, habits):
            console.print(line)
        if timing.end is None:
            if timing.is_cut_off:
                warn(f"{timing.path} is cut off, or just being written")
            console.print("")
            console.print("the run wasn't over when this was noted; this is how it stood:")
            for line in in_words(moment(timing, None)):
                console.print(line)
        if advise:
            console.print("")
    advice: list[Advice] = []
    if advise and tally.waited:
        advice = Advisor(plan, list(islice(timing.heard(), HEARD_MAX)), habits).advice()
    if as_json:
        print_json(account_as_plain(name, tally, habits, advice))
    elif advise:
        for line in advice_in_words(advice):
            console.print(line)


def _check_same(timing: Timing, recording: Path | None) -> None:
    """Warn of a timing that was noted in another run than the recording beside it."""
    if recording is None or timing.end is None or recording.suffix != _RECORDING:
        return
    outcome = Recording(recording).outcome
    if outcome is not None and timing.end.digest is not None and outcome.digest != timing.end.digest:
        warn(f"{timing.path} was noted in another run than {recording}: their digests differ")
