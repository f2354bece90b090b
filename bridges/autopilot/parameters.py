"""Numbers by names of at most 16 letters, for MAVLink's parameter protocol: the bridge's own, and the plant's."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

LONGEST = 16
LARGEST = 3.4028234e38
"""As numbers go there (float32). What is larger is not sent: no station could set it."""


@dataclass
class Parameter:
    """One of them. change: takes the new value, ValueError for one that is out of range; None: it cannot be changed.

    plant  its name in the plant, '' for the bridge's own
    """

    name: str
    value: float
    change: Callable[[float], None] | None = None
    plant: str = ""


class Parameters:
    """All of them in a fixed order, which the protocol's indices count in."""

    def __init__(self) -> None:
        self.all: list[Parameter] = []
        self._by_name: dict[str, Parameter] = {}

    def add(self, parameter: Parameter) -> None:
        self._by_name[parameter.name] = parameter
        self.all.append(parameter)

    def add_plant(self, values: Mapping[str, Any], change: Callable[[Parameter, float], None]) -> None:
        """The plant's numbers and flags. Longer names are cut, and numbered where two become the same."""
        for name in sorted(values):
            value = values[name]
            if isinstance(value, bool | int | float) and abs(value) <= LARGEST:  # no NaN either
                made = Parameter(self._short(name), float(value), plant=name)
                made.change = lambda new, made=made: change(made, new)
                self.add(made)

    def find(self, name: str, index: int) -> Parameter | None:
        """By index if that is not negative, else by name."""
        if index >= 0:
            return self.all[index] if index < len(self.all) else None
        return self._by_name.get(name)

    def index(self, parameter: Parameter) -> int:
        return self.all.index(parameter)

    def _short(self, name: str) -> str:
        short, number = name[:LONGEST], 1
        while short in self._by_name:
            number += 1
            end = f"~{number}"
            short = name[: LONGEST - len(end)] + end
        return short
