"""`rtmms bench exchange`: parts of an exchange, for each transport, with one controller and with four.

The plant's side is the server of a run, at the loop's priority on its core, paced at 1 kHz. The controllers are links
that only answer, in other processes on the same core, 10 below it. Parts of a step, in order:

    pack      the state, in the slack before; the rest is between its instant and the commands in hand
    send      handing it to the kernel (with keys: to ZeroMQ)
    to peer   the kernel (with keys: ZeroMQ's threads), the peer's reading and unpacking
    to plant  the peer's packing and sending, the kernel, waking
    receive   out of the socket
    validate  unpacking, every check, taking it over

With four controllers `to peer` and `to plant` are those of the one that got its state last. `tcp` is without the
shorter way that processes of the plant's user have beside it, which is `ipc`; `libzmq` is the same with ZeroMQ's own
sockets on both sides in place of ours.
"""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
import tempfile
import time
from array import array
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from rtmms.base.errors import RtmmsError
from rtmms.loop.machine import Readiness, allowed_cores, at_priority, may_raise, prepare
from rtmms.wire.keys import make_keys, read_server
from rtmms.wire.libzmq.threads import Threads
from rtmms.wire.plant.server import Server
from rtmms.wire.plant.sockets import Sockets
from rtmms.wire.protocol.port import Answering, Received

from . import setting
from .yardsticks import QUANTILES, quantiles

PRIORITY = 80
PERIOD_NS = 1_000_000
DEADLINE_NS = 900_000
PATIENCE_S = 30.0
PARTS = ("pack", "send", "to peer", "to plant", "receive", "validate")
PACKED, BEGUN, SENT, WOKEN, READ, DONE = range(6)
Stamps = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Case:
    """One row of the table.

    Attributes
    ----------
    transport : str
        Connection of the two sides.
    controllers : int
        Number of controllers.
    """

    transport: str
    controllers: int


def main(as_json: bool = False, steps: int = 4000, blocks: int = 3, core: int = -1) -> int:
    """Run the benchmark.

    Parameters
    ----------
    as_json : bool, default False
        Print JSON.
    steps : int, default 4000
        Steps of a block.
    blocks : int, default 3
        Number of blocks.
    core : int, default -1
        Core of all processes, -1 for the last permitted one.

    Returns
    -------
    int
        Exit status.
    """
    setting.refuse_less("exchange: --steps", steps, 100)
    setting.refuse_less("exchange: --blocks", blocks, 1)
    cases = [Case(transport, count) for transport in ("ipc", "tcp", "libzmq", "curve") for count in (1, 4)]
    result: dict[Case, list[dict[str, Any]]] = {case: [] for case in cases}
    out: dict[str, Any] = {"commit": setting.commit(), "machine": setting.machine(), "at": setting.now(),
                           "load": [setting.load()], "steps": steps}  # fmt: skip
    ready = prepare(PRIORITY, "auto" if core < 0 else str(core))
    try:
        for k in range(blocks):
            for case in cases:
                print(f"block {k + 1} of {blocks}: {case.transport}, {case.controllers} controllers", file=sys.stderr)
                result[case].append(block(case, steps, ready))
    finally:
        ready.close()
    out["load"].append(setting.load())
    out["realtime"] = ready.report()
    out["cases"] = [{"transport": case.transport, "controllers": case.controllers, "us": _medians(rows)}
                    for case, rows in result.items()]  # fmt: skip
    print(json.dumps(out)) if as_json else print_result(out)
    return 0


