"""Plots of what was measured: signals of runs over time, histograms, and sweeps; as SVG, PNG and HTML."""

from worldline.pictures.plot.chart import Bars, Cells, Chart, Line, Panel, PlotOptions, marks
from worldline.pictures.plot.plotting import Plot, plot

__all__ = ["Bars", "Cells", "Chart", "Line", "Panel", "Plot", "PlotOptions", "marks", "plot"]
