"""A run as one TOML file: what is run, with which parameters and controllers, what happens when, and what must hold.

Reading and checking alone; the command line carries it out."""

from rtmms.scenario.expectations import Expectation, Finding, judge
from rtmms.scenario.reading import Event, Scenario, read

__all__ = ["Event", "Expectation", "Finding", "Scenario", "judge", "read"]
