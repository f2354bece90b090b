"""What joints did at the end of a run: over one more period of the robot's own gait, or over the last seconds kept."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from rtmms.errors import RtmmsError
from rtmms.mechanism.plant import TreePlant
from rtmms.report.style import colours, say

if TYPE_CHECKING:
    from rtmms.loop.trace import Recent
    from rtmms.plant import Plant

Array = npt.NDArray[np.float64]
Ahead = tuple[Array, dict[str, Array]]

SHOWN = ("joint_position", "joint_torque")

FEWEST, MOST = 20, 200
SHOWN_S = 4.0
STILL = 1e-9


def joint_panels(axes: list[Any], plant: Plant, recent: Recent, ahead: Ahead | None) -> None:
    """Two outputs as curves over time, one a panel: for a robot that moves by a gait of its own over a period that
    goes on from the run's end with its last command held (`one_more_period`: so that a fast gait is shown as fine as it
    is simulated), for any other the last seconds of its `recent_outputs`."""
    if ahead is not None:
        time, values = ahead[0], {name: ahead[1][name] for name in SHOWN}
        when = "one more period, the last command held"
    else:
        time, values = recent.read()
        late = time >= (time[-1] - SHOWN_S) if len(time) else slice(None)
        time, values = time[late], {name: value[late] for name, value in values.items()}
        when = "the last seconds"
    units = {channel.name: channel.unit for channel in plant.outputs}
    names = list(values)[: len(axes)]
    for panel, name in zip(axes, names, strict=False):
        _panel(panel, f"{name.replace('_', ' ').capitalize()}: {when}", units[name], time, values[name])
    for panel in axes[len(names) :]:
        panel.set_title("Outputs of the last seconds")
        say(panel, "the plant names none (recent_outputs)")


def one_more_period(plant: Plant, more: tuple[str, ...] = ()) -> Ahead | None:
    """(time s, {joint_position, joint_torque, more}) over the next period of a gait of the plant's own; the plant is
    left as it was. None without a gait, or where a period has few steps, or cannot be run."""
    if not isinstance(plant, TreePlant) or not np.any(plant.law.motion[:, 1:]):
        return None
    steps = math.ceil(2.0 * math.pi / plant.law.omega / plant.dt)
    if steps < FEWEST:
        return None
    blob, command, stride = plant.snapshot(), plant.commanded.copy(), max(1, steps // MOST)
    names, time, rows = tuple(dict.fromkeys((*SHOWN, *more))), [], []
    try:
        for k in range(steps + 1):
            if k % stride == 0:
                seen = plant.observe()
                time.append(plant.time)
                rows.append([seen[name] for name in names])
            plant.step(command)
    except RtmmsError:
        return None  # a run that ended because it cannot go on
    finally:
        plant.restore(blob)
    return np.array(time), {name: np.array(column) for name, column in zip(names, zip(*rows, strict=True), strict=True)}


def _panel(panel: Any, title: str, unit: str, time: Array, values: Array) -> None:
    panel.set_title(title)
    if len(time) < 2:
        say(panel, "no steps")
        return
    flat = values.reshape(len(time), -1)
    moving = np.flatnonzero(np.max(np.abs(flat), axis=0) > STILL)
    if not len(moving):
        say(panel, "all at 0")
        return
    for colour, k in zip(colours(len(moving)), moving, strict=True):
        panel.plot(time, flat[:, k], color=colour, lw=1.0)
    still = flat.shape[1] - len(moving)
    note = f"{len(moving)} curves, first to last from dark to light" + (f"; {still} at 0" if still else "")
    panel.set(xlabel=f"time, s      {note}", ylabel=unit or "-", xlim=(time[0], time[-1]))
    panel.margins(y=0.1)
