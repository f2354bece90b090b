"""Central pattern generator: coupled oscillators for the manta's rods, or for a chain along the eel.

Their parameters change while they run, without a jump in acceleration.

    rtmms run manta --controller cpg:amplitude_deg=25,frequency_hz=0.8
    rtmms set cpg.frequency_hz=0.5 cpg.right_phase_deg=0
    rtmms run eel --set gait=none --controller cpg:bias_deg=2
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import exp, inf, radians
from typing import Annotated, Any

import rtmms
from rtmms.base.override import override
from rtmms.base.parameters import Parameter, check_parameters

from .oscillators import Oscillators
from .strokes import Fins, Stroke, check_rods

_SIDE_PARAMETERS = ("amplitude_deg", "phase_deg", "bias_deg", "incidence_deg")
_MANTA = {"amplitude_deg": 25.0, "frequency_hz": 0.8, "phase_deg": 60.0}
_EEL = {"amplitude_deg": 6.0, "frequency_hz": 0.5, "phase_deg": 28.0}
GROWTH = 0.17
"""Growth of the eel's amplitudes: exp of it from joint to joint, as exp(1.2 s) over links of 0.14 m."""


@dataclass
class Cpg(rtmms.Controller):
    """Coupled phase oscillators; any parameter may change at any time.

    Without a value: 25 deg, 0.8 Hz, 60 deg for the manta; 6 deg, 0.5 Hz, 28 deg for the eel; else 0.

    The declaration of each field has its meaning, unit and range.
    """

    # fmt: off
    amplitude_deg: Annotated[float | None, Parameter(
        "Amplitude of the manta's back rods, or of the eel's last yaw joint. Front rods follow by the rule of equal "
        "height.",
        "deg", ge=0, le=90, live=True,
    )] = None
    frequency_hz: Annotated[float | None, Parameter(
        "Frequency of all oscillators.", "Hz", ge=0, le=5, live=True,
    )] = None
    phase_deg: Annotated[float | None, Parameter(
        "Phase of the wave. Manta: lead of the front rods, > 0 drives forward. Eel: lag of each joint to the one "
        "before it.",
        "deg", signed=True, le=180, live=True,
    )] = None
    bias_deg: Annotated[float, Parameter(
        "Bias of all rods of the manta, or of every yaw joint of the eel, where > 0 turns right.",
        "deg", signed=True, le=90, live=True,
    )] = 0.0
    incidence_deg: Annotated[float, Parameter(
        "Incidence. Manta: bias of front rods up and back rods down, which climbs. Eel: bias of every pitch joint, > 0 "
        "dives.",
        "deg", signed=True, le=45, live=True,
    )] = 0.0
    left_amplitude_deg: Annotated[float | None, Parameter(
        "Amplitude of the manta's left side alone.", "deg", ge=0, le=90, live=True,
    )] = None
    left_phase_deg: Annotated[float | None, Parameter(
        "Phase of the manta's left side alone.", "deg", signed=True, le=180, live=True,
    )] = None
    left_bias_deg: Annotated[float | None, Parameter(
        "Bias of the manta's left side alone.", "deg", signed=True, le=90, live=True,
    )] = None
    left_incidence_deg: Annotated[float | None, Parameter(
        "Incidence of the manta's left side alone.", "deg", signed=True, le=45, live=True,
    )] = None
    right_amplitude_deg: Annotated[float | None, Parameter(
        "Amplitude of the manta's right side alone.", "deg", ge=0, le=90, live=True,
    )] = None
    right_phase_deg: Annotated[float | None, Parameter(
        "Phase of the manta's right side alone.", "deg", signed=True, le=180, live=True,
    )] = None
    right_bias_deg: Annotated[float | None, Parameter(
        "Bias of the manta's right side alone.", "deg", signed=True, le=90, live=True,
    )] = None
    right_incidence_deg: Annotated[float | None, Parameter(
        "Incidence of the manta's right side alone.", "deg", signed=True, le=45, live=True,
    )] = None
    rate_1_s: Annotated[float, Parameter(
        "Rate at which the oscillators follow the parameters, by three poles at -rate.", "1/s", ge=0.1, le=100,
    )] = 6.0
    coupling_1_s: Annotated[float, Parameter("Rate at which phases follow each other.", "1/s", ge=0, le=100)] = 5.0
    # fmt: on

    robots = ("manta", "eel")
    claim = ("*",)
    outputs = ("none",)

    def __post_init__(self) -> None:
        """Check the parameters."""
        check_parameters("controller 'cpg': ", self)
        self._player: _Rods | _Chain | None = None
        self._plant: Any = None

    @override
    def start(self, plant: rtmms.PlantInfo) -> None:
        """Make the oscillators of rods or of a chain, by the plant's actuators.

        Raises
        ------
        ModelError
            It has neither, or a rod would leave its limits.
        """
        names = [channel.name for channel in plant.actuators]
        self._plant = plant
        if "left.front" in names:
            self._player = _Rods(self, plant)
        elif "yaw1.angle" in names:
            self._player = _Chain(self, plant)
        else:
            raise rtmms.ModelError(
                "controller 'cpg': expected actuators 'left.front' ... or 'yaw1.angle' ..., got "
                f"{', '.join(names[:4]) or 'none'}"
            )
        self._player.check(self)
        self._player.aim(self)

    @override
    def on_parameters_changed(self, values: Mapping[str, Any]) -> None:
        """Use other parameters, if the rods can do the stroke."""
        trial = replace(self, **values)
        if self._player is not None:
            self._player.check(trial)
        super().on_parameters_changed(values)
        if self._player is not None:
            self._player.aim(self)

    @override
    def update(self, state: rtmms.State) -> dict[str, float]:
        """Return the angles at state.time, rad."""
        assert self._player is not None
        return self._player.at(state.time)

    def take_up(self) -> None:
        """Use parameters that were set as attributes; the caller checks their limits."""
        if self._player is not None:
            self._player.aim(self)

    def side(self, side: str) -> Stroke:
        """Return the stroke of one side.

        Parameters
        ----------
        side : str
            'left' or 'right'.

        Returns
        -------
        Stroke
            Its values, or those of both sides.
        """
        values = []
        for name in _SIDE_PARAMETERS:
            side_value = getattr(self, f"{side}_{name}")
            value = getattr(self, name) if side_value is None else side_value
            values.append(radians(_MANTA[name] if value is None else value))
        return Stroke(*values)


