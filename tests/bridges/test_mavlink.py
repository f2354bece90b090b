"""The bridge to ground stations, with pymavlink playing one."""

from __future__ import annotations

import math
import re
import socket
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from pymavlink import mavutil
from pymavlink.dialects.v20 import common

import rtmms
from rtmms.bridging.channels import ChannelMapping
from rtmms.plant.protocol import Environment
from rtmms.wire.peer.plugins import load_controller
from rtmms_bridges.autopilot.mavframes import Signing, Writer
from rtmms_bridges.autopilot.parameter_channels import ParameterChannels
from rtmms_bridges.autopilot.parameters import Parameters
from rtmms_bridges.autopilot.setpoints import ACTUATORS, AXES
from rtmms_bridges.mavlink import Mavlink, packed_version
from rtmms_bridges.motion.frames import Home
from tests.bridges.harness import ROOT, wait
from tests.bridges.swimmer import Sailing, Swimmer
from tests.ports import reserve_ports
from tests.wire.bench import PATIENCE_S

pytestmark = pytest.mark.full

AXIS = ChannelMapping(channel="x", actuator="thrust", scale=2.0)
NUMBER = ChannelMapping(channel="8", actuator="rudder", reversed=True)


class Flyer(Swimmer):
    """The swimmer in air, at a height that the test sets."""

    height = 0.05

    def environment(self) -> Environment:
        return Environment((0.0, 0.0, -9.81))

    def observe(self) -> dict[str, Any]:
        outputs = super().observe()
        outputs["position"][2] = self.height
        return outputs


class Station:
    """A ground station on a port of its own."""

    def __init__(self) -> None:
        self.port = reserve_ports()
        self.link = mavutil.mavlink_connection(
            f"udpin:127.0.0.1:{self.port}", source_system=255, source_component=190, dialect="common"
        )
        self.address = f"127.0.0.1:{self.port}"
        self.mav = self.link.mav

    def receive(self, kind: str, **fields: Any) -> Any:
        """The next message of that kind, with these fields."""

        def fits() -> Any:
            message = self.link.recv_match(type=kind, blocking=True, timeout=PATIENCE_S)
            assert message is not None, f"no {kind}"
            return message if all(getattr(message, name) == value for name, value in fields.items()) else None

        return wait(fits)

    def command(self, command: int, *values: float) -> int:
        """The result in the acknowledgement."""
        self.mav.command_long_send(1, 1, command, 0, *values, *[0.0] * (7 - len(values)))
        return int(self.receive("COMMAND_ACK", command=command).result)

    def close(self) -> None:
        self.link.close()


@pytest.fixture
def station() -> Iterator[Station]:
    station = Station()
    yield station
    station.close()


def bridge(station: Station, **more: Any) -> Mavlink:
    return Mavlink(stations=(station.address,), **more)


def driven(station: Station, **more: Any) -> Mavlink:
    return bridge(station, **{"channels": (AXIS, NUMBER)} | more)


class Tunable(Swimmer):
    """A swimmer with parameters; gain may change."""

    def __init__(self) -> None:
        super().__init__()
        self.parameters = {"gain": 1.0, "fins": 2, "heavy": True, "name": "toy", "length_of_the_body_m": 0.5}

    def set(self, **values: Any) -> None:
        if set(values) != {"gain"}:
            raise rtmms.ModelError(f"{next(iter(values))} is fixed while it runs")
        super().set(**values)


# -- telemetry -------------------------------------------------------------------------------------------------------


