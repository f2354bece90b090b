"""Quality of a fit: standard errors, indistinct parameters, whiteness, the part held back, spread."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np
import numpy.typing as npt

from rtmms.studies.fit_residuals import Block
from rtmms.studies.fit_unknowns import Kind
from rtmms.studies.fitting import Solution
from rtmms.studies.recordings import is_sparse
from rtmms.studies.recordings import spread as spread_of

Array = npt.NDArray[np.float64]

RELEVANT = 0.3
"""Relative error from which on a combination of values counts as indistinct."""
NULL = 1e-7
"""Share of the largest singular value below which singular values come from inexact differences."""
NAMED = 0.2
"""Share of a combination's largest component from which on a parameter is named with it."""
LAGS = 20
MAX_ORDER = 10
"""Order of the autoregressive process of residuals."""
MAX_CORRELATION = 0.995
"""Magnitude of a partial correlation of residuals."""
WHITE = 0.01
"""Probability below which residuals do not pass for white noise."""
DISPUTED = 4.0
"""Distance between the data's value and a prior's mean, in standard deviations, from which on the fit reports it."""
WINDOWS = 5
AT_BOUND = 1e-6


@dataclass(frozen=True)
class Channel:
    """Prediction error of a channel, in its unit.

    Attributes
    ----------
    unit : str
        Unit of the channel.
    rms : float
        Over the fitted part.
    noise : float
        Deviation of the channel's noise.
    held_out : float | None
        rms over the part held back; None without one.
    correlation : float
        Correlation of the residuals, at lag one.
    probability : float
        Probability of such residuals, if they were white noise.
    samples : int
        Fitted samples.
    """

    unit: str
    rms: float
    noise: float
    held_out: float | None
    correlation: float
    probability: float
    samples: int

    @property
    def white(self) -> bool:
        """Whether the residuals pass for white noise."""
        return self.probability >= WHITE


@dataclass(frozen=True)
class Evidence:
    """Quality of a fit, for the k requested names.

    Attributes
    ----------
    names : list[str]
        Requested names.
    error : Array
        (k,) standard errors in their units, inf for undetermined values.
    correlation : Array
        (k, k) correlations.
    bound : list[str]
        (k,) 'low', 'high' or ''.
    indistinct : list[tuple[list[str], list[float], float]]
        (names, their shares, relative deviation) of each combination of names with the same effect.
    channels : dict[str, Channel]
        By name.
    windows : Array
        (w, k) values to which each stretch of the data alone would move, to first order.
    covariance : Array
        (k, k) in their units, nan beside a value at its bound.
    causes : list[str]
        Sentences.
    """

    names: list[str]
    error: Array
    correlation: Array
    bound: list[str]
    indistinct: list[tuple[list[str], list[float], float]]
    channels: dict[str, Channel]
    windows: Array
    covariance: Array
    causes: list[str]
    """Causes of a poor fit, and the next actions: sentences."""


def assess_fit(solution: Solution) -> Evidence:
    """Compute the quality of a fit, from the slopes at the solution.

    Parameters
    ----------
    solution : Solution
        Result of the fit.

    Returns
    -------
    Evidence
        Errors, correlations and causes.
    """
    asked = solution.asked
    scale = np.array([solution.unknowns[k].scale for k in asked])
    bound = [_bound(solution, k) for k in asked]
    free = [k for k in range(len(solution.z)) if k not in asked or not bound[asked.index(k)]]
    # `information` without what is at a bound: a value that stands there is not sought any more
    jacobian = solution.jacobian
    information = jacobian.T @ jacobian
    more = _more(solution)
    inverse, _ = _inverse(information[np.ix_(free, free)])
    spread = inverse + inverse @ more[np.ix_(free, free)] @ inverse
    covariance = np.full((len(asked), len(asked)), np.nan)
    place = {k: i for i, k in enumerate(free)}
    for a, i in enumerate(asked):
        for b, j in enumerate(asked):
            if i in place and j in place:
                covariance[a, b] = spread[place[i], place[j]]
    for a, k in enumerate(asked):
        if k not in place:  # at a bound: as if it alone were free beside the others
            covariances, _ = _inverse(information)
            covariance[a, a] = covariances[k, k]
    if abrupt(solution):  # without derivatives nothing is known of the errors
        covariance[:] = np.nan
    deviation = np.sqrt(np.maximum(np.diag(covariance), 0.0))
    with np.errstate(all="ignore"):
        correlation = np.nan_to_num(covariance / np.outer(deviation, deviation))
    np.fill_diagonal(correlation, 1.0)
    indistinct = _indistinct(solution, information)
    error = deviation * scale
    return Evidence(
        [solution.unknowns[k].name for k in asked], error, np.clip(correlation, -1.0, 1.0), bound, indistinct,
        _channels(solution), _windows(solution), covariance * np.outer(scale, scale), causes(solution, bound),
    )  # fmt: skip


