"""What connects to PX4's port and is no PX4; and where its ground station is."""

from __future__ import annotations

import contextlib
import math
import random
import socket
from typing import Any

import pytest

import rtmms
from rtmms_bridges.autopilot import mavframes
from rtmms_bridges.autopilot.hil import Sensors
from rtmms_bridges.autopilot.mavframes import Reader, Writer
from rtmms_bridges.lines.addresses import host_port, resolve_receiver
from rtmms_bridges.motion.pose import Motion
from rtmms_bridges.px4 import _MAX_GARBAGE_BYTES, Px4
from tests.bridges.autopilot.test_mavframes import nested
from tests.bridges.harness import wait
from tests.bridges.swimmer import Sailing, Swimmer
from tests.bridges.test_px4 import Autopilot, bridge
from tests.ports import reserve_ports

common = pytest.importorskip("pymavlink.dialects.v20.common", reason="pip install 'rtmms[px4]'")

pytestmark = pytest.mark.full


def test_one_that_speaks_something_else_is_parted_with_and_px4_is_taken() -> None:
    port = reserve_ports()
    with Sailing(bridge(port)) as sailing:
        with socket.create_connection(("127.0.0.1", port)) as stranger:
            stranger.settimeout(20.0)
            with contextlib.suppress(OSError):  # it is parted with in the middle
                while True:
                    stranger.sendall(b"GET / HTTP/1.1\r\n" * 400)
        wait(lambda: sailing.bridged.counts.reasons().get("no_mavlink") == 1)
        with Autopilot(port) as px4:
            assert px4.receive().time_usec > 0


def test_those_that_knock_and_send_nothing_take_nobodys_place() -> None:
    port = reserve_ports()
    with Sailing(bridge(port)) as sailing, Autopilot(port) as px4:
        for _ in range(20):
            px4.frame()
        peer = sailing.bridged.bridge._peer  # type: ignore[attr-defined]
        wait(lambda: sailing.bridged.counts["received"] == 22)  # with its first two
        peer._received_at -= 10.0  # as after ten seconds of silence
        for _ in range(30):
            socket.create_connection(("127.0.0.1", port)).close()
        wait(lambda: sailing.bridged.counts.reasons().get("second") == 30)
        assert (sailing.bridged.counts["connections"], sailing.bridged.counts["resets"]) == (1, 0)
        px4.drive()
        wait(lambda: sailing.bridged.counts["received"] == 23)
        peer._received_at -= 10.0
        with Autopilot(port) as other:  # it sends who it is
            assert other.receive().time_usec > 0
            wait(lambda: sailing.plant.resets == 2)


def test_who_is_not_named_cannot_connect() -> None:
    port = reserve_ports()
    with Sailing(bridge(port, peer=("127.0.0.2",))) as sailing:
        with socket.create_connection(("127.0.0.1", port)) as stranger:
            stranger.settimeout(20.0)
            assert stranger.recv(1) == b""
        wait(lambda: sailing.bridged.counts.reasons() == {"stranger": 1})
        assert not sailing.bridged.counts["connections"]


def test_before_px4_has_sent_anything_nothing_is_sent() -> None:
    port = reserve_ports()
    with Sailing(bridge(port), mode="realtime") as sailing, socket.create_connection(("127.0.0.1", port)) as silent:
        wait(lambda: sailing.bridged.counts["connections"])
        step = sailing.loop.step
        wait(lambda: sailing.loop.step > step + 100)
        assert not sailing.bridged.counts["sent"]
        silent.sendall(Writer(1, 1).pack(common.MAVLink_heartbeat_message(0, 12, 0, 0, 0, 3)))
        wait(lambda: sailing.bridged.counts["sent"])


def test_a_control_that_is_no_number_is_an_answer_all_the_same() -> None:
    port = reserve_ports()
    with Sailing(bridge(port, unanswered_s=0.0)) as sailing, Autopilot(port) as px4:
        px4.controls[2] = 0.5
        px4.frame()
        wait(lambda: sailing.drove(1.0))
        px4.controls[2] = math.nan
        for _ in range(20):
            px4.frame()
        wait(lambda: sailing.bridged.counts.reasons() == {"not_finite": 20})  # those that it got were older, maybe
        assert sailing.command[0] == 1.0
        assert any("not finite" in line for line in sailing.bridged.messages)


