"""Predictive control: many short runs of the robot's own model ten times a second; the best one gives the commands.

Run it with a course, set-points or a cost of your own:

    rtmms run manta --controller predictive:course=helix,radius_m=3,rise_m=-1 --sensors typical
    rtmms run manta --controller predictive:depth_m=1,heading_deg=90
    rtmms run manta --controller predictive:cost=mine.py:deep
    rtmms run eel --set gait=none --controller predictive:model=eel,course=helix,speed_m_s=0.15
    rtmms run quadrotor --controller predictive:model=quadrotor,method=ilqr,x_m=2,z_m=1
    rtmms run moth --controller predictive:model=moth,y_m=0.2
"""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from math import inf, radians
from time import monotonic, thread_time
from typing import TYPE_CHECKING, Annotated, Any

import rtmms
from rtmms.base.attitude import from_euler
from rtmms.base.override import override
from rtmms.base.parameters import Parameter, check_parameters
from rtmms.base.terminal import print_text
from rtmms.base.trust import NamesFile

from .course_progress import CourseProgress
from .following import RodMonitor
from .plan_figures import PlanFigures, finite, summary
from .planned import (
    ANY,
    BY_STROKES,
    CLAMPED,
    FOLLOWS_COURSES,
    FREQUENCY_HZ,
    ILQR,
    LINEAR,
    ROBOTS,
    SAMPLES,
    SPEED_M_S,
    any_knots,
    course_cost,
    eel_waves,
    gait_knots,
    holding_cost,
    model_of,
    plan_defaults,
    read_preset,
    refuse_other_plant,
    refuse_unknown_model,
    rotor_knots,
)
from .rods import rod_ratio
from .senses import Motion, MotionSource
from .stroke_plans import StrokePlans
from .strokes import RODS
from .watch import Watch

if TYPE_CHECKING:
    from rtmms.planning.planner import BackgroundThread, Plan

_METHODS = ("cem", "mppi", "ps", ILQR, LINEAR)
_SMOOTH = (ILQR, LINEAR)
"""Methods that improve a plan step by step, without candidates."""
_SAMPLING_ONLY = ("samples", "targets")
"""Parameters that methods without candidates do not have."""
_DESTINATION = ("x_m", "y_m", "z_m", "yaw_deg")
"""Set-points of a robot that hovers."""
_SWIMMING = ("depth_m", "heading_deg", "speed_m_s")
"""Set-points of a robot that swims."""
_MAX_PLANNING_SHARE = 0.8
"""Share of the time between two plans after which no further candidates begin, in real time."""


