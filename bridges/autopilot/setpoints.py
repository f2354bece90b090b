"""Messages by which ground stations drive a robot: a joystick's axes, and actuators by command."""

from __future__ import annotations

from typing import Any

from rtmms.bridging.untrusted import Fuzzed, Refusal

from .mavframes import Signing, Writer, fuzz_stream

AXES = ("x", "y", "z", "r")
ACTUATORS = tuple(str(i) for i in range(1, 13))
SET_ACTUATOR = 187


def axes(message: Any) -> dict[str, float]:
    """MANUAL_CONTROL's axes, -1 to 1; those that are not there are left out. Refusal beyond that range."""
    found = {}
    for axis in AXES:
        raw = getattr(message, axis)
        if raw == 32767:
            continue
        if abs(raw) > 1000:
            raise Refusal("range", f"axis {axis}: expected -1000 to 1000, got {raw}")
        found[axis] = raw / 1000.0
    return found


def actuators(message: Any) -> dict[str, float]:
    """DO_SET_ACTUATOR's values by number, six to an index; NaN leaves one as it is. Refusal beyond -1 to 1."""
    index = message.param7
    if index not in (0.0, 1.0):
        raise Refusal("range", "index: expected 0 or 1")
    values = (message.param1, message.param2, message.param3, message.param4, message.param5, message.param6)
    found = {str(int(index) * 6 + i): value for i, value in enumerate(values, 1) if value == value}
    if any(abs(value) > 1.0 for value in found.values()):
        raise Refusal("range", "expected -1 to 1")
    return found


def meaning(message: Any) -> dict[str, float] | None:
    """The set-points in a message by channel, None for one without."""
    kind = message.get_type()
    if kind == "MANUAL_CONTROL":
        return axes(message)
    return actuators(message) if kind == "COMMAND_LONG" and message.command == SET_ACTUATOR else None


def fuzzed() -> Fuzzed:
    """What reads a stranger's bytes, for the fuzz tests, and messages as a station sends them."""
    return fuzz_stream(meaning), _samples(Writer(255, 190))


def fuzzed_signed() -> Fuzzed:
    """The same where signatures are asked for."""
    key = bytes(32)
    return fuzz_stream(meaning, Signing(key)), [*_samples(Writer(255, 190, Signing(key))), *_samples(Writer(255, 190))]


def _samples(writer: Writer) -> list[bytes]:
    from pymavlink.dialects.v20 import common as of

    return [writer.pack(message) for message in (
        of.MAVLink_heartbeat_message(6, 8, 0, 0, 0, 3),
        of.MAVLink_manual_control_message(1, 100, -100, 500, 0, 0),
        of.MAVLink_command_long_message(1, 1, SET_ACTUATOR, 0, 0.5, -0.5, 0, 0, 0, 0, 0),
        of.MAVLink_param_set_message(1, 1, b"RATE_ATTITUDE", 10.0, 9),
    )]  # fmt: skip
