"""Fit of a model: residuals in units of their noise, and Gauss-Newton with bounds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from rtmms.base.budget import Budget, OutOfTimeError
from rtmms.base.errors import ModelError
from rtmms.identification.descent import Watch, bounds_of, descend
from rtmms.identification.objectives import aligning_delay
from rtmms.identification.prediction import Case, Predictor, Segment, can_be_placed, free_start
from rtmms.identification.recording import Recording, Series, mean_square, noise_of, refuse_still, spread, thinned
from rtmms.identification.unknowns import ALL_CHANNELS, OFFSETS, FirstState, Kind, Unknown, sensor_errors, starts

Array = npt.NDArray[np.float64]


# Residuals of all channels and segments in units of their noise, and their slopes by all unknowns.


STEP = 1e-4
"""Step of an unknown for differences, in its scale; it exceeds the tolerance of iterations within a plant, such as the
moth's search for its hovering orbit.
"""
START_STEP = 1e-6
"""Step of a first state for differences. The only error of its slope is rounding, some 1e-13 of a number, so one-sided
differences have six correct digits at half the cost of central ones.
"""
FAILED_RESIDUAL = 1e8
"""Residual where the model fails, in deviations."""
BISECTIONS = 10
"""Bisections of the interval in which a model becomes impossible."""
UNSEEN = 1.5
"""Steps at a segment's beginning whose samples are left out: a measurement over a step has no earlier step there."""


@dataclass
class Block:
    """Samples of one channel in one segment.

    Attributes
    ----------
    segment : int
        Index of the segment.
    series : Series
        The channel.
    time : Array
        (k,) s from the segment's start.
    values : Array
        (k, w) values.
    sigma : Array
        (w,) deviations that the residuals are divided by.
    fitted : npt.NDArray[np.bool_]
        (k,) samples that the fit uses.
    """

    segment: int
    series: Series
    time: Array
    values: Array
    sigma: Array
    fitted: npt.NDArray[np.bool_]

    @property
    def channel(self) -> str:
        """Name of the channel."""
        return self.series.channel


def blocks(recordings: Sequence[Recording], segments: Sequence[Segment], sigma: dict[str, Array]) -> list[Block]:
    """Return the samples, cut into segments.

    Parameters
    ----------
    recordings : Sequence[Recording]
        The recordings.
    segments : Sequence[Segment]
        Their segments.
    sigma : dict[str, Array]
        (w,) deviation of each channel.

    Returns
    -------
    list[Block]
        Blocks with at least one sample.
    """
    found = []
    for k, one in enumerate(segments):
        recording = recordings[one.recording]
        begin, end = one.first * recording.dt, one.last * recording.dt
        seen = (one.first + one.fitted) * recording.dt
        for series in recording.series:
            earliest = max(begin + UNSEEN * recording.dt, one.counts_from * recording.dt)
            inside = (series.time > earliest) & (series.time <= end + 1e-9)
            if inside.any():
                time = series.time[inside]
                own = sigma[series.channel] if series.feature is None else series.noise
                found.append(Block(k, series, time - begin, series.values[inside], own,
                                   (time <= seen + 1e-9) | (series.feature is not None)))  # fmt: skip
    return found


