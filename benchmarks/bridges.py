"""`rtmms bench bridges`: from the wire to a bridge's peer and back.

For each bridge with a peer on loopback (bridge_peers.py) and each rate, the plant's server is in this process, the
bridge and its peer in others. out: a state from its sending until the peer has it. back: from there until its answer is
at the plant. A bridge that is paced by its peer answers the same step. The others answer at once with their newest
state, so that their way back ends in the next step and has up to a period in it. lost: states without an answer.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from time import monotonic, monotonic_ns
from typing import Any

import numpy as np

from rtmms.base.errors import ModelError, UnknownNameError
from rtmms.loop.clock import MonotonicClock
from rtmms.wire.plant.server import Server

from . import setting
from .bridge_peers import PLANTS, ROWS, NotHere
from .bridge_plants import Stamper

_PATIENCE_S = 20.0
_WARM = 0.2


def main(as_json: bool = False, seconds: float = 5.0, what: str = "", rates: str = "50,250,1000") -> int:
    """Run the benchmark.

    Parameters
    ----------
    as_json : bool, default False
        Print JSON.
    seconds : float, default 5.0
        Duration for each bridge and rate, s.
    what : str, default ''
        Rows, parted by ';', all without.
    rates : str, default '50,250,1000'
        Rates, Hz, separated by commas.

    Returns
    -------
    int
        1 if a bridge did not work.

    Raises
    ------
    ModelError, UnknownNameError
        A row or a rate is wrong.
    """
    names = [name.strip() for name in what.split(";") if name.strip()] or list(ROWS)
    for name in names:
        if name not in ROWS:
            raise UnknownNameError("row", name, ROWS)
    try:
        wanted = [float(word) for word in rates.split(",") if word]
    except ValueError:
        raise ModelError(f"bench bridges: --rates: expected numbers separated by commas, got '{rates}'") from None
    result: dict[str, Any] = {
        "commit": setting.commit(), "machine": setting.machine(), "at": setting.now(), "load": [setting.load()],
        "bridges": {name: row(name, wanted, seconds) for name in names},
    }  # fmt: skip
    result["load"].append(setting.load())
    print(json.dumps(result) if as_json else text(result))
    return int(any("failed" in item for result in result["bridges"].values() for item in result.values()))


# -- there and back -------------------------------------------------------------------------------------------------


def row(name: str, rates: list[float], seconds: float) -> dict[str, Any]:
    """Measure one bridge at each rate.

    Parameters
    ----------
    name : str
        Row of the benchmark.
    rates : list[float]
        Rates, Hz.
    seconds : float
        Duration for each rate, s.

    Returns
    -------
    dict[str, Any]
        Results by rate.
    """
    result: dict[str, Any] = {}
    for rate in rates:
        print(f"{name} at {rate:g} Hz", file=sys.stderr)
        try:
            with ROWS[name](rate) as bridge_spec:
                result[f"{rate:g}"] = exchange(bridge_spec, PLANTS.get(name, Stamper)(1.0 / rate), seconds)
        except NotHere as missing:
            return {"skipped": {"skipped": f"no {missing} here"}}
    return result


def exchange(bridge_spec: str, plant: Stamper, seconds: float) -> dict[str, Any]:
    """Measure a bridge with the plant's server.

    Parameters
    ----------
    bridge_spec : str
        Words of the bridge.
    plant : Stamper
        The plant.
    seconds : float
        Duration, s.

    Returns
    -------
    dict[str, Any]
        Quantiles, us.
    """
    place, rate = "tcp://127.0.0.1:*", 1.0 / plant.dt
    server = Server(
        plant, robot="bench", mode=plant.mode, deadline_s=0.9 / rate, exchange=place, step=place, telemetry=place
    )
    with server, tempfile.TemporaryFile("w+") as printed:
        bridge = subprocess.Popen(
            [sys.executable, "-P", "-m", "rtmms.cli.main", "bridge", bridge_spec, "--once", "--exchange",
             server.endpoints["exchange"]], stdout=printed, stderr=printed,
        )  # fmt: skip
        try:
            if not _admitted(server, bridge):
                printed.seek(0)
                return {"failed": (printed.read().strip().splitlines() or ["it was not admitted"])[-1]}
            return _measure(server, plant, rate, seconds)
        finally:
            bridge.kill()
            bridge.wait()


def _admitted(server: Server, bridge: subprocess.Popen[Any]) -> bool:
    until = monotonic() + _PATIENCE_S
    while monotonic() < until and bridge.poll() is None:
        server.serve(monotonic_ns() + 2_000_000)
        if server.admitted():
            return True
        time.sleep(1e-3)
    return False


def _measure(server: Server, plant: Stamper, rate: float, seconds: float) -> dict[str, Any]:
    """Send states on an absolute schedule.

    The first ones warm up, as the peer may still be connecting to the bridge.
    """
    clock, period = MonotonicClock(), round(1e9 / rate)
    command = np.zeros(len(plant.actuators))
    warm, steps = max(20, round(rate * _WARM)), round(rate * seconds)
    out: list[float] = []
    back: list[float] = []
    last_stamp, first, begun = 0.0, -1, monotonic_ns()
    step = 0
    until_peer = monotonic() + _PATIENCE_S
    plant.begin()
    while first < 0 or step < first + warm + steps:
        if first < 0 and monotonic() > until_peer:
            return {"failed": "nothing came back"}
        due = begun + step * period
        clock.sleep_until(due)
        deadline = due + round(0.9 * period)
        server.publish(step, step / rate, deadline, max(0, deadline - monotonic_ns()), plant.observe(), server.applied)
        server.collect(step, command, deadline)
        now = monotonic()
        sent, received = plant.read(command)
        if sent != last_stamp:
            last_stamp = sent
            first = step if first < 0 else first
            if step >= first + warm:
                out.append(1e6 * (received - sent))
                back.append(1e6 * (now - received))
        server.serve(due + period - 50_000)
        step += 1
    return {"out_us": _quantiles(out), "back_us": _quantiles(back), "there_and_back_us": _quantiles(
        [a + b for a, b in zip(out, back, strict=True)]), "states": steps, "lost": max(0, steps - len(out)),
        "late": server.report()["late"]}  # fmt: skip


def _quantiles(values: list[float]) -> dict[str, float | None]:
    if not values:
        return {"p50": None, "p99": None, "max": None}
    return {name: round(float(np.quantile(values, q)), 1) for name, q in (("p50", 0.5), ("p99", 0.99), ("max", 1.0))}


# -- reports --------------------------------------------------------------------------------------------------------


def text(result: Mapping[str, Any]) -> str:
    """Return the rows as `rtmms bench bridges` prints them.

    Parameters
    ----------
    result : Mapping[str, Any]
        Result of the benchmark.

    Returns
    -------
    str
        Lines.
    """
    lines = [
        f"commit {result['commit']}, load {result['load'][0]} before, {result['load'][-1]} after",
        f"{'us':<15}{'Hz':>5}{'out p50':>10}{'p99':>9}{'back p50':>10}{'p99':>9}{'both p50':>10}{'p99':>9}{'lost':>12}",
    ]
    for name, results in result["bridges"].items():
        for rate, item in results.items():
            if "states" not in item:
                lines.append(f"{name:<15}{rate:>5}  {item.get('failed') or item.get('skipped')}")
                continue
            cells = [item[key][q] for key in ("out_us", "back_us", "there_and_back_us") for q in ("p50", "p99")]
            numbers = "".join(
                f"{'-' if v is None else f'{v:.0f}':>{10 if i % 2 == 0 else 9}}" for i, v in enumerate(cells)
            )
            lines.append(f"{name:<15}{rate:>5}{numbers}{item['lost']:>6} of {item['states']}")
    return "\n".join(lines)
