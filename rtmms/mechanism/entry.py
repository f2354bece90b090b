"""Provide the entry points of a tree's step, called with the address of one record, so that a call allocates nothing.

Trees with contacts, with modal bodies, and with `further` records have their own kernels, compiled for these records.
`further` has tendons, a floor, polars, resistances and spinning rotors. The others' kernels are compiled without these
parts.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from rtmms.base.jit import COMPILED, kernel
from rtmms.base.memory import INTEGER, Layout, Record, model, number, part, scratch, step_input, whole
from rtmms.fluids.immersed import FLUID
from rtmms.mechanism.body_actuators import PUSHES
from rtmms.mechanism.chart import settle
from rtmms.mechanism.equations import TREE, WORK
from rtmms.mechanism.floor import FLOOR
from rtmms.mechanism.joint_laws import HOLD, LAW
from rtmms.mechanism.methods import METHOD
from rtmms.mechanism.outputs import OUTPUTS, write_outputs
from rtmms.mechanism.step import MOTION, keep_to_ground, take_step
from rtmms.mechanism.tendons import TENDONS

COMMAND = Layout(
    "Command",
    step_input("values", "commands"), model("kinds", "commands", dtype=INTEGER),
    model("joints", "commands", dtype=INTEGER), model("limits", "commands", 2), model("gains", "commands"),
)  # fmt: skip
"""Command of a step, the target of each number (rtmms.mechanism.joint_laws.Actuator), and its limits."""
SYSTEM = Layout(
    "System",
    part("motion", MOTION), part("hold", HOLD), part("pushes", PUSHES), part("tree", TREE), part("law", LAW),
    part("fluid", FLUID), part("work", WORK), part("method", METHOD), part("command", COMMAND),
    part("outputs", OUTPUTS), part("tendons", TENDONS), part("floor", FLOOR),
    number("dt", unit="s"), number("substeps", INTEGER), whole("memory"), scratch("last", "memory"),
)  # fmt: skip
"""Record of a plant that is a tree; `memory` is the whole state, `last` is the state before the step."""
OPTIONAL_PARTS = ("tendons", "floor", "pushes.momentum", "fluid.foils", "fluid.polars", "fluid.resistances")
"""Parts that most trees do not have; a tree has all of them or none."""

_rigid_at = SYSTEM.type("tree.ground", "tree.modal", "hold.coast", *OPTIONAL_PARTS).at()
_on_ground_at = SYSTEM.type("tree.modal", *OPTIONAL_PARTS).at()
_modal_at = SYSTEM.type("tree.ground", "hold.coast", *OPTIONAL_PARTS).at()
_further_at = SYSTEM.type("tree.ground", "tree.modal", "hold.coast").at()
_further_on_ground_at = SYSTEM.type("tree.modal").at()


@kernel
def enter_step(address: int) -> int:
    """Take one step of the plant whose record is at `address`.

    Parameters
    ----------
    address : int
        Address of the plant's record.

    Returns
    -------
    int
        Status of `take_step`.
    """
    return take_step(_rigid_at(address))


@kernel
def enter_outputs(address: int) -> None:
    """Write the outputs of the present state, see `write_outputs`.

    Parameters
    ----------
    address : int
        Address of the plant's record.
    """
    write_outputs(_rigid_at(address))


@kernel
def enter_step_on_ground(address: int) -> int:
    """Take one step of a tree with contacts or with commanded rates.

    Parameters
    ----------
    address : int
        Address of the plant's record.

    Returns
    -------
    int
        Status of `take_step`.
    """
    return take_step(_on_ground_at(address))


@kernel
def enter_outputs_on_ground(address: int) -> None:
    """Write the outputs of a tree with contacts or with commanded rates.

    Parameters
    ----------
    address : int
        Address of the plant's record.
    """
    write_outputs(_on_ground_at(address))


@kernel
def enter_keep_to_ground(address: int) -> int:
    """Call `keep_to_ground` for the plant's state, so that the step's compiled kernels are reused.

    Parameters
    ----------
    address : int
        Address of the plant's record.

    Returns
    -------
    int
        Status of `keep_to_ground`.
    """
    system = _on_ground_at(address)
    return keep_to_ground(system.tree, system.tree.ground, system.work, system.motion.vector)


@kernel
def enter_modal_step(address: int) -> int:
    """Take one step of a tree with modal bodies.

    Parameters
    ----------
    address : int
        Address of the plant's record.

    Returns
    -------
    int
        Status of `take_step`.
    """
    return take_step(_modal_at(address))


@kernel
def enter_modal_outputs(address: int) -> None:
    """Write the outputs of a tree with modal bodies.

    Parameters
    ----------
    address : int
        Address of the plant's record.
    """
    write_outputs(_modal_at(address))


@kernel
def enter_settle(address: int) -> int:
    """Compute the elements of the state that depend on its coordinates (rtmms.mechanism.chart).

    Parameters
    ----------
    address : int
        Address of the plant's record.

    Returns
    -------
    int
        0.
    """
    return settle(_rigid_at(address))


@kernel
def enter_settle_on_ground(address: int) -> int:
    """Compute the dependent elements of the state of a tree with contacts or with commanded rates.

    Parameters
    ----------
    address : int
        Address of the plant's record.

    Returns
    -------
    int
        0.
    """
    return settle(_on_ground_at(address))


@kernel
def enter_modal_settle(address: int) -> int:
    """Compute the dependent elements of the state of a tree with modal bodies.

    Parameters
    ----------
    address : int
        Address of the plant's record.

    Returns
    -------
    int
        0.
    """
    return settle(_modal_at(address))


@kernel
def enter_further_step(address: int) -> int:
    """Take one step of a tree with tendons, a floor, polars, resistances or spinning rotors.

    Parameters
    ----------
    address : int
        Address of the plant's record.

    Returns
    -------
    int
        Status of `take_step`.
    """
    return take_step(_further_at(address))


@kernel
def enter_further_outputs(address: int) -> None:
    """Write the outputs of a tree with tendons, a floor, polars, resistances or spinning rotors.

    Parameters
    ----------
    address : int
        Address of the plant's record.
    """
    write_outputs(_further_at(address))


@kernel
def enter_further_settle(address: int) -> int:
    """Compute the dependent elements of the state as `enter_settle`, of a tree with `further` parts.

    Parameters
    ----------
    address : int
        Address of the plant's record.

    Returns
    -------
    int
        0.
    """
    return settle(_further_at(address))


@kernel
def enter_further_step_on_ground(address: int) -> int:
    """Take one step as `enter_further_step`, with contacts or with commanded rates.

    Parameters
    ----------
    address : int
        Address of the plant's record.

    Returns
    -------
    int
        Status of `take_step`.
    """
    return take_step(_further_on_ground_at(address))


@kernel
def enter_further_outputs_on_ground(address: int) -> None:
    """Write the outputs as `enter_further_outputs`, with contacts or with commanded rates.

    Parameters
    ----------
    address : int
        Address of the plant's record.
    """
    write_outputs(_further_on_ground_at(address))


@kernel
def enter_further_keep_to_ground(address: int) -> int:
    """Call `keep_to_ground` as `enter_keep_to_ground`, for a tree with `further` parts.

    Parameters
    ----------
    address : int
        Address of the plant's record.

    Returns
    -------
    int
        Status of `keep_to_ground`.
    """
    system = _further_on_ground_at(address)
    return keep_to_ground(system.tree, system.tree.ground, system.work, system.motion.vector)


@kernel
def enter_further_settle_on_ground(address: int) -> int:
    """Compute the dependent elements as `enter_further_settle`, with contacts or with commanded rates.

    Parameters
    ----------
    address : int
        Address of the plant's record.

    Returns
    -------
    int
        0.
    """
    return settle(_further_on_ground_at(address))


class Entries(NamedTuple):
    """Compiled entry points of a tree.

    Attributes
    ----------
    step, outputs, settle : callable
        Functions of the record's address.
    keep_to_ground : callable, optional
        The same, for trees with contacts.
    """

    step: Any
    outputs: Any
    settle: Any
    keep_to_ground: Any = None


def entries(system: Record) -> Entries | None:
    """Return the compiled entry points for a record.

    Parameters
    ----------
    system : Record
        Record of `rtmms.mechanism.entry.SYSTEM`.

    Returns
    -------
    Entries or None
        None where kernels are plain Python.
    """
    if not COMPILED:
        return None
    tree, additional = system.tree, system.tendons is not None
    if tree.modal is not None:
        return Entries(enter_modal_step, enter_modal_outputs, enter_modal_settle)
    if tree.ground is not None and additional:
        return Entries(
            enter_further_step_on_ground, enter_further_outputs_on_ground, enter_further_settle_on_ground,
            enter_further_keep_to_ground,
        )  # fmt: skip
    if tree.ground is not None:
        return Entries(
            enter_step_on_ground, enter_outputs_on_ground, enter_settle_on_ground, enter_keep_to_ground
        )  # fmt: skip
    if additional:
        return Entries(enter_further_step, enter_further_outputs, enter_further_settle)
    return Entries(enter_step, enter_outputs, enter_settle)
