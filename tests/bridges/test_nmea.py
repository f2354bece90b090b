"""NMEA 0183 beside gpsd and pynmea2, PD6 beside a parser of the manual's; set-points over UDP, TCP, a serial line."""

from __future__ import annotations

import contextlib
import json
import math
import os
import re
import shutil
import socket
import subprocess
import tty
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("pynmea2", reason="needs pynmea2: pip install 'rtmms[nmea]'")
pytest.importorskip("pyproj")

import pynmea2
import pyproj

import rtmms
from rtmms.bridging.channels import ChannelMapping
from rtmms.bridging.untrusted import Refusal
from rtmms.plant.protocol import Channel
from rtmms.sensing import Sensed
from rtmms.sensing.data_sheets import Depth, Dvl, Gps, Imu, Magnetometer
from rtmms_bridges.motion.frames import Home
from rtmms_bridges.nmea import Nmea
from rtmms_bridges.sea.sentences import KNOT, Lines, SetPoints, sentence
from tests.bridges.by_hand import opened
from tests.bridges.harness import Companion, plant_info, state, wait
from tests.bridges.swimmer import Sailing, Swimmer
from tests.ports import reserve_ports
from tests.sensing.mover import Mover
from tests.wire.bench import PATIENCE_S, Host

pytestmark = pytest.mark.full

HOME = Home(lat_deg=43.11, lon_deg=5.94, alt_m=12.0, x_bearing_deg=90.0)


def east_north(home: Home, lat: float, lon: float) -> tuple[float, float]:
    """By pyproj: a topocentric frame at home."""
    at = f"+lat_0={home.lat_deg} +lon_0={home.lon_deg} +h_0={home.alt_m}"
    pipe = pyproj.Transformer.from_pipeline(f"+proj=pipeline +step +proj=cart +ellps=WGS84 +step +proj=topocentric "
                                            f"+ellps=WGS84 {at}")  # fmt: skip
    e, n, _ = pipe.transform(math.radians(lon), math.radians(lat), home.alt_m, radians=True)
    return e, n


@pytest.fixture
def receiving() -> Iterator[socket.socket]:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as peer:
        peer.bind(("127.0.0.1", 0))
        peer.settimeout(PATIENCE_S)
        yield peer


def udp(peer: socket.socket) -> str:
    return f"udp://127.0.0.1:{peer.getsockname()[1]}"


def sentences_from(peer: socket.socket) -> list[Any]:
    """The sentences of one message, by pynmea2, which checks their sums."""
    return [pynmea2.parse(line, check=True) for line in peer.recv(65536).decode().splitlines()]


POSE = (
    Channel("position", "m", (3,), "world"), Channel("quaternion", "", (4,)), Channel("velocity", "m/s", (3,), "body"),
    Channel("angular_velocity", "rad/s", (3,), "body"), Channel("slip", "m/s"),
)  # fmt: skip


def outputs(
    yaw: float = 0.0, at: tuple[float, float, float] = (30.0, 40.0, -2.5), speed: float = 1.5
) -> dict[str, Any]:
    return {
        "position": list(at), "quaternion": [math.cos(yaw / 2), 0.0, 0.0, math.sin(yaw / 2)],
        "velocity": [speed, 0.0, 0.0], "angular_velocity": [0.0, 0.0, -0.1], "slip": 0.5,
    }  # fmt: skip


# -- out ------------------------------------------------------------------------------------------------------------


