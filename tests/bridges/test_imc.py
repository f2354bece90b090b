"""IMC beside imcpy's own node in another process; plans, and what is refused, by hand."""

from __future__ import annotations

import json
import math
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

pytest.importorskip("imcpy", reason="needs imcpy (Python < 3.14, x86_64 Linux): pip install 'rtmms[imc]'")

import imcpy

import rtmms
from rtmms.bridging.channels import ChannelMapping
from rtmms.bridging.untrusted import Refusal
from rtmms.plant.protocol import Channel
from rtmms_bridges.imc import Imc
from rtmms_bridges.motion.frames import Home
from rtmms_bridges.sea.imc_messages import name_of, parse, places, sample_plan, set_points, udp_services
from rtmms_bridges.sea.imc_nodes import Nodes
from tests.bridges.by_hand import opened
from tests.bridges.harness import ROOT, Companion, plant_info, state, wait
from tests.bridges.swimmer import Sailing
from tests.ports import reserve_ports
from tests.wire.bench import PATIENCE_S, Host

pytestmark = pytest.mark.full

HOME = Home(lat_deg=41.184, lon_deg=-8.705)
DRIVES = (
    ChannelMapping(channel="thruster.0", actuator="thrust"),
    ChannelMapping(channel="servo.1", actuator="rudder"),
)
PARAMETER_CHANNELS = {
    "heading_deg": "autopilot.heading_deg",
    "depth_m": "autopilot.depth_m",
    "speed_m_s": "autopilot.speed_m_s",
}
POSE = (
    Channel("position", "m", (3,), "world"), Channel("quaternion", "", (4,)), Channel("velocity", "m/s", (3,), "body"),
    Channel("angular_velocity", "rad/s", (3,), "body"),
)  # fmt: skip


def next_report(child: subprocess.Popen[str]) -> dict[str, Any]:
    assert child.stdout is not None
    line = child.stdout.readline()
    assert line, f"the peer ended with {child.wait(PATIENCE_S)}"
    content: dict[str, Any] = json.loads(line)
    return content


def test_imcpys_own_node_finds_it_sees_it_and_steers_it(asked: dict[str, float]) -> None:
    bridge = Imc(
        system="torpedo-test",
        port=reserve_ports(),
        home=HOME,
        channels=DRIVES,
        parameter_channels=PARAMETER_CHANNELS,
        state_hz=50.0,
    )
    with Sailing(bridge, "realtime", dt=1e-2) as sailing:
        child = subprocess.Popen([sys.executable, "-m", "tests.bridges.imc_peer", str(reserve_ports())],
                                 stdout=subprocess.PIPE, text=True, cwd=ROOT)  # fmt: skip
        try:
            result = next_report(child)
            assert result == {"announce": "torpedo-test", "src": 0x0801, "type": "UUV",
                             "services": f"imc+udp://127.0.0.1:{bridge._port}/"}  # fmt: skip
            result = next_report(child)
            assert result["mode"] == "SERVICE"
            observed = result["state"]
            assert (math.degrees(observed["lat"]), math.degrees(observed["lon"])) == pytest.approx(
                (41.184, -8.705), abs=1e-9
            )
            assert (observed["depth"], observed["z"]) == (2.0, 2.0)
            assert observed["psi"] == pytest.approx(math.pi / 2, abs=1e-6)  # at rest it looks east
            result = next_report(child)
            assert result["entities"] == "Daemon=0;Navigation=1"
            observed = result["driven"]
            assert observed["u"] == pytest.approx(0.5, abs=1e-3)
            assert observed["r"] == pytest.approx(0.25, abs=1e-3)  # rudder -0.25: to the right
            assert math.hypot(observed["vx"], observed["vy"]) == pytest.approx(0.5, abs=1e-3)
            assert sailing.command == (0.5, -0.25)
            result = next_report(child)
            assert result["answer"][:2] == ["START", "SUCCESS"]
            assert result["answer"][3] == 77
            assert result["plan"][:3] == ["EXECUTING", "survey", "1"]
            result = next_report(child)
            assert result["stopped"][:2] == ["STOP", "SUCCESS"]
            assert result["plan"][3] == "FAILURE"
        finally:
            child.kill()
            child.communicate()
    assert asked["autopilot.depth_m"] == 2.0
    assert any("every program that reaches UDP 127.0.0.1" in line for line in sailing.bridged.messages)
    assert sailing.bridged.counts.reasons() == {}


@pytest.fixture
def peer() -> Iterator[socket.socket]:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as peer:
        peer.bind(("127.0.0.1", 0))
        peer.settimeout(PATIENCE_S)
        yield peer


