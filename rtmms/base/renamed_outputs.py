"""Old names of outputs, which programs may use for one minor version, with a warning."""

from __future__ import annotations

import warnings
from collections.abc import Container
from typing import Any

from rtmms.base.errors import RenamedWarning

RENAMED_OUTPUTS = {"lost": "dissipated_energy", "tendon_lost": "dissipated_energy"}
"""Old name of an output, and the name that replaced it in 0.3; the next version removes the old names."""


def present_output(name: str, known: Container[str], stacklevel: int = 2) -> str:
    """Return the present name of an output, with a warning for an old one.

    Parameters
    ----------
    name : str
        A name, with the prefix of a robot or of `truth` if the output has one.
    known : Container[str]
        Names of the plant's outputs.
    stacklevel : int, default 2
        Frames to the code that the warning names; 2 is the caller's caller.

    Returns
    -------
    str
        The name itself if the plant has that output, or no output of the new name.
    """
    prefix, dot, last = name.rpartition(".")
    new = RENAMED_OUTPUTS.get(last)
    if name in known or new is None or prefix + dot + new not in known:
        return name
    text = f"output {name} is {prefix + dot + new} now; the next version removes the old name"
    warnings.warn(text, RenamedWarning, stacklevel=stacklevel + 1)
    return prefix + dot + new


class OutputValues(dict[str, Any]):
    """Values of a plant's outputs by name; a look-up by an old name warns."""

    def __missing__(self, name: str) -> Any:
        """Return the output that replaced an old name."""
        new = present_output(name, self)
        if new == name:
            raise KeyError(name)
        return self[new]
