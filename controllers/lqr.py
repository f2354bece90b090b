"""Linear quadratic regulator that holds the moth where it hovers, on the map of its stroke.

    x[k + 1] = A x[k] + B u[k] over strokes, u[k] = -K x[k]

x is pose and twist of the body at the beginning of a stroke, less those of the trimmed one; u the offsets and gains of
both wings, held for a stroke. The controller computes A and B at the start, by central differences on its own moth with
the plant's parameters (rtmms.analysis.period_map). K solves the discrete Riccati equation.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import degrees, pi
from typing import Annotated, Any

import rtmms
from rtmms.base.override import override
from rtmms.base.parameters import Parameter, check_parameters

_MAX_COMMAND = 0.35
_MAX_TURN_RAD = 0.5
"""Turn of the start beyond which the feedback, for small angles, would have wrong signs."""
_NAMES = ("x", "y", "z", "roll", "pitch", "yaw", "vx", "vy", "vz", "wx", "wy", "wz")
_STEPS = (1e-4,) * 3 + (1e-3,) * 3 + (1e-3,) * 3 + (1e-2,) * 3


@dataclass
class Lqr(rtmms.Controller):
    """Hovers at a place.

    The declaration of each field has its meaning, unit and range.
    """

    # fmt: off
    x_m: Annotated[float, Parameter(
        "Place to hold along x, world.", "m", signed=True, le=1e3, live=True,
    )] = 0.0
    y_m: Annotated[float, Parameter(
        "Place to hold along y, world.", "m", signed=True, le=1e3, live=True,
    )] = 0.0
    z_m: Annotated[float, Parameter(
        "Place to hold along z, world.", "m", signed=True, le=1e3, live=True,
    )] = 0.0
    position_m: Annotated[float, Parameter(
        "Error of the position that counts as one in the quadratic cost.", "m", ge=1e-6,
    )] = 0.1
    attitude_rad: Annotated[float, Parameter(
        "Error of the attitude that counts as one in the quadratic cost.", "rad", ge=1e-6,
    )] = 1.0
    velocity_m_s: Annotated[float, Parameter(
        "Error of the velocity that counts as one in the quadratic cost.", "m/s", ge=1e-6,
    )] = 0.5
    rate_rad_s: Annotated[float, Parameter(
        "Error of the angular velocity that counts as one in the quadratic cost.", "rad/s", ge=1e-6,
    )] = 20.0
    word: Annotated[float, Parameter("Change of a command that counts as one in the quadratic cost.", ge=1e-6)] = 0.015
    # fmt: on

    robots = ("moth",)
    claim = ("right.offset", "right.gain", "left.offset", "left.gain")
    outputs = ("position", "quaternion", "velocity", "angular_velocity")
    setpoints = ("x_m", "y_m", "z_m")

    def __post_init__(self) -> None:
        """Check the parameters."""
        check_parameters("controller 'lqr': ", self)
        self._held: dict[str, float] = dict.fromkeys(self.claim, 0.0)
        self._gain: Any = None

    @override
    def start(self, plant: rtmms.PlantInfo) -> None:
        """Linearise a moth like the plant's, and solve for the gain.

        Raises
        ------
        ModelError
            A stroke is no whole number of steps.
        """
        period = 2.0 * pi / float(plant.parameters.get("omega_rad_s", 50.0 * pi))
        self._steps = round(period / plant.dt)
        if abs(self._steps * plant.dt - period) > 1e-6 * period or self._steps < 4:
            raise rtmms.ModelError(
                f"controller 'lqr': expected a stroke of {period:.4g} s to be a whole number of steps, at least 4, got "
                f"dt = {plant.dt:g}"
            )
        self._names = [channel.name for channel in plant.actuators]
        self._gain, self._origin = self._solved(plant)
        self._held = dict.fromkeys(self._names, 0.0)

    @override
    def update(self, state: rtmms.State) -> Mapping[str, float]:
        """Return offsets in rad and gains; new ones at the beginning of each stroke."""
        if state.step % self._steps == 0:
            import numpy as np

            from rtmms.plant.coordinates import displacement

            observed = state.outputs
            pose = np.array([*observed["position"], *observed["quaternion"]])
            wanted = self._origin[:7].copy()
            wanted[:3] += self.x_m, self.y_m, self.z_m
            off = displacement(wanted, pose)
            turned = float(np.linalg.norm(off[3:6]))
            if state.step == 0 and turned > _MAX_TURN_RAD:
                raise rtmms.ModelError(
                    "controller 'lqr': expected a start close to a heading along world x, got one turned by "
                    f"{degrees(turned):.0f} deg; start with heading_deg = 0"
                )
            off[:3] = np.clip(off[:3], -5.0 * self.position_m, 5.0 * self.position_m)
            twist = np.array([*observed["velocity"], *observed["angular_velocity"]]) - self._origin[7:]
            u = np.clip(-self._gain @ np.concatenate([off, twist]), -_MAX_COMMAND, _MAX_COMMAND)
            self._held = dict(zip(self._names, u.tolist(), strict=True))
        return self._held

    def _solved(self, plant: rtmms.PlantInfo) -> tuple[Any, Any]:
        """Return K (4, 12), and pose and twist of the trimmed hover (13,)."""
        from dataclasses import fields

        import numpy as np
        from scipy.linalg import LinAlgError, solve_discrete_are

        from rtmms.robots import moth

        default = {field.name: getattr(moth.Moth(), field.name) for field in fields(moth.Moth)}
        values = {name: tuple(value) if isinstance(value, list) else value for name, value in plant.parameters.items()}
        # what is as usual is not printed, for it then finds its trim in a file
        changed = {name: value for name, value in values.items() if name in default and value != default[name]}
        amplitude = changed.pop("amplitude_rad", None)  # what its own trim found, or one that was asked for
        load: Any = moth.load
        moth_plant = load(dt=plant.dt, **changed)
        if amplitude is not None and moth_plant.parameters.amplitude_rad != amplitude:
            moth_plant = load(dt=plant.dt, amplitude_rad=amplitude, **changed)
        origin = moth_plant.vector.copy()
        chart = _Body(moth_plant)
        linear = stroke_map(moth_plant, chart, self._steps)
        q = np.diag([1.0 / s**2 for s in (self.position_m, self.attitude_rad, self.velocity_m_s, self.rate_rad_s)
                     for _ in range(3)])  # fmt: skip
        r = np.eye(4) / self.word**2
        solve: Any = solve_discrete_are
        try:
            p = solve(linear.a, linear.b, q, r)
        except (LinAlgError, ValueError) as fault:
            raise rtmms.ModelError(f"controller 'lqr': no stable feedback exists for this moth: {fault}") from None
        gain = np.linalg.solve(r + linear.b.T @ p @ linear.b, linear.b.T @ p @ linear.a)
        self.poles = np.abs(np.linalg.eigvals(linear.a - linear.b @ gain))
        return gain, np.concatenate([origin[:7], chart.twist(origin)])


def stroke_map(moth_plant: Any, chart: Any, steps: int) -> Any:
    """Return the map of a stroke by four variables that are held for it.

    Parameters
    ----------
    moth_plant : Any
        The moth, on its hovering orbit.
    chart : Any
        Coordinates of its pose and twist.
    steps : int
        Steps of a stroke.

    Returns
    -------
    : Linear
        A and B.
    """
    import numpy as np

    from rtmms.analysis.period_map import period_map

    def commands(variables: Any) -> Any:
        return np.tile(moth_plant.neutral + variables, (steps, 1))

    inputs = [channel.name for channel in moth_plant.actuators]
    return period_map(moth_plant, commands, inputs, _NAMES, sizes=_STEPS, steps=(1e-3,) * 4, chart=chart)


class _Body:
    """Pose and twist of a plant of a mechanism, as rtmms.analysis.chart.Chart."""

    names = _NAMES

    def __init__(self, plant: Any) -> None:
        import numpy as np

        self._plant, self.size = plant, np.array(_STEPS)
        self._origin = plant.vector.copy()
        self._at = 7 + plant.model.n

    def twist(self, vector: Any) -> Any:
        return vector[self._at : self._at + 6]

    def read(self) -> Any:
        import numpy as np

        from rtmms.plant.coordinates import displacement

        now = self._plant.vector
        return np.concatenate([displacement(self._origin[:7], now[:7]), self.twist(now) - self.twist(self._origin)])

    def write(self, coordinates: Any) -> None:
        from rtmms.plant.coordinates import displace_pose

        vector = self._origin.copy()
        vector[:7] = displace_pose(self._origin[:7], coordinates[:6])
        vector[self._at : self._at + 6] += coordinates[6:]
        self._plant.start(vector, 0)
