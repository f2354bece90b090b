"""What a controller is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from rtmms.wire.protocol.state import PlantInfo, State


class Controller:
    """Drives a plant over the wire: derive, and write `update`.

    Its parameters are the keywords of its constructor, with types and defaults; `@dataclass` on the class is the short
    way to write them.

    claim    actuators it drives, as names or patterns
    outputs  outputs it reads, likewise; none: all but fields such as the joints of every chain
    every    of one that is slower than a step: it gets each every-th state, and owes the command for it `delay` steps
             later, by that step's deadline; delay None: `every` steps where that is more than one, else 0
    between  what stands between two commands: 'hold', the last one's values, or 'linear', a straight line to the new
             ones, reached after `every` steps
    """

    claim: ClassVar[Sequence[str]] = ("*",)
    outputs: ClassVar[Sequence[str]] = ()
    every: ClassVar[int] = 1
    delay: ClassVar[int | None] = None
    between: ClassVar[str] = "hold"

    def start(self, plant: PlantInfo) -> None:
        """Once, before the first state: the plant's channels, dt, mode and budget."""

    def update(self, state: State) -> Mapping[str, float] | None:
        """Values for state.step, by actuator; those not named hold, None holds them all."""
        raise NotImplementedError(f"{type(self).__name__}.update(state) is to be written: it returns a dict")

    def stop(self, reason: str) -> None:
        """Once, when the plant said bye or is gone."""
