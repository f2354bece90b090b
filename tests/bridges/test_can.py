"""CAN: the robot's own DBC file and a user's beside cantools; CiA 402 drives beside a canopen master's process."""

from __future__ import annotations

import errno
import fcntl
import itertools
import json
import os
import re
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("can", reason="needs python-can: pip install 'rtmms[can]'")
pytest.importorskip("cantools", reason="needs cantools: pip install 'rtmms[can]'")
pytest.importorskip("canopen", reason="needs canopen: pip install 'rtmms[can]'")

import can
import cantools

import rtmms
from rtmms.bridging.channels import ChannelMapping
from rtmms.bridging.untrusted import Refusal
from rtmms_bridges.bus.drives import CYCLIC_POSITION, PROFILE_POSITION, PROFILE_VELOCITY, Drive, DriveAt, Power
from rtmms_bridges.bus.signals import DrivingMessage, Layout, checksum
from rtmms_bridges.can import Can
from tests.bridges.by_hand import opened, swum
from tests.bridges.harness import ROOT, Companion, state, wait
from tests.cli.shell import rtmms as command
from tests.cli.shell import start
from tests.ports import reserve_ports
from tests.wire.bench import PATIENCE_S, Host

pytestmark = pytest.mark.full

CHANNELS = itertools.count()
GROUP = "239.74.163.9"


def crc8(data: bytes) -> int:
    """SAE J1850, bit by bit."""
    register = 0xFF
    for byte in data:
        register ^= byte
        for _ in range(8):
            register = ((register << 1) ^ 0x1D if register & 0x80 else register << 1) & 0xFF
    return register ^ 0xFF


@pytest.fixture
def channel() -> str:
    """Of a virtual bus that no other test has."""
    return f"rtmms-{os.getpid()}-{next(CHANNELS)}"


@pytest.fixture
def peer(channel: str) -> Iterator[can.BusABC]:
    with can.Bus(interface="virtual", channel=channel) as bus:
        yield bus


@pytest.fixture
def multicast() -> int:
    """A port of a multicast group; skips where there is none."""
    port = reserve_ports()
    try:
        with can.Bus(interface="udp_multicast", channel=GROUP, port=port, hop_limit=0) as item:
            item.send(can.Message(arbitration_id=1))
    except (OSError, can.CanError):
        pytest.skip(f"no multicast route here: ip link set lo multicast on; ip route add {GROUP} dev lo")
    return port


@contextmanager
def process(*text: str) -> Iterator[Callable[[], dict[str, Any]]]:
    """tests.bridges.can_peer; gives a function for its next line."""
    program = [sys.executable, "-m", "tests.bridges.can_peer", *text]
    child = subprocess.Popen(program, stdout=subprocess.PIPE, text=True, cwd=ROOT)

    def next_line() -> dict[str, Any]:
        assert child.stdout is not None
        line = child.stdout.readline()
        assert line, f"the peer ended with {child.wait(PATIENCE_S)}"
        content: dict[str, Any] = json.loads(line)
        return content

    try:
        yield next_line
    finally:
        child.kill()
        child.communicate()


def messages(peer: can.BusABC, seconds: float = PATIENCE_S) -> Iterator[can.Message]:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        frame = peer.recv(0.1)
        if frame is not None:
            yield frame


# -- the robot's own file -------------------------------------------------------------------------------------------


def own_file(peer: can.BusABC, extra: Companion) -> Any:
    """As --write-dbc would write it."""
    bridge = extra.bridged.bridge
    wait(lambda: extra.bridged.counts["sent"])
    return cantools.database.load_string(bridge.dbc_of(bridge.plant), "dbc")