def test_the_truth_in_sentences(receiving: socket.socket) -> None:
    info = plant_info(*POSE)
    bridge = opened(
        Nmea(to=udp(receiving), home=HOME, variation_deg=3.0, bottom_m=-20.0, water_speed="slip", water_c=14.5,
             epoch="2026-06-01T12:00:00"), info,
    )  # fmt: skip
    bridge.on_state(state(info, 2500, **outputs(yaw=math.radians(30.0))))
    result = {item.sentence_type: item for item in sentences_from(receiving)}
    bridge.close("the test is over")
    assert set(result) == {"RMC", "GGA", "VTG", "HDT", "HDG", "ROT", "VHW", "DPT", "DBT", "MTW", "XDR"}
    rmc, gga = result["RMC"], result["GGA"]
    assert (rmc.talker, rmc.status, rmc.datetime.isoformat()) == ("GP", "A", "2026-06-01T12:00:02.500000+00:00")
    assert east_north(HOME, rmc.latitude, rmc.longitude) == pytest.approx((30.0, 40.0), abs=0.03)
    assert east_north(HOME, gga.latitude, gga.longitude) == pytest.approx((30.0, 40.0), abs=0.03)
    assert (gga.gps_qual, gga.altitude) == (1, pytest.approx(9.5, abs=0.02))
    # x is east: 30 deg to the left of it is north-east, 60 deg
    assert rmc.true_course == result["VTG"].true_track == 60.0
    assert float(result["VTG"].mag_track) == 57.0
    assert rmc.spd_over_grnd * KNOT == pytest.approx(1.5, abs=0.01)
    assert (float(result["HDT"].heading), result["HDT"].hdg_true) == (60.0, "T")
    assert (float(result["HDG"].heading), float(result["HDG"].variation), result["HDG"].var_dir) == (57.0, 3.0, "E")
    assert float(result["ROT"].rate_of_turn) == pytest.approx(math.degrees(0.1) * 60.0, abs=0.05)  # to starboard: > 0
    assert float(result["VHW"].water_speed_knots) * KNOT == pytest.approx(0.5, abs=0.01)
    assert float(result["DPT"].depth) == float(result["DBT"].depth_meters) == 17.5
    assert float(result["DBT"].depth_feet) == pytest.approx(17.5 / 0.3048, abs=0.1)
    assert (float(result["MTW"].temperature), result["MTW"].units) == (14.5, "C")
    transducers = {item.id: float(item.value) for item in (result["XDR"].get_transducer(i) for i in range(3))}
    assert transducers == {"PTCH": 0.0, "ROLL": 0.0, "DEPTH": 2.5}
    assert any("from the truth" in line for line in bridge.io.messages)  # type: ignore[attr-defined]


def test_no_sentence_is_longer_than_the_standard_has_it(receiving: socket.socket) -> None:
    info = plant_info(*POSE)
    home = replace(HOME, lat_deg=-43.99999999, lon_deg=-179.99999999)
    bridge = opened(Nmea(to=udp(receiving), home=home, bottom_m=-20.0, water_c=5.0), info)
    bridge.on_state(state(info, 1, **outputs(speed=45.0)))
    for line in receiving.recv(65536).splitlines(keepends=True):
        assert len(line) <= 82, line
    bridge.close("the test is over")


def test_rates_talkers_and_a_plant_that_begins_anew(receiving: socket.socket) -> None:
    info = plant_info(*POSE)
    bridge = opened(Nmea(to=udp(receiving), home=HOME, sentences=("IIHDT:10", "HEROT:2")), info)
    for _ in range(2):  # the second time the plant was reset
        for step in range(0, 1000, 5):
            bridge.on_state(state(info, step, **outputs()))
    bridge.close("the test is over")
    receiving.setblocking(False)
    result = []
    while True:
        try:
            result += [(item.talker, item.sentence_type) for item in sentences_from(receiving)]
        except BlockingIOError:
            break
    assert result.count(("II", "HDT")) == 20
    assert result.count(("HE", "ROT")) == 4


def swim(time: float) -> tuple[Any, Any, Any, Any]:
    from scipy.spatial.transform import Rotation

    turn = Rotation.from_euler("ZYX", [0.5, -0.1, 0.05])  # z up: nose up by 0.1, right side down by 0.05
    velocity = np.array([1.0, 0.0, 0.0])
    return turn.apply(velocity) * time + np.array([5.0, 8.0, -3.0]), turn, velocity, np.array([0.0, 0.0, 0.02])


def seen_info(plant: Sensed) -> Any:
    names = tuple(channel.name for channel in plant.outputs if not channel.name.startswith("truth."))
    return replace(plant_info(*plant.outputs), selected=names)


