"""A front between two goals of a gait search, and all that was tried; of one goal, what was tried in its order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from rtmms.report.style import BLUE, CORAL, GRID, MUTED, figure, save, styled

if TYPE_CHECKING:
    import numpy.typing as npt


class _Found(Protocol):
    """As rtmms.sweep.gait_search.Gait has it."""

    @property
    def values(self) -> Mapping[str, float]: ...


class _Front(Protocol):
    """As rtmms.sweep.gait_search.Front has it."""

    @property
    def gaits(self) -> Sequence[_Found]: ...
    @property
    def usual(self) -> Mapping[str, float] | None: ...
    @property
    def tried(self) -> npt.NDArray[np.float64]: ...


UNITS = {"speed": "m/s", "power": "W"}


def draw(front: _Front, goals: Sequence[str], robot: str, path: Path) -> None:
    """Write it; RtmmsError where it cannot be written."""
    with styled():
        page = figure(6.5, 4.4)
        axes: Any = page.subplots()
        axes.set_title(f"{robot}: gaits by {' and '.join(_word(goal) for goal in goals)}")
        tried = front.tried
        if len(goals) == 1:
            axes.plot(tried[:, 0], ".", color=MUTED, markersize=3.0)
            axes.set(xlabel="candidate", ylabel=_label(goals[0]))
        else:
            axes.plot(tried[:, 0], tried[:, 1], ".", color=GRID, markersize=4.0, label="tried")
            rows = np.array([[one.values[goal] for goal in goals] for one in front.gaits]).reshape(-1, 2)
            axes.plot(rows[:, 0], rows[:, 1], "o-", color=BLUE, markersize=4.0, label="front")
            if front.usual is not None:
                axes.plot(*[front.usual[goal] for goal in goals], "s", color=CORAL, label="default gait")
            axes.set(xlabel=_label(goals[0]), ylabel=_label(goals[1]))
            if len(rows):
                top = 1.5 * max(rows[:, 1].max(), front.usual[goals[1]] if front.usual is not None else 0.0)
                axes.set_ylim(0.0, top)
            axes.legend()
        page.tight_layout()
        save(page, path)


def _word(goal: str) -> str:
    return goal.replace("_", " ")


def _label(goal: str) -> str:
    unit = UNITS.get(goal)
    return _word(goal) + (f", {unit}" if unit else "")
