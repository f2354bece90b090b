"""Readings of an ideal accelerometer and gyroscope fixed to the body, from the robot's motion."""

from __future__ import annotations

from rtmms.base.attitude import Vector, rotate_back
from rtmms.wire.protocol.received_state import PlantInfo

from .frames import GRAVITY, flu_frd
from .pose import Motion


def gravity_of(plant: PlantInfo) -> float:
    """Return the plant's gravity downwards, or the standard one if it has none.

    Parameters
    ----------
    plant : PlantInfo
        The plant.

    Returns
    -------
    float
        Gravity, m/s2.
    """
    return -plant.gravity[2]


class Imu:
    """Specific force and angular velocity at the plant's point of reference.

    If the plant sends no acceleration, it is the difference of the last two velocities over their time. That is the
    mean over the interval, half an interval late, and 0 for the first state and after a reset.

    Parameters
    ----------
    gravity : float, default GRAVITY
        Gravity downwards, m/s2.
    """

    def __init__(self, gravity: float = GRAVITY) -> None:
        self.gravity = gravity
        self._before: Motion | None = None

    def specific_force(self, motion: Motion) -> Vector:
        """Return acceleration less gravity: at rest and level (0, 0, +9.81); call it once a state.

        Parameters
        ----------
        motion : Motion
            Motion of the robot.

        Returns
        -------
        Vector
            Specific force, m/s2, body FLU.
        """
        a = motion.acceleration if motion.acceleration is not None else self._difference(motion)
        self._before = motion
        up = rotate_back(motion.attitude, (0.0, 0.0, self.gravity))  # f = a - g, g = (0, 0, -9.81) in the world
        return a[0] + up[0], a[1] + up[1], a[2] + up[2]

    def frd(self, motion: Motion) -> tuple[Vector, Vector]:
        """Return specific force (at rest and level (0, 0, -9.81)) and angular velocity.

        Parameters
        ----------
        motion : Motion
            Motion of the robot.

        Returns
        -------
        tuple[Vector, Vector]
            Specific force, m/s2, and angular velocity, rad/s, both FRD.
        """
        return flu_frd(self.specific_force(motion)), flu_frd(motion.rate)

    def _difference(self, motion: Motion) -> Vector:
        before = self._before
        if before is None or motion.time <= before.time:
            return 0.0, 0.0, 0.0
        over = 1.0 / (motion.time - before.time)
        v, u = motion.velocity, before.velocity  # world components: no transport term
        return rotate_back(motion.attitude, ((v[0] - u[0]) * over, (v[1] - u[1]) * over, (v[2] - u[2]) * over))
