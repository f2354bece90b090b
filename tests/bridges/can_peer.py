"""The other end of a CAN bus, as a program: `python -m tests.bridges.can_peer KIND GROUP PORT ...` over udp_multicast.

It writes a line of JSON for whatever it finds, and reads a line when it is to go on.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any


def bus(group: str, port: str) -> Any:
    import can

    return can.Bus(interface="udp_multicast", channel=group, port=int(port), hop_limit=0)


def send(**result: Any) -> None:
    print(json.dumps(result), flush=True)


def decode(group: str, port: str, file: str, *names: str) -> None:
    """The named messages, by cantools, each once."""
    import cantools

    database = cantools.database.load_file(file)
    with bus(group, port) as here:
        send(ready=True)
        result: dict[str, Any] = {}
        while set(result) != set(names):
            frame = here.recv(1.0)
            if frame is None:
                continue
            message = database.get_message_by_frame_id(frame.arbitration_id)
            if message.name in names:
                result[message.name] = database.decode_message(frame.arbitration_id, frame.data)
        send(**result)


def master(group: str, port: str, node: str, counts: str) -> None:
    """A CANopen master: switches a drive on, moves it to 0.5, turns it by its velocity, and falls silent."""
    import canopen
    from canopen.profiles.p402 import BaseNode402

    from rtmms_bridges.bus.canopen_node import dictionary

    network = canopen.Network(bus(group, port))
    network.connect()
    drive = BaseNode402(int(node), dictionary(int(node)))
    network.add_node(drive)
    for name in ("SWITCH_OP_MODE", "SWITCH_STATE_FINAL", "SWITCH_STATE_SINGLE", "CHECK_TPDO", "RESET_FAULT"):
        setattr(drive, f"TIMEOUT_{name}", 20.0)  # no test judges time
    send(ready=True)
    deadline = time.monotonic() + 20.0
    while True:  # it may not be there yet
        try:
            send(kind=drive.sdo[0x1000].raw, modes=drive.sdo[0x6502].raw, name=drive.sdo[0x1008].raw)
            break
        except canopen.SdoError:
            if time.monotonic() > deadline:
                raise
    drive.sdo.RESPONSE_TIMEOUT = 20.0
    drive.nmt.state = "OPERATIONAL"
    drive.setup_402_state_machine()
    for pdo in drive.rpdo.values():  # this bus, unlike CAN, gives back what one sends oneself
        if pdo.enabled:
            network.unsubscribe(pdo.cob_id)
    drive.op_mode = "CYCLIC SYNCHRONOUS POSITION"
    send(before=drive.state)
    drive.state = "OPERATION ENABLED"
    send(after=drive.state, mode=drive.op_mode)
    target = drive.rpdo[2]
    target[0x6040].raw = 0x0F
    target[0x607A].raw = round(0.5 * float(counts))
    end = time.monotonic() + 30.0
    while abs(drive.sdo[0x6064].raw - 0.5 * float(counts)) > 2 and time.monotonic() < end:
        target.transmit()
        time.sleep(0.02)
    send(position=drive.sdo[0x6064].raw, status=drive.sdo[0x6041].raw)
    drive.op_mode = "CYCLIC SYNCHRONOUS VELOCITY"
    speed = drive.rpdo[3]
    speed[0x6040].raw = 0x0F
    speed[0x60FF].raw = round(-1.0 * float(counts))
    end = time.monotonic() + 30.0
    while drive.sdo[0x6064].raw > 0.2 * float(counts) and time.monotonic() < end:
        speed.transmit()
        time.sleep(0.02)
    send(moved=drive.sdo[0x6064].raw)
    emergencies: list[int] = []
    drive.emcy.add_callback(lambda error: emergencies.append(error.code))
    end = time.monotonic() + 30.0
    while not emergencies and time.monotonic() < end:  # silent: the drive faults
        time.sleep(0.02)
    while drive.state != "FAULT" and time.monotonic() < end:
        time.sleep(0.02)
    send(emergencies=emergencies, fault=drive.state)
    drive.controlword = 0x00
    drive.controlword = 0x80
    end = time.monotonic() + 30.0
    while drive.sdo[0x6041].raw & 0x08 and time.monotonic() < end:
        time.sleep(0.02)
    send(reset=drive.sdo[0x6041].raw)
    network.disconnect()


if __name__ == "__main__":
    {"decode": decode, "master": master}[sys.argv[1]](*sys.argv[2:])
