"""LCM messages against the library, and against the code that lcm-gen makes of bridges/messages/rtmms.lcm."""

from __future__ import annotations

import importlib
import os
import shutil
import subprocess
import sysconfig
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("lcm", reason="needs lcm: pip install 'rtmms[lcm]'")

import lcm

import rtmms
from rtmms.bridging.untrusted import Refusal
from rtmms.plant.protocol import Channel
from rtmms_bridges.lcm import Lcm, encode_command, encode_outputs, encode_pose, parse
from rtmms_bridges.motion.pose import PoseNames, PoseReader
from tests.bridges.by_hand import opened, swum
from tests.bridges.harness import ROOT, Companion, plant_info, state, wait
from tests.ports import reserve_ports
from tests.wire.bench import PATIENCE_S, Host

pytestmark = pytest.mark.full


@pytest.fixture(scope="module")
def build(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The Python that lcm-gen makes of our file."""
    folder = tmp_path_factory.mktemp("lcm")
    program = shutil.which("lcm-gen") or shutil.which(
        "lcm-gen", path=os.pathsep.join([sysconfig.get_path("scripts"), str(Path(lcm.LCM_BIN_DIR))])
    )
    if program is None:
        pytest.skip("lcm-gen is not there")
    file = ROOT / "bridges" / "messages" / "rtmms.lcm"
    subprocess.run([program, "--python", "--ppath", folder, file], check=True, capture_output=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(folder))
        yield importlib.import_module("rtmms_lcm")


@pytest.fixture
def url() -> str:
    """A group that no other test has."""
    place = f"udpm://239.255.76.67:{reserve_ports()}?ttl=0"
    try:
        lcm.LCM(place)
    except RuntimeError:
        pytest.skip("no multicast route here: ip link set lo multicast on; ip route add 239.255.76.67 dev lo")
    return place


class Listener:
    """What comes on the channels of a prefix, newest last."""

    def __init__(self, url: str, pattern: str = "RTMMS_.*") -> None:
        self.lcm = lcm.LCM(url)
        self.messages: list[tuple[str, bytes]] = []
        self.lcm.subscribe(pattern, lambda channel, data: self.messages.append((channel, bytes(data))))

    def next(self, channel: str) -> bytes:
        end = time.monotonic() + PATIENCE_S
        while True:
            for name, data in self.messages:
                if name == channel:
                    return data
            assert time.monotonic() < end, f"nothing on {channel}"
            self.lcm.handle_timeout(100)


def test_generated_code_reads_what_we_write(build: Any) -> None:
    info, outputs = swum()
    motion = PoseReader(PoseNames(), info)(state(info, 1500, **outputs))
    pose = build.pose_t.decode(encode_pose(motion))
    assert pose.utime == 1_500_000
    assert list(pose.pos) == outputs["position"]
    assert list(pose.orientation) == outputs["quaternion"]
    assert list(pose.rotation_rate) == outputs["angular_velocity"]
    assert list(pose.vel) == list(motion.velocity)
    assert list(pose.accel) == list(motion.acceleration or ())
    result = build.outputs_t.decode(encode_outputs(1.5, 1500, outputs))
    assert (result.utime, result.step, result.n) == (1_500_000, 1500, len(outputs))
    read = {item.name: list(item.value) for item in result.output}
    assert read == {name: value if isinstance(value, list) else [value] for name, value in outputs.items()}
    assert encode_pose(motion) == pose.encode()
    assert encode_outputs(1.5, 1500, outputs) == result.encode()


def test_we_read_what_generated_code_writes(build: Any) -> None:
    command = build.command_t()
    command.utime, command.n = 5, 2
    command.name, command.value = ["left.front", "rück"], [0.25, -1.5]
    assert parse(command.encode()) == {"left.front": 0.25, "rück": -1.5}
    assert encode_command(5, {"left.front": 0.25, "rück": -1.5}) == command.encode()


def test_states_out_and_commands_in(build: Any, make_host: Callable[..., Host], url: str) -> None:
    listener = Listener(url)
    bridge = Lcm(url=url, claim=("left.*",), rate_hz=0.0)
    with Companion(bridge, make_host) as extra:
        outputs = build.outputs_t.decode(listener.next("RTMMS_OUTPUTS"))
        assert [item.name for item in outputs.output] == ["position", "quaternion", "speed", "thrust"]
        assert outputs.utime == outputs.step * 1000
        assert list(outputs.output[3].value) == [1.0, 2.0, 3.0, 4.0]
        assert build.pose_t.decode(listener.next("RTMMS_POSE")).orientation == (1.0, 0.0, 0.0, 0.0)
        command = build.command_t()
        command.n, command.name, command.value = 2, ["left.front", "left.back"], [0.5, -0.25]
        listener.lcm.publish("RTMMS_COMMAND", command.encode())
        wait(lambda: extra.command == [0.5, -0.25, 0.0, 0.0])
        right = command.encode()
        command.value = [float("inf"), 0.0]
        wrong = [b"", right[:-1], right + b"x", b"12345678" + right[8:], command.encode(),
                 encode_command(0, {"right.front": 1.0})]  # fmt: skip
        for data in wrong:
            listener.lcm.publish("RTMMS_COMMAND", data)
        wait(lambda: extra.bridged.counts["refused"] == len(wrong))
        assert extra.command == [0.5, -0.25, 0.0, 0.0]
    assert extra.bridged.counts.reasons() == {
        "malformed": 3, "unknown_type": 1, "not_finite": 1, "unknown_actuator": 1,
    }  # fmt: skip
    assert extra.running.host.rejected == {}


def test_without_a_claim_nothing_is_taken(make_host: Callable[..., Host], url: str) -> None:
    bridge = Lcm(url=url, rate_hz=0.0)
    with Companion(bridge, make_host) as extra:
        wait(lambda: extra.bridged.counts["sent"])
        other = lcm.LCM(url)
        other.publish("RTMMS_COMMAND", encode_command(0, {"left.front": 1.0}))
        sent = extra.bridged.counts["sent"]
        wait(lambda: extra.bridged.counts["sent"] > sent + 10)
    assert extra.command == [0.0, 0.0, 0.0, 0.0]
    assert extra.bridged.counts["received"] == 0


def test_a_flood_costs_its_own_messages(make_host: Callable[..., Host], url: str) -> None:
    """More commands than are looked at: the newest wins in the end, and states go on."""
    bridge = Lcm(url=url, claim=("left.*",), rate_hz=0.0)
    with Companion(bridge, make_host) as extra:
        wait(lambda: extra.bridged.counts["sent"])
        flood = lcm.LCM(url)
        for i in range(5000):
            flood.publish("RTMMS_COMMAND", encode_command(0, {"left.front": i * 1e-4}))
        sent = extra.bridged.counts["sent"]
        wait(lambda: extra.bridged.counts["sent"] > sent + 10)

        def last() -> bool:  # again and again: the network's own queue may be full of the flood
            flood.publish("RTMMS_COMMAND", encode_command(0, {"left.front": -1.0}))
            return extra.command[0] == -1.0

        wait(last)
    assert extra.bridged.fault is None


def test_a_plant_without_a_pose_has_outputs(url: str) -> None:
    info = plant_info(Channel("angle", "rad"))
    bridge = opened(Lcm(url=url), info)
    bridge.on_state(state(info, 1, angle=0.5))
    assert bridge.counts["sent"] == 1
    bridge.close("the test is over")
    with pytest.raises(rtmms.ModelError, match=r"lacks position .'angle' has the shape"):
        opened(Lcm(url=url, pose=PoseNames(position="angle")), info)


def test_what_is_wrong_is_reported() -> None:
    for url in ("tcpq://127.0.0.1:7700", "udpm://bogus", "udpm://1.2.3.4:99", "udpm://239.1.1.1:0", "foo"):
        with pytest.raises(rtmms.ModelError, match=f"url: expected udpm://GROUP:PORT.ttl=N with a .* got '{url}'"):
            Lcm(url=url)
    for prefix in ("", "x" * 60, "a\nb", "ü"):
        with pytest.raises(rtmms.ModelError, match=r"prefix: expected (1 to 55 printable ASCII|printable text)"):
            Lcm(prefix=prefix)
    for data, reason in (
        (b"x" * 70_000, "oversize"),
        (encode_command(0, {})[:16] + b"\x7f\xff\xff\xff", "wrong_length"),
        (encode_command(0, {"a": 1.0})[:20] + b"\xff\xff\xff\xff", "malformed"),
        (encode_command(0, {"ü": 1.0}).replace("ü".encode(), b"\xff\xff"), "malformed"),
        (encode_command(0, {"a": 1.0, "b": 2.0}).replace(b"b\0", b"a\0"), "wrong_type"),
    ):
        with pytest.raises(Refusal) as refusal:
            parse(data)
        assert refusal.value.reason == reason
