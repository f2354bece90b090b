"""One run of a study: the plant and its controllers in one process, and the results of the run by name."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from rtmms.base.errors import ModelError, RtmmsError, UnknownNameError
from rtmms.base.kernel_cache import cache_folder
from rtmms.base.trust import owner_of, peer_name
from rtmms.loop.clock import MonotonicClock
from rtmms.loop.impairment import Impairment, impaired_links
from rtmms.loop.loop import Loop, LoopServices
from rtmms.loop.policies import Policies
from rtmms.loop.statistics import Statistics
from rtmms.loop.trace import Trace, Tracking
from rtmms.plant.description import describe_plant
from rtmms.plant.loading import WORLD, build_plant
from rtmms.plant.monitor import Monitor, Verdict
from rtmms.plant.protocol import Plant
from rtmms.plant.step_advice import Calibration
from rtmms.scenario.links import from_values
from rtmms.scenario.plant import agenda, called_names, whole_steps, with_faults, with_sensors
from rtmms.scenario.run_options import run_options
from rtmms.studies.sweep_in_process import InProcessExchange, UnobservedLockstep
from rtmms.studies.sweep_study import LINK, Base, Study
from rtmms.wire.peer.controller import Controller
from rtmms.wire.peer.plugins import build, load_controller, split_spec
from rtmms.world.members import Member, read

SAMPLE_APART_S = 0.01
TRACE_ROWS = 4096
PROBE_STEPS = 64
CHECKED_STEPS = 2000
"""Steps of a short run that are repeated in halves to estimate its accuracy."""
CHECKED_SHARE = 0.125
"""Share of a long run that is repeated in halves to estimate its accuracy."""
SETTLING = ("mean_speed_m_s", "net_speed_m_s", "mean_power_w")
"""Numbers of a summary that are constant in a settled run."""
MAX_SETTLED_DIFFERENCE = 0.02
"""Relative difference between the means of a settled run and of its first part."""
SETTLED_SHARE = 0.75
"""Length of that first part, as a share of the run."""
MAX_COLUMN_NUMBERS = 4
"""Largest count of numbers of an output that is a column by default."""


QUALITY = ("accuracy.path_error", "accuracy.work_error", "accuracy_error", "accuracy.doubtful", "settled", "misses")
"""Columns on a run's quality, which every table has."""


