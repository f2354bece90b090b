"""Coordinates of the manta's state: body, what the coupling remembers, rods, and every joint of both fins."""

from __future__ import annotations

import math

import numpy as np

from rtmms.analysis.chart import displaced, displacement
from rtmms.errors import ModelError
from rtmms.robots.manta.coupling import layout as lay
from rtmms.robots.manta.coupling.interface import move_supports
from rtmms.robots.manta.kernels.fin_layout import LANES
from rtmms.robots.manta.kernels.rods import ROD_SIZE, SERVO
from rtmms.robots.manta.kernels.servo import servo_acceleration
from rtmms.robots.manta.model import MantaModel
from rtmms.robots.manta.parameters import RODS_NAMES, MantaParameters
from rtmms.spatial import Array

FLAP_RAD_S = 2.0 * math.pi
"""Rates count as one at this times the size of what they are rates of."""


class MantaChart:
    """A `rtmms.analysis.chart.Chart` of a manta around its present state.

    Body (not where it is held): position error e and attitude error theta in body axes (p = p_ref + R_ref e,
    R = R_ref exp theta^), twist; with the sequential coupling also the acceleration that the fins see a step late. Each
    rod: angle, rate and last command of a servo; of ideal motors angle, last command and the one before it, which
    decide the rest. Then all joint angles (fin, link, chain), and their rates.
    """

    def __init__(self, parameters: MantaParameters, model: MantaModel, state: Array) -> None:
        """model and state (state_size,): the arrays that the plant itself steps with."""
        p, finned = parameters, model.finned
        self.parameters, self.finned, self.state, self.origin = p, finned, state, state.copy()
        self._free, self._lagged = p.body != "fixed", int(finned.coupling) == lay.SEQUENTIAL
        self._servo = int(finned.actuation) == SERVO
        names: list[str] = []
        size: list[float] = []
        if self._free:
            names += [f"{axis}_error" for axis in ("x", "y", "z", "roll", "pitch", "yaw")]
            names += ["vx", "vy", "vz", "wx", "wy", "wz"]
            size += [0.1] * 3 + [1.0] * 3 + [0.1 * FLAP_RAD_S] * 3 + [FLAP_RAD_S] * 3
            if self._lagged:
                names += [f"last_{rate}" for rate in ("ax", "ay", "az", "wdx", "wdy", "wdz")]
                size += [0.1 * FLAP_RAD_S**2] * 3 + [FLAP_RAD_S**2] * 3
        for rod in RODS_NAMES:
            names += [f"{rod}.{word}" for word in _ROD_WORDS[self._servo]]
            size += [1.0, FLAP_RAD_S if self._servo else 1.0, 1.0]
        joints = [f"{side}[{j},{i}]" for side in ("left", "right") for j in range(p.links) for i in range(p.chains)]
        names += joints + [f"{joint}.rate" for joint in joints]
        size += [1.0] * len(joints) + [FLAP_RAD_S] * len(joints)
        self.names, self.size = tuple(names), np.array(size)
        self._rods = _ROD_ENTRIES[self._servo]
        self._here = np.zeros(len(names))
        self._here = self.read()

    def read(self) -> Array:
        """(k,) coordinates of the plant's present state."""
        s, parts = self.state, []
        if self._free:
            o = self.origin
            parts.append(displacement(o[lay.POSITION : lay.QUATERNION + 4], s[lay.POSITION : lay.QUATERNION + 4]))
            parts.append(s[lay.TWIST : lay.TWIST + 6])
            if self._lagged:
                parts.append(s[lay.ACCELERATION : lay.ACCELERATION + 6])
        rods = s[lay.RODS : lay.RODS + 4 * ROD_SIZE].reshape(4, ROD_SIZE)
        parts.append(rods[:, self._rods].ravel())
        both = self._blocked().transpose(3, 0, 2, 1, 4)  # angle or rate, fin, link, block, lane
        both = both.reshape(2, 2, self.parameters.links, -1)[..., : self.parameters.chains]
        parts.append(both.ravel())
        found: Array = np.concatenate(parts) - self._here
        return found

    def write(self, coordinates: Array) -> None:
        """Put the manta there; supports and surplus lanes follow. ModelError where the rods make them singular."""
        c, s, at = coordinates + self._here, self.state, 0
        if self._free:
            s[lay.POSITION : lay.QUATERNION + 4] = displaced(self.origin[lay.POSITION : lay.QUATERNION + 4], c[:6])
            s[lay.TWIST : lay.TWIST + 6] = c[6:12]
            at = 12
            if self._lagged:
                s[lay.ACCELERATION : lay.ACCELERATION + 6] = c[12:18]
                at = 18
        rods = s[lay.RODS : lay.RODS + 4 * ROD_SIZE].reshape(4, ROD_SIZE)
        rods[:, self._rods] = c[at : at + 12].reshape(4, 3)
        self._follow(rods)
        q, qd = np.split(c[at + 12 :], 2)
        self._lanes(np.stack([q, qd]))
        if not move_supports(self.finned, s, lay.RODS, ROD_SIZE, s, lay.SUPPORTS):
            raise ModelError("manta: the support is singular at these rod angles")

    def _follow(self, rods: Array) -> None:
        """The rest of each rod's five numbers from the three that decide."""
        if self._servo:
            omega, zeta, _, _, rate, acceleration = (float(v) for v in self.finned.servo)
            for rod in rods:
                rod[2] = servo_acceleration(rod[0], rod[1], rod[3], omega, zeta, rate, acceleration)
            return
        dt, last, before = float(self.finned.dt), rods[:, 3], rods[:, 4]
        third = 6.0 * rods[:, 0] - 4.0 * before - last  # the spline's oldest control point
        rods[:, 1], rods[:, 2] = (last - third) / (2.0 * dt), (last - 2.0 * before + third) / dt**2

    def _lanes(self, joints: Array) -> None:
        """joints (2, 2 fins x links x chains) of angles and rates into the lanes; surplus ones repeat the last."""
        p, lanes = self.parameters, self._blocked()
        both = joints.reshape(2, 2, p.links, p.chains)
        surplus = lanes.shape[1] * LANES - p.chains
        padded = np.pad(both, ((0, 0), (0, 0), (0, 0), (0, surplus)), mode="edge")
        lanes[:] = padded.reshape(2, 2, p.links, -1, LANES).transpose(1, 3, 2, 0, 4)

    def _blocked(self) -> Array:
        """(fin, block, link, angle or rate, lane), a view of the state."""
        joints: Array = self.state[lay.FINS :].reshape(2, -1, self.parameters.links, 2, LANES)
        return joints


_ROD_WORDS = {True: ("angle", "rate", "last"), False: ("angle", "last", "before")}
_ROD_ENTRIES = {True: [0, 1, 3], False: [0, 3, 4]}
