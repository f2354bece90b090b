"""Channel maps from the plant alone: by its airframe, or channel i to actuator i, each over its limits."""

from __future__ import annotations

from math import inf

import rtmms
from rtmms.bridging.channels import ChannelMap, ChannelMapping

from .airframes import Autopilot, outputs_of


def map_channels(
    entries: tuple[ChannelMapping, ...],
    plant: rtmms.PlantInfo,
    autopilot: Autopilot,
    low: float,
    high: float,
    maximum: int,
    stop: float | None = None,
) -> ChannelMap:
    """Return the configured map, or else one of the plant's airframe, or of the order of its actuators.

    Parameters
    ----------
    entries : tuple[ChannelMapping, ...]
        Map of the configuration; empty for none.
    plant : rtmms.PlantInfo
        Plant with its actuators and its airframe.
    autopilot : Autopilot
        Autopilot with these channels as outputs.
    low, high : float
        Values of a channel at an actuator's lower and upper limit.
    maximum : int
        Number of channels.
    stop : float | None, optional
        Value of a channel at the lower limit of an actuator with lower limit 0, such as a rotor; None: `low`.

    Returns
    -------
    ChannelMap
        The map.

    Raises
    ------
    ModelError
        If a channel is no number from 1 to `maximum`, an actuator is not the plant's, or it has no limits to map to.
    """
    if not entries:
        lows = {actuator.name: low if stop is None or actuator.lower != 0.0 else stop for actuator in plant.actuators}
        ready = outputs_of(plant.airframe, autopilot)
        ordered = [plant.actuator(name) for name in ready] if set(ready) <= set(lows) and ready else plant.actuators
        entries = tuple(
            _map_channel(str(i), actuator, lows[actuator.name], high) for i, actuator in enumerate(ordered[:maximum], 1)
        )
    built = ChannelMap(entries)
    for entry in built.entries:
        if not (entry.channel.isdecimal() and 1 <= int(entry.channel) <= maximum):
            raise rtmms.ModelError(f"channels: expected a channel from 1 to {maximum}, got '{entry.channel}'")
    numbers = [int(entry.channel) for entry in built.entries]  # '1' and '01' are one
    twice = next((n for n in numbers if numbers.count(n) > 1), None)
    if twice is not None:
        raise rtmms.ModelError(f"channels: channel {twice} is listed twice")
    if len(plant.actuators) > maximum and set(plant.granted) > set(built.actuators):
        raise rtmms.ModelError(
            f"channels: expected at most {maximum} actuators, got a claim of {len(plant.granted)}; give "
            "channels=CHANNEL:ACTUATOR,... to choose"
        )
    built.check(plant)
    return built


def _map_channel(channel: str, actuator: rtmms.Channel, low: float, high: float) -> ChannelMapping:
    if actuator.lower is None or actuator.upper is None or not 0 < actuator.upper - actuator.lower < inf:
        raise rtmms.ModelError(
            f"channels: actuator '{actuator.name}': expected limits, to which pulses of {low:g} to {high:g} map, got "
            f"none; give channels={channel}:{actuator.name}:SCALE:TRIM"
        )
    scale = (actuator.upper - actuator.lower) / (high - low)
    return ChannelMapping(channel=channel, actuator=actuator.name, scale=scale, trim=low - actuator.lower / scale)
