"""Defaults of the controller `predictive` for each robot, and the variables of its plans."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any

from .cpg import GROWTH

ILQR = "ilqr"
LINEAR = "linear"
CLAMPED = 0.85
"""Limit of the manta's rods for iLQR, rad. The supports of its fins are singular where two rods are 1.81 rad apart."""
CHAINS = {ILQR: 4}
"""Largest number of a fin's chains in the planner's model, by the method; each has six states."""
COARSE_CHAINS = 16
"""Chains for other methods: one block of lanes, which fewer chains would not make faster."""


@dataclass(frozen=True)
class PlanDefaults:
    """Defaults of a robot.

    Attributes
    ----------
    horizon_s, rate_hz, grid_s : float
        As the controller's parameters.
    stage_s : float
        Time from knot to knot of iLQR, s.
    targets : int
        Targets of each word in sampling.
    setpoints : tuple[str, ...]
        Names of the set-points without a course or a user's cost.
    """

    horizon_s: float
    rate_hz: float
    grid_s: float
    stage_s: float
    targets: int
    setpoints: tuple[str, ...]


TUNED: Mapping[tuple[str, bool], PlanDefaults] = {
    ("manta", False): PlanDefaults(2.5, 10.0, 0.02, 0.1, 1, ("depth_m", "heading_deg", "speed_m_s")),
    ("manta", True): PlanDefaults(2.0, 10.0, 0.02, 0.08, 1, ("depth_m", "heading_deg", "speed_m_s")),
    ("eel", False): PlanDefaults(2.5, 2.5, 0.02, 0.1, 2, ("depth_m", "heading_deg")),
    ("quadrotor", False): PlanDefaults(0.8, 50.0, 0.02, 0.04, 3, ("x_m", "y_m", "z_m", "yaw_deg")),
    ("quadrotor", True): PlanDefaults(0.8, 50.0, 0.02, 0.04, 5, ("x_m", "y_m", "z_m", "yaw_deg")),
}
"""Defaults by robot, and whether the method is iLQR."""
BY_STROKES: Mapping[str, PlanDefaults] = {
    "moth": PlanDefaults(0.4, 50.0, 1e-3, 0.02, 1, ("x_m", "y_m", "z_m", "yaw_deg"))
}
"""Robots with linear plans: a plan and a knot each half stroke."""
ANY = PlanDefaults(2.0, 10.0, 0.02, 0.1, 5, ())
"""Defaults of another robot, or of an eel by iLQR: with a user's cost."""
SAMPLES = {"eel": 48, "quadrotor": 48}
"""Candidates of a plan; else 32. With 16 of them the eel deviates by 4 deg and 4 cm; with 32 the quadrotor by 15 cm."""
FREQUENCY_HZ = {"eel": 0.8}
"""Frequency of the stroke or wave by robot; else 0.6 Hz."""
SPEED_M_S = {"eel": 0.15}
"""Speed over the ground by robot; else 0.4 m/s."""
SIGN_OF = {"manta": "left.front", "quadrotor": "front.speed", "eel": "yaw1.angle"}
"""Actuator by which a plant's robot is recognised."""
FOLLOWS_COURSES = ("manta", "eel")
ROBOTS = tuple(SIGN_OF)
"""Robots with costs of their own here."""
_SURROUNDINGS = ("current", "wind")
"""First letters of parameters that do not belong to the robot."""


def plan_defaults(robot: str, method: str) -> PlanDefaults:
    """Return the defaults of a robot.

    Parameters
    ----------
    robot : str
        Name of the robot.
    method : str
        Method of the planner.

    Returns
    -------
    PlanDefaults
        The defaults.

    Raises
    ------
    ModelError
        The robot has no linear plans.
    """
    if method == LINEAR:
        if robot not in BY_STROKES:
            import rtmms

            raise rtmms.ModelError(
                f"controller 'predictive': method: linear plans support the models {', '.join(BY_STROKES)}, "
                f"got model={robot}"
            )
        return BY_STROKES[robot]
    return TUNED.get((robot, method == ILQR), ANY)


def refuse_unknown_model(robot: str) -> None:
    """Refuse an unknown robot.

    Parameters
    ----------
    robot : str
        Name of the robot.

    Raises
    ------
    ModelError
        There is no such robot.
    """
    import rtmms
    from rtmms.plant.loading import builder

    try:
        builder(robot)
    except rtmms.RtmmsError as fault:
        raise rtmms.ModelError(f"controller 'predictive': model: {fault}") from None


