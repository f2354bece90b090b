"""What a controller is, and running one."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from rtmms.wire.protocol.state import PlantInfo, State


class Controller:
    """Drives a plant over the wire: derive, and write `update`.

    Its parameters are the keywords of its constructor, with types and defaults; `@dataclass` on the class is the short
    way to write them.

    claim    actuators it drives, as names or patterns
    outputs  outputs it reads, likewise; none: all but fields such as the joints of every chain
    """

    claim: ClassVar[Sequence[str]] = ("*",)
    outputs: ClassVar[Sequence[str]] = ()

    def start(self, plant: PlantInfo) -> None:
        """Once, before the first state: the plant's channels, dt, mode and budget."""

    def update(self, state: State) -> Mapping[str, float] | None:
        """Values for state.step, by actuator; those not named hold, None holds them all."""
        raise NotImplementedError(f"{type(self).__name__}.update(state) is to be written: it returns a dict")

    def stop(self, reason: str) -> None:
        """Once, when the plant said bye or is gone."""


def run_controller(
    controller: Controller,
    exchange: str | None = None,
    *,
    name: str = "",
    timeout_s: float = 5.0,
    token: str | None = None,
    keys: str | os.PathLike[str] | None = None,
    tell: Callable[[str], Any] | None = None,
    reconnect: bool = False,
) -> str:
    """Connect, and answer every state until the plant ends; returns the reason for the end.

    keys, reconnect   as connect's; `start` is called again with each new plant
    tell   gets what the plant refused, as text for a person
    NotConnectedError if no plant takes it; whatever the controller itself raises passes through.
    """
    from rtmms.wire.peer.client import connect
    from rtmms.wire.places.endpoints import EXCHANGE

    with connect(
        exchange or EXCHANGE,
        name=name or type(controller).__name__.lower(),
        claim=controller.claim,
        outputs=controller.outputs,
        timeout_s=timeout_s,
        token=token,
        keys=keys,
        reconnect=reconnect,
    ) as link:
        plant = link.plant
        controller.start(plant)
        drives = bool(plant.granted)
        update, command, errors = controller.update, link.command, link.errors
        for state in link:
            if link.plant is not plant:
                plant = link.plant
                controller.start(plant)
            values = update(state)
            if drives:
                command(values if values is not None else {})
            if errors and tell is not None:
                tell(errors.popleft()[1])
        controller.stop(link.ended)
        return link.ended
