"""Pictures compared in shape: where the robot is and where the background, coarse enough for any graphics driver."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt

Mask = npt.NDArray[np.bool_]
CELL = 6
"""Pixels a side of a cell; one counts as the robot's where half of it is."""


def silhouette(picture: np.ndarray) -> Mask:
    """(height, width, 3) -> cells: what is dark blue, as the manta is, and darker than the water and its shadow."""
    robot = dark_blue(picture)
    high, wide = (n // CELL for n in robot.shape)
    share = robot[: high * CELL, : wide * CELL].reshape(high, CELL, wide, CELL).mean(axis=(1, 3))
    return np.asarray(share > 0.5)


def dark_blue(picture: np.ndarray) -> Mask:
    """(height, width) points of the manta's back."""
    r, g, b = (picture[..., k].astype(int) for k in range(3))
    return np.asarray((g < 105) & (b > r + 12))


def overlap(a: Mask, b: Mask) -> float:
    """Cells that both have over cells that one has, with one laid centre on centre upon the other."""
    high, wide = np.array(a.shape) + np.array(b.shape)
    laid = []
    for mask in (a, b):
        at = np.argwhere(mask)
        assert len(at), "nothing is seen"
        page = np.zeros((2 * high, 2 * wide), bool)
        page[tuple((at - np.round(at.mean(axis=0)).astype(int) + [high, wide]).T)] = True
        laid.append(page)
    return float((laid[0] & laid[1]).sum() / (laid[0] | laid[1]).sum())


def stored(path: Path) -> Mask:
    """A reference: a text of # and blanks."""
    rows = path.read_text(encoding="ascii").splitlines()
    return np.array([[mark == "#" for mark in row.ljust(max(map(len, rows)))] for row in rows])


def text(mask: Mask) -> str:
    """As it is kept: cut to what there is."""
    low, high = np.argwhere(mask).min(axis=0), np.argwhere(mask).max(axis=0) + 1
    cut = mask[low[0] : high[0], low[1] : high[1]]
    return "\n".join("".join("#" if item else " " for item in row).rstrip() for row in cut) + "\n"