def refuse_other_plant(robot: str, actuator_names: Sequence[str], names: Sequence[str], plant: str) -> None:
    """Refuse a plant of another robot than the model's.

    Parameters
    ----------
    robot : str
        Name of the model's robot.
    actuator_names : Sequence[str]
        The model's actuators, where none of them identifies the robot by itself.
    names : Sequence[str]
        The plant's actuators.
    plant : str
        Name of the plant's robot, for messages.

    Raises
    ------
    ModelError
        The plant is another robot.
    """
    import rtmms

    sign = SIGN_OF.get(robot)
    other = tuple(names) != tuple(actuator_names) if sign is None else sign not in names
    if other:
        raise rtmms.ModelError(
            f"controller 'predictive': model: expected a model of the plant '{plant}', got {robot}; give model= one of "
            f"{', '.join(ROBOTS)}, or another robot with cost="
        )


def model_of(robot: str, parameters: Mapping[str, Any], grid_s: float, method: str, whole: bool = False) -> Any:
    """Return the planner's model, with the parameters that the plant sends; unknown environment are left out.

    Parameters
    ----------
    robot : str
        Name of the robot.
    parameters : Mapping[str, Any]
        Parameters of the plant.
    grid_s : float
        Step of the model, s.
    method : str
        Method of the planner.
    whole : bool, default False
        With all chains, as the plant itself.

    Returns
    -------
    : Plant
        The model.
    """
    import rtmms
    from rtmms.wire.protocol.welcome import plain_parameters

    values: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in parameters.items()
    }
    if robot == "manta":
        if not whole:
            maximum = CHAINS.get(method, COARSE_CHAINS)
            values["chains"] = min(maximum, int(values.get("chains", maximum)))
        unknown: tuple[str, ...] = ("current_m_s", "current_gradient_1_s", "left_chains_lost", "right_chains_lost")
    elif robot == "eel":
        values["gait"] = "none"
        unknown = ("current_x_m_s", "current_y_m_s", "current_z_m_s")
    else:
        unknown = tuple(name for name in values if name.startswith(_SURROUNDINGS))
    for name in unknown:  # what the robot is in, and what has befallen it
        values.pop(name, None)
    if robot not in ROBOTS:
        plant = rtmms.plant.loading.build_plant(robot, dt=grid_s)
        usual_ones = plain_parameters(plant)
        values = {name: value for name, value in values.items() if _differs(value, usual_ones.get(name))}
        if not values:
            return plant
    return rtmms.plant.loading.build_plant(robot, dt=grid_s, **values)


def read_preset(path: str, robot: str) -> dict[str, Any]:
    """Return the parameters of a FILE.toml for the planner's model, whose step is its own.

    Parameters
    ----------
    path : str
        The file.
    robot : str
        Name of the robot.

    Returns
    -------
    dict[str, Any]
        Parameters by name.

    Raises
    ------
    ModelError
        It is no such file, or its parameters do not belong to the robot.
    """
    import rtmms
    from rtmms.base.toml_file import read_toml

    if not path.endswith(".toml"):
        raise rtmms.ModelError(f"controller 'predictive': preset: expected a FILE.toml of parameters, got '{path}'")
    try:
        toml = read_toml(path)
    except rtmms.ModelError as fault:
        raise rtmms.ModelError(f"controller 'predictive': preset: {fault}") from None
    toml.pop("dt", None)
    try:
        rtmms.plant.loading.build_plant(robot, **toml)
    except rtmms.RtmmsError as fault:
        raise rtmms.ModelError(
            f"controller 'predictive': preset: {path}: expected parameters of the {robot}: {fault}"
        ) from None
    return toml


def _differs(item: Any, other: Any) -> bool:
    return (list(item) if isinstance(item, tuple) else item) != (list(other) if isinstance(other, tuple) else other)


def any_knots(model: Any, rows: int, horizon_s: float) -> Any:
    """Return knots of a robot's actuators, initially neutral.

    Parameters
    ----------
    model : Any
        The planner's model.
    rows : int
        Number of knots.
    horizon_s : float
        Horizon, s.

    Returns
    -------
    : Knots
        The variables.
    """
    import numpy as np

    from rtmms.planning.planner import Knots

    return Knots(model.actuators, rows, horizon_s, np.array([channel.neutral for channel in model.actuators]))