class Runner:
    """Runner of a study's cases, one after the other; it makes the plant anew only where a case needs it.

    Parameters
    ----------
    study : Study
        The study.
    """

    def __init__(self, study: Study) -> None:
        self.study = study
        self._plant: Plant | None = None
        self._built_parameters: Any = None
        self._classes: dict[str, type[Controller]] = {}

    def row(self, case: tuple[Any, ...]) -> dict[str, Any]:
        """Run a case, and return its results, flat, by the report's names.

        A run that cannot begin ('refused'), or in which a user's plant or controller raises ('failed'), has `ended`,
        `reason` and `steps` alone.

        Parameters
        ----------
        case : tuple[Any, ...]
            A value for each axis of the study.

        Returns
        -------
        dict[str, Any]
            Results by name.
        """
        try:
            return self.report(case)
        except RtmmsError as fault:
            return {"ended": "refused", "reason": str(fault), "steps": 0}
        except Exception as fault:  # whatever a user's code does: the other runs go on
            self._plant = None
            return {"ended": "failed", "reason": f"{type(fault).__name__}: {fault}", "steps": 0}

    def columns(self) -> dict[str, str]:
        """Return the names of the table's columns with their units, from a few steps of the first run.

        Returns
        -------
        dict[str, str]
            Units by name.

        Raises
        ------
        RtmmsError
            The run cannot begin.
        UnknownNameError
            A run does not have a column of the study.
        """
        result = self.report(self.study.cases()[0], PROBE_STEPS)
        plant = self._plant
        assert plant is not None
        channels = {channel.name: channel for channel in plant.outputs}
        default, units = [], {}
        for name in result:
            head, _, remaining = name.partition(".")
            channel = channels.get(remaining.partition("[")[0]) if head == "final" else None
            units[name] = _unit(channel.unit, remaining) if channel is not None else unit_of(name)
            small = channel is None or math.prod(channel.shape) <= MAX_COLUMN_NUMBERS
            if small and name not in ("robot", "seed", "dt", "simulated_s", "ended", "reason", "steps"):
                default.append(name)
        for name in self.study.columns:
            if name not in result:
                raise UnknownNameError("column", name, default)
        chosen = (
            (*self.study.columns, *(name for name in QUALITY if name in default)) if self.study.columns else default
        )
        return {name: units[name] for name in chosen}

    def report(self, case: tuple[Any, ...], most_steps: int | None = None) -> dict[str, Any]:
        """Run a case, and return its results, flat, by the report's names.

        Parameters
        ----------
        case : tuple[Any, ...]
            A value for each axis of the study.
        most_steps : int | None, optional
            Largest number of steps, of a run that only checks that it begins.

        Returns
        -------
        dict[str, Any]
            Results by name.

        Raises
        ------
        RtmmsError
            The run cannot begin.
        """
        base, values = self.study.base, dict(zip((axis.key for axis in self.study.axes), case, strict=True))
        options = {
            run_option.field: run_option.value_type(values.pop(name))
            for name, run_option in run_options().items()
            if run_option.varies and name in values
        }
        base = replace(base, **options)
        links = _links(base, values)
        names = called_names(base.controllers)
        theirs = {key: value for key, value in values.items() if owner_of(key, names)}
        parameters = {key: value for key, value in values.items() if key not in theirs}
        plant = self._with(parameters, base.dt)
        steps = whole_steps(plant, base.robot, base.duration)
        assert steps is not None
        driven = tuple(_driven(word, theirs) for word in base.controllers)
        probed = min(steps, most_steps or steps)
        return _run(base, plant, self._controllers(theirs), probed, links, driven, whole=steps)

    def _with(self, parameters: Mapping[str, Any], dt: float | None) -> Plant:
        """Return a plant with these parameters: a new one, or the last one with others set."""
        base, plant = self.study.base, self._plant
        live = set[str]() if plant is None else set(describe_plant(plant).settable or ())
        fixed = (dt, {key: value for key, value in parameters.items() if key not in live})
        names = called_names(base.controllers)
        touched = any(not owner_of(name, names) for event in base.events for name in event.values)
        if plant is None or touched or self._built_parameters != fixed:
            self._plant = plant = None
            whole = self._loaded(dt, parameters)
            plant = with_sensors(with_faults(whole, base.events), base.sensors, base.over, base.estimate)
            live = set(describe_plant(plant).settable or ())
            self._plant, self._built_parameters = (
                plant,
                (dt, {key: parameter for key, parameter in parameters.items() if key not in live}),
            )
            return plant
        changed = {key: value for key, value in parameters.items() if key in live}
        if changed:
            plant.set(**changed)  # type: ignore[attr-defined]
        return plant

    def _loaded(self, dt: float | None, parameters: Mapping[str, Any]) -> Plant:
        """Return the plant alone; for several robots NAME.parameter is one robot's."""
        base = self.study.base
        whole = {**base.load_parameters(), **parameters}
        if base.robot == WORLD:
            whole = {key: value for key, value in whole.items() if key == "robots" or not owner_of(key, base.members)}
            whole["robots"] = [_with_own(item, parameters) for item in read(base.parameters.get("robots", ()))]
        try:
            return build_plant(base.robot, dt=dt, preset=base.preset, **whole)
        except TypeError as fault:
            if "unexpected keyword argument" not in str(fault):
                raise
            raise ModelError(f"robot '{base.robot}': {fault}") from None

    def _controllers(self, values: Mapping[str, Any]) -> dict[str, Controller]:
        """Return new controllers, by name, with the case's parameters."""
        result: dict[str, Controller] = {}
        names = called_names(self.study.base.controllers)
        for word in self.study.base.controllers:
            name, options = split_spec(word)
            peer = peer_name(word)
            if peer in result:
                raise ModelError(f"two controllers have the name '{peer}'; give each another name")
            options |= {
                key.removeprefix(peer + "."): _word(value)
                for key, value in values.items() if owner_of(key, names) == peer
            }  # fmt: skip
            spec = name + (":" + ",".join(f"{key}={value}" for key, value in options.items()) if options else "")
            if name not in self._classes:
                self._classes[name] = load_controller(name)
            result[peer] = build(spec, self._classes[name])
        return result


