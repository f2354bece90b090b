"""Two workers, one core each: tests that start processes or wait for peers take turns on one, the rest share both.

So no two plants, brokers or multicast groups meet, and nobody's deadline is another test's load but by one core.
"""

from __future__ import annotations

from pathlib import Path

import pytest

PROCESSES = ("bridges", "bridging", "cli", "controllers", "faults", "record", "soak", "wire")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        folder = item.path.relative_to(here).parts[0]
        if folder in PROCESSES or folder in ("test_examples.py", "test_wheel.py"):
            item.add_marker(pytest.mark.xdist_group("processes"))
