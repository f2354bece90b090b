"""NMEA 0183: readings of a robot's instruments as sentences over UDP, TCP or a serial line, and set-points from them.

A Doppler log's ensembles (Teledyne PD6) are sent on a wire of their own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, ClassVar

import rtmms
from rtmms.base.local_addresses import NamesAddress
from rtmms.base.override import override
from rtmms.base.parameters import Parameter
from rtmms.base.trust import NamesFile
from rtmms.bridging.channels import ChannelMap, ChannelMapping
from rtmms.bridging.channels import field as find_field
from rtmms.bridging.untrusted import Admission

from .autopilot.parameter_channels import ParameterBridge, ParameterChannels
from .lines.wires import Address, UdpIn, Wire, open_wire
from .motion.frames import Home
from .motion.pose import PoseNames
from .sea import sentences as of
from .sea.instruments import Attitude, Instrument, Instruments, ScalarReading, Source, variation_at
from .sea.pd6 import Ensembles

TALKERS = {
    "RMC": "GP", "GGA": "GP", "VTG": "GP", "HDT": "HE", "HDG": "HC", "ROT": "HE", "VHW": "VW", "DPT": "SD",
    "DBT": "SD", "MTW": "YX", "XDR": "YX",
}  # fmt: skip
MAX_RATES_HZ = dict.fromkeys(TALKERS, 10.0) | {"MTW": 1.0}
"""Highest rates, Hz: no more than the instrument has readings."""
_WATER_C = 15.0


@dataclass(kw_only=True)
class Nmea(ParameterBridge):
    """NMEA 0183 sentences out over UDP, TCP or a serial line; set-points in (APB, RMB, your own sentences); PD6.

    The declaration of each field has its meaning, unit and range.

    Parameters
    ----------
    peer_timeout_s : float, default 10.0
        Silence after a peer's first message from which it counts as lost (wall time); 0: never. Unit: s.
    """

    to: Annotated[str, NamesAddress("connect"), NamesFile("device"), Parameter(
        "Target of the sentences: udp://HOST:PORT, tcp://HOST:PORT (one client connects), or DEVICE[@BAUD] "
        "(4800).",
    )] = "udp://127.0.0.1:10110"  # fmt: skip
    listen: Annotated[str, NamesAddress("listen"), Parameter(
        "Address at which set-points arrive if `to` is UDP.",
    )] = "udp://127.0.0.1:10111"  # fmt: skip
    peer: Annotated[tuple[str, ...], Parameter(
        "Accepted senders: HOST, HOST:PORT or NETWORK/BITS; none: all that reach the port.",
    )] = ()  # fmt: skip
    sentences: Annotated[tuple[str, ...], Parameter(
        "Sentences, [TALKER]TYPE[:HZ] each; none: all that the robot has instruments for.",
    )] = ()  # fmt: skip
    source: Annotated[Source, Parameter(
        "Source of the sentences: the sensors (of a plant without sensors the truth), or the truth.",
    )] = "instruments"  # fmt: skip
    home: Annotated[Home, Parameter(
        "Place of the world's origin (lat_deg, lon_deg, alt_m) and compass bearing of its x axis "
        "(x_bearing_deg).",
    )] = field(default_factory=lambda: Home(lat_deg=43.11, lon_deg=5.94))  # fmt: skip
    variation_deg: Annotated[float | None, Parameter(
        "Variation of the compass, east positive; none: the World Magnetic Model's at home.", "deg", signed=True,
    )] = None  # fmt: skip
    bottom_m: Annotated[float | None, Parameter(
        "Height of the bottom in the world, for DPT, DBT and PD6 of the truth; none: unknown.", "m", signed=True,
    )] = None  # fmt: skip
    beam_deg: Annotated[float, Parameter(
        "Angle of the Doppler log's beams against its axis.", "deg", le=89,
    )] = 22.5  # fmt: skip
    water_speed: Annotated[str, Parameter(
        "Output with the speed through the water, OUTPUT[INDEX]; '': over the ground along the bow, if the truth "
        "is sent.",
    )] = ""  # fmt: skip
    water_c: Annotated[float | None, Parameter(
        "Temperature of the water, for MTW and PD6; none: no MTW.", "deg C", signed=True,
    )] = None  # fmt: skip
    epoch: Annotated[str, Parameter(
        "UTC at simulated time 0, as 2026-06-01T12:00:00; '': the first state is now.",
    )] = ""  # fmt: skip
    pd6: Annotated[str, NamesAddress("connect"), NamesFile("device"), Parameter(
        "Target of a Doppler log's ensembles, as `to`; '': none.",
    )] = ""  # fmt: skip
    pd6_hz: Annotated[float, Parameter("Ensembles of pd6 per second, at most.", "Hz")] = 10.0
    sound_m_s: Annotated[float, Parameter("Speed of sound that pd6 sends.", "m/s")] = 1500.0
    set_points: Annotated[dict[str, str], Parameter(
        "Sentences of your own: NAME to FIELD[:compass|knots], separated by '/'.",
    )] = field(default_factory=dict)  # fmt: skip
    checksums: Annotated[of.Checksums, Parameter("Whether a sentence needs a checksum.")] = "required"
    channels: Annotated[tuple[ChannelMapping, ...], Parameter(
        "Channels of the peer, each with its actuator: actuator = scale (value - trim); channels are "
        "set-points.",
    )] = ()  # fmt: skip
    parameter_channels: Annotated[dict[str, str], Parameter(
        "Set-points that set parameters of a controller, as `APB.heading_deg=autopilot.heading_deg`.",
    )] = field(default_factory=dict)  # fmt: skip
    lost: Annotated[dict[str, float], Parameter(
        "New values of `parameter_channels` by channel when the peer is lost; the others do not change.",
    )] = field(default_factory=dict)  # fmt: skip
    peer_timeout_s: float = 10.0
    pose: Annotated[PoseNames, Parameter(
        "Outputs of the plant that have its motion.",
    )] = field(default_factory=PoseNames)  # fmt: skip

    extra: ClassVar[str] = "nmea"
    requires: ClassVar[dict[str, str]] = {"pynmea2": "pynmea2", "serial": "pyserial", "pygeomag": "pygeomag"}

    def __post_init__(self) -> None:
        """Check the parameters."""
        super().__post_init__()
        self._to = Address.from_text(self.to, "to")
        self._listen = Address.from_text(self.listen, "listen")
        if self._listen.kind != "udp":
            raise rtmms.ModelError(f"listen: expected udp://HOST:PORT, got '{self.listen}'")
        self._pd6_to = Address.from_text(self.pd6, "pd6") if self.pd6 else None
        self._listed = tuple(of.SentenceSpec.from_word(word, TALKERS, MAX_RATES_HZ) for word in self.sentences)
        self._epoch = _utc(self.epoch)
        self._variation = variation_at(self.home) if self.variation_deg is None else self.variation_deg
        self._points = of.SetPoints(self.set_points, self.home, self._variation, self.checksums == "required")
        self._map = ChannelMap(self.channels)
        for entry in self._map.entries:
            if entry.channel not in self._points.channels:
                unknown = rtmms.UnknownNameError("channel", entry.channel, self._points.channels)
                raise rtmms.ModelError(f"channels: {unknown}")
        self._parameter_channels = ParameterChannels(self.parameter_channels, self._points.channels)
        for channel in self.lost:
            if channel not in self.parameter_channels:
                raise rtmms.ModelError(f"lost: {rtmms.UnknownNameError('channel', channel, self.parameter_channels)}")

    @override
    def claims(self) -> tuple[str, ...]:
        """Return `claim`, or else the actuators of the channels."""
        return self.claim or self._map.actuators

    # -- hooks -------------------------------------------------------------------------------------------------------

    @override
    def open(self, plant: rtmms.PlantInfo) -> None:
        """Open the wires, and find the instruments and sentences."""
        self._map.check(plant)
        self._parameter_channels.open(self.io.ask, self._not_taken)
        speed = find_field(self.water_speed, plant, "water_speed") if self.water_speed else None
        self._instruments = Instruments(
            plant, self.home, self.source, self.pose, variation_deg=self._variation, bottom_m=self.bottom_m,
            beam_deg=self.beam_deg, water_speed=speed,
        )  # fmt: skip
        self._clock: of.Clock | None = None
        self._tellers = self._all_tellers()
        self._time, self._pd6_slot = -1.0, -1
        drives = bool(self._map or self._parameter_channels)
        admission = Admission(self.peer)
        self._lines = of.Lines(self.counts.refuse)
        take = self._on_bytes if drives else None
        self._wire = self._opened(self._to, take, admission)
        self._pd6 = self._opened(self._pd6_to, None, Admission(())) if self._pd6_to is not None else None
        place = str(self._to)
        if drives and self._to.kind == "udp":
            inlet = UdpIn(self._listen, self.io, self.counts, self._on_bytes, admission)
            self.closing.callback(inlet.close)
            place = f"udp://{self._listen.host}:{inlet.port}"
        self._list_sentences(place if drives else "", admission)

    def _opened(self, address: Address, take: Any, admission: Admission) -> Wire:
        gone = self.on_peer_lost if take is not None else lambda why: None
        wire = open_wire(address, self.io, self.counts, received=take, admission=admission, gone=gone)
        self.closing.callback(wire.close)
        return wire

    def _list_sentences(self, place: str, admission: Admission) -> None:
        sources: dict[str, list[str]] = {}
        for teller in self._tellers:
            sources.setdefault(teller.source, []).append(teller.sentence.head)
        parts = [f"{', '.join(heads)} from {source}" for source, heads in sources.items()]
        self.io.log(f"sends sentences to {self._to}: {'; '.join(parts) or 'none'}")
        if self._pd6_to is not None and self._instruments.doppler is not None:
            self.io.log(f"sends PD6 to {self._pd6_to} from {self._instruments.doppler.description}")
        if place:
            self.io.log(admission.sentence(place))

    # -- out ---------------------------------------------------------------------------------------------------------

    @override
    def on_state(self, state: rtmms.State) -> None:
        """Send the sentences and ensembles that are due."""
        if self._clock is None or state.time < self._time:  # at the start, and where the plant begins anew
            self._clock = of.Clock(self._epoch or datetime.now(UTC) - timedelta(seconds=state.time))
            self._ensembles = Ensembles(self._clock, self.sound_m_s)
            self._pd6_slot = -1
            for teller in self._tellers:
                teller.slot = -1
        self._time = state.time
        try:
            self._send_sentences(state)
            if self._pd6 is not None and int(state.time * self.pd6_hz + 1e-6) > self._pd6_slot:
                self._send_pd6(state, self._pd6)
        except (ValueError, OverflowError):
            self.counts.add("not_finite")

    def _send_sentences(self, state: rtmms.State) -> None:
        read: dict[int, Any] = {}
        out = []
        for teller in self._tellers:
            slot = int(state.time * teller.sentence.rate_hz + 1e-6)
            if slot <= teller.slot:
                continue
            key = id(teller.instrument)
            if key not in read:
                read[key] = teller.instrument.new(state)
            if read[key] is not None:
                teller.slot = slot
                out.append(teller.write(state, read[key]))
        if out:
            self._wire.send("".join(out).encode())
            self.counts.add("sentences", len(out))

    def _send_pd6(self, state: rtmms.State, wire: Wire) -> None:
        has = self._instruments
        assert has.doppler is not None
        assert has.attitude is not None
        attitude = has.attitude.now(state)
        log = has.doppler.new(state) if attitude is not None else None
        if log is None or attitude is None:
            return
        self._pd6_slot = int(state.time * self.pd6_hz + 1e-6)
        depth = has.depth.now(state) if has.depth is not None else None
        celsius = self.water_c if self.water_c is not None else _WATER_C
        wire.send(self._ensembles.write(log, attitude, depth.value if depth is not None else 0.0, celsius).encode())
        self.counts.add("ensembles")

    def _all_tellers(self) -> list[_ScheduledSentence]:
        """Return the requested sentences, or all that there are instruments for.

        ModelError is raised for a requested one without its instrument.
        """
        result = []
        for sentence in self._listed or [of.SentenceSpec(kind, TALKERS[kind], MAX_RATES_HZ[kind]) for kind in TALKERS]:
            try:
                result.append(self._teller(sentence))
            except _MissingInstrument as lacking:
                if self._listed:
                    raise rtmms.ModelError(f"sentences: {sentence.kind} needs {lacking}") from None
        if self._pd6_to is not None and (self._instruments.doppler is None or self._instruments.attitude is None):
            raise rtmms.ModelError(
                "pd6: expected a robot with a Doppler log and an output of its attitude, got one "
                "without "
                f"{'a Doppler log' if self._instruments.doppler is None else 'such an output'}; add "
                "it, or remove pd6"
            )
        return result

    def _teller(self, sentence: of.SentenceSpec) -> _ScheduledSentence:
        has, head, variation = self._instruments, sentence.head, self._variation
        fix, heading = (has.gps, "a gps"), (has.attitude, "a compass (mag and imu), or an estimate")
        sounder = (has.sounder, "a Doppler log, or bottom_m where the truth is sent")
        match sentence.kind:
            case "RMC":
                return _ScheduledSentence.of(sentence, *fix, lambda s, now: of.rmc(head, now, self._at, variation))
            case "GGA":
                return _ScheduledSentence.of(sentence, *fix, lambda s, now: of.gga(head, now, self._at))
            case "VTG":
                return _ScheduledSentence.of(sentence, *fix, lambda s, now: of.vtg(head, now, variation))
            case "HDT":
                return _ScheduledSentence.of(sentence, *heading, lambda s, now: of.hdt(head, now))
            case "HDG":
                return _ScheduledSentence.of(sentence, *heading, lambda s, now: of.hdg(head, now, variation))
            case "ROT":
                return _ScheduledSentence.of(sentence, has.turn, "an imu", lambda s, now: of.rot(head, now))
            case "VHW":
                return _ScheduledSentence.of(sentence, has.log, "water_speed", lambda s, now: self._vhw(head, s, now))
            case "DPT":
                return _ScheduledSentence.of(sentence, *sounder, lambda s, now: of.dpt(head, now))
            case "DBT":
                return _ScheduledSentence.of(sentence, *sounder, lambda s, now: of.dbt(head, now))
            case "MTW":
                celsius = self.water_c
                water = (
                    Instrument("water_c", "", lambda s, at: ScalarReading(at, celsius)) if celsius is not None else None
                )
                return _ScheduledSentence.of(sentence, water, "water_c", lambda s, now: of.mtw(head, now.value))
        return _ScheduledSentence.of(sentence, *heading, lambda s, now: self._xdr(head, s, now))

    @property
    def _at(self) -> of.Clock:
        assert self._clock is not None
        return self._clock

    def _vhw(self, head: str, state: rtmms.State, speed: ScalarReading) -> str:
        attitude = self._instruments.attitude.now(state) if self._instruments.attitude is not None else None
        return of.vhw(head, speed, attitude, self._variation)

    def _xdr(self, head: str, state: rtmms.State, now: Attitude) -> str:
        """Return PTCH and ROLL as OpenCPN has them, and the robot's own depth."""
        transducers = [("A", now.pitch_deg, "D", "PTCH"), ("A", now.roll_deg, "D", "ROLL")]
        depth = self._instruments.depth.now(state) if self._instruments.depth is not None else None
        if depth is not None:
            transducers.append(("D", depth.value, "M", "DEPTH"))
        return of.xdr(head, transducers)

    # -- in ----------------------------------------------------------------------------------------------------------

    def _on_bytes(self, data: bytes, whole: bool) -> None:
        """Read sentences; the newest of each set-point counts."""
        values: dict[str, float] = {}
        lines = self._lines.feed(data, whole)
        for line in lines[-of.MAX_SENTENCES :]:
            with self.counts.message():
                values |= self._points.parse(line)
        if len(lines) > of.MAX_SENTENCES:
            self.counts.add("passed_over", len(lines) - of.MAX_SENTENCES)
        if not values:
            return
        self.peer_watch.fed()
        self._parameter_channels.take(values)
        actuators = self._map.to_actuators(values)
        if actuators and self.plant.granted:
            self.command(actuators)

    @override
    def on_peer_lost(self, why: str) -> None:
        """Handle a lost peer; a course remains set, except for the channels of `lost`."""
        rtmms.Bridge.on_peer_lost(self, why)
        if self.lost:
            self.io.log(
                f"{why}; the bridge sets "
                f"{', '.join(f'{self.parameter_channels[name]}={value:g}' for name, value in self.lost.items())} "
                "(lost)"
            )
            self._parameter_channels.take(self.lost)

    # -- time --------------------------------------------------------------------------------------------------------

    @override
    def tick(self, now: float) -> None:
        """Handle the wires."""
        self._wire.tick(now)
        if self._pd6 is not None:
            self._pd6.tick(now)

    @override
    def plant_again(self, plant: rtmms.PlantInfo) -> None:
        super().plant_again(plant)
        self._parameter_channels.open(self.io.ask, self._not_taken)


class _MissingInstrument(Exception):
    """Missing instrument of the robot; the text names it."""


@dataclass
class _ScheduledSentence:
    """Sentence, its instrument, and the last period of its rate in which it was sent."""

    sentence: of.SentenceSpec
    instrument: Instrument[Any]
    write: Callable[[rtmms.State, Any], str]
    slot: int = -1

    @classmethod
    def of(
        cls,
        sentence: of.SentenceSpec,
        instrument: Instrument[Any] | None,
        needs: str,
        write: Callable[[rtmms.State, Any], str],
    ) -> _ScheduledSentence:
        if instrument is None:
            raise _MissingInstrument(needs)
        return cls(sentence, instrument, write)

    @property
    def source(self) -> str:
        return self.instrument.description


def _utc(text: str) -> datetime | None:
    if not text:
        return None
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise rtmms.ModelError(f"epoch: expected a time such as 2026-06-01T12:00:00, got '{text}'") from None
    return time if time.tzinfo is not None else time.replace(tzinfo=UTC)