def test_outputs_and_commands_by_the_robots_own_file(
    peer: can.BusABC, channel: str, make_host: Callable[..., Host]
) -> None:
    bridge = Can(interface="virtual", channel=channel, claim=("left.*",), time_out_cycles=1e6)
    with Companion(bridge, make_host) as extra:
        database = own_file(peer, extra)
        wanted = {message.name for message in database.messages if message.senders == ["Robot"]}
        assert {"position_0", "position_1", "quaternion_0", "quaternion_1", "speed", "thrust_0"} <= wanted
        result: dict[str, Any] = {}
        for frame in messages(peer):
            message = database.get_message_by_frame_id(frame.arbitration_id)
            result[message.name] = message.decode(frame.data)
            if set(result) == wanted:
                break
        assert result["thrust_0"] | result["thrust_1"] == {f"thrust_{i}": i + 1.0 for i in range(4)}
        assert result["quaternion_0"]["quaternion_0"] == 1.0
        front = database.get_message_by_name("Command_left_front")
        assert [signal.name for signal in front.signals] == ["left_front", "Counter", "Checksum"]
        assert front.cycle_time == 10

        def publish(value: float, count: int, spoil: int = 0) -> None:
            data = front.encode({"left_front": value, "Counter": count, "Checksum": 0}, strict=False)[:5]
            check = crc8(front.frame_id.to_bytes(2, "little") + data)
            peer.send(can.Message(arbitration_id=front.frame_id, data=data + bytes((check ^ spoil,)),
                                  is_extended_id=False))  # fmt: skip

        publish(0.5, 254)
        wait(lambda: extra.command[0] == 0.5)
        publish(0.25, 254)  # the counter stands still
        publish(0.125, 255, spoil=1)
        publish(float("inf"), 255)
        peer.send(can.Message(arbitration_id=front.frame_id, data=b"\0", is_extended_id=False))
        wait(lambda: extra.bridged.counts["refused"] == 4)
        assert extra.bridged.counts.reasons() == {"repeated": 1, "checksum": 1, "not_finite": 1, "length": 1}
        publish(0.75, 2)  # 255, 0 and 1 are missing
        wait(lambda: extra.command[0] == 0.75)
        assert extra.bridged.counts["commands_missed"] == 3
        bridge.time_out_cycles = 30.0
        wait(lambda: extra.command[0] == 0.0)  # that many cycles of silence: neutral
        assert extra.bridged.counts["time_outs"] >= 1
    assert any(f"every node on CAN virtual {channel} can drive the robot: left.front, left.back" in line
               for line in extra.bridged.messages)  # fmt: skip


def test_late_commands_may_be_the_loops_affair(peer: can.BusABC, channel: str, make_host: Callable[..., Host]) -> None:
    """Nothing is answered while a command is late: in this loop, which waits, no step is taken."""
    bridge = Can(interface="virtual", channel=channel, claim=("left.front",), time_out="loop", checksum="", counter="")
    with Companion(bridge, make_host) as extra:
        database = own_file(peer, extra)
        front = database.get_message_by_name("Command_left_front")

        def publish(value: float) -> None:
            data = front.encode({"left_front": value, "Counter": 0, "Checksum": 0})
            peer.send(can.Message(arbitration_id=front.frame_id, data=data, is_extended_id=False))

        publish(0.5)
        wait(lambda: extra.command[0] == 0.5)
        wait(lambda: bridge.waits)
        assert extra.command[0] == 0.5
        assert any("the plant acts by its policy for missing commands" in line for line in extra.bridged.messages)
        publish(0.25)
        wait(lambda: extra.command[0] == 0.25)


