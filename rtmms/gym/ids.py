"""Ids of `gymnasium.make` and `gymnasium.make_vec`, and the lengths of their episodes."""

from __future__ import annotations

IDS = {
    "rtmms/MantaDepth-v0": ("MantaDepth", 1000), "rtmms/MantaPath-v0": ("MantaPath", 1500),
    "rtmms/MothHover-v0": ("MothHover", 200), "rtmms/EelCourse-v0": ("EelCourse", 1000),
    "rtmms/QuadrotorHover-v0": ("QuadrotorHover", 500),
}  # fmt: skip
"""Task in rtmms.gym.robot_tasks, and steps until it is truncated, by id."""


def register() -> None:
    """Register the ids with gymnasium, once; raise ImportError where it is not installed."""
    import gymnasium

    for name, (task, steps) in IDS.items():
        if name not in gymnasium.registry:
            gymnasium.register(
                name, entry_point="rtmms.gym.environments:RobotEnv",
                vector_entry_point="rtmms.gym.environments:RobotVectorEnv", max_episode_steps=steps,
                kwargs={"task": task},
            )  # fmt: skip
