"""Features of a compiled MuJoCo model that rtmms's own engine does not simulate: found, refused by name, or left out.

`own_engine` uses it before it reads a model. `FEATURES` names each feature; a person's `ignore` lists those that are
left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from rtmms.base.errors import ModelError, UnknownNameError
from rtmms.base.spatial import Array
from rtmms.mujoco_models.channels import object_name

FEATURES: Mapping[str, str] = {
    "contact": "contacts between geoms",
    "equality": "equality constraints",
    "plugin": "plugins",
    "flex": "flexible bodies",
    "tree": "moving bodies next to a free body",
    "joint": "properties of joints",
    "ball": "springs, dampers, friction, inertia and limits of ball joints",
    "gravcomp": "gravity compensation",
    "muscle": "muscles",
    "activation": "activations and delays of actuators",
    "actuator": "laws and transmissions of actuators",
    "tendon": "properties of tendons",
    "fluid": "fluid forces on bodies without geoms of fluidshape=ellipsoid",
}
"""Features that the own engine does not simulate: the name for `ignore`, and its meaning."""

MAX_EXAMPLES = 3
"""Objects of each feature that a refusal names."""


def label(mujoco: Any, model: Any, kind: str, number: Any) -> str:
    """Return the name of an object, or its kind and number: 'joint 3'.

    Parameters
    ----------
    mujoco, model : Any
        The module and the compiled model.
    kind : str
        'JOINT', 'BODY', ... of mjtObj.
    number : Any
        Index of the object.

    Returns
    -------
    str
        The name.
    """
    return object_name(mujoco, model, kind, int(number)) or f"{kind.lower()} {number}"


def read_ignored(path: str, values: Any) -> tuple[str, ...]:
    """Return the features of `ignore`.

    Parameters
    ----------
    path : str
        The file, for errors.
    values : Any
        A text with commas or several texts.

    Returns
    -------
    tuple[str, ...]
        Names of features.

    Raises
    ------
    UnknownNameError
        A word is no feature.
    """
    texts = (
        values.split(",") if isinstance(values, str) else list(values) if isinstance(values, list | tuple) else [values]
    )
    result = tuple(str(word).strip() for word in texts if str(word).strip())
    for word in result:
        if word not in FEATURES:
            raise UnknownNameError(f"feature of ignore={','.join(result)}: {path}", word, FEATURES)
    return result


def refuse_unsupported(mujoco: Any, model: Any, path: str, ignored: Iterable[str]) -> None:
    """Refuse a model with features that the own engine does not simulate.

    Parameters
    ----------
    mujoco, model : Any
        The module and the compiled model, after `leave_out`.
    path : str
        The file, for the error.
    ignored : Iterable[str]
        Features that a person leaves out.

    Raises
    ------
    ModelError
        There are such features; one sentence names all.
    """
    result = {name: what for name, what in unsupported(mujoco, model).items() if name not in set(ignored)}
    if not result:
        return
    listed = ", ".join(f"{name} ({_examples(what)})" for name, what in result.items())
    raise ModelError(
        f"{path}: engine=rtmms does not simulate {listed}; leave these out with "
        f"--set ignore={','.join((*sorted(set(ignored)), *result))}, or run the file with engine=mujoco"
    )


def _examples(what: list[str]) -> str:
    more = len(what) - MAX_EXAMPLES
    return ", ".join(what[:MAX_EXAMPLES]) + (f" and {more} more" if more > 0 else "")


def unsupported(mujoco: Any, model: Any) -> dict[str, list[str]]:
    """Return the features that the own engine does not simulate.

    Parameters
    ----------
    mujoco, model : Any
        The module and the compiled model.

    Returns
    -------
    dict[str, list[str]]
        Examples by the name of the feature, in the order of FEATURES.
    """
    result: dict[str, list[str]] = {
        "contact": _contacts(mujoco, model), "equality": _equalities(mujoco, model), "plugin": _plugins(mujoco, model),
        "flex": [label(mujoco, model, "FLEX", k) for k in range(model.nflex)], "tree": _other_trees(mujoco, model),
        "joint": _joints(mujoco, model), "ball": _balls(mujoco, model),
        "gravcomp": [f"body '{label(mujoco, model, 'BODY', k)}'" for k in np.flatnonzero(model.body_gravcomp)],
        "fluid": _boxes_in_fluid(mujoco, model),
    }  # fmt: skip
    for k in range(model.nu):
        feature, reason = actuator_fault(mujoco, model, k)
        if feature:
            result.setdefault(feature, []).append(f"{reason} of '{label(mujoco, model, 'ACTUATOR', k)}'")
    for k in range(model.ntendon):
        reason = tendon_fault(mujoco, model, k)
        if reason:
            result.setdefault("tendon", []).append(f"{reason} of '{label(mujoco, model, 'TENDON', k)}'")
    return {name: result[name] for name in FEATURES if result.get(name)}


def leave_out(mujoco: Any, model: Any, ignored: Iterable[str]) -> None:
    """Remove from a compiled model all features that its flags disable, and those that a person ignores.

    The model changes. Bodies of other trees, actuators and tendons stay in the model: the reader passes over them by
    `kept_root`, `actuator_fault` and `tendon_fault`.

    Parameters
    ----------
    mujoco, model : Any
        The module and the compiled model.
    ignored : Iterable[str]
        Features that a person leaves out.
    """
    flags, bit, ignored = int(model.opt.disableflags), mujoco.mjtDisableBit, set(ignored)

    def is_off(name: str) -> bool:
        return bool(flags & int(getattr(bit, f"mjDSBL_{name}")))

    constraints = is_off("CONSTRAINT")
    if is_off("GRAVITY"):
        model.opt.gravity[:] = 0.0
    if is_off("SPRING"):
        for name in (
            "jnt_stiffness",
            "tendon_stiffness",
            *_present(model, "jnt_stiffnesspoly", "tendon_stiffnesspoly"),
        ):
            getattr(model, name)[:] = 0.0
    if is_off("DAMPER"):
        for name in ("dof_damping", "tendon_damping", *_present(model, "dof_dampingpoly", "tendon_dampingpoly")):
            getattr(model, name)[:] = 0.0
    if constraints or is_off("LIMIT"):
        model.jnt_limited[:], model.tendon_limited[:] = 0, 0
    if constraints or is_off("FRICTIONLOSS"):
        model.dof_frictionloss[:], model.tendon_frictionloss[:] = 0.0, 0.0
    if constraints or is_off("EQUALITY") or "equality" in ignored:
        model.eq_active0[:] = 0
    if constraints or is_off("CONTACT") or "contact" in ignored:
        model.opt.disableflags |= int(bit.mjDSBL_CONTACT)
    if is_off("CLAMPCTRL"):
        model.actuator_ctrllimited[:] = 0
    if "gravcomp" in ignored:
        model.body_gravcomp[:] = 0.0
    kinds = mujoco.mjtJoint
    for k in range(model.njnt):
        kind, dofs = int(model.jnt_type[k]), slice(*_dofs(mujoco, model, k))
        feature = {int(kinds.mjJNT_FREE): "joint", int(kinds.mjJNT_BALL): "ball"}.get(kind, "")
        if feature in ignored:
            model.jnt_stiffness[k], model.jnt_limited[k] = 0.0, 0
            for table in (model.dof_damping, model.dof_armature, model.dof_frictionloss):
                table[dofs] = 0.0


def _present(model: Any, *names: str) -> tuple[str, ...]:
    """Return the names that this version of MuJoCo has."""
    return tuple(name for name in names if hasattr(model, name))


def _dofs(mujoco: Any, model: Any, joint: int) -> tuple[int, int]:
    kinds = mujoco.mjtJoint
    count = {int(kinds.mjJNT_FREE): 6, int(kinds.mjJNT_BALL): 3}.get(int(model.jnt_type[joint]), 1)
    first = int(model.jnt_dofadr[joint])
    return first, first + count


# --- bodies --------------------------------------------------------------------------------------------------------


def moving_roots(model: Any) -> list[int]:
    """Return the moving bodies whose parent does not move.

    Parameters
    ----------
    model : Any
        The compiled model.

    Returns
    -------
    list[int]
        Their indices, in the order of the file.
    """
    weld = model.body_weldid
    return [
        body for body in range(1, model.nbody)
        if int(weld[body]) == body and int(weld[int(model.body_parentid[body])]) == 0
    ]  # fmt: skip


def is_free(mujoco: Any, model: Any, body: int) -> bool:
    """Return whether a body has a free joint.

    Parameters
    ----------
    mujoco, model : Any
        The module and the compiled model.
    body : int
        Index of the body.

    Returns
    -------
    bool
        True for a free body.
    """
    joint = int(model.body_jntadr[body])
    return joint >= 0 and int(model.jnt_type[joint]) == int(mujoco.mjtJoint.mjJNT_FREE)


def kept_root(mujoco: Any, model: Any) -> int:
    """Return the free body that is the tree's base, the first one of several.

    Parameters
    ----------
    mujoco, model : Any
        The module and the compiled model.

    Returns
    -------
    int
        Its index; 0 where no body is free.
    """
    return next((body for body in moving_roots(model) if is_free(mujoco, model, body)), 0)


def kept_bodies(mujoco: Any, model: Any) -> list[int]:
    """Return the bodies of the tree, parents first: those on the free body, or all without a free body.

    Parameters
    ----------
    mujoco, model : Any
        The module and the compiled model.

    Returns
    -------
    list[int]
        Their indices.
    """
    root = kept_root(mujoco, model)
    if root == 0:
        return list(range(1, model.nbody))
    tree_bodies = {root}
    for body in range(root + 1, model.nbody):
        if int(model.body_parentid[body]) in tree_bodies:
            tree_bodies.add(body)
    return sorted(tree_bodies)


def _other_trees(mujoco: Any, model: Any) -> list[str]:
    base = kept_root(mujoco, model)
    if base == 0:
        return []
    return [f"body '{label(mujoco, model, 'BODY', body)}'" for body in moving_roots(model) if body != base]


def _contacts(mujoco: Any, model: Any) -> list[str]:
    """Return the pairs of geoms that MuJoCo would test, by their masks; one for each pair of kinds of geoms."""
    if int(model.opt.disableflags) & int(mujoco.mjtDisableBit.mjDSBL_CONTACT):
        return []
    result = [
        f"{label(mujoco, model, 'GEOM', int(model.pair_geom1[k]))} and "
        f"{label(mujoco, model, 'GEOM', int(model.pair_geom2[k]))}" for k in range(model.npair)
    ]  # fmt: skip
    geoms: dict[tuple[int, int, int], int] = {}  # first geom of each body and masks
    for k in range(model.ngeom):
        geoms.setdefault((int(model.geom_bodyid[k]), int(model.geom_contype[k]), int(model.geom_conaffinity[k])), k)
    weld, parent = model.body_weldid, model.body_parentid
    above = [int(weld[int(parent[int(weld[body])])]) for body in range(model.nbody)]
    siblings = bool(int(model.opt.disableflags) & int(mujoco.mjtDisableBit.mjDSBL_FILTERPARENT))
    excluded = {int(item) for item in model.exclude_signature}
    rows = [(body, int(weld[body]), types, affinity, k) for (body, types, affinity), k in geoms.items()]
    for at, (a, weld_a, type_a, affinity_a, geom_a) in enumerate(rows):
        for b, weld_b, type_b, affinity_b, geom_b in rows[at + 1 :]:
            if weld_a == weld_b or not (type_a & affinity_b or type_b & affinity_a):
                continue
            related = weld_a != 0 and weld_b != 0 and (weld_a == above[b] or weld_b == above[a])
            if (related and not siblings) or (a << 16) + b in excluded or (b << 16) + a in excluded:
                continue
            result.append(f"{label(mujoco, model, 'GEOM', geom_a)} and {label(mujoco, model, 'GEOM', geom_b)}")
    return result


def _equalities(mujoco: Any, model: Any) -> list[str]:
    kinds = mujoco.mjtEq
    return [
        f"{kinds(int(model.eq_type[k])).name.removeprefix('mjEQ_').lower()} "
        f"'{label(mujoco, model, 'EQUALITY', k)}'" for k in np.flatnonzero(model.eq_active0)
    ]  # fmt: skip


def _plugins(mujoco: Any, model: Any) -> list[str]:
    """Return the plugins of bodies and geoms; those of actuators are named with the actuator."""
    bodies = [f"body '{label(mujoco, model, 'BODY', k)}'" for k in np.flatnonzero(model.body_plugin >= 0)]
    return bodies + [f"geom '{label(mujoco, model, 'GEOM', k)}'" for k in np.flatnonzero(model.geom_plugin >= 0)]


def _boxes_in_fluid(mujoco: Any, model: Any) -> list[str]:
    """Return the bodies on which MuJoCo's fluid acts by their inertia boxes."""
    if not (model.opt.density > 0.0 or model.opt.viscosity > 0.0):
        return []
    immersed = {int(model.geom_bodyid[k]) for k in np.flatnonzero(model.geom_fluid[:, 0] > 0.0)}
    return [
        f"body '{label(mujoco, model, 'BODY', body)}'" for body in kept_bodies(mujoco, model)
        if model.body_mass[body] > 0.0 and int(model.body_weldid[body]) != 0 and body not in immersed
    ]  # fmt: skip