class Residuals:
    """Residuals of unknowns z, each in its scale (`Unknown.scale`).

    The last prediction is cached, as value and slope are needed at the same point.

    Parameters
    ----------
    predictor : Predictor
        Model of the recordings.
    found : list[Block]
        Samples.
    unknowns : Sequence[Unknown]
        In the order of z.
    progress : Callable[[str], None], default lambda _: None
        Receives a short text for each prediction.

    Attributes
    ----------
    central : bool
        Whether slopes are central differences, which need twice the runs of one-sided ones. Those by a first state are
        always one-sided.
    """

    def __init__(
        self, predictor: Predictor, found: list[Block], unknowns: Sequence[Unknown],
        progress: Callable[[str], None] = lambda _: None,
    ) -> None:  # fmt: skip
        self.predictor, self.blocks, self.unknowns, self.progress = predictor, found, list(unknowns), progress
        self.scale = np.array([one.scale for one in unknowns])
        self.priors = [(k, *one.prior) for k, one in enumerate(unknowns) if one.prior is not None]
        self._width = max(len(OFFSETS), 1 + max((one.coordinate for one in unknowns), default=0))
        self.central = True
        self._at: Array | None = None
        self._predicted: list[dict[str, Array]] = []
        self._of: dict[str, list[tuple[int, Unknown]]] = {}
        for k, one in enumerate(unknowns):
            if one.channel:
                self._of.setdefault(one.channel, []).append((k, one))
        steps, self.sources = 0, []
        for block in found:
            self.sources.append(slice(steps, steps + int(block.fitted.sum()) * block.values.shape[1]))
            steps = self.sources[-1].stop
        self.size = steps

    def weights(self) -> Array:
        """Return the factors of the residuals: one over the standard deviation, 1 for priors.

        Returns
        -------
        Array
            (size + priors,).
        """
        out = np.ones(self.size + len(self.priors))
        for block, part in zip(self.blocks, self.sources, strict=True):
            out[part] = np.tile(1.0 / block.sigma, int(block.fitted.sum()))
        return out

    def forget(self) -> None:
        """Delete the cached prediction, as the segments have another start now."""
        self._at = None

    def case(self, z: Array) -> Case:
        """Return parameters and offsets of the first states for unknowns.

        Parameters
        ----------
        z : Array
            (n,) unknowns, each in its scale.

        Returns
        -------
        Case
            A case of the predictor.
        """
        count = len(self.predictor.recordings)
        values: list[dict[str, float]] = [{} for _ in range(count)]
        offsets = np.zeros((len(self.predictor.segments), self._width))
        for one, value in zip(self.unknowns, z * self.scale, strict=True):
            if one.kind is Kind.MODEL:
                for own in values if one.recording < 0 else values[one.recording : one.recording + 1]:
                    own[one.key] = float(value)
            elif one.kind is Kind.START:
                offsets[one.segment, one.coordinate] = value
        return Case(values, offsets)

    def predicted(self, z: Array) -> list[dict[str, Array]]:
        """Return the prediction of each segment.

        Parameters
        ----------
        z : Array
            (n,) unknowns, each in its scale.

        Returns
        -------
        list[dict[str, Array]]
            {channel: (steps, w)} of each segment.
        """
        if self._at is None or not np.array_equal(self._at, z):
            self._predicted, self._at = self._aligned(self.predictor.one(self.case(z))), z.copy()
        return self._predicted

    def _aligned(self, predicted: list[dict[str, Array]]) -> list[dict[str, Array]]:
        """Shift harmonics without a common clock to the time of each recording at which they fit best.

        The delay is eliminated: residuals are functions of the other unknowns alone, and their slopes are those of the
        residuals at the best delay (variable projection).
        """
        for segment in range(len(self.predictor.segments)):
            own = [
                (block, feature) for block in self.blocks
                if block.segment == segment and (feature := block.series.feature) is not None and feature.free_clock
            ]  # fmt: skip
            pairs = []
            for block, feature in own:
                model, measured = predicted[segment][block.channel][0], block.values[0]
                rate = 2.0 * np.pi * feature.frequency_hz * feature.objective.order
                pairs.append((complex(*model), complex(*measured), float(block.sigma[0]), rate))
            if not pairs or not np.isfinite([one[0] for one in pairs]).all():
                continue
            delay = aligning_delay(pairs)
            for (block, _), (model, _, _, rate) in zip(own, pairs, strict=True):
                turned = model * np.exp(-1j * rate * delay)
                predicted[segment][block.channel] = np.array([[turned.real, turned.imag]])
        return predicted

    def expected(self, block: Block, predicted: Sequence[dict[str, Array]], z: Array) -> Array:
        """Return the expected measurement of the sensor: interpolated, with its delay, gain, and persistent errors.

        Parameters
        ----------
        block : Block
            Samples.
        predicted : Sequence[dict[str, Array]]
            Prediction of each segment.
        z : Array
            (n,) unknowns, each in its scale.

        Returns
        -------
        Array
            (k, w), in the channel's unit.
        """
        number = self.predictor.segments[block.segment].recording
        recording = self.predictor.recordings[number]
        own = [(k, one) for k, one in self._of.get(block.channel, []) if one.recording in (-1, number)]
        if block.series.feature is None:
            own += [(k, one) for k, one in self._of.get(ALL_CHANNELS, []) if one.recording in (-1, number)]
        delay = sum((z[k] * one.scale for k, one in own if one.kind is Kind.DELAY), 0.0)
        rows = predicted[block.segment][block.channel]
        at = np.clip((block.time - delay) / recording.dt - 1.0, 0.0, len(rows) - 1.0)
        before = np.minimum(at.astype(np.int64), max(len(rows) - 2, 0))
        share = (at - before)[:, None]
        y = rows[before] if len(rows) == 1 else (1.0 - share) * rows[before] + share * rows[before + 1]
        if block.channel == "quaternion":
            y = y * np.where(np.nansum(y * block.values, axis=1) < 0.0, -1.0, 1.0)[:, None]
        plain, y = y, y.copy()
        for k, one in own:
            value = z[k] * one.scale
            if one.kind is Kind.SCALE:
                part = slice(None) if one.component < 0 else one.component
                y[:, part] += value * plain[:, part]
            elif one.kind is Kind.SKEW:  # the turn of the axes, to first order
                a, b = (one.component + 1) % 3, (one.component + 2) % 3
                y[:, a] += value * plain[:, b]
                y[:, b] -= value * plain[:, a]
        for k, one in own:
            if one.kind is Kind.GAIN:
                y *= z[k] * one.scale
        for k, one in own:
            if one.kind is Kind.BIAS:
                y[:, one.component] += z[k] * one.scale
        return y

    def differences(self, block: Block, predicted: Sequence[dict[str, Array]], z: Array) -> Array:
        """Return expected less measured values, in the channel's unit.

        Parameters
        ----------
        block : Block
            Samples.
        predicted : Sequence[dict[str, Array]]
            Prediction of each segment.
        z : Array
            (n,) unknowns, each in its scale.

        Returns
        -------
        Array
            (k, w); nan where there was no measurement.
        """
        return self.expected(block, predicted, z) - block.values

    def _data(
        self,
        predicted: Sequence[dict[str, Array]],
        z: Array,
        only: Iterable[int] | None = None,
        most: float = FAILED_RESIDUAL,
    ) -> Array:
        """Return the residuals (size,) of the fit, 0 where there was no measurement; blocks not in `only` stay 0.

        `most` is the limit of a residual, in deviations. Differences have none: in a recording without noise a small
        step moves an output by more than FAILED_RESIDUAL deviations, and the slope of two residuals at the limit is 0.
        """
        out = np.zeros(self.size)
        for k in range(len(self.blocks)) if only is None else only:
            block = self.blocks[k]
            off = self.differences(block, predicted, z)[block.fitted]
            measured = np.isfinite(block.values[block.fitted])
            off = np.where(
                measured, np.clip(np.where(np.isfinite(off), off / block.sigma, FAILED_RESIDUAL), -most, most), 0.0
            )
            out[self.sources[k]] = off.ravel()
        return out

    def value(self, z: Array) -> Array:
        """Return the residuals, in deviations.

        Parameters
        ----------
        z : Array
            (n,) unknowns, each in its scale.

        Returns
        -------
        Array
            (size + priors,).
        """
        tail = [(z[k] * self.scale[k] - mean) / deviation for k, mean, deviation in self.priors]
        return np.concatenate([self._data(self.predicted(z), z), tail])

    def slope(self, z: Array) -> Array:
        """Return the derivatives of the residuals.

        Parameters
        ----------
        z : Array
            (n,) unknowns, each in its scale.

        Returns
        -------
        Array
            (size + priors, unknowns).

        Raises
        ------
        ModelError
            The model fails on both sides of a value.
        """
        out = np.zeros((self.size + len(self.priors), len(z)))
        for row, (k, _, deviation) in enumerate(self.priors):
            out[self.size + row, k] = self.scale[k] / deviation
        predicted = self.predicted(z)
        groups = self._moved_together()
        cases, steps = [], []
        for group in groups:
            up, down = z.copy(), z.copy()
            of_start = self.unknowns[group[0]].kind is Kind.START
            step = START_STEP if of_start else STEP
            up[group], down[group] = z[group] + step, z[group] - step
            for k in group:  # within bounds
                one = self.unknowns[k]
                up[k] = min(up[k], one.high / one.scale)
                down[k] = max(down[k], one.low / one.scale)
            if of_start or not self.central:
                up, down = (up, z) if (up[group] > z[group]).all() else (z, down)
            cases += [self.case(point) for point in (up, down) if point is not z]
            steps.append((up, down))
        answers = self.predictor.many(cases)
        for number, (group, (up, down)) in enumerate(zip(groups, steps, strict=True)):
            self.progress(f"derivative {number + 1} of {len(groups)}")
            ends = steps[number]
            high, low = (predicted if point is z else self._aligned(next(answers)) for point in ends)
            if not _sound(high):  # one-sided where the model fails on the other side
                high, up = predicted, z
            if not _sound(low):
                low, down = predicted, z
            if up is z and down is z:
                other = 2.0 * z - np.where(ends[0] == z, ends[1], ends[0])
                low, down = self._aligned(self.predictor.one(self.case(other))), other
                if not _sound(low):
                    self._refuse_edge(group, ends)
            for k in group:
                over = up[k] - down[k]
                if over <= 0.0:
                    continue
                only = self._blocks_of(self.unknowns[k])
                out[: self.size, k] = (self._data(high, z, only, np.inf) - self._data(low, z, only, np.inf)) / over
        for k, one in enumerate(self.unknowns):
            if not one.channel:
                continue
            up, down = z.copy(), z.copy()
            up[k], down[k] = z[k] + STEP, z[k] - STEP
            only = [
                j for j, block in enumerate(self.blocks)
                if one.channel in (block.channel, ALL_CHANNELS) and one.recording in (-1, self._recording_of(block))
            ]  # fmt: skip
            moved = self._data(predicted, up, only, np.inf) - self._data(predicted, down, only, np.inf)
            out[: self.size, k] = moved / (2.0 * STEP)
        return out

    def narrow(self, z: Array, beyond: Array) -> bool:
        """Bound the unknowns of the model that cannot be as in `beyond`, where the model cannot be built.

        A parameter without a declared range may have an end all the same, as a length ends at 0. Bisection finds the
        end between z, where the model runs, and `beyond`.

        Parameters
        ----------
        z : Array
            (n,) values with which the model runs.
        beyond : Array
            (n,) values with which it may fail.

        Returns
        -------
        bool
            True where there is a new bound.
        """
        if not self.predictor.refusal(self.case(beyond)):
            return False
        found = False
        for k, one in enumerate(self.unknowns):
            if one.kind is not Kind.MODEL or beyond[k] == z[k]:
                continue
            point = z.copy()
            point[k] = beyond[k]
            why = self.predictor.refusal(self.case(point))
            if not why:
                continue
            good, bad = z[k], beyond[k]
            for _ in range(BISECTIONS):
                point[k] = 0.5 * (good + bad)
                good, bad = (good, point[k]) if self.predictor.refusal(self.case(point)) else (point[k], bad)
            end = float(good * one.scale)
            below = beyond[k] < z[k]
            self.unknowns[k] = replace(
                one, low=end if below else one.low, high=one.high if below else end, end=why
            )  # fmt: skip
            found = True
        return found

    def _recording_of(self, block: Block) -> int:
        return self.predictor.segments[block.segment].recording

    def _blocks_of(self, one: Unknown) -> list[int] | None:
        """Return the indices of the blocks that an unknown of the model can move; None for all."""
        if one.kind is Kind.START:
            return [j for j, block in enumerate(self.blocks) if block.segment == one.segment]
        if one.recording >= 0:
            return [j for j, block in enumerate(self.blocks) if self._recording_of(block) == one.recording]
        return None

    def _refuse_edge(self, group: list[int], ends: tuple[Array, Array]) -> None:
        """Raise ModelError where the model fails on both sides of a value."""
        one = self.unknowns[group[0]]
        reasons = self.predictor.failures(self.case(ends[0]))
        why = f" ({reasons[0]})" if reasons else ""
        raise ModelError(
            f"the model fails near {one.name} = {ends[0][group[0]] * one.scale:g}{why}; give bounds without "
            f"this value: --bounds {one.key}=LOW:HIGH"
        )

    def _moved_together(self) -> list[list[int]]:
        """Return groups of unknowns that one rollout can vary at once, as they move different segments.

        They are the same coordinate of all first states, and the values of a parameter that each recording has for
        itself.
        """
        groups: dict[Any, list[int]] = {}
        for k, one in enumerate(self.unknowns):
            if one.kind is Kind.MODEL:
                groups.setdefault(k if one.recording < 0 else one.key, []).append(k)
            elif one.kind is Kind.START:
                groups.setdefault((one.kind, one.coordinate), []).append(k)
        return list(groups.values())


