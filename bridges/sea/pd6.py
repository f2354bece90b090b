"""Doppler log's ensemble in Teledyne's PD6 format: lines of ASCII, each a colon, two letters and fields.

- :SA attitude: pitch (nose up), roll (left side up), heading, deg
- :TS yymmddHHMMSShh, salinity ppt, temperature deg C, depth of the transducer m, speed of sound m/s, self-test
- :BI over the bottom, instrument: X to the right, Y forward, Z up, error velocity, mm/s, and A (good) or V
- :BS ship: to the right, forward, up
- :BE earth: east, north, up
- :BD made good over the bottom: east, north, up, height over it, m; seconds since the last good velocity
"""

from __future__ import annotations

from rtmms.base.attitude import Vector

from ..motion.frames import to_integer
from .instruments import Attitude, Doppler, earth_velocity
from .sentences import Clock

_BAD = -32768
_SALINITY_PPT = 35.0


class Ensembles:
    """Writer of ensembles, which integrates the way made good.

    Parameters
    ----------
    clock : Clock
        UTC of simulated time.
    sound_m_s : float
        Speed of sound, m/s.
    """

    def __init__(self, clock: Clock, sound_m_s: float) -> None:
        self._clock, self._sound_m_s = clock, sound_m_s
        self._travelled_m = [0.0, 0.0, 0.0]
        self._good_at = self._at = 0.0

    def write(self, log: Doppler, attitude: Attitude, depth_m: float, celsius: float) -> str:
        """Return one ensemble.

        Parameters
        ----------
        log : Doppler
            Reading of the Doppler log.
        attitude : Attitude
            Attitude of the robot.
        depth_m : float
            Depth of the transducer, m.
        celsius : float
            Temperature of the water, deg C.

        Returns
        -------
        str
            The lines.
        """
        forward, right, down = log.velocity
        earth = earth_velocity(attitude, log.velocity)
        if log.valid:
            step = max(0.0, log.time - self._at)
            self._travelled_m = [
                travelled_m + speed * step for travelled_m, speed in zip(self._travelled_m, earth, strict=True)
            ]
            self._good_at = log.time
        self._at = log.time
        distances = ",".join(f"{distance:+012.2f}" for distance in self._travelled_m)
        at = self._clock.at(log.time)
        lines = (
            f":SA,{attitude.pitch_deg:+06.2f},{attitude.roll_deg:+06.2f},{attitude.heading_deg % 360.0:06.2f}",
            f":TS,{at:%y%m%d%H%M%S}{at.microsecond // 10000:02d},{_SALINITY_PPT:04.1f},{celsius:+05.1f},"
            f"{depth_m:06.1f},{self._sound_m_s:06.1f},  0",
            f":BI,{_velocity((right, forward, -down), log.valid)},{0 if log.valid else _BAD:+06d},{_status(log)}",
            f":BS,{_velocity((right, forward, -down), log.valid)},{_status(log)}",
            f":BE,{_velocity(earth, log.valid)},{_status(log)}",
            f":BD,{distances},{max(0.0, log.height_m):07.2f},{max(0.0, log.time - self._good_at):06.2f}",
        )
        return "".join(f"{line}\r\n" for line in lines)


def _velocity(metres_a_second: Vector, valid: bool) -> str:
    if not valid:
        return ",".join([f"{_BAD:+06d}"] * 3)
    return ",".join(f"{max(-32767, to_integer(value, 1000.0, 16)):+06d}" for value in metres_a_second)


def _status(log: Doppler) -> str:
    return "A" if log.valid else "V"