# --- joints --------------------------------------------------------------------------------------------------------


def _joints(mujoco: Any, model: Any) -> list[str]:
    result = []
    for k in range(model.njnt):
        first, last = _dofs(mujoco, model, k)
        reasons = []
        if any(np.any(getattr(model, name)[k]) for name in _present(model, "jnt_stiffnesspoly")):
            reasons.append("nonlinear stiffness")
        if any(np.any(getattr(model, name)[first:last]) for name in _present(model, "dof_dampingpoly")):
            reasons.append("nonlinear damping")
        if any(np.any(getattr(model, name)[k] > 0.0) for name in _present(model, "jnt_springyield")):
            reasons.append("yield")
        if any(bool(getattr(model, name)[k]) for name in _present(model, "jnt_actgravcomp")):
            reasons.append("actuated gravity compensation")
        if int(model.jnt_type[k]) == int(mujoco.mjtJoint.mjJNT_FREE):
            reasons += _extras(model, k, first, last)
        if model.jnt_actfrclimited[k] and not _is_symmetric(model.jnt_actfrcrange[k]):
            reasons.append("an actuatorfrcrange that is not symmetric")
        result += [f"{reason} of '{label(mujoco, model, 'JOINT', k)}'" for reason in reasons]
    return result


def _balls(mujoco: Any, model: Any) -> list[str]:
    result = []
    for k in np.flatnonzero(model.jnt_type == int(mujoco.mjtJoint.mjJNT_BALL)):
        first, last = _dofs(mujoco, model, int(k))
        reasons = _extras(model, int(k), first, last) + (["limits"] if model.jnt_limited[k] else [])
        result += [f"{reason} of '{label(mujoco, model, 'JOINT', int(k))}'" for reason in reasons]
    return result


