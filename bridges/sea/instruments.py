"""Readings of a robot's instruments, in a navigator's terms: degrees, compass courses, latitude and longitude.

Of a plant that is seen through sensors (`--sensors`) these are its readings. A new one comes each time that a sensor
has one, at its rate, with its latency, and with the time at which it was taken. Of another plant, or on request, they
are derived from the truth, each state a reading. Each names its source (`description`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from math import atan2, cos, degrees, hypot, radians, sin
from typing import Any, Generic, Literal, TypeVar

from rtmms.base.attitude import Vector, euler, from_euler, rotate
from rtmms.base.contract import ESTIMATE, TRUTH
from rtmms.base.errors import ModelError
from rtmms.base.install import install_command
from rtmms.wire.protocol.received_state import PlantInfo, State

from ..motion.frames import Home, attitude_to_ned, bearing_deg, flu_frd, world_to_ned
from ..motion.pose import Motion, PoseNames, PoseReader, truth_names

Source = Literal["instruments", "truth"]
_OVER_S = 2.0  # of simulated time: a receiver without a Doppler has its speed from so many seconds of fixes
_STILL_M_S = 0.02


@dataclass(slots=True, frozen=True)
class Fix:
    """Reading of a satellite receiver.

    Parameters
    ----------
    time : float
        Time of the reading, simulated s.
    valid : bool
        Whether the receiver has a position.
    lat_deg, lon_deg : float
        Latitude and longitude, deg.
    alt_m : float
        Altitude above the ellipsoid, m.
    speed_m_s : float | None
        Speed over ground, m/s; None if unknown.
    course_deg : float | None
        True course over ground, deg; None if unknown.
    """

    time: float
    valid: bool
    lat_deg: float
    lon_deg: float
    alt_m: float
    speed_m_s: float | None
    course_deg: float | None


@dataclass(slots=True, frozen=True)
class Attitude:
    """Attitude of the robot.

    Parameters
    ----------
    time : float
        Time of the reading, simulated s.
    heading_deg : float
        True heading, [0, 360) deg.
    pitch_deg : float
        Pitch, deg, > 0 nose up.
    roll_deg : float
        Roll, deg, > 0 right side down.
    """

    time: float
    heading_deg: float
    pitch_deg: float
    roll_deg: float


@dataclass(slots=True, frozen=True)
class ScalarReading:
    """Reading of a single number.

    Parameters
    ----------
    time : float
        Time of the reading, simulated s.
    value : float
        The number, in the instrument's unit.
    valid : bool, default True
        Whether the instrument could measure it.
    """

    time: float
    value: float
    valid: bool = True


@dataclass(slots=True, frozen=True)
class Doppler:
    """Reading of a Doppler log.

    Parameters
    ----------
    time : float
        Time of the reading, simulated s.
    velocity : Vector
        Velocity over the ground, m/s, body FRD.
    height_m : float
        Height over the bottom, m.
    valid : bool
        Whether the velocity is valid.
    """

    time: float
    velocity: Vector
    height_m: float
    valid: bool


Reading = TypeVar("Reading")


class Instrument(Generic[Reading]):
    """Instrument with readings.

    Parameters
    ----------
    description : str
        Source of its readings, for a person.
    clock : str
        Output with the time of the reading; empty: each state is a reading.
    read : Callable[[State, float], Reading]
        Returns the reading of a state and a time.
    """

    def __init__(self, description: str, clock: str, read: Callable[[State, float], Reading]) -> None:
        self.description = description
        self._clock, self._read, self._at = clock, read, -1.0

    def new(self, state: State) -> Reading | None:
        """Return a new reading.

        Parameters
        ----------
        state : State
            The state.

        Returns
        -------
        Reading | None
            None without a new one.
        """
        at = self._sample_time(state)
        if at == self._at or at < 0.0:
            return None
        self._at = at
        return self._read(state, at)

    def now(self, state: State) -> Reading | None:
        """Return the present reading.

        Parameters
        ----------
        state : State
            The state.

        Returns
        -------
        Reading | None
            None before the first.
        """
        at = self._sample_time(state)
        return None if at < 0.0 else self._read(state, at)

    def _sample_time(self, state: State) -> float:
        return float(state.outputs[self._clock]) if self._clock else state.time


class Instruments:
    """All instruments of a robot; each is None without its sources.

    Parameters
    ----------
    plant : PlantInfo
        The plant.
    home : Home
        Place of the world's origin.
    source : Source
        'truth', also of a plant with sensors; 'instruments', for which a plant without sensors has the truth.
    pose : PoseNames
        Outputs of the plant that have its motion.
    variation_deg : float
        Variation of the compass, deg, east > 0: true = magnetic + variation.
    bottom_m : float | None
        Height of the bottom, m, world, for an echo sounder on the truth; None: unknown.
    beam_deg : float
        Angle of the Doppler log's beams against its axis, deg.
    water_speed : Callable[[State], float] | None
        Field of the plant's speed through the water, m/s; None for none.
    """

    def __init__(
        self, plant: PlantInfo, home: Home, source: Source, pose: PoseNames, *, variation_deg: float,
        bottom_m: float | None, beam_deg: float, water_speed: Callable[[State], float] | None,
    ) -> None:  # fmt: skip
        self._home, self._variation, self._beam = home, variation_deg, cos(radians(beam_deg))
        self._surface = float(plant.environment.get("surface_m", 0.0))
        names = {channel.name for channel in plant.outputs if channel.name in plant.selected}
        self.has_sensors = any(channel.name.startswith(TRUTH) for channel in plant.outputs)
        self.true = source == "truth" or not self.has_sensors
        self._fixes: deque[tuple[float, float, float]] = deque()
        self.gps: Instrument[Fix] | None = None
        self.attitude: Instrument[Attitude] | None = None
        self.turn: Instrument[ScalarReading] | None = None
        self.depth: Instrument[ScalarReading] | None = None
        self.sounder: Instrument[ScalarReading] | None = None
        self.doppler: Instrument[Doppler] | None = None
        self.log: Instrument[ScalarReading] | None = None
        if self.true:
            self._of_truth(plant, pose, bottom_m, water_speed is None)
        else:
            self._of_sensors(names)
        if water_speed is not None:
            self.log = Instrument("the output it names", "", lambda state, at: ScalarReading(at, water_speed(state)))

    # -- the truth ---------------------------------------------------------------------------------------------------

    def _of_truth(self, plant: PlantInfo, pose: PoseNames, bottom_m: float | None, along: bool) -> None:
        read = PoseReader(truth_names(pose, plant), plant, needs=("position", "quaternion"))
        moving = {"velocity", "angular_velocity"} & {self._part(pose, plant, item) for item in _MOVING}
        last: list[Any] = [None, None]

        def motion(state: State) -> Motion:
            """Return the motion, converted once a state for all instruments."""
            if last[0] is not state:
                last[0], last[1] = state, read(state)
            result: Motion = last[1]
            return result

        def fix(state: State, at: float) -> Fix:
            now = motion(state)
            north, east, _ = world_to_ned(now.velocity, self._home.x_bearing)
            return self._fix(at, True, now.position, (north, east) if "velocity" in moving else None)

        def attitude(state: State, at: float) -> Attitude:
            return self._attitude(at, motion(state).attitude)

        def doppler(state: State, at: float) -> Doppler:
            now, ground = motion(state), bottom_m
            height = now.position[2] - ground if ground is not None else 0.0
            return Doppler(at, flu_frd(now.velocity_body), height, ground is None or height > 0.0)

        truth = "the truth"
        self.gps = Instrument(truth, "", fix)
        self.attitude = Instrument(truth, "", attitude)
        self.depth = Instrument(
            truth, "", lambda state, at: ScalarReading(at, self._surface - motion(state).position[2])
        )
        if "angular_velocity" in moving:
            self.turn = Instrument(truth, "", lambda state, at: ScalarReading(at, _per_minute(motion(state).rate[2])))
        if "velocity" in moving:
            self.doppler = Instrument(truth, "", doppler)
            if along:
                description = "the truth over the ground, along the bow"
                self.log = Instrument(
                    description, "", lambda state, at: ScalarReading(at, motion(state).velocity_body[0])
                )
        if bottom_m is not None:
            self.sounder = Instrument(
                truth, "", lambda state, at: ScalarReading(at, motion(state).position[2] - bottom_m)
            )

    @staticmethod
    def _part(pose: PoseNames, plant: PlantInfo, part: str) -> str:
        names = {channel.name for channel in plant.outputs}
        return part if {getattr(pose, part), TRUTH + getattr(pose, part)} & names else ""

    # -- sensors -----------------------------------------------------------------------------------------------------

    def _of_sensors(self, names: set[str]) -> None:
        if {"gps.position", "gps.valid", "gps.time"} <= names:
            self.gps = Instrument("gps", "gps.time", self._read_gps)
        if ESTIMATE + "quaternion" in names:
            description = "the estimate"
            self.attitude = Instrument(
                description, "", lambda s, at: self._attitude(at, s.outputs[ESTIMATE + "quaternion"])
            )
        elif {"mag.field", "imu.accel", "mag.time"} <= names:
            self.attitude = Instrument("mag and imu, as a compass", "mag.time", self._read_compass)
        if {"imu.gyro", "imu.time"} <= names:
            self.turn = Instrument(
                "imu", "imu.time", lambda s, at: ScalarReading(at, _per_minute(s.outputs["imu.gyro"][2]))
            )
        if {"depth.value", "depth.time"} <= names:
            self.depth = Instrument(
                "depth", "depth.time", lambda s, at: ScalarReading(at, float(s.outputs["depth.value"]))
            )
        if {"dvl.velocity", "dvl.range", "dvl.valid", "dvl.time"} <= names:
            self.doppler = Instrument("dvl", "dvl.time", self._read_dvl)
            self.sounder = Instrument("dvl", "dvl.time", self._read_sounder)

    def _read_gps(self, state: State, at: float) -> Fix:
        return self._fix(at, bool(state.outputs["gps.valid"]), state.outputs["gps.position"], None)

    def _read_compass(self, state: State, at: float) -> Attitude:
        """Return the compass reading, levelled by the accelerometer: right while the robot accelerates little."""
        ax, ay, az = flu_frd(state.outputs["imu.accel"])  # at rest -g: up, in forward, right, down
        roll, pitch = atan2(-ay, -az), atan2(ax, hypot(ay, az))
        x, y, z = flu_frd(state.outputs["mag.field"])
        north = x * cos(pitch) + (y * sin(roll) + z * cos(roll)) * sin(pitch)
        east = y * cos(roll) - z * sin(roll)
        magnetic = degrees(atan2(-east, north))
        return Attitude(at, (magnetic + self._variation) % 360.0, degrees(pitch), degrees(roll))

    def _read_dvl(self, state: State, at: float) -> Doppler:
        return Doppler(
            at, flu_frd(state.outputs["dvl.velocity"]), self._height(state), bool(state.outputs["dvl.valid"])
        )

    def _read_sounder(self, state: State, at: float) -> ScalarReading:
        height = self._height(state)
        return ScalarReading(at, height, height > 0.0)

    def _height(self, state: State) -> float:
        """Return the height along the instrument's axis, m, from the beams that meet the bottom."""
        met = [float(length) for length in state.outputs["dvl.range"] if length > 0.0]
        return self._beam * sum(met) / len(met) if met else 0.0

    # -- both --------------------------------------------------------------------------------------------------------

    def _attitude(self, at: float, quaternion: Any) -> Attitude:
        roll, pitch, yaw = euler(attitude_to_ned(quaternion, self._home.x_bearing))
        return Attitude(at, bearing_deg(yaw), degrees(pitch), degrees(roll))

    def _fix(self, at: float, valid: bool, position: Any, moving: tuple[float, float] | None) -> Fix:
        lat, lon, alt = self._home.geodetic(position)
        if moving is None:
            moving = self._over_ground(at, valid, position)
        if moving is None:
            return Fix(at, valid, lat, lon, alt, None, None)
        speed = hypot(*moving)
        course = degrees(atan2(moving[1], moving[0])) % 360.0 if speed > _STILL_M_S else None
        return Fix(at, valid, lat, lon, alt, speed, course)

    def _over_ground(self, at: float, valid: bool, position: Any) -> tuple[float, float] | None:
        """Return the velocity north and east: the slope of the last seconds' fixes, by least squares."""
        fixes = self._fixes
        if not valid or (fixes and at <= fixes[-1][0]):
            fixes.clear()
        if not valid:
            return None
        north, east, _ = world_to_ned(position, self._home.x_bearing)
        fixes.append((at, north, east))
        while at - fixes[0][0] > _OVER_S:
            fixes.popleft()
        n = len(fixes)
        mean = [sum(fix[i] for fix in fixes) / n for i in range(3)]
        spread = sum((fix[0] - mean[0]) ** 2 for fix in fixes)
        if n < 3 or spread <= 0.0:
            return None
        slope = [sum((fix[0] - mean[0]) * (fix[i] - mean[i]) for fix in fixes) / spread for i in (1, 2)]
        return slope[0], slope[1]