def test_what_a_station_gets_to_see(station: Station) -> None:
    home = Home(lat_deg=47.0, lon_deg=8.0, alt_m=400.0)
    built = driven(station, vehicle_type=12, values={"depth": "depth", "vx": "velocity[0]"}, home=home, armed=True)
    with Sailing(built) as sailing:
        beat = station.receive("HEARTBEAT", system_status=4)
        assert (beat.type, beat.autopilot, beat.base_mode) == (12, 0, 128 | 64)
        assert (beat.get_srcSystem(), beat.get_srcComponent()) == (1, 1)
        built.command({"thrust": 1.0, "rudder": -0.25})
        wait(lambda: sailing.loop.step > 200)
        before = station.receive("ATTITUDE_QUATERNION").time_boot_ms
        result = wait(lambda: (m := station.receive("ATTITUDE")).time_boot_ms > before and m)
        q = station.receive("ATTITUDE_QUATERNION", time_boot_ms=result.time_boot_ms)
        assert (result.rollspeed, result.pitchspeed, result.yawspeed) == pytest.approx((0.0, 0.0, 0.25))
        assert (result.roll, result.pitch) == pytest.approx((0.0, 0.0), abs=1e-6)
        assert math.pi / 2 < result.yaw < math.pi  # it began eastwards, and turns right
        assert (q.q1, q.q4) == pytest.approx((math.cos(result.yaw / 2), math.sin(result.yaw / 2)), abs=1e-6)
        place = station.receive("LOCAL_POSITION_NED")
        assert math.hypot(place.vx, place.vy) == pytest.approx(1.0, rel=1e-5)
        assert (place.z, place.vz) == (2.0, 0.0)
        assert place.y > 0.0 > place.x
        there = station.receive("GLOBAL_POSITION_INT")
        assert (there.alt, there.relative_alt) == (398000, -2000)
        assert there.lon > 80000000 > 0
        assert 9000 <= there.hdg < 18000
        assert station.receive("NAMED_VALUE_FLOAT", name="depth").value == 2.0
        assert station.receive("NAMED_VALUE_FLOAT", name="vx").value == pytest.approx(1.0)
        assert station.receive("SYSTEM_TIME").time_unix_usec > 1.7e15


def test_rates_are_of_simulated_time(station: Station) -> None:
    with Sailing(driven(station, attitude_hz=50.0)):
        stamps = [station.receive("ATTITUDE").time_boot_ms for _ in range(10)]
        assert all(b - a >= 19 for a, b in pairwise(stamps))
        assert all(stamp % 20 == 0 for stamp in stamps)


def test_without_channels_it_only_watches(station: Station) -> None:
    assert bridge(station).claims() == ()
    with Sailing(bridge(station, claim=("rudder",))) as sailing:  # the plant of this test waits for a claim
        assert station.receive("HEARTBEAT").base_mode == 0
        assert station.command(400, 1.0) == 2
        assert station.command(187, 0.5) == 2
        assert not sailing.bridged.bridge._armed  # type: ignore[attr-defined]


def test_a_silent_plant_is_reported(station: Station) -> None:
    with Sailing(driven(station, watchdog_periods=1)) as sailing:
        station.receive("HEARTBEAT", system_status=4)
        step, gate = sailing.plant.step, []
        sailing.plant.step = lambda command: (wait(lambda: gate), step(command))
        station.receive("HEARTBEAT", system_status=5)
        gate.append(1)
        station.receive("HEARTBEAT", system_status=4)


# -- set-points ------------------------------------------------------------------------------------------------------


def test_a_joystick_drives_what_is_armed_and_leaves_it_neutral(station: Station) -> None:
    with Sailing(driven(station, home_after_s=1.0)) as sailing:
        station.receive("HEARTBEAT", base_mode=64)
        station.mav.manual_control_send(1, 500, 0, 0, 0, 0)
        assert station.command(400, 1.0) == 0
        station.receive("HEARTBEAT", base_mode=192)
        wait(lambda: sailing.command == (0.0, 0.0))
        station.mav.manual_control_send(9, 900, 0, 0, 0, 0)  # another vehicle's
        station.mav.manual_control_send(1, 500, 32767, 32767, 32767, 0)
        wait(lambda: sailing.drove(1.0))
        wait(lambda: sailing.command[0] == 0.0)
        assert any("no MANUAL_CONTROL" in line for line in sailing.bridged.messages)
        assert not any(thrust > 1.0 for thrust, _ in sailing.plant.commands)


