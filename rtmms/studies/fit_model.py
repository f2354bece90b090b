"""rtmms.identify: parameters of a model from recordings, in one call."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from rtmms.base.budget import Budget
from rtmms.base.errors import ArgumentError, ModelError
from rtmms.base.processes import core_count
from rtmms.base.trust import asked_by_program
from rtmms.plant.protocol import Plant
from rtmms.record.log_arrays import LogArrays
from rtmms.studies.fit_descent import Watch
from rtmms.studies.fit_evidence import Evidence, as_words, assess_fit, sentences
from rtmms.studies.fit_features import Objective, read_objectives, with_objectives
from rtmms.studies.fit_tables import ENDINGS, Column, from_table, of_mapping, of_table, read_columns, refuse_twice
from rtmms.studies.fit_unknowns import Unknown, asked_for
from rtmms.studies.fitting import Settings, Solution
from rtmms.studies.fitting import fit as fit_unknowns
from rtmms.studies.recordings import Recording, from_log

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Array = npt.NDArray[np.float64]
Model = str | Callable[..., Plant]
OneRecording = str | os.PathLike[str] | LogArrays | Mapping[str, Any] | Recording | Any


@dataclass(frozen=True)
class Prediction:
    """Measured channel of a recording, with the prediction of the fitted model.

    Attributes
    ----------
    time : Array
        (k,) s from the recording's start.
    measured, model : Array
        (k, w) in `unit`; nan where there was no measurement.
    fitted : npt.NDArray[np.bool_]
        (k,) samples of the fit; the others were held back.
    unit : str
        Unit of the channel.
    """

    time: Array
    measured: Array
    model: Array
    fitted: npt.NDArray[np.bool_]
    unit: str


class Identified:
    """Result of `rtmms.identify`.

    Parameters
    ----------
    solution : Solution
        Result of the search.
    evidence : Evidence
        Its quality.
    report : dict[str, Any]
        The dictionary that `rtmms identify --json` prints.

    Attributes
    ----------
    names : list of str
        Requested names, in the order of `covariance`.
    values, standard_errors : dict of str to float
        By name, in the parameters' units.
    covariance, correlation : (n, n) arrays
        In the parameters' units, and without unit.
    report : dict
        Content of `rtmms identify --json`.
    """

    def __init__(self, solution: Solution, evidence: Evidence, report: dict[str, Any]) -> None:
        self._solution, self._evidence, self.report = solution, evidence, report
        self.names = list(evidence.names)
        self.values = solution.values
        self.standard_errors = dict(zip(self.names, evidence.error.tolist(), strict=True))
        self.covariance, self.correlation = evidence.covariance, evidence.correlation

    @property
    def parts(self) -> tuple[Solution, Evidence]:
        """Solution and evidence, from which the report and the figures are made."""
        return self._solution, self._evidence

    @property
    def asked(self) -> list[Unknown]:
        """The unknowns of `fit`, in the order of `names`."""
        return [unknown for unknown in self._solution.unknowns if unknown.asked]

    @property
    def advice(self) -> list[str]:
        """Sentences that a person should not miss."""
        return sentences(self.report)

    @property
    def predictions(self) -> dict[str, dict[str, Prediction]]:
        """Predictions with the fitted values: {recording: {channel: Prediction}}."""
        solution = self._solution
        residuals, result = solution.residuals, dict[str, dict[str, Prediction]]()
        predicted = residuals.predicted(solution.z)
        parts: dict[tuple[str, str], list[tuple[Array, Array, Array, Any, str]]] = {}
        for block in residuals.blocks:
            segment = solution.segments[block.segment]
            recording = solution.recordings[segment.recording]
            time = block.time + segment.first * recording.dt
            expected = residuals.expected(block, predicted, solution.z)
            rows = (time, block.values, expected, block.fitted, block.series.unit)
            parts.setdefault((recording.name, block.channel), []).append(rows)
        for (recording_name, channel), several in parts.items():
            columns = [np.concatenate(column) for column in list(zip(*several, strict=True))[:4]]
            built = Prediction(columns[0], columns[1], columns[2], columns[3].astype(bool), several[0][4])
            result.setdefault(recording_name, {})[channel] = built
        return result

    def figure(self, path: str | os.PathLike[str] | None = None) -> Figure:
        """Draw the values with their spread, and the channels beside the model.

        Parameters
        ----------
        path : str | os.PathLike[str] | None, optional
            A .png, .svg or .pdf to write.

        Returns
        -------
        Figure
            The matplotlib figure.
        """
        from rtmms.studies.fit_page import draw_figure

        built: Figure = draw_figure(self._solution, self._evidence, None if path is None else Path(path))
        return built

    def __str__(self) -> str:
        """Return the values with their standard errors, a line each, and the advice."""
        units = {name: item["unit"] for name, item in self.report["parameters"].items()}
        lines = [
            f"{name} = {value:.6g} +- {self.standard_errors[name]:.2g} {units[name]}".rstrip()
            for name, value in self.values.items()
        ]
        return "\n".join([*lines, *self.advice])

    __repr__ = __str__


def identify(
    model: Model, recordings: OneRecording | Sequence[OneRecording], fit: Sequence[str] | str = (),
    bounds: Mapping[str, tuple[float, float]] | None = None, prior: Mapping[str, tuple[float, float]] | None = None,
    *, parameters: Mapping[str, Any] | None = None, dt: float | None = None, preset: str | None = None,
    channels: Sequence[str] = (), columns: Mapping[str, str | Column] | None = None, sensors: str = "ideal",
    at_rest: bool = False, hold_out: float = 0.3, lead_in: float = 0.0, segments: int = 1,
    starts: int | None = None, seed: int = 0, free: Sequence[str] = (), pin: Sequence[str] = (),
    per_recording: Sequence[str] = (), delay_per_recording: bool = False,
    objectives: Sequence[Objective | Mapping[str, Any] | str] = (), budget_s: float | None = None,
    threads: int | None = None, progress: Callable[[Any], None] | None = None,
) -> Identified:  # fmt: skip
    """Find the parameters of a robot whose model predicts the recordings best.

    Parameters
    ----------
    model : Model
        A robot for `rtmms.load`, or a function of parameters that returns a plant.
    recordings : OneRecording | Sequence[OneRecording]
        One or several of: a log (FILE.mcap, or `rtmms.read_log` of it), a table (FILE.csv, FILE.parquet), a mapping of
        columns to arrays, a pandas DataFrame. A table has `time` (s), `command.ACTUATOR`, and outputs of the robot.
    fit : Sequence[str] | str, default ()
        Parameters of the model, KEY[k] for one number of several, or delay, delay.CHANNEL, gain.CHANNEL, bias.CHANNEL.
    bounds, prior : Mapping[str, tuple[float, float]] | None, optional
        {name: (low, high)}, and {name: (mean, standard deviation)}.
    parameters : Mapping[str, Any] | None, optional
        Parameters of the model; the search begins at the value of a fitted one.
    dt : float | None, optional
        Step of the model, s.
    preset : str | None, optional
        Preset of the model.
    channels : Sequence[str], default ()
        Channels to compare; default pose, twist, rods and joints, or the measurements of a log's sensors.
    columns : Mapping[str, str | Column] | None, optional
        Column of the table for a name of this package.
    sensors : str, default 'ideal'
        Profile of the instruments whose columns a table has.
    at_rest : bool, default False
        Tables begin in the robot's state after a reset.
    hold_out : float, default 0.3
        Share at the end of each recording, after the lead-in, that is predicted and not fitted.
    lead_in : float, default 0.0
        Time at the beginning of each recording that is simulated and not compared, s.
    segments : int, default 1
        Parts of each recording, each with a first state.
    starts : int | None, optional
        Points to begin from; None: a second one where the first fit leaves residuals above the noise.
    seed : int, default 0
        Seed of these points.
    free, pin : Sequence[str], default ()
        Coordinates of the first state, as 'start.yaw', that are unknown, or that are not.
    per_recording : Sequence[str], default ()
        Names of `fit` with a separate value for each recording.
    delay_per_recording : bool, default False
        Each recording has its own delay of its clock against the commands.
    objectives : Sequence[Objective | Mapping[str, Any] | str], default ()
        Numbers instead of time series, see `rtmms.studies.fit_features.Objective`.
    budget_s : float | None, optional
        Wall time, s, after which the best values so far are returned, with a note.
    threads : int | None, optional
        Default one for each core.
    progress : Callable[[Any], None] | None, optional
        Receives each `rtmms.studies.fit_descent.Iteration`.

    Returns
    -------
    Identified
        Values, standard_errors, covariance, predictions and figure().

    Raises
    ------
    ModelError, UnknownNameError
        A recording or a name cannot be fitted; the message has the next action.
    ArgumentError
        The model is neither a name nor a function.

    Notes
    -----
    A call and its result, for a log of the manta:

        result = rtmms.identify("manta", "pool.mcap", fit=["drag_coefficient"])
        result.values           # {'drag_coefficient': 1.8}
        result.standard_errors  # {'drag_coefficient': 0.0006}
    """
    if isinstance(fit, str):
        fit = [fit]
    if not isinstance(model, str) and not callable(model):
        raise ArgumentError(
            "identify: model: expected a name or a file, as rtmms.load accepts, or a function that returns a plant, "
            f"got a {type(model).__name__}; wrap it, for example lambda **p: rtmms.load('manta', **p)"
        )
    asked_objectives = [_objective(objective) for objective in objectives]
    with asked_by_program():
        reader = Reader(
            model,
            dict(parameters or {}),
            channels=tuple(channels),
            dt=dt,
            preset=preset,
            columns=_columns(columns),
            sensors=sensors,
            at_rest=at_rest,
            objectives=asked_objectives,
            lead_in=lead_in,
        )
        result = reader.read_all(_listed(recordings))
        watch = Watch(budget=Budget(budget_s))
        if progress is not None:
            watch.iterated = progress
        return identify_recordings(
            result, fit, bounds, prior, per_recording, watch=watch, delay_per_recording=delay_per_recording,
            hold_out=hold_out, lead_in=lead_in, segments=segments, starts=starts, seed=seed, free=free, pin=pin,
            threads=threads,
        )  # fmt: skip


def identify_recordings(
    recordings: Sequence[Recording], fit: Sequence[str], bounds: Mapping[str, tuple[float, float]] | None = None,
    prior: Mapping[str, tuple[float, float]] | None = None, per_recording: Sequence[str] = (), *, watch: Watch,
    delay_per_recording: bool, hold_out: float, lead_in: float, segments: int, starts: int | None, seed: int,
    free: Sequence[str], pin: Sequence[str], threads: int | None,
) -> Identified:  # fmt: skip
    """Fit recordings in memory; `rtmms.identify` and the command `rtmms identify` call this function.

    Parameters
    ----------
    recordings : Sequence[Recording]
        Recordings of one robot.
    fit, per_recording, free, pin : Sequence[str]
        See `identify`.
    bounds, prior : Mapping[str, tuple[float, float]] | None, optional
        See `identify`.
    watch : Watch
        Progress and wall time.
    delay_per_recording : bool
        See `identify`.
    hold_out, lead_in : float
        See `identify`.
    segments, seed : int
        See `identify`.
    starts, threads : int | None
        See `identify`.

    Returns
    -------
    Identified
        Values and their quality.
    """
    asked = asked_for(fit, recordings, recordings[0].build(), bounds or {}, prior or {}, per_recording,
                      delay_per_recording=delay_per_recording)  # fmt: skip
    settings = Settings(
        hold_out,
        segments,
        threads or core_count(),
        None if starts is None else starts - 1,
        seed,
        lead_in=lead_in,
        free=tuple(free),
        pinned=tuple(pin),
    )
    return fit_and_assess(recordings, asked, settings, watch)


def fit_and_assess(
    recordings: Sequence[Recording], asked: Sequence[Unknown], settings: Settings, watch: Watch | None = None
) -> Identified:
    """Fit unknowns, and compute the quality of the fit.

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
    Identified
        Values and their quality.
    """
    solution = fit_unknowns(recordings, asked, settings, watch)
    evidence = assess_fit(solution)
    report = as_words(solution, evidence, {"hold_out": settings.hold_out, "segments": settings.segments})
    return Identified(solution, evidence, report)


@dataclass
class Reader:
    """Reader of a person's recordings: files, mappings, tables of pandas.

    Attributes
    ----------
    model : Model | None
        None: the robot that a log names.
    parameters : dict[str, Any]
        Parameters of the model.
    channels : tuple[str, ...], default ()
        Channels to compare; () for the default ones.
    dt : float | None, optional
        Step of the model, s.
    preset : str | None, optional
        Preset of the model.
    columns : Mapping[str, Column] | None, optional
        Column of a table for a name of this package.
    sensors : str, default 'ideal'
        Profile of the instruments whose columns a table has.
    at_rest : bool, default False
        Tables begin in the state after a reset.
    objectives : Sequence[Objective], default ()
        With them time series count only where channels are named.
    lead_in : float, default 0.0
        Time at each beginning that is not compared, s.
    trusted : bool, default False
        The code that a log names may run.
    warn : Callable[[str], None], default lambda _: None
        Receives warnings.
    """

    model: Model | None
    parameters: dict[str, Any]
    channels: tuple[str, ...] = ()
    dt: float | None = None
    preset: str | None = None
    columns: Mapping[str, Column] | None = None
    sensors: str = "ideal"
    at_rest: bool = False
    objectives: Sequence[Objective] = ()
    lead_in: float = 0.0
    trusted: bool = False
    warn: Callable[[str], None] = lambda _: None

    def read_all(self, recordings: Iterable[OneRecording]) -> list[Recording]:
        """Return all recordings, of one robot, with their objectives.

        Parameters
        ----------
        recordings : Iterable[OneRecording]
            Files, logs, mappings or tables.

        Returns
        -------
        list[Recording]
            One or more of each item.

        Raises
        ------
        ModelError, UnknownNameError
            A recording cannot be read; the message names it.
        """
        result: list[Recording] = []
        for number, item in enumerate(recordings):
            result += self._read(item, number)
        if not result:
            raise ModelError("identify: expected a recording, got none")
        others = [entry for entry in result if entry.robot != result[0].robot]
        if others:
            raise ModelError(
                f"{others[0].name}: is of robot '{others[0].robot}', and {result[0].name} of '{result[0].robot}': "
                "expected recordings of one robot; fit each by itself"
            )
        return with_objectives(result, self.objectives, series=bool(self.channels) or not self.objectives,
                               lead_in=self.lead_in)  # fmt: skip

    def _read(self, one_recording: OneRecording, number: int) -> list[Recording]:
        if isinstance(one_recording, Recording):
            return [one_recording]
        more = (
            None if not self.objectives else tuple(dict.fromkeys(n for each in self.objectives for n in each.outputs))
        )
        name = f"recording {number + 1}"
        if isinstance(one_recording, LogArrays):
            one_recording = one_recording.path
        if not isinstance(one_recording, (str, os.PathLike)):
            if hasattr(one_recording, "columns") and hasattr(one_recording, "to_numpy"):  # a DataFrame of pandas
                frame: Any = one_recording
                index = getattr(frame, "index", None)
                if "time" in getattr(index, "names", ()) and "time" not in frame.columns:  # of `to_pandas` of a log
                    frame = frame.reset_index()
                refuse_twice(f"identify: {name}", [str(key) for key in frame.columns])
                one_recording = {str(key): frame[key].to_numpy() for key in frame.columns}
            if not isinstance(one_recording, Mapping):
                raise ArgumentError(
                    f"identify: {name}: expected a file, a log, a mapping of columns to arrays or a DataFrame, got a "
                    f"{type(one_recording).__name__}"
                )
            robot, make, remaining = self._of_table(name)
            return [
                of_table(
                    of_mapping(one_recording, name),
                    name,
                    robot,
                    self.parameters,
                    self.channels,
                    more=more,
                    make=make,
                    **remaining,
                )
            ]
        path = Path(one_recording)
        if path.suffix in ENDINGS:
            robot, make, remaining = self._of_table(str(path))
            return [from_table(path, robot, self.parameters, self.channels, more=more, make=make, **remaining)]
        robot_name = self.model if isinstance(self.model, str) else None
        make = self._make if callable(self.model) else None
        return from_log(
            path, self.parameters, self.channels, robot_name, trusted=self.trusted or self.model is not None,
            warn=self.warn, more=more or (), make=make,
        )  # fmt: skip

    def _of_table(self, name: str) -> tuple[str, Callable[..., Plant] | None, dict[str, Any]]:
        if self.model is None:
            raise ModelError(f"{name}: a table does not name its robot: name it with --robot")
        remaining = {"columns": self.columns, "sensors": self.sensors, "at_rest": self.at_rest}
        if callable(self.model):
            return _name_of(self.model), self._make, remaining
        return self.model, None, {**remaining, "preset": self.preset, "dt": self.dt}

    @cached_property
    def _make(self) -> Callable[..., Plant]:
        from rtmms.base.parameters import keywords_of
        from rtmms.robots.python_file import remember_keywords

        model = self.model
        assert callable(model)
        fixed: dict[str, Any] = {} if self.dt is None else {"dt": self.dt}
        named = keywords_of(model) is not None

        def make(**values: Any) -> Plant:
            plant = model(**fixed, **values)
            if named:
                remember_keywords(plant, model, values)
            return plant

        return make


def _name_of(model: Any) -> str:
    return str(getattr(model, "__qualname__", type(model).__name__))


def _listed(recordings: Any) -> list[Any]:
    """Return the recordings as a list; a single one needs no list."""
    if isinstance(recordings, (str, os.PathLike, Mapping, Recording, LogArrays)) or hasattr(recordings, "to_numpy"):
        return [recordings]
    return list(recordings)


def _columns(columns: Mapping[str, str | Column] | None) -> dict[str, Column]:
    if columns is None:
        return {}
    return {name: item if isinstance(item, Column) else read_columns([f"{name}={item}"])[name]
            for name, item in columns.items()}  # fmt: skip


def _objective(item: Objective | Mapping[str, Any] | str) -> Objective:
    if isinstance(item, Objective):
        return item
    if isinstance(item, str):
        return read_objectives([item])[0]
    from rtmms.studies.fit_features import read_objective

    return read_objective("identify: objectives", item, from_text=False)
