"""Two workers, a core each (pyproject.toml): which tests must not meet one another take turns on one of them.

A file stays on one worker, with what its fixtures made. So do all that use the default ports, and all that speak where
the other worker could hear it: multicast groups, brokers.
"""

from __future__ import annotations

from pathlib import Path

import pytest

DEFAULT_PORTS = ("cli", "test_examples.py", "test_wheel.py")
HEARD = (
    "test_bench_bridges.py", "test_bench_views.py", "test_dds.py", "test_foxglove.py", "test_from_here.py",
    "test_lcm.py", "test_mqtt.py", "test_plotjuggler.py", "test_zenoh.py",
)  # fmt: skip

GROUND = ("locomotion", "robots/test_wheeled.py", "shapes", "cli/test_gaits.py")
"""All that compile the kernels of contacts, a minute of them: on one worker, so that not both compile the same."""

LONG = "scenario/test_examples.py"
"""Whole runs that share nothing: each where there is room."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        file = item.path.relative_to(here)
        group = "ports" if file.parts[0] in DEFAULT_PORTS else "network" if file.name in HEARD else str(file)
        if file.as_posix().startswith(GROUND):
            group = "ground"
        if file.as_posix() == LONG:
            group = item.nodeid
        item.add_marker(pytest.mark.xdist_group(group))
