"""View of a plant for a bridge that selected some of its outputs."""

from __future__ import annotations

from dataclasses import replace

from rtmms.wire.protocol.received_state import PlantInfo


def select_outputs(plant: PlantInfo) -> PlantInfo:
    """Return the same plant with only the outputs in its states.

    Parameters
    ----------
    plant : PlantInfo
        The plant.

    Returns
    -------
    PlantInfo
        The plant with selected outputs.
    """
    return replace(plant, outputs=tuple(channel for channel in plant.outputs if channel.name in plant.selected))
