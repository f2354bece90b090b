"""What a controller is."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import is_dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, cast

from rtmms.base.errors import ModelError, RenamedWarning
from rtmms.base.parameters import settable
from rtmms.wire.protocol.state import PlantInfo, State

if TYPE_CHECKING:
    import numpy.typing as npt

    from rtmms.wire.protocol.state import State


Update = Callable[..., None]


class Compiled:
    """What stands in a controller's class in place of `update`.

    function   the one that was decorated;  kernel   the same, compiled, where it has been
    """

    def __init__(self, function: Update) -> None:
        if not callable(function):
            raise ModelError(f"compiled: expected a function update(time, outputs, memory, command), got {function!r}")
        self.function: Update = function
        self.kernel: Update | None = None
        self.__doc__ = function.__doc__

    def __get__(self, controller: Any, kind: Any = None) -> Any:
        return self if controller is None else Bound(self, controller)

    def __call__(self, controller: Any, state: State) -> dict[str, float]:
        """As the method of the class."""
        found: dict[str, float] = self.__get__(controller)(state)
        return found


class Bound:
    """As a method: an update(state) like any other's, where it is called from Python."""

    def __init__(self, compiled: Compiled, controller: Any) -> None:
        self.compiled, self._controller = compiled, controller
        self._command: npt.NDArray[Any] | None = None

    def __call__(self, state: State) -> dict[str, float]:
        import numpy as np

        controller = self._controller
        names = state.plant.granted or tuple(type(controller).claim)
        command = np.zeros(len(names))
        held = getattr(controller, "command", None)
        if held is not None and len(held) == len(names):
            command = held
        else:
            controller.command = command
        numbers = [
            float(n) for value in state.outputs.values() for n in (value if isinstance(value, list) else [value])
        ]
        update = self.compiled.kernel or self.compiled.function
        update(state.time, np.array(numbers), memory_of(controller), command)
        return dict(zip(names, command.tolist(), strict=True))


def memory_of(controller: Any) -> npt.NDArray[Any]:
    """The controller's own numbers; ModelError where they are not what they should be."""
    import numpy as np

    memory = getattr(controller, "memory", None)
    if memory is None:
        memory = controller.memory = np.zeros(0)
    if (
        not isinstance(memory, np.ndarray)
        or memory.dtype != np.float64
        or memory.ndim != 1
        or not memory.flags.c_contiguous
    ):
        raise ModelError(
            f"{type(controller).__name__}.memory: expected a numpy array (k,) of float64, got {memory!r}"[:200]
        )
    return memory


def compiled(function: Update) -> Any:
    """Decorator of a controller's `update(time, outputs, memory, command)`, which takes no self and gives nothing.

    time     s, of the state
    outputs  (m,) the numbers of the outputs that the controller reads, one after the other, in the plant's order
    memory   (k,) float64, `self.memory`: the controller's own, made by `start`; kept from update to update
    command  (n,) the values of its actuators in the plant's order, the last ones; written

    All are numpy arrays of float64, and the function is one that numba compiles: arithmetic, loops, branches, math and
    numpy. The first call on a machine takes a second.
    """
    return Compiled(function)


COMMON: Mapping[str, Any] = {"every": int, "delay": int | None, "interpolation": str, "robot": str}
"""Attributes of any controller that stand in its hello, and may be given on a command line, with their types."""


class Live:
    """`tunable_parameters` of a controller that has none of its own: its parameters that are declared as live."""

    def __get__(self, instance: Any, owner: type) -> Sequence[str]:
        return settable(owner)


RENAMED: Mapping[str, str] = {
    "tracks": "setpoints", "settable": "tunable_parameters", "figures": "metrics", "change": "on_parameters_changed",
}  # fmt: skip
"""Old names of what a controller declares; a class may have them for one version."""


