"""Messages with which ground stations drive a robot: a joystick's axes, and actuators by command."""

from __future__ import annotations

from typing import Any

from rtmms.bridging.untrusted import Fuzzed, Refusal

from .mavframes import Signing, Writer, fuzz_stream

AXES = ("x", "y", "z", "r")
ACTUATORS = tuple(str(i) for i in range(1, 13))
SET_ACTUATOR = 187


def axes(message: Any) -> dict[str, float]:
    """Return the axes of MANUAL_CONTROL; absent ones are left out.

    Parameters
    ----------
    message : Any
        The message.

    Returns
    -------
    dict[str, float]
        Values from -1 to 1 by axis.

    Raises
    ------
    Refusal
        If an axis is out of range.
    """
    result = {}
    for axis in AXES:
        raw = getattr(message, axis)
        if raw == 32767:
            continue
        if abs(raw) > 1000:
            raise Refusal("range", f"axis {axis}: expected -1000 to 1000, got {raw}")
        result[axis] = raw / 1000.0
    return result


def actuators(message: Any) -> dict[str, float]:
    """Return the values of DO_SET_ACTUATOR by number, six to an index; NaN leaves an actuator unchanged.

    Parameters
    ----------
    message : Any
        The message.

    Returns
    -------
    dict[str, float]
        Values from -1 to 1 by number.

    Raises
    ------
    Refusal
        If a value or the index is out of range.
    """
    index = message.param7
    if index not in (0.0, 1.0):
        raise Refusal("range", f"DO_SET_ACTUATOR: index (param7): expected 0 or 1, got {index}")
    values = (message.param1, message.param2, message.param3, message.param4, message.param5, message.param6)
    result = {str(int(index) * 6 + i): value for i, value in enumerate(values, 1) if value == value}
    if any(abs(value) > 1.0 for value in result.values()):
        raise Refusal(
            "range",
            "DO_SET_ACTUATOR: expected values from -1 to 1, got "
            f"{', '.join(f'{value:g} for actuator {name}' for name, value in result.items() if abs(value) > 1.0)}",
        )
    return result


def meaning(message: Any) -> dict[str, float] | None:
    """Return the set-points of a message by channel.

    Parameters
    ----------
    message : Any
        The message.

    Returns
    -------
    dict[str, float] | None
        Values by channel; None for a message without set-points.
    """
    kind = message.get_type()
    if kind == "MANUAL_CONTROL":
        return axes(message)
    return actuators(message) if kind == "COMMAND_LONG" and message.command == SET_ACTUATOR else None


def fuzzed() -> Fuzzed:
    """Return the parser of a peer's bytes, for fuzz tests.

    Returns
    -------
    Fuzzed
        The code to try, and valid samples.
    """
    return fuzz_stream(meaning), _samples(Writer(255, 190))


def fuzzed_signed() -> Fuzzed:
    """Return the same parser with required signatures.

    Returns
    -------
    Fuzzed
        The code to try, and valid samples.
    """
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
