"""The PX4 bridge, with pymavlink playing PX4 and a ground station."""

from __future__ import annotations

import math
import socket
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from pymavlink import mavutil
from pymavlink.dialects.v20 import common

import rtmms
from rtmms.bridging.channels import ChannelMapping
from rtmms.bridging.config import build_bridge
from rtmms.sensing import Sensed
from rtmms.sensing.data_sheets import Depth, Imu, Magnetometer, Sensor
from rtmms_bridges.autopilot.hil import Sensors, earth_field, pressure_hpa
from rtmms_bridges.autopilot.mavframes import Reader, Writer
from rtmms_bridges.motion.frames import Home
from rtmms_bridges.motion.pose import Motion
from rtmms_bridges.px4 import Px4
from tests.bridges.by_hand import opened
from tests.bridges.harness import ROOT, plant_info, wait
from tests.bridges.swimmer import Sailing, Swimmer
from tests.ports import reserve_ports
from tests.wire.bench import PATIENCE_S

pytestmark = pytest.mark.full

THRUST = ChannelMapping(channel="3", actuator="thrust", scale=2.0)
RUDDER = ChannelMapping(channel="1", actuator="rudder", reversed=True)


class Autopilot:
    """PX4 as its simulator interface has it: TCP client, heartbeat, wish for the truth, actuators after each frame."""

    def __init__(self, port: int, *, lockstep: bool = True) -> None:
        self.lockstep, self.armed, self.controls = lockstep, True, [0.0] * 16
        self.link = wait(lambda: _connected(port))
        self.link.mav.srcSystem, self.link.mav.srcComponent = 1, 1
        self.link.mav.heartbeat_send(0, 12, 0, 0, 0)
        self.link.mav.command_long_send(0, 0, 511, 0, 115, 5000, 0, 0, 0, 0, 0)
        self.time_us = 0

    def receive(self, *kinds: str) -> Any:
        """The next message of these kinds (HIL_SENSOR); the clock goes by HIL_SENSOR, and never back."""
        message = self.link.recv_match(type=list(kinds or ("HIL_SENSOR",)), blocking=True, timeout=PATIENCE_S)
        assert message is not None, "nothing came"
        if message.get_type() == "HIL_SENSOR":
            assert message.time_usec > self.time_us
            self.time_us = message.time_usec
        return message

    def drive(self) -> None:
        mode = 1 | (128 if self.armed else 0)
        controls = self.controls if self.armed else [0.0] * 16
        self.link.mav.hil_actuator_controls_send(self.time_us, controls, mode, int(self.lockstep))

    def frame(self) -> Any:
        """One frame: actuators, then the sensors that come of them."""
        self.drive()
        return self.receive()

    def __enter__(self) -> Autopilot:
        return self

    def __exit__(self, *_: object) -> None:
        self.link.close()


def _connected(port: int) -> Any:
    try:
        return mavutil.mavlink_connection(f"tcp:127.0.0.1:{port}", retries=0, dialect="common")
    except OSError:
        return None


def bridge(port: int, **more: Any) -> Px4:
    return Px4(port=port, **{"channels": (THRUST, RUDDER), "noise": 0.0} | more)


@pytest.fixture
def port() -> int:
    return reserve_ports()


# -- what it receives -------------------------------------------------------------------------------------------------

HOME = Home(lat_deg=47.4, lon_deg=8.5, alt_m=400.0)
FIELD = (0.2, 0.01, 0.4)
MOTION = Motion(
    2.5, (3.0, 4.0, -1.0), (1.0, 0.0, 0.0, 0.0), (1.0, 2.0, 0.5), (1.0, 2.0, 0.5), (0.1, 0.2, 0.3), (0.5, 0.25, -0.125)
)


@pytest.fixture
def sensors() -> Sensors:
    sensors = Sensors(HOME, FIELD, 0.0, 0)
    sensors.feel(MOTION)
    return sensors


