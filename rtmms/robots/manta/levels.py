"""Cheaper variants of a manta: a cheaper coupling, then fewer chains; and how a state goes from one to another."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from rtmms.plant.protocol import Channel
from rtmms.robots.manta import layout as lay
from rtmms.robots.manta.fin_layout import LANES
from rtmms.robots.manta.parameters import MantaParameters

Array = npt.NDArray[np.float64]

FEWEST = LANES
"""Chains of a fin: what fills one block. Fewer cost the same."""
MOST_VARIANTS = 4
JOINTS = ("joint_position", "joint_velocity")


class Mantas(Protocol):
    """What the state of a manta, or of a variant, is read from and written to."""

    parameters: MantaParameters
    model: Any
    _state: Array

    def _settle(self) -> int: ...


def cheaper(parameters: MantaParameters, coupling: str) -> list[tuple[MantaParameters, str, str]]:
    """Parameters, coupling, and a few words of each variant, cheaper from one to the next."""
    found: list[tuple[MantaParameters, str, str]] = []
    if coupling != "sequential":
        found.append((parameters, "sequential", "coupling sequential"))
    chains = parameters.chains
    while chains > FEWEST and len(found) < MOST_VARIANTS:
        chains = max(FEWEST, LANES * round(chains / 2 / LANES))
        found.append((with_chains(parameters, chains), "sequential", f"{chains} chains"))
    return found


def with_chains(p: MantaParameters, chains: int) -> MantaParameters:
    """The same fins with another number of chains; what is given by the joint is that of the same material."""
    share = chains / p.chains
    damping = p.joint_damping_n_m_s / share if p.damping_per == "joint" else p.joint_damping_n_m_s
    return replace(
        p, chains=chains, joint_damping_n_m_s=damping, left_chains_lost=round(share * p.left_chains_lost),
        right_chains_lost=round(share * p.right_chains_lost),
    )  # fmt: skip


def carry_over(own: Mantas, other: Mantas) -> None:
    """The state of another manta of the same robot.

    Body, rods and supports are taken as they are, so that the momentum and the energy of the body stay to the bit. Each
    fin keeps its shape: angles and rates of the joints are interpolated along the support, linearly between the chains'
    stations and beyond the outermost.
    """
    state, given = own._state, other._state
    joints = joints_of(other)
    if own.parameters.chains != other.parameters.chains:
        joints = between(other.model.station, own.model.station, joints)
    state[: lay.FINS] = given[: lay.FINS]
    state[words_of(own.parameters.links, own.parameters.chains)] = joints
    own._settle()  # lanes without a chain
    state[: lay.FINS] = given[: lay.FINS]


def joints_of(manta: Mantas) -> Array:
    """(2, 2, links, chains): angles and rates of both fins."""
    found: Array = manta._state[words_of(manta.parameters.links, manta.parameters.chains)]
    return found


@cache
def words_of(links: int, chains: int) -> npt.NDArray[np.int64]:
    """(2, 2, links, chains): where the angle, and the rate, of each fin's joints stand in the state."""
    blocks = -(-chains // LANES)
    rate, fin, link, chain = np.ogrid[:2, :2, :links, :chains]
    row = (fin * blocks + chain // LANES) * links + link
    found: npt.NDArray[np.int64] = lay.FINS + (2 * row + rate) * LANES + chain % LANES
    return found


def between(stations: Array, wanted: Array, values: Array) -> Array:
    """Values (..., n) at stations (n,), at the wanted ones: linear, also beyond the ends."""
    if len(stations) == 1:
        return np.repeat(values, len(wanted), axis=-1)
    at = np.clip(np.searchsorted(stations, wanted) - 1, 0, len(stations) - 2)
    share = (wanted - stations[at]) / (stations[at + 1] - stations[at])
    return np.ascontiguousarray(values[..., at] * (1.0 - share) + values[..., at + 1] * share)


def as_full(seen: dict[str, Array], channels: tuple[Channel, ...], stations: Array, wanted: Array) -> dict[str, Array]:
    """Outputs of a variant in the shapes of the full model."""
    for channel in channels:
        if channel.name in JOINTS and seen[channel.name].shape != channel.shape:
            seen[channel.name] = between(stations, wanted, seen[channel.name])
    return seen


class Variant:
    """A cheaper manta with the channels of the full one."""

    def __init__(self, manta: Any, full: Any, variant: str) -> None:
        self.manta, self._full, self.variant = manta, full, variant
        self.dt, self.actuators, self.outputs = full.dt, full.actuators, full.outputs
        self.compiled_step, self.finish_compiled_step, self.step = (
            manta.compiled_step, manta.finish_compiled_step, manta.step
        )  # fmt: skip
        self.reset, self.snapshot, self.restore = manta.reset, manta.snapshot, manta.restore
        self.take_over(full)  # what a change needs is made here
        manta.reset()

    def observe(self) -> dict[str, Array]:
        """See Plant."""
        return as_full(self.manta.observe(), self.outputs, self.manta.model.station, self._full.model.station)

    def set(self, **given: Any) -> None:
        """The full model has them already."""
        own = with_chains(self._full.parameters, self.manta.parameters.chains)
        self.manta.set(**{name: getattr(own, name) for name in given})

    def take_over(self, other: Any) -> None:
        """See rtmms.plant.protocol.Degradable."""
        carry_over(self.manta, getattr(other, "manta", other))
