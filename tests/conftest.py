"""Two workers, a core each (pyproject.toml): which tests must not meet one another take turns on one of them.

A file stays on one worker, with what its fixtures made. So do all that use the default ports, and all that speak where
the other worker could hear it: multicast groups, brokers.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import settings

settings.register_profile("untimed", deadline=None)  # no test judges real time
settings.load_profile("untimed")

DEFAULT_PORTS = ("cli", "test_examples.py", "test_wheel.py")
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
    first, name = path.partition("/")[0], path.rpartition("/")[2]
    if path == LONG:
        return nodeid
    if path.startswith(GROUND):
        return "ground"
    return "ports" if first in DEFAULT_PORTS else "network" if name in HEARD else path


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Groups by the names of tests: marks (xdist_group) reach xdist 3.8 through what pytest 9 does not read."""
    from xdist.scheduler import LoadScopeScheduling

    class InGroups(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return group(nodeid)

    return InGroups(config, log) if config.getvalue("dist") == "loadgroup" else None