def test_what_instruments_read_at_their_rate_and_latency(receiving: socket.socket) -> None:
    """The compass from field and gravity, the speed from fixes; each sample once, with the time of its taking."""
    plant = Sensed(Mover(swim, dt=1e-2), {
        "imu": Imu(rate_hz=100.0), "mag": Magnetometer(rate_hz=50.0, field_t=(2e-6, 2.4e-5, -4e-5)),
        "gps": Gps(rate_hz=5.0, latency_s=0.15, surface_m=-1e6), "depth": Depth(rate_hz=50.0),
        "dvl": Dvl(rate_hz=10.0, latency_s=0.1, bottom_m=-20.0),
    })  # fmt: skip
    plant.reset(1)
    info = seen_info(plant)
    variation = math.degrees(math.atan2(2e-6, 2.4e-5))
    bridge = opened(Nmea(to=udp(receiving), home=HOME, variation_deg=variation, epoch="2026-06-01T00:00:00"), info)
    result: dict[str, list[Any]] = {}
    for step in range(400):
        plant.step(np.zeros(1))
        values = {name: value.tolist() if value.shape else float(value) for name, value in plant.observe().items()
                  if not name.startswith("truth.")}  # fmt: skip
        bridge.on_state(replace_time(state(info, step, **values), (step + 1) * 1e-2))
        receiving.setblocking(False)
        try:
            while True:
                for item in sentences_from(receiving):
                    result.setdefault(item.sentence_type, []).append(((step + 1) * 1e-2, item))
        except BlockingIOError:
            pass
    bridge.close("the test is over")
    assert "VHW" not in result, "nothing of it measures the speed through the water"
    late = [at - (entry.timestamp.hour * 3600 + entry.timestamp.minute * 60 + entry.timestamp.second
                  + entry.timestamp.microsecond * 1e-6) for at, entry in result["GGA"]]  # fmt: skip
    assert min(late) >= 0.14
    assert max(late) <= 0.18
    assert 18 <= len(result["GGA"]) <= 20
    at, last = result["RMC"][-1]
    east, north = east_north(HOME, last.latitude, last.longitude)
    position, turn, _, _ = swim(at - 0.15)
    assert (east, north) == pytest.approx(position[:2], abs=0.05)
    heading = (90.0 - math.degrees(0.5)) % 360.0
    assert last.spd_over_grnd * KNOT == pytest.approx(np.linalg.norm(turn.apply([1, 0, 0])[:2]), abs=0.02)
    assert last.true_course == pytest.approx(heading, abs=0.5)
    for kind, expected in (("HDT", heading), ("HDG", heading - variation)):
        assert float(result[kind][-1][1].heading) == pytest.approx(expected, abs=0.2)
    transducers = result["XDR"][-1][1]
    assert float(transducers.get_transducer(0).value) == pytest.approx(math.degrees(0.1), abs=0.1)
    assert float(transducers.get_transducer(1).value) == pytest.approx(math.degrees(0.05), abs=0.1)
    assert float(transducers.get_transducer(2).value) == pytest.approx(-swim(4.0)[0][2], abs=0.03)
    assert float(result["ROT"][-1][1].rate_of_turn) == pytest.approx(-math.degrees(0.02) * 60, abs=0.1)
    assert any("RMC, GPGGA" in line and "from gps" in line for line in bridge.io.messages)  # type: ignore[attr-defined]


def replace_time(sent: Any, time: float) -> Any:
    sent.time = time
    return sent


def test_under_water_there_is_no_fix(receiving: socket.socket) -> None:
    plant = Sensed(Mover(swim, dt=1e-2), {"gps": Gps(rate_hz=5.0)})
    plant.reset(1)
    info = seen_info(plant)
    bridge = opened(Nmea(to=udp(receiving), home=HOME), info)
    plant.step(np.zeros(1))
    bridge.on_state(state(info, 1, **{name: value.tolist() if value.shape else float(value)
                                      for name, value in plant.observe().items()}))  # fmt: skip
    result = {item.sentence_type: item for item in sentences_from(receiving)}
    bridge.close("the test is over")
    assert set(result) == {"RMC", "GGA", "VTG"}
    assert (result["RMC"].status, result["RMC"].lat, result["GGA"].gps_qual) == ("V", "", 0)
    with pytest.raises(rtmms.ModelError, match=r"sentences: HDT needs a compass \(mag and imu\), or an estimate"):
        opened(Nmea(to=udp(receiving), sentences=("HDT",)), info)
    with pytest.raises(rtmms.ModelError, match=r"has sensors, and sends truth\.position only on request"):
        opened(Nmea(to=udp(receiving), source="truth"), info)


