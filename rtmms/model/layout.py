"""Define the columns of the compiled model's flat arrays, which kernels read and write.

A model has n joints of one degree of freedom each; row 0 is the base, row j the body that joint j moves. Each body's
compiled frame has its origin on the joint and its z axis along the joint's axis. S is therefore (0, 0, 0, 0, 0, 1) for
a revolute joint and (0, 0, 1, 0, 0, 0) for a prismatic one.

With modal bodies (rtmms.model.modal_rows) a coordinate's row may be a mode. Rows without a coordinate, sections, are
behind row n.

- topology (n + 1, 3), int64: columns T_*
- constant (n + 1, C_WIDTH), float64: columns C_*, read-only
- scratch (n + 1, S_WIDTH), float64 or complex128: columns S_*, intermediate results of one evaluation
"""

from __future__ import annotations

T_PARENT = 0
T_KIND = 1
T_IMPOSED = 2
T_WIDTH = 3
REVOLUTE = 0
PRISMATIC = 1
MODE = 2
SECTION = 3
BASE_FREE = 0
BASE_PRESCRIBED = 1
BASE_FIXED = 2

C_ROT = 0  # 9   body's frame at q = 0 -> parent's frame, by rows
C_POS = 9  # 3   m, joint in the parent's frame
C_INERTIA = 12  # 21  packed, rigid and added, about the body's origin
C_WEIGHT = 33  # kg, mass less displaced mass: what gravity pulls
C_WEIGHT_MOMENT = 34  # 3   kg m, the first moments of the same
C_STIFFNESS = 37  # N m/rad or N/m
C_REST = 38  # rad or m, where the spring is slack
C_DAMPING = 39  # N m s/rad or N s/m
C_COULOMB = 40  # N m or N
C_ROTOR = 41  # kg m2 or kg, adds to the joint's own inertia only
C_RIGID = 42  # 21  packed, the rigid part of the inertia alone
C_MASS = 63  # kg
C_MOMENT = 64  # 3   kg m
C_WIDTH = 67

S_ROT = 0  # 9   body -> parent, by rows
S_POS = 9  # 3
S_TWIST = 12  # 6   eta
S_ZETA = 18  # 6   ad_eta S qd
S_INERTIA = 24  # 21  articulated or composite, M*
S_BIAS = 45  # 6   beta*
S_U = 51  # 6   M* S
S_INVERSE = 57  # 1 / (S^T M* S + rotor); 0 for an imposed joint
S_FORCE = 58  # what is left for the joint: tau - S^T beta*
S_ACCELERATION = 59  # 6   eta'
S_GRAVITY = 65  # 3   in the body's frame
S_WRENCH = 68  # 6   on the body from outside, gravity not included
S_WORLD_POS = 74  # 3
S_WORLD_ROT = 77  # 9   body -> world, by rows
S_HELD = 86  # kg m2 or kg, what a servo solved linearly implicitly adds to the joint's own inertia
S_WIDTH = 87
