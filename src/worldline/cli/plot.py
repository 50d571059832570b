"""`worldline plot`: signals of recordings over time, histograms of them, and the tables of sweeps."""

from __future__ import annotations

from pathlib import Path

from worldline.cli.console import remark, warn
from worldline.cli.options import takes
from worldline.cli.runner import interruptible
from worldline.files.saving import destination
from worldline.model.errors import UsageError
from worldline.pictures.plot.chart import PlotOptions
from worldline.pictures.plot.plotting import checked_ending, plotted
from worldline.recording.reader import Recording, shortcoming


@takes(
    """
    FILE  Recordings, which are drawn over each other; or a sweep's file.
    topics: --topic NAME  A field to plot: pose.x, joints[2], arm/pose.x of one member, tf.*.z; or a sweep's measure.
        Can be repeated: each has a panel.
    senders: --from MEMBER  Only what this member tells. Can be repeated.
    --start TIME  Plot from here on.
    --until TIME  Plot up to here.
    --kind  How to draw it (default: lines, and steps where values are whole numbers or texts).
    --bins N at least 1  How many bars a histogram has (default: by the values).
    --log  Which axes are logarithmic: numbers up to 0 aren't shown there.
    --title TEXT  What stands above it.
    --output, -o FILE  Where to write it: .svg, .png or .html (default: next to the first FILE, as .svg).

    Of a sweep:
    --x PARAMETER  The parameter across (default: the first that varies).
    --by PARAMETER  The parameter that lines are for, or rows of a heat map (default: the second that varies).
    """
)
def plot(file: list[Path], *, options: PlotOptions, output: Path | None = None) -> None:
    """Plot signals of recordings over simulated time, histograms of them, or measures of a sweep.

    Without --topic, the error says which names there are.
    """
    path = file[0].with_suffix(".svg") if output is None else output
    checked_ending(path)
    to = destination(path)
    if not to.is_new and not to.is_stream and any(each.exists() and to.file.samefile(each) for each in file):
        raise UsageError(f"{path} is what is to be plotted", advice="choose another --output")
    with interruptible():
        plotted(file, options).save(path)
    for each in file:
        if each.suffix == ".mcap" and (missing := shortcoming(Recording(each))):
            warn(missing)
    remark(f"written to {path}")
