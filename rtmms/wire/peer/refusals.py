"""What a plant refused of a peer: kept, and told in the way that was asked for."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Collection, Mapping
from math import isfinite
from numbers import Real
from typing import Any

from rtmms.errors import ModelError, UnknownNameError
from rtmms.wire.protocol.errors import RefusedError

PRINT, RAISE, COLLECT = "print", "raise", "collect"
ERRORS = (PRINT, RAISE, COLLECT)
_KEPT = 32


class Refusals:
    """A link's.

    how   one of ERRORS;  all: the last ones as (code, text)
    """

    def __init__(self, how: str = COLLECT) -> None:
        self.how = how
        self.all: deque[tuple[str, str]] = deque(maxlen=_KEPT)
        self._told: set[str] = set()
        self._raised: RefusedError | None = None

    def add(self, code: str, text: str) -> None:
        """The plant said so."""
        self.all.append((code, text))
        if self.how == RAISE:
            self._raised = self._raised or RefusedError(text, code)
        elif self.how == PRINT and code not in self._told:
            self._told.add(code)
            print(f"rtmms: the plant refused: {text} (told once for each kind; link.errors has all)", file=sys.stderr)

    def due(self) -> None:
        """Raise what is to be raised, once."""
        raised, self._raised = self._raised, None
        if raised is not None:
            raise raised


def check_command(values: Mapping[str, Any], granted: Collection[str]) -> None:
    """Names that are this peer's to drive, and finite numbers; UnknownNameError, ModelError. What the plant would
    refuse, told where it was said."""
    for name, value in values.items():
        if name not in granted:
            raise UnknownNameError("actuator of yours", str(name), granted)
        if isinstance(value, bool) or not isinstance(value, Real) or not isfinite(value):
            raise ModelError(f"command: {name}: expected a finite number, got {value!r}")
