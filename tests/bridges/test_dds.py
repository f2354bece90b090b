"""ROS 2's topics over DDS: the library's own readers, another process, and an independent reader of the bytes."""

from __future__ import annotations

import contextlib
import itertools
import math
import os
import socket
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest

pytest.importorskip("cyclonedds", reason="needs cyclonedds: pip install 'rtmms[dds]'")

from cyclonedds.core import Policy, Qos
from cyclonedds.domain import DomainParticipant
from cyclonedds.pub import DataWriter
from cyclonedds.sub import DataReader
from cyclonedds.topic import Topic
from rosbags.typesys import Stores, get_typestore

import rtmms
from rtmms.bridging.untrusted import Refusal
from rtmms.plant.protocol import Channel
from rtmms.wire.protocol.received_state import PlantInfo
from rtmms_bridges.dds import HASHES, Dds, configuration, values_of
from rtmms_bridges.messages import ros2 as ros
from tests.bridges.by_hand import opened, swum
from tests.bridges.harness import ROOT, Companion, plant_info, state, wait
from tests.wire.bench import PATIENCE_S, Host

pytestmark = pytest.mark.full

PACKAGES = {"Odometry": "nav_msgs", "Imu": "sensor_msgs", "JointState": "sensor_msgs", "Clock": "rosgraph_msgs",
            "TFMessage": "tf2_msgs", "Float64MultiArray": "std_msgs"}  # fmt: skip
DOMAINS = itertools.count(1 + os.getpid() % 60)
DEFAULT = Qos(  # of ROS 2
    Policy.Reliability.Reliable(100_000_000), Policy.History.KeepLast(10), Policy.Durability.Volatile,
    Policy.DataRepresentation(use_cdrv0_representation=True),
)  # fmt: skip


@pytest.fixture(scope="module")
def manta() -> tuple[PlantInfo, dict[str, Any]]:
    return swum()


@pytest.fixture
def place() -> dict[str, Any]:
    """A domain and a namespace that no other test has."""
    return {"domain": next(DOMAINS), "namespace": f"t{uuid.uuid4().hex[:8]}"}


@pytest.fixture
def served(manta: Any, place: dict[str, Any]) -> Iterator[Dds]:
    bridge = opened(Dds(**place), manta[0])
    yield bridge
    bridge.close("the test is over")


class Tool:
    """A reader of a ROS 2 tool's kind on one topic."""

    def __init__(self, bridge: Dds, name: str, kind: str, qos: Qos = DEFAULT, absolute: bool = False) -> None:
        self.participant = DomainParticipant(bridge.domain)
        path = f"rt/{name}" if absolute else f"rt/{bridge.namespace}/{name}"
        self.reader = DataReader(self.participant, Topic(self.participant, path, getattr(ros, kind)), qos=qos)
        wait(lambda: bridge._writers[name].get_matched_subscriptions())

    def next(self) -> Any:
        return wait(lambda: self.reader.take(1))[0]


@pytest.mark.parametrize("release", [Stores.ROS2_FOXY, Stores.ROS2_HUMBLE, Stores.ROS2_JAZZY])
def test_the_bytes_are_ros_2s(release: Any, manta: Any) -> None:
    """What we encode, another implementation with ROS 2's own message definitions reads, every byte of it."""
    store = get_typestore(release)
    at = ros.Header(ros.Time(7, 8), "odom")
    q, v = ros.Quaternion(0.1, 0.2, 0.3, 0.9), ros.Vector3(1.5, 2.5, 3.5)
    spread = tuple(float(i) for i in range(36))
    sent = {
        "Odometry": ros.Odometry(at, "base", ros.PoseWithCovariance(ros.Pose(ros.Point(4.0, 5.0, 6.0), q), spread),
                                 ros.TwistWithCovariance(ros.Twist(v, v), spread)),
        "Imu": ros.Imu(at, q, spread[:9], v, spread[9:18], v, spread[18:27]),
        "JointState": ros.JointState(at, ["a", "longer"], [1.0, 2.0], [3.0, 4.0], []),
        "Clock": ros.Clock(ros.Time(9, 10)),
        "TFMessage": ros.TFMessage([ros.TransformStamped(at, "base", ros.Transform(v, q))] * 2),
        "Float64MultiArray": ros.Float64MultiArray(
            ros.MultiArrayLayout([ros.MultiArrayDimension("x", 3, 3)], 0), [1.0, 2.0, 3.0]),
    }  # fmt: skip
    assert set(sent) == set(PACKAGES) == set(HASHES)
    for name, message in sent.items():
        kind = f"{PACKAGES[name]}/msg/{name}"
        result = store.deserialize_cdr(message.serialize(), kind)
        assert same(message, result), name
        assert bytes(store.serialize_cdr(result, kind)) == message.serialize().ljust(
            len(store.serialize_cdr(result, kind)), b"\0"
        )
        assert getattr(ros, name).__idl_typename__.replace(".", "::") == f"{PACKAGES[name]}::msg::dds_::{name}_"


