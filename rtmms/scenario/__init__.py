"""A run as one TOML file: the robot, its parameters and controllers, the events, and the expectations.

This package reads and checks the file; the command line carries it out.
"""

from rtmms.scenario.expectations import Expectation, ExpectationResult, judge
from rtmms.scenario.reading import Event, Scenario, read

__all__ = ["Event", "Expectation", "ExpectationResult", "Scenario", "judge", "read"]
