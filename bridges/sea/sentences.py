"""NMEA 0183 sentences: out from readings of instruments, in as set-points, with degrees, knots, and metres as defined.

A sentence is: $ TALKER TYPE , FIELDS * CHECKSUM CR LF. The checksum is the exclusive or of all between $ and *.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import reduce
from math import isfinite
from operator import xor
from typing import Any, Literal

import rtmms
from rtmms.bridging.untrusted import Fuzzed, Refusal

from ..motion.frames import Home
from .instruments import Attitude, Fix, ScalarReading, world_heading_deg

KNOT = 1852.0 / 3600.0
"""One knot, m/s."""
_FOOT = 0.3048
_FATHOM = 1.8288
_NAUTICAL_MILE = 1852.0
MAX_SENTENCE_LENGTH = 256
"""Accepted characters of a sentence with its end; the standard has 82."""
MAX_SENTENCES = 16
"""Sentences read of one message, because a state may wait meanwhile; the newest ones are read."""
_NUMBER = re.compile(r"[+-]?\d{0,12}(?:\.\d{0,12})?")
_WORD = re.compile(r"([A-Z]{2})?([A-Z]{3})(?::(\d+(?:\.\d*)?))?")
_STEERS = re.compile("[A-OQ-Z][A-Z](APB|RMB)")
"""Sentences that steer; a talker that begins with P would be a manufacturer."""
_MIN_FIELDS = {"APB": 14, "RMB": 13}
"""Number of fields; since NMEA 2.3 a mode may follow."""
_NAME = re.compile(r"P[A-Z0-9]{3,8}|[A-Z]{2}[A-Z]{3}")
Unit = Literal["", "compass", "knots"]
Checksums = Literal["required", "optional"]


# -- out ------------------------------------------------------------------------------------------------------------


def sentence(head: str, *fields: str) -> str:
    r"""Return a sentence with its checksum and end.

    Parameters
    ----------
    head : str
        Talker and type.
    *fields : str
        Its fields.

    Returns
    -------
    str
        The sentence with its end.

    Examples
    --------
    >>> sentence("HEHDT", "90.0", "T")
    '$HEHDT,90.0,T*16\r\n'
    """
    body = ",".join((head, *fields))
    return f"${body}*{checksum(body):02X}\r\n"


def checksum(body: str) -> int:
    """Return the exclusive or of a body.

    Parameters
    ----------
    body : str
        Characters between $ and *.

    Returns
    -------
    int
        The checksum.
    """
    return reduce(xor, body.encode("ascii", "replace"), 0)


@dataclass(frozen=True)
class Clock:
    """UTC of simulated time.

    Parameters
    ----------
    epoch : datetime
        UTC at simulated time 0.
    """

    epoch: datetime

    def of(self, time: float) -> str:
        """Return the time of day as hhmmss.ss.

        Parameters
        ----------
        time : float
            Simulated time, s.

        Returns
        -------
        str
            The text.
        """
        return self.at(time).strftime("%H%M%S.%f")[:9]

    def date(self, time: float) -> str:
        """Return the date as ddmmyy.

        Parameters
        ----------
        time : float
            Simulated time, s.

        Returns
        -------
        str
            The text.
        """
        return self.at(time).strftime("%d%m%y")

    def at(self, time: float) -> datetime:
        """Return UTC, rounded to 0.01 s.

        Parameters
        ----------
        time : float
            Simulated time, s.

        Returns
        -------
        datetime
            Date and time.
        """
        return self.epoch + timedelta(seconds=round(time, 2))


def _angle(degrees: float) -> str:
    """Return a compass angle with one decimal, never 360.0."""
    return f"{round(degrees % 360.0, 1) % 360.0:.1f}"


def _place(fix: Fix) -> tuple[str, str, str, str]:
    """Return degrees and minutes, to 1e-5 minutes (2 cm); empty without a fix."""
    if not fix.valid:
        return "", "", "", ""
    lat, lon = round(abs(fix.lat_deg) * 6e6), round(abs(fix.lon_deg) * 6e6)  # whole: minutes never become 60.00000
    return (
        f"{lat // 6_000_000:02d}{lat % 6_000_000 / 1e5:08.5f}", "N" if fix.lat_deg >= 0 else "S",
        f"{lon // 6_000_000:03d}{lon % 6_000_000 / 1e5:08.5f}", "E" if fix.lon_deg >= 0 else "W",
    )  # fmt: skip


def _signed(degrees: float) -> tuple[str, str]:
    return f"{abs(degrees):.1f}", "E" if degrees >= 0 else "W"


def rmc(head: str, fix: Fix, clock: Clock, variation_deg: float) -> str:
    """Return RMC: position, speed and course.

    Parameters
    ----------
    head : str
        Talker and type.
    fix : Fix
        Reading of the receiver.
    clock : Clock
        UTC of simulated time.
    variation_deg : float
        Variation of the compass, deg, east > 0.

    Returns
    -------
    str
        The sentence with its end.
    """
    speed = "" if fix.speed_m_s is None else f"{fix.speed_m_s / KNOT:.2f}"
    course = "" if fix.course_deg is None else _angle(fix.course_deg)
    valid, mode = ("A", "A") if fix.valid else ("V", "N")
    return sentence(
        head,
        clock.of(fix.time),
        valid,
        *_place(fix),
        speed,
        course,
        clock.date(fix.time),
        *_signed(variation_deg),
        mode,
    )


def gga(head: str, fix: Fix, clock: Clock) -> str:
    """Return GGA: position and altitude.

    The altitude is that of the plant's world over the ellipsoid; the geoid is assumed to be the ellipsoid.

    Parameters
    ----------
    head : str
        Talker and type.
    fix : Fix
        Reading of the receiver.
    clock : Clock
        UTC of simulated time.

    Returns
    -------
    str
        The sentence with its end.
    """
    if not fix.valid:
        return sentence(head, clock.of(fix.time), "", "", "", "", "0", "00", "", "", "M", "", "M", "", "")
    altitude = f"{fix.alt_m:.2f}"
    return sentence(head, clock.of(fix.time), *_place(fix), "1", "10", "0.9", altitude, "M", "0.0", "M", "", "")


def vtg(head: str, fix: Fix, variation_deg: float) -> str:
    """Return VTG: course and speed over ground.

    Parameters
    ----------
    head : str
        Talker and type.
    fix : Fix
        Reading of the receiver.
    variation_deg : float
        Variation of the compass, deg, east > 0.

    Returns
    -------
    str
        The sentence with its end.
    """
    known = fix.valid and fix.speed_m_s is not None
    true = _angle(fix.course_deg) if known and fix.course_deg is not None else ""
    magnetic = _angle(fix.course_deg - variation_deg) if known and fix.course_deg is not None else ""
    speed = fix.speed_m_s if known and fix.speed_m_s is not None else None
    knots, kmh = ("", "") if speed is None else (f"{speed / KNOT:.2f}", f"{speed * 3.6:.2f}")
    return sentence(head, true, "T", magnetic, "M", knots, "N", kmh, "K", "A" if known else "N")


def hdt(head: str, attitude: Attitude) -> str:
    """Return HDT: true heading.

    Parameters
    ----------
    head : str
        Talker and type.
    attitude : Attitude
        Attitude of the robot.

    Returns
    -------
    str
        The sentence with its end.
    """
    return sentence(head, _angle(attitude.heading_deg), "T")


def hdg(head: str, attitude: Attitude, variation_deg: float) -> str:
    """Return HDG: magnetic heading and variation.

    Parameters
    ----------
    head : str
        Talker and type.
    attitude : Attitude
        Attitude of the robot.
    variation_deg : float
        Variation of the compass, deg, east > 0.

    Returns
    -------
    str
        The sentence with its end.
    """
    magnetic = _angle(attitude.heading_deg - variation_deg)
    return sentence(head, magnetic, "", "", *_signed(variation_deg))


def rot(head: str, turn: ScalarReading) -> str:
    """Return ROT: rate of turn.

    Parameters
    ----------
    head : str
        Talker and type.
    turn : ScalarReading
        Rate of turn, deg/min to starboard.

    Returns
    -------
    str
        The sentence with its end.
    """
    return sentence(head, f"{turn.value:.1f}", "A")


def vhw(head: str, speed: ScalarReading, attitude: Attitude | None, variation_deg: float) -> str:
    """Return VHW: speed through the water and heading.

    Parameters
    ----------
    head : str
        Talker and type.
    speed : ScalarReading
        Speed through the water, m/s.
    attitude : Attitude | None
        Attitude of the robot; None for none.
    variation_deg : float
        Variation of the compass, deg, east > 0.

    Returns
    -------
    str
        The sentence with its end.
    """
    true = "" if attitude is None else _angle(attitude.heading_deg)
    magnetic = "" if attitude is None else _angle(attitude.heading_deg - variation_deg)
    return sentence(head, true, "T", magnetic, "M", f"{speed.value / KNOT:.2f}", "N", f"{speed.value * 3.6:.2f}", "K")


def dpt(head: str, depth: ScalarReading) -> str:
    """Return DPT: depth of the water below the instrument.

    Parameters
    ----------
    head : str
        Talker and type.
    depth : ScalarReading
        Depth, m.

    Returns
    -------
    str
        The sentence with its end.
    """
    return sentence(head, f"{depth.value:.2f}" if depth.valid else "", "0.0", "")


def dbt(head: str, depth: ScalarReading) -> str:
    """Return DBT: depth of the water below the instrument, in feet, metres and fathoms.

    Parameters
    ----------
    head : str
        Talker and type.
    depth : ScalarReading
        Depth, m.

    Returns
    -------
    str
        The sentence with its end.
    """
    if not depth.valid:
        return sentence(head, "", "f", "", "M", "", "F")
    metres = depth.value
    return sentence(head, f"{metres / _FOOT:.1f}", "f", f"{metres:.2f}", "M", f"{metres / _FATHOM:.1f}", "F")


def mtw(head: str, celsius: float) -> str:
    """Return MTW: temperature of the water.

    Parameters
    ----------
    head : str
        Talker and type.
    celsius : float
        Temperature, deg C.

    Returns
    -------
    str
        The sentence with its end.
    """
    return sentence(head, f"{celsius:.1f}", "C")


def xdr(head: str, transducers: list[tuple[str, float, str, str]]) -> str:
    """Return XDR: readings of transducers.

    Parameters
    ----------
    head : str
        Talker and type.
    transducers : list[tuple[str, float, str, str]]
        Kind, value, unit and name of each.

    Returns
    -------
    str
        The sentence with its end.
    """
    fields = [f"{kind},{value:.3f},{unit},{name}" for kind, value, unit, name in transducers]
    return sentence(head, *fields)


@dataclass(frozen=True)
class SentenceSpec:
    """Sentence that is sent: [TALKER]TYPE[:HZ] as a text.

    Parameters
    ----------
    kind : str
        Its type.
    talker : str
        Its talker.
    rate_hz : float
        Its highest rate, Hz.
    """

    kind: str
    talker: str
    rate_hz: float

    @classmethod
    def from_word(cls, word: str, talkers: Mapping[str, str], rates: Mapping[str, float]) -> SentenceSpec:
        """Return the sentence of a text.

        Parameters
        ----------
        word : str
            The text.
        talkers : Mapping[str, str]
            Default talkers by type.
        rates : Mapping[str, float]
            Default rates by type, Hz.

        Returns
        -------
        SentenceSpec
            The sentence.

        Raises
        ------
        ModelError
            If the text has another form.
        """
        match = _WORD.fullmatch(word)
        if not match or match[2] not in talkers:
            kinds = ", ".join(talkers)
            raise rtmms.ModelError(f"sentences: expected [TALKER]TYPE[:HZ] with one of {kinds}; got '{word}'")
        rate = float(match[3]) if match[3] else rates[match[2]]
        if not 0.0 < rate <= 100.0:
            raise rtmms.ModelError(f"sentences: '{word}': expected a rate > 0 and at most 100 Hz")
        return cls(match[2], match[1] or talkers[match[2]], rate)

    @property
    def head(self) -> str:
        """Talker and type."""
        return self.talker + self.kind


# -- in -------------------------------------------------------------------------------------------------------------


class Lines:
    """Sentences of a stream, or of datagrams; one that is too long is skipped up to its end.

    Parameters
    ----------
    refuse : Callable[[str], object]
        Called with the reason of each skipped one.
    """

    def __init__(self, refuse: Callable[[str], object]) -> None:
        self._refuse = refuse
        self._incomplete = b""
        self._skipping = False

    def feed(self, data: bytes, whole: bool) -> list[bytes]:
        """Return the sentences that end with these bytes.

        Parameters
        ----------
        data : bytes
            New bytes.
        whole : bool
            Whether the last one ends with them, with or without an end of line.

        Returns
        -------
        list[bytes]
            The sentences.
        """
        *ended, self._incomplete = (self._incomplete + data).replace(b"\r", b"\n").split(b"\n")
        if whole:
            ended, self._incomplete = [*ended, self._incomplete], b""
        result = []
        for line in ended:
            if self._skipping:
                self._skipping = False
            elif len(line) > MAX_SENTENCE_LENGTH:
                self._refuse("oversize")
            elif line:
                result.append(line)
        if len(self._incomplete) > MAX_SENTENCE_LENGTH:
            if not self._skipping:
                self._refuse("oversize")
            self._incomplete, self._skipping = b"", True
        return result


class SetPoints:
    """Set-points by channel from APB, RMB, and own sentences.

    Headings are as controllers have them, degrees from world x to the left; speeds are in m/s, distances in m.

    Parameters
    ----------
    own : Mapping[str, str]
        Fields of own sentences by name, NAME[:compass|knots] separated by '/' (or ','); an empty name skips a field.
    home : Home
        Place of the world's origin, for places and headings.
    variation_deg : float
        Variation of the compass, deg: true = magnetic + variation.
    strict : bool, default True
        Whether a sentence needs a checksum.

    Attributes
    ----------
    channels : tuple of str
        All possible channels.

    Raises
    ------
    ModelError
        If a name is no sentence.
    """

    def __init__(
        self, sentence_fields: Mapping[str, str], home: Home, variation_deg: float, strict: bool = True
    ) -> None:
        import pynmea2

        self._of, self._home, self._variation, self._strict = pynmea2, home, variation_deg, strict
        self._sentence_fields: dict[str, list[tuple[str, Unit]]] = {}
        self.channels: tuple[str, ...] = _APB + _RMB
        for name, text in sentence_fields.items():
            if not _NAME.fullmatch(name) or name[2:] in ("APB", "RMB"):
                raise rtmms.ModelError(
                    f"set_points: expected the head of a sentence, such as PRTMS or IIVTG, got '{name}'"
                )
            self._sentence_fields[name] = fields = [_field(name, word) for word in re.split("[/,]", text)]
            self.channels += tuple(f"{name}.{field}" for field, _ in fields if field)

    def parse(self, line: bytes) -> dict[str, float]:
        """Return the set-points of a sentence.

        Parameters
        ----------
        line : bytes
            The sentence.

        Returns
        -------
        dict[str, float]
            Values by channel.

        Raises
        ------
        Refusal
            With reason malformed, checksum, unknown, invalid (by its own flag), wrong_length or wrong_type.
        """
        try:
            text = line.decode("ascii").strip()
        except UnicodeDecodeError:
            raise Refusal("malformed", "not ASCII") from None
        if text[:1] != "$":
            raise Refusal("malformed", "expected a sentence that starts with $, got other text")
        head = text[1:].partition("*")[0].partition(",")[0]
        if head not in self._sentence_fields and not _STEERS.fullmatch(head):
            raise Refusal("unknown", f"unknown sentence {head[:10]!r}")
        body, star, end = text.partition("*")
        right = re.fullmatch(r"[0-9A-Fa-f]{2}", end) and int(end, 16) == checksum(body[1:])
        if (star or self._strict) and not right:
            raise Refusal(
                "checksum", f"sentence {head[:10]!r}: expected the checksum {checksum(body[1:]):02X}, got {end[:2]!r}"
            )
        fields = body.split(",")[1:]
        least = len(self._sentence_fields[head]) if head in self._sentence_fields else _MIN_FIELDS[head[2:]]
        if len(fields) < least:
            raise Refusal(
                "wrong_length", f"sentence {head[:10]!r}: expected at least {least} fields, got {len(fields)}"
            )
        if head in self._sentence_fields:
            return self._read_own(head, fields)
        try:
            result: Any = self._of.parse(body)
        except (ValueError, LookupError, TypeError, AttributeError):
            raise Refusal("malformed", "expected an NMEA sentence, got other text") from None
        return self._apb(result) if head[2:] == "APB" else self._rmb(result)

    def _read_own(self, head: str, remaining: list[str]) -> dict[str, float]:
        """Read an own sentence without pynmea2, which has classes for some manufacturers' names."""
        fields = self._sentence_fields[head]
        values = {}
        for (name, unit), word in zip(fields, remaining, strict=False):
            if name and word:
                values[f"{head}.{name}"] = self._in_our_units(_number(word, name), unit)
        return values

    def _in_our_units(self, value: float, unit: Unit) -> float:
        if unit == "compass":
            return world_heading_deg(value, self._home)
        return value * KNOT if unit == "knots" else value

    def _apb(self, fields: Any) -> dict[str, float]:
        if fields.status_gen == "V" or fields.status_cycle_lock == "V":
            raise Refusal("invalid", "the status of APB is invalid (V)")
        values = _off_track(fields.cross_track_err_mag, fields.dir_steer, fields.cross_track_unit, "APB")
        for name, word, kind in (
            ("heading_deg", fields.heading_to_dest, fields.heading_to_dest_type),
            ("bearing_deg", fields.bearing_pres_dest, fields.bearing_pres_dest_type),
        ):
            if word:
                values[f"APB.{name}"] = self._heading(_number(word, name), kind)
        return values

    def _rmb(self, fields: Any) -> dict[str, float]:
        if fields.status != "A":
            raise Refusal("invalid", "the status of RMB is invalid (V)")
        values = _off_track(fields.cross_track_error, fields.cte_correction_dir, "N", "RMB")
        if fields.dest_true_bearing:
            values["RMB.bearing_deg"] = self._heading(_number(fields.dest_true_bearing, "bearing"), "T")
        if fields.dest_range:
            values["RMB.range_m"] = _number(fields.dest_range, "range") * _NAUTICAL_MILE
        if fields.dest_lat and fields.dest_lon:
            lat = _degrees(fields.dest_lat, fields.dest_lat_dir, "NS", 90.0)
            lon = _degrees(fields.dest_lon, fields.dest_lon_dir, "EW", 180.0)
            values["RMB.x"], values["RMB.y"], _ = self._home.position(lat, lon, self._home.alt_m)
        return values

    def _heading(self, degrees: float, kind: str) -> float:
        if kind not in ("T", "M") or not 0.0 <= degrees <= 360.0:
            raise Refusal(
                "wrong_type",
                f"expected a bearing from 0 to 360 degrees with T (true) or M (magnetic), got {degrees:g} {kind[:3]!r}",
            )
        return world_heading_deg(degrees + (self._variation if kind == "M" else 0.0), self._home)


