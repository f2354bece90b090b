"""A plant whose steps overrun lets newcomers in all the same: real processes ask for its status, drive it, end it."""

from __future__ import annotations

import subprocess
import sys

import pytest

PLANT = """
import sys, time
import rtmms
from rtmms.loop.clock import MonotonicClock
from rtmms.loop.loop import Loop
from rtmms.loop.modes import Realtime
from rtmms.loop.policies import Policies
from rtmms.loop.clock import Schedule
from rtmms.loop.statistics import Statistics
from rtmms.wire.plant.server import Server
from tests.wire.bench import Toy

PERIOD_NS = 33_000

class Busy(Toy):
    count = 0

    def step(self, command):
        super().step(command)
        self.count += 1
        until = time.monotonic_ns() + (60_000 if self.count % 2 else 10_000)  # each second one overruns
        while time.monotonic_ns() < until:
            pass

plant = Busy()
server = Server(plant, robot="toy", token="secret", mode="realtime", rate=30.0, deadline_s=15e-6,
                **dict.fromkeys(("exchange", "step", "telemetry"), "tcp://127.0.0.1:*"))
print(server.endpoints["exchange"], flush=True)
statistics = Statistics()
loop = Loop(plant, server, MonotonicClock(), Realtime(Schedule(PERIOD_NS, 15_000)), Policies(overrun=sys.argv[1]),
            statistics, steps=None)
outcome = loop.run()
print(outcome.ended, statistics.overruns * 3 > statistics.steps, server.report()["forced_polls"] > 0, flush=True)
server.close()
"""
PEER = """
import sys, rtmms
with rtmms.connect(sys.argv[1], name="status", token="secret", timeout_s=60) as link:
    print(link.request("status", timeout_s=60)["mode"], flush=True)
with rtmms.connect(sys.argv[1], name="driver", token="secret", claim="*", timeout_s=60, errors="collect") as link:
    for k, state in enumerate(link):
        link.command(dict.fromkeys(link.plant.granted, 0.25))
        if k > 20:
            break
    print("driven", flush=True)
with rtmms.connect(sys.argv[1], name="stop", token="secret", timeout_s=60) as link:
    link.request("stop", timeout_s=60)
"""


@pytest.mark.full
@pytest.mark.parametrize("policy", ["skip", "slip", "catchup"])
def test_status_control_and_stop_are_answered_by_a_plant_that_overruns(policy: str) -> None:
    with subprocess.Popen([sys.executable, "-c", PLANT, policy], stdout=subprocess.PIPE, text=True) as plant:
        assert plant.stdout is not None
        exchange = plant.stdout.readline().strip()
        peer = subprocess.run([sys.executable, "-c", PEER, exchange], capture_output=True, text=True, timeout=200,
                              check=False)  # fmt: skip
        if peer.returncode:
            plant.kill()
        assert (peer.returncode, peer.stdout.split()) == (0, ["realtime", "driven"]), peer.stderr
        assert plant.stdout.read().split() == ["stop", "True", "True"]
    assert plant.returncode == 0
