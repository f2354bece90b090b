"""The Betaflight bridge beside an imitation that behaves as the firmware's source states, on a clock of the test."""

from __future__ import annotations

import math
import socket
import struct
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

import rtmms
from rtmms.base.attitude import from_euler
from rtmms.bridging.untrusted import Refusal
from rtmms_bridges.betaflight import START_S, Betaflight, parse, write
from rtmms_bridges.motion.frames import Home
from rtmms_bridges.motion.imu import Imu
from rtmms_bridges.motion.pose import Motion
from tests.bridges.autopilot.imitated_betaflight import CLIMB_M, ImitatedBetaflight
from tests.bridges.autopilot.rehearsal import Rehearsal, rehearsals
from tests.ports import reserve_ports

BOTH = pytest.mark.parametrize("mode", ["lockstep", "realtime"])
ARMED = {"3": "1500", "5": "1800"}


@pytest.fixture
def rehearse(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., tuple[Rehearsal, ImitatedBetaflight]]]:
    def firmware(run: Rehearsal) -> ImitatedBetaflight:
        bridge = run.bridge
        assert isinstance(bridge, Betaflight)
        ports = bridge.state_port, bridge.rc_port
        return ImitatedBetaflight(bridge._socket.getsockname(), *ports, bridge.home.alt_m)

    def bridge(**options: Any) -> Betaflight:
        state = reserve_ports(2)
        return Betaflight(port=0, state_port=state, rc_port=state + 1, **options)

    yield from rehearsals(monkeypatch, bridge, firmware, rc=ARMED, noise=0.0)


# -- the format ------------------------------------------------------------------------------------------------------

HOME = Home(lat_deg=47.0, lon_deg=8.0, alt_m=400.0)
TURNED = (math.cos(0.1), 0.0, 0.0, math.sin(0.1))
MOTION = Motion(2.5, (3.0, 4.0, 1.0), TURNED, (1.0, 2.0, 0.5), (1.0, 0.0, 0.0), (0.1, 0.2, 0.3), (0.5, 0.25, -0.125))


def test_the_packet_of_motion() -> None:
    result = struct.unpack("<18d", write(1.5, MOTION, Imu(), HOME))
    assert result[0] == 1.5
    assert result[1:4] == pytest.approx((0.1, -0.2, -0.3))  # FRD
    assert result[4:7] == pytest.approx((-0.5, -0.25, 0.125 - 9.80665))
    # x is east and the robot looks 0.2 rad to its left: a heading of 90 deg less 0.2 rad, clockwise
    half = 0.5 * (math.pi / 2 - 0.2)
    assert result[7:11] == pytest.approx((math.cos(half), 0.0, 0.0, math.sin(half)))
    assert result[11:14] == pytest.approx((1.0, 2.0, 0.5))  # east, north, up
    lat, lon, alt = HOME.geodetic(MOTION.position)
    assert result[14:17] == (lon, lat, alt)
    assert result[17] == pytest.approx(101325.0 * (1.0 - 2.25577e-5 * 401.0) ** 5.25588)


@pytest.mark.parametrize(("roll", "pitch", "yaw"), [(0.1, 0.0, 0.0), (0.0, 0.2, 0.0), (-0.1, 0.3, 0.4)])
def test_betaflight_finds_the_attitude(roll: float, pitch: float, yaw: float) -> None:
    """By its own formulas (imuComputeRotationMatrix and imuUpdateEulerAngles of 4.6): pitch is positive nose down."""
    motion = replace(MOTION, attitude=from_euler(roll, pitch, yaw))  # FLU: a positive pitch is nose down
    w, x, y, z = struct.unpack("<18d", write(1.5, motion, Imu(), HOME))[7:11]
    m00, m10 = 1.0 - 2.0 * (y * y + z * z), -2.0 * (x * y + w * z)
    m20, m21, m22 = -2.0 * (x * z - w * y), 2.0 * (y * z + w * x), 1.0 - 2.0 * (x * x + y * y)
    assert math.atan2(m21, m22) == pytest.approx(roll)
    assert math.pi / 2 - math.acos(-m20) == pytest.approx(pitch)
    assert -math.atan2(m10, m00) == pytest.approx(math.pi / 2 - yaw)  # clockwise from north; x is east


