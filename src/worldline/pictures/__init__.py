"""Drawing as SVG: the plane, lines, legends, time axes, room for labels. It knows nothing of what is drawn."""