def test_the_imu_in_its_units_and_frames(sensors: Sensors) -> None:
    result = sensors.imu(MOTION, 1234, 0x1FFF)
    assert (result.time_usec, result.id) == (1234, 0)
    assert (result.xacc, result.yacc, result.zacc) == pytest.approx((0.5, -0.25, 0.125 - 9.80665))
    assert (result.xgyro, result.ygyro, result.zgyro) == pytest.approx((0.1, -0.2, -0.3))
    # it looks east: north is to its left, so minus the field's north lies on its right
    assert (result.xmag, result.ymag, result.zmag) == pytest.approx((0.01, -0.2, 0.4))
    assert result.pressure_alt == pytest.approx(399.0)
    assert result.abs_pressure == pytest.approx(pressure_hpa(399.0))
    assert result.temperature == 15.0


def test_the_truth_in_its_units_and_frames(sensors: Sensors) -> None:
    result = sensors.truth(MOTION, 1234)
    assert result.attitude_quaternion == pytest.approx([math.cos(math.pi / 4), 0.0, 0.0, math.sin(math.pi / 4)])
    assert (result.rollspeed, result.pitchspeed, result.yawspeed) == pytest.approx((0.1, -0.2, -0.3))
    assert (result.vx, result.vy, result.vz) == (200, 100, -50)
    assert (result.xacc, result.yacc, result.zacc) == (51, -25, 13)
    assert result.alt == 399000
    lat, lon, _ = HOME.geodetic(MOTION.position)
    assert (result.lat, result.lon) == (round(lat * 1e7), round(lon * 1e7))
    assert result.lat > 474000000
    assert result.lon > 85000000


def test_the_gps_in_its_units(sensors: Sensors) -> None:
    result = sensors.gps(MOTION, 1234)
    assert (result.fix_type, result.alt, result.vn, result.ve, result.vd) == (3, 399000, 200, 100, -50)
    assert result.vel == round(100 * math.hypot(2.0, 1.0))
    assert result.cog == round(100 * math.degrees(math.atan2(1.0, 2.0)))


def test_noise_is_the_same_for_the_same_seed() -> None:
    def readings(seed: int) -> list[float]:
        noisy = Sensors(HOME, FIELD, 1.0, seed)
        noisy.feel(MOTION)
        return [noisy.imu(MOTION, 0, 0x1FFF).xacc for _ in range(3)]

    assert readings(1) == readings(1) != readings(2)
    assert len(set(readings(1))) == 3


def test_pressure_and_field() -> None:
    assert pressure_hpa(0.0) == pytest.approx(1013.25)
    assert pressure_hpa(1000.0) == pytest.approx(898.75, abs=0.1)  # ISO 2533, table
    north, east, down = earth_field(HOME)
    assert (north, east, down) == pytest.approx((0.215, 0.013, 0.433), abs=0.005)


def test_what_the_plants_own_sensors_read(port: int) -> None:
    """The bridge's noise gives way to them, and their faults are there."""
    imu = Imu(rate_hz=250.0, gyro_turn_on_rad_s=0.0, position_m=(0.0, 0.0, 0.0))
    current: dict[str, Sensor] = {
        "imu": imu,
        "mag": Magnetometer(rate_hz=250.0, field_t=(1e-5, 0.0, -4e-5)),
        "depth": Depth(),
    }
    plant = Sensed(Swimmer(), current)
    names = ("position", "quaternion", "velocity", "angular_velocity", "acceleration")
    built = bridge(port, noise=50.0, home=HOME, outputs=("*", *(f"truth.{name}" for name in names)))
    with Sailing(built, plant=plant) as sailing, Autopilot(port) as px4:
        for _ in range(20):
            result = px4.frame()
        while not result.fields_updated & 0x1000:
            result = px4.frame()
        read = plant.observe()
        assert (result.xacc, result.yacc, result.zacc) == pytest.approx((0.0, 0.0, -9.80665), abs=1e-5)
        assert (result.xgyro, result.ygyro, result.zgyro) == (0.0, 0.0, 0.0)
        assert result.pressure_alt == pytest.approx(HOME.alt_m - read["depth.value"])
        while not result.fields_updated & 0x1C0:
            result = px4.frame()
        assert (result.xmag, result.ymag, result.zmag) == pytest.approx((0.1, 0.0, 0.4))
        plant.set(**{"fault.imu": "bias=0.5"})
        wait(lambda: px4.frame().xgyro == pytest.approx(0.5))
        assert any(
            "HIL_SENSOR has the readings of the plant's sensors (imu, mag, depth)" in message
            for message in sailing.bridged.messages
        )


