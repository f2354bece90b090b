"""What a fluid does to bodies: one force model a file, and the fluid's own motion (ambient.py).
Nothing of one robot."""

from rtmms.fluids.ambient import Flow, Street, VortexRow, Wave
from rtmms.fluids.flow_grid import Grid

__all__ = ["Flow", "Grid", "Street", "VortexRow", "Wave"]