def _sound(predicted: Sequence[dict[str, Array]]) -> bool:
    """Return whether the model ran to the end of all segments."""
    return all(bool(np.isfinite(rows[-1]).all()) for part in predicted for rows in part.values())


# The fit: Gauss-Newton with bounds, channels weighted by what their noise turns out to be.


MAX_ROUNDS = 3
"""Largest number of rounds; weights and the segments' starts are computed anew before each."""
SETTLED = 0.05
"""Relative change of a weight below which no further round is needed."""
MIN_NOISE_SHARE = 1e-5
"""Least noise of a channel, as a share of its spread, which limits the weights of logs without noise."""
MAX_SAMPLES = 10_000
DEAF = 1.0
"""Deviations by which all samples together must change with an unknown, per scale, for the log to determine it."""
EXPLAINED = 1.2
"""Multiple of the noise up to which a fit needs no other starting point."""


@dataclass(frozen=True)
class Settings:
    """Settings of a fit.

    Attributes
    ----------
    hold_out : float, default 0.3
        Share at each recording's end that the fit does not use.
    segments : int, default 1
        Segments of each recording.
    threads : int, default 1
        Threads of the predictor.
    others : int | None, default 1
        Further points to start from; None: one, where the first fit leaves residuals above the noise.
    seed : int, default 0
        Seed of those points.
    samples : int, default 10000
        Largest number of samples of a channel in a recording.
    lead_in : float, default 0.0
        Time at the beginning of each recording that is simulated and not compared, s.
    free, pinned : tuple[str, ...], default ()
        Coordinates of first states, see `starts`.
    """

    hold_out: float = 0.3
    segments: int = 1
    threads: int = 1
    others: int | None = 1
    seed: int = 0
    samples: int = MAX_SAMPLES
    lead_in: float = 0.0
    free: tuple[str, ...] = ()
    pinned: tuple[str, ...] = ()


