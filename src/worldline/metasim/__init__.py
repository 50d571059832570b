"""Metasim: simulators in several processes that exchange LCM messages as if they were one simulation."""