@pytest.mark.skipif(not shutil.which("gpsd") and not Path("/usr/sbin/gpsd").exists(), reason="needs gpsd")
@pytest.mark.skipif(not shutil.which("gpspipe"), reason="needs gpspipe (gpsd-clients)")
def test_gpsd_has_the_robot_where_it_is() -> None:
    """Fix, heading and depth of gpsd, through gpspipe, beside a swimmer in the real loop."""
    port, control = reserve_ports(), reserve_ports()
    program = shutil.which("gpsd") or "/usr/sbin/gpsd"
    gpsd = subprocess.Popen([program, "-N", "-n", "-S", str(control), f"udp://127.0.0.1:{port}"],
                            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)  # fmt: skip
    try:
        wait(lambda: _listens(control))
        bridge = Nmea(to=f"udp://127.0.0.1:{port}", home=HOME, bottom_m=-20.0, claim=("thrust",))
        with Sailing(bridge, "realtime", dt=1e-2, plant=Resting()):
            pipe = subprocess.Popen(["gpspipe", "-w", f"127.0.0.1:{control}"], stdout=subprocess.PIPE, text=True)
            try:
                assert pipe.stdout is not None
                fix = None
                for line in pipe.stdout:
                    output = json.loads(line)
                    # the first fix may be of two dimensions: gpsd has not read the sentence with the height yet
                    if output["class"] == "TPV" and output.get("mode", 0) == 3 and "lat" in output:
                        fix = output
                        break
            finally:
                pipe.kill()
                pipe.communicate()
    finally:
        gpsd.kill()
        gpsd.communicate()
    assert fix is not None
    east, north = east_north(HOME, fix["lat"], fix["lon"])
    assert math.hypot(east - 120.0, north - 35.0) < 1.0
    assert fix["mode"] == 3
    assert fix.get("altHAE", fix.get("alt")) == pytest.approx(10.0, abs=0.5)


class Resting(Swimmer):
    """At a place of its own."""

    def reset(self, seed: int = 0) -> None:
        super().reset(seed)
        self.state[:2] = 120.0, 35.0


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


# -- PD6 ------------------------------------------------------------------------------------------------------------

_SIGNED = r"([+-]\d+(?:\.\d+)?)"
_PD6 = {
    "SA": rf"{_SIGNED},{_SIGNED},(\d{{3}}\.\d\d)",
    "TS": r"(\d{14}),(\d\d\.\d),([+-]?\d+\.\d),(\d+\.\d),(\d{4}\.\d),\s*(\d+)",
    "BI": rf"{_SIGNED},{_SIGNED},{_SIGNED},{_SIGNED},([AV])",
    "BS": rf"{_SIGNED},{_SIGNED},{_SIGNED},([AV])",
    "BE": rf"{_SIGNED},{_SIGNED},{_SIGNED},([AV])",
    "BD": rf"{_SIGNED},{_SIGNED},{_SIGNED},(\d+\.\d\d),(\d+\.\d\d)",
}


def ensemble(text: str) -> dict[str, list[Any]]:
    """Written from the manual's table of PD6, not from what we send: every line in full, in its order."""
    result = {}
    lines = text.split("\r\n")
    assert lines.pop() == ""
    for line in lines:
        assert line[0] == ":"
        fields = re.fullmatch(_PD6[line[1:3]], line[4:])
        assert fields, line
        result[line[1:3]] = [
            group if re.fullmatch(r"[AV]|\d{14}", group) else float(group) for group in fields.groups()
        ]
    assert list(result) == list(_PD6)
    return result


