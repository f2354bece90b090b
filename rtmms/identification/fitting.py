"""The fit: residuals in units of their noise, and Gauss-Newton with bounds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from rtmms.base.errors import ModelError
from rtmms.identification.prediction import Case, Predictor, Segment, can_be_placed, free_start
from rtmms.identification.recording import Recording, Series, mean_square, noise_of, refuse_still, spread, thinned
from rtmms.identification.unknowns import Kind, Unknown, lasting, starts

Array = npt.NDArray[np.float64]


# Residuals of all channels and segments in units of their noise, and their slopes by all unknowns.


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


# The fit: Gauss-Newton with bounds, channels weighted by what their noise turns out to be.


ROUNDS = 3
"""At most: weights, and where segments begin, are found anew before each."""
SETTLED = 0.05
"""Of a weight: a change below that needs no further round."""
CLOSE = 1e-7
EVALUATIONS = 40
LEAST_NOISE = 1e-5
"""Of a channel's spread: logs without noise have no weights beyond that."""
MOST_SAMPLES = 10_000
DEAF = 1.0
"""Deviations that all samples together must move by, for one of an unknown, if the log is to tell anything of it."""


@dataclass(frozen=True)
class Settings:
    """hold_out share at each recording's end that the fit does not see;  segments  of each recording;  threads;
    others  further points to start from;  seed  of those points;  samples  at most, of a channel in a recording"""

    hold_out: float = 0.3
    segments: int = 1
    threads: int = 1
    others: int = 1
    seed: int = 0
    samples: int = MOST_SAMPLES


