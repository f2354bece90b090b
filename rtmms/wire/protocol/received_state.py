"""The plant and its state at each step, as a controller sees them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from rtmms.base.contract import Applied
from rtmms.base.errors import ModelError, UnknownNameError, renamed_fields
from rtmms.base.renamed_outputs import present_output
from rtmms.plant.protocol import STANDARD_GRAVITY_M_S2, Channel

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


@renamed_fields(surroundings="environment", member="robot_name")
@dataclass(frozen=True)
class PlantInfo:
    """Plant as its welcome describes it.

    Parameters
    ----------
    robot : str
        Name of the robot.
    dt : float
        Simulated time of a step, s.
    mode : str
        How steps are paced.
    period_s : float | None
        Wall time of a step, s. None if no clock paces the steps (lockstep, free).
    deadline_s : float | None
        Time for an answer, s. None if the plant does not wait on a clock.
    actuators, outputs : tuple[Channel, ...]
        All of the plant's channels.
    granted, selected : tuple[str, ...], optional
        Names of the actuators that you command, and of the outputs that your states contain.
    parameters : Mapping[str, Any], optional
        Parameters that the plant exposes, SI units; may be empty.
    session : str, default ''
        Name of the session.
    seed : int, default 0
        Seed of the run.
    ticks : bool, default False
        Whether your ticks start the steps (mode external).
    telemetry_hz : float, default 100.0
        Most states a second of wall time for observers.
    request_bytes : int, default 0
        Most bytes of a request; 0 if the plant does not state it.
    every, delay : int, default 1
        Steps from state to state, and from a state to the step for which your command counts.
    shape : Mapping[str, Any], optional
        Drawing for viewers, see rtmms.plant.PlantDescription; may be empty.
    telemetry_endpoint : str, default ''
        Bound address of all its states; empty if the plant does not state it.
    environment : Mapping[str, Any], optional
        `gravity_m_s2` (3, world), `water_kg_m3` (0: none) and `surface_m`; may be empty.
    robots : Mapping[str, PlantInfo], optional
        Each of several robots on one clock, by its name; empty for a single robot.
    robot_name : str, default ''
        Name of the one robot that you asked for; empty for all.
    topic : str, default ''
        First bytes of its telemetry messages.
    airframe : str, default ''
        Layout of its rotors or thrusters, such as 'quad_plus'; empty if the plant has none.
    duration_s : float | None, optional
        Simulated time of the run, s. None if the run has no fixed end.

    Examples
    --------
    >>> from rtmms import Channel, PlantInfo
    >>> info = PlantInfo("boat", 0.01, "free", None, None, (), (Channel("depth", "m"),))
    >>> info.output("depth").unit
    'm'
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
    environment: Mapping[str, Any] = field(default_factory=dict)
    robots: Mapping[str, PlantInfo] = field(default_factory=dict)
    robot_name: str = ""
    topic: str = ""
    airframe: str = ""
    duration_s: float | None = None

    @property
    def gravity(self) -> tuple[float, float, float]:
        """Gravity, m/s2, world frame.

        If the plant does not send it, the parameter gravity_m_s2 replaces it. Otherwise it is the standard gravity,
        downwards.
        """
        gravity = self.environment.get("gravity_m_s2")
        if gravity is not None:
            return gravity[0], gravity[1], gravity[2]
        pull = self.parameters.get("gravity_m_s2")
        if isinstance(pull, int | float) and not isinstance(pull, bool):
            return 0.0, 0.0, -float(pull)
        return 0.0, 0.0, -STANDARD_GRAVITY_M_S2

    @property
    def budget_s(self) -> float | None:
        """Time for an answer, s, which equals deadline_s; each state has its remainder."""
        return self.deadline_s

    def actuator(self, name: str) -> Channel:
        """Return an actuator of the plant.

        Parameters
        ----------
        name : str
            Name of the actuator.

        Returns
        -------
        Channel
            The channel.

        Raises
        ------
        UnknownNameError
            If the plant has no such actuator.
        """
        return _channel("actuator", name, self.actuators)

    def output(self, name: str) -> Channel:
        """Return an output of the plant.

        Parameters
        ----------
        name : str
            Name of the output.

        Returns
        -------
        Channel
            The channel.

        Raises
        ------
        UnknownNameError
            If the plant has no such output.
        """
        return _channel("output", present_output(name, [output.name for output in self.outputs]), self.outputs)


