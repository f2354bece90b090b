"""The live server for viewers, against a WebSocket client that speaks the protocol."""

from __future__ import annotations

import contextlib
import json
import math
import os
import socket
import stat
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest

pytest.importorskip("foxglove", reason="needs foxglove-sdk: pip install 'rtmms[foxglove]'")

import rtmms
from rtmms.bridging.untrusted import Refusal
from rtmms.plant.protocol import Channel
from rtmms_bridges.foxglove import OPEN_TO_ALL, Foxglove, parse
from rtmms_bridges.lines.nodelay import send_at_once
from tests.bridges.by_hand import opened, swum
from tests.bridges.foxglove_client import Viewer, text_frame, upgrade
from tests.bridges.harness import Companion, plant_info, state, wait
from tests.ports import reserve_ports
from tests.wire.bench import PATIENCE_S, Host

pytestmark = pytest.mark.full


@pytest.fixture(scope="module")
def manta() -> tuple[rtmms.PlantInfo, dict[str, Any]]:
    return swum()


@pytest.fixture
def served(manta: tuple[rtmms.PlantInfo, dict[str, Any]]) -> Iterator[Foxglove]:
    bridge = opened(Foxglove(port=0), manta[0])
    yield bridge
    bridge.close("the test is over")


def received(bridge: Foxglove, viewer: Viewer, topic: str, manta: Any, step: int = 1500) -> tuple[int, Any]:
    """The state of that step as it comes on a topic."""
    channels = {"/tf": bridge._tf, "/odom": bridge._odometry, "/scene": bridge._drawn, "/outputs": bridge._plots,
                "/joint_states": bridge._joint_states}  # fmt: skip
    viewer.subscribe(topic)
    wait(channels[topic].has_sinks)
    bridge.on_state(state(manta[0], step, **manta[1]))
    return viewer.await_(topic)


def test_transforms_are_the_state(served: Foxglove, manta: Any) -> None:
    with Viewer(served.relay.port) as viewer:
        at, message = received(served, viewer, "/tf", manta)
    assert viewer.channels["/tf"]["schemaName"] == "foxglove.FrameTransforms"
    body, left, right = message.transforms
    assert at == 1_500_000_000
    assert (body.timestamp.seconds, body.timestamp.nanos) == (1, 500_000_000)
    assert (body.parent_frame_id, body.child_frame_id) == ("world", "body")
    t, r = body.translation, body.rotation
    assert [t.x, t.y, t.z] == manta[1]["position"]
    w, x, y, z = manta[1]["quaternion"]
    assert [r.w, r.x, r.y, r.z] == ([w, x, y, z] if w >= 0 else [-w, -x, -y, -z])
    assert [(item.parent_frame_id, item.child_frame_id) for item in (left, right)] == [
        ("body", "left_fin"), ("body", "right_fin")
    ]  # fmt: skip
    assert left.translation.y > 0 > right.translation.y


def test_the_fins_are_drawn_where_their_joints_are(served: Foxglove, manta: Any) -> None:
    with Viewer(served.relay.port) as viewer:
        _, message = received(served, viewer, "/scene", manta)
    drawn = {entity.id: entity for entity in message.entities}
    assert set(drawn) == {"left_fin", "right_fin", "left_rods", "right_rods", "body"}
    tips = {"left_fin": manta[1]["tip"][:3], "right_fin": manta[1]["tip"][3:]}
    for name, tip in tips.items():
        (triangles,), (lines,) = drawn[name].triangles, drawn[name].lines
        points = [(p.x, p.y, p.z) for p in triangles.points]
        assert len(points) == 4 * 6
        assert max(triangles.indices) == 23
        assert len(triangles.indices) == 3 * 2 * 3 * 5
        assert len(lines.indices) == 2 * (6 * 3 + 5)
        nearest = min(sum((a - b) ** 2 for a, b in zip(point, tip, strict=True)) for point in points)
        assert nearest < 1e-20, "the plant's own tip of the fin is one of the points"
        assert drawn[name].frame_id == "body"
        assert drawn[name].frame_locked
    assert drawn["body"].spheres[0].size.z > 0


