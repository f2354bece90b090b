"""Robots as simulators of mosaik: plants in mosaik's process or in one that mosaik starts, or a running plant.

    SIMULATORS = {"Robots": {"python": "rtmms_bridges.federation.simulator:Robots"}}
    SIMULATORS = {"Robots": {"cmd": "%(python)s -m rtmms_bridges.federation.simulator %(addr)s"}}

It needs mosaik-api-v3. docs/bridges/mosaik.md explains the arguments of `world.start`.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Generator, Iterable, Mapping
from pathlib import Path
from typing import Any, Literal

import mosaik_api_v3
import numpy as np

import rtmms
from rtmms.plant.protocol import Channel

Kind = Literal["time-based", "hybrid"]
KINDS = ("time-based", "hybrid")
MODEL = "Robot"
MAX_STEP_S = 3600.0
"""Step of a running plant, s; longer requests are refused."""
TOLERANCE = 1e-6
"""Share of a step by which a time may differ from whole steps of the plant."""


def meta(outputs: Iterable[str], actuators: Iterable[str], parameters: Iterable[str], kind: Kind) -> Any:
    """Return mosaik's description: outputs and actuators are attributes.

    In a hybrid simulator an actuator's new value causes a step at its own time; all attributes persist.

    Parameters
    ----------
    outputs, actuators, parameters : Iterable[str]
        Their names.
    kind : Kind
        Kind of the simulator.

    Returns
    -------
    Any
        The description.
    """
    driven = list(actuators)
    model: dict[str, Any] = {"public": True, "params": list(parameters), "attrs": [*outputs, *driven]}
    if kind == "hybrid":
        model |= {"trigger": driven, "non-persistent": []}
    return {"api_version": "3.0", "type": kind, "models": {MODEL: model}}


def values_of(eid: str, attributes: Mapping[str, Mapping[str, Any]], actuators: Iterable[str]) -> dict[str, float]:
    """Return the actuators' values among an entity's inputs.

    Parameters
    ----------
    eid : str
        Id of the entity.
    attributes : Mapping[str, Mapping[str, Any]]
        Values by source, by attribute.
    actuators : Iterable[str]
        Names of the actuators.

    Returns
    -------
    dict[str, float]
        Values by name.

    Raises
    ------
    ModelError
        If two sources drive one actuator, or if a value is no finite number.
    """
    known, result = set(actuators), {}
    for name, sources in attributes.items():
        if name not in known:
            raise rtmms.UnknownNameError(f"actuator of {eid}", name, known)
        if len(sources) > 1:
            raise rtmms.ModelError(f"{eid}: {name}: expected one source, got {', '.join(sorted(sources))}")
        for source, value in sources.items():
            if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
                raise rtmms.ModelError(f"{eid}: {name}: expected a finite number, got {value!r:.40} from {source}")
            result[name] = float(value)
    return result


def whole_steps(time_s: float, dt: float, what: str) -> int:
    """Return the plant's steps in a time.

    Parameters
    ----------
    time_s : float
        The time, s.
    dt : float
        Simulated time of a step, s.
    what : str
        Source of the time, for the error.

    Returns
    -------
    int
        Number of steps.

    Raises
    ------
    ModelError
        If it is no whole number.
    """
    steps = round(time_s / dt)
    if steps < 0 or abs(time_s - steps * dt) > TOLERANCE * dt:
        raise rtmms.ModelError(f"{what}: expected a multiple of the plant's step of {dt:g} s, got {time_s:.9g} s")
    return steps


def to_json_number(value: Any) -> Any:
    """Return a number or a list of them for mosaik's messages; NaN is None.

    Parameters
    ----------
    value : Any
        A number or an array.

    Returns
    -------
    Any
        The number or the list.
    """
    flat = np.asarray(value, dtype=np.float64)
    values = [None if math.isnan(item) else item for item in flat.ravel().tolist()]
    return values if flat.shape else values[0]


def kind_of(word: str) -> Kind:
    """Return a kind of simulator after a check.

    Parameters
    ----------
    word : str
        Its name.

    Returns
    -------
    Kind
        The kind.

    Raises
    ------
    UnknownNameError
        If there is no such kind.
    """
    if word not in KINDS:
        raise rtmms.UnknownNameError("kind of a simulator", word, KINDS)
    return word  # type: ignore[return-value]


class Robots(mosaik_api_v3.Simulator):
    """Plants in the process: one or several of a kind.

    At mosaik's time t the outputs are the plants' state at t, and the inputs of that step hold from t on. The steps
    from one of mosaik's times to the next are taken when the next has come.
    """

    def __init__(self) -> None:
        super().__init__({"models": {}})  # type: ignore[no-untyped-call]
        self._plants: dict[str, Any] = {}
        self._commands: dict[str, np.ndarray] = {}
        self._traces: dict[str, Any] = {}
        self._at = self._now = 0

    def init(
        self, sid: str, time_resolution: float = 1.0, *, robot: str = "manta", step_s: float = 0.01,
        kind: str = "time-based", dt: float | None = None, preset: str | None = None, seed: int = 0,
        trace: str = "", duration_s: float = 0.0, **parameters: Any,
    ) -> Any:  # fmt: skip
        """Prepare the simulator.

        Parameters
        ----------
        sid : str
            Id of the simulator.
        time_resolution : float, default 1.0
            Unit of mosaik's time, s.
        robot, dt, preset, **parameters : str, default 'manta'
            As in rtmms.load.
        step_s : float, default 0.01
            Time from step to step, s.
        kind : str, default 'time-based'
            time-based or hybrid.
        seed : int, default 0
            Seed of the first robot; each further one has the next.
        trace : str, default ''
            Folder for each robot's commands, for `rtmms replay`; empty for none.
        duration_s : float, default 0.0
            Simulated time of the traces, s.

        Returns
        -------
        Any
            mosaik's description.

        Raises
        ------
        ModelError
            If an argument is invalid.
        """
        self._preset, self._parameters = preset, parameters
        self._robot, self._seed, self._trace, self._duration_s = robot, seed, trace, duration_s
        self._load_options: dict[str, Any] = {"dt": dt} | ({"preset": preset} if preset else {})
        item: Any = rtmms.load(robot, **self._load_options, **parameters)
        self._dt, self._resolution, self._sid = item.dt, time_resolution, sid
        whole_steps(step_s, item.dt, f"{sid}: step_s")
        self._stride = round(step_s / time_resolution)
        if self._stride < 1 or abs(step_s - self._stride * time_resolution) > TOLERANCE * time_resolution:
            unit = f"mosaik's time resolution of {time_resolution:g} s"
            raise rtmms.ModelError(f"{sid}: step_s: expected a multiple of {unit}, got {step_s:g} s")
        if trace and not duration_s > 0:
            raise rtmms.ModelError(
                f"{sid}: trace: expected duration_s with it, the simulated time of the trace, got none"
            )
        self._actuators = [channel.name for channel in item.actuators]
        self._outputs = [channel.name for channel in item.outputs]
        self.meta.update(meta(self._outputs, self._actuators, ["parameters"], kind_of(kind)))
        return self.meta

    def create(  # type: ignore[override]
        self, num: int, model: str, parameters: Mapping[str, Any] | None = None
    ) -> Any:
        """Create robots.

        Parameters
        ----------
        num : int
            Number of robots.
        model : str
            Name of the model.
        parameters : Mapping[str, Any] | None, optional
            Parameters of these robots, in place of those of the simulator.

        Returns
        -------
        Any
            Id and type of each.

        Raises
        ------
        ModelError
            If their outputs differ from those of the others.
        """
        built: list[Any] = []
        for _ in range(num):
            eid = f"{self._robot}_{len(self._plants)}"
            plant: Any = rtmms.load(self._robot, **self._load_options, **self._parameters | dict(parameters or {}))
            plant.reset(self._seed + len(self._plants))
            if [output.name for output in plant.outputs] != self._outputs:
                different = ", ".join(sorted({output.name for output in plant.outputs} ^ set(self._outputs)))
                raise rtmms.ModelError(
                    f"{self._sid}: parameters: expected the same outputs for all robots of one simulator, got a "
                    f"difference in {different or 'their order'}; use another simulator for this robot"
                )
            if self._trace:
                self._traces[eid] = _Trace(plant, self._settings_of(plant, parameters or {}), self._duration_s)
            self._commands[eid] = np.array([channel.neutral for channel in plant.actuators], dtype=np.float64)
            self._plants[eid] = plant
            built.append({"eid": eid, "type": model})
        return built

    def step(self, time: int, inputs: Mapping[str, Any], max_advance: int) -> int:
        """Take the steps to a time, and store the inputs.

        Parameters
        ----------
        time : int
            mosaik's time.
        inputs : Mapping[str, Any]
            Inputs of each entity.
        max_advance : int
            Unused.

        Returns
        -------
        int
            Time of the next step.
        """
        target = whole_steps(time * self._resolution, self._dt, f"{self._sid}: time")
        wanted = {
            eid: values_of(f"{self._sid}.{eid}", values, self._actuators) for eid, values in inputs.items()
        }  # fmt: skip
        for eid, plant in self._plants.items():
            command, trace = self._commands[eid], self._traces.get(eid)
            for _ in range(target - self._at):
                plant.step(command)
                if trace is not None:
                    trace.add(command)
        self._at, self._now = target, time
        for eid, values in wanted.items():
            for name, value in values.items():
                k = self._actuators.index(name)
                self._commands[eid][k] = _limited(self._plants[eid].actuators[k], value)
        return (time // self._stride + 1) * self._stride

    def get_data(self, outputs: Mapping[str, list[str]]) -> Any:
        """Return outputs and commands.

        Parameters
        ----------
        outputs : Mapping[str, list[str]]
            Names of attributes by entity.

        Returns
        -------
        Any
            Values by entity and attribute.
        """
        values: dict[str, Any] = {}
        for eid, names in outputs.items():
            observed = self._plants[eid].observe()
            command = dict(zip(self._actuators, self._commands[eid].tolist(), strict=True))
            values[eid] = {name: command[name] if name in command else to_json_number(observed[name]) for name in names}
        return values

    def finalize(self) -> None:
        """Write the traces."""
        for eid, trace in self._traces.items():
            trace.save(Path(self._trace) / f"{eid}.npz")

    def _settings_of(self, plant: Any, more: Mapping[str, Any]) -> dict[str, Any]:
        parameters = {**self._parameters, **more}
        return {
            "robot": self._robot, "dt": plant.dt, "preset": self._preset, "parameters": parameters,
            "seed": self._seed + len(self._plants), "mode": "mosaik", "ended": "duration",
        }  # fmt: skip


def _limited(channel: Channel, value: float) -> float:
    """Return a value clamped to the actuator's limits, as on the wire."""
    low = -math.inf if channel.lower is None else channel.lower
    high = math.inf if channel.upper is None else channel.upper
    return min(high, max(low, value))


