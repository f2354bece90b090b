"""The robotic manta of Qu et al. (2024): a free body and two elastic fins, driven by four rods.

plant.py is the plant (docs/manta.md). The other modules compute fins, rods and body, and how body and fins share a
step.
"""

from rtmms.robots.manta.plant import Manta, load

__all__ = ["Manta", "load"]

CONTROLLER = "gait"
CHOICES = {"coupling": ("sequential", "iterated", "monolithic")}
GAIT_SEARCH = {
    "controller": "gait",
    "words": {"amplitude_deg": (5.0, 50.0), "frequency_hz": (0.2, 1.2), "phase_deg": (0.0, 120.0)},
    "model": {"chains": 16, "dt": 0.02},
}