def send(bridge: Imc, peer: socket.socket, message: Any, src: int = 0x4001, dst: int = 0xFFFF) -> None:
    """As if it had come."""
    message.src, message.dst = src, dst
    bridge._take(bytes(imcpy.Packet.serialize(message)), peer.getsockname())


def answers(peer: socket.socket) -> list[Any]:
    peer.setblocking(False)
    result = []
    while True:
        try:
            result.append(imcpy.Packet.deserialize(peer.recv(65536)))
        except BlockingIOError:
            return result


def announce(bridge: Imc, peer: socket.socket) -> None:
    message = imcpy.Announce()
    message.sys_name, message.services = "ccu", f"http://x/;imc+udp://10.0.0.9:{peer.getsockname()[1]}/"
    send(bridge, peer, message)


def swim(bridge: Imc, info: Any, step: int, x: float, y: float, depth: float = 2.0) -> None:
    bridge.on_state(state(info, step, position=[x, y, -depth], quaternion=[1.0, 0.0, 0.0, 0.0],
                          velocity=[0.5, 0.0, 0.0], angular_velocity=[0.0, 0.0, 0.0]))  # fmt: skip


def test_a_plan_is_followed_to_its_end(peer: socket.socket, asked: dict[str, float]) -> None:
    info = plant_info(*POSE)
    bridge = opened(Imc(port=0, home=HOME, parameter_channels=PARAMETER_CHANNELS, state_hz=10.0), info)
    announce(bridge, peer)
    swim(bridge, info, 0, 0.0, 0.0)
    send(bridge, peer, sample_plan(HOME, ((10.0, 20.0), (30.0, 0.0))))
    swim(bridge, info, 1000, 0.0, 0.0)
    assert asked["autopilot.heading_deg"] == pytest.approx(math.degrees(math.atan2(20.0, 10.0)), abs=0.01)
    assert (asked["autopilot.depth_m"], asked["autopilot.speed_m_s"]) == (2.0, 0.5)
    swim(bridge, info, 2000, 9.0, 20.5)  # reached: on to the second
    assert asked["autopilot.heading_deg"] == pytest.approx(math.degrees(math.atan2(-20.5, 21.0)), abs=0.01)
    bridge.tick(time.monotonic() + 5.0)
    (last,) = [answer for answer in answers(peer) if isinstance(answer, imcpy.PlanControlState)][-1:]
    assert (last.state.name, last.man_id, last.plan_progress) == ("EXECUTING", "2", 50.0)
    swim(bridge, info, 3000, 29.0, 0.0)
    assert asked["autopilot.speed_m_s"] == 0.0
    assert bridge._outcome.name == "SUCCESS"
    assert any("is done" in line for line in bridge.io.messages)  # type: ignore[attr-defined]
    bridge.close("the test is over")


def test_a_plan_is_kept_and_started_later_and_left_for_a_heading(peer: socket.socket, asked: dict[str, float]) -> None:
    info = plant_info(*POSE)
    bridge = opened(Imc(port=0, home=HOME, parameter_channels=PARAMETER_CHANNELS), info)
    announce(bridge, peer)
    request = sample_plan(HOME, ((10.0, 20.0),))
    keep = imcpy.PlanDB()
    keep.op, keep.type, keep.plan_id, keep.arg = imcpy.PlanDB.OperationEnum.SET, imcpy.PlanDB.TypeEnum.REQUEST, "a", (
        request.arg
    )  # fmt: skip
    send(bridge, peer, keep)
    start = imcpy.PlanControl()
    start.op, start.type = imcpy.PlanControl.OperationEnum.START, imcpy.PlanControl.TypeEnum.REQUEST
    for name in ("b", "a"):
        start.plan_id = name
        send(bridge, peer, start)
    reply = [(type(answer).__name__, answer.type.name, answer.info) for answer in answers(peer)
            if isinstance(answer, imcpy.PlanDB | imcpy.PlanControl)]  # fmt: skip
    assert reply == [("PlanDB", "SUCCESS", ""), ("PlanControl", "FAILURE", "the bridge has no plan 'b'"),
                    ("PlanControl", "SUCCESS", "")]  # fmt: skip
    heading = imcpy.DesiredHeading()
    heading.value = 0.25
    send(bridge, peer, heading)
    assert asked["autopilot.heading_deg"] == pytest.approx(90.0 - math.degrees(0.25))
    assert bridge._course == []
    assert any("ended: a peer commanded a heading" in line for line in bridge.io.messages)  # type: ignore[attr-defined]
    bridge.close("the test is over")


