"""Controllers: the class to derive from, and compiled updates."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import is_dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, cast

from rtmms.base.errors import ModelError, RenamedWarning
from rtmms.base.parameters import settable
from rtmms.wire.protocol.received_state import PlantInfo, State

if TYPE_CHECKING:
    import numpy.typing as npt

    from rtmms.wire.protocol.received_state import State


Update = Callable[..., None]


class Compiled:
    """Compiled `update` of a controller's class.

    Parameters
    ----------
    function : Update
        The decorated function.

    Attributes
    ----------
    kernel : callable or None
        The compiled function, once it has been compiled.

    Raises
    ------
    ModelError
        If the argument is no function.
    """

    def __init__(self, function: Update) -> None:
        if not callable(function):
            raise ModelError(f"compiled: expected a function update(time, outputs, memory, command), got {function!r}")
        self.function: Update = function
        self.kernel: Update | None = None
        self.__doc__ = function.__doc__

    def __get__(self, controller: Any, kind: Any = None) -> Any:
        """Return the update bound to a controller."""
        return self if controller is None else CompiledUpdate(self, controller)

    def __call__(self, controller: Any, state: State) -> dict[str, float]:
        """Call the update as the method of the class."""
        result: dict[str, float] = self.__get__(controller)(state)
        return result


class CompiledUpdate:
    """Compiled update of one controller, which Python can call like any update(state).

    Parameters
    ----------
    compiled : Compiled
        Update of the class.
    controller : Any
        The controller.
    """

    def __init__(self, compiled: Compiled, controller: Any) -> None:
        self.compiled, self._controller = compiled, controller
        self._command: npt.NDArray[Any] | None = None

    def __call__(self, state: State) -> dict[str, float]:
        """Return the command for a state."""
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
    """Return the memory of a controller with a compiled update.

    Parameters
    ----------
    controller : Any
        The controller.

    Returns
    -------
    npt.NDArray[Any]
        Its attribute `memory`, (k,) float64; a new empty array if it has none.

    Raises
    ------
    ModelError
        If the attribute is something else.
    """
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
    """Decorate a controller's `update(time, outputs, memory, command)` so that numba compiles it.

    The function has no self and returns nothing. It may use arithmetic, loops, branches, math and numpy. The first call
    on a machine takes a second.

    Parameters
    ----------
    function : Update
        The update. Its arguments are numpy arrays of float64, except the time.

    Returns
    -------
    Any
        The attribute of the class.

    Raises
    ------
    ModelError
        If the argument is no function.

    Notes
    -----
    Arguments of the update:

    - `time`: time of the state, s.
    - `outputs`, (m,): numbers of the outputs that the controller reads, one after the other, in the plant's order.
    - `memory`, (k,): `self.memory`, which `start` creates; it is kept from update to update.
    - `command`, (n,): values of its actuators in the plant's order, at first the last ones; the update writes them.
    """
    return Compiled(function)


COMMON: Mapping[str, Any] = {"every": int, "delay": int | None, "interpolation": str, "robot": str}
"""Attributes of any controller that its hello contains and a command line may set, with their types."""


class DeclaredParameters:
    """Default of `tunable_parameters`: the parameters that a controller declares as live."""

    def __get__(self, instance: Any, owner: type) -> Sequence[str]:
        """Return the names of the class's live parameters."""
        return settable(owner)


RENAMED: Mapping[str, str] = {
    "tracks": "setpoints", "settable": "tunable_parameters", "figures": "metrics", "change": "on_parameters_changed",
}  # fmt: skip
"""Old names of a controller's declarations, which a class may use for one version."""


def declaration_of(controller: object, name: str, default: Any = ()) -> Any:
    """Return a controller's declaration, by its new or old name.

    The class need not derive from Controller.

    Parameters
    ----------
    controller : object
        The controller.
    name : str
        New name of the declaration.
    default : Any, optional
        Result if the class has neither.

    Returns
    -------
    Any
        The declaration.
    """
    old = next(old for old, new in RENAMED.items() if new == name)
    return getattr(controller, name, getattr(controller, old, default))


