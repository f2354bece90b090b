"""Trees with modal bodies in plain numpy: poses from the description, energy from the poses, Lagrange's equations.

Shares the description with the package and nothing else. Only trees on a fixed base, whose coordinates are all joints'
and modes'.
"""

from __future__ import annotations

import numpy as np

from rtmms.model.description import Mechanism

H = 1e-30


def exp_so3(theta):
    """Rotation of a vector, real or complex, by the series that holds everywhere."""
    x, y, z = theta
    k = np.array([[0 * x, -z, y], [z, 0 * x, -x], [-y, x, 0 * x]])
    n = np.sqrt(theta @ theta)
    if abs(n) < 1e-12:
        return np.eye(3) + k + 0.5 * k @ k
    return np.eye(3) + np.sin(n) / n * k + (1 - np.cos(n)) / n**2 * k @ k


class Plain:
    def __init__(self, mechanism: Mechanism, names: tuple[str, ...]) -> None:
        self.mechanism, self.names = mechanism, list(names)
        self.bodies = {body.name: body for body in mechanism.bodies}
        self.gravity = np.array(mechanism.gravity, dtype=float)

    def poses(self, q):
        """(body, R, p) of every body and section."""
        message = {}
        child = {joint.child for joint in self.mechanism.joints}
        base = next(b.name for b in self.mechanism.bodies if b.name not in child)
        message[base] = (np.eye(3), np.zeros(3))
        self._sections(base, q, message)
        left = list(self.mechanism.joints)
        while left:
            joint = next(j for j in left if j.parent in message)
            left.remove(joint)
            r, p = message[joint.parent]
            r0, p0 = r @ joint.placement.rotation, p + r @ joint.placement.position
            if joint.type != "fixed":
                value, axis = q[self.names.index(joint.name)], joint.axes()[0]
                axis = axis / np.linalg.norm(axis)
                if joint.type == "prismatic":
                    p0 = p0 + r0 @ axis * value
                else:
                    r0 = r0 @ exp_so3(axis * value)
            message[joint.child] = (r0, p0)
            self._sections(joint.child, q, message)
        return message

    def _sections(self, name, q, result):
        modal = self.bodies[name].modal
        if modal is None:
            return
        r, p = result[name]
        values = np.array([q[self.names.index(f"{name}.{mode}")] for mode in modal.names])
        for section in modal.sections:
            moved = values @ np.asarray(section.shape)
            result[section.body.name] = (
                r @ exp_so3(moved[3:]) @ section.placement.rotation, p + r @ (section.placement.position + moved[:3])
            )  # fmt: skip
            self.bodies[section.body.name] = section.body

    def energy(self, q, qd):
        """Kinetic, potential (gravity and springs)."""
        kinetic = potential = 0.0
        if np.iscomplexobj(q) or np.iscomplexobj(qd):  # a step of its own for the rates
            d = 1e-5
            ahead, behind = (self._shifted(q, qd, s) for s in (d, -d))
            far, back = (self._shifted(q, qd, s) for s in (2 * d, -2 * d))
            rates = {n: tuple((8 * (ahead[n][k] - behind[n][k]) - (far[n][k] - back[n][k])) / (12 * d) for k in (0, 1))
                     for n in ahead}  # fmt: skip
        else:
            step = self.poses(q + 1j * H * qd)
            rates = {n: (r.imag / H, p.imag / H) for n, (r, p) in step.items()}
        for name, (r, p) in self.poses(q).items():
            body = self.bodies[name]
            rd, pd = rates[name]
            spin = rd @ r.T
            w = np.array([spin[2, 1], spin[0, 2], spin[1, 0]])
            current = r.T @ w
            moment = np.asarray(body.first_moment, dtype=float)
            inertia = np.asarray(body.inertia, dtype=float)
            kinetic = (
                kinetic + 0.5 * body.mass * pd @ pd + pd @ np.cross(w, r @ moment) + 0.5 * current @ inertia @ current
            )
            potential = potential - self.gravity @ (body.mass * p + r @ moment)
            if body.modal is not None:
                for mode, k in zip(
                    body.modal.names, np.zeros(len(body.modal.names)) + body.modal.stiffness, strict=True
                ):
                    potential = potential + 0.5 * k * q[self.names.index(f"{name}.{mode}")] ** 2
        return kinetic, potential

    def _shifted(self, q, qd, d):
        return self.poses(q + d * qd)

    def momentum(self, q, qd):
        """dT/dqd: T is quadratic in qd, so differences of it are exact."""
        t = lambda v: self.energy(q, v)[0]
        return np.array([(t(qd + e) - t(qd - e)) / 2.0 for e in np.eye(len(q))])

    def accelerations(self, q, qd, force):
        n = len(q)
        zero = self.momentum(q, np.zeros(n))
        mass = np.column_stack([self.momentum(q, e) - zero for e in np.eye(n)])
        d = 1e-5
        lag = lambda x: float(np.subtract(*self.energy(x, qd)))
        slope = np.array([(8 * (lag(q + d * e) - lag(q - d * e)) - (lag(q + 2 * d * e) - lag(q - 2 * d * e))) / (12 * d)
                          for e in np.eye(n)])  # fmt: skip
        p = lambda s: self.momentum(q + s * qd, qd)
        drift = (8 * (p(d) - p(-d)) - (p(2 * d) - p(-2 * d))) / (12 * d)
        return np.linalg.solve(mass, slope + force - drift)
