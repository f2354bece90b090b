"""Export of a robot as an FMU for co-simulation: FMI 3 or FMI 2."""

from __future__ import annotations

import json
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import rtmms.plant.loading
from rtmms.base.errors import ModelError
from rtmms.base.files import new_file_beside
from rtmms.fmi.archive import import_library
from rtmms.fmi.exported_fmi3 import SPECIFICATION, digest
from rtmms.version import VERSION

OPTIONS = {
    "needsExecutionTool": True, "canHandleVariableCommunicationStepSize": False,
    "canGetAndSetFMUState": True, "canSerializeFMUState": True,
}  # fmt: skip
SCRIPT = '''"""The robot of this FMU; see robot.json beside it."""

import sys

from {library} import {base}

try:
    from {module} import {slave} as RobotSlave
except Exception as fault:  # without a class the binary would crash its host
    NEEDS = "this FMU needs rtmms (pip install 'rtmms[fmi]') in the Python that runs it"
    REASON = f"{{NEEDS}}, {{sys.executable}}: {{fault}}"

    class RobotSlave:
        """What cannot be had here."""

        def __init__(self, **kwargs):
            raise ImportError(REASON)


class Robot(RobotSlave, {base}):
    """A robot of rtmms as a co-simulation slave."""

    def __init__(self, **kwargs):
        try:
            super().__init__(**kwargs)
        except Exception as fault:  # the binary passes on no reason
            sys.stderr.write(f"{{self.__class__.__module__}}: {{fault}}\\n")
            raise
'''

VERSIONS: Mapping[int, Mapping[str, str]] = {
    2: {"library": "pythonfmu", "base": "Fmi2Slave", "module": "rtmms.fmi.exported_fmi2", "slave": "RobotSlave2"},
    3: {"library": "pythonfmu3", "base": "Fmi3Slave", "module": "rtmms.fmi.exported_fmi3", "slave": "RobotSlave"},
}
OPTIONS_2 = {
    "canGetAndSetFMUstate": True, "canSerializeFMUstate": True,
    # in a Python, a second instance of one FMU of pythonfmu 0.7.0 crashes
    "canBeInstantiatedOnlyOncePerProcess": True,
}  # fmt: skip
"""Options as FMI 2 spells them, and its further ones."""


def export(
    robot: str, path: Path, *, dt: float | None = None, preset: str | None = None, seed: int = 0,
    parameters: Mapping[str, Any] | None = None, fmi: int = 3,
) -> Path:  # fmt: skip
    """Write the FMU of a robot to `path`, whole or not at all.

    The FMU has the robot's description, not its code: the machine that runs it needs the same version of Python with
    rtmms and its libraries (FMI's needsExecutionTool).

    Parameters
    ----------
    robot : str
        The robot, as for rtmms.load.
    path : Path
        The file.
    dt : float | None, optional
        Step, s, as for rtmms.load.
    preset : str | None, optional
        Preset of the robot.
    seed : int, default 0
        Seed of the reset.
    parameters : Mapping[str, Any] | None, optional
        As for rtmms.load.
    fmi : int, default 3
        Version, 2 or 3.

    Returns
    -------
    Path
        The path.

    Raises
    ------
    ModelError
        The robot, a parameter or the path is wrong.
    RtmmsError
        The file cannot be written.
    """
    if fmi not in VERSIONS:
        raise ModelError(f"fmi: expected 2 or 3, got {fmi!r}")
    version = VERSIONS[fmi]
    builder = import_library(f"{version['library']}.builder", "an FMU").FmuBuilder
    path = Path(path)
    if path.suffix != ".fmu":
        raise ModelError(f"{path}: expected a name that ends in .fmu")
    if not path.parent.is_dir():
        raise ModelError(f"{path}: there is no folder '{path.parent}'")
    if robot.endswith(".fmu"):
        raise ModelError(f"{robot}: expected a robot that is not an FMU, got an FMU")
    if not builder.has_binary():
        raise ModelError(f"export-fmu: {version['library']} has no binary for this system ({sys.platform})")
    parameters = dict(parameters or {})
    # an argument that is wrong is refused here, by its name
    plant = rtmms.plant.loading.build_plant(robot, dt=dt, preset=preset, **parameters)
    identifier = re.sub(r"\W", "_", robot, flags=re.ASCII)
    specification = {
        "robot": robot, "identifier": identifier if identifier[0].isalpha() else f"robot_{identifier}", "dt": plant.dt,
        "preset": preset, "parameters": parameters, "seed": seed, "version": VERSION,
    }  # fmt: skip
    files = {}
    for key, word in (("robot", robot), ("preset", preset)):  # the tool that runs the FMU has another working folder
        file = None if word is None or word in rtmms.plant.loading.robots() else _file(word)
        if file is not None:
            specification[key] = str(file.resolve()) + str(word).removeprefix(str(file))
            files[str(file.resolve())] = digest(file)
    specification["files"] = files
    del plant
    try:
        text = json.dumps(specification)
    except TypeError as fault:
        raise ModelError(f"export-fmu: expected parameters that JSON can represent: {fault}") from None
    with new_file_beside(path, "-o") as part, tempfile.TemporaryDirectory(prefix="rtmms-export-") as folder:
        # The name is the module's within the tool that runs it: two FMUs in one process share modules by name, and
        # this one is the same for all robots.
        script = Path(folder) / ("rtmms_robot.py" if fmi == 3 else "rtmms_robot2.py")
        script.write_text(SCRIPT.format(**version))
        (Path(folder) / SPECIFICATION).write_text(text)
        with _modules_as_before(script.stem):
            built = builder.build_FMU(
                script, dest=folder, project_files=[Path(folder) / SPECIFICATION],
                **OPTIONS, **(OPTIONS_2 if fmi == 2 else {}),
            )  # fmt: skip
        shutil.copyfile(built, part)
    return path


def _file(word: str) -> Path | None:
    """Return the file that a robot (FILE.urdf, FILE.py:NAME) or a preset is read from; None for one by its name."""
    return next((Path(item) for item in (word, word.rpartition(":")[0]) if item and Path(item).is_file()), None)


@contextmanager
def _modules_as_before(name: str) -> Iterator[None]:
    """Restore Python's modules after the block: pythonfmu imports the script, and leaves it and its folder there."""
    places = list(sys.path)
    try:
        yield
    finally:
        sys.path[:] = places
        sys.modules.pop(name, None)
