"""CAN bus by python-can: opened when it is there, read without waiting, and searched for again when it is gone."""

from __future__ import annotations

import logging
import re
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext, suppress
from typing import Any

import rtmms
from rtmms.bridging.bridge import Io
from rtmms.bridging.counters import Counters
from rtmms.bridging.sending import Backoff

from ..lines.from_here import from_here
from ..lines.inbox import Inbox

INTERFACES = (
    "canalystii", "cantact", "etas", "gs_usb", "iscan", "ixxat", "kvaser", "neousys", "neovi", "nican", "nixnet",
    "pcan", "robotell", "seeedstudio", "serial", "slcan", "socketcan", "socketcand", "systec", "udp_multicast",
    "usb2can", "vector", "virtual",
)  # fmt: skip
"""Permitted interfaces of python-can."""
SERIAL_INTERFACES = ("robotell", "seeedstudio", "serial", "slcan")
"""Interfaces with a serial line as channel.

pyserial would read URLs there, some of which write files (spy://).
"""
OPTIONS = (
    "bitrate", "data_bitrate", "fd_bitrate", "port", "hop_limit", "host", "tcp_tune", "receive_own_messages",
    "local_loopback", "ignore_rx_error_frames", "listen_only", "rtscts", "tty_baudrate", "ttyBaudrate", "baudrate",
    "poll_interval", "sleep_after_open", "timeout", "rx_queue_size", "can_termination", "device_id", "device",
    "serial", "unique_hardware_id", "frame_type", "operation_mode", "app_name", "monitor", "sjw_abr", "tseg1_abr",
    "tseg2_abr", "sjw_dbr", "tseg1_dbr", "tseg2_dbr",
)  # fmt: skip
"""Options of those interfaces that name neither a file nor a library."""
_VALUE = re.compile(r"[A-Za-z0-9_.:+-]{1,64}")
_DEVICE = re.compile(r"(?:/dev/[A-Za-z0-9_./:+-]+|COM\d{1,3})(?:@\d+)?", re.IGNORECASE)


def check_interface(interface: str, channel: str, options: Mapping[str, str]) -> None:
    """Raise ModelError for an interface, a channel or an option that python-can could read as a file or a library.

    Parameters
    ----------
    interface, channel : str
        As of the bridge's parameters of these names.
    options : Mapping[str, str]
        As of the bridge's parameter of this name.

    Raises
    ------
    UnknownNameError
        If there is no such interface or option.
    ModelError
        If a channel or a value has another form.
    """
    if interface not in INTERFACES:
        raise rtmms.UnknownNameError("interface of CAN", interface, INTERFACES)
    if interface in SERIAL_INTERFACES:
        if not _DEVICE.fullmatch(channel) or ".." in channel:
            raise rtmms.ModelError(f"channel: expected a serial line such as /dev/ttyUSB0, got {channel!r:.80}")
    elif channel and not re.fullmatch(r"[A-Za-z0-9_.:%+, -]{1,64}", channel):
        raise rtmms.ModelError(f"channel: expected the name of a channel such as can0, got {channel!r:.80}")
    for name, text in options.items():
        if name not in OPTIONS:
            raise rtmms.UnknownNameError("option of CAN", name, OPTIONS)
        if not _VALUE.fullmatch(text):
            raise rtmms.ModelError(f"options.{name}: expected a number, true, false or a name, got {text!r:.80}")


_MAX_FRAMES = 4
"""Frames that one call reads, because a state may wait meanwhile."""
_MAX_WAITING = 1024
_CHECK_S = 0.2