def same(ours: Any, theirs: Any) -> bool:
    if hasattr(theirs, "__msgtype__"):
        fields = [name for name in theirs.__dataclass_fields__ if name != "__msgtype__"]
        assert fields == list(ours.__dataclass_fields__)
        return all(same(getattr(ours, name), getattr(theirs, name)) for name in fields)
    if isinstance(theirs, str | int | float):
        return bool(ours == theirs)
    return len(ours) == len(theirs) and all(same(a, b) for a, b in zip(ours, theirs, strict=True))


def test_the_hashes_of_the_types() -> None:
    store = get_typestore(Stores.ROS2_JAZZY)
    for name, number in HASHES.items():
        assert store.hash_rihs01(f"{PACKAGES[name]}/msg/{name}") == f"RIHS01_{number}"


def test_odometry_imu_and_joints_are_the_state(served: Dds, manta: Any) -> None:
    info, outputs = manta
    tools = {name: Tool(served, name, kind) for name, kind in
             (("odom", "Odometry"), ("imu", "Imu"), ("joint_states", "JointState"))}  # fmt: skip
    clock, tf = Tool(served, "clock", "Clock", absolute=True), Tool(served, "tf", "TFMessage", absolute=True)
    served.on_state(state(info, 1500, **outputs))
    odometry, imu, joints = (tool.next() for tool in tools.values())
    assert odometry.header == ros.Header(ros.Time(1, 500_000_000), "odom")
    assert odometry.child_frame_id == "base_link"
    p, q = odometry.pose.pose.position, odometry.pose.pose.orientation
    assert [p.x, p.y, p.z] == outputs["position"]
    assert [q.w, q.x, q.y, q.z] == outputs["quaternion"]
    v, w = odometry.twist.twist.linear, odometry.twist.twist.angular
    assert [v.x, v.y, v.z] == pytest.approx(outputs["velocity"], abs=1e-15)
    assert [w.x, w.y, w.z] == outputs["angular_velocity"]
    assert odometry.twist.covariance[0] == 0.0
    f, a, u = imu.linear_acceleration, outputs["acceleration"], outputs["velocity"]
    # at a moderate attitude most of what it reads is gravity, upwards; the rest is a + w x v
    transport = w.y * u[2] - w.z * u[1]
    gravity = -info.gravity[2]  # the plant's own
    assert gravity == 9.81
    lean = 2.0 * gravity * (q.x * q.z - q.w * q.y)
    assert f.x == pytest.approx(a[0] + transport + lean, abs=1e-12)
    assert imu.header.frame_id == "base_link"
    assert joints.name == ["left.front", "left.back", "right.front", "right.back"]
    assert (joints.position, joints.velocity) == (outputs["rod_angle"], outputs["rod_rate"])
    assert joints.effort == outputs["rod_torque"]
    assert clock.next().clock == ros.Time(1, 500_000_000)
    (moved,) = tf.next().transforms
    assert (moved.header.frame_id, moved.child_frame_id) == ("odom", "base_link")
    assert [moved.transform.translation.x, moved.transform.translation.y] == outputs["position"][:2]
    assert served.counts["sent"] == 5


