"""CiA 402 drive as a node on the bus.

canopen provides object dictionary, NMT, SDO and heartbeat; PDOs follow their mapping.
"""

from __future__ import annotations

import logging
import struct
from collections.abc import Callable
from typing import Any

from rtmms.bridging.untrusted import Fuzzed, Refusal, fuzz

from .drives import Drive, to_int32

CONTROL = 0x6040
STATUS = 0x6041
MODE = 0x6060
MODE_DISPLAY = 0x6061
_TARGET_POSITION = 0x607A
_TARGET_VELOCITY = 0x60FF
_PROFILE_VELOCITY = 0x6081
_POSITION = 0x6064
_VELOCITY = 0x606C
_SUPPORTED = 0x6502
_ERROR_CODE = 0x603F
_PDOS = 4
_ENTRIES = 8
_RECEIVED = 0x1400
"""Communication parameters of received PDOs; their mappings are 0x200 above."""
_SENT = 0x1800
"""Communication parameters of sent PDOs; their mappings are 0x200 above."""
_OFF = 1 << 31
_EVENT = 254
SYNC = 0x80
_LIFE_GUARD = 0x8130
_INITIALISING = 0
_OPERATIONAL = 5
_PRE_OPERATIONAL = 127
_STOPPED = 4

_OBJECTS: tuple[tuple[int, str, str, str, int], ...] = (
    (0x1000, "Device type", "u32", "ro", 0x0002_0192), (0x1001, "Error register", "u8", "ro", 0),
    (0x1008, "Device name", "text", "const", 0), (0x1017, "Producer heartbeat time", "u16", "rw", 0),
    (_ERROR_CODE, "Error code", "u16", "ro", 0), (CONTROL, "Controlword", "u16", "rw", 0),
    (STATUS, "Statusword", "u16", "ro", 0), (MODE, "Modes of operation", "i8", "rw", 0),
    (MODE_DISPLAY, "Modes of operation display", "i8", "ro", 0), (_POSITION, "Position actual value", "i32", "ro", 0),
    (_VELOCITY, "Velocity actual value", "i32", "ro", 0), (_TARGET_POSITION, "Target position", "i32", "rw", 0),
    (_PROFILE_VELOCITY, "Profile velocity", "u32", "rw", 0), (_TARGET_VELOCITY, "Target velocity", "i32", "rw", 0),
    (_SUPPORTED, "Supported drive modes", "u32", "ro", 0),
)  # fmt: skip
_RPDO = (
    ((CONTROL, 16), (MODE, 8)),
    ((CONTROL, 16), (_TARGET_POSITION, 32)),
    ((CONTROL, 16), (_TARGET_VELOCITY, 32)),
    (),
)
_TPDO = (((STATUS, 16), (MODE_DISPLAY, 8)), ((STATUS, 16), (_POSITION, 32)), ((STATUS, 16), (_VELOCITY, 32)), ())


