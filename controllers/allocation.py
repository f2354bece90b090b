"""Allocation of a wrench on a body to its thrusters, by the pseudo-inverse and within their limits.

    tau = B f,  f = B+ (a tau_hold + b tau_push)

Column i of B is the wrench of one newton of thruster i. a and b, at most 1, are the largest factors with which every
thruster stays within its limits. The first is a, of the wrench that holds the robot (depth and attitude), then b, of
the wrench that drives it. So a demand for speed never costs depth or heading (Fossen 2021, section 11.2, has the
pseudo-inverse).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

import rtmms

Array = npt.NDArray[np.float64]
AXES = ("surge", "sway", "heave", "roll", "pitch", "yaw")
"""Axes of a wrench on the body: force along x, y, z (N) and moment about them (N m), about the body's origin."""


class Allocation:
    """Thrusters of one body, from the table that the plant exposes (`thrusters` of its geometry, docs/view.md).

    Parameters
    ----------
    plant : rtmms.PlantInfo
        Plant with thrusters on its base.
    needed : tuple[str, ...]
        Axes of AXES that the thrusters must be able to push along, without any other wrench.
    controller : str
        Name of the controller, for its errors.

    Attributes
    ----------
    names : tuple of str
        (n,) channels of the thrusters.
    matrix, inverse : ndarray
        (6, n) wrench per newton, and its pseudo-inverse (n, 6).
    authority : ndarray
        (6,) N and N m: the largest wrench along each axis alone, the lesser of both senses.

    Raises
    ------
    ModelError
        The plant exposes no thrusters, or they cannot push along a needed axis.

    Notes
    -----
    Use in a controller:

        allocation = Allocation(plant, ("heave", "yaw"), "mine")
        commands = allocation.commands(hold=np.array([0.0, 0, 10, 0, 0, 0.5]), push=np.array([5.0, 0, 0, 0, 0, 0]))
    """

    def __init__(self, plant: rtmms.PlantInfo, needed: tuple[str, ...], controller: str) -> None:
        table = [thruster for thruster in plant.shape.get("thrusters", ()) if int(thruster.get("body", 0)) == 0]
        granted = [item for item in table if not plant.granted or item["actuator"] in plant.granted]
        if not granted:
            raise rtmms.ModelError(
                f"controller '{controller}': expected a plant with thrusters on its base, got {plant.robot} without; "
                "rtmms.model.Thruster makes one"
            )
        self.names = tuple(str(item["actuator"]) for item in granted)
        self.matrix = np.column_stack([_wrench(item) for item in granted])
        self.inverse: Array = np.asarray(np.linalg.pinv(self.matrix), dtype=float)
        channels = [plant.actuator(name) for name in self.names]
        self._laws = [_inverse_law(item, channel) for item, channel in zip(granted, channels, strict=True)]
        self._lower = np.array([float(thrusts[0]) for _, thrusts in self._laws])
        self._upper = np.array([float(thrusts[-1]) for _, thrusts in self._laws])
        product = self.matrix @ self.inverse
        for axis in needed:
            k = AXES.index(axis)
            if not np.allclose(product[:, k], np.eye(6)[k], atol=1e-6):
                raise rtmms.ModelError(
                    f"controller '{controller}': expected thrusters that can push along {axis} without other forces "
                    f"and moments, got {', '.join(self.names)} of {plant.robot}"
                )
        self.authority = np.array([min(self._largest(e), self._largest(-e)) for e in np.eye(6)])

    def thrusts(self, hold: Array, push: Array) -> Array:
        """Return the thrusts of two wrenches: `hold` as far as possible, then `push`.

        Parameters
        ----------
        hold, push : Array
            (6,) N and N m, body.

        Returns
        -------
        Array
            (n,) N.
        """
        first = self.inverse @ hold
        first *= min(1.0, self._room(first, np.zeros(len(first))))
        second = self.inverse @ push
        return np.clip(first + min(1.0, self._room(second, first)) * second, self._lower, self._upper)

    def commands(self, hold: Array, push: Array) -> dict[str, float]:
        """Return the command of each thruster: the inverse of its curve at `thrusts`.

        Parameters
        ----------
        hold, push : Array
            (6,) N and N m, body.

        Returns
        -------
        dict[str, float]
            Commands by actuator.
        """
        out = {}
        for name, thrust, (command, curve) in zip(self.names, self.thrusts(hold, push), self._laws, strict=True):
            out[name] = float(np.interp(thrust, curve, command)) if abs(thrust) > 1e-9 else 0.0
        return out

    def _largest(self, wrench: Array) -> float:
        thrusts = self.inverse @ wrench
        return self._room(thrusts, np.zeros(len(thrusts))) if np.any(np.abs(thrusts) > 1e-9) else 0.0

    def _room(self, thrusts: Array, used: Array) -> float:
        """Return the largest factor, >= 0, with which thrusts may be added to used ones within the limits."""
        ends = np.where(thrusts > 0.0, self._upper, self._lower) - used
        large = np.abs(thrusts) > 1e-12
        return max(0.0, float(np.min(ends[large] / thrusts[large]))) if large.any() else np.inf


def _wrench(item: Mapping[str, Any]) -> Array:
    """Return the wrench (6,) of a newton of a thruster about the body's origin."""
    place, direction = np.asarray(item["position"], dtype=float), np.asarray(item["direction"], dtype=float)
    return np.concatenate([direction, np.cross(place, direction) + float(item.get("moment", 0.0)) * direction])


def _inverse_law(item: Mapping[str, Any], channel: rtmms.Channel) -> tuple[Array, Array]:
    """Return commands within the channel's limits and their thrusts, N, both rising, through (0, 0)."""
    low = -1.0 if channel.lower is None else channel.lower
    high = 1.0 if channel.upper is None else channel.upper
    if "curve" in item:
        points = np.asarray(item["curve"], dtype=float)
        command = np.unique(np.clip(np.concatenate([points[:, 0], [low, high]]), low, high))
        thrust = np.interp(command, points[:, 0], points[:, 1])
    else:
        command = np.linspace(low, high, 201)
        thrust = float(item["coefficient"]) * np.abs(command) * command
    if thrust[-1] < thrust[0]:
        command, thrust = command[::-1], thrust[::-1]
    return command, np.maximum.accumulate(thrust)