def test_odometry_joints_and_plots(served: Foxglove, manta: Any) -> None:
    with Viewer(served.relay.port) as viewer:
        _, odometry = received(served, viewer, "/odom", manta)
        _, joints = received(served, viewer, "/joint_states", manta)
        _, plots = received(served, viewer, "/outputs", manta)
        schema = json.loads(viewer.channels["/outputs"]["schema"])
    v, w = odometry.linear_velocity, odometry.angular_velocity
    assert [v.x, v.y, v.z] == pytest.approx(manta[1]["velocity"], abs=1e-15)
    assert [w.x, w.y, w.z] == manta[1]["angular_velocity"]
    assert (odometry.frame_id, odometry.body_frame_id) == ("world", "body")
    assert [joint.name for joint in joints.joints] == ["left.front", "left.back", "right.front", "right.back"]
    assert [joint.position for joint in joints.joints] == manta[1]["rod_angle"]
    assert [joint.velocity for joint in joints.joints] == manta[1]["rod_rate"]
    assert [joint.effort for joint in joints.joints] == manta[1]["rod_torque"]
    assert plots["time"] == 1.5
    assert plots["rod_power"] == manta[1]["rod_power"]
    assert plots["velocity"] == dict(zip("xyz", manta[1]["velocity"], strict=True))
    assert plots["thrust"] == manta[1]["thrust"]
    assert "joint_velocity" in plots  # 36 numbers; those of a fin of 30 chains are too many
    assert set(plots) == set(schema["properties"])
    assert schema["properties"]["rod_power"]["description"] == "W"


def test_a_reset_makes_viewers_forget(served: Foxglove, manta: Any) -> None:
    with Viewer(served.relay.port) as viewer:
        received(served, viewer, "/tf", manta)
        first = viewer.server_info["sessionId"]
        served.on_state(state(manta[0], 3, **manta[1]))
        while viewer.server_info["sessionId"] == first:
            viewer.read()
        assert viewer.times[0] == 1_500_000_000
        while viewer.times[-1] != 3_000_000:
            viewer.read()
    assert served.counts["resets"] == 1


def test_one_that_does_not_read_costs_nothing(served: Foxglove, manta: Any) -> None:
    """A client that never reads, and one that does: the second misses nothing, the end does not wait."""
    stopped = socket.socket()
    stopped.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    stopped.connect(("127.0.0.1", served.relay.port))
    upgrade(stopped)
    assert served._drawn is not None
    channel = served._drawn.id()
    stopped.sendall(text_frame(f'{{"op": "subscribe", "subscriptions": [{{"id": 1, "channelId": {channel}}}]}}'))
    wait(served._drawn.has_sinks)
    with Viewer(served.relay.port) as viewer:
        viewer.subscribe("/scene", "/odom")
        wait(served._odometry.has_sinks)  # asked for last: then it has both
        resident = 0
        for step in range(2000, 3500):
            served.on_state(state(manta[0], step, **manta[1]))
            at, _ = viewer.await_("/scene")
            assert at == step * 1_000_000
            if step == 2200:
                resident = _resident_kb()
        assert _resident_kb() - resident < 5000  # 1300 scenes are 10 MB, of which 64 may wait
    assert served._drawn.has_sinks(), "it is still there"
    served.close("the test is over")
    stopped.close()


def _resident_kb() -> int:
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmRSS"))


def test_small_messages_leave_at_once(served: Foxglove, manta: Any) -> None:
    """Else they would wait for acknowledgements, 40 ms at times."""
    with Viewer(served.relay.port) as viewer:
        assert send_at_once(1) == 0
        received(served, viewer, "/tf", manta)
        assert all(sets_nodelay(served.server.port))


def sets_nodelay(port: int) -> Iterator[bool]:
    """Of each connection of this process whose own port it is."""
    for fd in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):
            if not stat.S_ISSOCK(os.fstat(int(fd)).st_mode):
                continue
            result = socket.socket(fileno=os.dup(int(fd)))
        with contextlib.suppress(OSError), result:
            result.getpeername()
            if result.getsockname()[1:2] == (port,):
                yield bool(result.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))