@dataclass
class Solution:
    """Result of a fit.

    Attributes
    ----------
    unknowns : list[Unknown]
        In the order of z.
    z : Array
        (n,) values, each in its scale.
    cost : float
        Sum of squares, with priors.
    residuals : Residuals
        Residuals with the final weights.
    jacobian : Array
        (rows, n) at z, with the priors' rows.
    residual : Array
        (rows,) residuals at z.
    noise : dict[str, Array]
        Noise of each channel (w,), as given or as estimated from the values.
    sigma : dict[str, Array]
        Final deviation of each channel.
    others : list[tuple[Array, float]]
        Values from other starting points, with their cost.
    recordings : list[Recording]
        Recordings of the fit.
    segments : list[Segment]
        Their segments.
    note : str, default ''
        Why the search ended early; '' where it did not.
    """

    unknowns: list[Unknown]
    z: Array
    cost: float
    residuals: Residuals
    jacobian: Array
    residual: Array
    noise: dict[str, Array]
    sigma: dict[str, Array]
    others: list[tuple[Array, float]]
    recordings: list[Recording]
    segments: list[Segment]
    note: str = ""

    @property
    def asked(self) -> list[int]:
        """Indices of the requested unknowns."""
        return [k for k, one in enumerate(self.unknowns) if one.asked]

    @property
    def values(self) -> dict[str, float]:
        """Requested values by name, in their units."""
        return self.named(self.z)

    def named(self, z: Array) -> dict[str, float]:
        """Return the requested values by name, in their units.

        Parameters
        ----------
        z : Array
            (n,) unknowns, each in its scale.

        Returns
        -------
        dict[str, float]
            By name.
        """
        return _named(self.unknowns, z)