def test_without_words_a_plan_fails_and_reports_why(peer: socket.socket) -> None:
    bridge = opened(Imc(port=0, home=HOME), plant_info(*POSE))
    announce(bridge, peer)
    send(bridge, peer, sample_plan(HOME, ((10.0, 20.0),)))
    (answer,) = [answer for answer in answers(peer) if isinstance(answer, imcpy.PlanControl)]
    assert (answer.type.name, answer.info) == (
        "FAILURE",
        "expected a controller to steer by, got none; give parameter_channels=heading_deg=CONTROLLER.PARAMETER",
    )
    bridge.close("the test is over")


def test_plans_that_are_none() -> None:
    with pytest.raises(Refusal, match="expected a plan specification"):
        places(imcpy.Goto(), HOME)
    plan = sample_plan(HOME, ((1.0, 2.0), (3.0, 4.0))).arg
    assert [(round(place.x, 2), round(place.y, 2)) for place in places(plan, HOME)] == [(1.0, 2.0), (3.0, 4.0)]
    back = imcpy.PlanTransition()
    back.source_man, back.dest_man = "2", "1"
    plan.transitions.append(back)
    with pytest.raises(Refusal, match="never ends"):
        places(plan, HOME)
    plan.start_man_id = "9"
    with pytest.raises(Refusal, match="the first maneuver '9' is not in the plan"):
        places(plan, HOME)
    other = imcpy.PlanManeuver()
    other.maneuver_id, other.data = "9", imcpy.StationKeeping()
    plan.maneuvers.append(other)
    with pytest.raises(Refusal, match="maneuver '9': expected a Goto"):
        places(plan, HOME)


def test_set_points_and_their_units() -> None:
    depth, speed = imcpy.DesiredZ(), imcpy.DesiredSpeed()
    depth.value, depth.z_units = 3.0, imcpy.ZUnits.ALTITUDE
    speed.value, speed.speed_units = 50.0, imcpy.SpeedUnits.PERCENTAGE
    for message in (depth, speed):
        with pytest.raises(Refusal) as refused:
            set_points(message, HOME)
        assert refused.value.reason == "unit"
    depth.z_units, speed.speed_units = imcpy.ZUnits.DEPTH, imcpy.SpeedUnits.METERS_PS
    assert set_points(depth, HOME) == {"depth_m": 3.0}
    assert set_points(speed, HOME) == {"speed_m_s": 50.0}
    depth.value = math.nan
    with pytest.raises(Refusal, match="finite"):
        set_points(depth, HOME)
    assert set_points(imcpy.Heartbeat(), HOME) == {}


def test_bytes_that_are_no_message() -> None:
    good = bytes(imcpy.Packet.serialize(imcpy.DesiredHeading()))
    assert (name_of(good), type(parse(good))) == ("DesiredHeading", imcpy.DesiredHeading)
    assert name_of(bytes(imcpy.Packet.serialize(imcpy.AirSaturation()))) == ""
    for data, reason in (
        (b"", "malformed"), (good[:-1], "malformed"), (good + b"x", "malformed"), (b"xx" + good[2:], "malformed"),
        (good[:-1] + bytes((good[-1] ^ 1,)), "malformed"), (good * 700, "oversize"),
    ):  # fmt: skip
        with pytest.raises(Refusal) as refused:
            parse(data if name_of(data) else b"")
        assert refused.value.reason == reason


def test_who_announces_is_answered_at_its_own_address_alone() -> None:
    assert list(udp_services("imc+udp://1.2.3.4:6001/;imc+tcp://1.2.3.4:7/;imc+udp://[;imc+udp://h:x/")) == [
        ("1.2.3.4", 6001)
    ]
    nodes = Nodes()
    node = nodes.announced(1, "a", "imc+udp://198.51.100.9:6001/", "127.0.0.1", 0.0)
    assert node is not None
    assert node.place == ("127.0.0.1", 6001)
    assert nodes.announced(1, "a", "imc+udp://127.0.0.1:6002/", "127.0.0.1", 1.0) is None
    assert [node.place for node in nodes] == [("127.0.0.1", 6002)]
    for i in range(100):
        nodes.announced(i + 2, "b", "imc+udp://127.0.0.1:1/", "127.0.0.1", 50.0)
    assert len(nodes) == 32
    assert [item.number for item in nodes.forget(62.0)] == [1]


def test_a_flood_of_plans_is_not_read(peer: socket.socket) -> None:
    bridge = opened(Imc(port=0, home=HOME), plant_info(*POSE))

    def many() -> None:
        for _ in range(20):
            send(bridge, peer, sample_plan(HOME, ((1.0, 2.0),)))

    many()
    with pytest.raises(Refusal) as refused:
        many()
    assert refused.value.reason == "too_many"
    bridge.close("the test is over")


