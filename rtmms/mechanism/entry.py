"""How Python enters a tree's step: by the address of one record (rtmms.base.memory), so that a call makes nothing.

Trees with contacts, trees with modal bodies, and trees with tendons, a floor, polars, resistances or spinning rotors
(`further`) have kernels of their own, compiled for their records; the others' are compiled without.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from rtmms.base.jit import COMPILED, kernel
from rtmms.base.memory import INTEGER, Layout, Record, given, model, number, part, scratch, whole
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
    given("given", "commands"), model("kinds", "commands", dtype=INTEGER), model("joints", "commands", dtype=INTEGER),
    model("limits", "commands", 2), model("gains", "commands"),
)  # fmt: skip
"""The command of a step, what each of its numbers moves (rtmms.mechanism.joint_laws.Actuator), and its limits."""
SYSTEM = Layout(
    "System",
    part("motion", MOTION), part("hold", HOLD), part("pushes", PUSHES), part("tree", TREE), part("law", LAW),
    part("fluid", FLUID), part("work", WORK), part("method", METHOD), part("command", COMMAND),
    part("outputs", OUTPUTS), part("tendons", TENDONS), part("floor", FLOOR),
    number("dt", unit="s"), number("substeps", INTEGER), whole("memory"), scratch("last", "memory"),
)  # fmt: skip
"""All that a plant which is a tree steps with. memory: all of the state; last: the same before the step."""
OPTIONAL_PARTS = ("tendons", "floor", "pushes.momentum", "fluid.foils", "fluid.polars", "fluid.resistances")
"""What most trees do without: all of it is there, or nothing."""

_rigid_at = SYSTEM.type("tree.ground", "tree.modal", "hold.coast", *OPTIONAL_PARTS).at()
_on_ground_at = SYSTEM.type("tree.modal", *OPTIONAL_PARTS).at()
_modal_at = SYSTEM.type("tree.ground", "hold.coast", *OPTIONAL_PARTS).at()
_further_at = SYSTEM.type("tree.ground", "tree.modal", "hold.coast").at()
_further_on_ground_at = SYSTEM.type("tree.modal").at()


@kernel
def enter_step(address: int) -> int:
    """One step of the plant whose record stands at `address`; the status of `take_step`."""
    return take_step(_rigid_at(address))


@kernel
def enter_outputs(address: int) -> None:
    """The outputs of the present state, see `write_outputs`."""
    write_outputs(_rigid_at(address))


@kernel
def enter_step_on_ground(address: int) -> int:
    """As `enter_step`, of a tree with contacts or with commands that are rates."""
    return take_step(_on_ground_at(address))


@kernel
def enter_outputs_on_ground(address: int) -> None:
    """As `enter_outputs`."""
    write_outputs(_on_ground_at(address))


@kernel
def enter_keep_to_ground(address: int) -> int:
    """`keep_to_ground` of the plant's state: from here, so that the step's kernels serve."""
    system = _on_ground_at(address)
    return keep_to_ground(system.tree, system.tree.ground, system.work, system.motion.vector)


@kernel
def enter_modal_step(address: int) -> int:
    """As `enter_step`, of a tree with modal bodies."""
    return take_step(_modal_at(address))


@kernel
def enter_modal_outputs(address: int) -> None:
    """As `enter_outputs`."""
    write_outputs(_modal_at(address))


@kernel
def enter_settle(address: int) -> int:
    """What follows from the coordinates of the plant's state, in order (rtmms.mechanism.chart)."""
    return settle(_rigid_at(address))


@kernel
def enter_settle_on_ground(address: int) -> int:
    """As `enter_settle`."""
    return settle(_on_ground_at(address))


@kernel
def enter_modal_settle(address: int) -> int:
    """As `enter_settle`."""
    return settle(_modal_at(address))


@kernel
def enter_further_step(address: int) -> int:
    """As `enter_step`, of a tree with tendons, a floor, polars, resistances or spinning rotors."""
    return take_step(_further_at(address))


@kernel
def enter_further_outputs(address: int) -> None:
    """As `enter_outputs`."""
    write_outputs(_further_at(address))


@kernel
def enter_further_settle(address: int) -> int:
    """As `enter_settle`."""
    return settle(_further_at(address))


@kernel
def enter_further_step_on_ground(address: int) -> int:
    """As `enter_further_step`, with contacts or with commands that are rates."""
    return take_step(_further_on_ground_at(address))


@kernel
def enter_further_outputs_on_ground(address: int) -> None:
    """As `enter_outputs`."""
    write_outputs(_further_on_ground_at(address))


@kernel
def enter_further_keep_to_ground(address: int) -> int:
    """As `enter_keep_to_ground`."""
    system = _further_on_ground_at(address)
    return keep_to_ground(system.tree, system.tree.ground, system.work, system.motion.vector)


@kernel
def enter_further_settle_on_ground(address: int) -> int:
    """As `enter_settle`."""
    return settle(_further_on_ground_at(address))


class Entries(NamedTuple):
    """The kernels that a tree enters by; the last one of trees with contacts."""

    step: Any
    outputs: Any
    settle: Any
    keep_to_ground: Any = None


def entries(system: Record) -> Entries | None:
    """Of a record of SYSTEM; None where kernels run as plain Python."""
    if not COMPILED:
        return None
    tree, further = system.tree, system.tendons is not None
    if tree.modal is not None:
        return Entries(enter_modal_step, enter_modal_outputs, enter_modal_settle)
    if tree.ground is not None and further:
        return Entries(
            enter_further_step_on_ground, enter_further_outputs_on_ground, enter_further_settle_on_ground,
            enter_further_keep_to_ground,
        )  # fmt: skip
    if tree.ground is not None:
        return Entries(
            enter_step_on_ground, enter_outputs_on_ground, enter_settle_on_ground, enter_keep_to_ground
        )  # fmt: skip
    if further:
        return Entries(enter_further_step, enter_further_outputs, enter_further_settle)
    return Entries(enter_step, enter_outputs, enter_settle)
