"""DBC file of a robot without one: each output and each actuator as a float of 32 bits.

Commands have one actuator a message, with a counter and a checksum, from the first identifier on. Outputs have two
numbers a message, from the identifier 0x100 above it. The order is the plant's, so that the same robot has the same
file.
"""

from __future__ import annotations

import re
from math import isfinite, prod
from typing import Any

from rtmms.base.errors import ModelError
from rtmms.wire.protocol.received_state import PlantInfo

_OUTPUTS_FROM = 0x100
_COUNTER = "Counter"
_CHECKSUM = "Checksum"


class RobotDbc:
    """Contents of a plant's file.

    Parameters
    ----------
    plant : PlantInfo
        The plant.
    first : int
        First identifier.
    cycle_ms : int
        Cycle of the messages, ms.

    Attributes
    ----------
    text : str
        The file.
    signals : dict of str to str
        Field of the plant's outputs for each MESSAGE.SIGNAL.
    channels : dict of str to str
        Actuator for each MESSAGE.SIGNAL.

    Raises
    ------
    ModelError
        If the plant has too many actuators or outputs.
    """

    def __init__(self, plant: PlantInfo, first: int, cycle_ms: int) -> None:
        from cantools.database.can import Database, Message, Node, Signal
        from cantools.database.conversion import BaseConversion

        self._names: set[str] = set()
        self.signals: dict[str, str] = {}
        self.channels: dict[str, str] = {}
        number = BaseConversion.factory(is_float=True)
        messages = []
        for i, channel in enumerate(plant.actuators):
            name, signal = self._name(f"Command_{channel.name}"), _identifier(channel.name)
            self.channels[f"{name}.{signal}"] = channel.name
            ends = [end if end is not None and isfinite(end) else None for end in (channel.lower, channel.upper)]
            value = Signal(signal, 0, 32, is_signed=True, conversion=number, unit=channel.unit or None,
                           minimum=ends[0], maximum=ends[1], receivers=["Robot"])  # fmt: skip
            count = Signal(_COUNTER, 32, 8, receivers=["Robot"])
            check = Signal(_CHECKSUM, 40, 8, receivers=["Robot"])
            messages.append(Message(
                first + i, name, 6, [value, count, check], senders=["Controller"], cycle_time=cycle_ms,
                comment=f"Actuator {channel.name}",
            ))  # fmt: skip
        at = first + _OUTPUTS_FROM
        if len(plant.actuators) > _OUTPUTS_FROM:
            raise ModelError(
                f"dbc: expected at most {_OUTPUTS_FROM} actuators for a generated file, got "
                f"{len(plant.actuators)}; write a DBC file and give dbc=FILE.dbc"
            )
        for channel in plant.outputs:
            if channel.name not in plant.selected:
                continue
            size = prod(channel.shape) if channel.shape else 1
            fields = [f"{channel.name}[{k}]" for k in range(size)] if channel.shape else [channel.name]
            for part in range(0, size, 2):
                pair = fields[part : part + 2]
                name = self._name(channel.name if size <= 2 else f"{channel.name}_{part // 2}")
                signals = []
                for k, field in enumerate(pair):
                    signal = _identifier(channel.name) + (f"_{part + k}" if channel.shape else "")
                    self.signals[f"{name}.{signal}"] = field
                    signals.append(Signal(signal, 32 * k, 32, is_signed=True, conversion=number,
                                          unit=channel.unit or None, receivers=["Controller"]))  # fmt: skip
                comment = f"Output {channel.name}" + (f", {channel.frame} frame" if channel.frame else "")
                messages.append(Message(at, name, 4 * len(pair), signals, senders=["Robot"], cycle_time=cycle_ms,
                                        comment=comment))  # fmt: skip
                at += 1
        if at > 0x800:
            raise ModelError(
                f"dbc: the identifiers {first:#x} to {at - 1:#x} exceed 11 bits; select fewer outputs with outputs="
            )
        nodes = [Node("Robot", f"{plant.robot}, simulated"), Node("Controller", "whoever drives it")]
        database: Any = Database(messages, nodes=nodes, version="")
        self.text: str = database.as_dbc_string()

    def _name(self, text: str) -> str:
        """Return a name that no message has yet."""
        name = built = _identifier(text)
        n = 2
        while built in self._names:
            built, n = f"{name}_{n}", n + 1
        self._names.add(built)
        return built


def _identifier(text: str) -> str:
    """Return a text as an identifier of C."""
    name = re.sub(r"\W", "_", text, flags=re.ASCII)
    return name if not name[:1].isdigit() else f"_{name}"
