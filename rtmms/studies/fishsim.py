"""Tendon-driven fish of the Soft Robotics Lab (arXiv 2602.23283): a fit on two recordings, six predictions.

`rtmms reproduce fishsim` fits `tendon_fish` to the recordings f1_00 and f1_75, which the package contains with their
licence (studies/fishsim_recordings), and predicts the speed of all eight. It prints the model, the recordings, the
figures of the authors' MuJoCo model, and the straight line through the two speeds of the fit.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from rtmms.base.files import read_input_text
from rtmms.base.spatial import Array
from rtmms.base.terminal import print_json, print_text
from rtmms.robots import tendon_fish
from rtmms.studies.fit_descent import Iteration
from rtmms.studies.fit_features import Objective
from rtmms.studies.fit_model import identify
from rtmms.view.tables import canvas, save

FOLDER = Path(__file__).parent / "fishsim_recordings"
MAX_RECORDING_BYTES = 1 << 20
"""Largest size of a recording, bytes."""
FRAMES_HZ = 60.0
"""Frames per second of the camera."""
BASE_M = 0.142
"""Distance of the two markers on the head, which gives the scale of the pixels, m."""
MARKERS = ("m0", "m1", "m2", "m4", "m5", "m6", "m7", "m8", "m9")
"""Markers of a recording in the order of its columns, by the names of tendon_fish."""
FITTED = ("f1_00", "f1_75")
"""Recordings that the fit uses."""
BEATS_HZ = {
    "f0_50": 0.381, "f0_75": 0.564, "f1_00": 0.747, "f1_25": 0.938, "f1_50": 1.128, "f1_75": 1.311, "f2_00": 1.501,
    "f2_25": 1.655,
}  # fmt: skip
"""Tail beats of each recording, Hz: a turn of the motor is a beat."""
SPEED_M_S = {
    "f0_50": 0.0229, "f0_75": 0.0502, "f1_00": 0.0809, "f1_25": 0.1049, "f1_50": 0.1298, "f1_75": 0.1613,
    "f2_00": 0.2021, "f2_25": 0.2232,
}  # fmt: skip
"""Measured speed of each recording, m/s."""
MUJOCO = {"authors, as printed": 0.019, "authors' MuJoCo model, run again": 0.0218}
"""Mean errors of the speed over all eight recordings, m/s, of the authors' model (docs/tendon_fish.md)."""
SETTLE_S = 5.0
"""Time from which on a run is compared, s."""
PERIODS = 2
"""Whole periods that are compared."""
SIGMA_SPEED_M_S = 0.001
"""Weight of the speed in the fit, m/s."""
SIGMA_TAIL_M = 0.004
"""Weight of the amplitudes of the tail's markers, m."""
SIGMA_YAW_DEG = 0.7
"""Weight of the amplitude of the head's yaw, deg."""
HEAD_AXES = f"{MARKERS[0]}:{MARKERS[1]}"
"""Axes of the head by its two markers (rtmms.studies.fit_features.Objective)."""


class Swim(NamedTuple):
    """Compared numbers of a recording or of a run.

    Attributes
    ----------
    speed : float
        m/s along the mean course.
    tail : Array
        (7,) m, complex amplitudes of the lateral motion of the last seven markers in the head's frame, at the tail
        beat; the last one is real.
    yaw : complex
        deg, complex amplitude of the head's yaw, of the same phase.
    """

    speed: float
    tail: Array
    yaw: complex


def read_recording(name: str) -> tuple[Array, Array]:
    """Read a recording.

    Parameters
    ----------
    name : str
        'f1_00' or 'f1_75'.

    Returns
    -------
    tuple[Array, Array]
        Time (n,) s and positions (n, 9, 2) m of the markers.
    """
    text = read_input_text(FOLDER / f"markers_{name}.csv", max_bytes=MAX_RECORDING_BYTES, place="recording")
    pixels = np.array([[float(word) for word in line.split(",")] for line in text.split()]).reshape(-1, 9, 2)
    scale = BASE_M / float(np.mean(np.linalg.norm(pixels[:, 1] - pixels[:, 0], axis=1)))
    return np.arange(len(pixels)) / FRAMES_HZ, scale * pixels


def amplitude(time_s: Array, values: Array, beat_hz: float) -> Any:
    """Return the complex amplitude of the first harmonic, see `trend_and_amplitude`.

    Parameters
    ----------
    time_s : Array
        (n,) times, s.
    values : Array
        (n, ...) of any unit.
    beat_hz : float
        Frequency of the first harmonic.

    Returns
    -------
    Any
        (...).
    """
    return trend_and_amplitude(time_s, values, beat_hz)[1]


