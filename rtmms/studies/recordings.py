"""Recording of a robot: its commands and the measurements of it, from a log of rtmms or a table."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from rtmms.base.contract import TRUTH
from rtmms.base.errors import ModelError, UnknownNameError
from rtmms.plant.description import describe_plant, unwrapped
from rtmms.plant.loading import build_by, maker
from rtmms.plant.protocol import Channel, Plant
from rtmms.record.log import Log, Start, Step, open_log
from rtmms.record.origin import channels as described
from rtmms.record.origin import rebuild_plant
from rtmms.sensing.readings import Instrument, instruments

Array = npt.NDArray[np.float64]

DEFAULT_OUTPUTS = (
    "position", "quaternion", "velocity", "angular_velocity", "rod_angle", "rod_torque", "joint_position",
    "joint_velocity", "joint_torque",
)  # fmt: skip
"""Outputs that are compared where there are no sensors and no named channels; without any of these, all small outputs.
"""
MAX_NUMBERS = 12
"""Numbers of an output that is compared without being named."""
PLACED = (
    "position", "quaternion", "velocity", "angular_velocity", "rod_angle", "rod_rate", "joint_position",
    "joint_velocity",
)  # fmt: skip
"""Outputs that a state can be composed from."""
MIN_SAMPLES = 20
"""Least number of samples of a channel, and of steps of a recording, for a fit."""
STILL = 1e-9
"""Standard deviation of values that count as one value."""
MAX_GAP = 1.5
"""Usual intervals of samples beyond which there is a gap."""


@dataclass(frozen=True)
class Series:
    """One quantity over time.

    Attributes
    ----------
    channel : str
        Name of an output of the plant, or of a sensor's measurement.
    time : Array
        (k,) s from the recording's start.
    values : Array
        (k, w), nan where there was no measurement.
    unit : str
        SI.
    noise : Array
        (w,) standard deviation of a sample; nan where it is not known.
    instrument : Instrument | None, optional
        Instrument of a sensor, None for an output.
    feature : Any, optional
        Feature of an objective with one number (rtmms.studies.fit_features.Feature), else None.
    """

    channel: str
    time: Array
    values: Array
    unit: str
    noise: Array
    instrument: Instrument | None = None
    feature: Any = None

    @property
    def width(self) -> int:
        """Count of numbers of a sample."""
        return int(self.values.shape[1])

    def component(self, k: int) -> str:
        """Return the name of a component, as 'velocity[0]'; a scalar's own name.

        Parameters
        ----------
        k : int
            Index of the component.

        Returns
        -------
        str
            The name.
        """
        return self.channel if self.width == 1 else f"{self.channel}[{k}]"


@dataclass(frozen=True)
class Recording:
    """One run of a robot.

    Attributes
    ----------
    name : str
        Name for messages.
    robot : str
        Robot, as for `rtmms.load`.
    build : Callable[..., Plant]
        Builds a new plant with these parameters beside the recording's own.
    dt : float
        Step, s.
    commands : Array
        (steps, actuators), held over each step.
    series : tuple[Series, ...]
        Measurements.
    known : bool
        It begins at a reset: the state is known.
    states : Mapping[str, Array]
        Outputs that a state can be composed from, (steps + 1, ...), nan where there was no measurement.
    preset : str | None, optional
        Preset of the robot.
    parameters : Mapping[str, Any]
        Parameters of the robot.
    seed : int, default 0
        Seed of the reset.
    model : Any, optional
        Recordings of an equal model build equal plants; None: a model of its own.
    """

    name: str
    robot: str
    build: Callable[..., Plant]
    dt: float
    commands: Array
    series: tuple[Series, ...]
    known: bool
    states: Mapping[str, Array] = field(default_factory=dict)
    preset: str | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict)
    seed: int = 0
    model: Any = None

    @property
    def duration(self) -> float:
        """Duration of the run, s."""
        return self.dt * len(self.commands)


@dataclass
class _Run:
    seed: int
    first: Array
    commands: list[Array] = field(default_factory=list)
    outputs: list[Array] = field(default_factory=list)


def from_log(
    path: Path, settings: Mapping[str, Any], wanted: Sequence[str] = (), robot: str | None = None, *,
    trusted: bool = False, warn: Callable[[str], None] = lambda _: None, more: Sequence[str] = (),
    make: Callable[..., Plant] | None = None,
) -> list[Recording]:  # fmt: skip
    """Read the runs of a log of rtmms, one for each reset.

    Parameters
    ----------
    path : Path
        The log.
    settings : Mapping[str, Any]
        Parameters in place of the log's own: the assumed ones.
    wanted : Sequence[str], default ()
        Channels to compare; () for the usual ones.
    robot : str | None, optional
        Robot in place of the log's.
    trusted : bool, default False
        The code that the log names may run.
    warn : Callable[[str], None], default lambda _: None
        Receives warnings.
    more : Sequence[str], default ()
        Further channels, where the log has them.
    make : Callable[..., Plant] | None, optional
        Function that makes the plant from parameters, in place of the log's robot.

    Returns
    -------
    list[Recording]
        One recording for each run.

    Raises
    ------
    ModelError
        The log's robot cannot be built, changed during the run, or has other channels than the log; or no run is long
        enough.
    """
    log = open_log(path)
    origin = log.origin
    rebuilt = rebuild_plant(origin, robot, trusted=trusted)
    if [described(rebuilt.actuators), described(rebuilt.outputs)] != [origin["actuators"], origin["outputs"]]:
        version = origin["versions"]["rtmms"]
        raise ModelError(
            f"{path}: robot '{origin['robot']}' has other actuators or outputs in this version than in "
            f"{version}, which recorded it; convert the log with {version} (rtmms log csv), and give the "
            f"table with --robot {origin['robot']}"
        )
    if log.damage:
        raise ModelError(
            f"{path}: the log is damaged: {log.damage[0]}; cut the log before this part, or record it again"
        )
    code = robot or origin["robot"]
    values = {**({} if make else origin["parameters"]), **settings}
    build = builder_of(code, origin["dt"], origin["preset"], values, make)
    plant = build()
    if plant.dt != origin["dt"]:
        raise ModelError(f"{path}: expected a model with the log's step of {origin['dt']:g} s, got {plant.dt:g} s")
    sensed = any(signal.name.startswith(TRUTH) for signal in log.outputs)
    tools = instruments(describe_plant(rebuilt).sensors, unwrapped(rebuilt))
    names = channels_to_compare(tools, plant.outputs, wanted, sensed, str(path), more)
    places, width = {}, 0
    for signal in log.outputs:
        places[signal.name] = slice(width, width + signal.size)
        width += signal.size
    channel_names = sorted({n for name in names for n in (name, *_list_clock_channels(tools, name))})
    states = [] if sensed else [channel.name for channel in plant.outputs if channel.name in PLACED]
    runs = _runs(log, path, [places[name] for name in (*channel_names, *states)])
    result = []
    for number, run in enumerate(runs):
        if len(run.commands) < MIN_SAMPLES:
            continue
        name = path.name if len(runs) == 1 else f"{path.name} run {number}"
        outputs = np.array([run.first, *run.outputs])
        columns, at = {}, 0
        for item in (*channel_names, *states):
            size = places[item].stop - places[item].start
            columns[item] = outputs[:, at : at + size]
            at += size
        shapes = {channel.name: channel.shape for channel in plant.outputs}
        result.append(
            Recording(
                name,
                code,
                build,
                float(origin["dt"]),
                np.array(run.commands),
                tuple(_series(name, columns, tools, plant.outputs, float(origin["dt"])) for name in names),
                True,
                {state: columns[state].reshape(-1, *shapes[state]) for state in states},
                origin["preset"],
                values,
                max(run.seed, 0),
            )
        )
    if not result:
        raise ModelError(f"{path}: expected a run of at least {MIN_SAMPLES} steps, got none: record a longer one")
    if log.end is None:
        warn(f"{path}: the log was cut off; the steps in it are used")
    return result


def of_plant(
    plant: Plant, commands: Array, build: Callable[..., Plant], *, robot: str = "", seed: int = 0,
    wanted: Sequence[str] = (), name: str = "run",
) -> Recording:  # fmt: skip
    """Make a recording by running a plant, with sensors (`rtmms.sensing.Sensed`) or without.

    Parameters
    ----------
    plant : Plant
        Plant that runs.
    commands : Array
        (steps, actuators) commands.
    build : Callable[..., Plant]
        Builds the model to be fitted, with these parameters.
    robot : str, default ''
        Name of the robot.
    seed : int, default 0
        Seed of the reset.
    wanted : Sequence[str], default ()
        Channels to compare; () for the usual ones.
    name : str, default 'run'
        Name for messages.

    Returns
    -------
    Recording
        The recording.
    """
    sensed = describe_plant(plant).truth is not None
    tools = instruments(describe_plant(plant).sensors, unwrapped(plant))
    names = channels_to_compare(tools, plant.outputs, wanted, sensed, name)
    placed = [] if sensed else [channel.name for channel in plant.outputs if channel.name in PLACED]
    channel_names = sorted({n for name in names for n in (name, *_list_clock_channels(tools, name))} | set(placed))
    plant.reset(seed)
    rows: dict[str, list[Array]] = {entry: [] for entry in channel_names}
    for step in range(len(commands) + 1):
        if step:
            plant.step(commands[step - 1])
        outputs = plant.observe()
        for item in channel_names:
            rows[item].append(np.ravel(outputs[item]))
    columns = {name: np.array(values) for name, values in rows.items()}
    shapes = {channel.name: channel.shape for channel in plant.outputs}
    series = tuple(_series(name, columns, tools, plant.outputs, plant.dt) for name in names)
    states = {entry: columns[entry].reshape(-1, *shapes[entry]) for entry in placed}
    return Recording(name, robot, build, plant.dt, np.asarray(commands), series, True, states, seed=seed)


def builder_of(
    robot: str, dt: float | None, preset: str | None, settings: Mapping[str, Any],
    make: Callable[..., Plant] | None = None,
) -> Callable[..., Plant]:  # fmt: skip
    """Return the function that builds a recording's plant, from parameters that replace those of `settings`.

    Parameters
    ----------
    robot : str
        Robot, as for `rtmms.load`.
    dt : float | None
        Step, s.
    preset : str | None
        Preset of the robot.
    settings : Mapping[str, Any]
        Parameters of the robot.
    make : Callable[..., Plant] | None, optional
        Function that makes the plant from parameters, in place of the robot.

    Returns
    -------
    Callable[..., Plant]
        Function of parameters.
    """
    if make is not None:
        return lambda **parameters: make(**{**settings, **parameters})
    result = maker(robot)
    return lambda **parameters: build_by(result, dt=dt, preset=preset, **{**settings, **parameters})


def _list_clock_channels(tools: Iterable[Instrument], name: str) -> tuple[str, ...]:
    """Return the channels of a sensor's sampling time and validity."""
    for tool in tools:
        if tool.channel == name:
            return (tool.clock, tool.valid) if tool.valid else (tool.clock,)
    return ()


