"""Residuals of all channels and segments in units of their noise, and their slopes by all unknowns."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from rtmms.errors import ModelError
from rtmms.identification.prediction import Case, Predictor, Segment
from rtmms.identification.recording import Recording, Series
from rtmms.identification.unknowns import Kind, Unknown

Array = npt.NDArray[np.float64]

STEP = 1e-4
"""Of an unknown, in what counts as one of it: central differences."""
FAR = 1e8
"""A residual, in deviations, where the model fails."""
UNSEEN = 1.5
"""Steps at a segment's beginning whose samples are left out: what is measured over a step has none before."""


@dataclass
class Block:
    """The samples of one channel in one segment.

    time   (k,) s from the segment's start;  values  (k, w);  sigma  (w,);  fitted  (k,) seen by the fit
    """

    segment: int
    series: Series
    time: Array
    values: Array
    sigma: Array
    fitted: npt.NDArray[np.bool_]

    @property
    def channel(self) -> str:
        return self.series.channel


def blocks(recordings: Sequence[Recording], segments: Sequence[Segment], sigma: dict[str, Array]) -> list[Block]:
    """The samples, cut into segments."""
    found = []
    for k, one in enumerate(segments):
        recording = recordings[one.recording]
        begin, end = one.first * recording.dt, one.last * recording.dt
        seen = (one.first + one.fitted) * recording.dt
        for series in recording.series:
            inside = (series.time > begin + UNSEEN * recording.dt) & (series.time <= end + 1e-9)
            if inside.any():
                time = series.time[inside]
                found.append(Block(k, series, time - begin, series.values[inside], sigma[series.channel],
                                   time <= seen + 1e-9))  # fmt: skip
    return found