def test_a_robot_without_a_shape_and_states_over_the_wire(make_host: Callable[..., Host]) -> None:
    bridge = Foxglove(port=reserve_ports(), rate_hz=0.0)
    with Companion(bridge, make_host) as extra:
        wait(lambda: hasattr(bridge, "server"))
        with Viewer(bridge.relay.port) as viewer:
            viewer.subscribe("/tf", "/outputs")
            at, message = viewer.await_("/tf")
            assert at == message.transforms[0].timestamp.seconds * 10**9 + message.transforms[0].timestamp.nanos
            assert len(message.transforms) == 1
            _, plots = viewer.await_("/outputs")
            assert plots["speed"] == pytest.approx(plots["time"], abs=2e-3)
            assert "/scene" not in viewer.channels
            assert "/joint_states" not in viewer.channels
            assert "clientPublish" not in viewer.server_info["capabilities"]
    assert extra.bridged.fault is None
    assert extra.bridged.messages[0] == f"foxglove: listening at ws://127.0.0.1:{bridge.port}"
    assert not any("can drive" in line for line in extra.bridged.messages)


def test_commands_come_in_only_where_something_is_claimed(make_host: Callable[..., Host]) -> None:
    bridge = Foxglove(port=0, claim=("left.*",))
    with Companion(bridge, make_host) as extra:
        wait(lambda: hasattr(bridge, "server"))
        with Viewer(bridge.relay.port) as viewer:
            viewer.read()
            assert "clientPublish" in viewer.server_info["capabilities"]
            viewer.send(op="advertise", channels=[
                {"id": 1, "topic": "/command", "encoding": "json", "schemaName": ""},
                {"id": 2, "topic": "/other", "encoding": "json", "schemaName": ""},
            ])  # fmt: skip
            viewer.publish(2, b'{"values": {"left.back": 0.5}}')
            viewer.publish(1, b'{"values": {"left.front": 0.75}}')
            wait(lambda: extra.command[0] == 0.75)
            for wrong in (b"", b"{", b"[]", b'{"values": {"left.front": NaN}}', b'{"values": {"right.front": 1}}'):
                viewer.publish(1, wrong)
            viewer.socket.send(b"\x99\xff\x00")
            viewer.socket.send("nonsense")
            wait(lambda: extra.bridged.counts["refused"] == 5)
            assert extra.command == [0.75, 0.0, 0.0, 0.0]
    assert OPEN_TO_ALL.format(pages="https://app.foxglove.dev") in extra.bridged.messages
    assert extra.bridged.counts.reasons() == {"malformed": 2, "wrong_type": 1, "not_finite": 1, "unknown_actuator": 1}
    assert extra.running.host.rejected == {}


def test_a_client_that_leaves_lets_go_and_cannot_shut_others_out(make_host: Callable[..., Host]) -> None:
    bridge = Foxglove(port=0, claim=("left.*",))
    with Companion(bridge, make_host) as extra:
        wait(lambda: hasattr(bridge, "server"))
        with Viewer(bridge.relay.port) as greedy, Viewer(bridge.relay.port) as viewer:
            greedy.read()
            greedy.send(op="advertise", channels=[
                {"id": i, "topic": "/command" if i % 2 else f"/t{i}", "encoding": "json", "schemaName": ""}
                for i in range(1, 1500)
            ])  # fmt: skip
            greedy.publish(1, b'{"values": {"left.back": 0.5}}')
            wait(lambda: extra.command[1] == 0.5)
            viewer.read()
            viewer.send(op="advertise", channels=[
                {"id": 1, "topic": "/command", "encoding": "json", "schemaName": ""},
            ])  # fmt: skip
            viewer.publish(1, b'{"values": {"left.front": 0.75}}')
            wait(lambda: extra.command[:2] == [0.75, 0.5])
            greedy.socket.close()
            viewer.publish(1, b'{"values": {"left.front": 0.25}}')
            wait(lambda: extra.command[:2] == [0.25, 0.5])
            assert not extra.bridged.counts["peer_lost"], "the last one who gave commands is here"
        wait(lambda: extra.command[:2] == [0.0, 0.0])
        assert extra.bridged.counts["peer_lost"] == 1


def test_numbers_that_are_none_are_not_plotted(served: Foxglove, manta: Any) -> None:
    info, outputs = manta
    with Viewer(served.relay.port) as viewer:
        viewer.subscribe("/outputs")
        wait(served._plots.has_sinks)
        served.on_state(state(info, 1, **outputs | {"thrust": [math.nan] * len(outputs["thrust"])}))
        served.on_state(state(info, 2, **outputs))
        _, plots = viewer.await_("/outputs")
        assert plots["step"] == 2
    assert served.counts["not_finite"] == 1


