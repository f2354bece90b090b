"""The limit of open files is raised to what is allowed, and not beyond what is of use."""

from __future__ import annotations

import pytest

from rtmms.loop.machine import raise_limit

resource = pytest.importorskip("resource")


@pytest.mark.parametrize(
    ("before", "after"),
    [((64, 64), 64), ((256, 1024), 1024), ((1024, 1 << 20), 4096), ((8192, 1 << 20), 8192), ((512, -1), 4096)],
)
def test_the_limit_of_open_files(before: tuple[int, int], after: int, monkeypatch: pytest.MonkeyPatch) -> None:
    limits = [before]
    monkeypatch.setattr(resource, "getrlimit", lambda which: limits[-1])
    monkeypatch.setattr(resource, "setrlimit", lambda which, both: limits.append(both))
    assert raise_limit() == after
    assert limits[-1] == (after, before[1])