def test_pd6_of_the_truth(receiving: socket.socket) -> None:
    info = plant_info(*POSE)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other:
        other.bind(("127.0.0.1", 0))
        bridge = opened(
            Nmea(to=udp(other), pd6=udp(receiving), pd6_hz=10.0, home=HOME, bottom_m=-20.0, water_c=12.5,
                 epoch="2026-06-01T12:00:00"), info,
        )  # fmt: skip
        for step in range(0, 2001, 10):  # 1.5 m/s to the north-east (30 deg left of east), 2 s
            bridge.on_state(state(info, step, **outputs(yaw=math.radians(30.0))))
        bridge.close("the test is over")
    receiving.setblocking(False)
    result = []
    with contextlib.suppress(BlockingIOError):
        while True:
            result.append(ensemble(receiving.recv(4096).decode()))
    assert len(result) == 21
    last = result[-1]
    assert last["SA"] == [0.0, 0.0, 60.0]
    assert last["TS"] == ["26060112000200", 35.0, 12.5, 2.5, 1500.0, 0.0]
    assert last["BI"] == [0.0, 1500.0, 0.0, 0.0, "A"]
    assert last["BS"] == [0.0, 1500.0, 0.0, "A"]
    east, north = 1.5 * math.cos(math.radians(30.0)), 1.5 * math.sin(math.radians(30.0))
    assert last["BE"] == [round(1000 * east), round(1000 * north), 0.0, "A"]
    assert last["BD"] == [pytest.approx(2 * east, abs=0.02), pytest.approx(2 * north, abs=0.02), 0.0, 17.5, 0.0]


def test_pd6_of_a_doppler_log(receiving: socket.socket) -> None:
    sensors = {
        "imu": Imu(rate_hz=100.0),
        "mag": Magnetometer(field_t=(0.0, 2.4e-5, -4e-5)),
        "dvl": Dvl(rate_hz=10.0, bottom_m=-20.0),
    }
    far = sensors | {"dvl": Dvl(rate_hz=10.0, bottom_m=-500.0)}
    for parts, valid in ((sensors, True), (far, False)):
        plant = Sensed(Mover(swim, dt=1e-2), parts)
        plant.reset(1)
        info = seen_info(plant)
        bridge = opened(Nmea(pd6=udp(receiving), home=HOME, variation_deg=0.0), info)
        plant.step(np.zeros(1))
        bridge.on_state(state(info, 1, **{name: value.tolist() if value.shape else float(value)
                                          for name, value in plant.observe().items()}))  # fmt: skip
        bridge.close("the test is over")
        result = ensemble(receiving.recv(4096).decode())
        if not valid:
            assert result["BI"] == [-32768.0] * 4 + ["V"]
            assert result["BE"] == [-32768.0] * 3 + ["V"]
            continue
        assert result["BI"] == [0.0, 1000.0, 0.0, 0.0, "A"]
        assert result["SA"][:2] == pytest.approx([math.degrees(0.1), math.degrees(0.05)], abs=0.05)
        east, north, up = swim(0.0)[1].apply([1.0, 0.0, 0.0])
        assert result["BE"][:3] == pytest.approx([1000 * east, 1000 * north, 1000 * up], abs=5)
        assert result["BD"][3] == pytest.approx(17.0, rel=0.05)


# -- in -------------------------------------------------------------------------------------------------------------


def points(**more: Any) -> SetPoints:
    current = {"PRTMS": "speed:knots/heading:compass/depth"}
    return SetPoints(current, HOME, 3.0, **more)


def test_autopilots_sentences() -> None:
    line = sentence("GPAPB", "A", "A", "0.10", "R", "N", "V", "V", "11.0", "M", "DEST", "11.0", "M", "12.0", "T")
    result = points().parse(line.encode())
    # x is east: 12 deg true is 78 deg to its left; 11 deg magnetic is 14 deg true
    assert result == {"APB.heading_deg": 78.0, "APB.bearing_deg": 76.0, "APB.xte_m": pytest.approx(185.2)}
    lat, lon, _ = HOME.geodetic((300.0, -200.0, 0.0))
    place = (f"{int(lat):02d}{lat % 1 * 60:08.5f}", "N", f"{int(lon):03d}{lon % 1 * 60:08.5f}", "E")
    line = sentence("GPRMB", "A", "0.66", "L", "003", "004", *place, "1.3", "352.5", "0.5", "V")
    result = points().parse(line.encode())
    assert (result["RMB.x"], result["RMB.y"]) == pytest.approx((300.0, -200.0), abs=0.05)
    assert result["RMB.bearing_deg"] == pytest.approx(97.5)
    assert (result["RMB.range_m"], result["RMB.xte_m"]) == pytest.approx((1.3 * 1852, -0.66 * 1852))
    result = points().parse(sentence("PRTMS", "2", "180", "").encode())
    assert result == {"PRTMS.speed": pytest.approx(2 * KNOT), "PRTMS.heading": -90.0}