class CanBus:
    """CAN bus.

    Parameters
    ----------
    io : Io
        Services of the bridge's loop.
    counts : Counters
        Counters of the bridge.
    interface, channel : str
        Interface and channel of python-can.
    options : Mapping[str, str]
        Further options of python-can, as text: bitrate=500000.
    fd : bool
        Whether it is CAN FD.
    far : bool
        Whether other machines may be in a multicast group; else it is limited to this machine.
    accepted : Sequence[tuple[int, bool]]
        (identifier, extended) of the frames that are read; none: all.
    received : Callable[[Any], None]
        Called with each frame.
    came : Callable[[], None]
        Called when the bus is there.
    gone : Callable[[str], None]
        Called with the reason when the bus is gone.
    """

    def __init__(
        self, io: Io, counts: Counters, interface: str, channel: str, options: Mapping[str, str], *, fd: bool,
        far: bool, accepted: Sequence[tuple[int, bool]], received: Callable[[Any], None], came: Callable[[], None],
        gone: Callable[[str], None],
    ) -> None:  # fmt: skip
        self._io, self._counts, self._interface, self._channel = io, counts, interface, channel
        self._far, self._received, self._came, self._gone = far, received, came, gone
        self._options: dict[str, Any] = {name: _number(text) for name, text in options.items()}
        self._accepted = set(accepted)
        if accepted:
            self._options["can_filters"] = [
                {"can_id": number, "can_mask": 0x1FFFFFFF if extended else 0x7FF, "extended": extended}
                for number, extended in accepted
            ]
        if fd:
            self._options["fd"] = True
        self._bus: Any = None
        self._inbox: Inbox[Any] | None = None
        self._backoff = Backoff(0.1, 2.0)
        self._reader: threading.Thread | None = None
        self._broken = ""  # why the bus that is open is none any more

    @property
    def place(self) -> str:
        """Name of the bus for messages."""
        return f"CAN {self._interface} {self._channel}".rstrip()

    @property
    def open(self) -> bool:
        """Whether the bus is open."""
        return self._bus is not None

    def tick(self, now: float) -> None:
        """Close a broken bus, and open one if it is time.

        Parameters
        ----------
        now : float
            Monotonic time, s.
        """
        if self._broken:
            self._lose(self._broken)
        if self._bus is None and self._backoff.due(now):
            self.connect(now)

    def connect(self, now: float) -> None:
        """Open the bus, if it is there.

        Parameters
        ----------
        now : float
            Monotonic time, s.

        Raises
        ------
        ModelError
            If the interface or an option is invalid.
        """
        import can

        group = self._interface == "udp_multicast"
        options = dict(self._options)
        if group:
            options.setdefault("hop_limit", 1 if self._far else 0)
        here = group and not self._far
        try:
            with from_here(self._io.log) if here else nullcontext():
                self._bus = can.Bus(interface=self._interface, channel=self._channel or None, **options)
        except can.CanInterfaceNotImplementedError as fault:
            raise rtmms.ModelError(f"interface: {fault}") from None
        except TypeError as fault:
            raise rtmms.ModelError(f"options: {fault}") from None
        except (can.CanError, OSError, ValueError, ImportError) as fault:
            self._counts.add("not_there")
            if self._backoff.failed(now) <= self._backoff.first_s:
                self._io.log(f"{self.place}: {fault}; trying again")
            return
        logging.getLogger("can").setLevel(logging.CRITICAL)  # what is lost is counted here
        self._backoff.succeeded()
        self._counts.add("connections")
        self._io.log(f"{self.place} is open")
        self._watch()
        self._came()

    def send(self, identifier: int, data: bytes, *, extended: bool = False, fd: bool = False) -> bool:
        """Send a frame at once or not at all.

        Parameters
        ----------
        identifier : int
            Its identifier.
        data : bytes
            Its data.
        extended : bool, default False
            Whether the identifier is extended.
        fd : bool, default False
            Whether it is of CAN FD.

        Returns
        -------
        bool
            Whether it was sent.
        """
        import can

        if self._bus is None:
            return False
        frame = can.Message(arbitration_id=identifier, data=data, is_extended_id=extended, is_fd=fd)
        try:
            self._bus.send(frame, timeout=0)
        except (can.CanError, OSError) as fault:
            self._counts.add("dropped")
            if _gone(fault):
                self._broken = str(fault) or "gone"
            return False
        self._counts.add("sent")
        return True

    def close(self) -> None:
        """Close the bus."""
        bus, self._bus, self._broken = self._bus, None, ""
        if bus is None:
            return
        if self._inbox is not None:
            self._io.unwatch(self._inbox)
            self._inbox.close()
            if self._reader is not None:
                self._reader.join(2.0 * _CHECK_S)
        else:
            self._io.unwatch(bus.fileno())
        with suppress(Exception):  # whatever its driver thinks of a bus that is gone
            bus.shutdown()

    # -- reading -----------------------------------------------------------------------------------------------------

    def _watch(self) -> None:
        try:
            number = int(self._bus.fileno())
        except (NotImplementedError, OSError):
            number = -1
        if number >= 0:
            self._inbox = None
            self._io.watch(number, self._on_readable)
            return
        self._inbox = Inbox(_MAX_WAITING)  # an interface that cannot be waited for: a thread does
        self._io.watch(self._inbox, self._on_inbox)
        self._reader = threading.Thread(target=self._read_on, args=(self._bus, self._inbox), daemon=True)
        self._reader.start()

    def _read_on(self, bus: Any, inbox: Inbox[Any]) -> None:
        while self._bus is bus:
            try:
                frame = bus.recv(_CHECK_S)
            except Exception as fault:  # a driver's; the bridge goes on without the bus
                if self._bus is bus:
                    self._broken = str(fault) or "gone"
                return
            if frame is not None:
                inbox.put(frame)

    def _on_inbox(self) -> None:
        assert self._inbox is not None
        frames, dropped = self._inbox.take_all()
        if dropped:
            self._counts.add("frames_dropped", dropped)
        for frame in frames:
            self._take(frame)

    def _on_readable(self) -> None:
        """Read a few waiting frames."""
        import can

        for _ in range(_MAX_FRAMES):
            if self._bus is None:
                return
            try:
                frame = self._bus.recv(timeout=0)
            except can.CanOperationError as fault:
                if _gone(fault):
                    self._lose(str(fault))
                    return
                self._counts.refuse("malformed")  # no frame: somebody sends other things to a multicast group
                continue
            except (can.CanError, OSError) as fault:
                self._lose(str(fault))
                return
            if frame is None:
                return
            self._take(frame)

    def _take(self, frame: Any) -> None:
        if frame.is_error_frame:
            self._counts.add("bus_errors")
        elif not frame.is_remote_frame and (
            not self._accepted or (frame.arbitration_id, frame.is_extended_id) in self._accepted
        ):
            self._received(frame)

    def _lose(self, why: str) -> None:
        if self._bus is None:
            return
        self._io.log(f"{self.place} is lost ({why}); trying again")
        self._counts.add("lost")
        self.close()
        self._backoff.failed()
        self._gone("the bus is gone")


def _gone(fault: BaseException) -> bool:
    """Return whether the interface is down or gone; a full buffer, or bytes that are no frame, do not count."""
    code = getattr(fault, "error_code", None) or getattr(fault, "errno", None)
    return code in (19, 100, 6, 9, 104)  # ENODEV, ENETDOWN, ENXIO, EBADF, ECONNRESET


def _number(text: str) -> Any:
    if text in ("true", "false"):
        return text == "true"
    for kind in (int, float):
        with suppress(ValueError):
            return kind(text)
    return text
