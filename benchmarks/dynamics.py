"""How long one evaluation takes: our recursion beside Pinocchio's C++ on the same chains, in the same run.

Times are the least of several batches. Ours run inside one compiled loop, so that the call from Python is not in them;
Pinocchio's are called from Python, and the time of an empty call of the same shape is taken off. What the peer leaves
out is said in the result: its inertias are rigid bodies', ours full symmetric 6 x 6 (added mass), on the same chain.
"""

from __future__ import annotations

import json
import math
import sys
import time
from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np

from rtmms.dynamics.recursion import configure, outward, solve
from rtmms.jit import kernel
from rtmms.mechanism.equations import evaluate
from rtmms.model.compiled import Model, State
from rtmms.model.compiler import compile_model
from rtmms.model.description import Mechanism
from rtmms.model.layout import C_MASS, C_MOMENT, C_POS, C_RIGID, C_ROT
from rtmms.model.random_tree import random_state, random_tree
from rtmms.robots import eel, moth
from rtmms.spatial import unpack_inertia

from . import path

SIZES = (12, 24, 36, 72, 144)


@kernel
def _direct(
    times: int, topology: Any, constant: Any, mode: int, imposed: Any, drive: Any, orientation: Any, gravity: Any,
    q: Any, twist: Any, qd: Any, s: Any, work: Any, qdd: Any, torque: Any,
) -> None:  # fmt: skip
    for _ in range(times):
        configure(topology, constant, orientation, gravity, q, s)
        outward(topology, twist, qd, s)
        solve(topology, constant, mode, imposed, drive, q, qd, 0.0, s, work, qdd, torque)


@kernel
def evaluations(times: int, system: Any, state: Any, t: float, rate: Any) -> None:
    for _ in range(times):
        evaluate(system, state, t, 0.0, rate)


def best(run: Callable[[int], None], batch: int, batches: int = 15) -> float:
    """us for one of `batch`, least of `batches`."""
    run(1)
    least = math.inf
    for _ in range(batches):
        start = time.perf_counter_ns()
        run(batch)
        least = min(least, time.perf_counter_ns() - start)
    return least / batch / 1e3


def chain(joints: int) -> Mechanism:
    """A free chain of revolute joints, full symmetric 6 x 6 inertias."""
    return random_tree(joints, joints, branching=0.0, prismatic=0.0)


