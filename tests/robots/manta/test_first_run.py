"""The first run: what the second process compiles ahead is what the plant needs, with the same bits."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

PROGRAM = """
import rtmms
from numba.core import event
from rtmms.robots.manta.step import compile_ahead, jobs

compile_ahead(False, False, False)
seen = []

class Listener(event.Listener):
    def on_start(self, event):
        seen.append(event.data["dispatcher"].py_func)

    def on_end(self, event):
        pass

with event.install_listener("numba:compile", Listener()):
    rtmms.load("manta")
print([kernel.py_func.__name__ for kernel, _ in jobs(False, False, False) if kernel.py_func in seen])
"""


@pytest.mark.full
def test_nothing_compiled_ahead_is_compiled_again(tmp_path):
    environment = os.environ | {"XDG_CACHE_HOME": str(tmp_path), "RTMMS_QUIET": "1"}
    environment.pop("NUMBA_CACHE_DIR", None)
    done = subprocess.run([sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