def test_best_effort_readers_are_served_too(served: Dds, manta: Any) -> None:
    tool = Tool(served, "odom", "Odometry", Qos(
        Policy.Reliability.BestEffort, Policy.History.KeepLast(5),
        Policy.DataRepresentation(use_cdrv0_representation=True),
    ))  # fmt: skip
    served.on_state(state(manta[0], 3, **manta[1]))
    assert tool.next().header.stamp == ros.Time(0, 3_000_000)


PEER = """
import select, sys, time
from cyclonedds.core import Policy, Qos
from cyclonedds.domain import Domain, DomainParticipant
from cyclonedds.pub import DataWriter
from cyclonedds.sub import DataReader
from cyclonedds.topic import Topic
from rtmms_bridges.dds import configuration
from rtmms_bridges.messages import ros2 as ros
number, namespace = int(sys.argv[1]), sys.argv[2]
domain = Domain(number, configuration("127.0.0.1"))
participant = DomainParticipant(number)
qos = Qos(Policy.Reliability.Reliable(100_000_000), Policy.History.KeepLast(10),
          Policy.DataRepresentation(use_cdrv0_representation=True))
reader = DataReader(participant, Topic(participant, f"rt/{namespace}/odom", ros.Odometry), qos=qos)
writer = DataWriter(participant, Topic(participant, f"rt/{namespace}/joint_commands", ros.JointState), qos=qos)
got = 0
while got < 5 or not select.select([sys.stdin], [], [], 0)[0]:
    got += len(reader.take(10))
    writer.write(ros.JointState(name=["left.back"], position=[0.625]))
    time.sleep(0.01)
print(got, flush=True)
"""
"""It goes on until its standard input ends."""


