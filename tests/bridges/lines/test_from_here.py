"""What other machines send to sockets that a library opened on every address: a network of two hosts on this one."""

from __future__ import annotations

import os
import shutil
import socket
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator

import pytest

from rtmms_bridges.lines.from_here import from_here
from tests.bridges.harness import wait
from tests.ports import reserve_ports
from tests.wire.bench import Host

pytestmark = [
    pytest.mark.full,
    pytest.mark.skipif(sys.platform != "linux", reason="sockets are kept to this machine on Linux only"),
]
GROUP = "239.255.76.68"
OURS = "198.51.100.1"
THEIRS = "198.51.100.2"
FAR = """
import socket, sys
group, ours, port, text = sys.argv[1], sys.argv[2], int(sys.argv[3]), bytes.fromhex(sys.argv[4])
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
    one.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_TTL, 1)
    for _ in range(3):
        one.sendto(text, (group, port))
        one.sendto(text, (ours, port))
"""


class Far:
    """Another host, in a network namespace of its own, on a cable to this one."""

    def __init__(self) -> None:
        self.name = f"rtmms{os.getpid() % 100000}"

    def send(self, port: int, text: bytes, group: str = GROUP) -> None:
        program = [sys.executable, "-c", FAR, group, OURS, str(port), text.hex()]
        subprocess.run(["ip", "netns", "exec", self.name, *program], check=True)

    def __enter__(self) -> Far:
        a, b = f"{self.name}a", f"{self.name}b"
        inside = f"netns exec {self.name} ip"
        for arguments in (
            f"netns add {self.name}", f"link add {a} type veth peer name {b}", f"link set {b} netns {self.name}",
            f"addr add {OURS}/24 dev {a}", f"link set {a} up", f"{inside} addr add {THEIRS}/24 dev {b}",
            f"{inside} link set {b} up", f"{inside} route add 224.0.0.0/4 dev {b}",
        ):  # fmt: skip
            subprocess.run(["ip", *arguments.split()], check=True, capture_output=True)
        return self

    def __exit__(self, *_: object) -> None:
        subprocess.run(["ip", "link", "del", f"{self.name}a"], check=False, capture_output=True)
        subprocess.run(["ip", "netns", "del", self.name], check=False, capture_output=True)


@pytest.fixture
def far() -> Iterator[Far]:
    if os.geteuid() != 0 or shutil.which("ip") is None:
        pytest.skip("needs root and iproute2, to make a second host")
    built = Far()
    try:
        built.__enter__()
    except subprocess.CalledProcessError as fault:
        built.__exit__()
        pytest.skip(f"no network namespaces here: {fault.stderr.decode().strip()}")
    try:
        yield built
    finally:
        built.__exit__()


def listening(port: int) -> socket.socket:
    item = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    item.bind(("0.0.0.0", port))
    membership = socket.inet_aton(GROUP) + socket.inet_aton(OURS)
    item.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, membership)
    item.settimeout(0.5)
    return item


def received(item: socket.socket) -> set[bytes]:
    result = set()
    try:
        while True:
            result.add(item.recv(1000))
    except TimeoutError:
        return result


def send_here(port: int) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as item:
        item.sendto(b"loopback", ("127.0.0.1", port))
        item.sendto(b"own address", (OURS, port))
        item.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton(OURS))
        for ttl in (0, 1):
            item.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_TTL, ttl)
            item.sendto(b"group %d" % ttl, (GROUP, port))


def test_only_what_is_sent_on_this_machine_is_received(far: Far) -> None:
    port = reserve_ports()
    ours = {b"loopback", b"own address", b"group 0", b"group 1"}
    with listening(port) as plain:
        send_here(port)
        far.send(port, b"far")
        assert received(plain) == ours | {b"far"}, "without it the other host's datagram arrives"
    result: list[str] = []
    with from_here(result.append):
        stored = listening(port)
    with stored:
        send_here(port)
        far.send(port, b"far")
        assert received(stored) == ours
    assert result == []


def test_sockets_that_were_there_before_are_left_alone(far: Far) -> None:
    port = reserve_ports()
    with listening(port) as before:
        with from_here(lambda text: None), socket.socket():
            pass
        far.send(port, b"far")
        assert received(before) == {b"far"}