def test_actuators_by_command(station: Station) -> None:
    nan = math.nan
    with Sailing(driven(station, home_after_s=0.1)) as sailing:
        station.receive("HEARTBEAT")
        assert station.command(187, nan, 0.5, nan, nan, nan, nan, 1) == 1  # not armed
        assert station.command(400, 1.0) == 0
        assert station.command(187, nan, 0.5, nan, nan, nan, nan, 1) == 0
        wait(lambda: sailing.command[1] == pytest.approx(-0.5))
        for wrong in ((nan, 1.5, nan, nan, nan, nan, 1), (nan, 0.5, nan, nan, nan, nan, 7), (0.5, nan)):
            assert station.command(187, *wrong) == 2
        assert station.command(187, nan, math.inf, nan, nan, nan, nan, 1) == 2
        assert sailing.command[1] == pytest.approx(-0.5)  # no joystick, so nothing to miss
        assert station.command(400, 0.0) == 0
        wait(lambda: sailing.command == (0.0, 0.0))
        assert station.command(512, 148.0) == 0
        assert station.receive("AUTOPILOT_VERSION").capabilities & 8192
        assert station.command(22) == 3


def test_sticks_to_a_controllers_words() -> None:
    asked: list[tuple[dict[str, float], Any]] = []
    refused: list[str] = []
    parts = ParameterChannels({"z": "mixer.thrust", "r": "-mixer.yaw", "3": "mixer.roll"}, AXES + ACTUATORS)
    parts.open(lambda op, done, **values: asked.append((values, done)), refused.append)
    assert not parts.take({"x": 0.5})
    assert parts.take({"x": 0.5, "z": 0.25, "r": 0.5})
    assert [values for values, _ in asked] == [{"mixer.thrust": 0.25, "mixer.yaw": -0.5}]
    parts.take({"z": 0.5})
    parts.take({"z": 0.75, "r": 0.5})
    assert len(asked) == 1, "one at a time"
    asked[0][1](True, None)
    assert asked[1][0] == {"mixer.thrust": 0.75}, "the newest alone, and what is new"
    asked[1][1](True, None)
    parts.take({"z": 0.75})
    assert len(asked) == 2
    parts.take({"z": 0.5})
    asked[2][1](False, "no such controller")
    assert refused == ["no such controller"]
    parts.zero_parameters()
    assert asked[3][0] == {"mixer.thrust": 0.0, "mixer.yaw": 0.0}, "of what was not taken nobody knows where it is"


def test_words_are_those_of_the_mixer() -> None:
    page = (ROOT / "docs" / "bridges" / "mavlink.md").read_text()
    result = re.findall(r"\b[xyzr]=-?mixer\.(\w+)", page)
    assert set(result) == {"thrust", "yaw", "pitch", "roll"}
    assert set(result) <= set(load_controller("mixer").tunable_parameters)


@pytest.mark.parametrize(
    ("table", "text"),
    [
        ({"w": "mixer.thrust"}, "parameter_channels: unknown channel 'w'"),
        ({"z": "thrust"}, "parameter_channels.z: expected CONTROLLER.PARAM"),
        ({"z": "mixer.yaw", "r": "-mixer.yaw"}, "parameter_channels.r: 'mixer.yaw' is listed twice"),
    ],
)  # fmt: skip
def test_tables_of_words_that_make_no_sense(station: Station, table: dict[str, str], text: str) -> None:
    with pytest.raises(rtmms.ModelError, match=text):
        bridge(station, parameter_channels=table)


def test_words_are_set_once_a_station_has_armed_it(station: Station) -> None:
    with Sailing(driven(station, parameter_channels={"z": "mixer.thrust"})) as sailing:
        station.receive("HEARTBEAT")
        station.mav.manual_control_send(1, 0, 0, 500, 0, 0)
        assert station.command(400, 1.0) == 0
        assert "parameter" not in sailing.bridged.counts.reasons()
        station.mav.manual_control_send(1, 0, 0, 500, 0, 0)
        wait(lambda: any("(parameter_channels): " in line and "mixer" in line for line in sailing.bridged.messages))
        assert sailing.bridged.counts.reasons()["parameter"] >= 1  # nobody of that name is here


