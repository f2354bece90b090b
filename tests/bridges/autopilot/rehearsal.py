"""A bridge, a small aircraft on a floor and an imitated autopilot, on a clock that the test moves: nothing waits.

The loop, its modes and its requests are imitated as far as bridges of autopilots use them. Sockets are real ones of
this machine, read when their bytes are there.
"""

from __future__ import annotations

import selectors
from collections.abc import Callable, Iterator, Mapping
from math import sqrt
from typing import Any, Protocol

import numpy as np
import pytest

import rtmms
from rtmms.bridging.counters import Counters
from rtmms.bridging.runner import watch_of
from rtmms.plant.protocol import Channel
from rtmms.wire.protocol.received_state import PlantInfo, State
from tests.loopback import deliver_all

MODULES = (
    "rtmms_bridges.ardupilot", "rtmms_bridges.betaflight", "rtmms_bridges.px4", "rtmms_bridges.lines.pacing",
    "rtmms_bridges.lines.tcp_peer", "rtmms.bridging.peer_watch", "rtmms.bridging.sending",
)  # fmt: skip
ROTORS = ("front", "left", "back", "right")
GRAVITY = 9.81


class Hopper:
    """The quadrotor of the package, which stays level: it goes up and down over a floor at z = 0."""

    mass_kg, thrust_n_s2, max_rad_s = 0.5, 5.6e-6, 800.0

    def __init__(self, dt: float) -> None:
        self.dt = dt
        self.actuators = tuple(Channel(f"{name}.speed", "rad/s", lower=0.0, upper=self.max_rad_s) for name in ROTORS)
        self.outputs = (
            Channel("position", "m", (3,), "world"), Channel("quaternion", "", (4,), "world"),
            Channel("velocity", "m/s", (3,), "body"), Channel("angular_velocity", "rad/s", (3,), "body"),
        )  # fmt: skip
        self.resets = -1
        self.reset()

    @property
    def hover_rad_s(self) -> float:
        return sqrt(self.mass_kg * GRAVITY / 4.0 / self.thrust_n_s2)

    def reset(self) -> None:
        self.step_count, self.z, self.vz = 0, 0.0, 0.0
        self.resets += 1

    def step(self, command: Mapping[str, float]) -> None:
        speeds = [min(self.max_rad_s, max(0.0, command.get(f"{name}.speed", 0.0))) for name in ROTORS]
        lift = self.thrust_n_s2 * sum(speed * speed for speed in speeds)
        self.vz += (lift / self.mass_kg - GRAVITY - 0.2 * self.vz) * self.dt
        self.z += self.vz * self.dt
        if self.z <= 0.0:
            self.z, self.vz = 0.0, max(0.0, self.vz)
        self.step_count += 1

    def observe(self) -> dict[str, Any]:
        return {
            "position": [0.0, 0.0, self.z], "quaternion": [1.0, 0.0, 0.0, 0.0], "velocity": [0.0, 0.0, self.vz],
            "angular_velocity": [0.0, 0.0, 0.0],
        }  # fmt: skip


class Tank:
    """A robot of the package, in place of the small aircraft."""

    def __init__(self, plant: Any) -> None:
        self.inner, self.dt, self.actuators, self.outputs = plant, plant.dt, plant.actuators, plant.outputs
        self._names = [channel.name for channel in plant.actuators]
        self.resets = -1
        self.reset()

    def reset(self) -> None:
        self.inner.reset()
        self.step_count = 0
        self.resets += 1

    def step(self, command: Mapping[str, float]) -> None:
        self.inner.step(np.array([command.get(name, 0.0) for name in self._names]))
        self.step_count += 1

    def observe(self) -> dict[str, Any]:
        return {name: value.tolist() for name, value in self.inner.observe().items()}


class Pilot(Protocol):
    """An imitated autopilot."""

    def start(self) -> None:
        """Start as a process does."""

    def kill(self) -> None:
        """End without a word to anybody, as after SIGKILL."""

    def run(self, now: float) -> None:
        """Do what is to be done at this instant of the clock, s."""