def test_another_process_on_loopback_sees_the_robot_and_drives_it(
    make_host: Callable[..., Host], place: dict[str, Any]
) -> None:
    bridge = Dds(claim=("left.*",), **place)
    with Companion(bridge, make_host) as extra:
        peer = subprocess.Popen(
            [sys.executable, "-c", PEER, str(bridge.domain), bridge.namespace],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        try:
            wait(lambda: extra.command[1] == 0.625)
            output, _ = peer.communicate(timeout=6 * PATIENCE_S)
        finally:
            peer.kill()
            peer.wait()
        assert int(output) >= 5
    assert extra.bridged.fault is None
    assert extra.bridged.counts["received"] > 0
    assert extra.running.host.rejected == {}


def test_arrays_as_commands(make_host: Callable[..., Host], place: dict[str, Any]) -> None:
    bridge = Dds(claim=("left.*",), command_type="Float64MultiArray", **place)
    with Companion(bridge, make_host) as extra:
        wait(lambda: hasattr(bridge, "_reader"))
        participant = DomainParticipant(bridge.domain)
        topic = Topic(participant, f"rt/{bridge.namespace}/joint_commands", ros.Float64MultiArray)
        writer = DataWriter(participant, topic, qos=DEFAULT)
        wait(writer.get_matched_subscriptions)
        writer.write(ros.Float64MultiArray(data=[0.25, -0.5]))
        wait(lambda: extra.command == [0.25, -0.5, 0.0, 0.0])
        for wrong in ([1.0], [float("nan"), 0.0]):
            writer.write(ros.Float64MultiArray(data=wrong))
        wait(lambda: extra.bridged.counts["refused"] == 2)
        assert extra.command == [0.25, -0.5, 0.0, 0.0]
    assert extra.bridged.counts.reasons() == {"wrong_length": 1, "not_finite": 1}


def test_huge_samples_and_packets_that_are_none_cost_nothing(
    make_host: Callable[..., Host], place: dict[str, Any], capfd: pytest.CaptureFixture[str]
) -> None:
    bridge = Dds(claim=("left.*",), command_type="Float64MultiArray", **place)
    with Companion(bridge, make_host) as extra:
        wait(lambda: hasattr(bridge, "_reader"))
        peer = subprocess.Popen([sys.executable, "-c", HUGE, str(bridge.domain), bridge.namespace], cwd=ROOT,
                                stdin=subprocess.PIPE)  # fmt: skip
        try:
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
                for port in range(7410 + 250 * bridge.domain, 7420 + 250 * bridge.domain):
                    for _ in range(20):
                        with contextlib.suppress(OSError):
                            stranger.sendto(
                                b"RTPS\2\3\1\x10" + bytes(12) + b"\7\1\4\0" + bytes(20), ("127.0.0.1", port)
                            )
            wait(lambda: extra.command == [0.25, -0.5, 0.0, 0.0])
            peer.communicate(timeout=6 * PATIENCE_S)
            assert peer.returncode == 0
        finally:
            peer.kill()
            peer.wait()
    assert extra.bridged.counts.reasons() == {}  # they are not even read
    assert capfd.readouterr().err == ""


HUGE = """
import select, sys, time
from cyclonedds.core import Policy, Qos
from cyclonedds.domain import DomainParticipant
from cyclonedds.pub import DataWriter
from cyclonedds.topic import Topic
from rtmms_bridges.dds import configuration, hush
from rtmms_bridges.messages import ros2 as ros
from cyclonedds.domain import Domain
number, namespace = int(sys.argv[1]), sys.argv[2]
hush()
domain = Domain(number, configuration("127.0.0.1").replace("256 KiB", "8 MiB"))
participant = DomainParticipant(number)
topic = Topic(participant, f"rt/{namespace}/joint_commands", ros.Float64MultiArray)
qos = Qos(Policy.Reliability.Reliable(10**9), Policy.DataRepresentation(use_cdrv0_representation=True))
writer = DataWriter(participant, topic, qos=qos)
while not writer.get_matched_subscriptions():
    time.sleep(0.01)
count = 0
while count < 10 or not select.select([sys.stdin], [], [], 0)[0]:
    count += 1
    writer.write(ros.Float64MultiArray(data=[0.0] * 500_000))
    time.sleep(0.1)  # its pieces fill the readers' sockets
    writer.write(ros.Float64MultiArray(data=[0.25, -0.5]))
    time.sleep(0.1)
"""
"""It goes on until its standard input ends."""


def test_what_is_no_command() -> None:
    names = {"left.front": "rad", "left.back": "rad"}
    mixed = {"arm": "rad", "wheel": "rad/s", "slide": "m", "push": "N", "twist": "N m", "valve": ""}
    item = ros.JointState(
        name=["twist", "arm", "wheel", "valve"], position=[math.nan, 0.1, 9.0, 0.4], velocity=[9.0, 9.0, 0.2, 9.0],
        effort=[0.3, 9.0, 9.0, 9.0],
    )  # fmt: skip
    assert values_of(item, mixed) == {"twist": 0.3, "arm": 0.1, "wheel": 0.2, "valve": 0.4}
    assert values_of(ros.Float64MultiArray(ros.MultiArrayLayout(data_offset=1), [9.0, 1.0, 2.0]), names) == {
        "left.front": 1.0, "left.back": 2.0,
    }  # fmt: skip
    for wrong, reason in (
        (ros.JointState(name=["left.back", "left.back"], position=[1.0, 2.0]), "wrong_type"),
        (ros.JointState(name=["left.back"]), "wrong_length"),
        (ros.JointState(name=["left.back"], effort=[2.0]), "wrong_length"),  # a torque is no angle
        (ros.JointState(name=["left.back"], position=[float("inf")]), "not_finite"),
        (ros.JointState(name=["right.back"], position=[1.0]), "unknown_actuator"),
        (ros.Float64MultiArray(ros.MultiArrayLayout(data_offset=4_000_000_000), [1.0, 2.0]), "wrong_length"),
    ):
        with pytest.raises(Refusal) as refusal:
            values_of(wrong, names)
        assert refusal.value.reason == reason


def test_one_that_does_not_take_costs_its_own_messages(served: Dds, manta: Any) -> None:
    """A reliable reader that keeps all, and is full after 4: writes do not wait for it."""
    greedy = Tool(served, "odom", "Odometry", Qos(
        Policy.Reliability.Reliable(0), Policy.History.KeepAll, Policy.ResourceLimits(max_samples=4),
        Policy.DataRepresentation(use_cdrv0_representation=True),
    ))  # fmt: skip
    for step in range(200):
        served.on_state(state(manta[0], step, **manta[1]))
    assert served.counts["sent"] + served.counts["dropped"] == 200 * len(served._writers)
    assert len(greedy.reader.take(100)) == 4


def test_a_plant_without_velocities_has_no_imu(place: dict[str, Any]) -> None:
    info = plant_info(Channel("position", "m", (3,), "world"), Channel("quaternion", "", (4,), "world"))
    bridge = opened(Dds(tf=False, **place), info)
    try:
        assert set(bridge._writers) == {"clock", "odom"}
        tool = Tool(bridge, "odom", "Odometry")
        bridge.on_state(state(info, 1, position=[1.0, 2.0, 3.0], quaternion=[1.0, 0.0, 0.0, 0.0]))
        assert tool.next().twist.covariance[0] == -1.0
    finally:
        bridge.close("the test is over")


def test_only_on_loopback_others_are_not_looked_for_by_multicast() -> None:
    here, there = configuration("127.0.0.1"), configuration("eth0")
    assert '<NetworkInterface address="127.0.0.1"/>' in here
    assert "<AllowMulticast>false" in here
    assert '<Peer address="localhost"/>' in here
    assert '<NetworkInterface name="eth0"/>' in there
    assert "Multicast" not in there
    assert "Peer" not in there
    assert configuration('"/>') == configuration("eth0").replace('"eth0"', "'\"/&gt;'")


def test_what_is_wrong_is_reported(manta: Any, place: dict[str, Any], capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(rtmms.ModelError, match="interface 'nosuch'"):
        opened(Dds(interface="nosuch", **place), manta[0])
    with pytest.raises(rtmms.ModelError, match="domain: expected a whole number from 0 to 232"):
        Dds(domain=500)
    with pytest.raises(rtmms.ModelError, match="namespace: expected"):
        Dds(namespace="a-b")
    for depth in (0, 9999999999):
        with pytest.raises(rtmms.ModelError, match="depth: expected"):
            Dds(depth=depth)
    with pytest.raises(rtmms.ModelError, match="body: expected the name of a frame"):
        Dds(body="")
    with pytest.raises(rtmms.ModelError, match="lacks position"):
        opened(Dds(**place), plant_info(Channel("angle", "rad")))


def test_who_comes_later_and_asks_nobody_learns_of_it_soon(served: Dds) -> None:
    """Others (Fast DDS) look by multicast, of which there is none on loopback: they need an address."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as late:
        late.bind(("127.0.0.1", 7400 + 250 * served.domain + 10 + 2 * 5))  # of the participant with index 5
        late.settimeout(20.0)
        for _ in range(4):
            assert late.recv(65536)[:4] == b"RTPS"


def test_a_publisher_of_commands_that_is_gone(make_host: Callable[..., Host], place: dict[str, Any]) -> None:
    bridge = Dds(claim=("left.*",), **place)
    with Companion(bridge, make_host) as extra:
        wait(lambda: hasattr(bridge, "_reader"))
        participant = DomainParticipant(bridge.domain)
        topic = Topic(participant, f"rt/{bridge.namespace}/joint_commands", ros.JointState)
        other = DataWriter(participant, topic, qos=DEFAULT)
        writer = DataWriter(participant, topic, qos=DEFAULT)
        wait(lambda: bridge._drivers == 2)
        writer.write(ros.JointState(name=["left.front"], position=[0.25]))
        wait(lambda: extra.command[0] == 0.25)
        del writer
        wait(lambda: bridge._drivers == 1)
        assert extra.command[0] == 0.25
        del other
        wait(lambda: extra.command[0] == 0.0)
        assert extra.bridged.counts["peer_lost"] == 1
