"""`worldline simpy`: run a SimPy script as it is, on Worldline's SimPy."""

from __future__ import annotations

import shlex
from pathlib import Path

from msgspec.structs import replace

from worldline.cli.console import output_free_for
from worldline.cli.options import RecordingOptions, takes
from worldline.cli.run import ReportOptions, finish, run_model
from worldline.history.outcome import Outcome
from worldline.model import UsageError, WorldlineError
from worldline.targets import RunOptions
from worldline.targets.ready import PYTHON


@takes(
    """
    script: SCRIPT  A Python file that imports simpy.
    arguments: ARGUMENTS  The script's own arguments, after --.
    --seed
    --until TIME  End of each run: a number in the script's own units, or a time such as 20s.
    settings: --set NAME=VALUE  unit=1ms says how long a unit of the script's time is (default: 1s).
    --record FILE.mcap  Where to record (default: nowhere).
    --no-record
    --force
    as_json: --json  Print one JSON object at the end, everything else to standard error.
    --quiet
    --traceback  Print the full traceback if the script fails.
    """
)
def simpy(
    script: Path,
    options: RunOptions,
    recording: RecordingOptions,
    shown: ReportOptions,
    arguments: tuple[str, ...] = (),
) -> None:
    """Run a SimPy script unchanged: `import simpy` means Worldline's, which is several times as fast.

    `worldline run`, `verify` and `diff` take such scripts as well; there, --set args="..." is its command line.
    """
    from worldline.targets.simpy import from_script, is_script

    if script.suffix != PYTHON:
        raise UsageError(f"{script} isn't a Python script", advice="its name ends in .py")
    if script.is_file() and not is_script(script):
        raise UsageError(f"{script} defines a model, and isn't a script", advice=f"worldline run {script}")
    if arguments:
        options = replace(options, settings=(*options.settings, f"args={shlex.join(arguments)}"))
    shelf = recording.shelf()
    if shown.as_json and shelf is not None and shelf.is_standard_output:
        raise UsageError("--json and the recording both go to standard output", advice="record in a file")
    outcome: Outcome | None = None
    failure: WorldlineError | None = None
    with output_free_for(shelf, wanted=shown.as_json):
        ready = from_script(script, options)
        ready.target, ready.options = str(script), options
        try:
            outcome = run_model(ready, shelf, quiet=shown.quiet, as_json=shown.as_json)
            failure = outcome.failure
        except WorldlineError as error:
            if isinstance(error, UsageError) and error.at is None:  # It was refused, and hasn't begun.
                raise
            failure = error
    finish(str(script), ready, outcome, failure, shelf, shown)