def test_write_dbc_and_a_decoder_of_another_process(tmp_path: Path, multicast: int) -> None:
    """`rtmms bridge can --write-dbc robot.dbc` of a served pendulum; cantools reads what the bridge sends by it."""
    exchange = f"tcp://127.0.0.1:{reserve_ports()}"
    ends = [word for end in ("step", "telemetry") for word in (f"--{end}", "tcp://127.0.0.1:*")]
    serve = start(tmp_path, "serve", "pendulum", "--dt", "0.01", "--exchange", exchange, *ends, "--quiet",
                  "--priority", "off")  # fmt: skip
    try:
        result = command(
            tmp_path, "bridge", "can", "--write-dbc", "robot.dbc", "--exchange", exchange, "--timeout", "30"
        )
        assert (result.status, result.out) == (0, ""), result.err
        database = cantools.database.load_file(tmp_path / "robot.dbc")
        names = {message.name for message in database.messages}
        assert {"Command_torque", "angle"} <= names
        wrong = command(tmp_path, "bridge", "template", "--write-dbc", "x.dbc", "--exchange", exchange)
        assert wrong.status == 2
        assert "--write-dbc: expected a bridge with messages for a DBC file, such as can, got 'template'" in wrong.err
        wrong = command(tmp_path, "bridge", "can", "--write-dbc", "no/such/robot.dbc", "--exchange", exchange)
        assert wrong.status == 2
        assert "--write-dbc no/such/robot.dbc: there is no folder 'no/such'" in wrong.err
        parts = f"can:interface=udp_multicast,channel={GROUP},options=port={multicast}"
        bridge = start(tmp_path, "bridge", parts, "--exchange", exchange, "--once")
        try:
            with process("decode", GROUP, str(multicast), str(tmp_path / "robot.dbc"), "angle", "rate") as expected:
                assert expected() == {"ready": True}
                results = expected()
            assert set(results["angle"]) == {"angle"}
            assert isinstance(results["rate"]["rate"], float)
            assert "angle: " in monitor(str(tmp_path / "robot.dbc"), multicast)
        finally:
            bridge.kill()
            bridge.communicate()
    finally:
        serve.kill()
        serve.communicate()


def monitor(file: str, port: int) -> str:
    """What `cantools monitor` has on its screen, a terminal of its own, once it shows a message."""
    screen, terminal = os.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
    bus = ["-i", "udp_multicast", "-c", GROUP, "--bus-kwargs", f"port={port}", "hop_limit=0"]
    child = subprocess.Popen([str(Path(sys.executable).parent / "cantools"), "monitor", *bus, "--", file],
                             stdin=terminal, stdout=terminal, stderr=terminal, env=os.environ | {"TERM": "xterm"},
                             start_new_session=True)  # fmt: skip
    os.close(terminal)
    shown = b""
    try:
        end = time.monotonic() + PATIENCE_S
        while time.monotonic() < end and b"angle: " not in shown:
            shown += os.read(screen, 65536)
    except OSError:
        pass
    finally:
        child.kill()
        child.wait()
        os.close(screen)
    return shown.decode(errors="replace")


# -- a user's file --------------------------------------------------------------------------------------------------

FILE = """VERSION ""
BU_: Robot Ecu
BO_ 291 Pose: 8 Robot
 SG_ X : 0|16@1- (0.01,0) [0|0] "m" Ecu
 SG_ Thrust : 23|16@0- (0.001,1) [0|0] "N" Ecu
 SG_ Spare : 32|8@1+ (1,0) [0|0] "" Ecu
 SG_ Alive : 40|4@1+ (1,0) [0|0] "" Ecu
 SG_ Crc : 48|8@1+ (1,0) [0|0] "" Ecu
BO_ 2566844416 Steer: 8 Ecu
 SG_ Front : 0|16@1- (0.1,0) [0|0] "deg" Robot
 SG_ Back : 16|16@1- (0.1,0) [0|0] "deg" Robot
 SG_ Alive : 32|4@1+ (1,0) [0|0] "" Robot
BA_DEF_ BO_ "GenMsgCycleTime" INT 0 65535;
BA_DEF_DEF_ "GenMsgCycleTime" 0;
BA_ "GenMsgCycleTime" BO_ 291 20;
"""
DEGREE = 0.017453292519943295
USERS = {
    "signals": {"X": "position[0]", "Pose.Thrust": "thrust[1]*10"}, "counter": "Alive", "checksum": "Crc",
    "checksum_kind": "xor",
    "channels": (ChannelMapping(channel="Front", actuator="left.front", scale=DEGREE),
                 ChannelMapping(channel="Steer.Back", actuator="left.back", scale=DEGREE, reversed=True)),
}  # fmt: skip