def channels_to_compare(
    tools: Sequence[Instrument], outputs: Sequence[Channel], wanted: Sequence[str], sensed: bool, place: str,
    more: Sequence[str] = (),
) -> list[str]:  # fmt: skip
    """Return the names of the channels to compare.

    Parameters
    ----------
    tools : Sequence[Instrument]
        Instruments of the sensors.
    outputs : Sequence[Channel]
        Outputs of the plant.
    wanted : Sequence[str]
        Requested channels; () for the usual ones.
    sensed : bool
        The channels are the sensors', not the outputs.
    place : str
        Name of the recording, for messages.
    more : Sequence[str], default ()
        Further channels, where they exist.

    Returns
    -------
    list[str]
        Names without repetition.

    Raises
    ------
    UnknownNameError
        A requested channel does not exist.
    """
    if sensed:
        known = [tool.channel for tool in tools]
    else:
        known = [channel.name for channel in outputs]
    for name in wanted:
        if name not in known:
            more = "with sensors the truth is not taken" if sensed else ""
            raise UnknownNameError(f"channel of {place}", name, known, more)
    additional = [name for name in more if name in known]
    if wanted or sensed:
        return list(dict.fromkeys((*(wanted or known), *additional)))
    small = [channel.name for channel in outputs if 0 < math.prod(channel.shape) <= MAX_NUMBERS]
    return list(dict.fromkeys(([name for name in small if name in DEFAULT_OUTPUTS] or small) + additional))


