"""Parameters of a peer that can be changed while it runs, by `rtmms set PEER.PARAMETER=VALUE` through the plant."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import isfinite
from typing import Any

from rtmms.errors import ModelError, RtmmsError, UnknownNameError
from rtmms.wire.protocol.messages import Refused, read_settable

Change = Callable[[dict[str, Any]], None]


class Settable:
    """A link's. The values are in `values`, always the present ones.

    values   name to number, flag, text or None, as they are at first
    change   is told the new ones before they count, and may refuse them by raising ModelError or ValueError
    """

    def __init__(self, values: Mapping[str, Any], change: Change | None = None) -> None:
        self.values = dict(values)
        self._change = change
        try:
            read_settable({"settable": self.values})
        except Refused as fault:
            raise ModelError(f"settable: {fault}") from None

    def __bool__(self) -> bool:
        return bool(self.values)

    def take(self, message: Mapping[str, Any]) -> dict[str, Any]:
        """The answer to a plant's message `parameters`; the values count when it says so."""
        answer = {"type": "parameters", "id": message.get("id")}
        try:
            given = message.get("values")
            if type(given) is not dict:
                raise ModelError("values: expected a map")
            checked = {name: self._checked(name, value) for name, value in given.items()}
            if self._change is not None:
                self._change(checked)
        except (RtmmsError, ValueError, TypeError) as fault:
            return answer | {"ok": False, "error": str(fault)[:500] or type(fault).__name__}
        self.values.update(checked)
        return answer | {"ok": True, "settable": self.values}

    def _checked(self, name: str, value: Any) -> Any:
        """Of the kind of the present one; ModelError."""
        if name not in self.values:
            raise UnknownNameError("parameter", str(name), self.values)
        present = self.values[name]
        if isinstance(present, bool):
            if not isinstance(value, bool):
                raise ModelError(f"{name}: expected true or false, got {value!r}")
        elif isinstance(present, (int, float)) or present is None:
            if isinstance(value, bool) or not isinstance(value, (int, float)):
                if present is None and value in (None, "none"):
                    return None
                raise ModelError(f"{name}: expected a number, got {value!r}")
            if not isfinite(value):
                raise ModelError(f"{name}: expected a finite number, got {value}")
            if isinstance(present, float):
                return float(value)
        elif isinstance(present, str) and not isinstance(value, str):
            return str(value)  # a text of digits came as a number
        return value
