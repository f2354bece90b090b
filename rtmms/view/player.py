"""Log on the stage: played, stopped, stepped through, with jumps to misses and overruns."""

from __future__ import annotations

import threading
from time import monotonic
from typing import Any

import numpy as np

from rtmms.view import stage as plots
from rtmms.view.camera import smooth_path
from rtmms.view.recording import Recording
from rtmms.view.scene import Picture
from rtmms.view.stage import Stage

FRAMES_HZ = 30.0
SPEEDS = ("0.05", "0.1", "0.25", "0.5", "1", "2", "5", "10")
MAX_PATH_POINTS = 4000
"""Points of the path."""
MAX_MARKS = 200
"""Marks of misses and overruns on the path."""
WINDOW_S = 0.25


class Player:
    """Panel of a log, and the clock that plays it.

    Parameters
    ----------
    server : Any
        Server of the view.
    recording : Recording
        The recording.

    Attributes
    ----------
    at : int
        Index of the shown state.
    """

    def __init__(self, server: Any, recording: Recording) -> None:
        self.recording, self.picture = recording, Picture(recording.info)
        self.stage = Stage(server, self.picture, self.picture.draw(recording.outputs(0)))
        self.at, self._server = 0, server
        self._paths = self.picture.paths(recording)
        self._shown, self._dirty = -1, threading.Event()
        self._targets = smooth_path(self._paths[0], recording.time, self.picture.size)
        self._position, self._begun = 0.0, False
        self._step_time: plots.Array = recording.steps.astype(np.float64) * float(recording.info.dt)
        self._marks = recording.marks
        self._build(server.gui)
        self._trace()
        server.on_client_connect(lambda _: self._begin())

    def _begin(self) -> None:
        """Play at the first visitor."""
        if not self._begun:
            self._begun = self.playing.value = True

    def _build(self, gui: Any) -> None:
        recording = self.recording
        last = float(recording.time[-1])
        gui.add_markdown(f"**{recording.info.robot}** · {len(recording.steps)} steps of {recording.info.dt:g} s")
        self.slider = gui.add_slider("time, s", 0.0, last, step=float(recording.info.dt), initial_value=0.0)
        self.buttons = gui.add_button_group("", ("play", "−1", "+1", "start"))
        self.speed = gui.add_dropdown("speed", SPEEDS, initial_value="1")
        self.playing = gui.add_checkbox("playing", False)
        self.slider.on_update(lambda event: self._slid(event))
        self.buttons.on_click(lambda event: self._press(event.target.value))
        with gui.add_folder("show"):
            self._toggles(gui)
        count = {kind: sum(1 for _, what in self._marks if what == kind) for kind in ("missed", "overrun")}
        with gui.add_folder("deadlines"):
            gui.add_markdown(f"{count['missed']} missed, {count['overrun']} overruns")
            if self._marks:
                near = gui.add_button_group("go to", ("previous", "next"))
                near.on_click(lambda event: self._to_mark(event.target.value == "next"))
            self.strip = plots.strip(gui, self._step_time, recording.times_us, 0.0, WINDOW_S)
        with gui.add_folder("plot"):
            names = plots.plottable(recording.info)
            chosen = "velocity" if "velocity" in names else names[-1]
            self.chosen = gui.add_dropdown("output", tuple(names), initial_value=chosen)
            self._plot: Any = None
            self._gui = gui
            self.chosen.on_update(lambda _: self._draw_plot())
            self._draw_plot()

    def _toggles(self, gui: Any) -> None:
        stage = self.stage
        self.follow = gui.add_checkbox("camera follows", True)
        aims = gui.add_checkbox("set-points", True, disabled=not self.recording.set_points)

        def aimed(_: Any) -> None:
            stage.aims, self._shown = aims.value, -1

        aims.on_update(aimed)
        self.follow.on_update(lambda _: setattr(stage, "follow", self.follow.value))
        for name, node in stage.nodes.items():
            box = gui.add_checkbox(name, bool(node.visible))

            def change(_: Any, box: Any = box, node: Any = node) -> None:
                node.visible = box.value
                self._shown = -1

            box.on_update(change)

    def _draw_plot(self) -> None:
        name = self.chosen.value
        if self._plot is not None:
            self._plot.remove()
            self._plot = None
        source = plots.source(name, self.recording.info)
        if source in self.recording.slices:
            shown = plots.output_curves(
                name, self.recording.time, self.recording.series(source), self.recording.set_points
            )
            self._plot = plots.output_plot(self._gui, shown, name)

    def _trace(self) -> None:
        """Draw the whole path, with a mark that can be clicked for each miss and overrun."""
        recording = self.recording
        stride = max(1, len(recording.time) // MAX_PATH_POINTS)
        self.stage.trace([path[::stride] for path in self._paths])
        for number, (time, kind) in enumerate(self._marks[:MAX_MARKS]):
            where = tuple(self._paths[0][self._index(time)].tolist())
            ball = self._server.scene.add_icosphere(
                f"/scene/marks/{number}", radius=0.015 * self.picture.size, position=where,
                color=(214, 69, 65) if kind == "overrun" else (233, 180, 76),
            )  # fmt: skip
            ball.on_click(lambda _, time=time: self.go(time))

    def _index(self, time: float) -> int:
        return min(int(np.searchsorted(self.recording.time, time - 1e-9)), len(self.recording.time) - 1)

    def go(self, time: float) -> None:
        """Show the state at an instant, and stop there.

        Parameters
        ----------
        time : float
            Time, s.
        """
        self.playing.value = False
        self._position = time
        self._dirty.set()

    def _slid(self, event: Any) -> None:
        if event.client is not None:  # a hand, not the clock
            self._position = float(self.slider.value)
            self._dirty.set()

    def _press(self, word: str) -> None:
        if word == "play":
            if self._position >= self.recording.time[-1]:
                self._position = 0.0
            self.playing.value = not self.playing.value
        elif word == "start":
            self.go(0.0)
        else:
            step = 1 if word == "+1" else -1
            k = min(max(self._index(self._position) + step, 0), len(self.recording.time) - 1)
            self.go(float(self.recording.time[k]))
        self._dirty.set()

    def _to_mark(self, forward: bool) -> None:
        now = self._position
        if forward:
            later = [time for time, _ in self._marks if time > now + 1e-9]
            self.go(later[0] if later else self._marks[0][0])
        else:
            before = [time for time, _ in self._marks if time < now - 1e-9]
            self.go(before[-1] if before else self._marks[-1][0])

    def run(self, until: Any) -> None:
        """Play until `until()`; late frames are left out.

        Parameters
        ----------
        until : Any
            Returns whether to end.
        """
        before = monotonic()
        while not until():
            self._dirty.wait(1.0 / FRAMES_HZ)
            self._dirty.clear()
            now = monotonic()
            if self.playing.value:
                self._position += (now - before) * float(self.speed.value)
                if self._position >= self.recording.time[-1]:
                    self._position, self.playing.value = float(self.recording.time[-1]), False
            before = now
            self.frame()

    def frame(self) -> None:
        """Show the present state, if it differs from the last one."""
        k = self._index(self._position)
        if k == self._shown:
            return
        self._shown = self.at = k
        drawn = self.picture.draw(self.recording.outputs(k))
        self.stage.show(drawn, self._targets[k])
        self.stage.aim(self.recording.tracked(float(self.recording.time[k])), drawn)
        time = float(self.recording.time[k])
        if abs(self.slider.value - time) > 0.5 * self.recording.info.dt:
            self.slider.value = time
        plots.update(self.strip, *plots.rows_near(self._step_time, self.recording.times_us, time, WINDOW_S))