# -- parameters ------------------------------------------------------------------------------------------------------


def test_parameters_are_listed_read_and_set(station: Station) -> None:
    with Sailing(driven(station), plant=Tunable()) as sailing:
        station.receive("HEARTBEAT")
        station.mav.param_request_list_send(1, 1)
        observed = {}
        while len(observed) < 7:
            result = station.receive("PARAM_VALUE")
            observed[result.param_index] = (result.param_id, result.param_value)
            assert (result.param_count, result.param_type) == (7, 9)
        assert [observed[i] for i in range(7)] == [
            ("RATE_ATTITUDE", 20.0), ("RATE_POSITION", 10.0), ("RATE_VALUES", 5.0), ("fins", 2.0), ("gain", 1.0),
            ("heavy", 1.0), ("length_of_the_bo", 0.5),
        ]  # fmt: skip
        station.mav.param_request_read_send(1, 1, b"gain", -1)
        assert station.receive("PARAM_VALUE").param_id == "gain"
        station.mav.param_request_read_send(1, 1, b"", 3)
        assert station.receive("PARAM_VALUE").param_id == "fins"

        station.mav.param_set_send(1, 1, b"gain", 3.0, 9)
        assert station.receive("PARAM_VALUE", param_id="gain").param_value == 3.0
        assert sailing.plant.gain == 3.0
        station.mav.param_set_send(1, 1, b"fins", 4.0, 9)
        assert station.receive("PARAM_VALUE", param_id="fins").param_value == 2.0
        assert any("fins is fixed while it runs" in line for line in sailing.bridged.messages)
        station.mav.param_set_send(1, 1, b"RATE_ATTITUDE", 50.0, 9)
        assert station.receive("PARAM_VALUE", param_id="RATE_ATTITUDE").param_value == 50.0
        station.mav.param_set_send(1, 1, b"RATE_ATTITUDE", 5e4, 9)
        assert station.receive("PARAM_VALUE", param_id="RATE_ATTITUDE").param_value == 50.0
        station.mav.param_set_send(1, 1, b"gain", math.nan, 9)
        assert station.receive("PARAM_VALUE", param_id="gain").param_value == 3.0
        station.mav.param_set_send(1, 1, b"nothing", 1.0, 9)
        wait(lambda: sailing.bridged.counts.reasons() == {"parameter": 2, "range": 1, "not_finite": 1})


def test_names_that_become_the_same_are_numbered() -> None:
    built = Parameters()
    built.add_plant({"young_modulus_of_a": 1.0, "young_modulus_of_b": 2.0, "nan": math.nan}, lambda item, value: None)
    assert [item.name for item in built.all] == ["young_modulus_of", "young_modulus_~2"]


# -- who may speak ---------------------------------------------------------------------------------------------------


def test_strangers_are_refused(station: Station) -> None:
    with Sailing(driven(station, armed=True)) as sailing:
        station.receive("HEARTBEAT")
        port = sailing.bridged.bridge._socket.getsockname()[1]  # type: ignore[attr-defined]
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
            frame = Writer(255, 190).pack(common.MAVLink_manual_control_message(1, 1000, 0, 0, 0, 0))
            stranger.sendto(frame, ("127.0.0.1", port))
        wait(lambda: sailing.bridged.counts.reasons() == {"stranger": 1})
        station.link.port.sendto(b"nonsense", ("127.0.0.1", port))
        wait(lambda: "malformed" in sailing.bridged.counts.reasons())
        wait(lambda: len(sailing.plant.commands) > 5)
        assert set(sailing.plant.commands) == {(0.0, 0.0)}


