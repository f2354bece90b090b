"""Real brokers of HELICS for tests, and federates that know nothing of rtmms."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import helics as h

from tests.bridges.harness import wait
from tests.ports import reserve_ports
from tests.wire.bench import PATIENCE_S

BROKER = Path(sys.executable).with_name("helics_broker")


class Broker:
    """helics_broker on a port of its own; above: the one it is below."""

    def __init__(self, federates: int, above: Broker | None = None) -> None:
        self.port = reserve_ports(40)  # a broker of ZeroMQ gives its federates the ports that follow
        arguments = [f"--local_port={self.port}", "--loglevel=no_print", f"-f{federates}"]
        if above is not None:
            arguments += ["--broker_address=127.0.0.1", f"--brokerport={above.port}"]
        self.process = subprocess.Popen(
            [str(BROKER), *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
        )

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def __enter__(self) -> Broker:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def kill(self) -> None:
        """End the broker with its group: the program is a script that starts the broker as a process of its own."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(PATIENCE_S)


class Pilot:
    """A federate of HELICS alone in a thread: publishes before(k) at each of its times, and keeps what it reads."""

    def __init__(self, broker: Broker, period_s: float, count: int, publish: dict[str, tuple[str, str]],
                 read: dict[str, str], value: Callable[[int], float]) -> None:  # fmt: skip
        info = h.helicsCreateFederateInfo()
        h.helicsFederateInfoSetCoreTypeFromString(info, "zmq")
        h.helicsFederateInfoSetCoreName(info, f"pilot{broker.port}")
        h.helicsFederateInfoSetCoreInitString(
            info, f"--federates=1 --loglevel=no_print --broker_address=127.0.0.1 --brokerport={broker.port}"
        )
        self.federate: Any = h.helicsCreateCombinationFederate("pilot", info)
        h.helicsFederateSetFlagOption(self.federate, h.HELICS_FLAG_UNINTERRUPTIBLE, True)
        self.period_s, self.count, self.value = period_s, count, value
        self.out = []
        for key, (target, unit) in publish.items():
            item = h.helicsFederateRegisterGlobalPublication(self.federate, key, h.HELICS_DATA_TYPE_DOUBLE, unit)
            h.helicsPublicationAddTarget(item, target)
            self.out.append(item)
        self.inputs = {
            key: h.helicsFederateRegisterSubscription(self.federate, key, unit) for key, unit in read.items()
        }
        self.endpoint = h.helicsFederateRegisterGlobalEndpoint(self.federate, "pilot/talk", "")
        self.messages: dict[int, tuple[str, bytes]] = {}
        self.received: list[dict[str, list[float]]] = []
        self.times: list[float] = []
        self.fault: Exception | None = None
        self.hold = threading.Event()
        self.hold.set()
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self) -> None:
        try:
            h.helicsFederateEnterExecutingMode(self.federate)
            for k in range(self.count):
                self.times.append(h.helicsFederateRequestTime(self.federate, k * self.period_s) if k else 0.0)
                self.received.append({
                    key: [h.helicsInputGetDouble(entry)] if key.endswith("]") else list(h.helicsInputGetVector(entry))
                    for key, entry in self.inputs.items()
                })  # fmt: skip
                for item in self.out:
                    h.helicsPublicationPublishDouble(item, self.value(k))
                if k in self.messages:
                    target, text = self.messages[k]
                    h.helicsEndpointSendBytesTo(self.endpoint, text, target)
                self.hold.wait(60.0)
            h.helicsFederateDisconnect(self.federate)
        except h.HelicsException as fault:
            self.fault = fault

    def join(self) -> None:
        self.hold.set()
        wait(lambda: not self.thread.is_alive())


PARTNER = """
import sys, helics as h
port, target, unit = sys.argv[1:]
info = h.helicsCreateFederateInfo()
h.helicsFederateInfoSetCoreTypeFromString(info, "zmq")
h.helicsFederateInfoSetCoreInitString(info, f"--federates=1 --loglevel=no_print --brokerport={port}")
wind = h.helicsCreateValueFederate("wind", info)
out = h.helicsFederateRegisterGlobalPublication(wind, "wind/speed", h.HELICS_DATA_TYPE_DOUBLE, unit)
h.helicsPublicationAddTarget(out, target)
# it depends on the plant: else it would run ahead, and its death would delay no grant for that time
h.helicsFederateRegisterSubscription(wind, "one/position[0]", "")
h.helicsFederateEnterExecutingMode(wind)
for k in range(1, 1_000_000):
    h.helicsPublicationPublishDouble(out, 1.5)
    h.helicsFederateRequestTime(wind, k * 0.01)
"""


def partner(broker: Broker, target: str, unit: str) -> subprocess.Popen[bytes]:
    """A federate 'wind' in a process of its own, to be killed or stopped."""
    return subprocess.Popen([sys.executable, "-c", PARTNER, str(broker.port), target, unit])