def test_what_is_wrong_is_reported(manta: Any) -> None:
    with socket.create_server(("127.0.0.1", 0)) as used:
        port = used.getsockname()[1]
        with pytest.raises(rtmms.ModelError, match=f"cannot listen at 127.0.0.1:{port}: .*Address already in use"):
            opened(Foxglove(port=port), manta[0])
    with pytest.raises(rtmms.ModelError, match=r"/nowhere\.pem: No such file"):
        opened(Foxglove(port=0, tls_cert="/nowhere.pem", tls_key="/nowhere.pem"), manta[0])
    with pytest.raises(rtmms.ModelError, match="expected both or none"):
        Foxglove(tls_cert="a.pem")
    with pytest.raises(rtmms.ModelError, match="backlog: expected"):
        Foxglove(backlog=0)
    with pytest.raises(rtmms.ModelError, match="lacks position"):
        opened(Foxglove(port=0), plant_info(Channel("angle", "rad")))
    assert reserve_ports() > 0


def test_tls(manta: Any, tmp_path: Any) -> None:
    import ssl
    import subprocess

    cert, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
         "-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", cert],
        check=True, capture_output=True,
    )  # fmt: skip
    bridge = opened(Foxglove(port=0, tls_cert=str(cert), tls_key=str(key)), manta[0])
    try:
        trusting = ssl.create_default_context(cafile=str(cert))
        plain = socket.create_connection(("127.0.0.1", bridge.relay.port))
        with trusting.wrap_socket(plain, server_hostname="127.0.0.1") as peer:
            assert b"rtmms manta" in upgrade(peer)
    finally:
        bridge.close("the test is over")


def handshake(port: int, *headers: str) -> int:
    """The status of the answer."""
    asked = ("GET / HTTP/1.1", "Host: 127.0.0.1", "Connection: Upgrade", "Sec-WebSocket-Version: 13",
             "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==", "Sec-WebSocket-Protocol: foxglove.sdk.v1")  # fmt: skip
    with socket.create_connection(("127.0.0.1", port), PATIENCE_S) as asking:
        asking.settimeout(PATIENCE_S)
        asking.sendall("\r\n".join((*asked, *headers, "", "")).encode())
        line = b""
        while b"\r\n" not in line and (more := asking.recv(4096)):
            line += more
    return int(line.split()[1]) if line else 0


def test_pages_of_other_sites_are_refused(manta: Any) -> None:
    bridge = opened(Foxglove(port=0, origins=("https://app.foxglove.dev", "http://localhost:8080")), manta[0])
    try:
        port, upgrade_it = bridge.relay.port, "Upgrade: websocket"
        assert handshake(port, upgrade_it) == 101  # a program
        for page in ("https://app.foxglove.dev", "HTTP://localhost:8080"):
            assert handshake(port, upgrade_it, f"Origin: {page}") == 101
        pages = ("https://robot.example", "null", "file://", "https://app.foxglove.dev.example", "http://localhost:80801",
                 "\x1b]0;owned\x07")  # fmt: skip
        for page in pages:
            assert handshake(port, upgrade_it, f"Origin: {page}") == 403
        assert handshake(port, upgrade_it, "origin : https://robot.example") == 403
        assert handshake(port, upgrade_it, "Origin: https://app.foxglove.dev", "Origin: https://robot.example") == 403
        assert handshake(port) == 403  # no handshake of a WebSocket: the next one of this connection could be anybody's
        assert handshake(port, upgrade_it, "X: " + "x" * 20_000) in (0, 403)
        bridge._on_stranger()
        assert bridge.counts.reasons() == {"origin": 8, "handshake": 2}
        message = "foxglove: refused a page of https://robot.example; origins=https://robot.example admits it"
        assert message in bridge.io.messages
        assert not any("\x1b" in line for line in bridge.io.messages)
        if sys.platform == "linux":  # the library itself listens where nobody looks for it
            with pytest.raises(ConnectionRefusedError):
                socket.create_connection(("127.0.0.1", bridge.server.port), 1.0)
    finally:
        bridge.close("the test is over")
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port), 1.0)
    with pytest.raises(rtmms.ModelError, match="origins: expected sites"):
        Foxglove(origins=("*",))


def test_what_clients_send_is_read_without_trust() -> None:
    assert parse(b'{"values": {"left.front": 1}}') == {"left.front": 1.0}
    with pytest.raises(Refusal):
        parse(b'{"value": {}}')
