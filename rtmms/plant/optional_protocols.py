"""Provide protocols of optional behaviour of a plant, for which callers test once with isinstance.

A plant may have cheaper variants, levels, several robots, an estimator of a step's error, a compiled step, forks,
rollouts, coordinates, and compiled outputs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, runtime_checkable

from rtmms.plant.protocol import Plant

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Array = npt.NDArray[np.float64]


@runtime_checkable
class HasVariants(Protocol):
    """A plant with cheaper variants of itself, for `--degrade` (rtmms.plant.levels)."""

    def variants(self) -> Sequence[Any]:
        """Return plants with the same channels and step, each cheaper than the one before, built and warm.

        Returns
        -------
        sequence of Plant
            Each has `copy_state_from`, and optionally `variant`, a few words that describe it.
        """

    def copy_state_from(self, other: Any) -> None:
        """Continue from the state of another of these plants, the full one or a variant, without a jump.

        The body's pose, velocity and momentum and the forces on it persist. The same state gives the same bits.

        Parameters
        ----------
        other : Any
            Plant whose state is taken.
        """


class HasLevels(Protocol):
    """A plant that steps one of its variants (rtmms.plant.levels.Levels); `set(level=k)` changes the level.

    Attributes
    ----------
    level : int
        Index of the active level; 0 is the full model.
    costs : tuple of float
        Time of a step of each level, s, from the full model on.
    """

    level: int
    costs: tuple[float, ...]


@runtime_checkable
class HasRobots(Protocol):
    """Several plants on one clock, whose channels are named NAME.channel.

    Attributes
    ----------
    robots : mapping of str to Plant
        Plants by name, with their sensors if they have some.
    robot_types : mapping of str to str
        Robot of each plant.
    """

    robots: Mapping[str, Plant]
    robot_types: Mapping[str, str]

    def described(self) -> list[dict[str, Any]]:
        """Return the robots as a log stores them.

        Returns
        -------
        list of dict
            One entry for each robot.
        """

    def owners(self, key: str) -> list[tuple[str, str]]:
        """Return the robots that a key of `set` changes.

        Parameters
        ----------
        key : str
            Name of a parameter, as the world has it.

        Returns
        -------
        list of (str, str)
            Name of each robot, and its own name of the parameter.

        Raises
        ------
        ModelError, UnknownNameError
            No robot has such a parameter.
        """


class SavedState(NamedTuple):
    """A stored state: all of it, and views of the measured parts.

    Attributes
    ----------
    all : (w,) array
        The whole state.
    position : (3,) array
        m, world.
    quaternion : (4,) array
        Body to world.
    twist : (6,) array
        m/s and rad/s, body.
    joints : array
        rad or m, of any shape.
    work : (k,) array or None
        J; its sum is the work of the actuators. None where the state does not contain it.
    """

    all: Array
    position: Array
    quaternion: Array
    twist: Array
    joints: Array
    work: Array | None


class StepErrorEstimator(Protocol):
    """Steps beside a plant's own, in separate memory; the plant and its bits do not change.

    Attributes
    ----------
    dt : float
        Step of the plant, s.
    order : int
        Order of its method.
    bounded : bool
        Whether the method is stable only up to some |lambda| dt.
    base_moves : bool
        Whether the base has a path that can be wrong.
    length : float
        A turn by 1 rad counts as a way of that length, m.
    state : SavedState
        Present state of the estimator.
    """

    dt: float
    order: int
    bounded: bool
    base_moves: bool
    length: float
    state: SavedState

    @property
    def now(self) -> int:
        """Steps of the plant since its reset."""

    @property
    def finer(self) -> tuple[str, float]:
        """Parameter that shortens the step, and its value, s."""

    def room(self) -> SavedState:
        """Return memory for one more state.

        Returns
        -------
        SavedState
            Its contents are undefined.
        """

    def keep(self, at: SavedState) -> None:
        """Copy the plant's present state.

        Parameters
        ----------
        at : SavedState
            Memory to write, from `room`.
        """

    def divide(self, parts: int) -> None:
        """Set the number of parts of a divided step, from the next `start` on.

        Parameters
        ----------
        parts : int
            Power of two; 2 before the first call. The steps of dt / parts are called halves.
        """

    def start(self, at: SavedState, halves: bool) -> None:
        """Put the estimator into a state.

        Parameters
        ----------
        at : SavedState
            State to start from.
        halves : bool
            Whether the next steps are parts of dt (see `divide`).
        """

    def step(self, command: Array, halves: bool) -> bool:
        """Take one step.

        Parameters
        ----------
        command : (n_actuators,) array
            Command held over the step.
        halves : bool
            Whether the step is a part of dt.

        Returns
        -------
        bool
            False where the step fails.
        """

    def unseen(self, begin: SavedState, end: SavedState) -> float:
        """Return the motion of prescribed joints that no stage of a step evaluated.

        Half steps may have missed the same motion. The command is that of the last step of this estimator.

        Parameters
        ----------
        begin : SavedState
            State before the step.
        end : SavedState
            State after the step.

        Returns
        -------
        float
            Sum of squares over the joints, rad2; 0 without prescribed joints.
        """
        return 0.0

    def power(self, at: SavedState) -> float:
        """Return the actuators' power in a state that contains no work; afterwards the estimator is in that state.

        Parameters
        ----------
        at : SavedState
            State to evaluate.

        Returns
        -------
        float
            W; 0 if the plant has none.
        """
        return 0.0


@runtime_checkable
class HasStepErrorEstimator(Protocol):
    """A plant whose steps `rtmms.plant.monitor` can check by steps beside it."""

    def step_error_estimator(self) -> StepErrorEstimator:
        """Return a new estimator of the plant's steps.

        Returns
        -------
        StepErrorEstimator
            Estimator with its own memory.
        """


class CompiledStep(NamedTuple):
    """A step that compiled code may take without Python, as addresses.

    Attributes
    ----------
    function : int
        Address of a C function of words of 64 bits that returns a status, 0 on success.
    arguments : tuple[int, ...]
        Words that the function receives.
    command : int
        Address from which it reads the command, n_actuators float64.
    """

    function: int
    arguments: tuple[int, ...]
    command: int


@runtime_checkable
class HasCompiledStep(Protocol):
    """A plant whose step is compiled code that runs without Python."""

    def compiled_step(self) -> CompiledStep | None:
        """Prepare the next step and return it; compiled code may take it as soon as its command is in place.

        Returns
        -------
        CompiledStep or None
            None where only `step` can take it.
        """

    def finish_compiled_step(self, status: int) -> None:
        """Do the Python part after the compiled step.

        Parameters
        ----------
        status : int
            Status that the compiled step returned; 0 on success.

        Raises
        ------
        DivergedError
            The step failed, as in `step`.
        """


class Fork(NamedTuple):
    """A run beside the plant's, in its own memory, by the plant's model and kernels at the time of the fork.

    Attributes
    ----------
    entry : CompiledStep
        One step of the fork.
    state : (w,) array
        Everything that a snapshot contains except the count of steps.
    recovery_state : (w,) array
        The last sound state, to which a failed step returns.
    start : (1,) array
        Time at which a step begins, s. The caller writes it.
    places : mapping
        Outputs that the state contains: first index and size of each.
    clear : callable
        Initialises the scratch memory again, after a failed step.
    sync_model : callable
        Copies the plant's present model and parameters. It returns False where only a new fork can have them.
    owner : object
        Object that holds the memory.
    account : CompiledOutputs, optional
        Compiled code of further outputs. Without it, the plant's `observe` returns them.
    """

    entry: CompiledStep
    state: Array
    recovery_state: Array
    start: Array
    places: Mapping[str, tuple[int, int]]
    clear: Callable[[], None]
    sync_model: Callable[[], bool]
    owner: Any
    account: CompiledOutputs | None = None


@runtime_checkable
class HasFork(Protocol):
    """A plant that can have many runs side by side (rtmms.analysis.rollouts)."""

    def fork(self, memory: Array | None = None) -> Fork | None:
        """Return a run beside the plant's, from its present state.

        Parameters
        ----------
        memory : (w,) array, optional
            Memory for the fork's state, of the size of `present()[0]`; None for new memory.

        Returns
        -------
        Fork or None
            None where only `step` can take the plant's steps.
        """

    def present(self) -> tuple[Array, int]:
        """Return the present state.

        Returns
        -------
        (array, int)
            Copy of the state as a Fork stores it, and the steps since the reset.
        """

    def put(self, state: Array, steps: int) -> None:
        """Put the plant into a state, as `restore` does.

        Parameters
        ----------
        state : (w,) array
            State as `present` returns it.
        steps : int
            Steps since the reset.
        """


class RolledOut(NamedTuple):
    """The result of `SupportsRollouts.roll_out`.

    Attributes
    ----------
    outputs : dict[str, array]
        {name: (runs, samples, *shape)}.
    ends : (runs, width) array
        States at the end, as `present` returns them.
    sound : (runs,) array of bool
        False where the run failed; `step` of such a run raises the error.
    """

    outputs: dict[str, Array]
    ends: Array
    sound: npt.NDArray[np.bool_]


@runtime_checkable
class SupportsRollouts(Protocol):
    """A plant without forks whose own simulator advances many runs at once (rtmms.analysis.rollouts)."""

    def can_roll_out(self) -> bool:
        """Return whether the installed simulator can do this; otherwise runs are stepped in turn.

        Returns
        -------
        bool
            Whether `roll_out` may be called.
        """

    def roll_out(
        self, starts: Array, commands: Array, steps: int, every: int, names: Sequence[str], threads: int
    ) -> RolledOut:
        """Advance several runs at once.

        Parameters
        ----------
        starts : (runs, width) array
            State of each run at its start, as `present` returns it.
        commands : (runs or 1, steps or 1, n_actuators) array
            Commands; an axis of length 1 is repeated.
        steps : int
            Number of steps.
        every : int
            Steps from one sample to the next.
        names : Sequence[str]
            Outputs to return.
        threads : int
            Number of threads.

        Returns
        -------
        RolledOut
            Outputs and final states.
        """

    def present(self) -> tuple[Array, int]:
        """Return the present state.

        Returns
        -------
        (array, int)
            Copy of the state, and the steps since the reset.
        """

    def put(self, state: Array, steps: int) -> None:
        """Put the plant into a state, as `restore` does.

        Parameters
        ----------
        state : (width,) array
            State as `present` returns it.
        steps : int
            Steps since the reset.
        """


class Coordinates(NamedTuple):
    """Coordinates of a fork's state; except for a free body's pose, each is an element of that array.

    Attributes
    ----------
    names, units : tuple of str
        Of each coordinate, in order.
    size : (k,) array
        Typical size of each coordinate, for scaling.
    state_indices : (k,) array of int64
        Index of each coordinate in the state. The entries of a pose have no meaning.
    pose : int
        Index of position (3, m, world) and quaternion (4, body to world); -1 without a pose. The first six coordinates
        are then its errors in the body's axes: p = p_ref + R_ref e, R = R_ref exp(theta^).
    has_dependents : (k,) array of bool
        Whether other elements of the state depend on a coordinate (`HasCoordinates.settling`).
    history_indices : (f,) array of int64
        Elements that contain values of earlier steps. Derivatives set them to 0.
    """

    names: tuple[str, ...]
    units: tuple[str, ...]
    size: Array
    state_indices: npt.NDArray[np.int64]
    pose: int
    has_dependents: npt.NDArray[np.bool_]
    history_indices: npt.NDArray[np.int64]


@runtime_checkable
class HasCoordinates(HasFork, Protocol):
    """A plant whose steps are differentiated on forks, by compiled code (rtmms.analysis.derivatives)."""

    def coordinates(self) -> Coordinates:
        """Return the coordinates of the plant's state.

        Returns
        -------
        Coordinates
            Names, units and places of the coordinates.
        """

    def settling(self, fork: Fork) -> CompiledStep:
        """Return compiled code that computes the dependent elements of a fork's state.

        Parameters
        ----------
        fork : Fork
            Fork whose state it writes.

        Returns
        -------
        CompiledStep
            Its status is 0 on success.
        """


class CompiledOutputs(NamedTuple):
    """Outputs for compiled code: a function as in `CompiledStep`, and the addresses of its results.

    Attributes
    ----------
    function : int
        Address of the function that computes the outputs.
    arguments : tuple[int, ...]
        Words that the function receives.
    numbers : Mapping[str, tuple[int, int]]
        Address and count of the float64 of each output, in row-major order.
    derived : Mapping[str, tuple[tuple[str, ...], Callable[..., array]]], default {}
        Outputs that follow from others: names of these, and a function of their rows (samples, width) that returns the
        output's rows. Names that no output has are entries of `numbers`.
    """

    function: int
    arguments: tuple[int, ...]
    numbers: Mapping[str, tuple[int, int]]
    derived: Mapping[str, tuple[tuple[str, ...], Callable[..., Array]]] = {}


@runtime_checkable
class HasCompiledOutputs(HasCompiledStep, Protocol):
    """A plant whose outputs compiled code computes as well, so that it can take many steps in a row.

    `finish_compiled_step` is then called once for all of them.
    """

    def compiled_outputs(self) -> CompiledOutputs | None:
        """Return the outputs as compiled code computes them.

        Returns
        -------
        CompiledOutputs or None
            None where only `observe` can compute them.
        """