def _named(unknowns: Sequence[Unknown], z: Array) -> dict[str, float]:
    return {one.name: float(value * one.scale) for one, value in zip(unknowns, z, strict=True) if one.asked}


def fit(
    recordings: Sequence[Recording], asked: Sequence[Unknown], settings: Settings, watch: Watch | None = None,
) -> Solution:  # fmt: skip
    """Return the values with which the model's predictions are nearest to the measurements.

    Ctrl-C and the end of the watch's wall time end the search with the best values so far, and a note.

    Parameters
    ----------
    recordings : Sequence[Recording]
        Recordings of one robot.
    asked : Sequence[Unknown]
        Requested unknowns.
    settings : Settings
        Settings of the fit.
    watch : Watch | None, optional
        Progress and wall time.

    Returns
    -------
    Solution
        Values, with all that their quality is computed from.

    Raises
    ------
    ModelError
        The recordings do not determine the requested values, or the model fails at the start.
    """
    watch = watch or Watch()
    for recording in recordings:
        refuse_still(recording)
    noise, usual = _noise(recordings)
    recordings = [_thinned(one, settings.samples) for one in recordings]
    segments = _segments(recordings, settings)
    sigma = {name: np.maximum(np.nan_to_num(value), usual[name]) for name, value in noise.items()}
    cut = blocks(recordings, segments, sigma)
    _refuse_uncovered(cut)
    unknowns = [*asked, *sensor_errors(recordings, [one.name for one in asked])]
    unknowns += _first_states(recordings, segments, settings)
    with Predictor(recordings, segments, settings.threads) as predictor:
        residuals = Residuals(predictor, cut, unknowns, watch.progress)
        search = _Search(residuals, sigma, noise, usual, watch)
        first = np.array([one.first / one.scale for one in unknowns])
        others: list[tuple[Array, float]] = []
        note = ""
        try:
            search.solve(first)
            chance = np.random.default_rng(settings.seed)
            more = settings.others if settings.others is not None else 0 if search.explained() else 1
            for number in range(more):
                watch.progress(f"starting point {number + 2} of {more + 1}")
                others += search.elsewhere(_elsewhere(unknowns, first, chance))
            if others and min(its for _, its in others) < search.cost * (1.0 - 1e-3):
                search.solve(min(others, key=lambda one: one[1])[0])
        except (KeyboardInterrupt, OutOfTimeError) as ended:
            if search.slope is None:
                if isinstance(ended, KeyboardInterrupt):
                    raise
                raise ModelError(
                    f"--budget {watch.budget.seconds:g}: the time was over before the first step; give a "
                    "longer budget, fewer samples, a longer --dt or fewer --fit"
                ) from None
            why = "Ctrl-C" if isinstance(ended, KeyboardInterrupt) else f"the time budget of {watch.budget.seconds:g} s"
            note = f"{why} ended the search after {watch.count} iterations: these are the best values so far"
            watch.budget = Budget()
            residuals.progress = watch.show
            search.take_best()
        z = search.z
        return Solution(
            residuals.unknowns, z, search.cost, residuals, search.slope_now(), residuals.value(z), noise, sigma, others,
            list(recordings), segments, note,
        )  # fmt: skip