class Rehearsal:
    """The bridge beside the plant. Implements rtmms.bridging.bridge.Io for it.

    Attributes
    ----------
    now : float
        The clock of all, s.
    messages : list of str
        Lines that the bridge printed.
    stopped : bool
        The bridge asked the plant to end the run.
    """

    def __init__(
        self, bridge: rtmms.Bridge, monkeypatch: pytest.MonkeyPatch, *, mode: str = "lockstep", dt: float = 1e-3,
        duration_s: float | None = 600.0, plant: Any = None, airframe: str = "quad_plus",
    ) -> None:  # fmt: skip
        self.now, self.messages, self.stopped = 1000.0, [], False
        for module in MODULES:
            monkeypatch.setattr(f"{module}.monotonic", lambda: self.now)
        self.plant = Hopper(dt) if plant is None else plant
        self.pilot: Pilot | None = None
        self._selector = selectors.DefaultSelector()
        self._command: dict[str, float] = {}
        self._requests: list[str] = []
        self._answered, self._paused = True, False
        self._next_tick = self.now
        granted = tuple(channel.name for channel in self.plant.actuators)
        period = dt if mode == "realtime" else None
        info = PlantInfo(
            "hopper", dt, mode, period, None, self.plant.actuators, self.plant.outputs, granted=granted,
            selected=tuple(channel.name for channel in self.plant.outputs), airframe=airframe,
            duration_s=duration_s, environment={"gravity_m_s2": (0.0, 0.0, -GRAVITY)},
        )  # fmt: skip
        self.info, self.bridge = info, bridge
        bridge.io, bridge.plant, bridge.counts, bridge.peer_watch = self, info, Counters(), watch_of(bridge)
        bridge.open(info)
        self._publish()

    def close(self) -> None:
        self.bridge.close("the test ends")
        self._selector.close()

    # -- Io ----------------------------------------------------------------------------------------------------------

    def watch(
        self, file: Any, readable: Callable[[], None] | None = None, writable: Callable[[], None] | None = None
    ) -> None:
        events = (selectors.EVENT_READ if readable else 0) | (selectors.EVENT_WRITE if writable else 0)
        self.unwatch(file)
        self._selector.register(file, events, (readable, writable))

    def unwatch(self, file: Any) -> None:
        if file in [key.fileobj for key in self._selector.get_map().values()]:
            self._selector.unregister(file)

    def command(self, values: Mapping[str, float]) -> None:
        self._command.update(values)
        self._answered = True

    def post(self, op: str, **args: Any) -> None:
        self._requests.append(op)

    def ask(self, op: str, done: Callable[[bool, Any], None], **args: Any) -> None:
        done(True, None)

    def log(self, text: str) -> None:
        self.messages.append(text)

    # -- the run -----------------------------------------------------------------------------------------------------

    def start(self, pilot: Pilot) -> None:
        """Start the autopilot, which has its turn in each period from now on."""
        deliver_all()  # else it receives packets to the one before
        pilot.start()
        self.pilot = pilot

    def kill(self) -> None:
        """End the autopilot; the bridge has received all that it sent."""
        assert self.pilot is not None
        self.pilot.kill()
        deliver_all()
        self.attend()

    def run(self, seconds: float, until: Callable[[], bool] | None = None) -> None:
        """Let the clock run, in periods of the plant; `until` ends it before, and then has to come true."""
        for _ in range(round(seconds / self.plant.dt)):
            self._period()
            if until is not None and until():
                return
        assert until is None, "it never came true"

    def _period(self) -> None:
        self.now += self.plant.dt
        locked = self.info.mode == "lockstep"
        if self._answered or not locked or self._paused:
            self._between_steps()
        if not self._paused and not self.stopped and (self._answered or not locked):
            self.plant.step(self._command)
            self._publish()
        if self.pilot is not None:
            self.pilot.run(self.now)
            self.attend()
        if self.now >= self._next_tick:
            self._next_tick = self.now + self.bridge.tick_s
            self.attend()
            if self.bridge.peer_watch.trips(self.now):
                self.bridge.on_peer_lost("the peer has been silent")
            self.bridge.tick(self.now)

    def _between_steps(self) -> None:
        """The requests, which a loop serves between two steps alone."""
        while self._requests:
            op = self._requests.pop(0)
            self._paused = op == "pause" or (self._paused and op != "resume")
            self.stopped |= op == "stop"
            if op == "reset":
                self.plant.reset()
                self._publish()

    def _publish(self) -> None:
        self._answered = not self.bridge.waits
        message = {
            "step": self.plant.step_count, "timestamp": self.plant.step_count * self.plant.dt,
            "outputs": self.plant.observe(),
        }  # fmt: skip
        self.bridge.on_state(State(message, self.info))

    def attend(self) -> None:
        for key, events in self._selector.select(0.0):
            readable, writable = key.data
            if events & selectors.EVENT_READ and readable is not None:
                readable()
            if events & selectors.EVENT_WRITE and writable is not None and key.fd in self._selector.get_map():
                writable()


_OF_RUN = ("dt", "duration_s", "plant", "airframe")
"""Keywords of a rehearsal."""


def rehearsals(
    monkeypatch: pytest.MonkeyPatch, bridge: Callable[..., rtmms.Bridge], pilot: Callable[[Rehearsal], Pilot],
    **defaults: Any,
) -> Iterator[Callable[..., tuple[Rehearsal, Any]]]:  # fmt: skip
    """Yield a function that opens a bridge and its autopilot; close in the end what it opened.

    The function takes the mode and the keywords of a rehearsal, and options of the bridge.
    """
    opened: list[tuple[Rehearsal, Pilot]] = []

    def rehearse(mode: str, **options: Any) -> tuple[Rehearsal, Any]:
        chosen = defaults | options
        of_run = {name: chosen.pop(name) for name in _OF_RUN if name in chosen}
        run = Rehearsal(bridge(**chosen), monkeypatch, mode=mode, **of_run)
        opened.append((run, pilot(run)))
        return opened[-1]

    yield rehearse
    for run, item in opened:
        item.kill()
        run.close()