def _runs(log: Log, path: Path, parts: list[slice]) -> list[_Run]:
    """Return commands and wanted outputs of each run; raise ModelError where a state was changed."""
    runs: list[_Run] = []
    columns = np.concatenate([np.arange(part.start, part.stop) for part in parts])
    for row in log.rows():
        if isinstance(row, Start):
            runs.append(_Run(row.seed, row.outputs[columns]))
            continue
        assert isinstance(row, Step)
        if not runs:
            raise ModelError(f"{path}: the log begins in the middle of a run; record the run from its reset on")
        if row.altered:
            raise ModelError(
                f"{path}: a request changed the state or the parameters at step {row.step}; record a run "
                "without `rtmms set`, faults and events"
            )
        runs[-1].commands.append(row.command)
        runs[-1].outputs.append(row.outputs[columns])
    return runs


def _series(
    name: str, columns: Mapping[str, Array], tools: Sequence[Instrument], outputs: Sequence[Channel], dt: float
) -> Series:
    """Return one channel of a log; of a sensor only its fresh samples, at their sampling times."""
    values = columns[name]
    tool = next((tool for tool in tools if tool.channel == name), None)
    if tool is None:
        channel = next(output for output in outputs if output.name == name)
        time = dt * np.arange(1, len(values), dtype=np.float64)
        return Series(name, time, values[1:], channel.unit, np.full(values.shape[1], np.nan))
    clock = columns[tool.clock][:, 0]
    fresh = np.flatnonzero(np.concatenate([[False], np.diff(clock) > 0.0]))
    if tool.valid:
        fresh = fresh[columns[tool.valid][fresh, 0] > 0.0]
    noise = np.full(tool.size, tool.noise if tool.noise > 0.0 else np.nan)
    return Series(name, clock[fresh], values[fresh], tool.unit, noise, tool)