def _extras(model: Any, joint: int, first: int, last: int) -> list[str]:
    reasons = ["stiffness"] if model.jnt_stiffness[joint] else []
    names = {"damping": model.dof_damping, "armature": model.dof_armature, "frictionloss": model.dof_frictionloss}
    return reasons + [name for name, table in names.items() if np.any(table[first:last])]


def _is_symmetric(limits: Array) -> bool:
    return bool(limits[0] == -limits[1])


# --- actuators and tendons -----------------------------------------------------------------------------------------


def actuator_fault(mujoco: Any, model: Any, k: int) -> tuple[str, str]:
    """Return the feature that keeps an actuator from the own engine, and the reason.

    Parameters
    ----------
    mujoco, model : Any
        The module and the compiled model.
    k : int
        Index of the actuator.

    Returns
    -------
    tuple[str, str]
        ('', '') where it works.
    """
    gain, bias, dynamics, kind = mujoco.mjtGain, mujoco.mjtBias, mujoco.mjtDyn, mujoco.mjtTrn
    if int(model.actuator_plugin[k]) >= 0:
        return "plugin", "plugin"
    muscles = (
        int(model.actuator_gaintype[k]) == int(gain.mjGAIN_MUSCLE),
        int(model.actuator_biastype[k]) == int(bias.mjBIAS_MUSCLE),
        int(model.actuator_dyntype[k]) == int(dynamics.mjDYN_MUSCLE),
    )
    if any(muscles):
        return "muscle", "muscle"
    if int(model.actuator_dyntype[k]) != int(dynamics.mjDYN_NONE):
        return "activation", f"dyntype {dynamics(int(model.actuator_dyntype[k])).name.removeprefix('mjDYN_').lower()}"
    if any(float(getattr(model, name)[k]) > 0.0 for name in _present(model, "actuator_delay")):
        return "activation", "delay"
    reason = _law_fault(mujoco, model, k)
    if reason:
        return "actuator", reason
    transmission, target = int(model.actuator_trntype[k]), int(model.actuator_trnid[k, 0])
    if transmission in (int(kind.mjTRN_JOINT), int(kind.mjTRN_JOINTINPARENT)):
        return ("actuator", reason) if (reason := _joint_fault(mujoco, model, k, target)) else ("", "")
    if transmission == int(kind.mjTRN_TENDON):
        return ("tendon", "actuator at a tendon that is not supported") if tendon_fault(mujoco, model, target) else (
            ("", "") if not (model.actuator_forcelimited[k] and _is_affine(model, k)) else
            ("actuator", "forcerange of a position or velocity law at a tendon")
        )  # fmt: skip
    if transmission == int(kind.mjTRN_SITE) and int(model.actuator_trnid[k, 1]) < 0:
        return ("actuator", "position or velocity law at a site") if _is_affine(model, k) else ("", "")
    return "actuator", f"transmission {mujoco.mjtTrn(transmission).name.removeprefix('mjTRN_').lower()}"