class _Search:
    """Rounds of descent with the weights between them, and the best values.

    `sigma` is written; the residuals' blocks share it.
    """

    def __init__(
        self, residuals: Residuals, sigma: dict[str, Array], noise: dict[str, Array], usual: dict[str, Array],
        watch: Watch,
    ) -> None:  # fmt: skip
        self.residuals, self.sigma, self.noise, self.usual, self.watch = residuals, sigma, noise, usual, watch
        self.z = np.zeros(0)
        self.cost = np.inf
        self.slope: Array | None = None
        self._weights = residuals.weights()

    def solve(self, z: Array) -> None:
        """Search for values from z on; weights are computed anew after each descent."""
        residuals, watch = self.residuals, self.watch
        _anchor(residuals, z)
        _refuse_failing(residuals, z)
        for number in range(MAX_ROUNDS):
            if number and len(residuals.predictor.segments) > len(residuals.predictor.recordings):
                _anchor(residuals, z)
                self.slope = None
            watch.begin()
            residuals.central = number > 0
            slope = self.slope_now() if number and self.slope is not None else None
            if slope is None:
                slope = residuals.slope(np.clip(z, *bounds_of(residuals.unknowns)))
                self._take(z, np.inf, slope)
            if not number:
                _refuse_deaf(residuals, slope)
            z, cost, slope = self._descend(z, slope, rough=number == 0)
            self._take(z, cost, slope)
            change = _weigh(residuals, z, self.sigma, self.noise, self.usual)
            anchored = len(residuals.predictor.segments) > len(residuals.predictor.recordings)
            if number and change < SETTLED and not anchored:
                break
        self.cost = float(np.sum(residuals.value(z) ** 2))

    def elsewhere(self, z: Array) -> list[tuple[Array, float]]:
        """Return values and their cost from another starting point; nothing where the model fails there."""
        try:
            found, cost, _ = self._descend(z, None, rough=False)
        except ModelError:
            return []
        return [(found, cost)]

    def _descend(self, z: Array, slope: Array | None, *, rough: bool) -> tuple[Array, float, Array]:
        residuals = self.residuals
        residuals.central = not rough
        return descend(
            residuals, z, self.watch, rough=rough, slope=slope, values_of=partial(_named, residuals.unknowns)
        )  # fmt: skip

    def _take(self, z: Array, cost: float, slope: Array) -> None:
        self.z, self.cost, self.slope, self._weights = z, cost, slope, self.residuals.weights()

    def slope_now(self) -> Array:
        """Return the last derivatives with the present weights."""
        assert self.slope is not None
        return self.slope * (self.residuals.weights() / self._weights)[:, None]

    def take_best(self) -> None:
        """Use the best values of the watch, after the search was ended."""
        if self.watch.best is not None:
            self.z = self.watch.best
        if self.watch.slope is not None:
            self.slope, self._weights = self.watch.slope, self.residuals.weights()
        self.cost = float(np.sum(self.residuals.value(self.z) ** 2))

    def explained(self) -> bool:
        """Return whether the errors of all channels are as small as their noise."""
        residuals = self.residuals
        predicted = residuals.predicted(self.z)
        for block in residuals.blocks:
            off = residuals.differences(block, predicted, self.z)[block.fitted]
            noise = block.series.noise if block.series.feature is not None else self.noise[block.channel]
            least = np.maximum(np.nan_to_num(noise), self.usual[block.channel])
            if (np.sqrt(mean_square(off)) > EXPLAINED * least).any():
                return False
        return True


