"""The ArduPilot bridge against its other side, played from the format, with its searching reader and its time-outs."""

from __future__ import annotations

import contextlib
import json
import math
import socket
import struct
import subprocess
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rtmms
from rtmms.bridging.channels import ChannelMapping
from rtmms.bridging.untrusted import Refusal
from rtmms_bridges.ardupilot import ArduPilot, Servo, parse, write
from rtmms_bridges.autopilot.sitl_keys import KEYS, nested
from rtmms_bridges.motion.imu import Imu
from rtmms_bridges.motion.pose import Motion
from tests.bridges.autopilot.sitl import RESEND_S, Autopilot, Lost, read
from tests.bridges.harness import ROOT, wait
from tests.bridges.swimmer import Sailing
from tests.ports import reserve_ports

pytestmark = pytest.mark.full

THRUST = ChannelMapping(channel="3", actuator="thrust", scale=0.004, trim=1500)
RUDDER = ChannelMapping(channel="1", actuator="rudder", scale=0.002, trim=1500, reversed=True)


def bridge(port: int, **more: Any) -> ArduPilot:
    return ArduPilot(port=port, **{"channels": (THRUST, RUDDER), "frame_rate": 400.0} | more)


@pytest.fixture
def port() -> int:
    return reserve_ports()


@pytest.fixture
def autopilot(port: int) -> Iterator[Autopilot]:
    with Autopilot(port) as autopilot:
        yield autopilot


# -- the format ------------------------------------------------------------------------------------------------------


def test_both_sizes_of_packet() -> None:
    for magic, n in ((18458, 16), (29569, 32)):
        assert parse(struct.pack(f"<HHI{n}H", magic, 400, 7, *range(1000, 1000 + n))) == Servo(
            400, 7, tuple(range(1000, 1000 + n))
        )


@pytest.mark.parametrize(
    ("packet", "reason"),
    [
        (b"", "length"),
        (b"x" * 41, "length"),
        (struct.pack("<HHI16H", 29569, 400, 7, *[1500] * 16), "magic"),
        (struct.pack("<HHI32H", 18458, 400, 7, *[1500] * 32), "magic"),
        (struct.pack("<HHI16H", 18458, 0, 7, *[1500] * 16), "range"),
    ],
)
def test_what_is_no_packet_is_refused(packet: bytes, reason: str) -> None:
    with pytest.raises(Refusal) as refused:
        parse(packet)
    assert refused.value.reason == reason


MOTION = Motion(
    2.5, (3.0, 4.0, -1.0), (math.cos(0.1), 0.0, 0.0, math.sin(0.1)), (1.0, 2.0, 0.5), (1.0, 0.0, 0.0), (0.1, 0.2, 0.3),
    (0.5, 0.25, -0.125),
)  # fmt: skip


def test_every_key_is_found_by_its_searching_reader() -> None:
    more: dict[str, Any] = {key: 100.0 + i for i, key in enumerate(KEYS)}
    more["velocity_wind"] = [7.0, 8.0, 9.0]
    line = write(2.5, MOTION, Imu(), math.pi / 2, nested(more) | {"no_time_sync": 1}).decode()
    assert line[0] == line[-1] == "\n"
    assert line.count("\n") == 2
    result = read(line[1:-1])
    assert result["timestamp"] == 2.5
    assert result["position"] == pytest.approx([4.0, 3.0, 1.0])  # x is east: north, east, down
    assert result["velocity"] == pytest.approx([2.0, 1.0, -0.5])
    assert result["gyro"] == pytest.approx([0.1, -0.2, -0.3])
    assert result["accel_body"] == pytest.approx([0.5, -0.25, 0.125 - 9.80665])
    assert result["no_time_sync"] == 1
    assert {name: result[key] for name, (_, key) in KEYS.items()} == more
    # a turn of 0.2 rad to the left from east is a heading of 90 - 11.46 deg
    yaw = math.pi / 2 - 0.2
    assert result["quaternion"] == pytest.approx([math.cos(yaw / 2), 0.0, 0.0, math.sin(yaw / 2)])


def test_a_number_that_is_none_is_never_written() -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        write(math.nan, MOTION, Imu(), 0.0, {})


