"""The robotic manta (Qu 2024, docs/manta.md). face.py is the plant; kernels/ computes fins, rods and body,
coupling/ how body and fins share a step."""

from rtmms.robots.manta.face import Manta, load

__all__ = ["Manta", "load"]
