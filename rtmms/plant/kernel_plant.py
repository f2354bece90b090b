"""Provide the base of plants whose step is a compiled function of one record: the manta, trees, continuous bodies.

A subclass has a memory layout, kernels, and channels. The base derives its step from Python and from compiled code, its
snapshot, its state as forks have it, and its forks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, ClassVar, NoReturn

import numpy as np

from rtmms.base.errors import DivergedError, Renamed, warn_renamed
from rtmms.base.jit import native
from rtmms.base.override import override
from rtmms.base.parameters import FunctionKeywords
from rtmms.base.snapshot import StatefulPlant
from rtmms.base.spatial import Array
from rtmms.plant.optional_protocols import CompiledOutputs, CompiledStep, Fork, SavedState, StepErrorEstimator
from rtmms.plant.protocol import Channel
from rtmms.plant.validation import read_command

_FLOAT = np.dtype(np.float64)


class KernelPlant(StatefulPlant):
    """Base of a plant whose step is a compiled function of one record.

    A subclass sets the attributes when it is built, and overrides the hooks that differ.

    Attributes
    ----------
    actuators, outputs : tuple of Channel
        Channels of the plant, see `rtmms.plant.protocol.Plant`.
    system : Record
        Record of the plant; its state is the plant's.
    parameters : object, optional
        Parameters of the robot, or None.
    """

    actuators: Any
    outputs: tuple[Channel, ...]
    _command: Array
    """(n_actuators,) command, in the array that the kernel reads."""
    _entry: CompiledStep | None = None
    _shape: tuple[int, ...]
    _run: Callable[[], int]
    """Step of `system`, with the command in place; returns its status."""
    _kernel_counts_steps: ClassVar[bool] = False
    parameters: Any = None

    # --- hooks ----------------------------------------------------------------------------------------------------

    def _step_kernel(self) -> Any:
        """Return the compiled step, called with `_words_of` a record; None where kernels are plain Python."""
        raise NotImplementedError

    def _plain_step(self, system: Any) -> int:
        """Take the step of a record in plain Python; return its status."""
        raise NotImplementedError

    def observe(self) -> dict[str, Array]:
        """Return the outputs at the present state.

        Returns
        -------
        dict of str to array
            Outputs by name, in the units and frames of `outputs`.
        """
        raise NotImplementedError

    def _fail(self, status: int) -> NoReturn:
        """Go back to the last sound state, and raise DivergedError with what left its range."""
        self.memory[:] = self._sound_of(self.system)
        raise DivergedError(self.time + self.dt, "state", self.observe(), "exceeds its range; take a smaller step")

    def _prepare(self) -> None:
        """Write into the record what a step needs beside the command."""

    def _words_of(self, system: Any) -> tuple[Any, ...]:
        """Return the arguments of the step's kernel; None for an absent part."""
        return (system.address,)

    def _command_of(self, system: Any) -> Array:
        """Return the array from which the kernel reads its command."""
        if hasattr(system, "command"):
            command: Array = system.command
        else:  # a layout of 0.2
            warn_renamed("the layout", "given", "command")
            command = system.given
        return command

    def _start_of(self, system: Any) -> Array:
        """Return the cell (1,) from which the kernel reads the time at which its step begins, s."""
        return np.zeros(1)

    def _sound_of(self, system: Any) -> Array:
        """Return the array that holds the last sound state after a failed step."""
        memory: Array = system.memory
        return memory

    def _places_of(self, system: Any) -> Mapping[str, tuple[int, int]]:
        """Return outputs that are elements of the state: first word, and number of words."""
        return {}

    def _account_of(self, system: Any) -> CompiledOutputs | None:
        """Return compiled code of more outputs of a record."""
        return None

    def _can_fork(self) -> bool:
        """Return whether a run can continue without Python."""
        return self._step_kernel() is not None

    @property
    def start_height(self) -> float:
        """Height of the robot at t = 0, m, world: minus `start_depth_m` of its parameters, 0 for a robot without it."""
        if isinstance(self.parameters, FunctionKeywords):
            return 0.0
        return 0.0 - float(getattr(self.parameters, "start_depth_m", 0.0))

    _given = Renamed("_command")
    twin = Renamed("step_error_estimator")
    home = Renamed("initial_pose")
    surroundings = Renamed("environment")

    # --- derived --------------------------------------------------------------------------------------------------

    def _bind_step(self) -> None:
        """Bind the step to the record `system`; call it whenever the record was replaced."""
        self._run, self._shape = self._step_of(self.system), self._command.shape
        self._entry = None

    def _step_of(self, system: Any) -> Callable[[], int]:
        """Return the step of a record as a Python function, with its command in place."""
        kernel = self._step_kernel()
        return partial(self._plain_step, system) if kernel is None else partial(kernel, *self._words_of(system))

    def step(self, command: Array) -> None:
        """Advance by dt.

        Parameters
        ----------
        command : (n_actuators,) array
            Held over the step, in the order of `actuators`, clamped to their limits.

        Raises
        ------
        ArgumentError
            The size, the type or a value is wrong; the state does not change.
        DivergedError
            The step failed; the state is the last sound one.
        """
        if type(command) is np.ndarray and command.dtype is _FLOAT and command.shape == self._shape:
            self._command[:] = command
        else:
            self._command[:] = read_command(self._name, self.actuators, command)
        self._prepare()
        status = self._run()
        if status:
            self._fail(status)
        if not self._kernel_counts_steps:
            self._steps += 1

    def compiled_step(self) -> CompiledStep | None:
        """Return the next step for callers in compiled code (rtmms.plant.HasCompiledStep).

        Returns
        -------
        CompiledStep or None
            None where kernels are plain Python.
        """
        if self._entry is None:
            kernel = self._step_kernel()
            if kernel is None:
                return None
            self._entry = self._entry_of(kernel, self.system)
        self._prepare()
        return self._entry

    def finish_compiled_step(self, status: int) -> None:
        """Do the Python part after a compiled step (rtmms.plant.HasCompiledStep).

        Parameters
        ----------
        status : int
            Status that the compiled step returned; 0 on success.

        Raises
        ------
        DivergedError
            The step failed; the state is the last sound one.
        """
        if status:
            self._fail(status)
        if not self._kernel_counts_steps:
            self._steps += 1

    def fork(self, memory: Array | None = None) -> Fork | None:
        """Return a run beside the plant's, in its own memory (rtmms.plant.HasFork).

        Parameters
        ----------
        memory : (w,) array, optional
            Memory of the fork's state.

        Returns
        -------
        Fork or None
            None where Python must take the steps.
        """
        kernel = self._step_kernel()
        if kernel is None or not self._can_fork():
            return None
        other = self.system.fork(memory)
        return Fork(
            self._entry_of(kernel, other), other.memory, self._sound_of(other), self._start_of(other),
            self._places_of(other), other.clear, lambda: self._can_fork() and other.adopt_from(self.system), other,
            self._account_of(other),
        )  # fmt: skip

    def _entry_of(self, kernel: Any, system: Any) -> CompiledStep:
        """Return the step of a record as compiled code calls it."""
        values = self._words_of(system)
        arguments = tuple(0 if word is None else word for word in values)
        return CompiledStep(native(kernel, *values), arguments, self._command_of(system).ctypes.data)