def test_its_reader_is_one_that_would_be_misled() -> None:
    """The fake has the faults that the order of keys is there for."""
    with pytest.raises(Lost):
        read(write(0.0, MOTION, Imu(), 0.0, {}).decode()[1:-1].replace(":[", ": ["))
    swapped = '{"velocity_wind":[9,9,9],' + write(0.0, MOTION, Imu(), 0.0, {}).decode()[2:-1]
    with pytest.raises(Lost):
        read(swapped)


# -- in lockstep -----------------------------------------------------------------------------------------------------


def test_frames_drive_the_plant_and_nothing_else_does(port: int, autopilot: Autopilot) -> None:
    with Sailing(bridge(port)) as sailing:
        autopilot.pulses[2], autopilot.pulses[0] = 1750, 1400
        first = autopilot.exchange()
        assert first["timestamp"] == pytest.approx(0.002)  # 400 Hz of a plant of 1 kHz: 2 steps a frame
        steps = len(sailing.plant.commands)
        result = [autopilot.exchange() for _ in range(50)]
        assert len(sailing.plant.commands) == steps + 100
        assert result[-1]["timestamp"] == pytest.approx(0.102)
        assert np.allclose(sailing.plant.commands, (1.0, 0.2))
        assert result[-1]["velocity"][1] == pytest.approx(math.cos(0.2 * 0.102), rel=1e-6)
        assert result[-1]["velocity"][0] == pytest.approx(math.sin(0.2 * 0.102), rel=1e-6)
        assert result[-1]["gyro"] == pytest.approx([0.0, 0.0, -0.2])
        assert autopilot.clock == pytest.approx(0.102)
        assert (autopilot.resent, autopilot.gone_back, autopilot.odd) == (0, 0, 0)
        assert sailing.loop.statistics.counters()["misses"] == 0


@pytest.mark.parametrize(("rate", "steps"), [(0, 1), (1200, 1), (1000, 1), (500, 2), (250, 4), (3, 99)])
def test_the_frame_rate_sets_the_steps_of_a_frame(port: int, autopilot: Autopilot, rate: int, steps: int) -> None:
    autopilot.rate = 7  # of its packets: no request
    with Sailing(bridge(port, frame_rate=float(rate))) as sailing:
        for count in (1, 2, 3):
            assert autopilot.exchange()["timestamp"] == pytest.approx(count * steps * 1e-3)
        assert len(sailing.plant.commands) == 3 * steps
        assert autopilot.odd == 0


def test_every_nth_step_is_a_coarser_wire_for_the_same_frames(port: int, autopilot: Autopilot) -> None:
    autopilot.pulses[2] = 1750
    with Sailing(bridge(port, every=5, frame_rate=100.0)) as sailing:
        stamps = [autopilot.exchange()["timestamp"] for _ in range(3)]
        assert stamps == pytest.approx([0.01, 0.02, 0.03])
        assert sailing.bridged.counts["states"] == 7


def test_thirty_two_channels_and_one_without_pulses(port: int) -> None:
    high = ChannelMapping(channel="30", actuator="thrust", scale=0.004, trim=1500)
    with Autopilot(port, channels=32) as autopilot, Sailing(bridge(port, channels=(high, RUDDER))) as sailing:
        autopilot.pulses[29], autopilot.pulses[0] = 1625, 0
        autopilot.exchange()
        assert sailing.command == (pytest.approx(0.5), 0.0)
        autopilot.pulses[29] = 0
        autopilot.exchange()
        assert sailing.command == (0.0, 0.0)


def test_channels_are_the_actuators_where_none_are_given(port: int, autopilot: Autopilot) -> None:
    autopilot.pulses[:2] = [1000, 1750]
    with Sailing(bridge(port, channels=())) as sailing:
        autopilot.exchange()
        assert sailing.command == (pytest.approx(-2.0), pytest.approx(0.5))


def test_a_repeated_frame_is_answered_with_the_same_bytes_and_steps_nothing(port: int, autopilot: Autopilot) -> None:
    with Sailing(bridge(port)) as sailing:
        result = autopilot.exchange()
        steps = len(sailing.plant.commands)
        again = []
        for _ in range(3):
            autopilot.frame = 0
            again.append(autopilot.exchange())
        assert again == [result] * 3
        assert len(sailing.plant.commands) == steps
        assert sailing.bridged.counts["repeated"] == 3
        autopilot.frame = 1
        assert autopilot.exchange()["timestamp"] > result["timestamp"]


