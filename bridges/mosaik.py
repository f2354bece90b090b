"""Running plant as a simulator of mosaik, which connects to the bridge: {"connect": "127.0.0.1:5678"}.

mosaik's library implements its protocol, in a thread with an event loop. `federation/simulator.py` has the calls, and
plants within mosaik's own process.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from time import monotonic
from typing import Annotated, Any, ClassVar, Literal

import rtmms
from rtmms.base.local_addresses import NamesAddress
from rtmms.base.override import override
from rtmms.base.parameters import Parameter

from .federation.frames import steps_of
from .federation.grants import Grants
from .lines.addresses import family_of
from .lines.inbox import Inbox
from .lines.pacing import Pacer

_END_S = 1.0
_RETRY_S = 0.1
_MAX_FIRST_S = 10.0
"""Time in which a connection must begin mosaik's protocol, s; else it is closed, so that others may connect."""
_MAX_MESSAGE_BYTES = 1 << 20
"""Bytes that a message may announce in its header, which has room for 4 GiB."""
_MAX_WAITING = 16
"""Requests that may wait for earlier ones; mosaik sends the next one when the last is answered."""


@dataclass
class _Ask:
    """Step of mosaik at time_s, with the values that hold from there on.

    `answer` is the future of mosaik's loop for the outputs.
    """

    time_s: float
    values: dict[str, float]
    answer: asyncio.Future[Any]

    def reply(self, result: Any) -> None:
        """Pass the outputs, or an exception, to mosaik's loop, from the thread of the bridge."""
        with contextlib.suppress(RuntimeError):  # that loop has ended
            self.answer.get_loop().call_soon_threadsafe(self._settle, result)

    def _settle(self, result: Any) -> None:
        if self.answer.done():  # mosaik has left meanwhile
            return
        if isinstance(result, Exception):
            self.answer.set_exception(result)
        else:
            self.answer.set_result(result)