class RecordErrorEstimator(StepErrorEstimator):
    """Step-error estimator of a kernel plant, in a fork of its record (rtmms.plant.StepErrorEstimator).

    A state has one more word than the plant's: the steps since the reset. A subclass sets the attributes before it
    calls `__init__` of this class, and overrides `_view_saved_state`.

    Parameters
    ----------
    plant : KernelPlant
        Plant whose steps are measured.

    Attributes
    ----------
    order : int
        Order of the method.
    bounded : bool
        Whether the method is stable only up to some |lambda| dt.
    base_moves : bool
        Whether the base has a path that can be wrong.
    length : float
        Length by which turns are weighted: 1 rad counts as that way, m.
    """

    order: int
    bounded: bool
    base_moves: bool
    length: float

    def __init__(self, plant: Any) -> None:
        self.plant, self.dt = plant, plant.dt
        self._divided, self._count = 2, 0.0
        self.state = self.room()
        self._take_up()

    def _view_saved_state(self, memory: Array) -> SavedState:
        """Return views of the parts of a state that are measured."""
        raise NotImplementedError

    def _take_up(self) -> None:
        """Fork the plant's record as it is now."""
        self._of = self.plant.system
        self._system = self._of.fork(self.state.all[:-1])
        self._start, self._dt = self.plant._start_of(self._system), self._system.cell("dt")
        self._step = self.plant._step_of(self._system)

    @property
    @override
    def now(self) -> int:
        return int(self.plant._steps)

    @property
    @override
    def finer(self) -> tuple[str, float]:
        return "dt", self.dt

    @override
    def room(self) -> SavedState:
        """Return memory for one more state: zeros, and views of the measured parts."""
        return self._view_saved_state(np.zeros(self.plant.system.memory.size + 1))

    @override
    def keep(self, at: SavedState) -> None:
        at.all[:-1] = self.plant.system.memory
        at.all[-1] = self.plant._steps

    @override
    def divide(self, parts: int) -> None:
        self._divided = parts

    @override
    def start(self, at: SavedState, halves: bool) -> None:
        if self._of is not self.plant.system:  # its parameters were changed
            self._take_up()
        self.state.all[:] = at.all
        self._count = float(at.all[-1])

    @override
    def step(self, command: Array, halves: bool) -> bool:
        parts = self._divided if halves else 1
        self.plant._command_of(self._system)[:] = command
        self._start[0], self._dt[0] = self._count * self.dt, self.dt / parts
        self._before_step()
        status = self._step()
        self._count += 1.0 / parts
        return bool(status == 0)

    def _before_step(self) -> None:
        """Write into the record what a step needs beside the command."""