def test_an_answer_that_is_lost_is_asked_for_again(port: int) -> None:
    with Autopilot(port) as autopilot, Sailing(bridge(port)) as sailing:
        autopilot.exchange()
        steps = len(sailing.plant.commands)
        autopilot.send()
        assert autopilot.socket.recv(65000)  # this one it never saw
        result = autopilot.exchange()
        assert result["timestamp"] == pytest.approx(0.004)
        assert len(sailing.plant.commands) == steps + 2
        assert autopilot.exchange()["timestamp"] == pytest.approx(0.006)


def test_an_autopilot_that_begins_anew_gets_a_plant_that_does(port: int, autopilot: Autopilot) -> None:
    with Sailing(bridge(port)) as sailing:
        autopilot.pulses[2] = 1750
        for _ in range(20):
            autopilot.exchange()
        resets = sailing.plant.resets
        autopilot.frame = 0
        result = autopilot.exchange()
        assert sailing.plant.resets == resets + 1
        assert result["timestamp"] == pytest.approx(0.002)
        assert autopilot.gone_back == 1
        assert result["position"] == pytest.approx([0.0, 0.002, 2.0])
        assert autopilot.exchange()["timestamp"] == pytest.approx(0.004)


def test_random_frames_reset_the_plant_neither_often_nor_by_an_old_one(port: int, autopilot: Autopilot) -> None:
    with Sailing(bridge(port)) as sailing:
        autopilot.frame = 500
        for _ in range(5):
            autopilot.exchange()
        resets = sailing.plant.resets
        for frame in (400, 300, 200):  # an old packet, not a beginning
            autopilot.socket.sendto(struct.pack("<HHI16H", 18458, 400, frame, *[1500] * 16), autopilot.address)
        wait(lambda: sailing.bridged.counts.reasons() == {"old": 3})
        assert sailing.plant.resets == resets
        for frame in (90, 80, 70, 60, 50):
            autopilot.socket.sendto(struct.pack("<HHI16H", 18458, 400, frame, *[1500] * 16), autopilot.address)
        wait(lambda: sailing.bridged.counts["resets_refused"] == 4)
        assert sailing.bridged.counts["resets"] == 1
        wait(lambda: sailing.plant.resets > resets)  # it is on its way
        assert sailing.plant.resets == resets + 1


def test_who_is_not_named_is_not_listened_to(port: int, autopilot: Autopilot) -> None:
    with Sailing(bridge(port, peer=("127.0.0.1:1",))) as sailing:
        autopilot.socket.sendto(autopilot.packet(), autopilot.address)
        wait(lambda: sailing.bridged.counts.reasons() == {"stranger": 1})
        assert sailing.plant.commands == []


def test_a_restart_from_another_port_is_taken_when_the_first_is_silent(port: int, autopilot: Autopilot) -> None:
    with Sailing(bridge(port, reset=False)) as sailing:
        for _ in range(5):
            autopilot.exchange()
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
            stranger.sendto(autopilot.packet(), autopilot.address)
            wait(lambda: sailing.bridged.counts.reasons() == {"second": 1})
        autopilot.resend_s = RESEND_S
        autopilot.boot()
        assert autopilot.exchange()["timestamp"] == pytest.approx(0.012)
        assert autopilot.resent >= 1
        assert sailing.plant.resets == 1
        assert sailing.bridged.counts["autopilots"] == 2