@dataclass
class Solution:
    """What was found.

    z          (n,) in what counts as one of each unknown;  cost  sum of squares, with priors
    residuals  at it;  jacobian  (rows, n) with the priors' rows, residual (rows,)
    noise      of each channel (w,), as told or as seen in the values;  sigma  the weights that it came to
    others     values from other starting points, with their cost
    first      where each unknown began
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

    @property
    def asked(self) -> list[int]:
        return [k for k, one in enumerate(self.unknowns) if one.asked]

    @property
    def values(self) -> dict[str, float]:
        return {self.unknowns[k].name: float(self.z[k] * self.unknowns[k].scale) for k in self.asked}


def fit(
    recordings: Sequence[Recording], asked: Sequence[Unknown], settings: Settings,
    progress: Callable[[str], None] = lambda _: None,
) -> Solution:  # fmt: skip
    """The values under which the model's predictions are nearest to what was measured.

    ModelError for recordings that tell nothing of what is asked, and for a model that fails at the start.
    """
    for recording in recordings:
        refuse_still(recording)
    noise, usual = _noise(recordings)
    recordings = [_thinned(one, settings.samples) for one in recordings]
    segments = _segments(recordings, settings)
    sigma = {name: np.maximum(np.nan_to_num(value), usual[name]) for name, value in noise.items()}
    cut = blocks(recordings, segments, sigma)
    _refuse_uncovered(cut)
    unknowns = [*asked, *lasting(recordings, [one.name for one in asked])]
    unknowns += starts({
        k: free_start(recordings[one.recording].build()) for k, one in enumerate(segments) if not one.known
    })  # fmt: skip
    with Predictor(recordings, segments, settings.threads) as predictor:
        residuals = Residuals(predictor, cut, unknowns, progress)
        first = np.array([one.first / one.scale for one in unknowns])
        z, cost = _solve(residuals, first, sigma, noise, usual, progress)
        others = []
        chance = np.random.default_rng(settings.seed)
        for number in range(settings.others):
            progress(f"starting point {number + 2} of {settings.others + 1}")
            start = _elsewhere(unknowns, first, chance)
            try:
                _anchor(residuals, start)
                found, its = _descend(residuals, start, progress)
            except ModelError:
                continue  # the model fails there
            others.append((found, its))
        if others and min(its for _, its in others) < cost * (1.0 - 1e-3):
            z, cost = _solve(residuals, min(others, key=lambda one: one[1])[0], sigma, noise, usual, progress)
        _anchor(residuals, z)
        return Solution(
            unknowns, z, cost, residuals, residuals.slope(z), residuals.value(z), noise, sigma, others,
            list(recordings), segments,
        )  # fmt: skip


def _noise(recordings: Sequence[Recording]) -> tuple[dict[str, Array], dict[str, Array]]:
    """Of each channel its noise, over all recordings, and the least that counts."""
    told: dict[str, list[Array]] = {}
    sizes: dict[str, list[Array]] = {}
    for recording in recordings:
        for one in recording.series:
            told.setdefault(one.channel, []).append(noise_of(one))
            size = float(np.sqrt(np.mean(spread(one.values) ** 2)))
            sizes.setdefault(one.channel, []).append(np.full(one.width, max(size, 1e-9)))
    noise = {name: np.sqrt(np.mean(np.square(rows), axis=0)) for name, rows in told.items()}
    return noise, {name: LEAST_NOISE * np.mean(rows, axis=0) for name, rows in sizes.items()}


def _thinned(recording: Recording, most: int) -> Recording:
    return replace(recording, series=tuple(thinned(one, most) for one in recording.series))


def _segments(recordings: Sequence[Recording], settings: Settings) -> list[Segment]:
    found = []
    for number, one in enumerate(recordings):
        steps = len(one.commands)
        seen = max(1, round((1.0 - settings.hold_out) * steps))
        edges = np.linspace(0, seen, settings.segments + 1).round().astype(int)
        if not (np.diff(edges) > 1).all():
            raise ModelError(f"{one.name}: --segments {settings.segments}: expected at most a segment for two steps")
        if (settings.segments > 1 or not one.known) and not can_be_placed(one.build()):
            raise ModelError(
                f"{one.name}: robot '{one.robot}' cannot be put into another pose, so its state is known only after a "
                "reset: expected a log from its reset on, and --segments 1"
            )
        for k, (first, last) in enumerate(pairwise(edges)):
            final = k == settings.segments - 1
            found.append(Segment(number, int(first), steps if final else int(last), int(last - first),
                                 one.known and k == 0))  # fmt: skip
    return found


def _refuse_uncovered(cut: Sequence[Block]) -> None:
    if not any(np.isfinite(block.values[block.fitted]).sum() > 1 for block in cut):
        raise ModelError("expected samples in the part that is fitted, got none: take a smaller --hold-out")


def _anchor(residuals: Residuals, z: Array) -> None:
    if any(not one.known for one in residuals.predictor.segments):
        residuals.predictor.anchor(residuals.case(z).values)
        residuals.forget()


def _solve(
    residuals: Residuals, z: Array, sigma: dict[str, Array], noise: dict[str, Array], usual: dict[str, Array],
    progress: Callable[[str], None],
) -> tuple[Array, float]:  # fmt: skip
    """Rounds of descent; sigma is written."""
    _anchor(residuals, z)
    _refuse_deaf(residuals, z)
    for number in range(ROUNDS):
        progress(f"round {number + 1}")
        if number:
            _anchor(residuals, z)
        z, _ = _descend(residuals, z, progress)
        change = _weigh(residuals, z, sigma, noise, usual)
        if change < SETTLED and not any(not one.known for one in residuals.predictor.segments):
            break
    return z, float(np.sum(residuals.value(z) ** 2))


def _descend(residuals: Residuals, z: Array, progress: Callable[[str], None]) -> tuple[Array, float]:

    low = np.array([one.low / one.scale for one in residuals.unknowns])
    high = np.array([one.high / one.scale for one in residuals.unknowns])
    inside = np.clip(z, low, high)
    value = residuals.value(inside)
    if (np.abs(value) >= FAR).mean() > 0.5:
        raise ModelError("the model fails with the values that the fit begins with: give others with --set or --prior")

    def told(point: Array) -> Array:
        off = residuals.value(point)
        progress(f"rms {np.sqrt(np.mean(off**2)):.4g} deviations")
        return off

    found: Any = import_module("scipy.optimize").least_squares(
        told, inside, jac=residuals.slope, bounds=(low, high), method="trf", xtol=CLOSE, ftol=CLOSE, gtol=1e-12,
        max_nfev=EVALUATIONS,
    )  # fmt: skip
    return np.asarray(found.x), float(2.0 * found.cost)


def _weigh(
    residuals: Residuals, z: Array, sigma: dict[str, Array], noise: dict[str, Array], usual: dict[str, Array]
) -> float:
    """Channels that fit worse than their noise count by how well they fit. The largest change, a share."""
    told = residuals.told(z)
    off: dict[str, list[Array]] = {}
    for block in residuals.blocks:
        off.setdefault(block.channel, []).append(residuals.differences(block, told, z)[block.fitted])
    change = 0.0
    for name, rows in off.items():
        rms = np.sqrt(mean_square(np.concatenate(rows)))
        new = np.maximum(np.maximum(rms, np.nan_to_num(noise[name])), usual[name])
        change = max(change, float(np.abs(new / sigma[name] - 1.0).max()))
        sigma[name][:] = new
    return change


def _refuse_deaf(residuals: Residuals, z: Array) -> None:
    """ModelError where nothing that is asked for moves what was measured."""
    slope = residuals.slope(np.clip(
        z, [one.low / one.scale for one in residuals.unknowns], [one.high / one.scale for one in residuals.unknowns]
    ))  # fmt: skip
    heard = np.linalg.norm(slope[: residuals.size], axis=0)
    asked = [k for k, one in enumerate(residuals.unknowns) if one.asked]
    if all(heard[k] < DEAF for k in asked):
        names = ", ".join(residuals.unknowns[k].name for k in asked)
        raise ModelError(
            f"these recordings tell nothing of {names}: what was measured is the same whatever they are; record a run "
            "that excites them, or look whether the model uses them (rtmms list ROBOT)"
        )


def _elsewhere(unknowns: Sequence[Unknown], first: Array, chance: np.random.Generator) -> Array:
    """Another point: asked unknowns anywhere within narrow bounds, else within a third of where they began."""
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
