"""The plant around a plant and its cheaper variants: level 0 is the full model."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any

import numpy as np

from rtmms.base.errors import ModelError
from rtmms.base.memory import INTEGER, Layout, part, state
from rtmms.plant.protocol import (
    Channel,
    CompiledOutputs,
    CompiledStep,
    Degradable,
    Fork,
    HasCompiledStep,
    Plant,
    describe_plant,
)
from rtmms.plant.stage import INNER, Stage
from rtmms.plant.validation import read_seed

if TYPE_CHECKING:
    from rtmms.base.spatial import Array

LEVEL = "level"
"""The output of which variant steps, and the parameter that sets it."""
MOST_LEVELS = 16
_STEPS = 50


LEVELS = Layout("Levels", state("steps", 1, dtype=INTEGER), state("level", 1), part("inner", INNER))
"""steps: since the reset; level: of the variant that steps."""


class Levels(Stage):
    """A plant that can change to cheaper variants of itself, which were prepared before, and back.

    full    level 0, the plant itself;  plants  all of them, from level 0 on
    level   which one steps: an output of every state, and settable like a parameter
    costs   s, a step of each, once `measure` was called
    A change takes over the state (rtmms.plant.protocol.Degradable), costs no step, and is the same whenever it is done:
    with the changes of its log a run replays bit for bit. ModelError for a plant that offers no variants, or other
    channels.
    """

    _name = LEVEL

    def __init__(self, plant: Plant) -> None:
        if not isinstance(plant, Degradable):
            raise ModelError(
                "--degrade: this robot offers no cheaper variants of itself (rtmms.plant.protocol.Degradable)"
            )
        self.full = plant
        self.plants: tuple[Any, ...] = (plant, *plant.variants())
        if not 2 <= len(self.plants) <= MOST_LEVELS:
            raise ModelError(f"--degrade: expected 1 to {MOST_LEVELS - 1} variants, got {len(self.plants) - 1}")
        self.dt, self.actuators = plant.dt, plant.actuators
        if any(channel.name == LEVEL for channel in plant.outputs):
            raise ModelError(f"--degrade: the robot has an output '{LEVEL}' of its own")
        self.outputs = (*plant.outputs, Channel(LEVEL))
        for k, one in enumerate(self.plants[1:], 1):
            channels = [(c.name, tuple(c.shape)) for c in (*one.actuators, *one.outputs)]
            if channels != [(c.name, tuple(c.shape)) for c in (*plant.actuators, *plant.outputs)] or one.dt != self.dt:
                raise ModelError(f"--degrade: variant {k}: expected the channels and the step of the full model")
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
        """How long a step of each takes here, s: the median of some. The plants are reset afterwards."""
        self.costs = tuple(_cost(one) for one in self.plants)
        self.reset()

    def reset(self, seed: int = 0) -> None:
        """See Plant: at level 0."""
        seed = read_seed("levels", seed)
        for one in self.plants:
            one.reset(seed)
        self.level, self._steps = 0, 0
        self._level[0] = 0.0

    def step(self, command: Array) -> None:
        """See Plant."""
        self.plants[self.level].step(command)
        self._steps += 1

    def compiled_step(self) -> CompiledStep | None:
        """See rtmms.plant.protocol.HasCompiledStep: of the variant that steps."""
        now = self.plants[self.level]
        return now.compiled_step() if isinstance(now, HasCompiledStep) else None

    def finish_compiled_step(self, status: int) -> None:
        """See rtmms.plant.protocol.HasCompiledStep."""
        self.plants[self.level].finish_compiled_step(status)
        self._steps += 1

    def compiled_outputs(self) -> CompiledOutputs | None:
        """None: the output `level` is none of the variants'."""
        return None

    def fork(self, memory: Array | None = None) -> Fork | None:
        """None: a change of the level is no compiled step."""
        return None

    def observe(self) -> dict[str, Array]:
        """See Plant."""
        seen: dict[str, Array] = self.plants[self.level].observe()
        seen[LEVEL] = self._level.copy().reshape(())
        return seen

    def change(self, level: int) -> None:
        """The variant of that level goes on from the present state. Does nothing where it is there already."""
        if level == self.level:
            return
        self.plants[level].take_over(self.plants[self.level])
        self.level = level
        self._level[0] = float(level)

    def set(self, **given: Any) -> None:
        """Change parameters of all variants, and the level, between steps. All or none."""
        level = given.pop(LEVEL, self.level)
        whole = not isinstance(level, bool) and isinstance(level, int | float) and level == int(level)
        if not whole or not 0 <= level < len(self.plants):
            raise ModelError(f"level: expected a whole number from 0 to {len(self.plants) - 1}, got {level!r:.40}")
        if given:
            if describe_plant(self.full).set is None:
                raise ModelError(f"set: this plant has no parameter '{next(iter(given))}' that can change")
            for one in self.plants:  # the full model first: it refuses what none of them can take
                one.set(**given)
        self.change(int(level))

    def _state_arrays(self) -> Mapping[str, Any]:
        return {LEVEL: self._level}

    def _parts_at(self, own: Mapping[str, Any]) -> Sequence[Any]:
        level = int(own[LEVEL][0])
        if not 0 <= level < len(self.plants):
            raise ModelError(f"level: restore: expected a level up to {len(self.plants) - 1}, got {level}")
        return (self.plants[level],)

    def _after_restore(self) -> None:
        self.level = int(self._level[0])


def levels_of(plant: Any) -> Levels | None:
    """Those of a plant, within its sensors and faults; None where it has none."""
    found = getattr(plant, "truth", plant)
    found = getattr(found, "sound", found)
    return found if isinstance(found, Levels) else None


def _cost(plant: Any) -> float:
    """s, the median of some steps at rest."""
    plant.reset(0)
    command = np.array([channel.neutral for channel in plant.actuators], dtype=np.float64)
    took = []
    for _ in range(_STEPS):
        begun = perf_counter_ns()
        plant.step(command)
        took.append(perf_counter_ns() - begun)
    return float(np.median(took)) * 1e-9


def as_data(levels: Levels) -> Mapping[str, Any]:
    """For a report: what each level is, and what a step of it takes."""
    names = [getattr(one, "variant", "full") if k else "full" for k, one in enumerate(levels.plants)]
    return {"levels": names, "step_us": [round(1e6 * cost, 3) for cost in levels.costs]}
