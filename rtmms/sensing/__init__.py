"""Sensors as hardware has them, around any plant with pose and velocity, as one plant (`Sensed`).

`instruments` has the ideal readings, their errors and their times; `data_sheets` has the keys of each sensor.
"""

from rtmms.sensing.sensed import Sensed, seen_through
from rtmms.sensing.suite import read_profile

__all__ = ["Sensed", "read_profile", "seen_through"]