def test_opencpns_sentences_are_taken() -> None:
    """As its autopilot output has them: talker EC, a mode at the end of RMB, empty waypoints."""
    line = sentence("ECAPB", "A", "A", "0.037", "L", "N", "V", "V", "82.3", "T", "003", "84.9", "T", "85.1", "T")
    result = points().parse(line.encode())
    assert (result["APB.heading_deg"], result["APB.bearing_deg"]) == pytest.approx((4.9, 5.1))
    assert result["APB.xte_m"] == pytest.approx(-68.524)
    place = ("4306.600", "N", "00556.400", "E")
    line = sentence("ECRMB", "A", "0.037", "L", "", "003", *place, "0.250", "84.900", "0.000", "V", "A")
    result = points().parse(line.encode())
    assert (result["RMB.x"], result["RMB.y"]) == pytest.approx((0.0, 0.0), abs=0.1)
    assert result["RMB.range_m"] == pytest.approx(463.0)


def test_an_address_that_cannot_be_sent_to_is_reported(receiving: socket.socket) -> None:
    with pytest.raises(rtmms.RtmmsError, match=r"to: '\S+' has no address|cannot send to"):
        opened(Nmea(to="udp://no-such-host.invalid:10110"), plant_info(*POSE))


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"$PRTMS,1,2,3", "checksum"), (b"$PRTMS,1,2,3*00", "checksum"), (b"\xff", "malformed"), (b"", "malformed"),
        (b"pGPRMB,A", "malformed"),
        (sentence("GPGGA", "1").encode(), "unknown"), (sentence("PPRMB", "A").encode(), "unknown"),
        (sentence("PRTMS", "1", "2").encode(), "wrong_length"),
        (sentence("PRTMS", "nan", "2", "3").encode(), "wrong_type"),
        (sentence("PRTMS", "1e9", "2", "3").encode(), "wrong_type"),
        (sentence("PRTMS", ".", "2", "3").encode(), "wrong_type"),
        (sentence("GPAPB", "V", "A", "0.1", "R", "N", *[""] * 9).encode(), "invalid"),
        (sentence("GPAPB", "A", "A", "0.1", "X", "N", *[""] * 9).encode(), "wrong_type"),
        (sentence("GPRMB", "V", *[""] * 12).encode(), "invalid"), (sentence("GPRMB", "V").encode(), "wrong_length"),
        (sentence("GPAPB", *"A" * 13).encode(), "wrong_length"), (sentence("GPAPB").encode(), "wrong_length"),
        (b"$GPRMB,A*00", "checksum"), (b"$GPAPB", "checksum"),
        (sentence("GPRMB", "A", "", "", "", "", "9900.0", "N", "00000.0", "E", "", "", "", "").encode(), "wrong_type"),
        (sentence("GPAPB", "A", "A", "", "", "", "V", "V", "1", "M", "D", "1", "M", "400", "T").encode(), "wrong_type"),
    ],
)  # fmt: skip
def test_what_is_refused(line: bytes, reason: str) -> None:
    with pytest.raises(Refusal) as refused:
        points().parse(line)
    assert refused.value.reason == reason


def test_checksums_may_be_optional() -> None:
    lenient = points(strict=False)
    assert lenient.parse(b"$PRTMS,0,90,3")["PRTMS.depth"] == 3.0
    with pytest.raises(Refusal, match="checksum"):
        lenient.parse(b"$PRTMS,0,90,3*00")


def test_a_stream_in_pieces() -> None:
    reasons: list[str] = []
    lines = Lines(reasons.append)
    stream = b"".join(sentence("PRTMS", str(i), "0", "0").encode() for i in range(50))
    result = [line for at in range(0, len(stream), 7) for line in lines.feed(stream[at : at + 7], False)]
    assert result == [line for line in stream.split(b"\r\n") if line]
    for _ in range(20):
        assert lines.feed(b"x" * 1000, False) == []
        assert len(lines._incomplete) <= 256
    assert lines.feed(b"\r\n$A\r\n", False) == [b"$A"]
    assert reasons == ["oversize"]


DRIVES = {
    "set_points": {"PRTMS": "thrust"},
    "channels": (ChannelMapping(channel="PRTMS.thrust", actuator="left.front"),),
}