_APB = ("APB.heading_deg", "APB.bearing_deg", "APB.xte_m")
_RMB = ("RMB.bearing_deg", "RMB.range_m", "RMB.xte_m", "RMB.x", "RMB.y")


def _field(name: str, word: str) -> tuple[str, Unit]:
    field, _, unit = word.strip().partition(":")
    match unit:
        case "":
            return field, ""
        case "compass":
            return field, "compass"
        case "knots":
            return field, "knots"
    raise rtmms.ModelError(f"set_points.{name}: expected FIELD, FIELD:compass or FIELD:knots, got '{word}'")


def _number(word: str, name: str) -> float:
    if not _NUMBER.fullmatch(word) or not any(map(str.isdigit, word)):
        raise Refusal("wrong_type", f"{name}: expected a number, got {word[:20]!r}")
    return float(word)


def _off_track(word: str, steer: str, unit: str, kind: str) -> dict[str, float]:
    """Return the cross-track error, > 0 left of the track, so that the steer is to the right."""
    if not word:
        return {}
    scale = {"N": _NAUTICAL_MILE, "K": 1000.0}.get(unit)
    if steer not in ("L", "R") or scale is None:
        raise Refusal(
            "wrong_type",
            f"{kind}: expected a cross-track error with unit N or K and steer L or R, got "
            f"{unit[:3]!r} and {steer[:3]!r}",
        )
    return {f"{kind}.xte_m": _number(word, "xte") * scale * (1.0 if steer == "R" else -1.0)}