def trend_and_amplitude(time_s: Array, values: Array, beat_hz: float) -> tuple[Any, Any]:
    """Fit a constant, a trend, and two harmonics by least squares.

    Parameters
    ----------
    time_s : Array
        (n,) times, s.
    values : Array
        (n, ...) of any unit.
    beat_hz : float
        Frequency of the first harmonic.

    Returns
    -------
    tuple[Any, Any]
        The trend (...) in units/s, and the complex amplitude (...) of the first harmonic: c of Re(c exp(2 pi i beat_hz
        time_s)). The trend is that of whole periods: the harmonics do not bias it.
    """
    turn = 2.0 * math.pi * beat_hz * time_s
    basis = [np.ones_like(turn), time_s, np.cos(turn), np.sin(turn), np.cos(2.0 * turn), np.sin(2.0 * turn)]
    result = np.linalg.lstsq(np.stack(basis, axis=1), values, rcond=None)[0]
    return result[1], result[2] - 1j * result[3]


def compare_swim(time_s: Array, markers: Array, beat_hz: float) -> Swim:
    """Return the compared numbers of a motion, over its last whole periods.

    Parameters
    ----------
    time_s : Array
        (n,) s, of frames that are evenly spaced.
    markers : Array
        (n, 9, 2) m, x and y of MARKERS seen from above.
    beat_hz : float
        Tail beats.

    Returns
    -------
    Swim
        The numbers.
    """
    periods = math.floor((time_s[-1] - time_s[0]) * beat_hz + 1e-6)
    in_window = time_s >= time_s[-1] - periods / beat_hz - 1e-9
    t, p = time_s[in_window], markers[in_window]
    along = p[:, 1] - p[:, 0]
    along /= np.linalg.norm(along, axis=1)[:, None]
    across = np.stack([-along[:, 1], along[:, 0]], axis=1)
    slope, _ = trend_and_amplitude(t, p[:, :2].mean(axis=1), beat_hz)
    tail = amplitude(t, np.einsum("nij,nj->ni", p[:, 2:] - p[:, :1], across), beat_hz)
    yaw = amplitude(t, np.degrees(np.unwrap(np.arctan2(along[:, 1], along[:, 0]))), beat_hz)
    phase = np.conj(tail[-1]) / abs(tail[-1])
    return Swim(float(np.linalg.norm(slope)), tail * phase, complex(yaw * phase))


def recorded_swim(name: str) -> Swim:
    """Return the numbers of a recording; the speed is that of SPEED_M_S, as for the recordings that are not here.

    Parameters
    ----------
    name : str
        'f1_00' or 'f1_75'.

    Returns
    -------
    Swim
        The numbers.
    """
    time_s, markers = read_recording(name)
    return compare_swim(time_s, markers, BEATS_HZ[name])._replace(speed=SPEED_M_S[name])


def swim(plant: Any, beat_hz: float, settle_s: float = SETTLE_S, periods: int = PERIODS) -> Swim:
    """Return the numbers of a run of tendon_fish from rest, with the motor at the speed of the tail beats.

    Parameters
    ----------
    plant : Any
        The fish.
    beat_hz : float
        Tail beats.
    settle_s : float, default 5.0
        Time from which on the run is compared, s.
    periods : int, default 2
        Whole periods that are compared.

    Returns
    -------
    Swim
        The numbers.
    """
    plant.reset(0)
    command, each = np.array([2.0 * math.pi * beat_hz]), max(1, round(1.0 / FRAMES_HZ / plant.dt))
    frames = math.ceil((settle_s + periods / beat_hz) * FRAMES_HZ) + 1
    times, rows = [], []
    for frame in range(frames):
        for _ in range(each):
            plant.step(command)
        if frame >= settle_s * FRAMES_HZ:
            outputs = plant.observe()
            times.append(plant.time)
            rows.append([outputs[name][:2] for name in MARKERS])
    return compare_swim(np.array(times), np.array(rows), beat_hz)


def columns(name: str) -> dict[str, Array]:
    """Return a recording in the form of `rtmms.identify`: time, the motor's speed, and the markers in m.

    The first row is SETTLE_S before the first picture: the motor already turned before the film.

    Parameters
    ----------
    name : str
        'f1_00' or 'f1_75'.

    Returns
    -------
    dict[str, Array]
        Columns by name.
    """
    time_s, markers = read_recording(name)
    time_s = np.concatenate([[-SETTLE_S], time_s])
    table = {"time": time_s, "command.motor.speed": np.full(len(time_s), 2.0 * math.pi * BEATS_HZ[name])}
    for k, marker in enumerate(MARKERS):
        for axis in range(2):
            table[f"{marker}[{axis}]"] = np.concatenate([[np.nan], markers[:, k, axis]])
    return table