class _Trace:
    """Commands of one robot, for `rtmms replay`."""

    def __init__(self, plant: Any, origin: Mapping[str, Any], duration_s: float) -> None:
        from rtmms.loop.ports import Applied
        from rtmms.loop.trace import CommandTrace

        self._plant, self._origin, self._applied = plant, origin, Applied()
        self._command_trace = CommandTrace(plant.actuators, plant.outputs, round(duration_s / plant.dt))
        self._step = 0

    def add(self, command: np.ndarray) -> None:
        self._command_trace.record(self._step, command, 1, self._applied, self._plant.observe())
        self._step += 1

    def save(self, path: Path) -> None:
        from rtmms.record.commands import save

        if self._step <= len(self._command_trace.outcome):
            path.parent.mkdir(parents=True, exist_ok=True)
            save(path, self._command_trace, self._plant, self._origin)


class Running(mosaik_api_v3.Simulator):
    """Running plant, by a bridge: one entity.

    Parameters
    ----------
    plant : rtmms.PlantInfo
        The plant.
    step_s : float
        Time from step to step, s.
    kind : Kind
        Kind of the simulator.
    ask : Callable[[float, dict[str, float]], asyncio.Future[Mapping[str, Any]]]
        Function of a time in s and actuator values, which returns a future of the outputs at that time.
    begun : Callable[[], None]
        Called when mosaik begins.
    ended : Callable[[], None]
        Called when mosaik has ended, or is gone.

    Attributes
    ----------
    begun : bool
        Whether mosaik has begun.
    """

    def __init__(
        self, plant: rtmms.PlantInfo, step_s: float, kind: Kind,
        ask: Callable[[float, dict[str, float]], asyncio.Future[Mapping[str, Any]]], begun: Callable[[], None],
        ended: Callable[[], None],
    ) -> None:  # fmt: skip
        super().__init__(meta(plant.selected, plant.granted, [], kind))  # type: ignore[no-untyped-call]
        self._plant, self._step_s, self._ask, self._begun, self._ended = plant, step_s, ask, begun, ended
        self._outputs: Mapping[str, Any] = {}
        self._resolution, self._stride, self._is_created, self._here = 1.0, 1, False, False
        self._asked: asyncio.Future[Mapping[str, Any]] | None = None
        self._time_s, self._gone = 0.0, False
        self.begun = False

    def init(self, sid: str, time_resolution: float = 1.0) -> Any:  # type: ignore[override]
        """Prepare the simulator.

        Parameters
        ----------
        sid : str
            Id of the simulator.
        time_resolution : float, default 1.0
            Unit of mosaik's time, s.

        Returns
        -------
        Any
            mosaik's description.

        Raises
        ------
        ModelError
            If the step is no multiple of the unit.
        """
        self._resolution, self._stride = time_resolution, round(self._step_s / time_resolution)
        if self._stride < 1 or abs(self._step_s - self._stride * time_resolution) > TOLERANCE * time_resolution:
            unit = f"mosaik's time resolution of {time_resolution:g} s"
            raise rtmms.ModelError(
                f"{sid}: step_s of the bridge: expected a multiple of {unit}, got {self._step_s:g} s"
            )
        self._begun()
        self._here = self.begun = True
        return self.meta

    def create(self, num: int, model: str) -> Any:  # type: ignore[override]
        """Create the one robot.

        Parameters
        ----------
        num : int
            1.
        model : str
            Name of the model.

        Returns
        -------
        Any
            Its id and type.

        Raises
        ------
        ModelError
            If another number is requested, or a second robot.
        """
        if num != 1 or self._is_created:
            raise rtmms.ModelError(
                f"num: expected 1, as this simulator has one robot, '{self._plant.robot}', got {num}"
            )
        self._is_created = True
        return [{"eid": self._plant.robot, "type": model}]

    def step(  # type: ignore[override]
        self, time: int, inputs: Mapping[str, Any], max_advance: int
    ) -> Generator[asyncio.Future[Mapping[str, Any]], Mapping[str, Any], int]:
        """Step to mosaik's time.

        The library awaits the future that this generator yields, so that its connection is served meanwhile.

        Parameters
        ----------
        time : int
            mosaik's time.
        inputs : Mapping[str, Any]
            Inputs of each entity.
        max_advance : int
            Unused.

        Returns
        -------
        int
            Time of the next step.

        Yields
        ------
        asyncio.Future
            Future of the outputs.

        Raises
        ------
        ModelError
            If the step is too long or an input is invalid.
        RtmmsError
            If the connection is gone.
        """
        values: dict[str, float] = {}
        for eid, provided in inputs.items():
            values |= values_of(eid, provided, self._plant.granted)
        time_s = time * self._resolution
        if not time_s - self._time_s <= MAX_STEP_S:
            raise rtmms.ModelError(
                f"time: expected at most {MAX_STEP_S:g} s after the last step, at {self._time_s:.6g} s, "
                f"got {time_s:.6g} s"
            )
        whole_steps(time_s, self._plant.dt, "time")
        if self._gone:
            raise rtmms.RtmmsError("the connection to the plant is closed")
        self._asked = asked = self._ask(time_s, values)
        self._outputs = yield asked
        self._asked, self._time_s = None, time_s
        return (time // self._stride + 1) * self._stride

    def leave(self) -> None:
        """End the step that is under way, and begin none, because nobody waits for its outputs."""
        self._gone = True
        if self._asked is not None and not self._asked.done():
            self._asked.set_exception(rtmms.RtmmsError("the connection to the plant is closed"))

    def get_data(self, outputs: Mapping[str, list[str]]) -> Any:
        """Return outputs.

        Parameters
        ----------
        outputs : Mapping[str, list[str]]
            Names of attributes by entity.

        Returns
        -------
        Any
            Values by entity and attribute.
        """
        return {eid: {name: to_json_number(self._outputs[name]) for name in names if name in self._outputs}
                for eid, names in outputs.items()}  # fmt: skip

    def finalize(self) -> None:
        """Report the end of mosaik."""
        if self._here:
            self._here = False
            self._ended()


if __name__ == "__main__":
    raise SystemExit(mosaik_api_v3.start_simulation(Robots(), "Robots of rtmms as a simulator of mosaik."))
