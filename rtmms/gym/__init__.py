"""Environments of gymnasium on the plants of this package.

`Task` defines the task, `RobotEnv` is one environment, `RobotVectorEnv` many. Importing the package registers
`rtmms/MantaDepth-v0` and the others (ids.py). Environments need the extra `gym`; a task needs numpy alone, so that a
controller can use the task for which its policy was trained.
"""

from __future__ import annotations

from contextlib import suppress
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from rtmms.base.errors import ModelError
from rtmms.base.install import install_command
from rtmms.gym.ids import register

with suppress(ImportError):  # without gymnasium
    register()

if TYPE_CHECKING:
    from rtmms.gym.environments import RobotEnv, RobotVectorEnv
    from rtmms.gym.task import Task

__all__ = ["RobotEnv", "RobotVectorEnv", "Task", "register"]

_LATE = {
    **dict.fromkeys(("RobotEnv", "RobotVectorEnv"), "rtmms.gym.environments"), "Task": "rtmms.gym.task",
}  # fmt: skip
"""Names that are loaded at their first use: registering needs neither numba nor a plant."""


def __getattr__(name: str) -> Any:
    """Load a name at its first use."""
    if name in _LATE:
        if name != "Task" and find_spec("gymnasium") is None:
            raise ModelError(f"rtmms.gym.{name} needs gymnasium: {install_command('gym')}")
        return getattr(import_module(_LATE[name]), name)
    raise AttributeError(f"module 'rtmms.gym' has no attribute '{name}'")