def objectives(recordings: Sequence[str] = FITTED) -> list[Objective]:
    """Return the objectives of the fit: the speeds of SPEED_M_S, and harmonics of yaw and tail in the head's axes.

    Parameters
    ----------
    recordings : Sequence[str], default ('f1_00', 'f1_75')
        Names of recordings.

    Returns
    -------
    list[Objective]
        Objectives.
    """
    speeds = [
        Objective("mean_speed", "m0", value=SPEED_M_S[name], noise=SIGMA_SPEED_M_S, recording=f"recording {k + 1}")
        for k, name in enumerate(recordings)
    ]
    tail = [Objective("harmonic", f"{marker}[1]", HEAD_AXES, noise=SIGMA_TAIL_M) for marker in MARKERS[2:]]
    return [*speeds, *tail, Objective("harmonic", axes=HEAD_AXES, noise=math.radians(SIGMA_YAW_DEG))]


def fit(
    start: Mapping[str, float], fixed: Mapping[str, Any] | None = None, recordings: Sequence[str] = FITTED,
    log: Callable[[str], None] | None = None, threads: int | None = None, dt: float | None = None,
    make: Callable[..., Any] | None = None,
) -> dict[str, float]:  # fmt: skip
    """Fit parameters of tendon_fish to recordings by `rtmms.identify`.

    Parameters
    ----------
    start : Mapping[str, float]
        Fitted parameters, with the values where the fit begins. All but slack_m stay >= 0.
    fixed : Mapping[str, Any] | None, optional
        Other parameters of the robot.
    recordings : Sequence[str], default ('f1_00', 'f1_75')
        Names of recordings that the package contains.
    log : Callable[[str], None] | None, optional
        Receives a sentence about each iteration.
    threads : int | None, optional
        Default one for each core.
    dt : float | None, optional
        Step of the model, s; default the robot's own.
    make : Callable[..., Any] | None, optional
        Returns the robot with other parameters; default tendon_fish itself.

    Returns
    -------
    dict[str, float]
        The fitted values.
    """

    def show(iteration: Iteration) -> None:
        if log is not None:
            log(f"iteration {iteration.number}: cost {iteration.cost:.2f}")

    result = identify(
        make or "tendon_fish", [columns(name) for name in recordings], list(start),
        parameters={**(fixed or {}), **start}, objectives=objectives(recordings), at_rest=True, lead_in=SETTLE_S,
        starts=1, threads=threads, progress=show, dt=dt,
    )  # fmt: skip
    return result.values


def line(beat_hz: float) -> float:
    """Return the speed on the straight line through the two recordings of the fit.

    Parameters
    ----------
    beat_hz : float
        Tail beats.

    Returns
    -------
    float
        m/s.
    """
    (x, y), (u, v) = ([table[name] for name in FITTED] for table in (BEATS_HZ, SPEED_M_S))
    return u + (v - u) * (beat_hz - x) / (y - x)


START: dict[str, float] = {
    "tail_drag": 3.9,
    "head_drag": 33.0,
    "head_added": 1.4,
    "slack_m": -1e-3,
    "drag_area_m2": 0.044,
    "fin_added": 0.055,
}
"""Start values of the fitted parameters of tendon_fish."""
FIXED: dict[str, Any] = {"wake": 0.0, "linear_drag_n_s_m": 0.0, "skin_area_m2": 0.0, "fin_n_m": 0.0}
"""Parameters of tendon_fish that the fit holds."""


class Outcome(NamedTuple):
    """A fit and its predictions.

    Attributes
    ----------
    values : dict[str, float]
        Fitted parameters.
    fit_s : float
        Time of the fit, s.
    swims : dict[str, Swim]
        Numbers of each recording, from the model.
    """

    values: dict[str, float]
    fit_s: float
    swims: dict[str, Swim]

    def errors(self, names: Sequence[str]) -> Array:
        """Return the speed of the model less that of the recording.

        Parameters
        ----------
        names : Sequence[str]
            Recordings.

        Returns
        -------
        Array
            (k,) m/s.
        """
        return np.array([self.swims[name].speed - SPEED_M_S[name] for name in names])

    def as_data(self) -> dict[str, Any]:
        """Return the data of `rtmms reproduce fishsim --json`.

        Returns
        -------
        dict[str, Any]
            By name.
        """
        fit_quality = {}
        for name in FITTED:
            model, measured = self.swims[name], recorded_swim(name)
            fit_quality[name] = {
                "tail_rms_m": float(np.sqrt(np.mean(np.abs(model.tail - measured.tail) ** 2))),
                "yaw_deg": abs(model.yaw), "measured_yaw_deg": abs(measured.yaw),
            }  # fmt: skip
        return {
            "recordings": {
                name: {
                    "measured_m_s": SPEED_M_S[name], "model_m_s": self.swims[name].speed, "line_m_s": line(beat),
                    "fitted": name in FITTED,
                }
                for name, beat in BEATS_HZ.items()
            },
            "mean_abs_error_m_s": {
                "all": float(np.abs(self.errors(list(BEATS_HZ))).mean()),
                "not_fitted": float(np.abs(self.errors([name for name in BEATS_HZ if name not in FITTED])).mean()),
            },
            "fit_s": self.fit_s, "parameters": self.values, "amplitudes": fit_quality, "others_m_s": MUJOCO,
        }  # fmt: skip