def test_errors_of_the_receiver_are_in_place_and_velocity_alone() -> None:
    result = struct.unpack("<18d", write(1.5, MOTION, Imu(), HOME, ((1.0, 0.0, 0.0), (0.0, 0.5, 0.0))))
    plain = struct.unpack("<18d", write(1.5, MOTION, Imu(), HOME))
    assert result[12] == pytest.approx(plain[12] + 0.5)
    assert (result[14] - plain[14]) * math.cos(math.radians(47.0)) * 111.3e3 == pytest.approx(1.0, rel=0.01)
    assert (result[:11], result[17]) == (plain[:11], plain[17])


@pytest.mark.parametrize(("packet", "reason"), [
    (b"", "length"), (b"x" * 17, "length"), (struct.pack("<4f", 0.0, math.nan, 0.0, 0.0), "not_finite"),
])  # fmt: skip
def test_what_are_no_motors_is_refused(packet: bytes, reason: str) -> None:
    with pytest.raises(Refusal) as refused:
        parse(packet)
    assert refused.value.reason == reason


# -- flights ---------------------------------------------------------------------------------------------------------


@BOTH
@pytest.mark.parametrize("late_s", [0.0, 10.0])
def test_it_holds_its_height_and_does_so_after_a_kill_and_a_restart(rehearse: Any, mode: str, late_s: float) -> None:
    run, firmware = rehearse(mode)
    run.run(late_s)
    for flight in range(2):
        run.start(firmware)
        run.run(9.0)
        for _ in range(5):
            run.run(0.2)
            assert run.plant.z == pytest.approx(CLIMB_M, abs=0.05)
        assert run.plant.resets == flight
        assert not firmware.failsafe
        run.kill()
        run.run(5.0)
        assert mode == "lockstep" or run.plant.z == 0.0, "motors of one that is gone stop"


@BOTH
def test_one_that_takes_its_place_at_once_resets_the_plant(rehearse: Any, mode: str) -> None:
    """The bridge never sees its port closed: the genuine one starts within milliseconds, and discards pulses then."""
    run, firmware = rehearse(mode)
    run.start(firmware)
    run.run(9.0)
    run.kill()
    run.run(2e-3)
    firmware.start_s = 0.0
    run.start(firmware)
    run.run(START_S)
    assert firmware.pulses == ()
    run.run(9.0)
    assert run.plant.resets == 1
    assert run.messages.count("Betaflight is connected again") == 1
    assert run.plant.z == pytest.approx(CLIMB_M, abs=0.05)


def test_its_clock_does_not_leap_where_it_gets_no_core_for_a_moment(rehearse: Any) -> None:
    """Packets that wait would reach it at once: its clock would run hundreds of times too fast."""
    run, firmware = rehearse("realtime")
    run.start(firmware)
    run.run(2.0)
    run.run(2.0)
    clock = firmware.clock
    for _ in range(40):
        firmware.stalled = True
        run.run(13e-3)
        firmware.stalled = False
        run.run(40e-3)
    assert not firmware.failsafe
    assert firmware.clock - clock == pytest.approx(40 * 53e-3, rel=0.5)


def test_the_imitation_is_one_whose_clock_leaps(rehearse: Any) -> None:
    """A bridge that sends each state, with the plant's stamps, would stop its motors: why they stopped after 26 s."""
    run, firmware = rehearse("realtime")
    run.start(firmware)
    run.run(4.0)
    address = firmware._sockets[0].getsockname()
    sender = run.bridge._socket
    for k in range(5):  # four wait in its socket, and the fifth comes 20 ms later
        sender.sendto(struct.pack("<18d", firmware._stamp + 1e-3 * (k + 1), *firmware.motion[1:]), address)
    firmware.run(run.now + 5e-4)
    firmware.run(run.now + 20e-3)
    assert firmware.failsafe


def test_stamps_never_fall_where_the_plant_begins_anew(rehearse: Any) -> None:
    run, firmware = rehearse("lockstep")
    run.start(firmware)
    run.run(4.0)
    before, packets = firmware.motion[0], firmware.packets
    run.post("reset")
    run.run(1.0)
    assert run.plant.resets == 1
    assert firmware.motion[0] > before
    assert firmware.packets >= packets + 900


