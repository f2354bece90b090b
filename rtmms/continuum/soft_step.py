"""The equations and the step of a tree whose bodies carry rods by strain modes.

state (13 + 2 N,), rate (12 + 2 N,) as of a tree (rtmms.mechanism.group) of N coordinates: n joints, then m of each rod.
"""

from __future__ import annotations

from typing import Any

from rtmms.continuum.condense import condense, root_motion, show
from rtmms.continuum.kinematics import carry_along
from rtmms.continuum.layout import K_WIDTH, P_WIDTH, TOLD
from rtmms.continuum.rod_tendons import PULLED, lose, place_on_rod, pull_rods
from rtmms.continuum.strain_modes import strain
from rtmms.dynamics.recursion import configure, outward, place, solve
from rtmms.fluids.immersed import FLUID, act
from rtmms.jit import kernel
from rtmms.mechanism.equations import TREE, WORK
from rtmms.mechanism.group import displace, lead, normalise
from rtmms.mechanism.joint_laws import HOLD, LAW, follow, reference
from rtmms.mechanism.step import finite
from rtmms.mechanism.tendons import TENDONS
from rtmms.memory import INTEGER, Layout, model, number, part, scratch, state, whole
from rtmms.model.layout import C_WIDTH, S_ACCELERATION, S_HELD
from rtmms.spatial import cross, quaternion_columns

SOUND, NOT_FINITE = 0, 2
POSED = 12
SOFT = Layout(
    "Soft",
    model("carriers", "rods", dtype=INTEGER), model("places", "rods", POSED),
    model("sections", "rods", "along", K_WIDTH), model("inner", "cell", "cell"), model("lengths", "rods", unit="m"),
    model("rests", "rods", "along", 6),
    model("shapes", "rods", "m", "along", 6), model("stiffs", "rods", "m", "m"), model("dampings", "rods"),
    model("current", 3, unit="m/s"),
)  # fmt: skip
"""The rods. carriers: rows of the model; places: rotation (9) and position (3) of their roots there; sections: see
rtmms.continuum.layout."""
ROOM = Layout(
    "Room",
    scratch("constant", "rows", C_WIDTH), scratch("points", "rods", "along", P_WIDTH),
    scratch("jacobian", "rods", "m", "along", 6), scratch("mine", "along", 6), scratch("mass", "6 + m", "6 + m"),
    scratch("left", "6 + m"), scratch("told", "rods", TOLD), scratch("head", 3, 6), scratch("six", 6),
    scratch("gain", "rods", "m", 7), scratch("squares", 3, 6, 6),
)  # fmt: skip
"""Of one evaluation. constant: the model's, with the rods' inertia added."""
MOTION = Layout(
    "SoftMotion",
    state("vector", "13 + 2 * (n + rods * m)"), scratch("rate", "12 + 2 * (n + rods * m)"),
    scratch("one", "13 + 2 * (n + rods * m)"), scratch("two", "13 + 2 * (n + rods * m)"),
)  # fmt: skip
SYSTEM = Layout(
    "SoftSystem",
    part("motion", MOTION), part("hold", HOLD), part("tree", TREE), part("law", LAW), part("fluid", FLUID),
    part("work", WORK), part("soft", SOFT), part("room", ROOM), part("tendons", TENDONS), part("pulled", PULLED),
    number("dt", unit="s"), whole("memory"),
)  # fmt: skip
"""All that a `SoftTree` steps with; tendons and pulled where it has tendons."""