def predict(
    values: Mapping[str, Any], dt: float | None = None, make: Callable[..., Any] = tendon_fish.load
) -> dict[str, Swim]:
    """Return the numbers of all eight recordings from a model.

    Parameters
    ----------
    values : Mapping[str, Any]
        Parameters of the model.
    dt : float | None, optional
        Step, s.
    make : Callable[..., Any], default tendon_fish.load
        Returns the robot with parameters.

    Returns
    -------
    dict[str, Swim]
        Numbers by recording.
    """
    plant = make(dt=dt, **values)
    return {name: swim(plant, beat) for name, beat in BEATS_HZ.items()}


def main(out: Path | None = None, as_json: bool = False) -> int:
    """Fit, predict, print a table, and draw it.

    Parameters
    ----------
    out : Path | None, optional
        Folder of figures; None: no figures.
    as_json : bool, default False
        Print JSON.

    Returns
    -------
    int
        Exit status.
    """
    tendon_fish.load(**{**START, **FIXED})  # compiles, so that fit_s is the fit alone
    begun = time.perf_counter()
    values = fit(START, FIXED, log=None if as_json else print_text)
    outcome = Outcome(values, time.perf_counter() - begun, predict({**FIXED, **values}))
    data = outcome.as_data()
    figure = None if out is None else _figure(data, out)
    if as_json:
        print_json(json.dumps(data, allow_nan=False))
        return 0
    for text in _lines(data):
        print_text(text)
    if figure is not None:
        print_text(f"figure {figure}")
    return 0


def _lines(data: Mapping[str, Any]) -> list[str]:
    """Return the table as lines of text."""
    lines = ["", "recording  beats, Hz  measured   model    line  (m/s)  nearer"]
    for name, row in data["recordings"].items():
        model, straight = (abs(row[f"{who}_m_s"] - row["measured_m_s"]) for who in ("model", "line"))
        nearer = "fitted" if row["fitted"] else "line" if straight < model else "model"
        lines.append(
            f"{name}      {BEATS_HZ[name]:8.3f}  {row['measured_m_s']:8.4f}  {row['model_m_s']:6.4f}  "
            f"{row['line_m_s']:6.4f}         {nearer}"
        )
    mean = data["mean_abs_error_m_s"]
    rows = data["recordings"].values()
    straight = [abs(row["line_m_s"] - row["measured_m_s"]) for row in rows]
    lines += [
        "", f"mean error of the speed: {mean['all']:.4f} m/s over all eight, {mean['not_fitted']:.4f} m/s over the six "
        "that are not fitted",
        *(f"{who}: {error:.4f} m/s over all eight" for who, error in data["others_m_s"].items()),
        f"straight line through the two fitted speeds: {sum(straight) / len(straight):.4f} m/s over all eight",
        f"the fit took {data['fit_s']:.0f} s:",
        *(f"  {name:20} {value:.4g}" for name, value in data["parameters"].items()),
    ]  # fmt: skip
    for name, row in data["amplitudes"].items():
        lines.append(
            f"{name}: the tail's amplitudes are {1e3 * row['tail_rms_m']:.1f} mm off, the head's yaw is "
            f"{row['yaw_deg']:.2f} deg (measured {row['measured_yaw_deg']:.2f} deg)"
        )
    return lines


def _figure(data: Mapping[str, Any], out: Path) -> Path:
    """Draw measured speeds, the model, and the line over the tail beats."""
    figure, axes = canvas()
    beats, rows = list(BEATS_HZ.values()), list(data["recordings"].values())
    axes.plot(beats, [row["measured_m_s"] for row in rows], "ko", label="recordings")
    axes.plot(beats, [row["model_m_s"] for row in rows], "-", label="tendon_fish")
    axes.plot(beats, [row["line_m_s"] for row in rows], "--", label="straight line")
    fitted = [name in FITTED for name in BEATS_HZ]
    marked = [row["measured_m_s"] for row, item in zip(rows, fitted, strict=True) if item]
    axes.plot([beat for beat, item in zip(beats, fitted, strict=True) if item], marked, "o", mfc="none", ms=11,
              label="fitted")  # fmt: skip
    axes.set_xlabel("tail beats (Hz)")
    axes.set_ylabel("speed (m/s)")
    axes.legend()
    return save(figure, out, "fishsim-speeds")