@dataclass(kw_only=True)
class Mosaik(rtmms.Bridge):
    """The plant as a simulator of mosaik, time-based or hybrid, with one entity of the model 'Robot'.

    In lockstep the run ends when mosaik stops it. Otherwise it continues (peer_lost), and mosaik may come again. A
    mosaik that leaves without a stop is lost: its step ends at once, and in lockstep the plant waits for another one.

    The declaration of each field has its meaning, unit and range.
    """

    host: Annotated[str, NamesAddress("listen"), Parameter("Address at which the bridge listens.")] = "127.0.0.1"
    port: Annotated[int, Parameter("Port at which the bridge listens for mosaik.", ge=1, le=65535)] = 5678
    step_s: Annotated[float, Parameter("Time from step to step, a multiple of the plant's step.", "s", ge=1e-9)] = 0.01
    kind: Annotated[Literal["time-based", "hybrid"], Parameter(
        "Type of the simulator in mosaik; in hybrid, a new value of an actuator causes a step at its own time.",
    )] = "time-based"  # fmt: skip
    stall_s: Annotated[
        float,
        Parameter(
            "Time without a request of mosaik after which the log names it; 0: never.",
            "s",
            ge=0,
        ),
    ] = 1.0
    on_stall: Annotated[Literal["wait", "leave"], Parameter(
        "Reaction to a lost mosaik: the plant continues (lockstep: waits), or the bridge disconnects.",
    )] = "wait"  # fmt: skip

    sends_on_events: ClassVar[bool] = True
    extra: ClassVar[str] = "mosaik"
    requires: ClassVar[dict[str, str]] = {"mosaik_api_v3": "mosaik-api-v3"}

    def __post_init__(self) -> None:
        """Check the parameters."""
        super().__post_init__()
        if self.rate_hz:
            raise rtmms.ModelError("rate_hz: expected none, as step_s sets the rate")

    # --- hooks --------------------------------------------------------------------------------------------------------

    @override
    def open(self, plant: rtmms.PlantInfo) -> None:
        """Start the server.

        Raises
        ------
        RtmmsError
            If it cannot listen at the address.
        """
        steps_of(self.step_s, plant, "step_s")
        # a port that is taken is reported now, not by the thread
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
        self._listening = threading.Event()
        self._thread = threading.Thread(target=self._serve, name="mosaik", daemon=True)
        self._thread.start()
        self.io.log(
            f"waiting for mosaik on TCP {self.host}:{self.port}; every program that reaches it can drive the robot"
        )

    @override
    def on_state(self, state: rtmms.State) -> None:
        """Handle a state, and answer mosaik's step if it is reached."""
        if self._origin < 0:
            self._origin = state.step
        self._pacer.on_state(state)
        self._reply()

    @override
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
            self.io.log(why)
        else:
            self.on_peer_lost(why)

    @override
    def plant_again(self, plant: rtmms.PlantInfo) -> None:
        super().plant_again(plant)
        self.waits = plant.mode == "lockstep" and bool(plant.granted) and not self._over
        self._pacer.plant_again(self.waits)
        self._origin = -1

    @override
    def let_go(self, values: Mapping[str, float]) -> None:
        """Drive the actuators of a lost mosaik; in lockstep no step begins with that."""
        if self.waits:
            self._values.update(values)
            self._pacer.idle(values)
        else:
            super().let_go(values)

    @override
    def close(self, reason: str) -> None:
        """Close the server."""
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
                self.io.log("mosaik is connected")
            elif event == "ended":
                self._ended()
            elif event == "left":
                self._left()
            elif event == "malformed":
                self.counts.refuse("malformed")
                self.io.log(f"the peer at {self.host}:{self.port} does not send the protocol of mosaik, version 3")
            else:
                raise rtmms.RtmmsError(f"mosaik: {event}")

    def _take(self, ask: _Ask) -> None:
        if self._over:
            ask.reply(rtmms.RtmmsError("the plant has left the simulation"))
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
        """Send the outputs at mosaik's time, once the plant is there."""
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
        ask.reply(dict(newest.outputs))
        self.counts.add("sent")

    def _ended(self) -> None:
        self._ask, self._answered = None, 0.0
        if self._over:
            return
        if self.waits:
            self.io.log(f"mosaik has ended at t = {self._time_s:.6g} s, so the run ends")
            self.io.post("stop")
            self._over = True
            self._pacer.go(1)  # requests are done between steps
        else:
            self._origin = -1
            self.on_peer_lost(f"mosaik has ended at t = {self._time_s:.6g} s")

    def _left(self) -> None:
        """Handle a connection that closed without a stop.

        Its requested steps end here, and another mosaik may come.
        """
        self._ask, self._answered = None, 0.0
        if self._over:
            return
        newest = self._pacer.newest
        self._origin = newest.step if self.waits and newest is not None else -1
        why = f"mosaik has left at t = {self._time_s:.6g} s"
        self._time_s = 0.0
        self.on_peer_lost(f"{why}; the plant waits for another one" if self.waits else why)

    def _leave(self, why: str) -> None:
        self._over = True
        self.io.log(f"{why}; the plant continues without mosaik")
        if self.waits:
            self._pacer.wake()
            self.waits = self._pacer.locked = False
            if self._pacer.waiting:
                self.io.command({})
        self.on_peer_lost(why)
        self._hang_up()

    # --- mosaik's protocol, in the thread -----------------------------------------------------------------------------

    def _serve(self) -> None:
        from .federation.simulator import Running

        self._loop = asyncio.new_event_loop()

        def call(kind: str) -> None:
            self._inbox.put(kind)

        async def serve() -> None:
            while not self._over:
                try:
                    channel = await _accepted(self.host, self.port, self._listening)
                except OSError as fault:
                    call(f"cannot listen on {self.host}:{self.port}: {fault.strerror or fault}")
                    return
                running = Running(
                    self.plant, self.step_s, self.kind, self._asked, lambda: call("begun"),
                    partial(_announce_end, channel, call),
                )  # fmt: skip
                try:
                    await _served(channel, running)
                except Exception:  # whatever the library makes of a stranger's bytes
                    call("malformed")
                    await asyncio.sleep(_RETRY_S)

        self._serving = self._loop.create_task(serve())
        with contextlib.suppress(asyncio.CancelledError):
            self._loop.run_until_complete(self._serving)
        self._loop.run_until_complete(self._loop.shutdown_asyncgens())
        self._loop.close()

    def _asked(self, time_s: float, values: dict[str, float]) -> asyncio.Future[Any]:
        """Ask for the outputs at a time, in mosaik's thread."""
        ask = _Ask(time_s, values, asyncio.get_running_loop().create_future())
        self._inbox.put(ask)
        return ask.answer

    def _hang_up(self) -> None:
        if self._ask is not None:
            self._ask.reply(rtmms.RtmmsError("the plant has ended"))
        with contextlib.suppress(RuntimeError):  # it is closed already
            self._loop.call_soon_threadsafe(self._serving.cancel)