def test_a_silent_autopilot_finds_the_plant_waiting(
    port: int, autopilot: Autopilot, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rtmms_bridges.lines.pacing.HOLD_S", 1.0)
    with Sailing(bridge(port)) as sailing:
        wait(lambda: any("requests a pause" in line for line in sailing.bridged.messages))
        wait(lambda: sailing.loop.requests.paused and sailing.loop.step == 1)
        result = autopilot.exchange()
        assert result["timestamp"] == pytest.approx(0.002)  # without the step of the pause
        assert not sailing.loop.requests.paused
        wait(lambda: sailing.loop.requests.paused)
        result = autopilot.exchange()
        assert result["timestamp"] == pytest.approx(0.004)
        assert sailing.loop.step == 6


def test_garbage_costs_nothing(port: int, autopilot: Autopilot) -> None:
    with Sailing(bridge(port)) as sailing:
        result = autopilot.exchange()
        for packet in (b"", b"nonsense", b"\xff" * 40, b"\0" * 72, b"x" * 4000):
            autopilot.send(packet)
        wait(lambda: sailing.bridged.counts["refused"] == 5)
        assert autopilot.exchange()["timestamp"] > result["timestamp"]


# -- beside lockstep -------------------------------------------------------------------------------------------------


def test_in_real_time_the_plant_goes_on_and_frames_are_at_least_as_long(port: int, autopilot: Autopilot) -> None:
    autopilot.pulses[2] = 1750
    with Sailing(bridge(port, more={"rng_1": "depth"}, time_sync=False), mode="realtime") as sailing:
        stamps = [autopilot.exchange()["timestamp"] for _ in range(30)]
        assert all(b - a > 1.9e-3 for a, b in pairwise(stamps))
        result = autopilot.exchange()
        assert result["rng_1"] == 2.0
        assert result["no_time_sync"] == 1
        wait(lambda: sailing.command[0] == pytest.approx(1.0))
        resets = sailing.plant.resets
        sailing.bridged.bridge._pacer._reset_at = -math.inf  # type: ignore[attr-defined] # as long after the first one
        autopilot.frame = 0
        autopilot.exchange()
        wait(lambda: sailing.plant.resets == resets + 1)


def test_in_real_time_an_autopilot_that_is_gone_leaves_its_actuators_neutral(port: int, autopilot: Autopilot) -> None:
    autopilot.pulses[2] = 1750
    with Sailing(bridge(port, peer_timeout_s=1.0), mode="realtime") as sailing:
        autopilot.exchange()
        wait(lambda: sailing.drove(1.0))
        wait(lambda: sailing.command == (0.0, 0.0))
        autopilot.pulses[2] = 1625
        autopilot.exchange()
        wait(lambda: sailing.drove(0.5))


@pytest.mark.parametrize("silent", ["wait", "still"])
def test_a_silent_plant(port: int, silent: str) -> None:
    built = bridge(port, plant_silent=silent, watchdog_periods=1)
    with Autopilot(port) as autopilot, Sailing(built) as sailing:
        autopilot.pulses[2] = 1750
        before = autopilot.exchange()
        step = sailing.plant.step
        gate: list[int] = []
        sailing.plant.step = lambda command: (wait(lambda: gate), step(command))
        autopilot.send()
        wait(lambda: sailing.bridged.counts["silences"])
        if silent == "wait":
            autopilot.socket.settimeout(0.1)
            with pytest.raises(TimeoutError):
                autopilot.receive()
        else:
            result = autopilot.receive()
            assert result is not None
            assert result["timestamp"] == pytest.approx(before["timestamp"] + 0.002)
            assert result["velocity"] == [0.0, 0.0, 0.0]
            assert result["accel_body"] == pytest.approx([0.0, 0.0, -9.80665])
            assert result["position"] == before["position"]
        gate.append(1)
        autopilot.socket.settimeout(RESEND_S)
        result = autopilot.exchange()
        assert result["timestamp"] > before["timestamp"]
        assert autopilot.gone_back == 0


# -- what is configured ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "output"),
    [
        ({"rate_hz": 50.0}, "set frame_rate"),
        ({"frame_rate": -1.0}, "frame_rate"),
        ({"more": {"rng_9": "depth"}}, "rng_"),
        ({"more": {"rc_2": "depth", "rc_11": "depth"}}, "expected rc_1 with rc_10 to rc_12"),
        ({"plant_silent": "still"}, "watchdog_periods"),
    ],
)
def test_words_that_make_no_sense(arguments: dict[str, Any], output: str) -> None:
    with pytest.raises(rtmms.ModelError, match=output):
        ArduPilot(**arguments)


@pytest.mark.parametrize(
    ("arguments", "output"),
    [
        ({"channels": (ChannelMapping(channel="33", actuator="thrust"),)}, "from 1 to 32"),
        ({"channels": (ChannelMapping(channel="fin", actuator="thrust"),)}, "from 1 to 32"),
        (
            {"channels": tuple(ChannelMapping(channel=n, actuator=a) for n, a in (("1", "thrust"), ("01", "rudder")))},
            "channel 1 is listed twice",
        ),
        ({"more": {"rng_1": "dept"}}, "depth"),
        ({"every": 100}, "accepts frames below 0.1 s"),
    ],
)
def test_what_does_not_fit_the_plant(port: int, arguments: dict[str, Any], output: str) -> None:
    with Sailing(bridge(port, **arguments), mode="realtime") as sailing:
        wait(lambda: sailing.bridged.fault)
        fault, sailing.bridged.fault = sailing.bridged.fault, None
    assert isinstance(fault, rtmms.ModelError)
    assert output in str(fault)