def ours(model: Model, state: State) -> float:
    """us of one direct dynamics, compiled part."""
    n = model.n
    arguments = (
        model.topology, model.constant, model.base_mode, np.zeros(n, dtype=bool), np.ones(n), state.orientation,
        model.gravity, state.q, state.twist, state.qd, model.scratch(), np.zeros((6, 6)), np.zeros(n), np.zeros(n),
    )  # fmt: skip
    return best(lambda times: _direct(times, *arguments), max(1, 20000 // n))


def peer_of(ours: Model, state: State) -> tuple[Any, Any, Any, Any, Any] | None:
    """Pinocchio, its model of a chain, its data, q and v; None where it is not installed.

    Its fastest joint, RZ, in the same frames as ours; the rigid part of the inertias.
    """
    try:
        pin: Any = import_module("pinocchio")
    except ImportError:
        return None
    model, last = pin.Model(), 0
    for row, c in enumerate(ours.constant):
        kind = pin.JointModelRZ() if row else pin.JointModelFreeFlyer()
        place = pin.SE3(c[C_ROT : C_ROT + 9].reshape(3, 3), c[C_POS : C_POS + 3])
        last = model.addJoint(last, kind, place, f"joint{row}")
        rigid = unpack_inertia(c[C_RIGID : C_RIGID + 21])
        centre = c[C_MOMENT : C_MOMENT + 3] / c[C_MASS]
        central = rigid[3:, 3:] - c[C_MASS] * (centre @ centre * np.eye(3) - np.outer(centre, centre))
        model.appendBodyToJoint(last, pin.Inertia(c[C_MASS], centre, central), pin.SE3.Identity())
    w, x, y, z = state.orientation
    q = np.array([*state.position, x, y, z, w, *state.q])
    return pin, model, model.createData(), q, np.array([*state.twist, *state.qd])


def pinocchio(ours: Model, state: State) -> dict[str, float] | None:
    """us of Pinocchio's aba, rnea and crba on a chain, the call's own time taken off; None where it is not installed:
    see `peer_of`."""
    peer = peer_of(ours, state)
    if peer is None:
        return None
    pin, model, data, q, v = peer
    a = np.ones(model.nv)

    def call(function: Callable[..., Any], *arguments: Any) -> Callable[[int], None]:
        def run(times: int) -> None:
            for _ in range(times):
                function(model, data, *arguments)

        return run

    batch = max(1, 20000 // len(state.q))
    # an empty call of the same shape: the unpacking of the same arguments, and next to no work
    tiny = pin.Model()
    tiny_data, none = tiny.createData(), np.zeros(0)

    def empty(times: int) -> None:
        for _ in range(times):
            pin.aba(tiny, tiny_data, none, none, none)

    overhead = best(empty, batch)
    return {
        "aba": best(call(pin.aba, q, v, a), batch) - overhead,
        "rnea": best(call(pin.rnea, q, v, a), batch) - overhead,
        "crba": best(call(pin.crba, q), batch) - overhead,
        "call": overhead,
    }


def robot(plant: Any) -> float:
    """us of one evaluation of a plant: laws, fluid, recursion."""
    rate = np.zeros(12 + 2 * plant.model.n)
    arguments = (plant.system, plant.vector, 0.5, rate)
    return best(lambda times: evaluations(times, *arguments), 1000)


def measure() -> dict[str, Any]:
    """Every number of this benchmark."""
    sizes: dict[str, Any] = {}
    for joints in SIZES:
        model = compile_model(chain(joints))
        state = random_state(model, joints)
        sizes[str(joints)] = {"rtmms_us": ours(model, state), "pinocchio_us": pinocchio(model, state)}
    x, y = np.log(list(SIZES)), np.log([sizes[str(joints)]["rtmms_us"] for joints in SIZES])
    flapping = moth.load()

    def period(times: int) -> None:
        for _ in range(40 * times):
            flapping.step(flapping.neutral)

    return {
        "forward_dynamics": sizes,
        "growth_exponent": float(np.polyfit(x, y, 1)[0]),
        "eel_evaluation_us": robot(eel.load()),
        "moth_evaluation_us": robot(flapping),
        "moth_period_ms": best(period, 1, 5) / 1e3,
        "steps": path.measure(),
        "peer_leaves_out": "added mass (full symmetric 6 x 6 inertias), and any fluid",
    }


def run(as_json: bool = False) -> int:
    """Measure and print; 0."""
    result = measure()
    if as_json:
        print(json.dumps(result))
        return 0
    print("forward dynamics of a free chain, us (6 + n degrees of freedom)")
    print(f"{'joints':>8}{'rtmms':>10}{'aba':>10}{'rnea':>10}{'crba':>10}   (Pinocchio, its call taken off)")
    for joints, row in result["forward_dynamics"].items():
        peer = row["pinocchio_us"] or {}
        others = "".join(f"{peer[name]:10.2f}" if name in peer else f"{'-':>10}" for name in ("aba", "rnea", "crba"))
        print(f"{joints:>8}{row['rtmms_us']:10.2f}{others}")
    print(f"growth: joints to the power {result['growth_exponent']:.3f}")
    print(f"eel, one evaluation with 13 strips of 10 nodes: {result['eel_evaluation_us']:.2f} us")
    print(f"moth, one evaluation: {result['moth_evaluation_us']:.2f} us")
    print(f"moth, one period of 0.04 s, 400 steps of RK4: {result['moth_period_ms']:.2f} ms")
    print(path.table(result["steps"]))
    print(f"the peer leaves out: {result['peer_leaves_out']}")
    return 0


if __name__ == "__main__":
    sys.exit(run("--json" in sys.argv))