def _bound(solution: Solution, k: int) -> str:
    item, value = solution.unknowns[k], solution.z[k] * solution.unknowns[k].scale
    near = AT_BOUND * item.scale
    return "low" if value - item.low <= near else "high" if item.high - value <= near else ""


def _inverse(information: Array) -> tuple[Array, Array]:
    """Return the inverse of a matrix that may be singular, and its scaled eigenvalues.

    Along null directions the inverse is large, not infinite.
    """
    if not len(information):
        return information, np.zeros(0)
    size = np.sqrt(np.maximum(np.diag(information), 1e-300))
    values, vectors = np.linalg.eigh(information / np.outer(size, size))
    eigenvalues = np.maximum(values, NULL**2 * max(values.max(), 1e-300))
    with np.errstate(over="ignore"):  # along what is null
        return (vectors / eigenvalues) @ vectors.T / np.outer(size, size), values


def _more(solution: Solution) -> Array:
    """Return the excess of the covariance of J' r over J' J, which is 0 for white residuals.

    For channels whose residuals are correlated in time it is J' Gamma J, with the autocovariance Gamma of an
    autoregressive process that is fitted to the residuals. Such samples count as fewer: n over 1 + 2 sum rho_k. The
    variance of Student's t with that count less the number of unknowns replaces the normal distribution's.
    """
    toeplitz: Any = import_module("scipy.linalg").matmul_toeplitz

    jacobian, residuals = solution.jacobian, solution.residuals
    out: Array = np.zeros((jacobian.shape[1], jacobian.shape[1]))
    predicted, effective, coloured = residuals.predicted(solution.z), 0.0, list[tuple[Array, Array]]()
    for block, part in zip(residuals.blocks, residuals.sources, strict=True):
        count, width = int(block.fitted.sum()), block.values.shape[1]
        if count <= 4 * LAGS // 2:
            continue
        slope = jacobian[part].reshape(count, width, -1)
        off = residuals.differences(block, predicted, solution.z)[block.fitted] / block.sigma
        for c in range(width):
            r = np.nan_to_num(off[:, c])
            if _whiteness(r)[1] >= WHITE:
                effective += count
                continue
            plain = slope[:, c].T @ slope[:, c]
            gamma = autocovariance(r)
            effective += count * min(1.0, gamma[0] / max(2.0 * float(gamma.sum()) - gamma[0], 1e-300))
            coloured.append((slope[:, c].T @ toeplitz(gamma, slope[:, c]), plain))
    wider = effective / max(effective - len(solution.asked) - 2.0, 1.0)
    for noise_matrix, plain in coloured:
        # never less than white noise would give: few samples underrate what is slow
        values, vectors = np.linalg.eigh(0.5 * wider * (noise_matrix + noise_matrix.T) - plain)
        out += (vectors * np.maximum(values, 0.0)) @ vectors.T
    return out


