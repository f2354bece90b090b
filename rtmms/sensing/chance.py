"""Random numbers that carry no state: each is a function of a seed, a stream and a count.

A run that is restored, or paced in another way, draws the same ones.

The mixing function is SplitMix64's (Steele, Lea and Flood, 2014); normal numbers are Box and Muller's.
"""

from __future__ import annotations

import numpy as np

from rtmms.jit import kernel

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_FIRST = np.uint64(0xBF58476D1CE4E5B9)
_SECOND = np.uint64(0x94D049BB133111EB)
_30, _27, _31, _11 = np.uint64(30), np.uint64(27), np.uint64(31), np.uint64(11)
_UNIT = 1.0 / 9007199254740992.0  # 2^-53


@kernel
def mixed(x: np.uint64) -> np.uint64:
    """A bijection of 64 bits in which each bit of x moves half of the others."""
    x = (x ^ (x >> _30)) * _FIRST
    x = (x ^ (x >> _27)) * _SECOND
    return x ^ (x >> _31)


@kernel
def uniform(seed: int, stream: int, count: int) -> float:
    """In (0, 1)."""
    x = mixed(np.uint64(seed) + _GOLDEN)
    x = mixed(x ^ (np.uint64(stream) * _GOLDEN))
    x = mixed(x + np.uint64(count) * _GOLDEN)
    return (float(x >> _11) + 0.5) * _UNIT


@kernel
def normal(seed: int, stream: int, count: int) -> float:
    """Of mean 0 and variance 1."""
    radius = np.sqrt(-2.0 * np.log(uniform(seed, stream, 2 * count)))
    return float(radius * np.cos(2.0 * np.pi * uniform(seed, stream, 2 * count + 1)))
