"""Fit of a model: rounds of Gauss-Newton with bounds, and weights of channels by the noise that they turn out to have.

`rtmms.studies.fit_residuals` provides the residuals, `rtmms.studies.fit_descent` one descent.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from rtmms.base.budget import Budget, OutOfTimeError
from rtmms.base.errors import ModelError
from rtmms.studies.fit_descent import Watch, bounds_of, descend
from rtmms.studies.fit_prediction import Predictor, Segment, can_be_placed, free_start
from rtmms.studies.fit_residuals import FAILED_RESIDUAL, ROUGH_SHARE, Block, Residuals, blocks
from rtmms.studies.fit_unknowns import FirstState, Kind, Unknown, sensor_errors, starts
from rtmms.studies.recordings import Recording, mean_square, noise_of, refuse_still, spread, thinned

Array = npt.NDArray[np.float64]

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
    rough : list[int], optional
        Unknowns at whose value the model's outputs change abruptly, so that they have no derivative there.
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
    rough: list[int] = field(default_factory=list)

    @property
    def asked(self) -> list[int]:
        """Indices of the requested unknowns."""
        return [k for k, unknown in enumerate(self.unknowns) if unknown.asked]

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
    return {
        unknown.name: float(value * unknown.scale) for unknown, value in zip(unknowns, z, strict=True) if unknown.asked
    }


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
    noise, noise_floor = _noise(recordings)
    recordings = [_thinned(recording, settings.samples) for recording in recordings]
    segments = _segments(recordings, settings)
    sigma = {name: np.maximum(np.nan_to_num(value), noise_floor[name]) for name, value in noise.items()}
    cut = blocks(recordings, segments, sigma)
    _refuse_uncovered(cut)
    unknowns = [*asked, *sensor_errors(recordings, [item.name for item in asked])]
    unknowns += _first_states(recordings, segments, settings)
    with Predictor(recordings, segments, settings.threads) as predictor:
        residuals = Residuals(predictor, cut, unknowns, watch.progress)
        search = _Search(residuals, sigma, noise, noise_floor, watch)
        first = np.array([unknown.first / unknown.scale for unknown in unknowns])
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
                search.solve(min(others, key=lambda item: item[1])[0])
        except (KeyboardInterrupt, OutOfTimeError) as ended:
            if search.slope is None:
                if isinstance(ended, KeyboardInterrupt):
                    raise
                raise ModelError(
                    f"--budget {watch.budget.seconds:g}: expected time for at least one iteration of the search, got "
                    "less; give a longer budget, fewer samples, a longer --dt or fewer --fit"
                ) from None
            why = "Ctrl-C" if isinstance(ended, KeyboardInterrupt) else f"the time budget of {watch.budget.seconds:g} s"
            note = f"{why} ended the search after {watch.count} iterations: these are the best values so far"
            watch.budget = Budget()
            residuals.progress = watch.show
            search.take_best()
        z = search.z
        if not note:
            search.measure_roughness()
        rough = [k for k, share in search.roughness.items() if share > ROUGH_SHARE]
        return Solution(
            residuals.unknowns, z, search.cost, residuals, search.slope_now(), residuals.value(z), noise, sigma, others,
            list(recordings), segments, note, rough,
        )  # fmt: skip


class _Search:
    """Rounds of descent with the weights between them, and the best values.

    `sigma` is written; the residuals' blocks share it.
    """

    def __init__(
        self, residuals: Residuals, sigma: dict[str, Array], noise: dict[str, Array], typical_noise: dict[str, Array],
        watch: Watch,
    ) -> None:  # fmt: skip
        self.residuals, self.sigma, self.noise, self.typical_noise, self.watch = (
            residuals,
            sigma,
            noise,
            typical_noise,
            watch,
        )
        self.z = np.zeros(0)
        self.cost = np.inf
        self.slope: Array | None = None
        self.roughness: dict[int, float] = {}
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
            change = _weigh(residuals, z, self.sigma, self.noise, self.typical_noise)
            anchored = len(residuals.predictor.segments) > len(residuals.predictor.recordings)
            if number and change < SETTLED and not anchored:
                break
        self.cost = float(np.sum(residuals.value(z) ** 2))

    def elsewhere(self, z: Array) -> list[tuple[Array, float]]:
        """Return values and their cost from another starting point; nothing where the model fails there."""
        try:
            result, cost, _ = self._descend(z, None, rough=False)
        except ModelError:
            return []
        return [(result, cost)]

    def _descend(self, z: Array, slope: Array | None, *, rough: bool) -> tuple[Array, float, Array]:
        residuals = self.residuals
        residuals.central = not rough
        return descend(
            residuals, z, self.watch, rough=rough, slope=slope, values_of=partial(_named, residuals.unknowns)
        )  # fmt: skip

    def _take(self, z: Array, cost: float, slope: Array) -> None:
        self.z, self.cost, self.slope, self._weights = z, cost, slope, self.residuals.weights()
        self.roughness = dict(self.residuals.roughness)

    def measure_roughness(self) -> None:
        """Compute central slopes at the best values, if the last ones were one-sided."""
        if not self.roughness:
            self.residuals.central = True
            self.residuals.slope(np.clip(self.z, *bounds_of(self.residuals.unknowns)))
            self.roughness = dict(self.residuals.roughness)

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
            least = np.maximum(np.nan_to_num(noise), self.typical_noise[block.channel])
            if (np.sqrt(mean_square(off)) > EXPLAINED * least).any():
                return False
        return True


def _first_states(recordings: Sequence[Recording], segments: Sequence[Segment], settings: Settings) -> list[Unknown]:
    """Return the unknown coordinates of the segments' first states."""
    wanted = bool(settings.free or settings.pinned)
    result: dict[int, FirstState] = {}
    of: dict[int, FirstState] = {}
    for k, segment in enumerate(segments):
        if segment.known and not wanted:
            continue
        if segment.recording not in of:
            recording = recordings[segment.recording]
            of[segment.recording] = free_start(recording.build(), recording.commands)
        result[k] = replace(of[segment.recording], known=segment.known)
    return starts(result, settings.free, settings.pinned)


