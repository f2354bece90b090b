"""Controllers in the plant's own process: each answers a state at once, as in lockstep, without a wire."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from rtmms.base.contract import Applied
from rtmms.base.errors import ModelError, UnknownNameError
from rtmms.base.override import override
from rtmms.base.trust import owner_of
from rtmms.loop.impairment import ImpairedLink
from rtmms.loop.miss_policies import clamp_to_limits
from rtmms.loop.modes import Lockstep
from rtmms.loop.ports import Exchange
from rtmms.plant.protocol import Channel, Plant
from rtmms.wire.peer.attachment import TunableParameters
from rtmms.wire.peer.controller import Controller, declaration_of
from rtmms.wire.peer.decode import read_welcome
from rtmms.wire.plant.handshake import Scopes
from rtmms.wire.plant.multirate import Multirate
from rtmms.wire.plant.state_message import PatternMatcher, select
from rtmms.wire.protocol.messages import Refusal
from rtmms.wire.protocol.received_state import PlantInfo, State

if TYPE_CHECKING:
    import numpy.typing as npt

    Array = npt.NDArray[np.float64]


@dataclass
class _Peer:
    """A controller in the plant's process.

    It has the `index` of each of its actuators, `waiting` commands for later steps, and the `prefix` of its robot's
    names.
    """

    name: str
    controller: Controller
    info: PlantInfo
    index: Mapping[str, int]
    reads: tuple[Channel, ...]
    multirate: Multirate
    settable: TunableParameters
    waiting: dict[int, Mapping[str, float]] = field(default_factory=dict)
    seq: int = -1
    link: ImpairedLink | None = None
    prefix: str = ""


class InProcessExchange(Exchange):
    """Exchange (rtmms.loop.ports) of controllers by name.

    Parameters
    ----------
    plant : Plant
        The plant.
    robot : str
        Name of the robot.
    seed : int
        Seed of the run.
    controllers : Mapping[str, Controller]
        Controllers by name.
    links : Mapping[str, ImpairedLink] | None, optional
        Impaired links, by controller.

    Raises
    ------
    ModelError
        A controller claims an actuator that does not exist or has another claimant, or its answer is no command.
    """

    def __init__(
        self, plant: Plant, robot: str, seed: int, controllers: Mapping[str, Controller],
        links: Mapping[str, ImpairedLink] | None = None,
    ) -> None:  # fmt: skip
        self._links = dict(links or {})
        self._plant, self.applied = plant, Applied()
        n = len(plant.actuators)
        self.claimed, self.fresh, self.renewed = (np.zeros(n, dtype=bool) for _ in range(3))
        self._limits = [
            (
                -math.inf if actuator.lower is None else actuator.lower,
                math.inf if actuator.upper is None else actuator.upper,
            )
            for actuator in plant.actuators
        ]
        self._scopes = Scopes(robot, plant)
        self._peers = [self._peer(name, controller, robot, seed) for name, controller in controllers.items()]
        self._state: tuple[int, float, Mapping[str, Array]] = (-1, 0.0, {})
        self._failures: list[str] = []
        for peer in self._peers:
            peer.controller.prepare()
            peer.controller.start(peer.info)

    def _peer(self, name: str, controller: Controller, robot: str, seed: int) -> _Peer:
        plant = self._plant
        try:
            scope = self._scopes.of(controller.robot)
        except Refusal as fault:
            raise ModelError(f"controller '{name}': {fault.text.removeprefix('hello: ')}") from None
        names = {
            channel.name.removeprefix(scope.prefix): i
            for i, channel in enumerate(plant.actuators) if channel.name.startswith(scope.prefix)
        }  # fmt: skip
        wanted: set[str] = set()
        for pattern in controller.claim:
            result = PatternMatcher().matched(pattern, names)
            if not result:
                raise ModelError(f"controller '{name}': claim: {UnknownNameError('actuator', pattern, names)}")
            wanted.update(result)
        index = {name: i for name, i in names.items() if name in wanted}
        for item, i in index.items():
            if self.claimed[i]:
                raise ModelError(f"controller '{name}': actuator '{item}' is claimed by another controller")
            self.claimed[i] = True
        try:
            reads = select(scope.outputs, tuple(controller.outputs))
        except Refusal as fault:
            raise ModelError(f"controller '{name}': {fault.text.removeprefix('hello: ')}") from None
        every = controller.every
        delay = controller.delay if controller.delay is not None else (every if every > 1 else 0)
        info = read_welcome({
            **scope.as_fields(), "dt": plant.dt, "mode": "lockstep", "granted": list(index),
            "selected": [channel.name for channel in reads], "seed": seed, "every": every, "delay": delay,
            "topic": robot, "robot_name": controller.robot, "robots": {} if controller.robot else self._scopes.robots(),
        })  # fmt: skip
        tunable = {key: getattr(controller, key) for key in declaration_of(controller, "tunable_parameters")}
        settable = TunableParameters(tunable, declaration_of(controller, "on_parameters_changed", None))
        multirate = Multirate(every, delay, controller.interpolation)
        return _Peer(
            name, controller, info, index, reads, multirate, settable, link=self._links.get(name),
            prefix=scope.prefix,
        )  # fmt: skip

    def set_points(self) -> dict[str, Any]:
        """Return the present set-points of the controllers, by name.

        Returns
        -------
        dict[str, Any]
            Values by name.
        """
        return {
            peer.prefix + name: peer.settable.values.get(name, getattr(peer.controller, name))
            for peer in self._peers for name in declaration_of(peer.controller, "setpoints")
        }  # fmt: skip

    def reads(self, step: int) -> bool:
        """Return whether a controller reads the plant at a step.

        Parameters
        ----------
        step : int
            Index of the step.

        Returns
        -------
        bool
            True where one does.
        """
        return any(peer.reads and peer.multirate.asks(step) for peer in self._peers)

    # -- as an Exchange ----------------------------------------------------------------------------------------------

    @override
    def publish(
        self, step: int, time: float, deadline_ns: int, budget_ns: int, outputs: Mapping[str, Array], applied: Applied
    ) -> None:
        """Store the state of a step for the controllers."""
        self._state = (step, time, outputs)

    def pass_by(self, step: int) -> None:
        """Store a step whose state no controller reads.

        Parameters
        ----------
        step : int
            Index of the step.
        """
        self._state = (step, step * self._plant.dt, {})

    @override
    def collect(self, step: int, command: Array, until_ns: int) -> bool:
        for peer in self._peers:
            turns = peer.multirate
            if turns.asks(step):
                turns.asked(step)
                if peer.link is None:
                    number = step + turns.delay
                    peer.waiting[number] = self._answer(peer, self._message(peer, step))
                    self._note(peer.seq, number)
                elif peer.link.sends(step, turns.every):
                    peer.link.states.put(step, step, self._message(peer, step), step)
            values = peer.waiting.pop(step, None) if peer.link is None else self._carried(peer, peer.link, step)
            if values:
                for name, value in values.items():
                    if turns.linear:
                        turns.aim(peer.index[name], step, value)
                    else:
                        command[peer.index[name]] = value
            if turns.linear:
                turns.move(step, command)
        self.fresh[:] = self.claimed
        return True

    def _carried(self, peer: _Peer, link: ImpairedLink, step: int) -> Mapping[str, float] | None:
        """Return the newest command that arrives over an impaired link at this step.

        A state that arrives is answered first.
        """
        delay, state = peer.multirate.delay, link.states.take(step)
        if state is not None:
            number, message = state
            values = self._answer(peer, message)
            link.commands.put(peer.seq, step + delay, (number + delay, values), number)
        result = link.commands.take(step)
        if result is None:
            return None
        self._note(result[0], result[1][0])
        carried: Mapping[str, float] = result[1][1]
        return carried

    def _note(self, seq: int, step: int) -> None:
        self.applied.seq, self.applied.step = seq, step

    def _message(self, peer: _Peer, step: int) -> dict[str, Any]:
        """Return the present state as a message."""
        at, time, outputs = self._state
        values = {read.name: _plain(outputs[peer.prefix + read.name]) for read in peer.reads} if at == step else {}
        return {"step": step, "timestamp": time, "outputs": values, "applied": _applied(self.applied)}

    def _answer(self, peer: _Peer, message: dict[str, Any]) -> dict[str, float]:
        """Return the controller's command in answer to a state."""
        step = message["step"]
        values = peer.controller.update(State(message, peer.info))
        checked: dict[str, float] = {}
        for name, value in (values or {}).items():
            i = peer.index.get(name)
            if i is None:
                raise ModelError(f"controller '{peer.name}': {UnknownNameError('actuator', str(name), peer.index)}")
            number = float(value)
            if not math.isfinite(number):
                raise ModelError(
                    f"controller '{peer.name}': step {step}: {name}: expected a finite number, got {value}"
                )
            checked[name] = clamp_to_limits(number, *self._limits[i])
            self.applied.clamped = checked[name] != number
        peer.seq += 1
        return checked

    @override
    def serve(self, until_ns: int) -> None:
        """Do nothing, as no peer connects."""

    @override
    def waiting_for(self) -> tuple[str, ...]:
        """Return no names, as nothing is awaited."""
        return ()

    @override
    def report(self) -> dict[str, Any]:
        links = {name: link.report() for name, link in self._links.items()}
        return {"late": 0, "rejected": {}, "peers": [], "links": links}

    # -- what events set -----------------------------------------------------------------------------------------------

    @override
    def pass_on(self, values: Mapping[str, Any]) -> None:
        for key, value in values.items():
            names = [peer.name for peer in self._peers]
            owner = owner_of(key, names)
            peer, name = next((peer for peer in self._peers if peer.name == owner), None), key.removeprefix(owner + ".")
            if peer is None:
                raise ModelError(f"set: {UnknownNameError('controller', key.partition('.')[0], names)}")
            answer = peer.settable.take({"values": {name: value}})
            if not answer["ok"]:
                raise ModelError(f"{owner}: {answer['error']}")


class UnobservedLockstep(Lockstep):
    """Lockstep with controllers in this process: a state is observed only if one of them reads it.

    Parameters
    ----------
    exchange : InProcessExchange
        The controllers.
    """

    def __init__(self, exchange: InProcessExchange) -> None:
        self._exchange = exchange

    @override
    def gather(self, step: int) -> bool:
        """Collect the commands of a step, and return True."""
        if self._exchange.reads(step):
            self.run.publish(step, 0, 0)
        else:
            self._exchange.pass_by(step)
        return self.run.collect(step, 0)

    @override
    def finish(self, step: int, now_ns: int) -> int:
        """Return 0, as there is no schedule."""
        return 0


def _plain(value: Any) -> Any:
    """Return a value as in a state's message: a number, or a list in row-major order."""
    return value.ravel().tolist() if value.ndim else float(value)


def _applied(applied: Applied) -> dict[str, Any]:
    return {name: getattr(applied, name) for name in Applied.__slots__}
