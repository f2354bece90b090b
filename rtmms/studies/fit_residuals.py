"""Residuals of a model: predictions less measurements, in units of the noise, and their derivatives by all unknowns.

`rtmms.studies.fitting` minimises them; `evidence` judges a fit by the same blocks of samples.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from rtmms.base.errors import ModelError
from rtmms.studies.fit_features import aligning_delay
from rtmms.studies.fit_prediction import Case, Predictor, Segment
from rtmms.studies.fit_unknowns import ALL_CHANNELS, OFFSETS, Kind, Unknown
from rtmms.studies.recordings import Recording, Series

Array = npt.NDArray[np.float64]

STEP = 1e-4
"""Step of an unknown for differences, in its scale; it exceeds the tolerance of iterations within a plant, such as the
moth's search for its hovering orbit.
"""
START_STEP = 1e-6
"""Step of a first state for differences. The only error of its slope is rounding, some 1e-13 of a number, so one-sided
differences have six correct digits at half the cost of central ones.
"""
ROUGH_SHARE = 0.3
"""Share of the first difference of outputs at which their second difference makes a derivative meaningless. Where the
model is smooth, the share is about STEP.
"""
MIN_ROUGH = 1e-2
"""Change of a residual by STEP, in deviations (root of the sum of squares), below which roughness has no effect."""
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
    result = []
    for k, segment in enumerate(segments):
        recording = recordings[segment.recording]
        begin, end = segment.first * recording.dt, segment.last * recording.dt
        fitted_end_s = (segment.first + segment.fitted) * recording.dt
        for series in recording.series:
            earliest = max(begin + UNSEEN * recording.dt, segment.counts_from * recording.dt)
            inside = (series.time > earliest) & (series.time <= end + 1e-9)
            if inside.any():
                time = series.time[inside]
                deviation = sigma[series.channel] if series.feature is None else series.noise
                result.append(Block(k, series, time - begin, series.values[inside], deviation,
                                   (time <= fitted_end_s + 1e-9) | (series.feature is not None)))  # fmt: skip
    return result


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
    roughness : dict of int to float
        By unknown of the model: second difference of the residuals over the first one, at the last central slope;
        infinite where the model fails on one side. About STEP where the model is smooth.
    """

    def __init__(
        self, predictor: Predictor, block_list: list[Block], unknowns: Sequence[Unknown],
        progress: Callable[[str], None] = lambda _: None,
    ) -> None:  # fmt: skip
        self.predictor, self.blocks, self.unknowns, self.progress = predictor, block_list, list(unknowns), progress
        self.scale = np.array([item.scale for item in unknowns])
        self.priors = [(k, *item.prior) for k, item in enumerate(unknowns) if item.prior is not None]
        self._width = max(len(OFFSETS), 1 + max((item.coordinate for item in unknowns), default=0))
        self.central = True
        self.roughness: dict[int, float] = {}
        self._at: Array | None = None
        self._predicted: list[dict[str, Array]] = []
        self._of: dict[str, list[tuple[int, Unknown]]] = {}
        for k, unknown in enumerate(unknowns):
            if unknown.channel:
                self._of.setdefault(unknown.channel, []).append((k, unknown))
        steps, self.sources = 0, []
        for block in block_list:
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
        for unknown, value in zip(self.unknowns, z * self.scale, strict=True):
            if unknown.kind is Kind.MODEL:
                for parameters in (
                    values if unknown.recording < 0 else values[unknown.recording : unknown.recording + 1]
                ):
                    parameters[unknown.key] = float(value)
            elif unknown.kind is Kind.START:
                offsets[unknown.segment, unknown.coordinate] = value
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
            self._predicted, self._at = self._aligned(self.predictor.predict(self.case(z))), z.copy()
        return self._predicted

    def _aligned(self, predicted: list[dict[str, Array]]) -> list[dict[str, Array]]:
        """Shift harmonics without a common clock to the time of each recording at which they fit best.

        The delay is eliminated: residuals are functions of the other unknowns alone, and their slopes are those of the
        residuals at the best delay (variable projection).
        """
        for segment in range(len(self.predictor.segments)):
            clocked_blocks = [
                (block, feature) for block in self.blocks
                if block.segment == segment and (feature := block.series.feature) is not None and feature.free_clock
            ]  # fmt: skip
            pairs = []
            for block, feature in clocked_blocks:
                model, measured = predicted[segment][block.channel][0], block.values[0]
                rate = 2.0 * np.pi * feature.frequency_hz * feature.objective.order
                pairs.append((complex(*model), complex(*measured), float(block.sigma[0]), rate))
            if not pairs or not np.isfinite([pair[0] for pair in pairs]).all():
                continue
            delay = aligning_delay(pairs)
            for (block, _), (model, _, _, rate) in zip(clocked_blocks, pairs, strict=True):
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
        unknowns = [(k, entry) for k, entry in self._of.get(block.channel, []) if entry.recording in (-1, number)]
        if block.series.feature is None:
            unknowns += [(k, entry) for k, entry in self._of.get(ALL_CHANNELS, []) if entry.recording in (-1, number)]
        delay = sum((z[k] * entry.scale for k, entry in unknowns if entry.kind is Kind.DELAY), 0.0)
        rows = predicted[block.segment][block.channel]
        at = np.clip((block.time - delay) / recording.dt - 1.0, 0.0, len(rows) - 1.0)
        before = np.minimum(at.astype(np.int64), max(len(rows) - 2, 0))
        share = (at - before)[:, None]
        y = rows[before] if len(rows) == 1 else (1.0 - share) * rows[before] + share * rows[before + 1]
        if block.channel == "quaternion":
            y = y * np.where(np.nansum(y * block.values, axis=1) < 0.0, -1.0, 1.0)[:, None]
        plain, y = y, y.copy()
        for k, item in unknowns:
            value = z[k] * item.scale
            if item.kind is Kind.SCALE:
                part = slice(None) if item.component < 0 else item.component
                y[:, part] += value * plain[:, part]
            elif item.kind is Kind.SKEW:  # the turn of the axes, to first order
                a, b = (item.component + 1) % 3, (item.component + 2) % 3
                y[:, a] += value * plain[:, b]
                y[:, b] -= value * plain[:, a]
        for k, item in unknowns:
            if item.kind is Kind.GAIN:
                y *= z[k] * item.scale
        for k, item in unknowns:
            if item.kind is Kind.BIAS:
                y[:, item.component] += z[k] * item.scale
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
        maximum: float = FAILED_RESIDUAL,
    ) -> Array:
        """Return the residuals (size,) of the fit, 0 where there was no measurement; blocks not in `only` stay 0.

        `maximum` is the limit of a residual, in deviations. Differences have none: in a recording without noise a small
        step moves an output by more than FAILED_RESIDUAL deviations, and the slope of two residuals at the limit is 0.
        """
        out = np.zeros(self.size)
        for k in range(len(self.blocks)) if only is None else only:
            block = self.blocks[k]
            off = self.differences(block, predicted, z)[block.fitted]
            measured = np.isfinite(block.values[block.fitted])
            off = np.where(
                measured,
                np.clip(np.where(np.isfinite(off), off / block.sigma, FAILED_RESIDUAL), -maximum, maximum),
                0.0,
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
        if self.central:
            self.roughness = {}
        for group in groups:
            up, down = z.copy(), z.copy()
            of_start = self.unknowns[group[0]].kind is Kind.START
            step = START_STEP if of_start else STEP
            up[group], down[group] = z[group] + step, z[group] - step
            for k in group:  # within bounds
                unknown = self.unknowns[k]
                up[k] = min(up[k], unknown.high / unknown.scale)
                down[k] = max(down[k], unknown.low / unknown.scale)
            if of_start or not self.central:
                up, down = (up, z) if (up[group] > z[group]).all() else (z, down)
            cases += [self.case(point) for point in (up, down) if point is not z]
            steps.append((up, down))
        answers = self.predictor.many(cases)
        for number, (group, (up, down)) in enumerate(zip(groups, steps, strict=True)):
            self.progress(f"derivative {number + 1} of {len(groups)}")
            ends = steps[number]
            central = ends[0] is not z and ends[1] is not z
            high, low = (predicted if point is z else self._aligned(next(answers)) for point in ends)
            if not _sound(high):  # one-sided where the model fails on the other side
                high, up = predicted, z
            if not _sound(low):
                low, down = predicted, z
            if up is z and down is z:
                other = 2.0 * z - np.where(ends[0] == z, ends[1], ends[0])
                low, down = self._aligned(self.predictor.predict(self.case(other))), other
                if not _sound(low):
                    self._refuse_edge(group, ends)
            for k in group:
                over = up[k] - down[k]
                if over <= 0.0:
                    continue
                only = self._blocks_of(self.unknowns[k])
                above, below = self._data(high, z, only, np.inf), self._data(low, z, only, np.inf)
                out[: self.size, k] = (above - below) / over
                if central:
                    one_sided = up is z or down is z
                    self.roughness[k] = np.inf if one_sided else self._rough(above, below, predicted, z, only)
        for k, unknown in enumerate(self.unknowns):
            if not unknown.channel:
                continue
            up, down = z.copy(), z.copy()
            up[k], down[k] = z[k] + STEP, z[k] - STEP
            only = [
                j
                for j, block in enumerate(self.blocks)
                if unknown.channel in (block.channel, ALL_CHANNELS)
                and unknown.recording in (-1, self._recording_of(block))
            ]
            moved = self._data(predicted, up, only, np.inf) - self._data(predicted, down, only, np.inf)
            out[: self.size, k] = moved / (2.0 * STEP)
        return out

    def _rough(
        self, above: Array, below: Array, predicted: Sequence[dict[str, Array]], z: Array, only: Iterable[int] | None
    ) -> float:
        """Return the second difference of residuals over the first one; 0 where both are small."""
        first = float(np.linalg.norm(above - below))
        second = float(np.linalg.norm(above - 2.0 * self._data(predicted, z, only, np.inf) + below))
        return second / first if second > MIN_ROUGH else 0.0

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
        result = False
        for k, unknown in enumerate(self.unknowns):
            if unknown.kind is not Kind.MODEL or beyond[k] == z[k]:
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
            end = float(good * unknown.scale)
            below = beyond[k] < z[k]
            self.unknowns[k] = replace(
                unknown, low=end if below else unknown.low, high=unknown.high if below else end, end=why
            )  # fmt: skip
            result = True
        return result

    def _recording_of(self, block: Block) -> int:
        return self.predictor.segments[block.segment].recording

    def _blocks_of(self, unknown: Unknown) -> list[int] | None:
        """Return the indices of the blocks that an unknown of the model can move; None for all."""
        if unknown.kind is Kind.START:
            return [j for j, block in enumerate(self.blocks) if block.segment == unknown.segment]
        if unknown.recording >= 0:
            return [j for j, block in enumerate(self.blocks) if self._recording_of(block) == unknown.recording]
        return None

    def _refuse_edge(self, group: list[int], ends: tuple[Array, Array]) -> None:
        """Raise ModelError where the model fails on both sides of a value."""
        item = self.unknowns[group[0]]
        reasons = self.predictor.failures(self.case(ends[0]))
        why = f" ({reasons[0]})" if reasons else ""
        raise ModelError(
            f"the model fails near {item.name} = {ends[0][group[0]] * item.scale:g}{why}; give bounds without "
            f"this value: --bounds {item.key}=LOW:HIGH"
        )

    def _moved_together(self) -> list[list[int]]:
        """Return groups of unknowns that one rollout can vary at once, as they move different segments.

        They are the same coordinate of all first states, and the values of a parameter that each recording has for
        itself.
        """
        groups: dict[Any, list[int]] = {}
        for k, unknown in enumerate(self.unknowns):
            if unknown.kind is Kind.MODEL:
                groups.setdefault(k if unknown.recording < 0 else unknown.key, []).append(k)
            elif unknown.kind is Kind.START:
                groups.setdefault((unknown.kind, unknown.coordinate), []).append(k)
        return list(groups.values())


def _sound(predicted: Sequence[dict[str, Array]]) -> bool:
    """Return whether the model ran to the end of all segments."""
    return all(bool(np.isfinite(rows[-1]).all()) for part in predicted for rows in part.values())
