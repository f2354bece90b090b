"""A channel map made from the plant alone: channel i is actuator i, over its limits."""

from __future__ import annotations

from math import inf

import rtmms
from rtmms.bridging.channels import ChannelMap, ChannelMapping


def map_channels(
    entries: tuple[ChannelMapping, ...], plant: rtmms.PlantInfo, low: float, high: float, most: int, unit: str = ""
) -> ChannelMap:
    """The map that was configured, or, for none, channels 1, 2, ... to the plant's actuators in their order.

    low, high   what a channel's value is at an actuator's lower and upper limit
    most        channels that there are
    ModelError where a channel is no number from 1 to most, an actuator is not the plant's, or has no limits to map to.
    """
    if not entries:
        entries = tuple(_made(str(i), actuator, low, high) for i, actuator in enumerate(plant.actuators[:most], 1))
    made = ChannelMap(entries)
    for entry in made.entries:
        if not (entry.channel.isdecimal() and 1 <= int(entry.channel) <= most):
            raise rtmms.ModelError(f"channels: expected a channel from 1 to {most}, got '{entry.channel}'")
    numbers = [int(entry.channel) for entry in made.entries]  # '1' and '01' are one
    twice = next((n for n in numbers if numbers.count(n) > 1), None)
    if twice is not None:
        raise rtmms.ModelError(f"channels: channel {twice} stands in it twice")
    if len(plant.actuators) > most and set(plant.granted) > set(made.actuators):
        raise rtmms.ModelError(
            f"channels: there are {most}, and {len(plant.granted)} actuators would be claimed: say which channel "
            "drives which (channels=...)"
        )
    made.check(plant)
    return made


def _made(channel: str, actuator: rtmms.Channel, low: float, high: float) -> ChannelMapping:
    if actuator.lower is None or actuator.upper is None or not 0 < actuator.upper - actuator.lower < inf:
        raise rtmms.ModelError(
            f"channels: actuator '{actuator.name}' has no limits to map {low:g} ... {high:g} to: say which channel "
            f"drives it, and how (channels={channel}:{actuator.name}:SCALE:TRIM)"
        )
    scale = (actuator.upper - actuator.lower) / (high - low)
    return ChannelMapping(channel=channel, actuator=actuator.name, scale=scale, trim=low - actuator.lower / scale)
