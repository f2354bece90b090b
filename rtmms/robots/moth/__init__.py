"""The moth of Porez, Boyer and Belkhiri (2014): a body and two wings that flap, pitch and twist.

face.py describes it and makes the plant (docs/moth.md), orbits.py holds the hovering orbits found for it."""

from rtmms.robots.moth.face import Moth, describe, in_paper_frame, load

__all__ = ["Moth", "describe", "in_paper_frame", "load"]