def test_gravity_is_the_plants_own() -> None:
    class Moon(Swimmer):
        parameters = {"gravity_m_s2": 1.62}  # noqa: RUF012

    port = reserve_ports()
    with Sailing(bridge(port), plant=Moon()), Autopilot(port) as px4:
        assert px4.frame().zacc == pytest.approx(-1.62, rel=1e-6)


def test_good_messages_between_garbage_keep_the_connection() -> None:
    port = reserve_ports()
    with Sailing(bridge(port)) as sailing, Autopilot(port) as px4:
        for _ in range(3 * _MAX_GARBAGE_BYTES // 16384):
            px4.link.port.sendall(b"x" * 16384)
            px4.drive()
            px4.receive()
        assert "no_mavlink" not in sailing.bridged.counts.reasons()
        assert sailing.bridged.counts["connections"] == 1


@pytest.mark.parametrize("filling", ["fe", "fd", "random"])
def test_garbage_is_not_decoded(filling: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Decoding is what costs time: of garbage next to nothing may get there."""
    size = 1 << 16
    data = random.Random(1).randbytes(size) if filling == "random" else bytes.fromhex(filling) * size
    refused: list[str] = []
    reader, tried = Reader(refused.append), 0
    decode = reader._decode

    def counted(frame: Any) -> Any:
        nonlocal tried
        tried += 1
        return decode(frame)

    monkeypatch.setattr(reader, "_decode", counted)
    assert not [result for i in range(0, size, 4096) for result in reader.feed(data[i : i + 4096])]
    assert tried < size / 100
    good = Writer(1, 1).pack(common.MAVLink_heartbeat_message(0, 12, 0, 0, 0, 3))
    assert reader.feed(b"\0" * mavframes._size(bytearray(b"\xfd\xff\x01"), 0) + 2 * good)  # after a broken beginning


def test_what_lies_behind_a_broken_frame_is_received_without_another_byte() -> None:
    port = reserve_ports()
    with Sailing(bridge(port)) as sailing, socket.create_connection(("127.0.0.1", port)) as line:
        line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        broken = nested()
        line.sendall(broken[:-1])
        wait(lambda: len(sailing.bridged.bridge._reader._incomplete) == len(broken) - 1)  # type: ignore[attr-defined]
        line.sendall(broken[-1:])
        wait(lambda: sailing.bridged.counts["received"] == 1)


def test_a_course_just_below_north_is_not_360_degrees() -> None:
    from rtmms_bridges.motion.frames import Home

    home = Home(lat_deg=47.0, lon_deg=8.0, x_bearing_deg=0.0)
    sensors = Sensors(home, (0.2, 0.0, 0.4), 0.0, 0)
    motion = Motion(0.0, (0.0,) * 3, (1.0, 0.0, 0.0, 0.0), (5.0, 1e-5, 0.0), (5.0, 1e-5, 0.0), (0.0,) * 3, None)
    assert sensors.gps(motion, 0).cog == 0


# -- addresses --------------------------------------------------------------------------------------------------------


def test_addresses() -> None:
    assert host_port("a.b:1", "x") == ("a.b", 1)
    assert host_port("[::1]:14550", "x") == ("::1", 14550)
    assert host_port("a.b", "x", 14550) == ("a.b", 14550)
    assert resolve_receiver("127.0.0.1:5", "x") == (socket.AF_INET, ("127.0.0.1", 5))
    assert resolve_receiver("localhost:5", "x", family=socket.AF_INET)[1] == ("127.0.0.1", 5)
    for wrong in ("a.b", "a.b:0", ":5", "a.b:x", "a.b:70000", "a:-1"):
        with pytest.raises(rtmms.ModelError, match="x: expected HOST:PORT"):
            host_port(wrong, "x")
    with pytest.raises(rtmms.ModelError, match="x: 'no such host' has no address"):
        resolve_receiver("no such host:5", "x")
    with pytest.raises(rtmms.ModelError, match="ground: expected HOST:PORT, got 'here'"):
        Px4(ground="here")