def _channel(kind: str, name: str, channels: tuple[Channel, ...]) -> Channel:
    for channel in channels:
        if channel.name == name:
            return channel
    raise UnknownNameError(kind, name, [channel.name for channel in channels])


class State:
    """State of the plant at the beginning of a step.

    `state["velocity"]` is a float for a scalar, else a numpy array of the channel's shape. The first array loads numpy.

    Parameters
    ----------
    message : Mapping[str, Any]
        The state's message.
    info : PlantInfo
        The plant.

    Attributes
    ----------
    step : int
        Index k of the step.
    time : float
        Simulated time t_k, s.
    outputs : dict of str to (float or list of float)
        The values as received; lists are in row-major order.

    Examples
    --------
    >>> from rtmms import Channel, PlantInfo
    >>> info = PlantInfo("boat", 0.01, "free", None, None, (), (Channel("depth", "m"),))
    >>> State({"step": 3, "timestamp": 0.03, "outputs": {"depth": 1.5}}, info)["depth"]
    1.5
    """

    __slots__ = ("_info", "_message", "outputs", "step", "time")

    def __init__(self, message: Mapping[str, Any], info: PlantInfo) -> None:
        self._message, self._info = message, info
        self.step: int = message["step"]
        self.time: float = float(message["timestamp"])
        self.outputs: dict[str, Any] = message["outputs"]

    @property
    def plant(self) -> PlantInfo:
        """The plant of this state."""
        return self._info

    @property
    def budget_s(self) -> float:
        """Time for an answer when the state was sent, s; 0 if the plant does not wait on a clock."""
        return float(self._message.get("budget_ns", 0)) * 1e-9

    @property
    def deadline_ns(self) -> int:
        """Deadline of CLOCK_MONOTONIC on the plant's machine, ns; 0 for none."""
        return int(self._message.get("deadline_ns", 0))

    @property
    def applied(self) -> Applied:
        """The commands that the plant applied in the step before."""
        values = self._message.get("applied") or {}
        return Applied(**{name: values[name] for name in Applied.__slots__ if name in values})

    def with_outputs(self, outputs: dict[str, Any]) -> State:
        """Return the same state with other outputs.

        Parameters
        ----------
        outputs : dict[str, Any]
            New values by name.

        Returns
        -------
        State
            A new state.
        """
        return State({**self._message, "outputs": outputs}, self._info)

    def __getitem__(self, name: str) -> float | npt.NDArray[np.float64]:
        """Return an output as a float or as an array of its shape."""
        try:
            value = self.outputs[name]
        except KeyError:
            new = present_output(name, self.outputs)
            if new == name:
                raise UnknownNameError("output", name, self.outputs) from None
            value, name = self.outputs[new], new
        try:
            if not isinstance(value, list):
                return float(value)
            return self.shaped(name, value)
        except (TypeError, ValueError) as fault:
            if isinstance(fault, ModelError):
                raise
            raise ModelError(
                f"output '{name}': expected numbers as declared in the welcome of the plant, got others: {fault}"
            ) from None

    def shaped(self, name: str, value: Sequence[float]) -> npt.NDArray[np.float64]:
        """Return numbers as an array of an output's shape.

        Parameters
        ----------
        name : str
            Name of the output.
        value : Sequence[float]
            Numbers in row-major order.

        Returns
        -------
        npt.NDArray[np.float64]
            The array.

        Raises
        ------
        ModelError
            If the output is unknown.
        TypeError, ValueError
            If the value has no numbers of that shape.
        """
        import numpy

        array = numpy.array(value, dtype=numpy.float64)
        shape = self._info.output(name).shape
        return array if len(shape) < 2 else array.reshape(shape)

    def __contains__(self, name: object) -> bool:
        """Return whether the state has an output of this name."""
        return name in self.outputs

    def __iter__(self) -> Iterator[str]:
        """Iterate over the names of the outputs."""
        return iter(self.outputs)

    def __repr__(self) -> str:
        """Return the step, the time and the names of the outputs."""
        return f"State(step={self.step}, time={self.time:.6g}, outputs={sorted(self.outputs)})"