def block(case: Case, steps: int, ready: Readiness) -> dict[str, Any]:
    """Measure one block.

    Parameters
    ----------
    case : Case
        The row.
    steps : int
        Number of steps.
    ready : Readiness
        Set-up of the machine.

    Returns
    -------
    dict[str, Any]
        Quantiles of each part and of the whole exchange, us.
    """
    import rtmms

    plant = rtmms.load("manta")
    plant.reset(0)
    place = ready.cores.loop if ready.cores.loop is not None else (allowed_cores() or [0])[-1]
    priority = PRIORITY if may_raise(PRIORITY) else None
    names = [channel.name for channel in plant.actuators]
    claims = ["*"] if case.controllers == 1 else names
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="rtmms-exchange-")))
        os.chmod(folder, 0o700)
        sockets = _sockets(case, folder, Threads(priority, place, None))
        sockets.step = stamped = Stamped(sockets.step, steps)
        server = stack.enter_context(Server(plant, robot="manta", deadline_s=DEADLINE_NS * 1e-9, sockets=sockets))
        server.near_step = ""
        peers = [_peer(case, server, claim, folder, place, priority, steps) for claim in claims]
        stack.callback(_end, peers)
        _admit(server, len(claims), peers)
        gc.collect()
        with at_priority(PRIORITY):
            run(server, plant, stamped)
        server.close()
        for peer in peers:
            peer.wait(PATIENCE_S)
        answers = [np.fromfile(folder / _file(claim), np.int64) for claim in claims]
    return parts(stamped.stamps, answers)


class Stamped:
    """Step socket that notes the end of each wait and of each sending; else the socket that it wraps.

    Parameters
    ----------
    socket : Answering
        The socket.
    steps : int
        Number of steps.
    """

    def __init__(self, socket: Answering, steps: int) -> None:
        self._socket, self._next, self._wait = socket, socket.next, socket.wait
        self.steps, self.raw, self.at = steps, array("q", [0]) * (6 * steps), 0

    def next(self) -> Received | None:
        """Receive a message, and note the time.

        Returns
        -------
        Received | None
            None where there is none.
        """
        received = self._next()
        if received is not None:
            self.raw[self.at + READ] = time.monotonic_ns()
        return received

    def wait(self, until_ns: int) -> bool:
        """Wait for a message, and note the time.

        Parameters
        ----------
        until_ns : int
            End of the wait, ns.

        Returns
        -------
        bool
            Whether a message came.
        """
        came = self._wait(until_ns)
        self.raw[self.at + WOKEN] = time.monotonic_ns()
        return came

    def __getattr__(self, name: str) -> Any:
        """Return an attribute of the wrapped socket."""
        return getattr(self._socket, name)

    @property
    def stamps(self) -> Stamps:
        """Times (steps, 6) ns: packing, begin, sent, woken, read, done."""
        return np.frombuffer(self.raw, np.int64).reshape(-1, 6)


