"""Running plant in the browser: an observer as bridges are, attached and detached at will."""

from __future__ import annotations

import os
from collections import deque
from contextlib import suppress
from dataclasses import dataclass
from time import monotonic
from typing import Annotated, Any

import numpy as np

from rtmms.base.errors import ModelError
from rtmms.base.local_addresses import NamesAddress
from rtmms.base.override import override
from rtmms.base.parameters import Parameter
from rtmms.bridging.bridge import Bridge
from rtmms.view import stage as plots
from rtmms.view.scene import Picture
from rtmms.view.stage import Stage, end, serve
from rtmms.wire.protocol.received_state import PlantInfo, State

KEPT_S = 20.0
PLOTS_S = 0.25
STATUS_S = 1.0
COUNTED = ("missed", "overruns")


@dataclass(kw_only=True)
class View(Bridge):
    """The robot in the browser, live: its shape, path, forces and outputs, and how its deadlines are kept.

    Attributes
    ----------
    outputs : tuple[str, ...], default ('*',)
        Outputs that the view reads.
    host : str, default '127.0.0.1'
        Address at which the bridge listens.
    port : int, default 0
        Port at which the bridge listens; a busy one is refused; 0 means 8080, or a free one.
    telemetry : str, default ''
        Telemetry endpoint of the plant; the bridge refuses another plant; '': any.
    frames_hz : float, default 30.0
        Pictures per second of wall time, at most; earlier ones are left out. Unit: Hz.
    """

    outputs: tuple[str, ...] = ("*",)
    host: Annotated[str, NamesAddress("listen"), Parameter("Address at which the bridge listens.")] = "127.0.0.1"
    port: Annotated[int, Parameter(
        "Port at which the bridge listens; a busy one is refused; 0 means 8080, or a free one.", ge=0, le=65535,
    )] = 0  # fmt: skip
    telemetry: Annotated[str, Parameter(
        "Telemetry endpoint of the plant; the bridge refuses another plant; '': any.",
    )] = ""  # fmt: skip
    frames_hz: Annotated[float, Parameter(
        "Pictures per second of wall time, at most; earlier ones are left out.", "Hz", ge=0.1, le=240,
    )] = 30.0  # fmt: skip

    extra = "view"
    requires = {"viser": "viser"}  # noqa: RUF012

    @override
    def open(self, plant: PlantInfo) -> None:
        """Start the server."""
        self._refuse_another(plant)
        with suppress(OSError, AttributeError):
            os.nice(10)  # pictures may wait; the controllers beside it may not
        self.server = serve(self.host, self.port, f"rtmms {plant.robot}")
        self.closing.callback(end, self.server)
        self._picture = Picture(plant)
        self._stage: Stage | None = None
        self._due = self._plots_due = self._status_due = 0.0
        self._asked = False
        self._begun, self._step, self._shown = monotonic(), -1, 0
        self._points: deque[tuple[float, dict[str, Any]]] = deque(maxlen=64)
        self._plot_samples: deque[tuple[float, Any]] = deque(maxlen=int(KEPT_S / PLOTS_S * 4))
        self._statuses: deque[tuple[float, ...]] = deque(maxlen=int(60.0 / STATUS_S))
        self._build()
        self.io.log(f"view: open http://{self.host}:{self.server.get_port()} in a browser")

    def _refuse_another(self, plant: PlantInfo) -> None:
        """Refuse a plant with another telemetry port.

        A plant may be bound to all addresses, under other names than ours.
        """
        endpoint = plant.telemetry_endpoint
        if self.telemetry and endpoint and endpoint.rpartition(":")[2] != self.telemetry.rpartition(":")[2]:
            raise ModelError(
                f"--telemetry {self.telemetry}: expected the telemetry of the plant with its exchange at PORT - 2 "
                f"('{plant.robot}'), which is '{endpoint}'; name the exchange of the right plant with --exchange "
                "ENDPOINT"
            )

    def _build(self) -> None:
        gui, plant = self.server.gui, self.plant
        self._heading = gui.add_markdown(f"**{plant.robot}** · {plant.mode} · dt {plant.dt:g} s")
        self._follow = gui.add_checkbox("camera follows", True)
        names = plots.plottable(plant)
        chosen = "velocity" if "velocity" in names else names[-1]
        with gui.add_folder("plot"):
            self._chosen = gui.add_dropdown("output", tuple(names), initial_value=chosen)
            self._chosen.on_update(lambda _: self._forget_plot())
        self._plot: Any = None
        self._labels: tuple[str, ...] = ()
        self._folder = gui.add_folder("deadlines")
        with self._folder:
            self._counts = gui.add_markdown("…")
        self._strip: Any = None

    def _forget_plot(self) -> None:
        self._plot_samples.clear()
        if self._plot is not None:
            self._plot.remove()
            self._plot = None

    @override
    def on_state(self, state: State) -> None:
        """Show a state, if the next picture is due."""
        now = monotonic()
        if now < self._due or state.step < 0:
            return
        self._due = max(self._due + 1.0 / self.frames_hz, now)
        drawn = self._picture.draw(state.outputs)
        if self._stage is None:
            self._stage = Stage(self.server, self._picture, drawn)
            self._toggles(self._stage)
        elif state.step < self._step:
            self._stage.forget()
            self._points.clear()
            self._forget_plot()
        self._step = state.step
        self._stage.follow = self._follow.value
        self._stage.show(drawn)
        self._stage.travel(drawn)
        self._stage.aim(self._points[-1][1] if self._points else {}, drawn)
        self._shown += 1
        name = plots.source(self._chosen.value, self.plant)
        if name in state.outputs:
            value = state.outputs[name]
            self._plot_samples.append((state.time, value if isinstance(value, list) else [value]))
        if now >= self._plots_due:
            self._plots_due = now + PLOTS_S
            self._draw_plot(self._chosen.value)

    def _toggles(self, stage: Stage) -> None:
        gui = self.server.gui
        with gui.add_folder("show"):
            aims = gui.add_checkbox("set-points", stage.aims)
            aims.on_update(lambda _: setattr(stage, "aims", aims.value))
            for name, node in stage.nodes.items():
                box = gui.add_checkbox(name, bool(node.visible))

                def change(_: Any, box: Any = box, node: Any = node) -> None:
                    node.visible = box.value

                box.on_update(change)

    def _draw_plot(self, name: str) -> None:
        if len(self._plot_samples) < 2:
            return
        stored = list(self._plot_samples)
        time, values = np.array([t for t, _ in stored]), np.array([v for _, v in stored], dtype=float)
        shown = plots.output_curves(name, time, values, self._points)
        if self._plot is not None and shown.names != self._labels:
            self._plot.remove()
            self._plot = None
        self._labels = shown.names
        if self._plot is None:
            self._plot = plots.output_plot(self.server.gui, shown, name)
        else:
            plots.update(self._plot, time, shown.values)

    @override
    def tick(self, now: float) -> None:
        """Ask the plant for its status, if that is due."""
        if now >= self._status_due and not self._asked and self._shown:
            self._status_due, self._asked = now + STATUS_S, True
            self.io.ask("status", self._answered)

    def _answered(self, well: bool, result: Any) -> None:
        self._asked = False
        if not well or not isinstance(result, dict):
            return
        points = result.get("set_points") or {}
        if not self._points or self._points[-1][1] != points:
            self._points.append((float(result.get("time", 0.0)), points))
        misses, overruns = int(result.get("misses", 0)), int(result.get("overruns", 0))
        rate = self._shown / max(monotonic() - self._begun, 1e-3)
        stale = f", {result['stale']} too old" if result.get("stale") else ""
        self._counts.content = f"{misses} missed{stale}, {overruns} overruns · {rate:.0f} pictures/s"
        self._statuses.append((float(result.get("time", 0.0)), misses, overruns))
        if len(self._statuses) < 2:
            return
        states = np.array(self._statuses)
        # since the status before
        each = np.diff(states[:, 1:], axis=0)
        if self._strip is None:
            with self._folder:
                self._strip = plots.curves(self.server.gui, states[1:, 0], each, COUNTED, "in each second")
        else:
            plots.update(self._strip, states[1:, 0], each)
