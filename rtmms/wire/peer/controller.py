"""What a controller is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import is_dataclass, replace
from typing import Any, ClassVar, cast

from rtmms.wire.protocol.state import PlantInfo, State


class Controller:
    """Drives a plant over the wire: derive, and write `update`.

    Its parameters are the keywords of its constructor, with types and defaults; `@dataclass` on the class is the short
    way to write them.

    claim    actuators it drives, as names or patterns
    outputs  outputs it reads, likewise; without any: all but fields such as the joints of every
             chain; ("none",): none
    every    of one that is slower than a step: it gets each every-th state, and owes the command for it `delay` steps
             later, by that step's deadline; delay None: `every` steps where that is more than one, else 0
    between  what stands between two commands: 'hold', the last one's values, or 'linear', a straight line to the new
             ones, reached after `every` steps
    tracks   names of its set-points, attributes of its own that are called as what they are of (depth_m, heading_deg,
             speed_m_s, ..., see docs/scenarios.md): the plant's report tells how far the truth was off them
    robots   names of the robots that it is written for, for `rtmms list` and for a word in time where it is run on
             another one; none: any
    settable names of its parameters that may be changed while it runs (`rtmms set NAME.PARAMETER=VALUE`), see `change`
    """

    claim: ClassVar[Sequence[str]] = ("*",)
    outputs: ClassVar[Sequence[str]] = ()
    every: ClassVar[int] = 1
    delay: ClassVar[int | None] = None
    between: ClassVar[str] = "hold"
    settable: ClassVar[Sequence[str]] = ()
    robots: ClassVar[Sequence[str]] = ()
    tracks: ClassVar[Sequence[str]] = ()

    def prepare(self) -> None:
        """Once, before it connects: what takes seconds, such as compiling. Once it is connected the plant waits for
        it, and in lockstep takes one that is silent for 5 s for dead."""

    def start(self, plant: PlantInfo) -> None:
        """Once, before the first state: the plant's channels, dt, mode and budget."""

    def update(self, state: State) -> Mapping[str, float] | None:
        """Values for state.step, by actuator; those not named hold, None holds them all."""
        raise NotImplementedError(f"{type(self).__name__}.update(state) is to be written: it returns a dict")

    def change(self, values: Mapping[str, Any]) -> None:
        """New values of parameters in `settable`, each of the kind that the present one is; between two updates.

        Raise rtmms.ModelError to refuse them: nothing may be changed then. This one asks a dataclass of one's own for
        another instance with them, so that whatever its constructor refuses is refused here, and sets the attributes;
        extend it where something else follows from them.
        """
        if is_dataclass(type(self)):
            replace(cast("Any", self), **values)
        for name, value in values.items():
            setattr(self, name, value)

    def stop(self, reason: str) -> None:
        """Once, when the plant said bye or is gone."""