def declared(controller: object, name: str, default: Any = ()) -> Any:
    """Return what a controller declares, of a class that need not derive from Controller, by its new or old name."""
    old = next(old for old, new in RENAMED.items() if new == name)
    return getattr(controller, name, getattr(controller, old, default))


class Controller:
    """Drives a plant over the wire: derive, and write `update`.

    Its parameters are the keywords of its constructor, with types and defaults; `@dataclass` on the class is the short
    way to write them.

    claim    actuators it drives, as names or patterns
    outputs  outputs it reads, likewise; without any: all but fields such as the joints of every
             chain; ("none",): none
    every    of one that is slower than a step: it gets each every-th state, and owes the command for it `delay` steps
             later, by that step's deadline; delay None: `every` steps where that is more than one, else 0
    interpolation  of the values between two commands: 'hold', the last one's, or 'linear', a straight line to the new
             ones, reached after `every` steps
    robot    of several robots on one clock the one that it drives, by its name: channels have the names then that they
             have alone; '': all of them
    setpoints  names of its set-points, attributes of its own that are called as what they are of (depth_m, heading_deg,
             speed_m_s, ..., see docs/scenarios.md): the plant's report states how far the truth was off them
    robots   names of the robots that it is written for, for `rtmms list` and for a word in time where it is run on
             another one; none: any
    metrics  names of attributes that report how it does, numbers, flags or short texts: `rtmms status` and the report
             show them; they are looked at once a second
    tunable_parameters  names of its parameters that may be changed while it runs (`rtmms set NAME.PARAMETER=VALUE`),
             see `on_parameters_changed`;
             default those that are declared so (`Annotated[float, rtmms.base.parameters.Parameter(..., live=True)]`)
    """

    claim: ClassVar[Sequence[str]] = ("*",)
    outputs: ClassVar[Sequence[str]] = ()
    every: ClassVar[int] = 1
    delay: ClassVar[int | None] = None
    interpolation: ClassVar[str] = "hold"
    robot: ClassVar[str] = ""
    tunable_parameters: ClassVar[Sequence[str]] = cast("Sequence[str]", Live())
    robots: ClassVar[Sequence[str]] = ()
    setpoints: ClassVar[Sequence[str]] = ()
    metrics: ClassVar[Sequence[str]] = ()

    def __init_subclass__(cls, **more: Any) -> None:
        super().__init_subclass__(**more)
        own, fields = vars(cls), inspect.get_annotations(cls)
        for old, new in RENAMED.items():
            if old in own and new not in own and old not in fields:
                setattr(cls, new, own[old])
                warnings.warn(
                    f"{cls.__qualname__}.{old} is {new} now; the old name goes with the next version",
                    RenamedWarning, stacklevel=2,
                )  # fmt: skip

    def prepare(self) -> None:
        """Once, before it connects: what takes seconds, such as compiling. Once it is connected the plant waits for
        it, and in lockstep takes one that is silent for 5 s for dead."""

    def start(self, plant: PlantInfo) -> None:
        """Once, before the first state: the plant's channels, dt, mode and budget."""

    def update(self, state: State) -> Mapping[str, float] | None:
        """Values for state.step, by actuator; those not named hold, None holds them all."""
        raise NotImplementedError(f"{type(self).__name__}.update(state) is to be written: it returns a dict")

    def on_parameters_changed(self, values: Mapping[str, Any]) -> None:
        """New values of `tunable_parameters`, each of the kind that the present one is; between two updates.

        Raise rtmms.ModelError to refuse them: nothing may be changed then. This one asks a dataclass of one's own for
        another instance with them, so that whatever its constructor refuses is refused here, and sets the attributes;
        extend it where something else follows from them.
        """
        if is_dataclass(type(self)):
            replace(cast("Any", self), **values)
        for name, value in values.items():
            setattr(self, name, value)

    change = on_parameters_changed

    def stop(self, reason: str) -> None:
        """Once, when the plant sent bye or is gone."""
