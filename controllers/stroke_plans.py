"""Plans of a moth for `predictive`, method linear: one each half stroke, on the linear model about its hovering orbit.

The knots before, between and after are in the middle of the last half stroke, of this one, and of the next. At the
beginning of a half stroke the first two are fixed. The plan that is made then sets the third, and acts from the middle
of this half stroke. If it is not ready by then, it is late and acts a half stroke later.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from math import inf, pi
from time import thread_time
from typing import TYPE_CHECKING, Any

import rtmms
from rtmms.base.attitude import from_euler

from .senses import Motion

if TYPE_CHECKING:
    from rtmms.planning.planner import BackgroundThread, Plan

ACTUATORS = ("right.offset", "right.gain", "left.offset", "left.gain")
LIMIT = 0.4
"""Limit of offsets (rad) and gains (fractions of the amplitude), as in `moth_hover`."""


def own_moth(parameters: Mapping[str, Any], grid_s: float) -> Any:
    """Return a moth in still air, on the hovering orbit of the parameters that the plant sends.

    Parameters
    ----------
    parameters : Mapping[str, Any]
        Parameters of the plant.
    grid_s : float
        Step of the model, s.

    Returns
    -------
    : Plant
        The moth.

    Raises
    ------
    ModelError
        The plant's moth does not hover, or is driven in another way.
    """
    from rtmms.planning.linear import WINDS

    values: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in parameters.items()
    }
    for name, expected in (("start", "hover"), ("drive", "motion"), ("thorax", "free")):
        if values.get(name, expected) != expected:
            raise rtmms.ModelError(
                f"controller 'predictive': method linear needs a moth with {name}={expected}, got {name}={values[name]}"
            )
    for name in ("amplitude_rad", *WINDS):  # the orbit's own; and what nobody knows
        values.pop(name, None)
    return rtmms.plant.loading.build_plant("moth", dt=grid_s, **values)


class StrokePlans:
    """Plans, and the knots that the moth flies.

    Parameters
    ----------
    grid_s : float
        Step of the model, s.
    half_s : float
        Half a stroke, s.
    horizon_s : float
        Horizon of a plan, s.

    Attributes
    ----------
    plans : list of Plan
        All plans.
    late : int
        Half strokes that began without a plan in time.
    spent_s : float
        Computing time, s.
    age : float
        Half strokes since the state from which the plan in use was made.
    """

    def __init__(self, grid_s: float, half_s: float, horizon_s: float) -> None:
        self._grid, self._half, self._horizon = grid_s, half_s, horizon_s
        self._plan_key: Any = None
        self._known: Any = None
        self._planner: Any = None
        self._reconstructed: Any = None
        self._job: Future[Plan] | None = None
        self._background: BackgroundThread | None = None
        self._clear()

    def prepare(self, background: BackgroundThread) -> None:
        """Compile, by a plan for the moth with default parameters.

        Parameters
        ----------
        background : BackgroundThread
            Thread of the plans.
        """
        import numpy as np

        self._background = background
        self._build({})
        zero = np.zeros(len(ACTUATORS))
        self._think(Motion(), [], zero, zero, 0, (0.0, 0.0, 0.0), 0.0)

    def start(self, plant: rtmms.PlantInfo, lockstep: bool, believed: Mapping[str, Any]) -> None:
        """Build the model of the plant's moth.

        Parameters
        ----------
        plant : rtmms.PlantInfo
            The plant, with its channels and parameters.
        lockstep : bool
            Whether the plant waits for each answer.
        believed : Mapping[str, Any]
            Parameters of the planner's model.

        Raises
        ------
        ModelError
            Half strokes are no whole number of answers, or the commands are sent too far ahead.
        """
        names = tuple(channel.name for channel in plant.actuators)
        if names != ACTUATORS:
            raise rtmms.ModelError(
                f"controller 'predictive': method linear: expected a moth with the actuators {', '.join(ACTUATORS)}, "
                f"got '{plant.robot}' with {', '.join(names)}"
            )
        half = pi / float(plant.parameters.get("omega_rad_s", 50.0 * pi))
        if abs(half - self._half) > 1e-9 * half:
            raise rtmms.ModelError(
                f"controller 'predictive': rate_hz: expected a plan each half stroke, {1.0 / half:.6g} Hz, got "
                f"{1.0 / self._half:.6g}"
            )
        self._answer = answer = plant.every * plant.dt
        self._lead = answer + plant.delay * plant.dt
        if abs(round(half / answer) * answer - half) > 1e-9 or self._lead > 0.5 * half + 1e-9:
            raise rtmms.ModelError(
                "controller 'predictive': dt, every, delay: expected a command period that divides half a stroke, "
                f"{half:.4g} s, and commands at most half of it ahead, got a period of {answer:.4g} s and "
                f"{self._lead:.4g} s ahead"
            )
        self._lockstep = lockstep
        self._build(believed)
        self.begin()

    def begin(self) -> None:
        """Start anew: still air, no plan."""
        self.finish()
        self._clear()
        self._planner.clear()

    def _clear(self) -> None:
        import numpy as np

        zero = np.zeros(len(ACTUATORS))
        self.plans: list[Plan] = []
        self.late, self.age, self.spent_s = 0, 0, 0.0
        self._knots = [zero, zero, zero]
        self._variables = zero[None]
        self._tick, self._count = -inf, -1
        self._sent: list[list[Any]] = []

    def update(self, now: Motion, place: tuple[float, float, float], yaw: float) -> dict[str, float]:
        """Return offsets in rad and gains.

        Parameters
        ----------
        now : Motion
            The robot's motion.
        place : tuple[float, float, float]
            Position to hold, m, world.
        yaw : float
            Heading to hold, rad.

        Returns
        -------
        dict[str, float]
            Commands by actuator.
        """
        if now.time > self._tick + self._half - 1e-9:
            self._turn_over(now, place, yaw)
        elif self._job is not None and self._made_at == self._count and (self._lockstep or self._job.done()):
            # in time while no command beyond the middle of the half stroke has been given
            self._take(in_time=now.time + self._lead - self._answer <= self._tick + 0.5 * self._half + 1e-9)
        part = (now.time + self._lead - self._tick) / self._half  # up to 1.5
        before, between, after = self._knots
        values = (
            before + (between - before) * (part + 0.5) if part <= 0.5 else between + (after - between) * (part - 0.5)
        )
        return dict(zip(ACTUATORS, values.tolist(), strict=True))

    def _take(self, in_time: bool) -> None:
        """Use the finished plan."""
        assert self._job is not None
        result, self._job = self._job.result(), None
        self.plans.append(result)
        self.late += not in_time
        if result.good:
            self._variables, self.age = result.variables, self._count - self._made_at
            if in_time:
                self._knots[2] = self._variables[0]

    def _turn_over(self, now: Motion, place: tuple[float, float, float], yaw: float) -> None:
        """Start a half stroke: the model receives the last one's commands, and the next plan starts."""
        first = self._count < 0
        if self._job is not None and (self._lockstep or self._job.done()):
            self._take(in_time=False)
        self._count = round(now.time / self._half) if first else self._count + 1
        self._tick = now.time
        if not first:
            self._sent.append(list(self._knots))
            self.age += 1
            row = min(self.age, len(self._variables) - 1)
            self._knots = [self._knots[1], self._knots[2], self._variables[row]]
        if self._job is None and self._background is not None:
            inputs = (now, self._sent, self._knots[0], self._knots[1], self._count % 2, place, yaw)
            self._sent, self._made_at = [], self._count
            self._job = self._background.submit(self._think, *inputs)

    def _think(
        self, now: Motion, sent: Sequence[Any], before: Any, between: Any, phase: int,
        place: tuple[float, float, float], yaw: float,
    ) -> Plan:  # fmt: skip
        """Make a plan from the motion at the beginning of a half stroke, and the knots of those since the last one."""
        import numpy as np

        from rtmms.planning.linear import lines

        spent, reconstructed, planner, there = thread_time(), self._reconstructed, self._planner, np.array(place)
        linear = planner.model
        well = bool(sent) and all(reconstructed.go(lines(np.array(knots), linear.steps)) for knots in sent)
        predicted = reconstructed.state
        if not well:  # the first, or a motion that the model cannot follow: joints as they hover
            reconstructed.model.put(linear.orbit[phase].copy(), phase * linear.steps)
        reconstructed.place(
            position=np.array(now.position), quaternion=np.array(from_euler(now.roll, now.pitch, now.yaw)),
            velocity=np.array(now.velocity), angular_velocity=np.array(now.rate),
        )  # fmt: skip
        state = reconstructed.state
        if well and len(sent) == 1 and not now.doubts:
            psi = linear.yaw(1 - phase, self._known)
            flown = linear.off(phase, predicted, psi, there)
            straight = linear.after(1 - phase, linear.off(1 - phase, self._known, psi, there), np.array(sent[0]))
            planner.observer.learn(1 - phase, linear.off(phase, state, psi, there), flown, straight)
        self._known = state
        result: Plan = planner.plan(phase, state, before, between, there, yaw)
        self.spent_s += thread_time() - spent
        return result

    def finish(self) -> None:
        """Wait for a plan that is being made."""
        job, self._job = self._job, None
        if job is not None:
            job.result()

    def _build(self, parameters: Mapping[str, Any]) -> None:
        import numpy as np

        from rtmms.planning.linear import LinearPlanner, stroke_map
        from rtmms.planning.reconstructed_state import ReconstructedState

        key = tuple(sorted((name, str(value)) for name, value in parameters.items()))
        if self._plan_key == key:
            return
        model = own_moth(parameters, self._grid)
        maximum = np.minimum(LIMIT, [channel.upper or 0.0 for channel in model.actuators])
        linear = stroke_map(model, round(self._half / self._grid))
        self._planner = LinearPlanner(linear, round(self._horizon / self._half), -maximum, maximum)
        self._reconstructed = ReconstructedState(model)
        self._plan_key = key
