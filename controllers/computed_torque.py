"""Computed torque for the torque-driven eel: its inverse model in the loop, over the wire.

    tau = inverse(q, q', V; q''_wanted + k_d (q'_wanted - q') + k_p (q_wanted - q))

The inverse model is the plant's own mechanism, built from the parameters that the plant sends, with its water. The base
is free, so its acceleration follows with the torques. The wanted motion is the paper's gait.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Annotated, Any

import rtmms
from rtmms.base.override import override
from rtmms.base.parameters import Parameter, check_parameters


@dataclass
class ComputedTorque(rtmms.Controller):
    """Drives an eel with drive=torque, its own servo and gait off (gait=none, kp_n_m=0, kd_n_m_s=0).

    The declaration of each field has its meaning, unit and range.
    """

    # fmt: off
    gait: Annotated[str, Parameter("Gait, as the eel's parameter of that name.", choices=("planar", "loop"))] = "planar"
    bandwidth_rad_s: Annotated[float, Parameter(
        "Bandwidth of the error: k_p = bandwidth^2, k_d = 2 bandwidth.", "rad/s", ge=0,
    )] = 20.0
    amplitude_rad: Annotated[float, Parameter(
        "Amplitude of the gait, as the eel's parameter of that name.", "rad", signed=True,
    )] = 0.06
    period_s: Annotated[float, Parameter(
        "Period of the gait, as the eel's parameter of that name.", "s", signed=True,
    )] = 2.0
    wavelength_m: Annotated[float, Parameter(
        "Wavelength of the gait, as the eel's parameter of that name.", "m", signed=True,
    )] = 1.8
    yaw_offset_rad: Annotated[float, Parameter(
        "Offset of the yaw joints in the gait, as the eel's parameter of that name.", "rad", signed=True,
    )] = 0.0
    pitch_offset_rad: Annotated[float, Parameter(
        "Offset of the pitch joints, for gait=loop, as the eel's parameter of that name.", "rad", signed=True,
    )] = 0.07853981633974483
    # fmt: on

    robots = ("eel",)
    claim = ("*.torque",)
    outputs = (
        "position", "quaternion", "velocity", "angular_velocity", "joint_position", "joint_velocity",
    )  # fmt: skip

    def __post_init__(self) -> None:
        """Check the parameters."""
        check_parameters("controller 'computed_torque': ", self)
        if self.gait != "loop" and self.pitch_offset_rad != type(self).pitch_offset_rad:
            raise rtmms.ModelError(
                f"controller 'computed_torque': pitch_offset_rad: gait={self.gait} does not use it; give gait=loop"
            )
        self.error = 0.0

    @override
    def start(self, plant: rtmms.PlantInfo) -> None:
        """Build the inverse model from the plant's own parameters, and call it once, so that it is compiled."""
        from rtmms.analysis.equilibrium import Inverse
        from rtmms.base.parameters import build
        from rtmms.fluids.ambient import Flow
        from rtmms.robots import eel

        if not any(channel.name == "yaw1.torque" for channel in plant.actuators):
            raise rtmms.ModelError("controller 'computed_torque': expected torques; run the eel with drive=torque")
        parameters = {
            name: value for name, value in plant.parameters.items() if name in {f.name for f in fields(eel.Eel)}
        }
        eel_parameters = build(eel.Eel, parameters)
        current = Flow((eel_parameters.current_x_m_s, eel_parameters.current_y_m_s, eel_parameters.current_z_m_s))
        model = eel.model_of(eel_parameters)
        self._inverse = Inverse(model, current, strip_nodes=eel_parameters.nodes)
        gait = {
            name: getattr(self, name)
            for name in ("gait", "amplitude_rad", "period_s", "wavelength_m", "yaw_offset_rad", "pitch_offset_rad")
        }
        self._law: Any = eel.gait(build(eel.Eel, {**parameters, **gait}))
        self._names = [f"{name}.torque" for name in model.joint_names]
        self._inverse(model.state(), self._law.motion[:, 0].copy())

    @override
    def update(self, state: rtmms.State) -> dict[str, float]:
        """Return the torques at state.time, N m."""
        import numpy as np

        from rtmms.model import State

        q, qd, qdd = self._law.at(state.time)
        observed = {name: np.asarray(state[name], dtype=float) for name in self.outputs}
        twist = np.concatenate([observed["velocity"], observed["angular_velocity"]])
        here = State(
            observed["position"], observed["quaternion"], observed["joint_position"], twist, observed["joint_velocity"]
        )
        w = self.bandwidth_rad_s
        self.error = float(np.max(np.abs(q - here.q)))
        torque, _ = self._inverse(here, qdd + 2.0 * w * (qd - here.qd) + w * w * (q - here.q))
        return dict(zip(self._names, torque.tolist(), strict=True))