def run(server: Server, plant: Any, stamped: Stamped) -> None:
    """Run the exchanges, noted part by part, with the server's own code in between.

    Parameters
    ----------
    server : Server
        The plant's server.
    plant : Any
        The plant.
    stamped : Stamped
        The socket.
    """
    raw, now = stamped.raw, time.monotonic_ns
    command = np.zeros(len(plant.actuators))
    gc.disable()
    due = now() + 5 * PERIOD_NS
    for step in range(stamped.steps):
        at = stamped.at = 6 * step
        deadline = due + DEADLINE_NS
        outputs = plant.observe()
        begun = now()
        server.prepare(step, step * 1e-3, deadline, outputs, server.applied)
        raw[at + PACKED] = now() - begun
        left = due - now()
        if left > 0:
            time.sleep(left * 1e-9)
        raw[at + BEGUN] = now()
        server.publish(step, step * 1e-3, deadline, max(1, deadline - now()), outputs, server.applied)
        raw[at + SENT] = now()
        complete = server.collect(step, command, deadline)
        raw[at + DONE] = now() if complete else 0
        woken, read = raw[at + WOKEN], raw[at + READ]
        plant.step(command)
        server.serve(due + PERIOD_NS - 200_000)
        raw[at + WOKEN], raw[at + READ] = woken, read  # what came in the slack is another step's
        due += PERIOD_NS * max(1, -((due - now()) // PERIOD_NS))
    gc.enable()


def parts(stamps: Stamps, answers: list[Stamps]) -> dict[str, Any]:
    """Return quantiles of each part over the steps that were answered in time, without the first tenth.

    Parameters
    ----------
    stamps : Stamps
        Times of the plant's side.
    answers : list[Stamps]
        Times of each peer's side.

    Returns
    -------
    dict[str, Any]
        us.
    """
    got = np.stack([answer[: len(stamps)] for answer in answers]).max(axis=0)
    good = (stamps[:, DONE] > 0) & (got > 0) & (stamps[:, WOKEN] > 0) & (stamps[:, READ] >= stamps[:, WOKEN])
    good[: len(stamps) // 10] = False
    s, got = stamps[good], got[good]
    durations = {
        "pack": s[:, PACKED], "send": s[:, SENT] - s[:, BEGUN], "to peer": got - s[:, SENT],
        "to plant": s[:, WOKEN] - got, "receive": s[:, READ] - s[:, WOKEN], "validate": s[:, DONE] - s[:, READ],
        "exchange": s[:, DONE] - s[:, BEGUN],
    }  # fmt: skip
    answered = len(stamps) - len(stamps) // 10
    return {"missed": int(answered - np.count_nonzero(stamps[len(stamps) // 10 :, DONE])), "steps": answered,
            **{name: quantiles(values) if len(values) else None for name, values in durations.items()}}  # fmt: skip


# --- processes --------------------------------------------------------------------------------------------------------


def _sockets(case: Case, folder: Path, threads: Threads) -> Sockets:
    ends = (f"ipc://{folder}/{role}" if case.transport == "ipc" else "tcp://127.0.0.1:*"
            for role in ("exchange", "step", "telemetry"))  # fmt: skip
    keys = None
    if case.transport == "curve":
        make_keys(folder / "keys")
        keys = read_server(folder / "keys")
    return Sockets(*ends, threads=threads, keys=keys, libzmq=case.transport == "libzmq")


def _peer(
    case: Case, server: Server, claim: str, folder: Path, core: int, priority: int | None, steps: int
) -> subprocess.Popen[bytes]:  # fmt: skip
    arguments = [server.endpoints["exchange"], claim, str(folder / _file(claim)), "--core", str(core), "--steps",
             str(steps), "--priority", str(priority - 10 if priority else 0)]  # fmt: skip
    arguments += ["--keys", str(folder / "keys")] if case.transport == "curve" else []
    arguments += ["--libzmq"] if case.transport == "libzmq" else []
    return subprocess.Popen([sys.executable, "-P", "-m", "rtmms_benchmarks.exchange_peer", *arguments])


def _file(claim: str) -> str:
    return f"{claim.replace('*', 'all')}.stamps"


def _admit(server: Server, count: int, peers: list[subprocess.Popen[bytes]]) -> None:
    until = time.monotonic() + PATIENCE_S
    while len(server.admitted()) < count:
        server.serve(time.monotonic_ns() + 2_000_000)
        if time.monotonic() > until or any(peer.poll() is not None for peer in peers):
            raise RtmmsError("bench exchange: a controller of the benchmark was not admitted")
        time.sleep(0.0005)


def _end(peers: list[subprocess.Popen[bytes]]) -> None:
    for peer in peers:
        if peer.poll() is None:
            peer.kill()
        peer.wait()


def _medians(blocks: list[dict[str, Any]]) -> dict[str, Any]:
    out: dict[str, Any] = {}
    for part in (*PARTS, "exchange"):
        rows = [block[part] for block in blocks if block[part] is not None]
        out[part] = {q: float(np.median([row[q] for row in rows])) if rows else None for q, _ in QUANTILES}
    return out | {name: sum(block[name] for block in blocks) for name in ("missed", "steps")}


def print_result(result: dict[str, Any]) -> None:
    """Print the result for a reader.

    Parameters
    ----------
    result : dict[str, Any]
        The result.
    """
    print(f"commit {result['commit']}, load {result['load'][0]} before, {result['load'][-1]} after; us, p50 and p99")
    head = "".join(f"{name:>14}" for name in (*PARTS, "exchange"))
    print(f"{'':<22}{head}{'missed':>16}")
    columns = (*PARTS, "exchange")
    for case in result["cases"]:
        us = case["us"]
        name = f"{case['transport']}, {case['controllers']} controller{'s' * (case['controllers'] > 1)}"
        cells = "".join(_cell(us[part]) for part in columns)
        print(f"{name:<22}{cells}{us['missed']:>8} of {us['steps']}")


def _cell(row: dict[str, float | None]) -> str:
    p50, p99 = row["p50"], row["p99"]
    return f"{p50:>8.1f}{p99:>6.0f}" if p50 is not None and p99 is not None else f"{'-':>8}{'-':>6}"