def gait_knots(model: Any, gait: Any, period_s: float, rows: int, horizon_s: float, maximum: float = inf) -> Any:
    """Return knots of joints, initially those of a gait.

    Parameters
    ----------
    model : Any
        The planner's model.
    gait : Any
        Words (rtmms.planning.planner) with the gait.
    period_s : float
        Period of the gait, s.
    rows : int
        Number of knots.
    horizon_s : float
        Horizon, s.
    maximum : float, default inf
        Limit of each joint, rad.

    Returns
    -------
    : Knots
        The variables.
    """
    import numpy as np

    from rtmms.planning.planner import Knots

    span = horizon_s / (rows - 1)
    (commands,), _ = gait.commands(gait.home[None], gait.start(), 0.0, rows - 1, span)
    variables = Knots(model.actuators, rows, horizon_s, np.zeros(len(model.actuators)), period_s)
    variables.lower, variables.upper = np.maximum(variables.lower, -maximum), np.minimum(variables.upper, maximum)
    variables.home[1:] = np.clip(commands, variables.lower, variables.upper)
    return variables


MIXING = ((1.0, 0.0, -1.0, -1.0), (1.0, 1.0, 0.0, 1.0), (1.0, 0.0, 1.0, -1.0), (1.0, -1.0, 0.0, 1.0))
"""Speeds of the rotors (front, left, back, right) for lift, and for moments about x, y and z."""
LIFT_RAD_S = 5.0
"""Spread of the candidates' lift, rad/s."""
MOMENT_RAD_S = 1.5
"""Spread of the candidates' moments about x and y, rad/s. More would turn the quadrotor over within the horizon."""
YAW_RAD_S = 10.0
"""Spread of the candidates' moment about z, rad/s; there the rotors have a seventh of the arm."""


def rotor_knots(model: Any, rows: int, horizon_s: float, method: str) -> Any:
    """Return knots of the quadrotor's rotors, initially at hovering speed; for sampling, knots of lift and moments.

    Parameters
    ----------
    model : Any
        The planner's model.
    rows : int
        Number of knots.
    horizon_s : float
        Horizon, s.
    method : str
        Method of the planner.

    Returns
    -------
    : Knots
        The variables.
    """
    import numpy as np

    from rtmms.planning.planner import Knots

    carried = np.full(4, model.parameters.hover_rad_s)
    if method == ILQR:
        return Knots(model.actuators, rows, horizon_s, carried)
    variables = Knots(model.actuators, rows, horizon_s, carried, mixing=np.array(MIXING))
    variables.scale[:] = LIFT_RAD_S, MOMENT_RAD_S, MOMENT_RAD_S, YAW_RAD_S
    return variables


def eel_waves(model: Any, rows: int, horizon_s: float, frequency_hz: float, limit: float) -> Any:
    """Return waves of the eel's joints, initially that of `eel_course`.

    Parameters
    ----------
    model : Any
        The planner's model.
    rows : int
        Number of targets.
    horizon_s : float
        Horizon, s.
    frequency_hz : float
        Frequency of the wave.
    limit : float
        Limit of each joint, rad.

    Returns
    -------
    : Waves
        The variables.
    """
    from math import radians

    from rtmms.planning.waves import Waves

    names = [actuator.name for actuator in model.actuators]
    yaw, pitch = ([k for k, name in enumerate(names) if name.startswith(kind)] for kind in ("yaw", "pitch"))
    return Waves(
        yaw, pitch, len(names), growth=GROWTH, lag=radians(28.0), amplitude=radians(8.0),
        frequency_hz=frequency_hz, limit=limit, rows=rows, horizon_s=horizon_s,
    )  # fmt: skip


def course_cost(robot: str, route: Any, speed_m_s: float, horizon_s: float) -> Any:
    """Return the cost of a robot that follows a course.

    Parameters
    ----------
    robot : str
        Name of the robot.
    route : Any
        The course.
    speed_m_s : float
        Speed over the ground, m/s.
    horizon_s : float
        Horizon, s.

    Returns
    -------
    : Cost
        The cost.
    """
    from rtmms.planning.swaying import sway_along
    from rtmms.planning.tasks import along_course

    return (sway_along if robot == "eel" else along_course)(route, speed_m_s, horizon_s)


def holding_cost(robot: str, depth_m: float, heading_rad: float, speed_m_s: float, horizon_s: float) -> Any:
    """Return the cost of a swimmer that holds depth, heading and speed.

    Parameters
    ----------
    robot : str
        Name of the robot.
    depth_m : float
        Depth, m, positive down.
    heading_rad : float
        Heading, rad.
    speed_m_s : float
        Speed over the ground, m/s.
    horizon_s : float
        Horizon, s.

    Returns
    -------
    : Cost
        The cost.
    """
    from rtmms.planning.swaying import sway_holding
    from rtmms.planning.tasks import hold

    return (sway_holding if robot == "eel" else hold)(depth_m, heading_rad, speed_m_s, horizon_s)