def test_set_points_over_udp(receiving: socket.socket, make_host: Callable[..., Host]) -> None:
    port = reserve_ports()
    bridge = Nmea(to=udp(receiving), listen=f"udp://127.0.0.1:{port}", sentences=("GGA",), **DRIVES)
    with Companion(bridge, make_host) as extra:
        receiving.recv(4096)
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as peer:
            peer.sendto(sentence("PRTMS", "0.5").encode(), ("127.0.0.1", port))
            wait(lambda: extra.command[0] == 0.5)
            for wrong in (b"$PRTMS,0.75*00\r\n", b"$PRTMS,x", sentence("GPGGA", "0").encode(), b"\xff" * 5000):
                peer.sendto(wrong, ("127.0.0.1", port))
            wait(lambda: extra.bridged.counts["refused"] == 4)
        assert extra.command[0] == 0.5
    assert extra.bridged.counts.reasons() == {"checksum": 2, "unknown": 1, "oversize": 1}
    assert any(f"every program that reaches udp://127.0.0.1:{port} can drive the robot" in line
               for line in extra.bridged.messages)  # fmt: skip


def test_a_peer_that_is_not_admitted(receiving: socket.socket, make_host: Callable[..., Host]) -> None:
    port = reserve_ports()
    bridge = Nmea(to=udp(receiving), listen=f"udp://127.0.0.1:{port}", peer=("192.0.2.1",), **DRIVES)
    with Companion(bridge, make_host) as extra:
        receiving.recv(4096)
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as peer:
            peer.sendto(sentence("PRTMS", "0.5").encode(), ("127.0.0.1", port))
            wait(lambda: extra.bridged.counts["refused"] == 1)
    assert extra.bridged.counts.reasons() == {"stranger": 1}
    assert extra.command[0] == 0.0


def test_over_tcp_and_a_client_that_goes(make_host: Callable[..., Host]) -> None:
    port = reserve_ports()
    with Companion(Nmea(to=f"tcp://127.0.0.1:{port}", **DRIVES), make_host) as extra:
        wait(lambda: extra.bridged.messages)
        for value in (0.5, 0.75):
            wait(lambda: not extra.bridged.bridge._wire._peer.connected)  # type: ignore[attr-defined]
            with socket.create_connection(("127.0.0.1", port)) as peer:
                peer.settimeout(PATIENCE_S)
                with peer.makefile("rb") as lines:
                    assert pynmea2.parse(lines.readline().decode(), check=True).sentence_type == "RMC"
                peer.sendall(sentence("PRTMS", str(value)).encode())
                wait(lambda value=value: extra.command[0] == value)
            wait(lambda: extra.command[0] == 0.0)  # neutral
    assert extra.bridged.counts["peer_lost"] >= 2


@pytest.mark.skipif(os.name != "posix", reason="pseudo-terminals")
def test_over_a_serial_line(tmp_path: Path, make_host: Callable[..., Host]) -> None:
    master, slave = os.openpty()
    tty.setraw(master)
    name = os.ttyname(slave)
    with Companion(Nmea(to=f"{name}@38400", sentences=("RMC:10",), **DRIVES), make_host) as extra:
        received = b""
        while received.count(b"\r\n") < 3:
            received += os.read(master, 4096)
        assert pynmea2.parse(received.splitlines()[1].decode(), check=True).sentence_type == "RMC"
        os.write(master, sentence("PRTMS", "0.25").encode())
        wait(lambda: extra.command[0] == 0.25)
    os.close(master)
    os.close(slave)


@pytest.mark.skipif(os.name != "posix", reason="pseudo-terminals")
def test_a_serial_line_that_goes_and_comes_back(tmp_path: Path, make_host: Callable[..., Host]) -> None:
    name = tmp_path / "line"

    def plug() -> tuple[int, int]:
        ends = os.openpty()
        tty.setraw(ends[0])
        name.symlink_to(os.ttyname(ends[1]))
        return ends

    ends = plug()
    # a line's address begins with a slash, and may be a link: /dev/serial/by-id/...
    with Companion(Nmea(to=f"{name}@115200", sentences=("GGA:10",), **DRIVES), make_host) as extra:
        wait(lambda: extra.bridged.counts["connections"] == 1)
        os.write(ends[0], sentence("PRTMS", "0.25").encode())
        wait(lambda: extra.command[0] == 0.25)
        name.unlink()
        for end in ends:
            os.close(end)
        wait(lambda: extra.bridged.counts["unplugged"] == 1)
        wait(lambda: extra.command[0] == 0.0)
        ends = plug()
        wait(lambda: extra.bridged.counts["connections"] == 2)
        os.write(ends[0], sentence("PRTMS", "0.5").encode())
        wait(lambda: extra.command[0] == 0.5)
    for end in ends:
        os.close(end)


