"""`worldline export`: write a recording in a form that other tools read."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path

from worldline.cli.console import remark, warn
from worldline.cli.options import takes
from worldline.cli.runner import interruptible
from worldline.files.saving import destination, save, save_parts
from worldline.model import UsageError
from worldline.recording import Recording
from worldline.recording.accounting import intact, narrate, recorded_account, shortcoming
from worldline.recording.tables import chrome_trace_of, csv_of, parquet_of


class ExportForm(StrEnum):
    """What a recording can be written as."""

    CSV = "csv"
    PARQUET = "parquet"
    LCM = "lcm"
    CHROME_TRACE = "chrome-trace"


_STANDARD = Path("/dev/stdout")
_SUFFIXES = {
    ".csv": ExportForm.CSV,
    ".parquet": ExportForm.PARQUET,
    ".log": ExportForm.LCM,
    ".lcm": ExportForm.LCM,
    ".json": ExportForm.CHROME_TRACE,
}


@takes(
    """
    FILE  A recording.
    OUTPUT  Where to write it (default: next to FILE, with another ending); - is standard output.
    form: --to  What to write it as (default: what OUTPUT's ending says).
    --topic NAME  Only this topic; in tables, each field of its payloads has a column.
    """
)
def export(file: Path, output: Path | None = None, form: ExportForm | None = None, topic: str | None = None) -> None:
    """Write a recording as CSV, Parquet, an LCM log or a Chrome trace.

    Tables have a row for each message and receiver. An LCM log is the one that `run --lcm` would have written.
    """
    chosen = _form(form, output)
    recording = Recording(file)
    path = _default(file, chosen) if output is None else _STANDARD if str(output) == "-" else output
    to = destination(path)  # What can't be written is refused before anything is read.
    if not to.is_stream and not to.is_new and to.file.samefile(file):
        raise UsageError(f"{path} is the recording itself, which would be lost", advice="choose another OUTPUT")
    recording.check_topics([] if topic is None else [topic])
    account = recorded_account(intact(recording))
    with interruptible():
        if chosen is ExportForm.CSV:
            save_parts(path, csv_of(account.sendings, topic))
        elif chosen is ExportForm.PARQUET:
            save(path, parquet_of(account.sendings, topic))
        elif chosen is ExportForm.CHROME_TRACE:
            save_parts(path, chrome_trace_of(recording.header.federation or file.name, account, topic))
        else:
            _export_to_lcm(recording, path, topic)
    if missing := shortcoming(recording):
        warn(missing)
    if to.descriptor is None:  # Otherwise it was written to where its user looks, or has led it.
        remark(f"written to {path}")


def _form(form: ExportForm | None, output: Path | None) -> ExportForm:
    found = form or (None if output is None else _SUFFIXES.get(output.suffix))
    if found is None:
        raise UsageError("nothing says what to write", advice=f"--to {', '.join(ExportForm)}")
    return found


def _default(file: Path, form: ExportForm) -> Path:
    ending = next(suffix for suffix, each in _SUFFIXES.items() if each is form)
    return file.with_suffix(".trace.json" if form is ExportForm.CHROME_TRACE else ending)


def _export_to_lcm(recording: Recording, path: Path, topic: str | None) -> None:
    from worldline.metasim.public import PublicLcm

    if topic is not None:
        raise UsageError("an LCM log has all topics", advice="leave out --topic")
    public = PublicLcm(f"file://{path}")
    with public:
        narrate(recording, public)
    if public.lost:
        for line in public.report():
            warn(line)
