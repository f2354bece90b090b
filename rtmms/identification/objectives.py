"""Objectives other than time series: mean speeds, and harmonics of an output at the frequency of the drive.

A person may have no table with a clock, but a mean speed and amplitudes of a motion. Each objective becomes one
sample of a recording, with a noise, and the fit treats it as any other sample.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt

from rtmms.base.errors import ModelError, UnknownNameError
from rtmms.base.parameters import Parameter, read_table
from rtmms.base.toml_file import read_toml
from rtmms.identification.recording import Recording, Series

Array = npt.NDArray[np.float64]

KINDS = ("mean_speed", "harmonic")
CLOCKS = ("free", "common")
FITTED_ORDERS = 3
"""Harmonics that are fitted beside the one that is asked for, so that they do not disturb it."""
LEAST_SHARE = 1e-6
"""Of the value itself: the least noise of an objective that is taken from a recording."""
_COMPONENT = re.compile(r"(.+?)(?:\[(\d+)\])?")


@dataclass(frozen=True)
class Objective:
    """What a person asks: a table [[objective]] of a file, or KIND:KEY=VALUE,... of a command line."""

    # fmt: off
    kind: Annotated[str, Parameter("Quantity.", choices=KINDS)]
    channel: Annotated[str, Parameter(
        "Output of the robot, OUTPUT or OUTPUT[k]; of mean_speed position, or velocity[0].",
    )] = ""
    order: Annotated[int, Parameter("Harmonic: 1 is at the frequency of the drive.", le=50)] = 1
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
        "Phases count from a time of their own (free), or from the time of the commands (common).", choices=CLOCKS,
    )] = "free"
    recording: Annotated[str, Parameter("Name of the recording; default all of them.")] = ""
    # fmt: on

    @property
    def output(self) -> str:
        return self.parts[0]

    @property
    def parts(self) -> tuple[str, int]:
        """Output and component, -1 for all of its numbers."""
        found = _COMPONENT.fullmatch(self.channel or "position")
        assert found is not None
        return found[1], -1 if found[2] is None else int(found[2])


@dataclass(frozen=True)
class Feature:
    """An objective of one recording.

    Attributes
    ----------
    objective : Objective
    frequency_hz : float
    begin, end : float
        s; a whole number of periods.
    has_phase : bool
        The values are the real and the imaginary part of A exp(i p), not A alone.
    components : tuple of int
        Numbers of the output that count: those that were measured.
    """

    objective: Objective
    frequency_hz: float
    begin: float
    end: float
    has_phase: bool
    components: tuple[int, ...]

    @property
    def output(self) -> str:
        return self.objective.output

    @property
    def free_clock(self) -> bool:
        return self.has_phase and self.objective.clock == "free"

    def of(self, time: Array, rows: Array) -> tuple[Array, Array]:
        """Return the values (w,) and their standard deviations, of samples of the output.

        Parameters
        ----------
        time : (k,) array
            s from the recording's start.
        rows : (k, n) array
            The output; nan where nothing was measured.
        """
        rows = rows[:, list(self.components)]
        inside = (time > self.begin - 1e-9) & (time <= self.end + 1e-9) & np.isfinite(rows).all(axis=1)
        orders = max(FITTED_ORDERS, self.objective.order if self.objective.kind == "harmonic" else 0)
        t, y = time[inside] - self.begin, rows[inside]
        width = 2 if self.has_phase else 1
        if len(t) < 2 * orders + 3:
            return np.full(width, np.nan), np.full(width, np.nan)
        angle = 2.0 * np.pi * self.frequency_hz * t
        waves = [wave(n * angle) for n in range(1, orders + 1) for wave in (np.cos, np.sin)]
        table = np.stack([np.ones(len(t)), t - t.mean(), *waves], axis=1)
        found, *_ = np.linalg.lstsq(table, y, rcond=None)
        left = y - table @ found
        variance = np.sum(left**2, axis=0) / max(len(t) - table.shape[1], 1)
        spread = np.sqrt(np.diag(np.linalg.pinv(table.T @ table)))[:, None] * np.sqrt(variance)
        if self.objective.kind == "mean_speed":
            row = 1 if self.output == "position" else 0
            speed = float(np.linalg.norm(found[row])) if y.shape[1] > 1 else abs(float(found[row, 0]))
            return np.array([speed]), np.array([float(spread[row].max())])
        a, b = found[2 * self.objective.order], found[2 * self.objective.order + 1]
        size = np.array([float(spread[2 * self.objective.order].max())])
        if self.has_phase:  # y = A cos(n w t + p), A exp(i p) = a - i b
            return np.array([float(a[0]), -float(b[0])]), np.repeat(size, 2)
        return np.array([math.hypot(float(a[0]), float(b[0]))]), size


def read_objectives(words: Sequence[str]) -> list[Objective]:
    """Return the objectives of --objective: KIND:KEY=VALUE,... or FILE.toml with tables [[objective]].

    Raises
    ------
    ModelError, UnknownNameError
        With the word, or the file and the table.
    """
    found: list[Objective] = []
    for word in words:
        if word.endswith(".toml"):
            tables = read_toml(word).get("objective")
            if not isinstance(tables, list) or not tables:
                raise ModelError(f"--objective {word}: expected tables [[objective]], got none")
            found += [
                read_objective(f"{word}: objective {k + 1}", table, words=False) for k, table in enumerate(tables)
            ]
            continue
        kind, _, rest = word.partition(":")
        pairs = dict(pair.partition("=")[::2] for pair in rest.split(",") if pair)
        found.append(read_objective(f"--objective {word}", {"kind": kind, **pairs}, words=True))
    return found


def read_objective(place: str, table: Any, *, words: bool) -> Objective:
    def fault(_: str, text: str) -> ModelError:
        return ModelError(f"{place}: {text}")

    if not isinstance(table, Mapping):
        raise ModelError(f"{place}: expected a table, got {table!r:.60}")
    made = Objective(**read_table(Objective, table, "objective", fault, words=words))
    if made.kind == "harmonic" and made.parts[1] < 0 and not made.channel:
        raise ModelError(f"{place}: channel: expected an output of the robot, such as joint_position[0]")
    if made.value is not None and made.noise is None:
        raise ModelError(f"{place}: noise: expected the standard deviation of the value, got none")
    if made.phase_rad is not None and made.value is None:
        raise ModelError(f"{place}: value: expected the amplitude beside its phase, got none")
    return made


def with_objectives(
    recordings: Sequence[Recording], objectives: Sequence[Objective], *, series: bool, lead_in: float = 0.0
) -> list[Recording]:
    """Return the recordings with their objectives as series of one sample.

    Parameters
    ----------
    recordings
        Channels that the objectives are taken from are among their series.
    series
        The time series stay beside the objectives.
    lead_in
        s at the beginning of each recording that do not count.

    Raises
    ------
    ModelError, UnknownNameError
        With recording and objective.
    """
    if not objectives:
        return list(recordings)
    names = [one.name for one in recordings]
    for one in objectives:
        if one.recording and not any(_is_of(one, name) for name in names):
            raise UnknownNameError("recording of --objective", one.recording, names)
    found = []
    for recording in recordings:
        own = [one for one in objectives if not one.recording or _is_of(one, recording.name)]
        made = tuple(_series_of(one, recording, lead_in) for one in own)
        twice = {one.channel for one in made if [other.channel for other in made].count(one.channel) > 1}
        if twice:
            raise ModelError(f"{recording.name}: --objective {', '.join(sorted(twice))}: is given twice")
        found.append(replace(recording, series=(*(recording.series if series else ()), *made)))
    return found


def _is_of(one: Objective, name: str) -> bool:
    return one.recording in (name, Path(name).stem)


def _series_of(one: Objective, recording: Recording, lead_in: float) -> Series:
    output, component = one.parts
    plant = recording.build()
    channels = {channel.name: channel for channel in plant.outputs}
    place = f"{recording.name}: --objective {one.kind}"
    if output not in channels:
        raise UnknownNameError(f"channel of {place}", output, channels)
    size = math.prod(channels[output].shape)
    if component >= size or (component < 0 and size > 1 and one.kind == "harmonic"):
        raise ModelError(f"{place}: channel {one.channel}: expected one of {output}[0] to [{size - 1}]")
    frequency = one.frequency_hz or drive_frequency(recording, place, lead_in)
    whole = math.floor((recording.duration - lead_in) * frequency + 1e-6)
    if whole < 1:
        raise ModelError(
            f"{place}: expected at least a whole period of {1.0 / frequency:.3g} s after the lead-in, got "
            f"{recording.duration - lead_in:.3g} s"
        )
    end = recording.duration
    measured = next((s for s in recording.series if s.channel == output and s.feature is None), None)
    has_phase = one.kind == "harmonic" and (one.phase_rad is not None or one.value is None)
    components = tuple(range(size)) if component < 0 else (component,)
    if measured is not None:
        there = np.asarray(np.isfinite(measured.values).any(axis=0))
        components = tuple(k for k in components if there[k]) or components
    feature = Feature(one, frequency, end - whole / frequency, end, has_phase, components)
    if one.value is not None:
        p = one.phase_rad
        values = np.array([one.value] if p is None else [one.value * math.cos(p), one.value * math.sin(p)])
        noise = np.full(len(values), float(one.noise or 0.0))
    elif measured is None:
        raise ModelError(f"{place}: the recording has no {output}: give value and noise")
    else:
        values, noise = feature.of(measured.time, measured.values)
        if not np.isfinite(values).all():
            raise ModelError(f"{place}: the recording has too few samples of {output} in {whole} periods")
        least = LEAST_SHARE * float(np.linalg.norm(values))
        noise = np.full(len(values), one.noise) if one.noise is not None else np.maximum(noise, max(least, 1e-12))
    name = one.kind if one.kind == "mean_speed" else f"harmonic{one.order}.{one.channel}"
    unit = channels[output].unit
    unit = f"{unit}/s" if one.kind == "mean_speed" and output == "position" else unit
    return Series(name, np.array([end]), values[None, :], unit, noise, feature=feature)


def drive_frequency(recording: Recording, place: str, lead_in: float = 0.0) -> float:
    """Return the frequency of the commands, Hz: the one at which a wave with its harmonics fits them best.

    Raises
    ------
    ModelError
        Where no command changes, or where there is no whole period.
    """
    commands = recording.commands[round(lead_in / recording.dt) :]
    commands = commands - commands.mean(axis=0)
    column = int(np.argmax(np.sum(commands**2, axis=0))) if commands.size else 0
    y = commands[:, column] if commands.size else np.zeros(0)
    if len(y) < 8 or float(np.ptp(y)) < 1e-9:
        raise ModelError(f"{place}: frequency_hz: expected the frequency of the drive, as no command changes")
    n, span = len(y), len(y) * recording.dt
    power = np.abs(np.fft.rfft(y * np.hanning(n)))
    k = 1 + int(np.argmax(power[1:]))
    t = recording.dt * np.arange(n)

    def left(frequency: float) -> float:
        angle = 2.0 * np.pi * frequency * t
        table = np.stack([np.ones(n), np.cos(angle), np.sin(angle)], axis=1)
        found, *_ = np.linalg.lstsq(table, y, rcond=None)
        return float(np.sum((y - table @ found) ** 2))

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
    """Return the delay, s, under which harmonics of a model fit measured ones best.

    Parameters
    ----------
    pairs
        (model's A exp(i p), measured one, its standard deviation, n w in rad/s) of each harmonic.
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
