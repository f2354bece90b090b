"""`@rtmms.compiled`: an update that numba takes, run in the controller's process without Python on its path.

Nothing is compiled here, and numba is not loaded: whoever runs such a controller does (rtmms.wire.answering).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from rtmms.errors import ModelError

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
