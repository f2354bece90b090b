"""Sensors as hardware has them, around any plant with pose and velocity, as one plant (`Sensed`).

What is measured stands in `instruments`, how wrong it is in `errors`, when it arrives in `timing`."""

from rtmms.sensing.sensed import Sensed, seen_through
from rtmms.sensing.suite import read_profile

__all__ = ["Sensed", "read_profile", "seen_through"]
