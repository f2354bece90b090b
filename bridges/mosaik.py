"""A plant that runs as a simulator of mosaik, which connects to the bridge: {"connect": "127.0.0.1:5678"}.

mosaik's own protocol is served by its library, in a thread with an event loop; `federation/simulator.py` has the calls.
Plants within mosaik's own process are there, too.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
from dataclasses import dataclass
from math import inf
from queue import SimpleQueue
from time import monotonic
from typing import Annotated, Any, ClassVar, Literal

import rtmms
from rtmms.reach import NamesAddress

from .federation.frames import steps_of
from .federation.grants import Grants
from .lines.addresses import family_of
from .lines.inbox import Inbox
from .lines.pacing import Pacer

_END_S = 1.0
_AGAIN_S = 0.1


@dataclass
class _Ask:
    """mosaik's step at time_s, with the values that hold from there on."""

    time_s: float
    values: dict[str, float]
    answer: SimpleQueue[Any]


@dataclass(kw_only=True)
class Mosaik(rtmms.Bridge):
    """The plant as a simulator of mosaik, time-based or hybrid, with one entity of the model 'Robot'.

    host, port   where to listen for mosaik
    step_s       from step to step: a multiple of the plant's step
    kind         time-based, or hybrid: a new value of an actuator makes a step at its own time
    stall_s      when mosaik does not ask for longer, it is named; 0: never
    on_stall     wait: in real time the plant goes on without it (peer_lost), in lockstep the plant waits; leave: hang
                 up, and let the plant go on alone
    In lockstep the run ends with mosaik's; otherwise it goes on (peer_lost), and mosaik may come again.
    """

    host: Annotated[str, NamesAddress("listen")] = "127.0.0.1"
    port: int = 5678
    step_s: float = 0.01
    kind: Literal["time-based", "hybrid"] = "time-based"
    stall_s: float = 1.0
    on_stall: Literal["wait", "leave"] = "wait"

    extra: ClassVar[str] = "mosaik"
    requires: ClassVar[dict[str, str]] = {"mosaik_api_v3": "mosaik-api-v3"}

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.port <= 65535:
            raise rtmms.ModelError(f"port: expected a port from 1 to 65535, got {self.port}")
        for key, least in (("step_s", 1e-9), ("stall_s", 0.0)):
            if not least <= getattr(self, key) < inf:
                raise rtmms.ModelError(f"{key}: expected a number >= {least:g} s, got {getattr(self, key)}")
        if self.rate_hz:
            raise rtmms.ModelError("rate_hz: mosaik's steps set the rate here: step_s")

    # --- hooks --------------------------------------------------------------------------------------------------------

    def open(self, plant: rtmms.PlantInfo) -> None:
        steps_of(self.step_s, plant, "step_s")
        # a port that is taken is told now, not by the thread
        try:
            socket.create_server((self.host, self.port), family=family_of(self.host)).close()
        except OSError as fault:
            raise rtmms.RtmmsError(f"cannot listen on TCP {self.host}:{self.port}: {fault.strerror or fault}") from None
        self._inbox: Inbox[_Ask | str] = Inbox()
        self.attend(self._inbox, self._on_event)
        self.waits = plant.mode == "lockstep" and bool(plant.granted)
        self._pacer = Pacer(self, self.waits, "mosaik")
        self._grants = Grants(self, "mosaik", plant.granted)
        self._ask: _Ask | None = None
        self._origin = -1
        self._time_s, self._answered, self._over = 0.0, 0.0, False
        self._values = dict(self.neutral())
        self.tick_s = 0.05
        self._pausing = self.waits
        if self.waits:
            self.io.post("pause")  # the first step waits for mosaik, however long it takes
        self._thread = threading.Thread(target=self._serve, name="mosaik", daemon=True)
        self._thread.start()
        self.io.tell(
            f"waiting for mosaik on TCP {self.host}:{self.port}; every program that reaches it can drive the robot"
        )

    def on_state(self, state: rtmms.State) -> None:
        if self._origin < 0:
            self._origin = state.step
        self._pacer.on_state(state)
        self._reply()

    def tick(self, now: float) -> None:
        self._pacer.tick(now)
        self._grants.tick(now)
        late = now - self._answered if self._answered else 0.0
        if not self.stall_s or late <= self.stall_s or self._over:
            return
        self._answered = 0.0
        self.counts.add("stalls")
        newest = self._pacer.newest
        ahead = "" if newest is None or self.waits else f", the plant is at t = {self._plant_s(newest):.6g} s"
        why = f"mosaik is {late:.2g} s late: its last step was at t = {self._time_s:.6g} s{ahead}"
        if self.on_stall == "leave":
            self._leave(why)
        elif self.waits:
            self.io.tell(why)
        else:
            self.on_peer_lost(why)

    def plant_again(self, plant: rtmms.PlantInfo) -> None:
        super().plant_again(plant)
        self.waits = plant.mode == "lockstep" and bool(plant.granted) and not self._over
        self._pacer.plant_again(self.waits)
        self._origin = -1

    def close(self, reason: str) -> None:
        self._over = True
        if hasattr(self, "_loop"):
            self._hang_up()
            self._thread.join(_END_S)
        super().close(reason)

    # --- mosaik's steps, in the loop of the bridge --------------------------------------------------------------------

    def _on_event(self) -> None:
        for event in self._inbox.take_all()[0]:
            if isinstance(event, _Ask):
                self._take(event)
            elif event == "begun":
                self.io.tell("mosaik is there")
            elif event == "ended":
                self._ended()
            elif event == "garbled":
                self.counts.refuse("garbled")
                self.io.tell(f"what came at {self.host}:{self.port} is not mosaik's protocol, version 3")
            else:
                raise rtmms.RtmmsError(f"mosaik: {event}")

    def _take(self, ask: _Ask) -> None:
        if self._over:
            ask.answer.put(rtmms.RtmmsError("the plant has left the simulation"))
            return
        self._ask, self._answered = ask, 0.0
        if self._pausing:
            self._pausing = False
            self.io.post("resume")
        newest = self._pacer.newest
        if self._pacer.locked and newest is not None:
            ahead = self._target(ask) - newest.step
            if ahead > 0:
                self._pacer.drive(self._values)
                self._pacer.go(ahead - (0 if self._pacer.waiting else 1))
                return
        self._reply()

    def _target(self, ask: _Ask) -> int:
        return self._origin + round(ask.time_s / self.plant.dt)

    def _plant_s(self, state: rtmms.State) -> float:
        return (state.step - self._origin) * self.plant.dt

    def _reply(self) -> None:
        """The outputs at mosaik's time, once the plant is there."""
        ask, newest = self._ask, self._pacer.newest
        if ask is None or newest is None or newest.step < self._target(ask):
            return
        self._ask = None
        self._values.update(ask.values)
        if self.plant.granted:
            self._pacer.drive(self._values)
        now_s = self._plant_s(newest)
        driven = [self._values[name] for name in self.plant.granted]
        self._grants.add([newest.step, ask.time_s, now_s, now_s - ask.time_s, *driven])
        self._time_s, self._answered = ask.time_s, monotonic()
        ask.answer.put(dict(newest.outputs))
        self.counts.add("sent")

    def _ended(self) -> None:
        self._ask, self._answered = None, 0.0
        if self._over:
            return
        if self.waits:
            self.io.tell(f"mosaik has ended at t = {self._time_s:.6g} s, and the run with it")
            self.io.post("stop")
            self._over = True
            self._pacer.go(1)  # requests are done between steps
        else:
            self._origin = -1
            self.on_peer_lost(f"mosaik has ended at t = {self._time_s:.6g} s")

    def _leave(self, why: str) -> None:
        self._over = True
        self.io.tell(f"{why}; the plant goes on alone")
        if self.waits:
            self._pacer.wake()
            self.waits = self._pacer.locked = False
            if self._pacer.waiting:
                self.io.command({})
        self.on_peer_lost(why)
        self._hang_up()

    # --- mosaik's protocol, in the thread -----------------------------------------------------------------------------

    def _serve(self) -> None:
        from mosaik_api_v3.connection import single_channel

        from .federation.simulator import Running

        self._loop = asyncio.new_event_loop()

        def call(kind: str) -> None:
            self._inbox.put(kind)

        async def serve() -> None:
            while not self._over:
                running = Running(
                    self.plant, self.step_s, self.kind, self._blocking, lambda: call("begun"), lambda: call("ended")
                )
                try:
                    channel = await single_channel(self.host, self.port)
                except OSError as fault:
                    call(f"cannot listen on {self.host}:{self.port}: {fault.strerror or fault}")
                    return
                try:
                    await _served(channel, running)
                except Exception:  # whatever the library makes of a stranger's bytes
                    call("garbled")
                    await asyncio.sleep(_AGAIN_S)

        self._serving = self._loop.create_task(serve())
        with contextlib.suppress(asyncio.CancelledError):
            self._loop.run_until_complete(self._serving)
        self._loop.run_until_complete(self._loop.shutdown_asyncgens())
        self._loop.close()

    def _blocking(self, time_s: float, values: dict[str, float]) -> Any:
        """In the thread: until the plant is at that time."""
        ask = _Ask(time_s, values, SimpleQueue())
        self._inbox.put(ask)
        found = ask.answer.get()
        if isinstance(found, Exception):
            raise found
        return found

    def _hang_up(self) -> None:
        if self._ask is not None:
            self._ask.answer.put(rtmms.RtmmsError("the plant has ended"))
        with contextlib.suppress(RuntimeError):  # it is closed already
            self._loop.call_soon_threadsafe(self._serving.cancel)


async def _served(channel: Any, running: Any) -> None:
    """Until mosaik ends. The library waits for ever where its reader failed: what that raised is raised here."""
    from mosaik_api_v3 import run_simulator

    reading = channel._receiver_task
    running_on = asyncio.ensure_future(run_simulator(channel, running, api_compliant=True))
    try:
        await asyncio.wait({reading, running_on}, return_when=asyncio.FIRST_COMPLETED)
        if reading.done() and not reading.cancelled() and reading.exception() is not None:
            raise reading.exception()
        await running_on
    finally:
        running_on.cancel()
        with contextlib.suppress(Exception):
            await channel.close()