def _degrees(word: str, side: str, sides: str, maximum: float) -> float:
    """Return degrees from DDMM.MM and its hemisphere."""
    minutes = _number(word, "place")
    whole, remaining = divmod(minutes, 100.0)
    value = whole + remaining / 60.0
    if len(side) != 1 or side not in sides or not (minutes >= 0 and remaining < 60.0 and value <= maximum):
        raise Refusal(
            "wrong_type",
            f"expected DDMM.MM and one of {sides}, at most {maximum:g} degrees, got {word[:20]!r} {side[:3]!r}",
        )
    return value if side == sides[0] else -value


def fuzzed() -> Fuzzed:
    """Return the parser for fuzz tests: sentences one after the other over the same stream.

    Each is read once more without its checksum, because most changed ones would not be read at all otherwise.

    Returns
    -------
    Fuzzed
        The code to try, and valid samples.
    """
    sentence_fields, home = {"PRTMS": "speed:knots/heading:compass/depth"}, Home(lat_deg=47.4, lon_deg=8.5)
    points, lenient = SetPoints(sentence_fields, home, 3.0), SetPoints(sentence_fields, home, 3.0, strict=False)
    reasons: list[str] = []
    lines = Lines(reasons.append)

    def read(data: bytes) -> str:
        """Read sentences.

        Parameters
        ----------
        data : bytes
            New bytes.

        Returns
        -------
        str
            The first reason of a refusal, or 'taken'.

        Raises
        ------
        ValueError
            If a value is not finite.
        """
        reasons.clear()
        for line in lines.feed(data, True)[-MAX_SENTENCES:]:
            for taking, text in ((points, line), (lenient, line.partition(b"*")[0])):
                try:
                    values = taking.parse(text)
                except Refusal as refusal:
                    reasons.append(refusal.reason)
                else:
                    if not all(map(isfinite, values.values())):
                        raise ValueError("a value that is not finite")
        return reasons[0] if reasons else "taken"

    samples = (
        sentence("GPAPB", "A", "A", "0.10", "R", "N", "V", "V", "11.0", "M", "DEST", "11.0", "M", "12.0", "T"),
        sentence("GPRMB", "A", "0.66", "L", "003", "004", "4717.24", "N", "00830.57", "E", "1.3", "52.5", "0.5", "V"),
        sentence("PRTMS", "1.5", "90.0", "2.25"), sentence("GPGGA", "1"),
    )  # fmt: skip
    return read, [text.encode() for text in samples]