class Controller:
    """Base class of controllers, which drive a plant over the wire.

    Derive from it, and write `update`. The parameters are the keywords of the constructor, with types and defaults;
    `@dataclass` on the class is the short way to write them.

    Attributes
    ----------
    claim : sequence of str, default ("*",)
        Actuators that it drives, as names or patterns.
    outputs : sequence of str, default ()
        Outputs that it reads, as names or patterns. Empty: all but fields such as the joints of every chain. ("none",):
        none.
    every : int, default 1
        A slow controller receives each every-th state, and owes its command `delay` steps later, by that step's
        deadline.
    delay : int or None, default None
        Steps from a state to the step of its command. None: `every` if that is more than one, else 0.
    interpolation : str, default "hold"
        Values between two commands: 'hold', the last ones, or 'linear', a straight line to the new ones, reached after
        `every` steps.
    robot : str, default ""
        Name of the one of several robots that it drives, with the channel names that the robot has alone. Empty: all.
    tunable_parameters : sequence of str
        Parameters that may be changed while it runs (`rtmms set NAME.PARAMETER=VALUE`), see `on_parameters_changed`.
        The default are those declared as live (`Annotated[float, rtmms.base.parameters.Parameter(..., live=True)]`).
    robots : sequence of str, default ()
        Robots for which it is written. `rtmms list` shows them, and a run with another robot is refused early. Empty:
        any robot.
    setpoints : sequence of str, default ()
        Attributes that are set-points, named after their quantities (depth_m, heading_deg, speed_m_s, ..., see
        docs/scenarios.md). The plant's report compares them with the truth.
    metrics : sequence of str, default ()
        Attributes that are metrics: numbers, flags or short texts. `rtmms status` and the report show them; they are
        read once a second.

    Examples
    --------
    >>> import rtmms
    >>> class Proportional(rtmms.Controller):
    ...     claim = ("thruster",)
    ...     def update(self, state):
    ...         return {"thruster": 2.0 * (1.0 - state["depth"])}
    >>> Proportional().every
    1
    """

    claim: ClassVar[Sequence[str]] = ("*",)
    outputs: ClassVar[Sequence[str]] = ()
    every: ClassVar[int] = 1
    delay: ClassVar[int | None] = None
    interpolation: ClassVar[str] = "hold"
    robot: ClassVar[str] = ""
    tunable_parameters: ClassVar[Sequence[str]] = cast("Sequence[str]", DeclaredParameters())
    robots: ClassVar[Sequence[str]] = ()
    setpoints: ClassVar[Sequence[str]] = ()
    metrics: ClassVar[Sequence[str]] = ()

    def __init_subclass__(cls, **more: Any) -> None:
        """Accept old names of declarations, with a warning."""
        super().__init_subclass__(**more)
        members, fields = vars(cls), inspect.get_annotations(cls)
        for old, new in RENAMED.items():
            if old in members and new not in members and old not in fields:
                setattr(cls, new, members[old])
                warnings.warn(
                    f"{cls.__qualname__}.{old} is {new} now; the next version removes the old name",
                    RenamedWarning, stacklevel=2,
                )  # fmt: skip

    def prepare(self) -> None:
        """Do work that takes seconds, such as compiling, once before the connection.

        A connected controller keeps the plant waiting. In lockstep a peer that is silent for 5 s counts as dead.
        """

    def start(self, plant: PlantInfo) -> None:
        """Prepare for a plant, once before its first state.

        Parameters
        ----------
        plant : PlantInfo
            Channels, dt, mode and budget of the plant.

        Raises
        ------
        ModelError
            If the plant does not fit.
        """

    def update(self, state: State) -> Mapping[str, float] | None:
        """Return the values for the step of a state.

        Parameters
        ----------
        state : State
            The state.

        Returns
        -------
        Mapping[str, float] | None
            Values by name of the actuator. Actuators without a value hold; None holds them all.

        Raises
        ------
        NotImplementedError
            If the class does not override it.
        """
        raise NotImplementedError(
            f"{type(self).__name__}: update(state) is missing; write this method, which returns a dict"
        )

    def on_parameters_changed(self, values: Mapping[str, Any]) -> None:
        """Accept new values of `tunable_parameters`, between two updates.

        Raise rtmms.ModelError to refuse them; then nothing may be changed. For a dataclass this method creates another
        instance with them. So it refuses the values that the constructor refuses. Then it sets the attributes. Extend
        it if other values follow from them.

        Parameters
        ----------
        values : Mapping[str, Any]
            New values by name, each of the present value's type.
        """
        if is_dataclass(type(self)):
            replace(cast("Any", self), **values)
        for name, value in values.items():
            setattr(self, name, value)

    change = on_parameters_changed

    def stop(self, reason: str) -> None:
        """Finish, once after the plant sent bye or is gone.

        Parameters
        ----------
        reason : str
            Reason of the end.
        """
