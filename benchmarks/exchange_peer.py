"""Controller that only answers, and notes the times.

`python -m rtmms_benchmarks.exchange_peer ENDPOINT ...`
"""

from __future__ import annotations

import argparse
import gc
import os
import sys
from array import array
from pathlib import Path
from time import monotonic_ns

from rtmms.loop.machine import pin, raise_child
from rtmms.wire.keys import read_client
from rtmms.wire.peer.attachment import PeerRequests
from rtmms.wire.peer.client import Link
from rtmms.wire.protocol.hello import Hello


def main() -> int:
    """Answer every state until the plant sends bye, and write the times of arrival to FILE.

    Returns
    -------
    int
        0.
    """
    parser = argparse.ArgumentParser()
    parser.add_argument("endpoint")
    parser.add_argument("claim")
    parser.add_argument("file")
    parser.add_argument("--keys", type=Path)
    parser.add_argument("--libzmq", action="store_true")
    parser.add_argument("--core", type=int)
    parser.add_argument("--priority", type=int, default=0)
    parser.add_argument("--steps", type=int, required=True)
    asked = parser.parse_args()
    stamps = array("q", [0]) * asked.steps
    keys = None if asked.keys is None else read_client(asked.keys)
    hello = Hello(f"peer {asked.claim}", (asked.claim,), ("velocity",))
    terms = PeerRequests(asked.endpoint, hello, keys=keys, libzmq=asked.libzmq)
    with Link(terms, timeout_s=20.0) as link:
        values = dict.fromkeys(link.plant.granted, 0.1)
        if asked.core is not None:
            pin(os.getpid(), [asked.core])
        if asked.priority:
            raise_child(os.getpid(), asked.priority)
        gc.collect()
        gc.freeze()
        for state in link:
            got = monotonic_ns()
            link.command(values)
            if state.step < asked.steps:
                stamps[state.step] = got
    with open(asked.file, "wb") as file:
        stamps.tofile(file)
    return 0


if __name__ == "__main__":
    sys.exit(main())