def autocovariance(r: Array) -> Array:
    """Return the autocovariance of an autoregressive process that is fitted to residuals.

    Parameters
    ----------
    r : Array
        (n,) residuals.

    Returns
    -------
    Array
        (n,) at lags 0 to n - 1.

    Notes
    -----
    The process comes from Burg's method, its order from the corrected criterion of Akaike. Each partial correlation k
    is enlarged by the mean deficit of an estimate from n samples, (1 + 3 k) / n for the first one (Marriott and Pope
    1954).
    """
    n = len(r)
    maximum = min(MAX_ORDER, n // 10)
    ahead, behind = r[1:].copy(), r[:-1].copy()
    power = float(np.mean(r**2))
    best, coefficients, chosen = math.inf, np.zeros(0), np.zeros(0)
    for order in range(1, maximum + 1):
        k = 2.0 * float(ahead @ behind) / max(float(ahead @ ahead + behind @ behind), 1e-300)
        ahead, behind = (ahead - k * behind)[1:], (behind - k * ahead)[:-1]
        power *= 1.0 - k * k
        enlarged = k + (np.sign(k) + 3.0 * k) / n if order == 1 else k
        k = float(np.clip(enlarged, -MAX_CORRELATION, MAX_CORRELATION))
        coefficients = np.append(coefficients - k * coefficients[::-1], k)
        criterion = n * math.log(max(power, 1e-300)) + 2.0 * (order + 1) * n / (n - order - 2)
        if criterion < best:
            best, chosen = criterion, coefficients
    return float(np.mean(r**2)) * correlations(chosen, n)


def correlations(coefficients: Array, count: int) -> Array:
    """Return the autocorrelation of a process x_t = sum a_k x_(t-k) + noise.

    Parameters
    ----------
    coefficients : Array
        (order,) coefficients a_k.
    count : int
        Number of lags.

    Returns
    -------
    Array
        (count,) at lags 0 to count - 1.

    Examples
    --------
    >>> import numpy as np
    >>> from rtmms.studies.fit_evidence import correlations
    >>> correlations(np.array([0.5]), 4)
    array([1.   , 0.5  , 0.25 , 0.125])
    """
    order = len(coefficients)
    result = np.zeros(max(count, order + 1))
    # Yule and Walker's equations for the first lags, then the recursion
    table, right = np.eye(order), coefficients.copy()
    for i in range(1, order + 1):
        for k in range(1, order + 1):
            lag = abs(i - k)
            if lag:
                table[i - 1, lag - 1] -= coefficients[k - 1]
    result[0] = 1.0
    result[1 : order + 1] = np.linalg.solve(table, right) if order else right
    for lag in range(order + 1, count):
        result[lag] = coefficients @ result[lag - order : lag][::-1]
    return result[:count]


def _whiteness(r: Array) -> tuple[float, float]:
    """Return the correlation at lag one, and the probability of Ljung and Box's sum over LAGS lags for white noise."""
    from scipy.special import chdtrc

    n = len(r)
    r = r - r.mean()
    power = float(r @ r)
    if n < 3 * LAGS or power <= 0.0:
        return 0.0, 1.0
    rho = np.array([float(r[lag:] @ r[:-lag]) / power for lag in range(1, LAGS + 1)])
    q = n * (n + 2.0) * float(np.sum(rho**2 / (n - np.arange(1, LAGS + 1))))
    return float(rho[0]), float(chdtrc(LAGS, q))


def _indistinct(solution: Solution, information: Array) -> list[tuple[list[str], list[float], float]]:
    """Return the combinations of requested values that the data does not determine.

    They are eigenvectors of the information, all other values free, relative to their values. Priors of requested
    values count, as they are knowledge.
    """
    asked = solution.asked
    remaining = [k for k in range(len(solution.z)) if k not in asked]
    information_part = information[np.ix_(asked, asked)]
    if remaining:
        inverse, _ = _inverse(information[np.ix_(remaining, remaining)])
        cross = information[np.ix_(asked, remaining)]
        information_part = information_part - cross @ inverse @ cross.T
    sizes = np.array([_size(solution, k) for k in asked])
    information_part = information_part * np.outer(sizes, sizes)
    values, vectors = np.linalg.eigh(0.5 * (information_part + information_part.T))
    result = []
    for value, vector in zip(values, vectors.T, strict=True):
        deviation = 1.0 / np.sqrt(max(value, 1e-30))
        if deviation <= RELEVANT and value > NULL**2 * max(values.max(), 1e-300):
            continue
        order = np.argsort(-np.abs(vector))
        large_indices = [k for k in order if abs(vector[k]) > NAMED * abs(vector[order[0]])]
        sign = np.sign(vector[large_indices[0]])
        names = [solution.unknowns[asked[k]].name for k in large_indices]
        result.append((names, [float(sign * vector[k]) for k in large_indices], float(min(deviation, 1e9))))
    return result


def _size(solution: Solution, k: int) -> float:
    """Return the value that an error is compared with.

    It is a parameter's own value; for delays, offsets and values that may be 0 it is their scale.
    """
    if solution.unknowns[k].kind is not Kind.MODEL or not solution.unknowns[k].first:
        return 1.0
    return max(abs(float(solution.z[k])), 1e-3)


def _channels(solution: Solution) -> dict[str, Channel]:
    residuals = solution.residuals
    predicted = residuals.predicted(solution.z)
    groups: dict[str, list[Block]] = {}
    for block in residuals.blocks:
        groups.setdefault(block.channel, []).append(block)
    result = {}
    for name, group in groups.items():
        off = [residuals.differences(block, predicted, solution.z) for block in group]
        errors = np.concatenate([rows[block.fitted] for rows, block in zip(off, group, strict=True)])
        held = np.concatenate([rows[~block.fitted] for rows, block in zip(off, group, strict=True)])
        checks = [
            _whiteness(np.nan_to_num(rows[block.fitted, c])) for rows, block in zip(off, group, strict=True)
            for c in range(rows.shape[1])
        ]  # fmt: skip
        noise = float(np.sqrt(np.nanmean(solution.noise[name] ** 2)))
        result[name] = Channel(
            group[0].series.unit, _rms(errors), noise, _rms(held) if np.isfinite(held).any() else None,
            max((check[0] for check in checks), key=abs), min(1.0, len(checks) * min(check[1] for check in checks)),
            int(np.isfinite(errors).any(axis=1).sum()),
        )  # fmt: skip
    return result


POOR = 2.0
"""Multiple of the noise from which on the fit of a channel is poor."""
CAUSE = 0.5
"""Share of a channel's residuals that a delay, an offset or a wrong start must explain to be named."""


def causes(solution: Solution, bound: Sequence[str]) -> list[str]:
    """Return the causes of a poor fit and the next actions.

    Parameters
    ----------
    solution : Solution
        Result of the fit.
    bound : Sequence[str]
        'low', 'high' or '' for each requested value.

    Returns
    -------
    list[str]
        A sentence for each recording and channel that is further off than its noise, and for each value at a bound.
    """
    residuals = solution.residuals
    predicted = residuals.predicted(solution.z)
    result = [_no_errors(solution, k) for k in abrupt(solution)]
    result += [_at_bound(solution, k, side) for k, side in zip(solution.asked, bound, strict=True) if side]
    result = [text for text in (*result, *_disputed_priors(solution)) if text]
    result += _sparse_channels(solution)
    worst: list[tuple[float, str]] = []
    for block in residuals.blocks:
        feature = block.series.feature
        noise = np.nan_to_num(block.series.noise if feature is not None else solution.noise[block.channel])
        off = residuals.differences(block, predicted, solution.z)[block.fitted]
        size, level = _rms(off), float(np.sqrt(np.mean(noise**2)))
        if size <= POOR * level or not np.isfinite(off).any():
            continue
        recording = solution.recordings[solution.segments[block.segment].recording]
        if feature is None and size < 1e-3 * float(np.max(spread_of(block.values), initial=0.0)):
            continue  # noise that is hardly there
        ratio = size / level if level else np.inf
        times = f"{ratio:.3g} times its noise" if np.isfinite(ratio) else "and has no noise"
        place = f"{recording.name}: {block.channel}: the model is off by {size:.3g} {block.series.unit}".rstrip()
        worst.append((ratio, f"{place}, {times}: {_remedy(solution, block, off)}"))
    return result + [text for _, text in sorted(worst, key=lambda item: -item[0])]


def abrupt(solution: Solution) -> list[int]:
    """Return the unknowns near whose values the model's outputs change abruptly, without those at a bound.

    Parameters
    ----------
    solution : Solution
        Result of the fit.

    Returns
    -------
    list[int]
        Their indices.
    """
    return [k for k in solution.rough if not _bound(solution, k)]


def _no_errors(solution: Solution, k: int) -> str:
    """Return why there are no standard errors: the model has no derivative at a value."""
    item = solution.unknowns[k]
    return (
        f"{item.name}: near {solution.z[k] * item.scale:.6g} a small change of this value moves the model's outputs "
        "abruptly, so there are no standard errors; give a shorter --dt, or start the search elsewhere "
        f"(--set {item.key}=VALUE)"
    )


def _at_bound(solution: Solution, k: int, side: str) -> str:
    """Return which channel of which recording pushes a value against its bound; '' where none does."""
    residuals, item = solution.residuals, solution.unknowns[k]
    sign = 1.0 if side == "low" else -1.0  # the sum of squares falls towards the bound
    pushes = [
        sign * float(solution.jacobian[part, k] @ solution.residual[part]) for part in residuals.sources
    ]  # fmt: skip
    if max(pushes) <= 0.0:
        return ""
    block = residuals.blocks[int(np.argmax(pushes))]
    recording = solution.recordings[solution.segments[block.segment].recording]
    value = solution.z[k] * item.scale
    if item.end:
        return (
            f"{item.name}: stopped at {value:.6g}, where the model ends ({item.end}); {block.channel} of "
            f"{recording.name} pushes it there most: free what else moves {block.channel}, or take it as known "
            f"(--set {item.key}=VALUE)"
        )
    bound = f"its {'lower' if side == 'low' else 'upper'} bound {value:g}"
    if item.kind is Kind.MODEL and not item.narrowed:
        return (
            f"{item.name}: stopped at {bound}, beyond which the model accepts nothing; {block.channel} of "
            f"{recording.name} pushes it there most: the model lacks something; free what else moves {block.channel}, "
            f"or set {item.key} (--set {item.key}={value:g})"
        )
    return (
        f"{item.name}: stopped at {bound}; {block.channel} of {recording.name} pushes it there most: widen --bounds "
        f"{item.key}=LOW:HIGH, or free what else moves {block.channel}"
    )


def _sparse_channels(solution: Solution) -> list[str]:
    """Return a sentence for each channel whose estimated noise is mostly the motion between its samples."""
    sparse: dict[str, str] = {}
    for recording in solution.recordings:
        for item in recording.series:
            if item.feature is None and item.channel not in sparse and is_sparse(item):
                sparse[item.channel] = recording.name
    return [
        f"{name}: {channel}: its samples are too far apart to separate noise from motion. The estimate of its noise, "
        f"{float(np.max(np.nan_to_num(solution.noise[channel]))):.3g}, is probably too large, and so are the standard "
        "errors; state the noise in --columns FILE.toml, or record more samples"
        for channel, name in sparse.items()
    ]


def _disputed_priors(solution: Solution) -> list[str]:
    """Return a sentence for each prior that the data contradict.

    Without the row p of its prior, a value moves by the Gauss-Newton step (J' J - p p')^-1 p r: to that of the data and
    the other priors, whose variance is the diagonal of the same inverse.
    """
    result, information = [], solution.jacobian.T @ solution.jacobian
    for row, (k, mean, deviation) in enumerate(solution.residuals.priors, solution.residuals.size):
        item, p = solution.unknowns[k], solution.jacobian[row]
        if not item.asked:
            continue
        inverse, _ = _inverse(information - np.outer(p, p))
        value = float((solution.z[k] + inverse[k] @ p * solution.residual[row]) * item.scale)
        error = float(np.sqrt(max(inverse[k, k], 0.0)) * item.scale)
        distance = abs(value - mean) / np.hypot(deviation, error)
        if distance > DISPUTED:
            result.append(
                f"{item.name}: the data contradict --prior {mean:g}:{deviation:g}. They pull the value towards "
                f"{value:.2g} (a linear estimate), {distance:.2g} standard deviations away. Fit without the prior to "
                "see their own value, check the prior, or free what else the model lacks"
            )
    return result


def _remedy(solution: Solution, block: Block, off: Array) -> str:
    """Return an explanation of residuals (k, w) of a channel in a segment, and the option for it."""
    if block.series.feature is not None:
        return "free a parameter that moves it, or state a larger noise if the measurement is not as good"
    total = float(np.nansum(off**2))
    asked = {unknown.name for unknown in solution.unknowns}
    time = block.time[block.fitted]
    of_sample = np.nansum(off**2, axis=1)
    few = np.argsort(of_sample)[::-1][: max(1, len(time) // 100)]
    if len(time) > 20 and float(of_sample[few].sum()) > 0.5 * total:
        return (
            f"most of it is in {len(few)} of {len(time)} samples, the worst at t = {float(time[few[0]]):.6g} s of the "
            "segment: outliers have an empty cell, or are cut away"
        )
    early = time < time.min() + 0.2 * np.ptp(time)
    if float(np.nansum(off[early] ** 2)) > (1.0 - CAUSE * 0.4) * total:
        return "most of it is at the beginning: free its first state (--free start.*), or leave it out (--lead-in S)"
    count = np.isfinite(off).sum(axis=0)
    offset = np.nansum(off, axis=0) / np.maximum(count, 1)
    if float(np.sum(offset**2 * count)) > CAUSE * total and f"bias.{block.channel}" not in asked:
        return f"most of it is an offset: --fit bias.{block.channel}, or look at its zero and its frame"
    expected = off + block.values[block.fitted]
    if len(time) > 8:
        slope = np.gradient(expected, time, axis=0)
        moved = float(np.nansum(slope**2))
        delay = float(np.nansum(slope * off)) / moved if moved > 0.0 else 0.0
        if delay**2 * moved > CAUSE * total:
            return f"a delay of {1e3 * delay:.3g} ms would explain most of it: --fit delay.{block.channel}"
    return (
        "the model lacks something there: look at the figures (-o FILE.html), and free a parameter that moves this "
        "channel"
    )


def _rms(rows: Array) -> float:
    return float(np.sqrt(np.nanmean(rows**2))) if np.isfinite(rows).any() else 0.0


def _windows(solution: Solution) -> Array:
    """Return (WINDOWS, k): each stretch of the fitted time moves the values by its own Gauss-Newton step."""
    residuals, asked = solution.residuals, solution.asked
    tail = solution.jacobian[residuals.size :]
    prior = tail.T @ tail
    size = np.sqrt(np.maximum(np.diag(solution.jacobian.T @ solution.jacobian), 1e-300))
    marks = np.concatenate([
        np.repeat(_stretch(block), block.values.shape[1])
        for block in residuals.blocks
    ])  # fmt: skip
    result = []
    for window in range(WINDOWS):
        rows = np.flatnonzero(marks == window)
        slope = solution.jacobian[rows]
        information = slope.T @ slope + prior + 1e-9 * np.diag(size**2)
        step = -np.linalg.solve(information, slope.T @ solution.residual[rows])
        result.append([float((solution.z[k] + step[k]) * solution.unknowns[k].scale) for k in asked])
    return np.array(result)


def _stretch(block: Block) -> Array:
    """Return (fitted samples,) the index of the stretch that each sample of a segment belongs to."""
    time = block.time[block.fitted]
    span = float(time.max()) if len(time) else 1.0
    return np.minimum((time / max(span, 1e-12) * WINDOWS).astype(np.int64), WINDOWS - 1).astype(np.float64)


def combination(names: list[str], shares: list[float]) -> str:
    """Return a combination of names as text, such as '0.71 a - 0.70 b'.

    Parameters
    ----------
    names : list[str]
        Names of the parameters.
    shares : list[float]
        Share of each.

    Returns
    -------
    str
        The text.

    Examples
    --------
    >>> from rtmms.studies.fit_evidence import combination
    >>> combination(["a", "b"], [0.71, -0.7])
    '0.71 a - 0.70 b'
    """
    terms = [f"{abs(share):.2f} {name}" for name, share in zip(names, shares, strict=True)]
    signs = ["-" if share < 0.0 else "+" for share in shares]
    return " ".join(word if not k else f"{signs[k]} {word}" for k, word in enumerate(terms))


def sentences(report: Mapping[str, Any]) -> list[str]:
    """Return the sentences of a report that a person should not miss.

    Parameters
    ----------
    report : Mapping[str, Any]
        See `as_words`.

    Returns
    -------
    list[str]
        Note, indistinct combinations, advice.
    """
    result = []
    for item in report["combinations"]:
        text = combination(item["names"], item["shares"])
        known = "not at all" if item["relative_error"] > 1e3 else f"to {100.0 * item['relative_error']:.2g} %"
        what = "does not follow from this data" if len(item["names"]) == 1 else "have the same effect"
        result.append(
            f"{', '.join(item['names'])}: {what} (relative change {text} is known {known}; threshold "
            f"{100.0 * report['threshold']:.0f} %)"
        )
    return [*([report["note"]] if report["note"] else []), *result, *report["advice"]]


def as_words(solution: Solution, evidence: Evidence, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the report in JSON's own types; docs/identification.md has its fields.

    Parameters
    ----------
    solution : Solution
        Result of the fit.
    evidence : Evidence
        Its quality.
    settings : Mapping[str, Any]
        hold_out and segments of the fit.

    Returns
    -------
    dict[str, Any]
        The report.
    """
    asked = [solution.unknowns[k] for k in solution.asked]
    values = [float(solution.z[k] * solution.unknowns[k].scale) for k in solution.asked]
    parameters = {}
    for k, item in enumerate(asked):
        known = np.isfinite(evidence.error[k])
        parameters[item.name] = {
            "value": values[k], "standard_error": float(evidence.error[k]) if known else None,
            "at_bound": bool(evidence.bound[k]), "bound": evidence.bound[k] or None, "start": item.first,
            "unit": item.unit, "bounds": [_finite(item.low), _finite(item.high)],
            "prior": None if item.prior is None else list(item.prior),
        }  # fmt: skip
    names = evidence.names
    return {
        "robot": solution.recordings[0].robot,
        "logs": [recording.name for recording in solution.recordings],
        **settings,
        "parameters": parameters,
        "correlation": {
            a: {b: float(evidence.correlation[i, j]) for j, b in enumerate(names)} for i, a in enumerate(names)
        },
        "indistinct": [entry[0] for entry in evidence.indistinct],
        "combinations": [
            {"names": subset, "shares": shares, "relative_error": error}
            for subset, shares, error in evidence.indistinct
        ],
        "threshold": RELEVANT,
        "fit": {
            name: {
                "rms": channel.rms,
                "noise": channel.noise,
                "held_out_rms": channel.held_out,
                "unit": channel.unit,
                "samples": channel.samples,
                "correlation": channel.correlation,
                "white": channel.white,
            }
            for name, channel in evidence.channels.items()
        },
        "windows": {name: evidence.windows[:, k].tolist() for k, name in enumerate(names)},
        "starts": [
            {
                "cost": cost,
                "values": {solution.unknowns[k].name: float(z[k] * solution.unknowns[k].scale) for k in solution.asked},
            }
            for z, cost in [(solution.z, solution.cost), *solution.others]
        ],
        "nuisances": {
            unknown.name: float(z * unknown.scale)
            for unknown, z in zip(solution.unknowns, solution.z, strict=True)
            if not unknown.asked
        },
        "free": [
            {"name": unknown.name, "why": unknown.why, "value": float(z * unknown.scale)}
            for unknown, z in zip(solution.unknowns, solution.z, strict=True)
        ],
        "advice": evidence.causes,
        "note": solution.note,
    }


def _finite(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None
