"""Loads MuJoCo when a model needs it, compiles models, and turns MuJoCo's messages into ours."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

from rtmms.base.errors import ModelError
from rtmms.base.install import install_command
from rtmms.mujoco_models.files import check_model_files

OLDEST = (3, 2)
"""First version of MuJoCo whose Python interface the plant uses."""

recent_warnings: deque[str] = deque(maxlen=8)
"""MuJoCo's last warnings in this process. MuJoCo itself would write them to MUJOCO_LOG.TXT in the working folder."""


def load_mujoco(place: str) -> Any:
    """Return the module `mujoco`.

    Parameters
    ----------
    place : str
        The file that needs it, for the error.

    Returns
    -------
    : module
        MuJoCo.

    Raises
    ------
    ModelError
        MuJoCo is missing, broken or too old.
    """
    command = install_command("mujoco")
    try:
        mujoco: Any = import_module("mujoco")
    except ImportError as fault:
        why = "" if getattr(fault, "name", "") == "mujoco" else f" (it does not load: {one_line(fault):.200})"
        raise ModelError(f"{place}: an MJCF file runs on MuJoCo, which is not installed: {command}{why}") from None
    version = tuple(int(part) for part in mujoco.__version__.split(".")[:2] if part.isdigit())
    if version < OLDEST:
        oldest = ".".join(map(str, OLDEST))
        raise ModelError(f"{place}: needs MuJoCo {oldest} or newer, got {mujoco.__version__}: {command}")
    if mujoco.get_mju_user_warning() is None:  # a program's own handler stays
        mujoco.set_mju_user_warning(recent_warnings.append)
    return mujoco


def load_model(path: str) -> tuple[Any, Any]:
    """Return the module `mujoco` and the compiled model of an MJCF file, whose files are checked first.

    Parameters
    ----------
    path : str
        The file. Files that it names must be in its folder or below.

    Returns
    -------
    tuple[Any, Any]
        Module and model.

    Raises
    ------
    ModelError
        MuJoCo is missing, or the file, or a file that it names, is wrong.
    """
    mujoco = load_mujoco(path)
    file = resolved(path)
    check_model_files(file)
    return mujoco, compile_model(mujoco, path, lambda: mujoco.MjModel.from_xml_path(str(file)))


def compile_model(mujoco: Any, path: str, make: Callable[[], Any]) -> Any:
    """Return the compiled model of a file.

    Parameters
    ----------
    mujoco : Any
        The module.
    path : str
        The file, for errors.
    make : Callable[[], Any]
        Compiles the model.

    Returns
    -------
    : mujoco.MjModel
        The model.

    Raises
    ------
    ModelError
        It does not load; the message has MuJoCo's reason.
    """
    recent_warnings.clear()
    try:
        return make()
    except ModelError:
        raise
    except (ValueError, TypeError, MemoryError, OSError, mujoco.FatalError, mujoco.UnexpectedError) as fault:
        reason = one_line(fault).removeprefix("Error: ").removeprefix("XML Error: ")
        raise ModelError(f"{path}: MuJoCo {mujoco.__version__} does not load it: {reason}{_remedy(reason)}") from None


def _remedy(reason: str) -> str:
    """Return the next action for reasons whose text has none."""
    if "plugin" in reason and "not found" in reason:
        return "; only MuJoCo's own plugins (mujoco.*) are available: remove the plugin, or replace it"
    if "Schema violation" in reason or "unrecognized" in reason:
        return "; correct the element, or install a newer MuJoCo"
    return "; correct the file"


def one_line(fault: object) -> str:
    r"""Return a message of several lines as one.

    Parameters
    ----------
    fault : object
        Message or exception.

    Returns
    -------
    str
        The line.

    Examples
    --------
    >>> from rtmms.mujoco_models.library import one_line
    >>> one_line("Error: a\nb")
    'Error: a, b'
    """
    return ", ".join(line.strip() for line in str(fault).splitlines() if line.strip())


def model_bytes(mujoco: Any, model: Any) -> bytes:
    """Return a compiled model as MuJoCo saves it.

    Parameters
    ----------
    mujoco, model : Any
        The module and the compiled model.

    Returns
    -------
    bytes
        The bytes.
    """
    import numpy as np

    buffer = np.zeros(mujoco.mj_sizeModel(model), dtype=np.uint8)
    mujoco.mj_saveModel(model, None, buffer)
    return buffer.tobytes()


def resolved(path: str) -> Path:
    """Return the path of a file that a person or a scenario named.

    Parameters
    ----------
    path : str
        The text.

    Returns
    -------
    Path
        With the home folder in place of ~.
    """
    return Path(path).expanduser()