@kernel
def evaluate(system: Any, state: Any, t: float, implicit: float, rate: Any) -> None:
    """Rate of a state at time t."""
    tree, law, hold, fluid, work, soft, room = (
        system.tree, system.law, system.hold, system.fluid, system.work, system.soft, system.room
    )  # fmt: skip
    topology, constant, base_mode, imposed = tree.topology, tree.constant, tree.base_mode, tree.imposed
    s, base, qdd, torque, q, qd, drive = work.s, work.base, work.qdd, work.torque, work.q, work.qd, work.drive
    carriers, places, sections, inner, lengths = soft.carriers, soft.places, soft.sections, soft.inner, soft.lengths
    rests, shapes, stiffs, dampings, current = soft.rests, soft.shapes, soft.stiffs, soft.dampings, soft.current
    own, points, jacobian, mine, mass, left = (
        room.constant, room.points, room.jacobian, room.mine, room.mass, room.left
    )  # fmt: skip
    told, head, six, gain, squares = room.told, room.head, room.six, room.gain, room.squares
    n, m, total = topology.shape[0] - 1, shapes.shape[1], (state.shape[0] - 13) // 2
    for j in range(n):
        if imposed[j]:
            q[j], qd[j], drive[j] = reference(law, hold, hold.coast, j, t)
        else:
            q[j], qd[j], drive[j] = state[7 + j], state[13 + total + j], hold.torque[j]
            s[j + 1, S_HELD] = 0.0
    orientation, twist = state[3:7], state[7 + total : 13 + total]
    configure(topology, constant, orientation, tree.gravity, q, s)
    outward(topology, twist, qd, s)
    place(topology, state[0:3], orientation, s)
    if fluid.rows.shape[0] > 0 or fluid.tethers.shape[0] > 0:
        act(fluid, t, s)
    for j in range(n + 1):
        for k in range(constant.shape[1]):
            own[j, k] = constant[j, k]
    pull_all(system, system.tendons, state, t - hold.start)
    for r in range(carriers.shape[0]):
        first = n + r * m
        root_motion(places[r], s, carriers[r], current, head)
        rod = (sections[r], inner, lengths[r], rests[r], shapes[r], stiffs[r], dampings[r])
        mine_ = (points[r], jacobian[r], mine, mass, left, told[r], head, six, gain[r])
        modes, rates = state[7 + first : 7 + first + m], state[13 + total + first : 13 + total + first + m]
        condense(rod, mine_, modes, rates, implicit, wrench_on(system.pulled, r))
        show(places[r], mass, left, s, carriers[r], own, squares)
    solve(topology, own, base_mode, imposed, drive, q, qd, implicit, s, base, qdd, torque)
    columns = quaternion_columns(state[3], state[4], state[5], state[6])
    for k in range(3):
        rate[k] = columns[3 * k] * twist[0] + columns[3 * k + 1] * twist[1] + columns[3 * k + 2] * twist[2]
        rate[3 + k] = twist[3 + k]
    for k in range(6):
        rate[6 + total + k] = s[0, S_ACCELERATION + k]
    for j in range(n):
        rate[6 + j], rate[12 + total + j] = qd[j], qdd[j]
    for r in range(carriers.shape[0]):
        root_acceleration(places[r], s, carriers[r], six)
        for a in range(m):
            at = n + r * m + a
            value = gain[r, a, 6]
            for k in range(6):
                value -= gain[r, a, k] * six[k]
            rate[6 + at], rate[12 + total + at] = state[13 + total + at], value


@kernel
def wrench_on(pulled: Any, r: int) -> Any:
    """Of tendons on the points of rod r; None where there are none."""
    if pulled is not None:
        return pulled.wrench[r]
    return None


@kernel
def pull_all(system: Any, tendons: Any, state: Any, elapsed: float) -> None:
    """The tendons' forces on bodies and rods. tendons: an argument so that it is known when compiled."""
    if tendons is not None:
        soft, room, s = system.soft, system.room, system.work.s
        n, m, total = system.tree.topology.shape[0] - 1, soft.shapes.shape[1], (state.shape[0] - 13) // 2
        for r in range(soft.carriers.shape[0]):
            first, points = n + r * m, room.points[r]
            root_motion(soft.places[r], s, soft.carriers[r], soft.current, room.head)
            modes, rates = state[7 + first : 7 + first + m], state[13 + total + first : 13 + total + first + m]
            strain(soft.rests[r], soft.shapes[r], modes, rates, points)
            carry_along(soft.inner, soft.lengths[r], room.head[2], points)
            place_on_rod(tendons, r, soft.places[r], soft.carriers[r], room.head, points, s)
        pull_rods(tendons, system.pulled, elapsed, soft.carriers, soft.places, room.points, s)


@kernel
def root_acceleration(place_: Any, s: Any, j: int, out: Any) -> None:
    """out (6,): the component derivative of the root's twist."""
    t = S_ACCELERATION
    wx, wy, wz = s[j, t + 3], s[j, t + 4], s[j, t + 5]
    cx, cy, cz = cross(wx, wy, wz, place_[9], place_[10], place_[11])
    vx, vy, vz = s[j, t] + cx, s[j, t + 1] + cy, s[j, t + 2] + cz
    for k in range(3):
        a, b, c = place_[k], place_[k + 3], place_[k + 6]
        out[k], out[k + 3] = a * vx + b * vy + c * vz, a * wx + b * wy + c * wz


@kernel
def euler(system: Any, state: Any, t: float, h: float, rate: Any, out: Any) -> None:
    """Linearly implicit Euler from t on; out may be state."""
    evaluate(system, state, t, h, rate)
    lead(state, rate, h)
    displace(state, rate, h, out)
    follow(system, out, t + h)


@kernel
def take_step(system: Any) -> int:
    """In one part and in two, extrapolated (`implicit2` of trees). The state stays as it is where it fails."""
    motion, t, dt = system.motion, system.hold.start, system.dt
    state, rate, one, two = motion.vector, motion.rate, motion.one, motion.two
    euler(system, state, t, dt, rate, one)
    h = 0.5 * dt
    euler(system, state, t, h, rate, two)
    euler(system, two, t + h, h, rate, two)
    for k in range(state.shape[0]):
        two[k] = 2.0 * two[k] - one[k]
    normalise(two)
    follow(system, two, t + dt)
    if not finite(two):
        return NOT_FINITE
    lose(system.pulled, system.tendons, dt)  # of the second half's beginning: what extrapolation makes of the three
    for k in range(state.shape[0]):
        state[k] = two[k]
    return SOUND