def _with_own(robot: Member, values: Mapping[str, Any]) -> Member:
    """Return one of several robots with its own parameters, given as NAME.parameter."""
    begins = f"{robot.name}."
    parameters = {key.removeprefix(begins): value for key, value in values.items() if key.startswith(begins)}
    return replace(robot, parameters={**robot.parameters, **parameters})


def _word(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else repr(value) if isinstance(value, float) else str(value)


def _links(base: Base, provided: dict[str, Any]) -> tuple[Impairment, ...]:
    """Return the impaired links of a case, and remove their keys from the given values."""
    links, link_values = base.links, dict[str, dict[str, Any]]()
    for key in [item for item in provided if item.startswith(LINK)]:
        controller, _, name = key.removeprefix(LINK).rpartition(".")
        link_values.setdefault(controller, {})[name] = provided.pop(key)
    for controller, values in link_values.items():
        links = from_values(controller, values, links)
    return links


def _run(
    base: Base, plant: Plant, controllers: Mapping[str, Controller], steps: int,
    links: tuple[Impairment, ...] = (), driven: tuple[str, ...] = (), whole: int | None = None,
) -> dict[str, Any]:  # fmt: skip
    """Run some steps of a case; its events may come later, within the whole run."""
    seed = base.seed
    plant.reset(seed)
    exchange = InProcessExchange(plant, base.robot, seed, controllers, impaired_links(links, plant.dt, seed))
    trace = _trace(plant, steps)
    tracking = Tracking(plant.dt, exchange.set_points, base.tracking_start, None)
    estimate = _estimate(plant) if base.estimate else None
    observers = [item for item in (trace, tracking, estimate) if item is not None]
    events = agenda(base.events, plant, base.controllers, base.where, whole or steps)
    monitor, statistics = _monitor(plant, steps), Statistics()
    loop = Loop(
        plant, exchange, MonotonicClock(), UnobservedLockstep(exchange), Policies(), statistics, observers, steps=steps,
        seed=seed, services=LoopServices(monitor=monitor, agenda=events),
    )  # fmt: skip
    outcome = loop.run(tidy=False)
    report: dict[str, Any] = {
        "robot": base.robot, "seed": seed, "dt": plant.dt, "steps": outcome.steps, "simulated_s": outcome.simulated_s,
        "ended": outcome.ended, "reason": outcome.message, "final": outcome.final,
        "tracking": tracking.report() if outcome.steps else {},
        "estimate": estimate.report() if estimate is not None else {}, "summary": {},
        "misses": statistics.misses,
    }  # fmt: skip
    about = describe_plant(plant)
    if trace is not None and about.summarise is not None and outcome.ended == "duration":
        time, values = trace.read()
        report["summary"] = about.summarise(time, values)
        report["settled"] = has_settled(about.summarise, time, values)
    elif about.summarise is not None:
        report["settled"] = None
    if monitor is not None:
        verdict = monitor.conclude(math.inf, max_parts=2)  # the same on any machine: no wall time limits it
        report["accuracy"] = _accuracy(verdict)
        worst = max(verdict.path, verdict.work)
        report["accuracy_error"] = worst if math.isfinite(worst) else None
        if verdict.seconds is None and not (links or base.events) and outcome.ended == "duration":
            Calibration(plant, monitor.estimator, cache_folder(), driven).keep(verdict)
    return dict(_flat(report))


def _monitor(plant: Plant, steps: int) -> Monitor | None:
    """Return the monitor of a run's steps, or None where the plant has no estimator of step errors."""
    estimator = describe_plant(plant).step_error_estimator
    if estimator is None:
        return None
    rows = min(steps, max(CHECKED_STEPS, math.ceil(CHECKED_SHARE * steps)))
    return Monitor(estimator(), np.zeros((rows, len(plant.actuators))))


def _driven(word: str, values: Mapping[str, Any]) -> str:
    """Return a controller's word with the case's values of its parameters."""
    begins, (name, options) = f"{peer_name(word)}.", split_spec(word)
    spec_options = options | {
        key.removeprefix(begins): _word(item) for key, item in values.items() if key.startswith(begins)
    }
    return name + (":" + ",".join(f"{key}={value}" for key, value in spec_options.items()) if spec_options else "")


def _accuracy(verdict: Verdict) -> dict[str, float | None]:
    """Return errors of path and work, fractions, from the run's beginning in half steps.

    `doubtful` is 1 for long steps.
    """
    errors = {"path_error": verdict.path, "work_error": verdict.work, "step_error": verdict.step}
    finite: dict[str, float | None] = {name: error if math.isfinite(error) else None for name, error in errors.items()}
    return finite | {"doubtful": None if verdict.verdict == "unknown" else float(verdict.verdict != "fine")}


def has_settled(
    summarise: Callable[..., Mapping[str, float | None]], time: Any, values: Mapping[str, Any]
) -> float | None:
    """Return whether the means of a run are those that it had at three quarters of it.

    Means of speed and power count: the second half of the run against the second half of its first three quarters.

    Parameters
    ----------
    summarise : Callable[..., Mapping[str, float | None]]
        Summary of the plant, from time and values.
    time : Any
        (k,) times, s.
    values : Mapping[str, Any]
        Outputs by name, each (k, ...).

    Returns
    -------
    float | None
        1 or 0, None where there are no such means.
    """
    rows = int(np.searchsorted(time, time[0] + SETTLED_SHARE * (time[-1] - time[0])))
    now = summarise(time, values)
    before = summarise(time[:rows], {name: value[:rows] for name, value in values.items()})
    pairs = [(now[name], before.get(name)) for name in SETTLING if now.get(name) is not None]
    both = [(item, other) for item, other in pairs if item is not None and other is not None]
    if not both:
        return None
    return float(all(abs(item - other) <= MAX_SETTLED_DIFFERENCE * max(abs(item), abs(other)) for item, other in both))


UNITS = {
    "m_s": "m/s", "m_s2": "m/s2", "deg_s": "deg/s", "rad_s": "rad/s", "hz": "Hz", "pa": "Pa", "kg_m3": "kg/m3",
    "n_m_s": "N m s", "n_m": "N m", "kg_m2": "kg m2", "m2": "m2", "rad": "rad", "deg": "deg", "kg": "kg", "w": "W",
    "j": "J", "n": "N", "m": "m", "s": "s",
}  # fmt: skip
"""Units by the ends of names, the longer ones first."""


def unit_of(name: str) -> str:
    """Return the unit that a name ends in.

    Parameters
    ----------
    name : str
        As mean_speed_m_s.

    Returns
    -------
    str
        '' for none.

    Examples
    --------
    >>> from rtmms.studies.case import unit_of
    >>> unit_of("mean_speed_m_s")
    'm/s'
    """
    plain_name = name.partition("[")[0].replace(".rms", "").replace(".max", "").replace(".mean", "")
    return next((unit for end, unit in UNITS.items() if plain_name.endswith("_" + end)), "")


def _unit(unit: str, name: str) -> str:
    """Return the unit of one number of an output whose units may differ, as 'N, N m' of thrust."""
    return unit if "," not in unit else ""


def _trace(plant: Plant, steps: int) -> Trace | None:
    names = describe_plant(plant).trace_outputs
    return Trace(plant.outputs, names, plant.dt, steps, TRACE_ROWS, SAMPLE_APART_S) if names else None


def _estimate(plant: Plant) -> Any:
    from rtmms.sensing.readings import Consistency
    from rtmms.sensing.sensed import Estimated

    return Consistency(plant) if isinstance(plant, Estimated) else None


def _flat(report: Mapping[str, Any], before: str = "") -> Iterable[tuple[str, Any]]:
    """Return values by the names of `expect`.

    They are as mean_speed_m_s of the summary, tracking.depth_m.rms, final.position[2].
    """
    for key, value in report.items():
        if isinstance(value, Mapping):
            yield from _flat(value, "" if key == "summary" and not before else f"{before}{key}.")
            continue
        array = np.asarray(value) if not isinstance(value, (str, type(None))) else None
        if array is None or array.ndim == 0:
            yield before + key, value if isinstance(value, (str, type(None), int)) else float(value)
        else:
            numbers = array.ravel().tolist()
            yield from ((f"{before}{key}[{i}]", number) for i, number in enumerate(numbers))