def dictionary(number: int, name: str = "rtmms drive") -> Any:
    """Return the object dictionary of a node; a master may have the same.

    Parameters
    ----------
    number : int
        Number of the node.
    name : str, default 'rtmms drive'
        Device name.

    Returns
    -------
    Any
        The dictionary.
    """
    from canopen import objectdictionary as od

    kinds = {"u8": od.UNSIGNED8, "i8": od.INTEGER8, "u16": od.UNSIGNED16, "u32": od.UNSIGNED32, "i32": od.INTEGER32,
             "text": od.VISIBLE_STRING}  # fmt: skip
    built = od.ObjectDictionary()

    def variable(index: int, subindex: int, title: str, kind: str, access: str, value: Any) -> Any:
        """Return a variable of the dictionary.

        Parameters
        ----------
        index, subindex : int
            Place of the object.
        title : str
            Its name.
        kind : str
            Its type, such as 'u16'.
        access : str
            Its access, such as 'rw'.
        value : Any
            Its default.

        Returns
        -------
        Any
            The variable.
        """
        item = od.ODVariable(title, index, subindex)
        item.data_type, item.access_type, item.default = kinds[kind], access, value
        item.pdo_mappable = index >= 0x6000
        return item

    for index, title, kind, access, value in _OBJECTS:
        built.add_object(variable(index, 0, title, kind, access, name if kind == "text" else value))
    identity = od.ODRecord("Identity object", 0x1018)
    for sub, (title, value) in enumerate((("Highest sub-index", 4), ("Vendor-ID", 0), ("Product code", 0x402),
                                          ("Revision number", 1), ("Serial number", 0))):  # fmt: skip
        identity.add_member(variable(0x1018, sub, title, "u8" if sub == 0 else "u32", "ro", value))
    built.add_object(identity)
    for base, cob, maps, title in ((_RECEIVED, 0x200, _RPDO, "RPDO"), (_SENT, 0x180, _TPDO, "TPDO")):
        for k in range(_PDOS):
            record = od.ODRecord(f"{title}{k + 1} communication parameter", base + k)
            off = 0 if maps[k] else _OFF
            for sub, kind, value in ((0, "u8", 5), (1, "u32", (cob + 0x100 * k + number) | off), (2, "u8", _EVENT),
                                     (3, "u16", 0), (5, "u16", 0)):  # fmt: skip
                record.add_member(variable(base + k, sub, f"{title}{k + 1} {sub}", kind, "rw", value))
            built.add_object(record)
            mapping = od.ODRecord(f"{title}{k + 1} mapping parameter", base + 0x200 + k)
            mapping.add_member(variable(base + 0x200 + k, 0, "Number of objects", "u8", "rw", len(maps[k])))
            for sub in range(1, _ENTRIES + 1):
                index, bits = maps[k][sub - 1] if sub <= len(maps[k]) else (0, 0)
                mapping.add_member(variable(base + 0x200 + k, sub, f"Object {sub}", "u32", "rw", index << 16 | bits))
            built.add_object(mapping)
    return built


class Periodic:
    """Message that canopen would send periodically in a thread; `tick` sends it instead.

    Parameters
    ----------
    network : Bus
        The network.
    identifier : int
        Identifier of the message.
    data : bytes
        Its data.
    period_s : float
        Its period, s.
    """

    def __init__(self, network: Bus, identifier: int, data: bytes, period_s: float) -> None:
        self._network, self._identifier, self._data, self._period_s = network, identifier, bytes(data), period_s
        self._next = 0.0

    def update(self, data: bytes) -> None:
        """Change the data.

        Parameters
        ----------
        data : bytes
            New data.
        """
        self._data = bytes(data)

    def stop(self) -> None:
        """Stop sending."""
        self._network.periodic.discard(self)

    def tick(self, now: float) -> None:
        """Send the message if it is due.

        Parameters
        ----------
        now : float
            Monotonic time, s.
        """
        if now >= self._next:
            self._next = now + self._period_s
            self._network.send_message(self._identifier, self._data)


class Bus:
    """Network of canopen's nodes, over `send` and without threads.

    Parameters
    ----------
    send : Callable[[int, bytes], object]
        Sends an identifier with its data.
    """

    def __init__(self, send: Callable[[int, bytes], object]) -> None:
        self._send = send
        self.periodic: set[Periodic] = set()
        self._subscribers: dict[int, list[Callable[[int, bytearray, float], None]]] = {}

    def subscribe(self, identifier: int, call: Callable[[int, bytearray, float], None]) -> None:
        """Call back for each message of an identifier.

        Parameters
        ----------
        identifier : int
            The identifier.
        call : Callable[[int, bytearray, float], None]
            The callback.
        """
        self._subscribers.setdefault(identifier, []).append(call)

    def unsubscribe(self, identifier: int, call: Callable[[int, bytearray, float], None] | None = None) -> None:
        """Remove the callbacks of an identifier.

        Parameters
        ----------
        identifier : int
            The identifier.
        call : Callable[[int, bytearray, float], None] | None, optional
            Unused.
        """
        self._subscribers.pop(identifier, None)

    def send_message(self, identifier: int, data: Any, remote: bool = False) -> None:
        """Send a message.

        Parameters
        ----------
        identifier : int
            Its identifier.
        data : Any
            Its data.
        remote : bool, default False
            Unused.
        """
        self._send(identifier, bytes(data))

    def send_periodic(self, identifier: int, data: Any, period: float, remote: bool = False) -> Periodic:
        """Send a message periodically.

        Parameters
        ----------
        identifier : int
            Its identifier.
        data : Any
            Its data.
        period : float
            Its period, s.
        remote : bool, default False
            Unused.

        Returns
        -------
        Periodic
            The periodic message.
        """
        built = Periodic(self, identifier, bytes(data), period)
        self.periodic.add(built)
        return built

    def notify(self, identifier: int, data: bytes, timestamp: float) -> bool:
        """Pass a received message to the callbacks.

        Parameters
        ----------
        identifier : int
            Its identifier.
        data : bytes
            Its data.
        timestamp : float
            Time of its arrival, s.

        Returns
        -------
        bool
            Whether there was a callback.
        """
        calls = self._subscribers.get(identifier, ())
        for call in calls:
            call(identifier, bytearray(data), timestamp)
        return bool(calls)

    def tick(self, now: float) -> None:
        """Send the periodic messages that are due.

        Parameters
        ----------
        now : float
            Monotonic time, s.
        """
        for item in list(self.periodic):
            item.tick(now)


