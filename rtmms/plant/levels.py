"""Provide the plant around a plant and its cheaper variants: level 0 is the full model."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any

import numpy as np

from rtmms.base.errors import ModelError
from rtmms.base.memory import INTEGER, Layout, part, state
from rtmms.base.override import override
from rtmms.plant.description import describe_plant
from rtmms.plant.optional_protocols import CompiledOutputs, CompiledStep, Fork, HasCompiledStep, HasVariants
from rtmms.plant.protocol import Channel, Plant
from rtmms.plant.stage import INNER, Stage
from rtmms.plant.validation import read_seed

if TYPE_CHECKING:
    from rtmms.base.spatial import Array

LEVEL = "level"
"""Name of the output with the level of the variant that steps, and of the parameter that sets it."""
MAX_LEVELS = 16
_STEPS = 50


LEVELS = Layout("Levels", state("steps", 1, dtype=INTEGER), state("level", 1), part("inner", INNER))
"""Record of the plant. steps: since the reset; level: of the variant that steps."""


class Levels(Stage):
    """A plant that can change to cheaper variants of itself, which were prepared before, and back.

    A change takes over the state (rtmms.plant.HasVariants), costs no step, and always has the same result. A
    run with the changes of its log therefore replays bit for bit.

    Parameters
    ----------
    plant : Plant
        The full model, level 0, which offers variants.

    Attributes
    ----------
    full : Plant
        Level 0, the plant itself.
    plants : tuple of Plant
        All variants, from level 0 on.
    level : int
        Level of the variant that steps: an output of every state, and settable like a parameter.
    costs : tuple of float
        Duration of a step of each variant, s; empty before `measure`.

    Raises
    ------
    ModelError
        The plant offers no variants, or a variant has other channels or another step.
    """

    _name = LEVEL

    def __init__(self, plant: Plant) -> None:
        """Prepare the variants and check that their channels are those of the plant."""
        if not isinstance(plant, HasVariants):
            raise ModelError(
                "--degrade: expected a robot with cheaper variants of its model "
                "(rtmms.plant.HasVariants), got one without"
            )
        self.full = plant
        self.plants: tuple[Any, ...] = (plant, *plant.variants())
        if not 2 <= len(self.plants) <= MAX_LEVELS:
            raise ModelError(f"--degrade: expected 1 to {MAX_LEVELS - 1} variants, got {len(self.plants) - 1}")
        self.dt, self.actuators = plant.dt, plant.actuators
        if any(channel.name == LEVEL for channel in plant.outputs):
            raise ModelError(
                f"--degrade: expected a robot without an output '{LEVEL}', a name that this option uses, got one with "
                "it; rename the output"
            )
        self.outputs = (*plant.outputs, Channel(LEVEL))
        for k, item in enumerate(self.plants[1:], 1):
            expected, channels = (
                [(c.name, tuple(c.shape)) for c in (*variant.actuators, *variant.outputs)] for variant in (plant, item)
            )
            if channels != expected or item.dt != self.dt:
                different = ", ".join(sorted({name for name, _ in set(channels) ^ set(expected)}))
                raise ModelError(
                    f"--degrade: variant {k}: expected dt = {self.dt:g} s and the channels of the full "
                    f"model, got dt = {item.dt:g} s; channels that differ: {different or 'none'}"
                )
        self.level = 0
        self.costs: tuple[float, ...] = ()
        self.inner = self.plants
        self.system = LEVELS.make({"inner": {"dt": self.dt}}, {"inner": len(self.plants)})
        self._level, self._count = self.system.level, self.system.steps
        self._key = hashlib.sha256(f"levels {len(self.plants)}".encode()).digest()
        inner = describe_plant(plant)  # its estimator would not change its level
        self.description = replace(
            inner, set=self.set, settable=(*(inner.settable or ()), LEVEL), step_error_estimator=None
        )

    def measure(self) -> None:
        """Measure the duration of a step of each variant on this machine: the median of some; then reset the plants."""
        self.costs = tuple(_cost(plant) for plant in self.plants)
        self.reset()

    def reset(self, seed: int = 0) -> None:
        """Reset all variants and go to level 0.

        Parameters
        ----------
        seed : int, default 0
            Whole number >= 0.
        """
        seed = read_seed("levels", seed)
        for plant in self.plants:
            plant.reset(seed)
        self.level, self._steps = 0, 0
        self._level[0] = 0.0

    def step(self, command: Array) -> None:
        """Take a step of the present variant.

        Parameters
        ----------
        command : (n_actuators,) array
            Command, in the units of the actuators.
        """
        self.plants[self.level].step(command)
        self._steps += 1

    @override
    def compiled_step(self) -> CompiledStep | None:
        """Return the compiled step of the present variant, or None where it has none."""
        now = self.plants[self.level]
        return now.compiled_step() if isinstance(now, HasCompiledStep) else None

    @override
    def finish_compiled_step(self, status: int) -> None:
        """Finish a compiled step of the present variant."""
        self.plants[self.level].finish_compiled_step(status)
        self._steps += 1

    @override
    def compiled_outputs(self) -> CompiledOutputs | None:
        """Return None: no variant has the output `level`."""
        return None

    @override
    def fork(self, memory: Array | None = None) -> Fork | None:
        """Return None: a change of the level is no compiled step."""
        return None

    def observe(self) -> dict[str, Array]:
        """Return the outputs of the present variant, and the level.

        Returns
        -------
        dict[str, array]
            Outputs by name.
        """
        outputs: dict[str, Array] = self.plants[self.level].observe()
        outputs[LEVEL] = self._level.copy().reshape(())
        return outputs

    def change(self, level: int) -> None:
        """Let the variant of a level continue from the present state; the present level has no effect.

        Parameters
        ----------
        level : int
            Index in `plants`.
        """
        if level == self.level:
            return
        self.plants[level].copy_state_from(self.plants[self.level])
        self.level = level
        self._level[0] = float(level)

    def set(self, **values: Any) -> None:
        """Change parameters of all variants, and the level, between steps; all or none.

        Parameters
        ----------
        **values : Any
            New values by name; `level` sets the level.

        Raises
        ------
        ModelError
            The level does not exist, or a parameter cannot change.
        """
        level = values.pop(LEVEL, self.level)
        whole = not isinstance(level, bool) and isinstance(level, int | float) and level == int(level)
        if not whole or not 0 <= level < len(self.plants):
            raise ModelError(f"level: expected a whole number from 0 to {len(self.plants) - 1}, got {level!r:.40}")
        if values:
            if describe_plant(self.full).set is None:
                raise ModelError(f"set: this plant has no parameter '{next(iter(values))}' that can change")
            for plant in self.plants:  # the full model first: it refuses what none of them can take
                plant.set(**values)
        self.change(int(level))

    def _state_arrays(self) -> Mapping[str, Any]:
        return {LEVEL: self._level}

    def _parts_at(self, arrays: Mapping[str, Any]) -> Sequence[Any]:
        level = int(arrays[LEVEL][0])
        if not 0 <= level < len(self.plants):
            raise ModelError(f"level: restore: expected a level up to {len(self.plants) - 1}, got {level}")
        return (self.plants[level],)

    def _after_restore(self) -> None:
        self.level = int(self._level[0])


def levels_of(plant: Any) -> Levels | None:
    """Return the levels of a plant, within its sensors and faults.

    Parameters
    ----------
    plant : Any
        A plant.

    Returns
    -------
    Levels or None
        None where it has none.
    """
    result = getattr(plant, "truth", plant)
    result = getattr(result, "sound", result)
    return result if isinstance(result, Levels) else None


def _cost(plant: Any) -> float:
    """Return the median duration of some steps at rest, s."""
    plant.reset(0)
    command = np.array([channel.neutral for channel in plant.actuators], dtype=np.float64)
    took = []
    for _ in range(_STEPS):
        begun = perf_counter_ns()
        plant.step(command)
        took.append(perf_counter_ns() - begun)
    return float(np.median(took)) * 1e-9


def levels_as_data(levels: Levels) -> Mapping[str, Any]:
    """Return the levels for a report.

    Parameters
    ----------
    levels : Levels
        The plant.

    Returns
    -------
    Mapping[str, Any]
        Names of the levels, and the duration of a step of each, us.
    """
    names = [getattr(plant, "variant", "full") if k else "full" for k, plant in enumerate(levels.plants)]
    return {"levels": names, "step_us": [round(1e6 * cost, 3) for cost in levels.costs]}
