"""Define the columns of the arrays that kernels of continuous bodies read and write, one row for each point."""

from __future__ import annotations

# section, constant, in the section's frame: e1 along the body towards its tail
K_MASS = 0  # kg/m
K_INERTIA = 1  # 3   kg m, diagonal
K_ADDED = 4  # 3   kg/m of fluid that moves along e1, e2, e3
K_ROLL = 7  # kg m, the fluid's about e1
K_DRAG = 8  # 3   kg/m2
K_ROLL_DRAG = 11  # kg m
K_PULL = 12  # kg/m, mass less displaced mass: what gravity pulls
K_X = 13  # m
K_WEIGHT = 14  # m, of integrals over the body
K_WIDTH = 15

# scratch; twists and wrenches in the head's frame, about the head's origin
P_STRAIN = 0  # 18  xi, xi_t, xi_tt, section frame
P_ROT = 18  # 9   section -> head, by rows
P_POS = 27  # 3   m
P_SPREAD = 30  # 6   Ad_g xi_t
P_TWIST = 36  # 6   of the section, less the head's
P_ZETA = 42  # 6   of its acceleration, what does not follow from the head's
P_LOAD = 48  # 27  integrand: packed inertia 21, bias 6
P_SUM = 75  # 27  its integral from the head on
P_WRENCH = 102  # 6   of the part behind on the part before
P_TURN = 108  # 6   logarithm of the pose from the cell's start on
P_SLOPE = 114  # 6
P_WIDTH = 120

# state
Y_POSITION = 0
Y_QUATERNION = 3
Y_TWIST = 7
Y_WORK = 13
Y_LOST = 14
Y_SIZE = 15
RATE_SIZE = 14
"""Numbers of a rate: world velocity 3, W 3, twist' 6, and the powers whose integrals are `work` and `lost`."""

ENERGY = 0
POWER = 1
LOSS = 2
BAD_POINT = 3
TOTALS = 4
"""Further results of an evaluation.

Energy J, power W of the actuators, power W lost to drag and wake, and the point whose strain is not finite or -1.
"""
