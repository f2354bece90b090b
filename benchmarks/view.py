"""What the view costs the loop: blocks of a run at 1 kHz without it, with it and a client that reads, and with clients
that come and go, by turns in one session.

The clients read what a browser would and draw nothing: a browser's pictures are another program's work.
"""

from __future__ import annotations

import contextlib
import json
import re
import subprocess
import sys
import threading
import time
from typing import Any

import numpy as np

from . import setting

KINDS = ("without", "open", "visits")
VISITS = 50


def _clients(address: str, stop: threading.Event, visits: int, seen: dict[str, float]) -> None:
    """Read the page's messages until told to stop; with visits, come and go so often over the run."""
    from websockets.exceptions import WebSocketException
    from websockets.sync.client import connect

    while not stop.is_set():
        begun = time.monotonic()
        with contextlib.suppress(OSError, WebSocketException), connect(
            address, subprotocols=["viser-v1.1.1"], max_size=None, compression=None
        ) as client:  # fmt: skip
            seen["visits"] += 1
            while not stop.is_set() and (not visits or time.monotonic() - begun < 0.1):
                with contextlib.suppress(TimeoutError):
                    seen["bytes"] += len(client.recv(timeout=0.05))
                    seen["messages"] += 1
        stop.wait(0.1)


def block(kind: str, seconds: float) -> dict[str, float]:
    """One run, its wake-up, misses and overruns; what the clients saw."""
    words = ["run", "manta", "--duration", str(seconds), "--json"]
    words += [] if kind == "without" else ["--bridge", "view"]
    run = subprocess.Popen(
        [sys.executable, "-m", "rtmms", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    stop, seen = threading.Event(), {"visits": 0.0, "bytes": 0.0, "messages": 0.0}
    client: threading.Thread | None = None
    assert run.stderr is not None
    assert run.stdout is not None
    for line in run.stderr:
        found = re.search(r"open http://(\S+) in", line)
        if found and client is None:
            words_of = (f"ws://{found.group(1)}", stop, VISITS if kind == "visits" else 0, seen)
            client = threading.Thread(target=_clients, args=words_of, daemon=True)
            client.start()
    report = json.loads(run.stdout.read())
    run.wait()
    stop.set()
    if client is not None:
        client.join(5.0)
    wake = report["timing_us"]["wake"]
    return {
        "wake_p50_us": wake["p50"], "wake_p99_us": wake["p99"], "misses": report["exchange"]["misses"],
        "overruns": report["schedule"]["overruns"], **seen,
    }  # fmt: skip


def main(as_json: bool = False, blocks: int = 5, seconds: float = 10.0) -> int:
    """blocks   of each kind;  seconds  of each. Prints medians over the blocks, and all of them with --json."""
    result: dict[str, Any] = {"commit": setting.commit(), "machine": setting.machine(), "load": [setting.load()]}
    found: dict[str, list[dict[str, float]]] = {kind: [] for kind in KINDS}
    for number in range(blocks):
        for kind in KINDS:
            print(f"block {number + 1} of {blocks}, {kind}", file=sys.stderr, flush=True)
            found[kind].append(block(kind, seconds))
    result["load"].append(setting.load())
    result["seconds"], result["blocks"] = seconds, found
    result["median"] = {kind: {key: float(np.median([one[key] for one in ones])) for key in ones[0]}
                        for kind, ones in found.items()}  # fmt: skip
    if as_json:
        print(json.dumps(result))
        return 0
    print(f"medians of {blocks} blocks of {seconds:g} s at 1 kHz; load {result['load'][0]}, {result['load'][-1]}")
    for kind, row in result["median"].items():
        print(f"{kind:<8} " + "   ".join(f"{key} {value:.0f}" for key, value in row.items()))
    return 0


if __name__ == "__main__":
    sys.exit(main("--json" in sys.argv))
