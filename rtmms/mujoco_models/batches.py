"""Many runs of a MuJoCo plant at once by `mujoco.batch` (MuJoCo 4.0 and newer), for `rtmms.rollout`.

A simulation of a batch is a row of mjSTATE_INTEGRATION, and its steps have the bits of `mj_step`. Runs with a warning
of MuJoCo are returned as unsound. The caller repeats these by the plant's own step, whose error names the cause.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any

import numpy as np

from rtmms.base.spatial import Array
from rtmms.mujoco_models.channels import MujocoModelState
from rtmms.plant.optional_protocols import RolledOut

RUNS_TOGETHER = 64
"""Runs of a batch: each has its own MjData, so that the stages of a sample serve the next step."""
_VELOCITIES = 2
"""mjSTAGE_VEL: stage that a batch computes at the new state."""
_NOTHING = 0
"""mjSTAGE_NONE: a batch computes no stage at the new state."""


def batch_class() -> Any:
    """Return mujoco.batch.Batch.

    Returns
    -------
    : type or None
        None where the installed MuJoCo has none.
    """
    try:
        return import_module("mujoco.batch").Batch
    except ImportError:
        return None


def roll_out(
    plant: MujocoModelState, batch: Any, starts: Array, commands: Array, steps: int, every: int, names: Sequence[str],
    threads: int,
) -> RolledOut:  # fmt: skip
    """Advance runs from their starts.

    Parameters
    ----------
    plant : MujocoModelState
        The plant, which is not changed.
    batch : type
        mujoco.batch.Batch.
    starts : Array
        (runs, width) states from `MujocoModelState.present`.
    commands : Array
        (runs or 1, steps or 1, n_actuators) commands.
    steps, every : int
        Steps of a run, and from sample to sample.
    names : Sequence[str]
        Outputs to sample.
    threads : int
        Number of threads.

    Returns
    -------
    RolledOut
        Samples, states at the end, and which runs are sound.
    """
    outputs = plant.output_sources(names)
    shapes = {channel.name: channel.shape for channel in plant.outputs}
    samples = {name: np.full((len(starts), steps // every, *shapes[name]), np.nan) for name in names}
    ends, sound = np.zeros_like(starts), np.ones(len(starts), dtype=np.bool_)
    for begin in range(0, len(starts), RUNS_TOGETHER):
        part = slice(begin, begin + RUNS_TOGETHER)
        values = commands[part] if len(commands) > 1 else commands
        simulations = batch(plant.model, nsim=len(starts[part]), nthread=threads, persistent=True)
        width = simulations.nstate
        simulations.state[:] = starts[part, :width]
        control, readings = simulations.bind("ctrl"), simulations.bind("sensordata")
        fields = {
            name: simulations.bind(name) for name in dict.fromkeys(field for of in outputs for field in of.fields)
        }
        for k in range(steps):
            control[:] = values[:, k if values.shape[1] > 1 else 0]
            sampled = (k + 1) % every == 0
            stage = _VELOCITIES if sampled or k == steps - 1 else _NOTHING
            try:
                simulations.step(nstep=plant.keywords.substeps, stage=stage)
            except RuntimeError as fault:  # those simulations stay where they were, the others went on
                failed = getattr(fault, "ids", None)
                if failed is None:
                    raise
                sound[part][failed] = False
            if sampled:
                for of in outputs:
                    of.sample(fields, samples[of.name][part, (k + 1) // every - 1])
        sound[part] &= ~np.asarray(simulations.warning).reshape(len(starts[part]), -1).any(axis=1)
        ends[part, :width], ends[part, width:] = simulations.state, readings
    return RolledOut(samples, ends, sound)