def test_the_truth_of_a_plant_with_sensors_is_asked_for(port: int) -> None:
    plant = Sensed(Swimmer(), {"imu": Imu()})
    info = replace(
        plant_info(*plant.outputs, actuators=plant.actuators), selected=("imu.time", "imu.gyro", "imu.accel")
    )
    with pytest.raises(rtmms.ModelError, match=r"outputs=\*\+truth.position\+truth.quaternion"):
        opened(bridge(port), info)


# -- in lockstep -----------------------------------------------------------------------------------------------------


def test_free_until_the_first_actuators_then_in_lock(port: int) -> None:
    built = bridge(port, unanswered_s=0.0)
    with Sailing(built) as sailing, Autopilot(port) as px4:
        px4.receive()
        px4.receive()
        px4.receive()  # without an answer from us
        px4.drive()
        # with its first two messages it has sent three; the plant stands still where no frame is under way
        wait(lambda: built.counts["received"] == 3 and built._pacer.waiting and not built._pacer.asked)
        assert built._in_lock
        while px4.link.recv_match(type="HIL_SENSOR", blocking=True, timeout=0.3):  # what was on its way
            pass
        steps = len(sailing.plant.commands)
        px4.time_us = 0
        px4.controls[2], px4.controls[0] = 0.5, 0.25
        stamps = [px4.frame().time_usec for _ in range(25)]
        assert len(sailing.plant.commands) == steps + 100
        assert all(b - a == 4000 for a, b in pairwise(stamps))
        assert sailing.command == (pytest.approx(1.0), pytest.approx(-0.25))
        result = px4.frame()
        assert result.zgyro == pytest.approx(0.25)
        assert sailing.loop.statistics.counters()["misses"] == 0


def test_disarmed_is_neutral(port: int) -> None:
    up = ChannelMapping(channel="3", actuator="thrust", scale=2.0, trim=-0.5)
    with Sailing(bridge(port, channels=(up, RUDDER))) as sailing, Autopilot(port) as px4:
        px4.receive()
        px4.frame()
        wait(lambda: sailing.command[0] == pytest.approx(1.0))
        px4.armed = False
        for _ in range(5):
            px4.frame()
        wait(lambda: sailing.command == (0.0, 0.0))  # the frames that it got may have been on their way for long


def test_each_sensor_at_its_rate(port: int) -> None:
    built = bridge(port, mag_hz=125.0, baro_hz=50.0, gps_hz=25.0, state_hz=10.0)
    with Sailing(built) as sailing, Autopilot(port) as px4:
        wait(lambda: built._rates["state"] == 200.0)  # as PX4 asks
        px4.receive()
        while not built._in_lock:
            px4.frame()
        for _ in range(10):
            px4.frame()
        observed: dict[str, int] = {}
        fields = []
        for _ in range(50):
            px4.drive()
            while (message := px4.receive("HIL_SENSOR", "HIL_GPS", "HIL_STATE_QUATERNION")).get_type() != "HIL_SENSOR":
                observed[message.get_type()] = observed.get(message.get_type(), 0) + 1
            fields.append(message.fields_updated)
        assert sum(bool(field & 0x1C0) for field in fields) in (24, 25, 26)
        assert sum(field & 0x1A00 == 0x1A00 for field in fields) in (9, 10, 11)
        assert all(field & 0x3F == 0x3F and not field & 0x400 for field in fields)
        assert observed["HIL_GPS"] in (4, 5, 6)
        assert observed["HIL_STATE_QUATERNION"] in (39, 40, 41)
        assert sailing.bridged.counts.reasons() == {}


def test_the_truth_can_be_switched_off(port: int) -> None:
    built = bridge(port)
    with Sailing(built), Autopilot(port) as px4:
        wait(lambda: built._rates["state"] == 200.0)
        px4.link.mav.command_long_send(0, 0, 511, 0, 115, -1, 0, 0, 0, 0, 0)
        wait(lambda: built._rates["state"] == 0.0)
        px4.link.mav.command_long_send(0, 0, 511, 0, 115, 0, 0, 0, 0, 0, 0)
        wait(lambda: built._rates["state"] == 50.0)