class DriveNode:
    """Drive with a node's number on the bus.

    Parameters
    ----------
    number : int
        Number of the node.
    drive : Drive
        The drive.
    send : Callable[[int, bytes], object]
        Sends an identifier with its data.
    heartbeat_ms : int
        Period of its heartbeat, ms.
    """

    def __init__(self, number: int, drive: Drive, send: Callable[[int, bytes], object], heartbeat_ms: int) -> None:
        import canopen

        logging.getLogger("canopen").setLevel(logging.CRITICAL)  # a peer could fill the terminal with what it asks
        self.number, self.drive, self._send, self._heartbeat_ms = number, drive, send, heartbeat_ms
        self.network = Bus(send)
        self._node: Any = canopen.LocalNode(number, dictionary(number))
        self._node.associate_network(self.network)
        self._node.add_read_callback(self._on_read)
        self._node.add_write_callback(self._on_write)
        self._changed: set[tuple[int, int]] = set()
        self._default()
        self._errors = 0

    @property
    def operational(self) -> bool:
        """Whether its NMT state is operational."""
        return bool(self._node.nmt._state == _OPERATIONAL)

    def boot(self) -> None:
        """Announce the node, and make it pre-operational."""
        self.drive.reset()
        self._default()
        self._node.data_store.clear()
        self._node.data_store[0x1017] = {0: struct.pack("<H", self._heartbeat_ms)}
        nmt = self._node.nmt
        nmt._state = _INITIALISING
        nmt.stop_heartbeat()
        self._send(0x700 + self.number, b"\0")
        nmt._state = _PRE_OPERATIONAL
        nmt.start_heartbeat(self._heartbeat_ms)

    def receive(self, identifier: int, data: bytes, now: float) -> bool:
        """Handle a frame.

        Parameters
        ----------
        identifier : int
            Its identifier.
        data : bytes
            Its data.
        now : float
            Monotonic time, s.

        Returns
        -------
        bool
            Whether it was for this node.

        Raises
        ------
        Refusal
            With reason length, range, unknown or malformed.
        """
        if identifier == 0:
            return self._on_nmt(data)
        if identifier == SYNC:
            self.sync()
            return False
        if identifier == 0x600 + self.number:
            if len(data) != 8:
                raise Refusal("length", f"node {self.number}: SDO: expected 8 bytes, got {len(data)}")
            if self._node.nmt._state in (_PRE_OPERATIONAL, _OPERATIONAL):
                self._ask(identifier, data, now)
            return True
        if self.operational:
            for pdo in self._pdos(_RECEIVED):
                if pdo.identifier == identifier:
                    self._take(pdo, data)
                    return True
        return False

    def identifiers(self) -> list[int]:
        """Return all identifiers that the node may receive, by its present mapping.

        Returns
        -------
        list[int]
            The identifiers.
        """
        return [0, SYNC, 0x600 + self.number, *(pdo.identifier for pdo in self._pdos(_RECEIVED))]

    def send_cyclic(self, now: float, every_s: float) -> None:
        """Send the TPDOs that do not answer a SYNC, if they are due.

        Parameters
        ----------
        now : float
            Monotonic time, s.
        every_s : float
            Their period, s, unless they have an event timer of their own.
        """
        if not self.operational:
            return
        for pdo in self._pdos(_SENT):
            if pdo.kind >= _EVENT and now - pdo.sent >= (pdo.timer_s or every_s) - 1e-6:
                pdo.sent = now
                self._send_pdo(pdo)

    def sync(self) -> None:
        """Send the TPDOs that answer this SYNC."""
        if not self.operational:
            return
        for pdo in self._pdos(_SENT):
            if 1 <= pdo.kind <= 240:
                pdo.count += 1
                if pdo.count >= pdo.kind:
                    pdo.count = 0
                    self._send_pdo(pdo)

    def fail(self) -> None:
        """Enter the fault state because the controller is silent, and send an emergency."""
        self.drive.fail()
        self._errors = _LIFE_GUARD
        self._send(0x80 + self.number, struct.pack("<HB5x", _LIFE_GUARD, 0x11))

    # -- objects -----------------------------------------------------------------------------------------------------

    def _on_read(self, *, index: int, subindex: int, od: Any) -> int | None:
        drive = self.drive
        if drive.power.name != "FAULT":
            self._errors = 0
        match index:
            case 0x6041:
                return drive.status()
            case 0x6060 | 0x6061:
                return drive.mode
            case 0x6064:
                return to_int32(drive.position)
            case 0x606C:
                return to_int32(drive.velocity)
            case 0x6502:
                return drive.supported
            case 0x607A:
                return drive.target_position
            case 0x60FF:
                return drive.target_velocity
            case 0x6081:
                return drive.profile_velocity
            case 0x603F:
                return self._errors
            case 0x1001:
                return 0x11 if self._errors else 0
        return None

    def _on_write(self, *, index: int, subindex: int, od: Any, data: bytes) -> None:
        from canopen import SdoAbortedError

        drive = self.drive
        if 0x1400 <= index < 0x1C00:
            self._changed.add((_RECEIVED if index < 0x1800 else _SENT, index & 0x1FF))
            return
        value = od.decode_raw(data)
        match index:
            case 0x6040:
                drive.control(value)
            case 0x6060:
                if not drive.set_mode(value):
                    raise SdoAbortedError(0x0609_0030)  # value out of range
            case 0x607A:
                drive.target_position = value
            case 0x60FF:
                drive.target_velocity = value
            case 0x6081:
                drive.profile_velocity = value

    def _ask(self, identifier: int, data: bytes, now: float) -> None:
        try:
            self.network.notify(identifier, data, now)
        except (struct.error, ValueError, LookupError, TypeError, AttributeError):
            raise Refusal("malformed", "expected an SDO, got other bytes") from None

    def _on_nmt(self, data: bytes) -> bool:
        if len(data) < 2:
            raise Refusal("length", f"NMT command: expected 2 bytes, got {len(data)}")
        command, number = data[0], data[1]
        if number not in (0, self.number):
            return False
        nmt = self._node.nmt
        if command in (0x81, 0x82):
            self.boot()
        elif command in (0x01, 0x02, 0x80):
            nmt._state = {0x01: _OPERATIONAL, 0x02: _STOPPED, 0x80: _PRE_OPERATIONAL}[command]
            if command != 0x01:
                self.drive.control(0)  # it drives only while it is operational
            nmt.update_heartbeat()
        else:
            raise Refusal("unknown", f"unknown NMT command {command:#x}")
        return True

    # -- PDOs --------------------------------------------------------------------------------------------------------

    def _pdos(self, base: int) -> list[_Pdo]:
        """Return the PDOs in use, by their present mapping."""
        for at in sorted(self._changed):
            self._maps[at] = self._mapped(*at)
        self._changed.clear()
        result = [self._maps[base, k] for k in range(_PDOS)]
        return [pdo for pdo in result if pdo is not None]

    def _default(self) -> None:
        """Set the PDOs of the dictionary."""
        self._changed.clear()
        self._maps: dict[tuple[int, int], _Pdo | None] = {}
        for base, cob, maps in ((_RECEIVED, 0x200, _RPDO), (_SENT, 0x180, _TPDO)):
            for k, entries in enumerate(maps):
                mapped = [(index, 0, bits // 8) for index, bits in entries]
                self._maps[base, k] = _Pdo(cob + 0x100 * k + self.number, mapped, _EVENT, 0.0) if mapped else None

    def _mapped(self, base: int, k: int) -> _Pdo | None:
        identifier = self._number(base + k, 1)
        if identifier & _OFF:
            return None
        entries: list[tuple[int, int, int]] = []
        for sub in range(1, min(_ENTRIES, self._number(base + 0x200 + k, 0)) + 1):
            entry = self._number(base + 0x200 + k, sub)
            index, subindex, bits = entry >> 16, entry >> 8 & 0xFF, entry & 0xFF
            if index not in self._node.object_dictionary or index < 0x6000 or subindex or bits % 8 or not bits:
                return None
            entries.append((index, subindex, bits // 8))
        if not entries or sum(size for _, _, size in entries) > 8:
            return None
        return _Pdo(identifier & 0x7FF, entries, self._number(base + k, 2), self._number(base + k, 5) * 1e-3)

    def _number(self, index: int, subindex: int) -> int:
        return int.from_bytes(self._node.get_data(index, subindex), "little")

    def _take(self, pdo: _Pdo, data: bytes) -> None:
        """Write each object as by SDO; the control word last, so that its targets are set."""
        from canopen import SdoAbortedError

        if len(data) < pdo.size:
            raise Refusal(
                "length", f"node {self.number}: PDO {pdo.identifier:#x}: expected {pdo.size} bytes, got {len(data)}"
            )
        at, control = 0, b""
        for index, subindex, size in pdo.entries:
            part = data[at : at + size]
            at += size
            if index == CONTROL:
                control = part
                continue
            try:
                self._node.set_data(index, subindex, part)
            except SdoAbortedError:
                raise Refusal(
                    "range", f"node {self.number}: object {index:#x}: the value {part.hex()} is outside its range"
                ) from None
        if control:
            try:
                self._node.set_data(CONTROL, 0, control)
            except SdoAbortedError:
                raise Refusal("range", "control word: the value is outside its range") from None

    def _send_pdo(self, pdo: _Pdo) -> None:
        parts = [self._node.get_data(index, subindex)[:size] for index, subindex, size in pdo.entries]
        self._send(pdo.identifier, b"".join(parts))


class _Pdo:
    def __init__(self, identifier: int, entries: list[tuple[int, int, int]], kind: int, timer_s: float) -> None:
        self.identifier, self.entries, self.kind, self.timer_s = identifier, entries, kind, timer_s
        self.size = sum(size for _, _, size in entries)
        self.sent, self.count = 0.0, 0


def fuzzed() -> Fuzzed:
    """Return the parser of frames for fuzz tests: two bytes of identifier, and the data, into one node with memory.

    Returns
    -------
    Fuzzed
        The code to try, and valid samples.
    """
    drive = Drive("position", 1000.0, -1.0, 1.0, 0.0)
    node = DriveNode(5, drive, lambda identifier, data: None, 100)
    node.boot()
    drive.measured(0.25, 0.0)

    def read(frame: bytes) -> None:
        """Handle a frame.

        Parameters
        ----------
        frame : bytes
            Identifier and data.

        Raises
        ------
        ValueError
            If the drive commands a value beyond its limits.
        """
        data = frame[2:10]
        if not node.receive(int.from_bytes(frame[:2], "little") & 0x7FF, data, 0.0):
            node.receive(0, b"\1\5", 0.0)  # operational again, for PDOs
        node.send_cyclic(1.0, 0.0)
        value = drive.drive(0.01)
        if not -1.0 <= value <= 1.0:
            raise ValueError(f"expected a value from -1 to 1, got {value}")

    def frame(identifier: int, data: bytes) -> bytes:
        """Return a frame.

        Parameters
        ----------
        identifier : int
            Its identifier.
        data : bytes
            Its data.

        Returns
        -------
        bytes
            The frame.
        """
        return identifier.to_bytes(2, "little") + data

    return fuzz(read), [
        frame(0, b"\1\5"), frame(0x605, b"\x40\x41\x60\0\0\0\0\0"), frame(0x605, b"\x2b\x40\x60\0\x06\0\0\0"),
        frame(0x605, b"\x2f\x00\x16\0\2\0\0\0"), frame(0x305, b"\x0f\0\xe8\3\0\0"), frame(0x205, b"\x0f\0\1"),
        frame(0x80, b""),
    ]  # fmt: skip
