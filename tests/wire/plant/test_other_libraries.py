"""Sessions by other libraries of ZeroMQ: czmq, zeromq.js, libzmq since 4.1. Skipped where they are missing."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from rtmms.wire.session_files import token_path
from tests.cli.shell import ROOT, environment, finish
from tests.wire.plant.test_c_client import Serve, serve

pytestmark = pytest.mark.full

__all__ = ["serve"]
HERE = Path(__file__).parent
MODULES = Path(os.environ.get("NODE_PATH", ROOT / "build" / "node" / "node_modules"))
WHEELS = ROOT / "build" / "libzmq"


def czmq(folder: Path) -> list[str]:
    """The words that start the client; skips."""
    compiler = shutil.which("gcc")
    if compiler is None:
        pytest.skip("no gcc")
    arguments = [compiler, "-std=gnu11", "-O1", str(HERE / "czmq_client.c"), "-o", str(folder / "client"), "-lczmq",
             "-lzmq", "-lmsgpackc"]  # fmt: skip
    probe = "#include <czmq.h>\n#include <msgpack.h>\nint main(void) { return 0; }\n"
    if subprocess.run([compiler, "-x", "c", "-fsyntax-only", "-"], input=probe, text=True, capture_output=True,
                      check=False).returncode:  # fmt: skip
        pytest.skip("no czmq.h or msgpack.h: needs libczmq-dev and libmsgpack-dev")
    built = subprocess.run(arguments, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    return [str(folder / "client")]


def zeromq_js(folder: Path) -> list[str]:
    """The words that start the client; skips."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("no node")
    if not (MODULES / "zeromq").is_dir() or not (MODULES / "@msgpack").is_dir():
        pytest.skip(f"no zeromq or @msgpack/msgpack in {MODULES}: npm install --prefix build/node")
    return [node, str(HERE / "zeromq_client.js")]


def libzmq(pyzmq: str) -> Callable[[Path], list[str]]:
    """A libzmq by the wheel of pyzmq that carries it (.ci/run fetches them), through its C functions."""

    def texts(folder: Path) -> list[str]:
        wheels = list(WHEELS.glob(f"pyzmq-{pyzmq}-*.whl"))
        if not wheels:
            pytest.skip(f"no wheel of pyzmq {pyzmq} in {WHEELS}: pip download it as .ci/run does")
        with zipfile.ZipFile(wheels[0]) as wheel:
            wheel.extractall(folder, [name for name in wheel.namelist() if "/.libs/" in name])
        (library,) = (folder / "zmq" / ".libs").glob("libzmq*")
        return [sys.executable, "-P", str(HERE / "old_libzmq_client.py"), str(library)]

    texts.__name__ = f"libzmq_of_pyzmq_{pyzmq}"
    return texts


@pytest.mark.parametrize(
    "library", [czmq, zeromq_js, libzmq("16.0.4"), libzmq("17.1.3"), libzmq("18.1.1")], ids=lambda item: item.__name__
)
def test_a_session_answers_every_step(
    library: Callable[[Path], list[str]], serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:  # fmt: skip
    arguments = library(tmp_path)
    plant, exchange = serve("--mode", "lockstep", "--duration", "5")
    monkeypatch.setenv("XDG_RUNTIME_DIR", environment(tmp_path)["XDG_RUNTIME_DIR"])
    done = subprocess.run([*arguments, exchange, str(token_path(exchange))], capture_output=True, text=True, timeout=60,
                          check=False, env=environment(tmp_path) | {"NODE_PATH": str(MODULES)})  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.split() == ["500", "states", "answered"]
    report = finish(plant).report["exchange"]
    assert (report["commands_applied"], report["misses"], report["rejected"]) == (500, 0, {})
