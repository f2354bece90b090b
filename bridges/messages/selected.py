"""A plant as it looks to a bridge that asked for some of its outputs only."""

from __future__ import annotations

from dataclasses import replace

from rtmms.wire.protocol.state import PlantInfo


def selected(plant: PlantInfo) -> PlantInfo:
    """The same plant, with no outputs but those that come with each state."""
    return replace(plant, outputs=tuple(channel for channel in plant.outputs if channel.name in plant.selected))