def test_with_a_key_all_is_signed_and_what_is_not_is_refused(station: Station, tmp_path: Path) -> None:
    file, key = tmp_path / "key", bytes(range(32))
    file.write_text(key.hex())
    file.chmod(0o600)
    with Sailing(driven(station, key=str(file), armed=True)) as sailing:
        station.link.setup_signing(key, sign_outgoing=False, initial_timestamp=Signing._now())
        assert station.receive("HEARTBEAT").get_signed()
        station.mav.manual_control_send(1, 1000, 0, 0, 0, 0)
        wait(lambda: sailing.bridged.counts.reasons() == {"signature": 1})
        station.mav.signing.sign_outgoing = True
        station.mav.manual_control_send(1, 500, 0, 0, 0, 0)
        wait(lambda: sailing.command[0] == pytest.approx(1.0))


@pytest.mark.parametrize(
    ("arguments", "output"),
    [
        ({"stations": ("here:0",)}, "HOST:PORT"),
        ({"stations": ()}, "at least one"),
        ({"attitude_hz": -1.0}, "attitude_hz"),
        ({"system": 256}, "system"),
        ({"values": {"a_very_long_name": "depth"}}, "1 to 10 letters"),
        ({"channels": (ChannelMapping(channel="w", actuator="thrust"),)}, "unknown channel 'w'"),
        ({"key": "no such file"}, "there is no such file"),
    ],
)
def test_words_that_make_no_sense(arguments: dict[str, Any], output: str) -> None:
    with pytest.raises(rtmms.ModelError, match=output):
        Mavlink(**arguments)


# -- stations that go, or have a name ---------------------------------------------------------------------------------


def test_a_station_that_is_gone_leaves_nothing_driven(station: Station) -> None:
    with Sailing(driven(station, peer_timeout_s=PATIENCE_S, home_after_s=0.0)) as sailing:
        station.receive("HEARTBEAT")
        assert station.command(400, 1.0) == 0
        assert station.command(187, math.nan, 0.5, math.nan, math.nan, math.nan, math.nan, 1) == 0
        wait(lambda: sailing.command[1] == pytest.approx(-0.5))
        watch = sailing.bridged.bridge.peer_watch
        for _ in range(5):  # heartbeats alone keep it: each one begins its silence anew
            before = watch._fed_at
            station.mav.heartbeat_send(6, 8, 0, 0, 0)
            wait(lambda before=before: watch._fed_at != before)
        assert not sailing.bridged.counts["peer_lost"]
        assert sailing.command[1] == pytest.approx(-0.5)
        watch.limit_s = 0.5
        wait(lambda: sailing.command == (0.0, 0.0))
        assert sailing.bridged.counts["peer_lost"] == 1


def test_a_station_by_name_is_looked_up_once_and_is_no_stranger(
    station: Station, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Any] = []
    look_up = socket.getaddrinfo

    def counted(*arguments: Any, **more: Any) -> Any:
        asked.append(arguments)
        return look_up(*arguments, **more)

    monkeypatch.setattr(socket, "getaddrinfo", counted)
    port = station.address.rpartition(":")[2]
    with Sailing(Mavlink(stations=(f"localhost:{port}",), channels=(AXIS, NUMBER))) as sailing:
        station.receive("HEARTBEAT")
        assert station.command(400, 1.0) == 0
        assert sailing.bridged.counts["refused"] == 0
    assert sum(arguments[0] == "localhost" for arguments in asked) == 1


def test_a_list_of_the_last_plants_parameters_is_forgotten(station: Station) -> None:
    built = driven(station)
    with Sailing(built, plant=Tunable()) as sailing:
        station.receive("HEARTBEAT")
        built._on_param_request_list(None)
        built.plant_again(built.plant)
        assert not built._list
        station.mav.param_request_list_send(1, 1)
        assert {station.receive("PARAM_VALUE").param_id for _ in range(3)} <= {p.name for p in built._parameters.all}
        assert sailing.bridged.fault is None


def test_numbers_too_large_for_the_protocol_are_not_offered() -> None:
    built = Parameters()
    built.add_plant({"huge": 1e39, "nan": math.nan, "inf": -math.inf, "most": 3.4e38, "less": -2}, lambda *_: None)
    assert [item.name for item in built.all] == ["less", "most"]