def test_a_flood_costs_no_state(receiving: socket.socket, make_host: Callable[..., Host]) -> None:
    port = reserve_ports()
    bridge = Nmea(to=udp(receiving), listen=f"udp://127.0.0.1:{port}", sentences=("GGA",), **DRIVES)
    with Companion(bridge, make_host) as extra, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as peer:
        receiving.recv(4096)
        for i in range(5000):
            peer.sendto((b"$PRTMS,1*00\r\n", b"\xff" * 3000, b"$" * 300)[i % 3], ("127.0.0.1", port))
        states = extra.bridged.counts["states"]
        wait(lambda: extra.bridged.counts["states"] > states + 100)
        wait(lambda: peer.sendto(sentence("PRTMS", "0.5").encode(), ("127.0.0.1", port)) and extra.command[0] == 0.5)
    assert set(extra.bridged.counts.reasons()) <= {"checksum", "malformed", "oversize"}


def test_words_of_a_controller(receiving: socket.socket, asked: dict[str, float]) -> None:
    info = plant_info(*POSE)
    bridge = opened(
        Nmea(to=udp(receiving), listen=f"udp://127.0.0.1:{reserve_ports()}", home=HOME, set_points={"PRTMS": "speed"},
             parameter_channels={"APB.heading_deg": "autopilot.heading_deg", "PRTMS.speed": "autopilot.speed_m_s"},
             lost={"PRTMS.speed": 0.0}), info,
    )  # fmt: skip
    line = sentence("GPAPB", "A", "A", "0.10", "R", "N", "V", "V", "11.0", "M", "DEST", "11.0", "M", "12.0", "T")
    bridge._on_bytes((line + sentence("PRTMS", "0.3")).encode(), True)
    assert asked == {"autopilot.heading_deg": 78.0, "autopilot.speed_m_s": 0.3}
    bridge.on_peer_lost("the peer has been silent")
    assert asked == {"autopilot.heading_deg": 78.0, "autopilot.speed_m_s": 0.0}
    bridge.close("the test is over")


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"to": "udp:1"}, r"to: expected udp://HOST:PORT, tcp://HOST:PORT or DEVICE\[@BAUD\], got 'udp:1'"),
        ({"to": "udp://host"}, "to: expected HOST:PORT, got 'host'"),
        ({"to": "/dev/null/x@fast"}, "to: expected DEVICE@BAUD"),
        ({"to": "/etc/passwd"}, "to: expected a serial device, got '/etc/passwd'"),
        ({"listen": "tcp://127.0.0.1:1"}, "listen: expected udp://HOST:PORT"),
        ({"sentences": ("GPXYZ",)}, r"sentences: expected \[TALKER\]TYPE\[:HZ\] with one of RMC, .*; got 'GPXYZ'"),
        ({"sentences": ("RMC:0",)}, "expected a rate > 0"),
        ({"set_points": {"GPAPB": "x"}}, "set_points: expected the head of a sentence, .* got 'GPAPB'"),
        ({"set_points": {"PRTMS": "x:miles"}}, "set_points.PRTMS: expected FIELD, FIELD:compass or FIELD:knots"),
        ({"parameter_channels": {"APB.head": "autopilot.heading_deg"}},
         "unknown channel 'APB.head'; did you mean APB.heading_deg"),
        ({"lost": {"APB.heading_deg": 0.0}}, "lost: unknown channel 'APB.heading_deg'"),
        ({"epoch": "noon"}, "epoch: expected a time such as 2026-06-01T12:00:00, got 'noon'"),
    ],
)  # fmt: skip
def test_wrong_words(arguments: dict[str, Any], text: str) -> None:
    with pytest.raises(rtmms.ModelError, match=text):
        Nmea(**arguments)