def _first_states(recordings: Sequence[Recording], segments: Sequence[Segment], settings: Settings) -> list[Unknown]:
    """Return the unknown coordinates of the segments' first states."""
    wanted = bool(settings.free or settings.pinned)
    found: dict[int, FirstState] = {}
    of: dict[int, FirstState] = {}
    for k, one in enumerate(segments):
        if one.known and not wanted:
            continue
        if one.recording not in of:
            recording = recordings[one.recording]
            of[one.recording] = free_start(recording.build(), recording.commands)
        found[k] = replace(of[one.recording], known=one.known)
    return starts(found, settings.free, settings.pinned)


def _noise(recordings: Sequence[Recording]) -> tuple[dict[str, Array], dict[str, Array]]:
    """Return the noise of each channel over all recordings, and the least noise that counts."""
    given: dict[str, list[Array]] = {}
    sizes: dict[str, list[Array]] = {}
    for recording in recordings:
        for one in recording.series:
            given.setdefault(one.channel, []).append(noise_of(one))
            size = float(np.sqrt(np.mean(spread(one.values) ** 2)))
            sizes.setdefault(one.channel, []).append(np.full(one.width, max(size, 1e-9)))
    noise = {name: np.sqrt(np.mean(np.square(rows), axis=0)) for name, rows in given.items()}
    return noise, {name: MIN_NOISE_SHARE * np.mean(rows, axis=0) for name, rows in sizes.items()}


def _thinned(recording: Recording, most: int) -> Recording:
    return replace(recording, series=tuple(thinned(one, most) for one in recording.series))


