"""Reader of a plant's messages on the peer's side: strict in fields that are used, tolerant of unknown ones."""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite
from typing import Any

from rtmms.wire.protocol.messages import Reason, Refusal, decode_from_plant, peer_text
from rtmms.wire.protocol.received_state import PlantInfo
from rtmms.wire.protocol.welcome import read_channel, read_shape

_APPLIED = {"seq": int, "step": int, "lateness_ns": int, "policy": str, "clamped": bool}
_APPLIED_TYPES = tuple(_APPLIED.values())
_TEXT = frozenset((str,))
_STATES = frozenset(("state", "telemetry"))
_NUMBERS = frozenset((float, int))


def read_message(frame: bytes) -> dict[str, Any]:
    """Return the message of a plant.

    Values of outputs are checked when they are used.

    Parameters
    ----------
    frame : bytes
        The received bytes.

    Returns
    -------
    dict[str, Any]
        The message.

    Raises
    ------
    Refusal
        If it cannot be read, or if a field that every state has is of another type.
    """
    message = decode_from_plant(frame)
    if message["type"] not in _STATES:
        return message
    get = message.get
    outputs, applied, deadline, budget = (
        get("outputs"),
        get("applied"),
        get("deadline_ns", 0),
        get("budget_ns", 0),
    )
    if (
        type(get("step")) is int
        and type(get("timestamp")) in _NUMBERS
        and type(outputs) is dict
        and type(deadline) is int
        and type(budget) is int
        and deadline >= 0
        and budget >= 0
        and _TEXT.issuperset(map(type, outputs))
        and (not applied or (type(applied) is dict and _few(applied)))
        and (applied is None or type(applied) is dict)
    ):
        return message
    raise Refusal(
        Reason.WRONG_TYPE,
        f"{message['type']}: expected fields of the types in docs/protocol.md, got one of another type",
    )


def _few(applied: dict[str, Any]) -> bool:
    """Return whether all fields that are there have their types; some may be missing."""
    return tuple(map(type, map(applied.get, _APPLIED))) == _APPLIED_TYPES or all(
        type(applied.get(name, kind())) is kind for name, kind in _APPLIED.items()
    )


def read_welcome(message: Mapping[str, Any]) -> PlantInfo:
    """Return the plant as its welcome describes it.

    Parameters
    ----------
    message : Mapping[str, Any]
        The welcome.

    Returns
    -------
    PlantInfo
        The plant.

    Raises
    ------
    Refusal
        If a field is missing or invalid.
    """
    try:
        info = PlantInfo(
            robot=str(message["robot"]), dt=float(message["dt"]), mode=str(message["mode"]),
            period_s=_seconds(message.get("period_s")), deadline_s=_seconds(message.get("deadline_s")),
            actuators=tuple(read_channel(entry) for entry in message["actuators"]),
            outputs=tuple(read_channel(entry) for entry in message["outputs"]), granted=_names(message.get("granted")),
            selected=_names(message.get("selected")), parameters=dict(message.get("parameters") or {}),
            session=str(message.get("session", "")), seed=int(message.get("seed", 0)),
            ticks=bool(message.get("ticks", False)), telemetry_hz=float(message.get("telemetry_hz") or 100.0),
            request_bytes=int(message.get("request_bytes") or 0), every=int(message.get("every") or 1),
            delay=int(message.get("delay") or 0), shape=read_shape(message.get("geometry")),
            telemetry_endpoint=str(message.get("telemetry_endpoint", "")),
            environment=read_environment(message.get("environment")), robots=_robots(message),
            airframe=str(message.get("airframe") or ""), duration_s=_seconds(message.get("duration_s")),
            robot_name=str(message.get("robot_name", "")), topic=str(message.get("topic") or message["robot"]),
        )  # fmt: skip
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as fault:
        raise Refusal(Reason.WRONG_TYPE, f"welcome: {type(fault).__name__}: {peer_text(str(fault))}") from None
    if not (isfinite(info.dt) and info.dt > 0):
        raise Refusal(Reason.WRONG_TYPE, f"welcome: dt must be > 0 s, got {info.dt}")
    return info


def _robots(message: Mapping[str, Any]) -> dict[str, PlantInfo]:
    """Return each of several robots on one clock as it is alone; dt and mode are common."""
    return {
        str(name): PlantInfo(
            str(robot["robot"]), float(message["dt"]), str(message["mode"]), _seconds(message.get("period_s")),
            _seconds(message.get("deadline_s")), tuple(read_channel(entry) for entry in robot["actuators"]),
            tuple(read_channel(entry) for entry in robot["outputs"]), parameters=dict(robot.get("parameters") or {}),
            shape=read_shape(robot.get("geometry")),
            environment=read_environment(robot.get("environment")), robot_name=str(name),
            airframe=str(robot.get("airframe") or ""), duration_s=_seconds(message.get("duration_s")),
        )
        for name, robot in (message.get("robots") or {}).items()
    }  # fmt: skip


def read_environment(fields: Any) -> dict[str, Any]:
    """Return the known fields of the environment.

    Parameters
    ----------
    fields : Any
        Field `environment` of a welcome.

    Returns
    -------
    dict[str, Any]
        Gravity, density and surface; unknown fields are left out.
    """
    result: dict[str, Any] = {}
    for name, value in (fields or {}).items():
        if name == "gravity_m_s2":
            x, y, z = (float(number) for number in value)
            result[name] = (x, y, z)
        elif name in ("water_kg_m3", "surface_m"):
            result[name] = float(value)
    return result


def read_places(message: Mapping[str, Any]) -> tuple[bytes, str, str, str]:
    """Return the addresses of a welcome.

    Parameters
    ----------
    message : Mapping[str, Any]
        The welcome.

    Returns
    -------
    tuple[bytes, str, str, str]
        Identity at the step endpoint (16 bytes, none for an observer), step endpoint, local step endpoint for processes
        of the plant's user (empty for none), and telemetry endpoint.

    Raises
    ------
    Refusal
        If one of them is invalid.
    """
    identity, step, telemetry = (message.get(f) for f in ("identity", "step_endpoint", "telemetry_endpoint"))
    near = message.get("local_step_endpoint", "")
    if (
        type(identity) is not bytes
        or len(identity) not in (0, 16)
        or type(step) is not str
        or type(telemetry) is not str
        or type(near) is not str
    ):
        raise Refusal(Reason.WRONG_TYPE, "welcome: expected an identity of 16 bytes and endpoints as text, got others")
    return identity, step, near, telemetry


def _seconds(value: Any) -> float | None:
    return None if value is None else float(value)


def _names(value: Any) -> tuple[str, ...]:
    if value is None:
        return ()
    if type(value) is not list or not all(type(name) is str for name in value):
        raise TypeError(f"expected a list of names, got {peer_text(value)}")
    return tuple(value)
