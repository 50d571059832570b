"""Tests of services with pytest: each on many seeds, in a simulation, with what fails shrunk and explained."""
