"""The fish again from Lagrange's equations in plain numpy: planar chain, slices as points with an angle. Shares the
parameters with the compiled plant, and nothing else.

L = T_bodies + 1/2 (v - u) m_f (v - u) - springs in (x, y, heading, joints); the flow's push m gamma, drag, wake and
dampers are generalised forces. First derivatives by a complex step, the momentum's own by differences.
"""

from __future__ import annotations

import numpy as np

from rtmms.model.elements import Strip, Wake
from rtmms.robots.fish import Fish, describe, stations

H = 1e-30


class PlainFish:
    def __init__(self, p: Fish) -> None:
        self.p, self.n = p, p.joints
        self.mechanism = describe(p)
        self.places = [0.0, *stations(p)]
        self.strips, self.wake = [], None
        for link, body in enumerate(self.mechanism.bodies):
            for e in body.elements:
                if isinstance(e, Strip):
                    self.strips.append((link, e.placement.position[0], e))
                elif isinstance(e, Wake):
                    self.wake = (link, e.placement.position[0], e)
        k, a = 2 * np.pi / (p.advection * p.cylinder_m / p.strouhal), p.advection * p.cylinder_m / p.strouhal
        self.k, self.a, self.drift = k, a, p.advection * p.stream_m_s
        self.gamma = 2 * a * (p.stream_m_s - self.drift) / np.tanh(np.pi * p.aspect)
        self.eps = 0.5 * (k * p.core * p.cylinder_m) ** 2

    def flow(self, x, y, t):
        u, v = self.p.stream_m_s, 0.0
        for sign, x0, y0 in (
            (-1.0, 0.0, 0.5 * self.p.aspect * self.a),
            (1.0, 0.5 * self.a, -0.5 * self.p.aspect * self.a),
        ):
            c, s = self.k * (x - x0 - self.drift * t), self.k * (y - y0)
            over = sign * self.gamma * self.k / (4 * np.pi) / (np.cosh(s) - np.cos(c) + self.eps)
            u, v = u - over * np.sinh(s), v + over * np.sin(c)
        return np.array([u, v])

    def frames(self, q):
        """Angle and origin of each link's frame, x towards the tail."""
        angle, at, out = q[2] + np.pi, q[:2], []
        for link in range(self.n + 1):
            if link:
                e = np.array([np.cos(angle), np.sin(angle)])
                at = at + e * (self.places[link] - self.places[link - 1])
                angle = angle + q[2 + link]
            out.append((angle, at))
        return out

    def point(self, q, link, x):
        angle, at = self.frames(q)[link]
        return at + x * np.array([np.cos(angle), np.sin(angle)])

    def moving(self, q, qd, link, x):
        """Axes e1, e2, place, velocity of it and the link's turning rate."""
        step = self.point(q + 1j * H * qd, link, x) if not np.iscomplexobj(q) and not np.iscomplexobj(qd) else None
        angle, _ = self.frames(q)[link]
        e1, e2 = np.array([np.cos(angle), np.sin(angle)]), np.array([-np.sin(angle), np.cos(angle)])
        if step is not None:
            return e1, e2, step.real, step.imag / H, qd[2 : 3 + link].sum()
        # the velocity without a complex step: sum of arms
        frames, v = self.frames(q), qd[:2] + 0j
        for i in range(link + 1):
            b, _ = frames[i]
            w = qd[2 : 3 + i].sum()
            arm = (self.places[i + 1] - self.places[i]) if i < link else x
            v = v + w * arm * np.array([-np.sin(b), np.cos(b)])
        return e1, e2, self.point(q, link, x), v, qd[2 : 3 + link].sum()

    def lagrangian(self, q, qd, t):
        return self.stored(q, qd, t)[3]

    def stored(self, q, qd, t):
        """Kinetic, elastic and the fluid's energy (J), and L."""
        kinetic = elastic = fluid = relative = 0.0
        for link, body in enumerate(self.mechanism.bodies):
            c = body.first_moment[0] / body.mass
            _, _, _, v, w = self.moving(q, qd, link, c)
            kinetic = kinetic + 0.5 * body.mass * (v @ v) + 0.5 * (body.inertia[2, 2] - body.mass * c * c) * w * w
        h = self.p.length_m * (1 - self.p.head) / self.n
        elastic = 0.5 * self.p.flexural_stiffness_n_m2 / h * (q[3:] @ q[3:]) + 0.5 * self.p.lateral_n_m * q[1] ** 2
        for link, x, e in self.strips:
            _, e2, place, v, w = self.moving(q, qd, link, x)
            u = self.flow(*place, t)
            m = e.added[1] * e.length
            across = e2 @ (v - u)
            current = 0.5 * m * across**2 + 0.5 * m * e.length**2 / 12 * w * w
            relative, fluid = relative + current, fluid + current + m * across * (e2 @ u)
        return kinetic, elastic, fluid, kinetic + relative - elastic

    def momentum(self, q, qd, t):
        out = np.zeros(len(q))
        for k in range(len(q)):
            out[k] = self.lagrangian(q, qd + 1j * H * np.eye(len(q))[k], t).imag / H
        return out

    def forces(self, q, qd, t):
        """Generalised forces of the flow's push, drag, wake, dampers."""
        out = np.zeros(len(q))
        dof = np.eye(len(q))

        def push(link, x, force):
            for k in range(len(q)):
                out[k] += force @ (self.point(q + 1j * H * dof[k], link, x).imag / H)

        for link, x, e in self.strips:
            e1, e2, place, v, _ = self.moving(q, qd, link, x)
            u = self.flow(*place, t)
            slope = np.column_stack([self.flow(*(place + 1j * H * d), t).imag / H for d in np.eye(2)])
            rate = self.flow(*place, t + 1j * H).imag / H
            v1, v2 = e1 @ (v - u), e2 @ (v - u)
            drag = e.length * (e.drag[0] * abs(v1) * v1 * e1 + e.drag[1] * abs(v2) * v2 * e2)
            push(link, x, e.displaced * e.length * (rate + slope @ u) - drag)
        link, x, e = self.wake
        e1, e2, place, v, _ = self.moving(q, qd, link, x)
        r = v - self.flow(*place, t)
        v1, p2 = e1 @ r, e.added[1] * (e2 @ r)
        if v1 < 0.0:
            push(link, x, p2 * v1 * e2 - 0.5 * p2 * (e2 @ r) * e1)
        h = self.p.length_m * (1 - self.p.head) / self.n
        out[3:] -= self.p.kelvin_voigt_s * self.p.flexural_stiffness_n_m2 / h * qd[3:]
        return out

    def lateral(self, q, qd, qdd, t, s, link, x):
        """Velocity across against the flow, s seconds on."""
        _, e2, place, v, _ = self.moving(q + s * qd + 0.5 * s * s * qdd, qd + s * qdd, link, x)
        return e2 @ (v - self.flow(*place, t + s))

    def couples(self, q, qd, qdd, t):
        """Generalised forces of (48): a moment on each link against its slices' lateral acceleration."""
        out = np.zeros(len(q))
        for link, x, e in self.strips:
            near, far = (
                (self.lateral(q, qd, qdd, t, s, link, x) - self.lateral(q, qd, qdd, t, -s, link, x)) / (2 * s)
                for s in (1e-4, 2e-4)
            )
            out[2 : 3 + link] -= e.couple * e.length * (4 * near - far) / 3
        return out

    def accelerations(self, q, qd, t, more=0.0):
        n = len(q)
        zero = self.momentum(q, np.zeros(n), t)
        mass = np.column_stack([self.momentum(q, row, t) - zero for row in np.eye(n)])
        d = 1e-6
        ahead = (self.momentum(q + d * qd, qd, t + d) - self.momentum(q - d * qd, qd, t - d)) / (2 * d)
        slope = np.array([self.lagrangian(q + 1j * H * row, qd + 0j, t).imag / H for row in np.eye(n)])
        return np.linalg.solve(mass, slope + self.forces(q, qd, t) + more - ahead)