def _announce_end(channel: Any, call: Callable[[str], None]) -> None:
    call("ended" if channel.stopped else "left")


class _BoundedReader:
    """Reader of a stream for mosaik's library, which would allocate whatever a message announces."""

    def __init__(self, stream: asyncio.StreamReader) -> None:
        self._stream = stream
        self.waiting: Callable[[], int] = lambda: 0

    async def readexactly(self, count: int) -> bytes:
        """Return `count` bytes; ValueError for too long a message, and for too many requests at once."""
        if count > _MAX_MESSAGE_BYTES:
            raise ValueError(f"expected a message of at most {_MAX_MESSAGE_BYTES} bytes, got {count}")
        if self.waiting() > _MAX_WAITING:
            raise ValueError(f"at most {_MAX_WAITING} requests may wait, got more")
        return await self._stream.readexactly(count)


async def _accepted(host: str, port: int, listening: threading.Event) -> Any:
    """Listen until a connection comes, and return it as a channel of mosaik's; meanwhile others are closed.

    `listening` is set while a connection is accepted. The channel's `stopped` is set when mosaik has sent its stop.
    """
    from mosaik_api_v3.connection import Channel

    class StopChannel(Channel):
        stopped = False

        async def next_request(self) -> Any:
            request = await super().next_request()
            content = request.content
            self.stopped = self.stopped or (isinstance(content, list) and content[:1] == ["stop"])
            return request

    first: asyncio.Future[tuple[asyncio.StreamReader, asyncio.StreamWriter]]
    first = asyncio.get_running_loop().create_future()

    async def came(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if first.done():
            writer.close()
        else:
            first.set_result((reader, writer))

    server = await asyncio.start_server(came, host, port)
    listening.set()
    try:
        reader, writer = await first
    finally:
        listening.clear()
        server.close()
    bounded: Any = _BoundedReader(reader)
    channel = StopChannel(bounded, writer)
    bounded.waiting = channel._incoming_requests.qsize
    return channel


async def _served(channel: Any, running: Any) -> None:
    """Serve mosaik until it ends or leaves.

    The library waits for ever if its reader failed; its exception is raised here. A step under way ends with the
    connection.
    """
    from mosaik_api_v3 import run_simulator

    reading = channel._receiver_task
    running_on = asyncio.ensure_future(run_simulator(channel, running, api_compliant=True))
    try:
        await asyncio.wait({reading, running_on}, timeout=_MAX_FIRST_S, return_when=asyncio.FIRST_COMPLETED)
        if not (running.begun or reading.done() or running_on.done()):
            raise TimeoutError(f"mosaik sent nothing within {_MAX_FIRST_S:g} s")
        await asyncio.wait({reading, running_on}, return_when=asyncio.FIRST_COMPLETED)
        if reading.done() and not reading.cancelled() and reading.exception() is not None:
            raise reading.exception()
        running.leave()
        try:
            await running_on
        except Exception:
            if not (running.begun and reading.done()):  # else it has left without a word, which is not malformed
                raise
    finally:
        running_on.cancel()
        with contextlib.suppress(asyncio.CancelledError, Exception):
            await running_on
        with contextlib.suppress(Exception):
            await channel.close()
