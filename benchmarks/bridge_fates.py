"""What a bridge that dies or hangs costs the loop: the manta at 1 kHz, with its gait beside a bridge that only watches,
or driven by the bridge alone.

Blocks in turns: the bridge is left alone, killed, or stopped a third into the run and let go on a third later. Counted
are the steps that were missed or overran, those of them that no stall of the machine explains, and both in the time
right after the signal, when a bridge that goes would cost the loop something if at all. Of a bridge that drives only
overruns count, because the commands that it owes are missed: that the step comes in time all the same is the question.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

FATES = ("undisturbed", "killed", "stopped", "driving", "driving, killed", "driving, stopped")
AFTER_S = 0.1
COUNTED = ("steps", "misses", "overruns", "bad", "unexplained", "after", "after_unexplained")
_PATIENCE_S = 120.0
_DT = 1e-3


def measure(blocks: int, block_s: float) -> dict[str, Any] | None:
    """So many runs of each kind, and their sums; None for no blocks."""
    if blocks <= 0:
        return None
    found: dict[str, list[dict[str, Any]]] = {fate: [] for fate in FATES}
    for k in range(blocks):
        for fate in FATES:
            print(f"the manta beside a bridge, {fate}: block {k + 1} of {blocks}", file=sys.stderr)
            found[fate].append(beside(fate, block_s))
    totals = {fate: {key: sum(one.get(key, 0) for one in runs) for key in COUNTED} for fate, runs in found.items()}
    return {"block_s": block_s, "after_s": AFTER_S, "blocks": found, "total": totals}


def beside(fate: str, seconds: float) -> dict[str, Any]:
    """One run."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as peer, tempfile.TemporaryDirectory() as folder:
        peer.bind(("127.0.0.1", 0))
        peer.settimeout(_PATIENCE_S + seconds)
        bridge = f"udp:port={peer.getsockname()[1]},bind_port=0,outputs=velocity"
        drives = fate.startswith("driving")
        words = ["--controller", "none", "--bridge", f"{bridge},claim=*"] if drives else ["--bridge", bridge]
        run = subprocess.Popen(
            [sys.executable, "-P", "-m", "rtmms", "run", "manta", "--duration", f"{seconds:g}", "--json", "--quiet",
             *words], cwd=folder, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        when: list[float] = []
        disturber = threading.Thread(target=_disturb, args=(run.pid, peer, fate, seconds, when), daemon=True)
        disturber.start()
        out, err = run.communicate(timeout=10 * seconds + 120)
        disturber.join(1.0)
    try:
        report = json.loads(out)
    except ValueError:
        return {"failed": (err.strip().splitlines() or [f"exit status {run.returncode}"])[-1]}
    kinds = ("overrun",) if drives else ("miss", "overrun")
    return {
        "ended": report["ended"], "steps": report["steps"], "misses": report["exchange"]["misses"],
        "overruns": report["schedule"]["overruns"], "blame": report["schedule"]["blame"],
        "signal_s": when[0] if when else None, **_counts(report["witness"]["bad_steps"], when, kinds),
        "exchange_us": report["timing_us"]["exchange"], "bridge": report["bridges"]["udp"],
    }  # fmt: skip


def _counts(bad: list[dict[str, Any]], when: list[float], kinds: tuple[str, ...]) -> dict[str, int]:
    """Bad steps, all and without a stall of the machine, in the whole run and right after the signal."""
    steps = {one["step"] for one in bad if any(one[kind] for kind in kinds)}
    unexplained = {one["step"] for one in bad if {one[kind] for kind in kinds} - {"machine", None}}
    after = {step for step in steps if when and 0.0 <= step * _DT - when[0] < AFTER_S}
    return {
        "bad": len(steps), "unexplained": len(unexplained), "after": len(after),
        "after_unexplained": len(after & unexplained),
    }  # fmt: skip


def _disturb(run: int, peer: socket.socket, fate: str, seconds: float, when: list[float]) -> None:
    """Reads what the bridge tells; a third into the run it sends the signal. A stopped one goes on a third later.

    when   gets the simulated time of it
    """
    with contextlib.suppress(OSError, ValueError):
        while (now := json.loads(peer.recv(65536))["time"]) < seconds / 3:
            pass
        when.append(now)
        bridge = _child(run, "bridge")
        if bridge is None or not fate.endswith(("killed", "stopped")):
            return
        os.kill(bridge, signal.SIGKILL if fate.endswith("killed") else signal.SIGSTOP)
        if fate.endswith("stopped"):
            time.sleep(seconds / 3)
            os.kill(bridge, signal.SIGCONT)


def _child(pid: int, command: str) -> int | None:
    """The child of the process that runs `rtmms COMMAND`."""
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        for word in task.read_text().split():
            line = Path(f"/proc/{word}/cmdline").read_bytes().split(b"\0")
            if command.encode() in line:
                return int(word)
    return None


def tell(found: dict[str, Any]) -> None:
    """Print it for a reader."""
    print("the manta at 1 kHz beside a bridge: steps missed or overrun (driven by it: overrun), in () without a stall")
    for fate, total in found["total"].items():
        by_block = [one.get("unexplained", "failed") for one in found["blocks"][fate]]
        print(f"  {fate:<16} {total['bad']} ({total['unexplained']}) of {total['steps']}; by block {by_block}; in "
              f"{len(by_block)} times {found['after_s']:g} s after the signal {total['after']} "
              f"({total['after_unexplained']})")  # fmt: skip
