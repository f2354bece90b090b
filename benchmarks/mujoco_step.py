"""`rtmms bench mujoco`: a step of MuJoCo plants against `mj_step` alone, in the same run.

Both arms move through the same states with the same commands, in short blocks that alternate. MuJoCo's step has the
bits of the plant's step, so each pair of blocks computes the same contacts. Each arm includes Python's call.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import rtmms
from rtmms.base.errors import ModelError

from .requirements import module, requires
from .setting import machine, refuse_less

Array = npt.NDArray[np.float64]
ROOT = Path(__file__).resolve().parents[1]
BLOCK_STEPS = 20
"""Steps of a block; the command is constant within it."""
RUN_BLOCKS = 25
"""Blocks after which both arms start again, so that a model does not lie on the floor all the time."""


def usual_models() -> list[str]:
    """Return the example's model and the humanoids of installed packages.

    Returns
    -------
    list[str]
        Paths.
    """
    result = [ROOT / "examples" / "mujoco" / "crawler.xml"]
    for package, file in (("gymnasium", "envs/mujoco/assets/humanoid.xml"), ("dm_control", "suite/humanoid.xml")):
        spec = find_spec(package)
        places = (spec.submodule_search_locations or []) if spec is not None else []
        result += [Path(place) / file for place in places if (Path(place) / file).is_file()]
    return [str(path) for path in result]


def _us(work: Callable[[], Any]) -> float:
    """Return the time of one of BLOCK_STEPS calls, us."""
    began = time.perf_counter_ns()
    for _ in range(BLOCK_STEPS):
        work()
    return (time.perf_counter_ns() - began) / 1e3 / BLOCK_STEPS


def measure(path: str, blocks: int, dt: float | None = None) -> dict[str, Any]:
    """Measure one model.

    Parameters
    ----------
    path : str
        An MJCF file.
    blocks : int
        Pairs of blocks.
    dt : float | None, optional
        Step of MuJoCo and of the plant, s. Default: the model's.

    Returns
    -------
    dict[str, Any]
        Times, us, medians of its blocks, and the medians of the ratios of paired blocks.

    Raises
    ------
    ModelError
        It is no MJCF file, or both arms ended in different states.
    """
    values: dict[str, Any] = {} if dt is None else {"dt": dt, "substeps": 1}
    if not path.endswith(".xml"):
        raise ModelError(f"bench mujoco: expected an MJCF file (FILE.xml), got '{path}'")
    plant: Any = rtmms.load(path, **values)
    from rtmms.mujoco_models.library import load_mujoco

    mujoco = load_mujoco(path)
    model, alone = plant.model, mujoco.MjData(plant.model)
    lower = np.array([-1.0 if actuator.lower is None else actuator.lower for actuator in plant.actuators])
    upper = np.array([1.0 if actuator.upper is None else actuator.upper for actuator in plant.actuators])
    random = np.random.default_rng(1)
    begun = plant.snapshot()
    times: list[list[float]] = [[], [], []]
    for k in range(blocks):
        if k % RUN_BLOCKS == 0:
            plant.restore(begun)
            plant.data.qacc_warmstart[:] = 0.0
            mujoco.mj_resetData(model, alone)
        command = 0.5 * (lower + upper) + 0.2 * (upper - lower) * (random.random(len(lower)) - 0.5)
        alone.ctrl[:] = command
        arms = [partial(mujoco.mj_step, model, alone), partial(plant.step, command), plant.observe]
        for arm in (0, 1, 2) if k % 2 else (1, 2, 0):
            times[arm].append(_us(arms[arm]))
    if not np.array_equal(alone.qpos, plant.data.qpos):
        raise ModelError(f"bench mujoco: {path}: plant.step and mj_step ended in different states")
    mj_step, step, observe = (np.array(item) for item in times)
    return {
        "model": Path(path).parent.name + "/" + Path(path).name, "dof": int(model.nv), "dt": plant.dt,
        "integrator": mujoco.mjtIntegrator(int(model.opt.integrator)).name.removeprefix("mjINT_"),
        "sensors": int(model.nsensor), "mj_step_us": float(np.median(mj_step)), "step_us": float(np.median(step)),
        "observe_us": float(np.median(observe)), "step_ratio": float(np.median(step / mj_step)),
        "step_and_outputs_ratio": float(np.median((step + observe) / mj_step)),
    }  # fmt: skip


@requires(lambda **_: [module("mujoco", "mujoco")])
def main(as_json: bool = False, model: str = "", /, blocks: int = 400, dt: float = 0.0) -> int:
    """Measure and print.

    Parameters
    ----------
    as_json : bool, default False
        Print JSON.
    model : str, default ''
        An MJCF file, '' for the usual ones.
    blocks : int, default 400
        Pairs of blocks.
    dt : float, default 0.0
        Time step, s, 0 for the model's step.

    Returns
    -------
    int
        0.
    """
    refuse_less("mujoco: --blocks", blocks, 1)
    refuse_less("mujoco: --dt", dt, 0.0)
    results = [measure(path, blocks, dt or None) for path in ([model] if model else usual_models())]
    result = {"machine": machine(), "models": results}
    print(json.dumps(result) if as_json else text(result))
    return 0


def text(result: Mapping[str, Any]) -> str:
    """Return the rows as `rtmms bench mujoco` prints them.

    Parameters
    ----------
    result : Mapping[str, Any]
        Result of the benchmark.

    Returns
    -------
    str
        Lines.
    """
    heads = f"{'mj_step':>8}{'step':>8}{'outputs':>9}{'ratio':>7}{'with outputs':>14}"
    lines = [
        "times in us; ratios to mj_step of the same run, Python's call included",
        f"{'model':<26}{'dof':>4}  {'integrator':<13}{heads}",
    ]
    lines += [
        f"{item['model']:<26}{item['dof']:>4}  "
        f"{item['integrator']:<13}{item['mj_step_us']:>8.1f}{item['step_us']:>8.1f}"
        f"{item['observe_us']:>9.1f}{item['step_ratio']:>7.2f}{item['step_and_outputs_ratio']:>14.2f}"
        for item in result["models"]
    ]
    return "\n".join(lines)