def test_one_whose_heartbeat_alone_comes_is_answered(peer: socket.socket) -> None:
    info = plant_info(*POSE)
    bridge = opened(Imc(port=0, home=HOME), info)
    send(bridge, peer, imcpy.DesiredHeading())
    assert len(bridge._nodes) == 0
    send(bridge, peer, imcpy.Heartbeat())
    send(bridge, peer, imcpy.Heartbeat())
    swim(bridge, info, 0, 1.0, 2.0)
    (reply,) = answers(peer)
    assert (type(reply), reply.dst, reply.x, reply.y) == (
        imcpy.EstimatedState,
        0x4001,
        2.0,
        1.0,
    )  # north is y
    announce(bridge, peer)  # it has a name now, and gets no second announcement
    assert [node.name for node in bridge._nodes] == ["ccu"]
    bridge.close("the test is over")


def test_a_stranger_is_not_received(peer: socket.socket) -> None:
    bridge = opened(Imc(port=0, peer=("192.0.2.1",), channels=DRIVES), plant_info(*POSE, actuators=(
        Channel("thrust", "m/s"), Channel("rudder", "rad/s"))))  # fmt: skip
    with pytest.raises(Refusal) as refused:
        send(bridge, peer, imcpy.Heartbeat())
    assert refused.value.reason == "stranger"
    bridge.close("the test is over")


def test_abort_lets_go(peer: socket.socket, asked: dict[str, float]) -> None:
    actuators = (Channel("thrust", "m/s"), Channel("rudder", "rad/s"))
    info = replace(plant_info(*POSE, actuators=actuators), granted=("thrust", "rudder"))
    bridge = opened(Imc(port=0, home=HOME, channels=DRIVES, parameter_channels=PARAMETER_CHANNELS), info)
    thrust, speed = imcpy.SetThrusterActuation(), imcpy.DesiredSpeed()
    thrust.id, thrust.value, speed.value = 0, 0.5, 0.75
    for message in (thrust, speed):
        send(bridge, peer, message)
    assert bridge.io.commands == [{"thrust": 0.5}]  # type: ignore[attr-defined]
    assert asked["autopilot.speed_m_s"] == 0.75
    send(bridge, peer, imcpy.Abort())
    assert bridge.io.commands[-1] == {"thrust": 0.0, "rudder": 0.0}  # type: ignore[attr-defined]
    assert asked["autopilot.speed_m_s"] == 0.0
    send(bridge, peer, thrust, dst=0x0999)  # for another
    assert len(bridge.io.commands) == 2  # type: ignore[attr-defined]
    bridge.close("the test is over")


def test_a_flood_costs_no_state(peer: socket.socket, make_host: Callable[..., Host]) -> None:
    port = reserve_ports()
    bridge = Imc(port=port, channels=(ChannelMapping(channel="servo.1", actuator="left.front"),))
    servo = imcpy.SetServoPosition()
    servo.id, servo.value, servo.src, servo.dst = 1, 0.5, 0x4001, 0x0801
    good = bytes(imcpy.Packet.serialize(servo))
    with Companion(bridge, make_host) as extra:
        wait(lambda: extra.bridged.counts["states"])
        for i in range(5000):
            peer.sendto((good[:-1] + b"x", b"\xff" * 3000, b"")[i % 3], ("127.0.0.1", port))
        states = extra.bridged.counts["states"]
        wait(lambda: extra.bridged.counts["states"] > states + 100)
        wait(lambda: peer.sendto(good, ("127.0.0.1", port)) and extra.command[0] == 0.5)
    assert set(extra.bridged.counts.reasons()) == {"malformed"}


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"network": "eth0"}, "network: expected an IPv4 address of this machine, got 'eth0'"),
        ({"network": "0.0.0.0"}, "network: expected an IPv4 address of this machine"),
        ({"nodes": ("neptus",)}, "nodes: expected HOST:PORT, got 'neptus'"),
        ({"channels": (ChannelMapping(channel="fin.1", actuator="a"),)}, r"channels: expected servo\.N or thruster\.N"),
        (
            {"parameter_channels": {"heading": "autopilot.heading_deg"}},
            "unknown channel 'heading'; did you mean heading_deg",
        ),
    ],
)
def test_wrong_words(arguments: dict[str, Any], text: str) -> None:
    with pytest.raises(rtmms.ModelError, match=text):
        Imc(**arguments)


def test_a_port_that_is_busy(peer: socket.socket) -> None:
    with pytest.raises(rtmms.RtmmsError, match=r"cannot bind UDP 127\.0\.0\.1:\d+: Address already in use"):
        opened(Imc(port=peer.getsockname()[1]), plant_info(*POSE))