def test_what_stations_ask_for_is_answered(station: Station) -> None:
    with Sailing(driven(station)):
        station.receive("HEARTBEAT")
        station.mav.command_int_send(1, 1, 0, 192, 0, 0, 0, 0, 0, 0, 0, 0, 0)
        assert station.receive("COMMAND_ACK", command=192).result == 3
        station.mav.mission_request_list_send(1, 1)
        assert station.receive("MISSION_COUNT").count == 0
        station.mav.ping_send(1234, 7, 0, 0)
        back = station.receive("PING")
        assert (back.time_usec, back.seq, back.target_system, back.target_component) == (1234, 7, 255, 190)
        station.mav.timesync_send(0, 99)
        result = station.receive("TIMESYNC")
        assert result.ts1 == 99
        assert result.tc1 > 0


# -- what a ground station shows of the robot -------------------------------------------------------------------------


def test_a_robot_in_air_stands_on_the_ground_or_flies(station: Station) -> None:
    plant = Flyer()
    with Sailing(driven(station, armed=True, home_after_s=0.0), plant=plant):
        station.receive("EXTENDED_SYS_STATE", landed_state=1, vtol_state=0)
        plant.height = 1.0
        station.receive("EXTENDED_SYS_STATE", landed_state=2)
        plant.height = 0.1
        station.receive("EXTENDED_SYS_STATE", landed_state=1)
        station.mav.manual_control_send(1, 1000, 0, 0, 0, 0)  # along the ground
        station.receive("EXTENDED_SYS_STATE", landed_state=2)


def test_the_ground_is_where_the_configuration_states(station: Station) -> None:
    plant = Flyer()
    plant.height = -1.9
    with Sailing(driven(station, ground_m=-2.0), plant=plant):
        station.receive("EXTENDED_SYS_STATE", landed_state=1)
        assert station.command(512, 245.0) == 0


def test_a_robot_in_water_neither_flies_nor_lands(station: Station) -> None:
    with Sailing(driven(station)):
        station.receive("HEARTBEAT", system_status=4)
        assert station.receive("EXTENDED_SYS_STATE").landed_state == 0


def test_the_version_is_the_packages_and_the_number_the_plants(station: Station) -> None:
    with Sailing(driven(station)):
        station.receive("HEARTBEAT", system_status=4)
        assert station.command(512, 148.0) == 0
        first = station.receive("AUTOPILOT_VERSION")
        assert first.flight_sw_version == packed_version(rtmms.__version__) > 0
    with Sailing(driven(station)):
        station.receive("HEARTBEAT", system_status=4)
        assert station.command(512, 148.0) == 0
        assert first.uid != station.receive("AUTOPILOT_VERSION").uid != 0


@pytest.mark.parametrize(("text", "packed"), [
    ("1.2.3", 0x010203FF), ("0.2.0", 0x000200FF), ("0.3.0.dev1", 0x00030000), ("10.0", 0x0A0000FF), ("unknown", 0),
])  # fmt: skip
def test_versions_as_the_message_has_them(text: str, packed: int) -> None:
    assert packed_version(text) == packed


@pytest.mark.parametrize(("drives", "custom"), [(True, 1 << 16), (False, 4 << 16 | 3 << 24)])
def test_a_flight_mode_of_px4(station: Station, drives: bool, custom: int) -> None:
    """MANUAL where stations drive it, HOLD where another controller does; the generic autopilot has no custom mode."""
    options: dict[str, Any] = {"channels": (AXIS,)} if drives else {"claim": ("*",)}
    with Sailing(bridge(station, autopilot=12, **options)):
        beat = station.receive("HEARTBEAT", system_status=4)
        assert (beat.autopilot, beat.custom_mode, beat.base_mode & 1) == (12, custom, 1)


def test_a_flight_mode_without_a_firmware(station: Station) -> None:
    with Sailing(driven(station)):
        beat = station.receive("HEARTBEAT", system_status=4)
        assert (beat.autopilot, beat.custom_mode, beat.base_mode) == (0, 0, 64)
