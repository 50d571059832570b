"""Experiments: sweeps over parameters and seeds, what runs measure, and statistics that one may rely on."""

from worldline.experiments.report import Comparison, comparisons, estimates
from worldline.experiments.statistics import Interval, batch_means, interval, mser5, paired_interval, welch_interval
from worldline.experiments.sweeping import sweep
from worldline.experiments.table import SweepTable, read_sweep

__all__ = [
    "Comparison",
    "Interval",
    "SweepTable",
    "batch_means",
    "comparisons",
    "estimates",
    "interval",
    "mser5",
    "paired_interval",
    "read_sweep",
    "sweep",
    "welch_interval",
]
