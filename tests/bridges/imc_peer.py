"""imcpy's own node, as a program: `python -m tests.bridges.imc_peer PORT`. It finds the vehicle, queries it, steers it,
runs a plan, and writes a line of JSON for what it sees."""

from __future__ import annotations

import json
import logging
import sys
import time
from typing import Any

import imcpy
from imcpy.actors import DynamicActor
from imcpy.decorators import Periodic, Subscribe

from rtmms_bridges.motion.frames import Home
from rtmms_bridges.sea.imc_messages import sample_plan


def send(**result: Any) -> None:
    print(json.dumps(result), flush=True)


class Console(DynamicActor):
    """A control unit, as Neptus is one."""

    def __init__(self, port: int) -> None:
        super().__init__(imc_id=0x4001, static_port=port)
        self.announce.sys_name = "ccu-test"
        self.heartbeat = ["torpedo-test"]
        self.vehicle: Any = None
        self.received: dict[str, Any] = {}
        self.stage, self.since = 0, time.monotonic()

    def on_connect(self, node_id: Any) -> None:
        if node_id[1] == "torpedo-test":
            self.vehicle = node_id

    def on_disconnect(self, node_id: Any) -> None: ...

    def on_first_heartbeat(self, node_id: Any) -> None: ...

    def on_exception(self, loc: Any, exc: Any) -> None:
        send(fault=f"{loc}: {exc!r}")

    @Subscribe(imcpy.Announce)
    def on_announce(self, message: imcpy.Announce) -> None:
        if message.sys_name == "torpedo-test" and "announce" not in self.received:
            self.received["announce"] = True
            send(announce=message.sys_name, src=message.src, type=message.sys_type.name, services=message.services)

    @Subscribe(imcpy.EstimatedState)
    def on_estimated_state(self, message: imcpy.EstimatedState) -> None:
        self.received["state"] = {name: getattr(message, name) for name in (
            "lat", "lon", "height", "x", "y", "z", "phi", "theta", "psi", "u", "v", "w", "vx", "vy", "vz", "p", "q",
            "r", "depth")}  # fmt: skip

    @Subscribe(imcpy.EntityList)
    def on_entities(self, message: imcpy.EntityList) -> None:
        if message.op == imcpy.EntityList.OperationEnum.REPORT:
            self.received["entities"] = message.list

    @Subscribe(imcpy.VehicleState)
    def on_vehicle_state(self, message: imcpy.VehicleState) -> None:
        self.received["mode"] = message.op_mode.name

    @Subscribe(imcpy.PlanControlState)
    def on_plan_state(self, message: imcpy.PlanControlState) -> None:
        self.received["plan"] = (message.state.name, message.plan_id, message.man_id, message.last_outcome.name)

    @Subscribe(imcpy.PlanControl)
    def on_plan_control(self, message: imcpy.PlanControl) -> None:
        self.received["answer"] = (message.op.name, message.type.name, message.info, message.request_id)

    def drive(self) -> None:
        query = imcpy.EntityList()
        query.op = imcpy.EntityList.OperationEnum.QUERY
        self.send(self.vehicle, query)
        thrust = imcpy.SetThrusterActuation()
        thrust.id, thrust.value = 0, 0.5
        self.send(self.vehicle, thrust)
        servo = imcpy.SetServoPosition()
        servo.id, servo.value = 1, -0.25
        self.send(self.vehicle, servo)

    def is_driven(self) -> bool:
        """Return whether both messages act, each of which comes by itself."""
        state = self.received["state"]
        return abs(state["u"] - 0.5) < 1e-3 and abs(state["r"] - 0.25) < 1e-3

    def plan_is(self, state: str) -> bool:
        return "plan" in self.received and self.received["plan"][0] == state

    @Periodic(0.05)
    def go_on(self) -> None:
        """One thing after the other."""
        observed = self.received
        if self.vehicle is None:
            return
        if self.stage == 0 and "state" in observed and "mode" in observed:
            send(state=observed["state"], mode=observed["mode"])
            self.drive()
            self.stage = 1
        elif self.stage == 1 and "entities" in observed and self.is_driven():
            send(entities=observed["entities"], driven=observed["state"])
            heading = imcpy.DesiredHeading()
            heading.value = 0.5
            self.send(self.vehicle, heading)
            request = sample_plan(Home(lat_deg=41.184, lon_deg=-8.705), ((10.0, 20.0), (30.0, 0.0)))
            request.request_id = 77
            self.send(self.vehicle, request)
            self.stage = 2
        elif self.stage == 1:
            self.drive()  # a datagram may be lost
        elif self.stage == 2 and "answer" in observed and self.plan_is("EXECUTING"):
            send(answer=observed.pop("answer"), plan=observed["plan"])
            stop = imcpy.PlanControl()
            stop.type, stop.op = imcpy.PlanControl.TypeEnum.REQUEST, imcpy.PlanControl.OperationEnum.STOP
            self.send(self.vehicle, stop)
            self.stage = 3
        elif self.stage == 3 and "answer" in observed and self.plan_is("READY"):
            send(stopped=observed["answer"], plan=observed["plan"])
            self.stage = 4


if __name__ == "__main__":
    logging.disable(logging.CRITICAL)
    Console(int(sys.argv[1])).run()
