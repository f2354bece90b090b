"""Parameters of MAVLink's parameter protocol, with names of at most 16 letters: the bridge's own, and the plant's."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

MAX_NAME_LENGTH = 16
MAX_VALUE = 3.4028234e38
"""Largest number of the protocol (float32); larger ones are not sent, because no station could set them."""


@dataclass
class Parameter:
    """Parameter of the protocol.

    Parameters
    ----------
    name : str
        Its name.
    value : float
        Its value.
    change : Callable[[float], None] | None, optional
        Accepts a new value, and raises ValueError if it is out of range. None: it cannot be changed.
    plant : str, default ''
        Its name in the plant; empty for the bridge's own.
    """

    name: str
    value: float
    change: Callable[[float], None] | None = None
    plant: str = ""


class Parameters:
    """All parameters in a fixed order, in which the protocol's indices count."""

    def __init__(self) -> None:
        self.all: list[Parameter] = []
        self._by_name: dict[str, Parameter] = {}

    def add(self, parameter: Parameter) -> None:
        """Add a parameter.

        Parameters
        ----------
        parameter : Parameter
            The parameter.
        """
        self._by_name[parameter.name] = parameter
        self.all.append(parameter)

    def add_plant(self, values: Mapping[str, Any], change: Callable[[Parameter, float], None]) -> None:
        """Add the plant's numbers and flags; longer names are cut, and numbered if two become equal.

        Parameters
        ----------
        values : Mapping[str, Any]
            Values by name.
        change : Callable[[Parameter, float], None]
            Called with a parameter and its new value.
        """
        for name in sorted(values):
            value = values[name]
            if isinstance(value, bool | int | float) and abs(value) <= MAX_VALUE:  # no NaN either
                built = Parameter(self._short(name), float(value), plant=name)
                built.change = lambda new, created=built: change(created, new)
                self.add(built)

    def find(self, name: str, index: int) -> Parameter | None:
        """Return a parameter by index if that is not negative, else by name.

        Parameters
        ----------
        name : str
            Its name.
        index : int
            Its index.

        Returns
        -------
        Parameter | None
            The parameter; None for none.
        """
        if index >= 0:
            return self.all[index] if index < len(self.all) else None
        return self._by_name.get(name)

    def index(self, parameter: Parameter) -> int:
        """Return the index of a parameter.

        Parameters
        ----------
        parameter : Parameter
            The parameter.

        Returns
        -------
        int
            The index.
        """
        return self.all.index(parameter)

    def _short(self, name: str) -> str:
        short, number = name[:MAX_NAME_LENGTH], 1
        while short in self._by_name:
            number += 1
            end = f"~{number}"
            short = name[: MAX_NAME_LENGTH - len(end)] + end
        return short
