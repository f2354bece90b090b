"""How far a planner's coarse model ends from the robot's own model, under the same words."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from rtmms.analysis.rollouts import Rollout


def distance_apart(coarse: Any, fine: Any, words: Any, horizon_s: float) -> float:
    """m, between the positions of both at the end of one horizon under the home words, each from rest in its own steps
    (to the nearest whole one of `fine`); nan where one of them fails.

    coarse, fine   plants with compiled steps, both reset;  words  see rtmms.planning.words.Words"""
    ends = []
    for model in (coarse, fine):
        model.reset()
        steps = max(1, round(horizon_s / model.dt))
        commands, _ = words.commands(words.home[None], words.start(), 0.0, steps, model.dt)
        with Rollout(model, 1) as pool:
            runs = pool(commands, outputs=("position",), every=steps)
        ends.append(runs.outputs["position"][0, -1] if runs.status[0] == 0 else np.full(3, math.nan))
        model.reset()
    return float(np.linalg.norm(ends[0] - ends[1]))