@pytest.fixture
def file(tmp_path: Path) -> str:
    built = tmp_path / "users.dbc"
    built.write_text(FILE)
    return str(built)


def test_signals_of_a_users_file(peer: can.BusABC, channel: str, file: str, make_host: Callable[..., Host]) -> None:
    database = cantools.database.load_file(file)
    bridge = Can(interface="virtual", channel=channel, dbc=file, peer_timeout_s=60.0, **USERS)
    with Companion(bridge, make_host) as extra:
        counts = []
        for frame in itertools.islice(messages(peer), 20):
            assert frame.arbitration_id == 291
            result = database.decode_message(291, frame.data)
            assert result["Thrust"] == pytest.approx(20.0, abs=1e-3)
            assert frame.data[6] == frame.data[0] ^ frame.data[1] ^ frame.data[2] ^ frame.data[3] ^ frame.data[4] ^ (
                frame.data[5] ^ frame.data[7]
            )
            counts.append(result["Alive"])
        assert [(b - a) % 16 for a, b in itertools.pairwise(counts)] == [1] * 19
        steer = database.get_message_by_name("Steer")
        assert steer.is_extended_frame
        data = steer.encode({"Front": 30.0, "Back": 20.0, "Alive": 3})
        peer.send(can.Message(arbitration_id=steer.frame_id, data=data, is_extended_id=True))
        wait(lambda: extra.command[:2] == pytest.approx([30.0 * DEGREE, -20.0 * DEGREE]))
        peer.send(can.Message(arbitration_id=steer.frame_id & 0x7FF, data=data, is_extended_id=False))  # another
        peer.send(can.Message(is_error_frame=True))
        peer.send(can.Message(arbitration_id=steer.frame_id, is_remote_frame=True, is_extended_id=True))
        data = steer.encode({"Front": 10.0, "Back": 20.0, "Alive": 4})
        peer.send(can.Message(arbitration_id=steer.frame_id, data=data, is_extended_id=True))
        wait(lambda: extra.command[0] == pytest.approx(10.0 * DEGREE))
    assert extra.bridged.counts.reasons() == {}


@pytest.mark.parametrize(
    ("parts", "text"),
    [
        ({"signals": {"Y": "position[0]"}}, r"signals: unknown signal 'Y'"),
        ({"signals": {"Alive": "position[0]"}}, r"signals: 'Alive' is in Pose, Steer: expected MESSAGE\.SIGNAL"),
        ({"signals": {"X": "position"}}, r"signals\.X: output 'position' has the shape"),
        ({"signals": {"X": "position[0]*x"}}, r"expected OUTPUT\[INDEX\] or OUTPUT\[INDEX\]\*SCALE, got"),
        ({"signals": {"Pose.Alive": "position[0]"}, "counter": "Alive"}, r"'Pose\.Alive' is a counter or a checksum"),
        ({"counter": "X", "signals": {"Spare": "speed"}}, "expected an unsigned whole number as the counter"),
        ({"checksum": "X", "signals": {"Spare": "speed"}}, "expected one whole byte as the checksum"),
        ({"dbc": "no.dbc"}, r"dbc: no\.dbc: there is no such file"),
        ({"drives": (DriveAt(node=3, actuator="right.front"),), "dbc": "own", "signals": {}, "channels": (),
          "first_id": 0x201}, r"identifier 0x303 of message 'quaternion_0' is also one of a drive"),
    ],
)  # fmt: skip
def test_what_does_not_fit_the_plant(
    parts: dict[str, Any], text: str, channel: str, file: str, make_host: Callable[..., Host]
) -> None:
    bridge = Can(**{"interface": "virtual", "channel": channel, "dbc": file, "first_id": 0x200} | parts)
    extra = Companion(bridge, make_host)
    with extra.running, extra.bridged:
        wait(lambda: extra.bridged.fault is not None)
        extra.running.end()
    assert isinstance(extra.bridged.fault, rtmms.ModelError)
    with pytest.raises(rtmms.ModelError, match=text):
        raise extra.bridged.fault


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"signals": {"X": "speed"}}, r"signals and channels: expected dbc=FILE\.dbc with them, got dbc=own"),
        ({"dbc": "none"}, "dbc=none: expected drives=..., got none"),
        ({"drives": (DriveAt(node=1, actuator="a"), DriveAt(node=1, actuator="b"))}, "drives: node 1 is listed twice"),
        ({"drives": (DriveAt(node=1, actuator="a"),), "claim": ("a",)}, "or in channels or claim, got 'a' in both"),
    ],
)  # fmt: skip
def test_wrong_words(arguments: dict[str, Any], text: str) -> None:
    with pytest.raises(rtmms.ModelError, match=text):
        Can(**arguments)