@dataclass
class Predictive(PlanFigures, rtmms.Controller):
    """Plans on the robot's full model and follows the plan until the next.

    The variables of a plan are gait parameters of both fins, or knots of the commands. Where no candidate has a cost
    that is a number, the last plan continues, with a message. After a horizon of such plans nothing is left to follow,
    and the controller ends with an error. `failed_plans` counts them.

    The declaration of each field has its meaning, unit and range.
    """

    # fmt: off
    course: Annotated[str, Parameter(
        "Course: waypoints, helix or eight, as in `path`; '': hold depth, heading and speed.",
    )] = ""
    waypoints: Annotated[str, Parameter("Points of the course, as in `path`.")] = ""
    radius_m: Annotated[float, Parameter("Radius of helix and eight, as in `path`.", "m", ge=0.1, le=1e4)] = 3.0
    rise_m: Annotated[float, Parameter("Rise of the helix in a turn, as in `path`.", "m", signed=True, le=1e4)] = -1.0
    turns: Annotated[float, Parameter("Turns of helix and eight, as in `path`.", ge=0.05, le=1e4)] = 2.0
    depth_m: Annotated[float, Parameter("Depth, positive down.", "m", ge=0, le=1e4, live=True)] = 2.5
    course_heading_deg: Annotated[float, Parameter(
        "Direction in which helix and eight begin, as in `path`.", "deg", signed=True, le=360,
    )] = 0.0
    heading_deg: Annotated[float, Parameter(
        "Heading, counted to the left from world x.", "deg", signed=True, le=360, live=True,
    )] = 0.0
    speed_m_s: Annotated[float | None, Parameter("Speed over the ground.", "m/s", ge=0, le=2, live=True)] = None
    cost: Annotated[str, NamesFile("code"), Parameter(
        "File FILE.py:NAME with a cost of your own (rtmms.cost), in place of the course and set-points.",
    )] = ""
    method: Annotated[str | None, Parameter(
        "Method of planning; default cem, and linear for the moth, which then uses no `cost`.",
    )] = None
    samples: Annotated[int | None, Parameter("Number of candidates of a plan.", ge=2, le=4096)] = None
    horizon_s: Annotated[float | None, Parameter("Horizon of a plan, more than a beat.", "s", ge=0.1, le=60)] = None
    rate_hz: Annotated[float | None, Parameter("Plans per second.", "Hz", ge=0.1, le=100)] = None
    grid_s: Annotated[float | None, Parameter("Step of the planner's model.", "s", ge=1e-4, le=0.1)] = None
    targets: Annotated[int | None, Parameter(
        "Number of targets of each command word within the horizon.", ge=1, le=16,
    )] = None
    frequency_hz: Annotated[float | None, Parameter("Frequency of the stroke.", "Hz", ge=0.1, le=2)] = None
    observe_current: Annotated[bool, Parameter(
        "Whether to estimate a current, by replays of the last seconds.",
    )] = True
    threads: Annotated[int, Parameter("Number of threads of the planner.", ge=1, le=64)] = 1
    seed: Annotated[int, Parameter("Seed of the samples.", ge=0, le=2**63)] = 0
    model: Annotated[str, NamesFile("code"), Parameter(
        "Robot of the model: manta, quadrotor, eel or moth; with `cost` any that can be planned for, or FILE.py:NAME.",
    )] = "manta"
    x_m: Annotated[float, Parameter(
        "Place of the quadrotor's or the moth's destination along x.", "m", signed=True, le=1e4, live=True,
    )] = 0.0
    y_m: Annotated[float, Parameter(
        "Place of the quadrotor's or the moth's destination along y.", "m", signed=True, le=1e4, live=True,
    )] = 0.0
    z_m: Annotated[float | None, Parameter(
        "Place of the quadrotor's or the moth's destination along z; default 1 and 0.",
        "m", signed=True, le=1e4, live=True,
    )] = None
    yaw_deg: Annotated[float, Parameter(
        "Heading of the quadrotor or the moth.", "deg", signed=True, le=360, live=True,
    )] = 0.0
    iterations: Annotated[int | None, Parameter(
        "Maximum number of iterations of a plan by ilqr; default 4 of the quadrotor, 2 of others.", ge=1, le=1000,
    )] = None
    stage_s: Annotated[float | None, Parameter(
        "Time from knot to knot of the commands, for ilqr.", "s", ge=1e-4, le=1,
    )] = None
    smooth: Annotated[float, Parameter("Weight of changes of the knots in the cost.", ge=0, le=1e6)] = 1e-3
    preset: Annotated[str, NamesFile("input"), Parameter(
        "File FILE.toml of parameters of the model, in place of the plant's own. If it names a preset, it begins from "
        "that.",
    )] = ""
    # fmt: on

    robots = ()  # any: `model` names it, and a plant of another one is refused at the start
    claim = ("*",)
    every = 5
    interpolation = "linear"
    metrics = (
        "plans",
        "late_plans",
        "plan_age_s",
        "plan_ms",
        "core",
        "tried",
        "failed",
        "failed_plans",
        "iterations_a_plan",
        "least_cost",
        "spread_of_costs",
        "planned_motion",
        "planned_samples",
        "model_error_m",
    )

    def __post_init__(self) -> None:
        """Check the parameters, and fill in the robot's defaults."""
        if self.method is None:
            self.method = LINEAR if self.model in BY_STROKES and not self.cost else "cem"
        if self.method not in _METHODS:
            unknown = rtmms.UnknownNameError("method", self.method, _METHODS)
            raise rtmms.ModelError(f"controller 'predictive': method: {unknown}")
        if self.model not in ROBOTS:
            refuse_unknown_model(self.model)
        plan_settings = plan_defaults(self.model, self.method)
        if self.method == LINEAR and self.cost:
            raise rtmms.ModelError(
                "controller 'predictive': cost: expected none with method=linear, which has its own; give "
                "another method"
            )
        if plan_settings is ANY and not self.cost:
            by = f" by {self.method}" if self.model in (*ROBOTS, *BY_STROKES) else ""
            raise rtmms.ModelError(
                f"controller 'predictive': cost: '{self.model}'{by} has no default cost; give cost=FILE.py:NAME"
            )
        robot_values = {name: getattr(plan_settings, name) for name in _BY_ROBOT} | {
            "samples": SAMPLES.get(self.model, 32), "frequency_hz": FREQUENCY_HZ.get(self.model, 0.6),
            "speed_m_s": SPEED_M_S.get(self.model, 0.4), "iterations": ITERATIONS.get(self.model, 2),
            "z_m": 0.0 if self.model in BY_STROKES else 1.0,
        }  # fmt: skip
        self._refuse_options_of_others(robot_values)
        for name, value in robot_values.items():
            others = name in _SAMPLING_ONLY if self.method in _SMOOTH else False
            others |= name == "iterations" and self.method != ILQR
            if getattr(self, name) is None and not others:
                setattr(self, name, value)
        check_parameters("controller 'predictive': ", self)
        horizon, rate, grid, stage = (float(getattr(self, name)) for name in _TIMES)
        self._horizon, self._grid = horizon, grid
        self._per_tick = _whole("1 / rate_hz", 1.0 / rate, "grid_s", grid)
        _whole("horizon_s", horizon, "grid_s", grid)
        self._rows = int(self.targets or 1)
        if self.method == ILQR:
            _whole("stage_s", stage, "grid_s", grid)
            self._rows = 1 + _whole("horizon_s", horizon, "stage_s", stage)
        beat = 1.0 / float(self.frequency_hz or 1.0)
        if self.model in FOLLOWS_COURSES and horizon <= beat:
            raise rtmms.ModelError(f"controller 'predictive': horizon_s: expected more than a beat, {beat:.3g} s with "
                                   f"frequency_hz={self.frequency_hz:g}, got {horizon:g} s")  # fmt: skip
        self._strokes: StrokePlans | None = None
        if self.method == LINEAR:
            self._strokes = self._stroke_plans(stage)
        if self.cost and self.course:
            raise rtmms.ModelError("controller 'predictive': cost, course: expected one of them, got both")
        if self.model not in FOLLOWS_COURSES and (self.course or self.waypoints):
            raise rtmms.ModelError(f"controller 'predictive': course: a {self.model} cannot follow a course; give cost"
                                   + ", or x_m" * ("x_m" in plan_settings.setpoints))  # fmt: skip
        self._track(() if self.cost else plan_settings.setpoints)
        self._course_path: Any = None
        if self.course:
            self._find_course()
        elif self.waypoints:
            raise rtmms.ModelError(
                "controller 'predictive': waypoints: expected course=waypoints with them, got no course"
            )
        self._tick_s = self._per_tick * grid
        self._tries = {LINEAR: 1, ILQR: int(self.iterations or 1)}.get(self.method, int(self.samples or 32))
        self._senses, self._watch = MotionSource("predictive"), Watch("predictive", _print)
        self._following = RodMonitor("predictive", _print)
        self._running_cost: Any = None
        self._plan_key: Any = None
        self._preset: dict[str, Any] = {}
        self.model_error_m: float | None = None  # reported as a metric: see _compare
        self._plans: list[Plan] = []
        self._late, self._since, self._spent_s, self._begun = 0, 0.0, 0.0, 0.0
        self._background: BackgroundThread | None = None
        self._job: Future[Any] | None = None

    def _refuse_options_of_others(self, robot_values: Mapping[str, Any]) -> None:
        """Raise ModelError for a parameter without effect for this model, method, cost and course.

        Parameters
        ----------
        robot_values : Mapping[str, Any]
            Values of the robot's own, by name.
        """
        from rtmms.analysis.courses import WITHOUT_EFFECT

        flies = self.model in ("quadrotor", *BY_STROKES)
        of_courses = {"radius_m": "radius_m", "rise_m": "rise_m", "turns": "turns", "heading_deg": "course_heading_deg"}
        options = [(name, "only cem, mppi and ps use it") for name in _SAMPLING_ONLY if self.method in _SMOOTH]
        options += [(name, "only ilqr uses it") for name in ("iterations", "smooth") if self.method != ILQR]
        options += [("stage_s", "only ilqr and linear use it")] * (self.method not in _SMOOTH)
        options += [(name, f"a {self.model} cannot fly to a place") for name in _DESTINATION if not flies]
        options += [(name, "only robots in water use it; give x_m, y_m, z_m, yaw_deg") for name in _SWIMMING if flies]
        if self.cost:
            options += [(name, "the cost replaces it") for name in (*_DESTINATION, *_SWIMMING, *of_courses.values())]
        elif self.course:
            unused = WITHOUT_EFFECT.get(self.course, ())
            options += [(of_courses[name], f"course={self.course} does not use it") for name in unused]
        else:
            options += [(name, "only a course uses it; give course=") for name in of_courses.values()]
        for name, why in options:
            # the robot's own value changes nothing: a copy of a controller has it
            if getattr(self, name) not in (type(self).__dataclass_fields__[name].default, robot_values.get(name)):
                raise rtmms.ModelError(f"controller 'predictive': {name}: {why}; got model={self.model}, "
                                       f"method={self.method}")  # fmt: skip

    def _find_course(self) -> None:
        from rtmms.analysis.courses import course, course_text

        numbers = {
            "radius_m": self.radius_m, "rise_m": self.rise_m, "turns": self.turns, "depth_m": self.depth_m,
            "heading_deg": self.course_heading_deg,
        }  # fmt: skip
        try:
            self._course_path = course(self.course, waypoints=self.waypoints, **numbers)
        except rtmms.RtmmsError as fault:
            raise rtmms.ModelError(f"controller 'predictive': {fault}") from None
        self.cross_track_m = course_text(self.course, self.waypoints, **numbers)
        self._track(("cross_track_m",))
        self._progress = CourseProgress("predictive", self._course_path.whole_m, _print)

    def _stroke_plans(self, stage: float) -> StrokePlans:
        if self._per_tick * self._grid != stage or self._per_tick % 2:
            raise rtmms.ModelError(
                "controller 'predictive': rate_hz, stage_s, grid_s: expected stage_s = 1 / rate_hz, and an even number "
                f"of steps of grid_s in it, got {stage:g} s, {self.rate_hz:g} Hz and steps of {self._grid:g} s"
            )
        _whole("horizon_s", self._horizon, "stage_s", stage)
        return StrokePlans(self._grid, stage, self._horizon)

    def _track(self, names: tuple[str, ...]) -> None:
        """Set the instance's set-points, which depend on the task, in place of the class's."""
        self.__dict__["setpoints"] = names

    def prepare(self) -> None:
        """Compile the model's kernels and the cost before the plant waits.

        Raises
        ------
        ModelError
            The cost, the preset or the model is wrong.
        """
        from rtmms.base.jit import compile_progress
        from rtmms.planning.planner import BackgroundThread
        from rtmms.planning.tasks import hover_at

        self._senses.prepare()
        if self.preset:
            self._preset = read_preset(self.preset, self.model)
        if self._strokes is not None:
            self._background = BackgroundThread("planner")
            with compile_progress("the planner's kernels"):
                self._strokes.prepare(self._background)
            return
        if self.cost:
            from rtmms.base.trust import is_file, load_named
            from rtmms.planning.cost import Cost

            if not is_file(self.cost):
                raise rtmms.ModelError(f"controller 'predictive': cost: expected FILE.py:NAME, got '{self.cost}'")
            self._running_cost = load_named(
                "cost", self.cost, lambda item: isinstance(item, Cost), "a cost (rtmms.cost)"
            )
        elif self._course_path is not None:
            self._running_cost = course_cost(self.model, self._course_path, float(self.speed_m_s or 0.0), self._horizon)
        elif self.model == "quadrotor":
            self._running_cost = hover_at(self.x_m, self.y_m, float(self.z_m or 0.0), radians(self.yaw_deg))
        else:
            self._running_cost = holding_cost(
                self.model, self.depth_m, radians(self.heading_deg), float(self.speed_m_s or 0.0), self._horizon
            )
        self._lockstep = True
        self._background = BackgroundThread("planner")
        with compile_progress("the planner's kernels"):
            self._build(self._believed({}))
            self._think(Motion(), [], self._variables.home, self._variables.start(), 0.0, {})  # or the cost is refused

    @override
    def start(self, plant: rtmms.PlantInfo) -> None:
        """Build a model with the plant's own parameters, and start anew."""
        self._names = tuple(channel.name for channel in plant.actuators)
        self._lockstep = plant.period_s is None
        if self._strokes is not None:
            self._senses.start(plant)
            if self._senses.sensed:
                raise rtmms.ModelError(
                    "controller 'predictive': method=linear needs the whole state, which an estimator does "
                    "not provide within a stroke; run the robot without sensors"
                )
            self._strokes.start(plant, self._lockstep, self._believed(plant.parameters))
            self._time = -inf
            return
        actuator_names = () if self.model in ROBOTS else self._variables.names
        refuse_other_plant(self.model, actuator_names, self._names, plant.robot)
        if self.model == "eel" and plant.parameters.get("gait", "none") != "none":
            raise rtmms.ModelError("controller 'predictive': the eel's own gait is on; run it with --set gait=none")
        self._senses.start(plant)
        if self.model == "manta":
            self._following.start(plant)
        self._measured = next((name for name in ("encoder.angle", "rod_angle") if name in
                               {channel.name for channel in plant.outputs}), "")  # fmt: skip
        self._lead = (plant.delay + plant.every) * plant.dt
        limits = [abs(x) for actuator in plant.actuators for x in (actuator.lower, actuator.upper) if x]
        self._build(self._believed(plant.parameters), min(limits, default=1.2))
        self._compare(dict(plant.parameters), plant.dt)
        self._begin()

    def _build(self, parameters: Mapping[str, Any], limit: float = 1.2) -> None:
        from rtmms.planning.ilqr import IterativeLqr
        from rtmms.planning.planner import Planner
        from rtmms.planning.reconstructed_state import CurrentObserver, ReconstructedState

        key = tuple(sorted((name, str(value)) for name, value in parameters.items()))
        if self._plan_key == key:
            return
        self._close()

        def model() -> Any:
            return model_of(self.model, parameters, self._grid, str(self.method))

        planned = model()
        self._variables = self._make_variables(planned, parameters, limit)
        self._reconstructed = ReconstructedState(model())
        drifting = self.observe_current and self.model == "manta"
        self._observer = CurrentObserver(model(), self._tick_s) if drifting else None
        self._planner: Planner | IterativeLqr
        if self.method == ILQR:
            self._planner = IterativeLqr(
                planned,
                self._variables,
                self._running_cost,
                samples=int(self.iterations or 1),
                threads=int(self.threads),
                change=self.smooth,
            )
        else:
            self._planner = Planner(
                planned, self._variables, self._running_cost, method=str(self.method), horizon_s=self._horizon,
                samples=int(self.samples or 32), threads=int(self.threads), seed=int(self.seed),
            )  # fmt: skip
        self._plan_key = key

    def _believed(self, parameters: Mapping[str, Any]) -> dict[str, Any]:
        """Return the model's parameters, where the plant sends these."""
        return dict(self._preset) if "preset" in self._preset else {**parameters, **self._preset}

    def _compare(self, parameters: Mapping[str, Any], dt: float) -> None:
        """Compare the planner's model with the plant's own, in its steps and with all its chains."""
        from rtmms.planning.reconstructed_state import distance_apart

        coarse = model_of(self.model, self._believed(parameters), self._grid, str(self.method))
        fine = model_of(self.model, parameters, dt, str(self.method), whole=True)
        self.model_error_m = finite(distance_apart(coarse, fine, self._variables, self._horizon))

    def _make_variables(self, model: Any, parameters: Mapping[str, Any], limit: float) -> Any:
        """Return the variables of the plans: knots, or gait parameters of the fins (rtmms.planning.planner)."""
        from rtmms.planning.strokes import Strokes

        if self.model == "quadrotor":
            return rotor_knots(model, self._rows, self._horizon, str(self.method))
        if self.model not in ROBOTS:
            return any_knots(model, self._rows, self._horizon)
        frequency = float(self.frequency_hz or 0.0)
        rows = 1 if self.method == ILQR else self._rows
        gait: Any
        if self.model == "eel":
            gait, maximum = eel_waves(model, rows, self._horizon, frequency, limit), limit
        else:
            gait, maximum = Strokes(rod_ratio(parameters), limit, frequency, rows, self._horizon), min(limit, CLAMPED)
        return (
            gait_knots(model, gait, 1.0 / frequency, self._rows, self._horizon, maximum)
            if self.method == ILQR
            else gait
        )

    def _begin(self) -> None:
        self._finish()
        self._planner.clear()
        self._plan = self._variables.home.copy()
        self._variable_state = self._tick_state = self._variables.start()
        self._since, self._time, self._tick = 0.0, -inf, 0.0
        self._plans = []
        self._sent: list[Any] = []
        self._held: dict[int, float] = {}
        self._late, self._due, self._spent_s = 0, 0.0, 0.0
        self._reconstructed.model.reset()
        if self._observer is not None:
            self._observer.clear()
            self._observer.current[:] = 0.0
            self._set_current((0.0, 0.0, 0.0))
        if self._course_path is not None:
            self._running_cost.data[3][2:] = 0.0
            self._progress.reset()

    def _set_targets(self) -> None:
        """Write the set-points into the cost: between two plans, so that no plan sees them change."""
        if self._running_cost is None or self.cost:
            return
        if self._course_path is not None:
            self._running_cost.data[3][0] = self.speed_m_s
        elif self.model == "quadrotor":
            self._running_cost.data[:] = self.x_m, self.y_m, self.z_m, radians(self.yaw_deg)
        else:
            self._running_cost.data[:3] = -self.depth_m, radians(self.heading_deg), self.speed_m_s

    @override
    def update(self, state: rtmms.State) -> dict[str, float]:
        """Return rod angles in rad, or speeds of rotors in rad/s."""
        now = self._senses.read(state)
        self._watch(now)
        if self._strokes is not None:
            return self._by_strokes(now)
        if self.model == "manta":
            self._following.look(state)
        if now.time < self._time:  # a reset
            self._begin()
        first = self._time == -inf
        passed = 0.0 if first else now.time - self._time
        self._time = now.time
        if first:
            self._begun = now.time
        else:
            _, self._variable_state = self._variables.commands(
                self._plan[None], self._variable_state, self._since, 1, passed
            )
            self._since += passed
        if first or now.time > self._tick + self._tick_s - 1e-9:
            self._held = {
                k: float(state.outputs[self._measured][k]) for k, rod in enumerate(RODS) if rod in self._following.stuck
            }
            self._turn_over(now, first)
        commands, _ = self._variables.commands(self._plan[None], self._variable_state, self._since, 1, self._lead)
        values = dict(zip(self._names, commands[0, 0].tolist(), strict=True))
        if self.model == "manta":
            self._following.sent(values)
        return values

    def _by_strokes(self, now: Motion) -> dict[str, float]:
        plans = self._strokes
        assert plans is not None
        if now.time < self._time:  # a reset
            plans.begin()
        if now.time < self._time or self._time == -inf:
            self._begun = now.time
        self._time = now.time
        values = plans.update(now, (self.x_m, self.y_m, float(self.z_m or 0.0)), radians(self.yaw_deg))
        plan_count = len(self._plans)
        self._plans, self._late, self._spent_s = plans.plans, plans.late, plans.spent_s
        self._since = (plans.age - 1) * self._tick_s
        for plan in self._plans[plan_count:]:
            self._judge(plan)
        return values

    def _turn_over(self, now: Motion, first: bool) -> None:
        """Use the last plan, and start the next, for the robot's expected state at its start."""
        if not first:
            since = self._since - (now.time - self._tick)
            sent, _ = self._variables.commands(self._plan[None], self._tick_state, since, self._per_tick, self._grid)
            self._sent.append(sent[0])
        job = self._job
        if job is not None and (self._lockstep or job.done()):
            result: Plan = job.result()
            self._plans.append(result)
            self._job = None
            if result.good:
                self._plan, self._since = result.variables, max(0.0, now.time - self._due)
            self._judge(result)
        elif job is not None:
            self._late += 1
        self._tick, self._tick_state = now.time, self._variable_state
        if self._job is None and self._background is not None:
            inputs = (now, self._sent, self._plan.copy(), self._variable_state.copy(), self._since, dict(self._held))
            self._due, self._sent = now.time + self._tick_s, []
            self._set_targets()
            self._job = self._background.submit(self._think, *inputs)

    def _judge(self, plan: Plan) -> None:
        """Report that the last plan continues without a better one, or raise RtmmsError where it has ended."""
        if plan.good:
            return
        if self.failed_plans == 1:
            _print(
                f"predictive: at t = {self._time:.4g} s no candidate of a plan has a finite cost: the last plan "
                "continues. The candidates' runs ended early, or the cost is nan or inf"
            )
        if self._since > self._horizon:
            of = f"cost '{self.cost}'" if self.cost else "cost"
            raise rtmms.RtmmsError(
                f"controller 'predictive': {of}: no candidate had a finite cost for {self._since:.3g} s, at t "
                f"= {self._time:.4g} s, and the last plan has ended; check the cost"
            )

    def _think(
        self, now: Motion, sent: list[Any], plan: Any, variables: Any, since: float, held: Mapping[int, float]
    ) -> Any:
        """Make one plan, on another thread.

        It uses the motion `now`, the commands sent since the last plan (one block a tick), and the rods that do not
        follow.
        """
        import numpy as np

        def obeyed(commands: Any) -> Any:
            for rod, angle in held.items():
                commands[..., rod] = angle
            return commands

        begin, spent, reconstructed = monotonic(), thread_time(), self._reconstructed
        for block in sent:
            reconstructed.go(obeyed(block))
        reconstructed.place(
            position=now.position,
            quaternion=from_euler(now.roll, now.pitch, now.yaw),
            velocity=now.velocity,
            angular_velocity=now.rate,
        )
        known = reconstructed.state
        position = np.array(now.position)
        if self._observer is not None:
            doubt = now.doubts & {"dvl", "imu", "estimate"}
            if doubt or len(sent) > 1:  # a gap: what is replayed would not be what was sent
                self._observer.clear()
            elif self._observer.follow(known, sent[0] if sent else None, position, np.array(now.world_velocity)):
                self._set_current(tuple(self._observer.current.tolist()))
                reconstructed.put(known)
        ahead, later = self._variables.commands(plan[None], variables, since, self._per_tick, self._grid)
        reconstructed.go(obeyed(ahead[0]))
        self._planner.model.put(reconstructed.state, 0)
        there = np.array(reconstructed.model.observe()["position"])
        reconstructed.put(known)
        if self._course_path is not None:
            from rtmms.planning.tasks import begin_at

            along = begin_at(self._running_cost, there, self._tick_s)
            self._progress(now.time, along, float(self.speed_m_s or 0.0))
        elif not self.cost and self.model in FOLLOWS_COURSES:
            from rtmms.planning.tasks import hold_from

            hold_from(self._running_cost, there)
        self._planner.mean = plan.copy()
        until = inf if self._lockstep else begin + _MAX_PLANNING_SHARE * self._tick_s
        plan_found = self._planner.plan(later, since + self._tick_s, until, obeyed if held else None)
        self._spent_s += thread_time() - spent
        return plan_found

    def _set_current(self, current: tuple[float, ...]) -> None:
        """Set the current of the models."""
        models: tuple[Any, ...] = (self._reconstructed.model, self._planner.model)
        for model in models:
            model.set(current_m_s=current)

    @override
    def stop(self, reason: str) -> None:
        """Print a line about the plans."""
        self._finish()
        if self._strokes is not None:
            self._strokes.finish()
        if self._plans:
            _print(f"predictive: {summary(self._plans, self._late, self._tries, self.method in (ILQR, LINEAR))}")
            if self.model_error_m is not None:
                off = f"{100.0 * self.model_error_m:.2g} cm"
                _print(
                    f"predictive: after {self._horizon:g} s of the first plan, the position of the planner's model "
                    f"differs by {off} from the plant's"
                )
        self._close()
        if self._background is not None:
            self._background.close()

    def _finish(self) -> None:
        job, self._job = self._job, None
        if job is not None:
            job.result()

    def _close(self) -> None:
        if self._plan_key is not None:
            self._planner.close()
            self._plan_key = None


ITERATIONS = {"quadrotor": 4}
"""Default of `iterations`: with two, plans of the quadrotor to near places drift aside."""
_BY_ROBOT = ("horizon_s", "rate_hz", "grid_s", "stage_s", "targets")
"""Parameters with defaults for each robot (PlanDefaults)."""
_TIMES = ("horizon_s", "rate_hz", "grid_s", "stage_s")


def _whole(name: str, span: float, unit: str, of: float) -> int:
    """Return the ratio of two times, or raise ModelError where it is no whole number."""
    steps = round(span / of)
    if steps < 1 or abs(steps * of - span) > 1e-6 * span:
        raise rtmms.ModelError(
            f"controller 'predictive': {name}: expected whole steps of {unit} = {of:g} s, got {span:g} s"
        )
    return steps


def _print(text: str) -> None:
    print_text(text, err=True)
