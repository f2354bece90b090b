"""What a controller gets to see: the plant it is linked to, and its state at each step."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from rtmms.base.contract import Applied
from rtmms.base.errors import ModelError, UnknownNameError
from rtmms.plant.protocol import STANDARD_GRAVITY, Channel

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


@dataclass(frozen=True)
class PlantInfo:
    """The plant as its welcome describes it.

    dt           s         a step
    period_s     s         wall time of a step; None where nobody paces it (lockstep, free)
    deadline_s   s         time for an answer; None where nobody waits on a clock
    actuators, outputs     all of the plant's channels; `granted` and `selected` are the names of yours
    telemetry_hz   states for those who only watch, per second of wall time, at most
    request_bytes  of a request, at most; 0 where the plant does not state it
    ticks        your ticks start the steps (mode external)
    every, delay   of yours: steps from state to state, and from a state to the step that your command for it is for
    parameters   what the plant states of itself by name, SI units; may be empty
    surroundings what the plant moves in: gravity_m_s2 (3, world), water_kg_m3 (0: none), surface_m; may be empty
    shape        what viewers draw of it (rtmms.plant.protocol.PlantDescription); may be empty
    telemetry_endpoint   of all its states, as it is bound; '' where the plant does not state it
    topic        what messages of its telemetry begin with
    robots       of several robots on one clock: each by its name, as it is alone; empty where there is one
    member       the name of the one robot that you asked for; '' for all that there is
    airframe     name of the layout of its rotors or thrusters, such as 'quad_plus'; '' where the plant has none
    duration_s   simulated time of the run, s; None: it has no end of its own
    """

    robot: str
    dt: float
    mode: str
    period_s: float | None
    deadline_s: float | None
    actuators: tuple[Channel, ...]
    outputs: tuple[Channel, ...]
    granted: tuple[str, ...] = ()
    selected: tuple[str, ...] = ()
    parameters: Mapping[str, Any] = field(default_factory=dict)
    session: str = ""
    seed: int = 0
    ticks: bool = False
    telemetry_hz: float = 100.0
    request_bytes: int = 0
    every: int = 1
    delay: int = 0
    shape: Mapping[str, Any] = field(default_factory=dict)
    telemetry_endpoint: str = ""
    surroundings: Mapping[str, Any] = field(default_factory=dict)
    robots: Mapping[str, PlantInfo] = field(default_factory=dict)
    member: str = ""
    topic: str = ""
    airframe: str = ""
    duration_s: float | None = None

    @property
    def gravity(self) -> tuple[float, float, float]:
        """m/s2, world; where it is not sent, the parameter gravity_m_s2, else the standard one, downwards."""
        gravity = self.surroundings.get("gravity_m_s2")
        if gravity is not None:
            return gravity[0], gravity[1], gravity[2]
        pull = self.parameters.get("gravity_m_s2")
        if isinstance(pull, int | float) and not isinstance(pull, bool):
            return 0.0, 0.0, -float(pull)
        return 0.0, 0.0, -STANDARD_GRAVITY

    @property
    def budget_s(self) -> float | None:
        """The same as deadline_s: each state carries what is left of it."""
        return self.deadline_s

    def actuator(self, name: str) -> Channel:
        return _channel("actuator", name, self.actuators)

    def output(self, name: str) -> Channel:
        return _channel("output", name, self.outputs)


def _channel(kind: str, name: str, channels: tuple[Channel, ...]) -> Channel:
    for channel in channels:
        if channel.name == name:
            return channel
    raise UnknownNameError(kind, name, [channel.name for channel in channels])


class State:
    """The plant at the beginning of a step.

    step, time         k, t_k in simulated s
    budget_s           time to answer from the moment it was sent; 0 where nobody waits on a clock
    deadline_ns        the same as an instant of CLOCK_MONOTONIC, for peers on the plant's machine; 0 for none
    applied            what was used for the step before
    outputs            the values as they came: a number, or a list in row-major order
    state["velocity"]  a float for a scalar, else a numpy array of the channel's shape (numpy loads at the first)
    """

    __slots__ = ("_info", "_message", "outputs", "step", "time")

    def __init__(self, message: Mapping[str, Any], info: PlantInfo) -> None:
        self._message, self._info = message, info
        self.step: int = message["step"]
        self.time: float = float(message["timestamp"])
        self.outputs: dict[str, Any] = message["outputs"]

    @property
    def plant(self) -> PlantInfo:
        """Whose state this is."""
        return self._info

    @property
    def budget_s(self) -> float:
        return float(self._message.get("budget_ns", 0)) * 1e-9

    @property
    def deadline_ns(self) -> int:
        return int(self._message.get("deadline_ns", 0))

    @property
    def applied(self) -> Applied:
        given = self._message.get("applied") or {}
        return Applied(**{name: given[name] for name in Applied.__slots__ if name in given})

    def with_outputs(self, outputs: dict[str, Any]) -> State:
        """The same state with other outputs."""
        return State({**self._message, "outputs": outputs}, self._info)

    def __getitem__(self, name: str) -> float | npt.NDArray[np.float64]:
        try:
            value = self.outputs[name]
        except KeyError:
            raise UnknownNameError("output", name, self.outputs) from None
        try:
            if not isinstance(value, list):
                return float(value)
            return self.shaped(name, value)
        except (TypeError, ValueError) as fault:
            if isinstance(fault, ModelError):
                raise
            raise ModelError(f"output '{name}': not the numbers that the plant's welcome promised: {fault}") from None

    def shaped(self, name: str, value: Sequence[float]) -> npt.NDArray[np.float64]:
        """Numbers as an array of the output's shape; ModelError, TypeError, ValueError where they are not."""
        import numpy

        array = numpy.array(value, dtype=numpy.float64)
        shape = self._info.output(name).shape
        return array if len(shape) < 2 else array.reshape(shape)

    def __contains__(self, name: object) -> bool:
        return name in self.outputs

    def __iter__(self) -> Iterator[str]:
        return iter(self.outputs)

    def __repr__(self) -> str:
        return f"State(step={self.step}, time={self.time:.6g}, outputs={sorted(self.outputs)})"