def test_wrong_words_of_a_drive() -> None:
    assert DriveAt.from_word("3:left.front:-2000:rod_angle[0]", "") == DriveAt(
        node=3, actuator="left.front", counts=-2000.0, position="rod_angle[0]"
    )
    for word in ("x:left.front", "3", "3:", "3:a:b"):
        with pytest.raises(rtmms.ModelError, match="expected NODE:ACTUATOR"):
            DriveAt.from_word(word, "drives")
    for more in ({"node": 128}, {"counts": 0.0}, {"kind": "torque"}):
        with pytest.raises(rtmms.ModelError, match="expected"):
            DriveAt(**{"node": 1, "actuator": "a"} | more)


def test_checksums() -> None:
    assert crc8(b"123456789") == 0x4B  # the catalogue's check value
    for data in (b"", b"\0", b"123456789", bytes(range(63))):
        assert checksum("crc8", 0x1234567, data) == crc8(b"\x67\x45" + data)
    assert checksum("xor", 5, b"\1\2\4") == 7
    assert checksum("sum", 5, b"\xff\2") == 1


def test_a_multiplexed_message_is_refused() -> None:
    database = cantools.database.load_string(
        'VERSION ""\nBU_: A\nBO_ 1 M: 8 A\n SG_ S M : 0|8@1+ (1,0) [0|0] "" A\n SG_ T m0 : 8|8@1+ (1,0) [0|0] "" A\n',
        "dbc",
    )
    with pytest.raises(rtmms.ModelError, match="message 'M': expected a message without multiplexed"):
        Layout(database.messages[0], "", "", "xor")


def test_a_longer_frame_of_can_fd_is_cut() -> None:
    database = cantools.database.load_string(FILE, "dbc")
    used = DrivingMessage(Layout(database.get_message_by_name("Steer"), "", "", "xor"), {"Front": "Front"}, 0.0)
    assert used.read(struct.pack("<hh", 100, 0) + bytes(12)) == {"Front": 10.0}
    with pytest.raises(Refusal, match="expected 8 bytes, got 4"):
        used.read(bytes(4))


# -- a bus that comes and goes --------------------------------------------------------------------------------------


def test_no_bus_is_there(make_host: Callable[..., Host]) -> None:
    with Companion(Can(interface="socketcan", channel="none-such0", claim=("left.*",)), make_host) as extra:
        wait(lambda: extra.bridged.counts["not_there"] >= 2 and extra.bridged.counts["states"] > 10)
    assert sum("trying again" in line for line in extra.bridged.messages) == 1


