"""Serial line that never gets more than it carries, and that is searched for when it is unplugged."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Callable
from time import monotonic
from typing import Any, Literal

import rtmms
from rtmms.bridging.bridge import Io
from rtmms.bridging.counters import Counters
from rtmms.bridging.sending import Backoff, Outbox

from .framing import Line

_CHUNK = 4096
_MAX_READS = 16

Parity = Literal["none", "even", "odd"]
StopBits = Literal[1, 2]
Flow = Literal["none", "rtscts"]


def checked_device(device: str, baud: int, place: str = "device") -> None:
    """Raise ModelError for a name that can be no serial line.

    Parameters
    ----------
    device : str
        The name.
    baud : int
        Baud rate.
    place : str, default 'device'
        Source of the name, for the error.

    Raises
    ------
    ModelError
        If it cannot be one.
    """
    if not device:
        raise rtmms.ModelError(f"{place}: expected a serial device, such as /dev/ttyUSB0, got ''")
    if os.path.exists(device) and not stat.S_ISCHR(os.stat(device).st_mode) and os.name == "posix":
        raise rtmms.ModelError(f"{place}: expected a serial device, got '{device}', which is none")
    if not baud > 0:
        raise rtmms.ModelError(f"baud: expected a number > 0, got {baud}")


class SerialLine:
    """Serial line by pyserial; a message is written when the one before it has had its time on the line.

    Parameters
    ----------
    io : Io
        Services of the bridge's loop.
    counts : Counters
        Counters of the bridge.
    device : str
        Name of the line.
    baud : int
        Baud rate.
    received : Callable[[bytes], None]
        Called with bytes as they come, a bounded number at a time.
    came : Callable[[float], None]
        Called with the monotonic time when the line is open (again).
    gone : Callable[[str], None]
        Called with the reason when it is gone.
    parity, stop_bits, flow : Parity, default 'none'
        Settings of the line.
    begin : bytes, default b''
        Bytes that are sent first each time it is opened.
    limit : int, default 1
        Most waiting messages; the oldest is dropped for the next.
    """

    def __init__(
        self, io: Io, counts: Counters, device: str, baud: int, *, received: Callable[[bytes], None],
        came: Callable[[float], None], gone: Callable[[str], None], parity: Parity = "none", stop_bits: StopBits = 1,
        flow: Flow = "none", begin: bytes = b"", limit: int = 1,
    ) -> None:  # fmt: skip
        self._io, self._counts, self.device, self._baud = io, counts, device, baud
        self._received, self._came, self._gone = received, came, gone
        self._parity, self._stop_bits, self._flow, self._begin = parity, stop_bits, flow, begin
        self._port: Any = None
        self._line = Line(baud, 9 + stop_bits + (parity != "none"))
        self._backoff = Backoff(0.1, 2.0)
        self._outbox: Outbox[bytes] = Outbox(limit, counts)
        self._begun = b""  # the rest of a message that the line has the beginning of

    @property
    def open(self) -> bool:
        """Whether the line is open."""
        return self._port is not None

    @property
    def waiting(self) -> int:
        """Number of messages that wait for the line."""
        return len(self._outbox)

    def time_s(self, count: int) -> float:
        """Return the time of bytes on the line.

        Parameters
        ----------
        count : int
            Number of bytes.

        Returns
        -------
        float
            Time, s.
        """
        return self._line.time_s(count)

    def tick(self, now: float) -> bool:
        """Search for a missing line, if it is time.

        Parameters
        ----------
        now : float
            Monotonic time, s.

        Returns
        -------
        bool
            Whether the line was open.
        """
        if self._port is None:
            if self._backoff.due(now):
                self.plug_in(now)
            return False
        return True

    def plug_in(self, now: float) -> None:
        """Open the line, if it is there.

        Parameters
        ----------
        now : float
            Monotonic time, s.
        """
        import serial

        try:
            self._port = serial.Serial(
                self.device, self._baud, parity=self._parity[0].upper(), stopbits=self._stop_bits, timeout=0,
                write_timeout=0, rtscts=self._flow == "rtscts", exclusive=True,
            )  # fmt: skip
        except (OSError, ValueError) as fault:  # SerialException is an OSError
            self._counts.add("not_there")
            if self._backoff.failed(now) <= self._backoff.first_s:
                self._io.log(f"{self.device}: {fault}; trying again")
            return
        os.set_blocking(self._port.fileno(), False)
        self._backoff.succeeded()
        self._counts.add("connections")
        self._io.log(f"{self.device} is open")
        self._line.clear()
        self._begun = self._begin
        self._io.watch(self._port.fileno(), self._on_readable)
        self._came(now)
        self.pump(now)

    def put(self, message: bytes) -> None:
        """Send a message now, or when the line is free; nothing without a line.

        Parameters
        ----------
        message : bytes
            The message.
        """
        if self._port is not None:
            self._outbox.put(message)
            self.pump(monotonic())

    def pump(self, now: float) -> None:
        """Send the rest of a message, then the next one if the line is free.

        Parameters
        ----------
        now : float
            Monotonic time, s.
        """
        if self._port is None:
            return
        try:
            if not self._begun and len(self._outbox) and self._line.free(now) and not self._held_up():
                self._begun = self._outbox.take() or b""
            count = os.write(self._port.fileno(), self._begun) if self._begun else 0
        except BlockingIOError:
            count = 0
        except OSError as fault:
            self._broken(fault)
            return
        self._line.sent(count, now)
        whole, self._begun = self._begun, self._begun[count:]
        if whole and not self._begun and whole != self._begin:
            self._counts.add("sent")
        self._io.watch(self._port.fileno(), self._on_readable, self._on_writable if self._begun else None)

    def close(self, last: bytes = b"") -> None:
        """Close the line after a last message, if the line accepts it at once.

        Parameters
        ----------
        last : bytes, default b''
            The message.
        """
        if self._port is not None:
            if last:
                with contextlib.suppress(OSError):
                    os.write(self._port.fileno(), self._begun + last)
            self._unplug()

    def _unplug(self) -> None:
        port, self._port = self._port, None
        self._io.unwatch(port.fileno())
        self._begun = b""
        self._outbox.clear()
        with contextlib.suppress(OSError):
            port.close()

    def _broken(self, fault: OSError) -> None:
        self._io.log(f"{self.device} is lost ({fault}); trying again")
        self._counts.add("unplugged")
        self._unplug()
        self._backoff.failed()
        self._gone("unplugged")

    def _held_up(self) -> bool:
        """Return whether flow control stops the line, so that data in the system would be sent too late."""
        return self._flow != "none" and self._port.out_waiting > 0

    def _on_writable(self) -> None:
        self.pump(monotonic())

    def _on_readable(self) -> None:
        """Read available bytes, a bounded number at a time."""
        result, broken = [], None
        for i in range(_MAX_READS):
            try:
                data = os.read(self._port.fileno(), _CHUNK)
                if not data and i == 0:
                    raise OSError(
                        "the device is ready but sends no data: it may be unplugged"
                    )  # as a device has it that was unplugged
            except BlockingIOError:
                break
            except OSError as fault:
                broken = fault
                break
            if not data:
                break
            result.append(data)
        if broken is not None:
            self._broken(broken)
        elif result:
            self._received(b"".join(result))
