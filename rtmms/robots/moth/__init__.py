"""The flapping-wing moth (Porez 2014, docs/moth.md): face.py describes it and makes the plant,
orbits.py holds the hovering orbits found for it."""

from rtmms.robots.moth.face import Moth, describe, load

__all__ = ["Moth", "describe", "load"]