def _law_fault(mujoco: Any, model: Any, k: int) -> str:
    gain, bias = mujoco.mjtGain(int(model.actuator_gaintype[k])), mujoco.mjtBias(int(model.actuator_biastype[k]))
    if gain != mujoco.mjtGain.mjGAIN_FIXED:
        return f"gaintype {gain.name.removeprefix('mjGAIN_').lower()}"
    if bias not in (mujoco.mjtBias.mjBIAS_NONE, mujoco.mjtBias.mjBIAS_AFFINE):
        return f"biastype {bias.name.removeprefix('mjBIAS_').lower()}"
    if bias == mujoco.mjtBias.mjBIAS_AFFINE:
        constant, position, velocity = (float(item) for item in model.actuator_biasprm[k, :3])
        if constant != 0.0:
            return "constant bias"
        if position > 0.0 or velocity > 0.0:
            return "bias that feeds back positively"
    if any(np.any(getattr(model, name)[k]) for name in _present(model, "actuator_damping", "actuator_armature")):
        return "damping or armature"
    if any(int(getattr(model, name)[k]) != 1 for name in _present(model, "actuator_ctrlnum", "actuator_outnum")):
        return "several commands or outputs"
    if int(model.opt.disableactuator) or int(model.opt.disableflags) & int(mujoco.mjtDisableBit.mjDSBL_ACTUATION):
        return "flag that disables it"
    if model.actuator_gainprm[k, 0] == 0.0 or not np.any(model.actuator_gear[k]):
        return "gain of 0"
    return ""


