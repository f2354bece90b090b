"""Where a run branched from a recorded one: the state it began with, so that its own log stands alone."""

from __future__ import annotations

import base64
import binascii
import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rtmms.contract import LAST_STEP
from rtmms.errors import ModelError
from rtmms.input_file import open_input

if TYPE_CHECKING:
    from rtmms.plant import Plant

_PIECE = 1 << 20
_MOST_GENERATIONS = 1000


@dataclass(frozen=True)
class Branch:
    """The beginning of a run that goes on from a log.

    log, sha256   its name as the user gave it, and the hash of its bytes
    seconds       simulated time at which the run begins;  step  the same in steps: the first one that it takes
    state         the plant's snapshot there;  values  what requests had set by then, by name
    before        where the log itself had branched from, the nearest first: log, sha256, seconds of each
    """

    log: str
    sha256: str
    seconds: float
    step: int
    state: bytes
    values: Mapping[str, Any] = field(default_factory=dict)
    before: tuple[Mapping[str, Any], ...] = ()

    def told(self) -> dict[str, Any]:
        """For reports and `rtmms log info`: without the state."""
        own = {"log": self.log, "sha256": self.sha256, "seconds": self.seconds, "step": self.step}
        return {**own, "set": dict(self.values), "before": [dict(one) for one in self.before]}

    def as_data(self) -> dict[str, Any]:
        """JSON's own types, for origin.json."""
        return {**self.told(), "state": base64.b64encode(self.state).decode()}

    def begin(self, plant: Plant) -> None:
        """Bring a plant that was reset with the run's seed to where the run began; ModelError where it is another."""
        if self.values:
            plant.set(**self.values)  # type: ignore[attr-defined]
        plant.restore(self.state)


def sha256_of(path: Path) -> str:
    """Of a file's bytes, in hexadecimal."""
    found = hashlib.sha256()
    with open_input(path) as file:
        while piece := file.read(_PIECE):
            found.update(piece)
    return found.hexdigest()


def branch_of(origin: Mapping[str, Any]) -> Branch | None:
    """What a log says of its beginning (checked by `refuse_branch`); None of a run from t = 0."""
    told = origin.get("branch")
    if told is None:
        return None
    state = base64.b64decode(told["state"], validate=True)
    return Branch(
        told["log"], told["sha256"], float(told["seconds"]), told["step"], state, told["set"], tuple(told["before"])
    )  # fmt: skip


def refuse_branch(origin: Mapping[str, Any], place: str) -> None:
    """ModelError where the log's `branch` is not of the form that a run writes."""
    told = origin.get("branch")
    if told is None:
        return

    def expect(holds: bool, name: str, expected: str) -> None:
        if not holds:
            got = told.get(name) if isinstance(told, dict) else told
            raise ModelError(f"{place}: branch: {name}: expected {expected}, got {got!r:.60}")

    expect(isinstance(told, dict), "branch", "a table or null")
    step, before = told.get("step"), told.get("before")
    _expect_place(told, expect)
    expect(type(step) is int and 0 <= step <= LAST_STEP, "step", "the number of a step")
    expect(isinstance(told.get("set"), dict), "set", "a table")
    expect(isinstance(before, list) and len(before) <= _MOST_GENERATIONS, "before", "a list of branches")
    for one in before:
        expect(isinstance(one, dict), "before", "a list of branches")
        _expect_place(one, expect)
    try:
        base64.b64decode(told.get("state"), validate=True)
    except (TypeError, ValueError, binascii.Error):
        expect(False, "state", "a snapshot (base64 text)")


def _expect_place(told: Mapping[str, Any], expect: Any) -> None:
    seconds, log, hashed = told.get("seconds"), told.get("log"), told.get("sha256")
    number = isinstance(seconds, int | float) and not isinstance(seconds, bool) and math.isfinite(seconds)
    expect(number and seconds >= 0, "seconds", "a number >= 0")  # type: ignore[operator]
    expect(isinstance(log, str), "log", "text")
    expect(isinstance(hashed, str) and len(hashed) == 64, "sha256", "64 hexadecimal digits")
