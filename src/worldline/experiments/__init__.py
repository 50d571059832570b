"""Experiments: sweeps over parameters and seeds, what runs measure, and statistics that one may rely on."""