def _joint_fault(mujoco: Any, model: Any, k: int, joint: int) -> str:
    kinds = mujoco.mjtJoint
    if int(model.jnt_type[joint]) not in (int(kinds.mjJNT_HINGE), int(kinds.mjJNT_SLIDE)):
        return "transmission to a ball or free joint"
    at_joint = (int(mujoco.mjtTrn.mjTRN_JOINT), int(mujoco.mjtTrn.mjTRN_JOINTINPARENT))
    others = [
        other for other in range(model.nu) if other != k and int(model.actuator_trnid[other, 0]) == joint
        and int(model.actuator_trntype[other]) in at_joint
    ]  # fmt: skip
    if model.actuator_forcelimited[k] and _is_affine(model, k):
        if others:
            return "forcerange of one of several actuators at a joint"
        if not _is_symmetric(model.actuator_forcerange[k]):
            return "forcerange that is not symmetric"
    return ""


def _is_affine(model: Any, k: int) -> bool:
    """Return whether the force of actuator k depends on position or velocity."""
    return int(model.actuator_biastype[k]) != 0 and bool(np.any(model.actuator_biasprm[k, 1:3]))


def tendon_fault(mujoco: Any, model: Any, k: int) -> str:
    """Return why the own engine does not simulate a tendon.

    Parameters
    ----------
    mujoco, model : Any
        The module and the compiled model.
    k : int
        Index of the tendon.

    Returns
    -------
    str
        '' where it does, or where the tendon has no effect.
    """
    if not acts(mujoco, model, k):
        return ""
    first = int(model.tendon_adr[k])
    wraps = {int(item) for item in model.wrap_type[first : first + int(model.tendon_num[k])]}
    kinds = mujoco.mjtWrap
    for kind, reason in (
        (kinds.mjWRAP_JOINT, "coupling of joints (fixed)"), (kinds.mjWRAP_PULLEY, "pulley"),
        (kinds.mjWRAP_SPHERE, "wrapping geom"), (kinds.mjWRAP_CYLINDER, "wrapping geom"),
    ):  # fmt: skip
        if int(kind) in wraps:
            return reason
    if model.tendon_limited[k]:
        return "limits"
    if model.tendon_frictionloss[k]:
        return "frictionloss"
    properties = {
        "armature": ("tendon_armature",),
        "nonlinear stiffness or damping": ("tendon_stiffnesspoly", "tendon_dampingpoly"),
        "yield": ("tendon_springyield",), "actuatorfrcrange": ("tendon_actfrclimited",),
    }  # fmt: skip
    for reason, names in properties.items():
        if any(np.any(getattr(model, name)[k]) for name in _present(model, *names)):
            return reason
    sites = [int(model.wrap_objid[item]) for item in range(first, first + int(model.tendon_num[k]))]
    bodies = {int(model.body_weldid[int(model.site_bodyid[site])]) for site in sites}
    tree_bodies = kept_bodies(mujoco, model)
    if kept_root(mujoco, model) and any(int(model.site_bodyid[site]) not in tree_bodies for site in sites):
        return "a site that is not on the free body's tree"
    if len(bodies) == 1:
        return "sites of one rigid body"
    lower, upper = (float(item) for item in model.tendon_lengthspring[k])
    if lower != upper and model.tendon_stiffness[k] and (lower > 0.0 or _feedback(mujoco, model, k) != (0.0, 0.0) or
                                                       model.tendon_damping[k]):  # fmt: skip
        return "springlength with a range, and damping or a lower end"
    if not tendon_stiffness(mujoco, model, k) and (model.tendon_damping[k] or _feedback(mujoco, model, k)[1]):
        return "damping without stiffness"
    return ""