def test_a_build_without_lockstep_runs_at_the_pace_of_wall_time(port: int) -> None:
    with Sailing(bridge(port)) as sailing, Autopilot(port, lockstep=False) as px4:
        px4.controls[2] = 0.5
        px4.drive()
        for _ in range(20):
            px4.receive()
        assert not sailing.bridged.bridge._in_lock  # type: ignore[attr-defined]
        wait(lambda: sailing.command[0] == pytest.approx(1.0))


def test_a_frame_that_is_not_answered_is_followed_by_the_next(port: int) -> None:
    with Sailing(bridge(port, unanswered_s=0.05)) as sailing, Autopilot(port) as px4:
        px4.receive()
        px4.frame()
        wait(lambda: sailing.bridged.counts["unanswered"] > 2)
        px4.frame()


def test_px4_goes_and_comes_back_to_a_plant_that_begins_anew(port: int) -> None:
    with Sailing(bridge(port)) as sailing:
        with Autopilot(port) as px4:
            px4.controls[2] = 1.0
            px4.receive()
            for _ in range(20):
                px4.frame()
            last = px4.time_us
        wait(lambda: any("PX4 is gone" in line for line in sailing.bridged.messages))
        with Autopilot(port) as px4:
            result = px4.receive()
            assert sailing.plant.resets == 2
            assert result.time_usec > last
            assert sailing.command == (0.0, 0.0)
            for _ in range(5):
                px4.frame()
        assert sailing.bridged.counts["connections"] == 2


def test_without_px4_the_plant_waits(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rtmms_bridges.lines.pacing.HOLD_S", 0.1)
    with Sailing(bridge(port)) as sailing:
        wait(lambda: any("PX4 is silent" in line for line in sailing.bridged.messages))
        wait(lambda: sailing.loop.requests.paused)
        with Autopilot(port) as px4:
            for _ in range(5):
                px4.receive()


def test_a_second_one_is_turned_away(port: int) -> None:
    with Sailing(bridge(port)) as sailing, Autopilot(port) as px4:
        px4.receive()
        px4.frame()
        with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S) as second:
            assert second.recv(100) == b""
        assert sailing.bridged.counts.reasons() == {"second": 1}
        px4.frame()


# -- beside lockstep -------------------------------------------------------------------------------------------------


def test_in_real_time_sensors_come_by_themselves(port: int) -> None:
    with Sailing(bridge(port, peer_timeout_s=1.0), mode="realtime") as sailing, Autopilot(port) as px4:
        stamps = [px4.receive().time_usec for _ in range(20)]
        assert all(b - a >= 4000 for a, b in pairwise(stamps))
        px4.controls[2] = 0.5
        px4.drive()
        wait(lambda: sailing.drove(1.0))
        wait(lambda: sailing.command[0] == 0.0)
        assert any("the peer has been silent" in line for line in sailing.bridged.messages)


def test_one_that_does_not_read_loses_whole_messages_and_the_oldest(port: int) -> None:
    with Sailing(bridge(port, sensor_hz=1000.0, state_hz=1000.0), mode="realtime") as sailing:
        with socket.socket() as slow:
            slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
            slow.connect(("127.0.0.1", port))
            slow.sendall(Writer(1, 1).pack(common.MAVLink_heartbeat_message(0, 12, 0, 0, 0, 3)))
            wait(lambda: sailing.bridged.bridge._peer.connected)  # type: ignore[attr-defined]
            sailing.bridged.bridge._peer._client.setsockopt(  # type: ignore[attr-defined]
                socket.SOL_SOCKET, socket.SO_SNDBUF, 2048
            )
            wait(lambda: sailing.bridged.counts["dropped"] > 50)
            reasons: list[str] = []
            reader, stamps = Reader(reasons.append), []
            slow.settimeout(PATIENCE_S)
            while len(stamps) < 400:
                stamps += [m.time_usec for m in reader.feed(slow.recv(4096)) if m.get_type() == "HIL_SENSOR"]
        assert reasons == []
        assert all(b > a for a, b in pairwise(stamps))
        assert max(b - a for a, b in pairwise(stamps)) > 10_000  # what was dropped