class Residuals:
    """Of unknowns z, each in what counts as one of it (`Unknown.scale`).

    told   the last prediction is kept: value and slope are asked for at the same point
    """

    def __init__(
        self, predictor: Predictor, found: list[Block], unknowns: Sequence[Unknown],
        progress: Callable[[str], None] = lambda _: None,
    ) -> None:  # fmt: skip
        self.predictor, self.blocks, self.unknowns, self.progress = predictor, found, list(unknowns), progress
        self.scale = np.array([one.scale for one in unknowns])
        self.priors = [(k, *one.prior) for k, one in enumerate(unknowns) if one.prior is not None]
        self._width = 1 + max((one.coordinate for one in unknowns if one.kind is Kind.START), default=0)
        self._at: Array | None = None
        self._told: list[dict[str, Array]] = []
        self._of: dict[str, list[tuple[int, Unknown]]] = {}
        for k, one in enumerate(unknowns):
            if one.channel:
                self._of.setdefault(one.channel, []).append((k, one))
        steps, self.sources = 0, []
        for block in found:
            self.sources.append(slice(steps, steps + int(block.fitted.sum()) * block.values.shape[1]))
            steps = self.sources[-1].stop
        self.size = steps

    def forget(self) -> None:
        """The segments begin elsewhere now."""
        self._at = None

    def case(self, z: Array) -> Case:
        values, offsets = {}, np.zeros((len(self.predictor.segments), self._width))
        for one, value in zip(self.unknowns, z * self.scale, strict=True):
            if one.kind is Kind.MODEL:
                values[one.name] = float(value)
            elif one.kind is Kind.START:
                offsets[one.segment, one.coordinate] = value
        return Case(values, offsets)

    def told(self, z: Array) -> list[dict[str, Array]]:
        if self._at is None or not np.array_equal(self._at, z):
            self._told, self._at = self.predictor.one(self.case(z)), z.copy()
        return self._told

    def expected(self, block: Block, told: Sequence[dict[str, Array]], z: Array) -> Array:
        """(k, w) what the sensor would say: interpolated, with its delay, gain, and errors that last."""
        number = self.predictor.segments[block.segment].recording
        recording = self.predictor.recordings[number]
        own = [(k, one) for k, one in self._of.get(block.channel, []) if one.recording in (-1, number)]
        delay = sum((z[k] * one.scale for k, one in own if one.kind is Kind.DELAY), 0.0)
        rows = told[block.segment][block.channel]
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

    def differences(self, block: Block, told: Sequence[dict[str, Array]], z: Array) -> Array:
        """(k, w) expected - measured, in the channel's unit; nan where nothing was measured."""
        return self.expected(block, told, z) - block.values

    def _data(self, told: Sequence[dict[str, Array]], z: Array, only: Iterable[int] | None = None) -> Array:
        """(size,) what the fit sees, 0 where nothing was measured; blocks not in `only` stay 0."""
        out = np.zeros(self.size)
        for k in range(len(self.blocks)) if only is None else only:
            block = self.blocks[k]
            off = self.differences(block, told, z)[block.fitted]
            measured = np.isfinite(block.values[block.fitted])
            off = np.where(measured, np.clip(np.where(np.isfinite(off), off / block.sigma, FAR), -FAR, FAR), 0.0)
            out[self.sources[k]] = off.ravel()
        return out

    def value(self, z: Array) -> Array:
        """(size + priors,) in deviations."""
        tail = [(z[k] * self.scale[k] - mean) / deviation for k, mean, deviation in self.priors]
        return np.concatenate([self._data(self.told(z), z), tail])

    def slope(self, z: Array) -> Array:
        """(size + priors, unknowns). ModelError where the model fails beside z."""
        out = np.zeros((self.size + len(self.priors), len(z)))
        for row, (k, _, deviation) in enumerate(self.priors):
            out[self.size + row, k] = self.scale[k] / deviation
        told = self.told(z)
        groups = self._moved_together()
        cases, steps = [], []
        for group in groups:
            up, down = z.copy(), z.copy()
            up[group], down[group] = z[group] + STEP, z[group] - STEP
            for k in group:  # within bounds
                one = self.unknowns[k]
                up[k] = min(up[k], one.high / one.scale)
                down[k] = max(down[k], one.low / one.scale)
            cases += [self.case(up), self.case(down)]
            steps.append((up, down))
        answers = self.predictor.many(cases)
        for number, (group, (up, down)) in enumerate(zip(groups, steps, strict=True)):
            self.progress(f"slope {number + 1} of {len(groups)}")
            high, low = next(answers), next(answers)
            if not (_sound(high) and _sound(low)):
                bad = self.unknowns[group[0]]
                raise ModelError(
                    f"the model fails near {bad.name} = {z[group[0]] * bad.scale:g}: give --bounds within which it runs"
                )
            for k in group:
                one = self.unknowns[k]
                only = None if one.kind is Kind.MODEL else [
                    j for j, block in enumerate(self.blocks) if block.segment == one.segment
                ]  # fmt: skip
                over = up[k] - down[k]
                out[: self.size, k] = (self._data(high, z, only) - self._data(low, z, only)) / over
        for k, one in enumerate(self.unknowns):
            if not one.channel:
                continue
            up, down = z.copy(), z.copy()
            up[k], down[k] = z[k] + STEP, z[k] - STEP
            only = [j for j, block in enumerate(self.blocks) if block.channel == one.channel]
            out[: self.size, k] = (self._data(told, up, only) - self._data(told, down, only)) / (2.0 * STEP)
        return out

    def _moved_together(self) -> list[list[int]]:
        """Unknowns that one rollout can vary at once: the same coordinate of all segments' starts."""
        groups = [[k] for k, one in enumerate(self.unknowns) if one.kind is Kind.MODEL]
        own: dict[int, list[int]] = {}
        for k, one in enumerate(self.unknowns):
            if one.kind is Kind.START:
                own.setdefault(one.coordinate, []).append(k)
        groups += own.values()
        return groups


def _sound(told: Sequence[dict[str, Array]]) -> bool:
    """Whether the model ran to the end of all segments."""
    return all(bool(np.isfinite(rows[-1]).all()) for part in told for rows in part.values())
