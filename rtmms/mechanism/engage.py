"""Contacts that come and go: which one-sided rows hold over a step, by the sign of their reaction.

Of rows that do not open (slip <= 0) all hold at first; one that would have to pull is let go, the worst first, and the
others are asked again. It follows from the state alone, so that a restored run chooses alike.
"""

from __future__ import annotations

from typing import Any

from rtmms.dynamics.ground import slip
from rtmms.jit import kernel
from rtmms.mechanism.equations import evaluate
from rtmms.model.contact_rows import G_SIDE

CLOSED = 1e-10
"""m/s: a row that opens no faster is closed."""


@kernel
def engage(
    tree: Any, law: Any, hold: Any, fluid: Any, work: Any, state: Any, t: float, rate: Any
) -> None:  # fmt: skip
    """Set `active` of the rows, see rtmms.dynamics.ground. rate (12 + 2 n,) scratch."""
    ground = tree[6]
    rows, offset, reaction, active = ground[0], ground[5], ground[8], ground[10]
    sided = False
    for r in range(rows.shape[0]):
        sided = sided or rows[r, G_SIDE] > 0.0
    if not sided:
        return
    evaluate(tree, law, hold, fluid, work, state, t, 0.0, rate)
    slip(ground, work[0], work[5], offset)
    for r in range(rows.shape[0]):
        active[r] = 1.0 if rows[r, G_SIDE] == 0.0 or offset[r] <= CLOSED else 0.0
    for _ in range(rows.shape[0]):
        evaluate(tree, law, hold, fluid, work, state, t, 0.0, rate)
        if not let_go(rows, reaction, active):
            return


@kernel
def let_go(rows: Any, reaction: Any, active: Any) -> bool:
    """Open the one-sided row that pulls most; False where none pulls."""
    worst, most = -1, 0.0
    largest = 0.0
    for r in range(rows.shape[0]):
        if active[r] > 0.0:
            largest = max(largest, abs(reaction[r]))
    for r in range(rows.shape[0]):
        if rows[r, G_SIDE] > 0.0 and active[r] > 0.0 and reaction[r] < min(most, -1e-9 * largest):
            worst, most = r, reaction[r]
    if worst >= 0:
        active[worst] = 0.0
    return worst >= 0


@kernel
def engage_all(tree: Any, system: Any, state: Any, t: float, rate: Any) -> None:
    """`engage` of a tree that has contacts; nothing for others."""
    if len(tree) == 7:  # known when compiled
        engage(tree, system[1], system[2], system[3], system[4], state, t, rate)