def refuse_still(recording: Recording) -> None:
    """Refuse a recording without motion.

    Parameters
    ----------
    recording : Recording
        The recording.

    Raises
    ------
    ModelError
        Nothing moves, or there are too few samples.
    """
    if any(entry.feature is not None for entry in recording.series):
        return
    driven = float(np.ptp(recording.commands, axis=0).max(initial=0.0)) > STILL
    if not recording.series or all(len(entry.time) < MIN_SAMPLES for entry in recording.series):
        raise ModelError(
            f"{recording.name}: expected at least {MIN_SAMPLES} samples of a channel, got fewer: take a longer "
            "recording, or name others with --channels"
        )
    if driven:
        if all((spread(entry.values) <= STILL).all() for entry in recording.series):
            names = ", ".join(entry.channel for entry in recording.series)
            raise ModelError(
                f"{recording.name}: {names}: expected measurements that change, got one value for all samples although "
                "the commands change: look for a sensor that is stuck, or name other columns or --channels"
            )
        return
    for item in recording.series:
        moved, noise = spread(item.values), np.nan_to_num(noise_of(item))
        if (moved > np.maximum(3.0 * noise, STILL)).any():
            return
    raise ModelError(
        f"{recording.name}: no excitation: the commands never change and nothing moves beyond its noise; record a run "
        "that is driven, for example by rtmms run ROBOT --controller gait --log FILE.mcap"
    )


def mean_square(rows: Array) -> Array:
    """Return the mean square over the measured rows of each column.

    Parameters
    ----------
    rows : Array
        (k, w), nan where there was no measurement.

    Returns
    -------
    Array
        (w,); 0 for a column without a measurement.
    """
    there = np.isfinite(rows)
    result: Array = np.sum(np.where(there, rows, 0.0) ** 2, axis=0) / np.maximum(there.sum(axis=0), 1)
    return result


