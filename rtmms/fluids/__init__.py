"""Provide the forces of a fluid on bodies, one force model in each file, and the fluid's own motion (ambient.py).

The modules contain nothing of one robot.
"""

from rtmms.fluids.ambient import Flow, Street, VortexRow, Wave
from rtmms.fluids.flow_grid import Grid

__all__ = ["Flow", "Grid", "Street", "VortexRow", "Wave"]
