"""Gaits by a word: 'circle:a=1,c1=0,c2=0', 'square:a=1', a robot's own name, or a file of shapes."""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Mapping

import numpy as np
import numpy.typing as npt

from rtmms.errors import ModelError, UnknownNameError
from rtmms.input_file import MIB, read_input_text
from rtmms.locomotion.paths import Path
from rtmms.locomotion.waves import Gait, Sines

MAX_BYTES = 16 * MIB
"""Of a file of shapes."""

Array = npt.NDArray[np.float64]


def _rectangle(a: float, b: float) -> Path:
    """From (0, 0) by a of the first, by b of the second, and both back in the same order."""
    return Path.polygon([[0.0, 0.0], [a, 0.0], [a, b], [0.0, b], [0.0, 0.0]])


FORMS: dict[str, tuple[Callable[..., Path], dict[str, float]]] = {
    "circle": (lambda a, c1, c2: Path.circle(a, (c1, c2)), {"a": 1.0, "c1": 0.0, "c2": 0.0}),
    "square": (lambda a: Path.square(a), {"a": 1.0}),
    "rectangle": (_rectangle, {"a": 1.0, "b": 1.0}),
}
"""Of two shape variables: how each is made, and its parameters with their defaults."""


def gait_path(word: str, size: int, own: Mapping[str, Gait] | None = None) -> Path:
    """The path of a word, for a mechanism of `size` shape variables; own: the robot's gaits, {name: gait}.

    A file ends in .csv; its gait is closed by a straight line where its last shape is not its first. ModelError,
    UnknownNameError: the word, what is wrong, what is expected.
    """
    if word.lower().endswith(".csv"):
        return read_shapes(word, size)
    name, _, rest = word.partition(":")
    own = own or {}
    if name in own and not (rest and name in FORMS):
        if rest:
            raise ModelError(f"gait '{word}': '{name}' takes no parameters")
        found = own[name]
        if isinstance(found, Sines):
            return found.path(name, size)
        return found if isinstance(found, Path) else gait_path(found, size)
    if name not in FORMS:
        raise UnknownNameError("gait", name, [*own, *FORMS], "a file of shapes ends in .csv")
    make, defaults = FORMS[name]
    if size != 2:
        raise ModelError(f"gait '{word}': a {name} is of 2 shape variables, the robot has {size}: give a FILE.csv")
    return make(**{**defaults, **_numbers(word, name, rest, defaults)})


def _numbers(word: str, name: str, rest: str, known: Mapping[str, float]) -> dict[str, float]:
    found: dict[str, float] = {}
    for part in rest.split(",") if rest else ():
        key, equals, text = (piece.strip() for piece in part.partition("="))
        if not equals or not key:
            raise ModelError(f"gait '{word}': expected {name}:key=value,..., got '{part}'")
        if key not in known:
            raise UnknownNameError(f"parameter of gait '{name}'", key, known)
        if key in found:
            raise ModelError(f"gait '{word}': {key} is given twice")
        try:
            found[key] = float(text)
        except ValueError:
            found[key] = math.nan
        if not math.isfinite(found[key]):
            raise ModelError(f"gait '{word}': {key} must be a finite number, got '{text}'")
        if key not in ("c1", "c2") and found[key] == 0.0:
            raise ModelError(f"gait '{word}': {key} must not be 0")
    return found


MAX_SHAPES = 100_000
"""Of a file of shapes."""


def read_shapes(name: str, size: int) -> Path:
    """A file of shapes, one a line, `size` numbers each, joined by straight lines in equal times; its first line may be
    a heading. ModelError naming file and line."""
    text = read_input_text(name, place="gait", max_bytes=MAX_BYTES, expected="a table of shapes in UTF-8")
    rows: list[Array] = []
    for number, cells in enumerate(csv.reader(text.splitlines()), 1):
        if not any(cell.strip() for cell in cells):
            continue
        try:
            row = np.array([float(cell) for cell in cells])
        except ValueError:
            if not rows and number == 1:
                continue  # a heading
            raise ModelError(f"gait '{name}' line {number}: expected {size} numbers, got '{','.join(cells)}'") from None
        if len(row) != size or not np.isfinite(row).all():
            raise ModelError(f"gait '{name}' line {number}: expected {size} finite numbers, got '{','.join(cells)}'")
        if len(rows) >= MAX_SHAPES:
            raise ModelError(f"gait '{name}': expected at most {MAX_SHAPES} shapes, got more")
        rows.append(row)
    if len(rows) < 2:
        raise ModelError(f"gait '{name}': expected at least 2 shapes, got {len(rows)}")
    if np.max(np.abs(rows[-1] - rows[0])) > 1e-9:
        rows.append(rows[0])
    return Path.polygon(rows)


def keep_limits(path: Path, least: Array, greatest: Array, names: tuple[str, ...], word: str) -> None:
    """ModelError where a gait leaves the limits of a joint, naming it and the shape."""
    shapes = path.sampled(720)
    for k, name in enumerate(names):
        low, high = float(shapes[:, k].min()), float(shapes[:, k].max())
        if low < least[k] - 1e-9 or high > greatest[k] + 1e-9:
            got = high if high > greatest[k] + 1e-9 else low
            raise ModelError(
                f"gait '{word}': joint '{name}' would move to {got:.6g}, beyond its limits {least[k]:.6g} to "
                f"{greatest[k]:.6g}"
            )