def spread(rows: Array) -> Array:
    """Return the standard deviation over the measured rows of each column.

    Parameters
    ----------
    rows : Array
        (k, w), nan where there was no measurement.

    Returns
    -------
    Array
        (w,); 0 for a column without a measurement.
    """
    there = np.isfinite(rows)
    middle = np.sum(np.where(there, rows, 0.0), axis=0) / np.maximum(there.sum(axis=0), 1)
    return np.sqrt(mean_square(rows - middle))


def noise_of(series: Series) -> Array:
    """Return the standard deviation of a sample's noise.

    Where it is not given it comes from fourth differences of the values, which are small for a motion that is sampled
    often. Differences across a gap in the samples do not count, nor do outliers. Both signs of a quaternion are one
    attitude.

    Parameters
    ----------
    series : Series
        The series.

    Returns
    -------
    Array
        (w,); nan for a column without a measurement.
    """
    result, values = series.noise.copy(), _of_one_sign(series)
    for k in np.flatnonzero(~np.isfinite(result)):
        result[k] = _noise_by_differences(series.time, values[:, k], 4)
    return result


def is_sparse(series: Series) -> bool:
    """Return whether samples are too far apart to separate their noise from the motion.

    Differences of any order give the same white noise, but less of a motion the higher the order is.

    Parameters
    ----------
    series : Series
        The series.

    Returns
    -------
    bool
        True where the noise of a column is estimated and most of the estimate is motion.
    """
    values, moved = _of_one_sign(series), spread(series.values)
    for k in np.flatnonzero(~np.isfinite(series.noise)):
        noise = _noise_by_differences(series.time, values[:, k], 4)
        if noise > SPARSE * moved[k] and _noise_by_differences(series.time, values[:, k], 8) < 0.5 * noise:
            return True
    return False


SPARSE = 0.01
"""Share of the motion above which an estimated noise is checked."""
OUTLIER = 8.0
"""Deviations from which on a difference is an outlier."""
MAX_OUTLIERS = 0.1
"""Largest share of differences with an outlier: more of them are the noise."""


def _noise_by_differences(time: Array, value: Array, order: int) -> float:
    """Return the deviation of white noise from differences; its variance is that of a difference over C(2n, n)."""
    rows = np.isfinite(value)
    value, time = value[rows], time[rows]
    if len(value) <= 2 * order:
        return float(np.std(value)) if len(value) else math.nan
    apart = np.diff(time)
    whole = np.lib.stride_tricks.sliding_window_view(apart <= MAX_GAP * np.median(apart), order).all(axis=1)
    difference = np.diff(value, order)
    difference = difference[whole] if whole.any() else difference
    size = np.abs(difference)
    typical = float(np.median(size)) / 0.6745  # 0 for a signal of coarse steps
    is_inlier = size <= OUTLIER * typical  # of normal noise, one in 1e15 is above
    if typical > 0.0 and is_inlier.mean() >= 1.0 - MAX_OUTLIERS:
        difference = difference[is_inlier]
    return float(np.sqrt(np.mean(difference**2) / math.comb(2 * order, order)))


def _of_one_sign(series: Series) -> Array:
    """Return the values, those of a quaternion each with the sign that is nearer to the sample before."""
    if series.width != 4 or series.channel.rpartition(".")[2] != "quaternion":
        return series.values
    values = series.values.copy()
    rows = np.flatnonzero(np.isfinite(values).all(axis=1))
    turns = np.sum(values[rows[1:]] * values[rows[:-1]], axis=1) < 0.0
    values[rows[1:]] *= np.where(np.cumsum(turns) % 2, -1.0, 1.0)[:, None]
    return values


def thinned(series: Series, maximum: int) -> Series:
    """Return a series with a limited number of evenly spaced samples.

    Parameters
    ----------
    series : Series
        The series; rows without any number are left out.
    maximum : int
        Largest number of samples.

    Returns
    -------
    Series
        A copy.
    """
    rows = np.flatnonzero(np.isfinite(series.values).any(axis=1))
    every = max(1, -(-len(rows) // maximum))
    rows = rows[every - 1 :: every]
    return replace(series, time=series.time[rows], values=series.values[rows])
