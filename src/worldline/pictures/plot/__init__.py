"""Plots of what was measured: signals of runs over time, histograms, and sweeps; as SVG, PNG and HTML."""

from worldline.pictures.plot.plotting import Plot, PlotOptions, plot

__all__ = ["Plot", "PlotOptions", "plot"]