def _segments(recordings: Sequence[Recording], settings: Settings) -> list[Segment]:
    found = []
    for number, one in enumerate(recordings):
        steps = len(one.commands)
        lead = round(settings.lead_in / one.dt)
        if lead >= steps:
            raise ModelError(f"{one.name}: --lead-in {settings.lead_in:g}: expected less than {one.duration:g} s")
        seen = lead + max(1, round((1.0 - settings.hold_out) * (steps - lead)))
        edges = np.linspace(0, seen, settings.segments + 1).round().astype(int)
        if settings.segments > 1 and any(series.feature is not None for series in one.series):
            raise ModelError(
                f"{one.name}: --segments: expected 1 with --objective, which needs whole recordings, got "
                f"{settings.segments}"
            )
        if not (np.diff(edges) > 1).all():
            raise ModelError(
                f"{one.name}: --segments {settings.segments}: expected at least two steps in each segment; "
                "give fewer segments"
            )
        if (settings.segments > 1 or not one.known) and not can_be_placed(one.build()):
            raise ModelError(
                f"{one.name}: robot '{one.robot}' cannot start in an arbitrary state: expected a log from its "
                "reset on, and --segments 1"
            )
        for k, (first, last) in enumerate(pairwise(edges)):
            final = k == settings.segments - 1
            found.append(Segment(number, int(first), steps if final else int(last), int(last - first),
                                 one.known and k == 0, counts_from=lead if k == 0 else 0))  # fmt: skip
    return found


def _refuse_uncovered(cut: Sequence[Block]) -> None:
    if not any(np.isfinite(block.values[block.fitted]).sum() > 1 or block.series.feature is not None for block in cut):
        raise ModelError("--hold-out: the fitted part has no samples; give a smaller value")


def _anchor(residuals: Residuals, z: Array) -> None:
    if any(not one.known for one in residuals.predictor.segments):
        residuals.predictor.anchor(residuals.case(z).values)
        residuals.forget()


def _refuse_failing(residuals: Residuals, z: Array) -> None:
    """Raise ModelError where the model fails with the initial values; the message has recording and reason."""
    at = np.clip(z, *bounds_of(residuals.unknowns))
    if (np.abs(residuals.value(at)) >= FAILED_RESIDUAL).mean() <= 0.5:
        return
    reasons = residuals.predictor.failures(residuals.case(at)) or ["its outputs are not finite"]
    raise ModelError(
        f"the model fails at the start values of the search: {reasons[0]}; give others with --set or --prior, "
        "or a shorter --dt"
    )


def _weigh(
    residuals: Residuals, z: Array, sigma: dict[str, Array], noise: dict[str, Array], usual: dict[str, Array]
) -> float:
    """Weight channels that fit worse than their noise by their own errors; return the largest relative change."""
    predicted = residuals.predicted(z)
    off: dict[str, list[Array]] = {}
    for block in residuals.blocks:
        if block.series.feature is None:  # of an objective the noise is given
            off.setdefault(block.channel, []).append(residuals.differences(block, predicted, z)[block.fitted])
    change = 0.0
    for name, rows in off.items():
        rms = np.sqrt(mean_square(np.concatenate(rows)))
        new = np.maximum(np.maximum(rms, np.nan_to_num(noise[name])), usual[name])
        change = max(change, float(np.abs(new / sigma[name] - 1.0).max()))
        sigma[name][:] = new
    return change


def _refuse_deaf(residuals: Residuals, slope: Array) -> None:
    """Raise ModelError where no requested value changes any measurement."""
    seen = np.linalg.norm(slope[: residuals.size], axis=0)
    asked = [k for k, one in enumerate(residuals.unknowns) if one.asked]
    if all(seen[k] < DEAF for k in asked):
        names = ", ".join(residuals.unknowns[k].name for k in asked)
        raise ModelError(
            f"these recordings do not determine {names}: the measured outputs do not depend on them; record a "
            "run that excites them, or check that the model uses them (rtmms list ROBOT)"
        )


def _elsewhere(unknowns: Sequence[Unknown], first: Array, chance: np.random.Generator) -> Array:
    """Return another point: requested unknowns anywhere within narrow bounds, else within a third of their start."""
    z = first.copy()
    for k, one in enumerate(unknowns):
        share = chance.uniform()
        if not one.asked or one.kind is Kind.DELAY:
            continue
        if np.isfinite([one.low, one.high]).all() and one.high - one.low < 4.0 * one.scale:
            z[k] = (one.low + share * (one.high - one.low)) / one.scale
        elif first[k]:
            z[k] = first[k] * 1.4 ** (2.0 * share - 1.0)
    return z
