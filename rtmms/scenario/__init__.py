"""A run as one TOML file: the robot, its parameters and controllers, the events, and the expectations.

This package reads and checks the file; the command line carries it out.
"""

from rtmms.scenario.expectations import Expectation, Finding, judge
from rtmms.scenario.reading import Event, Scenario, read

__all__ = ["Event", "Expectation", "Finding", "Scenario", "judge", "read"]
