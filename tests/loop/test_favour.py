"""Controllers of a run in real time go before ordinary processes."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from rtmms.loop.machine import CHILD_NICE, favour_child, scheduling


@pytest.mark.full
@pytest.mark.skipif(not hasattr(os, "setpriority"), reason="no nice here")
def test_a_child_is_favoured_where_that_is_permitted_and_left_alone_elsewhere() -> None:
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        before = os.getpriority(os.PRIO_PROCESS, child.pid)
        try:
            os.setpriority(os.PRIO_PROCESS, child.pid, before - 1)
            expected = CHILD_NICE
        except PermissionError:
            expected = before
        favour_child(child.pid)
        after = os.getpriority(os.PRIO_PROCESS, child.pid)
        assert after == expected
        assert scheduling(child.pid)["nice"] == after
    finally:
        child.kill()
        child.communicate()
    favour_child(child.pid)  # nobody is there
    assert scheduling(child.pid)["nice"] is None