def test_a_bus_that_goes_and_comes_back(
    channel: str, peer: can.BusABC, monkeypatch: pytest.MonkeyPatch, make_host: Callable[..., Host]
) -> None:
    built: list[Any] = []
    real = can.Bus

    def bus(**options: Any) -> Any:
        built.append(real(**options))
        return built[-1]

    monkeypatch.setattr(can, "Bus", bus)
    with Companion(Can(interface="virtual", channel=channel), make_host) as extra:
        wait(lambda: extra.bridged.counts["sent"] > 3)

        def down(*_: Any, **__: Any) -> None:
            raise can.CanOperationError("Network is down", errno.ENETDOWN)

        built[0].send = down
        wait(lambda: len(built) == 2)
        sent = extra.bridged.counts["sent"]
        wait(lambda: extra.bridged.counts["sent"] > sent + 3)
    assert extra.bridged.counts["lost"] == 1
    assert any("is lost" in line for line in extra.bridged.messages)


def test_a_flood_costs_no_state(channel: str, peer: can.BusABC, make_host: Callable[..., Host]) -> None:
    with Companion(Can(interface="virtual", channel=channel, claim=("left.*",)), make_host) as extra:
        wait(lambda: extra.bridged.counts["sent"] > 3)
        for i in range(5000):
            peer.send(can.Message(arbitration_id=0x100 + i % 2, data=bytes(6), is_extended_id=False))
        states = extra.bridged.counts["states"]
        wait(lambda: extra.bridged.counts["states"] > states + 100 and extra.bridged.counts["refused"])
    assert set(extra.bridged.counts.reasons()) == {"checksum"}
    assert extra.command == [0.0] * 4


# -- CiA 402 --------------------------------------------------------------------------------------------------------


def drive(kind: str = "position") -> Drive:
    built = Drive(kind, 1000.0, -1.0, 1.0, 0.0)
    built.measured(0.25, 0.0)
    return built


def test_the_state_machine_of_a_drive() -> None:
    item = drive()
    path = [
        (0x0F, Power.SWITCH_ON_DISABLED), (0x06, Power.READY_TO_SWITCH_ON), (0x07, Power.SWITCHED_ON),
        (0x0F, Power.OPERATION_ENABLED), (0x07, Power.SWITCHED_ON), (0x0F, Power.OPERATION_ENABLED),
        (0x02, Power.QUICK_STOP_ACTIVE), (0x0F, Power.OPERATION_ENABLED), (0x06, Power.READY_TO_SWITCH_ON),
        (0x02, Power.SWITCH_ON_DISABLED), (0x06, Power.READY_TO_SWITCH_ON), (0x0F, Power.OPERATION_ENABLED),
        (0x00, Power.SWITCH_ON_DISABLED),
    ]  # fmt: skip
    for word, power in path:
        item.control(word)
        assert item.power is power, hex(word)
    item.fail()
    for word, power in ((0x06, Power.FAULT), (0x80, Power.SWITCH_ON_DISABLED), (0x80, Power.SWITCH_ON_DISABLED)):
        item.control(word)
        assert item.power is power
    assert item.status() & 0x6F == 0x40


def test_targets_of_a_position_drive() -> None:
    item = drive()
    item.target_position = 800
    assert item.drive(0.01) == 0.25, "it holds until it is enabled"
    for word in (0x06, 0x07, 0x0F):
        item.control(word)
    assert item.drive(0.01) == 0.8
    item.target_position = 5000
    assert item.drive(0.01) == 1.0, "never beyond the actuator's limits"
    assert item.set_mode(PROFILE_POSITION)
    item.measured(1.0, 0.0)
    item.profile_velocity = 500
    item.target_position = 0
    assert item.drive(0.1) == 1.0, "a set-point counts from the rising edge of bit 4"
    item.control(0x1F)
    assert item.status() & 1 << 12
    assert [round(item.drive(0.1), 6) for _ in range(3)] == [0.95, 0.9, 0.85]
    item.control(0x0F)
    assert not item.status() & 1 << 12
    item.control(0x10F)
    assert round(item.drive(0.1), 6) == 0.85, "halt"
    item.control(0x0F)
    assert item.set_mode(PROFILE_VELOCITY)
    item.target_velocity = 100
    assert round(item.drive(0.1), 6) == 0.86
    assert not item.set_mode(6)
    assert item.supported == 0b1_1000_0101