@pytest.mark.parametrize("ttl", [0, 1])
def test_lcm_is_driven_by_this_machine_alone_unless_asked(far: Far, make_host: Callable[..., Host], ttl: int) -> None:
    pytest.importorskip("lcm", reason="pip install 'rtmms[lcm]'")
    from rtmms_bridges.lcm import Lcm, encode_command
    from tests.bridges.harness import Companion

    port = reserve_ports()
    route = ["ip", "route", "replace", f"{GROUP}/32", "dev", f"{far.name}a"]  # LCM joins where the route leads
    subprocess.run(route, check=True)
    bridge = Lcm(url=f"udpm://{GROUP}:{port}?ttl={ttl}", claim=("left.*",))
    packet = struct.pack(">II", 0x4C433032, 1) + b"RTMMS_COMMAND\0" + encode_command(0, {"left.front": 0.75})
    with Companion(bridge, make_host) as extra:
        wait(lambda: extra.bridged.counts["sent"])
        far.send(port, packet)
        if ttl:
            wait(lambda: extra.command[0] == 0.75)
        else:
            sent = extra.bridged.counts["sent"]
            wait(lambda: extra.bridged.counts["sent"] > sent + 100)
            assert extra.bridged.counts["received"] == 0
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as here:
                here.sendto(packet, (GROUP, port))
                wait(lambda: extra.command[0] == 0.75)


@pytest.mark.parametrize("expected", [False, True])
def test_a_can_bus_over_multicast_is_this_machines_alone_unless_asked(
    far: Far, make_host: Callable[..., Host], expected: bool
) -> None:
    can = pytest.importorskip("can", reason="pip install 'rtmms[can]'")
    from can.interfaces.udp_multicast.utils import pack_message

    from rtmms_bridges.can import Can
    from tests.bridges.harness import Companion

    port = reserve_ports()
    subprocess.run(["ip", "route", "replace", f"{GROUP}/32", "dev", f"{far.name}a"], check=True)  # it joins there
    bridge = Can(
        interface="udp_multicast", channel=GROUP, options={"port": str(port)}, far=expected, counter="", checksum="",
        claim=("left.*",), time_out_cycles=0.0,
    )  # fmt: skip
    data = struct.pack("<fH", 0.75, 0)
    packet = bytes(pack_message(can.Message(arbitration_id=0x100, data=data, is_extended_id=False)))
    with Companion(bridge, make_host) as extra:
        wait(lambda: extra.bridged.counts["sent"])
        far.send(port, packet)
        if expected:
            wait(lambda: extra.command[0] == 0.75)
        else:
            sent = extra.bridged.counts["sent"]
            wait(lambda: extra.bridged.counts["sent"] > sent + 20)
            assert extra.bridged.counts["received"] == 0
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as here:
                here.sendto(packet, (GROUP, port))
                wait(lambda: extra.command[0] == 0.75)


@pytest.mark.parametrize("network", ["127.0.0.1", OURS])
def test_imc_announces_are_received_on_its_network_alone(
    far: Far, make_host: Callable[..., Host], network: str
) -> None:
    imcpy = pytest.importorskip("imcpy", reason="pip install 'rtmms[imc]'")
    from rtmms_bridges.imc import Imc
    from rtmms_bridges.sea.imc_nodes import GROUP as ANNOUNCES
    from rtmms_bridges.sea.imc_nodes import PORTS
    from tests.bridges.harness import Companion

    announce = imcpy.Announce()
    announce.src, announce.dst, announce.sys_name = 0x4001, 0xFFFF, "far"
    announce.services = f"imc+udp://{THEIRS}:6001/"
    packet = bytes(imcpy.Packet.serialize(announce))
    with Companion(Imc(port=0, network=network), make_host) as extra:
        wait(lambda: any("announces at" in line for line in extra.bridged.messages))
        for port in PORTS:
            far.send(port, packet, ANNOUNCES)
        if network == OURS:
            wait(lambda: extra.bridged.counts["nodes"] == 1)
        else:
            states = extra.bridged.counts["states"]
            wait(lambda: extra.bridged.counts["states"] > states + 100)
            assert extra.bridged.counts["received"] == 0
