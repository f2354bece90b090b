"""Which rows of contact hold over a step: by their slip, then by the sign of their reaction, the worst let go first."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from rtmms.dynamics import ground as dynamics
from rtmms.mechanism import step as module
from rtmms.model.contact_rows import G_BODY, G_GAIN, G_JOINT, G_ROW, G_SIDE, G_WIDTH
from rtmms.model.layout import S_TWIST


def plain(kernel: Any) -> Any:
    """As Python has it, with the compiler or without."""
    return getattr(kernel, "py_func", kernel)


def test_rows_hold_by_their_slip_and_are_let_go_by_their_reaction(monkeypatch: pytest.MonkeyPatch) -> None:
    """Four rows along x of body 1, which moves at 0.3 m/s; the dynamics' reactions are scripted.

    slip    -0.2 and -0.1, of rows that count the rate of joint 1 as well, 0.3 of one that does not (it opens), 0.3 of
            one that holds both ways
    angles  of the joint would have the first two open
    """
    rows = np.zeros((4, G_WIDTH))
    rows[:, G_BODY], rows[:, G_ROW], rows[:, G_SIDE] = 1.0, 1.0, [1.0, 1.0, 1.0, 0.0]
    rows[:2, G_JOINT], rows[:2, G_GAIN] = 1.0, [-0.125, -0.1]
    s, q, qd = np.zeros((2, S_TWIST + 6)), np.array([-5.0]), np.array([4.0])
    s[1, S_TWIST] = 0.3
    offset, reaction, active = np.zeros(4), np.zeros(4), np.full(4, 0.5)
    ground = SimpleNamespace(rows=rows, offset=offset, reaction=reaction, active=active)
    system = SimpleNamespace(work=SimpleNamespace(s=s, q=q, qd=qd))
    observed, result = list[list[float]](), iter([[0.0] * 4, [-1.0, -2.0, 0.0, -9.0], [-1e-12, 0.0, 0.0, 3.0]])

    def evaluate(*_: Any) -> None:
        observed.append(active.tolist())
        reaction[:] = next(result)

    monkeypatch.setattr(module, "evaluate", evaluate)
    monkeypatch.setattr(module, "slip", plain(dynamics.slip))
    monkeypatch.setattr(module, "let_go", plain(module.let_go))
    plain(module.choose_contacts)(system, ground, None, 0.0, None)
    assert offset == pytest.approx([-0.2, -0.1, 0.3, 0.3])
    assert observed == [[0.5] * 4, [1.0, 1.0, 0.0, 1.0], [1.0, 0.0, 0.0, 1.0]]
    assert active.tolist() == [1.0, 0.0, 0.0, 1.0]  # a pull of 1e-12 beside 3 is rounding
