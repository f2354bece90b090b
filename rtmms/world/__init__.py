"""Provide several robots on one clock, as one plant.

`members.py` has the robots and their places, `world.py` the plant and its compiled step. `relative_sensors.py` has the
sensors of robots for one another. Hydrodynamic interaction between robots is left out.
"""
