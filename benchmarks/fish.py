"""Speed of `tendon_fish`, and of the authors' MuJoCo model of the same robot (--model), in one process, on one core.

Their model is tendonFish.xml of the repository srl-ethz/fishsim (arXiv 2602.23283). Both models swim the same time with
the motor of one recording; blocks of each alternate. Times are processor times, so other programs disturb them less.
The least of each counts.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

import rtmms
from rtmms.base.errors import ModelError
from rtmms.mujoco_models.library import load_model
from rtmms.studies.fishsim import BEATS_HZ, SPEED_M_S

from .requirements import module, requires
from .setting import machine, refuse_less

SETTLE_S = 4.0
"""Time from which on speeds are measured, s."""
RAMP_S = 1.0
"""Time in which the motor of the authors' model reaches its speed, s."""


def _ours(seconds: float, motor_rad_s: float) -> dict[str, Callable[[], float]]:
    """Return functions that swim and return the speed in m/s: by a rollout, and by steps in Python."""
    plant: Any = rtmms.load("tendon_fish")
    commands = np.full((1, round(seconds / plant.dt), 1), motor_rad_s)
    first = round(SETTLE_S / plant.dt)
    pool = rtmms.Rollout(plant, 1)

    def rollout() -> float:
        plant.reset(0)
        rows = pool(commands, outputs=("position",)).outputs["position"][0]
        return _slope(rows[first:], plant.dt, motor_rad_s)

    def steps() -> float:
        plant.reset(0)
        rows = []
        for command in commands[0]:
            plant.step(command)
            rows.append(plant.observe()["position"])
        return _slope(np.array(rows)[first:], plant.dt, motor_rad_s)

    return {"tendon_fish, rollout": rollout, "tendon_fish, step and observe in Python": steps}


def _mujoco(file: str, seconds: float, motor_rad_s: float) -> dict[str, Callable[[], float]]:
    """Return the same of the authors' model; its data are read every 10 steps only.

    The authors' integrator, implicitfast, diverges after 4 ms with MuJoCo 4.0; `implicit` does not. Their motor has no
    limit of its acceleration, so its speed rises over a second.
    """
    mujoco, model = load_model(file)
    model.opt.integrator = mujoco.mjtIntegrator.mjINT_IMPLICIT
    step_s, every = float(model.opt.timestep), 10

    def swim() -> float:
        data = mujoco.MjData(model)
        rows = []
        for _ in range(round(seconds / step_s / every)):
            data.ctrl[:] = motor_rad_s * min(data.time / RAMP_S, 1.0)
            mujoco.mj_step(model, data, every)
            rows.append(data.qpos[:2].copy())
        if data.warning[mujoco.mjtWarning.mjWARN_BADQPOS].number:
            raise ModelError(f"bench fish: {file}: MuJoCo {mujoco.__version__} diverges with it")
        return _slope(np.array(rows)[round(SETTLE_S / step_s / every) :], every * step_s, motor_rad_s)

    return {"the authors' model, MuJoCo": swim}


def _slope(rows: npt.NDArray[np.float64], dt: float, motor_rad_s: float) -> float:
    """Return m/s along the course: of a line with the first harmonics of the beat, over rows (k, 2 or more) m."""
    t = dt * np.arange(len(rows))
    waves = [wave(n * motor_rad_s * t) for n in (1, 2) for wave in (np.cos, np.sin)]
    result, *_ = np.linalg.lstsq(np.stack([np.ones_like(t), t, *waves], axis=1), rows[:, :2], rcond=None)
    return float(np.linalg.norm(result[1]))


def measure(recording: str, seconds: float, blocks: int, model: str = "") -> dict[str, dict[str, float]]:
    """Measure each model.

    Parameters
    ----------
    recording : str
        Recording with the motor's speed.
    seconds : float
        Simulated time of a block, s.
    blocks : int
        Number of blocks.
    model : str, default ''
        The authors' model; '': without it.

    Returns
    -------
    dict[str, dict[str, float]]
        `times_real_time` by model, processor time on one core, and `speed_m_s`.
    """
    motor = 2.0 * math.pi * BEATS_HZ[recording]
    theirs = _mujoco(model, seconds, motor) if model else {}
    models = {**_ours(seconds, motor), **theirs}
    speed = {name: swim() for name, swim in models.items()}  # compiles
    least = dict.fromkeys(models, math.inf)
    for _ in range(blocks):
        for name, swim in models.items():
            began = time.process_time()
            swim()
            least[name] = min(least[name], time.process_time() - began)
    return {name: {"times_real_time": seconds / least[name], "speed_m_s": speed[name]} for name in models}


@requires(lambda model, **_: [module("mujoco", "mujoco")] if model else [])
def main(as_json: bool = False, seconds: float = 8.0, blocks: int = 5, model: str = "") -> int:
    """Measure at the two recordings that the package contains, and print.

    Parameters
    ----------
    as_json : bool, default False
        Print one JSON object.
    seconds : float, default 8.0
        Simulated time of a block, s.
    blocks : int, default 5
        Blocks of each model.
    model : str, default ''
        The authors' tendonFish.xml; '': tendon_fish alone.

    Returns
    -------
    int
        0.
    """
    refuse_less("fish: --seconds", seconds, SETTLE_S + 1.0)
    refuse_less("fish: --blocks", blocks, 1)
    results = {name: measure(name, seconds, blocks, model) for name in ("f1_00", "f1_75")}
    result = {"machine": machine(), "recordings": results}
    print(json.dumps(result) if as_json else text(result))
    return 0


def text(result: Mapping[str, Any]) -> str:
    """Return the rows as `rtmms bench fish` prints them.

    Parameters
    ----------
    result : Mapping[str, Any]
        Result of the benchmark.

    Returns
    -------
    str
        Lines.
    """
    lines = [f"{'':42}{'times real time':>16}{'speed, m/s':>12}{'measured':>10}"]
    for recording, rows in result["recordings"].items():
        lines.append(f"{recording}, {BEATS_HZ[recording]} beats/s")
        lines += [
            f"  {name:40}{row['times_real_time']:16.1f}{row['speed_m_s']:12.4f}{SPEED_M_S[recording]:10.4f}"
            for name, row in rows.items()
        ]
    return "\n".join(lines)