class _Rods:
    def __init__(self, cpg: Cpg, plant: rtmms.PlantInfo) -> None:
        self._plant = plant
        self.fins = Fins(cpg.rate_1_s, cpg.rate_1_s, cpg.coupling_1_s)
        self.fins.start(plant)

    def check(self, cpg: Cpg) -> None:
        check_rods("cpg", self._plant, self.fins.ratio, {side: cpg.side(side) for side in ("left", "right")})

    def aim(self, cpg: Cpg) -> None:
        hz = _MANTA["frequency_hz"] if cpg.frequency_hz is None else cpg.frequency_hz
        self.fins.aim(cpg.side("left"), cpg.side("right"), hz)

    def at(self, time: float) -> dict[str, float]:
        return self.fins.at(time)


_OF_SIDES = tuple(
    f"{side}_{name}_deg" for side in ("left", "right") for name in ("amplitude", "phase", "bias", "incidence")
)  # fmt: skip
"""Parameters of one side of the manta."""


class _Chain:
    def __init__(self, cpg: Cpg, plant: rtmms.PlantInfo) -> None:
        if plant.parameters.get("gait", "none") != "none":
            raise rtmms.ModelError("controller 'cpg': the eel's own gait is on; run it with --set gait=none")
        self.yaw = [c for c in plant.actuators if c.name.startswith("yaw")]
        self.pitch = [c for c in plant.actuators if c.name.startswith("pitch")]
        n = len(self.yaw)
        pairs = [(i, i - 1) for i in range(1, n)]
        self.chain = Oscillators(n, pairs, [0.0] * len(pairs), cpg.rate_1_s, cpg.rate_1_s, cpg.coupling_1_s)
        self.dive = Oscillators(1, (), (), cpg.rate_1_s, cpg.rate_1_s, 0.0)
        self._time = -inf

    def check(self, cpg: Cpg) -> None:
        for name in _OF_SIDES:
            if getattr(cpg, name) is not None:
                raise rtmms.ModelError(
                    f"controller 'cpg': {name}: expected none for an eel, as only the manta has sides; leave it out"
                )
        maximum = radians(
            (_EEL["amplitude_deg"] if cpg.amplitude_deg is None else cpg.amplitude_deg) + abs(cpg.bias_deg)
        )
        for channel in self.yaw:
            limits = [abs(limit) for limit in (channel.lower, channel.upper) if limit is not None]
            if limits and maximum > min(limits) + 1e-9:
                raise rtmms.ModelError(
                    f"controller 'cpg': {channel.name} would move to {maximum:.3g} rad, beyond its limit of "
                    f"{min(limits):.3g} rad"
                )

    def aim(self, cpg: Cpg) -> None:
        values = {name: _EEL[name] if getattr(cpg, name) is None else getattr(cpg, name) for name in _EEL}
        n = len(self.yaw)
        for i, (amplitude, bias) in enumerate(zip(self.chain.amplitude, self.chain.bias, strict=True)):
            amplitude.target = radians(values["amplitude_deg"]) * exp(GROWTH * (i + 1 - n))
            bias.target = radians(cpg.bias_deg)
        for lag in self.chain.lag:
            lag.target = -radians(values["phase_deg"])
        self.chain.frequency_hz.target = values["frequency_hz"]
        self.dive.bias[0].target = radians(cpg.incidence_deg)

    def at(self, time: float) -> dict[str, float]:
        if time < self._time or self._time == -inf:
            self.chain.begin([lag.target for lag in self.chain.lag], self.chain.frequency_hz.target)
            self.dive.begin((), 0.0)
            self._time = time
        self.chain.advance(time - self._time)
        self.dive.advance(time - self._time)
        self._time = time
        angles = dict(zip((channel.name for channel in self.yaw), self.chain.angles(), strict=True))
        return angles | dict.fromkeys((channel.name for channel in self.pitch), self.dive.bias[0].v)
