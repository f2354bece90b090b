"""What a program hands over by mistake is refused by its name: trees, flows, loads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import rtmms
from rtmms.base.errors import ModelError
from rtmms.fluids import Flow, Wave
from rtmms.mechanism.actuators import JointLimit
from rtmms.mechanism.plant import TreePlant
from rtmms.model import Body, Joint, Mechanism, State

NAN = float("nan")


def tree(**more: Any) -> TreePlant:
    """Two bodies and a joint."""
    bodies = [Body(name, 1.0, (0.0, 0.0, 0.0), np.eye(3)) for name in ("a", "b")]
    return TreePlant(Mechanism("m", bodies, [Joint("j", "a", "b", axis=(0.0, 0.0, 1.0))]), **{"dt": 0.01, **more})


def state(**more: Any) -> State:
    """At rest, but for what is given."""
    default = {"position": np.zeros(3), "orientation": np.array([1.0, 0.0, 0.0, 0.0]), "q": np.zeros(1),
             "twist": np.zeros(6), "qd": np.zeros(1)}  # fmt: skip
    return State(**{**default, **more})


CASES: list[tuple[Callable[[], Any], str]] = [
    (lambda: tree(initial=3), "m: initial: expected a State, got 3"),
    (lambda: tree(initial={}), "m: initial: expected a State"),
    (lambda: tree(initial=state(qd=np.zeros(2))), r"m: state\.qd must have shape \(1,\), got \(2,\)"),
    (lambda: tree(initial=state(position="x")), r"m: state\.position: expected 3 finite numbers, got 'x'"),
    (lambda: tree(initial=state(position=None)), r"m: state\.position"),
    (lambda: tree(initial=state(q=np.array([NAN]))), r"m: state\.q must be finite"),
    (lambda: tree(initial=state(orientation=np.zeros(4))), r"m: state\.orientation must be a quaternion"),
    (lambda: tree(law=3), "m: law: expected a Law, got 3"),
    (lambda: tree(outputs=3), "m: outputs: expected names, got 3"),
    (lambda: tree(outputs="position"), "m: outputs: expected names, got 'position'"),
    (lambda: tree(trace_outputs=(3,)), r"m: trace_outputs: expected names, got \(3,\)"),
    (lambda: tree(recent_outputs=3), "m: recent_outputs: expected names"),
    (lambda: tree(nodes=3), "m: nodes: expected a mapping, got 3"),
    (lambda: tree(trim_options=3), "m: trim_options: expected a mapping"),
    (lambda: tree(drives=3), "m: drives: expected a tuple of Actuator, got 3"),
    (lambda: tree(extra=3), "m: extra: expected a tuple of tuple"),
    (lambda: tree(extra=((3, 4),)), "m: extra: expected pairs of a Channel and a function"),
    (lambda: tree(density="x"), "m: density: expected a number >= 0 kg/m3, got 'x'"),
    (lambda: tree(density=NAN), "m: density: expected a number >= 0 kg/m3, got nan"),
    (lambda: Flow(waves=[1]), r"flow: waves: expected a list of Wave, got \[1\]"),  # type: ignore[list-item]
    (lambda: Flow(waves=3), "flow: waves: expected a list of Wave, got 3"),  # type: ignore[arg-type]
    (lambda: Flow(vortices=[1]), "flow: vortices: expected a list of VortexRow"),  # type: ignore[list-item]
    (lambda: Flow(field=3), r"flow: field: expected a function of \(x, t\) or None, got 3"),  # type: ignore[arg-type]
    (lambda: Flow(velocity="x").pack(), r"flow: velocity must be \(3,\) finite numbers, got 'x'"),
    (lambda: Flow(waves=[Wave("x")]).pack(), r"flow: wave 0: amplitude must be \(3,\) finite numbers, got 'x'"),
    *((lambda name=name: tree(actuators=[JointLimit("j", **{name: NAN})]), rf"joint 'j': {name}|: {name} ")
      for name in ("lower", "upper", "max_rate", "braking_time")),
    (lambda: rtmms.load("manta", preset=3), "preset: expected a name or a FILE.toml, got 3"),  # type: ignore[arg-type]
    (lambda: rtmms.load("manta", preset="no.toml"), r"preset no\.toml: there is no such file"),
    (lambda: rtmms.load("manta", dt=True), "dt: expected a number in s, got True"),
]  # fmt: skip


@pytest.mark.parametrize(("make", "text"), CASES, ids=[text for _, text in CASES])
def test_what_is_of_another_type_is_named(make: Callable[[], Any], text: str) -> None:
    with pytest.raises(ModelError, match=text):
        make()
