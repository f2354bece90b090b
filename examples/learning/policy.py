"""Controller that holds a depth by a trained policy, with numpy alone. learn.py, in this folder, trains the policy.

rtmms run examples/learning/hold_depth.toml
rtmms run manta --sensors typical --controller examples/learning/policy.py:weights=depth.npz,depth_m=2.4 --duration 60
"""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt

import rtmms
from rtmms.base.errors import ModelError
from rtmms.base.files import check_npz, new_file_beside, open_input
from rtmms.base.parameters import Parameter, check_parameters
from rtmms.base.trust import NamesFile
from rtmms.gym.robot_tasks import MantaDepth

Array = npt.NDArray[np.float64]

STEP_S = 0.05
"""Time between two actions of the policy, s."""
INSTRUMENTS = ("depth.value", "dvl.velocity", "imu.gyro", "imu.accel")
"""Outputs of the sensors that the policy observes."""
MAX_FILE_BYTES = 1 << 24
"""Size of a policy file at most, bytes."""
MAX_STANDARD = 5.0
"""Standardised observations are clamped to this size."""


def observe(measured: Mapping[str, Array], memory: Mapping[str, Array]) -> Array:
    """Return the policy's observation (runs, 15), for training and for the controller.

    Columns: way up to the depth, m; velocity, m/s, rate, rad/s, and specific force, m/s2, of the body; sine and cosine
    of the beat's phase; the three smoothed actions.
    """
    up = memory["height"] + measured["depth.value"]  # depth is positive down, height is up
    phase = memory["phase"]
    moving = [measured[name] for name in INSTRUMENTS[1:]]
    return np.concatenate([np.stack([up, np.sin(phase), np.cos(phase)], axis=1), *moving, memory["held"]], axis=1)


@dataclass(frozen=True)
class Policy:
    """Network of an agent: standardised observation, layers with tanh, and a linear layer for the mean action.

    Attributes
    ----------
    mean, deviation : (k,) array
        Of each observation, in its unit.
    weights : tuple of (inputs, outputs) arrays
    biases : tuple of (outputs,) arrays
    """

    mean: Array
    deviation: Array
    weights: tuple[Array, ...]
    biases: tuple[Array, ...]

    def __call__(self, observation: Array) -> Array:
        """Return the actions (runs, actions) for observations (runs, k)."""
        layer = np.clip((observation - self.mean) / self.deviation, -MAX_STANDARD, MAX_STANDARD)
        for weight, bias in zip(self.weights[:-1], self.biases[:-1], strict=True):
            layer = np.tanh(layer @ weight + bias)
        action: Array = layer @ self.weights[-1] + self.biases[-1]
        return action

    def save(self, path: Path) -> None:
        """Write the policy to a file (.npz), in single precision as the network has it."""
        layers = {f"weight_{k}": weight for k, weight in enumerate(self.weights)}
        layers |= {f"bias_{k}": bias for k, bias in enumerate(self.biases)}
        with new_file_beside(path) as part, part.open("wb") as opened:
            arrays = {"mean": self.mean, "deviation": self.deviation, **layers}
            np.savez_compressed(opened, **{name: array.astype(np.float32) for name, array in arrays.items()})

    @classmethod
    def load(cls, path: Path) -> Policy:
        """Read a policy from a file, which cannot run code; ModelError for any other file."""
        try:
            with open_input(
                path, place="policy:", expected="a .npz file of learn.py", max_bytes=MAX_FILE_BYTES
            ) as opened:
                check_npz(opened, path)
                with np.load(opened, allow_pickle=False) as file:
                    arrays: dict[str, Any] = {name: np.asarray(file[name], dtype=float) for name in file.files}
            count = sum(name.startswith("weight_") for name in arrays)
            weights = tuple(arrays[f"weight_{k}"] for k in range(count))
            policy = cls(arrays["mean"], arrays["deviation"], weights, tuple(arrays[f"bias_{k}"] for k in range(count)))
        except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as fault:
            raise ModelError(f"policy: {path}: expected a policy of learn.py, got {fault}; train it anew") from None
        policy._check(path)
        return policy

    def _check(self, path: Path) -> None:
        shapes = [self.mean.shape, *(bias.shape for bias in self.biases)]
        fits = (
            bool(self.weights) and self.deviation.shape == self.mean.shape and all(len(shape) == 1 for shape in shapes)
        )
        fits = fits and all(
            weight.shape == (*before, *after)
            for weight, before, after in zip(self.weights, shapes[:-1], shapes[1:], strict=True)
        )
        sound = all(np.isfinite(array).all() for array in (self.mean, self.deviation, *self.weights, *self.biases))
        if not fits or not sound or not (self.deviation > 0.0).all():
            got = ", ".join(str(weight.shape) for weight in self.weights) or "no layers"
            raise ModelError(f"policy: {path}: expected finite layers that fit together, got {got}; train it anew")


@dataclass
class Learned(rtmms.Controller):
    """Holds a depth by a trained policy: an action every 50 ms, whose command acts 50 ms later."""

    depth_m: Annotated[float, Parameter("Depth to hold.", "m", ge=0, le=1000, live=True)] = 2.4
    weights: Annotated[str, NamesFile("input"), Parameter("Policy of learn.py; '': depth.npz in this folder.")] = ""
    every: int = 50
    interpolation: str = "linear"

    robots = ("manta",)
    claim = ("left.front", "left.back", "right.front", "right.back")
    outputs = INSTRUMENTS
    setpoints = ("depth_m",)

    def __post_init__(self) -> None:
        check_parameters("controller 'learned': ", self)
        path = Path(self.weights) if self.weights else Path(__file__).with_name("depth.npz")
        self._policy, self._task = Policy.load(path), MantaDepth()
        self._memory = {"phase": np.zeros(1), "held": np.zeros((1, 3)), "height": np.array([-self.depth_m])}
        width = observe({name: np.zeros((1, 3)) for name in INSTRUMENTS} | {"depth.value": np.zeros(1)}, self._memory)
        if self._policy.mean.shape != width[0].shape or self._policy.biases[-1].shape != (self._task.actions,):
            raise ModelError(
                f"policy: {self.weights}: expected a policy for {width.shape[1]} observations; train it anew"
            )

    def start(self, plant: rtmms.PlantInfo) -> None:
        """Refuse a time between two actions that differs from that of the training."""
        if abs(self.every * plant.dt - STEP_S) > 1e-9:
            expected = f"{STEP_S / plant.dt:.0f} steps of {plant.dt:g} s, as in training"
            raise ModelError(f"policy: every: expected {expected}; got {self.every}")
        self._steps, self._dt = self.every, plant.dt

    def update(self, state: rtmms.State) -> dict[str, float]:
        """Return the rod angles, rad, at the end of the next 50 ms."""
        self._memory["height"][0] = -self.depth_m
        measured = {name: np.asarray(state[name])[None] for name in INSTRUMENTS}
        action = np.clip(self._policy(observe(measured, self._memory)), -1.0, 1.0)
        angles = self._task.commands(action, self._memory, self._steps, self._dt)[0, -1]
        return dict(zip(self.claim, angles.tolist(), strict=True))