def test_the_remote_control(rehearse: Any) -> None:
    run, firmware = rehearse("lockstep", rc={"1": "velocity[2]", "16": "1000"})
    run.start(firmware)
    run.run(5.0, until=lambda: firmware.packets > 10)
    run.plant.vz = 0.5
    run.run(0.1)
    assert firmware.pulses[1:15] == (1500,) * 14
    assert firmware.pulses[15] == 1000
    assert run.plant.vz < -0.1
    assert firmware.pulses[0] == pytest.approx(1500 + 500 * run.plant.vz, abs=10)


@BOTH
@pytest.mark.parametrize("late_s", [0.0, 0.3, 5.0])
def test_one_that_starts_gets_no_motion_and_no_pulses(rehearse: Any, mode: str, late_s: float) -> None:
    """A motion makes the genuine one end where its sensors are not there yet; it discards pulses."""
    run, firmware = rehearse(mode)
    run.run(late_s)
    run.start(firmware)
    run.run(1.9)
    assert (firmware.packets, firmware.pulses, firmware.ended) == (0, (), False)
    run.run(3.0)
    assert firmware.packets > 100
    assert firmware.pulses[2] == 1500


@BOTH
def test_one_that_sends_no_motors_is_reported_and_resets_nothing(rehearse: Any, mode: str) -> None:
    """Its scheduler was late in its first period: it answers after a silence alone."""
    run, firmware = rehearse(mode)
    run.start(firmware)
    firmware.dead = True
    run.run(12.0)
    assert "Betaflight answers, but sends no motors; restart Betaflight" in run.messages
    assert run.plant.resets == 0
    run.kill()
    run.run(0.1)
    run.start(firmware)
    run.run(6.0)
    assert firmware.packets > 100
    assert "Betaflight is connected" in run.messages


def test_pulses_of_another_program_wait_until_it_has_started(rehearse: Any) -> None:
    port = reserve_ports(1)
    run, firmware = rehearse("lockstep", rc={"5": "1800"}, rc_listen=port)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as pilot:
        for packet in (b"x", struct.pack("<d16H", 0.0, *[2501] * 16), struct.pack("<d16H", 0.0, *range(1100, 1116))):
            pilot.sendto(packet, ("127.0.0.1", port))
    run.start(firmware)
    run.run(1.9)
    assert firmware.pulses == ()
    run.run(3.0)
    assert firmware.pulses == (1100, 1101, 1102, 1103, 1800, *range(1105, 1116)), "`rc` replaces channels of it"
    assert run.bridge.counts.as_dict()["refused"] == {"length": 1, "out_of_range": 1}


def test_without_a_table_another_program_is_the_remote_control(rehearse: Any) -> None:
    run, firmware = rehearse("lockstep", rc={})
    run.start(firmware)
    run.run(6.0)
    assert firmware.packets > 400
    assert firmware.pulses == ()


@BOTH
def test_a_run_with_a_duration_ends_when_it_has_gone(rehearse: Any, mode: str) -> None:
    run, firmware = rehearse(mode)
    run.start(firmware)
    run.run(6.0)
    run.kill()
    run.run(29.0)
    assert not run.stopped
    run.run(2.0)
    assert run.stopped
    assert run.bridge.unmet.startswith("Betaflight has been silent for 30 s (peer_gone_s)")


@pytest.mark.parametrize(
    ("options", "output"),
    [
        ({"rate_hz": 50.0}, "rate_hz"),
        ({"rc": {"17": "1500"}}, "channel from 1 to 16"),
        ({"noise": -1.0}, "noise"),
    ],
)
def test_options_that_make_no_sense(options: dict[str, Any], output: str) -> None:
    with pytest.raises(rtmms.ModelError, match=output):
        Betaflight(**options)


def test_pulses_that_make_no_sense(rehearse: Any) -> None:
    for word, output in (("9999", "0 to 2500 us"), ("speed_of_light", "speed_of_light")):
        with pytest.raises(rtmms.ModelError, match=output):
            rehearse("lockstep", rc={"1": word})