def _noise(recordings: Sequence[Recording]) -> tuple[dict[str, Array], dict[str, Array]]:
    """Return the noise of each channel over all recordings, and the least noise that counts."""
    values: dict[str, list[Array]] = {}
    sizes: dict[str, list[Array]] = {}
    for recording in recordings:
        for item in recording.series:
            values.setdefault(item.channel, []).append(noise_of(item))
            size = float(np.sqrt(np.mean(spread(item.values) ** 2)))
            sizes.setdefault(item.channel, []).append(np.full(item.width, max(size, 1e-9)))
    noise = {name: np.sqrt(np.mean(np.square(rows), axis=0)) for name, rows in values.items()}
    return noise, {name: MIN_NOISE_SHARE * np.mean(rows, axis=0) for name, rows in sizes.items()}


def _thinned(recording: Recording, maximum: int) -> Recording:
    return replace(recording, series=tuple(thinned(item, maximum) for item in recording.series))


def _segments(recordings: Sequence[Recording], settings: Settings) -> list[Segment]:
    result = []
    for number, recording in enumerate(recordings):
        steps = len(recording.commands)
        lead = round(settings.lead_in / recording.dt)
        if lead >= steps:
            raise ModelError(
                f"{recording.name}: --lead-in {settings.lead_in:g}: expected less than {recording.duration:g} s"
            )
        fitted_steps = lead + max(1, round((1.0 - settings.hold_out) * (steps - lead)))
        edges = np.linspace(0, fitted_steps, settings.segments + 1).round().astype(int)
        if settings.segments > 1 and any(series.feature is not None for series in recording.series):
            raise ModelError(
                f"{recording.name}: --segments: expected 1 with --objective, which needs whole recordings, got "
                f"{settings.segments}"
            )
        if not (np.diff(edges) > 1).all():
            raise ModelError(
                f"{recording.name}: --segments {settings.segments}: expected at least two steps in each segment; "
                "give fewer segments"
            )
        if (settings.segments > 1 or not recording.known) and not can_be_placed(recording.build()):
            raise ModelError(
                f"{recording.name}: robot '{recording.robot}' cannot start in an arbitrary state: expected a "
                "log from its "
                "reset on, and --segments 1"
            )
        for k, (first, last) in enumerate(pairwise(edges)):
            final = k == settings.segments - 1
            result.append(Segment(number, int(first), steps if final else int(last), int(last - first),
                                 recording.known and k == 0, counts_from=lead if k == 0 else 0))  # fmt: skip
    return result


def _refuse_uncovered(cut: Sequence[Block]) -> None:
    if not any(np.isfinite(block.values[block.fitted]).sum() > 1 or block.series.feature is not None for block in cut):
        raise ModelError("--hold-out: the fitted part has no samples; give a smaller value")


def _anchor(residuals: Residuals, z: Array) -> None:
    if any(not segment.known for segment in residuals.predictor.segments):
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
    residuals: Residuals, z: Array, sigma: dict[str, Array], noise: dict[str, Array], typical_noise: dict[str, Array]
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
        new = np.maximum(np.maximum(rms, np.nan_to_num(noise[name])), typical_noise[name])
        change = max(change, float(np.abs(new / sigma[name] - 1.0).max()))
        sigma[name][:] = new
    return change


def _refuse_deaf(residuals: Residuals, slope: Array) -> None:
    """Raise ModelError where no requested value changes any measurement."""
    sensitivities = np.linalg.norm(slope[: residuals.size], axis=0)
    asked = [k for k, unknown in enumerate(residuals.unknowns) if unknown.asked]
    if all(sensitivities[k] < DEAF for k in asked):
        names = ", ".join(residuals.unknowns[k].name for k in asked)
        raise ModelError(
            f"these recordings do not determine {names}: the measured outputs do not depend on them; record a "
            "run that excites them, or check that the model uses them (rtmms list ROBOT)"
        )


def _elsewhere(unknowns: Sequence[Unknown], first: Array, chance: np.random.Generator) -> Array:
    """Return another point: requested unknowns anywhere within narrow bounds, else within a third of their start."""
    z = first.copy()
    for k, unknown in enumerate(unknowns):
        share = chance.uniform()
        if not unknown.asked or unknown.kind is Kind.DELAY:
            continue
        if np.isfinite([unknown.low, unknown.high]).all() and unknown.high - unknown.low < 4.0 * unknown.scale:
            z[k] = (unknown.low + share * (unknown.high - unknown.low)) / unknown.scale
        elif first[k]:
            z[k] = first[k] * 1.4 ** (2.0 * share - 1.0)
    return z
