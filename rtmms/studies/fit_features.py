"""Objectives other than time series: mean speeds, and harmonics of an output at the frequency of the drive.

A person may have no table with a clock, but a mean speed and amplitudes of a motion. Each objective becomes one
sample of a recording, with a noise, and the fit treats it as any other sample.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache, partial
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt

from rtmms.base.errors import ModelError, UnknownNameError
from rtmms.base.parameters import Parameter, read_table
from rtmms.base.toml_file import read_toml
from rtmms.plant.protocol import Plant
from rtmms.studies.recordings import Recording, Series

Array = npt.NDArray[np.float64]

KINDS = ("mean_speed", "harmonic")
CLOCKS = ("free", "common")
FITTED_ORDERS = 3
"""Harmonics that are fitted beside the requested one, so that they do not disturb it."""
MIN_NOISE_SHARE = 1e-6
"""Least noise of an objective that comes from a recording, as a share of its value."""
_COMPONENT = re.compile(r"(.+?)(?:\[(\d+)\])?")


@dataclass(frozen=True)
class Objective:
    """Objective of a person: a table [[objective]] of a file, or KIND:KEY=VALUE,... of a command line.

    The declaration of each field has its meaning, unit and range.
    """

    # fmt: off
    kind: Annotated[str, Parameter("Measured quantity.", choices=KINDS)]
    channel: Annotated[str, Parameter(
        "Output of the robot, OUTPUT or OUTPUT[k]; of mean_speed position, a marker, or velocity[0].",
    )] = ""
    axes: Annotated[str, Parameter(
        "Two markers A:B of a harmonic. The channel is a position in axes at A whose x points to B. Without a channel, "
        "the angle of the axes counts.",
    )] = ""
    order: Annotated[int, Parameter("Order of the harmonic; 1 is at the frequency of the drive.", le=50)] = 1
    frequency_hz: Annotated[float | None, Parameter(
        "Frequency of the drive; default that of the commands.", "Hz",
    )] = None
    value: Annotated[float | None, Parameter(
        "Measured speed or amplitude; default that of the recording's own channel.", ge=0,
    )] = None
    phase_rad: Annotated[float | None, Parameter(
        "Measured phase p of A cos(n w t + p); without it the amplitude alone counts.", "rad", signed=True,
    )] = None
    noise: Annotated[float | None, Parameter("Standard deviation of the value, in its unit.")] = None
    clock: Annotated[str, Parameter(
        "Time from which phases count: their own (free), or that of the commands (common).", choices=CLOCKS,
    )] = "free"
    recording: Annotated[str, Parameter("Name of the recording; default all of them.")] = ""
    # fmt: on

    @property
    def is_angle(self) -> bool:
        """Whether the quantity is the angle of the axes."""
        return bool(self.axes) and not self.channel

    @property
    def markers(self) -> tuple[str, ...]:
        """Outputs that the axes are made of: at their origin, and on their x axis."""
        return tuple(self.axes.split(":")) if self.axes else ()

    @property
    def outputs(self) -> tuple[str, ...]:
        """Outputs of the robot that the quantity is computed from."""
        return self.markers if self.is_angle else tuple(dict.fromkeys((self.parts[0], *self.markers)))

    @property
    def label(self) -> str:
        """Name of the quantity in reports."""
        if self.kind == "mean_speed":
            return self.kind
        return f"harmonic{self.order}.{':'.join(word for word in (self.channel, self.axes) if word)}"

    @property
    def parts(self) -> tuple[str, int]:
        """Output and component, -1 for all of its numbers."""
        match = _COMPONENT.fullmatch(self.channel or "position")
        assert match is not None
        return match[1], -1 if match[2] is None else int(match[2])


@dataclass(frozen=True)
class Feature:
    """Objective of one recording.

    Attributes
    ----------
    objective : Objective
        The person's objective.
    frequency_hz : float
        Frequency of the drive.
    begin, end : float
        Times, s; a whole number of periods.
    has_phase : bool
        The values are the real and the imaginary part of A exp(i p), not A alone.
    components : tuple[int, ...]
        Measured numbers of the output, which count.
    is_slope : bool, default False
        A mean speed is the slope of a position, not the mean of a velocity.
    """

    objective: Objective
    frequency_hz: float
    begin: float
    end: float
    has_phase: bool
    components: tuple[int, ...]
    is_slope: bool = False

    @property
    def outputs(self) -> tuple[str, ...]:
        """Outputs of the robot that the quantity is computed from."""
        return self.objective.outputs

    @property
    def free_clock(self) -> bool:
        """Whether the phase counts from a time of its own."""
        return self.has_phase and self.objective.clock == "free"

    def signal(self, samples: Mapping[str, Array]) -> Array:
        """Return the quantity from samples of the outputs.

        Parameters
        ----------
        samples : Mapping[str, Array]
            (k, m) of each of `outputs`.

        Returns
        -------
        Array
            (k, n); nan where there was no measurement.

        Notes
        -----
        In axes of two markers A and B, x points from A to B in the horizontal plane, z is up. They need no frame of the
        world, so a camera's picture has them in its own.
        """
        objective, markers = self.objective, self.objective.markers
        if not markers:
            return samples[objective.parts[0]][:, list(self.components)]
        along = samples[markers[1]] - samples[markers[0]]
        angle = np.arctan2(along[:, 1], along[:, 0])
        if objective.is_angle:
            there = np.isfinite(angle)
            angle[there] = np.unwrap(angle[there])
            return angle[:, None]
        off = samples[objective.parts[0]] - samples[markers[0]]
        c, s = np.cos(angle), np.sin(angle)
        turned = np.stack([c * off[:, 0] + s * off[:, 1], c * off[:, 1] - s * off[:, 0], off[:, 2]], axis=1)
        return turned[:, list(self.components)]

    def of(self, time: Array, rows: Array) -> tuple[Array, Array]:
        """Return the values and their standard deviations.

        Parameters
        ----------
        time : Array
            (k,) s from the recording's start.
        rows : Array
            (k, n) from `signal`.

        Returns
        -------
        tuple[Array, Array]
            (w,) values and (w,) deviations; nan with too few samples.
        """
        inside = (time > self.begin - 1e-9) & (time <= self.end + 1e-9) & np.isfinite(rows).all(axis=1)
        orders = max(FITTED_ORDERS, self.objective.order if self.objective.kind == "harmonic" else 0)
        t, y = time[inside] - self.begin, rows[inside]
        width = 2 if self.has_phase else 1
        if len(t) < 2 * orders + 3:
            return np.full(width, np.nan), np.full(width, np.nan)
        table, inverse = _waves(t.tobytes(), self.frequency_hz, orders)
        result = inverse @ y
        left = y - table @ result
        variance = np.sum(left**2, axis=0) / max(len(t) - table.shape[1], 1)
        spread = np.linalg.norm(inverse, axis=1)[:, None] * np.sqrt(variance)
        if self.objective.kind == "mean_speed":
            row = 1 if self.is_slope else 0
            speed = float(np.linalg.norm(result[row])) if y.shape[1] > 1 else abs(float(result[row, 0]))
            return np.array([speed]), np.array([float(spread[row].max())])
        a, b = result[2 * self.objective.order], result[2 * self.objective.order + 1]
        size = np.array([float(spread[2 * self.objective.order].max())])
        if self.has_phase:  # y = A cos(n w t + p), A exp(i p) = a - i b
            return np.array([float(a[0]), -float(b[0])]), np.repeat(size, 2)
        return np.array([math.hypot(float(a[0]), float(b[0]))]), size


@lru_cache(maxsize=64)
def _waves(time: bytes, frequency_hz: float, orders: int) -> tuple[Array, Array]:
    """Return (k, 2 + 2 orders) a constant, a trend and harmonics at times (k,) s, and their pseudo-inverse.

    A fit requests the same times again and again; the pseudo-inverse takes longer than the rest.
    """
    t = np.frombuffer(time)
    angle = 2.0 * np.pi * frequency_hz * t
    waves = [wave(n * angle) for n in range(1, orders + 1) for wave in (np.cos, np.sin)]
    table = np.stack([np.ones(len(t)), t - t.mean(), *waves], axis=1)
    return table, np.linalg.pinv(table)


def read_objectives(texts: Sequence[str]) -> list[Objective]:
    """Return the objectives of --objective: KIND:KEY=VALUE,... or FILE.toml with tables [[objective]].

    Parameters
    ----------
    texts : Sequence[str]
        Values of the option.

    Returns
    -------
    list[Objective]
        In the order of the values.

    Raises
    ------
    ModelError, UnknownNameError
        An objective is wrong; the message has the word, or the file and the table.
    """
    result: list[Objective] = []
    for word in texts:
        if word.endswith(".toml"):
            tables = read_toml(word).get("objective")
            if not isinstance(tables, list) or not tables:
                raise ModelError(f"--objective {word}: expected tables [[objective]], got none")
            result += [
                read_objective(f"{word}: objective {k + 1}", table, from_text=False) for k, table in enumerate(tables)
            ]
            continue
        kind, _, remaining = word.partition(":")
        pairs = dict(pair.partition("=")[::2] for pair in remaining.split(",") if pair)
        result.append(read_objective(f"--objective {word}", {"kind": kind, **pairs}, from_text=True))
    return result


def read_objective(place: str, table: Any, *, from_text: bool) -> Objective:
    """Return an objective from its table.

    Parameters
    ----------
    place : str
        Origin of the table, for messages.
    table : Any
        Keys and values.
    from_text : bool
        The values are text of a command line.

    Returns
    -------
    Objective
        The objective.

    Raises
    ------
    ModelError, UnknownNameError
        The table is wrong; the message begins with the place.
    """

    def fault(_: str, text: str) -> ModelError:
        return ModelError(f"{place}: {text}")

    if not isinstance(table, Mapping):
        raise ModelError(f"{place}: expected a table, got {table!r:.60}")
    built = Objective(**read_table(Objective, table, "objective", fault, from_text=from_text))
    if built.axes and (built.kind != "harmonic" or len(built.markers) != 2 or len({*built.markers, ""}) != 3):
        raise ModelError(f"{place}: axes: expected two markers A:B, and kind 'harmonic', got {built.axes!r:.60}")
    if built.kind == "harmonic" and not built.channel and not built.axes:
        raise ModelError(f"{place}: channel: expected an output of the robot, such as joint_position[0]")
    if built.value is not None and built.noise is None:
        raise ModelError(f"{place}: noise: expected the standard deviation of the value, got none")
    if built.phase_rad is not None and built.value is None:
        raise ModelError(f"{place}: value: expected an amplitude with phase_rad, got none")
    return built


def with_objectives(
    recordings: Sequence[Recording], objectives: Sequence[Objective], *, series: bool, lead_in: float = 0.0
) -> list[Recording]:
    """Return the recordings with their objectives as series of one sample.

    Parameters
    ----------
    recordings : Sequence[Recording]
        Their series have the channels that the objectives need.
    objectives : Sequence[Objective]
        Objectives of a person.
    series : bool
        The time series stay beside the objectives.
    lead_in : float, default 0.0
        Time at the beginning of each recording that does not count, s.

    Returns
    -------
    list[Recording]
        In the same order.

    Raises
    ------
    ModelError, UnknownNameError
        An objective does not fit a recording; the message names both.
    """
    if not objectives:
        return list(recordings)
    names = [recording.name for recording in recordings]
    for objective in objectives:
        if objective.recording and not any(_is_of(objective, name) for name in names):
            raise UnknownNameError("recording of --objective", objective.recording, names)
    result = []
    for recording in recordings:
        recording_objectives = [item for item in objectives if not item.recording or _is_of(item, recording.name)]
        plant = recording.build()
        drive = cache(partial(drive_frequency, recording, f"{recording.name}: --objective", lead_in, plant))
        built = tuple(_series_of(item, recording, lead_in, plant, drive) for item in recording_objectives)
        twice = {item.channel for item in built if [other.channel for other in built].count(item.channel) > 1}
        if twice:
            raise ModelError(f"{recording.name}: --objective {', '.join(sorted(twice))}: is given twice")
        result.append(replace(recording, series=(*(recording.series if series else ()), *built)))
    return result


def _is_of(objective: Objective, name: str) -> bool:
    return objective.recording in (name, Path(name).stem)


def _series_of(
    objective: Objective, recording: Recording, lead_in: float, plant: Plant, drive: Callable[[], float]
) -> Series:  # fmt: skip
    output, component = objective.parts
    channels = {channel.name: channel for channel in plant.outputs}
    place = f"{recording.name}: --objective {objective.kind}"
    for name in objective.outputs:
        if name not in channels:
            raise UnknownNameError(f"channel of {place}", name, channels)
        if name in objective.markers and (tuple(channels[name].shape) != (3,) or channels[name].unit != "m"):
            raise ModelError(f"{place}: axes: expected outputs that are positions, such as markers, got {name}")
    size = 1 if objective.is_angle else math.prod(channels[output].shape)
    if component >= size or (component < 0 and size > 1 and objective.kind == "harmonic"):
        raise ModelError(f"{place}: channel {objective.channel}: expected one of {output}[0] to [{size - 1}]")
    if objective.axes and not objective.is_angle and (size != 3 or channels[output].unit != "m"):
        raise ModelError(f"{place}: channel {objective.channel}: expected a position in the axes {objective.axes}")
    frequency = objective.frequency_hz or drive()
    whole = math.floor((recording.duration - lead_in) * frequency + 1e-6)
    if whole < 1:
        raise ModelError(
            f"{place}: expected at least a whole period of {1.0 / frequency:.3g} s after the lead-in, got "
            f"{recording.duration - lead_in:.3g} s"
        )
    end = recording.duration
    result = {s.channel: s for s in recording.series if s.channel in objective.outputs and s.feature is None}
    measured = [result[name] for name in objective.outputs if name in result]
    complete = len(measured) == len(objective.outputs)
    has_phase = objective.kind == "harmonic" and (objective.phase_rad is not None or objective.value is None)
    components = tuple(range(size)) if component < 0 else (component,)
    if complete and not objective.axes:
        there = np.asarray(np.isfinite(measured[0].values).any(axis=0))
        components = tuple(k for k in components if there[k]) or components
    unit = "rad" if objective.is_angle else channels[output].unit
    is_slope = objective.kind == "mean_speed" and unit == "m"
    feature = Feature(objective, frequency, end - whole / frequency, end, has_phase, components, is_slope)
    if objective.value is not None:
        p = objective.phase_rad
        values = np.array(
            [objective.value] if p is None else [objective.value * math.cos(p), objective.value * math.sin(p)]
        )
        noise = np.full(len(values), float(objective.noise or 0.0))
    elif not complete:
        lacking = ", ".join(name for name in objective.outputs if name not in result)
        raise ModelError(f"{place}: the recording has no {lacking}: give value and noise")
    else:
        time, samples = _at_common_times(measured)
        values, noise = feature.of(time, feature.signal(samples))
        if not np.isfinite(values).all():
            raise ModelError(
                f"{place}: the recording has too few samples of {', '.join(objective.outputs)} in {whole} periods"
            )
        least = MIN_NOISE_SHARE * float(np.linalg.norm(values))
        noise = (
            np.full(len(values), objective.noise)
            if objective.noise is not None
            else np.maximum(noise, max(least, 1e-12))
        )
    unit = "m/s" if is_slope else unit
    return Series(objective.label, np.array([end]), values[None, :], unit, noise, feature=feature)


def _at_common_times(several: Sequence[Series]) -> tuple[Array, dict[str, Array]]:
    """Return the times (k,) that all series have, and their samples there."""
    time = several[0].time
    for item in several[1:]:
        time = np.intersect1d(time, item.time)
    return time, {entry.channel: entry.values[np.searchsorted(entry.time, time)] for entry in several}


def drive_frequency(
    recording: Recording, place: str, lead_in: float = 0.0, plant: Plant | None = None
) -> float:  # fmt: skip
    """Return the frequency of the drive: the one at which a wave fits the commands best.

    Where no command changes and one of them is the speed of a motor (rad/s), its revolutions are the drive.

    Parameters
    ----------
    recording : Recording
        Its commands.
    place : str
        Origin of the objective, for messages.
    lead_in : float, default 0.0
        Time at the beginning that does not count, s.
    plant : Plant | None, optional
        Plant of the recording, if it is built already.

    Returns
    -------
    float
        Hz.

    Raises
    ------
    ModelError
        No command changes, or there is no whole period.
    """
    commands = recording.commands[round(lead_in / recording.dt) :]
    commands = commands - commands.mean(axis=0)
    column = int(np.argmax(np.sum(commands**2, axis=0))) if commands.size else 0
    y = commands[:, column] if commands.size else np.zeros(0)
    if len(y) < 8 or float(np.ptp(y)) < 1e-9:
        speeds = [
            abs(float(recording.commands[-1, k])) for k, actuator in enumerate((plant or recording.build()).actuators)
            if actuator.unit == "rad/s" and recording.commands[-1:, k].any()
        ]  # fmt: skip
        if len(speeds) == 1:
            return speeds[0] / (2.0 * math.pi)
        raise ModelError(
            f"{place}: frequency_hz: expected the frequency of the drive, got none, and the commands do not have "
            "exactly one"
        )
    n, span = len(y), len(y) * recording.dt
    power = np.abs(np.fft.rfft(y * np.hanning(n)))
    k = 1 + int(np.argmax(power[1:]))
    t = recording.dt * np.arange(n)

    def left(frequency: float) -> float:
        angle = 2.0 * np.pi * frequency * t
        table = np.stack([np.ones(n), np.cos(angle), np.sin(angle)], axis=1)
        result, *_ = np.linalg.lstsq(table, y, rcond=None)
        return float(np.sum((y - table @ result) ** 2))

    low, high = max(k - 1.0, 0.5) / span, (k + 1.0) / span
    ratio = 0.5 * (math.sqrt(5.0) - 1.0)
    for _ in range(40):  # golden section
        a, b = high - ratio * (high - low), low + ratio * (high - low)
        if left(a) < left(b):
            high = b
        else:
            low = a
    return 0.5 * (low + high)


def aligning_delay(pairs: Sequence[tuple[complex, complex, float, float]]) -> float:
    """Return the delay at which harmonics of a model fit measured ones best.

    Parameters
    ----------
    pairs : Sequence[tuple[complex, complex, float, float]]
        (model's A exp(i p), measured one, its standard deviation, n w in rad/s) of each harmonic.

    Returns
    -------
    float
        s.
    """
    model, measured, sigma, rate = (np.array(column) for column in zip(*pairs, strict=True))
    weight = 2.0 * measured * np.conj(model) / sigma**2  # maximise sum Re(weight exp(i rate delay))
    slowest = float(rate.min())
    grid = np.linspace(0.0, 2.0 * np.pi / slowest, 512, endpoint=False)
    delay = float(grid[np.argmax(np.real(np.exp(1j * np.outer(grid, rate)) @ weight))])
    for _ in range(20):  # Newton
        turned = weight * np.exp(1j * rate * delay)
        first, second = float(np.real(1j * rate * turned).sum()), -float(np.real(rate**2 * turned).sum())
        if second >= 0.0:
            break
        step = first / second
        delay -= step
        if abs(step) * slowest < 1e-14:
            break
    return delay
