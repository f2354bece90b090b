"""What the analysis of MuJoCo plants uses of a plant."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from rtmms.mujoco_models.channels import FreeBody, Source
from rtmms.plant.protocol import Channel


class Simulated(Protocol):
    """A model with its state, as `rtmms.mujoco_models.plant.MujocoPlant` has it; see there."""

    path: str
    dt: float
    actuators: tuple[Channel, ...]
    outputs: tuple[Channel, ...]
    model: Any
    data: Any
    keywords: Any

    @property
    def mujoco(self) -> Any: ...

    @property
    def free_bodies(self) -> tuple[FreeBody, ...]: ...

    @property
    def scalar_joints(self) -> tuple[int, ...]: ...

    def output_sources(self, names: Sequence[str]) -> list[Source]: ...

    def take_up_present(self) -> None: ...

    def snapshot(self) -> bytes: ...

    def restore(self, blob: bytes) -> None: ...