def test_a_silent_plant_and_a_robot_at_rest(port: int) -> None:
    built = bridge(port, plant_silent="still", watchdog_periods=1)
    with Sailing(built) as sailing, Autopilot(port) as px4:
        px4.controls[2] = 0.5
        px4.receive()
        for _ in range(5):
            px4.frame()
        step, gate = sailing.plant.step, []
        sailing.plant.step = lambda command: (wait(lambda: gate), step(command))
        px4.drive()
        wait(lambda: sailing.bridged.counts["still"] > 3)
        for _ in range(3):
            result = px4.receive()
        assert (result.xacc, result.yacc, result.zacc) == pytest.approx((0.0, 0.0, -9.80665))
        gate.append(1)
        for _ in range(10):
            px4.frame()


# -- the ground station ----------------------------------------------------------------------------------------------


@pytest.fixture
def station() -> Iterator[Any]:
    port = reserve_ports()
    station = mavutil.mavlink_connection(f"udpin:127.0.0.1:{port}", dialect="common")
    station.address = f"127.0.0.1:{port}"
    yield station
    station.close()


def test_a_ground_station_receives_from_both_sides(port: int, station: Any) -> None:
    with Sailing(bridge(port, ground=station.address)), Autopilot(port) as px4:
        px4.receive()
        px4.frame()
        for kind in ("HIL_SENSOR", "HIL_GPS", "HIL_STATE_QUATERNION", "HIL_ACTUATOR_CONTROLS"):
            assert station.recv_match(type=kind, blocking=True, timeout=PATIENCE_S) is not None
            px4.frame()


# -- what is not well --------------------------------------------------------------------------------------------------


def test_garbage_is_counted_and_the_next_good_frame_is_read(port: int) -> None:
    with Sailing(bridge(port)) as sailing, Autopilot(port) as px4:
        px4.receive()
        raw = px4.link.port
        good = common.MAVLink_hil_actuator_controls_message(0, [math.nan] * 16, 129, 1).pack(px4.link.mav)
        raw.sendall(b"GET / HTTP/1.1\r\n\r\n")
        raw.sendall(good[:20] + b"\xfd" + good[21:])
        raw.sendall(good)
        wait(lambda: {"malformed", "crc", "not_finite"} <= set(sailing.bridged.counts.reasons()))
        px4.controls[2] = 0.5
        while sailing.command[0] != pytest.approx(1.0):
            px4.frame()


@pytest.mark.parametrize(
    ("arguments", "output"),
    [
        ({"rate_hz": 50.0}, "sensor_hz sets the rate"),
        ({"sensor_hz": 0.0}, "sensor_hz"),
        ({"gps_hz": -1.0}, "gps_hz"),
        ({"ground": "here"}, "HOST:PORT"),
        ({"field_ned_gauss": (1.0,)}, "3 numbers"),
        ({"plant_silent": "still"}, "watchdog_periods"),
    ],
)
def test_words_that_make_no_sense(arguments: dict[str, Any], output: str) -> None:
    with pytest.raises(rtmms.ModelError, match=output):
        Px4(**arguments)


def test_the_example_is_one() -> None:
    built = build_bridge(f"px4:config={ROOT / 'bridges/examples/px4.toml'}")
    assert isinstance(built, Px4)
    assert built.claims() == ("left.front", "left.back", "right.front", "right.back")


def test_controls_are_a_controllers_words(port: int, asked: dict[str, float]) -> None:
    parts = {"3": "mixer.thrust", "1": "-mixer.yaw"}
    assert Px4(parameter_channels=parts).claims() == ()
    with (
        Sailing(bridge(port, channels=(RUDDER,), parameter_channels=parts), mode="realtime") as sailing,
        Autopilot(port) as px4,
    ):
        px4.controls[2], px4.controls[0], px4.controls[1] = 0.25, 0.5, math.nan
        px4.frame()
        wait(lambda: asked == {"mixer.thrust": 0.25, "mixer.yaw": -0.5})
        px4.controls[2] = math.nan
        px4.frame()
        wait(lambda: sailing.bridged.counts.reasons().get("not_finite"))
        assert asked["mixer.thrust"] == 0.25
        px4.armed = False
        px4.frame()
        wait(lambda: asked == {"mixer.thrust": 0.0, "mixer.yaw": 0.0})
