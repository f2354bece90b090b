"""Sensors as hardware has them, around any plant that tells its pose and velocity, as one plant (`Sensed`).

What is measured stands in `instruments`, how wrong it is in `errors`, when it arrives in `timing`."""

from rtmms.sensing.profile import read_profile
from rtmms.sensing.sensed import Sensed, seen_through

__all__ = ["Sensed", "read_profile", "seen_through"]
