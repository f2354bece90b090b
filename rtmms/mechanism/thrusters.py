"""Provide the table of a tree's thrusters (places, directions, thrust laws) for controllers that allocate thrust."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from rtmms.mechanism.actuators import Thruster
from rtmms.model.compiled import Model
from rtmms.model.solids import Placement


def thruster_table(model: Model, actuators: Iterable[Any]) -> dict[str, list[Mapping[str, Any]]]:
    """Return the thrusters of a tree as the key `thrusters` of its shape; empty where it has none.

    Parameters
    ----------
    model : Model
        The compiled tree.
    actuators : iterable
        Its actuators as described; those that are no `Thruster` are left out.

    Returns
    -------
    dict
        `thrusters`, a list with one mapping for each thruster, see Notes.

    Notes
    -----
    The keys of a thruster are:

    - `actuator`: name of its channel
    - `body`: row that carries it (0: the base)
    - `position` (3,) m, and `direction` (3,): in the frame of that row
    - `moment`: moment about the direction per newton, m
    - `curve`: points (command, N); or `coefficient`, N for a command of 1, of a thrust coefficient |x| x
    """
    rows: list[Mapping[str, Any]] = []
    for actuator in actuators:
        if isinstance(actuator, Thruster):
            body = model.body(actuator.body)
            pose = Placement(model.offset_rotation[body], model.offset_position[body]) @ actuator.placement
            law = {"curve": [list(map(float, point)) for point in actuator.curve]} if len(actuator.curve) else {
                "coefficient": float(actuator.coefficient or 0.0)}  # fmt: skip
            rows.append({
                "actuator": actuator.channel_name, "body": int(model.carrier[body]),
                "position": pose.position.tolist(), "direction": pose.rotation[:, 0].tolist(),
                "moment": float(actuator.moment), **law,
            })  # fmt: skip
    return {"thrusters": rows} if rows else {}
