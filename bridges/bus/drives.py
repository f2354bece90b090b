"""Servo drive by CiA 402: its state machine, its modes, and the resulting actuator value, without a bus."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Annotated, Any

from rtmms.base.errors import ModelError
from rtmms.base.parameters import Parameter, check_parameters

PROFILE_POSITION = 1
PROFILE_VELOCITY = 3
CYCLIC_POSITION = 8
CYCLIC_VELOCITY = 9
_POSITION_MODES = (PROFILE_POSITION, CYCLIC_POSITION)
_VELOCITY_MODES = (PROFILE_VELOCITY, CYCLIC_VELOCITY)
_ENABLE_VOLTAGE = 1 << 4
_REMOTE = 1 << 9
_TARGET_REACHED = 1 << 10
_ACKNOWLEDGED = 1 << 12
_NEW_SET_POINT = 1 << 4
_FAULT_RESET = 1 << 7
_HALT = 1 << 8
_RELATIVE = 1 << 6
_MIN_COUNT = -(1 << 31)
_MAX_COUNT = (1 << 31) - 1


class Power(Enum):
    """States, by their bits of the status word (CiA 402-2, table of the finite state automaton)."""

    SWITCH_ON_DISABLED = 0x40
    READY_TO_SWITCH_ON = 0x21
    SWITCHED_ON = 0x23
    OPERATION_ENABLED = 0x27
    QUICK_STOP_ACTIVE = 0x07
    FAULT = 0x08


def _commanded(power: Power, word: int) -> Power:
    """Return the state after a control word; the same state if the word has no effect there."""
    down = {Power.READY_TO_SWITCH_ON, Power.SWITCHED_ON, Power.OPERATION_ENABLED, Power.QUICK_STOP_ACTIVE}
    if power is Power.FAULT:
        return power
    if not word & 0x02:  # disable voltage
        return Power.SWITCH_ON_DISABLED
    if not word & 0x04:  # quick stop
        return {Power.OPERATION_ENABLED: Power.QUICK_STOP_ACTIVE, Power.READY_TO_SWITCH_ON: Power.SWITCH_ON_DISABLED,
                Power.SWITCHED_ON: Power.SWITCH_ON_DISABLED}.get(power, power)  # fmt: skip
    if not word & 0x01:  # shutdown
        return Power.READY_TO_SWITCH_ON if power in down | {Power.SWITCH_ON_DISABLED} else power
    if not word & 0x08:  # switch on, or disable operation
        return Power.SWITCHED_ON if power in (Power.READY_TO_SWITCH_ON, Power.OPERATION_ENABLED) else power
    # enable operation, from ready by way of switched on
    return Power.OPERATION_ENABLED if power in down else power


@dataclass(frozen=True, kw_only=True)
class DriveAt:
    """Node of the bus, and its actuator.

    As a text it is NODE:ACTUATOR[:COUNTS[:POSITION[:VELOCITY]]].

    Parameters
    ----------
    node : int
        1 to 127.
    actuator : str
        Its name. Its unit defines the kind: rad or m a position, rad/s or m/s a velocity; for others set `kind`.
    counts : float, default 10000.0
        Counts per unit of the actuator (rad, m, ...), with a sign.
    kind : str, default ''
        position or velocity; empty: by the unit.
    position, velocity : str, default ''
        The plant's outputs of the drive's motion, OUTPUT[INDEX]; empty for the commanded one.

    Raises
    ------
    ModelError
        If a value is invalid.
    """

    node: Annotated[int, Parameter("Node of the drive.", ge=1, le=127)]
    actuator: str
    counts: float = 10_000.0
    kind: str = ""
    position: str = ""
    velocity: str = ""

    def __post_init__(self) -> None:
        """Check the parameters."""
        check_parameters("", self)
        if not self.counts or not abs(self.counts) < 1e9:
            raise ModelError(f"counts: expected a finite number and not 0, got {self.counts}")
        if self.kind not in ("", "position", "velocity"):
            raise ModelError(f"kind: expected position or velocity, got '{self.kind}'")

    @classmethod
    def from_word(cls, word: str, place: str) -> DriveAt:
        """Return the drive of a text.

        Parameters
        ----------
        word : str
            The text.
        place : str
            Source of the text, for the error.

        Returns
        -------
        DriveAt
            The drive.

        Raises
        ------
        ModelError
            If the text has another form.
        """
        node, *remaining = word.split(":")
        try:
            number, counts = int(node), float(remaining[1]) if len(remaining) > 1 and remaining[1] else 10_000.0
        except ValueError:
            number, counts = -1, 0.0
        if number < 0 or not 1 <= len(remaining) <= 4 or not remaining[0]:
            raise ModelError(f"{place}: expected NODE:ACTUATOR[:COUNTS[:POSITION[:VELOCITY]]], got '{word}'")
        more = [*remaining[2:], "", ""]
        return cls(node=number, actuator=remaining[0], counts=counts, position=more[0], velocity=more[1])

    def of(self, channel: Any) -> str:
        """Return position or velocity, by the actuator's unit.

        Parameters
        ----------
        channel : Any
            The actuator.

        Returns
        -------
        str
            'position' or 'velocity'.

        Raises
        ------
        ModelError
            If the unit does not define it.
        """
        if self.kind:
            return self.kind
        result = {"rad": "position", "m": "position", "rad/s": "velocity", "m/s": "velocity"}.get(channel.unit)
        if result is None:
            raise ModelError(
                f"drives: node {self.node}: actuator '{self.actuator}': expected the unit rad, m, rad/s or m/s, got "
                f"'{channel.unit}'; set kind to position or velocity"
            )
        return result


@dataclass(slots=True)
class Drive:
    """Drive with positions in counts and velocities in counts/s, whole numbers of 32 bits on the bus.

    Parameters
    ----------
    kind : str
        Kind of its actuator: position or velocity.
    counts : float
        Counts per unit of the actuator.
    least, max_value, neutral : float
        Limits and neutral value of the actuator, in its unit.
    power : Power, default Power.SWITCH_ON_DISABLED
        State of the drive.
    mode : int, default CYCLIC_POSITION
        Mode of operation.
    target_position, target_velocity, profile_velocity : int, default 0
        Objects of the peer, counts and counts/s.
    position, velocity : float, default 0.0
        Measured motion, counts and counts/s.
    demand : float, default 0.0
        Demanded position, counts (a position drive), or velocity, counts/s (a velocity drive).
    """

    kind: str
    counts: float
    least: float
    max_value: float
    neutral: float
    power: Power = Power.SWITCH_ON_DISABLED
    mode: int = CYCLIC_POSITION
    target_position: int = 0
    target_velocity: int = 0
    profile_velocity: int = 0
    position: float = 0.0
    velocity: float = 0.0
    demand: float = field(default=0.0)
    """Demanded position, counts (a position drive), or velocity, counts/s (a velocity drive)."""
    _word: int = 0
    _set_point: int = 0
    _acknowledged: bool = False
    _ready: bool = False

    def __post_init__(self) -> None:
        """Set the mode of a velocity drive."""
        if self.kind == "velocity":
            self.mode = CYCLIC_VELOCITY

    @property
    def modes(self) -> tuple[int, ...]:
        """Modes of operation that it supports."""
        return _VELOCITY_MODES if self.kind == "velocity" else _POSITION_MODES + _VELOCITY_MODES

    @property
    def supported(self) -> int:
        """Object 0x6502: one bit for each mode."""
        return sum(1 << (mode - 1) for mode in self.modes)

    def set_mode(self, mode: int) -> bool:
        """Change the mode of operation; 0 is no mode, and changes nothing.

        Parameters
        ----------
        mode : int
            The mode.

        Returns
        -------
        bool
            Whether the drive has it.
        """
        if mode == 0:
            return True
        if mode not in self.modes:
            return False
        if mode != self.mode:
            self.mode = mode
            self._set_point = round(self.demand if self.kind == "position" else 0.0)
        return True

    def control(self, word: int) -> None:
        """Handle a control word.

        Parameters
        ----------
        word : int
            The word.
        """
        rose, self._word = word & ~self._word, word
        if self.power is Power.FAULT:
            if rose & _FAULT_RESET:
                self.power = Power.SWITCH_ON_DISABLED
            return
        before, self.power = self.power, _commanded(self.power, word)
        if self.power is Power.OPERATION_ENABLED and before is not Power.OPERATION_ENABLED:
            self._hold()
        if self.mode == PROFILE_POSITION:
            if rose & _NEW_SET_POINT and self.power is Power.OPERATION_ENABLED:
                base = self._set_point if word & _RELATIVE else 0
                self._set_point = self.target_position + base
                self._acknowledged = True
            if not word & _NEW_SET_POINT:
                self._acknowledged = False

    def fail(self) -> None:
        """Enter the fault state: the drive does not move until it is reset."""
        self.power = Power.FAULT

    def reset(self) -> None:
        """Reset the drive, as when it is switched on."""
        self.power, self._word, self._acknowledged = Power.SWITCH_ON_DISABLED, 0, False
        self.target_velocity, self.mode = 0, CYCLIC_VELOCITY if self.kind == "velocity" else CYCLIC_POSITION

    def status(self) -> int:
        """Return the status word.

        Returns
        -------
        int
            The word.
        """
        word = self.power.value | _REMOTE
        if self.power not in (Power.SWITCH_ON_DISABLED, Power.FAULT):
            word |= _ENABLE_VOLTAGE
        if self._reached():
            word |= _TARGET_REACHED
        enabled = self.power is Power.OPERATION_ENABLED
        if (self.mode == PROFILE_POSITION and self._acknowledged) or (
            enabled and self.mode in (CYCLIC_POSITION, CYCLIC_VELOCITY)
        ):  # acknowledged in the former; in the latter: follows the command
            word |= _ACKNOWLEDGED
        return word

    def measured(self, position: float | None, velocity: float | None) -> None:
        """Store the motion that the plant sends; without one the drive is at its demand.

        Parameters
        ----------
        position, velocity : float | None
            In units of the actuator; None if the plant does not send it.
        """
        if position is not None:
            self.position = position * self.counts
        elif self.kind == "position":
            self.position = self.demand
        if velocity is not None:
            self.velocity = velocity * self.counts
        elif self.kind == "velocity":
            self.velocity = self.demand
        if not self._ready:
            self._ready = True
            self._hold()
            self.target_position = self._set_point

    def drive(self, lapse_s: float) -> float:
        """Return the actuator's value for the next interval.

        Parameters
        ----------
        lapse_s : float
            Its simulated time, s.

        Returns
        -------
        float
            Value in the actuator's unit.
        """
        low, high = sorted((self.least * self.counts, self.max_value * self.counts))
        enabled = self.power is Power.OPERATION_ENABLED and not self._word & _HALT
        if self.kind == "velocity":
            wanted = float(self.target_velocity) if enabled else self.neutral * self.counts
            self.demand = min(high, max(low, wanted))
            return self.demand / self.counts
        if enabled and self.mode == CYCLIC_POSITION:
            self.demand = float(self.target_position)
        elif enabled and self.mode == PROFILE_POSITION:
            far = self._set_point - self.demand
            step = self.profile_velocity * lapse_s if self.profile_velocity > 0 else abs(far)
            self.demand += min(step, max(-step, far))
        elif enabled:
            self.demand += self.target_velocity * lapse_s
        self.demand = min(high, max(low, self.demand))
        return self.demand / self.counts

    def _hold(self) -> None:
        """Hold the present position until a command changes it."""
        self._set_point = round(self.position)
        if self.kind == "position":
            self.demand = self.position

    def _reached(self) -> bool:
        if self.mode in _VELOCITY_MODES:
            return abs(self.velocity - self.target_velocity) <= max(10.0, 0.01 * abs(self.target_velocity))
        target = self._set_point if self.mode == PROFILE_POSITION else self.target_position
        return abs(self.position - target) <= max(10.0, 0.002 * abs(self.counts))


def to_int32(value: float) -> int:
    """Return a number as a signed whole number of 32 bits.

    Parameters
    ----------
    value : float
        The number.

    Returns
    -------
    int
        The rounded number, clamped.
    """
    return min(_MAX_COUNT, max(_MIN_COUNT, round(value)))
