"""Workers (pyproject.toml): which tests must not meet one another take turns on one of them.

A file stays on one worker, with what its fixtures made. So do all that speak where another worker could hear it:
multicast groups, brokers. Each worker has default ports of its own.
"""

from __future__ import annotations

import os
from typing import Any

import pytest
from hypothesis import settings

WORKER = os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")
if WORKER != "0":  # before rtmms is imported, which reads it
    os.environ["RTMMS_PORT"] = str(19870 + 10 * int(WORKER))

settings.register_profile("untimed", deadline=None)  # no test judges real time
settings.load_profile("untimed")

HEARD = (
    "test_bench_bridges.py", "test_bench_views.py", "test_can.py", "test_dds.py", "test_foxglove.py",
    "test_from_here.py", "test_imc.py", "test_lcm.py", "test_mqtt.py", "test_plotjuggler.py", "test_zenoh.py",
)  # fmt: skip

GROUND = ("locomotion", "robots/test_wheeled.py", "shapes", "cli/test_gaits.py")
"""All that compile the kernels of contacts, a minute of them: on one worker, so that not both compile the same."""

LONG = "scenario/test_examples.py"
"""Whole runs that share nothing: each where there is room."""


def group(nodeid: str) -> str:
    """What a test takes turns with."""
    path = nodeid.partition("::")[0].removeprefix("tests/")
    name = path.rpartition("/")[2]
    if path == LONG:
        return nodeid
    if path.startswith(GROUND):
        return "ground"
    return "network" if name in HEARD else path


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Groups by the names of tests: marks (xdist_group) reach xdist 3.8 through what pytest 9 does not read."""
    from xdist.scheduler import LoadScopeScheduling

    class InGroups(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return group(nodeid)

    return InGroups(config, log) if config.getvalue("dist") == "loadgroup" else None