def test_a_velocity_drive_has_no_positions() -> None:
    item = drive("velocity")
    assert item.supported == 0b1_0000_0100
    assert not item.set_mode(CYCLIC_POSITION)
    item.target_velocity = 500
    for word in (0x06, 0x07, 0x0F):
        assert item.drive(0.01) == 0.0
        item.control(word)
    assert item.drive(0.01) == 0.5
    item.control(0x00)
    assert item.drive(0.01) == 0.0


def test_a_drive_is_where_its_rod_is(channel: str) -> None:
    info, outputs = swum(granted=("left.back",))
    bridge = opened(Can(interface="virtual", channel=channel, drives=(DriveAt(node=9, actuator="left.back"),)), info)
    bridge.on_state(state(info, 1, **outputs))
    drive = bridge._nodes[9].drive
    assert drive.position == pytest.approx(10_000.0 * outputs["rod_angle"][1])
    assert drive.velocity == pytest.approx(10_000.0 * outputs["rod_rate"][1])
    bridge.on_state(state(info, 2, **outputs))
    held = bridge.io.commands[-1]  # type: ignore[attr-defined]
    assert held == {"left.back": pytest.approx(outputs["rod_angle"][1])}, "one that is not enabled stays where it is"
    bridge.close("the test is over")


def test_the_pages_eds_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The block of docs/bridges/can.md; canopen reads the file again."""
    import canopen

    (block,) = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "bridges" / "can.md").read_text(), re.DOTALL)
    monkeypatch.chdir(tmp_path)
    exec(block, {})
    result = canopen.import_od(str(tmp_path / "drive.eds"))
    assert result[0x6040].name == "Controlword"
    assert (result[0x1400][1].default, result[0x1802][1].default) == (0x201, 0x381)


def test_a_canopen_master_of_another_process(multicast: int, make_host: Callable[..., Host]) -> None:
    bridge = Can(
        interface="udp_multicast", channel=GROUP, options={"port": str(multicast)}, heartbeat_ms=50,
        peer_timeout_s=PATIENCE_S,
        drives=(DriveAt(node=5, actuator="left.front", counts=2000.0),
                DriveAt(node=6, actuator="left.back", counts=2000.0)),
    )  # fmt: skip
    with Companion(bridge, make_host) as extra:
        wait(lambda: extra.bridged.counts["connections"])
        with process("master", GROUP, str(multicast), "5", "2000") as expected:
            assert expected() == {"ready": True}
            about = expected()
            assert about == {"kind": 0x20192, "modes": 0b1_1000_0101, "name": "rtmms drive"}
            assert expected() == {"before": "SWITCH ON DISABLED"}
            assert expected() == {"after": "OPERATION ENABLED", "mode": "CYCLIC SYNCHRONOUS POSITION"}
            moved = expected()
            assert moved["position"] == pytest.approx(1000, abs=2)
            assert moved["status"] & 0x6F == 0x27
            assert moved["status"] & 1 << 10, "target reached"
            wait(lambda: extra.command[0] != 0.5)
            assert expected()["moved"] < 500
            bridge.peer_watch.limit_s = 0.5  # the master falls silent now: before, a busy machine must not make it
            result = expected()
            assert result["emergencies"][:1] == [0x8130]
            assert result["fault"] == "FAULT"
            assert expected()["reset"] & 0x4F == 0x40
        assert extra.command[1] == 0.0, "the other drive was never switched on"
    assert any("every node on CAN udp_multicast" in line for line in extra.bridged.messages)