def acts(mujoco: Any, model: Any, k: int) -> bool:
    """Return whether a tendon has any effect on the motion.

    Parameters
    ----------
    mujoco, model : Any
        The module and the compiled model.
    k : int
        Index of the tendon.

    Returns
    -------
    bool
        True where it has.
    """
    driven = [item for item in range(model.nu) if is_at_tendon(mujoco, model, item, k)]
    armature = any(bool(np.any(getattr(model, name)[k])) for name in _present(
        model, "tendon_armature", "tendon_stiffnesspoly", "tendon_dampingpoly"
    ))  # fmt: skip
    return bool(
        model.tendon_stiffness[k] or model.tendon_damping[k] or model.tendon_limited[k] or model.tendon_frictionloss[k]
        or armature or driven
    )  # fmt: skip


def is_at_tendon(mujoco: Any, model: Any, actuator: int, tendon: int) -> bool:
    """Return whether an actuator pulls a tendon.

    Parameters
    ----------
    mujoco, model : Any
        The module and the compiled model.
    actuator : int
        Index of the actuator.
    tendon : int
        Index of the tendon.

    Returns
    -------
    bool
        True where it does.
    """
    kind = int(model.actuator_trntype[actuator])
    return kind == int(mujoco.mjtTrn.mjTRN_TENDON) and int(model.actuator_trnid[actuator, 0]) == tendon


def _feedback(mujoco: Any, model: Any, k: int) -> tuple[float, float]:
    """Return N/m and N s/m of the position and velocity laws at tendon k."""
    stiffness = damping = 0.0
    for item in range(model.nu):
        if is_at_tendon(mujoco, model, item, k) and _is_affine(model, item):
            square = float(model.actuator_gear[item, 0]) ** 2
            stiffness -= square * float(model.actuator_biasprm[item, 1])
            damping -= square * float(model.actuator_biasprm[item, 2])
    return stiffness, damping


def tendon_stiffness(mujoco: Any, model: Any, k: int) -> float:
    """Return the stiffness of a tendon with the position laws at it.

    Parameters
    ----------
    mujoco, model : Any
        The module and the compiled model.
    k : int
        Index of the tendon.

    Returns
    -------
    float
        N/m.
    """
    return float(model.tendon_stiffness[k]) + _feedback(mujoco, model, k)[0]


def tendon_law(mujoco: Any, model: Any, k: int) -> tuple[float, float, float, bool]:
    """Return stiffness, damping and rest length of a tendon, and whether it pushes.

    The sum of its spring and of the position laws at it is one spring.

    Parameters
    ----------
    mujoco, model : Any
        The module and the compiled model.
    k : int
        Index of the tendon.

    Returns
    -------
    tuple[float, float, float, bool]
        N/m, N s/m, m, and whether it pushes.
    """
    spring, (stiffness, damping) = float(model.tendon_stiffness[k]), _feedback(mujoco, model, k)
    lower, upper = (float(item) for item in model.tendon_lengthspring[k])
    total = spring + stiffness
    rest_length = spring * upper / total if total > 0.0 else upper
    return total, float(model.tendon_damping[k]) + damping, rest_length, lower == upper or stiffness > 0.0