def test_a_port_that_is_busy(port: int, autopilot: Autopilot) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other:
        other.bind(("127.0.0.1", port))
        with Sailing(bridge(port), mode="realtime") as sailing:
            wait(lambda: sailing.bridged.fault)
            fault, sailing.bridged.fault = sailing.bridged.fault, None
    assert f"cannot listen on UDP 127.0.0.1:{port}" in str(fault)


# -- the real robot, as a user starts it -----------------------------------------------------------------------------


@contextlib.contextmanager
def ended(run: subprocess.Popen[str]) -> Iterator[None]:
    """A run that must not outlive the test; what it printed, if the test fails."""
    try:
        yield
    except BaseException:
        run.terminate()
        print(*run.communicate(timeout=60), sep="\n")
        raise
    finally:
        run.kill()
        run.wait()


def test_the_manta_in_lockstep(port: int, tmp_path: Path) -> None:
    """`rtmms run` with the example configuration: 200 frames of 2 ms, and no step without a frame."""
    spec = f"ardupilot:config={ROOT / 'bridges/examples/ardupilot.toml'},port={port},frame_rate=500"
    arguments = (
        "run",
        "manta",
        "--set",
        "chains=16",
        "--controller",
        "none",
        "--mode",
        "lockstep",
        "--duration",
        "0.4",
        "--bridge",
        spec,
        "--json",
        "--quiet",
        "--priority",
        "off",
    )
    run = subprocess.Popen(
        [sys.executable, "-m", "rtmms.cli.main", *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        cwd=tmp_path,
    )  # fmt: skip
    with ended(run), Autopilot(port, resend_s=RESEND_S) as autopilot:
        message = autopilot.exchange(tries=250)  # it may have to compile first
        assert message["timestamp"] == pytest.approx(0.002)
        for frame in range(1, 199):
            autopilot.pulses[0] = autopilot.pulses[2] = round(1500 + 300 * math.sin(0.03 * frame))
            message = autopilot.exchange()
        autopilot.send()  # the last: the run is over with it
        answer, output = run.communicate(timeout=60)
    report = json.loads(answer)
    assert run.returncode == 0, output
    assert report["steps"] == report["exchange"]["commands_applied"] == 400
    assert report["bridges"]["ardupilot"]["refused"] == {}
    assert autopilot.clock == pytest.approx(0.398)
    assert message["accel_body"][2] == pytest.approx(-9.8, abs=2.0)
    assert message["quaternion"][0] == pytest.approx(math.cos(math.pi / 4), abs=0.1)
    assert any(abs(speed) > 1e-4 for speed in message["velocity"])


# -- words -----------------------------------------------------------------------------------------------------------


def test_pulses_are_a_controllers_words(port: int, autopilot: Autopilot, asked: dict[str, float]) -> None:
    parts = {"3": "mixer.thrust", "1": "-mixer.yaw", "32": "mixer.roll"}
    assert ArduPilot(parameter_channels=parts).claims() == ()
    with Sailing(bridge(port, channels=(RUDDER,), parameter_channels=parts), mode="realtime") as sailing:
        autopilot.pulses[2], autopilot.pulses[0] = 1750, 1900
        autopilot.exchange()
        wait(lambda: asked == {"mixer.thrust": 0.5, "mixer.yaw": -0.8})
        wait(lambda: sailing.plant.commands[-1] == (0.0, -0.8))
        autopilot.pulses[2], autopilot.pulses[0] = 2400, 0
        autopilot.exchange()
        wait(lambda: asked["mixer.thrust"] == 1.0)
        wait(lambda: asked == {"mixer.thrust": 0.0, "mixer.yaw": 0.0})  # it is silent from here on


@pytest.mark.parametrize("table", [{"33": "mixer.thrust"}, {"x": "mixer.thrust"}, {"1": "thrust"}])
def test_tables_of_words_that_make_no_sense(table: dict[str, str]) -> None:
    with pytest.raises(rtmms.ModelError, match="parameter_channels"):
        bridge(9002, parameter_channels=table)
