"""Log in memory, for viewers: any step at once, with the times of its parts."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from rtmms.base.contract import OUTCOME_WORDS, PARTS, UNDEFINED, StepOutcome
from rtmms.base.errors import ModelError
from rtmms.plant.protocol import Channel
from rtmms.record.log import Log, Start
from rtmms.wire.protocol.received_state import PlantInfo

if TYPE_CHECKING:
    Array = npt.NDArray[np.float64]

MAX_STORED_BYTES = 1 << 28
"""Largest size of the stored outputs; of longer logs every other step is stored, and so on."""


MAX_PICTURES = 500_000
"""Pictures of a film or a page, all together."""
MIN_PICTURES = 250
"""Base of the number of pictures of a film or a page."""
PICTURES_PER_STATE = 100
"""Pictures of a film or a page for each state, besides the base."""


@dataclass(frozen=True)
class Recording:
    """Last run of a log (after its last reset).

    Attributes
    ----------
    info : PlantInfo
        The plant.
    time : Array
        (n,) s, of the stored states.
    states : npt.NDArray[np.float32]
        (n, w) float32, outputs one after the other.
    steps : npt.NDArray[np.int64]
        (m,) indices of all steps.
    times_us : Array
        (m, 4) wake, exchange, plant, slack, nan where unknown.
    missed, overrun : npt.NDArray[np.bool_]
        (m,) flags of the steps.
    slices : dict[str, slice]
        Place of each output in a state.
    set_points : tuple[tuple[float, Mapping[str, Any]], ...], default ()
        (s, {name: value}) of the controllers' set-points, from each change on.
    """

    info: PlantInfo
    time: Array
    states: npt.NDArray[np.float32]
    steps: npt.NDArray[np.int64]
    times_us: Array
    missed: npt.NDArray[np.bool_]
    overrun: npt.NDArray[np.bool_]
    slices: dict[str, slice]
    set_points: tuple[tuple[float, Mapping[str, Any]], ...] = ()

    def tracked(self, time: float) -> Mapping[str, Any]:
        """Return the set-points at an instant.

        Parameters
        ----------
        time : float
            Time, s.

        Returns
        -------
        Mapping[str, Any]
            {} before the first.
        """
        k = bisect_right(self.set_points, time + 1e-9, key=itemgetter(0))
        return self.set_points[k - 1][1] if k else {}

    def outputs(self, k: int) -> dict[str, Any]:
        """Return the outputs of a state.

        Parameters
        ----------
        k : int
            Index of the state.

        Returns
        -------
        dict[str, Any]
            Flat lists by name.
        """
        row = self.states[k]
        return {name: row[part].tolist() for name, part in self.slices.items()}

    def series(self, name: str) -> Array:
        """Return an output over all states.

        Parameters
        ----------
        name : str
            Name of the output.

        Returns
        -------
        Array
            (n, size).
        """
        return self.states[:, self.slices[name]].astype(float)

    def pictures(self, apart_s: float) -> Array:
        """Return the simulated times of pictures at an interval.

        Parameters
        ----------
        apart_s : float
            Interval, s.

        Returns
        -------
        Array
            s.

        Raises
        ------
        ModelError
            There are more than MAX_PICTURES.
        """
        last = float(self.time[-1])
        maximum = min(MAX_PICTURES, MIN_PICTURES + PICTURES_PER_STATE * len(self.time))
        if not 0.0 <= last <= apart_s * maximum:
            length = f"the run takes {last:g} s and has {len(self.time):,} states"
            raise ModelError(
                f"{length}: expected at most {maximum:,} pictures, got {last / apart_s:,.0f}, one "
                f"every {apart_s:g} s; give a higher --speed, or record a shorter run"
            )
        return np.arange(0.0, last + 1e-9, apart_s)

    @property
    def marks(self) -> list[tuple[float, str]]:
        """Times of misses and overruns, s, with their kind."""
        dt = self.info.dt
        result = [(float(self.steps[k]) * dt, "missed") for k in np.flatnonzero(self.missed)]
        result += [(float(self.steps[k]) * dt, "overrun") for k in np.flatnonzero(self.overrun)]
        return sorted(result)


def info_of(log: Log) -> PlantInfo:
    """Return the plant of a log, as its welcome described it.

    Parameters
    ----------
    log : Log
        The log.

    Returns
    -------
    PlantInfo
        The plant.
    """
    origin = log.origin

    def channels(listed: Any) -> tuple[Channel, ...]:
        return tuple(Channel(c["name"], c["unit"], tuple(c["shape"]), c["frame"]) for c in listed)

    dt, mode = float(origin["dt"]), origin["mode"]
    robots = {
        name: PlantInfo(listed["robot"], dt, mode, None, None, (), (), parameters=listed.get("description") or {},
                        shape=listed.get("shape") or {}, robot_name=name)
        for name, listed in (origin.get("robots") or {}).items()
    }  # fmt: skip
    return PlantInfo(
        origin["robot"], dt, mode, None, None, channels(origin["actuators"]), channels(origin["outputs"]),
        parameters=origin.get("description") or {}, shape=origin.get("shape") or {}, robots=robots,
    )  # fmt: skip


def read_recording(log: Log, progress: Callable[[int], None] = lambda done: None) -> Recording:
    """Read a log once.

    Parameters
    ----------
    log : Log
        The log.
    progress : Callable[[int], None], default lambda done: None
        Receives the number of steps read so far.

    Returns
    -------
    Recording
        Its last run.

    Raises
    ------
    ModelError
        The log has no step.
    """
    steps, _ = log.count_steps()
    width = sum(signal.size for signal in log.outputs)
    every = 1
    while (steps // every + 2) * width * 4 > MAX_STORED_BYTES:
        every *= 2
    room = steps // every + 3
    states, time = np.zeros((room, width), np.float32), np.zeros(room)
    numbers, times = np.zeros(steps + 1, np.int64), np.full((steps + 1, len(PARTS)), np.nan)
    missed, overrun = np.zeros(steps + 1, bool), np.zeros(steps + 1, bool)
    dt, stored, read, overruns, row_count = float(log.origin["dt"]), 0, 0, 0, 0
    points: list[tuple[float, Mapping[str, Any]]] = []
    for row in log.rows():
        if isinstance(row, Start):
            stored, read, overruns = 1, 0, 0
            points.clear()
            time[0], states[0] = row.step * dt, row.outputs
            continue
        row_count += 1
        if row_count % 1000 == 0:
            progress(row_count)
        numbers[read] = row.step
        times[read] = [np.nan if t == UNDEFINED else 1e-3 * t for t in row.times]
        missed[read] = OUTCOME_WORDS[StepOutcome.MISSED] == row.outcome
        overrun[read], overruns = row.overruns > overruns, row.overruns
        read += 1
        if row.set_points is not None:
            points.append(((row.step + 1) * dt, row.set_points))
        if row.step % every == 0 or every == 1:
            time[stored], states[stored] = (row.step + 1) * dt, row.outputs
            stored += 1
    if not read or stored < 2:
        raise ModelError(f"{log.path}: has no step to show")
    slices, at = dict[str, slice](), 0
    for signal in log.outputs:
        slices[signal.name] = slice(at, at + signal.size)
        at += signal.size
    return Recording(info_of(log), time[:stored], states[:stored], numbers[:read], times[:read], missed[:read],
                     overrun[:read], slices, tuple(points))  # fmt: skip
