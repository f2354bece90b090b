"""Provide cheaper variants of a manta (a cheaper coupling, then fewer chains), and the transfer of a state."""

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

MIN_CHAINS = LANES
"""Smallest number of chains of a fin: one block; fewer cost the same."""
MAX_VARIANTS = 4
JOINTS = ("joint_position", "joint_velocity")


class Mantas(Protocol):
    """A manta or a variant whose state is read and written.

    Attributes
    ----------
    parameters : MantaParameters
        Parameters.
    model : MantaModel
        Compiled manta.
    """

    parameters: MantaParameters
    model: Any
    _state: Array

    def _settle(self) -> int: ...


def cheaper(parameters: MantaParameters, coupling: str) -> list[tuple[MantaParameters, str, str]]:
    """Return parameters, coupling, and a description of each variant, cheaper from one to the next.

    Parameters
    ----------
    parameters : MantaParameters
        Parameters of the full model.
    coupling : str
        Coupling of the full model.

    Returns
    -------
    list of (MantaParameters, str, str)
        At most MAX_VARIANTS.
    """
    result: list[tuple[MantaParameters, str, str]] = []
    if coupling != "sequential":
        result.append((parameters, "sequential", "coupling sequential"))
    chains = parameters.chains
    while chains > MIN_CHAINS and len(result) < MAX_VARIANTS:
        chains = max(MIN_CHAINS, LANES * round(chains / 2 / LANES))
        result.append((with_chains(parameters, chains), "sequential", f"{chains} chains"))
    return result


def with_chains(p: MantaParameters, chains: int) -> MantaParameters:
    """Return parameters of the same fins with another number of chains.

    Values that are given for each joint become those of the same material.

    Parameters
    ----------
    p : MantaParameters
        Parameters of the manta.
    chains : int
        New number of chains.

    Returns
    -------
    MantaParameters
        New parameters.
    """
    share = chains / p.chains
    damping = p.joint_damping_n_m_s / share if p.damping_per == "joint" else p.joint_damping_n_m_s
    return replace(
        p, chains=chains, joint_damping_n_m_s=damping, left_chains_lost=round(share * p.left_chains_lost),
        right_chains_lost=round(share * p.right_chains_lost),
    )  # fmt: skip


def carry_over(mantas: Mantas, other: Mantas) -> None:
    """Copy the state of another manta of the same robot.

    Body, rods and supports are copied unchanged. The momentum and the energy of the body therefore persist to the bit.
    Each fin keeps its shape: angles and rates of the joints are interpolated along the support, linearly between the
    chains' stations and beyond the outermost.

    Parameters
    ----------
    mantas : Mantas
        Manta that receives the state.
    other : Mantas
        Manta whose state is copied.
    """
    state, other_state = mantas._state, other._state
    joints = joints_of(other)
    if mantas.parameters.chains != other.parameters.chains:
        joints = interpolate_stations(other.model.station, mantas.model.station, joints)
    state[: lay.FINS] = other_state[: lay.FINS]
    state[words_of(mantas.parameters.links, mantas.parameters.chains)] = joints
    mantas._settle()  # lanes without a chain
    state[: lay.FINS] = other_state[: lay.FINS]


def joints_of(manta: Mantas) -> Array:
    """Return angles and rates of both fins.

    Parameters
    ----------
    manta : Mantas
        The manta.

    Returns
    -------
    (2, 2, links, chains) array
        (rate, fin, link, chain), rad and rad/s.
    """
    result: Array = manta._state[words_of(manta.parameters.links, manta.parameters.chains)]
    return result


@cache
def words_of(links: int, chains: int) -> npt.NDArray[np.int64]:
    """Return the index of the angle and of the rate of each fin's joints in the state.

    Parameters
    ----------
    links, chains : int
        Numbers of links of a chain, and of chains of a fin.

    Returns
    -------
    (2, 2, links, chains) array of int64
        (rate, fin, link, chain).
    """
    blocks = -(-chains // LANES)
    rate, fin, link, chain = np.ogrid[:2, :2, :links, :chains]
    row = (fin * blocks + chain // LANES) * links + link
    result: npt.NDArray[np.int64] = lay.FINS + (2 * row + rate) * LANES + chain % LANES
    return result


def interpolate_stations(stations: Array, wanted: Array, values: Array) -> Array:
    """Return values at other stations by linear interpolation, also beyond the ends.

    Parameters
    ----------
    stations : (n,) array
        Known stations, ascending.
    wanted : (k,) array
        Stations of the result.
    values : (..., n) array
        Values at the known stations.

    Returns
    -------
    (..., k) array
        Values at the wanted stations.
    """
    if len(stations) == 1:
        return np.repeat(values, len(wanted), axis=-1)
    at = np.clip(np.searchsorted(stations, wanted) - 1, 0, len(stations) - 2)
    share = (wanted - stations[at]) / (stations[at + 1] - stations[at])
    return np.ascontiguousarray(values[..., at] * (1.0 - share) + values[..., at + 1] * share)


def to_full_shapes(
    observed: dict[str, Array], channels: tuple[Channel, ...], stations: Array, wanted: Array
) -> dict[str, Array]:
    """Return outputs of a variant in the shapes of the full model.

    Parameters
    ----------
    observed : dict[str, array]
        Outputs of the variant; changed in place.
    channels : tuple[Channel, ...]
        Outputs of the full model.
    stations, wanted : array
        Stations of the variant's chains, and of the full model's.

    Returns
    -------
    dict[str, array]
        The same mapping.
    """
    for channel in channels:
        if channel.name in JOINTS and observed[channel.name].shape != channel.shape:
            observed[channel.name] = interpolate_stations(stations, wanted, observed[channel.name])
    return observed


class Variant:
    """A cheaper manta with the channels of the full one.

    Parameters
    ----------
    manta : Manta
        The cheaper manta.
    full : Manta
        The full manta.
    variant : str
        Description of the variant.
    """

    def __init__(self, manta: Any, full: Any, variant: str) -> None:
        self.manta, self._full, self.variant = manta, full, variant
        self.dt, self.actuators, self.outputs = full.dt, full.actuators, full.outputs
        self.compiled_step, self.finish_compiled_step, self.step = (
            manta.compiled_step, manta.finish_compiled_step, manta.step
        )  # fmt: skip
        self.reset, self.snapshot, self.restore = manta.reset, manta.snapshot, manta.restore
        self.copy_state_from(full)  # what a change needs is made here
        manta.reset()

    def observe(self) -> dict[str, Array]:
        """Return the outputs in the shapes of the full model.

        Returns
        -------
        dict[str, array]
            Outputs by name.
        """
        return to_full_shapes(self.manta.observe(), self.outputs, self.manta.model.station, self._full.model.station)

    def set(self, **values: Any) -> None:
        """Copy changed parameters from the full model, which has them already.

        Parameters
        ----------
        **values : object
            Parameters that changed.
        """
        parameters = with_chains(self._full.parameters, self.manta.parameters.chains)
        self.manta.set(**{name: getattr(parameters, name) for name in values})

    def copy_state_from(self, other: Any) -> None:
        """Continue from the state of the full manta or another variant (rtmms.plant.HasVariants).

        Parameters
        ----------
        other : Manta or Variant
            Plant whose state is copied.
        """
        carry_over(self.manta, getattr(other, "manta", other))