_MOVING = ("velocity", "angular_velocity")


def _per_minute(rate: float) -> float:
    """Return a rate about body z, up, rad/s, as deg/min to starboard."""
    return -degrees(rate) * 60.0


def earth_velocity(attitude: Attitude, frd: Vector) -> Vector:
    """Return a velocity in body FRD as east, north, up.

    Parameters
    ----------
    attitude : Attitude
        Attitude of the robot.
    frd : Vector
        Velocity, m/s, body FRD.

    Returns
    -------
    Vector
        East, north, up, m/s.
    """
    q = from_euler(radians(attitude.roll_deg), radians(attitude.pitch_deg), radians(attitude.heading_deg))
    north, east, down = rotate(q, frd)
    return east, north, -down


def world_heading_deg(compass_deg: float, home: Home) -> float:
    """Return a compass heading as controllers count it: from world x to the left.

    Parameters
    ----------
    compass_deg : float
        True heading, deg.
    home : Home
        Place of the world's origin.

    Returns
    -------
    float
        Heading in (-180, 180] deg.
    """
    left = home.x_bearing_deg - compass_deg
    return -((-left + 180.0) % 360.0 - 180.0)


def variation_at(home: Home) -> float:
    """Return the variation of the compass, by the World Magnetic Model.

    Parameters
    ----------
    home : Home
        Place of the world's origin.

    Returns
    -------
    float
        Variation, deg, east > 0.

    Raises
    ------
    ModelError
        Without the library of the model.
    """
    from ..autopilot.hil import earth_field

    try:
        north, east, _ = earth_field(home)
    except ImportError:
        raise ModelError(
            f"variation_deg: the World Magnetic Model needs pygeomag ({install_command('sensors')}); or give a number"
        ) from None
    return degrees(atan2(east, north))
