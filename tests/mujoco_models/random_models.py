"""Random MJCF files of what our own engine simulates: joints, inertias, orientations, actuators, tendons, settings."""

from __future__ import annotations

from typing import Any

import numpy as np

SIZES = {"sphere": 1, "box": 3, "capsule": 2, "cylinder": 2, "ellipsoid": 3}
SEQUENCES = ("xyz", "XYZ", "zyx", "ZYX", "xzy", "yXz")
DEPTH = 3
"""Bodies of a branch below the root."""


def _text(*values: Any) -> str:
    return " ".join(f"{value:.6g}" for value in np.hstack(values))


class RandomModel:
    """A model with bodies, joints, sites, actuators and a tendon by one seed.

    Parameters
    ----------
    seed : int
        Decides all of it.

    Attributes
    ----------
    text : str
        The file.
    """

    def __init__(self, seed: int) -> None:
        self._random = np.random.default_rng(seed)
        self._degree = 57.3 if self._chance(0.5) else 1.0
        self._count = 0
        self._joints: list[str] = []
        self._sites: list[str] = []
        self._is_free = self._chance(0.5)
        options = [f'angle="{"degree" if self._degree > 1.0 else "radian"}"']
        options += [f'eulerseq="{self._random.choice(SEQUENCES)}"'] * self._chance(0.4)
        options += ['boundmass="0.05" boundinertia="0.0005"'] * self._chance(0.3)
        options += ['settotalmass="7.5"'] * self._chance(0.2)
        options += ['inertiafromgeom="true"'] * self._chance(0.2)
        gravity = f'gravity="{_text(5.0 * self._normal(3))}"' if self._chance(0.6) else ""
        tree = self._body(0)
        tendon, pull = self._tendon()
        drives = [self._actuator(name) for name in self._joints]
        self.text = f"""<mujoco>
<compiler {" ".join(options)}/>
<option timestep="0.001" integrator="RK4" {gravity}><flag contact="disable"/></option>
<worldbody>{tree}</worldbody>
{tendon}
<actuator>{"".join(drives)}{pull}</actuator>
</mujoco>"""

    def _chance(self, share: float) -> bool:
        return bool(self._random.random() < share)

    def _normal(self, count: int) -> Any:
        return self._random.normal(size=count)

    def _within(self, low: float, high: float) -> float:
        return float(self._random.uniform(low, high))

    def _angle(self, size: float) -> float:
        return float(size * self._degree * self._random.normal())

    def _name(self, kind: str) -> str:
        self._count += 1
        return f"{kind}{self._count}"

    def _orientation(self) -> str:
        return str(self._random.choice([
            "", f'quat="{_text(self._normal(4))}"', f'euler="{_text([self._angle(0.7) for _ in range(3)])}"',
            f'axisangle="{_text(self._normal(3), self._angle(1.0))}"', f'xyaxes="{_text(self._normal(6))}"',
            f'zaxis="{_text(self._normal(3))}"',
        ]))  # fmt: skip

    def _geom(self) -> str:
        mass = str(self._random.choice([f'mass="{_text(self._within(0.2, 2.0))}"', 'density="700"', ""]))
        kind = str(self._random.choice([*SIZES, "fromto"]))
        if kind == "fromto":
            kind = str(self._random.choice(["capsule", "cylinder", "box", "ellipsoid"]))
            shape = f'fromto="{_text(0.2 * self._normal(6))}" size="{_text(self._within(0.02, 0.06))}"'
        else:
            size = self._random.uniform(0.03, 0.12, SIZES[kind])
            shape = f'size="{_text(size)}" pos="{_text(0.1 * self._normal(3))}" {self._orientation()}'
        return f'<geom type="{kind}" {shape} {mass} contype="0" conaffinity="0"/>'

    def _joint(self) -> str:
        name, turns = self._name("j"), self._chance(0.75)
        self._joints.append(name)
        offset = lambda: _text(self._angle(0.3) if turns else 0.1 * self._random.normal())
        parts = [f'name="{name}" type="{"hinge" if turns else "slide"}" axis="{_text(self._normal(3))}"']
        parts += [f'pos="{_text(0.1 * self._normal(3))}"']
        parts += [f'damping="{_text(self._within(0.0, 0.3))}"'] * self._chance(0.4)
        parts += [f'stiffness="{_text(self._within(0.0, 5.0))}"'] * self._chance(0.4)
        parts += [f'springref="{offset()}"'] * self._chance(0.3)
        parts += [f'ref="{offset()}"'] * self._chance(0.3)
        parts += [f'armature="{_text(self._within(0.001, 0.05))}"'] * self._chance(0.4)
        return f"<joint {' '.join(parts)}/>"

    def _inertial(self) -> str:
        half = 0.05 * self._normal(9).reshape(3, 3)
        i = half @ half.T + 0.05 * np.eye(3)
        head = f'<inertial mass="{_text(self._within(0.3, 2.0))}" pos="{_text(0.1 * self._normal(3))}"'
        if self._chance(0.5):
            return f'{head} fullinertia="{_text(i[0, 0], i[1, 1], i[2, 2], i[0, 1], i[0, 2], i[1, 2])}"/>'
        return f'{head} {self._orientation()} diaginertia="{_text(np.linalg.eigvalsh(i))}"/>'

    def _body(self, depth: int) -> str:
        parts = [f'<body name="{self._name("b")}" pos="{_text(0.3 * self._normal(3))}" {self._orientation()}>']
        if depth == 0 and self._is_free:
            parts.append("<freejoint/>")
        else:
            count = int(self._random.choice([0, 1, 1, 1, 2])) if depth else 1
            parts += [self._joint() for _ in range(count)]
        parts += [self._inertial()] * self._chance(0.3)
        parts += [self._geom() for _ in range(int(self._random.integers(1, 3)))]
        self._sites.append(self._name("s"))
        parts.append(f'<site name="{self._sites[-1]}" pos="{_text(0.1 * self._normal(3))}"/>')
        if depth < DEPTH:
            parts += [self._body(depth + 1) for _ in range(int(self._random.choice([0, 1, 1, 2])))]
        return "\n".join([*parts, "</body>"])

    def _actuator(self, joint: str) -> str:
        parts = [f'joint="{joint}"'] + [f'gear="{_text(self._within(0.5, 3.0))}"'] * self._chance(0.5)
        parts += ['ctrllimited="true" ctrlrange="-.5 .5"'] * self._chance(0.4)
        parts += ['forcelimited="true" forcerange="-.7 .7"'] * self._chance(0.3)
        affine = _text(0.0, -self._within(0.0, 3.0), -self._within(0.0, 0.2))
        kind = str(self._random.choice([
            "", "motor", f'position kp="{_text(self._within(1.0, 8.0))}"',
            f'velocity kv="{_text(self._within(0.05, 0.5))}"',
            f'general biastype="affine" gainprm="{_text(self._within(1.0, 3.0))}" biasprm="{affine}"',
        ]))  # fmt: skip
        return f"<{kind} {' '.join(parts)}/>" if kind else ""

    def _tendon(self) -> tuple[str, str]:
        """A spring along three sites, and the actuator that pulls it."""
        if len(self._sites) < 3 or self._chance(0.5):
            return "", ""
        sites = "".join(f'<site site="{name}"/>' for name in self._random.choice(self._sites, 3, replace=False))
        law = f'stiffness="{_text(self._within(0.0, 20.0))}" damping="{_text(self._within(0.0, 0.5))}"'
        text = f'<tendon><spatial name="t" {law} springlength="0.1">{sites}</spatial></tendon>'
        return text, '<motor tendon="t" gear="2"/>' * self._chance(0.5)
