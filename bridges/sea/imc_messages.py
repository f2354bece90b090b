"""IMC messages by imcpy: untrusted bytes of a peer, and their set-points."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from math import degrees, isfinite
from typing import Any
from urllib.parse import urlsplit

from rtmms.bridging.untrusted import Fuzzed, Refusal, fuzz

from ..motion.frames import Home
from .instruments import world_heading_deg

MAX_MESSAGE_BYTES = 16384
EVERYONE = 0xFFFF
_HEAD = 20  # bytes before a message's fields, and 2 behind them
_SYNC = (0xFE54, 0x54FE)
_MAX_MANEUVERS = 256
_MAX_SERVOS = 256
_MAX_VALUE = 1e6


@cache
def known_messages() -> dict[int, str]:
    """Return the messages that are read here; all others are skipped unread.

    Returns
    -------
    dict[int, str]
        Names by number.
    """
    import imcpy

    names = ("Announce", "EntityList", "PlanControl", "PlanDB", "Abort", "Heartbeat", "SetServoPosition",
             "SetThrusterActuation", "DesiredHeading", "DesiredPitch", "DesiredSpeed", "DesiredZ")  # fmt: skip
    return {getattr(imcpy, name)().msg_id: name for name in names}


def name_of(data: bytes) -> str:
    """Return the name of the message that a packet declares.

    Parameters
    ----------
    data : bytes
        The packet.

    Returns
    -------
    str
        The name; empty for one that is not read here.

    Raises
    ------
    Refusal
        With reason oversize or malformed.
    """
    if len(data) > MAX_MESSAGE_BYTES:
        raise Refusal("oversize", f"expected a message of at most {MAX_MESSAGE_BYTES} bytes, got {len(data)}")
    if len(data) < _HEAD + 2 or int.from_bytes(data[:2], "big") not in _SYNC:
        raise Refusal("malformed", "expected an IMC packet, got other bytes")
    order = "big" if int.from_bytes(data[:2], "big") == _SYNC[0] else "little"
    if int.from_bytes(data[4:6], order) != len(data) - _HEAD - 2:  # type: ignore[arg-type]
        raise Refusal("malformed", "the packet has another length than it declares")
    return known_messages().get(int.from_bytes(data[2:4], order), "")  # type: ignore[arg-type]


def parse(data: bytes) -> Any:
    """Return the message of a packet with a known name.

    Parameters
    ----------
    data : bytes
        The packet.

    Returns
    -------
    Any
        The message.

    Raises
    ------
    Refusal
        With reason malformed, also for a wrong checksum.
    """
    import imcpy

    try:
        message = imcpy.Packet.deserialize(data)
    except (RuntimeError, ValueError, UnicodeDecodeError):
        raise Refusal("malformed", "expected an IMC message, got other bytes") from None
    if message is None or type(message) is imcpy.Message:
        raise Refusal("malformed", "expected an IMC message, got other bytes")
    return message


@dataclass(frozen=True)
class Place:
    """Waypoint of a plan.

    Parameters
    ----------
    name : str
        Its name.
    x, y : float
        Position, m, world.
    depth_m : float | None
        Depth, m; None for none.
    speed_m_s : float | None
        Speed, m/s; None for none.
    timeout_s : float
        Longest time to reach it, s; 0 for none.
    """

    name: str
    x: float
    y: float
    depth_m: float | None
    speed_m_s: float | None
    timeout_s: float


def set_points(message: Any, home: Home) -> dict[str, float]:
    """Return the values of a command.

    Parameters
    ----------
    message : Any
        The message.
    home : Home
        Place of the world's origin.

    Returns
    -------
    dict[str, float]
        Values by channel; empty for another message.

    Raises
    ------
    Refusal
        With reason not_finite, range or unit.
    """
    import imcpy

    match type(message):
        case imcpy.SetServoPosition:
            return {f"servo.{message.id}": _finite(message.value)}
        case imcpy.SetThrusterActuation:
            return {f"thruster.{message.id}": _finite(message.value)}
        case imcpy.DesiredHeading:
            return {"heading_deg": world_heading_deg(degrees(_finite(message.value)), home)}
        case imcpy.DesiredPitch:
            return {"pitch_deg": -degrees(_finite(message.value))}  # nose up > 0 in IMC, nose down in our controllers
        case imcpy.DesiredSpeed:
            return {"speed_m_s": _speed(message.value, message.speed_units)}
        case imcpy.DesiredZ:
            depth = _depth(message.value, message.z_units)
            if depth is None:
                raise Refusal("unit", "DesiredZ: z_units: expected DEPTH, got NONE")
            return {"depth_m": depth}
    return {}


def channels_known(name: str) -> bool:
    """Return whether there is a channel of a name.

    Parameters
    ----------
    name : str
        The name.

    Returns
    -------
    bool
        True if there is.
    """
    kind, dot, number = name.partition(".")
    if dot:
        return kind in ("servo", "thruster") and number.isdecimal() and int(number) < _MAX_SERVOS
    return name in CHANNELS


CHANNELS = ("heading_deg", "depth_m", "speed_m_s", "pitch_deg")


def places(specification: Any, home: Home) -> list[Place]:
    """Return the waypoints of a plan, in the order of its transitions from the first on.

    Parameters
    ----------
    specification : Any
        The plan.
    home : Home
        Place of the world's origin.

    Returns
    -------
    list[Place]
        The waypoints.

    Raises
    ------
    Refusal
        For a plan that is not one of Gotos, with a sentence for the console.
    """
    import imcpy

    if not isinstance(specification, imcpy.PlanSpecification):
        raise Refusal("plan", "expected a plan specification, got none")
    if len(specification.maneuvers) > _MAX_MANEUVERS:
        raise Refusal("plan", f"expected at most {_MAX_MANEUVERS} maneuvers in a plan, got more")
    result = {
        maneuver.maneuver_id: maneuver.data
        for maneuver in specification.maneuvers
        if isinstance(maneuver, imcpy.PlanManeuver)
    }
    after: dict[str, str] = {}
    for transition in specification.transitions:  # lists of messages: a peer can put any others into them
        if isinstance(transition, imcpy.PlanTransition):
            after.setdefault(transition.source_man, transition.dest_man)
    at, course = specification.start_man_id, list[Place]()
    while at in result and len(course) < len(result):
        course.append(_place(at, result[at], home))
        at = after.get(at, "")
    if not course:
        raise Refusal("plan", f"the first maneuver '{at[:40]}' is not in the plan")
    if at in result:
        raise Refusal("plan", "the plan returns to an earlier maneuver, so it never ends")
    return course


def _place(name: str, maneuver: Any, home: Home) -> Place:
    import imcpy

    if not isinstance(maneuver, imcpy.Goto):
        raise Refusal(
            "plan", f"maneuver '{name[:40]}': expected a Goto, the only supported kind, got a {type(maneuver).__name__}"
        )
    lat, lon = degrees(_finite(maneuver.lat)), degrees(_finite(maneuver.lon))
    if not (abs(lat) <= 90.0 and abs(lon) <= 360.0):
        raise Refusal(
            "plan",
            f"maneuver '{name[:40]}': expected a latitude of -90 to 90 and a longitude of -360 to "
            f"360 degrees, got {lat:g} and {lon:g}; IMC has radians",
        )
    x, y, _ = home.position(lat, lon, home.alt_m)
    speed = _speed(maneuver.speed, maneuver.speed_units) if maneuver.speed else None
    return Place(name, x, y, _depth(maneuver.z, maneuver.z_units), speed, float(maneuver.timeout))


def _depth(value: float, unit: Any) -> float | None:
    import imcpy

    if unit == imcpy.ZUnits.NONE:
        return None
    if unit != imcpy.ZUnits.DEPTH:
        raise Refusal("unit", "z_units: expected a depth, got an altitude or a height")
    return _finite(value)


def _speed(value: float, unit: Any) -> float:
    import imcpy

    if unit != imcpy.SpeedUnits.METERS_PS:
        raise Refusal("unit", f"speed_units: expected m/s, got {unit}")
    return _finite(value)


def _finite(value: float) -> float:
    if not isfinite(value):
        raise Refusal("not_finite", f"expected finite numbers in the message, got {value}")
    if abs(value) > _MAX_VALUE:
        raise Refusal("range", f"expected numbers of magnitude at most {_MAX_VALUE:g} in the message, got {value:g}")
    return float(value)


def udp_services(text: str) -> Iterator[tuple[str, int]]:
    """Yield the valid imc+udp services of an announce.

    Parameters
    ----------
    text : str
        The services.

    Yields
    ------
    tuple[str, int]
        Host and port.
    """
    for url in text[:4096].split(";")[:32]:
        try:
            parts = urlsplit(url.strip())
            if parts.scheme == "imc+udp" and parts.hostname and parts.port:
                yield parts.hostname, parts.port
        except ValueError:
            continue


def fuzzed() -> Fuzzed:
    """Return the parser for fuzz tests.

    It reads each frame unchanged and, if it is long enough, with a corrected checksum.

    Returns
    -------
    Fuzzed
        The code to try, and valid samples.
    """
    import imcpy

    home = Home(lat_deg=43.1, lon_deg=5.9)

    def take(data: bytes) -> None:
        """Handle a packet.

        Parameters
        ----------
        data : bytes
            The packet.

        Raises
        ------
        ValueError
            If a value is not finite.
        """
        if not name_of(data):
            return
        message = parse(data)
        for value in set_points(message, home).values():
            if not isfinite(value):
                raise ValueError("a value that is not finite")
        if isinstance(message, imcpy.Announce):
            list(udp_services(message.services))
        elif isinstance(message, imcpy.PlanControl | imcpy.PlanDB) and message.arg is not None:
            places(message.arg, home)

    def read(data: bytes) -> None:
        """Handle a packet, unchanged and corrected.

        Parameters
        ----------
        data : bytes
            The packet.
        """
        mended = _mended(data)
        take(data if mended is None else mended)
        take(data)

    samples = [
        imcpy.Announce(), imcpy.DesiredHeading(), imcpy.DesiredZ(), imcpy.DesiredSpeed(), imcpy.SetServoPosition(),
        imcpy.Heartbeat(), sample_plan(home, ((10.0, 20.0), (30.0, 0.0))),
    ]  # fmt: skip
    samples[0].sys_name, samples[0].services = "ccu", "imc+udp://127.0.0.1:6001/;http://127.0.0.1:8080/"
    samples[2].value, samples[2].z_units = 2.0, imcpy.ZUnits.DEPTH
    _mended(bytes(64)), known_messages()  # what it imports is not the first frame's work
    return fuzz(read), [bytes(imcpy.Packet.serialize(sample)) for sample in samples]


def _mended(data: bytes) -> bytes | None:
    """Return data with mark, length and checksum (CRC-16/ARC) of a packet; None if they are too short."""
    if not _HEAD + 2 <= len(data) <= MAX_MESSAGE_BYTES:
        return None
    from fastcrc import crc16

    body = b"\x54\xfe" + data[2:4] + (len(data) - _HEAD - 2).to_bytes(2, "little") + data[6:-2]
    return body + int(crc16.arc(body)).to_bytes(2, "little")


def sample_plan(home: Home, course: tuple[tuple[float, float], ...]) -> Any:
    """Return a request to start a plan of Gotos, 2 m deep at 0.5 m/s.

    Parameters
    ----------
    home : Home
        Place of the world's origin.
    course : tuple[tuple[float, float], ...]
        Waypoints x, y, m, world.

    Returns
    -------
    Any
        The request.
    """
    import imcpy

    plan = imcpy.PlanSpecification()
    plan.plan_id, plan.start_man_id = "survey", "1"
    for k, place in enumerate(course, 1):
        lat, lon, _ = home.geodetic((*place, 0.0))
        goto = imcpy.Goto()
        goto.lat, goto.lon = lat / degrees(1.0), lon / degrees(1.0)
        goto.z, goto.z_units, goto.speed, goto.speed_units = 2.0, imcpy.ZUnits.DEPTH, 0.5, imcpy.SpeedUnits.METERS_PS
        maneuver = imcpy.PlanManeuver()
        maneuver.maneuver_id, maneuver.data = str(k), goto
        plan.maneuvers.append(maneuver)
        if k > 1:
            transition = imcpy.PlanTransition()
            transition.source_man, transition.dest_man = str(k - 1), str(k)
            plan.transitions.append(transition)
    request = imcpy.PlanControl()
    request.type, request.op = imcpy.PlanControl.TypeEnum.REQUEST, imcpy.PlanControl.OperationEnum.START
    request.plan_id, request.arg = "survey", plan
    return request
